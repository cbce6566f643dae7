"""Whether the ranges of a matrix are ranges, name components that exist, and point down the order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.names import nearest
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

    from provisioner.document import KeyPath
    from provisioner.errors import Mistake
    from provisioner.matrix.files import MatrixFiles, Parsed
    from provisioner.matrix.schema import Needs

GUARDS = ("gpu", "driver", "kernel", "platform")
"""Host facts that are known before solving, so that a rule may depend on them."""

PLATFORMS = ("linux/amd64", "linux/arm64", "macos/arm64", "macos/x86_64")


class NeedChecker:
    """Checks ranges and version lists against the components of one matrix."""

    def __init__(self, files: MatrixFiles) -> None:
        index = files.index.content
        self._components = index.components
        self._rank = {name: position for position, name in enumerate(index.order)}
        self._releases = {
            name: tuple(version for release in file.content.releases if (version := _parsed(release.version)) is not None)
            for name, file in files.components.items()
            if not index.components[name].virtual
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
            yield from self._value(file, (*path, component), component, value)

    def guards(self, file: Parsed[BaseModel], path: KeyPath, guards: Needs) -> Iterator[Mistake]:
        """Mistakes of a rule's `on`: only host facts, because they are settled before solving starts."""
        for component, value in guards.items():
            if component not in GUARDS:
                text = f"`{component}` is no host fact; a rule may depend on {', '.join(GUARDS)}"
                yield file.mistake((*path, component), text)
                continue
            yield from self._value(file, (*path, component), component, value)

    def _value(self, file: Parsed[BaseModel], path: KeyPath, component: str, value: str | tuple[str, ...]) -> Iterator[Mistake]:
        entry = self._components.get(component)
        if component == "platform" or (entry is not None and entry.named):
            yield from self._names(file, path, component, value)
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

    def _names(self, file: Parsed[BaseModel], path: KeyPath, component: str, value: str | tuple[str, ...]) -> Iterator[Mistake]:
        known = PLATFORMS if component == "platform" else self._components[component].values
        for name in (value,) if isinstance(value, str) else value:
            if name not in known:
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
