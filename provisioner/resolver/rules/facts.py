"""Facts of a host as values of the matrix's virtual components: where a profile states each, and when it binds.

A virtual component is one that the host provides and no image installs. This table is the only place that knows which key of
a host profile is which component; a component without a row here cannot be stated by a host, only chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.host.parse import parse_wsl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.host.model import Host
    from provisioner.request import Request

ABSENT = "none"
"""The value of a fact that is known to be missing, such as headers that are not installed."""

DRIVERS = frozenset({"driver", "driver_module", "amdgpu", "webdriver", "cuda_driver"})
"""Drivers of one vendor's GPUs: no part of a stack for another's, or for none."""

COMPILERS = frozenset({"gcc", "clang", "xcode"})
"""Host compilers: one of them is used, so that a need of another is no need at all."""


class FactSource(Struct, frozen=True, kw_only=True):
    """How one virtual component is read from a host.

    `read` returns its value, or None when the host does not say; `place` is the key of the profile that says it. It matters to
    stacks of these `accelerators` on these `systems`. `is_userland`: a container image brings its own, so that the host's
    binds only what runs on the host itself; `is_of_containers`: only what runs in a container. `is_chosen`: what the host
    leaves open is chosen by the solver, because it can be installed; `is_build_tool`: only when something is compiled.
    """

    read: Callable[[Host], str | None]
    place: str
    accelerators: frozenset[str] = frozenset({"cuda", "rocm", "mps", "cpu"})
    systems: frozenset[str] = frozenset({"linux", "macos"})
    is_userland: bool = False
    is_of_containers: bool = False
    is_chosen: bool = False
    is_build_tool: bool = False


def _driver(kind: str) -> Callable[[Host], str | None]:
    return lambda host: host.driver.version if host.driver is not None and host.driver.kind == kind else None


def _driver_module(host: Host) -> str | None:
    return host.driver.module if host.driver is not None else None


def _secure_boot(host: Host) -> str | None:
    """`disabled`; `enrolled` (enabled, and a machine-owner key can sign modules); `enforced` (enabled, and none can)."""
    state = host.secure_boot
    if state is None:
        return None
    if not state.enabled:
        return "disabled"
    return None if state.mok_enrolled is None else "enrolled" if state.mok_enrolled else "enforced"


def _loaded_modules(host: Host) -> str | None:
    """The first module that holds a GPU for something else; `free` when the list is stated and has none."""
    if host.loaded_modules is None:
        return None
    loaded = {name.replace("_", "-") for name in host.loaded_modules}
    return next((name for name in ("nouveau", "vfio-pci") if name in loaded), "free")


def _python_arch(host: Host) -> str | None:
    return {"aarch64": "arm64", "amd64": "x86_64"}.get(host.python_arch or "", host.python_arch)


def _system(host: Host) -> str | None:
    if host.os is None or host.os.id == "macos":
        return None
    return f"{host.os.id} {host.os.version}" if host.os.version else host.os.id


def _macos(host: Host) -> str | None:
    """The release with its build (`10.13.6+17G65`), for a Web Driver goes with one build exactly."""
    system = host.os
    if system is None or system.id != "macos" or system.version is None:
        return None
    return f"{system.version}+{system.build}" if system.build else system.version


_LINUX, _MACOS = frozenset({"linux"}), frozenset({"macos"})
_CUDA, _ROCM, _GPU = frozenset({"cuda"}), frozenset({"rocm"}), frozenset({"cuda", "rocm"})

FACTS: dict[str, FactSource] = {
    "driver": FactSource(read=_driver("nvidia"), place="driver", accelerators=_CUDA, systems=_LINUX, is_chosen=True),
    "driver_module": FactSource(read=_driver_module, place="driver.module", accelerators=_CUDA, systems=_LINUX, is_chosen=True),
    "amdgpu": FactSource(read=_driver("amdgpu"), place="driver", accelerators=_ROCM, systems=_LINUX, is_chosen=True),
    "webdriver": FactSource(read=_driver("webdriver"), place="driver", accelerators=_CUDA, systems=_MACOS, is_chosen=True),
    "cuda_driver": FactSource(
        read=lambda host: host.cuda_driver, place="cuda_driver", accelerators=_CUDA, systems=_MACOS, is_chosen=True
    ),
    "macos": FactSource(read=_macos, place="os", systems=_MACOS, is_chosen=True),
    "sip": FactSource(read=lambda host: host.sip, place="sip", accelerators=_CUDA, systems=_MACOS),
    "kernel": FactSource(read=lambda host: host.kernel, place="kernel", accelerators=_GPU, systems=_LINUX, is_chosen=True),
    "kernel_headers": FactSource(
        read=lambda host: host.kernel_headers, place="kernel_headers", accelerators=_GPU, systems=_LINUX
    ),
    "kernel_gcc": FactSource(read=lambda host: host.kernel_gcc, place="kernel_gcc", accelerators=_GPU, systems=_LINUX),
    "secure_boot": FactSource(read=_secure_boot, place="secure_boot", accelerators=_GPU, systems=_LINUX),
    "loaded_modules": FactSource(read=_loaded_modules, place="loaded_modules", accelerators=_GPU, systems=_LINUX),
    "userspace_driver": FactSource(
        read=lambda host: host.userspace_driver, place="userspace_driver", accelerators=_CUDA, systems=_LINUX
    ),
    "fabric_manager": FactSource(
        read=lambda host: host.fabric_manager, place="fabric_manager", accelerators=_CUDA, systems=_LINUX
    ),
    "container_toolkit": FactSource(
        read=lambda host: host.container_toolkit,
        place="container_toolkit",
        accelerators=_CUDA,
        systems=_LINUX,
        is_of_containers=True,
    ),
    "dcgm": FactSource(read=lambda _: None, place="", accelerators=_CUDA, systems=_LINUX),
    "jetson": FactSource(
        read=lambda host: host.jetson.l4t if host.jetson is not None else None,
        place="jetson",
        accelerators=_CUDA,
        systems=_LINUX,
    ),
    "os": FactSource(read=_system, place="os", systems=_LINUX),
    "python_arch": FactSource(read=_python_arch, place="python_arch", is_userland=True),
    "glibc": FactSource(read=lambda host: host.glibc, place="glibc", systems=_LINUX, is_userland=True, is_chosen=True),
    "gcc": FactSource(
        read=lambda host: host.gcc, place="gcc", systems=_LINUX, is_userland=True, is_chosen=True, is_build_tool=True
    ),
    "clang": FactSource(read=lambda _: None, place="", systems=_LINUX, is_userland=True, is_build_tool=True),
    "xcode": FactSource(
        read=lambda host: host.xcode, place="xcode", systems=_MACOS, is_userland=True, is_chosen=True, is_build_tool=True
    ),
    "nvcc": FactSource(
        read=lambda host: host.nvcc, place="nvcc", accelerators=_CUDA, is_userland=True, is_chosen=True, is_build_tool=True
    ),
}
"""Every component a host can state, but for `gpu`, of which a host may have several."""


def stated(host: Host, component: str) -> str | None:
    """What a host says about a component; None when it does not say, `none` when the thing is known to be missing."""
    source = FACTS.get(component)
    return source.read(host) if source is not None else None


PLACES = {"gpu": "gpus", "gpu_kind": "gpus[].name", "driver_version": "driver.version"}
"""Keys of a profile for what is no component of its own."""

DRIVER_KINDS = {"driver": "nvidia", "amdgpu": "amdgpu", "webdriver": "webdriver"}


def profile_key(fact: str, host: Host | None = None) -> str:
    """Return the key of a profile that states a fact, for who wants to settle it; "" where no profile can state it."""
    if fact == "secure_boot" and host is not None and host.secure_boot is not None:
        return "secure_boot.mok_enrolled"
    source = FACTS.get(fact)
    return PLACES.get(fact, fact) if source is None else source.place


def has_driver_of_some_version(host: Host, component: str) -> bool:
    """Whether a host states that it has such a driver and leaves its version out: it is there, and not to be chosen."""
    driver = host.driver
    return driver is not None and driver.version is None and driver.kind == DRIVER_KINDS.get(component)


def virtualizations(host: Host) -> frozenset[str]:
    """What a host may be: what it states, or what its kernel leaves possible, for only WSL runs kernels of Microsoft's.

    A flavour of NVIDIA's kernel module is stated of Linux alone: in WSL the driver is that of Windows.
    """
    if host.virtualization is not None:
        return frozenset({host.virtualization})
    if host.kernel is not None:
        wsl = parse_wsl(host.kernel)
        return frozenset({wsl}) if wsl is not None else NOT_WSL
    return NOT_WSL if host.driver is not None and host.driver.module is not None else NOT_WSL | WSL


NOT_WSL, WSL = frozenset({"none", "vm", "container"}), frozenset({"wsl1", "wsl2"})


def interpreter(host: Host, platform: str) -> str | None:
    """The architecture of a host's Python; None when it is unstated and may differ from the machine's.

    Apple silicon alone runs programs of the other architecture as a matter of course (Rosetta 2).
    """
    found = stated(host, "python_arch")
    if found is not None or platform == "macos/arm64":
        return found
    return {"amd64": "x86_64", "arm64": "arm64", "x86_64": "x86_64"}[platform.partition("/")[2]]


def binds(component: str, request: Request) -> bool:
    """Whether a host's fact about a component matters to what is requested for."""
    source = FACTS.get(component)
    if source is None:
        return True
    is_ours = request.runs == ("container" if source.is_of_containers else "host") or not (
        source.is_userland or source.is_of_containers
    )
    return (
        is_ours
        and is_used(component, request)
        and request.accelerator in source.accelerators
        and request.system in source.systems
    )


