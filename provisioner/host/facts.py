"""The facts of a host by component: what a profile states of each, and the profile with another value.

A component is stated under the key of its row, as it stands there; those that a profile spells in a way of its own (a driver of
some kind, an operating system with its release) have a reader and a writer here. The rows themselves are below this package and
know no `Host`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from provisioner.components import COMPONENTS
from provisioner.host.model import Driver, Host, Jetson, OperatingSystem, SecureBoot

if TYPE_CHECKING:
    from collections.abc import Callable

_HOLDERS = ("nouveau", "vfio-pci")
"""Modules that hold a GPU for something else than computing, as the matrix names them."""


class Fact(NamedTuple):
    """How a profile spells one component: `read` returns its value, None for none; `write` the host with another one."""

    read: Callable[[Host], str | None]
    write: Callable[[Host, str | None], Host]


def _under_its_key(key: str) -> Fact:
    return Fact(attrgetter(key), lambda host, value: replace(host, **{key: value}))


def _driver(kind: str) -> Fact:
    """The version of a driver of one kind; without it there is no driver."""

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
    """`disabled`; `enrolled` (enabled, and a machine-owner key can sign modules); `enforced` (enabled, and none can)."""
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
    """The first module that holds a GPU for something else; `free` when the list is stated and has none."""
    if host.loaded_modules is None:
        return None
    loaded = {name.replace("_", "-") for name in host.loaded_modules}
    return next((name for name in _HOLDERS if name in loaded), "free")


def _write_loaded_modules(host: Host, value: str | None) -> Host:
    if value is None:
        return replace(host, loaded_modules=None)
    others = tuple(name for name in host.loaded_modules or () if name.replace("_", "-") not in _HOLDERS)
    return replace(host, loaded_modules=others if value == "free" else (value, *others))


def _read_python_arch(host: Host) -> str | None:
    """As the matrix spells it, for Linux and macOS have different words for one architecture."""
    return {"aarch64": "arm64", "amd64": "x86_64"}.get(host.python_arch or "", host.python_arch)


def _write_python_arch(host: Host, value: str | None) -> Host:
    return replace(host, python_arch=value)


def _read_os(host: Host) -> str | None:
    """A Linux distribution with its release: `ubuntu 22.04`, and `arch`, which has none."""
    if host.os is None or host.os.id == "macos":
        return None
    return f"{host.os.id} {host.os.version}" if host.os.version else host.os.id


def _write_os(host: Host, value: str | None) -> Host:
    name, _, version = (value or "").partition(" ")
    return replace(host, os=OperatingSystem(id=name, version=version or None) if name else None)


def _read_macos(host: Host) -> str | None:
    """The release with its build (`10.13.6+17G65`), for a Web Driver goes with one build exactly."""
    system = host.os
    if system is None or system.id != "macos" or system.version is None:
        return None
    return f"{system.version}+{system.build}" if system.build else system.version


def _write_macos(host: Host, value: str | None) -> Host:
    version, _, build = (value or "").partition("+")
    return replace(host, os=OperatingSystem(id="macos", version=version or None, build=build or None))


_SPELLED_IN_ITS_OWN_WAY = {
    **{row.name: _driver(row.driver_kind) for row in COMPONENTS.values() if row.driver_kind},
    "driver_module": Fact(_read_module, _write_module),
    "jetson": Fact(_read_jetson, _write_jetson),
    "secure_boot": Fact(_read_secure_boot, _write_secure_boot),
    "loaded_modules": Fact(_read_loaded_modules, _write_loaded_modules),
    "python_arch": Fact(_read_python_arch, _write_python_arch),
    "os": Fact(_read_os, _write_os),
    "macos": Fact(_read_macos, _write_macos),
}

STATED: dict[str, Fact] = {
    row.name: _SPELLED_IN_ITS_OWN_WAY.get(row.name) or _under_its_key(row.key)
    for row in COMPONENTS.values()
    if row.key not in {"", "gpus", "libraries"}
}
"""Every component of which a profile states one value. GPUs and system libraries are several."""


def stated(host: Host, component: str) -> str | None:
    """What a host states of a component; None where it states nothing, `none` where the thing is known to be missing."""
    fact = STATED.get(component)
    return fact.read(host) if fact is not None else None


def with_fact(host: Host, component: str, value: str | None) -> Host:
    """A host that states this value of a component, or nothing of it (None); raises `KeyError` for what no profile states."""
    return STATED[component].write(host, value)
