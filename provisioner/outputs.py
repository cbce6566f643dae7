"""The output formats of a lock, one row each. Every list of formats elsewhere in the program is derived from this table."""

from __future__ import annotations

from typing import NamedTuple

from provisioner.errors import UsageError
from provisioner.names import nearest

HELPER_FOLDER = "provision"
"""The folder, beside the lock, of the helper files that rendered files use."""


class Output(NamedTuple):
    """One format that a lock can be rendered in, by the module `provisioner/render/<name>.py`.

    `file_name` is the default name of the rendered file. `is_for_containers` marks a format that builds or starts a container:
    if a spec lists one under `outputs` and does not set `runs`, the environment is for containers. `helpers` are the names of
    files of `provisioner/render/scripts` that a rendered file may use; those it names are written with it. `sets_up_hosts`
    marks a format that needs the setups of the hosts: the lock of a spec that lists one has them.
    """

    name: str
    file_name: str
    summary: str
    is_for_containers: bool = False
    helpers: tuple[str, ...] = ()
    sets_up_hosts: bool = False

    @property
    def helper_paths(self) -> tuple[str, ...]:
        """The paths of `helpers`, relative to the folder of the lock."""
        return tuple(f"{HELPER_FOLDER}/{name}" for name in self.helpers)


OUTPUTS = {
    row.name: row
    for row in (
        Output(
            "dockerfile",
            "Dockerfile",
            "builds the image, with BuildKit or Podman",
            is_for_containers=True,
            helpers=("guard.py", "install.py", "snapshot.sh"),
        ),
        Output("compose", "compose.yaml", "builds and runs the image with Docker Compose", is_for_containers=True),
        Output("kubernetes", "job.yaml", "runs the image as a Job, on nodes that the stack runs on", is_for_containers=True),
        Output(
            "kubernetes-deployment",
            "deployment.yaml",
            "runs the image as a Deployment, on nodes that the stack runs on",
            is_for_containers=True,
        ),
        Output(
            "apptainer",
            "apptainer.def",
            "builds the environment as an Apptainer image",
            is_for_containers=True,
            helpers=("snapshot.sh",),
        ),
        Output("devcontainer", ".devcontainer.json", "opens the image as a development container", is_for_containers=True),
        Output("bake", "docker-bake.hcl", "builds the image with docker buildx bake", is_for_containers=True),
        Output("host-script", "host.sh", "brings a host to the locked driver and toolkits, step by step", sets_up_hosts=True),
        Output("slurm", "job.slurm", "a batch script for Slurm, which checks its nodes before it starts the program"),
        Output("module", "modulefile", "an environment module, for Lmod and Environment Modules"),
        Output("environment", "environment.sh", "exports the stack's variables and versions, for POSIX shells to source"),
        Output("requirements", "requirements.txt", "versions and hashes, for pip and uv with any index, and for bots"),
        Output("requirements-urls", "requirements-urls.txt", "every file by URL and hash, for pip and uv without an index"),
        Output("sbom", "sbom.cdx.json", "the software bill of materials, in CycloneDX 1.6"),
        Output("sbom-spdx", "sbom.spdx.json", "the software bill of materials, in SPDX 2.3"),
    )
}
"""The formats by name, as a spec writes them under `outputs:` and `provision render` takes them with `--to`."""


class OutputFile(NamedTuple):
    """A file that is rendered: its format, and its path relative to the folder of the lock, with forward slashes."""

    format: str
    path: str


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
