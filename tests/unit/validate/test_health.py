"""The health of GPUs: read from stand-ins for the driver's libraries, and compared with what healthy boards reach."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.json import decode
from msgspec.structs import replace

from provisioner.evidence.report import overall
from provisioner.matrix.load import load_matrix
from provisioner.validate.compare import compare
from provisioner.validate.compare_health import Figures
from provisioner.validate.measurement import DeviceHealth, Health, Load, check_source
from tests.unit.validate.locks import cuda_lock, failed
from tests.unit.validate.test_compare import with_gpu

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.evidence.report import FieldReport
    from provisioner.validate.measurement import Measurement

NVML = r"""
#include <stdlib.h>
#include <string.h>
typedef struct { char old[16]; unsigned domain, bus, device, identity, subsystem; char place[32]; } Pci;
typedef struct { void *device; unsigned long long kind, data; unsigned gpu, compute; } Event;
static int set(const char *name, int otherwise) { const char *v = getenv(name); return v ? atoi(v) : otherwise; }
static int events = 0;
int nvmlInit_v2(void) { return set("FAKE_NVML", 0); }
const char *nvmlErrorString(int status) { return status == 18 ? "Driver/library version mismatch" : "GPU is lost"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *place, void **handle) {
    if (strcmp(place, "0000:18:00.0")) return 6;
    *handle = (void *)1;
    return 0;
}
int nvmlDeviceGetPciInfo_v3(void *handle, Pci *pci) { pci->identity = 0x233010de; return 0; }
int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *next) { *now = set("FAKE_MIG", 0); return 0; }
int nvmlDeviceGetVirtualizationMode(void *handle, int *mode) { *mode = set("FAKE_VIRTUAL", 0); return 0; }
int nvmlDeviceGetTotalEccErrors(void *handle, int kind, int counter, unsigned long long *count) {
    if (kind != 1 || counter != 0) return 2;
    *count = set("FAKE_ECC", 0);
    return set("FAKE_ECC_STATUS", 0);
}
int nvmlDeviceGetRemappedRows(void *handle, unsigned *a, unsigned *b, unsigned *pending, unsigned *failed) {
    *a = *b = 1; *pending = set("FAKE_PENDING", 0); *failed = set("FAKE_FAILED", 0);
    return 0;
}
int nvmlDeviceGetRetiredPagesPendingStatus(void *handle, int *waiting) { return 3; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *bits) { *bits = 0x40; return 0; }
int nvmlEventSetCreate(void **events) { *events = (void *)2; return 0; }
int nvmlDeviceRegisterEvents(void *handle, unsigned long long kind, void *events) { return kind == 8 ? 0 : 2; }
int nvmlEventSetWait_v2(void *set_of_events, Event *event, unsigned wait) {
    if (events++ >= set("FAKE_EVENTS", 0)) return 10;
    event->data = 79;
    return 0;
}
int nvmlEventSetFree(void *events) { return 0; }
"""
CUDA = r"""
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetPCIBusId(char *text, int length, int device) { strncpy(text, "0000:18:00.0", length); return 0; }
"""

LOAD = Load(
    stable=True, memory_held=True, memory_checked=40 << 30, seconds=20.0, float32=50.0, float16=600.0, memory_bandwidth=2600.0
)
WELL = DeviceHealth(
    device="cuda:0",
    pci_device_id="2330",
    part="",
    load=LOAD,
    uncorrected_before=0,
    uncorrected=0,
    repairs=(),
    xids=(),
    slowdowns=(),
    errors={},
)
H100 = {"2330": Figures(memory_bandwidth=1905.0, float32=29.25)}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins for libnvidia-ml and libcuda with one H100."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler on Linux")
    folder = tmp_path_factory.mktemp("driver")
    for name, source in (("libnvidia-ml.so.1", NVML), ("libcuda.so.1", CUDA)):
        (folder / f"{name}.c").write_text(source)
        subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", str(folder / name), str(folder / f"{name}.c")], check=True)
    return folder


def read(driver: Path | None, **settings: str) -> Health:
    """What the check of health prints without PyTorch, which is not installed here."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver or ""), **settings}
    command = [sys.executable, "-I", "-c", check_source("health"), "1"]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return decode(finished.stdout, type=Health)


def fields_of(device: DeviceHealth, *, figures: dict[str, Figures] | None = None) -> tuple[FieldReport, ...]:
    measurement = with_health(Health(devices=(device,), errors={}))
    found = compare(cuda_lock(), measurement, figures=H100 if figures is None else figures)
    return tuple(field for field in found if field.level == 5)


def with_health(health: Health | None) -> Measurement:
    return replace(with_gpu(), level=5, health=health)


def test_the_check_is_syntax_for_python_3_7() -> None:
    ast.parse(check_source("health"), feature_version=(3, 7))


def test_what_the_driver_counts_is_read_from_its_libraries(driver: Path) -> None:
    (device,) = read(driver).devices
    assert device == replace(WELL, load=None)


def test_what_the_driver_counts_against_a_gpu_is_read(driver: Path) -> None:
    (device,) = read(driver, FAKE_ECC="3", FAKE_PENDING="1", FAKE_FAILED="1", FAKE_EVENTS="2", FAKE_MIG="1").devices
    assert (device.uncorrected, device.xids, device.part) == (3, (79, 79), "MIG")
    assert device.repairs == ("row remapping failed", "row remapping pending")
    (device,) = read(driver, FAKE_VIRTUAL="2").devices
    assert device.part == "vGPU"


