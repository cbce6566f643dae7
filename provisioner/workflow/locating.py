"""Find the place of a finding, where its cause stands: a line of a spec, a host profile, a lock or a rendered file."""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.document import Position
from provisioner.grounds import finding as of
from provisioner.grounds.requirement import Subject
from provisioner.places import HostPlace, Place
from provisioner.toml_document import MULTILINE, KeyPositions, is_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.document import KeyPath
    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.finding import Finding
    from provisioner.workflow.inputs import Inputs

_OWN: KeyPath = ("tool", "provision")
_OWN_TABLE = "\n[tool.provision]"
_MOST_STACKS = 10
"""More than the platforms that there are."""

_KEYS: dict[type[Finding], KeyPath] = {
    of.MissingPlatform: ("platform",),
    of.OtherAccelerator: ("accelerator",),
    of.UnpinnedBase: ("image", "reference"),
    of.UndatedPackages: ("image", "reference"),
    of.OtherImage: ("image", "reference"),
    of.OtherGate: ("require-cuda",),
    of.OtherSystemPackages: ("apt", 0),
    of.OtherHostSetup: ("host-setups",),
    of.StrandedHosts: ("host-requirements",),
}
"""The keys of a stack that findings of a type are about."""

_OF_MATRIX = "matrices/"
_KINDS = {"request": 0, "fact": 1}
"""The members of a conflict that a person changes, the most easily changed first."""


def places_of(findings: Sequence[Finding], lock: Path, inputs: Inputs | None) -> tuple[Position, ...]:
    """Return the file, line and column of each finding on a lock; `inputs` are those of its spec, None if that is missing.

    What has no line of its own is about the lock as a whole, and stands in its first line.
    """
    finder = _Finder(lock, inputs)
    return tuple(map(finder.position, findings))


def whole(file: Path) -> Position:
    """Return the place of a finding about a whole file: the beginning of its first line."""
    return Position(1, 1, str(file))


class _Finder:
    def __init__(self, lock: Path, inputs: Inputs | None) -> None:
        self._lock = lock
        self._inputs = inputs
        self._lines: dict[Path, list[str]] = {}

    def position(self, finding: Finding) -> Position:
        """Return the place of a finding: the line that it names, that of its conflict, or the entry of the lock."""
        if isinstance(finding, of.EditedOutput) and finding.place is not None:
            return Position(finding.place.line, finding.column, finding.place.file)
        if isinstance(finding, of.MissingOutput) and self._inputs is not None:
            return self._of_output(finding, self._inputs)
        if isinstance(finding, of.AboutEvidence) and Path(finding.file).is_file():
            return whole(Path(finding.file))
        names = tuple(_names(finding))
        for place in _places(finding):
            found = self._of_place(place, names)
            if found is not None:
                return found
        return self._in_lock(finding)

    def _of_output(self, finding: of.MissingOutput, inputs: Inputs) -> Position:
        """Return where the spec lists the output that is missing; the beginning of the spec if it lists none."""
        file = Path(finding.helped or finding.file)
        paths = [self._lock.parent / output.path for output in inputs.spec.files]
        found = inputs.document.position(("outputs", paths.index(file)) if file in paths else ("outputs",))
        return Position(found.line, found.column, found.file or inputs.document.file)

    def _of_place(self, place: Place, names: tuple[str, ...]) -> Position | None:
        """Return a place with its column: that of the first of `names` in the line, else of the line's first character.

        None for the matrix, which is not of this repository, and for a file that does not exist.
        """
        if not place.line or place.file.startswith(_OF_MATRIX):
            return None
        folder = self._inputs.path.parent if self._inputs is not None else self._lock.parent
        for file in (Path(place.file), Path(os.path.normpath(folder / place.file))):
            lines = self._text(file)
            if place.line <= len(lines):
                return Position(place.line, _column(lines[place.line - 1], names), str(file))
        return None

    def _text(self, file: Path) -> list[str]:
        if file not in self._lines:
            try:
                text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
            except OSError:
                text = ""
            self._lines[file] = text.splitlines()
        return self._lines[file]

    def _in_lock(self, finding: Finding) -> Position:
        """Return the place of the entry of the lock that a finding is about, else the first line of the lock."""
        names = tuple(_names(finding))
        own = self._own
        for path in (*_of_lock(finding), *(one for stack in range(_MOST_STACKS) for one in _of_stack(finding, stack, names))):
            position = own.get(path) if own is not None else None
            if position is not None:
                return Position(position.line + self._lines_above, position.column, str(self._lock))
        entry = next((found for name in names if (found := self._package(name)) is not None), None)
        return entry or whole(self._lock)

    @cached_property
    def _content(self) -> str:
        return "\n".join(self._text(self._lock))

    @cached_property
    def _lines_above(self) -> int:
        return max(0, self._content.count("\n", 0, max(0, self._content.find(_OWN_TABLE) + 1)))

    @cached_property
    def _own(self) -> KeyPositions | None:
        """The keys of the table of this program, which ends a lock: reading the many packages above it takes long.

        None when there is no such table, or when it is no TOML.
        """
        begin = self._content.find(_OWN_TABLE)
        text = self._content[begin + 1 :]
        # A lock whose spec was read is TOML, and so is what begins with a header in it.
        is_read = self._inputs is not None and not any(quotes in self._content[:begin] for quotes in MULTILINE)
        return KeyPositions(text) if begin >= 0 and (is_read or is_toml(text)) else None

    def _package(self, name: str) -> Position | None:
        """Return the place of the version of a locked package; None if it is not locked."""
        pattern = rf'^name = "{re.escape(name)}"\n(?=version = )'
        match = re.search(pattern, self._content, re.MULTILINE)
        return None if match is None else Position(self._content.count("\n", 0, match.end()) + 1, 1, str(self._lock))


