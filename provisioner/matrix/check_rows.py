"""Checks shared by all kinds of matrix rows: needs name existing, later components, ranges are valid, facts cite sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from provisioner.components import ABSENT
from provisioner.matrix.need import NAMED_GUARDS, need_text
from provisioner.names import nearest
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from provisioner.errors import Mistake
    from provisioner.matrix.files import KeyPosition, MatrixFiles
    from provisioner.matrix.need import Need


class RowChecker:
    """A checker of parts of rows against the components and sources of one matrix; `at` is a part's position in its file."""

    def __init__(self, files: MatrixFiles) -> None:
        index = files.index.content
        self.components = index.components
        self._rank = {name: position for position, name in enumerate(index.order)}
        versions = {
            name: tuple(release.version for part in parts for release in part.content.releases)
            for name, parts in files.components.items()
        }
        self._releases = {
            name: found for name, found in versions.items() if files.components[name] and not self.components[name].virtual
        }
        self._names = {
            name: (*entry.values, *(version.text for version in versions[name]))
            for name, entry in self.components.items()
            if entry.named
        }
        # a file that could not be read may hold the source that looks missing, so absence proves nothing then
        self._sources = None if files.mistakes else {key for file in files.all_files for key in file.content.sources}

    def cited(self, at: KeyPosition, source: Collection[str], subject: str) -> Iterator[Mistake]:
        """Yield mistakes in the `source` of a row: no citation at all, or keys that are in no file's `sources`."""
        if not source:
            yield at.mistake(f"{subject} cites no source; add `source: [...]`")
        for below, key in at.each("source", source):
            if self._sources is not None and key not in self._sources:
                yield below.mistake(unknown(key, "source", self._sources))

    def version(self, at: KeyPosition, version: Version | None) -> Iterator[Mistake]:
        """Yield a mistake when a version does not start with a number."""
        if version is not None and not version.release:
            yield from _unread(at, version, Version.parse)

    def needs(
        self, at: KeyPosition, needs: Iterable[Need], *, subject: str = "", is_expected: bool = False
    ) -> Iterator[Mistake]:
        """Yield mistakes in the needs of `subject`, which may only need components after it in the order of the matrix.

        With the subject "", as for distributions, the position in the order is not checked. With `is_expected`, a need that no
        release meets is no mistake.
        """
        for need in needs:
            below = at.at(need.component)
            if need.component not in self.components and need.component != "platform":
                yield below.mistake(self._no_component(need.component))
                continue
            rank = self._rank.get(need.component, len(self._rank))
            if self._rank.get(subject, -1) >= rank and need.component != "platform":
                text = f"`{subject}` may not require `{need.component}`, which does not stand below it in the order"
                yield below.mistake(text)
            if not is_expected:
                yield from self._need(below, need)

    def condition(self, at: KeyPosition, needs: Iterable[Need]) -> Iterator[Mistake]:
        """Yield mistakes in the `when` of a row: unknown components, `same`, or versions that no release has."""
        for need in needs:
            below = at.at(need.component)
            if need.component not in self.components:
                yield below.mistake(self._no_component(need.component))
            else:
                yield from self._condition(below, need)

    def guards(self, at: KeyPosition, guards: Iterable[Need]) -> Iterator[Mistake]:
        """Yield mistakes in the `on` of a row, which may name only facts of the host or request known before solving starts."""
        for need in guards:
            below, entry = at.at(need.component), self.components.get(need.component)
            if need.component not in NAMED_GUARDS and (entry is None or not entry.virtual):
                known = (*sorted(name for name, one in self.components.items() if one.virtual), *NAMED_GUARDS)
                text = f"`{need.component}` is no host fact; a rule may depend on {', '.join(known)}"
                yield below.mistake(text)
            elif need_text(need) != ABSENT:
                yield from self._condition(below, need)

    def _no_component(self, name: str) -> str:
        near = nearest(name, self.components)
        advice = f"did you mean `{near}`?" if near else f"known are {', '.join(sorted(self.components))}"
        return f"there is no component `{name}`; {advice}"

    def _condition(self, at: KeyPosition, need: Need) -> Iterator[Mistake]:
        if need.is_same:
            yield at.mistake("`same` goes only with `require`: a condition has no subject to be the same as")
        else:
            yield from self._need(at, need)

    def _need(self, at: KeyPosition, need: Need) -> Iterator[Mistake]:
        if need.is_same:
            return
        if need.component in NAMED_GUARDS or need.component in self._names:
            yield from self._named(at, need)
            return
        names = [version for version in need.one_of if not version.release]
        releases = self._releases.get(need.component)
        if names:
            yield from _unread(at, names[0], Version.parse if at.text is None else Range.parse)
        elif releases is not None and not any(need.allows(version) or self._is_within(need, version) for version in releases):
            yield at.mistake(f"no release of `{need.component}` in this matrix is {at.text or need}, so this can never be met")

    def _is_within(self, need: Need, release: Version) -> bool:
        """Return whether a need has a bound within the series that a release stands for, such as a build of kernel 5.15."""
        numbers = self.components[need.component].series
        return numbers > 0 and any(one.version.release[:numbers] == release.release[:numbers] for one in need.range.clauses)

    def _named(self, at: KeyPosition, need: Need) -> Iterator[Mistake]:
        known = NAMED_GUARDS.get(need.component) or self._names[need.component]
        for name in [version.text for version in need.one_of] or [at.text or str(need)]:
            # an operating system is also named without its version: `ubuntu` is every Ubuntu
            if known and name not in known and not any(one.startswith(f"{name} ") for one in known):
                near = nearest(name, known)
                advice = f"did you mean `{near}`?" if near else f"known are {', '.join(known)}"
                yield at.mistake(f"`{name}` is no value of `{need.component}`; {advice}")


def _unread(at: KeyPosition, name: Version, parse: Callable[[str], object]) -> Iterator[Mistake]:
    """Yield the parser's error as a mistake, for a text that was read as a name because it is no valid version or range."""
    try:
        parse(name.text)
    except ValueError as error:
        yield at.mistake(str(error))


class Named(Protocol):
    """A row with a name of its own."""

    @property
    def name(self) -> str: ...


def twice(top: KeyPosition, key: str, rows: Iterable[Named], *, kind: str) -> Iterator[Mistake]:
    """Yield a mistake for each row of the list `key` with the name of an earlier row; `kind` is the noun for messages.

    `top` is the position of the mapping that contains the list.
    """
    lines: dict[str, int] = {}
    for at, row in top.each(key, rows):
        if row.name in lines:
            yield at.at("name").mistake(f"{kind} `{row.name}` is given twice", first=f"on line {lines[row.name]}")
        lines.setdefault(row.name, at.line)


def unknown(name: str, kind: str, known: Collection[str]) -> str:
    """Return the error message for an unknown name, with the nearest known name if there is one.

    Otherwise the message has all `known` names if they are at most 20, else the advice to add the name. `kind` is the noun for
    what is named, such as `component`.
    """
    near = nearest(name, known)
    advice = (
        f"did you mean `{near}`?"
        if near
        else f"known are {', '.join(sorted(known))}"
        if len(known) <= 20
        else f"add it to `{kind}s`"
    )
    return f"there is no {kind} `{name}`; {advice}"
