"""The JSON of `provision solve`, whose keys are a stable interface for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from provisioner.grounds.fields import PredicateFields, fields_of, object_of, ranges_of, source_fields, type_of
from provisioner.grounds.requirement import Ground
from provisioner.words.choice import (
    caution_words,
    held_back_words,
    installed_for_gpu_words,
    move_reason_words,
    move_source,
    shown_words,
    unread_words,
)
from provisioner.words.conflict import conclusion_words, fix_words, member_words, published_words
from provisioner.words.doubt import assumption_words, doubt_words
from provisioner.words.ground import say
from provisioner.words.notation import source_words, sources_words
from provisioner.words.relaxation import relaxation_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import Struct

    from provisioner.grounds.conflict import Conflict, Fix, Member, Published, Statement
    from provisioner.grounds.edit import Edit
    from provisioner.resolver.stack import Stack


def solved(stacks: Sequence[Stack], written: Sequence[str]) -> dict[str, object]:
    """Return the solution as a JSON object: the fields of the first platform's stack, and `written`, the paths of files.

    If there are several platforms, `platforms` has the stack of each, the first included.
    """
    report: dict[str, object] = {"status": "solved", **_stack(stacks[0])}
    if len(stacks) > 1:
        report["platforms"] = {stack.platform: _stack(stack) for stack in stacks}
    report["written"] = list(written)
    return report


def solved_targets(answers: Sequence[tuple[str, Sequence[Stack], Sequence[str]]]) -> dict[str, object]:
    """Return the solutions of several targets as JSON, by name; if there is one target, its solution and its name.

    `answers` has the name, the stacks and the paths of the files written for each target.
    """
    if len(answers) == 1:
        ((name, stacks, written),) = answers
        return {**solved(stacks, written), **({"target": name} if name else {})}
    written = [path for _, _, paths in answers for path in paths]
    return {
        "status": "solved",
        "targets": {name: solved(stacks, paths) for name, stacks, paths in answers},
        "written": written,
    }


def _stack(stack: Stack) -> dict[str, object]:
    report: dict[str, object] = {"stack": dict(stack.components)}
    if stack.basis:
        report["basis"] = stack.basis
    if stack.packages:
        report["packages"] = {package.name: _version(stack, package.name, package.version) for package in stack.packages}
        report["indexes"] = {package.name: package.file.index for package in stack.packages}
    report.update(_system_packages(stack))
    report.update(_installed_for_gpu(stack))
    if stack.environment:
        report["environment"] = dict(stack.environment)
    report["verdict"] = stack.verdict
    report["unverified"] = [doubt_words(doubt) for doubt in stack.doubts]
    report["assumes"] = [assumption_words(doubt) for doubt in stack.assumes]
    if stack.accepts:
        report["accepts"] = [doubt_words(doubt) for doubt in stack.accepts]
    if stack.shown:
        report["shown"] = [{"host": one.host, "facts": list(one.facts), "text": shown_words(one)} for one in stack.shown]
    if stack.unread:
        report["unread"] = [{"host": one.host, "facts": list(one.keys), "text": unread_words(one)} for one in stack.unread]
    report["relaxations"] = [
        {
            "name": one.name,
            "component": one.component,
            "text": relaxation_words(one),
            "where": source_words(one.source),
        }
        for one in stack.relaxations
    ]
    if stack.warnings:
        report["warnings"] = [caution_words(caution) for caution in stack.warnings]
    if stack.held_back:
        report["held_back"] = [
            {
                "component": one.component,
                "chosen": one.chosen,
                "newest": one.newest,
                "text": held_back_words(one),
                "where": source_words(one.by.source),
                "by": ground_data(one.by),
            }
            for one in stack.held_back
        ]
    if stack.moves:
        report["moves"] = [
            {
                "name": one.name,
                "from": one.before,
                "to": one.after,
                "because": move_reason_words(one.reason),
                "where": move_source(one),
            }
            for one in stack.moves
        ]
    return report


def _system_packages(stack: Stack) -> dict[str, object]:
    found = [{"name": one.name, "reasons": [ground_data(reason) for reason in one.reasons]} for one in stack.system_packages]
    return {"apt": found} if found else {}


def _installed_for_gpu(stack: Stack) -> dict[str, object]:
    found = [
        {"name": one.name, "distribution": one.distribution, "extras": list(one.extras), "text": installed_for_gpu_words(one)}
        for one in stack.installed_for_gpu
    ]
    return {"installed_for_gpu": found} if found else {}


def _version(stack: Stack, name: str, version: str) -> str:
    """Return a package's version; that of torch includes the build (`+cu126`), as in `torch.__version__`."""
    build = stack.components.get("pytorch_build")
    return f"{version}+{build}" if name == "torch" and build and "+" not in version else version