def _of_lock(finding: Finding) -> Iterator[KeyPath]:
    """Yield the key under `[tool.provision]` that a finding on a lock as a whole is about."""
    match finding:
        case of.EditedLock():
            yield (*_OWN, "digest")
        case of.NoSpec() | of.TwinLock():
            yield (*_OWN, "spec-file")
        case of.SharedName():
            yield (*_OWN, "name")


def _of_stack(finding: Finding, number: int, names: tuple[str, ...]) -> Iterator[KeyPath]:
    """Yield the keys of one stack that a finding is about, the most exact first."""
    stack: KeyPath = (*_OWN, "platforms", number)
    match finding:
        case of.OfUnstatedHosts(finding=difference):
            yield from _of_stack(difference, number, names)
        case of.OtherHostRequirement(object=fact):
            yield from ((*stack, "host-requirements", fact), (*stack, "host-requirements"))
        case of.OtherVariable(object=name):
            yield from ((*stack, "environment", name), (*stack, "environment"))
    yield from ((*stack, *keys) for kind, keys in _KEYS.items() if isinstance(finding, kind))
    yield from ((*stack, "stack", name) for name in names)


def _places(finding: Finding) -> Iterator[Place]:
    """Yield the lines that a finding names, the best first: its own, then those of the members of its conflict."""
    if finding.place is not None:
        yield finding.place
    match finding:
        case of.StaleStack(conflict=conflict) | of.NoLongerSolvable(conflict=conflict):
            yield from _of_conflict(conflict)
    by = getattr(finding, "by", None)
    match getattr(by, "source", None):
        case Place() as place:
            yield place
        case HostPlace(place=place):
            yield place


def _of_conflict(conflict: Conflict) -> Iterator[Place]:
    for member in sorted(conflict.members, key=lambda one: _KINDS.get(one.kind, len(_KINDS))):
        for source in member.sources:
            if isinstance(source, HostPlace):
                yield source.place
            elif isinstance(source, Place):
                yield source


def _names(finding: Finding) -> Iterator[str]:
    """Yield the components and distributions that a finding is about."""
    match finding:
        case of.StaleStack(conflict=conflict) | of.NoLongerSolvable(conflict=conflict):
            yield from (member.component for member in conflict.members if member.kind in _KINDS)
        case of.Unverified(doubt=doubt):
            yield doubt.component
        case of.VanishedFile(drift=drift) | of.ExchangedFile(drift=drift):
            yield drift.package.name
        case of.MissingPackage(object=name) | of.UnlockedDependency(object=name) | of.LockedTwice(object=name):
            yield name
    subjects = (getattr(finding, "subject", None), *getattr(finding, "subjects", ()))
    yield from (subject.name for subject in subjects if isinstance(subject, Subject))


def _column(line: str, names: tuple[str, ...]) -> int:
    """Return the column of the first of some names in a line, as a word of its own; else that of the first character."""
    for name in names:
        spelled = re.sub(r"[-_.]", "[-_.]", name)
        match = re.search(rf"(?<![\w-]){spelled}(?![\w-])", line, re.IGNORECASE) if name else None
        if match is not None:
            return match.start() + 1
    return len(line) - len(line.lstrip()) + 1
