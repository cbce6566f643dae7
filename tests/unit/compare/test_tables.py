"""Other people's tables, written here in their own formats: what is read from them, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.compare.tables import UnknownTableError, disagreements, extract_text, read_table, shipped_tables
from provisioner.document import FileError
from provisioner.errors import InvalidDocumentError

if TYPE_CHECKING:
    from pathlib import Path

UV = """\
static LINUX_CUDA_DRIVERS: LazyLock<[(TorchBackend, Version); 2]> = LazyLock::new(|| {
    [
        (TorchBackend::Cu126, Version::new([525, 60, 13])),
        (TorchBackend::Cu118, Version::new([450, 80, 2])),
        (TorchBackend::Cu92, Version::new([396, 26])),
    ]
});
static WINDOWS_CUDA_VERSIONS: LazyLock<[(TorchBackend, Version); 1]> = LazyLock::new(|| {
    [(TorchBackend::Cu126, Version::new([528, 33]))]
});
static LINUX_AMD_GPU_DRIVERS: LazyLock<[(TorchBackend, AmdGpuArchitecture); 3]> = LazyLock::new(|| {
        [
            (TorchBackend::Rocm72, AmdGpuArchitecture::Gfx942),
            (TorchBackend::Rocm72, AmdGpuArchitecture::Gfx90a),
            (TorchBackend::Rocm624, AmdGpuArchitecture::Gfx942),
        ]
});
"""


def modules(variant: str, flavour: str, series: str, libraries: str, *, of: str = "") -> str:
    """Return the entry of Ubuntu's package of the newest signed modules of a driver branch; `of` is the branch it passes to."""
    name = f"{of or variant}-{series}.0-42-{flavour}"
    return (
        f"Package: linux-modules-nvidia-{variant}-{flavour}-{series}\nArchitecture: amd64\nVersion: {series}.0-42.42\n"
        f"Depends: linux-modules-nvidia-{name} (= {series}.0-42.42), nvidia-kernel-common-580 (>= {libraries})\n"
        "Description: signed modules\n\n"
    )


def libraries(branch: str, version: str, depends: str = "libc6") -> str:
    return (
        f"Package: nvidia-kernel-common-{branch}\nArchitecture: amd64\nVersion: {version}-0ubuntu0.24.04.1\n"
        f"Depends: {depends}\nDescription: libraries\n\n"
    )


UBUNTU = (
    modules("580-open", "generic", "6.8", "580.178.04")
    + modules("595-server", "generic", "6.8", "595.91.07")
    + modules("580", "generic", "6.14", "580.126.09")  # behind the libraries
    + modules("570", "generic", "6.8", "580.178.04", of="580")  # a transition to 580
    + modules("550", "generic", "6.8", "550.163.01")  # of libraries that are those of 580
    + libraries("580", "580.173.02")
    + libraries("580", "580.178.04")
    + modules("580-open", "oem", "6.17", "580.178.04")
    + libraries("595-server", "595.91.07")
    + libraries("550", "550.163.01", "nvidia-kernel-common-580")
)

