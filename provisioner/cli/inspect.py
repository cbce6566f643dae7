"""`provision inspect`: print this machine, or what was captured of others, as host profiles."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from provisioner.errors import UsageError

if TYPE_CHECKING:
    from provisioner.host.captured import Captured
    from provisioner.host.inspect import Inspection


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
            help="What was captured elsewhere (- is stdin): by `nvidia-smi -q -x`, `amd-smi static --json` or `rocm-smi "
            "--showallinfo --json`; an inventory, a must-gather, a saved tree.",
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
    *,
    with_condition: Annotated[
        bool,
        typer.Option(
            "--condition", help="With --format json: a `host`, and its `condition`, the drivers of DKMS, CDI and engines."
        ),
    ] = False,
) -> None:
    """Describe this machine as a host profile: what the solver needs to know, and nothing that names the machine.

    A fact that cannot be seen is left out, which means unknown; what could not be seen, and why, goes to stderr.
    What no rule reads, such as the drivers that DKMS has built, stands in comments of the YAML.
    Of a cluster's nodes, labels tell the facts; several nodes are printed as JSON, a list that other commands read.
    """
    given = [name for name, path in (("--root", root), ("--from", source), ("--nodes", nodes)) if path not in {None, Path("/")}]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} name two different machines", hints=("give one of them",))
    if with_condition and output_format is not ProfileFormat.JSON:
        raise UsageError("--condition is for JSON: the YAML has the condition in comments", hints=("add --format json",))
    elsewhere = source or nodes
    if elsewhere is not None:
        listed = _chosen(elsewhere, node, is_inventory=source is None)
        _print_captured(listed, output_format, with_condition=with_condition)
        return
    if node is not None:
        raise UsageError(
            "--node picks one of the nodes of --from or --nodes, and neither is given",
            hints=("add --from PATH or --nodes FILE",),
        )
    _print_captured((_inspected(root),), output_format, with_condition=with_condition)


def inspected() -> Inspection:
    """Inspect this machine, print the remarks about it to stderr, and return the inspection.

    The GPUs get the product names of the matrix.
    """
    found = _inspected(Path("/")).inspection
    tell_remarks(found)
    return found


def _inspected(root: Path) -> Captured:
    from provisioner.host.captured import inspected_files
    from provisioner.matrix.cache import cached_matrix
    from provisioner.workflow.inputs import catalogue_of, gpu_names_of

    matrix = cached_matrix(None)
    return inspected_files(root, gpu_names=gpu_names_of(matrix), catalogue=catalogue_of(matrix))


def tell_remarks(inspection: Inspection, name: str = "") -> None:
    """Print the remarks on an inspection to stderr, those on what no rule reads with `-v` alone."""
    from provisioner.cli.display import talk, wants_details, warn
    from provisioner.words.remark import remark_words

    before = f"{name}: " if name else ""
    for remark in inspection.remarks:
        warn(f"{before}{remark_words(remark)}")
    for remark in inspection.unread if wants_details() else ():
        talk(f"{before}{remark_words(remark)}")


def _chosen(path: Path, name: str | None, *, is_inventory: bool) -> tuple[Captured, ...]:
    """Return the machines that were captured in `path`, or the one of this name.

    `is_inventory`: only profiles and nodes are read, from stdin, too.
    """
    from provisioner.host.captured import read_captured, read_nodes
    from provisioner.host.inventory import host_named
    from provisioner.matrix.cache import cached_matrix
    from provisioner.workflow.inputs import catalogue_of, gpu_names_of

    matrix = cached_matrix(None)
    catalogue = catalogue_of(matrix)
    if is_inventory:
        listed = read_nodes(path, catalogue=catalogue)
    else:
        listed = read_captured(path, gpu_names=gpu_names_of(matrix), catalogue=catalogue)
    return listed if name is None else (host_named(listed, name, path=path),)


def _print_captured(listed: tuple[Captured, ...], output_format: ProfileFormat, *, with_condition: bool) -> None:
    from provisioner.cli.display import data, json_data
    from provisioner.host.profile import host_document

    if output_format is ProfileFormat.YAML and len(listed) != 1:
        raise UsageError(
            f"there are {len(listed)} nodes, and a YAML profile describes one machine",
            hints=("add --node NAME for one of them", "add --format json for all of them"),
        )
    for one in listed:
        tell_remarks(one.inspection, one.name)
    if output_format is ProfileFormat.YAML:
        data(f"{host_document(listed[0].inspection.host)}{_comments(listed[0])}")
        return
    shown = [_shown(one, with_condition=with_condition) for one in listed]
    if len(listed) == 1 and not listed[0].name:
        json_data(shown[0] if with_condition else shown[0]["host"])
    else:
        json_data([{"name": one.name, **part} for one, part in zip(listed, shown, strict=True)])


def _shown(captured: Captured, *, with_condition: bool) -> dict[str, Any]:
    """Return a host and, if asked for, its condition as data for JSON; None is unknown."""
    from msgspec import to_builtins

    from provisioner.host.condition import Condition
    from provisioner.strict_model import plain_data

    host = {"host": plain_data(captured.inspection.host)}
    if not with_condition:
        return host
    condition = captured.condition or Condition()
    return {**host, "condition": {name: to_builtins(getattr(condition, name)) for name in ("dkms", "cdi", "engines")}}


def _comments(captured: Captured) -> str:
    """Return the condition as comments of the profile, "" where no files of the machine were captured."""
    from provisioner.words.condition import condition_lines

    if captured.condition is None:
        return ""
    lines = ("What `provision doctor` judges beside the profile:", *condition_lines(captured.condition))
    return "".join(f"# {line}\n" for line in lines)
