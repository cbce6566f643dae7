"""CUDA libraries that wheels need, and what provides them: other wheels, the framework, the base image or the host.

The compiled modules of a wheel link to libraries, or open them at run time. The wheel contains these libraries itself, or
another wheel, the framework or the base image does. If a linked library is missing, an import fails; if one that is opened at
run time is, the program falls back to the CPU or stops at its first kernel. A library is identified by its soname, which
contains its major version: cuDNN 8 does not serve what opens cuDNN 9.

Nearly every answer has what its wheels need. So an answer is searched for first, and then compared with what its wheels need
(`Libraries.lacking`). Only if libraries are lacking are they required, in a second search (`LibraryRequirements`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.specifiers import SpecifierSet
from packaging.version import Version as PackageVersion

from provisioner.components import FRAMEWORKS
from provisioner.grounds.predicate import NeedsLibraries, Requires
from provisioner.grounds.requirement import Entails, Relation, Subject
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.python.bundled import CUDA
from provisioner.resolver.requirement import (
    NO_VERSION,
    PACKAGE,
    Candidate,
    ImageCandidate,
    Key,
    Labelled,
    Requirement,
    build_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.matrix.model import GpuWheel, ImageFacts, Matrix
    from provisioner.places import Place
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.python.wheels import GpuWheels

Group = tuple[str, ...]
"""The sonames of one library in several versions; a wheel needs any one of them, because it has a module for each."""

NEEDED = frozenset({"libcudart", "libcublas", "libcublasLt", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse"})
"""Libraries that a wheel with GPU code uses whenever it runs, even if it only opens them at run time (dlopen).

Others that wheels open, such as NCCL or cuTENSOR, are for uses that a program may never make.
"""

IMAGE, CUDNN = Key("image"), "cudnn"
LIBRARIES = "libraries"
"""The object of the relation between a wheel and the libraries that it needs."""

_CUDA_OF_NAME = re.compile(r"-cu(\d+)$")
_FIRST_WITHOUT_SUFFIX = 13
"""The CUDA release from which NVIDIA's wheels have no suffix (`nvidia-cublas`). Source: PyPI, nvidia-cublas 13.0.0.19."""


class ProviderCandidate(Candidate, frozen=True, eq=False, gc=False, kw_only=True):
    """A provider of some libraries, as a candidate of a key that stands for these libraries.

    `needs` is the requirement that the provider itself, such as a distribution or base image, is chosen.
    """

    needs: Requirement


