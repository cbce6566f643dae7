"""The words, the JSON and the files of `provision fleet`: plain data in, text out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from provisioner.cli.report import no_stack
from provisioner.cli.stack_words import summary
from provisioner.fleet.classes import natural
from provisioner.fleet.names import folded
from provisioner.strict_model import plain_data
from provisioner.words.conflict import conflict_lines, fix_line
from provisioner.words.ground import say
from provisioner.words.notation import source_words
from provisioner.words.relaxation import relaxation_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provisioner.fleet.affinity import Affinity
    from provisioner.fleet.classes import HostClass
    from provisioner.fleet.model import FleetAnswer, FleetStack, Note, Unserved
    from provisioner.host.inventory import InventoryHost
    from provisioner.host.model import HostGpu

_NAMES = 8
_WIDTH = 10
"""The column in which what is said of a stack begins."""


def lines(answer: FleetAnswer, placed: Sequence[Affinity]) -> list[str]:
    """The answer in words: how many stacks, each with its hosts, and why some hosts have none."""
    found = [_headline(answer)]
    for number, (one, affinity) in enumerate(zip(answer.stacks, placed, strict=True), start=1):
        found.extend(["", f"stack {number}: {_summary(one)}", *(f"  {line}" for line in _about(one, affinity))])
    for left in answer.unserved:
        found.extend(["", *_unserved_lines(left)])
    return found


def _headline(answer: FleetAnswer) -> str:
    total = answer.served_nodes + answer.unserved_nodes
    if not answer.stacks:
        return f"no stack serves any of {_count(total, 'host')}"
    stacks = _count(len(answer.stacks), "stack")
    served = f"all {_count(total, 'host')}" if not answer.unserved else f"{answer.served_nodes:,} of {_count(total, 'host')}"
    verb = "serves" if len(answer.stacks) == 1 else "serve"
    bound = answer.bound
    proof = "no fewer can" if bound.is_optimal else f"it was not proved that no fewer can: at least {bound.lower} are needed"
    return f"{stacks} {verb} {served}" + (f"; {proof}" if bound.found > 1 else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _summary(one: FleetStack) -> str:
    return summary(one.stack, verdict=one.verdict)


def _about(one: FleetStack, affinity: Affinity) -> Iterator[str]:
    hosts = _count(one.nodes, "host")
    classes = f" in {len(one.classes)} classes" if len(one.classes) > 1 else ""
    yield _row("hosts", f"{hosts}{classes}: {folded(_sorted(one.hosts), most=_NAMES)}")
    if len(one.classes) > len(one.deciding):
        yield _row("decided by", ", ".join(f"{each.name} ({_facts(each)})" for each in one.deciding))
    yield _row("gpus", _gpus(one.classes))
    drivers = _drivers(one.classes)
    if drivers:
        yield _row("drivers", drivers)
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
        yield _row("unverified", _noted(note))
    yield from _affinity_rows(affinity)


def _row(name: str, text: str) -> str:
    return f"{name:<{_WIDTH}} {text}"


def _sorted(hosts: Iterable[InventoryHost]) -> list[InventoryHost]:
    return sorted(hosts, key=lambda host: (natural(host.name), host.name))


def _gpus(classes: Iterable[HostClass]) -> str:
    """How many hosts have which GPUs, most hosts first."""
    counts: dict[str, int] = {}
    for one in classes:
        said = _gpus_of(one)
        counts[said] = counts.get(said, 0) + one.nodes
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} ({count:,})" for name, count in ranked)


def _facts(one: HostClass) -> str:
    """A class in a few words: what most often decides."""
    driver = one.host.driver
    version = f"driver {driver.version}" if driver is not None and driver.version else "driver not stated"
    return f"{_gpus_of(one)}, {version}" if one.host.gpus else _gpus_of(one)


def _gpus_of(one: HostClass) -> str:
    gpus = one.host.gpus
    names = " + ".join(dict.fromkeys(_gpu(gpu) for gpu in gpus or ()))
    return names or ("no GPU" if gpus == () else "GPUs not stated")


def _gpu(gpu: HostGpu) -> str:
    device = f"compute capability {gpu.compute_capability}" if gpu.compute_capability else gpu.gfx
    return gpu.name or device or "a GPU of unknown kind"


def _drivers(classes: Iterable[HostClass]) -> str:
    """The branches of the drivers, each with how many hosts run it; of other vendors' the version."""
    counts: dict[str, int] = {}
    for one in classes:
        driver = one.host.driver
        if driver is not None and driver.version is not None:
            branch = driver.version.partition(".")[0] if driver.kind == "nvidia" else f"{driver.kind} {driver.version}"
            counts[branch] = counts.get(branch, 0) + one.nodes
    return ", ".join(f"{branch} ({count:,})" for branch, count in sorted(counts.items(), key=lambda item: natural(item[0])))


def _relaxed(one: FleetStack) -> Iterator[str]:
    """Each relaxation once, with the components it was used for; the JSON has every single use."""
    uses: dict[str, dict[str, list[str]]] = {}
    for each in one.stack.relaxations:
        uses.setdefault(each.name, {}).setdefault(each.component, []).append(relaxation_words(each))
    for name, components in uses.items():
        texts = [text for some in components.values() for text in some]
        more = f", and {len(texts) - 1} more like it" if len(texts) > 1 else ""
        yield f"{name}: {texts[0]}{more}"


