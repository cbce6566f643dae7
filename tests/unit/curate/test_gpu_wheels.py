"""Facts of GPU wheels are what their libraries show; rows of a survey stand for what was measured at both of their ends."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from provisioner.curate.gpu_wheels import Facts, facts, facts_of, survey
from provisioner.curate.wheel_index import Wheel
from provisioner.index.model import IndexFile
from provisioner.matrix.model import WheelSurvey
from provisioner.measure.artefact import Library, Measurement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.matrix.model import GpuWheel

LINUX = "linux/amd64"


def measured(*libraries: Library) -> Measurement:
    return Measurement(filename="demo-1.0-py3-none-any.whl", libraries=libraries)


def test_a_target_counts_where_a_library_has_half_of_its_kernels_for_it() -> None:
    main = Library(
        path="vllm/_C.so", sass={"sm_52": 1, "sm_70": 29, "sm_90": 29}, ptx={"compute_90": 29}, ptx_isa={"compute_90": "8.7"}
    )
    other = Library(path="vllm/_fa3.so", sass={"sm_90a": 300})
    found = facts("vllm", measured(main, other))
    assert (found.sass, found.ptx, found.ptx_isa, found.gfx) == (("sm_70", "sm_90", "sm_90a"), ("compute_90",), "8.7", None)


def test_a_wheel_without_gpu_code_has_none_and_a_sample_without_any_is_not_measured() -> None:
    assert facts("demo", measured(Library(path="demo/a.so"))).sass == ()
    assert facts("demo", measured(Library(path="demo/a.so", is_whole=False))).sass is None


def test_what_is_linked_loaded_and_provided() -> None:
    first = Library(
        path="demo/lib/libcublasLt.so.12",
        soname="libcublasLt.so.12",
        needed=("libcublasLt.so.12", "libc.so.6"),
        named=("libcublasLt.so.12",),
    )
    second = Library(
        path="demo/_ext.so",
        needed=("libcudart.so.12", "libcublasLt.so.12", "libcudart-d0da41ae.so.11.0", "libm.so.6"),
        named=("libcublasLt.so.12", "libcudart.so.12", "libcudnn.so.9", "libcupti.so"),
    )
    found = facts("demo", measured(first, second))
    assert (found.links, found.opens, found.provides) == (("libcudart.so.12",), ("libcudnn.so.9",), ("libcublasLt.so.12",))


def test_the_folders_of_other_wheels_where_a_wheel_looks_for_libraries() -> None:
    library = Library(
        path="demo-1.0.data/platlib/demo/lib/libdemo.so",
        needed=("libcublas.so.12",),
        searched=(
            "$ORIGIN",
            "$ORIGIN/../../demo.libs",
            "${ORIGIN}/../../nvidia/cublas/lib",
            "$ORIGIN/../../../..",
            "/usr/local/cuda",
        ),
    )
    own = Library(path="demo.libs/libgomp.so", searched=("$ORIGIN/../nvidia/cu13/lib",))
    assert facts("demo", measured(library, own)).runpath == ("nvidia/cu13/lib", "nvidia/cublas/lib")
    assert facts("demo", measured(own)).runpath is None


def test_the_folder_of_a_wheel_is_also_that_of_others_where_its_libraries_are_for_others() -> None:
    library = Library(path="nvidia/cu13/lib/libcusolver.so.12", needed=("libcublas.so.13",), searched=("$ORIGIN",))
    assert facts("nvidia-cusolver", measured(library)).runpath == ("nvidia/cu13/lib",)


def test_nothing_is_said_of_the_folders_of_a_wheel_that_pytorch_loads_libraries_for() -> None:
    library = Library(path="demo/_C.so", needed=("libcublas.so.12", "libtorch_cuda.so"), searched=("$ORIGIN/../torch/lib",))
    assert facts("demo", measured(library)).runpath is None


def test_the_folders_of_the_libraries_for_others() -> None:
    library = Library(path="nvidia/cu13/lib/libcublas.so.13", soname="libcublas.so.13")
    assert facts("nvidia-cublas", measured(library)).folders == ("nvidia/cu13/lib",)


def test_an_optional_library_of_a_known_distribution_is_loaded_when_it_is_used() -> None:
    library = Library(path="x.so", needed=("libcudnn.so.9", "libcublas.so.12"), named=("libcudnn.so.9", "libcublas.so.12"))
    assert facts("cupy-cuda12x", measured(library)).links == ("libcublas.so.12",)
    assert facts("cupy-cuda12x", measured(library)).opens == ("libcudnn.so.9",)
    assert facts("onnxruntime-gpu", measured(library)).links == ("libcublas.so.12", "libcudnn.so.9")


def test_the_newest_runtime_and_compiler_of_a_wheel() -> None:
    found = facts(
        "demo",
        measured(
            Library(path="a.so", has_runtime=True, runtime="12.8", tools=("12.4",)),
            Library(path="b.so", has_runtime=True, tools=("11.8", "12.9")),
            Library(path="c.so", runtime="13.0", tools=("13.0",), compiler="9.2"),
            Library(path="d.so", compiler="12.4", needs_numpy_1=True),
        ),
    )
    assert (found.runtime, found.compiler, found.numpy) == ("12.9", "12.4", "<2")


def test_a_stored_number_of_another_major_than_the_ptx_beside_it_is_no_runtime() -> None:
    library = Library(path="a.so", has_runtime=True, runtime="14.9", ptx={"compute_90": 9}, ptx_isa={"compute_90": "7.8"})
    assert facts("demo", measured(library)).runtime == "11.8"


def test_the_kernels_of_a_bundled_profiler_say_nothing_of_the_wheel() -> None:
    cupti = Library(path="triton/backends/nvidia/lib/cupti/libcupti.so.12", sass={"sm_50": 9})
    assert facts("triton", measured(cupti)).sass == ()
    assert facts("nvidia-cuda-cupti-cu12", measured(cupti)).sass == ("sm_50",)


def test_a_library_with_a_hash_in_its_file_name_is_for_nobody_else() -> None:
    library = Library(path="torchvision.libs/libcudart.06e1a4c4.so.13", soname="libcudart.so.13")
    user = Library(path="torchvision/_C.so", needed=("libcudart.so.13",))
    found = facts("torchvision", measured(library, user))
    assert (found.links, found.provides) == ((), ())


def test_a_library_that_auditwheel_renamed_is_bundled_though_its_old_name_is_left_in_what_links_to_it() -> None:
    """The names are those in auto_gptq 0.4.2 and ctranslate2 3.24.0, whose tables of strings still have the old ones."""
    cudart = Library(path="auto_gptq.libs/libcudart-987eca32.so.11.7.99", soname="libcudart-987eca32.so.11.7.99")
    cudnn = Library(path="ctranslate2.libs/libcudnn-f0ff4753.so.8.1.1", soname="libcudnn-f0ff4753.so.8.1.1")
    user = Library(
        path="demo/_C.so",
        needed=("libcudart-987eca32.so.11.7.99", "libcudart.so.11.0"),
        named=("libcublas.so.11", "libcudart.so.11.0", "libcudart.so.12", "libcudnn.so.8", "libcudnn_ops_infer.so.8"),
    )
    found = facts("demo", measured(user, cudart, cudnn))
    assert found.links == ()
    assert found.opens == ("libcublas.so.11", "libcudart.so.12", "libcudnn_ops_infer.so.8")
    assert found.provides == ()


def wheels(*versions: str) -> list[Wheel]:
    return [
        Wheel(
            project="demo",
            version=Version(version),
            text=version,
            tag="py3-none-manylinux_2_28_x86_64",
            build=(0, ""),
            file=IndexFile(
                filename=f"demo-{version}-py3-none-manylinux_2_28_x86_64.whl",
                url="",
                index="main",
                sha256=hashlib.sha256(version.encode()).hexdigest(),
            ),
        )
        for version in versions
    ]


class Measuring:
    """Measures releases of a distribution whose GPU code begins at `sm_75` from `since` on, and at `sm_60` before."""

    def __init__(self, since: str, *, broken: tuple[str, ...] = ()) -> None:
        self.since, self.broken = Version(since), broken
        self.measured: list[str] = []

    def __call__(self, wheel: Wheel) -> Facts | None:
        self.measured.append(wheel.text)
        if wheel.text in self.broken:
            return None
        return Facts(sass=("sm_75",) if wheel.version >= self.since else ("sm_60",), ptx=())

    def rows(self, found: Sequence[Wheel], most: int, old: Sequence[GpuWheel] = (), **asked: object) -> list[GpuWheel]:
        known = {artefact: facts_of(row) for row in old for artefact in row.artefacts.items()}
        demo = WheelSurvey(distribution="demo", **asked)  # type: ignore[arg-type]  # fields of a survey
        return list(survey(demo, LINUX, found, old=known, measure=self, most=most))


TEN = wheels(*(f"1.{minor}" for minor in range(10)))


def ranges(rows: Sequence[GpuWheel]) -> list[tuple[str, tuple[str, ...] | None]]:
    return [(row.versions, row.sass) for row in rows]


def test_equal_ends_make_one_row_and_nothing_between_is_read() -> None:
    measure = Measuring("1.0")
    (row,) = measure.rows(TEN, 9)
    assert measure.measured == ["1.9", "1.0"]
    assert ranges([row]) == [(">=1.0,<=1.9", ("sm_75",))]
    assert list(row.artefacts) == [TEN[-1].file.filename, TEN[0].file.filename]


def test_a_change_is_looked_for_between_ends_that_differ() -> None:
    measure = Measuring("1.4")
    assert ranges(measure.rows(TEN, 9)) == [(">=1.4,<=1.9", ("sm_75",)), (">=1.0,<=1.3", ("sm_60",))]
    assert len(measure.measured) <= 6


def test_what_was_not_measured_between_ends_that_differ_has_no_row() -> None:
    assert ranges(Measuring("1.4").rows(TEN, 3)) == [(">=1.5,<=1.9", ("sm_75",)), ("==1.0", ("sm_60",))]


def test_a_new_release_extends_the_row_of_the_newest() -> None:
    before = Measuring("1.0").rows(TEN[:8], 9)
    measure = Measuring("1.0")
    (row,) = measure.rows(TEN, 9, before)
    assert measure.measured == ["1.9"]
    assert row.versions == ">=1.0,<=1.9"


def test_without_measuring_rows_stay_as_they_are() -> None:
    before = Measuring("1.4").rows(TEN, 9)
    assert Measuring("1.4").rows(TEN, 0, before) == before


def test_a_release_that_is_asked_for_is_measured_before_the_oldest() -> None:
    measure = Measuring("1.8")
    measure.rows(TEN, 2, also=("1.3",), versions=">=1.5")
    assert measure.measured == ["1.9", "1.3"]


def test_a_wheel_that_cannot_be_measured_is_passed_over() -> None:
    measure = Measuring("1.0", broken=("1.9",))
    assert ranges(measure.rows(TEN, 9)) == [(">=1.0,<=1.8", ("sm_75",))]
    assert ranges(Measuring("1.0", broken=("1.0", "1.9")).rows(TEN, 9)) == [(">=1.1,<=1.8", ("sm_75",))]
    assert ranges(Measuring("1.0", broken=tuple(wheel.text for wheel in TEN)).rows(TEN, 3)) == []


def test_another_file_under_the_same_name_is_measured_again() -> None:
    before = Measuring("1.0").rows(TEN[:1], 1)
    other = msgspec.structs.replace(TEN[0], file=msgspec.structs.replace(TEN[0].file, sha256="f" * 64))
    measure = Measuring("1.0")
    (row,) = measure.rows([other], 1, before)
    assert measure.measured == ["1.0"]
    assert list(row.artefacts.values()) == ["f" * 64]
