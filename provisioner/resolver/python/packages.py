"""Python distributions as candidates of the same problem, for one target environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.grounds.bound import Specifier
from provisioner.grounds.predicate import (
    InstalledAs,
    InstalledFromWheel,
    IsExtraOf,
    IsPrerelease,
    NoFile,
    NoWheel,
    Requires,
    RequiresFile,
    Unpublished,
)
from provisioner.grounds.requirement import Entails, Relation, SameChoice, Subject
from provisioner.grounds.source import Index, Metadata
from provisioner.index.markers import marker_environment
from provisioner.index.metadata.core_metadata import UnusableMetadataError
from provisioner.index.places.direct_reference import shown_url
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.choices.frameworks import install_requirement
from provisioner.resolver.choices.markers import Markers
from provisioner.resolver.problem import package_key
from provisioner.resolver.python.distributions import DistributionFacts
from provisioner.resolver.python.early import EarlyVersions
from provisioner.resolver.python.named_files import MetFiles, NamedFiles
from provisioner.resolver.python.variant_indexes import VariantIndexes
from provisioner.resolver.requirement import (
    PACKAGE,
    PYTORCH,
    TORCH,
    Candidate,
    FileCandidate,
    HolderCandidate,
    Key,
    Labelled,
    Matching,
    ReleaseCandidate,
    Requirement,
    Test,
    WheelCandidate,
)
from provisioner.resolver.rules.policy import Taste
from provisioner.resolver.rules.shared_files import SharedFiles
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement as Pep508

    from provisioner.grounds.predicate import Predicate
    from provisioner.grounds.source import Source
    from provisioner.index.model import Environment, IndexFile, PackageRelease, PackageSource
    from provisioner.resolver.problem import Problem

BY_PEP440 = Version.named("")
"""The matrix's kind of version says nothing about distributions: they are compared by `Candidate.pep440`."""


