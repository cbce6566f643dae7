"""The JSON of `solve`, to the letter of the contract (DESIGN 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.solve.stack import Conflict, Hint, Stack


def solved(stacks: Sequence[Stack], written: Sequence[str]) -> dict[str, object]:
    """What was decided; of several platforms the first is told as the contract says, all of them under `platforms`."""
    report: dict[str, object] = {"status": "solved", **_stack(stacks[0])}
    if len(stacks) > 1:
        report["platforms"] = {stack.platform: _stack(stack) for stack in stacks}
    report["written"] = list(written)
    return report


def solved_targets(answers: Sequence[tuple[str, Sequence[Stack], Sequence[str]]]) -> dict[str, object]:
    """What was decided for each target, by its name; of one target alone, what `solved` says and which one it is."""
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
    if stack.environment:
        report["environment"] = dict(stack.environment)
    report["verdict"] = stack.verdict
    report["unverified"] = list(stack.unverified)
    report["relaxations"] = [
        {"name": one.name, "component": one.component, "text": one.text, "where": one.where} for one in stack.relaxations
    ]
    if stack.warnings:
        report["warnings"] = list(stack.warnings)
    if stack.held_back:
        report["held_back"] = [
            {"component": one.component, "chosen": one.chosen, "newest": one.newest, "text": one.text, "where": one.where}
            for one in stack.held_back
        ]
    if stack.moves:
        report["moves"] = [
            {"name": one.name, "from": one.before, "to": one.after, "because": one.because, "where": one.where}
            for one in stack.moves
        ]
    return report


def _version(stack: Stack, name: str, version: str) -> str:
    """The framework says which build it is, as `torch.__version__` does, although the index's file name does not."""
    build = stack.components.get("pytorch_build")
    return f"{version}+{build}" if name == "torch" and build and "+" not in version else version


def no_stack(conflict: Conflict) -> dict[str, object]:
    """Why nothing fits, and what would."""
    members = [
        {"component": member.component, "kind": member.kind, "text": member.text, "where": member.where}
        for member in conflict.members
    ]
    hints = [
        {
            "component": hint.changes[0][0],
            "change": hint.changes[0][1],
            "text": hint.text,
            "gives": dict(hint.gives),
            "changes": _changes(hint),
        }
        for hint in conflict.hints
    ]
    return {"status": "no-stack", "conflict": {"members": members, "conclusion": conflict.conclusion, "hints": hints}}


def _changes(hint: Hint) -> list[dict[str, str]]:
    """Everything to change, with the host where the target has several."""
    hosts = hint.hosts or ("",) * len(hint.changes)
    return [
        {"component": component, "change": change, **({"host": host} if host else {})}
        for (component, change), host in zip(hint.changes, hosts, strict=True)
    ]
