"""The output formats of a lock: one row a format. Every list of formats elsewhere in the program is a view of this table."""

from __future__ import annotations

from typing import NamedTuple

from provisioner.errors import UsageError
from provisioner.names import nearest


class Output(NamedTuple):
    """One format a lock can be rendered in. The module of its name in `provisioner/render` renders it.

    `file_name` is the usual name of the rendered file. From an image recipe a container image is built; a spec that asks for
    one, and does not say where the environment runs, gets an environment for containers.
    """

    name: str
    file_name: str
    summary: str
    is_image_recipe: bool = False


OUTPUTS = {
    row.name: row
    for row in (
        Output("dockerfile", "Dockerfile", "builds the image, with BuildKit or Podman", is_image_recipe=True),
        Output("environment", "environment.sh", "exports the stack's variables and versions, for POSIX shells to source"),
        Output("requirements", "requirements.txt", "every file by URL and hash, for pip and uv"),
    )
}
"""The formats by name, as a spec writes them under `outputs:` and `provision render` takes them with `--to`."""


def output_named(name: str) -> Output:
    """Return the row of a format; raises `UsageError` where there is none of this name."""
    if name not in OUTPUTS:
        raise UsageError(f"`{name}` is not an output format", hints=(output_advice(name),))
    return OUTPUTS[name]


def output_advice(name: str) -> str:
    """Advise whoever wrote a name that no format has: the nearest name, and all there are."""
    near = nearest(name, OUTPUTS)
    question = f"did you mean `{near}`? " if near else ""
    return f"{question}there are {', '.join(OUTPUTS)}"
