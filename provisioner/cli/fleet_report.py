"""The text, the JSON and the files of `provision fleet`, all made from a `FleetAnswer`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from provisioner.cli.display import Line, Paint, verdict_line, wants_details
from provisioner.cli.host_words import branch_of, driver_of, gpus_of
from provisioner.cli.report import no_stack
from provisioner.cli.stack_words import choices
from provisioner.fleet.classes import natural
from provisioner.fleet.names import folded
from provisioner.fleet.placement import ansible_groups, slurm_features, word_of
from provisioner.grounds.choice import InstallDriver
from provisioner.grounds.fields import type_of
from provisioner.grounds.relaxation import DriverWay
from provisioner.strict_model import plain_data
from provisioner.words.affinity import affinity_limit_words
from provisioner.words.choice import install_driver_words
from provisioner.words.conflict import conflict_lines, contradiction_words, fix_line
from provisioner.words.doubt import assumption_words, doubt_words
from provisioner.words.ground import say
from provisioner.words.notation import counted, source_words
from provisioner.words.relaxation import relaxation_words
from provisioner.words.remark import remark_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from provisioner.fleet.affinity import Affinity
    from provisioner.fleet.classes import HostClass
    from provisioner.fleet.model import FleetAnswer, FleetStack, Limit, Note, Unserved
    from provisioner.grounds.doubt import Doubt
    from provisioner.host.inventory import InventoryHost
    from provisioner.host.remark import NodeRemark

_NAMES = 8
_WIDTH = 10
"""The width of the labels of the rows about a stack."""

_MOST_GROUPS = 20
"""The most groups of hosts in the table; the last row counts the hosts of all other groups."""


def fleet_head(answer: FleetAnswer) -> Line:
    """Return the first line of the answer: how many stacks serve how many hosts."""
    verdict = "no" if answer.unserved_nodes else "unverified" if any(one.unverified for one in answer.stacks) else "yes"
    return verdict_line(verdict, _headline(answer))


def fleet_rows(answer: FleetAnswer) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table of host groups: the number of hosts, and the GPUs, driver branch and stack they share."""
    counts: dict[tuple[str, str, str], int] = {}
    served = [(one.classes, f"stack {number}") for number, one in enumerate(answer.stacks, start=1)]
    left_out = [(answer.limit.left_out, "left out")] if answer.limit is not None else []
    for classes, outcome in [*served, *left_out, *((left.classes, "no stack") for left in answer.unserved)]:
        for one in classes:
            group = (gpus_of(one.host), branch_of(one.host), outcome)
            counts[group] = counts.get(group, 0) + one.nodes
    outcomes = list(dict.fromkeys(outcome for *_, outcome in counts))
    ranked = sorted(counts.items(), key=lambda item: (outcomes.index(item[0][2]), -item[1], item[0]))
    shown = ranked if wants_details() or len(ranked) <= _MOST_GROUPS + 1 else ranked[:_MOST_GROUPS]
    rest = [count for _, count in ranked[len(shown) :]]
    more = [(f"{sum(rest):,}", f"in {len(rest)} more groups", "", "listed under -v")] if rest else []
    return [*((f"{count:,}", *group) for group, count in shown), *more]


def fleet_lines(answer: FleetAnswer, placed: Sequence[Affinity], *, name: str, chosen: Sequence[str]) -> Iterator[Line]:
    """Yield the lines about each stack with its hosts and requirements, then about hosts without a stack, with the reason.

    `placed` has the affinity of each stack, in the order of the stacks; `name` is that of the spec, and `chosen` are the
    schedulers to tell of.
    """
    for number, (one, affinity) in enumerate(zip(answer.stacks, placed, strict=True), start=1):
        yield Line("")
        yield Line(_title(one), f"stack {number}:", Paint.STRONG, text_paint=Paint.STRONG)
        yield from _about(one, is_one_of_many=len({each.stack.platform for each in answer.stacks}) > 1)
        if wants_details():
            if "kubernetes" in chosen:
                yield from _affinity_rows(affinity)
            if "slurm" in chosen:
                yield _row("slurm", f"--constraint={word_of(name, number)}")
            if "ansible" in chosen:
                yield _row("ansible", f"--limit {word_of(name, number)}")
    if answer.limit is not None:
        yield from _limit_lines(answer.limit)
    for left in answer.unserved:
        yield Line("")
        yield from _unserved_lines(left)


