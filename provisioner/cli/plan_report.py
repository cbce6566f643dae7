"""How `provision plan` is printed: its JSON, and its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.cli.report import ground_data, no_stack, solved
from provisioner.cli.stack_words import choices, summary
from provisioner.plan.model import FIND_OUT
from provisioner.words.choice import step_reason_words
from provisioner.words.conflict import conflict_lines, fix_line
from provisioner.words.doubt import doubt_words
from provisioner.words.notation import source_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.plan.model import Exclusion, HostPlan, Plan, Step
    from provisioner.resolver.stack import Stack

MOST_NAMES = 3
MOST_PACKAGES = 5
MOST_REASONS = 3


def plan_data(plans: Sequence[Plan], packages: Sequence[tuple[str, str, str]] = ()) -> dict[str, object]:
    """The JSON of all platforms: of several the first one's stack is told, all of them under `platforms`.

    `packages` are those that differ between two locks.
    """
    status = _status([plan.status for plan in plans])
    report: dict[str, object] = {"status": status, "verdict": verdict_of(plans)}
    if plans[0].wanted is not None:
        report["wanted"] = _shared(plans[0].wanted)
    if len(plans) > 1:
        report["platforms"] = {plan.platform: _shared(plan.wanted) if plan.wanted else None for plan in plans}
    if packages:
        report["packages"] = [{"name": name, "from": old or None, "to": new or None} for name, old, new in packages]
    report["hosts"] = [_host(one) for plan in plans for one in plan.hosts]
    return report


def verdict_of(plans: Sequence[Plan]) -> str:
    """The worst of several platforms: no, then unverified, then yes."""
    verdicts = [plan.verdict for plan in plans]
    return next((word for word in ("no", "unverified") if word in verdicts), "yes")


def _status(found: Sequence[str]) -> str:
    kinds = set(found)
    return found[0] if len(kinds) == 1 else "possible"


def _stack(stack: Stack) -> dict[str, object]:
    return {name: value for name, value in solved([stack], []).items() if name not in {"status", "written"}}


def _shared(stack: Stack) -> dict[str, object]:
    """The stack of all hosts: what is verified about it is told host by host."""
    return {name: value for name, value in _stack(stack).items() if name not in {"verdict", "unverified"}}


def _host(plan: HostPlan) -> dict[str, object]:
    found: dict[str, object] = {"hosts": list(plan.hosts), "count": plan.count, "platform": plan.platform}
    found["steps"] = [_step(one) for one in plan.steps]
    if plan.exclusion is not None:
        found["falls_out"] = _exclusion(plan.exclusion)
    found["unverified"] = [doubt_words(doubt) for doubt in plan.doubts]
    found["notes"] = list(plan.notes)
    return found


def _exclusion(exclusion: Exclusion) -> dict[str, object]:
    found: dict[str, object] = {"conflict": no_stack(exclusion.conflict)["conflict"]}
    if exclusion.last is not None:
        found["last"] = _stack(exclusion.last)
    found["text"] = exclusion.text
    if exclusion.until:
        found["until"] = exclusion.until
    return found


def _step(step: Step) -> dict[str, object]:
    return {
        "kind": step.kind,
        "component": step.component,
        "from": step.before or None,
        "to": step.after or None,
        "text": step.text,
        "why": [{**ground_data(one.ground), "text": step_reason_words(one)} for one in step.why],
        "details": list(step.details),
        "changes": [{"component": name, "from": old or None, "to": new or None} for name, old, new in step.changes],
        "reboot": step.is_reboot,
        "together": step.is_together,
        "state": dict(step.state),
    }


def package_lines(packages: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """The packages that differ between two locks, in one line, and who says more."""
    if packages:
        shown = [f"{name} {old or 'none'} -> {new or 'none'}" for name, old, new in packages[:MOST_PACKAGES]]
        more = f" and {len(packages) - MOST_PACKAGES} more" if len(packages) > MOST_PACKAGES else ""
        yield f"packages: {', '.join(shown)}{more} (`provision explain --diff` tells them all)"


def plan_lines(plans: Sequence[Plan]) -> Iterator[str]:
    """The plan for people: what is wanted, then each class of hosts with its steps or with what keeps it out."""
    for plan in plans:
        where = f" on {plan.platform}" if len(plans) > 1 else ""
        if plan.wanted is not None:
            is_sure = plan.wanted.verdict == "yes"
            yield f"wanted{where}: {choices(plan.wanted) if is_sure else summary(plan.wanted)}"
        for one in plan.hosts:
            yield ""
            yield from _class_lines(one)


def _class_lines(plan: HostPlan) -> Iterator[str]:
    yield f"{names_of(plan)}: {_headline(plan)}"
    for index, step in enumerate(plan.steps, start=1):
        yield from _step_lines(index, step)
    if plan.exclusion is not None:
        yield from (f"  {line}" for line in conflict_lines(plan.exclusion.conflict))
        yield from (f"  hint: {fix_line(fix)}" for fix in plan.exclusion.conflict.fixes)
        yield from _last_lines(plan.exclusion)
    yield from (f"  note: {text}" for text in plan.notes)
    yield from (f"  unverified: {doubt_words(doubt)}" for doubt in plan.doubts)


def names_of(plan: HostPlan) -> str:
    """The names of a class, the first few of many, and how many machines they are."""
    shown = ", ".join(plan.hosts[:MOST_NAMES])
    more = f" and {len(plan.hosts) - MOST_NAMES} more" if len(plan.hosts) > MOST_NAMES else ""
    machines = f" ({plan.count} machines)" if plan.count > 1 else ""
    return f"{shown}{more}{machines}"


def _headline(plan: HostPlan) -> str:
    if plan.exclusion is not None:
        return "falls out, because these cannot hold together:"
    if not plan.steps:
        return "nothing to do"
    count = len(plan.steps)
    return f"{count} step{'' if count == 1 else 's'}"


def _last_lines(exclusion: Exclusion) -> Iterator[str]:
    if exclusion.last is None:
        yield f"  {exclusion.text}"
        return
    until = f"; its driver branch ends {exclusion.until}" if exclusion.until and exclusion.until not in exclusion.text else ""
    yield f"  the last stack for it: {summary(exclusion.last)}"
    yield f"    {exclusion.text}{until}"


def _step_lines(index: int, step: Step) -> Iterator[str]:
    reboot = "  [reboot]" if step.is_reboot else ""
    yield f"  {index}. {step.text}{reboot}"
    if step.kind == FIND_OUT:
        return
    for reason in step.why[:MOST_REASONS]:
        source = source_words(reason.ground.source)
        yield f"     because {step_reason_words(reason)}{f'  ({source})' if source else ''}"
    if len(step.why) > MOST_REASONS:
        yield f"     and {len(step.why) - MOST_REASONS} more in --format json"
    yield from (f"     {line}" for line in step.details)


def summary_rows(plans: Sequence[Plan]) -> list[tuple[str, str, str, str, str]]:
    """One row a class and one for all: its hosts, how many machines, how many steps and reboots, what becomes of it."""
    rows = []
    for plan in plans:
        for one in plan.hosts:
            reboots = sum(step.is_reboot for step in one.steps)
            outcome = "falls out" if one.exclusion is not None else "follows" if one.steps else "nothing to do"
            outcome = "cannot tell" if one.exclusion is None and one.is_unknown else outcome
            rows.append((names_of(one).partition(" (")[0], str(one.count), str(len(one.steps)), str(reboots), outcome))
    total = sum(one.count for plan in plans for one in plan.hosts)
    out = sum(one.count for plan in plans for one in plan.hosts if one.exclusion is not None)
    return [*rows, ("all", str(total), "", "", f"{out} of {total} fall out" if out else "none falls out")]
