"""Every error code in the headers of CUDA, its libraries, NVML, HIP and HSA is told; a code of success is no failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from provisioner.diagnose.diagnosis import diagnose
from provisioner.diagnose.log import log_of
from provisioner.grounds.diagnosis import BroughtBy
from tests.shipped import shipped

CODES: dict[str, list[str]] = YAML(typ="safe").load(
    (Path(__file__).parents[2] / "fixtures/logs/codes.yaml").read_text(encoding="utf-8")
)


def _told(text: str) -> list[str]:
    found = diagnose(log_of(text), shipped())
    return [finding.main.failure.name for finding in found.findings]


@pytest.mark.parametrize("kind", CODES)
def test_each_code_of_a_header_is_told(kind: str) -> None:
    log = "\n".join(f"RuntimeError: {code}" for code in CODES[kind])
    found = diagnose(log_of(log), shipped())
    assert found.unexplained == (), f"{found.unexplained_count} codes of {kind} are not told"


@pytest.mark.parametrize(
    "code", ["CUDNN_STATUS_SUCCESS", "CUBLAS_STATUS_SUCCESS", "CUSPARSE_STATUS_SUCCESS", "rocblas_status_success"]
)
def test_a_code_of_success_is_no_failure(code: str) -> None:
    assert _told(f"the call returned {code}") == []


def test_a_symbol_of_the_driver_is_told_apart_from_one_of_a_library_whose_name_begins_alike() -> None:
    assert _told("ImportError: foo.so: undefined symbol: cuMemCreate") == ["driver-lacks-a-function"]
    assert _told("ImportError: foo.so: undefined symbol: cublasLtMatmul") == ["nvidia-library-older-than-the-module"]
    assert _told("ImportError: foo.so: undefined symbol: curl_easy_init") == ["function-missing-from-a-library"]


def test_a_library_that_the_loader_misses_is_told_with_what_brings_it() -> None:
    (finding,) = diagnose(log_of("ImportError: libcufft.so.10: cannot open shared object file"), shipped()).findings
    assert BroughtBy(library="libcufft.so.10", distributions=("nvidia-cufft-cu11",)) in finding.main.remedies
