"""Consistency checks of a matrix's rows on Python distributions: names, specifiers, requirements, shared files, GPU code."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from provisioner.matrix.check_rows import twice
from provisioner.names import DISTRIBUTION_OF_COMPONENT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from provisioner.errors import Mistake
    from provisioner.matrix.check_rows import RowChecker
    from provisioner.matrix.files import KeyPosition, MatrixFiles
    from provisioner.matrix.model import (
        DeclaredTargets,
        Distribution,
        DistributionLimit,
        FileOwner,
        GpuWheel,
        ImpliedNeed,
        NeededToUse,
        OpenedFiles,
        OptionalLibraries,
        PublishedWheels,
        SharedFile,
        ToolkitFile,
    )

PYTORCH = "pytorch"
"""The component whose builds have a C++ ABI that extensions must share."""

PLACES = frozenset({"pytorch", "build", "abi", "python"})
"""The names of the places in the address of published wheels."""


def check_distributions(files: MatrixFiles, rows: RowChecker) -> Iterator[Mistake]:
    """Yield every inconsistency in the matrix's files of distributions and of shared files."""
    checker = _Checker(rows)
    top, content = files.distributions.at(), files.distributions.content
    yield from twice(top, "distributions", content.distributions, kind="distribution")
    measured = {soname for wheel in files.wheels.content.wheels for soname in wheel.provides}
    known = measured.union(file.name for file in content.toolkit_files)
    for at, distribution in top.each("distributions", content.distributions):
        yield from checker.distribution(at, distribution)
        for below, opened in at.each("opens", distribution.opens):
            yield from checker.opened(below, distribution.name, opened, known=known)
        for below, optional in at.each("optional", distribution.optional):
            yield from checker.optional(below, distribution.name, optional, wheels=files.wheels.content.wheels)
    yield from twice(top, "toolkit_files", content.toolkit_files, kind="file of the toolkit")
    for at, file in top.each("toolkit_files", content.toolkit_files):
        yield from checker.toolkit_file(at, file)
    yield from twice(top, "limits", content.limits, kind="limit")
    for at, limit in top.each("limits", content.limits):
        yield from checker.limit(at, limit)
    yield from twice(top, "published", content.published, kind="row of published wheels")
    for at, published in top.each("published", content.published):
        yield from checker.published(at, published)
    yield from twice(top, "declared", content.declared, kind="row of declared targets")
    for at, declared in top.each("declared", content.declared):
        yield from checker.declared(at, declared)
    top, shared_files = files.hazards.at(), files.hazards.content.shared_files
    yield from twice(top, "shared_files", shared_files, kind="shared file")
    for at, shared in top.each("shared_files", shared_files):
        yield from _shared_file(at, shared)
        yield from rows.cited(at, shared.source, f"shared file `{shared.name}`")
    wheels = files.wheels.content.wheels
    for number, (at, wheel) in enumerate(files.wheels.at().each("wheels", wheels)):
        yield from _wheel(at, wheel, wheels[:number])
        yield from rows.cited(at, wheel.source, f"GPU wheel `{wheel.distribution}` {wheel.versions}")
    yield from _system(files, rows)


def _system(files: MatrixFiles, rows: RowChecker) -> Iterator[Mistake]:
    """Yield every inconsistency in what wheels need of the system, and in the packages that have it."""
    top, content = files.system_packages.at(), files.system_packages.content
    known = {row.soname for row in content.libraries if not row.everywhere}
    tools = {row.name for row in content.tools}
    first: set[str] = set()
    for at, library in top.each("libraries", content.libraries):
        if library.soname in first:
            yield at.at("soname").mistake(f"library `{library.soname}` is given twice")
        first.add(library.soname)
        if library.everywhere == bool(library.packages):
            yield at.mistake(f"library `{library.soname}` wants either `packages` or `everywhere`")
        yield from rows.cited(at, library.source, f"library `{library.soname}`")
    yield from twice(top, "tools", content.tools, kind="tool")
    for at, tool in top.each("tools", content.tools):
        yield from rows.cited(at, tool.source, f"tool `{tool.name}`")
    for at, need in top.each("needs", content.needs):
        yield from _normalized(at.at("distribution"), need.distribution)
        yield from _specifier(at.at("versions"), need.versions)
        if not (need.libraries or need.tools):
            yield at.mistake(f"`{need.distribution}` {need.versions} needs nothing; give `libraries` or `tools`")
        yield from _unknown_names(at.at("libraries"), need.libraries, known, kind="library")
        yield from _unknown_names(at.at("tools"), need.tools, tools, kind="tool")
        yield from rows.cited(at, need.source, f"what `{need.distribution}` {need.versions} needs of the system")
    for at, wheel in files.system_wheels.at().each("wheels", files.system_wheels.content.wheels):
        yield from _normalized(at.at("distribution"), wheel.distribution)
        yield from _specifier(at.at("versions"), wheel.versions)
        for artefact in wheel.artefacts:
            yield from _artefact(at.at("artefacts", artefact), artefact, wheel.distribution)
        yield from rows.cited(at, wheel.source, f"wheel `{wheel.distribution}` {wheel.versions}")


