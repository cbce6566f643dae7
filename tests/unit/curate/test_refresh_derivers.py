"""Derivers on a real index on loopback: toolkit libraries, TensorFlow and JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.curate.derive import Session
from provisioner.curate.refresh import DERIVERS
from provisioner.curate.wheel_index import WheelIndex
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.matrix.files import ComponentFile
from provisioner.matrix.need import need_texts
from tests.loopback_index import LoopbackIndex
from tests.served_wheels import serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.matrix.model import Build
    from provisioner.matrix.need import NeedText

LINUX = "manylinux_2_27_x86_64"
ARM = "manylinux_2_27_aarch64"


@pytest.fixture
def index() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as served:
        yield served


def derived(index: LoopbackIndex, component: str, folder: Path) -> dict[str, tuple[Build, ...]]:
    location = IndexLocation(name="pypi", url=index.url)
    with WheelIndex(IndexSettings(indexes=(location,), cache_directory=folder)) as opened:
        found = DERIVERS[component].derive(Session(index=opened, today="2026-01-01", old=ComponentFile()))
    return {str(release.version): release.builds for release in found.releases}


def required(build: Build) -> dict[str, NeedText]:
    return need_texts(build.requires)


def test_a_library_belongs_to_the_toolkits_whose_metapackage_names_it(index: LoopbackIndex, tmp_path: Path) -> None:
    serve(index, "cuda-toolkit", "12.8.0", tag="py3-none-any", requires=["nvidia-cublas-cu12==12.8.4.1.*; extra == 'cublas'"])
    for version in ("13.0.1", "13.0.3.0"):
        requires = ["nvidia-cublas==13.1.0.3.*; extra == 'cublas'", "nvidia-nvjitlink<14,>=13.0.88; extra == 'cublas'"]
        serve(index, "cuda-toolkit", version, tag="py3-none-any", requires=requires)
    serve(index, "nvidia-cublas", "13.1.0.3", tag=f"py3-none-{LINUX}")
    serve(index, "nvidia-cublas", "13.9.9.9", tag=f"py3-none-{LINUX}")
    serve(index, "nvidia-cublas-cu12", "12.8.4.1", tag=f"py3-none-{LINUX}")
    serve(index, "nvidia-cublas-cu12", "12.8.4.1", tag=f"py3-none-{ARM}")
    serve(index, "nvidia-cublas-cu11", "11.10.3.66", tag="py3-none-manylinux1_x86_64")
    serve(index, "cuda-toolkit", "13.0.0", tag="py3-none-any", requires=["nvidia-nvjitlink==13.0.39.*; extra == 'nvjitlink'"])
    for version in ("13.0.39", "13.0.88", "13.5.37"):
        serve(index, "nvidia-nvjitlink", version, tag=f"py3-none-{LINUX}")
    serve(index, "nvidia-nvjitlink-cu12", "12.1.105", tag="py3-none-manylinux1_x86_64")

    cublas = derived(index, "cublas", tmp_path)
    assert list(cublas) == ["13.9.9.9", "13.1.0.3", "12.8.4.1", "11.10.3.66"]
    assert required(cublas["13.1.0.3"][0]) == {"cuda": ("13.0.1", "13.0.3"), "glibc": ">=2.27"}
    assert required(cublas["13.9.9.9"][0])["cuda"] == "==13.*"
    (both,) = cublas["12.8.4.1"]
    assert (both.platforms, required(both)["cuda"]) == (("linux/amd64", "linux/arm64"), ("12.8.0",))
    assert required(cublas["11.10.3.66"][0]) == {"cuda": "==11.*"}
    nvjitlink = derived(index, "nvjitlink", tmp_path)
    assert required(nvjitlink["13.0.39"][0])["cuda"] == ("13.0.0",)
    # a metapackage that pins a range takes every release in it
    for version in ("13.0.88", "13.5.37"):
        assert required(nvjitlink[version][0])["cuda"] == ("13.0.1", "13.0.3")
    # numbered like the toolkit, so a wheel that no metapackage names still says its series
    assert required(nvjitlink["12.1.105"][0])["cuda"] == "==12.1.*"


def test_tensorrt_has_a_build_for_each_cuda_major_and_lists_the_pythons_of_its_bindings(
    index: LoopbackIndex, tmp_path: Path
) -> None:
    for python in ("cp38", "cp313"):
        serve(index, "tensorrt-cu13-bindings", "11.4.0.106", tag=f"{python}-none-manylinux_2_28_x86_64")
        serve(index, "tensorrt-cu12-bindings", "11.4.0.106", tag=f"{python}-none-manylinux_2_28_x86_64")
    serve(index, "tensorrt-cu13-bindings", "11.4.0.106", tag="cp313-none-manylinux_2_35_aarch64")
    serve(index, "tensorrt-cu13-bindings", "10.14.1.48", tag="cp313-none-win_amd64")

    found = derived(index, "tensorrt", tmp_path)
    assert list(found) == ["11.4.0.106"]
    assert [(build.name, build.platforms, required(build)) for build in found["11.4.0.106"]] == [
        ("cu13", ("linux/amd64",), {"cuda": "==13.*", "python": ("3.8", "3.13"), "glibc": ">=2.28"}),
        ("cu13", ("linux/arm64",), {"cuda": "==13.*", "python": ("3.13",), "glibc": ">=2.35"}),
        ("cu12", ("linux/amd64",), {"cuda": "==12.*", "python": ("3.8", "3.13"), "glibc": ">=2.28"}),
    ]


def test_nvcc_has_a_release_for_each_toolkit_whose_metapackage_names_its_wheel(index: LoopbackIndex, tmp_path: Path) -> None:
    for toolkit, pin in (("13.4.2", "13.4.92"), ("13.4.3.0", "13.4.92"), ("12.5.0", "12.5.40"), ("12.5.1", "12.5.40")):
        project = "nvidia-cuda-nvcc" if toolkit.startswith("13") else "nvidia-cuda-nvcc-cu12"
        serve(index, "cuda-toolkit", toolkit, tag="py3-none-any", requires=[f"{project}=={pin}.*; extra == 'nvcc'"])
    for version in ("13.4.92", "13.5.37"):
        serve(index, "nvidia-cuda-nvcc", version, tag=f"py3-none-{LINUX}")
    serve(index, "nvidia-cuda-nvcc", "13.4.92", tag=f"py3-none-{ARM}")
    for version in ("12.5.40", "12.5.82"):
        serve(index, "nvidia-cuda-nvcc-cu12", version, tag=f"py3-none-{LINUX}")

    found = derived(index, "nvcc", tmp_path)
    assert {toolkit: build.artefact.split("-")[1] for toolkit, (build,) in found.items()} == {
        "13.4.3": "13.4.92",
        "13.4.2": "13.4.92",
        # NVIDIA's manifest has the newer one for 12.5.1
        "12.5.1": "12.5.82",
        "12.5.0": "12.5.40",
    }
    assert list(found) == ["13.4.3", "13.4.2", "12.5.1", "12.5.0"]


def test_tensorflow_brings_cuda_along_with_its_extra_or_takes_the_systems(index: LoopbackIndex, tmp_path: Path) -> None:
    pins = [f"{pin}; extra == 'and-cuda'" for pin in ("nvidia-cudnn-cu12<10.0,>=9.3", "nvidia-nccl-cu12==2.23.4")]
    runtime = "nvidia-cuda-runtime-cu12==12.5.82; extra == 'and-cuda'"
    serve(index, "tensorflow", "2.19.0", tag=f"cp312-cp312-{LINUX}", requires=[*pins, runtime])
    serve(index, "tensorflow", "2.19.0", tag=f"cp312-cp312-{ARM}", requires=[*pins, runtime])
    serve(index, "tensorflow", "2.19.0", tag="cp312-cp312-macosx_12_0_arm64")
    serve(index, "tensorflow", "2.10.0", tag="cp38-cp38-manylinux_2_17_x86_64")
    serve(index, "tensorflow", "1.15.0", tag="cp37-cp37m-manylinux2010_x86_64")
    serve(index, "tensorflow-gpu", "1.15.0", tag="cp37-cp37m-manylinux2010_x86_64")

    found = derived(index, "tensorflow", tmp_path)
    extra, plain, mac = found["2.19.0"]
    assert (extra.name, extra.accelerator, extra.install) == ("and-cuda", "cuda", "tensorflow[and-cuda]")
    assert required(extra) == {
        "cuda": "==12.5.*",
        "cudnn": ">=9.3,<10.0",
        "nccl": "==2.23.4",
        "python": ("3.12",),
        "glibc": ">=2.27",
    }
    assert (plain.name, plain.platforms, plain.install) == ("cpu", ("linux/amd64", "linux/arm64"), "")
    assert (mac.platforms, required(mac)) == (("macos/arm64",), {"python": ("3.12",), "macos": ">=12.0"})
    system, cpu = found["2.10.0"]
    assert (system.name, system.install, "cuda" in required(system), cpu.name) == ("system-cuda", "", False, "cpu")
    old, _ = found["1.15.0"]
    assert (old.name, old.install, old.source) == ("system-cuda", "tensorflow-gpu", ("tensorflow-gpu-wheels",))


def test_jax_takes_python_and_glibc_from_jaxlib_and_cuda_from_the_plugin_of_its_extra(
    index: LoopbackIndex, tmp_path: Path
) -> None:
    requires = [
        "jaxlib<=0.6.0,>=0.6.0",
        "jax-cuda12-plugin[with-cuda]<=0.6.0,>=0.6.0; extra == 'cuda12'",
        "jax-cuda13-plugin[with-cuda]<=0.6.0,>=0.6.0; extra == 'cuda13'",
    ]
    serve(index, "jax", "0.6.0", tag="py3-none-any", requires=requires)
    for python in ("cp311-cp311", "cp312-cp312"):
        serve(index, "jaxlib", "0.6.0", tag=f"{python}-{LINUX}")
    serve(index, "jaxlib", "0.6.1", tag=f"cp313-cp313-{LINUX}")
    serve(index, "jaxlib", "0.6.0", tag="cp312-cp312-macosx_11_0_arm64")
    plugin = [
        "nvidia-cudnn-cu12<10.0,>=9.8; extra == 'with-cuda'",
        "nvidia-cuda-runtime-cu12>=12.1.105; sys_platform == 'linux' and extra == 'with-cuda'",
    ]
    serve(index, "jax-cuda12-plugin", "0.6.0", tag="cp312-cp312-manylinux2014_x86_64", requires=plugin)

    (cuda, cpu, mac) = derived(index, "jax", tmp_path)["0.6.0"]
    assert (cuda.name, cuda.install, cuda.accelerator) == ("cuda12", "jax[cuda12]", "cuda")
    assert required(cuda) == {"cuda": ">=12.1,<13", "cudnn": ">=9.8,<10.0", "python": ("3.12",), "glibc": ">=2.27"}
    assert cuda.artefact.startswith("jax_cuda12_plugin-0.6.0-")
    # the extra cuda13 names a plugin that was never published: no build
    assert (cpu.name, required(cpu)["python"], cpu.artefact[:13]) == ("cpu", ("3.11", "3.12"), "jaxlib-0.6.0-")
    assert required(mac) == {"python": ("3.12",), "macos": ">=11.0"}


def test_an_old_jax_names_its_jaxlib_in_an_extra(index: LoopbackIndex, tmp_path: Path) -> None:
    requires = ["jaxlib==0.4.18; extra == 'cpu'", "jaxlib==0.4.18+cuda12.cudnn89; extra == 'cuda12-pip'"]
    serve(index, "jax", "0.4.18", tag="py3-none-any", requires=requires)
    serve(index, "jaxlib", "0.4.18", tag=f"cp312-cp312-{LINUX}")

    (only,) = derived(index, "jax", tmp_path)["0.4.18"]
    assert (only.name, only.install) == ("cpu", "jax[cpu]")
