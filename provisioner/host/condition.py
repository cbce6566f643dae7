"""The condition of a machine: what is installed and reachable beside the facts of its profile, for whoever looks for a fault.

No rule of the matrix reads any of it, so that none of it is a key of a host profile. Files are read, no program is run, and
nothing needs root.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from provisioner.accelerators import ACCELERATORS
from provisioner.host import parse
from provisioner.host.graphics import LIBRARY_DIRECTORIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.host.machine import Machine
    from provisioner.host.model import Host

Found = TypeVar("Found", bound=tuple[Any, ...])

_CDI_DIRECTORIES = ("etc/cdi", "run/cdi")
"""Where CDI specifications are by default. Source: Container Device Interface, SPEC.md, and docs of nvidia-ctk cdi."""

_DKMS = "var/lib/dkms"
_DKMS_MODULES = re.compile(r"nvidia(-srv|-open|-current.*|-tesla.*|-legacy.*)?|amdgpu")
"""The names under which packages register the GPU's driver with DKMS; nvidia-fs and nvidia-peermem are modules beside it."""

_WSL_LIBRARY = "usr/lib/wsl/lib/libcuda.so.1"
_WSL_DEVICE = "dev/dxg"
"""The device through which Linux in WSL 2 reaches the GPU. Source: CUDA on WSL User Guide."""

_CUDA_DEVICES = ("dev/nvidiactl", "dev/nvidia-uvm")
_MAKER_OF_DEVICES = "nvidia-modprobe"
"""The program with which programs make the device files of NVIDIA's driver where they are missing, and the package that has it.

Source: NVIDIA CUDA Installation Guide for Linux, Device Node Verification.
"""

_DPKG = "var/lib/dpkg/status"
_LINUX_DRIVER = re.compile(
    r"(lib)?nvidia-(compute|cfg1|common|decode|dkms|driver|encode|extra|fbc1|firmware|gl|headless|kernel|utils)-.+"
)
"""The packages of a driver for Linux on Debian and Ubuntu."""

_ENGINES = ("docker", "podman", "nerdctl", "containerd", "crio", "apptainer", "singularity", "enroot")
_PROGRAM_DIRECTORIES = ("usr/bin", "usr/local/bin", "usr/sbin")


class DkmsModule(Struct, frozen=True, kw_only=True):
    """A driver that is registered with DKMS under `name`, and the kernels that it has been built for."""

    name: str
    version: str
    kernels: tuple[str, ...] = ()


class CdiSpec(Struct, frozen=True, kw_only=True):
    """A CDI specification of NVIDIA's GPUs; `driver` is the release whose files it mounts, None if their names do not tell."""

    file: str
    driver: str | None = None


class Condition(Struct, frozen=True, kw_only=True):
    """What is installed and reachable on a machine beside its facts; None is unknown, () is none.

    `kernels` are the kernels whose modules are installed. `missing_devices` are device files of the accelerator that are not
    there, `forbidden_devices` those that this user may not open, and `device_groups` the groups that may. `wsl_library` is
    whether the libcuda of Windows is there, None outside of WSL. `linux_driver` are the files of libcuda of a driver for Linux
    in WSL, and `linux_driver_packages` the packages of it.
    """

    kernels: tuple[str, ...] | None = None
    dkms: tuple[DkmsModule, ...] | None = None
    cdi: tuple[CdiSpec, ...] | None = None
    engines: tuple[str, ...] | None = None
    missing_devices: tuple[str, ...] = ()
    forbidden_devices: tuple[str, ...] = ()
    device_groups: tuple[str, ...] = ()
    wsl_library: bool | None = None
    linux_driver: tuple[str, ...] = ()
    linux_driver_packages: tuple[str, ...] = ()


def read_condition(machine: Machine, host: Host) -> Condition:
    """Return the condition of a machine whose facts are `host`."""
    is_wsl = host.virtualization == "wsl2"
    devices = _devices(host)
    is_listed = machine.names("dev") is not None
    forbidden = tuple(path for path in devices if machine.is_live and machine.exists(path) and not _may_open(path))
    return Condition(
        kernels=machine.names("lib/modules"),
        dkms=_if_seen(machine, (_DKMS,), tuple(_dkms(machine))),
        cdi=_if_seen(machine, _CDI_DIRECTORIES, tuple(_cdi(machine))),
        engines=_if_seen(machine, _PROGRAM_DIRECTORIES, tuple(_engines(machine))),
        missing_devices=tuple(
            f"/{path}" for path in (*_needed(host), *_unmade(machine, host)) if is_listed and not machine.exists(path)
        ),
        forbidden_devices=tuple(f"/{path}" for path in forbidden),
        device_groups=_groups_of(machine, forbidden),
        wsl_library=machine.exists(_WSL_LIBRARY) if is_wsl else None,
        linux_driver=tuple(_linux_driver(machine)) if is_wsl else (),
        linux_driver_packages=tuple(filter(_LINUX_DRIVER.fullmatch, _packages(machine))) if is_wsl else (),
    )


def _if_seen(machine: Machine, folders: Iterable[str], found: Found) -> Found | None:
    """Return what was found in folders; None if nothing was, and one of them, which may hold something, was not seen."""
    return found if found or all(_is_seen(machine, folder) for folder in folders) else None


