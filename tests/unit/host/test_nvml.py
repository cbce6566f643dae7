"""NVML as a C library really loaded by the loader, in a process of its own; the library describes what it is told to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from provisioner.host.nvml import ask_nvml
from provisioner.host.remark import NvmlFailed
from provisioner.words.remark import remark_words

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "tests/fixtures/nvml/fake_nvml.c"

SCRIPT = """
import json, msgspec
from provisioner.host.nvml import ask_nvml
from provisioner.words.remark import remark_words
found = ask_nvml()
print(json.dumps({**msgspec.to_builtins(found), "problems": list(map(remark_words, found.problems))}))
"""

INSPECT = """
import json
from provisioner.host.inspect import inspect_host
from provisioner.strict_model import plain_data
from provisioner.words.remark import remark_words
inspection = inspect_host()
unread = [f"unread: {remark_words(one)}" for one in inspection.unread]
print(json.dumps([plain_data(inspection.host), [*map(remark_words, inspection.remarks), *unread]]))
"""

without_driver = pytest.mark.skipif(
    Path("/proc/driver/nvidia/version").exists(), reason="this machine has NVIDIA's driver, whose files would answer too"
)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile the library, with further flags where a test wants an older one, and return the folder it is in."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")

    def build(*flags: str) -> Path:
        folder = tmp_path_factory.mktemp("nvml")
        command = [compiler, "-shared", "-fPIC", *flags, "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        return folder

    return build


def answer(folder: Path, script: str = SCRIPT, **settings: str) -> Any:  # noqa: ANN401 - whatever the script prints
    """Run a script in a process that finds the library, with no other program of the machine in reach."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(ROOT), "PATH": str(folder), **settings}
    finished = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)
    return json.loads(finished.stdout)


