"""Libraries of CUDA or ROCm that wheels need, and what provides them: other wheels, the framework, the base image or the host.

The compiled modules of a wheel link to libraries, or open them at run time. The wheel contains these libraries itself, or
another wheel, the framework or the base image does. If a linked library is missing, an import fails; if one that is opened at
run time is, the program falls back to the CPU or stops at its first kernel. A library is identified by its soname, which
contains its major version: cuDNN 8 does not serve what opens cuDNN 9. PyTorch's wheels for ROCm contain the libraries of that
ROCm; JAX's plugins and other wheels contain none.

Nearly every answer has what its wheels need. So an answer is searched for first, and then compared with what its wheels need
(`Libraries.lacking`). Only if libraries are lacking are they required, in a second search (`LibraryRequirements`).
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.specifiers import SpecifierSet

from provisioner.components import FRAMEWORKS
from provisioner.grounds.predicate import NeedsLibraries, Requires
from provisioner.grounds.requirement import Entails, Relation, Subject
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.python.bundled import CUDA
from provisioner.resolver.python.wheels import ROCM, first_of, neighbours, of_libraries
from provisioner.resolver.requirement import (
    NO_VERSION,
    PACKAGE,
    PYTORCH,
    Candidate,
    ImageCandidate,
    Key,
    Labelled,
    Requirement,
    build_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.matrix.model import (
        GpuWheel,
        ImageFacts,
        LibraryLoading,
        Matrix,
        OpenedFiles,
        OptionalLibraries,
        ToolkitFile,
    )
    from provisioner.places import Place
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.python.wheels import GpuWheels

Group = tuple[str, ...]
"""The sonames of one library in several versions; a wheel needs any one of them, because it has a module for each."""

NEEDED = frozenset({"libcudart", "libcublas", "libcublasLt", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse"})
"""Libraries that a wheel with GPU code uses whenever it runs, even if it only opens them at run time (dlopen).

Others that wheels open, such as NCCL or cuTENSOR, are for uses that a program may never make.
"""

NEEDED_OF_ROCM = "libamdhip64"
"""The library of ROCm that a wheel uses whenever it computes on a GPU of AMD's, even if it only opens it at run time."""

OF_A_RELEASE = NEEDED | {"libnvrtc"}
"""Libraries of a CUDA toolkit whose sonames are known for some releases of CUDA only."""

NOT_OF_FRAMEWORKS = ("libcutensor", "libnpp", "libnvjpeg")
"""The beginnings of the names of libraries for CUDA that no framework brings.

Source: METADATA of torch 2.15.0, jax-cuda12-plugin and tensorflow, which name neither these distributions nor the toolkit.
"""

NOT_IN_IMAGES = ("libcusparseLt", "libcutensor", "libnvshmem")
"""The beginnings of the names of libraries for CUDA that NVIDIA's images of CUDA lack.

Source: the runtime Dockerfile of the images (https://gitlab.com/nvidia/container-images/cuda, dist/12.8.0, 12.2.2, 11.2.2),
read in copies of it: of NVIDIA's libraries it installs cuda-libraries, libnpp, cuda-nvtx, libcusparse, libcublas and libnccl2.
"""

ONLY_IN_DEVEL_IMAGES = ("libcupti",)
"""The beginnings of the names of libraries for CUDA that NVIDIA's images for compiling have, and its runtime images lack.

Source: https://github.com/microsoft/onnxruntime/pull/7384 ("This library is there in cudnn8-devel but not in cudnn8-runtime"),
and dist/12.6.3/ubuntu2204/runtime/Dockerfile of the images, which installs no cuda-command-line-tools; the devel one does.
"""

IMAGE, CUDNN = Key("image"), "cudnn"
LIBRARIES = "libraries"
"""The object of the relation between a wheel and the libraries that it needs."""

_CUDA_OF_NAME = re.compile(r"-cu(\d+)$")
_FIRST_WITHOUT_SUFFIX = 13
"""The CUDA release from which NVIDIA's wheels have no suffix (`nvidia-cublas`). Source: PyPI, nvidia-cublas 13.0.0.19."""