def _headline(answer: FleetAnswer) -> str:
    total = answer.served_nodes + answer.unserved_nodes
    if not answer.stacks:
        return f"no stack serves any of {counted(total, 'host')}"
    stacks = counted(len(answer.stacks), "stack")
    served = (
        f"{'all ' if total > 1 else 'the '}{counted(total, 'host')}"
        if not answer.unserved_nodes
        else f"{answer.served_nodes:,} of {counted(total, 'host')}"
    )
    verb = "serves" if len(answer.stacks) == 1 else "serve"
    if answer.limit is not None:
        best = (
            "no choice of so few is better"
            if answer.limit.is_proved
            else "it was not proved that no choice of so few is better"
        )
        return f"{stacks} {verb} {served}; {best}"
    bound = answer.bound
    proof = "no fewer can" if bound.is_optimal else f"it was not proved that no fewer can: at least {bound.lower} are needed"
    return f"{stacks} {verb} {served}" + (f"; {proof}" if bound.found > 1 else "")


def _title(one: FleetStack) -> str:
    return f"{choices(one.stack)}{', unverified' if one.unverified else ''}"


def _moved(one: FleetStack, other: FleetStack | None) -> str:
    """Return the parts of a stack that people ask for and another stack has not (`pytorch 2.15.0+cu132, cuda 13.2.2`)."""
    known = choices(other.stack).split(", ") if other is not None else []
    return ", ".join(part for part in choices(one.stack).split(", ") if part not in known) or choices(one.stack)


def _limit_lines(limit: Limit) -> Iterator[Line]:
    """Yield the hosts that a limit of the number of stacks leaves out, and what one more stack buys."""
    yield Line("")
    if limit.left_out:
        hosts = [member for one in limit.left_out for member in one.members]
        yield Line(folded(_sorted(hosts), most=_NAMES), f"left out, {counted(limit.left_out_nodes, 'host')}:", Paint.BAD)
    if not limit.gains:
        yield Line("nothing", "one more stack buys:", Paint.STRONG)
        return
    yield Line(f"for {counted(sum(gain.nodes for gain in limit.gains), 'host')}:", "one more stack buys,", Paint.STRONG)
    for gain in limit.gains:
        hosts = [member for one in gain.classes for member in one.members]
        before = _moved(gain.before, gain.after) if gain.before is not None else "no stack"
        text = f"{before} -> {_moved(gain.after, gain.before)}{', unverified' if gain.after.unverified else ''}"
        yield Line(f"{counted(gain.nodes, 'host')}: {text}  ({folded(_sorted(hosts), most=2)})", indent=2)


def _about(one: FleetStack, *, is_one_of_many: bool) -> Iterator[Line]:
    """Yield the rows about one stack: its hosts, image, requirements, relaxations and doubts.

    With details, also the host classes that decided its choice. With `is_one_of_many`, the stacks of the fleet are for several
    platforms, so that a row names the platform of this one.
    """
    hosts = counted(one.nodes, "host")
    classes = f" in {len(one.classes)} classes" if len(one.classes) > 1 else ""
    yield _row("hosts", f"{hosts}{classes}: {folded(_sorted(one.hosts), most=_NAMES)}")
    if wants_details() and len(one.classes) > len(one.deciding):
        yield _row("decided by", ", ".join(f"{each.name} ({_facts(each)})" for each in one.deciding))
    if is_one_of_many or one.stack.accelerator == "cpu" or wants_details():
        yield _row("platform", f"{one.stack.platform}, accelerator {one.stack.accelerator}")
    if one.stack.image is not None:
        yield _row("image", one.stack.image.reference)
    needs = "; ".join(f"{name} {text}" for name, text in one.stack.host_requirements.items())
    if needs:
        yield _row("needs", needs)
    for text in _relaxed(one):
        yield _row("relaxed", text)
    for note in one.chosen:
        yield _row("install", _noted(note))
    for note in one.unverified:
        yield _row("unverified", _noted(note), Paint.UNSURE)
    if wants_details():
        for note in one.assumes:
            yield _row("assumes", _noted(note, assumption_words))


def _row(name: str, text: str, paint: Paint = Paint.PLAIN) -> Line:
    return Line(text, f"{name:<{_WIDTH}}", paint, 2)


def _sorted(hosts: Iterable[InventoryHost]) -> list[InventoryHost]:
    return sorted(hosts, key=lambda host: (natural(host.name), host.name))


def _facts(one: HostClass) -> str:
    """Return the GPUs and the driver of a host class, which most often decide its stack."""
    return f"{gpus_of(one.host)}, driver {driver_of(one.host)}" if one.host.gpus else gpus_of(one.host)


def _relaxed(one: FleetStack) -> Iterator[str]:
    """Yield a line for each relaxation of a stack, with the text of its first use and the number of further uses."""
    uses: dict[str, dict[str, list[str]]] = {}
    for each in one.stack.relaxations:
        if isinstance(each, DriverWay) and not wants_details():  # the first line about the stack has it already
            continue
        uses.setdefault(each.name, {}).setdefault(each.component, []).append(relaxation_words(each))
    for name, components in uses.items():
        texts = [text for some in components.values() for text in some]
        more = f", and {len(texts) - 1} more like it" if len(texts) > 1 else ""
        yield f"{name}: {texts[0]}{more}"


