"""What the matrix knows of Python distributions, as requirements of their versions: builds, undeclared needs and limits."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.specifiers import SpecifierSet

from provisioner.grounds.bound import Specifier
from provisioner.grounds.predicate import CompiledAgainst, CompiledForLocal, Needs, NeedsAbi, NeedsOutside, Requires
from provisioner.grounds.requirement import Entails, Relation, Row, Subject
from provisioner.grounds.source import MatrixRow
from provisioner.index.model import DIRECT_PATH, DIRECT_URL
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.places import Place
from provisioner.resolver.python.own_cuda import CUDA, own_cuda_needs
from provisioner.resolver.python.own_libraries import own_library_needs
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
    OneOf,
    Requirement,
    Within,
    build_of,
)
from provisioner.resolver.rules.needs import NOBODY, bound_of
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.grounds.predicate import Predicate
    from provisioner.index.model import PackageRelease
    from provisioner.matrix.model import Build, Matrix
    from provisioner.matrix.model_distributions import Distribution, DistributionLimit, ImpliedNeed
    from provisioner.matrix.need import Need
    from provisioner.resolver.problem import Problem

COMPILERS = frozenset({"pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu"})
"""Compilers that PyTorch builds for one kind of build; PyPI stopped at 2.1.0 of what ROCm's wheels pin in later versions.

Sources: pytorch/pytorch, .github/scripts/build_triton_wheel.py; uv documentation, "Using uv with PyTorch"; PyPI; read
2026-11-21.
"""

VARIANT_INDEX, DEFAULT = "variant-index", "default"
NO_VERSION = Version.named("")


def of_variant_indexes(matrix: Matrix) -> frozenset[str]:
    """PyTorch, and every distribution of which its indexes of builds have wheels."""
    served = (one.name for one in matrix.distributions if one.served_by == VARIANT_INDEX)
    return frozenset({DISTRIBUTION_OF_COMPONENT[PYTORCH.name], *COMPILERS, *served})


class _Limit(Struct, frozen=True):
    """One limit that holds on the target, with its specifier parsed and a key of its own."""

    row: DistributionLimit
    specifier: SpecifierSet
    key: Key
    source: MatrixRow

    def excludes(self, candidate: Candidate) -> bool:
        """Whether a version of the distribution may not be beside the framework's limited releases."""
        return not self.specifier.contains(candidate.pep440, prereleases=True)


