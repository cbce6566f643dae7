"""Claims beside a small invented matrix: what agrees, what differs, what nobody here can judge."""

from __future__ import annotations

import pytest

from provisioner.compare.check import check_claim
from provisioner.compare.claims import QUESTIONS, Claim, Disagreement, Table
from provisioner.compare.diff import MalformedClaimError, compare
from provisioner.matrix.model import Component, DriverMinimum, DriverPackage, ImageFacts, Matrix, PatchedKernels, Release
from provisioner.versions import Range, Version
from tests.small import SOURCE, build, needs

ORDER = ("pytorch", "tensorflow", "cudnn", "nvcc", "cuda", "python", "gcc", "clang", "driver", "kernel")


def cuda(version: str, toolkit: str, floor: str | None, ptx_isa: str = "") -> Release:
    minimum = DriverMinimum(toolkit=Version.parse(toolkit), minor_version=Version.parse(floor) if floor else None)
    return Release(version=Version.parse(version), driver=minimum, ptx_isa=ptx_isa, source=("invented",))


def nvcc(version: str, targets: str, gcc: str, clang: str = "") -> Release:
    table = {"gcc": gcc, **({"clang": clang} if clang else {})}
    made = build("toolkit", {}, sass=tuple(targets.split()))
    return Release(version=Version.parse(version), requires=needs(table), builds=(made,), source=("invented",))


def release(version: str, *builds: object) -> Release:
    return Release(version=Version.parse(version), builds=builds)  # type: ignore[arg-type]


def driver(version: str, kernels: str, by: str) -> Release:
    patched = (PatchedKernels(kernel=Range.parse(kernels), by=by, source=("invented",)),)
    return Release(version=Version.parse(version), patched=patched, source=("invented",))


RELEASES = {
    "driver": (driver("470.256.02", "<7.3", "Debian 470.256.02-10"), driver("390.157", "<7.1", "CachyOS")),
    "kernel": (release("7.2"), release("7.1"), release("6.19")),
    "cuda": (
        cuda("12.6.3", "560.35.05", "525.60.13", "8.5"),
        cuda("12.4.1", "550.54.15", "525.60.13", "8.4"),
        cuda("11.8.0", "520.61.05", "450.80.02", "7.8"),
        cuda("10.2.89", "440.33", None, "6.5"),
    ),
    "nvcc": (
        nvcc("12.6.3", "sm_50 sm_90", ">=6,<14", ">=7,<19"),
        nvcc("12.4.1", "sm_50 sm_90", ">=6,<=13.2"),
        nvcc("11.8.0", "sm_50 sm_35 sm_90", ">=6,<12"),
    ),
    "cudnn": (release("9.1.0.70", build("cu12", {"cuda": "==12.*"}), build("cu11", {"cuda": "==11.*"})),),
    "pytorch": (
        release(
            "2.4.1",
            build("cu121", {"cuda": "==12.1.*", "python": ["3.9", "3.10", "3.11"]}, default=True),
            build("cu118", {"cuda": "==11.8.*", "python": ["3.9", "3.10"]}),
            build("rocm6.1", {"python": ["3.10"]}, accelerator="rocm", gfx=("gfx90a", "gfx942")),
        ),
    ),
    "tensorflow": (
        release("2.9.0", build("gpu", {"cuda": "==11.2.*", "cudnn": "==8.1.1.33", "python": ["3.9"]}, default=True)),
    ),
}
IMAGES = (
    ImageFacts(
        reference="nvidia/cuda:12.6.3-x", kind="cuda-base", glibc="2.39", cuda="12.6.3", cudnn="9.5.1", source=("invented",)
    ),
)
MODULES = tuple(
    DriverPackage(
        name=f"linux-modules-nvidia-<branch>{variant}-<flavour>-6.8",
        os="ubuntu 24.04",
        kind="precompiled",
        branches=branches,
        kernel="==6.8.*",
        flavours=("generic",),
        platforms=("linux/amd64",),
        source=("invented",),
    )
    for variant, branches in (("-open", ("580",)), ("-server", ("595",)))
)
MATRIX = Matrix(
    order=ORDER,
    components={name: Component(name=name, title=name, releases=RELEASES.get(name, ())) for name in ORDER},
    rules=(),
    branches=(),
    gpus=(),
    images=IMAGES,
    driver_packages=MODULES,
    citations={"invented": SOURCE},
    digest="0" * 64,
)


