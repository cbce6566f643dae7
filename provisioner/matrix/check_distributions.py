"""Whether what a matrix says of Python distributions can be meant: their names, their specifiers, what they may need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.names import DISTRIBUTION_OF_COMPONENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pydantic import BaseModel

    from provisioner.document import KeyPath
    from provisioner.errors import Mistake
    from provisioner.matrix.check_needs import NeedChecker
    from provisioner.matrix.files import MatrixFiles, Parsed
    from provisioner.matrix.schema import Needs
    from provisioner.matrix.schema_distributions import DistributionEntry, DistributionFile, ImpliedEntry, LimitEntry

    Cited = Callable[[Parsed[BaseModel], KeyPath, Sequence[str], str], Iterator[Mistake]]

PYTORCH = "pytorch"
"""The component whose builds have a C++ ABI that extensions must share."""


def check_distributions(
    files: MatrixFiles, file: Parsed[DistributionFile], *, needs: NeedChecker, cited: Cited
) -> Iterator[Mistake]:
    """Every mistake of meaning in the file of distributions; `cited` judges the sources of one entry."""
    yield from _Checker(files, file, needs=needs, cited=cited).mistakes()


class _Checker:
    def __init__(self, files: MatrixFiles, file: Parsed[DistributionFile], *, needs: NeedChecker, cited: Cited) -> None:
        self.components = files.index.content.components
        self.file = file
        self.needs = needs
        self.cited = cited

    def mistakes(self) -> Iterator[Mistake]:
        content = self.file.content
        yield from self.file.repeated("distributions", "distribution", [entry.name for entry in content.distributions])
        yield from self.file.repeated("limits", "limit", [entry.name for entry in content.limits])
        for index, entry in enumerate(content.distributions):
            yield from self._distribution(("distributions", index), entry)
        for index, limit in enumerate(content.limits):
            yield from self._limit(("limits", index), limit)

    def _distribution(self, path: KeyPath, entry: DistributionEntry) -> Iterator[Mistake]:
        yield from self._name((*path, "name"), entry.name)
        yield from self._specifier((*path, "versions"), entry.versions)
        if entry.compiled_against:
            yield from self._framework((*path, "compiled_against"), entry.compiled_against)
        if entry.gpu_twin:
            yield from self._spelled((*path, "gpu_twin"), entry.gpu_twin)
        if not (entry.compiled_against or entry.implies or entry.gpu_twin):
            text = f"distribution `{entry.name}` says nothing; give `compiled_against`, `implies` or `gpu_twin`"
            yield self.file.mistake(path, text)
        if entry.compiled_against or entry.source:
            yield from self.cited(self.file, path, entry.source, f"distribution `{entry.name}`")
        for index, row in enumerate(entry.implies):
            yield from self._implied((*path, "implies", index), entry.name, row)

    def _implied(self, path: KeyPath, name: str, row: ImpliedEntry) -> Iterator[Mistake]:
        yield from self._specifier((*path, "versions"), row.versions)
        if not (row.require or row.packages or row.brings or row.cxx11_abi is not None):
            yield self.file.mistake((*path, "require"), f"`{name}` {row.versions} implies nothing")
        if row.cxx11_abi is not None:
            yield from self._framework((*path, "cxx11_abi"), PYTORCH)
        yield from self._in_a_container((*path, "require"), row.require)
        yield from self.needs.needs(self.file, (*path, "require"), row.require, subject="")
        for other, specifier in row.packages.items():
            yield from self._name((*path, "packages", other), other)
            yield from self._specifier((*path, "packages", other), specifier, is_needed=True)
        for component in row.brings:
            if component != "cuda":
                text = f"a distribution may bring a `cuda` of its own, not `{component}`"
                yield self.file.mistake((*path, "brings", component), text)
        yield from self.needs.needs(self.file, (*path, "brings"), row.brings, subject="")
        yield from self.cited(self.file, path, row.source, f"what `{name}` {row.versions} implies")

    def _in_a_container(self, path: KeyPath, needs: Needs) -> Iterator[Mistake]:
        """A package brings what it needs along; a host it cannot bring. Which glibc it runs on its tag says, or does not."""
        for component in needs:
            known = self.components.get(component)
            if known is not None and component != "glibc" and (known.virtual or component == "image"):
                text = f"`{component}` belongs to the host or the image, which a distribution cannot choose"
                yield self.file.mistake((*path, component), text)

    def _limit(self, path: KeyPath, limit: LimitEntry) -> Iterator[Mistake]:
        if len(limit.when) != 1:
            text = f"limit `{limit.name}` must have one component in `when`, it has {len(limit.when)}"
            yield self.file.mistake((*path, "when"), text)
        for component in limit.when:
            found = tuple(self._framework((*path, "when", component), component))
            yield from found or self.needs.condition(self.file, (*path, "when"), {component: limit.when[component]})
        for component in limit.on:
            if component != "platform":
                text = f"a limit may depend on `platform` only, not on `{component}`"
                yield self.file.mistake((*path, "on", component), text)
            else:
                yield from self.needs.guards(self.file, (*path, "on"), {component: limit.on[component]})
        if len(limit.allow) != 1:
            text = f"limit `{limit.name}` must have one distribution in `allow`, it has {len(limit.allow)}"
            yield self.file.mistake((*path, "allow"), text)
        for name, specifier in limit.allow.items():
            yield from self._name((*path, "allow", name), name)
            yield from self._specifier((*path, "allow", name), specifier, is_needed=True)
        yield from self.cited(self.file, path, limit.source, f"limit `{limit.name}`")

    def _spelled(self, path: KeyPath, name: str) -> Iterator[Mistake]:
        if canonicalize_name(name) != name:
            yield self.file.mistake(path, f"`{name}` is spelled `{canonicalize_name(name)}` by indexes")

    def _name(self, path: KeyPath, name: str) -> Iterator[Mistake]:
        yield from self._spelled(path, name)
        if name in DISTRIBUTION_OF_COMPONENT.values():
            yield self.file.mistake(path, f"`{name}` is a component of the matrix; write a rule about the component")

    def _specifier(self, path: KeyPath, text: str, *, is_needed: bool = False) -> Iterator[Mistake]:
        try:
            found = SpecifierSet(text)
        except InvalidSpecifier:
            yield self.file.mistake(path, f"`{text}` is not a version specifier such as >=1.0,<2 or ==1.*")
            return
        if is_needed and not len(found):
            yield self.file.mistake(path, "a limit that allows every version limits nothing")

    def _framework(self, path: KeyPath, component: str) -> Iterator[Mistake]:
        if component not in DISTRIBUTION_OF_COMPONENT:
            known = ", ".join(sorted(DISTRIBUTION_OF_COMPONENT))
            yield self.file.mistake(path, f"`{component}` is not installed from a wheel of its own; known are {known}")
        elif component not in self.components:
            yield self.file.mistake(path, f"`{component}` is not in this matrix")