class Libraries:
    """The CUDA libraries that the wheels of one problem need and provide."""

    def __init__(self, problem: Problem, wheels: GpuWheels) -> None:
        self._problem = problem
        self._wheels = wheels
        self._providers = _providers(problem.matrix)

    def lacking(self, pins: Mapping[Key, Candidate]) -> list[tuple[Candidate, tuple[Group, ...]]]:
        """Return the chosen wheels that need libraries which nothing provides, each with these libraries.

        Libraries are provided by other chosen wheels, the framework, and the base image; without an image also by the hosts, if
        all of them state a library.
        """
        needed = [(one, groups) for key, one in pins.items() if key.is_package and (groups := self.needed(one))]
        if not needed:
            return []
        provided = {soname for key, one in pins.items() if key.is_package for soname in self.provided_by(one)}
        provided.update(soname for key in _of_framework(pins) for soname in self._of_release(key, pins[key]))
        image = next((one.image for one in pins.values() if isinstance(one, ImageCandidate)), None)
        provided.update(self.of_image(image) if image is not None else self._of_hosts())
        found = ((one, tuple(group for group in groups if not provided.intersection(group))) for one, groups in needed)
        return [(one, groups) for one, groups in found if groups]

    def needed(self, candidate: Candidate) -> tuple[Group, ...]:
        """Return the libraries that a version's wheel needs.

        () when the wheel was not measured or has no GPU code, and when the accelerator is not CUDA. A library that no measured
        wheel contains is left out, because it is unknown what else may provide it.
        """
        row = self._wheels.row_of(candidate)
        return self._needed_by(row) if row is not None else ()

    def may_need(self, key: Key) -> bool:
        """Return whether some measured wheel of a distribution needs libraries that it does not contain."""
        return any(self._needed_by(row) for row in self._wheels.rows_of(key))

    def probably_needed(self, candidate: Candidate) -> tuple[Group, ...]:
        """Return the libraries that an unmeasured version probably needs, because the measured versions next to it do.

        () for a measured version.
        """
        if not self._wheels.is_unmeasured(candidate):
            return ()
        around = [self._needed_by(row) for row in _neighbours(self._wheels.rows_of(candidate.key), candidate.pep440)]
        names = [{library_of(group[0]) for group in groups} for groups in around]
        together: dict[str, set[str]] = {}
        for group in (one for groups in around for one in groups if all(library_of(one[0]) in some for some in names)):
            together.setdefault(library_of(group[0]), set()).update(group)
        return tuple(tuple(sorted(some)) for some in together.values())

    def _needed_by(self, row: GpuWheel) -> tuple[Group, ...]:
        if not (row.sass or row.ptx) or self._problem.request.accelerator != CUDA:
            return ()
        by_name: dict[str, list[str]] = {}
        for soname in (*row.links, *(one for one in row.opens if library_of(one) in NEEDED)):
            by_name.setdefault(library_of(soname), []).append(soname)
        return tuple(tuple(some) for some in by_name.values() if all(one in self._providers for one in some))

    def is_provider(self, key: Key) -> bool:
        """Return whether some measured wheel of a distribution contains libraries for other wheels."""
        return any(key.project in owners for owners in self._providers.values())

    def provided_by(self, candidate: Candidate) -> frozenset[str]:
        """Return the libraries that a version's wheel contains.

        For an unmeasured wheel, the libraries that measured wheels of the same major version contain.
        """
        row = self._wheels.row_of(candidate)
        if row is not None:
            return frozenset(row.provides)
        rows = self._wheels.rows_of(candidate.key, of_any_platform=True)
        alike = [row for row in rows if row.provides and _first(row).release[0] == candidate.pep440.release[0]]
        return frozenset(soname for row in alike for soname in row.provides)

    def place_of(self, candidate: Candidate) -> Place:
        """Return the line of the matrix on a version's wheel.

        For an unmeasured wheel it is the line of the first row on the distribution.
        """
        rows = self._wheels.rows_of(candidate.key)
        row = self._wheels.row_of(candidate) or rows[0]
        return self._problem.matrix.place_of(f"wheel:{row.distribution} {row.versions}")

    def providers_of(self, groups: Iterable[Group]) -> list[str]:
        """Return the names of distributions that contain the last library of each group, sorted.

        If possible they are all for one CUDA major version, the newest for which each of these libraries exists.
        """
        owners = [self._providers[max(group)] for group in groups]
        common = set.intersection(*({cuda_of(name) for name in some} for some in owners))
        newest = max(common, default=0)
        return sorted({min(some, key=lambda name: (cuda_of(name) != newest, name)) for some in owners})

    def of_image(self, image: ImageFacts) -> Iterator[str]:
        """Yield the sonames of the CUDA libraries in a base image: those of the toolkit, and cuDNN if the image has it.

        Of the toolkit, an image of kind `cuda-base` has the CUDA runtime only.
        """
        if image.cuda:
            found = self._of_major(CUDA, _major(image.cuda))
            yield from (one for one in found if image.kind != "cuda-base" or library_of(one) == "libcudart")
        if image.cudnn:
            yield from self._of_major(CUDNN, _major(image.cudnn))

    def _of_hosts(self) -> set[str]:
        """Return the sonames of the libraries that all hosts state."""
        found = []
        for target in self._problem.request.hosts:
            versions = target.host.libraries.versions if target.host.libraries is not None else {}
            # A file name tells the major version of a library. cuBLAS is two libraries of one version.
            names = {name: (f"lib{name}", "libcublasLt") if name == "cublas" else (f"lib{name}",) for name in versions}
            found.append({f"{file}.so.{_major(text)}" for name, text in versions.items() for file in names[name]})
        return set.intersection(*found) if found else set()

    def _of_release(self, key: Key, chosen: Candidate) -> Iterator[str]:
        return self._of_major(key.component, chosen.version.release[0] if chosen.version.release else 0)

    def _of_major(self, component: str, major: int) -> Iterator[str]:
        """Yield the libraries of cuDNN, or of a CUDA toolkit without cuDNN, of a major version."""
        return (soname for soname in self._providers if (component, major) in self.releases_of((soname,)))

    def releases_of(self, group: Group) -> set[tuple[str, int]]:
        """Return the components, with major version, that contain a library of `group`: `("cudnn", 9)`, `("cuda", 12)`."""
        found = set()
        for soname in group:
            if library_of(soname).startswith("libcudnn"):
                found.add((CUDNN, _major(soname.rpartition(".so.")[2])))
            else:
                found.update((CUDA, cuda_of(name)) for name in self._providers.get(soname, ()))
        return found