JUDGED = [
    ("driver-floor", "cuda 12.6", ">=525.60.13", "agrees", ">=525.60.13"),
    ("driver-floor", "cuda 12.6", ">=525", "agrees", ">=525.60.13"),
    ("driver-floor", "cuda 12.6", ">=528.33", "differs", ">=525.60.13"),
    ("driver-floor", "cuda 10.2", ">=440.33", "agrees", ">=440.33"),
    ("driver-floor", "cuda 9.0", ">=384.81", "silent", "no driver is known for CUDA 9.0"),
    ("driver-kernel", "driver 470.256.02", "kernel 7.2", "agrees", "kernel 7.2"),
    ("driver-kernel", "driver 470.256.02", "kernel 6.19", "differs", "kernel 7.2"),
    ("driver-kernel", "driver 470.256.02", "kernel 7.3", "differs", "kernel 7.2"),
    ("driver-kernel", "driver 390.157", "kernel 7.2", "silent", "no row says on which kernels Debian builds driver 390.157"),
    ("signed-modules", "ubuntu 24.04 linux/amd64 generic 6.8", "595 580", "agrees", "595 580"),
    ("signed-modules", "ubuntu 24.04 linux/amd64 generic 6.8", "615 595", "differs", "595 580"),
    ("signed-modules", "ubuntu 24.04 linux/amd64 oem 6.8", "595 580", "differs", "none"),
    ("signed-modules", "ubuntu 24.04 linux/amd64 generic 6.14", "580", "differs", "none"),
    (
        "signed-modules",
        "ubuntu 25.04 linux/amd64 generic 6.14",
        "580",
        "silent",
        "no row says which modules ubuntu 25.04 signs on linux/amd64",
    ),
    ("driver-major", "cuda", "the same major is enough", "differs", "not for CUDA 10.2 to 10.2"),
    ("nvcc-target", "sm_50", "<=12.9", "agrees", "CUDA 11.8 to 12.6"),
    ("nvcc-target", "sm_90", ">=12.0", "differs", "CUDA 11.8 to 12.6"),
    ("nvcc-target", "sm_35", ">=5.0,<=11.8", "agrees", "CUDA 11.8 to 11.8"),
    ("nvcc-target", "sm_20", ">=3.0,<=8.0", "agrees", "no compiler of this matrix"),
    ("nvcc-target", "sm_120", ">=12.5", "differs", "no compiler of this matrix"),
    ("ptx-isa", "ptx 8.4", "cuda 12.4", "agrees", "cuda 12.4"),
    ("ptx-isa", "ptx 8.5", "cuda 12.5", "differs", "cuda 12.6"),
    ("ptx-isa", "ptx 6.0", "cuda 9.0", "silent", "older or newer than every release of this matrix"),
    ("ptx-isa", "ptx 9.9", "cuda 14.0", "silent", "older or newer than every release of this matrix"),
    ("gcc", "cuda 12.6", "6 to 13", "agrees", "6 to 13"),
    ("gcc", "cuda 12.6", "6 to 14", "differs", "6 to 13"),
    ("gcc", "cuda 12.4", "6 to 13", "agrees", "6 to 13"),
    ("gcc", "cuda 12.6", "accepts 13", "agrees", "6 to 13"),
    ("gcc", "cuda 12.6", "accepts 15", "differs", "6 to 13"),
    ("clang", "cuda 12.6", "7 to 18", "agrees", "7 to 18"),
    ("clang", "cuda 11.8", ">=7,<=14", "silent", "no clang limit is known for CUDA 11.8"),
    ("cudnn-cuda", "cudnn 9.1.0.70", "11 12", "agrees", "cu11 cu12"),
    ("cudnn-cuda", "cudnn 9.1.0.70", "12 13", "differs", "cu11 cu12"),
    ("cudnn-cuda", "cudnn 9.9.9", "12", "silent", "cuDNN 9.9.9 is not in this matrix"),
    ("image", "nvidia/cuda:12.6.3-x", "cuda 12.6.3, cudnn 9", "agrees", "cuda 12.6.3, cudnn 9.5.1"),
    ("image", "nvidia/cuda:12.6.3-x", "cuda 12.6.3, cudnn 8", "differs", "cuda 12.6.3, cudnn 9.5.1"),
    ("image", "nvidia/cuda:1", "cuda 1, cudnn 8", "silent", "`nvidia/cuda:1` is not in this matrix"),
    ("pytorch-cuda", "pytorch 2.4.1+cu118", "cuda 11.8", "agrees", "cuda ==11.8.*"),
    ("pytorch-cuda", "pytorch 2.4.1", "cuda 12.1", "agrees", "cuda ==12.1.*"),
    ("pytorch-cuda", "pytorch 2.4.1", "cuda 11.8", "differs", "cuda ==12.1.*"),
    ("pytorch-cuda", "pytorch 9.9", "cuda 11.8", "silent", "pytorch 9.9 is not in this matrix"),
    ("pytorch-python", "pytorch 2.4.1+cu118", "3.9 3.10", "agrees", "3.9 3.10"),
    ("pytorch-python", "pytorch 2.4.1+cu121", "3.9 3.10", "differs", "3.9 3.10 3.11"),
    ("pytorch-python", "pytorch >=2.2,<=2.4", ">=3.8,<=3.12", "agrees", "3.9 3.10 3.11"),
    ("pytorch-python", "pytorch >=2.2", "<=3.10", "differs", "3.9 3.10 3.11"),
    ("pytorch-python", "pytorch >=2.5", "<=3.10", "silent", "the Pythons of pytorch >=2.5 are not in this matrix"),
    ("rocm-target", "rocm6.1", "gfx90a gfx942", "agrees", "gfx90a gfx942"),
    ("rocm-target", "rocm6.1", "gfx90a", "differs", "gfx90a gfx942"),
    ("rocm-target", "rocm7.0", "gfx90a", "silent", "no targets are known for rocm7.0"),
    ("tensorflow-cuda", "tensorflow 2.9.0", "cuda 11.2, cudnn 8.1", "agrees", "cuda ==11.2.*, cudnn ==8.1.1.33"),
    ("tensorflow-cuda", "tensorflow 2.9.0", "cuda 11.2, cudnn 8.0", "differs", "cuda ==11.2.*, cudnn ==8.1.1.33"),
    ("tensorflow-python", "tensorflow 2.9.0", "3.9", "agrees", "3.9"),
]


