"""The JSON and the text of `provision diagnose`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import to_builtins

from provisioner.cli.display import Line, Paint, verdict_line, wants_details
from provisioner.components import COMPONENTS
from provisioner.grounds.fields import type_of
from provisioner.matrix.need import need_text
from provisioner.words.diagnosis import (
    TRANSLATED,
    condition_words,
    disagreement_words,
    fact_words,
    harmless_words,
    left_words,
    more_words,
    nothing_words,
    remedy_words,
    unexplained_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.diagnose.diagnosis import Diagnosis, Explanation, Finding
    from provisioner.diagnose.recognise import Quote, Recognised
    from provisioner.grounds.diagnosis import KnownFact, Remedy
    from provisioner.matrix.model import Failure, Matrix
    from provisioner.matrix.need import Need

MOST_POSSIBLE = 6


def diagnosis_data(diagnosis: Diagnosis, matrix: Matrix, *, name: str) -> dict[str, object]:
    """Return a diagnosis as JSON: typed findings with the root cause first, and the words of the text report beside them."""
    return {
        "status": diagnosis.verdict,
        "log": name,
        "lines": diagnosis.lines,
        "skipped": {"bytes": diagnosis.skipped, "lines": diagnosis.skipped_lines},
        "findings": [_finding_data(one, diagnosis, matrix) for one in diagnosis.findings],
        "harmless": [_recognised_data(one, matrix) for one in diagnosis.harmless],
        "facts": [_fact_data(fact) for fact in diagnosis.facts.facts],
        "disagreements": [{**to_builtins(one), "text": disagreement_words(one)} for one in diagnosis.facts.disagreements],
        "may_be_translated": diagnosis.may_be_translated,
        "unexplained": {"lines": diagnosis.unexplained_count, "quotes": _quotes_data(diagnosis.unexplained)},
    }


def _finding_data(finding: Finding, diagnosis: Diagnosis, matrix: Matrix) -> dict[str, object]:
    failure = finding.main.failure
    return {
        **_recognised_data(finding.recognised, matrix),
        "facts": [_fact_data(fact) for fact in _facts_of(finding.recognised, diagnosis)],
        "when": _needs_data(finding.main.when),
        "remedy": failure.remedy,
        "steps": [_remedy_data(remedy) for remedy in finding.main.remedies],
        "or": [_explanation_data(one, matrix) for one in finding.explanations[1:]],
        "consequences": [_recognised_data(one, matrix) for one in finding.consequences],
        "possible_causes": [_explanation_data(one, matrix) for one in finding.possible],
    }


def _recognised_data(one: Recognised, matrix: Matrix) -> dict[str, object]:
    failure = one.failure
    return {
        "name": failure.name,
        "kind": failure.kind,
        "component": failure.layer,
        "cause": failure.cause,
        "lines": one.count,
        "quotes": _quotes_data(one.quotes),
        "sources": _sources_data(failure, matrix),
    }


def _explanation_data(one: Explanation, matrix: Matrix) -> dict[str, object]:
    failure = one.failure
    return {
        "name": failure.name,
        "component": failure.layer,
        "cause": failure.cause,
        "remedy": failure.remedy,
        "when": _needs_data(one.when),
        "sources": _sources_data(failure, matrix),
    }


def _sources_data(failure: Failure, matrix: Matrix) -> list[dict[str, str]]:
    found = [matrix.citations[key] for key in failure.source]
    return [{"title": one.title, "where": one.where, **({"url": one.url} if one.url else {})} for one in found]


def _quotes_data(quotes: Sequence[Quote]) -> list[dict[str, object]]:
    return [{"line": quote.line, "text": quote.text} for quote in quotes]


def _needs_data(needs: Sequence[Need]) -> list[dict[str, object]]:
    return [{"component": need.component, "value": need_text(need)} for need in needs]


def _fact_data(fact: KnownFact) -> dict[str, object]:
    found: dict[str, object] = {"name": fact.name, "value": fact.value, "said_by": fact.said_by}
    found |= {"line": fact.line} if fact.line else {}
    return {**found, **({"written": fact.text} if fact.text else {}), **({"derived_from": fact.by} if fact.by else {})}


def _remedy_data(remedy: Remedy) -> dict[str, object]:
    from provisioner.grounds.diagnosis import CannotFollow, ChangeHost, NothingRuns

    found: dict[str, object] = {"type": type_of(type(remedy)), "text": remedy_words(remedy)}
    if isinstance(remedy, NothingRuns | CannotFollow):
        from provisioner.cli.report import no_stack

        return {**found, "conflict": no_stack((remedy.conflict,))["conflict"]}
    if isinstance(remedy, ChangeHost):
        component, before, after = remedy.action.change
        change = {"component": component, "from": before or None, "to": after or None}
        return {**found, "wanted": remedy.wanted, **change, "reboot": remedy.is_reboot}
    fields = to_builtins(remedy)
    for key in ("host", "components"):
        if key in fields:
            fields[key] = dict(fields[key])
    return {**found, **{key: value for key, value in fields.items() if key != "text"}}


def _facts_of(one: Recognised, diagnosis: Diagnosis) -> list[KnownFact]:
    """Return the facts that the messages of a failure state, and those derived from them."""
    said = {(reading.fact, reading.value, reading.line) for reading in one.readings}
    named = {reading.fact for reading in one.readings}
    return [
        fact
        for fact in diagnosis.facts.facts
        if (fact.name, fact.value, fact.line) in said or (fact.by in named and any(line == fact.line for _, _, line in said))
    ]


def diagnosis_lines(diagnosis: Diagnosis, matrix: Matrix, *, name: str) -> Iterator[Line]:
    """Yield a diagnosis as lines: the root cause with its remedy, further findings, what is harmless, and what was not read."""
    for position, finding in enumerate(diagnosis.findings):
        if position:
            yield Line("")
        yield from _finding_lines(finding, diagnosis, matrix, name)
    if not diagnosis.findings:
        if diagnosis.verdict == "harmless":
            yield verdict_line("yes", harmless_words(len(diagnosis.harmless)))
        else:
            yield verdict_line("unverified", nothing_words(diagnosis.lines))
            if diagnosis.may_be_translated:
                yield Line(TRANSLATED, "hint:", Paint.NEXT, 2)
    if diagnosis.harmless:
        if diagnosis.findings:
            yield Line("")
        for one in diagnosis.harmless:
            yield Line(one.failure.cause, "harmless:", Paint.GOOD)
            yield from _quote_lines(one, name)
    yield from _end_lines(diagnosis, name)


def _finding_lines(finding: Finding, diagnosis: Diagnosis, matrix: Matrix, name: str) -> Iterator[Line]:
    main = finding.main
    yield verdict_line("no", f"{_label(main.failure)}: {_condition(main.when)}{main.failure.cause}")
    yield from _quote_lines(finding.recognised, name)
    facts = _facts_of(finding.recognised, diagnosis)
    if facts:
        yield Line(", ".join(dict.fromkeys(map(fact_words, facts))), "it says:", Paint.STRONG, 2)
    for number, remedy in enumerate(main.remedies, start=1):
        yield Line(remedy_words(remedy), f"{number}.", Paint.NEXT, 2)
    for one in finding.explanations[1:]:
        yield Line(f"{_condition(one.when)}{one.failure.cause}: {one.failure.remedy}", "or:", Paint.STRONG, 2)
    for position, one in enumerate(finding.possible[: None if wants_details() else MOST_POSSIBLE]):
        told = f": {one.failure.remedy}" if wants_details() else ""
        yield Line(
            f"{_condition(one.when)}{one.failure.cause}{told}",
            "or from:" if position else "it can come from:",
            Paint.STRONG,
            2,
        )
    for consequence in finding.consequences:
        yield Line(consequence.failure.cause, "from this follows:", Paint.STRONG, 2)
        yield from _quote_lines(consequence, name, indent=4)
    for key in main.failure.source if wants_details() else main.failure.source[:1]:
        citation = matrix.citations[key]
        yield Line(f"{citation}{f'  ({citation.url})' if citation.url else ''}", "source:", Paint.STRONG, 2)


def _label(failure: Failure) -> str:
    row = COMPONENTS.get(failure.layer)
    return row.label if row is not None else failure.layer


def _condition(needs: Sequence[Need]) -> str:
    words = condition_words([(need.component, _value(need)) for need in needs])
    return f"{words}, " if words else ""


def _value(need: Need) -> str:
    text = need_text(need)
    return text if isinstance(text, str) else " or ".join(text)


def _quote_lines(one: Recognised, name: str, *, indent: int = 2) -> Iterator[Line]:
    shown = one.quotes if wants_details() else one.quotes[:1]
    for quote in shown:
        yield Line(quote.text, f"{name}:{quote.line}:", Paint.PLAIN, indent)
    if more := more_words(one.count, len(shown)):
        yield Line(more, indent=indent)


def _end_lines(diagnosis: Diagnosis, name: str) -> Iterator[Line]:
    for one in diagnosis.facts.disagreements:
        yield Line(disagreement_words(one), "note:", Paint.UNSURE)
    if diagnosis.unexplained_count:
        yield Line(unexplained_words(diagnosis.unexplained_count), "unknown:", Paint.UNSURE)
        if wants_details() or not diagnosis.findings:
            yield from (Line(quote.text, f"{name}:{quote.line}:", indent=2) for quote in diagnosis.unexplained)
    if diagnosis.skipped:
        yield Line(left_words(diagnosis.skipped, diagnosis.skipped_lines), "note:", Paint.STRONG)
