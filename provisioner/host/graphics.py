"""Finds the GPU driver and the GPUs: from the driver's own library, else `nvidia-smi`, else the files of the machine."""

from __future__ import annotations

import lzma
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.host.model import Driver, HostGpu
from provisioner.host.nvml import NvmlAnswer, ask_nvml
from provisioner.host.parse import PciDevice, parse_library_file_name, parse_pci_class, parse_pci_id
from provisioner.host.parse_nvidia import (
    SeenGpu,
    parse_kernel_module,
    parse_kfd_target,
    parse_module_file,
    parse_module_license,
    parse_module_version,
    parse_smi_banner,
    parse_smi_csv,
    parse_tegra_model,
)
from provisioner.host.program import ask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.host.parse_nvidia import Flavour
    from provisioner.host.tree import Tree

NVIDIA, AMD = "10DE", "1002"
"""PCI vendors. Source: the PCI ID repository, pci.ids."""

LIBRARY_DIRECTORIES = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/lib/wsl/lib",
    "usr/lib/aarch64-linux-gnu/nvidia",
    "usr/lib/aarch64-linux-gnu/tegra",
)
"""Where distributions, WSL and Jetson install the libraries of the driver."""

_MODULE_PLACES = ("updates/dkms", "extra", "extra/nvidia", "updates", "kernel/drivers/video", "weak-updates/nvidia")
_QUERIES = ("name,driver_version,pci.device_id,compute_cap", "name,driver_version,pci.device_id")


class Graphics(Struct, frozen=True, kw_only=True):
    """What drives the GPUs and which they are; None is unknown. `notes` say what could not be learned, and why."""

    driver: Driver | None = None
    userspace: str | None = None
    gpus: tuple[HostGpu, ...] | None = None
    notes: tuple[str, ...] = ()


def pci_devices(tree: Tree) -> tuple[PciDevice, ...] | None:
    """List the PCI bus from /sys; None when it cannot be read."""
    names = tree.names("sys/bus/pci/devices")
    if names is None:
        return None
    found = []
    for name in names:
        place = f"sys/bus/pci/devices/{name}"
        vendor = parse_pci_id(tree.text(f"{place}/vendor") or "")
        device = parse_pci_id(tree.text(f"{place}/device") or "")
        kind = parse_pci_class(tree.text(f"{place}/class") or "")
        if vendor and device and kind:
            driver = (tree.link_name(f"{place}/driver") or "").replace("-", "_") or None
            found.append(PciDevice(vendor=vendor, device=device, device_class=kind, driver=driver))
    return tuple(found)


def find_graphics(tree: Tree, *, kernel: str | None, is_wsl: bool, gpu_names: Mapping[str, tuple[str, str]]) -> Graphics:
    """Find the driver and the GPUs of a machine; `gpu_names` maps a PCI device id to product and compute capability."""
    return _Finder(tree, kernel, gpu_names).find(is_wsl=is_wsl)


