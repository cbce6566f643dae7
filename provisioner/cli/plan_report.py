"""The JSON and the text of `provision plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.cli.display import Line, Paint, verdict_line, wants_details
from provisioner.cli.host_words import driver_of, gpus_of, system_of
from provisioner.cli.report import ground_data, no_stack, solved
from provisioner.cli.stack_words import choices, summary
from provisioner.plan.model import FIND_OUT, waves_of
from provisioner.words.choice import step_reason_words
from provisioner.words.conflict import conflict_lines, contradiction_words, fix_line
from provisioner.words.doubt import assumption_words, doubt_words
from provisioner.words.notation import counted, source_words
from provisioner.words.step import action_words, detail_words, last_stack_words, plan_note_words, undo_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.plan.model import Exclusion, HostPlan, Plan, Step, Wave
    from provisioner.resolver.stack import Stack

COLUMNS = ("wave", "machines", "gpu", "driver", "os", "steps", "drain", "undo", "outcome")
"""The columns of `plan_rows`."""

MOST_NAMES = 3
MOST_PACKAGES = 5
MOST_REASONS = 3


def plan_data(plans: Sequence[Plan], packages: Sequence[tuple[str, str, str]] = ()) -> dict[str, object]:
    """Return the plans of all platforms as JSON.

    The wanted stack of the first platform is under `wanted`; if there are several platforms, all stacks are under `platforms`.
    `packages` are those that differ between today's and the wanted lock: name, old and new version.
    """
    status = _status([plan.status for plan in plans])
    report: dict[str, object] = {"status": status, "verdict": verdict_of(plans)}
    if plans[0].wanted is not None:
        report["wanted"] = _shared(plans[0].wanted)
    if len(plans) > 1:
        report["platforms"] = {plan.platform: _shared(plan.wanted) if plan.wanted else None for plan in plans}
    if packages:
        report["packages"] = [{"name": name, "from": old or None, "to": new or None} for name, old, new in packages]
    waves = waves_of(plans)
    report["waves"] = [
        {
            "wave": wave.number,
            "count": wave.count,
            "drain": wave.drains,
            "reboots": wave.reboots,
            "hosts": [name for one in wave.hosts for name in one.hosts],
        }
        for wave in waves
    ]
    numbers = _numbers(waves)
    report["hosts"] = [_host(one, wave=numbers.get(one.hosts[0])) for plan in plans for one in plan.hosts]
    return report


def _numbers(waves: Sequence[Wave]) -> dict[str, int]:
    """Return the number of the wave of each class of hosts, by the name of its first host."""
    return {one.hosts[0]: wave.number for wave in waves for one in wave.hosts}


def verdict_of(plans: Sequence[Plan]) -> str:
    """Return the worst verdict of several platforms: `no`, then `unverified`, then `yes`."""
    verdicts = [plan.verdict for plan in plans]
    return next((word for word in ("no", "unverified") if word in verdicts), "yes")


def _status(found: Sequence[str]) -> str:
    kinds = set(found)
    return found[0] if len(kinds) == 1 else "possible"


def _stack(stack: Stack) -> dict[str, object]:
    return {name: value for name, value in solved([stack], []).items() if name not in {"status", "written"}}


def _shared(stack: Stack) -> dict[str, object]:
    """Return the wanted stack as JSON, without verdict, doubts and assumptions, which are reported for each host."""
    return {name: value for name, value in _stack(stack).items() if name not in {"verdict", "unverified", "assumes"}}


def _host(plan: HostPlan, *, wave: int | None) -> dict[str, object]:
    found: dict[str, object] = {"hosts": list(plan.hosts), "count": plan.count, "platform": plan.platform}
    if wave is not None:
        found |= {"wave": wave, "drain": plan.drains, "reboots": plan.reboots, "undo": plan.undo}
    found["steps"] = [_step(one) for one in plan.steps]
    if plan.exclusion is not None:
        found["falls_out"] = _exclusion(plan.exclusion)
    found["unverified"] = [doubt_words(doubt) for doubt in plan.doubts]
    found["assumes"] = [assumption_words(doubt) for doubt in plan.assumes]
    found["notes"] = [plan_note_words(note) for note in plan.notes]
    return found


def _exclusion(exclusion: Exclusion) -> dict[str, object]:
    found: dict[str, object] = {"conflict": no_stack((exclusion.conflict,))["conflict"]}
    if exclusion.last is not None:
        found["last"] = _stack(exclusion.last)
    found["text"] = last_stack_words(exclusion.needs)
    if exclusion.until:
        found["until"] = exclusion.until
    return found


def _step(step: Step) -> dict[str, object]:
    return {
        "kind": step.kind,
        "component": step.component,
        "from": step.before or None,
        "to": step.after or None,
        "text": action_words(step.action),
        "why": [{**ground_data(one.ground), "text": step_reason_words(one)} for one in step.why],
        "details": list(_details(step)),
        "changes": [{"component": name, "from": old or None, "to": new or None} for name, old, new in step.changes],
        "reboot": step.is_reboot,
        "together": step.is_together,
        "state": dict(step.state),
    }


def _details(step: Step) -> Iterator[str]:
    yield from map(detail_words, step.details)
    if step.undo is not None:
        yield undo_words(step.undo)


def plan_head(plans: Sequence[Plan], packages: Sequence[tuple[str, str, str]]) -> Iterator[Line]:
    """Yield the first lines of the answer: how many machines can reach the wanted stack, which one that is, and `packages`.

    `packages` are those that differ between the locks, as in `plan_data`.
    """
    hosts = [one for plan in plans for one in plan.hosts]
    total = counted(sum(one.count for one in hosts), "machine")
    out = sum(one.count for one in hosts if one.exclusion is not None)
    lacking = sum(one.count for one in hosts if one.exclusion is None and one.lacks_facts)
    unverified = sum(one.count for one in hosts if one.exclusion is None and one.is_unverified)
    wanted = [plan for plan in plans if plan.wanted is not None]
    goal = _goal(wanted[0]) if len(plans) == len(wanted) == 1 else "the wanted stack"
    if out:
        text = f"{out} of {total} cannot follow to {goal}"
    elif lacking:
        text = f"{lacking} of {total} may follow to {goal}, once missing facts are found out"
    elif unverified:
        text = f"{unverified} of {total} should follow to {goal}, which is unverified there"
    elif any(one.steps for one in hosts):
        text = f"{total} can follow to {goal}"
    else:
        text = f"nothing to do: {total} can run {goal}"
    yield verdict_line(verdict_of(plans), text)
    if len(plans) > 1:
        yield from (Line(f"wanted on {plan.platform}: {_goal(plan)}", indent=2) for plan in wanted)
    if packages:
        shown = packages if wants_details() else packages[:MOST_PACKAGES]
        moves = [f"{name} {old or 'none'} -> {new or 'none'}" for name, old, new in shown]
        more = f" and {len(packages) - len(shown)} more" if len(packages) > len(shown) else ""
        yield Line(f"packages: {', '.join(moves)}{more} (`provision explain --diff` tells them all)", indent=2)


def _goal(plan: Plan) -> str:
    assert plan.wanted is not None, "a plan with a goal"
    return choices(plan.wanted) if plan.wanted.verdict == "yes" else summary(plan.wanted)


def plan_rows(plans: Sequence[Plan]) -> list[tuple[str, ...]]:
    """Return the rows of the table of machine groups, wave after wave: what they have in common, and what is done to them.

    `drain` tells how long nothing may run on them: `no`, `yes`, or the reboots.
    """
    counts: dict[tuple[str, ...], int] = {}
    numbers = _numbers(waves_of(plans))
    for one in (one for plan in plans for one in plan.hosts):
        outcome = "falls out" if one.exclusion is not None else "follows" if one.steps else "nothing to do"
        if one.exclusion is None and one.is_unverified:
            outcome = "cannot tell" if one.lacks_facts else "unverified"
        number = numbers.get(one.hosts[0])
        way = ("", "", "") if one.exclusion is not None else (str(len(one.steps)), _drain(one), one.undo)
        common = (gpus_of(one.profile), driver_of(one.profile), system_of(one.profile))
        group = (str(number or ""), *common, *way, outcome)
        counts[group] = counts.get(group, 0) + one.count
    rows = [(wave, f"{count:,}", *group) for (wave, *group), count in counts.items()]
    return sorted(rows, key=lambda row: (not row[0], int(row[0] or 0)))


def _drain(plan: HostPlan) -> str:
    return counted(plan.reboots, "reboot") if plan.reboots else "yes" if plan.drains else "no"


def plan_lines(plans: Sequence[Plan]) -> Iterator[Line]:
    """Yield the steps of each class of hosts, or the conflict that excludes it; classes with equal lines are combined."""
    alike: dict[tuple[Line, ...], list[HostPlan]] = {}
    for one in (one for plan in plans for one in plan.hosts):
        alike.setdefault((_headline(one), *_class_lines(one)), []).append(one)
    for (headline, *lines), some in alike.items():
        yield Line("")
        yield headline._replace(label=f"{_names(some)}:")
        yield from lines


def _names(some: Sequence[HostPlan]) -> str:
    """Return the names of at most `MOST_NAMES` hosts, the number of further hosts, and the number of machines behind all."""
    hosts = [name for one in some for name in one.hosts]
    count = sum(one.count for one in some)
    shown = ", ".join(hosts[:MOST_NAMES])
    more = f" and {len(hosts) - MOST_NAMES} more" if len(hosts) > MOST_NAMES else ""
    return f"{shown}{more}{f' ({count} machines)' if count > 1 else ''}"


def _headline(plan: HostPlan) -> Line:
    if plan.exclusion is not None:
        because = contradiction_words(plan.exclusion.conflict)
        return Line(f"falls out{f': {because}' if because else ''}", paint=Paint.STRONG, text_paint=Paint.BAD)
    return Line(counted(len(plan.steps), "step") if plan.steps else "nothing to do", paint=Paint.STRONG)


def _class_lines(plan: HostPlan) -> Iterator[Line]:
    for index, step in enumerate(plan.steps, start=1):
        yield from _step_lines(index, step)
    if plan.exclusion is not None:
        yield from (Line(line, indent=2) for line in conflict_lines(plan.exclusion.conflict))
        yield from (Line(fix_line(fix), "hint:", Paint.NEXT, 2) for fix in plan.exclusion.conflict.fixes)
        yield from _last_lines(plan.exclusion)
    yield from (Line(plan_note_words(note), "note:", Paint.STRONG, 2) for note in plan.notes)
    yield from (Line(doubt_words(doubt), "unverified:", Paint.UNSURE, 2) for doubt in plan.doubts)
    if wants_details():
        yield from (Line(assumption_words(doubt), "assumes:", Paint.STRONG, 2) for doubt in plan.assumes)


def _last_lines(exclusion: Exclusion) -> Iterator[Line]:
    if exclusion.last is None:
        yield Line(last_stack_words(None), indent=2)
        return
    yield Line(f"the last stack for it: {summary(exclusion.last)}", indent=2)
    yield Line(last_stack_words(exclusion.needs), indent=4)


def _step_lines(index: int, step: Step) -> Iterator[Line]:
    """Yield the lines of a step and the rules or facts that require it.

    With `-v`, also the requests of the spec that require it, and how to carry it out.
    """
    reboot = "  [reboot]" if step.is_reboot else ""
    yield Line(f"{action_words(step.action)}{reboot}", f"{index}.", Paint.STRONG, 2)
    if step.kind == FIND_OUT:
        return
    reasons = step.why if wants_details() else [one for one in step.why if one.ground.kind != "request"][:MOST_REASONS]
    for reason in reasons:
        source = source_words(reason.ground.source)
        yield Line(f"because {step_reason_words(reason)}{f'  ({source})' if source else ''}", indent=5)
    if wants_details():
        yield from (Line(line, indent=5) for line in _details(step))
