"""Load every GPU for a while, and print as one line of JSON what it reached and what the driver counted meanwhile.

Runs in a process of its own, with Python 3.7 or newer. The load is PyTorch's; without PyTorch, only what the driver counts is
measured. Counters are NVML's on NVIDIA's GPUs, and those under /sys of the amdgpu module on AMD's.

Usage: python -c HEALTH SECONDS     (of load, for each GPU)
"""

import ctypes
import glob
import json
import os
import sys
import time

# Source of the numbers and structures below: nvml.h of NVIDIA's NVML API Reference.
NOT_SUPPORTED, TIMEOUT = 3, 10
UNCORRECTED, VOLATILE = 1, 0
XID_EVENTS = 0x8
SLOWDOWNS = ((0x8, "hardware"), (0x20, "temperature"), (0x40, "temperature (hardware)"), (0x80, "power brake"))
"""The reasons of nvmlDeviceGetCurrentClocksThrottleReasons for which a healthy, cooled and powered GPU is never slowed down."""

SYS = os.environ.get("PROVISION_SYS", "/sys")


class PciInfo(ctypes.Structure):
    _fields_ = [
        ("old_bus_id", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("device_and_vendor", ctypes.c_uint),
        ("subsystem", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    ]


class Event(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_void_p),
        ("kind", ctypes.c_ulonglong),
        ("data", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


def spelled(error):
    """Return an error in one line, with its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "%s: %s" % (type(error).__name__, " ".join(lines[:4])[:600])


class Nvml(object):
    """The management library of NVIDIA's driver."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.library.nvmlErrorString.restype = ctypes.c_char_p
        self.call("nvmlInit_v2")

    def call(self, name, *arguments):
        """Call a function; return False if the GPU does not support it or time ran out. Raises RuntimeError for other errors."""
        function = getattr(self.library, name, None)
        if function is None:
            return False
        status = function(*arguments)
        if status not in (0, NOT_SUPPORTED, TIMEOUT):
            raise RuntimeError("%s returned %d (%s)" % (name, status, (self.library.nvmlErrorString(status) or b"").decode()))
        return status == 0

    def device(self, bus_id):
        """Return the GPU at a place on the PCI bus."""
        handle = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.encode(), ctypes.byref(handle))
        return handle

    def identity(self, device):
        """Return the PCI device id (`2330`), and whether the GPU is divided (MIG) or shared with other machines (vGPU)."""
        info, current, pending, mode = PciInfo(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_int()
        self.call("nvmlDeviceGetPciInfo_v3", device, ctypes.byref(info))
        self.call("nvmlDeviceGetMigMode", device, ctypes.byref(current), ctypes.byref(pending))
        self.call("nvmlDeviceGetVirtualizationMode", device, ctypes.byref(mode))
        part = "MIG" if current.value else "vGPU" if mode.value >= 2 else ""
        return {"pci_device_id": "%04X" % (info.device_and_vendor >> 16), "part": part}

    def uncorrected(self, device):
        """Return the number of memory errors since the driver was loaded that ECC could not correct; None without ECC."""
        count = ctypes.c_ulonglong()
        read = self.call("nvmlDeviceGetTotalEccErrors", device, UNCORRECTED, VOLATILE, ctypes.byref(count))
        return count.value if read else None

    def memory_repairs(self, device):
        """Return what the GPU's memory waits for: rows to be remapped, a remapping that failed, pages to be retired."""
        corrected, uncorrected, pending, failed = (ctypes.c_uint() for _ in range(4))
        found = []
        numbers = [ctypes.byref(one) for one in (corrected, uncorrected, pending, failed)]
        if self.call("nvmlDeviceGetRemappedRows", device, *numbers):
            found += ["row remapping failed"] if failed.value else []
            found += ["row remapping pending"] if pending.value else []
        waiting = ctypes.c_int()
        if self.call("nvmlDeviceGetRetiredPagesPendingStatus", device, ctypes.byref(waiting)) and waiting.value:
            found.append("page retirement pending")
        return found

    def slowdowns(self, device):
        """Return the reasons for which the GPU is slowed down now that no healthy GPU has."""
        bits = ctypes.c_ulonglong()
        self.call("nvmlDeviceGetCurrentClocksThrottleReasons", device, ctypes.byref(bits))
        return [name for bit, name in SLOWDOWNS if bits.value & bit]

    def listen(self, device):
        """Return a set of events that collects the Xid errors of a GPU from now on; None if the GPU has none."""
        events = ctypes.c_void_p()
        self.call("nvmlEventSetCreate", ctypes.byref(events))
        return events if self.call("nvmlDeviceRegisterEvents", device, ctypes.c_ulonglong(XID_EVENTS), events) else None

    def xids(self, events):
        """Return the Xid errors that were collected."""
        found, event = [], Event()
        while self.call("nvmlEventSetWait_v2", events, ctypes.byref(event), 0) and len(found) < 20:
            found.append(event.data)
        self.call("nvmlEventSetFree", events)
        return found


def bus_ids():
    """Return the place of each GPU on the PCI bus, in the order in which CUDA numbers those that this process sees."""
    library = ctypes.CDLL("libcuda.so.1")
    status = library.cuInit(0)
    if status != 0:
        raise RuntimeError("cuInit returned %d" % status)
    count, text, handle, found = ctypes.c_int(), ctypes.create_string_buffer(32), ctypes.c_int(), []
    library.cuDeviceGetCount(ctypes.byref(count))
    for index in range(count.value):
        library.cuDeviceGet(ctypes.byref(handle), index)
        library.cuDeviceGetPCIBusId(text, 32, handle)
        found.append(text.value.decode())
    return found


class Loader(object):
    """Loads one device of PyTorch, and measures what it reaches. `watch` is called again and again meanwhile."""

    size, elements = 4096, 1 << 26
    """The rows of a matrix, and the numbers of an array whose bandwidth is measured."""

    def __init__(self, torch, device, watch=lambda: None):
        self.torch, self.device, self.watch = torch, device, watch
        self.is_gpu = device.startswith("cuda")

    def wait(self):
        if self.is_gpu:
            self.torch.cuda.synchronize(self.device)

    def products(self, dtype, seconds):
        """Multiply matrices; return the TFLOP/s reached, and whether every product equalled the first one bit for bit."""
        left, right = (self.torch.randn(self.size, self.size, device=self.device).to(dtype) for _ in range(2))
        first, count, same = left @ right, 0, True
        self.wait()
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            for _ in range(10):
                again = left @ right
            count += 10
            same = same and bool(self.torch.equal(again, first))
            self.watch()
        self.wait()
        return 2.0 * self.size**3 * count / (time.perf_counter() - start) / 1e12, same

    def bandwidth(self):
        """Return the GB/s (10^9 bytes) read and written by a sum of two arrays into a third one, STREAM's `triad`."""
        torch = self.torch
        left, right = (torch.ones(self.elements, dtype=torch.float32, device=self.device) for _ in range(2))
        target, best = torch.empty_like(left), 0.0
        for _ in range(5):
            torch.add(left, right, alpha=3.0, out=target)
            self.wait()
            start = time.perf_counter()
            for _ in range(10):
                torch.add(left, right, alpha=3.0, out=target)
            self.wait()
            best = max(best, 10 * 3 * 4 * self.elements / (time.perf_counter() - start) / 1e9)
        return best

    def holds(self, amount):
        """Fill `amount` bytes of memory with a pattern; return whether all of it is still there."""
        pattern = self.torch.full((amount,), 0xA5, dtype=self.torch.uint8, device=self.device)
        return all(bool((piece == 0xA5).all().item()) for piece in pattern.split(1 << 28))

    def run(self, seconds, amount=None):
        """Load the device for about `seconds`; return what it reached. `amount` are the bytes to fill, by default half of the free."""
        if self.is_gpu:
            self.torch.backends.cuda.matmul.allow_tf32 = False
            self.torch.cuda.set_device(self.device)
        float32, same = self.products(self.torch.float32, seconds / 4.0)
        float16, also = self.products(self.torch.float16, seconds * 3 / 4.0)
        rate = self.bandwidth()
        amount = int(self.torch.cuda.mem_get_info(self.device)[0] * 0.5) if amount is None else amount
        return {
            "stable": same and also,
            "memory_held": self.holds(amount),
            "memory_checked": amount,
            "seconds": seconds,
            "float32": round(float32, 4),
            "float16": round(float16, 4),
            "memory_bandwidth": round(rate, 1),
        }


def guarded(found, name, probe, *arguments):
    """Return what a probe returns; record an error under `name` and return None, because a broken stack can raise anything."""
    try:
        return probe(*arguments)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found["errors"][name] = spelled(error)
        return None


def nvidia_health(nvml, device, name, *, torch, seconds):
    """Return the health of one of NVIDIA's GPUs: the counters of the driver before, during and after a load."""
    found = {"device": name, "errors": {}, "slowdowns": [], "xids": None, "load": None}
    found.update(guarded(found, "identity", nvml.identity, device) or {"pci_device_id": "", "part": ""})
    before = guarded(found, "ecc", nvml.uncorrected, device)
    events = guarded(found, "xids", nvml.listen, device)
    seen = set()
    if torch is not None:
        loader = Loader(torch, name, lambda: seen.update(nvml.slowdowns(device)))
        found["load"] = guarded(found, "load", loader.run, seconds)
    found["slowdowns"] = sorted(seen)
    if events is not None:
        found["xids"] = guarded(found, "xids", nvml.xids, events)
    found["uncorrected"] = guarded(found, "ecc", nvml.uncorrected, device)
    found["uncorrected_before"] = before
    found["repairs"] = guarded(found, "repairs", nvml.memory_repairs, device)
    return found


def amd_uncorrected():
    """Return the number of uncorrectable errors of all AMD GPUs that the amdgpu module counts; None if it counts none."""
    total, counted = 0, False
    for path in sorted(glob.glob(SYS + "/class/drm/card*/device/ras/*_err_count")):
        with open(path) as stream:
            for line in stream:
                kind, _, number = line.partition(":")
                if kind.strip() == "ue":
                    total, counted = total + int(number), True
    return total if counted else None


def amd_health(name, torch, seconds):
    found = {"device": name, "errors": {}, "slowdowns": [], "xids": None, "pci_device_id": "", "part": "", "repairs": None}
    found["uncorrected_before"] = guarded(found, "ecc", amd_uncorrected)
    found["load"] = guarded(found, "load", Loader(torch, name).run, seconds)
    found["uncorrected"] = guarded(found, "ecc", amd_uncorrected)
    return found


def import_torch():
    import torch

    return torch


def main(seconds):
    # Libraries may print anything, also from C: redirect stdout to stderr, and keep a copy for the result.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    found = {"devices": [], "errors": {}}
    torch = guarded(found, "torch", import_torch)
    if torch is not None and getattr(torch.version, "hip", None):
        names = ["cuda:%d" % index for index in range(torch.cuda.device_count())]
        found["devices"] = [amd_health(name, torch, seconds) for name in names]
    else:
        torch = torch if torch is not None and torch.version.cuda else None
        nvml = guarded(found, "nvml", Nvml)
        places = guarded(found, "cuda", bus_ids) or []
        for index, place in enumerate(places if nvml is not None else []):
            name = "cuda:%d" % index
            device = guarded(found, name, nvml.device, place)
            if device is not None:
                found["devices"].append(nvidia_health(nvml, device, name, torch=torch, seconds=seconds))
    answer.write(json.dumps(found, sort_keys=True) + "\n")
    answer.flush()
    # Some libraries crash while the interpreter shuts down, after everything has been measured.
    os._exit(0)


if __name__ == "__main__":
    main(float(sys.argv[1]))