def _unknown_names(at: KeyPosition, names: Iterable[str], known: Collection[str], *, kind: str) -> Iterator[Mistake]:
    for index, name in enumerate(names):
        if name not in known:
            yield at.at(index).mistake(f"there is no {kind} `{name}` among the system's packages")


class _Checker:
    def __init__(self, rows: RowChecker) -> None:
        self._rows = rows

    def distribution(self, at: KeyPosition, row: Distribution) -> Iterator[Mistake]:
        yield from _ordinary(at.at("name"), row.name)
        yield from _specifier(at.at("versions"), row.versions)
        if row.compiled_against:
            yield from self._framework(at.at("compiled_against"), row.compiled_against)
        if row.gpu_twin:
            yield from _normalized(at.at("gpu_twin"), row.gpu_twin)
        on_gpus = row.gpu_twin or row.gpu_wheels
        if not (row.compiled_against or row.implies or row.loads or row.opens or row.optional or on_gpus or row.used):
            keys = "`compiled_against`, `implies`, `loads`, `opens`, `optional`, `used`, `gpu_twin` or `gpu_wheels`"
            text = f"distribution `{row.name}` says nothing; give {keys}"
            yield at.mistake(text)
        if row.compiled_against or on_gpus or row.source:
            yield from self._rows.cited(at, row.source, f"distribution `{row.name}`")
        for below, implied in at.each("implies", row.implies):
            yield from self._implied(below, row.name, implied)
        if row.used is not None:
            yield from self._used(at.at("used"), row.name, row.used)
        for below, loading in at.each("loads", row.loads):
            yield from _specifier(below.at("versions"), loading.versions)
            yield from self._rows.cited(below, loading.source, f"what `{row.name}` {loading.versions} loads")

    def opened(self, at: KeyPosition, name: str, row: OpenedFiles, *, known: Collection[str]) -> Iterator[Mistake]:
        yield from _specifier(at.at("versions"), row.versions)
        for index, file in enumerate(row.files):
            if file not in known:
                yield at.at("files", index).mistake(
                    f"no measured wheel contains `{file}`, and `toolkit_files` has none of that name"
                )
        if not row.files:
            yield at.at("files").mistake(f"`{name}` {row.versions} opens nothing; give `files`")
        yield from self._rows.cited(at, row.source, f"what `{name}` {row.versions} opens")

    def optional(self, at: KeyPosition, name: str, row: OptionalLibraries, *, wheels: Iterable[GpuWheel]) -> Iterator[Mistake]:
        used = {soname for wheel in wheels if wheel.distribution == name for soname in (*wheel.links, *wheel.opens)}
        yield from _specifier(at.at("versions"), row.versions)
        for index, soname in enumerate(row.libraries):
            if soname not in used:
                yield at.at("libraries", index).mistake(f"no measured wheel of `{name}` links or opens `{soname}`")
        if not row.libraries:
            yield at.at("libraries").mistake(f"`{name}` {row.versions} can do without nothing; give `libraries`")
        yield from self._rows.cited(at, row.source, f"what `{name}` {row.versions} can do without")

    def toolkit_file(self, at: KeyPosition, row: ToolkitFile) -> Iterator[Mistake]:
        for index, distribution in enumerate(row.wheels):
            yield from _normalized(at.at("wheels", index), distribution)
        for kind, releases in row.images.items():
            yield from _specifier(at.at("images", kind), releases)
        yield from self._rows.cited(at, row.source, f"file `{row.name}` of the toolkit")

    def _used(self, at: KeyPosition, name: str, row: NeededToUse) -> Iterator[Mistake]:
        if [need.component for need in row.require] != ["gpu"]:
            yield at.at("require").mistake("what is needed to use a distribution is a `gpu`, and nothing else")
        yield from self._rows.needs(at.at("require"), row.require)
        yield from self._rows.cited(at, row.source, f"what `{name}` needs to be used")

    def _implied(self, at: KeyPosition, name: str, row: ImpliedNeed) -> Iterator[Mistake]:
        yield from _specifier(at.at("versions"), row.versions)
        if not (row.require or row.packages or row.brings or row.cxx11_abi is not None):
            yield at.at("require").mistake(f"`{name}` {row.versions} implies nothing")
        if row.cxx11_abi is not None:
            yield from self._framework(at.at("cxx11_abi"), PYTORCH)
        for need in row.require:
            # a package cannot choose its host or image, but it may need a glibc or a GPU that its platform tag does not state
            known = self._rows.components.get(need.component)
            if known is not None and need.component not in {"glibc", "gpu"} and (known.virtual or need.component == "image"):
                text = f"`{need.component}` belongs to the host or the image, which a distribution cannot choose"
                yield at.at("require", need.component).mistake(text)
        yield from self._rows.needs(at.at("require"), row.require)
        for other, specifier in row.packages.items():
            yield from _ordinary(at.at("packages", other), other)
            yield from _specifier(at.at("packages", other), specifier, is_needed=True)
        for need in row.brings:
            if need.component != "cuda":
                text = f"a distribution may bring a `cuda` of its own, not `{need.component}`"
                yield at.at("brings", need.component).mistake(text)
        yield from self._rows.needs(at.at("brings"), row.brings)
        yield from self._rows.cited(at, row.source, f"what `{name}` {row.versions} implies")

    def limit(self, at: KeyPosition, limit: DistributionLimit) -> Iterator[Mistake]:
        subject = limit.when.component
        wrong = tuple(self._framework(at.at("when", subject), subject))
        yield from wrong or self._rows.condition(at.at("when"), [limit.when])
        for guard in limit.on:
            if guard.component != "platform":
                text = f"a limit may depend on `platform` only, not on `{guard.component}`"
                yield at.at("on", guard.component).mistake(text)
            else:
                yield from self._rows.guards(at.at("on"), [guard])
        if len(limit.allow) != 1:
            text = f"limit `{limit.name}` must have one distribution in `allow`, it has {len(limit.allow)}"
            yield at.at("allow").mistake(text)
        for name, specifier in limit.allow.items():
            yield from _ordinary(at.at("allow", name), name)
            yield from _specifier(at.at("allow", name), specifier, is_needed=True)
        yield from self._rows.cited(at, limit.source, f"limit `{limit.name}`")

    def published(self, at: KeyPosition, row: PublishedWheels) -> Iterator[Mistake]:
        for index, name in enumerate(row.distributions):
            yield from _ordinary(at.at("distributions", index), name)
        places = set(re.findall(r"\{(\w*)\}", row.address))
        unknown = sorted(places - PLACES)
        if unknown:
            named = ", ".join(f"{{{one}}}" for one in sorted(PLACES))
            yield at.at("address").mistake(f"`{{{unknown[0]}}}` is no place of an address; known are {named}")
        if row.is_index == bool(row.builds):
            yield at.at("address").mistake(f"`{row.name}` needs `builds`, or `is_index: true`, and not both")
        for pytorch in row.builds:
            if not re.fullmatch(r"\d+\.\d+", pytorch):
                yield at.at("builds", pytorch).mistake(f"`{pytorch}` is no series of PyTorch, such as 2.8")
        yield from self._rows.cited(at, row.source, f"published wheels `{row.name}`")

    def declared(self, at: KeyPosition, row: DeclaredTargets) -> Iterator[Mistake]:
        for index, name in enumerate(row.distributions):
            yield from _ordinary(at.at("distributions", index), name)
        yield from _specifier(at.at("versions"), row.versions)
        for build, code in row.builds.items():
            if not re.fullmatch(r"cu\d+", build):
                yield at.at("builds", build).mistake(f"`{build}` is no name of a build for CUDA, such as cu12 or cu128")
            if not (code.sass or code.ptx):
                yield at.at("builds", build).mistake(f"`{row.name}` declares no target for {build}")
        yield from self._rows.cited(at, row.source, f"declared targets `{row.name}`")

    def _framework(self, at: KeyPosition, component: str) -> Iterator[Mistake]:
        if component not in DISTRIBUTION_OF_COMPONENT:
            known = ", ".join(sorted(DISTRIBUTION_OF_COMPONENT))
            yield at.mistake(f"`{component}` is not installed from a wheel of its own; known are {known}")
        elif component not in self._rows.components:
            yield at.mistake(f"`{component}` is not in this matrix")


