"""An audit confirms what an artefact says, refutes what it does not, and says so where it cannot tell."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

import pytest

from provisioner.curate.artefacts import Artefacts
from provisioner.curate.audit import audited, rows, unnamed
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.matrix.load import load_matrix
from tests.built_artefacts import fat_binary, serve, shared_library, zipped
from tests.built_files import metadata_text
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.curate.audit_verdict import Audited

TORCH = "torch-2.8.0-cp312-cp312-manylinux_2_28_x86_64.whl"
MATRIX = """\
order: [pytorch, jax, cudnn, nccl, nvcc, cuda, python, gcc, clang, glibc]
components:
  pytorch: {title: PyTorch, file: pytorch.yaml}
  jax: {title: JAX, file: jax.yaml}
  cudnn: {title: cuDNN, file: cudnn.yaml}
  nccl: {title: NCCL, file: nccl.yaml}
  nvcc: {title: nvcc, file: nvcc.yaml}
  cuda: {title: CUDA, file: cuda.yaml}
  python: {title: Python, file: python.yaml}
  gcc: {title: GCC, file: gcc.yaml, virtual: true}
  clang: {title: Clang, file: clang.yaml, virtual: true}
  glibc: {title: glibc, file: glibc.yaml, virtual: true}
"""
FILES = {
    "jax": "releases: []",
    "cudnn": 'releases: [{version: "9.10.2.21", source: [s]}, {version: "9.9.0.52", source: [s]}]',
    "nccl": 'releases: [{version: "2.27.3", source: [s]}, {version: "2.26.2", source: [s]}]',
    "nvcc": 'releases: [{version: "12.9.1", source: [s]}]',
    "cuda": "releases: ["
    + ", ".join(f'{{version: "{v}", source: [s]}}' for v in ("13.0.1", "12.9.1", "12.8.1", "12.6.3"))
    + "]",
    "python": 'releases: [{version: "3.13", source: [s]}, {version: "3.12", source: [s]}, {version: "3.7", source: [s]}]',
    "gcc": "releases: []",
    "clang": "releases: []",
    "glibc": "releases: []",
}
SOURCES = "sources:\n  {name}-s: {{title: a wheel, measured: true}}\n"

PYTORCH_ROW = """\
releases:
  - version: "2.8.0"
    builds:
      - name: cu128
        platforms: [linux/amd64]
        default: true
        index: pypi
        accelerator: cuda
        requires: {requires}
        sass: {sass}
        ptx: {ptx}
        cxx11_abi: true
        artefact: "{artefact}"
        sha256: "{sha256}"
        source: [s]
