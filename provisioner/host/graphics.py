"""Find the GPU driver and the GPUs of a machine: through NVML, else `nvidia-smi`, else from the files of the machine."""

from __future__ import annotations

import lzma
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS
from provisioner.host import parse
from provisioner.host.model import Driver, HostGpu
from provisioner.host.nvml import NvmlAnswer, ask_nvml
from provisioner.host.parse import PciDevice, SeenGpu
from provisioner.host.remark import (
    AmdgpuModule,
    AmdGpusLeftOut,
    DriverMismatch,
    DriverNotLoaded,
    GpuMemory,
    GpusDivided,
    GpusNotRun,
    GpusUnknown,
    GpusWithoutSlices,
    Remark,
    SeveralLibcuda,
    UnknownGpus,
    WindowsDriver,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.host.machine import Machine
    from provisioner.host.parse import Flavour
    from provisioner.host.remark import Builder

NVIDIA, AMD = ACCELERATORS["cuda"].pci_vendor, ACCELERATORS["rocm"].pci_vendor

LIBRARY_DIRECTORIES = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/lib/wsl/lib",
    "usr/lib/aarch64-linux-gnu/nvidia",
    "usr/lib/aarch64-linux-gnu/tegra",
)
"""Directories in which distributions, WSL and Jetson install the libraries of the driver."""

_OF_DKMS = "updates/dkms"
"""Where DKMS puts the modules that it built for a kernel, on Debian and Ubuntu. Source: dkms(8), DEST_MODULE_LOCATION."""

_OF_AKMODS = "extra/nvidia"
"""Where the packages that akmods builds for a kernel have the module, and where it keeps the sources of these packages.

Sources: https://github.com/CachyOS/copr-linux-cachyos/issues/101; a log of akmods in tests/fixtures/logs/held.yaml.
"""
_SOURCES_OF_AKMODS = "usr/src/akmods"

_MODULE_PLACES = (_OF_DKMS, "extra", _OF_AKMODS, "updates", "kernel/drivers/video", "weak-updates/nvidia")
_QUERIES = ("name,driver_version,pci.device_id,compute_cap", "name,driver_version,pci.device_id")


class Graphics(Struct, frozen=True, kw_only=True):
    """The GPUs of a machine and their driver; None means unknown, () no GPU.

    `userspace` is the version of libcuda, and `mig` is as in a host profile. `remarks` are about facts that could not be
    determined or that contradict each other, `unread` about what no rule reads.
    """

    driver: Driver | None = None
    userspace: str | None = None
    gpus: tuple[HostGpu, ...] | None = None
    mig: Literal["undivided"] | None = None
    remarks: tuple[Remark, ...] = ()
    unread: tuple[Remark, ...] = ()


def pci_devices(machine: Machine) -> tuple[PciDevice, ...] | None:
    """Return the devices of the PCI bus, read from /sys; None if it cannot be read."""
    names = machine.names("sys/bus/pci/devices")
    if names is None:
        return None
    found = []
    for name in names:
        place = f"sys/bus/pci/devices/{name}"
        vendor = parse.pci_id(machine.text(f"{place}/vendor"))
        device = parse.pci_id(machine.text(f"{place}/device"))
        kind = parse.pci_class(machine.text(f"{place}/class"))
        if vendor and device and kind:
            driver = machine.link_name(f"{place}/driver").replace("-", "_") or None
            found.append(PciDevice(vendor=vendor, device=device, device_class=kind, driver=driver))
    return tuple(found)


class KnownHardware(NamedTuple):
    """What is known of GPUs and drivers beforehand.

    `gpu_names` maps a PCI device id to product and compute capability, `modules` a version of AMD's kernel module to the series
    of its driver.
    """

    gpu_names: Mapping[str, tuple[str, str]]
    modules: Mapping[str, str]


def find_graphics(machine: Machine, *, kernel: str | None, is_wsl: bool, known: KnownHardware) -> Graphics:
    """Return the driver and the GPUs of a machine."""
    return _Finder(machine, kernel, known, is_wsl=is_wsl).find()


def grouped(seen: tuple[SeenGpu, ...], gpu_names: Mapping[str, tuple[str, str]]) -> tuple[HostGpu, ...]:
    """Return GPUs one by one as kinds of GPUs with their counts.

    `gpu_names` maps a PCI device id to product and compute capability, for a GPU whose driver does not tell them.
    """
    known = {identity.upper().removeprefix("0X"): named for identity, named in gpu_names.items()}
    counted: Counter[tuple[str | None, str | None, str | None]] = Counter()
    for gpu in seen:
        name, capability = known.get(gpu.pci_device_id or "", (None, None))
        counted[gpu.name or name, gpu.compute_capability or capability, gpu.pci_device_id] += 1
    return tuple(
        HostGpu(name=name, compute_capability=capability, pci_device_id=identity, count=count)
        for (name, capability, identity), count in counted.items()
    )