def test_two_unlike_gpus_are_listed_with_driver_and_ids(compiled: Callable[..., Path]) -> None:
    gpus = "NVIDIA H100 80GB HBM3|9.0|2330|81559|0;NVIDIA A100-SXM4-40GB|8.0|20b0|40960|1"
    h100 = {"name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "pci_device_id": "2330"}
    a100 = {"name": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0", "pci_device_id": "20B0"}
    assert answer(compiled(), FAKE_NVML_GPUS=gpus) == {
        "driver": "550.54.15",
        "userspace": "550.54.15",
        "gpus": [
            {**h100, "driver": None, "memory": 81559, "is_divided": False, "has_slices": None},
            {**a100, "driver": None, "memory": 40960, "is_divided": True, "has_slices": True},
        ],
        "problems": [],
        "is_missing": False,
    }


def test_a_driver_that_is_not_loaded_is_a_sentence(compiled: Callable[..., Path]) -> None:
    found = answer(compiled(), FAKE_NVML_CODE="9")
    assert found["gpus"] is None
    assert found["driver"] is None
    assert found["problems"] == ["driver: libnvidia-ml.so.1 answers 9: the NVIDIA driver is not loaded"]


def test_a_version_mismatch_is_a_sentence_that_says_what_to_do(compiled: Callable[..., Path]) -> None:
    (problem,) = answer(compiled(), FAKE_NVML_CODE="18")["problems"]
    assert problem == (
        "driver: libnvidia-ml.so.1 answers 18: the loaded kernel module and the user-space driver are of different versions; "
        "reboot, or reload the module"
    )


def test_a_code_that_is_not_known_is_reported_by_its_number(compiled: Callable[..., Path]) -> None:
    found = answer(compiled(), FAKE_NVML_CODE="77")
    assert found["problems"] == ["driver: libnvidia-ml.so.1 answers 77: see nvmlReturn_t in nvml.h"]


def test_a_failure_to_count_the_gpus_is_a_sentence_of_its_own() -> None:
    failed = "driver: libnvidia-ml.so.1 cannot count the GPUs"
    assert remark_words(NvmlFailed("count", 15)) == f"{failed}: a GPU has fallen off the bus"
    assert remark_words(NvmlFailed("count", 999)) == f"{failed}: NVML error 999"


def test_a_gpu_that_does_not_answer_is_counted_but_not_described(compiled: Callable[..., Path]) -> None:
    found = answer(compiled(), FAKE_NVML_GPUS="lost|9.0|2330;NVIDIA H100 PCIe|9.0|2331")
    assert [gpu["name"] for gpu in found["gpus"]] == [None, "NVIDIA H100 PCIe"]
    assert found["problems"] == ["gpus: GPU 0 of 2 does not answer: a GPU has fallen off the bus"]


def test_a_library_without_a_newer_function_still_names_the_gpu(compiled: Callable[..., Path]) -> None:
    found = answer(compiled("-DWITHOUT_PCI_INFO"), FAKE_NVML_GPUS="Tesla T4|7.5|1eb8")
    (gpu,) = found["gpus"]
    assert (gpu["name"], gpu["compute_capability"], gpu["pci_device_id"]) == ("Tesla T4", "7.5", None)
    assert (gpu["memory"], gpu["is_divided"]) == (None, None)


@without_driver
def test_a_machine_with_the_library_is_inspected_through_it(compiled: Callable[..., Path]) -> None:
    gpus = "NVIDIA H100 80GB HBM3|9.0|2330;" * 2 + "Tesla T4|7.5|1eb8"
    host, notes = answer(compiled(), INSPECT, FAKE_NVML_GPUS=gpus, FAKE_NVML_LIBRARY="12.555.42.02")
    assert host["gpus"] == [
        {"name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "pci_device_id": "2330", "count": 2},
        {"name": "Tesla T4", "compute_capability": "7.5", "pci_device_id": "1EB8", "count": 1},
    ]
    assert host["driver"]["version"] == "550.54.15"
    assert host["userspace_driver"] == "555.42.02"
    assert "userspace_driver: libcuda is 555.42.02, but the loaded kernel module is 550.54.15" in notes


@without_driver
def test_mig_is_told_and_memory_is_known_as_what_no_rule_reads(compiled: Callable[..., Path]) -> None:
    gpus = "NVIDIA A100-SXM4-40GB|8.0|20b0|40960|1;NVIDIA A100-SXM4-40GB|8.0|20b0|40960|0"
    host, notes = answer(compiled(), INSPECT, FAKE_NVML_GPUS=gpus)
    assert host["gpus"] == [{"name": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0", "pci_device_id": "20B0", "count": 2}]
    assert "gpus: MIG divides 1 of 2: a program sees a slice, of the same compute capability and less memory" in notes
    assert "unread: gpus: 2 with 40960 MiB; no rule reads the memory, so that a profile has no key for it" in notes


@without_driver
def test_mig_without_an_instance_is_told(compiled: Callable[..., Path]) -> None:
    gpus = "NVIDIA A100-SXM4-40GB|8.0|20b0|40960|1|0;NVIDIA A100-SXM4-40GB|8.0|20b0|40960|1|2;NVIDIA A100-SXM4-40GB|8.0|20b0"
    _, notes = answer(compiled(), INSPECT, FAKE_NVML_GPUS=gpus)
    assert "gpus: MIG is on without an instance on 1 of 3: no CUDA program runs there" in notes
    assert "gpus: MIG divides 1 of 3: a program sees a slice, of the same compute capability and less memory" in notes


@without_driver
@pytest.mark.parametrize(
    ("instances", "mig"), [((0, 0), "undivided"), ((0, 1), None), ((2, 2), None)], ids=["none", "some", "everywhere"]
)
def test_a_machine_of_which_no_gpu_has_an_instance_is_undivided(
    compiled: Callable[..., Path], instances: tuple[int, int], mig: str | None
) -> None:
    gpus = ";".join(f"NVIDIA A100-SXM4-40GB|8.0|20b0|40960|1|{count}" for count in instances)
    host, _ = answer(compiled(), INSPECT, FAKE_NVML_GPUS=gpus)
    assert host.get("mig") == mig


@without_driver
def test_a_failing_library_leaves_its_reason_in_the_notes_of_an_inspection(compiled: Callable[..., Path]) -> None:
    host, notes = answer(compiled(), INSPECT, FAKE_NVML_CODE="9")
    assert "driver" not in host
    assert "driver: libnvidia-ml.so.1 answers 9: the NVIDIA driver is not loaded" in notes


@without_driver
def test_nvidia_smi_is_asked_where_the_library_is_not_found(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in *compute_cap*) echo \'Field "compute_cap" is not a valid field to query.\'; exit 2;; esac\n'
        "echo 'Tesla V100-SXM2-16GB, 450.80.02, 0x1DB110DE'\n"
    )
    program.chmod(0o755)
    host, _ = answer(tmp_path, INSPECT)
    assert host["driver"]["version"] == "450.80.02"
    assert host["gpus"] == [{"name": "Tesla V100-SXM2-16GB", "pci_device_id": "1DB1", "count": 1}]


@without_driver
def test_a_driver_too_old_for_the_query_still_tells_its_version(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\n"
        "[ $# -gt 0 ] && exit 2\n"
        "echo '| NVIDIA-SMI 390.157                Driver Version: 390.157                   |'\n"
    )
    program.chmod(0o755)
    host, _ = answer(tmp_path, INSPECT)
    assert host["driver"]["version"] == "390.157"


def test_a_library_that_is_no_library_is_not_taken_for_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not ELF")
    found = answer(tmp_path)
    assert not found["is_missing"]
    assert found["problems"][0].startswith("driver: libnvidia-ml.so.1 cannot be loaded: ")


def test_asking_in_this_process_never_raises() -> None:
    found = ask_nvml()
    assert found.gpus is not None or found.problems
