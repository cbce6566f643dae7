"""The report of `provision doctor`: one row a layer, with details below those that are not yes; and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.cli.display import Line, MarkedRow, Paint, marked_table, report, verdict_line, wants_details
from provisioner.cli.report import conflict_data
from provisioner.components import ABSENT
from provisioner.grounds.fault import Contradicts
from provisioner.words.doubt import assumption_words
from provisioner.words.fault import (
    IN_IMAGE,
    PROVEN,
    act_details,
    act_words,
    advice_words,
    answer_words,
    fault_details,
    fault_words,
    follows_words,
    layer_title,
    part_words,
    subject_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.doctor.model import Examination, Layer, Patient, Question
    from provisioner.grounds.fault import Fault, Part, Remedy
    from provisioner.matrix.model import Failure, Matrix
    from provisioner.workflow.examining import Examined

_MARKS = {
    "yes": ("✓", Paint.GOOD),
    "no": ("✗", Paint.BAD),
    "unverified": ("?", Paint.UNSURE),
    "assumed": ("·", Paint.PLAIN),
    "not-needed": ("-", Paint.PLAIN),
}
_COLUMNS = ("layer", "found", "wanted")
_INDENT = 6
_QUIET = frozenset({"platform", "gcc", "clang", "kernel_gcc", "python_arch", "nvcc", "cusparselt", "nvshmem"})
_MOST_TARGETS = 4
_MOST_PARTS = 5


def tell(examined: Examined) -> None:
    """Print an examination: the answer, a row for each layer, and the command to run first."""
    examination, question = examined.examination, examined.question
    first = examination.first
    subject = subject_words(question.lock_file, question.spec.name if question.spec is not None else "")
    title = layer_title(first.name, examination.accelerator) if first is not None else ""
    label = examined.patient.target.label
    answer = answer_words(examination.verdict, label, subject, first=title, has_judged=examination.has_judged)
    report([verdict_line(examination.verdict, answer)])
    marked_table(_COLUMNS, [_row(layer, examination, examined.matrix) for layer in examination.layers])
    report(_ending(examination, question, examined.patient))


def _row(layer: Layer, examination: Examination, matrix: Matrix) -> MarkedRow:
    mark, paint = _MARKS[layer.verdict]
    if layer.follows and not layer.is_broken:
        paint = Paint.PLAIN
    title = layer_title(layer.name, examination.accelerator)
    found = _joined(layer.found) or {"not-needed": "", "yes": PROVEN if layer.name == "kernel" else "?"}.get(layer.verdict, "?")
    return MarkedRow(mark, paint, (title, found, _joined(layer.wanted)), tuple(_below(layer, matrix)))


def _joined(parts: Sequence[Part]) -> str:
    told = [part for part in parts if wants_details() or not _is_quiet(part)]
    named = list(dict.fromkeys(IN_IMAGE if part.origin == "image" else part_words(part, most=_MOST_TARGETS) for part in told))
    shown = named if wants_details() or len(named) <= _MOST_PARTS else [*named[:_MOST_PARTS], f"+{len(named) - _MOST_PARTS}"]
    return " · ".join(filter(None, shown))


def _is_quiet(part: Part) -> bool:
    """Return whether a part is told with `-v` alone, because it is seldom at fault."""
    return part.name in _QUIET or (part.name == "secure_boot" and part.value == "disabled")


def _below(layer: Layer, matrix: Matrix) -> Iterator[Line]:
    """Yield the paragraphs below a layer: its faults, the layer it waits for, and its remedies with their commands."""
    for fault in layer.faults:
        paint = _MARKS[fault.verdict][1]
        yield Line(fault_words(fault), f"{fault.verdict}:", paint, _INDENT)
        yield from (Line(text, indent=_INDENT + 2) for text in fault_details(fault))
        failure = _failure(fault, matrix)
        if failure is not None and wants_details():
            cited = "; ".join(str(matrix.citations[one]) for one in failure.source if one in matrix.citations)
            yield Line(f"{failure.cause}; {failure.remedy}  ({cited})", indent=_INDENT + 2)
    for number, remedy in enumerate(layer.remedies):
        if remedy.is_alternative and layer.remedies[number - 1].is_alternative and not wants_details():
            continue  # one alternative is enough
        label = "or:" if remedy.is_alternative else "then:" if number else "remedy:"
        yield Line(act_words(remedy.act), label, Paint.NEXT, _INDENT)
        if wants_details() or not remedy.command:
            yield from (Line(text, indent=_INDENT + 2) for text in act_details(remedy.act))
        if remedy.command:
            yield Line(remedy.command, "$", Paint.STRONG, _INDENT + 2)


def _failure(fault: Fault, matrix: Matrix) -> Failure | None:
    """Return the row of the matrix on the failure that a fault leads to; None if there is none."""
    return next((one for one in matrix.failures if one.name == fault.failure), None)


def _ending(examination: Examination, question: Question, patient: Patient) -> Iterator[Line]:
    causes = dict.fromkeys(layer.follows for layer in examination.layers if layer.follows)
    for cause in causes:
        names = [layer.name for layer in examination.layers if layer.follows == cause]
        yield Line(follows_words(names, cause, examination.accelerator), "note:", Paint.STRONG)
    if wants_details():
        yield from (Line(assumption_words(one), "assumes:", Paint.STRONG) for one in examination.assumes)
    advice = advice_words(
        has_judged=examination.has_judged,
        is_asked=question.lock is not None or question.spec is not None,
        is_recorded=not patient.is_seen,
        is_container=patient.is_seen and patient.target.host.virtualization == "container",
        lacks_environment=patient.environment is None and (question.lock is None or examination.runs == "host"),
    )
    yield from (Line(text, "note:", Paint.STRONG) for text in advice)
    first = examination.first
    command = next((remedy.command for remedy in first.remedies if remedy.command), "") if first is not None else ""
    if command:
        yield Line(command, "next:", Paint.NEXT)


def examination_data(examined: Examined) -> dict[str, object]:
    """Return an examination as JSON; its keys are a stable interface for programs."""
    examination = examined.examination
    first = examination.first
    environment = examined.patient.environment
    return {
        "status": "examined",
        "verdict": examination.verdict,
        "host": examined.patient.target.label,
        "lock": examined.question.lock_file,
        "runs": examination.runs,
        "accelerator": examination.accelerator,
        "environment": {"name": environment.name, "found_by": environment.found_by, "libraries": list(environment.libraries)}
        if environment is not None
        else None,
        "mend_first": first.name if first is not None else "",
        "layers": [_layer_data(layer, examination, examined.matrix) for layer in examination.layers],
        "assumes": [assumption_words(one) for one in examination.assumes],
    }


def _layer_data(layer: Layer, examination: Examination, matrix: Matrix) -> dict[str, object]:
    return {
        "layer": layer.name,
        "title": layer_title(layer.name, examination.accelerator),
        "verdict": layer.verdict,
        "found": [_part_data(part) for part in layer.found],
        "wanted": [{"component": part.name, "range": part.value} for part in layer.wanted],
        "follows": layer.follows,
        "faults": [_fault_data(fault, matrix) for fault in layer.faults],
        "remedies": [_remedy_data(remedy) for remedy in layer.remedies],
    }


def _part_data(part: Part) -> dict[str, object]:
    found: dict[str, object] = {"component": part.name, "value": part.value}
    if part.origin:
        found["origin"] = part.origin
    if part.name == "gpu" and part.value != ABSENT:
        found |= {"name": part.title, "count": part.count}
    return found


def _fault_data(fault: Fault, matrix: Matrix) -> dict[str, object]:
    from msgspec import to_builtins

    from provisioner.grounds.fields import type_of

    data: dict[str, object] = {"type": type_of(type(fault)), "verdict": fault.verdict, "text": fault_words(fault)}
    match fault:
        case Contradicts(conflict=conflict):
            data["conflict"] = conflict_data(conflict)
        case _ if not hasattr(fault, "doubt") and not hasattr(fault, "finding"):
            fields: Mapping[str, object] = to_builtins(fault)
            data |= {key: value for key, value in fields.items() if key not in {"layer", "type"}}
        case _ if hasattr(fault, "doubt"):
            data["component"] = fault.doubt.component
    failure = _failure(fault, matrix)
    if failure is not None:
        data["failure"] = {"name": failure.name, "cause": failure.cause, "remedy": failure.remedy}
    return data


def _remedy_data(remedy: Remedy) -> dict[str, object]:
    from provisioner.grounds.fault import Mend
    from provisioner.grounds.fields import type_of

    data: dict[str, object] = {"type": type_of(type(remedy.act)), "text": act_words(remedy.act), "command": remedy.command}
    data["alternative"] = remedy.is_alternative
    if isinstance(remedy.act, Mend):
        data["changes"] = [{"component": edit.component, "change": edit.change} for edit in remedy.act.fix.edits]
    details = act_details(remedy.act)
    return {**data, "details": list(details)} if details else data
