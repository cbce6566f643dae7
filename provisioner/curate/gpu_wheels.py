"""GPU code in the wheels of distributions: facts from the measurement of a wheel, and the matrix rows from a survey.

A survey (`WheelSurvey`) names the releases of a distribution of which some are to be measured.

A row covers a range of releases: each release was measured, or lies between two measured releases whose facts are equal.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.specifiers import SpecifierSet

from provisioner.matrix.model import GpuWheel
from provisioner.measure.fatbin import target_key
from provisioner.measure.scan import SONAME
from provisioner.versions import numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.curate.wheel_index import Wheel
    from provisioner.matrix.model import WheelSurvey
    from provisioner.measure.artefact import Library, Measurement

SOURCE = "gpu-wheels"
"""The key of the citation that every row has."""

FEW = 0.5
"""The fraction of the kernels of a library's most frequent target below which another target of the library is ignored."""

LOADED_ON_USE = {
    "onnxruntime-gpu": ("libnvinfer", "libnvonnxparser"),
    "onnxruntime-genai-cuda": ("libnvinfer", "libnvonnxparser"),
    "cupy": ("libcudnn", "libnccl", "libcutensor", "libcusparseLt"),
    "dgl": ("libtorch", "libc10"),
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
    numpy: str = ""


FIELDS = Facts.__struct_fields__


def facts(distribution: str, measurement: Measurement) -> Facts:
    """Return the facts that a measured wheel of a distribution shows."""
    libraries = measurement.libraries
    files = {library.path.rpartition("/")[2] for library in libraries}
    own = files | {library.soname for library in libraries}
    linked = {name for library in libraries for name in library.needed if SONAME.fullmatch(name)} - own
    on_use = _on_use(distribution)
    links = {name for name in linked if not name.startswith(on_use)}
    named = {name for library in libraries for name in library.named if _VERSIONED.search(name)} - own
    code = [library for library in libraries if not _is_profiler(library) or "cupti" in distribution]
    sass, ptx, gfx = (_targets(code, kind) for kind in ("sass", "ptx", "gfx"))
    is_known = bool(sass or ptx) or measurement.is_whole
    isa = [version for library in code for name, version in library.ptx_isa.items() if name in ptx]
    return Facts(
        sass=sass if is_known else None,
        ptx=ptx if is_known else None,
        gfx=gfx or None,
        ptx_isa=max(isa, key=numbers_of, default=""),
        runtime=_runtime(libraries),
        compiler=max((library.compiler for library in libraries if library.compiler), key=numbers_of, default=""),
        links=tuple(sorted(links)),
        opens=tuple(sorted((named | linked) - links)),
        provides=tuple(sorted(name for name in files if SONAME.fullmatch(name) and _VERSIONED.search(name))),
        numpy="<2" if any(library.needs_numpy_1 for library in libraries) else "",
    )


def facts_of(row: GpuWheel) -> Facts:
    """Return the facts about its wheels that a row of the matrix states."""
    return Facts(**{name: getattr(row, name) for name in FIELDS})


def row(distribution: str, platform: str, found: Facts, *, wheels: Sequence[Wheel]) -> GpuWheel:
    """Return the matrix row of the facts `found`, which all of `wheels` share; `wheels` begins with the oldest."""
    first, last = wheels[0], wheels[-1]
    versions = f"=={first.text}" if first.text == last.text else f">={first.text},<={last.text}"
    return GpuWheel(
        distribution=distribution,
        versions=versions,
        platforms=(platform,),  # type: ignore[arg-type]  # the name of a platform
        **{name: getattr(found, name) for name in FIELDS},
        artefacts={wheel.file.filename: wheel.file.sha256 for wheel in (last, first)},
        source=(SOURCE,),
    )


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

    A row covers neighbouring releases whose wheels have equal facts (their GPU targets and libraries). `wheels` has one wheel
    of each release, the oldest first; `old` the facts of wheels measured before, by file name and hash. At most `most` other
    wheels are measured, with `measure`, which returns None for a wheel that cannot be measured: the newest, those that `asked`
    names, the oldest, and then repeatedly a release halfway between the two newest neighbours whose facts differ.
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
            same = [chosen[one] for one in reversed(group)]
            yield row(asked.distribution, platform, known[group[0]], wheels=same)
            group = []
        group.append(at)


def _next(chosen: Sequence[Wheel], asked: WheelSurvey, known: Mapping[int, Facts], *, failed: set[int]) -> int | None:
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


def _on_use(distribution: str) -> tuple[str, ...]:
    return LOADED_ON_USE.get(distribution) or LOADED_ON_USE.get(distribution.partition("-cuda")[0], ())


def _targets(libraries: Iterable[Library], kind: str) -> tuple[str, ...]:
    """Return the targets of a kind (`sass`, `ptx`, `gfx`) that are frequent enough (`FEW`) in at least one library; sorted."""
    found: set[str] = set()
    for library in libraries:
        counts: Mapping[str, int] = getattr(library, kind)
        most = max((*library.sass.values(), *library.ptx.values(), *library.gfx.values()), default=0)
        found.update(name for name, count in counts.items() if count >= FEW * most)
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