DEBIAN = """\
Package: nvidia-tesla-470-kernel-dkms
Version: 470.256.02-10
Description-en: NVIDIA binary kernel module DKMS source
 This package builds the kernel modules.
 .
 Building the kernel modules has been tested
 up to Linux 7.2.

Package: nvidia-fs-dkms
Version: 2.19.7~12.4.1-8.2+b1
Description-en: NVIDIA filesystem for RDMA
 Building the kernel module has been tested up to Linux 6.11.

Package: nvidia-legacy-340xx-kernel-dkms
Version: 340.108-27
Description-en: NVIDIA binary kernel module DKMS source
 Building the kernel module has been tested up to Linux 6.19.
"""
COG_TORCH = """\
[
  {
    "Torch": "1.13.1+cu117",
    "CUDA": "11.7",
    "Pythons": [
      "3.9",
      "3.10"
    ]
  },
  {
    "Torch": "2.4.0+cpu",
    "CUDA": null,
    "Pythons": ["3.12", "3.8"]
  }
]
"""
COG_CUDA = '[{"Tag": "12.6.3-cudnn-devel-ubuntu24.04", "CUDA": "12.6.3", "CuDNN": "9", "IsDevel": true, "Ubuntu": "24.04"}]'
COG_TENSORFLOW = '[{"TF": "2.9.0", "CUDA": "11.2", "CuDNN": "8.1", "Pythons": ["3.7", "3.10"]}]'
CUDA_JL = """\
const ptxas_cap_db = Dict(
    v"2.1"   => between(lowest, v"8.0"),
    v"5.0"   => between(v"6.0", v"12.9"),
    v"8.9"   => between(v"11.8", highest),
)
function ptxas_cap_support(ver::VersionNumber)
end
const ptxas_ptx_db = Dict(
    v"8.4" => between(v"12.4", highest),
)
const ptx_sm_db = Dict{SMVersion, VersionRange}(
    v"1.0"   => between(v"1.0", highest),
)
"""
SPACK_CUDA = """\
from spack.package import conflicts, depends_on

class CudaPackage:
    depends_on("cuda@9.0:12.9", when="cuda_arch=70")
    depends_on("cuda@11.8:", when="cuda_arch=89")
    depends_on("cuda@12.9", when="cuda_arch=101f")
    with when("+cuda"):
        conflicts("%gcc@:4", when="%cuda@11.0:")
        conflicts("%gcc@12:", when="%cuda@:11.8")
        conflicts("%gcc@13:", when="%cuda@:12.3")
        conflicts("%gcc@11.2:", when="%cuda@:11.5")
        conflicts("%gcc@10", when="%cuda@:11.4.0")
        conflicts("%gcc@13.2.0", when="%cuda@:12.4 target=aarch64:")
        conflicts("%clang@:3.7,6.1:", when="%cuda@10.0.130 target=x86_64:")
        conflicts("%intel@17.0:", when="%cuda@:8.0.60")
"""
SPACK_TORCH = """\
from spack.package import depends_on

class PyTorch(PythonPackage):
    depends_on("python@3.9:3.13", when="@2.5:2.8")
    depends_on("python@:3.10", when="@1.11:1")
    depends_on("cuda@12:", when="@2.9:+cuda")
"""
SPACK_CUDNN = """\
from spack.package import Package

_versions = {
    "9.19.1.2-13": {"Linux-x86_64": "0"},
    "9.19.1.2-12": {"Linux-x86_64": "1"},
    "7.6.5.32-10.2": {"Linux-x86_64": "2"},
}

class Cudnn(Package):
    pass
"""
CONDA_RECIPE = """\
requirements:
  run_constrained:
    - __cuda >={{ version.split(".", 1)[0] }}    # Major version is lower bound
"""
CONDA_PINNING = """\
c_compiler_version:            # [unix]
  - 15                         # [linux]
  - 14                         # [linux and os.environ.get("CF_CUDA_ENABLED", "False") == "True"]
cuda_compiler_version:
  - None
  - 12.9                       # [linux and os.environ.get("CF_CUDA_ENABLED", "False") == "True"]
"""


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (
            UV,
            "uv",
            [
                ("driver-floor", "cuda 12.6", ">=525.60.13", 3),
                ("driver-floor", "cuda 11.8", ">=450.80.02", 4),
                ("driver-floor", "cuda 9.2", ">=396.26", 5),
                ("rocm-target", "rocm7.2", "gfx90a gfx942", 13),
                ("rocm-target", "rocm6.2.4", "gfx942", 15),
            ],
        ),
        (
            COG_TORCH,
            "cog",
            [
                ("pytorch-cuda", "pytorch 1.13.1+cu117", "cuda 11.7", 3),
                ("pytorch-python", "pytorch 1.13.1+cu117", "3.9 3.10", 3),
                ("pytorch-python", "pytorch 2.4.0+cpu", "3.8 3.12", 11),
            ],
        ),
        (COG_CUDA, "cog", [("image", "nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04", "cuda 12.6.3, cudnn 9", 1)]),
        (
            COG_TENSORFLOW,
            "cog",
            [
                ("tensorflow-cuda", "tensorflow 2.9.0", "cuda 11.2, cudnn 8.1", 1),
                ("tensorflow-python", "tensorflow 2.9.0", "3.7 3.10", 1),
            ],
        ),
        (
            CUDA_JL,
            "cuda.jl",
            [
                ("nvcc-target", "sm_21", "<=8.0", 2),
                ("nvcc-target", "sm_50", ">=6.0,<=12.9", 3),
                ("nvcc-target", "sm_89", ">=11.8", 4),
                ("ptx-isa", "ptx 8.4", "cuda 12.4", 9),
            ],
        ),
        (
            SPACK_CUDA,
            "spack",
            [
                ("nvcc-target", "sm_70", ">=9.0,<=12.9", 4),
                ("nvcc-target", "sm_89", ">=11.8", 5),
                ("nvcc-target", "sm_101f", ">=12.9,<=12.9", 6),
                # `:11.4.0` is about that release, not about the newest 11.4; 11.2 is a minor, and refuses no whole major
                ("gcc", "cuda 11.0", "5 to 9, 11", 8),
                ("gcc", "cuda 11.4.0", "5 to 9, 11", 8),
                ("gcc", "cuda 11.5", "5 to 11", 8),
                ("gcc", "cuda 11.8", "5 to 11", 8),
                ("gcc", "cuda 12.3", "5 to 12", 8),
                ("clang", "cuda 10.0.130", "3 to 6", 14),
            ],
        ),
        (
            SPACK_TORCH,
            "spack",
            [
                ("pytorch-python", "pytorch >=2.5,<=2.8", ">=3.9,<=3.13", 4),
                ("pytorch-python", "pytorch >=1.11,<=1", "<=3.10", 5),
            ],
        ),
        (SPACK_CUDNN, "spack", [("cudnn-cuda", "cudnn 9.19.1.2", "12 13", 4), ("cudnn-cuda", "cudnn 7.6.5.32", "10.2", 6)]),
        (CONDA_RECIPE, "conda-forge", [("driver-major", "cuda", "the same major is enough", 3)]),
        (CONDA_PINNING, "conda-forge", [("gcc", "cuda 12.9", "accepts 14", 6)]),
        (
            DEBIAN,
            "debian",
            [("driver-kernel", "driver 470.256.02", "kernel 7.2", 1), ("driver-kernel", "driver 340.108", "kernel 6.19", 14)],
        ),
        (
            UBUNTU,
            "ubuntu",
            [
                ("signed-modules", "ubuntu 24.04 linux/amd64 generic 6.8", "595 580", 1),
                ("signed-modules", "ubuntu 24.04 linux/amd64 oem 6.17", "580", 43),
            ],
        ),
    ],
    ids=[
        "uv",
        "cog-torch",
        "cog-cuda",
        "cog-tf",
        "cuda.jl",
        "spack-cuda",
        "spack-torch",
        "spack-cudnn",
        "conda",
        "pinning",
        "debian",
        "ubuntu",
    ],
)
def test_a_table_is_recognised_and_read_in_its_own_format(
    tmp_path: Path, text: str, name: str, expected: list[tuple[str, str, str, int]]
) -> None:
    path = tmp_path / "table.txt"
    path.write_text(text, encoding="utf-8")
    table = read_table(path)
    assert table.name == name
    assert [(claim.question, claim.subject, claim.says, claim.line) for claim in table.claims] == expected


