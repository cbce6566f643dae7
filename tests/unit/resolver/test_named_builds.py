"""File names and addresses by which projects say for which PyTorch a wheel was compiled."""

from __future__ import annotations

import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename

from provisioner.grounds.predicate import CompiledForNamed
from provisioner.index.model import DIRECT_URL, IndexFile, PackageRelease
from provisioner.resolver.choices.candidates import candidates_of
from provisioner.resolver.python.named_builds import NamedBuild, named_build, named_cuda
from provisioner.resolver.python.wheels import declared_code
from provisioner.resolver.requirement import PYTORCH
from provisioner.resolver.rules.silence import Silence
from provisioner.words.predicate import predicate_words
from tests import small
from tests.shipped import shipped

FLASH = "https://github.com/Dao-AILab/flash-attention/releases/download/v2.8.3/"
OPENMMLAB = "https://download.openmmlab.com/mmcv/dist/"


def release(url: str) -> PackageRelease:
    filename = url.rpartition("/")[2]
    name, version, _, _ = parse_wheel_filename(filename)
    return PackageRelease.of(
        name=canonicalize_name(name), version_text=str(version), file=IndexFile(filename=filename, url=url, index=DIRECT_URL)
    )


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            FLASH + "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl",
            NamedBuild("2.8", "cu12", is_major=True, is_new_abi=True),
        ),
        (
            "https://x/mamba_ssm-2.2.2+cu122torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl",
            NamedBuild("2.3", "cu122", is_major=True, is_new_abi=False),
        ),
        ("https://x/torch_scatter-2.1.2+pt25cu124-cp312-cp312-linux_x86_64.whl", NamedBuild("2.5", "cu124")),
        ("https://x/torch_scatter-2.1.2+pt210cu128-cp312-cp312-linux_x86_64.whl", NamedBuild("2.10", "cu128")),
        ("https://x/torch_sparse-0.6.17+pt113cpu-cp310-cp310-linux_x86_64.whl", NamedBuild("1.13", "cpu")),
        ("https://x/natten-0.21.6+torch2110cu130-cp312-cp312-linux_x86_64.whl", NamedBuild("2.11", "cu130")),
        ("https://x/natten-0.20.1+torch270cu128-cp312-cp312-linux_x86_64.whl", NamedBuild("2.7", "cu128")),
        (OPENMMLAB + "cu121/torch2.1.0/mmcv-2.1.0-cp310-cp310-manylinux1_x86_64.whl", NamedBuild("2.1", "cu121")),
        ("https://x/torchvision-0.22.1+cu128-cp312-cp312-manylinux_2_28_x86_64.whl", None),
        ("https://x/numpy-2.2.6-cp312-cp312-manylinux_2_17_x86_64.whl", None),
    ],
)
def test_a_name_says_for_which_pytorch_a_wheel_is(url: str, expected: NamedBuild | None) -> None:
    assert named_build(release(url)) == expected


LLAMA = "https://github.com/abetlen/llama-cpp-python/releases/download/"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (FLASH + "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl", "cu12"),
        ("https://x/exllamav2-0.3.2+cu128.torch2.7.0-cp312-cp312-linux_x86_64.whl", "cu128"),
        ("https://x/torch_sparse-0.6.17+pt113cpu-cp310-cp310-linux_x86_64.whl", ""),
        ("https://x/detectron2-0.6+cu113-cp39-cp39-linux_x86_64.whl", "cu113"),
        (OPENMMLAB + "cu121/torch2.1.0/mmcv-2.1.0-cp310-cp310-manylinux1_x86_64.whl", "cu121"),
        (LLAMA + "v0.3.35-cu124/llama_cpp_python-0.3.35-py3-none-linux_x86_64.whl", "cu124"),
        (LLAMA + "v0.3.35/llama_cpp_python-0.3.35-py3-none-linux_x86_64.whl", ""),
    ],
)
def test_a_name_or_an_address_says_for_which_cuda_a_wheel_is(url: str, expected: str) -> None:
    assert named_cuda(release(url)) == expected


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        ("cu124", "sm_60 sm_61 sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 compute_90"),
        ("cu118", "sm_60 sm_61 sm_70 sm_75 sm_80 sm_86 sm_89"),
        ("cu130", "sm_75 sm_80 sm_86 sm_89 sm_90 compute_90"),
        ("cu102", None),
        ("", None),
    ],
)
def test_the_recipe_of_a_wheel_is_that_of_its_cuda(build: str, expected: str | None) -> None:
    """llama-cpp-python 0.3.30; what the recipe of one CUDA compiles is nothing that another one has."""
    code = declared_code(shipped(), "llama-cpp-python", "0.3.30", build=build)
    assert (None if code is None else " ".join((*code.sass, *code.ptx))) == expected
    assert declared_code(shipped(), "llama-cpp-python", "0.3.99", build=build) is None


@pytest.mark.parametrize(
    ("named", "label", "admitted"),
    [
        (NamedBuild("2.8", "cu12", is_major=True, is_new_abi=True), "2.8.0+cu126", True),
        (NamedBuild("2.8", "cu12", is_major=True, is_new_abi=True), "2.8.0+cpu", False),
        (NamedBuild("2.8", "cu12", is_major=True, is_new_abi=False), "2.8.0+cu126", False),
        (NamedBuild("2.8", "cu11", is_major=True), "2.8.0+cu126", False),
        (NamedBuild("2.5", "cu124"), "2.5.1+cu124", True),
        (NamedBuild("2.5", "cu124"), "2.5.1+cu121", False),
        (NamedBuild("2.5", "cu124"), "2.4.1+cu124", False),
        (NamedBuild("2.5", "cpu"), "2.5.1+cpu", True),
    ],
)
def test_a_build_of_the_series_variant_and_abi_is_admitted(named: NamedBuild, label: str, *, admitted: bool) -> None:
    request = small.request({}, {"driver": {"version": "580.65.06"}}, accelerator="cpu" if label.endswith("cpu") else "cuda")
    matrix = shipped()
    found = {
        one.label: one for one in candidates_of(matrix.components[PYTORCH.name], request, silence=Silence(matrix, request))
    }
    assert named.admits(found[label]) is admitted


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (NamedBuild("2.8", "cu12", is_major=True), "is compiled for PyTorch 2.8 with CUDA 12, as the name of the file says"),
        (NamedBuild("2.5", "cu124"), "is compiled for PyTorch 2.5 with CUDA 12.4, as the name of the file says"),
        (NamedBuild("1.7", "cu92"), "is compiled for PyTorch 1.7 with CUDA 9.2, as the name of the file says"),
        (NamedBuild("2.5", "rocm6.2"), "is compiled for PyTorch 2.5 with ROCm 6.2, as the name of the file says"),
        (NamedBuild("1.13", "cpu"), "is compiled for PyTorch 1.13 for the CPU, as the name of the file says"),
    ],
)
def test_what_it_is_compiled_with_is_said(named: NamedBuild, words: str) -> None:
    predicate = CompiledForNamed(named.series, named.accelerator, named.release, named.is_new_abi)
    assert predicate_words(predicate).strip() == words
