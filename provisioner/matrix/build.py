"""From validated files to the frozen matrix the solver reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.components import ABSENT
from provisioner.matrix.build_distributions import distributions, limits, shared_files
from provisioner.matrix.guards import NAMED_GUARDS, SAME
from provisioner.matrix.model import (
    Build,
    Citation,
    Component,
    DriverBranch,
    DriverMinimum,
    DriverPackage,
    Failure,
    GfxOverride,
    Gpu,
    ImageFacts,
    Matrix,
    PatchedKernels,
    Release,
    Rule,
    Variables,
)
from provisioner.matrix.need import Need
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from provisioner.matrix.files import MatrixFiles, Parsed
    from provisioner.matrix.schema import BuildEntry, ComponentFile, DriverEntry, ReleaseEntry
    from provisioner.matrix.schema import Needs as NeedTexts


def build_matrix(files: MatrixFiles, digest: str) -> Matrix:
    """Build the matrix of files that `check` found no mistake in."""
    return _Builder(files).matrix(digest)


class _Builder:
    def __init__(self, files: MatrixFiles) -> None:
        self.files = files
        self.named = {*NAMED_GUARDS, *(name for name, entry in files.index.content.components.items() if entry.named)}
        self.positions: dict[str, str] = {}

    def matrix(self, digest: str) -> Matrix:
        components = {name: self._component(name) for name in self.files.index.content.order}
        return Matrix(
            order=self.files.index.content.order,
            components=components,
            rules=tuple(rule for file in self.files.component_files() for rule in self._rules(file)),
            branches=tuple(branch for file in self.files.component_files() for branch in _branches(file)),
            gpus=self._gpus(),
            images=self._images(),
            distributions=distributions(self.files, self.positions, self._needs),
            limits=limits(self.files, self.positions, self._needs),
            shared_files=shared_files(self.files, self.positions),
            overrides=self._overrides(),
            variables=self._variables(),
            failures=self._failures(),
            driver_packages=self._driver_packages(),
            citations=self._citations(),
            digest=digest,
            positions=self.positions,
        )

    def _citations(self) -> dict[str, Citation]:
        return {
            key: Citation(
                key=key, title=entry.title, where=entry.where, url=entry.url, read=entry.read, measured=entry.measured
            )
            for _, sources in self.files.sources()
            for key, entry in sources.items()
        }

    def _component(self, name: str) -> Component:
        entry = self.files.index.content.components[name]
        releases: dict[Version, Release] = {
            Version.named(value): Release(version=Version.named(value)) for value in entry.values
        }
        for file in self.files.components.get(name, ()):
            for index, row in enumerate(file.content.releases):
                found = self._release(name, file, index, row)
                first = releases.get(found.version)
                releases[found.version] = found if first is None else replace(first, builds=(*first.builds, *found.builds))
        return Component(
            name=name, title=entry.title, releases=tuple(releases.values()), is_virtual=entry.virtual, is_named=entry.named
        )

    def _release(self, name: str, file: Parsed[ComponentFile], index: int, entry: ReleaseEntry) -> Release:
        self.positions.setdefault(f"{name}=={entry.version}", self.files.place(file, ("releases", index)))
        for number, build in enumerate(entry.builds):
            place = self.files.place(file, ("releases", index, "builds", number))
            self.positions.setdefault(f"{name}=={entry.version}+{build.name}", place)
        return Release(
            version=Version.named(entry.version) if name in self.named else Version.parse(entry.version),
            builds=tuple(self._build(build, entry) for build in entry.builds),
            needs=self._needs(entry.requires),
            driver=_driver(entry.driver) if entry.driver is not None else None,
            platforms=entry.platforms,
            ptx_isa=entry.ptx_isa,
            patched=tuple(
                PatchedKernels(kernel=Range.parse(row.kernel), by=row.by, sources=row.source) for row in entry.patched
            ),
            released=entry.released,
            end_of_life=entry.end_of_life,
            prerelease=entry.prerelease,
            sources=entry.source,
        )

    def _build(self, entry: BuildEntry, release: ReleaseEntry) -> Build:
        return Build(
            name=entry.name,
            platforms=entry.platforms,
            needs=self._needs(entry.requires),
            sass=entry.sass,
            ptx=entry.ptx,
            gfx=entry.gfx,
            cxx11_abi=entry.cxx11_abi,
            is_compiled=entry.compiled,
            install=entry.install,
            index=entry.index,
            local=entry.local,
            accelerator=entry.accelerator,
            is_default=entry.default,
            artefact=entry.artefact,
            sha256=entry.sha256,
            sources=entry.source or release.source,
        )

    def _rules(self, file: Parsed[ComponentFile]) -> tuple[Rule, ...]:
        rules = []
        for index, entry in enumerate(file.content.rules):
            self.positions[f"rule:{entry.name}"] = self.files.place(file, ("rules", index))
            (when,) = self._needs(entry.when)
            rules.append(
                Rule(
                    name=entry.name,
                    when=when,
                    guards=self._needs(entry.on),
                    needs=self._needs(entry.require),
                    because=entry.because,
                    sources=entry.source,
                )
            )
        return tuple(rules)

    def _needs(self, texts: NeedTexts) -> tuple[Need, ...]:
        return tuple(need(component, value, is_named=component in self.named) for component, value in texts.items())

    def _gpus(self) -> tuple[Gpu, ...]:
        return tuple(
            Gpu(
                name=entry.name,
                compute_capability=entry.compute_capability,
                gfx=entry.gfx,
                architecture=entry.architecture,
                kind=entry.kind,
                pci_device_ids=entry.pci_device_ids,
                first_driver=_version(entry.first_driver),
                modules=entry.modules,
                sources=entry.source,
            )
            for entry in (self.files.gpus.content.gpus if self.files.gpus is not None else ())
        )

    def _overrides(self) -> tuple[GfxOverride, ...]:
        return tuple(
            GfxOverride(
                name=entry.name,
                gfx=entry.gfx,
                runs_as=entry.runs_as,
                when=self._needs(entry.when),
                variables=tuple(sorted(entry.set.items())),
                because=entry.because,
                sources=entry.source,
            )
            for entry in (self.files.gpus.content.overrides if self.files.gpus is not None else ())
        )

    def _variables(self) -> tuple[Variables, ...]:
        file = self.files.knowledge
        found = []
        for index, entry in enumerate(file.content.variables if file is not None else ()):
            assert file is not None
            self.positions[f"variables:{entry.name}"] = self.files.place(file, ("variables", index))
            (when,) = self._needs(entry.when)
            found.append(
                Variables(
                    name=entry.name,
                    when=when,
                    guards=self._needs(entry.on),
                    variables=tuple(sorted(entry.set.items())),
                    because=entry.because,
                    sources=entry.source,
                )
            )
        return tuple(found)

    def _failures(self) -> tuple[Failure, ...]:
        file = self.files.knowledge
        found = []
        for index, entry in enumerate(file.content.failures if file is not None else ()):
            assert file is not None
            self.positions[f"failure:{entry.name}"] = self.files.place(file, ("failures", index))
            found.append(
                Failure(
                    name=entry.name,
                    layer=entry.layer,
                    symptoms=entry.symptoms,
                    cause=entry.cause,
                    remedy=entry.remedy,
                    when=self._needs(entry.when),
                    guards=self._needs(entry.on),
                    sources=entry.source,
                )
            )
        return tuple(found)

    def _driver_packages(self) -> tuple[DriverPackage, ...]:
        file = self.files.driver_packages
        return tuple(
            DriverPackage(
                name=entry.name,
                os=entry.os,
                kind=entry.kind,
                branches=entry.branches,
                modules=entry.modules,
                kernel=entry.kernel,
                signed=entry.signed,
                headers=entry.headers,
                note=entry.note,
                sources=entry.source,
            )
            for entry in (file.content.packages if file is not None else ())
        )

    def _images(self) -> tuple[ImageFacts, ...]:
        if self.files.images is None:
            return ()
        content = self.files.images.content
        return tuple(
            ImageFacts(
                reference=entry.reference,
                kind=entry.kind,
                distribution=entry.distribution,
                glibc=entry.glibc,
                python=entry.python,
                apt_python=entry.apt_python,
                cuda=entry.cuda,
                cudnn=entry.cudnn,
                require_cuda=content.gates[entry.gate] if entry.gate else "",
                end_of_life=entry.end_of_life,
                platforms=entry.platforms,
                sources=entry.source,
            )
            for entry in content.images
        )


def need(component: str, value: str | tuple[str, ...], *, is_named: bool) -> Need:
    """One need: a range, a choice of exact versions (names where the component's values are names), or `same`."""
    if value == SAME:
        return Need(component=component, range=Range(), is_same=True)
    if value == ABSENT or is_named:
        names = (value,) if isinstance(value, str) else value
        return Need(component=component, range=Range(), one_of=tuple(Version.named(name) for name in names))
    if isinstance(value, str):
        return Need(component=component, range=Range.parse(value))
    return Need(component=component, range=Range(), one_of=tuple(Version.parse(text) for text in value))


def _branches(file: Parsed[ComponentFile]) -> tuple[DriverBranch, ...]:
    return tuple(
        DriverBranch(
            branch=entry.branch,
            native_cuda=Version.parse(entry.native_cuda),
            designation=entry.designation,
            end_of_life=entry.end_of_life,
            sources=entry.source,
        )
        for entry in file.content.branches
    )


def _driver(entry: DriverEntry) -> DriverMinimum:
    return DriverMinimum(
        toolkit=_version(entry.toolkit), minor_version=_version(entry.minor_version), forward_compat=entry.forward_compat
    )


def _version(text: str | None) -> Version | None:
    return Version.parse(text) if text is not None else None