@pytest.mark.parametrize(("question", "subject", "says", "verdict", "ours"), JUDGED)
def test_a_claim_is_judged(question: str, subject: str, says: str, verdict: str, ours: str) -> None:
    found = check_claim(MATRIX, Claim(question=question, subject=subject, says=says))
    assert (found.verdict, found.ours) == (verdict, ours)
    if verdict != "agrees":
        assert bool(found.evidence) == (verdict == "differs")


def test_every_question_has_a_judge() -> None:
    assert {row[0] for row in JUDGED} == set(QUESTIONS)


def test_the_scope_of_a_table_bounds_what_is_compared() -> None:
    claim = Claim(question="pytorch-python", subject="pytorch 2.4.1+cu121", says="3.10 3.11", scope=">=3.10")
    assert check_claim(MATRIX, claim).verdict == "agrees"


def table(*claims: tuple[str, str, str]) -> Table:
    made = tuple(Claim(question=question, subject=subject, says=says) for question, subject, says in claims)
    return Table(name="uv", title="uv", claims=made)


def reason(**fields: str) -> Disagreement:
    told = {"table": "uv", "question": "driver-floor", "subject": "cuda 12.*", "because": "they say so of Windows"}
    return Disagreement(**{**told, **fields})


def outcomes(known: list[Disagreement]) -> tuple[list[str], int]:
    tables = [table(("driver-floor", "cuda 12.6", ">=528.33"), ("driver-floor", "cuda 11.8", ">=450.80.02"))]
    comparison = compare(MATRIX, tables, known)
    return [one.outcome for one in comparison.compared], len(comparison.idle)


def test_a_difference_without_a_reason_is_unexplained() -> None:
    assert outcomes([]) == (["unexplained", "agrees"], 0)


def test_a_written_reason_explains_it() -> None:
    assert outcomes([reason()]) == (["explained", "agrees"], 0)


@pytest.mark.parametrize("field", ["table", "question", "subject", "says", "ours"])
def test_a_reason_for_something_else_explains_nothing(field: str) -> None:
    assert outcomes([reason(**{field: "something else"})])[0] == ["unexplained", "agrees"]


def test_a_reason_that_explains_nothing_any_more_is_idle() -> None:
    assert outcomes([reason(), reason(subject="cuda 11.8")]) == (["explained", "agrees"], 1)


def test_a_reason_about_a_table_that_was_not_compared_is_not_idle() -> None:
    assert outcomes([reason(), reason(table="cog")]) == (["explained", "agrees"], 0)


@pytest.mark.parametrize(
    ("question", "subject", "says"),
    [
        ("driver-floor", "cuda 12.6", ">=never"),
        ("signed-modules", "ubuntu 24.04", "580"),
        ("image", "nvidia/cuda:12.6.3-x", "cuda"),
    ],
)
def test_a_claim_that_was_damaged_is_named_with_its_table(question: str, subject: str, says: str) -> None:
    with pytest.raises(MalformedClaimError, match=f"the table `uv` is damaged: `{subject}: {says}`") as raised:
        compare(MATRIX, [table((question, subject, says))], ())
    assert raised.value.exit_code == 2
