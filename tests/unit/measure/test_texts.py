"""Version files, build records, headers and strings, spelled as the artefacts spell them."""

from __future__ import annotations

import pytest

from provisioner.measure.texts import (
    arch_flags,
    cudnn_version,
    nccl_versions,
    ptxas_targets,
    tensorflow_build,
    torch_versions,
)


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("__version__ = '1.0.0'\ndebug = False\ncuda = '9.0.176'\n", {"torch": "1.0.0", "cuda": "9.0.176"}),
        (
            "__version__ = '2.8.0+cu128'\ncuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n",
            {"torch": "2.8.0+cu128", "cuda": "12.8"},
        ),
        (
            '__version__ = "2.5.0+rocm6.2"\ncuda: str | None = None\nhip: str | None = "6.2.41133"\n',
            {"torch": "2.5.0+rocm6.2", "hip": "6.2.41133"},
        ),
        ("", {}),
    ],
)
def test_the_version_file_of_torch(text: str, versions: dict[str, str]) -> None:
    assert torch_versions(text) == versions


def test_the_version_header_of_cudnn() -> None:
    assert cudnn_version("#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 10\n#define CUDNN_PATCHLEVEL 2\n") == "9.10.2"
    assert cudnn_version("#define CUDNN_MAJOR 9\n") == ""


def test_the_text_of_nccl() -> None:
    assert nccl_versions(b"\0NCCL version 2.27.3+cuda12.9\0") == {"nccl": "2.27.3", "nccl_cuda": "12.9"}
    assert nccl_versions(b"NCCL version unknown") == {}


def test_the_targets_torch_was_built_for() -> None:
    # In 2.8.0 the list follows another text without a zero between them.
    assert arch_flags(b"std::string ipc_hsm_70 sm_75 sm_120\0\0/pytorch/") == ("sm_70", "sm_75", "sm_120")
    assert arch_flags(b"\0sm_80\0 sm_50 sm_90a compute_90\0") == ("sm_50", "sm_90a", "compute_90")
    assert arch_flags(b"nothing") == ()


@pytest.mark.parametrize(
    "text",
    [
        (
            "build_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('cudnn_version', '9'),"
            " ('cuda_compute_capabilities', ['sm_60', 'compute_90'])])\n"
        ),
        "build_info = {'cuda_version': '12.5.1', 'cudnn_version': '9', 'cuda_compute_capabilities': ['sm_60', 'compute_90']}\n",
        (
            'build_info = collections.OrderedDict({"cuda_version": "12.5.1", "cudnn_version": "9",'
            ' "cuda_compute_capabilities": ["sm_60", "compute_90"]})\n'
        ),
    ],
)
def test_the_build_record_of_tensorflow(text: str) -> None:
    assert tensorflow_build(text) == ({"cuda": "12.5.1", "cudnn": "9"}, ("sm_60", "sm_90", "compute_90"))


@pytest.mark.parametrize("text", ["", "build_info = {'cuda_version': open('x')}", "build_info = {1: }", "build_info = [1, 2]"])
def test_a_record_that_cannot_be_read_states_nothing(text: str) -> None:
    assert tensorflow_build(text) == ({}, ())


PTXAS = (
    # a GPU that it no longer serves, a string that ends where another section's begins, and names that end otherwise
    b"\0sm_50\0sm_75\0_malloccompute_75\0compute_100a\0compute_52.\0compute_60\0"
    b"-D__CUDA_ARCH__=750\0Turing\0lto_75\0lto_100a\0lto_61\0"
)


def test_ptxas_compiles_for_the_targets_that_it_names_twice() -> None:
    assert ptxas_targets(PTXAS) == ("sm_75", "sm_100a", "compute_75", "compute_100a")
    assert ptxas_targets(b"\0sm_75\0") == ()
