"""`provision explain COMPONENT` in words and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.cli.report import no_stack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.solve.stack import Reason
    from provisioner.solve.why import Why

FEW = 6
"""How many reasons are told before the rest is counted; those that hold a newer release back are always told."""


def why_lines(whys: Sequence[Why], *, names_platform: bool) -> list[str]:
    """What was chosen and why, for each host or slot that has the component; what is the same is said once."""
    lines: list[str] = []
    for one in whys:
        where = f" on {one.host}" if len(whys) > 1 and one.host else ""
        where += f" for {one.platform}" if names_platform else ""
        lines.extend(_lines(one, where))
    return lines


def _lines(why: Why, where: str) -> Iterator[str]:
    from provisioner.solve.explain import conflict_lines, hint_line, reason_line
    from provisioner.solve.joint import NO_WAY

    verb = "is what the host states" if why.is_fact else "is chosen"
    yield f"{why.component} {why.chosen} {verb}{where}"
    told = sorted(why.reasons, key=lambda reason: reason not in why.held_by)
    for reason in told[:FEW]:
        yield f"  {reason_line(reason)}{'  <- holds it back' if reason in why.held_by else ''}"
    if len(told) > FEW:
        yield f"  and {len(told) - FEW} more, listed under --format json"
    if why.is_fact:
        return
    if why.newer is None:
        yield f"nothing newer is known to {'the index' if why.is_package else 'the matrix'}"
    elif why.conflict is None:
        yield f"not {why.component} {why.newer}: {why.order}"
    else:
        yield f"not {why.component} {why.newer}, because these cannot hold together:"
        yield from (f"  {line}" for line in conflict_lines(why.conflict))
        yield from (f"hint: {text}" for text in [hint_line(hint) for hint in why.conflict.hints] or [NO_WAY])


def why_data(whys: Sequence[Why]) -> dict[str, object]:
    """The first as the contract has it, those of other hosts and slots under `others`."""
    found = _data(whys[0])
    if len(whys) > 1:
        found["others"] = [_data(one) for one in whys[1:]]
    return found


def _data(why: Why) -> dict[str, object]:
    from provisioner.solve.explain import reason_line

    found: dict[str, object] = {"component": why.component, "chosen": why.chosen, "platform": why.platform}
    if why.host:
        found["host"] = why.host
    found["is_fact"] = why.is_fact
    found["reasons"] = [reason_line(reason) for reason in why.reasons]
    if why.newer is not None:
        found["newer"] = why.newer
        found["held_by"] = [_reason(reason) for reason in why.held_by]
    if why.order:
        found["order"] = why.order
    if why.conflict is not None:
        found["conflict"] = no_stack(why.conflict)["conflict"]
    return found


def _reason(reason: Reason) -> dict[str, str]:
    return {"component": reason.component, "kind": reason.kind, "text": reason.text, "where": reason.where}
