"""The text and the JSON of `provision explain COMPONENT`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.cli.display import Line, Paint, wants_details
from provisioner.cli.report import ground_data, no_stack
from provisioner.grounds.requirement import Ground
from provisioner.words.choice import passed_over_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.series import Instead, NewerSeries
    from provisioner.resolver.why import Counterfactual, Moved, Why

MOST_REASONS = 6
"""The most reasons that are shown, those that prevent a newer release first; of the others only the number is shown."""


def why_lines(whys: Sequence[Why], *, names_platform: bool) -> list[Line]:
    """Return the lines that explain the version of a component, once for each host or slot that has the component.

    A slot is the copy of the component that one framework loads. With `names_platform`, the lines name the platform.
    """
    lines: list[Line] = []
    for one in whys:
        where = f" on {one.host}" if len(whys) > 1 and one.host else ""
        where += f" for {one.platform}" if names_platform else ""
        lines.extend(_lines(one, where))
    return lines


def _lines(why: Why, where: str) -> Iterator[Line]:
    from provisioner.words.choice import passed_over_words
    from provisioner.words.conflict import NO_WAY, cut_short, fix_line
    from provisioner.words.ground import say_with_source

    verb = "is what the host states" if why.is_fact else "is chosen"
    chosen = f"{why.component} {why.chosen} {verb}{f' for {why.slot}' if why.slot else ''}{where}"
    yield Line(chosen, text_paint=Paint.STRONG)
    reasons = sorted(why.reasons, key=lambda reason: reason not in why.held_by)
    shown = reasons if wants_details() else reasons[:MOST_REASONS]
    for reason in shown:
        yield Line(f"{say_with_source(reason)}{'  <- holds it back' if reason in why.held_by else ''}", indent=2)
    if len(reasons) > len(shown):
        yield Line(f"and {len(reasons) - len(shown)} more, listed under -v", indent=2)
    if why.is_fact:
        return
    told = _told_series(why)
    is_told = bool(told) and _is_same(told[0], why)
    if _is_of_system_alone(told, why):
        yield from _what_holds(why)
        is_told, told = True, tuple(one for one in told if one.releases != (why.newer,))
    yield from _series_lines(told, why.component, why.chosen)
    if why.newer is None:
        yield Line(f"nothing newer is known to {'the index' if why.is_package else 'the matrix'}")
    elif why.conflict is None:
        yield Line(
            f"not {why.component} {why.newer}: {passed_over_words(why.order) if why.order is not None else ''}",
            text_paint=Paint.STRONG,
        )
    else:
        if not is_told:
            yield from _what_holds(why)
        elif len(told) > 1:  # the hints are about the newest release, and other series came in between
            yield Line(f"the way to {why.component} {why.newer}:", text_paint=Paint.STRONG)
        is_preferred = why.counterfactual is not None and why.counterfactual.order is not None
        fixes = [*map(fix_line, why.conflict.fixes), *cut_short(why.conflict)]
        found = fixes or [*_further(why)] or ([] if is_preferred else [NO_WAY])
        yield from (Line(text, "hint:", Paint.NEXT) for text in found)


def instead_lines(instead: Instead) -> list[Line]:
    """Return the lines on what there would be of a component if the spec named no version of it."""
    from provisioner.words.series import instead_words

    return [
        Line(instead_words(instead), text_paint=Paint.STRONG),
        *_series_lines(instead.series, instead.component, instead.chosen),
    ]


def _series_lines(series: Sequence[NewerSeries], name: str, chosen: str) -> Iterator[Line]:
    from provisioner.words.series import newer_series_lines, newer_series_words

    for one in series:
        yield Line(newer_series_words(one, name, chosen), text_paint=Paint.STRONG)
        yield from (Line(line, indent=2) for line in newer_series_lines(one, name, chosen))


def _told_series(why: Why) -> tuple[NewerSeries, ...]:
    """Return the newer series to tell: those that are excluded by more than what is told of the newest release."""
    told = tuple(one for one in why.series if one.excluded_by is None or one.excluded_by.ground not in _lines_on(why))
    is_newest_alone = [one.releases for one in told] == [(why.newer,)]
    return () if is_newest_alone and (told[0].excluded_by is not None or _is_same(told[0], why)) else told


def _lines_on(why: Why) -> tuple[Ground, ...]:
    """Return the lines of the spec that exclude the newest release."""
    return tuple(one for one in why.held_by if one.is_request)


def _is_same(series: NewerSeries, why: Why) -> bool:
    """Return whether the conflict of the newest series is that of the newest release, which is told with it."""
    if series.conflict is None or why.conflict is None or why.counterfactual is not None:
        return False
    return _stated(series.conflict) == _stated(why.conflict)


def _is_of_system_alone(told: Sequence[NewerSeries], why: Why) -> bool:
    """Return whether hosts exclude the newest release, and of newer series nothing but what packages exclude is known.

    The newest release is then told first, with all that excludes it: series are only compared with what was chosen.
    """
    if why.conflict is None or why.counterfactual is not None or any(one.conflict is not None for one in told):
        return False
    return any(one.kind == "fact" for one in _stated(why.conflict))


def _stated(conflict: Conflict) -> set[Ground]:
    """Return the requests and facts of a conflict: two proofs from the same ones tell a person the same."""
    clauses = (clause for member in conflict.members for clause in member.clauses)
    return {one for one in clauses if isinstance(one, Ground) and one.kind != "rule"}


def _what_holds(why: Why) -> Iterator[Line]:
    """Yield the lines on what excludes the newest version: a conflict, or lines of the spec about the component itself.

    For the latter, also what would change without these lines of the spec, or the conflict that would then remain.
    """
    from provisioner.words.choice import passed_over_words
    from provisioner.words.conflict import conflict_lines, exclusion_words
    from provisioner.words.ground import request_words
    from provisioner.words.notation import source_words

    assert why.conflict is not None, "something holds it"
    if why.counterfactual is None:
        yield Line(f"not {why.component} {why.newer}: {exclusion_words(why.conflict)}", text_paint=Paint.STRONG)
        yield from (Line(line, indent=2) for line in conflict_lines(why.conflict))
        return
    lines = " and ".join(f"`{request_words(one)}`  ({source_words(one.source)})" for one in why.counterfactual.lines)
    newer, verb = f"{why.component} {why.newer}", "holds" if len(why.counterfactual.lines) == 1 else "hold"
    them = "it" if len(why.counterfactual.lines) == 1 else "them"
    if why.counterfactual.conflict is not None:
        excluded = exclusion_words(why.counterfactual.conflict)
        yield Line(f"not {newer}: {lines} {verb} it back; without {them}, {excluded}", text_paint=Paint.STRONG)
        yield from (Line(line, indent=2) for line in conflict_lines(why.counterfactual.conflict))
    else:
        then = f"only {lines} {verb} it back"
        if why.counterfactual.order is not None:
            then = f"{lines} {verb} it back; without {them}, {passed_over_words(why.counterfactual.order)}"
        yield Line(f"not {newer}: {then}", text_paint=Paint.STRONG)
        changes = (
            f"{newer} would come with {_moves(why.counterfactual)}"
            if why.counterfactual.moved
            else "nothing else would change with it"
        )
        yield Line(changes, indent=2)


def _further(why: Why) -> Iterator[str]:
    """Yield the fixes that would allow the newest version once the spec's own lines about the component are removed."""
    from provisioner.words.conflict import fix_line
    from provisioner.words.ground import request_words

    if why.counterfactual is not None and why.counterfactual.conflict is not None:
        lines = " and ".join(f"`{request_words(one)}`" for one in why.counterfactual.lines)
        yield from (f"with {lines} gone, {fix_line(fix)}" for fix in why.counterfactual.conflict.fixes)


