"""Consistency checks of the messages in logs: templates, samples, relations between failures, and the steps of remedies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.matrix.check_rows import twice, unknown
from provisioner.matrix.symptom import OTHER_FACTS, plain, read_symptom, unknown_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.errors import Mistake
    from provisioner.matrix.check_rows import RowChecker
    from provisioner.matrix.files import KeyPosition, MatrixFiles
    from provisioner.matrix.model import Failure, RemedyStep

FACT_OF_STEP = re.compile(r"\{(?P<fact>[a-z_]+)(?:\|(?P<default>[^{}]*))?\}")


def check_failures(files: MatrixFiles, rows: RowChecker) -> Iterator[Mistake]:
    """Yield every inconsistency of the failures and statements of a matrix."""
    top, content = files.failures.at(), files.failures.content
    by_name = {failure.name: failure for failure in content.failures}
    yield from twice(top, "failures", content.failures, kind="failure")
    for at, failure in top.each("failures", content.failures):
        if failure.layer not in rows.components:
            yield at.at("layer").mistake(unknown(failure.layer, "component", rows.components))
        yield from rows.condition(at.at("when"), failure.when)
        yield from rows.guards(at.at("on"), failure.on)
        yield from rows.cited(at, failure.source, f"failure `{failure.name}`")
        yield from _symptoms(at, failure.symptoms, rows, what=f"failure `{failure.name}`", is_read=failure.kind != "silent")
        if failure.kind != "silent":
            yield from _samples(at, failure.samples, failure.symptoms, what=f"failure `{failure.name}`")
        yield from _relations(at, failure, by_name)
        yield from _steps(at, failure, rows)
    yield from twice(top, "statements", content.statements, kind="statement")
    for at, statement in top.each("statements", content.statements):
        what = f"statement `{statement.name}`"
        yield from rows.cited(at, statement.source, what)
        yield from _symptoms(at, statement.symptoms, rows, what=what, is_read=True)
        yield from _samples(at, statement.samples, statement.symptoms, what=what)
        for fact in statement.states:
            if fact not in OTHER_FACTS and fact not in rows.components:
                yield at.at("states", fact).mistake(unknown(fact, "fact", (*OTHER_FACTS, *rows.components)))


def _symptoms(at: KeyPosition, symptoms: Sequence[str], rows: RowChecker, *, what: str, is_read: bool) -> Iterator[Mistake]:
    if not symptoms:
        yield at.at("symptoms").mistake(f"{what} has no symptom, so nobody can recognise it")
    for below, template in at.each("symptoms", symptoms if is_read else ()):
        try:
            read_symptom(template)
        except ValueError as error:
            yield below.mistake(str(error))
        yield from (below.mistake(text) for text in unknown_facts(template, rows.components))


def _samples(at: KeyPosition, samples: Sequence[str], symptoms: Sequence[str], *, what: str) -> Iterator[Mistake]:
    """Yield a mistake for a row without a sample, and for a symptom that no sample has."""
    if not samples:
        yield at.mistake(f"{what} has no sample; add a real message that it leaves under `samples`")
        return
    lines = [plain(line) for sample in samples for line in sample.splitlines()]
    for below, template in at.each("symptoms", symptoms):
        try:
            symptom = read_symptom(template)
        except ValueError:
            continue  # told by `_symptoms`
        if not any(symptom.pattern.search(line) for line in lines):
            yield below.mistake(f"no sample of {what} has this message")


def _relations(at: KeyPosition, failure: Failure, by_name: dict[str, Failure]) -> Iterator[Mistake]:
    for below, name in at.each("follows", failure.follows):
        if name not in by_name:
            yield below.mistake(unknown(name, "failure", by_name))
        elif name == failure.name:
            yield below.mistake(f"failure `{name}` follows itself")
    for below, name in at.each("also", failure.also):
        if name not in by_name:
            yield below.mistake(unknown(name, "failure", by_name))
    for below, group in at.each("alike", failure.alike):
        if not any(group in other.alike for other in by_name.values() if other is not failure):
            yield below.mistake(f"no other failure is `alike` `{group}`, so there is nothing to tell apart")
    if failure.kind != "benign" and not failure.remedy:
        yield at.mistake(f"failure `{failure.name}` has no remedy")


def _steps(at: KeyPosition, failure: Failure, rows: RowChecker) -> Iterator[Mistake]:
    for below, step in at.each("steps", failure.steps):
        if sum(map(bool, (step.run, step.say, step.solve))) != 1:
            yield below.mistake("a step is one of `run`, `say` and `solve`")
        for fact in facts_of_step(step):
            if fact not in OTHER_FACTS and not any(
                fact.removesuffix(role) in rows.components for role in ("", "_wanted", "_other")
            ):
                yield below.mistake(unknown(fact, "fact", (*OTHER_FACTS, *rows.components)))


def facts_of_step(step: RemedyStep) -> tuple[str, ...]:
    """Return the facts of the log that a step names."""
    return tuple(found["fact"] for found in FACT_OF_STEP.finditer(f"{step.run} {step.say} {step.note}"))