def test_an_extract_reads_back_as_the_table_it_was_made_from(tmp_path: Path) -> None:
    source, extract = tmp_path / "backend.rs", tmp_path / "uv.yaml"
    source.write_text(UV, encoding="utf-8")
    table = read_table(source)
    extract.write_text(extract_text(table), encoding="utf-8")
    assert sorted(read_table(extract).claims, key=str) == sorted(table.claims, key=str)


def test_the_scope_of_a_table_is_what_its_rows_speak_of(tmp_path: Path) -> None:
    path = tmp_path / "torch.json"
    path.write_text(COG_TORCH, encoding="utf-8")
    assert {claim.scope for claim in read_table(path).claims if claim.question == "pytorch-python"} == {">=3.8"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        b"[]",
        b'[{"a": 1}]',
        b"\xff\xfe\x00",
        b"from spack import x\nclass PyTorch(:\n",
        b'[{"Torch": "2.0", "CUDA": null, "Pythons": ["x"]}]',
        b"LINUX_CUDA_DRIVERS without a row",
    ],
)
def test_anything_else_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.txt"
    path.write_bytes(content)
    with pytest.raises(UnknownTableError, match=str(path)) as caught:
        read_table(path)
    assert caught.value.exit_code == 2


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"table\.txt` cannot be read: no such file"):
        read_table(tmp_path / "table.txt")


def test_an_extract_with_a_slip_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "uv.yaml"
    path.write_text(
        "table: uv\ntitle: t\nwhere: w\nurl: u\nread: r\nclaims:\n  gcc:\n    - {subjct: a, says: b}\n", encoding="utf-8"
    )
    with pytest.raises(InvalidDocumentError) as caught:
        read_table(path)
    assert any("8" in str(mistake) and "subjct" in str(mistake) for mistake in caught.value.mistakes)


def test_an_extract_with_an_unknown_question_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "uv.yaml"
    path.write_text(
        "table: uv\ntitle: t\nwhere: w\nurl: u\nread: r\nclaims: {colour: [{subject: a, says: b}]}\n", encoding="utf-8"
    )
    with pytest.raises(UnknownTableError, match="`colour` is no question"):
        read_table(path)


def test_every_shipped_extract_says_where_and_when_it_was_read() -> None:
    tables = shipped_tables()
    assert {table.name for table in tables} == {"uv", "cog", "spack", "cuda.jl", "conda-forge", "debian", "ubuntu"}
    assert all(table.where and "@" in table.where and table.url.startswith("https://") and table.read for table in tables)


def test_a_matrix_without_tables_has_none(tmp_path: Path) -> None:
    assert shipped_tables(tmp_path) == ()
    assert disagreements(tmp_path) == ()
