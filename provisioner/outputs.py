"""The output formats of a lock, one row each. Every list of formats elsewhere in the program is derived from this table."""

from __future__ import annotations

from typing import NamedTuple

from provisioner.errors import UsageError
from provisioner.names import nearest


class Output(NamedTuple):
    """One format that a lock can be rendered in, by the module `provisioner/render/<name>.py`.

    `file_name` is the default name of the rendered file. `is_image_recipe` marks a format from which a container image is
    built: if a spec lists one under `outputs` and does not set `runs`, the environment is for containers.
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
    """Return the output format called `name`; raises `UsageError` when there is none."""
    if name not in OUTPUTS:
        raise UsageError(f"`{name}` is not an output format", hints=(output_advice(name),))
    return OUTPUTS[name]


def output_advice(name: str) -> str:
    """Return the hint about an unknown format `name`: the most similar name, and all formats."""
    near = nearest(name, OUTPUTS)
    question = f"did you mean `{near}`? " if near else ""
    return f"{question}there are {', '.join(OUTPUTS)}"
