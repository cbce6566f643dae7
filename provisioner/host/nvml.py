"""Query NVIDIA's management library (NVML, libnvidia-ml.so.1) through ctypes; failures become remarks, not exceptions."""

from __future__ import annotations

import ctypes

from msgspec import Struct

from provisioner.host import parse
from provisioner.host.parse import SeenGpu
from provisioner.host.remark import GpuSilent, NvmlFailed, NvmlNotLoadable, NvmlProblem

LIBRARY = "libnvidia-ml.so.1"

_NOT_FOUND = 6
"""NVML_ERROR_NOT_FOUND of nvml.h."""

_MOST_INSTANCES = 8
"""The most MIG devices of one GPU, as libnvidia-container counts them (MAX_MIG_DEVICES); NVIDIA's GPUs have seven at most."""

_TEXT_BYTES = 96
"""NVML_DEVICE_NAME_V2_BUFFER_SIZE, the size of the longest text that is queried."""


class _PciInfo(ctypes.Structure):
    """nvmlPciInfo_t, as nvml.h lays it out for nvmlDeviceGetPciInfo_v3."""

    _fields_ = (
        ("bus_id_legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("pci_device_id", ctypes.c_uint),
        ("pci_subsystem_id", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    )


class _Memory(ctypes.Structure):
    """nvmlMemory_t; all in bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class NvmlAnswer(Struct, frozen=True, kw_only=True):
    """The facts that NVML reports, and its failures.

    `userspace` is the version of the user-space driver. `gpus` is None if NVML could not be queried; `is_missing` is whether
    the library is not installed.
    """

    driver: str | None = None
    userspace: str | None = None
    gpus: tuple[SeenGpu, ...] | None = None
    problems: tuple[NvmlProblem, ...] = ()
    is_missing: bool = False


def ask_nvml() -> NvmlAnswer:
    """Load NVML and return its answer: the versions of the driver and of its user-space part, every GPU, and failures."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        is_missing = "No such file" in str(error) or "cannot open shared object" in str(error)
        return NvmlAnswer(is_missing=is_missing, problems=(NvmlNotLoadable(str(error)),))
    nvml = _Nvml(library)
    code = nvml.call("nvmlInit_v2")
    if code != 0:
        return NvmlAnswer(problems=(NvmlFailed("initialise", code),))
    try:
        return nvml.answer()
    finally:
        nvml.call("nvmlShutdown")


class _Nvml:
    """The loaded and initialised NVML library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def call(self, name: str, *arguments: object) -> int:
        """Call the function `name` and return its code; 13 (FUNCTION_NOT_FOUND in nvml.h) if the library lacks the function."""
        function = getattr(self.library, name, None)
        return 13 if function is None else int(function(*arguments))

    def answer(self) -> NvmlAnswer:
        count = ctypes.c_uint()
        code = self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        problems: list[NvmlProblem] = [] if code == 0 else [NvmlFailed("count", code)]
        gpus: list[SeenGpu] = []
        for index in range(0 if code else count.value):
            handle = ctypes.c_void_p()
            failed = self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            if failed:
                problems.append(GpuSilent(index=index, count=count.value, code=failed))
                gpus.append(SeenGpu())
                continue
            gpus.append(self._gpu(handle))
        return NvmlAnswer(
            driver=self._system("nvmlSystemGetDriverVersion"),
            userspace=parse.nvml_version(self._system("nvmlSystemGetNVMLVersion") or ""),
            gpus=tuple(gpus) if code == 0 else None,
            problems=tuple(problems),
        )

    def _system(self, name: str) -> str | None:
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        return _words(text) if self.call(name, text, ctypes.c_uint(_TEXT_BYTES)) == 0 else None

    def _gpu(self, handle: ctypes.c_void_p) -> SeenGpu:
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        name = _words(text) if self.call("nvmlDeviceGetName", handle, text, ctypes.c_uint(_TEXT_BYTES)) == 0 else None
        major, minor = ctypes.c_int(), ctypes.c_int()
        code = self.call("nvmlDeviceGetCudaComputeCapability", handle, ctypes.byref(major), ctypes.byref(minor))
        pci = _PciInfo()
        failed = self.call("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(pci))
        memory, mig, pending = _Memory(), ctypes.c_uint(), ctypes.c_uint()
        has_memory = self.call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory)) == 0
        may_divide = self.call("nvmlDeviceGetMigMode", handle, ctypes.byref(mig), ctypes.byref(pending)) == 0
        return SeenGpu(
            name=name,
            compute_capability=f"{major.value}.{minor.value}" if code == 0 else None,
            # The device id is in the upper half, the vendor id in the lower: 0x233010DE.
            pci_device_id=f"{pci.pci_device_id >> 16:04X}" if not failed else None,
            memory=memory.total >> 20 if has_memory else None,
            is_divided=bool(mig.value) if may_divide else None,
            has_slices=self._has_slices(handle) if may_divide and mig.value else None,
        )

    def _has_slices(self, handle: ctypes.c_void_p) -> bool | None:
        """Return whether a GPU in MIG mode has an instance; None if the library does not say, or names an impossible number."""
        most = ctypes.c_uint()
        if self.call("nvmlDeviceGetMaxMigDeviceCount", handle, ctypes.byref(most)) or most.value > _MOST_INSTANCES:
            return None
        codes = {
            self.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, ctypes.c_uint(at), ctypes.byref(ctypes.c_void_p()))
            for at in range(most.value)
        }
        return True if 0 in codes else False if codes == {_NOT_FOUND} else None


def _words(text: ctypes.Array[ctypes.c_char]) -> str | None:
    return text.value.decode("utf-8", "replace").strip() or None