"""
HONEST = {
    "requires": '{cuda: "==12.8.*", cudnn: "==9.10.2.21", nccl: "==2.27.3", python: ["3.12"], glibc: ">=2.28"}',
    "sass": "[sm_80, sm_90]",
    "ptx": "[]",
    "artefact": TORCH,
}


class Auditor(Protocol):
    """Audits one row of PyTorch, written with these fields, or other files of the matrix."""

    def __call__(
        self, fields: dict[str, str] | None = None, *, files: dict[str, str] | None = None, full: bool = False
    ) -> list[Audited]: ...


@pytest.fixture
def served() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as index:
        yield index


@pytest.fixture
def torch(served: LoopbackIndex, tmp_path: Path) -> str:
    """A wheel of PyTorch on the index; its sha256."""
    greeting = "#include <string>\nstd::string greet(const std::string &n) { return n + n.substr(1); }\n"
    library = shared_library(tmp_path, section=fat_binary("sm_80", "sm_90", "sm_90a") * 3, source=greeting, flags=("-xc++",))
    requires = ("nvidia-cudnn-cu12==9.10.2.21; platform_system == 'Linux'", "nvidia-nccl-cu12==2.27.3", "other>=1")
    metadata = "\n".join(["Metadata-Version: 2.1", "Name: torch", *(f"Requires-Dist: {one}" for one in requires), "", ""])
    content = zipped(
        {
            "torch/version.py": b"__version__ = '2.8.0+cu128'\ncuda = '12.8'\n",
            "torch/lib/libtorch_cuda.so": library,
            "torch/lib/libtorch_cuda_linalg.so": shared_library(tmp_path, section=fat_binary("sm_50")),
            "torch/lib/libtorch_python.so": library + b"ipc_hsm_80 sm_90\0",
            "torch-2.8.0.dist-info/METADATA": metadata.encode(),
        }
    )
    serve(served, TORCH, content, requires_python=">=3.9")
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def audit(served: LoopbackIndex, torch: str, tmp_path: Path) -> Auditor:
    settings = IndexSettings(
        indexes=(IndexLocation(name="main", url=served.url),), retries=0, timeout=5, cache_directory=tmp_path / "cache"
    )
    folder = tmp_path / "matrices"
    folder.mkdir()

    def run(fields: dict[str, str] | None = None, *, files: dict[str, str] | None = None, full: bool = False) -> list[Audited]:
        row = PYTORCH_ROW.format(**{**HONEST, "sha256": torch, **(fields or {})})
        written = {"matrix": MATRIX, **FILES, "pytorch": row, **(files or {})}
        for name, text in written.items():
            head = "" if name == "matrix" else SOURCES.format(name=name)
            body = text.replace("source: [s]", f"source: [{name}-s]")
            (folder / f"{name}.yaml").write_text(f"{head}{body}\n", encoding="utf-8")
        matrix = load_matrix(folder)
        with Artefacts(settings, is_full=full) as artefacts:
            return list(audited(matrix, rows(matrix), artefacts))

    return run


def outcomes(results: list[Audited]) -> dict[str, str]:
    (one,) = results
    assert one.why_not == ""
    return {finding.field: finding.outcome for finding in one.findings}


ALL = ("sha256", "version", "sass", "ptx", "cuda", "cudnn", "nccl", "cxx11_abi", "glibc", "python")


def test_an_honest_row_is_confirmed_in_every_field(audit: Auditor) -> None:
    results = audit()
    assert outcomes(results) == dict.fromkeys(ALL, "confirmed")
    assert results[0].outcome == "confirmed"
    assert "sm_80 3, sm_90 3, sm_90a 3" in next(one.read for one in results[0].findings if one.field == "sass")


def requiring(change: str, to: str) -> str:
    return HONEST["requires"].replace(change, to)


@pytest.mark.parametrize(
    ("field", "fields", "read"),
    [
        ("sass", {"sass": "[sm_80]"}, "the build was asked for sm_80, sm_90"),
        ("sass", {"sass": "[sm_80, sm_90, sm_120]"}, "the build was asked for sm_80, sm_90"),
        ("ptx", {"ptx": "[compute_90]"}, "the build was asked for none"),
        ("cuda", {"requires": requiring("==12.8.*", "==12.6.*")}, "it says 12.8"),
        ("cudnn", {"requires": requiring("==9.10.2.21", "==9.9.*")}, "it requires nvidia-cudnn-cu12==9.10.2.21"),
        ("nccl", {"requires": requiring("==2.27.3", "==2.26.2")}, "it requires nvidia-nccl-cu12==2.27.3"),
        ("glibc", {"requires": requiring(">=2.28", ">=2.17")}, "its tag for 2.28"),
        ("glibc", {"requires": requiring(">=2.28", ">=2.35")}, "its tag for 2.28"),
        ("python", {"requires": requiring('["3.12"]', '["3.12", "3.13"]')}, "linux/amd64: no wheel for 3.13"),
        ("python", {"requires": requiring('["3.12"]', '["3.13"]')}, "no wheel for 3.13, also wheels for 3.12"),
    ],
)
def test_a_wrong_field_is_refuted_and_nothing_else(audit: Auditor, field: str, fields: dict[str, str], read: str) -> None:
    results = audit(fields)
    assert outcomes(results) == dict.fromkeys(ALL, "confirmed") | {field: "refuted"}
    assert results[0].outcome == "refuted"
    assert read in next(one.read for one in results[0].findings if one.field == field)


def test_another_file_under_the_same_name_is_refuted_and_not_read_further(audit: Auditor, served: LoopbackIndex) -> None:
    assert outcomes(audit({"sha256": "0" * 64})) == {"sha256": "refuted"}
    assert served.requests[f"/files/{TORCH}"] == 0


def test_what_was_measured_is_kept(audit: Auditor, served: LoopbackIndex) -> None:
    first = audit()
    count = served.requests[f"/files/{TORCH}"]
    assert audit() == first
    assert served.requests[f"/files/{TORCH}"] == count > 0
    assert outcomes(audit(full=True))["sass"] == "confirmed"
    assert served.requests[f"/files/{TORCH}"] == count


@pytest.mark.parametrize(
    ("artefact", "reason"),
    [
        ("torch-2.8.1-cp312-cp312-manylinux_2_28_x86_64.whl", "is not on an index in reach"),
        ("nowhere-1.0-py3-none-any.whl", "is not on an index in reach"),
        ("torch-2.8.0.tar.gz", "is no wheel"),
    ],
)
def test_an_artefact_that_cannot_be_measured_says_why(audit: Auditor, artefact: str, reason: str) -> None:
    (one,) = audit({"artefact": artefact})
    assert reason in one.why_not
    assert (one.outcome, one.findings) == ("not measurable", ())


def test_a_damaged_artefact_and_a_silent_index_say_why(audit: Auditor, served: LoopbackIndex) -> None:
    broken = serve(served, TORCH, b"PK\x05\x06 not a wheel")
    assert "cannot be measured" in audit({"sha256": broken.sha256})[0].why_not
    served.status = 503
    served.pages.clear()
    assert "not measurable" in {one.outcome for one in audit({"artefact": "other-1.0-py3-none-any.whl"})}


def test_the_two_versions_of_nccl_and_targets_without_flags(audit: Auditor, served: LoopbackIndex, tmp_path: Path) -> None:
    name = "nvidia_nccl_cu12-2.27.3-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
    library = shared_library(tmp_path, section=fat_binary("sm_80", "sm_90") * 4 + fat_binary("sm_61", "compute_90"))
    serve(served, name, zipped({"nvidia/nccl/lib/libnccl.so.2": library + b"NCCL version 2.27.3+cuda12.9\0"}))
    row = (
        'releases: [{version: "2.26.2", source: [s]}, {version: "2.27.3", builds: [{name: cu12, '
        'platforms: [linux/amd64], requires: {cuda: "%s", glibc: ">=2.17"},'
        f' sass: [%s], ptx: [compute_90], artefact: "{name}", source: [s]' + "}]}]"
    )
    for cuda, sass, wrong in (
        ("==12.*", "sm_80, sm_90", set()),
        ("==13.*", "sm_80, sm_90", {"cuda"}),
        ("==12.*", "sm_80", {"sass"}),
        ("==12.*", "sm_80, sm_90, sm_100", {"sass"}),
        ("==12.*", "sm_61, sm_80, sm_90", set()),
    ):
        found = next(one for one in audit(files={"nccl": row % (cuda, sass)}) if one.row.component.name == "nccl")
        assert {one.field for one in found.findings if one.outcome == "refuted"} == wrong
        assert {one.field for one in found.findings} == {"version", "cuda", "sass", "ptx", "glibc"}


HOST_CONFIG = """\
#if defined(__GNUC__)
#if __GNUC__ > 14
#error -- unsupported GNU version!
#endif
#if defined(__clang__) && !defined(__APPLE__)
#if (__clang_major__ >= 20) || (__clang_major__ < 3)
#error -- unsupported clang version!
"""


def test_host_compilers_are_judged_by_the_rules_of_the_matrix(audit: Auditor, served: LoopbackIndex) -> None:
    compiler = "nvidia_cuda_nvcc-13.0.1-py3-none-manylinux2014_x86_64.whl"
    serve(served, compiler, zipped({"nvidia/cu13/bin/crt/link.stub": b"stub"}))
    headers = {
        "nvidia/cu13/include/crt/host_config.h": HOST_CONFIG.encode(),
        "nvidia/cu13/include/crt/math_functions.h": b"extern double rsqrt(double x);\n",
    }
    serve(served, "nvidia_cuda_crt-13.0.1-py3-none-manylinux2014_x86_64.whl", zipped(headers))
    text = (
        f'releases: [{{version: "13.0.1", builds: [{{name: toolkit, sass: [sm_90], artefact: "{compiler}", source: [s]}}]}}]\n'
        "rules:\n"
        '  - {name: gcc-ceiling, when: {nvcc: ">=13"}, require: {gcc: "%s"}, because: "its header refuses it", source: [s]}\n'
    )
    for ceiling, outcome in (("<15", "confirmed"), ("<14", "refuted"), ("<16", "refuted")):
        found = next(one for one in audit(files={"nvcc": text % ceiling}) if one.row.component.name == "nvcc")
        assert {one.field: one.outcome for one in found.findings} == {
            "gcc": outcome,
            "clang": "not measurable",
            "sass": "not measurable",
            "glibc 2.42": "refuted",
        }


def test_the_targets_of_a_compiler_are_those_that_its_ptxas_names(
    audit: Auditor, served: LoopbackIndex, tmp_path: Path
) -> None:
    compiler = "nvidia_cuda_nvcc-13.0.1-py3-none-manylinux2014_x86_64.whl"
    ptxas = shared_library(tmp_path) + b"\0sm_50\0compute_75\0compute_90a\0lto_75\0lto_90a\0"
    serve(served, compiler, zipped({"nvidia/cu13/bin/ptxas": ptxas}))
    row = f'{{name: toolkit, sass: %s, ptx: %s, artefact: "{compiler}", source: [s]}}'
    text = f'releases: [{{version: "13.0.1", builds: [{row}]}}]\n'
    for sass, ptx, outcomes in (
        ("[sm_75, sm_90a]", "[compute_75, compute_90a]", ("confirmed", "confirmed")),
        ("[sm_50, sm_75, sm_90a]", "[compute_75]", ("refuted", "refuted")),
    ):
        found = next(one for one in audit(files={"nvcc": text % (sass, ptx)}) if one.row.component.name == "nvcc")
        outcome = {one.field: one.outcome for one in found.findings}
        assert (outcome["sass"], outcome["ptx"]) == outcomes


JAX_ROW = """\
releases:
  - version: "0.6.0"
    builds:
      - name: cuda12
        platforms: [linux/amd64]
        accelerator: cuda
        requires: {cuda: "%s", cudnn: "%s"}
        install: "jax[cuda12]"
        artefact: "jax_cuda12_plugin-0.6.0-cp312-cp312-manylinux2014_x86_64.whl"
        source: [s]
