"""A wheel that nobody measured is judged by its day: it has no machine code for a GPU that no compiler knew at that time.

On random compilers, GPUs, wheels and days, against an opinion that is written anew from NVIDIA's rules of binary compatibility:
code runs within its major and not below its minor, PTX from its capability on. Nothing of `provisioner.resolver` decides here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.grounds.doubt import UnmeasuredWheel
from provisioner.index.model import Environment, IndexFile, PackageRelease
from provisioner.matrix.model import GpuWheel, Release
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from provisioner.versions import Version
from tests import small
from tests.strategies import case, examples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement
    from packaging.utils import NormalizedName

pytestmark = pytest.mark.property

NAME = canonicalize_name("gadget")
CAPABILITIES = ((7, 0), (7, 5), (8, 0), (8, 6), (9, 0))
YEARS = tuple(range(2017, 2023))
SASS, PTX = ("sm_80",), ("compute_75",)
"""What the measured wheels have."""


class Compiler(NamedTuple):
    """A release of nvcc, by the year of its release (0: the matrix does not tell), and what it compiles for."""

    year: int
    knows: frozenset[tuple[int, int]]


class Wheel(NamedTuple):
    """A version, by the year of its upload (0: the index does not tell); `is_measured` ones have `SASS` and `PTX`."""

    year: int
    is_measured: bool


class Case(NamedTuple):
    compilers: tuple[Compiler, ...]
    wheels: tuple[Wheel, ...]
    gpu: tuple[int, int]
    compiles_ptx: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Compilers in the order of their versions, each of which knows what the one before it knows; wheels, the oldest first."""
    count = draw(st.integers(1, 4))
    years = sorted(draw(st.lists(st.sampled_from(YEARS[1:]), min_size=count, max_size=count)))
    ends = sorted(draw(st.lists(st.integers(0, len(CAPABILITIES)), min_size=count, max_size=count)))
    compilers = tuple(
        Compiler(draw(st.sampled_from((year, year, year, year, year, 0))), frozenset(CAPABILITIES[:end]))
        for year, end in zip(years, ends, strict=True)
    )
    wheel = st.builds(Wheel, st.sampled_from((*YEARS, *YEARS, 0)), st.sampled_from((False, False, False, True)))
    wheels = draw(st.lists(wheel, min_size=1, max_size=4))
    return Case(compilers, tuple(wheels), draw(st.sampled_from(CAPABILITIES)), draw(st.booleans()))


def runs(target: tuple[int, int], gpu: tuple[int, int]) -> bool:
    """Return whether machine code runs on a GPU: the same major, and no newer minor."""
    return target[0] == gpu[0] and target[1] <= gpu[1]


def standing(asked: Case, wheel: Wheel) -> int | None:
    """Return 0 for a wheel that runs, 1 for one that may, 2 for one that may by PTX alone, None for one that cannot."""
    if wheel.is_measured:
        has_ptx = asked.compiles_ptx and asked.gpu >= (7, 5)
        return 0 if runs((8, 0), asked.gpu) or has_ptx else None
    first = next((one for one in asked.compilers if any(runs(target, asked.gpu) for target in one.knows)), None)
    is_older = first is not None and first.year and wheel.year and wheel.year < first.year
    if not is_older:
        return 1
    return 2 if asked.compiles_ptx else None


class Shelf:
    """The `PackageSource` of a case: one distribution without requirements."""

    def __init__(self, wheels: tuple[Wheel, ...]) -> None:
        self._wheels = wheels

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        """Return every version, the newest first."""
        found = []
        for number, wheel in enumerate(self._wheels, 1):
            file = IndexFile(
                filename=f"{name}-{number}-py3-none-any.whl",
                url=f"https://files.example/{name}-{number}",
                index=index,
                upload_time=f"{wheel.year}-06-15T12:00:00Z" if wheel.year else None,
            )
            found.append(PackageRelease.of(name=name, version_text=str(PackageVersion(str(number))), file=file))
        return tuple(reversed(found))

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        """Return no requirements."""
        del release, extras
        return ()

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        """Return no extras."""
        del release
        return ()

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        """Read nothing ahead."""
        del names, follows


def instance_of(asked: Case) -> ProblemInstance:
    """Return the case as the solver sees it."""
    compilers = [
        Release(
            version=Version.parse(f"1{number}.0"),
            released=f"{one.year}-06" if one.year else "",
            builds=(small.build("toolkit", {}, sass=tuple(f"sm_{major}{minor}" for major, minor in sorted(one.knows))),),
            source=("invented",),
        )
        for number, one in enumerate(asked.compilers)
    ]
    measured = [number for number, wheel in enumerate(asked.wheels, 1) if wheel.is_measured]
    # A row of its own, of a version that no index has, makes the distribution one with GPU code in any case.
    wheels = tuple(
        GpuWheel(distribution=NAME, versions=f"=={number}", sass=SASS, ptx=PTX, artefacts={}) for number in (*measured, 99)
    )
    table: dict[str, Any] = {
        "python": {"3.12": {}},
        "driver": {"600.1": {}},
        "gpu": {f"{major}.{minor}": {} for major, minor in CAPABILITIES},
    }
    matrix = small.matrix(("nvcc", "python", "driver", "gpu"), table, releases={"nvcc": compilers}, wheels=wheels)
    allow = ["minor-version", *(["ptx-jit"] if asked.compiles_ptx else [])]
    host = {"driver": {"version": "600.1"}, "gpus": [{"compute_capability": "{}.{}".format(*asked.gpu)}]}
    request = small.request({"python": "==3.12"}, host, packages=[NAME], accelerator="cuda", policy={"allow": allow})
    problem = join(matrix, request)
    return ProblemInstance(
        problem, PackageFinder(problem, Shelf(asked.wheels), Environment(platform="linux/amd64", python="3.12"))
    )


@examples(600, shares={"no": 0.05, "measured": 0.1, "unmeasured": 0.2, "by PTX alone": 0.02, "before a newer one by PTX": 0.02})
@given(cases())
def test_the_best_wheel_of_its_day_is_taken_and_told_for_what_it_is(asked: Case) -> None:
    """The newest of those that run, else of those that may, else of those that may by PTX alone; or none, where none can."""
    instance = instance_of(asked)
    pins = decide(instance)
    judged = {str(number): found for number, one in enumerate(asked.wheels, 1) if (found := standing(asked, one)) is not None}
    best = min(judged, key=lambda label: (judged[label], -int(label)), default=None)
    case("no" if best is None else ("measured", "unmeasured", "by PTX alone")[judged[best]])
    if best is not None and judged[best] < max(judged[label] for label in judged if int(label) >= int(best)):
        case("before a newer one by PTX")
    assert (pins is None) == (best is None)
    if pins is None or best is None:
        return
    assert {key.name: one.label for key, one in pins.items() if key.is_package} == {NAME: best}
    told = [doubt for doubt in answer(instance, pins).doubts if isinstance(doubt, UnmeasuredWheel)]
    assert [one.older_than is not None for one in told] == ([judged[best] == 2] if judged[best] else [])