class Unreached(Struct, frozen=True):
    """A library (`soname`) that a chosen wheel needs, and that the loader does not find in the folder which contains it.

    With `is_of_pytorch`, PyTorch loads a library of that name when it is imported. Otherwise the chosen distribution `provider`
    contains it in `folder`.
    """

    soname: str
    provider: str
    folder: str
    is_of_pytorch: bool


class ProviderCandidate(Candidate, frozen=True, eq=False, gc=False, kw_only=True):
    """A provider of some libraries, as a candidate of a key that stands for these libraries.

    `needs` is the requirement that the provider itself, such as a distribution or base image, is chosen.
    """

    needs: Requirement


class Libraries:
    """The libraries of CUDA or ROCm that the wheels of one problem need and provide."""

    def __init__(self, problem: Problem, wheels: GpuWheels) -> None:
        self._problem = problem
        self._wheels = wheels
        self._providers = _providers(problem.matrix)
        self._runtimes = _runtimes(problem.matrix)
        self._loading = _loading(problem.matrix)
        self._opening = _opening(problem.matrix)
        self._optional = _optional(problem.matrix)
        self._files = {one.name: one for one in problem.matrix.toolkit_files}
        self._owners = frozenset().union(*self._providers.values(), *(one.wheels for one in self._files.values()))
        self._provided_by: dict[Candidate, frozenset[str]] = {}

    def lacking(self, pins: Mapping[Key, Candidate]) -> list[tuple[Candidate, tuple[Group, ...]]]:
        """Return the chosen wheels that need libraries which nothing provides, each with these libraries.

        Libraries are provided by other chosen wheels, the framework, and the base image; without an image also by the hosts, if
        all of them state a library.
        """
        needed = [(one, groups) for key, one in pins.items() if key.is_package and (groups := self.needed(one))]
        if not needed:
            return []
        provided = self._provided(pins)
        found = ((one, tuple(group for group in groups if not provided.intersection(group))) for one, groups in needed)
        return [(one, groups) for one, groups in found if groups]

    def _provided(self, pins: Mapping[Key, Candidate]) -> set[str]:
        """Return the libraries that the chosen distributions, the framework, and the base image or the hosts contain."""
        of_packages = (self.provided_by(one) for key, one in pins.items() if key.is_package)
        return {*chain.from_iterable(of_packages), *self._of_framework(pins), *self._outside(pins)}

    def unknown(self, pins: Mapping[Key, Candidate]) -> list[tuple[Candidate, tuple[str, ...]]]:
        """Return the chosen wheels that need libraries of CUDA of which the matrix does not say what contains them.

        They are those of CUDA 10 and older, and NVRTC of CUDA 11.0 and 11.1, of which no distribution of NVIDIA was read. Their
        sonames are those of the release (libcudart.so.10.2, libcublas.so.9.0, libnvrtc.so.11.1), so that a CUDA of that release
        is taken to contain them.
        """
        if self._problem.request.accelerator != CUDA:
            return []
        rows = {one: row for key, one in pins.items() if key.is_package and (row := self._wheels.row_of(one)) is not None}
        needed = {one: groups for one, row in rows.items() if (groups := self._unknown_to(row))}
        if not needed:
            return []
        provided, releases = self._provided(pins), _cuda_releases(pins)
        found = (
            (one, tuple(max(group) for group in groups if provided.isdisjoint(group) and not _names_any(group, releases)))
            for one, groups in needed.items()
        )
        return [(one, sonames) for one, sonames in found if sonames]

    def _unknown_to(self, row: GpuWheel) -> tuple[Group, ...]:
        """Return the libraries of CUDA that a wheel needs, and of which no measured wheel contains all versions it may load."""
        groups = (group for group in self._of_cuda(row) if library_of(group[0]) in OF_A_RELEASE)
        return tuple(group for group in groups if not all(soname in self._providers for soname in group))

    def unreached(self, pins: Mapping[Key, Candidate]) -> list[tuple[Candidate, tuple[Unreached, ...]]]:
        """Return the chosen wheels that need libraries which other wheels contain in folders where the loader does not look.

        The loader finds a library if the run path of the wheel that needs it names its folder, or if a library of that name is
        loaded already. Libraries of an image and of hosts are in directories that it searches in any case. A wheel of libraries
        for others is left out, because the wheels that need these libraries load the ones below them, too.
        """
        rows = {one: row for key, one in pins.items() if key.is_package and (row := self._wheels.row_of(one)) is not None}
        searching = {
            one: row for one, row in rows.items() if row.runpath is not None and not row.provides and self._needed_by(row)
        }
        if not searching:
            return []
        outside, of_pytorch = self._outside(pins), set(self._of_framework(pins)) if PYTORCH in pins else set()
        found = []
        for one, row in searching.items():
            if not self._is_loading(one):
                groups = (group for group in self._needed_by(row) if not outside.intersection(group))
                missed = tuple(filter(None, (self._unreached_by(row, group, pins, of_pytorch) for group in groups)))
                found.extend([(one, missed)] if missed else [])
        return found

    def _unreached_by(
        self, row: GpuWheel, group: Group, pins: Mapping[Key, Candidate], of_pytorch: set[str]
    ) -> Unreached | None:
        """Return the library of a group that a wheel does not find; None if it finds one, or no chosen part contains one."""
        missed = next((Unreached(one, "", "", is_of_pytorch=True) for one in sorted(of_pytorch.intersection(group))), None)
        for key, one in pins.items():
            sonames = self.provided_by(one).intersection(group) if key.is_package and key.project != row.distribution else ()
            if sonames:
                folders = self._folders_of(one)
                if folders.intersection(row.runpath or ()):
                    return None
                missed = missed or Unreached(max(sonames), key.project, min(folders, default=""), is_of_pytorch=False)
        return missed

    def is_reaching(self, candidate: Candidate, providers: Iterable[str]) -> bool:
        """Return whether a version's wheel finds libraries in these distributions; True if its run path was not measured."""
        row = self._wheels.row_of(candidate)
        if row is None or row.runpath is None or self._is_loading(candidate):
            return True
        some = [self._wheels.rows_of(Key(name, PACKAGE), of_any_platform=True) for name in providers]
        return all(any(set(one.folders).intersection(row.runpath) for one in rows) for rows in some)

    def _is_loading(self, candidate: Candidate) -> bool:
        """Return whether a version loads the libraries of other wheels itself, before its own, as the matrix states."""
        return "" in self._calls(candidate)

    def loading_call(self, candidate: Candidate) -> str:
        """Return the call by which a program has a version load the libraries of other wheels, "" if the matrix states none."""
        return next(filter(None, self._calls(candidate)), "")

    def _calls(self, candidate: Candidate) -> Iterator[str]:
        """Yield the calls by which a version loads the libraries of other wheels; "" if it does so when it is imported."""
        for row in self._loading.get(candidate.key.project, ()):
            if SpecifierSet(row.versions).contains(candidate.pep440, prereleases=True):
                yield row.call

    def _folders_of(self, candidate: Candidate) -> frozenset[str]:
        """Return the folders with the libraries that a version's wheel contains, found like `provided_by`."""
        row = self._wheels.row_of(candidate)
        if row is not None:
            return frozenset(row.folders)
        return frozenset(folder for row in self._alike(candidate) for folder in row.folders)

    def needed(self, candidate: Candidate) -> tuple[Group, ...]:
        """Return the libraries that a version's wheel needs, and the files of a toolkit that its Python code opens.

        No libraries when the wheel was not measured, or for CUDA has no GPU code. A library is left out that no measured wheel
        contains and no row on a runtime names, because it is unknown what may provide it.
        """
        linked = self.linked(candidate)
        opened = (group for row in self.opened(candidate) for group in _by_library(row.files) if group not in linked)
        return (*linked, *opened)

    def linked(self, candidate: Candidate) -> tuple[Group, ...]:
        """Return the libraries that a version's wheel needs; () when it was not measured, or for CUDA has no GPU code."""
        row = self._wheels.row_of(candidate)
        return self._needed_by(row) if row is not None else ()

    def opened(self, candidate: Candidate) -> Iterator[OpenedFiles]:
        """Yield the rows on what the Python code of a version opens of a CUDA toolkit; none where CUDA is not used."""
        for row in self._opening.get(candidate.key.project, ()) if self._problem.request.accelerator == CUDA else ():
            if SpecifierSet(row.versions).contains(candidate.pep440, prereleases=True):
                yield row

    def may_need(self, key: Key) -> bool:
        """Return whether some version of a distribution needs libraries, or files of a toolkit, that it does not contain."""
        return self.may_open(key) or any(self._needed_by(row) for row in self._wheels.rows_of(key))

    def may_open(self, key: Key) -> bool:
        """Return whether the Python code of some version of a distribution opens files of a CUDA toolkit."""
        return key.project in self._opening

    def probably_needed(self, candidate: Candidate) -> tuple[Group, ...]:
        """Return the libraries that an unmeasured version probably needs, because the measured versions next to it do.

        () for a measured version.
        """
        if not self._wheels.is_unmeasured(candidate):
            return ()
        around = [self._needed_by(row) for row in neighbours(self._wheels.rows_of(candidate.key), candidate.pep440)]
        names = [{library_of(group[0]) for group in groups} for groups in around]
        together: dict[str, set[str]] = {}
        for group in (one for groups in around for one in groups if all(library_of(one[0]) in some for some in names)):
            together.setdefault(library_of(group[0]), set()).update(group)
        return tuple(tuple(sorted(some)) for some in together.values())

    def _needed_by(self, row: GpuWheel) -> tuple[Group, ...]:
        accelerator = self._problem.request.accelerator
        if accelerator == ROCM:
            return _by_library(one for one in (*row.links, *self._opened_of_rocm(row)) if one in self._runtimes)
        groups = self._of_cuda(row) if accelerator == CUDA else ()
        return tuple(group for group in groups if all(one in self._providers for one in group))

    def _opened_of_rocm(self, row: GpuWheel) -> Iterator[str]:
        """Yield the sonames of the HIP runtime, of any release, if a wheel opens that library and links to none.

        Beside the sonames that were measured, such wheels open the name without a version (tilelang 0.1.15, libstub_hip.so).
        """
        names = {library_of(one) for one in row.opens} - {library_of(one) for one in row.links}
        if NEEDED_OF_ROCM in names:
            yield from (one for one in self._runtimes if library_of(one) == NEEDED_OF_ROCM)

    def _of_cuda(self, row: GpuWheel) -> tuple[Group, ...]:
        """Return the libraries that a wheel links, and those of CUDA that it opens whenever its GPU code runs."""
        uses_gpus = row.sass is None or row.sass or row.ptx
        used = [*row.links, *(one for one in row.opens if uses_gpus and library_of(one) in NEEDED)]
        optional = {soname for one in self._without(row) for soname in one.libraries}
        return _by_library(one for one in used if one not in optional)

    def _without(self, row: GpuWheel) -> Iterator[OptionalLibraries]:
        """Yield the rows on libraries that a wheel can do without."""
        for one in self._optional.get(row.distribution, ()):
            if SpecifierSet(one.versions).contains(str(first_of(row)), prereleases=True):
                yield one

    def lacking_optional(self, pins: Mapping[Key, Candidate]) -> Iterator[tuple[Candidate, OptionalLibraries]]:
        """Yield the chosen wheels that can do without libraries which nothing provides, each with the row on them."""
        if self._problem.request.accelerator != CUDA:
            return
        chosen = [one for key, one in pins.items() if key.is_package and key.project in self._optional]
        provided = self._provided(pins) if chosen else set()
        for one in chosen:
            row = self._wheels.row_of(one)
            if row is None:
                continue
            for optional in self._without(row):
                used = {*row.links, *row.opens}.intersection(optional.libraries)
                if used and provided.isdisjoint(used):
                    yield one, optional

    def is_provider(self, key: Key) -> bool:
        """Return whether some measured wheel of a distribution contains libraries, or files of a toolkit, for other wheels."""
        return key.project in self._owners

    def provided_by(self, candidate: Candidate) -> frozenset[str]:
        """Return the libraries, and the files of a toolkit, that a version's wheel contains for others.

        For an unmeasured wheel, the libraries that measured wheels of the same major version contain.
        """
        found = self._provided_by.get(candidate)
        if found is None:
            files = (one.name for one in self._files.values() if candidate.key.project in one.wheels)
            row = self._wheels.row_of(candidate)
            rows = [row] if row is not None else self._alike(candidate)
            if candidate.key.project not in of_libraries(self._problem.matrix):
                rows = []
            found = self._provided_by[candidate] = frozenset((*(soname for one in rows for soname in one.provides), *files))
        return found

    def _alike(self, candidate: Candidate) -> list[GpuWheel]:
        rows = self._wheels.rows_of(candidate.key, of_any_platform=True)
        return [row for row in rows if row.provides and first_of(row).release[0] == candidate.pep440.release[0]]

    def place_of_opened(self, row: OpenedFiles, candidate: Candidate) -> Place:
        """Return the line of the matrix on files that a version opens."""
        return self._problem.matrix.place_of(f"opens:{candidate.key.project} {row.versions}")

    def place_of(self, candidate: Candidate) -> Place:
        """Return the line of the matrix on a version's wheel.

        For an unmeasured wheel it is the line of the first row on the distribution.
        """
        rows = self._wheels.rows_of(candidate.key)
        row = self._wheels.row_of(candidate) or rows[0]
        return self._problem.matrix.place_of(f"wheel:{row.distribution} {row.versions}")

    def providers_of(self, groups: Iterable[Group]) -> list[str]:
        """Return the names of distributions that contain the last library of each group, sorted; [] for libraries of ROCm.

        If possible they are all for one CUDA major version, the newest for which each of these libraries exists.
        """
        known = {**self._providers, **{one.name: set(one.wheels) for one in self._files.values()}}
        owners = [some for group in groups if (some := known.get(max(group)))]
        if not owners:
            return []
        common = set.intersection(*({cuda_of(name) for name in some} for some in owners))
        newest = max(common, default=0)
        return sorted({min(some, key=lambda name: (cuda_of(name) != newest, name)) for some in owners})

    def of_image(self, image: ImageFacts) -> Iterator[str]:
        """Yield the sonames of the CUDA libraries in a base image: those of the toolkit, and cuDNN if the image has it.

        Of the toolkit, an image of kind `cuda-base` has the CUDA runtime only. Its other files that code opens come with them.
        """
        yield from (one.name for one in self._files.values() if _is_in(image, one))
        if image.cuda:
            found = self._of_major(CUDA, _major(image.cuda))
            lacking = NOT_IN_IMAGES if image.kind != "cuda-runtime" else (*NOT_IN_IMAGES, *ONLY_IN_DEVEL_IMAGES)
            found = (one for one in found if not one.startswith(lacking))
            yield from (one for one in found if image.kind != "cuda-base" or library_of(one) == "libcudart")
        if image.cudnn:
            yield from self._of_major(CUDNN, _major(image.cudnn))

    def _outside(self, pins: Mapping[Key, Candidate]) -> set[str]:
        """Return the libraries in directories that the loader searches by default: of the base image, else of the hosts."""
        image = next((one.image for one in pins.values() if isinstance(one, ImageCandidate)), None)
        return set(self.of_image(image)) if image is not None else self._of_hosts()

    def _of_framework(self, pins: Mapping[Key, Candidate]) -> Iterator[str]:
        """Yield the libraries of the chosen framework: those of its CUDA that the chosen distributions contain.

        If they contain no cuBLAS, which every framework uses, its wheel is taken to contain the whole toolkit itself.
        """
        found = {soname for key in _of_framework(pins) for soname in self._of_release(key, pins[key])}
        chosen = {soname for key, one in pins.items() if key.is_package for soname in self.provided_by(one)}
        is_apart = any(library_of(soname) == "libcublas" for soname in found & chosen)
        yield from found & chosen if is_apart else found

    def _of_hosts(self) -> set[str]:
        """Return the sonames of the libraries that all hosts state."""
        found = []
        for target in self._problem.request.hosts:
            versions = target.host.libraries.versions if target.host.libraries is not None else {}
            # A file name tells the major version of a library. cuBLAS is two libraries of one version.
            names = {name: (f"lib{name}", "libcublasLt") if name == "cublas" else (f"lib{name}",) for name in versions}
            sonames = {f"{file}.so.{_major(text)}" for name, text in versions.items() for file in names[name]}
            rocm = target.host.libraries.rocm if target.host.libraries is not None else None
            found.append(sonames.union(self._of_major(ROCM, _major(rocm)) if rocm is not None else ()))
        return set.intersection(*found) if found else set()

    def _of_release(self, key: Key, chosen: Candidate) -> Iterator[str]:
        found = self._of_major(key.component, chosen.version.release[0] if chosen.version.release else 0)
        return (soname for soname in found if not soname.startswith(NOT_OF_FRAMEWORKS))

    def _of_major(self, component: str, major: int) -> Iterator[str]:
        """Yield the libraries of cuDNN, of ROCm, or of a CUDA toolkit without cuDNN, of a major version."""
        known = self._runtimes if component == ROCM else self._providers
        return (soname for soname in known if (component, major) in self._releases_of_each[soname])

    @cached_property
    def _releases_of_each(self) -> dict[str, set[tuple[str, int]]]:
        return {soname: self.releases_of((soname,)) for soname in {**self._runtimes, **self._providers}}

    def releases_of(self, group: Group) -> set[tuple[str, int]]:
        """Return the components, with major version, that contain a library of `group`: `("cudnn", 9)`, `("cuda", 12)`."""
        found: set[tuple[str, int]] = set()
        for soname in group:
            if soname in self._runtimes:
                found |= self._runtimes[soname]
            elif library_of(soname).startswith("libcudnn") and soname in self._providers:
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
        plain = {key for key in pins if key.is_package and not key.is_mutex and "[" not in key.name}
        self._owners = sorted(filter(libraries.is_provider, plain))
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
        measured = self._libraries.linked(candidate)
        if linked := measured or self._libraries.probably_needed(candidate):
            place = self._libraries.place_of(candidate)
            yield from self._provided_to(candidate, linked, place, is_inferred=not measured)
        for row in self._libraries.opened(candidate):
            opened = [group for group in _by_library(row.files) if group not in measured]
            yield from self._provided_to(candidate, opened, self._libraries.place_of_opened(row, candidate), is_inferred=False)

    def _provided_to(
        self, candidate: Candidate, groups: Iterable[Group], place: Place, *, is_inferred: bool
    ) -> Iterator[Requirement]:
        """Yield the requirements of a version on what provides some libraries, one for those that can be had alike."""
        alike: dict[tuple[_Way, ...], list[str]] = {}
        for group in groups:
            alike.setdefault(self._ways_to(group), []).append(max(group))
        relation = Relation(candidate.key.project, LIBRARIES)
        for ways, sonames in alike.items():
            bearers = tuple(way.bearer for way in ways)
            ground = candidate.entails(
                NeedsLibraries(tuple(sorted(sonames)), bearers, is_inferred=is_inferred), relation, place
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
        releases = self._libraries.releases_of(group) if not group[0].startswith(NOT_OF_FRAMEWORKS) else set()
        for key in self._of_framework:
            listed = self._problem.domains.get(key, ())
            fitting = [one for one in listed if (key.component, (*one.version.release, 0)[0]) in releases]
            majors = sorted(major for component, major in releases if component == key.component)
            bearer = f"{key.component} {', '.join(map(str, majors))}"
            yield _Way(key, frozenset(one.label for one in fitting), bearer)
        images = [one for one in self._problem.domains.get(IMAGE, ()) if isinstance(one, ImageCandidate)]
        having = [one for one in images if set(group).intersection(self._libraries.of_image(one.image))]
        yield _Way(IMAGE, frozenset(one.label for one in having), having[0].label if having else "")
        for key in self._owners:
            found = (one for one in self._listed(key) if not self._libraries.provided_by(one).isdisjoint(group))
            yield _Way(key, frozenset(one.label for one in found), key.name)


@once_per_matrix
def _providers(matrix: Matrix) -> dict[str, set[str]]:
    """Return the distributions whose wheels contain each library for others, by the library's soname."""
    found: dict[str, set[str]] = {}
    libraries = of_libraries(matrix)
    for row in matrix.wheels:
        for soname in row.provides if row.distribution in libraries else ():
            found.setdefault(soname, set()).add(row.distribution)
    return found


@once_per_matrix
def _runtimes(matrix: Matrix) -> dict[str, set[tuple[str, int]]]:
    """Return the runtimes, with major version, that contain each library that a row on a runtime names, by its soname."""
    found: dict[str, set[tuple[str, int]]] = {}
    for component, rows in matrix.sonames.items():
        majors = {
            row: {one.version.release[0] for one in matrix.components[component].releases if row.releases.allows(one.version)}
            for row in rows
        }
        for row, numbers in majors.items():
            for soname in row.libraries:
                found.setdefault(soname, set()).update((component, number) for number in numbers)
    return found


@once_per_matrix
def _loading(matrix: Matrix) -> dict[str, tuple[LibraryLoading, ...]]:
    """Return the rows about versions of distributions that load the libraries of other wheels themselves."""
    return {one.name: one.loads for one in matrix.distributions if one.loads}


@once_per_matrix
def _optional(matrix: Matrix) -> dict[str, tuple[OptionalLibraries, ...]]:
    """Return the rows about libraries that versions of distributions can do without."""
    return {one.name: one.optional for one in matrix.distributions if one.optional}


@once_per_matrix
def _opening(matrix: Matrix) -> dict[str, tuple[OpenedFiles, ...]]:
    """Return the rows about versions of distributions whose Python code opens files of a CUDA toolkit."""
    return {one.name: one.opens for one in matrix.distributions if one.opens}


def _is_in(image: ImageFacts, file: ToolkitFile) -> bool:
    """Return whether an image has a file of a toolkit, or needs none of it."""
    releases = file.images.get(image.kind)
    if releases is None or not image.cuda or not SpecifierSet(releases).contains(image.cuda):
        return False
    return not file.cudnn or (bool(image.cudnn) and SpecifierSet(file.cudnn).contains(image.cudnn))


def _of_framework(pins: Mapping[Key, Candidate]) -> Iterator[Key]:
    """Yield the keys of the chosen CUDA toolkits, cuDNNs and ROCm, if a chosen framework brings them with its wheels.

    PyTorch's wheels bring ROCm, JAX's and TensorFlow's need that of the image or the host.
    """
    if any((build := build_of(pins.get(Key(name)))) is not None and build.accelerator == CUDA for name in FRAMEWORKS):
        yield from (key for key in pins if not key.is_package and key.component in {CUDA, CUDNN})
    if brings_rocm(pins):
        yield from (key for key in pins if not key.is_package and key.component == ROCM)


def brings_rocm(pins: Mapping[Key, Candidate]) -> bool:
    """Return whether the wheels of a chosen framework contain ROCm, as PyTorch's do."""
    build = build_of(pins.get(PYTORCH))
    return build is not None and build.accelerator == ROCM


def _cuda_releases(pins: Mapping[Key, Candidate]) -> list[str]:
    """Return the releases of CUDA in the base image, and in what a chosen framework brings."""
    image, cuda = pins.get(IMAGE), pins.get(Key(CUDA))
    of_image = [image.image.cuda] if isinstance(image, ImageCandidate) else []
    has_framework = any(Key(name) in pins for name in FRAMEWORKS)
    return [*of_image, *([str(cuda.version)] if cuda is not None and has_framework else [])]


def _names_any(group: Group, releases: Iterable[str]) -> bool:
    """Return whether a soname of a library names a release of CUDA: libcudart.so.10.2 names 10.2.89, libcublas.so.10 too."""
    named = [f"{soname.partition('.so.')[2]}." for soname in group]
    return any(f"{release}.".startswith(one) for release in releases for one in named)


def _by_library(sonames: Iterable[str]) -> tuple[Group, ...]:
    found: dict[str, list[str]] = {}
    for soname in sonames:
        found.setdefault(library_of(soname), []).append(soname)
    return tuple(map(tuple, found.values()))


def library_of(soname: str) -> str:
    """Return the name of a library without its version: `libcudart` of `libcudart.so.12`."""
    return soname.partition(".so")[0]


def _major(text: str) -> int:
    return int(text.partition(".")[0])


def cuda_of(distribution: str) -> int:
    """Return the major CUDA version that a distribution of NVIDIA's is for: 12 for `nvidia-cublas-cu12`."""
    match = _CUDA_OF_NAME.search(distribution)
    return int(match[1]) if match else _FIRST_WITHOUT_SUFFIX
