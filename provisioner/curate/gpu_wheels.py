"""GPU code in the wheels of distributions: facts from the measurement of a wheel, and the matrix rows from a survey.

A survey (`WheelSurvey`) names the releases of a distribution of which some are to be measured.

A row covers a range of releases: each release was measured, or lies between two measured releases whose facts are equal.
"""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from packaging.specifiers import SpecifierSet

from provisioner.accelerators import ROCM_LIBRARIES
from provisioner.matrix.model import GpuWheel
from provisioner.measure.fatbin import RARE_BELOW, target_key
from provisioner.measure.scan import SONAME
from provisioner.versions import numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.curate.wheel_index import Wheel
    from provisioner.matrix.model import WheelSurvey
    from provisioner.measure.artefact import Library, Measurement

Found = TypeVar("Found")
"""The facts of a wheel."""

SOURCE = "gpu-wheels"
"""The key of the citation that every row has."""

OF_PYTORCH = ("libtorch", "libc10")
"""The beginnings of the names of PyTorch's libraries."""

LOADED_ON_USE = {
    "onnxruntime-gpu": ("libnvinfer", "libnvonnxparser"),
    "onnxruntime-genai-cuda": ("libnvinfer", "libnvonnxparser"),
    "cupy": ("libcudnn", "libnccl", "libcutensor", "libcusparseLt"),
    "dgl": OF_PYTORCH,
}
"""Distribution, or its name before `-cuda` -> libraries that only parts of the wheel link to, and the rest works without.

Sources: ONNX Runtime, "Execution Providers" (each is a library of its own, loaded on request); CuPy, "Installation",
"Additional CUDA Libraries" (optional).
"""


PROFILERS = ("libcupti", "libnvperf", "libpcsamplingutil", "libcheckpoint")
"""CUPTI's libraries, whose kernels are for measuring.

In wheels of other projects, such as Triton, the targets of these kernels do not show the GPUs that the wheel is for.
"""

CUDA_OF_ISA = {f"7.{minor}": f"11.{minor}" for minor in range(9)} | {
    **{f"8.{minor}": f"12.{minor}" for minor in range(5)},
    "8.5": "12.6",
    "8.6": "12.7",
    "8.7": "12.8",
    "8.8": "12.9",
    **{f"9.{minor}": f"13.{minor}" for minor in range(6)},
}
"""Version of the PTX ISA -> the newest CUDA release whose compiler writes it. Source: PTX ISA, "Release Notes"."""


class Facts(Struct, frozen=True, kw_only=True):
    """The facts that the measurement of one wheel shows, as the fields of `GpuWheel`; targets are None if not measured."""

    sass: tuple[str, ...] | None = None
    ptx: tuple[str, ...] | None = None
    gfx: tuple[str, ...] | None = None
    ptx_isa: str = ""
    runtime: str = ""
    compiler: str = ""
    links: tuple[str, ...] = ()
    opens: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    runpath: tuple[str, ...] | None = None
    folders: tuple[str, ...] = ()
    numpy: str = ""


FIELDS = Facts.__struct_fields__


def facts(distribution: str, measurement: Measurement) -> Facts:
    """Return the facts that a measured wheel of a distribution shows."""
    libraries = measurement.libraries
    files = {library.path.rpartition("/")[2] for library in libraries}
    own = files | {library.soname for library in libraries}
    renamed = {(match[1], match[2]) for name in files if (match := _RENAMED.fullmatch(name))}
    own |= {name for library in libraries for name in (*library.needed, *library.named) if _library(name) in renamed}
    linked = {name for library in libraries for name in library.needed if SONAME.fullmatch(name)} - own
    on_use = _on_use(distribution)
    links = {name for name in linked if not name.startswith(on_use)}
    named = {name for library in libraries for name in library.named if _VERSIONED.search(name)} - own
    code = [library for library in libraries if not _is_profiler(library) or "cupti" in distribution]
    sass, ptx, gfx = (_targets(code, kind) for kind in ("sass", "ptx", "gfx"))
    is_known = bool(sass or ptx) or measurement.is_whole
    isa = [version for library in code for name, version in library.ptx_isa.items() if name in ptx]
    offered = {name for name in files if SONAME.fullmatch(name) and _VERSIONED.search(name)}
    opened = (named | linked) - links
    folders = {_folder(one) for one in libraries if one.path.rpartition("/")[2] in offered}
    return Facts(
        sass=sass if is_known else None,
        ptx=ptx if is_known else None,
        gfx=gfx if gfx or _compiles_for_amd(measurement, links) else None,
        ptx_isa=max(isa, key=numbers_of, default=""),
        runtime=_runtime(libraries),
        compiler=max((library.compiler for library in libraries if library.compiler), key=numbers_of, default=""),
        links=tuple(sorted(links)),
        opens=tuple(sorted(opened)),
        provides=tuple(sorted(offered)),
        runpath=_runpath(libraries, shared=folders) if _looks_elsewhere(links, opened) else None,
        folders=tuple(sorted(folders)),
        numpy="<2" if any(library.needs_numpy_1 for library in libraries) else "",
    )


