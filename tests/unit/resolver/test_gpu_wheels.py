"""Wheels whose GPU code was measured: which GPUs, drivers and NumPy they need, and what is unverified of those nobody read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from packaging.requirements import Requirement

from provisioner.index.model import Environment, IndexFile, PackageRelease
from provisioner.matrix.model import GpuWheel, ImageFacts
from provisioner.resolver.explain.conflict import explain_conflict
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from provisioner.words.conflict import member_words
from tests import small
from tests.shipped import shipped
from tests.told import unverified

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.utils import NormalizedName

    from provisioner.resolver.stack import Stack

ENVIRONMENT = Environment(platform="linux/amd64", python="3.11", glibc=(2, 36))
VERSIONS = {"boost": ("4.0", "3.1", "3.0", "2.0"), "numpy": ("2.1", "1.26"), "plain": ("1.0",), "blas-cu12": ("12.4",)}
FACTS: dict[str, Any] = {"platforms": ("linux/amd64",), "artefacts": {"a": "0" * 64}, "source": ("invented",)}
WHEELS = (
    GpuWheel(distribution="boost", versions="==4.*", sass=("sm_80", "sm_90"), ptx=(), runtime="13.0", **FACTS),
    # Nobody read 3.1.
    GpuWheel(
        distribution="boost",
        versions="==3.0",
        sass=("sm_70", "sm_90"),
        ptx=("compute_90",),
        ptx_isa="8.5",
        runtime="12.4",
        **FACTS,
    ),
    GpuWheel(distribution="boost", versions="==2.*", sass=("sm_50",), ptx=(), runtime="12.4", numpy="<2", **FACTS),
)
MATRIX = replace(
    small.matrix(
        ("cuda", "python", "driver", "gpu"),
        {
            "python": {"3.11": {}},
            "driver": {"580.65.06": {}, "550.54.15": {}, "470.256.02": {}},
            "gpu": {one: {} for one in ("5.2", "7.0", "8.0", "9.0", "12.0")},
        },
        releases={
            "cuda": (
                small.cuda("13.0.0", "580.65.06", "580.65.06"),
                replace(small.cuda("12.4.1", "525.60.13", "550.54.14"), ptx_isa="8.5"),
            )
        },
        branches={"470": "11.4", "550": "12.4", "580": "13.0"},
    ),
    wheels=WHEELS,
)

NEEDS = "boost 4.0 brings CUDA 13.0, which needs driver >=580.65.06 (minor-version compatibility)"


class Index:
    """A package source held in memory, with a wheel for Linux of each version."""

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        del index
        return tuple(self._release(name, version) for version in VERSIONS[name])

    def _release(self, name: NormalizedName, version: str) -> PackageRelease:
        tag = "py3-none-any" if name == "plain" else "py3-none-manylinux_2_28_x86_64"
        filename = f"{name}-{version}-{tag}.whl"
        file = IndexFile(filename=filename, url=f"https://files.test/{filename}", index="pypi", sha256="0" * 64)
        return PackageRelease.of(name=name, version_text=version, file=file)

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        del extras
        return (Requirement("numpy"),) if release.name == "boost" else ()

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        del release
        return ()

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        del names, follows


def instance(capability: str, driver: str = "580.65.06", package: str = "boost", **spec: Any) -> ProblemInstance:  # noqa: ANN401 - any key
    host = {"gpus": [{"compute_capability": capability}], "driver": {"version": driver}, "container_toolkit": "1.17.4"}
    problem = join(MATRIX, small.request({}, host, packages=[package], accelerator="cuda", **spec))
    return ProblemInstance(problem, PackageFinder(problem, Index(), ENVIRONMENT))


def solved(capability: str, driver: str = "580.65.06", package: str = "boost", **spec: Any) -> Stack:  # noqa: ANN401 - any key
    found = instance(capability, driver, package, **spec)
    pins = decide(found)
    assert pins is not None
    return answer(found, pins)


def chosen(stack: Stack) -> dict[str, str]:
    return {package.name: package.version for package in stack.packages}


@pytest.mark.parametrize(
    ("capability", "driver", "version"),
    [
        ("9.0", "580.65.06", "4.0"),
        ("9.0", "550.54.15", "3.0"),  # the driver cannot run the CUDA 13 that 4.0 has linked
        ("7.0", "580.65.06", "3.0"),
        ("5.2", "580.65.06", "2.0"),
    ],
)
def test_the_newest_measured_version_that_runs_there_is_chosen(capability: str, driver: str, version: str) -> None:
    stack = solved(capability, driver)
    assert (chosen(stack)["boost"], stack.verdict) == (version, "yes")


def test_ptx_counts_where_the_policy_allows_it() -> None:
    assert chosen(solved("12.0", policy={"allow": ["minor-version", "ptx-jit"]}))["boost"] == "3.0"


def test_a_wheel_compiled_against_numpy_1_has_it() -> None:
    assert chosen(solved("5.2")) == {"boost": "2.0", "numpy": "1.26"}
    assert chosen(solved("9.0"))["numpy"] == "2.1"


def test_a_version_nobody_measured_is_the_last_resort_and_unverified_by_name() -> None:
    stack = solved("12.0")
    assert (chosen(stack)["boost"], stack.verdict) == ("3.1", "unverified")
    (text,) = unverified(stack)
    assert text.startswith("boost: nobody has measured for which GPUs boost 3.1 has code")
    assert solved("12.0", policy={"accept": ["boost"]}).verdict == "yes"


@pytest.mark.parametrize(
    ("package", "capability", "driver", "words"),
    [
        ("boost==4.0", "7.0", "580.65.06", "boost 4.0 is compiled for sm_80 sm_90"),
        ("boost==4.0", "9.0", "550.54.15", f"{NEEDS}: its wheel contains that runtime"),
    ],
)
def test_a_wheel_without_code_for_the_gpu_or_a_driver_for_its_runtime_is_refused(
    package: str, capability: str, driver: str, words: str
) -> None:
    found = instance(capability, driver, package)
    conflict = explain_conflict(found)
    assert words in [member_words(member) for member in conflict.members]


def test_what_has_no_gpu_code_and_a_host_whose_gpus_are_unknown_are_asked_nothing() -> None:
    (text,) = unverified(solved("12.0", package="plain"))
    assert text.startswith("accelerator: you ask for CUDA, and nothing in the answer is known to compute on it;")
    problem = join(MATRIX, small.request({}, packages=["boost"], accelerator="cuda"))
    found = ProblemInstance(problem, PackageFinder(problem, Index(), ENVIRONMENT))
    pins = decide(found)
    assert pins is not None
    assert chosen(answer(found, pins))["boost"] == "4.0"


VENDORS = (
    GpuWheel(distribution="boost", versions="==4.*", sass=("sm_90",), links=("libamdhip64.so.6",), **FACTS),  # packed, unread
    GpuWheel(distribution="boost", versions="==3.1", sass=("sm_90",), links=("libcublas.so.12",), **FACTS),
    GpuWheel(distribution="boost", versions="==3.0", sass=("sm_90",), gfx=("gfx942",), links=("libcublas.so.12",), **FACTS),
    GpuWheel(distribution="blas-cu12", versions="", provides=("libcublas.so.12",), **FACTS),
)


def on_amd(package: str) -> ProblemInstance:
    matrix = small.matrix(("python", "amdgpu", "gpu"), {"python": {"3.11": {}}, "amdgpu": {"6.4": {}}, "gpu": {}})
    host = {"gpus": [{"gfx": "gfx942"}], "driver": {"kind": "amdgpu", "version": "6.4"}}
    known = tuple(one for one in shipped().gpus if one.gfx == "gfx942")
    problem = join(replace(matrix, wheels=VENDORS, gpus=known), small.request({}, host, packages=[package], accelerator="rocm"))
    return ProblemInstance(problem, PackageFinder(problem, Index(), ENVIRONMENT))


@pytest.mark.parametrize(
    ("package", "version", "doubt"),
    [
        ("boost", "3.0", ""),  # what it links to on GPUs of NVIDIA is not asked for here
        ("boost>=4", "4.0", "boost: nobody has measured for which GPUs boost 4.0 has code"),
    ],
)
def test_on_a_gpu_of_amd_what_was_measured_for_it_is_chosen(package: str, version: str, doubt: str) -> None:
    found = on_amd(package)
    pins = decide(found)
    assert pins is not None
    stack = answer(found, pins)
    assert chosen(stack)["boost"] == version
    assert [text.partition(";")[0] for text in unverified(stack)] == [doubt] * bool(doubt)


def test_a_wheel_with_code_for_gpus_of_another_vendor_alone_is_refused() -> None:
    conflict = explain_conflict(on_amd("boost==3.1"))
    assert "boost 3.1 is compiled for sm_90" in [member_words(member) for member in conflict.members]


LINKING = (
    GpuWheel(distribution="boost", versions="==4.*", sass=("sm_90",), links=("libcublas.so.12", "libodd.so.1"), **FACTS),
    GpuWheel(distribution="blas-cu12", versions="", provides=("libcublas.so.12",), **FACTS),
)
CUDA_IMAGE = {"base": "vendor/cuda:12.4"}


def linked(*packages: str, image: dict[str, str] | None = None, **spec: Any) -> Stack:  # noqa: ANN401 - any key
    images = (
        ImageFacts(reference="python:3.11", kind="slim", glibc="2.39", source=("invented",)),
        ImageFacts(reference="vendor/cuda:12.4", kind="cuda-runtime", glibc="2.39", cuda="12.4.1", source=("invented",)),
    )
    order = ("cuda", "python", "image", "driver", "gpu")
    matrix = replace(MATRIX, wheels=LINKING, images=images, order=order)
    host = {"gpus": [{"compute_capability": "9.0"}], "driver": {"version": "580.65.06"}, "container_toolkit": "1.17.4"}
    request = small.request(
        {}, host, packages=list(packages), accelerator="cuda", image=image or {"base": "python:3.11"}, **spec
    )
    found = ProblemInstance(join(matrix, request), PackageFinder(join(matrix, request), Index(), ENVIRONMENT))
    pins = decide(found)
    assert pins is not None
    return answer(found, pins)


def test_a_library_that_neither_the_lock_nor_the_image_has_is_named_with_who_provides_it() -> None:
    """Nobody is known to provide `libodd.so.1`, so nothing is said about it."""
    stack = linked("boost")
    (text,) = unverified(stack)
    assert text == (
        "boost: 4.0 needs libcublas.so.12, which neither the lock nor the image has; "
        "add blas-cu12 to `packages`, or take `image: {base: cuda-runtime}`"
    )
    assert unverified(linked("boost", "blas-cu12")) == ()
    assert unverified(linked("boost", image=CUDA_IMAGE)) == ()
