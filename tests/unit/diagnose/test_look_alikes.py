"""Messages of clusters and AMD GPUs that look alike and have different causes, each told by its own row."""

from __future__ import annotations

import pytest

from provisioner.diagnose.log import log_of
from provisioner.diagnose.recognise import recognise
from tests.shipped import shipped

CGROUPS = "\nslurmd: error: cannot create cgroup context for cgroup/v2\nslurmd: error: Unable to initialize cgroup plugin"
STARTS_NOT = "slurm-cgroup-plugin-not-started"
AUTODETECT = (
    "slurmd: We were configured to autodetect nvml functionality, but we weren't able to find that lib "
    "when Slurm was configured."
)
FATAL = "\namdgpu 0000:03:00.0: amdgpu: Fatal error during GPU init"
MISSING = "amdgpu 0000:03:00.0: Direct firmware load for amdgpu/psp_13_0_8_toc.bin failed with error -2"


@pytest.mark.parametrize(
    ("log", "names"),
    [
        (f"slurmd: error: cannot find cgroup plugin for cgroup/v2{CGROUPS}", {"slurm-lacks-the-cgroup-plugin", STARTS_NOT}),
        (
            f"slurmd: error: cgroup_dbus_attach_to_scope: cannot connect to dbus system daemon: Failed{CGROUPS}",
            {"slurm-reaches-no-systemd", STARTS_NOT},
        ),
        (
            "slurmd: We were configured with nvml functionality, but that lib wasn't found on the system.",
            {"slurm-finds-no-gpu-library"},
        ),
        (
            AUTODETECT,
            {"slurm-configuration-of-gpus-differs"},
        ),
        (
            f"[drm:psp_hw_start [amdgpu]] *ERROR* PSP create ring failed!{FATAL}",
            {"amdgpu-security-processor-does-not-start", "amdgpu-does-not-start"},
        ),
        (
            f"{MISSING}\n[drm:psp_sw_init] *ERROR* Failed to load psp firmware!{FATAL}",
            {"amdgpu-firmware-missing", "amdgpu-does-not-start"},
        ),
        ("amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=SUSPEND", {"amdgpu-scheduler-does-not-answer"}),
        (
            "amdgpu 0000:c5:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=3",
            {"amdgpu-ring-timeout"},
        ),
        ("No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'", {"torch-sees-no-gpu-where-extensions-are-built"}),
    ],
)
def test_what_looks_alike_is_told_apart(log: str, names: set[str]) -> None:
    assert {one.failure.name for one in recognise(log_of(log), shipped()).failures} == names


def test_a_missing_toolkit_is_not_a_missing_gpu() -> None:
    log = "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root."
    names = {one.failure.name for one in recognise(log_of(log), shipped()).failures}
    assert names
    assert "torch-sees-no-gpu-where-extensions-are-built" not in names