def _shared_file(at: KeyPosition, shared: SharedFile) -> Iterator[Mistake]:
    names = [owner.distribution for owner in shared.owners]
    if len(set(names)) < 2:
        yield at.at("owners").mistake(f"shared file `{shared.name}` must have two owners or more")
    if len({owner.content for owner in shared.owners}) == 1 and len(names) > 1:
        text = f"all owners of `{shared.path}` have the same content, so it does not matter whose is in effect"
        yield at.at("owners").mistake(text)
    for number, (below, owner) in enumerate(at.each("owners", shared.owners)):
        if owner.distribution in names[:number]:
            yield below.at("distribution").mistake(f"`{owner.distribution}` is an owner already")
        yield from _owner(below, owner)


def _owner(at: KeyPosition, owner: FileOwner) -> Iterator[Mistake]:
    yield from _normalized(at.at("distribution"), owner.distribution)
    yield from _artefact(at.at("artefact"), owner.artefact, owner.distribution)
    if not owner.sha256:
        yield at.at("sha256").mistake(f"what was measured in `{owner.artefact}` needs the wheel's sha256")
    yield from _specifier(at.at("versions"), owner.versions)


def _wheel(at: KeyPosition, wheel: GpuWheel, before: Sequence[GpuWheel]) -> Iterator[Mistake]:
    """Yield the mistakes of a row of GPU code; `before` are the rows above it, which may not be on the same artefact."""
    yield from _normalized(at.at("distribution"), wheel.distribution)
    yield from _specifier(at.at("versions"), wheel.versions)
    yield from _specifier(at.at("numpy"), wheel.numpy)
    if not wheel.artefacts:
        yield at.at("artefacts").mistake(f"GPU wheel `{wheel.distribution}` {wheel.versions} names no wheel that was measured")
    for artefact, sha256 in wheel.artefacts.items():
        below = at.at("artefacts", artefact)
        yield from _artefact(below, artefact, wheel.distribution)
        if not sha256:
            yield below.mistake(f"what was measured in `{artefact}` needs the wheel's sha256")
        if any(artefact in one.artefacts for one in before):
            yield below.mistake(f"`{artefact}` is measured in a row above already")
        with suppress(InvalidSpecifier, InvalidWheelFilename):
            _, version, _, _ = parse_wheel_filename(artefact)
            if not SpecifierSet(wheel.versions).contains(version, prereleases=True):
                yield below.mistake(f"`{artefact}` is of none of the releases {wheel.versions}")


def _artefact(at: KeyPosition, artefact: str, distribution: str) -> Iterator[Mistake]:
    is_its_own = canonicalize_name(artefact.partition("-")[0]) == canonicalize_name(distribution)
    if not is_its_own or not artefact.endswith(".whl"):
        yield at.mistake(f"`{artefact}` is not a wheel of `{distribution}`")


def _normalized(at: KeyPosition, name: str) -> Iterator[Mistake]:
    if canonicalize_name(name) != name:
        yield at.mistake(f"`{name}` is spelled `{canonicalize_name(name)}` by indexes")


def _ordinary(at: KeyPosition, name: str) -> Iterator[Mistake]:
    yield from _normalized(at, name)
    if name in DISTRIBUTION_OF_COMPONENT.values():
        yield at.mistake(f"`{name}` is a component of the matrix; write a rule about the component")


def _specifier(at: KeyPosition, text: str, *, is_needed: bool = False) -> Iterator[Mistake]:
    try:
        found = SpecifierSet(text)
    except InvalidSpecifier:
        yield at.mistake(f"`{text}` is not a version specifier such as >=1.0,<2 or ==1.*")
        return
    if is_needed and not len(found):
        yield at.mistake("a limit that allows every version limits nothing")
