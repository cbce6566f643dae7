"""Candidates and requirements of Python distributions, read from indexes and metadata for one target environment."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.grounds.bound import Specifier
from provisioner.grounds.choice import IndexLeftOut
from provisioner.grounds.predicate import (
    InstalledAs,
    InstalledFromWheel,
    IsExtraOf,
    IsPrerelease,
    LacksExtra,
    NoFile,
    NoWheel,
    Requires,
    RequiresFile,
    Unpublished,
)
from provisioner.grounds.requirement import FILES, WHEEL, Entails, Relation, SameChoice, Subject
from provisioner.grounds.source import Index, Metadata
from provisioner.index.direct_reference import shown_url
from provisioner.index.markers import Markers, marker_environment
from provisioner.index.metadata.core_metadata import UnusableMetadataError
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.choices.frameworks import install_requirement
from provisioner.resolver.problem import package_key
from provisioner.resolver.python.discovered import DirectUrls, Discoveries, PrereleaseVersions, names_prerelease
from provisioner.resolver.python.distributions import DistributionFacts
from provisioner.resolver.python.libraries import Libraries, LibraryRequirements, ProviderCandidate
from provisioner.resolver.requirement import (
    NO_VERSION,
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
from provisioner.resolver.rules.policy import VersionPreference
from provisioner.resolver.rules.shared_files import SharedFiles
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from packaging.requirements import Requirement as Pep508
    from packaging.utils import NormalizedName

    from provisioner.grounds.source import Source
    from provisioner.index.model import Environment, IndexFile, PackageRelease, PackageSource
    from provisioner.resolver.problem import Problem


ReadsAhead = Literal["everything", "named", "nothing"]
"""What is read before it is asked for: all that the most likely answer may have, the distributions that the spec names alone,
or nothing. A search for an answer reads ahead; one that only looks at some versions would do so in vain."""


class VariantIndexes:
    """The indexes of a framework's builds (`cu126`, `rocm6.2`), and which of them cannot be reached.

    Many machines reach only a mirror of PyPI. So an index of builds that cannot be reached counts as empty, unless the spec
    names the index. An answer found without an index has a warning about it. A problem without an answer is then not reported
    as impossible, because the index was not read.
    """

    def __init__(self, problem: Problem, source: PackageSource) -> None:
        self._named = {one.name for one in problem.request.spec.indexes if one.kind == "index"}
        self._source = source
        self.unreached: dict[str, UnavailableError] = {}
        """The error of each index that cannot be reached, by the index's name."""

    def releases(self, name: NormalizedName, index: str) -> tuple[PackageRelease, ...]:
        """Return the releases of a distribution on an index of builds; () when the index cannot be reached.

        Raises `UnavailableError` instead if the spec names the index. After one failure, indexes of the same kind are not
        tried.
        """
        other = self._error_of(index)
        if other is not None:
            self.unreached.setdefault(index, other)
            return ()
        try:
            return tuple(self._source.releases(name, index=index))
        except UnavailableError as error:
            if self._named & {index, index.partition("-")[0]}:
                raise
            self.unreached[index] = error
            return ()

    def is_out_of_reach(self, index: str) -> bool:
        """Return whether an index cannot be reached, or would not be tried because another one of its kind cannot."""
        return self._error_of(index) is not None

    def _error_of(self, index: str) -> UnavailableError | None:
        family = index.partition("-")[0]
        return next((error for one, error in self.unreached.items() if one.partition("-")[0] == family), None)

    @property
    def left_out(self) -> tuple[IndexLeftOut, ...]:
        """The warnings about indexes that were not read, one for each error: such an index may have a preferred version.

        These are warnings and not doubts, because the answer was verified. So solving a lock again without that index returns
        the same lock if no version changes.
        """
        return tuple(
            IndexLeftOut(
                indexes=tuple(sorted(index for index, one in self.unreached.items() if one is error)), problem=error.message
            )
            for error in dict.fromkeys(self.unreached.values())
        )

    def why_not(self, index: str) -> str:
        """Return the reason why the file of a build was not found on an index, as part of an error message."""
        if index in self.unreached:
            return f"index {index} is out of reach"
        if self._named and not self._named & {index, index.partition("-")[0]}:
            entry = f'{{name: {index.partition("-")[0]}, url: "https://…/{{variant}}"}}'
            return f"it is of index {index}, which `indexes:` does not list, as `{entry}` would"
        return f"index {index} has no such file"