def _noted(note: Note) -> str:
    if not note.classes:
        return note.text
    hosts = [member for one in note.classes for member in one.members]
    count = _count(sum(one.nodes for one in note.classes), "host")
    return f"{note.text}  ({count}: {folded(_sorted(hosts), most=2)})"


def _affinity_rows(affinity: Affinity) -> Iterator[str]:
    for at, term in enumerate(affinity.terms):
        yield _row("or" if at else "affinity", ", ".join(str(one) for one in term))
    if not affinity.terms:
        yield _row("affinity", "none: no label shows what the stack needs")
    for text in _doubts(affinity):
        yield _row("", text)


def _doubts(affinity: Affinity) -> Iterator[str]:
    """What labels cannot do."""
    for key in affinity.by_name:
        yield f"told apart by name ({key}), since no number differs"
    for unreached in affinity.unreached:
        lacking = "; ".join(unreached.lacking)
        yield f"does not reach {_few(unreached.names)}: {lacking}"
    for pair in affinity.inseparable:
        facts = f" ({'; '.join(pair.facts)})" if pair.facts else ""
        yield f"cannot keep out {_few(pair.refused)}: labelled like {_few(pair.admitted)}{facts}"
    for text in affinity.unshown:
        yield f"no label shows {text}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 2:,} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def _unserved_lines(left: Unserved) -> Iterator[str]:
    hosts = [member for one in left.classes for member in one.members]
    yield f"no stack for {_count(left.nodes, 'host')}: {folded(_sorted(hosts), most=_NAMES)}"
    yield from (f"  {line}" for line in conflict_lines(left.conflict))
    if left.also:
        yield f"  or, on others of them: {'; '.join(map(say, left.also))}"
    about = f" (solved for {left.classes[0].name})" if len(left.classes) > 1 else ""
    yield from (f"  hint{about}: {fix_line(fix)}" for fix in left.conflict.fixes)


def as_json(answer: FleetAnswer, placed: Sequence[Affinity], *, written: Sequence[str]) -> dict[str, Any]:
    """The whole answer; a host is named where it belongs, and classes hold its facts."""
    bound = answer.bound
    return {
        "status": "no-stack" if answer.unserved else "solved",
        "hosts": answer.served_nodes + answer.unserved_nodes,
        "served": answer.served_nodes,
        "bound": {"lower": bound.lower, "found": bound.found, "optimal": bound.is_optimal},
        "stacks": [_stack(one, affinity) for one, affinity in zip(answer.stacks, placed, strict=True)],
        "unserved": [_unserved(left) for left in answer.unserved],
        "written": list(written),
    }


def _stack(one: FleetStack, affinity: Affinity) -> dict[str, Any]:
    stack = one.stack
    found: dict[str, Any] = {"stack": dict(stack.components)}
    if stack.basis:
        found["basis"] = stack.basis
    found["accelerator"] = stack.accelerator
    if stack.environment:
        found["environment"] = dict(stack.environment)
    found["verdict"] = one.verdict
    found["unverified"] = [_note(note) for note in one.unverified]
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
    found["affinity_notes"] = list(_doubts(affinity))
    return found


def _note(note: Note) -> dict[str, Any]:
    found: dict[str, Any] = {"text": note.text}
    if note.classes:
        found["count"] = sum(one.nodes for one in note.classes)
        found["classes"] = [one.name for one in note.classes]
    return found


def _class(one: HostClass) -> dict[str, Any]:
    return {"name": one.name, "count": one.nodes, "profile": plain_data(one.host)}


def _unserved(left: Unserved) -> dict[str, Any]:
    hosts = [member for one in left.classes for member in one.members]
    return {
        "count": left.nodes,
        "hosts": [host.name for host in _sorted(hosts)],
        "classes": [_class(one) for one in left.classes],
        "conflict": no_stack(left.conflict)["conflict"],
        "of": left.classes[0].name,
        "also": [say(fact) for fact in left.also],
    }


def notes(listed: Iterable[InventoryHost]) -> Iterator[str]:
    """What the inventory has to say about hosts beside their facts, such as that a node is cordoned: each thing once."""
    found: dict[str, list[InventoryHost]] = {}
    for host in listed:
        for text in host.notes:
            found.setdefault(text, []).append(host)
    for text, hosts in found.items():
        yield f"{text}: {folded(_sorted(hosts), most=_NAMES)}"


def affinity_files(answer: FleetAnswer, placed: Sequence[Affinity], *, name: str) -> dict[str, str]:
    """One YAML file for each stack whose hosts labels can show: what stands in a pod's spec, and for which stack."""
    files = {}
    for number, (one, affinity) in enumerate(zip(answer.stacks, placed, strict=True), start=1):
        if affinity.terms:
            doubts = "".join(f"# {text}\n" for text in _doubts(affinity))
            head = f"# Generated by provision fleet. Do not edit.\n# For {summary(one.stack)}.\n{doubts}"
            files[f"{name}-{number}.affinity.yaml"] = head + "affinity:\n" + _yaml(affinity.manifest(), 1)
    return files


def _yaml(value: dict[str, Any], depth: int) -> str:
    """Mappings and lists of strings as YAML, every string in quotes that YAML and JSON share."""
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
