"""The matrix's rows on Python distributions as requirements of their versions: builds, undeclared requirements and limits.

A limit excludes versions of a distribution if certain releases of PyTorch are chosen. A mutex is an artificial key with several
candidates, each required by a candidate of another key, its holder. Only one candidate of a key is chosen, so only one of the
holders can be.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from provisioner.grounds.bound import Specifier
from provisioner.grounds.predicate import (
    CompiledAgainst,
    CompiledForLocal,
    Needs,
    NeedsAbi,
    NeedsOutside,
    Requires,
)
from provisioner.grounds.requirement import Entails, Relation, Row
from provisioner.grounds.source import MatrixRow
from provisioner.index.model import DIRECT_PATH, DIRECT_URL
from provisioner.matrix.once import once_per_matrix
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.python.bundled import (
    CUDA,
    bundled_cuda_requirements,
    bundled_library_requirements,
    is_known_library,
)
from provisioner.resolver.python.named_builds import named_build, named_build_requirement
from provisioner.resolver.python.wheels import USELESS, GpuWheels
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
    OneOf,
    Requirement,
    Within,
    build_of,
)
from provisioner.resolver.rules.needs import NO_HOST, bound_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provisioner.grounds.predicate import Predicate
    from provisioner.index.model import PackageRelease
    from provisioner.matrix.model import Build, Distribution, DistributionLimit, ImpliedNeed, Matrix
    from provisioner.matrix.need import Need
    from provisioner.places import Place
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.versions import Version


COMPILERS = frozenset({"pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu"})
"""Distributions of Triton, each for one kind of PyTorch build.

PyTorch's ROCm wheels pin versions later than 2.1.0, the last on PyPI. Sources: pytorch/pytorch,
.github/scripts/build_triton_wheel.py; uv documentation, "Using uv with PyTorch"; PyPI; read 2026-11-21.
"""

_specifier = lru_cache(maxsize=1024)(SpecifierSet)

VARIANT_INDEX, DEFAULT = "variant-index", "default"
GPU = "gpu"


def of_variant_indexes(matrix: Matrix) -> frozenset[str]:
    """Return the distributions of which PyTorch's build indexes (`cu126`, `rocm6.2`) have wheels, including PyTorch itself."""
    served = (one.name for one in matrix.distributions if one.served_by == VARIANT_INDEX)
    return frozenset({DISTRIBUTION_OF_COMPONENT[PYTORCH.name], *COMPILERS, *served})


class _Limit(Struct, frozen=True):
    """A limit of the matrix (`row`) that applies to a host of the target.

    `specifier` are the versions of the distribution that the limit does not exclude, `key` is the key of the limit's mutex, and
    `source` the citation of the row.
    """

    row: DistributionLimit
    specifier: SpecifierSet
    key: Key
    source: MatrixRow

    def excludes(self, candidate: Candidate) -> bool:
        """Return whether a version of the distribution cannot be chosen with the PyTorch releases that the limit is about."""
        return not self.specifier.contains(candidate.pep440, prereleases=True)


@once_per_matrix
def _by_name(matrix: Matrix) -> dict[str, Distribution]:
    return {one.name: one for one in matrix.distributions}


