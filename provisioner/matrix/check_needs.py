"""Whether the ranges of a matrix are ranges, name components that exist, and point down the order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.matrix.guards import ABSENT, NAMED_GUARDS, SAME
from provisioner.names import nearest
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

    from provisioner.document import KeyPath
    from provisioner.errors import Mistake
    from provisioner.matrix.files import MatrixFiles, Parsed
    from provisioner.matrix.schema import Needs


class NeedChecker:
    """Checks ranges and version lists against the components of one matrix."""

    def __init__(self, files: MatrixFiles) -> None:
        index = files.index.content
        self._components = index.components
        self._rank = {name: position for position, name in enumerate(index.order)}
        self._releases = {
            name: tuple(
                version
                for file in parts
                for release in file.content.releases
                if (version := _parsed(release.version)) is not None
            )
            for name, parts in files.components.items()
            if not index.components[name].virtual and parts
        }
        self._names = {
            name: (*entry.values, *(row.version for file in files.components.get(name, ()) for row in file.content.releases))
            for name, entry in index.components.items()
            if entry.named
        }

    def version(self, file: Parsed[BaseModel], path: KeyPath, text: str) -> tuple[Version | None, tuple[Mistake, ...]]:
        """The version a text spells, or the mistake it is."""
        try:
            return Version.parse(text), ()
        except ValueError as error:
            return None, (file.mistake(path, str(error)),)

    def needs(self, file: Parsed[BaseModel], path: KeyPath, needs: Needs, *, subject: str) -> Iterator[Mistake]:
        """Mistakes of a `requires` or `require` mapping of `subject`."""
        for component, value in needs.items():
            below = (*path, component)
            if component == "platform":
                yield from self._value(file, below, component, value)
                continue
            if component not in self._components:
                yield file.mistake(below, self._unknown(component))
                continue
            if self._rank.get(subject, -1) >= self._rank.get(component, len(self._rank)):
                text = f"`{subject}` may not require `{component}`, which does not stand below it in the order"
                yield file.mistake(below, text)
            yield from self._value(file, below, component, value)

    def condition(self, file: Parsed[BaseModel], path: KeyPath, when: Needs) -> Iterator[Mistake]:
        """Mistakes of a rule's `when`."""
        for component, value in when.items():
            if component not in self._components:
                yield file.mistake((*path, component), self._unknown(component))
                continue
            yield from self._condition(file, (*path, component), component, value)

    def guards(self, file: Parsed[BaseModel], path: KeyPath, guards: Needs) -> Iterator[Mistake]:
        """Mistakes of a rule's `on`: only facts of the host and the request, which are settled before solving starts."""
        for component, value in guards.items():
            entry = self._components.get(component)
            if component not in NAMED_GUARDS and (entry is None or not entry.virtual):
                known = (*sorted(name for name, one in self._components.items() if one.virtual), *NAMED_GUARDS)
                text = f"`{component}` is no host fact; a rule may depend on {', '.join(known)}"
                yield file.mistake((*path, component), text)
            elif value != ABSENT:
                yield from self._condition(file, (*path, component), component, value)

    def _condition(
        self, file: Parsed[BaseModel], path: KeyPath, component: str, value: str | tuple[str, ...]
    ) -> Iterator[Mistake]:
        if value == SAME:
            yield file.mistake(path, "`same` goes only with `require`: a condition has no subject to be the same as")
        else:
            yield from self._value(file, path, component, value)

    def _value(self, file: Parsed[BaseModel], path: KeyPath, component: str, value: str | tuple[str, ...]) -> Iterator[Mistake]:
        if value == SAME:
            return
        if component in NAMED_GUARDS or component in self._names:
            yield from self._named(file, path, component, value)
            return
        try:
            if isinstance(value, str):
                wanted = Range.parse(value)
                is_known = any(wanted.allows(version) for version in self._releases.get(component, ()))
            else:
                versions = [Version.parse(text) for text in value]
                is_known = any(version in versions for version in self._releases.get(component, ()))
        except ValueError as error:
            yield file.mistake(path, str(error))
            return
        if component in self._releases and not is_known:
            shown = value if isinstance(value, str) else " or ".join(value)
            yield file.mistake(path, f"no release of `{component}` in this matrix is {shown}, so this can never be met")

    def _named(self, file: Parsed[BaseModel], path: KeyPath, component: str, value: str | tuple[str, ...]) -> Iterator[Mistake]:
        known = NAMED_GUARDS.get(component) or self._names[component]
        for name in (value,) if isinstance(value, str) else value:
            # an operating system is also named without its version: `ubuntu` is every Ubuntu
            if known and name not in known and not any(one.startswith(f"{name} ") for one in known):
                near = nearest(name, known)
                advice = f"did you mean `{near}`?" if near else f"known are {', '.join(known)}"
                yield file.mistake(path, f"`{name}` is no value of `{component}`; {advice}")

    def _unknown(self, component: str) -> str:
        near = nearest(component, self._components)
        advice = f"did you mean `{near}`?" if near else f"known are {', '.join(sorted(self._components))}"
        return f"there is no component `{component}`; {advice}"


def _parsed(text: str) -> Version | None:
    try:
        return Version.parse(text)
    except ValueError:
        return None
