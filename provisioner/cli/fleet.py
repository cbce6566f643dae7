"""`provision fleet`: the fewest stacks that serve many hosts, or the best few, and where each stack may be scheduled."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import (
    DEFAULT_SPEC,
    ExcludeNewerOption,
    FormatOption,
    MatrixOption,
    OutputFormat,
    SpecArgument,
    StrictOption,
    TargetOption,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.fleet.model import FleetAnswer
    from provisioner.host.inventory import InventoryHost
    from provisioner.workflow.inputs import Inputs

HostsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--hosts",
        metavar="PATH",
        readable=False,
        help="An inventory: profiles, a .csv, nodes of kubectl, scontrol or sinfo, Ansible's; may be given several times.",
    ),
]

OneHostOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--host",
        metavar="FILE",
        readable=False,
        help="One more host: a profile, or INVENTORY#NAME; may be given several times.",
    ),
]

PlacesOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Write where each stack may run here: NAME-1.affinity.yaml, NAME.slurm.conf, …."),
]


class Scheduler(StrEnum):
    """What places stacks on hosts: affinities of Kubernetes, features of Slurm, or groups of Ansible."""

    KUBERNETES = "kubernetes"
    SLURM = "slurm"
    ANSIBLE = "ansible"


SchedulerOption = Annotated[
    list[Scheduler] | None,
    typer.Option("--to", help="For whom --out writes; several times for several. Default: whoever lists the hosts."),
]

StacksOption = Annotated[
    int | None,
    typer.Option(
        "--stacks", metavar="N", min=1, help="At most N stacks, which serve the most hosts; and what one more stack buys."
    ),
]


def fleet(
    spec: SpecArgument = DEFAULT_SPEC,
    hosts: HostsOption = None,
    host: OneHostOption = None,
    *,
    stacks: StacksOption = None,
    target: TargetOption = None,
    out: PlacesOption = None,
    to: SchedulerOption = None,
    exclude_newer: ExcludeNewerOption = None,
    matrix: MatrixOption = None,
    strict: StrictOption = False,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Find the fewest stacks that serve many hosts, or the best N, and where each of them may run."""
    from msgspec.structs import replace

    from provisioner.cli.display import Line, json_data, report, shown, step, table, talk, wants_details, warn
    from provisioner.cli.fleet_report import (
        PLACED_BY,
        as_json,
        fleet_head,
        fleet_lines,
        fleet_rows,
        placement_files,
        remark_lines,
        schedulers,
    )
    from provisioner.document import write_together
    from provisioner.fleet.covering import cover_fleet
    from provisioner.fleet.placing import affinities
    from provisioner.workflow.inputs import read_without_hosts

    with step("Covering"):
        # The hosts of a fleet are read here: one of a platform that the spec does not name is reported in the answer, no error.
        inputs = read_without_hosts(spec, exclude_newer=exclude_newer, matrix=matrix, target=target)
        inputs = replace(inputs, is_strict=strict)
        listed = _listed(inputs, hosts or (), host or ())
        platforms = inputs.platforms if ("target", "platform") in inputs.document.keys else ()
        answer = cover_fleet(inputs.matrix, inputs.request(inputs.platforms[0]), listed, platforms=platforms, most=stacks)
        placed = affinities(answer, inputs.matrix)
    chosen = schedulers(answer, to)
    if out is not None:
        files = placement_files(answer, placed, name=inputs.spec.name, chosen=chosen)
        write_together({out / name: shown(text).encode() for name, text in files.items()})
        written = list(files)
    else:
        written = []
    for line in remark_lines(listed):
        warn(line)
    if format is OutputFormat.JSON:
        json_data(as_json(answer, placed, name=inputs.spec.name, written=written))
    else:
        report([fleet_head(answer)])
        if (rows := fleet_rows(answer)) and len(rows) > 1:
            report([Line("")])
            table(("hosts", "gpu", "driver", "outcome"), rows)
        report(fleet_lines(answer, placed, name=inputs.spec.name, chosen=chosen))
        if answer.stacks and not wants_details() and not written:
            report([Line(""), Line(f"-v shows {PLACED_BY[chosen[0]]} of each stack, --out DIR writes it{_choice(answer)}")])
        if inputs.spec.packages:
            talk("packages were not asked about: `provision solve` joins them with the system of each stack")
        if written:
            talk(f"wrote {', '.join(written)}")
    return 1 if answer.unserved_nodes else 0


def _choice(answer: FleetAnswer) -> str:
    """Return how to see what one more stack buys; "" if that is told, or if each class has a stack of its own."""
    has_choice = answer.limit is None and len(answer.stacks) < sum(len(stack.classes) for stack in answer.stacks)
    return f"; --stacks {len(answer.stacks) + 1} allows one more, for newer releases" if has_choice else ""


def _listed(inputs: Inputs, paths: Sequence[Path], single: Sequence[Path]) -> Sequence[InventoryHost]:
    """Return the hosts of the fleet, by default those that the spec names; raises `UsageError` if there is none.

    `paths` are inventories, `single` profiles or hosts of inventories (`FILE#NAME`).
    """
    from provisioner.errors import UsageError
    from provisioner.host.inventory import InventoryHost, read_inventory
    from provisioner.workflow.inputs import catalogue_of, hosts_of

    if paths or single:
        listed = read_inventory(paths, single=single, catalogue=catalogue_of(inputs.matrix))
        if not listed:
            raise UsageError(f"there is no host in {', '.join(str(path) for path in paths)}")
        return listed
    if inputs.spec.target.host is None:
        raise UsageError(
            f"no hosts are given: `{inputs.path}` names none, and --hosts is missing",
            hints=("give profiles, a .csv, or what `kubectl get nodes -o json` or `scontrol show node` printed, with --hosts",),
        )
    return [InventoryHost(name=one.label, host=one.host, place=one.place("").place) for one in hosts_of(inputs)]
