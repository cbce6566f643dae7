"""Consistency checks of a matrix beyond its schema: unknown names, rules against the order, duplicates, missing citations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.matrix.check_distributions import check_distributions
from provisioner.matrix.check_failures import check_failures
from provisioner.matrix.check_rows import RowChecker, twice, unknown
from provisioner.matrix.need import OF_REQUESTS, Need, need_of, need_text, read_version
from provisioner.strict_model import without_defaults
from provisioner.versions import Range, series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.errors import Mistake
    from provisioner.matrix.files import KeyPosition, MatrixFiles
    from provisioner.matrix.model import Build, Kernels, Release, Rule
    from provisioner.versions import Version


def check(files: MatrixFiles) -> tuple[Mistake, ...]:
    """Return every inconsistency of the matrix files that could be read; () when there is none."""
    checker = _Checker(files)
    return (*checker.mistakes(), *check_failures(files, checker.rows), *check_distributions(files, checker.rows))


class _Checker:
    def __init__(self, files: MatrixFiles) -> None:
        self.files = files
        self.rows = RowChecker(files)
        self._rules: dict[str, KeyPosition] = {}

    def mistakes(self) -> Iterator[Mistake]:
        yield from self._order()
        yield from self._sources()
        for name in self.files.components:
            yield from self._releases(name)
            for file in self.files.components[name]:
                yield from self._kernels(file.at("kernels"), file.content.kernels, name)
                for at, row in file.at().each("sonames", file.content.sonames):
                    yield from self.rows.cited(at, row.source, f"sonames of `{name}`")
                for at, rule in file.at().each("rules", file.content.rules):
                    yield from self._rule(at, rule, name)
        yield from self._families()
        yield from self._branches()
        yield from self._gpus()
        yield from self._performance()
        yield from self._images()
        yield from self._python_builds()
        yield from self._knowledge()
        yield from self._driver_packages()
        yield from self._host_packages()

    def _order(self) -> Iterator[Mistake]:
        index = self.files.index
        known = index.content.components
        order = index.content.order
        for position, name in enumerate(order):
            at = index.at("order", position)
            if name in order[:position]:
                yield at.mistake(f"`{name}` stands in the order twice")
            if name not in known:
                yield at.mistake(unknown(name, "component", known))
        for name, entry in known.items():
            at = index.at("components", name)
            if name not in order:
                yield at.mistake(f"`{name}` is missing in `order`, so no rule can point to it")
            for below, value in at.each("values", entry.values):
                yield from self._name(below, read_version(value), name)

    def _families(self) -> Iterator[Mistake]:
        index = self.files.index
        first: dict[tuple[str, str], KeyPosition] = {}
        for at, family in index.at().each("families", index.content.families):
            for key in ("subject", "object"):
                if getattr(family, key) not in index.content.components:
                    yield at.at(key).mistake(unknown(getattr(family, key), "component", index.content.components))
            pair = family.subject, family.object
            if pair in first:
                twice_given = f"the family of `{family.subject}` and `{family.object}` is given twice"
                yield at.at("subject").mistake(twice_given, first=f"on line {first[pair].line}")
            first.setdefault(pair, at)
            yield from self.rows.guards(at.at("on"), family.on)
            for guard in family.on:
                if guard.component not in OF_REQUESTS:
                    text = f"a family may depend on {', '.join(OF_REQUESTS)} only, not on `{guard.component}`"
                    yield at.at("on", guard.component).mistake(text)

    def _sources(self) -> Iterator[Mistake]:
        first: dict[str, KeyPosition] = {}
        for file in self.files.all_files:
            for key in file.content.sources:
                at = file.at("sources", key)
                if key in first:
                    yield at.mistake(f"source `{key}` is given twice", first=str(first[key]))
                first.setdefault(key, at)

    def _releases(self, name: str) -> Iterator[Mistake]:
        first: dict[Version, tuple[KeyPosition, Release]] = {}
        builds: dict[Version, dict[tuple[str, str, str], KeyPosition]] = {}
        for file in self.files.components[name]:
            for at, release in file.at().each("releases", file.content.releases):
                if not self.files.index.content.components[name].named:
                    yield from self.rows.version(at.at("version"), release.version)
                else:
                    yield from self._name(at.at("version"), release.version, name)
                if release.version in first:
                    yield from self._again(at, release, *first[release.version])
                first.setdefault(release.version, (at, release))
                yield from self._release(at, release, name)
                for below, build in at.each("builds", release.builds):
                    yield from self._build(below, build, release, subject=name)
                    yield from _duplicate(below, build, builds.setdefault(release.version, {}))

    def _name(self, at: KeyPosition, value: Version, component: str) -> Iterator[Mistake]:
        if value.release:
            yield at.mistake(f"`{value}` starts with a number, and the values of `{component}` are names")

    def _again(self, at: KeyPosition, release: Release, place: KeyPosition, first: Release) -> Iterator[Mistake]:
        """Yield the mistakes of a repeated release: only another file of the component may repeat it, and only to add builds.

        `first` is the earlier release, at `place`.
        """
        if place.file is at.file:
            same = f"the same as `{first.version}`" if first.version.text != release.version.text else "given twice"
            yield at.at("version").mistake(f"release `{release.version}` is {same}", first=f"on line {place.line}")
            return
        extra = sorted(without_defaults(release).keys() - {"version", "builds", "source"})
        if extra or not release.builds:
            text = f"release `{release.version}` is described already; here it may only add builds, not {', '.join(extra)}"
            yield at.at(extra[0] if extra else "version").mistake(text, first=str(place))

    def _release(self, at: KeyPosition, release: Release, name: str) -> Iterator[Mistake]:
        yield from self.rows.needs(at.at("requires"), release.requires, subject=name)
        yield from self.rows.needs(at.at("expects"), release.expects, subject=name, is_expected=True)
        if not release.builds or release.source:
            yield from self.rows.cited(at, release.source, f"release `{release.version}`")
        if release.driver is not None:
            yield from self.rows.version(at.at("driver", "toolkit"), release.driver.toolkit)
            yield from self.rows.version(at.at("driver", "minor_version"), release.driver.minor_version)
        for below, row in at.each("patched", release.patched):
            yield from self.rows.condition(below, [Need(component="kernel", range=row.kernel)])
            yield from self.rows.cited(below, row.source, f"patched `{release.version}`")

    def _build(self, at: KeyPosition, build: Build, release: Release, *, subject: str) -> Iterator[Mistake]:
        yield from self.rows.needs(at.at("requires"), build.requires, subject=subject)
        yield from self.rows.needs(at.at("expects"), build.expects, subject=subject, is_expected=True)
        if not release.source or build.source:
            yield from self.rows.cited(at, build.source, f"build `{build.name}` of `{release.version}`")

    def _kernels(self, at: KeyPosition, kernels: Kernels | None, name: str) -> Iterator[Mistake]:
        if kernels is not None:
            known = self.files.index.content.components
            if kernels.of not in known:
                yield at.at("of").mistake(unknown(kernels.of, "component", known))
            yield from self.rows.cited(at, kernels.source, f"`kernels` of `{name}`")

    def _rule(self, at: KeyPosition, rule: Rule, name: str) -> Iterator[Mistake]:
        if rule.name in self._rules:
            yield at.at("name").mistake(f"rule `{rule.name}` is given twice", first=str(self._rules[rule.name]))
        self._rules.setdefault(rule.name, at.at("name"))
        subject = rule.when.component
        if subject != name and subject in self.files.index.content.components:
            text = f"rule `{rule.name}` is about `{subject}`, so it belongs in the file of `{subject}`"
            yield at.at("when", subject).mistake(text)
        yield from self.rows.condition(at.at("when"), [rule.when])
        yield from self.rows.guards(at.at("on"), rule.on)
        if not (rule.require or rule.expect):
            yield at.at("require").mistake(f"rule `{rule.name}` requires nothing")
        yield from self.rows.needs(at.at("require"), rule.require, subject=subject)
        yield from self.rows.needs(at.at("expect"), rule.expect, subject=subject, is_expected=True)
        yield from self.rows.cited(at, rule.source, f"rule `{rule.name}`")

    def _branches(self) -> Iterator[Mistake]:
        for file in self.files.component_files:
            lines: dict[str, int] = {}
            for at, branch in file.at().each("branches", file.content.branches):
                if branch.branch in lines:
                    text = f"branch `{branch.branch}` is given twice"
                    yield at.at("branch").mistake(text, first=f"on line {lines[branch.branch]}")
                lines.setdefault(branch.branch, at.line)
                yield from self.rows.version(at.at("native_cuda"), branch.native_cuda)
                yield from self.rows.cited(at, branch.source, f"branch `{branch.branch}`")

    def _gpus(self) -> Iterator[Mistake]:
        at_top, content = self.files.gpus.at(), self.files.gpus.content
        yield from twice(at_top, "gpus", content.gpus, kind="GPU")
        for at, gpu in at_top.each("gpus", content.gpus):
            if bool(gpu.compute_capability) == bool(gpu.gfx):
                text = f"GPU `{gpu.name}` needs one of compute_capability (NVIDIA) and gfx (AMD)"
                yield at.at("name").mistake(text)
            yield from self.rows.version(at.at("first_driver"), gpu.first_driver)
            yield from self.rows.cited(at, gpu.source, f"GPU `{gpu.name}`")
        yield from twice(at_top, "chips", content.chips, kind="chip")
        for at, chip in at_top.each("chips", content.chips):
            if bool(chip.compute_capability) == bool(chip.gfx):
                yield at.at("name").mistake(f"chip `{chip.name}` needs one of compute_capability (NVIDIA) and gfx (AMD)")
            yield from self.rows.cited(at, chip.source, f"chip `{chip.name}`")
        yield from twice(at_top, "overrides", content.overrides, kind="override")
        for at, override in at_top.each("overrides", content.overrides):
            yield from self.rows.condition(at.at("when"), override.when)
            for need in override.when:
                if need.component != "rocm":
                    text = f"an override may depend on `rocm` only, not on `{need.component}`"
                    yield at.at("when", need.component).mistake(text)
            yield from self.rows.cited(at, override.source, f"override `{override.name}`")
        yield from twice(at_top, "seen_to_run", content.seen_to_run, kind="row")
        for at, row in at_top.each("seen_to_run", content.seen_to_run):
            yield from self.rows.guards(at.at("on"), row.on)
            yield from self.rows.cited(at, row.source, f"row `{row.name}`")

    def _performance(self) -> Iterator[Mistake]:
        content, lines = self.files.gpus.content, dict[str, int]()
        known = {identity for gpu in content.gpus for identity in gpu.pci_device_ids}
        for at, row in self.files.gpus.at().each("performance", content.performance):
            identity = row.pci_device_id
            if identity in lines:
                text = f"the figures of PCI device `{identity}` are given twice"
                yield at.at("pci_device_id").mistake(text, first=f"on line {lines[identity]}")
            if identity not in known:
                yield at.at("pci_device_id").mistake(f"no GPU has PCI device id `{identity}`")
            if row.memory_bandwidth is None and row.float32 is None:
                yield at.at("pci_device_id").mistake(f"PCI device `{identity}` has no figure")
            lines.setdefault(identity, at.line)
            yield from self.rows.cited(at, row.source, f"figures of PCI device `{identity}`")

    def _images(self) -> Iterator[Mistake]:
        lines: dict[tuple[str, str], int] = {}
        content = self.files.images.content
        for at, image in self.files.images.at().each("images", content.images):
            keys = [(image.reference, platform) for platform in image.platforms or ("",)]
            first = next((lines[key] for key in keys if key in lines), None)
            if first is not None:
                text = f"image `{image.reference}` is given twice for one platform"
                yield at.at("reference").mistake(text, first=f"on line {first}")
            lines.update({key: at.line for key in keys if key not in lines})
            if image.require_cuda and image.require_cuda not in content.gates:
                yield at.at("gate").mistake(unknown(image.require_cuda, "gate", content.gates))
            for key in ("glibc", "python", "apt_python", "cuda", "cudnn"):
                if text := getattr(image, key):
                    yield from self.rows.version(at.at(key), read_version(text))
            yield from self.rows.condition(at.at("requires"), image.requires)
            for name in image.brings:
                if name not in self.files.index.content.components:
                    yield at.at("brings", name).mistake(unknown(name, "component", self.files.index.content.components))
            yield from self.rows.cited(at, image.source, f"image `{image.reference}`")

    def _python_builds(self) -> Iterator[Mistake]:
        lines: dict[tuple[str, str], int] = {}
        for at, build in self.files.python_builds.at().each("builds", self.files.python_builds.content.builds):
            for platform in build.platforms:
                level = series(str(build.version))
                first = lines.setdefault((level, platform), at.line)
                if first != at.line:
                    yield at.at("version").mistake(f"Python {level} is given twice for {platform}", first=f"on line {first}")
            yield from self.rows.cited(at, build.source, f"Python build `{build.version}`")

    def _knowledge(self) -> Iterator[Mistake]:
        at_top, content = self.files.knowledge.at(), self.files.knowledge.content
        yield from twice(at_top, "variables", content.variables, kind="variables")
        for at, variables in at_top.each("variables", content.variables):
            yield from self.rows.condition(at.at("when"), [variables.when])
            yield from self.rows.guards(at.at("on"), variables.on)
            yield from self.rows.cited(at, variables.source, f"variables `{variables.name}`")

    def _driver_packages(self) -> Iterator[Mistake]:
        file = self.files.driver_packages
        known = {release.version.text for part in self.files.components.get("os", ()) for release in part.content.releases}
        for at, package in file.at().each("packages", file.content.packages):
            if known and package.os not in known and not any(one.startswith(f"{package.os} ") for one in known):
                yield at.at("os").mistake(f"there is no operating system `{package.os}` in this matrix")
            yield from self.rows.cited(at, package.source, f"driver package `{package.name}`")

    def _host_packages(self) -> Iterator[Mistake]:
        """Yield the mistakes of the repositories and packages of hosts, and of builds from source."""
        file = self.files.host_packages
        top, content = file.at(), file.content
        repositories = {one.name for one in content.repositories}
        for at, repository in top.each("repositories", content.repositories):
            yield from self._systems(at, repository.os)
            if not (repository.urls or repository.line or repository.kind == "package"):
                yield at.mistake(f"repository `{repository.name}` has no address; add `urls` or `line`")
            yield from self.rows.cited(at, repository.source, f"repository `{repository.name}`")
        for at, package in top.each("packages", content.packages):
            yield from self._systems(at, package.os)
            yield from self._installed(at, package.component, package.versions)
            for below, name in at.each("repositories", package.repositories):
                if name not in repositories:
                    yield below.mistake(unknown(name, "repository", repositories))
            if not (package.packages or package.url or package.file):
                yield at.mistake(f"the row brings nothing of `{package.component}`; add `packages`, `url` or `file`")
            yield from self.rows.cited(at, package.source, f"host packages of `{package.component}`")
        for at, build in top.each("source_builds", content.source_builds):
            yield from self._systems(at, build.os)
            yield from self._installed(at, build.component, build.versions)
            yield from self.rows.cited(at, build.source, f"build of `{build.component}`")

    def _systems(self, at: KeyPosition, systems: tuple[str, ...]) -> Iterator[Mistake]:
        known = {release.version.text for part in self.files.components.get("os", ()) for release in part.content.releases}
        for below, system in at.each("os", systems):
            is_known = system in known or any(one.startswith(f"{system} ") for one in known)
            if known and system != "macos" and not is_known:
                yield below.mistake(f"there is no operating system `{system}` in this matrix")

    def _installed(self, at: KeyPosition, component: str, versions: str) -> Iterator[Mistake]:
        components = self.files.index.content.components
        if component not in components:
            yield at.at("component").mistake(unknown(component, "component", components))
        try:
            Range.parse(versions)
        except ValueError as error:
            yield at.at("versions").mistake(str(error))


def _duplicate(at: KeyPosition, build: Build, first: dict[tuple[str, str, str], KeyPosition]) -> Iterator[Mistake]:
    """Yield a mistake if a build in `first` has the name, a platform and a Python of `build`, and add `build` to `first`."""
    python = need_of(build.requires, "python")
    text = need_text(python) if python is not None else ""
    for platform in build.platforms or ("",):
        for version in (text,) if isinstance(text, str) else text:
            key = (build.name, platform, version)
            if key in first:
                where = " and ".join(part for part in (platform, f"python {version}" if version else "") if part)
                twice_for = f"build `{build.name}` is given twice{' for ' + where if where else ''}"
                yield at.at("name").mistake(twice_for, first=f"on line {first[key].line}")
                return
            first[key] = at.at("name")