def mig_of(seen: tuple[SeenGpu, ...]) -> Literal["undivided"] | None:
    """Return `undivided` if every GPU is in MIG mode and none has an instance, so that CUDA finds no device; None otherwise."""
    return "undivided" if seen and all(gpu.has_slices is False for gpu in seen) else None


def divided(seen: tuple[SeenGpu, ...]) -> tuple[Remark, ...]:
    """Return the remarks that MIG divides some of the GPUs, and that some are in MIG mode without an instance."""
    empty = sum(gpu.has_slices is False for gpu in seen)
    count = sum(gpu.is_divided is True for gpu in seen) - empty
    found: list[Remark] = [GpusDivided(count=count, total=len(seen))] if count else []
    return (*found, GpusWithoutSlices(count=empty, total=len(seen))) if empty else tuple(found)


def memory(seen: tuple[SeenGpu, ...]) -> tuple[Remark, ...]:
    """Return the remark on the memory of the GPUs; () if it is known of none."""
    sizes = Counter(gpu.memory for gpu in seen if gpu.memory is not None)
    return (GpuMemory(tuple((count, size) for size, count in sizes.items())),) if sizes else ()


class _Finder:
    def __init__(self, machine: Machine, kernel: str | None, known: KnownHardware, *, is_wsl: bool) -> None:
        self._machine = machine
        self._kernel = kernel
        self._gpu_names, self._modules = known
        self._is_wsl = is_wsl
        self._remarks: list[Remark] = []

    def find(self) -> Graphics:
        answer = self._ask()
        seen = answer.gpus
        devices = pci_devices(self._machine)
        driver = self._nvidia_driver(answer)
        userspace = answer.userspace or self._userspace()
        targets = self._amd_targets()
        on_bus = [device for device in devices or () if device.vendor == NVIDIA and device.is_gpu]
        if seen:
            gpus: tuple[HostGpu, ...] | None = grouped(seen, self._gpu_names)
            self._remarks += divided(seen)
        elif on_bus:
            gpus = self._from_bus(on_bus, has_answer=seen is not None)
        else:
            gpus = self._without_nvidia(devices, targets)
        if gpus and any(gpu.gfx for gpu in gpus):
            driver = Driver(kind="amdgpu", version=self._amd_driver())
        elif gpus and targets:
            self._remarks.append(AmdGpusLeftOut(len(targets)))
        if driver and driver.version and userspace and userspace != driver.version and not self._is_wsl:
            self._remarks.append(DriverMismatch(userspace=userspace, module=driver.version))
        return Graphics(
            driver=driver,
            userspace=userspace,
            gpus=gpus,
            mig=mig_of(seen or ()),
            remarks=tuple(self._remarks),
            unread=memory(seen or ()),
        )

    def _ask(self) -> NvmlAnswer:
        """Return what the running driver answers through NVML, else through `nvidia-smi`; for a saved tree, no facts."""
        if not self._machine.is_live:
            return NvmlAnswer(is_missing=True)
        answer = ask_nvml()
        if answer.gpus is not None:
            self._remarks += answer.problems
            return answer
        for query in _QUERIES:
            seen = parse.smi_csv(self._machine.ask("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"))
            if seen:
                return NvmlAnswer(driver=seen[0].driver, gpus=seen)
        if not answer.is_missing:
            self._remarks += answer.problems
        # Drivers older than the query still print their version above the table.
        banner = parse.smi_banner(self._machine.ask("nvidia-smi"))
        return replace(answer, driver=banner[0]) if banner else answer

    def _nvidia_driver(self, answer: NvmlAnswer) -> Driver | None:
        module = parse.kernel_module(self._machine.text("proc/driver/nvidia/version"))
        if module is not None:
            return Driver(version=module.version, module=module.flavour)
        loaded = parse.module_version(self._machine.text("sys/module/nvidia/version"))
        if loaded is not None:
            return Driver(version=loaded, module=self._installed()[1])
        if answer.driver is not None:
            if self._is_wsl:
                self._remarks.append(WindowsDriver(answer.driver))
            return Driver(version=answer.driver)
        installed, _ = self._installed()
        if installed is not None and not self._is_wsl:
            self._remarks.append(DriverNotLoaded(version=installed, kernel=self._kernel, built_by=self._built_by()))
        return None

    def _built_by(self) -> Builder | None:
        """Return what built the module of the running kernel on this machine, by where it lies; None if nothing here did."""
        if self._has(f"lib/modules/{self._kernel}/{_OF_DKMS}", "nvidia.ko"):
            return "DKMS"
        is_of_akmods = self._has(f"lib/modules/{self._kernel}/{_OF_AKMODS}", "nvidia.ko")
        return "akmods" if is_of_akmods and self._has(_SOURCES_OF_AKMODS, "nvidia") else None

    def _has(self, directory: str, begin: str) -> bool:
        """Return whether a directory has a file whose name begins so."""
        return any(name.startswith(begin) for name in self._machine.names(directory) or ())

    def _installed(self) -> tuple[str | None, Flavour | None]:
        """Return version and flavour of the module installed for the running kernel, loaded or not; each None if unknown."""
        for place in _MODULE_PLACES:
            path = f"lib/modules/{self._kernel}/{place}/nvidia.ko"
            content = self._machine.bytes(path) or _decompressed(self._machine.bytes(f"{path}.xz"))
            if content:
                return parse.module_file(content)
        # A module compressed with zstd is left to `modinfo`, which can read it.
        version = parse.module_version(self._machine.ask("modinfo", "-F", "version", "nvidia"))
        return version, parse.module_license(self._machine.ask("modinfo", "-F", "license", "nvidia"))

    def _userspace(self) -> str | None:
        """Return the version in the file name of libcuda (`libcuda.so.535.104.05`); None if there is none or several."""
        names = {name for directory in LIBRARY_DIRECTORIES for name in self._machine.names(directory) or ()}
        found = {version for name in names if (version := parse.library_file_name(name, "libcuda"))}
        if len(found) > 1:
            self._remarks.append(SeveralLibcuda(tuple(sorted(found))))
        return found.pop() if len(found) == 1 else None

    def _from_bus(self, devices: list[PciDevice], *, has_answer: bool) -> tuple[HostGpu, ...]:
        if has_answer:
            self._remarks.append(GpusNotRun(len(devices)))
        found = grouped(tuple(SeenGpu(pci_device_id=device.device) for device in devices), self._gpu_names)
        unknown = sorted({gpu.pci_device_id for gpu in found if gpu.pci_device_id and gpu.name is None})
        if unknown:
            self._remarks.append(UnknownGpus(tuple(unknown)))
        return found

    def _amd_driver(self) -> str | None:
        """Return the release of AMD's driver, from its package or its loaded module; None for the module of the kernel."""
        module = self._machine.text("sys/module/amdgpu/version").strip()
        if not module:
            return None
        package = parse.dpkg_status(self._machine.text("var/lib/dpkg/status")).get("amdgpu-dkms", "")
        is_loaded = package.partition(":")[2].startswith(f"{module}.")
        release = parse.amdgpu_release(package if is_loaded else module) or self._modules.get(module)
        if release is None:
            self._remarks.append(AmdgpuModule(module))
        return release

    def _amd_targets(self) -> tuple[str, ...]:
        nodes = self._machine.names("sys/class/kfd/kfd/topology/nodes") or ()
        texts = (self._machine.text(f"sys/class/kfd/kfd/topology/nodes/{node}/properties") for node in nodes)
        return tuple(target for text in texts if (target := parse.kfd_target(text)))

    def _without_nvidia(self, devices: tuple[PciDevice, ...] | None, targets: tuple[str, ...]) -> tuple[HostGpu, ...] | None:
        """Return the GPUs of a machine on which neither driver nor PCI bus shows an NVIDIA GPU; None if they are unknown.

        `targets` are the gfx targets of the machine's AMD GPUs, `devices` those of the PCI bus (None if it cannot be read). The
        result is () only if the PCI bus can be read and shows no GPU of NVIDIA or AMD.
        """
        if targets:
            return tuple(HostGpu(gfx=target, count=count) for target, count in Counter(targets).items())
        board = parse.tegra_model(self._machine.text("proc/device-tree/model"))
        if board:
            return (HostGpu(name=board, compute_capability=self._capability_of(board)),)
        if self._is_wsl:
            self._remarks.append(GpusUnknown("wsl"))
            return None
        if devices is None:
            self._remarks.append(GpusUnknown("pci"))
            return None
        if any(device.vendor == AMD and device.is_gpu for device in devices):
            self._remarks.append(GpusUnknown("amdgpu"))
            return None
        return ()

    def _capability_of(self, name: str) -> str | None:
        return next((capability for known, capability in self._gpu_names.values() if known == name), None)


def _decompressed(content: bytes | None) -> bytes | None:
    try:
        return lzma.decompress(content) if content else None
    except lzma.LZMAError:
        return None