class PackageFinder:
    """Finds the candidates and requirements of distributions, for one platform, Python and glibc.

    `variant_index` is the index of the framework build preferred for the target; distributions compiled against the framework
    are looked up there, too. `discoveries` are what the search found before a restart, None for a first search. `answer` is the
    earlier answer whose wheels lacked libraries; those libraries are required now. Nothing is read
    in the background before `read_ahead` is called.
    """

    def __init__(
        self,
        problem: Problem,
        source: PackageSource,
        environment: Environment,
        variant_index: str = "",
        *,
        discoveries: Discoveries | None = None,
        answer: Mapping[Key, Candidate] | None = None,
    ) -> None:
        self._source = source
        self._reads_ahead: ReadsAhead = "nothing"
        self._problem = problem
        self.markers = Markers(marker_environment(environment))
        self.environment = environment
        self._variant_index = "" if variant_index == "pypi" else variant_index
        self._facts = DistributionFacts(problem, self._variant_index)
        self.variant_indexes = VariantIndexes(problem, source)
        self.libraries = Libraries(problem, self._facts.wheels)
        """The CUDA libraries that the wheels need and provide."""
        self.answer = answer
        self.required_libraries: LibraryRequirements | None = None
        """The requirements on what provides CUDA libraries; None unless an earlier answer lacked some."""
        if answer is not None:
            self.required_libraries = LibraryRequirements(problem, self.libraries, answer, self.candidates)
        self.shared = SharedFiles(problem.matrix, problem.request)
        """The requirements that only one distribution writes a file which several contain."""
        applicable = [pair for pair in problem.packages if self.markers.hold(pair[0].marker)]
        self.discoveries = discoveries if discoveries is not None else Discoveries()
        self._direct_urls = DirectUrls(source, applicable, self.discoveries)
        self._prereleases = PrereleaseVersions(source, self.discoveries)
        self._candidates: dict[Key, tuple[Candidate, ...]] = {}
        self._asked: dict[int, _Asked] = {}
        """What requirements of metadata ask for, by the identity of each: many versions have the same, as one object.

        To spell or to hash one takes longer than all the rest of its translation.
        """
        self._read_already: set[NormalizedName] = set()
        """The projects that are read ahead."""
        self.order: dict[Key, int] = {}
        """The rank of each distribution that the spec names, in the spec's order, except for those to upgrade."""
        self._named = {canonicalize_name(one.name) for one, _ in applicable}
        self._requested_extras = self._extras_of_the_spec()
        self.roots = self._roots()
        """The root requirements on distributions."""

    def _extras_of_the_spec(self) -> dict[tuple[str, str], list[SpecifierSet]]:
        """Return, for each distribution and extra requested by the spec, the specifiers of the distribution in the spec.

        They are those of its lines and those of its constraints.
        """
        lines = [one for one, _ in self._problem.packages if self.markers.hold(one.marker)]
        bounds = [one for one, _ in self._problem.constraints if self.markers.hold(one.marker)]
        specifiers: dict[str, list[SpecifierSet]] = {}
        for line in (*lines, *bounds):
            specifiers.setdefault(canonicalize_name(line.name), []).append(line.specifier)
        names = ((canonicalize_name(line.name), canonicalize_name(extra)) for line in lines for extra in line.extras)
        return {(name, extra): specifiers[name] for name, extra in names}

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
            if key.project not in self._problem.request.upgraded:
                self.order.setdefault(key, len(self.order))
            if requirement.url is not None:
                roots.append(self._direct_urls.root(key, requirement.url, ground))
            else:
                roots.append(Requirement(key, Matching(requirement.specifier), ground))
                roots.extend(self.shared.named(key.name, ground))
        return tuple(roots)

    def read_ahead(self, what: ReadsAhead) -> None:
        """Read in the background, from now on, what may be asked for next: the distributions that the spec names first."""
        self._reads_ahead = what
        if what != "nothing":
            names = [root.key.project for root in self.roots if root.key.is_package and not _is_framework_extra(root.key)]
            given = self._direct_urls.is_given
            self._source.prefetch((name for name in names if not given(name)), follows=what == "everything")

    def look_ahead(self, keys: Iterable[Key]) -> None:
        """Read the pages of distributions in the background, and what their likely versions require."""
        self._source.prefetch((key.project for key in keys), follows=False)

    def _read_ahead(self, names: Iterable[NormalizedName]) -> None:
        if self._reads_ahead == "everything":
            new = dict.fromkeys(name for name in names if name not in self._read_already)
            self._read_already.update(new)
            self._source.prefetch(new)

    def candidates(self, key: Key) -> tuple[Candidate, ...]:
        """Return every candidate of a distribution or mutex, in order of preference, cached.

        A version that cannot be installed is included; its requirements cannot be met. Raises `UnavailableError` when an index
        cannot be reached.
        """
        found = self._candidates.get(key)
        if found is None:
            found = self._candidates[key] = self._read(key)
        return found

    def _read(self, key: Key) -> tuple[Candidate, ...]:
        if key == TORCH:
            builds = (one for one in self._problem.domains[PYTORCH] if isinstance(one, ReleaseCandidate))
            return tuple(WheelCandidate(TORCH, one.version, one.label, one) for one in builds)
        if _is_framework_extra(key):
            return tuple(HolderCandidate(key, NO_VERSION, one.label, one) for one in self.candidates(TORCH))
        limited = self._facts.limit_of(key)
        if limited:
            return self._facts.holders(key, self.candidates(Key(limited, PACKAGE)), self.candidates(TORCH))
        holders = self._direct_urls.holders(key)
        if holders is None and self.required_libraries is not None:
            holders = self.required_libraries.providers(key)
        if holders is not None:
            return holders
        name = key.project
        if self._direct_urls.is_given(name):
            return tuple(self._direct_urls.candidates(key))
        is_own = self._facts.is_only_on_variant_index(name)
        releases = self._source.releases(name, index=self._variant_index if is_own else "")
        others = self._prereleases.releases(name)
        if self._facts.is_also_on_variant_index(name):
            others = (*others, *self.variant_indexes.releases(name, self._variant_index))
        is_oldest = self._problem.request.spec.policy.strategy == "oldest"
        if others or is_oldest:  # otherwise not sorted: releases come newest first, and a project may have a thousand
            releases = tuple(sorted((*releases, *others), key=lambda one: one.version, reverse=not is_oldest))
        found = [FileCandidate(key, NO_VERSION, release.version_text, release) for release in releases]
        found.extend(self._direct_urls.candidates(key))
        if name in self._facts.limited:
            found.sort(key=self._facts.rank)
        return tuple(self._arranged(found, name))

    def _arranged(self, found: list[FileCandidate], name: str) -> list[FileCandidate]:
        """Return versions in order of preference: withheld ones last, then by the policy, then the locked version first.

        Of a distribution that the spec does not name, source distributions come after all wheels (pip's `--prefer-binary`):
        they were allowed for the one that has nothing else, and building others needs compilers and time.
        """
        request = self._problem.request
        preference, locked = VersionPreference(request, name), request.preferred.get(name)
        if name not in self._named and any(one.is_source for one in found):
            found = sorted(found, key=lambda one: one.is_source)
        if locked is not None:
            found = sorted(found, key=lambda one: one.label != locked)
        if preference:
            found = sorted(found, key=preference.rank)
        # Yanked releases are for exact pins only (PEP 592), so they come last, as do pre-releases; ranges never choose them.
        is_any = any(one.is_withheld for one in found)
        return sorted(found, key=lambda one: one.is_withheld) if is_any else found

    def rank(self, candidate: Candidate) -> int:
        """Return 0 for a version ordered by its number alone, more for one to try last, such as one that was never measured."""
        return self._facts.rank(candidate) if candidate.key.distribution in self._facts.limited else 0

    def requirements(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return the requirements of a candidate but those of `of_matrix`.

        A version that cannot be installed has a requirement that cannot be met in this environment; its ground is the reason.
        Raises `UnavailableError` when its metadata cannot be reached.
        """
        if isinstance(candidate, WheelCandidate):
            return (*self._framework(candidate.build), *self._facts.of_framework(candidate))
        if isinstance(candidate, HolderCandidate):
            is_extra = _is_framework_extra(candidate.key)
            return self._framework_extra(candidate) if is_extra else self._direct_urls.of_holder(candidate)
        if isinstance(candidate, ProviderCandidate):
            return (candidate.needs,)
        assert isinstance(candidate, FileCandidate), "a distribution has files, or a holder that has"
        release, file = candidate.release, candidate.release.file
        if file is None:
            return (self._blocked(candidate),)
        if release.version.is_prerelease and "prerelease" in self._problem.request.spec.policy.forbid:
            return (self._problem.needs.policy.lift(candidate, "prerelease", IsPrerelease(), source=Index(file.index)),)
        try:
            return self._declared(candidate)
        except UnusableMetadataError as error:
            allowance = "build" if error.is_build_needed else ""
            ground = _no_file(candidate, NoFile(error.reason, allowance=allowance))
            return (Requirement(Key("platform"), Labelled(frozenset()), ground),)

    def _declared(self, candidate: FileCandidate) -> tuple[Requirement, ...]:
        release, extras = candidate.release, candidate.key.extras
        if extras:
            return self._extra(candidate, extras)
        found = self._translated(candidate.key, candidate.label, self._applicable(release, ("",)))
        self._read_ahead(requirement.key.project for requirement in found if requirement.key.is_package)
        return (*found, *self._direct_urls.support(candidate))

    def of_matrix(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return the requirements that the matrix adds to those of a version's metadata, which is not read for them.

        () for a version without a file, for one with extras, whose plain version has them, and for what is no distribution.
        """
        if not isinstance(candidate, FileCandidate) or candidate.has_no_file or candidate.key.extras:
            return ()
        return self._facts.of(candidate)

    def on_gpus(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return what the matrix says that a version of a distribution needs of the GPUs, in whatever file it comes."""
        return self._facts.on_gpus(candidate) if isinstance(candidate, FileCandidate) else ()

    def _extra(self, candidate: FileCandidate, extras: tuple[str, ...]) -> tuple[Requirement, ...]:
        release = candidate.release
        same: Test = Matching(SpecifierSet(f"==={release.version_text}"))
        if candidate.is_direct:
            same = Labelled(frozenset({candidate.label}))
        exactly = Requirement(Key(release.name, PACKAGE), same, _is_extra(candidate, release.name))
        lacking = [self._lacks_extra(candidate, extra) for extra in extras]
        needed = self._required_by_extras(release, extras)
        return (exactly, *filter(None, lacking), *self._translated(candidate.key, candidate.label, needed))

    def _lacks_extra(self, candidate: FileCandidate, extra: str) -> Requirement | None:
        """Return a requirement that cannot be met, if a version lacks an extra of the spec that a newer version has; else None.

        An installer would install the version without what the extra was requested for. The newest version that the spec
        admits decides, with a file for this environment or for another Python, glibc or platform alone. An extra that even this
        one lacks is a mistake of the spec, of which the answer warns.
        """
        specifiers = self._requested_extras.get((candidate.key.project, extra))
        if specifiers is None or self.extras_without(candidate.release, extra) is None:
            return None
        plain = (one for one in self.candidates(Key(candidate.key.project, PACKAGE)) if isinstance(one, FileCandidate))
        published = (one for one in plain if (one.release.has_file or one.release.blocked_by) and not one.is_withheld)
        newest = max(
            (one for one in published if all(each.contains(one.pep440, prereleases=True) for each in specifiers)),
            key=lambda one: one.pep440,
            default=candidate,
        )
        if newest.pep440 <= candidate.pep440 or not self._has_extra(newest.release, extra):
            return None
        name = candidate.release.name
        ground = Entails(
            name=name,
            subject=Subject(name, candidate.label),
            predicate=LacksExtra(extra, newest.label),
            relation=Relation(name, f"the extra {extra}"),
            cited=Metadata(name, candidate.label),
        )
        return Requirement(Key("platform"), Labelled(frozenset()), ground)

    def _has_extra(self, release: PackageRelease, extra: str) -> bool:
        """Return whether a release has an extra.

        Raises `UnavailableError` if it has no file for this environment and its other files cannot be reached.
        """
        if release.has_file:
            return self.extras_without(release, extra) is None
        try:
            return extra in self._source.extras(release)
        except UnusableMetadataError:
            return False

    def _framework_extra(self, candidate: HolderCandidate) -> tuple[Requirement, ...]:
        """Return the requirements of an extra of PyTorch's wheel, such as `torch[opt-einsum]`: on the extra's packages.

        Another requirement is that PyTorch is of the same build.
        """
        ground = _is_extra(candidate, PYTORCH.name)
        exactly = Requirement(PYTORCH, Labelled(frozenset({candidate.label})), ground)
        assert isinstance(candidate.holder, WheelCandidate), "an extra of the framework is held by its wheel"
        release = self.framework_release(candidate.holder.build)
        if release is None or not release.has_file:
            return (exactly,)  # the requirements of the build state the reason
        needed = self._required_by_extras(release, candidate.key.extras)
        return (exactly, *self._translated(candidate.key, candidate.label, needed))

    def distribution_requirement(self, candidate: ReleaseCandidate) -> Requirement:
        """Return the requirement of a build of another framework than PyTorch on its distribution, such as `jax[cuda12]`.

        It cannot be met if no file of the build is published.
        """
        release, build = candidate.release, candidate.build
        name = candidate.key.component
        if build is not None and build.compiled:
            return _unpublished(candidate)
        wanted = install_requirement(name, str(release.version), build)
        extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
        predicate = InstalledAs(f"{wanted.name}{extras}", (Specifier(str(wanted.specifier)),))
        source = Index(build.index) if build is not None and build.index else None
        ground = candidate.entails(predicate, Relation(name, "its wheels"), source)
        return Requirement(package_key(wanted), Matching(wanted.specifier), ground)

    def wheel_requirement(self, candidate: ReleaseCandidate) -> Requirement:
        """Return the requirement of a PyTorch build on the wheel that it is installed from.

        It cannot be met if no wheel of the build is published.
        """
        build = candidate.build
        assert build is not None, "every release of PyTorch has builds"
        if build.compiled:
            return _unpublished(candidate)
        ground = candidate.entails(InstalledFromWheel(), Relation(PYTORCH.name, "its wheel"), Index(build.index))
        return Requirement(TORCH, Labelled(frozenset({candidate.label})), ground)

    def _framework(self, candidate: ReleaseCandidate) -> tuple[Requirement, ...]:
        """Return the requirements of a PyTorch build's wheel, read from the index that has the build.

        Without a wheel for this Python, the build requires another Python.
        """
        release = self.framework_release(candidate)
        if release is None or not release.has_file:
            build = candidate.build
            assert build is not None, "every release of PyTorch has builds"
            problem = release.why_not if release else self.variant_indexes.why_not(build.index)
            ground = Entails(
                name=PYTORCH.name,
                subject=Subject(TORCH.name, candidate.label),
                predicate=NoWheel(problem),
                relation=Relation(PYTORCH.name, WHEEL),
                cited=Index(build.index),
            )
            others = {one.label for one in self._problem.domains[Key("python")]} - {self.environment.python}
            return (Requirement(Key("python"), Labelled(frozenset(others)), ground),)
        found = self._translated(PYTORCH, candidate.label, self._applicable(release, ("",)))
        names = [requirement.key.project for requirement in found if requirement.key.is_package]
        self._read_ahead(name for name in names if not self._facts.is_only_on_variant_index(name))
        return tuple(found)

    def listed(self, candidate: ReleaseCandidate) -> tuple[PackageRelease, ...]:
        """Return every release on the index that has the files of a framework build, newest first.

        () for a build that is compiled from source or that the spec names by URL or path, and for a release without builds.
        """
        name, build = canonicalize_name(DISTRIBUTION_OF_COMPONENT[candidate.key.component]), candidate.build
        if build is None or build.compiled or self._direct_urls.given(name) is not None:
            return ()
        return self._of_index(name, build.index)

    def framework_release(self, candidate: ReleaseCandidate) -> PackageRelease | None:
        """Return the index's release of a framework build; None when the index does not list it.

        If the spec names the framework by URL or path, that release is returned, or None when it is of another build.
        """
        release, build = candidate.release, candidate.build
        assert build is not None, "every release of a framework has builds"
        name = canonicalize_name(DISTRIBUTION_OF_COMPONENT[candidate.key.component])
        wanted = PackageVersion(f"{release.version}+{build.local}" if build.local else str(release.version))
        given = self._direct_urls.given(name)
        if given is not None:
            return given if given.version == wanted else None
        return next((one for one in self._of_index(name, build.index) if one.version == wanted), None)

    def _of_index(self, name: NormalizedName, index: str) -> tuple[PackageRelease, ...]:
        """Return the releases of a framework on the index of its builds, newest first."""
        return self._source.releases(name) if index == "pypi" else self.variant_indexes.releases(name, index)

    def _applicable(self, release: PackageRelease, extras: tuple[str, ...]) -> list[Pep508]:
        return list(self._source.requirements(release, extras))

    def _required_by_extras(self, release: PackageRelease, extras: tuple[str, ...]) -> list[Pep508]:
        """Return the requirements of a release that apply only with some extras."""
        plain = {str(needed) for needed in self._applicable(release, ("",))}
        return [needed for needed in self._applicable(release, extras) if str(needed) not in plain]

    def release_of(self, candidate: Candidate) -> PackageRelease:
        """Return the index's release of a candidate of a distribution; for PyTorch's wheel, the release of its build."""
        if isinstance(candidate, HolderCandidate):
            return self.release_of(candidate.holder)
        if isinstance(candidate, FileCandidate):
            return candidate.release
        assert isinstance(candidate, WheelCandidate), "every candidate of a distribution has a release"
        release = self.framework_release(candidate.build)
        assert release is not None, "a chosen distribution has a release"
        return release

    def is_built(self, file: IndexFile) -> bool:
        """Return whether the requirements of a file were found by building it on this machine."""
        return self._direct_urls.is_built(file)

    def is_packed(self, file: IndexFile) -> bool:
        """Return whether the requirements of a file are those that it was packed with, and left to a build."""
        return self._direct_urls.is_packed(file)

    def applicable(self, candidate: Candidate) -> list[Pep508]:
        """Return the requirements of a chosen distribution whose markers hold here, as written in its metadata."""
        return self._applicable(self.release_of(candidate), candidate.key.extras or ("",))

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        """Return the extras that the metadata of a release names, normalized; raises `UnavailableError` if unreachable."""
        return self._source.extras(release)

    def extras_without(self, release: PackageRelease, extra: str) -> tuple[str, ...] | None:
        """Return the extras of a release that lacks `extra`; None if the release has it, or its metadata is unreadable.

        A release also has an extra that only a marker of its requirements names, because metadata may leave out the name.
        """
        if self._required_by_extras(release, (extra,)):
            return None
        try:
            known = self._source.extras(release)
        except ProvisionError:
            return None
        return None if extra in known else tuple(sorted(known))

    def _translated(self, subject: Key, label: str, applicable: Iterable[Pep508]) -> list[Requirement]:
        """Return the requirements in a distribution's metadata, with the spec's overrides in place of the overridden ones."""
        overrides = self._problem.overrides
        of = _Origin("pytorch" if subject == PYTORCH else subject.name, label)
        if not overrides:
            return [self._translate(subject, of, needed) for needed in applicable]
        found = []
        for needed in applicable:
            replacements = overrides.of(canonicalize_name(needed.name))
            if not replacements:
                found.append(self._translate(subject, of, needed))
            for override, ground in replacements:
                if self.markers.hold(override.marker):
                    found.append(replace(self._translate(subject, of, override), ground=ground))
        return found

    def _translate(self, subject: Key, of: _Origin, needed: Pep508) -> Requirement:
        asked = self._asked.get(id(needed))
        if asked is None:
            asked = self._asked[id(needed)] = _Asked(needed)
        key, name = asked.key, asked.name
        component = self._problem.component_of(name)
        ground = Entails(
            name=of.name, subject=of.subject, predicate=asked.predicate, relation=_relation(of.name, name), cited=of.cited
        )
        is_component = component and not needed.extras and (component == PYTORCH.name or subject.name != name)
        key = Key(component) if is_component else key
        if needed.url is not None and (is_component or subject == PYTORCH):
            # The matrix knows the needs of published builds only, and the build indexes have only wheels of those.
            of_specs = RequiresFile(name=needed.name, url=shown_url(needed.url), is_for_specs=True)
            return Requirement(key, Labelled(frozenset()), replace(ground, predicate=of_specs))
        if needed.url is not None:
            # A file by URL must not be replaced by another file that an index has under the same name.
            holder = next(one for one in self.candidates(subject) if one.label == of.label)
            return self._direct_urls.required(key, needed, holder=holder, ground=ground)
        if key.is_package and not self._direct_urls.is_given(name):
            if asked.names_prerelease:
                self._prereleases.discover(name, needed.specifier, lambda: self.candidates(Key(name, PACKAGE)))
            elif self._prereleases.is_final_only(name, needed.specifier):
                ground = replace(ground, predicate=replace(asked.predicate, is_final_only=True))
        return Requirement(key, asked.test, ground)

    def _blocked(self, candidate: FileCandidate) -> Requirement:
        """Return the requirement of a version without a usable file, which needs another Python, glibc or platform.

        It allows every other Python or platform, or a newer glibc, if that is what excludes the files; else it cannot be met.
        """
        release = candidate.release
        key = self._bound_glibc if release.blocked_by == "glibc" else Key(release.blocked_by)
        ground = _no_file(candidate, NoFile(release.why_not, release.blocked_by, release.allowance), Index())
        here = {"python": self.environment.python, "platform": self.environment.platform}.get(release.blocked_by, "")
        if key is None or key not in self._problem.domains:
            return Requirement(Key("platform"), Labelled(frozenset()), ground)
        if release.blocked_by == "glibc":
            return Requirement(key, Labelled(frozenset(self._newer_glibc(self._problem.domains[key]))), ground)
        others = {one.label for one in self._problem.domains[key]} - {here} if here else set()
        return Requirement(key, Labelled(frozenset(others)), ground)

    @cached_property
    def _bound_glibc(self) -> Key | None:
        """The glibc that files are held against, if nothing in the problem can make it newer: of a host or of the base image.

        None where an unstated glibc or another base image may be newer: which files there are for that one is not known here.
        """
        for key, domain in self._problem.domains.items():
            if key.component == "glibc":
                newer = set(self._newer_glibc(domain))
                possible = {one.label for one in self._left(key)}
                for stating in (Key("image"), Key("os", key.scope)):
                    stated = [self._glibc_beside(one, key) for one in self._left(stating)]
                    possible &= set().union(*stated) if stated else possible
                if possible and not possible & newer:
                    return key
        return None

    def _glibc_beside(self, candidate: Candidate, glibc: Key) -> set[str]:
        """Return the versions of glibc that a base image, or the system of a host, goes with."""
        needs = [one for one in self._problem.needs.of(candidate) if one.key == glibc]
        return {one.label for one in self._problem.domains[glibc] if all(need.allows(one) for need in needs)}

    def _left(self, key: Key) -> list[Candidate]:
        """Return the candidates of a component that the requests and the facts of hosts allow."""
        roots = [root for root in self._problem.roots if root.key == key]
        return [one for one in self._problem.domains.get(key, ()) if all(root.allows(one) for root in roots)]

    def _newer_glibc(self, domain: Iterable[Candidate]) -> list[str]:
        """Return the versions of glibc that are newer than that of the environment."""
        here = self.environment.glibc
        return [one.label for one in domain if here is not None and Version.parse(one.label).release[:2] > here]


class _Origin:
    """The version whose metadata has some requirements: what their grounds share."""

    def __init__(self, name: str, label: str) -> None:
        self.name, self.label = name, label
        self.subject, self.cited = Subject(name, label), Metadata(name, label)


class _Asked:
    """What a requirement of metadata asks for: a distribution, and which versions of it, as a predicate and as a test."""

    def __init__(self, needed: Pep508) -> None:
        self.needed = needed
        """The requirement itself, so that no other one gets its identity."""
        self.key = package_key(needed)
        self.name = self.key.project
        self.predicate = Requires(needed.name, (Specifier(str(needed.specifier)),))
        self.test = Matching(needed.specifier)
        self.names_prerelease = names_prerelease(needed.specifier)


_relation = lru_cache(maxsize=65536)(Relation)


def _unpublished(candidate: Candidate) -> Requirement:
    """Return the requirement of a build without a published file, which cannot be met: the build could not be locked."""
    ground = candidate.entails(Unpublished(), Relation(candidate.key.component, WHEEL))
    return Requirement(Key("platform"), Labelled(frozenset()), ground)


def _no_file(candidate: FileCandidate, predicate: NoFile, source: Source | None = None) -> Entails:
    """Return the ground that no file of a version can be installed, with or without extras."""
    name = candidate.release.name
    subject = Subject(name, candidate.label)
    return Entails(name=name, subject=subject, predicate=predicate, relation=Relation(name, FILES), cited=source)


def _is_extra(candidate: Candidate, of: str) -> Entails:
    """Return the ground of the requirement of a distribution with extras on the plain distribution."""
    return replace(candidate.entails(IsExtraOf(of), SameChoice(candidate.key.name, of)), name=of)


def _is_framework_extra(key: Key) -> bool:
    return key.is_package and key.name.startswith(f"{TORCH.name}[")