class _Finder:
    def __init__(self, tree: Tree, kernel: str | None, gpu_names: Mapping[str, tuple[str, str]]) -> None:
        self.tree = tree
        self.kernel = kernel
        self.gpu_names = {identity.upper().removeprefix("0X"): named for identity, named in gpu_names.items()}
        self.notes: list[str] = []

    def find(self, *, is_wsl: bool) -> Graphics:
        answer = self._ask()
        seen = answer.gpus
        devices = pci_devices(self.tree)
        driver = self._nvidia_driver(answer, is_wsl=is_wsl)
        userspace = answer.userspace or self._userspace()
        targets = self._amd_targets()
        on_bus = [device for device in devices or () if device.vendor == NVIDIA and device.is_gpu]
        if seen:
            gpus: tuple[HostGpu, ...] | None = self._grouped(seen)
        elif on_bus:
            gpus = self._from_bus(on_bus, has_answer=seen is not None)
        else:
            gpus = self._without_nvidia(devices, targets, is_wsl=is_wsl)
        if gpus and any(gpu.gfx for gpu in gpus):
            driver = Driver(kind="amdgpu", version=(self.tree.text("sys/module/amdgpu/version") or "").strip() or None)
        elif gpus and targets:
            self.notes.append(f"gpus: {len(targets)} AMD GPU(s) stand beside NVIDIA's and are left out")
        if driver and driver.version and userspace and userspace != driver.version and not is_wsl:
            self.notes.append(f"userspace_driver: libcuda is {userspace}, but the loaded kernel module is {driver.version}")
        return Graphics(driver=driver, userspace=userspace, gpus=gpus, notes=tuple(self.notes))

    def _ask(self) -> NvmlAnswer:
        """Ask the running driver; a saved tree cannot be asked, and a machine without the library has nothing to say."""
        if not self.tree.is_live:
            return NvmlAnswer(is_missing=True)
        answer = ask_nvml()
        if answer.gpus is not None:
            self.notes.extend(f"gpus: {problem}" for problem in answer.problems)
            return answer
        for query in _QUERIES:
            seen = parse_smi_csv(ask("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader") or "")
            if seen:
                return NvmlAnswer(driver=seen[0].driver, gpus=seen)
        if not answer.is_missing:
            self.notes.extend(f"driver: {problem}" for problem in answer.problems)
        # Drivers older than the query still print their version above the table.
        banner = parse_smi_banner(ask("nvidia-smi") or "")
        return replace(answer, driver=banner[0]) if banner else answer

    def _nvidia_driver(self, answer: NvmlAnswer, *, is_wsl: bool) -> Driver | None:
        module = parse_kernel_module(self.tree.text("proc/driver/nvidia/version") or "")
        if module is not None:
            return Driver(version=module.version, module=module.flavour)
        loaded = parse_module_version(self.tree.text("sys/module/nvidia/version") or "")
        if loaded is not None:
            return Driver(version=loaded, module=self._installed()[1])
        if answer.driver is not None:
            if is_wsl:
                self.notes.append(f"driver: {answer.driver} is the number of the Windows driver, which serves WSL")
            return Driver(version=answer.driver)
        installed, _ = self._installed()
        if installed is not None and not is_wsl:
            self.notes.append(f"driver: NVIDIA {installed} is installed for kernel {self.kernel}, but not loaded")
        return None

    def _installed(self) -> tuple[str | None, Flavour | None]:
        """Version and flavour of the module installed for the running kernel, loaded or not."""
        for place in _MODULE_PLACES:
            path = f"lib/modules/{self.kernel}/{place}/nvidia.ko"
            content = self.tree.bytes(path) or _decompressed(self.tree.bytes(f"{path}.xz"))
            if content:
                return parse_module_file(content)
        if not self.tree.is_live:
            return None, None
        # What is left is compressed with zstd, which `modinfo` can read.
        version = parse_module_version(ask("modinfo", "-F", "version", "nvidia") or "")
        return version, parse_module_license(ask("modinfo", "-F", "license", "nvidia") or "")

    def _userspace(self) -> str | None:
        """The version in the file name of libcuda: `libcuda.so.535.104.05`; None when there are several."""
        names = {name for directory in LIBRARY_DIRECTORIES for name in self.tree.names(directory) or ()}
        found = {version for name in names if (version := parse_library_file_name(name, "libcuda"))}
        if len(found) > 1:
            self.notes.append(f"userspace_driver: several libcuda are installed: {', '.join(sorted(found))}")
        return found.pop() if len(found) == 1 else None

    def _grouped(self, seen: tuple[SeenGpu, ...]) -> tuple[HostGpu, ...]:
        counted = Counter(
            (gpu.name, gpu.compute_capability or self._known(gpu.pci_device_id)[1], gpu.pci_device_id) for gpu in seen
        )
        return tuple(
            HostGpu(name=name, compute_capability=capability, pci_device_id=identity, count=count)
            for (name, capability, identity), count in counted.items()
        )

    def _known(self, identity: str | None) -> tuple[str | None, str | None]:
        return self.gpu_names.get(identity or "", (None, None))

    def _from_bus(self, devices: list[PciDevice], *, has_answer: bool) -> tuple[HostGpu, ...]:
        if has_answer:
            self.notes.append(f"gpus: the driver runs none of the {len(devices)} NVIDIA GPU(s) on the PCI bus")
        unknown = sorted({device.device for device in devices if device.device not in self.gpu_names})
        if unknown:
            self.notes.append(f"gpus: no product is known for PCI device {', '.join(unknown)}")
        seen = []
        for device in devices:
            name, capability = self._known(device.device)
            seen.append(SeenGpu(name=name, compute_capability=capability, pci_device_id=device.device))
        return self._grouped(tuple(seen))

    def _amd_targets(self) -> tuple[str, ...]:
        nodes = self.tree.names("sys/class/kfd/kfd/topology/nodes") or ()
        texts = (self.tree.text(f"sys/class/kfd/kfd/topology/nodes/{node}/properties") or "" for node in nodes)
        return tuple(target for text in texts if (target := parse_kfd_target(text)))

    def _without_nvidia(
        self, devices: tuple[PciDevice, ...] | None, targets: tuple[str, ...], *, is_wsl: bool
    ) -> tuple[HostGpu, ...] | None:
        """What a machine whose driver and bus show no NVIDIA GPU has; none at all only when the bus says so."""
        if targets:
            return tuple(HostGpu(gfx=target, count=count) for target, count in Counter(targets).items())
        board = parse_tegra_model(self.tree.text("proc/device-tree/model") or "")
        if board:
            return (HostGpu(name=board, compute_capability=self._capability_of(board)),)
        if is_wsl:
            self.notes.append("gpus: WSL does not show the GPU on its PCI bus, and the driver's library did not answer")
            return None
        if devices is None:
            self.notes.append("gpus: the PCI bus cannot be read")
            return None
        if any(device.vendor == AMD and device.is_gpu for device in devices):
            self.notes.append("gpus: an AMD GPU is on the PCI bus, but amdgpu does not offer it for computing (/sys/class/kfd)")
            return None
        return ()

    def _capability_of(self, name: str) -> str | None:
        return next((capability for known, capability in self.gpu_names.values() if known == name), None)


def _decompressed(content: bytes | None) -> bytes | None:
    try:
        return lzma.decompress(content) if content else None
    except lzma.LZMAError:
        return None
