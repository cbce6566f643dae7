"""Python distributions as candidates of the same problem, for one target environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.index.markers import marker_environment
from provisioner.index.metadata.core_metadata import UnusableMetadataError
from provisioner.index.places.direct_reference import shown_url
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.solve.choices.frameworks import install_requirement
from provisioner.solve.choices.markers import Markers
from provisioner.solve.problem import package_key
from provisioner.solve.python.distributions import DistributionFacts, Seat
from provisioner.solve.python.early import EarlyVersions
from provisioner.solve.python.named_files import MetFiles, NamedFiles, is_named
from provisioner.solve.python.variant_indexes import VariantIndexes
from provisioner.solve.requirement import (
    PACKAGE,
    PYTORCH,
    TORCH,
    Candidate,
    Key,
    Labelled,
    Matching,
    Origin,
    Requirement,
    Test,
)
from provisioner.solve.rules.policy import Taste
from provisioner.solve.rules.shared_files import SharedFiles
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement as Pep508

    from provisioner.index.model import Environment, IndexFile, PackageRelease, PackageSource
    from provisioner.solve.problem import Problem

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
        self._environment = environment
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
        for requirement, origin in self._problem.packages:
            if not self.markers.hold(requirement.marker):
                continue
            component = self._problem.component_of(canonicalize_name(requirement.name))
            if component and requirement.marker is not None:
                roots.append(Requirement(Key(component), Matching(requirement.specifier), origin))
            if component == PYTORCH.name and requirement.extras:
                roots.append(Requirement(package_key(requirement), Matching(requirement.specifier), origin))
            if component == PYTORCH.name or (component and not requirement.extras):
                continue
            key = package_key(requirement)
            if _distribution(key) not in self._problem.request.upgraded:
                self.order.setdefault(key, len(self.order))
            if requirement.url is not None:
                roots.append(self._named.asked(key, requirement.url, origin))
            else:
                roots.append(Requirement(key, Matching(requirement.specifier), origin))
                roots.extend(self.shared.named(key.name, origin))
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
            return tuple(Candidate(TORCH, one.version, one.label, one) for one in self._problem.domains[PYTORCH])
        if _is_framework_extra(key):
            return tuple(Candidate(key, BY_PEP440, one.label, Seat(one)) for one in self.candidates(TORCH))
        limited = self._facts.limit_of(key)
        if limited:
            return self._facts.seats(key, self.candidates(Key(limited, PACKAGE)), self.candidates(TORCH))
        seats = self._named.seats(key)
        if seats is not None:
            return seats
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
        found = [Candidate(key, BY_PEP440, str(release.version), release) for release in releases]
        found.extend(self._named.candidates(key))
        if name in self._facts.limited:
            found.sort(key=self._facts.is_hopeless)
        return tuple(self._arranged(found, name))

    def _arranged(self, found: list[Candidate], name: str) -> list[Candidate]:
        """Versions in their places: withdrawn ones last, then by what the spec avoids or prefers, then what is locked first."""
        request = self._problem.request
        taste, locked = Taste(request, name), request.preferred.get(name)
        if locked is not None:
            found = sorted(found, key=lambda one: one.label != locked)
        if taste:
            found = sorted(found, key=taste.rank)
        # A yanked release is for exact pins (PEP 592): it comes last, and the universe keeps it from ranges; so do early ones.
        is_any = any(one.subject.why_not and one.subject.file is not None for one in found)
        return sorted(found, key=lambda one: one.is_yanked) if is_any else found

    def requirements(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """What one version needs; for one that cannot be installed, why not."""
        if candidate.key == TORCH:
            return (*self._framework(candidate.subject), *self._facts.of_framework(candidate))
        if isinstance(candidate.subject, Seat):
            return self._framework_extra(candidate) if _is_framework_extra(candidate.key) else self._named.of_seat(candidate)
        release: PackageRelease = candidate.subject
        if release.file is None:
            return (self._blocked(candidate, release),)
        if release.version.is_prerelease and "prerelease" in self._problem.request.spec.policy.forbid:
            text = f"{release.name} {candidate.label} is a prerelease"
            return (self._problem.needs.policy.lift(candidate, "prerelease", text=text, where=f"index {release.file.index}"),)
        try:
            return self._declared(candidate, release)
        except UnusableMetadataError as error:
            # Said of many versions at once, in a conflict: whose files they are stands before it.
            named = f"`{release.file.filename}` "
            why = error.message.removeprefix(f"{named}is ").removeprefix(named)
            origin = Origin("rule", release.name, f"{release.name} files", f"{release.name} {candidate.label}: {why}")
            return (Requirement(Key("platform"), Labelled(frozenset(), why), origin),)

    def _declared(self, candidate: Candidate, release: PackageRelease) -> tuple[Requirement, ...]:
        extras = extras_of(candidate.key)
        if extras:
            return self._extra(candidate, release, extras)
        found = self._translated(candidate.key, candidate.label, self._applicable(release, ("",)))
        self._source.prefetch(_distribution(requirement.key) for requirement in found if requirement.key.is_package)
        return (*found, *self._facts.of(candidate, release), *self._named.support(candidate))

    def _extra(self, candidate: Candidate, release: PackageRelease, extras: tuple[str, ...]) -> tuple[Requirement, ...]:
        base = Key(release.name, PACKAGE)
        origin = Origin(
            "rule", release.name, f"{candidate.key.name} is {release.name}", f"{candidate.key.name} is {release.name}"
        )
        same: Test = Matching(SpecifierSet(f"==={release.version}"))
        if is_named(candidate):
            same = Labelled(frozenset({candidate.label}), candidate.label)
        exactly = Requirement(base, same, origin)
        plain = {str(needed) for needed in self._applicable(release, ("",))}
        needed = [one for one in self._applicable(release, extras) if str(one) not in plain]
        return (exactly, *self._translated(candidate.key, candidate.label, needed))

    def _framework_extra(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """What `torch[opt-einsum]` brings along beside the build of the framework that it is an extra of."""
        text = f"{candidate.key.name} is pytorch"
        origin = Origin("rule", PYTORCH.name, text, text)
        exactly = Requirement(PYTORCH, Labelled(frozenset({candidate.label}), candidate.label), origin)
        release = self.framework_release(candidate.subject.holder.subject)
        if release is None or release.file is None:
            return (exactly,)  # why there is no file is said of the build itself
        plain = {str(needed) for needed in self._applicable(release, ("",))}
        needed = [one for one in self._applicable(release, extras_of(candidate.key)) if str(one) not in plain]
        return (exactly, *self._translated(candidate.key, candidate.label, needed))

    def its_distribution(self, candidate: Candidate) -> Requirement:
        """A build of another framework is installed by a requirement such as `jax[cuda12]`, at exactly its release."""
        release, build = candidate.subject
        name = candidate.key.component
        if build is not None and build.compiled:
            return _unpublished(candidate)
        wanted = install_requirement(name, str(release.version), build)
        text = f"{name} {candidate.label} is installed as {wanted}"
        origin = Origin("rule", name, f"{name} needs its wheels", text, build.index if build is not None else "")
        return Requirement(package_key(wanted), Matching(wanted.specifier), origin)

    def its_wheel(self, candidate: Candidate) -> Requirement:
        """A PyTorch build is installed from its own wheel."""
        if candidate.subject[1].compiled:
            return _unpublished(candidate)
        text = f"pytorch {candidate.label} is installed from its wheel"
        origin = Origin("rule", "pytorch", "pytorch needs its wheel", text, candidate.subject[1].index)
        return Requirement(TORCH, Labelled(frozenset({candidate.label}), candidate.label), origin)

    def _framework(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """What the wheel of a framework build requires, read from the index that serves this build."""
        release = self.framework_release(candidate)
        if release is None or release.file is None:
            why = release.why_not if release else self.variants.why_not(candidate.subject[1].index)
            text = f"torch {candidate.label} cannot be installed: {why}"
            origin = Origin("rule", "pytorch", "pytorch needs a wheel", text, candidate.subject[1].index)
            others = {one.label for one in self._problem.domains[Key("python")]} - {self._environment.python}
            return (Requirement(Key("python"), Labelled(frozenset(others), "another Python"), origin),)
        found = self._translated(PYTORCH, candidate.label, self._applicable(release, ("",)))
        names = [_distribution(requirement.key) for requirement in found if requirement.key.is_package]
        self._source.prefetch(name for name in names if not self._facts.is_of_variant_index(name))
        return tuple(found)

    def framework_release(self, candidate: Candidate) -> PackageRelease | None:
        """The index's release of one framework build; None when the index does not list it."""
        release, build = candidate.subject
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
        if isinstance(candidate.subject, Seat):
            return self.release_of(candidate.subject.holder)
        release = self.framework_release(candidate.subject) if candidate.key == TORCH else candidate.subject
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
            for override, origin in instead:
                if self.markers.hold(override.marker):
                    found.append(replace(self._translate(subject, label, override), origin=origin))
        return found

    def _translate(self, subject: Key, label: str, needed: Pep508) -> Requirement:
        name = canonicalize_name(needed.name)
        component = self._problem.component_of(name)
        shown = "pytorch" if subject == PYTORCH else subject.name
        text = f"{shown} {label} needs {needed.name}{needed.specifier}"
        origin = Origin("rule", shown, f"{shown} needs {name}", text, f"metadata of {shown} {label}")
        is_component = component and not needed.extras and (component == PYTORCH.name or subject.name != name)
        key = Key(component) if is_component else package_key(needed)
        if needed.url is not None and (is_component or subject == PYTORCH):
            # What a framework's build needs is known of published ones, and its wheel is asked for where its builds are.
            text = f"{shown} {label} needs {needed.name} @ {shown_url(needed.url)}, and only a spec may name that file"
            return Requirement(key, Labelled(frozenset(), "a file by URL"), origin._replace(text=text))
        if needed.url is not None:
            # A file by URL must not be met by another file that an index happens to have under the same name.
            holder = next(one for one in self.candidates(subject) if one.label == label)
            return self._named.required(key, needed, holder=holder, origin=origin)
        if key.is_package and not self._named.is_given(name):
            self._early.look(name, needed.specifier, lambda: self.candidates(Key(name, PACKAGE)))
            origin = origin._replace(text=f"{text}{self._early.remark(name, needed.specifier)}")
        return Requirement(key, Matching(needed.specifier), origin)

    def _blocked(self, candidate: Candidate, release: PackageRelease) -> Requirement:
        """A version without a usable file cannot go with this Python, glibc or platform; with another it might."""
        name = release.blocked_by if Key(release.blocked_by) in self._problem.domains else "platform"
        key = Key(name)
        here = {"python": self._environment.python, "platform": self._environment.platform}.get(name, "")
        is_environment = bool(release.blocked_by) and bool(here)
        others = {one.label for one in self._problem.domains[key]} - {here} if is_environment else set()
        text = f"{release.name} {candidate.label}: {release.why_not}"
        origin = Origin("rule", release.name, f"{release.name} files", text, "the package index")
        return Requirement(key, Labelled(frozenset(others), release.why_not), origin)


def _unpublished(candidate: Candidate) -> Requirement:
    """A build that everybody compiles for themselves has no file to lock."""
    name = candidate.key.component
    text = f"{name} {candidate.label} cannot be locked: it is compiled from source, no binary is published"
    return Requirement(Key("platform"), Labelled(frozenset(), "no binary"), Origin("rule", name, f"{name} needs a wheel", text))


def extras_of(key: Key) -> tuple[str, ...]:
    """The extras of a key, none for that of the plain distribution."""
    _, _, extras = key.name.partition("[")
    return tuple(extras.rstrip("]").split(",")) if extras else ()


def _is_framework_extra(key: Key) -> bool:
    return key.is_package and key.name.startswith(f"{TORCH.name}[")


def _distribution(key: Key) -> NormalizedName:
    return canonicalize_name(key.name.partition("[")[0])