def test_a_gpu_without_ecc_has_no_count_and_one_that_is_lost_an_error(driver: Path) -> None:
    (device,) = read(driver, FAKE_ECC_STATUS="3").devices
    assert (device.uncorrected, device.errors) == (None, {})
    (device,) = read(driver, FAKE_ECC_STATUS="15").devices
    assert device.errors == {"ecc": "RuntimeError: nvmlDeviceGetTotalEccErrors returned 15 (GPU is lost)"}


def test_a_driver_that_does_not_answer_is_told_in_its_own_words(driver: Path) -> None:
    found = read(driver, FAKE_NVML="18")
    assert found.devices == ()
    assert found.errors["nvml"] == "RuntimeError: nvmlInit_v2 returned 18 (Driver/library version mismatch)"


def test_a_machine_without_a_driver_has_no_devices_and_says_why() -> None:
    found = read(None)
    assert found.devices == ()
    assert "libnvidia-ml.so.1" in found.errors["nvml"]


def test_a_healthy_gpu_is_a_yes() -> None:
    fields = fields_of(WELL)
    assert (failed(fields), overall(fields)) == ((), "yes")
    assert [field.name for field in fields] == [
        "load cuda:0",
        "memory bandwidth cuda:0",
        "float32 products cuda:0",
        "ecc cuda:0",
        "memory repairs cuda:0",
        "errors cuda:0",
    ]
    assert (fields[1].locked, fields[1].measured) == (">=1905 GB/s", "2,600 GB/s")


@pytest.mark.parametrize(
    ("changes", "name", "measured"),
    [
        ({"load": replace(LOAD, memory_held=False)}, "load cuda:0", "wrong"),
        ({"load": replace(LOAD, stable=False)}, "load cuda:0", "wrong"),
        ({"load": replace(LOAD, memory_bandwidth=1904.0)}, "memory bandwidth cuda:0", "1,904 GB/s"),
        ({"load": replace(LOAD, float32=12.3)}, "float32 products cuda:0", "12.3 TFLOP/s"),
        ({"uncorrected": 2}, "ecc cuda:0", "2 uncorrected errors"),
        ({"repairs": ("row remapping pending",)}, "memory repairs cuda:0", "row remapping pending"),
        ({"xids": (79, 48)}, "errors cuda:0", "Xid 79, Xid 48"),
        ({"slowdowns": ("power brake", "temperature")}, "clocks cuda:0", "power brake, temperature"),
    ],
)
def test_each_sign_of_bad_health_is_a_no(changes: dict[str, object], name: str, measured: str) -> None:
    (field,) = failed(fields_of(replace(WELL, **changes)))
    assert (field.name, field.measured, field.verdict) == (name, measured, "no")


def test_a_load_that_raised_an_error_is_a_no_and_one_without_pytorch_unverified() -> None:
    (field,) = failed(fields_of(replace(WELL, load=None, errors={"load": "RuntimeError: CUDA error"})))
    assert (field.verdict, field.note) == ("no", "RuntimeError: CUDA error")
    (field,) = failed(fields_of(replace(WELL, load=None)))
    assert (field.verdict, field.note) == ("unverified", "the lock has no PyTorch to load the GPU with")


def test_figures_that_nobody_published_and_parts_of_gpus_are_not_judged() -> None:
    fields = failed(fields_of(WELL, figures={}))
    assert {field.verdict for field in fields} == {"unverified"}
    assert fields[0].measured == "2,600 GB/s"
    assert fields[0].note == "nobody published what PCI device 2330 reaches"
    fields = failed(fields_of(replace(WELL, part="MIG", load=replace(LOAD, memory_bandwidth=300.0))))
    assert [field.verdict for field in fields] == ["unverified", "unverified"]
    assert fields[0].note == "a part of a GPU (MIG)"


def test_counters_that_could_not_be_read_are_unverified() -> None:
    device = replace(WELL, uncorrected=None, xids=None, repairs=None, errors={"ecc": "a", "xids": "b", "repairs": "c"})
    assert [(field.verdict, field.note) for field in failed(fields_of(device))] == [
        ("unverified", "a"),
        ("unverified", "c"),
        ("unverified", "b"),
    ]


@pytest.mark.parametrize("health", [None, Health(devices=(), errors={"nvml": "OSError: no library"})])
def test_no_device_is_unverified(health: Health | None) -> None:
    (field,) = (one for one in compare(cuda_lock(), with_health(health), figures=H100) if one.level == 5)
    assert (field.name, field.verdict) == ("load", "unverified")
    assert field.note == ("no device to run it on" if health is None else "OSError: no library")


def test_the_matrix_has_figures_for_the_boards_that_most_people_rent() -> None:
    matrix = load_matrix()
    figures = {row.pci_device_id: row for row in matrix.performance}
    boards = {gpu.name: gpu.pci_device_ids for gpu in matrix.gpus}
    for name in ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "Tesla T4", "NVIDIA L4", "NVIDIA A10G", "NVIDIA B200"):
        for identity in boards[name]:
            assert figures[identity].memory_bandwidth, name