def no_stack(conflicts: Sequence[Conflict]) -> dict[str, object]:
    """Return the conflicts of a problem as JSON: why no stack fits, and the changes that would resolve each.

    `conflict` is the first of them; `conflicts` are all, if there are several.
    """
    found = [conflict_data(conflict) for conflict in conflicts]
    return {"status": "no-stack", "conflict": found[0], **({"conflicts": found} if len(found) > 1 else {})}


def conflict_data(conflict: Conflict) -> dict[str, object]:
    """Return a conflict as JSON: its members, its conclusion, the fixes as hints, and what was not looked for."""
    members = [_member(member) for member in conflict.members]
    hints = [_fix(fix) for fix in conflict.fixes]
    conclusion = conclusion_words(conflict.conclusion) if conflict.conclusion is not None else ""
    flags = ("is_rest_unsolved", "is_cut_short", "is_interrupted")
    published = [_published(one) for one in conflict.published]
    return {
        "members": members,
        "conclusion": conclusion,
        "hints": hints,
        **({"published": published} if published else {}),
        **{name: True for name in flags if getattr(conflict, name)},
        **({"unreached": conflict.unreached} if conflict.unreached else {}),
    }


def _published(one: Published) -> dict[str, object]:
    return {
        "name": one.name,
        "kind": one.kind,
        "url": one.address,
        **({"pytorch": one.pytorch, "python": one.python} if one.pytorch else {}),
        "text": published_words(one),
        "where": source_words(one.source),
    }


def ground_data(ground: Ground) -> dict[str, object]:
    """Return a ground (the rule, fact or request that justifies a requirement) as JSON: its text and its fields."""
    return {
        "component": ground.component,
        "kind": ground.kind,
        "text": say(ground),
        "where": source_words(ground.source),
        **_filled(fields_of(ground)),
    }


def _filled(fields: Struct) -> dict[str, object]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(fields).items() if value}


def _member(member: Member) -> dict[str, object]:
    """Return a member of a conflict, one of the statements that exclude each other, as JSON: its text and its clauses."""
    return {
        "component": member.component,
        "kind": member.kind,
        "text": member_words(member),
        "where": sources_words(member.sources),
        "clauses": [_clause(clause) for clause in member.clauses],
        "sources": [{"source": source, "place": place} for source, place in map(source_fields, member.sources)],
    }


def _clause(clause: Ground | Statement) -> dict[str, object]:
    if isinstance(clause, Ground):
        return _filled(fields_of(clause))
    return {
        "type": type_of(type(clause.predicate)),
        "subject": clause.name,
        "versions": [
            span.first if span.first == span.last else f"{span.first} … {span.last}"
            for subjects in clause.subjects
            for span in subjects.spans
        ],
        **_filled(PredicateFields(object=object_of(clause.predicate), ranges=ranges_of(clause.predicate))),
        **({"pythons": list(clause.pythons)} if clause.pythons else {}),
        **({"allow": allowance} if (allowance := getattr(clause.predicate, "allowance", "")) else {}),
    }


def _fix(fix: Fix) -> dict[str, object]:
    first = fix.edits[0]
    return {
        "component": first.component,
        "change": first.change,
        "text": fix_words(fix),
        "gives": dict(fix.gives),
        "verdict": "unverified" if fix.is_unverified else "yes",
        "changes": [change for edit in fix.edits for change in _changes(edit, fix)],
        **({"patch": dict(fix.patch)} if fix.patch else {}),
    }


def _changes(edit: Edit, fix: Fix) -> list[dict[str, str]]:
    """Return an edit of a fix as JSON objects: one for each host that the edit applies to, or one without a host."""
    change = {"component": edit.component, "change": edit.change, "kind": type_of(type(edit))}
    return [{**change, "host": host} for host in fix.hosts.get(edit.host_label, ())] or [change]
