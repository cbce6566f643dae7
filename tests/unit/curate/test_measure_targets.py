"""Compiled targets come from the artefact a build names, once, and only where nobody stated them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.curate.derive import Session
from provisioner.curate.keep import with_kept_facts
from provisioner.curate.refresh import DERIVERS
from provisioner.curate.wheel_index import WheelIndex
from provisioner.errors import UnavailableError
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.matrix.files import ComponentFile
from provisioner.matrix.need import need_of
from tests.built_artefacts import fat_binary
from tests.loopback_index import LoopbackIndex
from tests.served_wheels import serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.matrix.model import Build

LINUX = "manylinux_2_27_x86_64"
ARM = "manylinux_2_27_aarch64"
RECORD = "tensorflow/python/platform/build_info.py"


@pytest.fixture
def index() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as served:
        yield served


def measured(
    index: LoopbackIndex, component: str, folder: Path, *, old: ComponentFile | None = None, offline: bool = False
) -> ComponentFile:
    settings = IndexSettings(indexes=(IndexLocation(name="pypi", url=index.url),), cache_directory=folder, offline=offline)
    with WheelIndex(settings) as opened:
        session = Session(index=opened, today="2026-01-01", old=old or ComponentFile())
        deriver = DERIVERS[component]
        kept, _ = with_kept_facts(session.old, deriver.derive(session))
        return deriver.measure(session, kept)


def builds(file: ComponentFile) -> dict[str, Build]:
    return {f"{release.version}+{build.name}": build for release in file.releases for build in release.builds}


def serve_tensorflow(index: LoopbackIndex, version: str, record: str) -> None:
    serve(index, "tensorflow", version, tag=f"cp312-cp312-{LINUX}", members={RECORD: record.encode()})


def test_tensorflow_records_what_it_was_compiled_for(index: LoopbackIndex, tmp_path: Path) -> None:
    targets = "['sm_60', 'sm_70', 'compute_80']"
    serve_tensorflow(index, "2.19.0", f"build_info = collections.OrderedDict({{'cuda_compute_capabilities': {targets}}})\n")
    serve_tensorflow(index, "2.2.0", "is_cuda_build = True\n")

    file = measured(index, "tensorflow", tmp_path)

    found = builds(file)
    cuda = found["2.19.0+system-cuda"]
    assert (cuda.sass, cuda.ptx) == (("sm_60", "sm_70", "sm_80"), ("compute_80",))
    assert cuda.source[-1] == "tensorflow-build-targets"
    assert file.sources["tensorflow-build-targets"].measured
    assert found["2.19.0+cpu"].sass is None
    assert found["2.2.0+system-cuda"].sass is None


@pytest.mark.parametrize(
    ("project", "version", "library"),
    [
        ("tensorflow", "2.2.0", "tensorflow/python/_pywrap_tensorflow_internal.so"),
        ("tensorflow", "2.1.0", "tensorflow_core/python/_pywrap_tensorflow_internal.so"),
        ("tensorflow-gpu", "1.0.0", "tensorflow_gpu-1.0.0.data/purelib/tensorflow/python/_pywrap_tensorflow.so"),
    ],
)
def test_a_tensorflow_without_a_record_tells_by_its_kernels(
    index: LoopbackIndex, tmp_path: Path, project: str, version: str, library: str
) -> None:
    serve(index, "tensorflow", version, tag=f"cp312-cp312-{LINUX}")
    members = {library: b"\x7fELF" + fat_binary("sm_35", "sm_70", "compute_70")}
    serve(index, project, version, tag=f"cp312-cp312-{LINUX}", members=members)

    found = builds(measured(index, "tensorflow", tmp_path))

    cuda = found[f"{version}+system-cuda"]
    assert (cuda.sass, cuda.ptx) == (("sm_35", "sm_70"), ("compute_70",))
    assert cuda.source[-1] == "tensorflow-fat-binaries"
    assert found[f"{version}+cpu"].sass is None


def test_jax_tells_by_one_small_library(index: LoopbackIndex, tmp_path: Path) -> None:
    requires = ["jaxlib<=0.6.0,>=0.6.0", "jax-cuda12-plugin[with-cuda]<=0.6.0,>=0.6.0; extra == 'cuda12'"]
    serve(index, "jax", "0.6.0", tag="py3-none-any", requires=requires)
    serve(index, "jaxlib", "0.6.0", tag=f"cp312-cp312-{LINUX}")
    library = b"\x7fELF" + fat_binary("sm_80", "sm_90", "compute_90")
    other = b"\x7fELF" + fat_binary("sm_120")
    members = {"jax_cuda12_plugin/_rnn.so": other, "jax_cuda12_plugin/_linalg.so": library}
    pins = ["nvidia-cuda-runtime-cu12>=12.1.105; extra == 'with-cuda'"]
    serve(index, "jax-cuda12-plugin", "0.6.0", tag=f"cp312-cp312-{LINUX}", requires=pins, members=members)

    found = builds(measured(index, "jax", tmp_path))

    assert (found["0.6.0+cuda12"].sass, found["0.6.0+cuda12"].ptx) == (("sm_80", "sm_90"), ("compute_90",))
    assert found["0.6.0+cuda12"].source == ("jax-wheels", "jax-fat-binaries")
    assert found["0.6.0+cpu"].sass is None


def serve_nccl(index: LoopbackIndex, version: str, *targets: str, tag: str = f"py3-none-{LINUX}") -> str:
    members = {"nvidia/nccl/lib/libnccl.so.2": b"\x7fELF" + fat_binary(*targets)}
    return serve(index, "nvidia-nccl-cu12", version, tag=tag, members=members)


def test_the_glibc_of_a_new_release_is_that_of_its_libraries(index: LoopbackIndex, tmp_path: Path) -> None:
    library = b"\x7fELF" + fat_binary("sm_90") + b"\0GLIBC_2.14\0GLIBC_2.27\0"
    members = {"nvidia/cusparselt/lib/libcusparseLt.so.0": library, "nvidia/cusparselt/lib/other.so": b"\x7fELF\0GLIBC_2.17\0"}
    tag = "py3-none-manylinux2014_x86_64"
    serve(index, "nvidia-cusparselt-cu13", "0.10.0", tag=tag, members=members)
    serve(
        index, "nvidia-cusparselt-cu13", "0.9.0", tag=tag, members={"nvidia/cusparselt/lib/other.so": b"\x7fELF\0GLIBC_2.14\0"}
    )

    file = measured(index, "cusparselt", tmp_path)

    found = builds(file)
    assert str(need_of(found["0.10.0+cu13"].requires, "glibc")) == ">=2.27"
    assert found["0.10.0+cu13"].source == ("cusparselt-wheels", "cusparselt-glibc")
    assert str(need_of(found["0.9.0+cu13"].requires, "glibc")) == ">=2.17"
    assert found["0.9.0+cu13"].source == ("cusparselt-wheels",)
    index.requests.clear()
    assert measured(index, "cusparselt", tmp_path / "again", old=file) == file
    assert not [request for request in index.requests if request.startswith("/files/")]


def test_a_rebuilt_release_is_told_from_the_first_by_its_code(index: LoopbackIndex, tmp_path: Path) -> None:
    serve_nccl(index, "2.26.2", "sm_90", "compute_90")
    serve_nccl(index, "2.26.2.post1", "sm_90", "sm_120", "compute_120")

    found = builds(measured(index, "nccl", tmp_path))

    assert found["2.26.2+cu12"].sass == ("sm_90",)
    assert found["2.26.2.post1+cu12"].sass == ("sm_90", "sm_120")


def test_what_is_stated_already_is_not_read_again(index: LoopbackIndex, tmp_path: Path) -> None:
    filename = serve_nccl(index, "2.26.2", "sm_90", "compute_90")
    first = measured(index, "nccl", tmp_path / "one")
    index.requests.clear()

    again = measured(index, "nccl", tmp_path / "two", old=first)

    assert again == first
    assert f"/files/{filename}" not in index.requests


def test_what_was_read_once_is_remembered(index: LoopbackIndex, tmp_path: Path) -> None:
    serve_nccl(index, "2.26.2", "sm_90", "compute_90")
    first = measured(index, "nccl", tmp_path)

    assert measured(index, "nccl", tmp_path, offline=True) == first


def test_offline_says_which_member_was_never_read(index: LoopbackIndex, tmp_path: Path) -> None:
    serve_nccl(index, "2.26.2", "sm_90")
    settings = IndexSettings(indexes=(IndexLocation(name="pypi", url=index.url),), cache_directory=tmp_path)
    with WheelIndex(settings) as opened:
        DERIVERS["nccl"].derive(Session(index=opened, today="2026-01-01", old=ComponentFile()))

    with pytest.raises(UnavailableError, match="nvidia_nccl_cu12"):
        measured(index, "nccl", tmp_path, offline=True)


def test_cudnn_is_read_in_the_library_all_gpus_share(index: LoopbackIndex, tmp_path: Path) -> None:
    members = {
        "nvidia/cudnn/lib/libcudnn_adv.so.9": fat_binary("sm_50"),
        "nvidia/cudnn/lib/libcudnn_ops.so.9": fat_binary("sm_75", "sm_90a", "compute_120f"),
    }
    serve(index, "nvidia-cudnn-cu12", "9.28.0.42", tag=f"py3-none-{LINUX}", members=members)
    old = {"nvidia/cudnn/lib/libcudnn_ops_infer.so.8": fat_binary("sm_50")}
    serve(index, "nvidia-cudnn-cu12", "8.9.7.29", tag=f"py3-none-{LINUX}", members=old)
    serve(index, "nvidia-cudnn-cu11", "8.9.7.29", tag=f"py3-none-{ARM}", members={"nvidia/cudnn/lib/other.so": b""})

    found = builds(measured(index, "cudnn", tmp_path))

    assert (found["9.28.0.42+cu12"].sass, found["9.28.0.42+cu12"].ptx) == (("sm_75", "sm_90a"), ("compute_120f",))
    assert (found["8.9.7.29+cu12"].sass, found["8.9.7.29+cu12"].ptx) == (("sm_50",), ())
    assert found["8.9.7.29+cu11"].sass is None


def test_nvcc_compiles_for_what_its_ptxas_names(index: LoopbackIndex, tmp_path: Path) -> None:
    serve(index, "cuda-toolkit", "13.5.0", tag="py3-none-any", requires=["nvidia-cuda-nvcc==13.5.37.*; extra == 'nvcc'"])
    members = {"nvidia/cu13/bin/ptxas": b"\x7fELF\0sm_50\0compute_75\0compute_90a\0lto_75\0lto_90a\0"}
    serve(index, "nvidia-cuda-nvcc", "13.5.37", tag=f"py3-none-{LINUX}", members=members)

    found = builds(measured(index, "nvcc", tmp_path))["13.5.0+toolkit"]

    assert (found.sass, found.ptx) == (("sm_75", "sm_90a"), ("compute_75", "compute_90a"))
    assert found.source == ("nvcc-toolkit-pins", "nvcc-ptxas")
