"""`provision inspect`: this machine, or a saved tree of one, as a host profile."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from provisioner.host.inspect import Inspection


class ProfileFormat(StrEnum):
    """How a host profile is printed: the YAML that other commands read, or the same as JSON."""

    YAML = "yaml"
    JSON = "json"


def inspect(
    root: Annotated[
        Path, typer.Option("--root", metavar="DIR", help="A saved tree, or a mounted machine, instead of this one.")
    ] = Path("/"),
    output_format: Annotated[
        ProfileFormat, typer.Option("--format", help="Print YAML, which other commands read, or JSON.")
    ] = ProfileFormat.YAML,
) -> None:
    """Describe this machine as a host profile: what the solver needs to know, and nothing that names the machine.

    A fact that cannot be seen is left out, which means unknown; what could not be seen, and why, goes to stderr.
    """
    from provisioner.cli.display import data, json_data
    from provisioner.host.load import host_document

    host = inspected(root).host
    if output_format is ProfileFormat.JSON:
        json_data(host.model_dump(mode="json", exclude_none=True))
    else:
        data(host_document(host))


def inspected(root: Path = Path("/")) -> Inspection:
    """Inspect a machine with the products the matrix knows, and say on stderr what could not be learned."""
    from provisioner.cli.display import warn
    from provisioner.host.inspect import inspect_host
    from provisioner.matrix.cache import cached_matrix

    names = {
        identity: (gpu.name, gpu.compute_capability)
        for gpu in cached_matrix(None).gpus
        for identity in (*gpu.pci_device_ids, gpu.name)
    }
    inspection = inspect_host(root, gpu_names=names)
    for note in inspection.notes:
        warn(note)
    return inspection