def _moves(freed: Counterfactual) -> str:
    moves = [_move(one) for one in freed.moved[:MOST_REASONS]]
    more = len(freed.moved) - len(moves)
    return "; ".join([*moves, *([f"and {more} more changes, listed under --format json"] if more > 0 else [])])


def _move(one: Moved) -> str:
    if not one.new:
        return f"no {one.name}"
    return f"{one.name} {one.new} instead of {one.old}" if one.old else f"{one.name} {one.new}, which is new"


def why_data(whys: Sequence[Why]) -> dict[str, object]:
    """Return the explanations as JSON: the fields of the first, and those for other hosts and slots under `others`."""
    found = _data(whys[0])
    if len(whys) > 1:
        found["others"] = [_data(one) for one in whys[1:]]
    return found


def _data(why: Why) -> dict[str, object]:
    from provisioner.words.choice import passed_over_words
    from provisioner.words.ground import say_with_source

    found: dict[str, object] = {"component": why.component, "chosen": why.chosen, "platform": why.platform}
    if why.host:
        found["host"] = why.host
    if why.slot:
        found["slot"] = why.slot
    found["is_fact"] = why.is_fact
    found["reasons"] = [say_with_source(reason) for reason in why.reasons]
    if why.newer is not None:
        found["newer"] = why.newer
        found["held_by"] = [ground_data(reason) for reason in why.held_by]
    if why.order is not None:
        found["order"] = passed_over_words(why.order)
    if why.conflict is not None:
        found["conflict"] = no_stack((why.conflict,))["conflict"]
    if why.counterfactual is not None:
        found["without"] = _without(why.counterfactual)
    if why.series:
        found["series"] = series_data(why.series)
    return found


def instead_data(instead: Instead) -> dict[str, object]:
    """Return, as JSON, what there would be of a component if the spec named no version of it."""
    return {
        "component": instead.component,
        "chosen": instead.chosen,
        "without": [ground_data(line) for line in instead.lines],
        "series": series_data(instead.series),
    }


def series_data(series: Sequence[NewerSeries]) -> list[dict[str, object]]:
    """Return, as JSON, what excludes each span of newer series: a conflict, or a requirement."""
    return [_of_series(one) for one in series]


def _of_series(series: NewerSeries) -> dict[str, object]:
    from provisioner.grounds.choice import NothingMeets, RuledOut

    found: dict[str, object] = {"releases": list(series.releases)}
    if series.conflict is not None:
        found["conflict"] = no_stack((series.conflict,))["conflict"]
    match series.excluded_by:
        case NothingMeets(ground=ground):
            found["unmet"] = ground_data(ground)
        case RuledOut(ground=ground, has=has):
            found["beside"] = {**ground_data(ground), **({"has": has} if has else {})}
    if series.unreached:
        found["unreached"] = list(series.unreached)
    return found


def _without(freed: Counterfactual) -> dict[str, object]:
    """Return, as JSON, the result of choosing the newest version without the spec's own lines about the component."""
    found: dict[str, object] = {"lines": [ground_data(line) for line in freed.lines]}
    if freed.conflict is not None:
        return {**found, "conflict": no_stack((freed.conflict,))["conflict"]}
    if freed.order is not None:
        found["order"] = passed_over_words(freed.order)
    return {**found, "changes": [{"component": one.name, "from": one.old, "to": one.new} for one in freed.moved]}