def facts_of(row: GpuWheel) -> Facts:
    """Return the facts about its wheels that a row of the matrix states."""
    return Facts(**{name: getattr(row, name) for name in FIELDS})


def row(distribution: str, platform: str, found: Facts, *, wheels: Sequence[Wheel]) -> GpuWheel:
    """Return the matrix row of the facts `found`, which all of `wheels` share; `wheels` begins with the oldest."""
    return GpuWheel(
        distribution=distribution,
        versions=covered(wheels),
        platforms=(platform,),  # type: ignore[arg-type]  # the name of a platform
        **{name: getattr(found, name) for name in FIELDS},
        artefacts={wheel.file.filename: wheel.file.sha256 for wheel in (wheels[-1], wheels[0])},
        source=(SOURCE,),
    )


def covered(wheels: Sequence[Wheel]) -> str:
    """Return the PEP 440 specifier of the releases that some wheels, the oldest first, are the ends of."""
    first, last = wheels[0], wheels[-1]
    return f"=={first.text}" if first.text == last.text else f">={first.text},<={last.text}"


def survey(
    asked: WheelSurvey,
    platform: str,
    wheels: Sequence[Wheel],
    *,
    old: Mapping[tuple[str, str], Facts],
    measure: Callable[[Wheel], Facts | None],
    most: int,
) -> Iterator[GpuWheel]:
    """Yield the matrix rows about the GPU code in a distribution's wheels for a platform, those of the newest releases first.

    A row covers neighbouring releases whose wheels have equal facts (their GPU targets and libraries).
    """
    for same, found in grouped(asked, wheels, old=old, measure=measure, most=most):
        yield row(asked.distribution, platform, found, wheels=same)


def grouped(
    asked: WheelSurvey,
    wheels: Sequence[Wheel],
    *,
    old: Mapping[tuple[str, str], Found],
    measure: Callable[[Wheel], Found | None],
    most: int,
) -> Iterator[tuple[list[Wheel], Found]]:
    """Yield neighbouring releases whose wheels have equal facts, the oldest first, with these facts; the newest group first.

    `wheels` has one wheel of each release, the oldest first; `old` the facts of wheels measured before, by file name and hash.
    At most `most` other wheels are measured, with `measure`, which returns None for a wheel that cannot be measured: the
    newest, those that `asked` names, the oldest, and then repeatedly a release halfway between the two newest neighbours whose
    facts differ.
    """
    allowed = SpecifierSet(asked.versions)
    chosen = [wheel for wheel in wheels if wheel.version in allowed or wheel.text in asked.also]
    known = {
        at: old[wheel.file.filename, wheel.file.sha256]
        for at, wheel in enumerate(chosen)
        if (wheel.file.filename, wheel.file.sha256) in old
    }
    failed: set[int] = set()
    while chosen and most > 0 and (at := _next(chosen, asked, known, failed=failed)) is not None:
        most -= 1
        found = measure(chosen[at])
        if found is None:
            failed.add(at)
        else:
            known[at] = found
    group: list[int] = []
    for at in [*sorted(known, reverse=True), -1]:
        if group and (at < 0 or known[at] != known[group[0]]):
            yield [chosen[one] for one in reversed(group)], known[group[0]]
            group = []
        group.append(at)