def _noted(note: Note, words_of: Callable[[Doubt], str] = doubt_words) -> str:
    text = _note_words(note, words_of)
    if not note.classes:
        return text
    hosts = [member for one in note.classes for member in one.members]
    count = counted(sum(one.nodes for one in note.classes), "host")
    return f"{text}  ({count}: {folded(_sorted(hosts), most=2)})"


def _note_words(note: Note, words_of: Callable[[Doubt], str] = doubt_words) -> str:
    return install_driver_words(note.reason) if isinstance(note.reason, InstallDriver) else words_of(note.reason)


def _affinity_rows(affinity: Affinity) -> Iterator[Line]:
    for at, term in enumerate(affinity.terms):
        yield _row("or" if at else "affinity", ", ".join(str(one) for one in term))
    if not affinity.terms:
        yield _row("affinity", "none: no label shows what the stack needs")
    for limit in affinity.limits:
        yield _row("", affinity_limit_words(limit))


def _unserved_lines(left: Unserved) -> Iterator[Line]:
    hosts = [member for one in left.classes for member in one.members]
    names = folded(_sorted(hosts), most=_NAMES)
    yield Line(names, f"no stack for {counted(left.nodes, 'host')}:", Paint.BAD)
    if because := contradiction_words(left.conflict):
        yield Line(because, indent=2)
    yield from (Line(line, indent=2) for line in conflict_lines(left.conflict))
    if left.also:
        yield Line(f"or, on others of them: {'; '.join(map(say, left.also))}", indent=2)
    about = f" (solved for {left.classes[0].name})" if len(left.classes) > 1 else ""
    yield from (Line(fix_line(fix), f"hint{about}:", Paint.NEXT, 2) for fix in left.conflict.fixes)


def as_json(answer: FleetAnswer, placed: Sequence[Affinity], *, name: str, written: Sequence[str]) -> dict[str, Any]:
    """Return the answer as JSON: each stack has the names of its hosts, and the facts of each class of hosts.

    `placed` has the affinity of each stack, `name` is that of the spec, `written` has the names of the files written.
    """
    bound = answer.bound
    return {
        "status": "no-stack" if answer.unserved_nodes else "solved",
        "hosts": answer.served_nodes + answer.unserved_nodes,
        "served": answer.served_nodes,
        "bound": {"lower": bound.lower, "found": bound.found, "optimal": bound.is_optimal},
        **({"limit": _limit(answer.limit)} if answer.limit is not None else {}),
        "stacks": [
            _stack(one, affinity, word=word_of(name, number))
            for number, (one, affinity) in enumerate(zip(answer.stacks, placed, strict=True), start=1)
        ],
        "unserved": [_unserved(left) for left in answer.unserved],
        "written": list(written),
    }


def _limit(limit: Limit) -> dict[str, Any]:
    return {
        "stacks": limit.stacks,
        "best": limit.is_proved,
        "left_out": {"count": limit.left_out_nodes, **_names_and_classes(limit.left_out)},
        "one_more": [
            {
                "count": gain.nodes,
                **_names_and_classes(gain.classes),
                "from": dict(gain.before.stack.components) if gain.before is not None else None,
                "to": dict(gain.after.stack.components),
                "verdict": gain.after.verdict,
            }
            for gain in limit.gains
        ],
    }


def _names_and_classes(classes: Sequence[HostClass]) -> dict[str, Any]:
    hosts = [host.name for host in _sorted(member for one in classes for member in one.members)]
    return {"hosts": hosts, "classes": [_class(one) for one in classes]}


def _stack(one: FleetStack, affinity: Affinity, *, word: str) -> dict[str, Any]:
    stack = one.stack
    found: dict[str, Any] = {"stack": dict(stack.components)}
    if stack.basis:
        found["basis"] = stack.basis
    found["accelerator"] = stack.accelerator
    if stack.environment:
        found["environment"] = dict(stack.environment)
    found["verdict"] = one.verdict
    found["unverified"] = [_note(note) for note in one.unverified]
    found["assumes"] = [_note(note, assumption_words) for note in one.assumes]
    found["relaxations"] = [
        {
            "name": each.name,
            "component": each.component,
            "text": relaxation_words(each),
            "where": source_words(each.source),
        }
        for each in stack.relaxations
    ]
    found["install"] = [_note(note) for note in one.chosen]
    found["count"] = one.nodes
    found["hosts"] = [host.name for host in _sorted(one.hosts)]
    found["decided_by"] = [each.name for each in one.deciding]
    found["classes"] = [_class(each) for each in one.classes]
    found["host_requirements"] = dict(stack.host_requirements)
    if stack.require_cuda:
        found["require_cuda"] = stack.require_cuda
    found["affinity"] = affinity.manifest()
    found["nodeSelector"] = affinity.node_selector
    found["affinity_exact"] = affinity.is_exact
    found["affinity_notes"] = list(map(affinity_limit_words, affinity.limits))
    found["constraint"] = word
    found["group"] = word
    return found