class DistributionFacts:
    """The requirements that the matrix adds to those of metadata, for one target and one index of PyTorch builds.

    `variant_index` is the index of the PyTorch build, such as `pytorch-cu126`; "" for the default index.
    """

    def __init__(self, problem: Problem, variant_index: str) -> None:
        self._problem = problem
        self._variant_index = variant_index
        self.wheels = GpuWheels(problem, variant_index)
        self._known = _by_name(problem.matrix)
        self._glibc = tuple(key for key in problem.domains if key.component == "glibc")
        self._limits = tuple(_limit(problem, row) for row in problem.matrix.limits if _holds(problem, row))
        self._limited_ones = frozenset(limit.row.distribution for limit in self._limits)
        roots = [root for root in problem.roots if root.key == PYTORCH]
        self._is_framework_required = bool(roots)
        left = [one for one in problem.domains.get(PYTORCH, ()) if all(root.allows(one) for root in roots)] if roots else []
        self._silent: dict[str, bool] = {}
        self._of_index: dict[str, frozenset[str]] = {}
        self._outside_of: dict[Key, Labelled] = {}
        self._certain = [limit for limit in self._limits if left and all(limit.row.when.allows(one.version) for one in left)]

    def is_only_on_variant_index(self, name: str) -> bool:
        """Return whether a distribution is read from the variant index alone: PyTorch's wheels pin versions on that index."""
        return bool(self._variant_index) and name in COMPILERS

    def is_also_on_variant_index(self, name: str) -> bool:
        """Return whether the variant index has wheels of a distribution besides those on the default index."""
        return bool(self._variant_index) and name in self._known and self._known[name].served_by == VARIANT_INDEX

    @property
    def limited(self) -> frozenset[str]:
        """The distributions of which `rank` may put some versions last.

        They have measured wheels, or a limit that applies to every release of PyTorch that the spec allows.
        """
        return self.wheels.distributions.union(limit.row.distribution for limit in self._certain)

    def rank(self, candidate: Candidate) -> int:
        """Return the rank of a version by its GPU code (`GpuWheels.rank`), or that of a useless one if a limit excludes it.

        Only limits count that hold for every release of PyTorch that the spec allows. Useless versions are listed last: a
        search reads the metadata of a version before it refuses the version, and NumPy 2 has dozens.
        """
        name = candidate.key.distribution
        is_excluded = any(limit.row.distribution == name and limit.excludes(candidate) for limit in self._certain)
        return USELESS if is_excluded else self.wheels.rank(candidate)

    def is_silent(self, name: str) -> bool:
        """Return whether the matrix has nothing about a distribution; a file's own name may still tell its PyTorch build."""
        found = self._silent.get(name)
        if found is None:
            is_listed = name in self._known or name in self._limited_ones or name in self.wheels.distributions
            found = self._silent[name] = not is_listed and not is_known_library(self._problem.matrix, name)
        return found

    def of(self, candidate: FileCandidate) -> tuple[Requirement, ...]:
        """Return the requirements that the matrix adds to the metadata of a version of a distribution."""
        release = candidate.release
        if self.is_silent(release.name) and named_build(release) is None:
            return ()
        found: list[Requirement] = []
        limits = [one for one in self._limits if one.row.distribution == release.name and one.excludes(candidate)]
        known = self._known.get(release.name)
        named = named_build(release)
        if named is not None:
            found.append(named_build_requirement(candidate, named, self._problem.domains.get(PYTORCH, ())))
        if known is not None:
            if named is None and _is_compiled(known, release):
                found.append(self._its_build(candidate, release, known))
            found.extend(self._implied(candidate, release, known))
        found.extend(self.wheels.of(candidate))
        found.extend(bundled_library_requirements(self._problem, candidate))
        found.extend(_strictest([self._by_limit(limit, candidate) for limit in limits]))
        return tuple(found)

    def on_gpus(self, candidate: FileCandidate) -> tuple[Requirement, ...]:
        """Return the requirements that rows on a distribution add about the GPUs, those on files of one index left out."""
        known = self._known.get(candidate.release.name)
        rows = known.implies if known is not None else ()
        version = candidate.release.version
        fitting = (row for row in rows if not row.served_by and _specifier(row.versions).contains(version, prereleases=True))
        return tuple(
            _need(candidate, row, need, place=self._place(f"distribution:{candidate.release.name} {row.versions}"), key=key)
            for row in fitting
            for need in row.require
            if need.component == GPU
            for key in self._keys_of(GPU)
        )

    def of_framework(self, wheel: Candidate) -> tuple[Requirement, ...]:
        """Return the requirements of PyTorch's wheel on the mutexes of limits; () when the spec requires PyTorch.

        Limits are then requirements of the distributions on PyTorch itself.
        """
        if self._is_framework_required:
            return ()
        return tuple(_takes(limit, wheel) for limit in self._limits if limit.row.when.allows(wheel.version))

    def limit_of(self, key: Key) -> str:
        """Return the distribution whose limit has `key` as its mutex; "" for any other key."""
        return next((limit.row.distribution for limit in self._limits if limit.key == key), "")

    def holders(self, key: Key, versions: tuple[Candidate, ...], wheels: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the candidates of a limit's mutex, one for each holder.

        The holders are those of `versions` that the limit excludes, and those of `wheels`, of PyTorch, that the limit is about.
        """
        limit = next(one for one in self._limits if one.key == key)
        holders = [one for one in versions if not one.has_no_file and limit.excludes(one)]
        holders.extend(one for one in wheels if limit.row.when.allows(one.version))
        return tuple({label: HolderCandidate(key, NO_VERSION, label, one) for one in holders for label in [str(one)]}.values())

    def _by_limit(self, limit: _Limit, candidate: Candidate) -> Requirement:
        """Return the requirement that excludes a version if a release of PyTorch that a limit is about is chosen.

        If the spec requires PyTorch, the version requires another release of PyTorch, which makes the simpler message.
        Otherwise a package may or may not require PyTorch, so the version and PyTorch's wheel each require a candidate of the
        limit's mutex. Both encodings allow the same solutions. But with the first encoding conflicts are not exact: if the
        target has no release of PyTorch outside the limit, a conflict may lack the spec's line on PyTorch.
        """
        if not self._is_framework_required:
            return _takes(limit, candidate)
        return Requirement(PYTORCH, self._outside(limit), _limited(limit, candidate))

    def _outside(self, limit: _Limit) -> Labelled:
        """Return the test that a build of PyTorch is none that a limit is about: the same for all versions that it excludes."""
        if limit.key not in self._outside_of:
            others = (one.label for one in self._problem.domains[PYTORCH] if not limit.row.when.allows(one.version))
            self._outside_of[limit.key] = Labelled(frozenset(others))
        return self._outside_of[limit.key]

    def _its_build(self, candidate: Candidate, release: PackageRelease, known: Distribution) -> Requirement:
        """Return the requirement on the PyTorch build that a wheel is compiled for, derived from its index or local version."""
        is_variant = self._is_of_variant(release)
        wanted = self._variant_index if is_variant else "pypi"
        is_of_cuda = not is_variant and known.served_by == DEFAULT and bool(self._without_cuda)
        labels = self._of_cuda if is_of_cuda else self._builds_of(wanted)
        predicate: Predicate = CompiledAgainst(wanted, or_with_cuda=is_of_cuda)
        if not labels and (accelerator := self._other_accelerator(wanted)):
            request = self._problem.request
            has_no_gpu = request.has_no_gpu and request.accelerator == "cpu"
            predicate = CompiledAgainst(wanted, accelerator=accelerator, wanted=request.accelerator, has_no_gpu=has_no_gpu)
        local = release.version.local
        if local and release.file is not None and release.file.index in {DIRECT_PATH, DIRECT_URL}:
            # The local version of a file by URL or path names its build, as in PyTorch's own wheels.
            labels = self._builds(lambda build: build.local == local)
            predicate = CompiledForLocal(local)
        place = self._place(f"distribution:{known.name}")
        ground = candidate.entails(predicate, Relation(release.name, "pytorch_build"), place)
        return Requirement(PYTORCH, Labelled(labels), ground)

    def _builds_of(self, index: str) -> frozenset[str]:
        if index not in self._of_index:
            platform = self._problem.request.platform
            self._of_index[index] = self._builds(lambda build: build.index == index and platform in build.platforms)
        return self._of_index[index]

    def _other_accelerator(self, index: str) -> str:
        """Return what all PyTorch builds of an index compute with on the target's platform; "" if some fit the environment."""
        request, releases = self._problem.request, self._problem.matrix.components[PYTORCH.name].releases
        builds = (one for release in releases for one in release.builds if one.index == index)
        found = {one.accelerator for one in builds if request.platform in one.platforms}
        return found.pop() if len(found) == 1 and request.accelerator not in found else ""

    def _builds(self, is_wanted: Callable[[Build], bool]) -> frozenset[str]:
        domain = self._problem.domains[PYTORCH]
        return frozenset(one.label for one in domain if (build := build_of(one)) is not None and is_wanted(build))

    @cached_property
    def _without_cuda(self) -> frozenset[Version]:
        """The PyTorch releases whose default build for the target is a CPU build, as on Arm until PyTorch 2.10.

        A distribution that links CUDA and is only on the default index was compiled against another build of these releases.
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
        """The labels of the default build of each PyTorch release, or of its CUDA builds if the default build has no CUDA."""
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
        for row in known.implies:
            if row.accelerator not in {"", self._problem.request.accelerator}:
                continue
            if row.unserved_by and self._problem.needs.devices.is_served_by_gfx(row.unserved_by):
                continue
            if row.served_by in {"", served_by} and _specifier(row.versions).contains(release.version, prereleases=True):
                place = self._place(f"distribution:{known.name} {row.versions}")
                for need in row.require:
                    yield from (_need(candidate, row, need, place=place, key=key) for key in self._keys_of(need.component))
                yield from (_package(candidate, row, needed, place=place) for needed in row.packages.items())
                if row.cxx11_abi is not None and served_by == DEFAULT and _has_one_abi(release):
                    yield self._of_its_abi(candidate, row, place=place)
                yield from bundled_cuda_requirements(self._problem, candidate, row, place=place)

    def _keys_of(self, component: str) -> tuple[Key, ...]:
        """Return the keys that a requirement on a component is about: for a C library and for GPUs those of all hosts."""
        if component == GPU:
            return self._problem.needs.devices.gpus if self._problem.request.accelerator == CUDA else ()
        return self._glibc if component == "glibc" else (Key(component),)

    def _of_its_abi(self, candidate: Candidate, row: ImpliedNeed, *, place: Place) -> Requirement:
        """Return the requirement on a PyTorch build of the same C++ ABI as a wheel.

        Functions that take strings or lists have different symbol names in the other ABI.
        """
        labels = frozenset(one.label for one in self._problem.domains[PYTORCH] if has_abi(build_of(one), row))
        relation = Relation(candidate.key.name, "pytorch_build")
        ground = candidate.entails(NeedsAbi(is_new=bool(row.cxx11_abi)), relation, place)
        return Requirement(PYTORCH, Labelled(labels), ground)

    def _place(self, position: str) -> Place:
        return self._problem.matrix.place_of(position)


def _is_compiled(known: Distribution, release: PackageRelease) -> bool:
    """Return whether a release is a wheel compiled against a PyTorch build.

    A source distribution is not: it is compiled against the installed build.
    """
    if known.compiled_against != PYTORCH.name or not release.is_wheel:
        return False
    return _specifier(known.versions).contains(release.version, prereleases=True)


def has_abi(build: Build | None, row: ImpliedNeed) -> bool:
    """Return whether a build of PyTorch has the C++ ABI of a row; True when the ABI of either is unknown."""
    return build is None or build.cxx11_abi is None or row.cxx11_abi in {None, build.cxx11_abi}


def _has_one_abi(release: PackageRelease) -> bool:
    """Return whether a release's file is a Linux wheel without a local version, so that the C++ ABI matters.

    A local version names the build already, and macOS has only one ABI.
    """
    filename = release.file.filename if release.file is not None else ""
    return filename.endswith(".whl") and "linux" in filename and not release.version.local


def _need(candidate: Candidate, row: ImpliedNeed, need: Need, *, place: Place, key: Key) -> Requirement:
    predicate = Needs(need.component, (bound_of(need),), row.because)
    ground = candidate.entails(predicate, Relation(candidate.key.name, need.component, "undeclared"), place)
    return Requirement(key, OneOf(need.one_of) if need.one_of else Within(need.range), ground)


def _package(candidate: Candidate, row: ImpliedNeed, needed: tuple[str, str], *, place: Place) -> Requirement:
    other, specifier = needed
    predicate = Requires(other, (Specifier(specifier),), row.because)
    ground = candidate.entails(predicate, Relation(candidate.key.name, other, "undeclared"), place)
    return Requirement(Key(other, PACKAGE), Matching(SpecifierSet(specifier)), ground)


def _holds(problem: Problem, row: DistributionLimit) -> bool:
    """Return whether a limit is about PyTorch and its guards (conditions) hold on some host of the target."""
    hosts = problem.request.hosts or (NO_HOST,)
    return row.when.component == PYTORCH.name and any(problem.needs.guards.hold(row.on, target) for target in hosts)


def _limit(problem: Problem, row: DistributionLimit) -> _Limit:
    place = problem.matrix.place_of(f"limit:{row.name}")
    key = Key(f"limit {row.name}", PACKAGE)
    return _Limit(row, _specifier(row.specifier), key, MatrixRow("limit", row.name, place))


def _takes(limit: _Limit, holder: Candidate) -> Requirement:
    return Requirement(limit.key, Labelled(frozenset({str(holder)})), _limited(limit, holder))


def _strictest(requirements: Sequence[Requirement]) -> Iterator[Requirement]:
    """Yield the requirements of limits without those that another one implies: who needs PyTorch 2.6 does not tell of 2.5."""
    for one in requirements:
        allowed = one.test.labels if isinstance(one.test, Labelled) else frozenset()
        others = (other.test.labels for other in requirements if other.key == one.key and isinstance(other.test, Labelled))
        if not any(other < allowed for other in others):
            yield one


def _limited(limit: _Limit, holder: Candidate) -> Entails:
    row = limit.row
    if holder.key == TORCH:
        predicate = Requires(row.distribution, (Specifier(row.specifier),), row.because)
        return replace(holder.entails(predicate, Row("limit", row.name, PYTORCH.name), limit.source), name=PYTORCH.name)
    return holder.entails(NeedsOutside(PYTORCH.name, row.when.range, row.because), Row("limit", row.name), limit.source)


def host_requirements_of(problem: Problem, beside: Mapping[Key, Candidate]) -> Iterator[Requirement]:
    """Yield the requirements of the chosen distributions `beside` on hosts: driver and GPUs for a bundled CUDA, and glibc.

    They let the components be solved again without an index. Requirements on components that may change in doing so, such as
    the framework, are left out.
    """
    facts = DistributionFacts(problem, "")
    for candidate in beside.values():
        for one in facts.of(candidate) if isinstance(candidate, FileCandidate) else ():
            if not one.key.is_package and problem.is_virtual(one.key.component):
                yield one
