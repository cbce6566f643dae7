"""Read and replace the facts of a host: the value that its profile states for each component.

Most components are a key of the profile of their own, named in the component's row of `provisioner.components`. Components that
a profile spells otherwise (a driver of a certain kind, an operating system with its release) have a reader and a writer here,
because that module does not know `Host`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from provisioner.components import ABSENT, COMPONENTS, FOLLOWERS, PRESENT
from provisioner.host.model import Driver, Host, Jetson, OperatingSystem, SecureBoot
from provisioner.host.parse import GPU_HOLDERS, HANDED_ON, NVIDIA_MODULE

if TYPE_CHECKING:
    from collections.abc import Callable

HOLDERS = tuple(name.replace("_", "-") for name in GPU_HOLDERS)
"""Kernel modules that occupy an NVIDIA GPU in place of a driver for computing, spelled as in the matrix."""

_HOLDERS_OF_AMD = tuple(name.replace("_", "-") for name in HANDED_ON)
"""Kernel modules that occupy an AMD GPU, spelled as in the matrix.

nouveau is not among them because it drives NVIDIA's GPUs only, nor radeon, because no GPU that it drives runs ROCm.
"""


class Fact(NamedTuple):
    """Access to the fact about one component in a host profile.

    `read` returns the value that the profile states, None if it states none; `write` returns the host with another value, or
    with the value removed (None).
    """

    read: Callable[[Host], str | None]
    write: Callable[[Host, str | None], Host]


def _under_its_key(key: str) -> Fact:
    return Fact(attrgetter(key), lambda host, value: replace(host, **{key: value}))


def _driver(kind: str) -> Fact:
    """Return the access to the version of a driver of `kind` (`Driver.kind`); writing None removes the driver from the host."""

    def read(host: Host) -> str | None:
        return host.driver.version if host.driver is not None and host.driver.kind == kind else None

    def write(host: Host, value: str | None) -> Host:
        driver = replace(host.driver or Driver(), version=value, kind=kind) if value is not None else None
        return replace(host, driver=driver)

    return Fact(read, write)


def _read_module(host: Host) -> str | None:
    return host.driver.module if host.driver is not None else None


def _write_module(host: Host, value: str | None) -> Host:
    if value is None and host.driver is None:
        return host
    return replace(host, driver=replace(host.driver or Driver(), module=value))


def _read_jetson(host: Host) -> str | None:
    return host.jetson.l4t if host.jetson is not None else None


def _write_jetson(host: Host, value: str | None) -> Host:
    return replace(host, jetson=replace(host.jetson or Jetson(), l4t=value))


def _read_secure_boot(host: Host) -> str | None:
    """Return the state of Secure Boot: `disabled`, `enrolled` or `enforced`; None if it is not known.

    `enrolled` is enabled with an enrolled machine-owner key, which can sign modules; `enforced` is enabled without one.
    """
    state = host.secure_boot
    if state is None:
        return None
    if not state.enabled:
        return "disabled"
    return None if state.mok_enrolled is None else "enrolled" if state.mok_enrolled else "enforced"


def _write_secure_boot(host: Host, value: str | None) -> Host:
    if value in {None, "disabled"}:
        return replace(host, secure_boot=SecureBoot(enabled=False) if value else None)
    return replace(host, secure_boot=SecureBoot(enabled=True, mok_enrolled=value == "enrolled"))


def _read_loaded_modules(host: Host) -> str | None:
    """Return a loaded kernel module that occupies the GPUs of the host, `free` if no loaded module does.

    Where NVIDIA's own module is loaded it drives a GPU, and another one beside it has another card. None if the profile does
    not list the loaded modules.
    """
    if host.loaded_modules is None:
        return None
    loaded = {name.replace("_", "-") for name in host.loaded_modules}
    is_of_amd = bool(host.gpus) and all(gpu.accelerator == "rocm" for gpu in host.gpus or ())
    if NVIDIA_MODULE in loaded and not is_of_amd:
        return "free"
    return next((name for name in (_HOLDERS_OF_AMD if is_of_amd else HOLDERS) if name in loaded), "free")


def _write_loaded_modules(host: Host, value: str | None) -> Host:
    if value is None:
        return replace(host, loaded_modules=None)
    gone = HOLDERS if value == "free" else (*HOLDERS, NVIDIA_MODULE)
    others = tuple(name for name in host.loaded_modules or () if name.replace("_", "-") not in gone)
    return replace(host, loaded_modules=others if value == "free" else (value, *others))


def _read_python_arch(host: Host) -> str | None:
    """Return the architecture of Python as the matrix spells it, because Linux and macOS spell one architecture differently."""
    return {"aarch64": "arm64", "amd64": "x86_64"}.get(host.python_arch or "", host.python_arch)


def _write_python_arch(host: Host, value: str | None) -> Host:
    return replace(host, python_arch=value)


def _read_os(host: Host) -> str | None:
    """Return the host's Linux distribution and its release, such as `ubuntu 22.04`; None for macOS or an unknown system.

    A distribution without releases is its name alone, such as `arch`; a derivative counts as the system it is derived from.
    """
    if host.os is None or host.os.id == "macos":
        return None
    if host.os.like:
        return host.os.like
    return f"{host.os.id} {host.os.version}" if host.os.version else host.os.id


def _write_os(host: Host, value: str | None) -> Host:
    name, _, version = (value or "").partition(" ")
    return replace(host, os=OperatingSystem(id=name, version=version or None) if name else None)


def _read_macos(host: Host) -> str | None:
    """Return the host's release of macOS and its build, such as `10.13.6+17G65`; None for Linux or an unknown release.

    The build is included because each release of the Web Driver is for exactly one build.
    """
    system = host.os
    if system is None or system.id != "macos" or system.version is None:
        return None
    return f"{system.version}+{system.build}" if system.build else system.version


def _write_macos(host: Host, value: str | None) -> Host:
    version, _, build = (value or "").partition("+")
    return replace(host, os=OperatingSystem(id="macos", version=version or None, build=build or None))


def _read_toolkit(host: Host) -> str | None:
    """Return the version of the container toolkit, `none` if it is missing; None if its version is unknown."""
    return None if host.container_toolkit == PRESENT else host.container_toolkit


_SPELLED_IN_ITS_OWN_WAY = {
    **{row.name: _driver(row.driver_kind) for row in COMPONENTS.values() if row.driver_kind},
    "driver_module": Fact(_read_module, _write_module),
    "jetson": Fact(_read_jetson, _write_jetson),
    "secure_boot": Fact(_read_secure_boot, _write_secure_boot),
    "loaded_modules": Fact(_read_loaded_modules, _write_loaded_modules),
    "python_arch": Fact(_read_python_arch, _write_python_arch),
    "container_toolkit": Fact(_read_toolkit, lambda host, value: replace(host, container_toolkit=value)),
    "os": Fact(_read_os, _write_os),
    "macos": Fact(_read_macos, _write_macos),
}

STATED: dict[str, Fact] = {
    row.name: _SPELLED_IN_ITS_OWN_WAY.get(row.name) or _under_its_key(row.key)
    for row in COMPONENTS.values()
    if row.key not in {"", "gpus", "libraries"}
}
"""Every component of which a profile states a single value, with its access; GPUs and system libraries are lists."""


def stated(host: Host, component: str) -> str | None:
    """Return the value that a host's profile states for a component; `none` if the part is known to be missing.

    None if the profile states no value or profiles have no key for the component.
    """
    fact = STATED.get(component)
    return fact.read(host) if fact is not None else None


def with_fact(host: Host, component: str, value: str | None) -> Host:
    """Return the host with `value` as the fact about a component, or with that fact removed (None).

    Raises `KeyError` for a component that profiles do not state.
    """
    return STATED[component].write(host, value)


def following(host: Host, component: str) -> tuple[str, ...]:
    """Return the components of a host that are installed with `component` and therefore change with it, as far as it has any.

    A component that the profile does not state, or states as missing, is none of them.
    """
    return tuple(name for name in FOLLOWERS.get(component, ()) if stated(host, name) not in {None, ABSENT})


def with_change(host: Host, component: str, value: str | None) -> Host:
    """Return the host after a change of a component to `value`, or without the fact about it (None).

    What is installed with the component changes with it. Raises `KeyError` for a component that profiles do not state.
    """
    for name in (component, *following(host, component)):
        host = with_fact(host, name, value)
    return host