class _Way(Struct, frozen=True):
    """A way to have some libraries: one of the candidates `labels` of `key` is chosen; `bearer` names the way in messages."""

    key: Key
    labels: frozenset[str]
    bearer: str


class LibraryRequirements:
    """The requirements of wheels on what provides their libraries, for a second search.

    `pins` is the answer of the first search. Libraries can be provided by the framework, the base image and the distributions
    in that answer, in any version; nothing else is added. An unmeasured version counts as needing what the measured versions
    next to it need. `listed` returns the candidates of a distribution.
    """

    def __init__(
        self,
        problem: Problem,
        libraries: Libraries,
        pins: Mapping[Key, Candidate],
        listed: Callable[[Key], tuple[Candidate, ...]],
    ) -> None:
        self._problem = problem
        self._libraries = libraries
        self._listed = listed
        self._of_framework = tuple(_of_framework(pins))
        self._distributions = sorted({key for key in pins if key.is_package and not key.is_mutex and "[" not in key.name})
        self._ways: dict[Group, tuple[_Way, ...]] = {}
        self._found: dict[Candidate, tuple[Requirement, ...]] = {}
        self._providers: dict[Key, tuple[Candidate, ...]] = {}

    def may_close(self, lacking: Iterable[tuple[Candidate, tuple[Group, ...]]]) -> bool:
        """Return whether the components of the first answer, in other versions, may provide every library in `lacking`.

        `lacking` is a result of `Libraries.lacking`.
        """
        return all(self._ways_to(group) for _, groups in lacking for group in groups)

    def of(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return the requirements of a version's wheel on what provides its libraries; its metadata is not read."""
        if candidate not in self._found:
            self._found[candidate] = tuple(self._required(candidate))
        return self._found[candidate]

    def providers(self, key: Key) -> tuple[Candidate, ...] | None:
        """Return the candidates of a key for libraries, one for each way to have them; None for any other key."""
        return self._providers.get(key)

    def _required(self, candidate: Candidate) -> Iterator[Requirement]:
        alike: dict[tuple[_Way, ...], list[str]] = {}
        measured = self._libraries.needed(candidate)
        for group in measured or self._libraries.probably_needed(candidate):
            alike.setdefault(self._ways_to(group), []).append(max(group))
        relation = Relation(candidate.key.project, LIBRARIES)
        for ways, sonames in alike.items():
            bearers = tuple(way.bearer for way in ways)
            place = self._libraries.place_of(candidate)
            ground = candidate.entails(
                NeedsLibraries(tuple(sorted(sonames)), bearers, is_inferred=not measured), relation, place
            )
            if not ways:
                yield Requirement(Key("platform"), Labelled(frozenset()), ground)
            elif len(ways) == 1:
                yield Requirement(ways[0].key, Labelled(ways[0].labels), ground)
            else:
                yield Requirement(self._either(ways, sonames), Labelled(frozenset(bearers)), ground)

    def _either(self, ways: Sequence[_Way], sonames: Iterable[str]) -> Key:
        """Return the key for some libraries that can be had in several ways; each way is a candidate of the key."""
        key = Key(f"library {' '.join(sorted(sonames))}", PACKAGE)
        if key not in self._providers:
            subject = Subject(" and ".join(sorted(sonames)), "")
            relation = Relation(subject.name, LIBRARIES)
            found = []
            for way in ways:
                ground = Entails(
                    name=subject.name, subject=subject, predicate=Requires(way.bearer, ()), relation=relation, cited=None
                )
                needs = Requirement(way.key, Labelled(way.labels), ground)
                found.append(ProviderCandidate(key, NO_VERSION, way.bearer, needs=needs))
            self._providers[key] = tuple(found)
        return key

    def _ways_to(self, group: Group) -> tuple[_Way, ...]:
        if group not in self._ways:
            self._ways[group] = tuple(way for way in self._every_way_to(group) if way.labels)
        return self._ways[group]

    def _every_way_to(self, group: Group) -> Iterator[_Way]:
        releases = self._libraries.releases_of(group)
        for key in self._of_framework:
            listed = self._problem.domains.get(key, ())
            fitting = [one for one in listed if (key.component, (*one.version.release, 0)[0]) in releases]
            majors = sorted(major for component, major in releases if component == key.component)
            bearer = f"{key.component} {', '.join(map(str, majors))}"
            yield _Way(key, frozenset(one.label for one in fitting), bearer)
        images = [one for one in self._problem.domains.get(IMAGE, ()) if isinstance(one, ImageCandidate)]
        having = [one for one in images if set(group).intersection(self._libraries.of_image(one.image))]
        yield _Way(IMAGE, frozenset(one.label for one in having), having[0].label if having else "")
        for key in self._distributions:
            if self._libraries.is_provider(key):
                found = (one for one in self._listed(key) if set(group).intersection(self._libraries.provided_by(one)))
                yield _Way(key, frozenset(one.label for one in found), key.name)


@once_per_matrix
def _providers(matrix: Matrix) -> dict[str, set[str]]:
    """Return the distributions whose wheels contain each library, by the library's soname."""
    found: dict[str, set[str]] = {}
    for row in matrix.wheels:
        for soname in row.provides:
            found.setdefault(soname, set()).add(row.distribution)
    return found


def _of_framework(pins: Mapping[Key, Candidate]) -> Iterator[Key]:
    """Yield the keys of the chosen CUDA toolkits and cuDNNs, if a chosen framework brings them with its wheels."""
    if any((build := build_of(pins.get(Key(name)))) is not None and build.accelerator == CUDA for name in FRAMEWORKS):
        yield from (key for key in pins if not key.is_package and key.component in {CUDA, CUDNN})


def _neighbours(rows: Iterable[GpuWheel], version: PackageVersion) -> list[GpuWheel]:
    """Return the row of the nearest measured version below a version and that of the nearest one above, if they exist."""
    found = sorted(((_first(row), row) for row in rows), key=lambda pair: pair[0])
    below, above = ([row for first, row in found if (first < version) is is_below] for is_below in (True, False))
    return [*below[-1:], *above[:1]]


def _first(row: GpuWheel) -> PackageVersion:
    """Return the lowest version in a row's specifier, such as 1.16.0 of `>=1.16.0,<=1.17.1`."""
    return min((PackageVersion(one.version) for one in SpecifierSet(row.versions)), default=PackageVersion("0"))


def library_of(soname: str) -> str:
    """Return the name of a library without its version: `libcudart` of `libcudart.so.12`."""
    return soname.partition(".so")[0]


def _major(text: str) -> int:
    return int(text.partition(".")[0])


def cuda_of(distribution: str) -> int:
    """Return the major CUDA version that a distribution of NVIDIA's is for: 12 for `nvidia-cublas-cu12`."""
    match = _CUDA_OF_NAME.search(distribution)
    return int(match[1]) if match else _FIRST_WITHOUT_SUFFIX