class PackageWorld:
    """Answers for the package half of a universe: one platform, one Python, one glibc.

    `variant_index` is the index of the framework build the system half prefers; what is compiled against the framework is
    looked up there too.
    """

    def __init__(
        self,
        problem: Problem,
        source: PackageSource,
        environment: Environment,
        variant_index: str = "",
        *,
        met: MetFiles | None = None,
    ) -> None:
        self._source = source
        self._problem = problem
        self.markers = Markers(marker_environment(environment))
        self.environment = environment
        self._variant_index = "" if variant_index == "pypi" else variant_index
        self._facts = DistributionFacts(problem, self._variant_index)
        self.variants = VariantIndexes(problem, source)
        self.shared = SharedFiles(problem.matrix, problem.request)
        """What owning a file that others write too requires."""
        applicable = [asked for asked in problem.packages if self.markers.hold(asked[0].marker)]
        met = met if met is not None else MetFiles()
        self._named, self._early = NamedFiles(source, applicable, met), EarlyVersions(source, met)
        self._candidates: dict[Key, tuple[Candidate, ...]] = {}
        self.order: dict[Key, int] = {}
        self.roots = self._roots()

    def _roots(self) -> tuple[Requirement, ...]:
        roots = []
        for requirement, ground in self._problem.packages:
            if not self.markers.hold(requirement.marker):
                continue
            component = self._problem.component_of(canonicalize_name(requirement.name))
            if component and requirement.marker is not None:
                roots.append(Requirement(Key(component), Matching(requirement.specifier), ground))
            if component == PYTORCH.name and requirement.extras:
                roots.append(Requirement(package_key(requirement), Matching(requirement.specifier), ground))
            if component == PYTORCH.name or (component and not requirement.extras):
                continue
            key = package_key(requirement)
            if _distribution(key) not in self._problem.request.upgraded:
                self.order.setdefault(key, len(self.order))
            if requirement.url is not None:
                roots.append(self._named.asked(key, requirement.url, ground))
            else:
                roots.append(Requirement(key, Matching(requirement.specifier), ground))
                roots.extend(self.shared.named(key.name, ground))
        names = [_distribution(root.key) for root in roots if root.key.is_package and not _is_framework_extra(root.key)]
        self._source.prefetch(name for name in names if not self._named.is_given(name))
        return tuple(roots)

    def candidates(self, key: Key) -> tuple[Candidate, ...]:
        """Every version of a distribution, newest first; those that cannot be installed require the impossible."""
        found = self._candidates.get(key)
        if found is None:
            found = self._candidates[key] = self._read(key)
        return found

    def _read(self, key: Key) -> tuple[Candidate, ...]:
        if key == TORCH:
            builds = (one for one in self._problem.domains[PYTORCH] if isinstance(one, ReleaseCandidate))
            return tuple(WheelCandidate(TORCH, one.version, one.label, one) for one in builds)
        if _is_framework_extra(key):
            return tuple(HolderCandidate(key, BY_PEP440, one.label, one) for one in self.candidates(TORCH))
        limited = self._facts.limit_of(key)
        if limited:
            return self._facts.holders(key, self.candidates(Key(limited, PACKAGE)), self.candidates(TORCH))
        holders = self._named.holders(key)
        if holders is not None:
            return holders
        name = _distribution(key)
        if self._named.is_given(name):
            return tuple(self._named.candidates(key))
        is_own = self._facts.is_of_variant_index(name)
        releases = self._source.releases(name, index=self._variant_index if is_own else "")
        others = self._early.releases(name)
        if self._facts.is_on_variant_index(name):
            others = (*others, *self.variants.releases(name, self._variant_index))
        is_oldest = self._problem.request.spec.policy.strategy == "oldest"
        if others or is_oldest:  # releases come newest first, and a project has a thousand: most need never be compared
            releases = tuple(sorted((*releases, *others), key=lambda one: one.version, reverse=not is_oldest))
        found = [FileCandidate(key, BY_PEP440, str(release.version), release) for release in releases]
        found.extend(self._named.candidates(key))
        if name in self._facts.limited:
            found.sort(key=self._facts.is_hopeless)
        return tuple(self._arranged(found, name))

    def _arranged(self, found: list[FileCandidate], name: str) -> list[FileCandidate]:
        """Versions in their places: withdrawn ones last, then by what the spec avoids or prefers, then what is locked first."""
        request = self._problem.request
        taste, locked = Taste(request, name), request.preferred.get(name)
        if locked is not None:
            found = sorted(found, key=lambda one: one.label != locked)
        if taste:
            found = sorted(found, key=taste.rank)
        # A yanked release is for exact pins (PEP 592): it comes last, and the universe keeps it from ranges; so do early ones.
        is_any = any(one.is_withheld for one in found)
        return sorted(found, key=lambda one: one.is_withheld) if is_any else found

    def requirements(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return what one version needs; for one that cannot be installed, why not."""
        if isinstance(candidate, WheelCandidate):
            return (*self._framework(candidate.build), *self._facts.of_framework(candidate))
        if isinstance(candidate, HolderCandidate):
            is_extra = _is_framework_extra(candidate.key)
            return self._framework_extra(candidate) if is_extra else self._named.of_holder(candidate)
        assert isinstance(candidate, FileCandidate), "a distribution has files, or a holder that has"
        release = candidate.release
        if release.file is None:
            return (self._blocked(candidate),)
        if release.version.is_prerelease and "prerelease" in self._problem.request.spec.policy.forbid:
            return (self._problem.needs.policy.lift(candidate, "prerelease", IsPrerelease(), source=Index(release.file.index)),)
        try:
            return self._declared(candidate)
        except UnusableMetadataError as error:
            # Told of many versions at once, in a conflict: whose files they are stands before it.
            ground = _entails(candidate, _unusable(error, release.file.filename), Relation(release.name, "files"))
            return (Requirement(Key("platform"), Labelled(frozenset()), ground),)

    def _declared(self, candidate: FileCandidate) -> tuple[Requirement, ...]:
        release, extras = candidate.release, extras_of(candidate.key)
        if extras:
            return self._extra(candidate, extras)
        found = self._translated(candidate.key, candidate.label, self._applicable(release, ("",)))
        self._source.prefetch(_distribution(requirement.key) for requirement in found if requirement.key.is_package)
        return (*found, *self._facts.of(candidate), *self._named.support(candidate))

    def _extra(self, candidate: FileCandidate, extras: tuple[str, ...]) -> tuple[Requirement, ...]:
        release = candidate.release
        same: Test = Matching(SpecifierSet(f"==={release.version}"))
        if candidate.is_named:
            same = Labelled(frozenset({candidate.label}))
        exactly = Requirement(Key(release.name, PACKAGE), same, _is_extra(candidate, release.name, release.name))
        plain = {str(needed) for needed in self._applicable(release, ("",))}
        needed = [one for one in self._applicable(release, extras) if str(one) not in plain]
        return (exactly, *self._translated(candidate.key, candidate.label, needed))

    def _framework_extra(self, candidate: HolderCandidate) -> tuple[Requirement, ...]:
        """Return what `torch[opt-einsum]` needs beside the build of the framework that it is an extra of."""
        ground = _is_extra(candidate, PYTORCH.name, PYTORCH.name)
        exactly = Requirement(PYTORCH, Labelled(frozenset({candidate.label})), ground)
        assert isinstance(candidate.holder, WheelCandidate), "an extra of the framework is held by its wheel"
        release = self.framework_release(candidate.holder.build)
        if release is None or release.file is None:
            return (exactly,)  # why there is no file is said of the build itself
        plain = {str(needed) for needed in self._applicable(release, ("",))}
        needed = [one for one in self._applicable(release, extras_of(candidate.key)) if str(one) not in plain]
        return (exactly, *self._translated(candidate.key, candidate.label, needed))

    def its_distribution(self, candidate: ReleaseCandidate) -> Requirement:
        """Return the requirement by which a build of another framework is installed, such as `jax[cuda12]`, at its release."""
        release, build = candidate.release, candidate.build
        name = candidate.key.component
        if build is not None and build.is_compiled:
            return _unpublished(candidate)
        wanted = install_requirement(name, str(release.version), build)
        extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
        predicate = InstalledAs(f"{wanted.name}{extras}", (Specifier(str(wanted.specifier)),))
        source = Index(build.index) if build is not None and build.index else None
        ground = _entails(candidate, predicate, Relation(name, "its wheels"), source)
        return Requirement(package_key(wanted), Matching(wanted.specifier), ground)

    def its_wheel(self, candidate: ReleaseCandidate) -> Requirement:
        """Return the requirement of the wheel that a PyTorch build is installed from."""
        build = candidate.build
        assert build is not None, "every release of PyTorch has builds"
        if build.is_compiled:
            return _unpublished(candidate)
        ground = _entails(candidate, InstalledFromWheel(), Relation(PYTORCH.name, "its wheel"), Index(build.index))
        return Requirement(TORCH, Labelled(frozenset({candidate.label})), ground)

    def _framework(self, candidate: ReleaseCandidate) -> tuple[Requirement, ...]:
        """Return what the wheel of a framework build requires, read from the index that serves this build."""
        release = self.framework_release(candidate)
        if release is None or release.file is None:
            build = candidate.build
            assert build is not None, "every release of PyTorch has builds"
            problem = release.why_not if release else self.variants.why_not(build.index)
            ground = Entails(
                name=PYTORCH.name,
                subject=Subject(TORCH.name, candidate.label),
                predicate=NoWheel(problem),
                relation=Relation(PYTORCH.name, "a wheel"),
                cited=Index(build.index),
            )
            others = {one.label for one in self._problem.domains[Key("python")]} - {self.environment.python}
            return (Requirement(Key("python"), Labelled(frozenset(others)), ground),)
        found = self._translated(PYTORCH, candidate.label, self._applicable(release, ("",)))
        names = [_distribution(requirement.key) for requirement in found if requirement.key.is_package]
        self._source.prefetch(name for name in names if not self._facts.is_of_variant_index(name))
        return tuple(found)

    def framework_release(self, candidate: ReleaseCandidate) -> PackageRelease | None:
        """The index's release of one framework build; None when the index does not list it."""
        release, build = candidate.release, candidate.build
        assert build is not None, "every release of a framework has builds"
        name = canonicalize_name(DISTRIBUTION_OF_COMPONENT[candidate.key.component])
        wanted = PackageVersion(f"{release.version}+{build.local}" if build.local else str(release.version))
        given = self._named.given(name)
        if given is not None:
            return given if given.version == wanted else None
        listed = self._source.releases(name) if build.index == "pypi" else self.variants.releases(name, build.index)
        return next((one for one in listed if one.version == wanted), None)

    def _applicable(self, release: PackageRelease, extras: tuple[str, ...]) -> list[Pep508]:
        return [needed for needed in self._source.requirements(release) if self.markers.hold(needed.marker, extras)]

    def release_of(self, candidate: Candidate) -> PackageRelease:
        """The index's release behind a chosen distribution; the framework's wheel for the framework."""
        if isinstance(candidate, HolderCandidate):
            return self.release_of(candidate.holder)
        if isinstance(candidate, FileCandidate):
            return candidate.release
        assert isinstance(candidate, WheelCandidate), "every candidate of a distribution has a release"
        release = self.framework_release(candidate.build)
        assert release is not None, "a chosen distribution has a release"
        return release

    def is_built(self, file: IndexFile) -> bool:
        """Whether what a file requires was found by building it, on this machine."""
        return self._named.is_built(file)

    def applicable(self, candidate: Candidate) -> list[Pep508]:
        """The requirements of a chosen distribution that hold in this environment, as its metadata spells them."""
        return self._applicable(self.release_of(candidate), extras_of(candidate.key) or ("",))

    def brings(self, release: PackageRelease, extra: str) -> bool:
        """Whether an extra of a release brings anything along in this environment."""
        return any(
            self.markers.hold(needed.marker, (extra,)) and not self.markers.hold(needed.marker)
            for needed in self._source.requirements(release)
        )

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        """The extras that the metadata of a release names, normalized; raises `UnavailableError`."""
        return self._source.extras(release)

    def _translated(self, subject: Key, label: str, applicable: Iterable[Pep508]) -> list[Requirement]:
        """The requirements of a distribution's metadata, with the spec's overrides in the place of those they are for."""
        overrides = self._problem.overrides
        if not overrides:
            return [self._translate(subject, label, needed) for needed in applicable]
        found = []
        for needed in applicable:
            instead = overrides.of(canonicalize_name(needed.name))
            if not instead:
                found.append(self._translate(subject, label, needed))
            for override, ground in instead:
                if self.markers.hold(override.marker):
                    found.append(replace(self._translate(subject, label, override), ground=ground))
        return found

    def _translate(self, subject: Key, label: str, needed: Pep508) -> Requirement:
        name = canonicalize_name(needed.name)
        component = self._problem.component_of(name)
        shown = "pytorch" if subject == PYTORCH else subject.name
        ground = Entails(
            name=shown,
            subject=Subject(shown, label),
            predicate=Requires(needed.name, (Specifier(str(needed.specifier)),)),
            relation=Relation(shown, name),
            cited=Metadata(shown, label),
        )
        is_component = component and not needed.extras and (component == PYTORCH.name or subject.name != name)
        key = Key(component) if is_component else package_key(needed)
        if needed.url is not None and (is_component or subject == PYTORCH):
            # What a framework's build needs is known of published ones, and its wheel is asked for where its builds are.
            of_specs = RequiresFile(name=needed.name, url=shown_url(needed.url), is_for_specs=True)
            return Requirement(key, Labelled(frozenset()), replace(ground, predicate=of_specs))
        if needed.url is not None:
            # A file by URL must not be met by another file that an index happens to have under the same name.
            holder = next(one for one in self.candidates(subject) if one.label == label)
            return self._named.required(key, needed, holder=holder, ground=ground)
        if key.is_package and not self._named.is_given(name):
            self._early.look(name, needed.specifier, lambda: self.candidates(Key(name, PACKAGE)))
            if self._early.is_final_only(name, needed.specifier):
                ground = replace(ground, predicate=replace(ground.predicate, is_final_only=True))
        return Requirement(key, Matching(needed.specifier), ground)

    def _blocked(self, candidate: FileCandidate) -> Requirement:
        """Return that a version without a usable file cannot go with this Python, glibc or platform; with another it might."""
        release = candidate.release
        name = release.blocked_by if Key(release.blocked_by) in self._problem.domains else "platform"
        key = Key(name)
        here = {"python": self.environment.python, "platform": self.environment.platform}.get(name, "")
        is_environment = bool(release.blocked_by) and bool(here)
        others = {one.label for one in self._problem.domains[key]} - {here} if is_environment else set()
        predicate = NoFile(release.why_not, release.blocked_by, "sdist" if "allow: [sdist]" in release.why_not else "")
        ground = _entails(candidate, predicate, Relation(release.name, "files"), Index())
        return Requirement(key, Labelled(frozenset(others)), ground)


def _unusable(error: UnusableMetadataError, filename: str) -> NoFile:
    """Return the problem with a file's metadata; it is told of many versions at once, so without the name of each file."""
    problem = error.message.removeprefix(f"`{filename}` is ").removeprefix(f"`{filename}` ")
    return NoFile(problem, allowance="build" if "allow: [build]" in problem else "")


def _unpublished(candidate: Candidate) -> Requirement:
    """Return that a build which everybody compiles for themselves has no file to lock."""
    ground = _entails(candidate, Unpublished(), Relation(candidate.key.component, "a wheel"))
    return Requirement(Key("platform"), Labelled(frozenset()), ground)


def _entails(candidate: Candidate, predicate: Predicate, relation: Relation, source: Source | None = None) -> Entails:
    name = candidate.key.distribution if candidate.key.is_package else candidate.key.component
    return Entails(name=name, subject=Subject(name, candidate.label), predicate=predicate, relation=relation, cited=source)


def _is_extra(candidate: Candidate, name: str, of: str) -> Entails:
    """Return that a distribution with extras is that distribution."""
    subject = Subject(candidate.key.name, candidate.label)
    relation = SameChoice(candidate.key.name, of)
    return Entails(name=name, subject=subject, predicate=IsExtraOf(of), relation=relation, cited=None)


def extras_of(key: Key) -> tuple[str, ...]:
    """The extras of a key, none for that of the plain distribution."""
    _, _, extras = key.name.partition("[")
    return tuple(extras.rstrip("]").split(",")) if extras else ()


def _is_framework_extra(key: Key) -> bool:
    return key.is_package and key.name.startswith(f"{TORCH.name}[")


def _distribution(key: Key) -> NormalizedName:
    return canonicalize_name(key.distribution)