def is_at_home(component: str, request: Request) -> bool:
    """Whether a driver could be installed for what is requested for: none of NVIDIA's serves the GPUs of a stack for ROCm."""
    source = FACTS.get(component)
    if source is None or component not in DRIVERS or request.accelerator == "cpu":
        return True
    return request.accelerator in source.accelerators and request.system in source.systems


def is_used(component: str, request: Request) -> bool:
    """Whether a build tool is used at all: nvcc where something is compiled; of host compilers GCC, unless asked otherwise."""
    requires = request.spec.requires
    if component == "nvcc":
        return request.spec.build is not None or component in requires
    if component == "gcc":
        return component in requires or "clang" not in requires
    return component != "clang" or component in requires


def is_chosen(component: str, request: Request) -> bool:
    """Whether the solver chooses a component that a host leaves open."""
    source = FACTS.get(component)
    if source is None or not source.is_chosen or not binds(component, request):
        return False
    return not source.is_build_tool or request.spec.build is not None


def shown(host: Host, request: Request) -> Iterator[tuple[str, str]]:
    """What a host states that belongs to a stack solved for it, although no rule may need it."""
    for name, source in FACTS.items():
        value = source.read(host)
        is_ours = not source.is_userland or request.runs == "host"
        if value is not None and is_ours and (name not in DRIVERS or request.accelerator in source.accelerators):
            yield name, value
