"""`provision inspect`: print this machine, or what was captured of others, as host profiles."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from provisioner.errors import UsageError

if TYPE_CHECKING:
    from provisioner.host.captured import Captured
    from provisioner.host.inspect import Inspection
    from provisioner.matrix.model import Matrix


class ProfileFormat(StrEnum):
    """The output format of a host profile: the YAML that other commands read, or JSON."""

    YAML = "yaml"
    JSON = "json"


def inspect(
    root: Annotated[
        Path, typer.Option("--root", metavar="DIR", help="A saved tree, or a mounted machine, instead of this one.")
    ] = Path("/"),
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="What was captured elsewhere: a report of `nvidia-smi -q -x` (- is stdin), a must-gather, a saved tree.",
        ),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(
            "--nodes",
            metavar="FILE",
            help="An inventory, such as what `kubectl get nodes -o json` printed, instead of this machine.",
        ),
    ] = None,
    node: Annotated[
        str | None, typer.Option("--node", metavar="NAME", help="Only this one of the nodes of --from or --nodes.")
    ] = None,
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

    given = [name for name, path in (("--root", root), ("--from", source), ("--nodes", nodes)) if path not in {None, Path("/")}]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} name two different machines", hints=("give one of them",))
    elsewhere = source or nodes
    if elsewhere is not None:
        _print_captured(_chosen(elsewhere, node, is_inventory=source is None), output_format)
        return
    if node is not None:
        raise UsageError(
            "--node picks one of the nodes of --from or --nodes, and neither is given",
            hints=("add --from PATH or --nodes FILE",),
        )
    host = inspected(root).host
    if output_format is ProfileFormat.JSON:
        json_data(plain_data(host))
    else:
        data(host_document(host))


def inspected(root: Path = Path("/")) -> Inspection:
    """Inspect the machine whose file system is at `root`, print the remarks about it to stderr, and return the inspection.

    The GPUs get the product names of the matrix.
    """
    from provisioner.host.inspect import inspect_host
    from provisioner.matrix.cache import cached_matrix
    from provisioner.workflow.inputs import catalogue_of

    matrix = cached_matrix(None)
    found = inspect_host(root, gpu_names=gpu_names_of(matrix))
    # What the machine says of itself is printed as it is, and a system that the matrix knows needs no system it is like.
    inspection = replace(found, host=replace(found.host, os=catalogue_of(matrix).identify(found.host).os))
    _tell(inspection)
    return inspection


def _tell(inspection: Inspection, name: str = "") -> None:
    """Print the remarks on an inspection to stderr, those on what no rule reads with `-v` alone."""
    from provisioner.cli.display import talk, wants_details, warn
    from provisioner.words.remark import remark_words

    before = f"{name}: " if name else ""
    for remark in inspection.remarks:
        warn(f"{before}{remark_words(remark)}")
    for remark in inspection.unread if wants_details() else ():
        talk(f"{before}{remark_words(remark)}")


def gpu_names_of(matrix: Matrix) -> dict[str, tuple[str, str]]:
    """Return product and compute capability by PCI device id, and by name for GPUs without one, for `inspect_host`."""
    return {identity: (gpu.name, gpu.compute_capability) for gpu in matrix.gpus for identity in (*gpu.pci_device_ids, gpu.name)}


def _chosen(path: Path, name: str | None, *, is_inventory: bool) -> tuple[Captured, ...]:
    """Return the machines that were captured in `path`, or the one of this name.

    `is_inventory`: only profiles and nodes are read, from stdin, too.
    """
    from provisioner.host.captured import read_captured, read_nodes
    from provisioner.host.inventory import host_named
    from provisioner.matrix.cache import cached_matrix
    from provisioner.workflow.inputs import catalogue_of

    matrix = cached_matrix(None)
    catalogue = catalogue_of(matrix)
    if is_inventory:
        listed = read_nodes(path, catalogue=catalogue)
    else:
        listed = read_captured(path, gpu_names=gpu_names_of(matrix), catalogue=catalogue)
    return listed if name is None else (host_named(listed, name, path=path),)


def _print_captured(listed: tuple[Captured, ...], output_format: ProfileFormat) -> None:
    from provisioner.cli.display import data, json_data
    from provisioner.host.profile import host_document
    from provisioner.strict_model import plain_data

    if output_format is ProfileFormat.YAML and len(listed) != 1:
        raise UsageError(
            f"there are {len(listed)} nodes, and a YAML profile describes one machine",
            hints=("add --node NAME for one of them", "add --format json for all of them"),
        )
    for one in listed:
        _tell(one.inspection, one.name)
    hosts = [one.inspection.host for one in listed]
    if output_format is ProfileFormat.YAML:
        data(host_document(hosts[0]))
    elif len(listed) == 1 and not listed[0].name:
        json_data(plain_data(hosts[0]))
    else:
        json_data([{"name": one.name, "host": plain_data(one.inspection.host)} for one in listed])
