"""The GPU products, operating systems and boards of a matrix, and the translation of a host profile's names to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.host.gpu_names import GpuNames
from provisioner.host.model import HostGpu
from provisioner.platforms import JETSON, platform_of
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from provisioner.host.model import Host
    from provisioner.platforms import HostPlatform, PlatformName

_OF_KERNEL = re.compile(r"[-.](aarch64|amd64|arm64|x86_64)$")
"""The machine in the name of a kernel, as RHEL (`5.14.0-503.el9.aarch64`) and Debian (`6.1.0-40-arm64`) write it."""

_FIRST_ON_ARM = 11
"""The first macOS for Macs with an Arm CPU (Apple, "Apple announces Mac transition to Apple silicon", 2020-06-22)."""


class Catalogue:
    """Translates names in a host profile to those of a matrix; `systems` are the matrix's operating systems (`rhel 9`).

    `boards` are releases of Jetson Linux that run on boards of one compute capability alone, each with that capability.
    `modules` are versions that AMD's kernel module calls itself (`6.16.6`), each with the series of the driver (`30.20`);
    `releases` are those of the driver, of which one, 6.2.4, is the number of an older module, too. `platforms` are those of
    every machine with a GPU, by its name or target, for GPUs that are on one module with a CPU.
    """

    def __init__(
        self,
        gpus: GpuNames | None = None,
        *,
        systems: Collection[str] = (),
        boards: Sequence[tuple[Range, str]] = (),
        modules: Mapping[str, str] | None = None,
        releases: Collection[str] = (),
        platforms: Mapping[str, PlatformName] | None = None,
    ) -> None:
        self.gpus = gpus or GpuNames()
        self.modules = modules or {}
        self._stated_modules = {module: series for module, series in self.modules.items() if module not in releases}
        self._systems = frozenset(systems)
        self._boards = boards
        self._platforms = platforms or {}

    def identify(self, host: Host) -> Host:
        """Return a host with the GPU names and targets of the matrix; unknown names are left as they are.

        A Jetson that states its release and no GPUs has the one GPU that the release runs on. If the matrix has the host's own
        operating system, `os.like`, the system that it is derived from, is dropped. For AMD's driver the number of its module,
        which is not that of a release, becomes the series of its releases; a driver that is not told to be of another kind is
        AMD's on a host whose GPUs are all AMD's. A platform that is not stated is the one that other
        facts show: a GPU on one module with a CPU, its system, the name of its kernel.
        """
        if host.gpus is None:
            host = replace(host, gpus=self._of_board(host))
        elif host.gpus:
            host = replace(host, gpus=tuple(map(self.gpus.identify, host.gpus)))
        if host.platform is None:
            shown = set(self.platforms_shown(host).values())
            host = replace(host, platform=shown.pop() if len(shown) == 1 else None)
        driver = host.driver
        if driver is not None and driver.may_be_of_amd and _are_of_amd(host):
            driver = replace(driver, kind="amdgpu")
            host = replace(host, driver=driver)
        if driver is not None and driver.kind == "amdgpu" and driver.version in self._stated_modules:
            host = replace(host, driver=replace(driver, version=self._stated_modules[driver.version]))
        system = host.os
        if system is None or system.like is None or not self._knows(system.id, system.version):
            return host
        return replace(host, os=replace(system, like=None))

    def platforms_shown(self, host: Host) -> dict[str, HostPlatform]:
        """Return the platform of every machine with a fact of a host, by that fact as text, for each that leaves only one.

        The facts are a GPU on one module with a CPU (`GH200 480GB`), the system (`macos 10.13.6`), a driver, and the kernel.
        """
        found = {gpu.name or gpu.target or "": self._platform_of(gpu) for gpu in host.gpus or ()}
        found["jetson"] = JETSON if host.jetson is not None else None
        return {fact: platform for fact, platform in [*found.items(), *_of_system(host)] if platform is not None}

    def _platform_of(self, gpu: HostGpu) -> PlatformName | None:
        return self._platforms.get(gpu.name or "") or self._platforms.get(gpu.target or "")

    def _of_board(self, host: Host) -> tuple[HostGpu, ...] | None:
        """Return the GPU that the Jetson Linux of a host shows; None if it shows none, or several are possible."""
        if host.jetson is None or host.jetson.l4t is None:
            return None
        release = Version.parse(host.jetson.l4t)
        found = next((capability for releases, capability in self._boards if releases.allows(release)), None)
        return (HostGpu(compute_capability=found),) if found is not None else None

    def _knows(self, name: str, version: str | None) -> bool:
        """Return whether the matrix has the release of a system (`ubuntu 22.04`), or its series (`rhel 9` for 9.4)."""
        parts = (version or "").split(".")
        releases = (".".join(parts[:count]) for count in range(len(parts), -1, -1))
        return any(f"{name} {release}".strip() in self._systems for release in releases)


def _are_of_amd(host: Host) -> bool:
    return bool(host.gpus) and all(gpu.accelerator == "rocm" for gpu in host.gpus or ())


def _of_system(host: Host) -> Iterator[tuple[str, HostPlatform | None]]:
    """Yield the system, driver and kernel of a host as text, each with the platform that it shows, None if that stays open.

    A Mac with a GPU of NVIDIA or AMD, a Web Driver or a CUDA driver has an Intel CPU, and so has one with macOS before 11.
    """
    system, driver = host.os, host.driver
    if driver is not None and driver.kind == "webdriver":
        yield f"webdriver {driver.version or ''}".strip(), "macos/x86_64"
    if host.cuda_driver is not None:
        yield f"cuda_driver {host.cuda_driver}", "macos/x86_64"
    if system is not None and system.id == "windows":
        yield "windows", "windows"
    elif system is not None and system.id == "macos":
        major = (system.version or "").partition(".")[0]
        if major.isdecimal() and int(major) < _FIRST_ON_ARM:
            yield f"macos {system.version}", "macos/x86_64"
        for gpu in host.gpus or ():
            yield f"macos with {gpu.name or gpu.target}", "macos/x86_64" if gpu.accelerator else None
    elif (machine := _OF_KERNEL.search(host.kernel or "")) is not None:
        yield f"kernel {host.kernel}", platform_of("linux", machine[1])