def _note(note: Note, words_of: Callable[[Doubt], str] = doubt_words) -> dict[str, Any]:
    found: dict[str, Any] = {
        "text": _note_words(note, words_of),
        "type": type_of(type(note.reason)),
        "component": note.reason.component,
    }
    if note.classes:
        found["count"] = sum(one.nodes for one in note.classes)
        found["classes"] = [one.name for one in note.classes]
    return found


def _class(one: HostClass) -> dict[str, Any]:
    return {"name": one.name, "count": one.nodes, "profile": plain_data(one.host)}


def _unserved(left: Unserved) -> dict[str, Any]:
    return {
        "count": left.nodes,
        **_names_and_classes(left.classes),
        "conflict": no_stack((left.conflict,))["conflict"],
        "of": left.classes[0].name,
        "also": [say(fact) for fact in left.also],
    }


def remark_lines(listed: Iterable[InventoryHost]) -> Iterator[str]:
    """Yield each remark on hosts of an inventory, such as that a node is cordoned, once with the names of its hosts."""
    found: dict[NodeRemark, list[InventoryHost]] = {}
    for host in listed:
        for remark in host.remarks:
            found.setdefault(remark, []).append(host)
    for remark, hosts in found.items():
        yield f"{remark_words(remark)}: {folded(_sorted(hosts), most=_NAMES)}"


PLACED_BY = {"kubernetes": "the node affinity", "slurm": "the constraint", "ansible": "the group"}
"""What tells each scheduler where a stack runs."""


def schedulers(answer: FleetAnswer, wanted: Sequence[str] | None) -> tuple[str, ...]:
    """Return for whom stacks are placed: the schedulers `wanted`, else those that list hosts; Kubernetes for mere profiles."""
    if wanted:
        return tuple(dict.fromkeys(str(one) for one in wanted))
    origins = {host.origin for one in answer.stacks for host in one.hosts}
    return tuple(name for name in PLACED_BY if name in origins or (name == "kubernetes" and origins <= {""}))


def placement_files(answer: FleetAnswer, placed: Sequence[Affinity], *, name: str, chosen: Collection[str]) -> dict[str, str]:
    """Return the files for the schedulers `chosen`, by their names: affinities, features of Slurm, groups of Ansible."""
    titles = [_title(one) for one in answer.stacks]
    files = affinity_files(answer, placed, name=name) if "kubernetes" in chosen else {}
    if "slurm" in chosen and titles:
        files[f"{name}.slurm.conf"] = slurm_features(answer, name, titles)
    if "ansible" in chosen and titles:
        files[f"{name}.ansible.yaml"] = ansible_groups(answer, name, titles)
    return files


def affinity_files(answer: FleetAnswer, placed: Sequence[Affinity], *, name: str) -> dict[str, str]:
    """Return the affinity files by name (`name` and a number): one for each stack whose hosts node labels can select.

    A file holds the `affinity` of a pod's spec, and comments that name the stack and the limits of the affinity.
    """
    files = {}
    for number, (one, affinity) in enumerate(zip(answer.stacks, placed, strict=True), start=1):
        if affinity.terms:
            limits = "".join(f"# {affinity_limit_words(limit)}\n" for limit in affinity.limits)
            head = f"# Generated by provision fleet. Do not edit.\n# For {_title(one)}.\n{limits}"
            files[f"{name}-{number}.affinity.yaml"] = head + "affinity:\n" + _yaml(affinity.manifest(), 1)
    return files


def _yaml(value: dict[str, Any], depth: int) -> str:
    """Return nested mappings and lists of strings as YAML, indented by `depth` levels; the strings are quoted as in JSON."""
    found = []
    for key, item in value.items():
        pad = "  " * depth
        if isinstance(item, dict):
            found.append(f"{pad}{key}:\n{_yaml(item, depth + 1)}")
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            parts = (_yaml(one, depth + 2) for one in item)
            entries = "".join(f"{pad}  - {part.removeprefix('  ' * (depth + 2))}" for part in parts)
            found.append(f"{pad}{key}:\n{entries}")
        elif isinstance(item, list):
            found.append(f"{pad}{key}: [{', '.join(json.dumps(one) for one in item)}]\n")
        else:
            found.append(f"{pad}{key}: {json.dumps(item)}\n")
    return "".join(found)
