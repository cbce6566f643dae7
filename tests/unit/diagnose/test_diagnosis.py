"""Causes, consequences, alternatives and remedies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.diagnose.diagnosis import diagnose
from provisioner.diagnose.log import log_of
from provisioner.grounds.diagnosis import BuildsFor, CudaNeeds, DriverRuns, DriversFor, FactWanted, NothingRuns, RunsHere
from provisioner.host.model import Driver, Host, HostGpu
from tests.shipped import shipped

if TYPE_CHECKING:
    from provisioner.diagnose.diagnosis import Diagnosis

TOO_OLD = "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update"
INSUFFICIENT = "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version"
NO_IMAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
SM_120 = "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation."
SMI = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."


def diagnosis_of(*lines: str, profile: Host | None = None) -> Diagnosis:
    return diagnose(log_of("\n".join(lines)), shipped(), profile=profile)


def test_the_driver_of_a_log_is_solved_with() -> None:
    (finding,) = diagnosis_of(TOO_OLD).findings
    runs, here = (one for one in finding.main.remedies if isinstance(one, DriverRuns | RunsHere))
    assert runs == DriverRuns(branch="470", cuda="11.4")
    assert isinstance(here, RunsHere)
    assert dict(here.components)["pytorch"] == "2.7.1+cu118"
    assert here.index == "https://download.pytorch.org/whl/cu118"


def test_a_consequence_is_told_below_its_cause() -> None:
    (finding,) = diagnosis_of(NO_IMAGE, SM_120).findings
    assert finding.main.failure.name == "torch-build-lacks-the-gpu"
    assert [one.failure.name for one in finding.consequences] == ["no-kernel-image"]


def test_a_consequence_alone_names_what_it_can_come_from() -> None:
    (finding,) = diagnosis_of(SMI).findings
    assert finding.main.failure.name == "nvidia-smi-cannot-communicate"
    assert "nouveau-holds-the-gpu" in {one.failure.name for one in finding.possible}


def test_with_its_cause_in_the_log_a_consequence_is_no_finding() -> None:
    (finding,) = diagnosis_of(SMI, "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service").findings
    assert finding.main.failure.name == "key-rejected-by-secure-boot"
    assert not finding.possible


def test_the_deepest_layer_comes_first() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    names = [one.main.failure.name for one in diagnosis_of(oom, TOO_OLD, "libGL.so.1: cannot open shared object file").findings]
    assert names.index("driver-too-old-for-runtime") < names.index("libgl-missing")


@pytest.mark.parametrize(
    ("toolkit", "first", "others"),
    [
        (None, "driver-too-old-for-runtime", {"cdi-checks-no-requirement", "cuda-compat-not-mounted"}),
        ("1.17.4", "cuda-compat-not-mounted", {"driver-too-old-for-runtime"}),
        ("1.18.1", "cdi-checks-no-requirement", {"driver-too-old-for-runtime"}),
        ("1.16.0", "driver-too-old-for-runtime", set()),
    ],
)
def test_causes_that_look_alike_are_told_apart_by_facts_or_all_told(toolkit: str | None, first: str, others: set[str]) -> None:
    host = Host(platform="linux/amd64", container_toolkit=toolkit, driver=Driver(version="470.86"))
    (finding,) = diagnosis_of(INSUFFICIENT, profile=host).findings
    names = [one.failure.name for one in finding.explanations]
    assert {names[0], *names[1:]} == {first, *others}
    assert first in names


def test_a_module_that_does_not_build_is_told_by_driver_and_kernel_of_the_log() -> None:
    build = "Error! Bad return status for module build on kernel: 6.12.5_1 (x86_64)"
    consult = "Consult /var/lib/dkms/nvidia/470.256.02/build/make.log for more information."
    (finding,) = diagnosis_of(build, consult).findings
    assert finding.main.failure.name == "dkms-fails-on-6.12"
    (drivers,) = (one for one in finding.main.remedies if isinstance(one, DriversFor))
    assert drivers.kernel == "6.12.5_1"
    assert drivers.driver == "470.256.02"
    assert drivers.others


def test_builds_for_a_gpu_come_from_the_matrix_and_the_solver() -> None:
    (finding,) = diagnosis_of(SM_120).findings
    builds = next(one for one in finding.main.remedies if isinstance(one, BuildsFor))
    assert (builds.gpu, builds.oldest) == ("12.0", "2.7.0+cu128")
    assert any(isinstance(one, RunsHere) for one in finding.main.remedies)


def test_a_machine_that_runs_nothing_is_proved() -> None:
    host = Host(platform="linux/amd64", driver=Driver(version="470.86"), gpus=(HostGpu(compute_capability="12.0"),))
    (finding,) = diagnosis_of(SM_120, profile=host).findings
    (proof,) = (one for one in finding.main.remedies if isinstance(one, NothingRuns))
    assert proof.conflict.fixes


def test_the_driver_that_an_image_asks_for_is_told() -> None:
    line = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver"
    (finding,) = diagnosis_of(line).findings
    assert CudaNeeds(cuda="12.8", minor_version="525.60.13", native_branch="570") in finding.main.remedies
    assert FactWanted(("driver", "gpu")) in finding.main.remedies


def test_the_log_counts_where_a_profile_says_otherwise() -> None:
    host = Host(platform="linux/amd64", driver=Driver(version="550.54.15"))
    found = diagnosis_of(TOO_OLD, profile=host)
    assert [(one.name, one.in_log, one.in_profile) for one in found.facts.disagreements] == [("driver", "470", "550.54.15")]
    assert not diagnosis_of(TOO_OLD, profile=Host(driver=Driver(version="470.86"))).facts.disagreements


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ((), "unknown"),
        (("all is well",), "unknown"),
        (("error: something new",), "unknown"),
        (("nvidia: loading out-of-tree module taints kernel.",), "harmless"),
        (("nvidia: loading out-of-tree module taints kernel.", "error: something new"), "unknown"),
        ((TOO_OLD, "error: something new"), "cause"),
    ],
)
def test_the_verdict(lines: tuple[str, ...], verdict: str) -> None:
    assert diagnosis_of(*lines).verdict == verdict


def test_commands_have_the_facts_of_the_log() -> None:
    line = "Error! Your kernel headers for kernel 6.6.15-amd64 cannot be found at /lib/modules/6.6.15-amd64/build"
    (finding,) = diagnosis_of(line).findings
    assert any("linux-headers-6.6.15-amd64" in getattr(one, "command", "") for one in finding.main.remedies)


def test_the_documents_of_failures_exist() -> None:
    page = (Path(__file__).parents[3] / "docs/diagnose.md").read_text(encoding="utf-8")
    assert all(f"`{failure.name}`" in page for failure in shipped().failures if failure.kind != "silent")