def _next(chosen: Sequence[Wheel], asked: WheelSurvey, known: Mapping[int, object], *, failed: set[int]) -> int | None:
    """Return the index in `chosen` of the next wheel to measure; None when no wheel that `survey` measures is left.

    `known` are the facts by index, `failed` the indexes of wheels that cannot be measured.
    """
    readable = [at for at in range(len(chosen)) if at not in failed]
    also = [at for at in readable if chosen[at].text in asked.also]
    for at in [*readable[-1:], *also, *readable[:1]]:
        if at not in known:
            return at
    places = sorted(known, reverse=True)
    for after, before in pairwise(places):
        between = [at for at in range(before + 1, after) if at not in failed]
        if known[after] != known[before] and between:
            return between[len(between) // 2]
    return None


def _is_profiler(library: Library) -> bool:
    return library.path.rpartition("/")[2].startswith(PROFILERS)


_VERSIONED = re.compile(r"\.so\.\d")
_RENAMED = re.compile(r"(lib\w+)-[0-9a-f]{8}\.so\.(\d+)[.\d]*")
"""The file name of a library that auditwheel bundles, `libcudnn-463fd6d5.so.8.9.7`: the library's name and major version.

auditwheel has patchelf replace the name in what links to the library. The old one stays in the table of strings, though nothing
asks for it: neither the linker's table nor a text of the program. Measured: auto_gptq 0.4.2, cucim_cu12 25.6.0, cumm_cu126
0.8.2.
"""
_SONAME = re.compile(r"(lib\w+)\.so\.(\d+)[.\d]*")
_ORIGIN = re.compile(r"\$ORIGIN|\$\{ORIGIN\}")
_DATA = re.compile(r"^[^/]+\.data/(?:purelib|platlib)/")
"""The folder of a wheel whose content is installed into the folder of packages. Source: Binary distribution format (PyPA)."""


def _library(soname: str) -> tuple[str, str] | None:
    """Return the name of a library and its major version; None for a soname without a version."""
    match = _SONAME.fullmatch(soname)
    return (match[1], match[2]) if match else None


def _looks_elsewhere(links: Iterable[str], opened: Iterable[str]) -> bool:
    """Return whether a wheel needs libraries of CUDA and no PyTorch, which loads these libraries before it loads the wheel."""
    return not any(name.startswith(OF_PYTORCH) for name in links) and any(
        not name.startswith((*ROCM_LIBRARIES, *OF_PYTORCH)) for name in (*links, *opened)
    )


def _runpath(libraries: Iterable[Library], *, shared: set[str]) -> tuple[str, ...]:
    """Return the folders of other wheels, relative to the folder of packages, in which libraries look for those they need.

    `shared` are folders of the wheel that have libraries for others, and in which other wheels may put theirs, as those of CUDA
    13 do; other folders of the wheel itself are left out.
    """
    own = {_folder(library) for library in libraries} - shared
    found = {
        posixpath.normpath(posixpath.join(_folder(library), _ORIGIN.sub(".", path, count=1)))
        for library in libraries
        for path in library.searched
        if _ORIGIN.match(path)
    }
    return tuple(sorted(one for one in found - own if not one.startswith(".")))


def _folder(library: Library) -> str:
    """Return the folder that a library is installed into, relative to the folder of packages."""
    return _DATA.sub("", library.path).rpartition("/")[0]


def _compiles_for_amd(measurement: Measurement, links: Iterable[str]) -> bool:
    """Return whether a wheel without code for AMD's GPUs links to ROCm, which compiles that code at run time."""
    is_read = measurement.is_whole and not any(library.packed_bundles for library in measurement.libraries)
    return is_read and any(name.startswith("libamdhip64.") for name in links)


def _on_use(distribution: str) -> tuple[str, ...]:
    return LOADED_ON_USE.get(distribution) or LOADED_ON_USE.get(distribution.partition("-cuda")[0], ())


def _targets(libraries: Iterable[Library], kind: str) -> tuple[str, ...]:
    """Return the targets of a kind (`sass`, `ptx`, `gfx`) that some library has, and not rarely (`RARE_BELOW`); sorted."""
    found: set[str] = set()
    for library in libraries:
        counts: Mapping[str, int] = getattr(library, kind)
        most = max((*library.sass.values(), *library.ptx.values(), *library.gfx.values()), default=0)
        found.update(name for name, count in counts.items() if count >= RARE_BELOW * most)
    return tuple(sorted(found, key=target_key))


def _runtime(libraries: Iterable[Library]) -> str:
    """Return the newest CUDA release of the runtimes that libraries contain, "" for none.

    If the release of a runtime is unknown, or of another major than the compiler of the library's GPU code, the release of that
    compiler is used for the runtime.
    """
    found = [_runtime_of(library) for library in libraries if library.has_runtime]
    return max((one for one in found if one), key=numbers_of, default="")


def _runtime_of(library: Library) -> str:
    isa = max(library.ptx_isa.values(), key=numbers_of, default="")
    compiler = library.tools[-1] if library.tools else CUDA_OF_ISA.get(isa, "")
    majors = {numbers_of(one)[0] for one in (library.runtime, compiler) if one}
    return library.runtime if library.runtime and len(majors) == 1 else compiler