def _is_seen(machine: Machine, folder: str) -> bool:
    """Return whether a folder can be listed, or is known not to be there: the nearest folder above it does not have it.

    A saved tree may leave out what the machine has, so that a folder without it proves nothing.
    """
    if machine.names(folder) is not None:
        return True
    above, _, name = folder.rpartition("/")
    names = machine.names(above)
    return machine.is_live and (name not in names if names is not None else bool(above) and _is_seen(machine, above))


def _engines(machine: Machine) -> Iterator[str]:
    return (name for name in _ENGINES if any(machine.exists(f"{folder}/{name}") for folder in _PROGRAM_DIRECTORIES))


def _needed(host: Host) -> tuple[str, ...]:
    """Return the device files without which no GPU of the host computes.

    NVIDIA's are left out: its driver makes them when they are needed (nvidia-modprobe).
    """
    if host.virtualization == "wsl2":
        return (_WSL_DEVICE,)
    names = {gpu.accelerator for gpu in host.gpus or ()} or {"rocm"} & _kind(host)
    return tuple(path.lstrip("/") for name in sorted(names - {None}, key=str) for path in ACCELERATORS[str(name)].device_files)


def _unmade(machine: Machine, host: Host) -> tuple[str, ...]:
    """Return the device file of NVIDIA's driver if nothing makes it: in a container, and without the program that does."""
    is_loaded = host.driver is not None and host.driver.kind == "nvidia" and host.driver.version is not None
    if not is_loaded or host.jetson is not None or host.virtualization in {"wsl1", "wsl2"}:
        return ()
    packages = _packages(machine)
    has_maker = _MAKER_OF_DEVICES in packages or any(
        machine.exists(f"{folder}/{_MAKER_OF_DEVICES}") for folder in _PROGRAM_DIRECTORIES
    )
    is_known = bool(packages) or machine.is_live
    return _CUDA_DEVICES[:1] if host.virtualization == "container" or (is_known and not has_maker) else ()


def _packages(machine: Machine) -> tuple[str, ...]:
    return tuple(parse.dpkg_status(machine.text(_DPKG)))


def _linux_driver(machine: Machine) -> Iterator[str]:
    """Yield the files of libcuda of a driver for Linux; that of Windows is in a folder of its own."""
    for folder in LIBRARY_DIRECTORIES:
        for name in machine.names(folder) or () if not folder.startswith("usr/lib/wsl/") else ():
            if parse.library_file_name(name, "libcuda"):
                yield f"/{folder}/{name}"


def _kind(host: Host) -> set[str]:
    return {row.name for row in ACCELERATORS.values() if host.driver is not None and host.driver.kind in row.drivers}


def _devices(host: Host) -> tuple[str, ...]:
    return (*_needed(host), *_CUDA_DEVICES)


def _may_open(path: str) -> bool:
    """Return whether this user may read and write a device file; of a folder of device files, whether one for computing."""
    place = Path("/") / path
    try:
        files = sorted(place.glob("render*")) if place.is_dir() else [place]
    except OSError:
        return False
    return not files or any(os.access(file, os.R_OK | os.W_OK) for file in files)


def _groups_of(machine: Machine, forbidden: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups to which `forbidden` device files of this machine belong, by name, without root's."""
    text = machine.text("etc/group")
    found: dict[str, None] = {}
    for path in forbidden:
        try:
            number = (Path("/") / path).stat().st_gid
        except OSError:
            continue
        if number:
            found.update(dict.fromkeys(parse.groups_numbered(text, number)))
    return tuple(found)


def _dkms(machine: Machine) -> Iterator[DkmsModule]:
    """Yield the GPU drivers that DKMS knows: /var/lib/dkms/NAME/VERSION/KERNEL/ARCHITECTURE/module is a module that was built.

    Source: dkms(8), the tree under /var/lib/dkms.
    """
    for name in machine.names(_DKMS) or ():
        if not _DKMS_MODULES.fullmatch(name):
            continue
        for version in machine.names(f"{_DKMS}/{name}") or ():
            place = f"{_DKMS}/{name}/{version}"
            if not version[:1].isdigit():
                continue  # `kernel-6.8.0-60-generic-x86_64` is a link to what is installed
            kernels = (kernel for kernel in machine.names(place) or () if kernel not in {"build", "source"})
            built = tuple(kernel for kernel in kernels if _is_built(machine, f"{place}/{kernel}"))
            yield DkmsModule(name=name, version=version, kernels=built)


def _is_built(machine: Machine, place: str) -> bool:
    return any(machine.names(f"{place}/{folder}/module") for folder in machine.names(place) or ())


def _cdi(machine: Machine) -> Iterator[CdiSpec]:
    kind = ACCELERATORS["cuda"].cdi_kind
    for folder in _CDI_DIRECTORIES:
        for name in machine.names(folder) or ():
            if not name.endswith((".yaml", ".yml", ".json")):
                continue
            is_ours, driver = parse.cdi_driver(machine.text(f"{folder}/{name}"), kind)
            if is_ours:
                yield CdiSpec(file=f"/{folder}/{name}", driver=driver)