"""


def test_the_pins_of_jax_are_those_that_its_plugin_requires_with_an_extra_of_its_own(
    audit: Auditor, served: LoopbackIndex
) -> None:
    pins = ("nvidia-cuda-runtime-cu12>=12.1.105; extra == 'with-cuda'", "nvidia-cudnn-cu12<10.0,>=9.8; extra == 'with-cuda'")
    metadata = metadata_text("jax-cuda12-plugin", "0.6.0", pins).encode()
    plugin = "jax_cuda12_plugin-0.6.0-cp312-cp312-manylinux2014_x86_64.whl"
    serve(served, plugin, zipped({"jax_cuda12_plugin-0.6.0.dist-info/METADATA": metadata}))
    for cuda, cudnn, outcome in (
        (">=12.1,<13", ">=9.8,<10.0", ("confirmed", "confirmed")),
        (">=12.4,<13", ">=9.1,<10.0", ("refuted", "not measurable")),
    ):
        found = next(one for one in audit(files={"jax": JAX_ROW % (cuda, cudnn)}) if one.row.component.name == "jax")
        assert {one.field: one.outcome for one in found.findings} == dict(zip(("cuda", "cudnn"), outcome, strict=True))


def test_builds_without_an_artefact_are_counted(audit: Auditor, tmp_path: Path) -> None:
    audit()
    matrix = load_matrix(tmp_path / "matrices")
    assert [row.name for row in rows(matrix)] == ["pytorch==2.8.0+cu128 (linux/amd64)"]
    assert rows(matrix, component="nccl") == rows(matrix, component="pytorch", version="2.7.0") == ()
    assert unnamed(matrix) == 0