class DistributionFacts:
    """Requirements that the matrix adds to those an index states, for one platform and one framework index.

    `variant_index` is the index of the framework build in question, "" for the default index.
    """

    def __init__(self, problem: Problem, variant_index: str) -> None:
        self._problem = problem
        self._variant_index = variant_index
        self._known = {one.name: one for one in problem.matrix.distributions}
        self._glibc = tuple(key for key in problem.domains if key.component == "glibc")
        self._limits = tuple(_limit(problem, row) for row in problem.matrix.limits if _holds(problem, row))
        roots = [root for root in problem.roots if root.key == PYTORCH]
        self._is_framework_required = bool(roots)
        left = [one for one in problem.domains.get(PYTORCH, ()) if all(root.allows(one) for root in roots)] if roots else []
        self._certain = [limit for limit in self._limits if left and all(limit.row.when.allows(one.version) for one in left)]

    def is_of_variant_index(self, name: str) -> bool:
        """Whether the framework's variant index alone has the versions of this distribution that its wheels pin."""
        return bool(self._variant_index) and name in COMPILERS

    def is_on_variant_index(self, name: str) -> bool:
        """Whether the framework's variant index has wheels of this distribution too."""
        return bool(self._variant_index) and name in self._known and self._known[name].served_by == VARIANT_INDEX

    @property
    def limited(self) -> frozenset[str]:
        """The distributions of which some versions may be hopeless."""
        return frozenset(limit.row.distribution for limit in self._certain)

    def is_hopeless(self, candidate: Candidate) -> bool:
        """Whether a limit excludes a version beside every release of the framework that the spec leaves.

        Such versions are listed last: before the search refuses one it reads its metadata, and NumPy 2 has dozens.
        """
        name = candidate.key.distribution
        return any(limit.row.distribution == name and limit.excludes(candidate) for limit in self._certain)

    def of(self, candidate: FileCandidate) -> tuple[Requirement, ...]:
        """Return what one version of a distribution requires beyond its metadata."""
        release = candidate.release
        found: list[Requirement] = []
        limits = [one for one in self._limits if one.row.distribution == release.name and one.excludes(candidate)]
        known = self._known.get(release.name)
        if known is not None:
            if _is_compiled(known, release):
                found.append(self._its_build(candidate, release, known))
            found.extend(self._implied(candidate, release, known))
        found.extend(own_library_needs(self._problem, candidate))
        found.extend(self._by_limit(limit, candidate) for limit in limits)
        return tuple(found)

    def of_framework(self, wheel: Candidate) -> tuple[Requirement, ...]:
        """What the limits ask of a framework's wheel; nothing when its key is bound directly."""
        if self._is_framework_required:
            return ()
        return tuple(_takes(limit, wheel) for limit in self._limits if limit.row.when.allows(wheel.version))

    def limit_of(self, key: Key) -> str:
        """The distribution of the limit a key belongs to, "" for the key of a distribution."""
        return next((limit.row.distribution for limit in self._limits if limit.key == key), "")

    def holders(self, key: Key, versions: tuple[Candidate, ...], wheels: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the candidates of a limit's key: one for each version it excludes, one for each build it is about."""
        limit = next(one for one in self._limits if one.key == key)
        holders = [one for one in versions if not one.has_no_file and limit.excludes(one)]
        holders.extend(one for one in wheels if limit.row.when.allows(one.version))
        return tuple(
            {label: HolderCandidate(key, NO_VERSION, label, one) for one in holders for label in [_named(one)]}.values()
        )

    def _by_limit(self, limit: _Limit, candidate: Candidate) -> Requirement:
        """Keep an excluded version and the limited releases of the framework apart, bringing neither along.

        Where the spec requires the framework anyway, the version simply needs another release of it, which is how people would
        put it. Elsewhere nobody knows beforehand whether a package will bring the framework in; then the version and the
        framework's wheel each need the limit's one seat. Both allow the same solutions. Only of conflicts the first way is not
        exact: where no release outside the limit exists for the target, the request for the framework may go unsaid.
        """
        if not self._is_framework_required:
            return _takes(limit, candidate)
        others = [one.label for one in self._problem.domains[PYTORCH] if not limit.row.when.allows(one.version)]
        return Requirement(PYTORCH, Labelled(frozenset(others)), _limited(limit, candidate))

    def _its_build(self, candidate: Candidate, release: PackageRelease, known: Distribution) -> Requirement:
        """Require the PyTorch build that a wheel is compiled for, as its index, or its local version, says."""
        is_variant = self._is_of_variant(release)
        wanted = self._variant_index if is_variant else "pypi"
        is_of_cuda = not is_variant and known.served_by == DEFAULT and bool(self._without_cuda)
        predicate: Predicate = CompiledAgainst(wanted, or_with_cuda=is_of_cuda)
        labels = self._of_cuda if is_of_cuda else self._builds(lambda build: build.index == wanted)
        local = release.version.local
        if release.file is not None and release.file.index in {DIRECT_PATH, DIRECT_URL} and local:
            # A file that is named by where it lies says by its local version which build it is for, as PyTorch's own do.
            labels = self._builds(lambda build: build.local == local)
            predicate = CompiledForLocal(local)
        place = self._place(f"distribution:{known.name}")
        ground = _entails(candidate, predicate, Relation(release.name, "pytorch_build"), place)
        return Requirement(PYTORCH, Labelled(labels), ground)

    def _builds(self, is_wanted: Callable[[Build], bool]) -> frozenset[str]:
        domain = self._problem.domains[PYTORCH]
        return frozenset(one.label for one in domain if (build := build_of(one)) is not None and is_wanted(build))

    @cached_property
    def _without_cuda(self) -> frozenset[Version]:
        """The releases whose default build for the target is a CPU build, as on Arm until PyTorch 2.10.

        What links CUDA and is on the default index alone was compiled for another build of these.
        """
        platform = self._problem.request.platform
        return frozenset(
            release.version
            for release in self._problem.matrix.components[PYTORCH.name].releases
            for build in release.builds
            if platform.startswith("linux/") and platform in build.platforms
            if build.index == "pypi" and build.accelerator == "cpu"
        )

    @cached_property
    def _of_cuda(self) -> frozenset[str]:
        """The default build of each release, and of those without CUDA there the builds that have it."""
        return frozenset(
            one.label
            for one in self._problem.domains[PYTORCH]
            if (build := build_of(one)) is not None
            and (build.accelerator == CUDA if one.version in self._without_cuda else build.index == "pypi")
        )

    def _is_of_variant(self, release: PackageRelease) -> bool:
        return bool(self._variant_index) and release.file is not None and release.file.index == self._variant_index

    def _implied(self, candidate: Candidate, release: PackageRelease, known: Distribution) -> Iterator[Requirement]:
        served_by = VARIANT_INDEX if self._is_of_variant(release) else DEFAULT
        for row in known.implied:
            if row.served_by in {"", served_by} and SpecifierSet(row.versions).contains(release.version, prereleases=True):
                place = self._place(f"distribution:{known.name} {row.versions}")
                for need in row.needs:
                    keys = self._glibc if need.component == "glibc" else (Key(need.component),)
                    yield from (_need(candidate, row, need, place=place, key=key) for key in keys)
                yield from (_package(candidate, row, needed, place=place) for needed in row.packages)
                if row.cxx11_abi is not None and served_by == DEFAULT and _has_one_abi(release):
                    yield self._of_its_abi(candidate, row, place=place)
                yield from own_cuda_needs(self._problem, candidate, row, place=place)

    def _of_its_abi(self, candidate: Candidate, row: ImpliedNeed, *, place: Place) -> Requirement:
        """PyTorch's functions that take strings or lists have other names in the other C++ ABI, so they are not found there."""
        labels = frozenset(one.label for one in self._problem.domains[PYTORCH] if has_abi(build_of(one), row))
        relation = Relation(candidate.key.name, "pytorch_build")
        ground = _entails(candidate, NeedsAbi(is_new=bool(row.cxx11_abi)), relation, place)
        return Requirement(PYTORCH, Labelled(labels), ground)

    def _place(self, position: str) -> Place:
        return Place.parse(self._problem.matrix.positions.get(position, "the matrix"))


def _is_compiled(known: Distribution, release: PackageRelease) -> bool:
    """Whether this file was compiled against some build; a source distribution will be, against whatever is installed."""
    is_wheel = release.file is not None and release.file.filename.endswith(".whl")
    if known.compiled_against != PYTORCH.name or not is_wheel:
        return False
    return SpecifierSet(known.versions).contains(release.version, prereleases=True)


def has_abi(build: Build | None, row: ImpliedNeed) -> bool:
    """Whether a build of PyTorch is of the C++ ABI of a row, where both are known; what is not known is held against nobody."""
    return build is None or build.cxx11_abi is None or row.cxx11_abi in {None, build.cxx11_abi}


def _has_one_abi(release: PackageRelease) -> bool:
    """Whether the file is a wheel with code for Linux and for no build in particular: on macOS there is one ABI only."""
    filename = release.file.filename if release.file is not None else ""
    return filename.endswith(".whl") and "linux" in filename and not release.version.local


def _need(candidate: Candidate, row: ImpliedNeed, need: Need, *, place: Place, key: Key) -> Requirement:
    predicate = Needs(need.component, (bound_of(need),), row.because)
    ground = _entails(candidate, predicate, Relation(candidate.key.name, need.component, "undeclared"), place)
    return Requirement(key, OneOf(need.one_of) if need.one_of else Within(need.range), ground)


def _package(candidate: Candidate, row: ImpliedNeed, needed: tuple[str, str], *, place: Place) -> Requirement:
    other, specifier = needed
    predicate = Requires(other, (Specifier(specifier),), row.because)
    ground = _entails(candidate, predicate, Relation(candidate.key.name, other, "undeclared"), place)
    return Requirement(Key(other, PACKAGE), Matching(SpecifierSet(specifier)), ground)


def _entails(candidate: Candidate, predicate: Predicate, relation: Relation | Row, source: Place | MatrixRow) -> Entails:
    name = candidate.key.name
    return Entails(name=name, subject=Subject(name, candidate.label), predicate=predicate, relation=relation, cited=source)


def _holds(problem: Problem, row: DistributionLimit) -> bool:
    """Whether a limit is about PyTorch and binds on some host of the target."""
    hosts = problem.request.hosts or (NOBODY,)
    return row.when.component == PYTORCH.name and any(problem.needs.guards.hold(row.guards, target) for target in hosts)


def _limit(problem: Problem, row: DistributionLimit) -> _Limit:
    place = Place.parse(problem.matrix.positions.get(f"limit:{row.name}", "the matrix"))
    key = Key(f"limit {row.name}", PACKAGE)
    return _Limit(row, SpecifierSet(row.specifier), key, MatrixRow("limit", row.name, place))


def _takes(limit: _Limit, holder: Candidate) -> Requirement:
    return Requirement(limit.key, Labelled(frozenset({_named(holder)})), _limited(limit, holder))


def _limited(limit: _Limit, holder: Candidate) -> Entails:
    row, name = limit.row, holder.key.name
    subject = Subject(name, holder.label)
    if holder.key == TORCH:
        predicate: Predicate = Requires(row.distribution, (Specifier(row.specifier),), row.because)
        relation = Row("limit", row.name, PYTORCH.name)
        return Entails(name=PYTORCH.name, subject=subject, predicate=predicate, relation=relation, cited=limit.source)
    predicate = NeedsOutside(PYTORCH.name, row.when.range, row.because)
    return Entails(name=name, subject=subject, predicate=predicate, relation=Row("limit", row.name), cited=limit.source)


def _named(holder: Candidate) -> str:
    return f"{holder.key.name} {holder.label}"
