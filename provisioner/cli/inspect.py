"""`provision inspect`: print this machine, the saved file tree of another, or the nodes of a cluster as host profiles."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from provisioner.errors import UsageError

if TYPE_CHECKING:
    from provisioner.host.inspect import Inspection
    from provisioner.host.inventory import InventoryHost
    from provisioner.matrix.model import Matrix


class ProfileFormat(StrEnum):
    """The output format of a host profile: the YAML that other commands read, or JSON."""

    YAML = "yaml"
    JSON = "json"


def inspect(
    root: Annotated[
        Path, typer.Option("--root", metavar="DIR", help="A saved tree, or a mounted machine, instead of this one.")
    ] = Path("/"),
    nodes: Annotated[
        Path | None,
        typer.Option(
            "--nodes",
            metavar="FILE",
            help="An inventory, such as what `kubectl get nodes -o json` printed, instead of this machine.",
        ),
    ] = None,
    node: Annotated[str | None, typer.Option("--node", metavar="NAME", help="Only this one of the nodes.")] = None,
    output_format: Annotated[
        ProfileFormat, typer.Option("--format", help="Print YAML, which other commands read, or JSON.")
    ] = ProfileFormat.YAML,
) -> None:
    """Describe this machine as a host profile: what the solver needs to know, and nothing that names the machine.

    A fact that cannot be seen is left out, which means unknown; what could not be seen, and why, goes to stderr.
    Of a cluster's nodes, labels tell the facts; several nodes are printed as JSON, a list that other commands read.
    """
    from provisioner.cli.display import data, json_data
    from provisioner.host.profile import host_document
    from provisioner.strict_model import plain_data

    if nodes is not None:
        if root != Path("/"):
            raise UsageError("--root and --nodes name two different machines", hints=("give one of them",))
        _print_nodes(_chosen(nodes, node), output_format)
        return
    if node is not None:
        raise UsageError("--node picks one of the nodes of --nodes, which is not given", hints=("add --nodes FILE",))
    host = inspected(root).host
    if output_format is ProfileFormat.JSON:
        json_data(plain_data(host))
    else:
        data(host_document(host))


def inspected(root: Path = Path("/")) -> Inspection:
    """Inspect the machine whose file system is at `root`, print the remarks about it to stderr, and return the inspection.

    The GPUs get the product names of the matrix.
    """
    from provisioner.cli.display import warn
    from provisioner.host.inspect import inspect_host
    from provisioner.matrix.cache import cached_matrix
    from provisioner.words.remark import remark_words
    from provisioner.workflow.inputs import catalogue_of

    matrix = cached_matrix(None)
    found = inspect_host(root, gpu_names=gpu_names_of(matrix))
    # What the machine says of itself is printed as it is, and a system that the matrix knows needs no system it is like.
    inspection = replace(found, host=replace(found.host, os=catalogue_of(matrix).identify(found.host).os))
    for remark in inspection.remarks:
        warn(remark_words(remark))
    return inspection


def gpu_names_of(matrix: Matrix) -> dict[str, tuple[str, str]]:
    """Return product and compute capability by PCI device id, and by name for GPUs without one, for `inspect_host`."""
    return {identity: (gpu.name, gpu.compute_capability) for gpu in matrix.gpus for identity in (*gpu.pci_device_ids, gpu.name)}


def _chosen(path: Path, name: str | None) -> tuple[InventoryHost, ...]:
    from provisioner.host.inventory import host_named, read_inventory
    from provisioner.matrix.cache import cached_matrix
    from provisioner.workflow.inputs import catalogue_of

    listed = read_inventory((path,), catalogue=catalogue_of(cached_matrix(None)))
    return listed if name is None else (host_named(listed, name, path=path),)


def _print_nodes(listed: tuple[InventoryHost, ...], output_format: ProfileFormat) -> None:
    from provisioner.cli.display import data, json_data, warn
    from provisioner.host.profile import host_document
    from provisioner.strict_model import plain_data
    from provisioner.words.remark import remark_words

    if output_format is ProfileFormat.YAML and len(listed) != 1:
        raise UsageError(
            f"there are {len(listed)} nodes, and a YAML profile describes one machine",
            hints=("add --node NAME for one of them", "add --format json for all of them"),
        )
    for one in listed:
        for remark in one.remarks:
            warn(f"{one.name}: {remark_words(remark)}")
    if output_format is ProfileFormat.YAML:
        data(host_document(listed[0].host))
    else:
        json_data([{"name": one.name, "host": plain_data(one.host)} for one in listed])
