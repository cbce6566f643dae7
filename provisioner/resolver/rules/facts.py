"""When a fact of a host binds what is asked for, and what is chosen where a host states none.

What a component is, and where a host profile states it, is a row of `provisioner.components`; its value on a host is read in
`provisioner.host.facts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.components import COMPONENTS, Move, Supplier
from provisioner.host import parse
from provisioner.host.facts import stated
from provisioner.platforms import PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.components import Component
    from provisioner.host.model import Host
    from provisioner.request import Request

FACTS: dict[str, Component] = {
    row.name: row for row in COMPONENTS.values() if row.is_fact and (row.is_of_host or row.supplier is Supplier.BASE_IMAGE)
}
"""Every component of which a host has one value, stated or not."""

DRIVERS = frozenset(row.name for row in COMPONENTS.values() if row.move in {Move.DRIVER, Move.CUDA_DRIVER})
"""Drivers of one vendor's GPUs: no part of a stack for another's, or for none."""

COMPILERS = frozenset({"gcc", "clang", "xcode"})
"""Host compilers: one of them is used, so that a need of another is no need at all."""

PLACES = {"gpu_kind": "gpus[].name", "driver_version": "driver.version"}
"""Keys of a profile for facts that are no component of their own."""

DRIVER_KINDS = {row.name: row.driver_kind for row in COMPONENTS.values() if row.driver_kind}


def profile_key(fact: str, host: Host | None = None) -> str:
    """Return the key of a profile that states a fact, for who wants to settle it; "" where no profile can state it."""
    if fact == "secure_boot" and host is not None and host.secure_boot is not None:
        return "secure_boot.mok_enrolled"
    return COMPONENTS[fact].key if fact in COMPONENTS else PLACES.get(fact, fact)


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
        wsl = parse.wsl(host.kernel)
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
    return {"aarch64": "arm64"}.get(PLATFORMS[platform].machine, PLATFORMS[platform].machine)


def binds(component: str, request: Request) -> bool:
    """Whether a host's fact about a component matters to the environment that is asked for."""
    row = FACTS.get(component)
    if row is None:
        return True
    return row.binds(request.runs) and is_used(component, request) and _is_for(row, request)


def _is_for(row: Component, request: Request) -> bool:
    return request.accelerator in row.accelerators and request.system in row.systems


def is_at_home(component: str, request: Request) -> bool:
    """Whether a driver could be installed for what is asked for: none of NVIDIA's serves the GPUs of a stack for ROCm."""
    if component not in DRIVERS or not ACCELERATORS[request.accelerator].vendor:
        return True
    return _is_for(COMPONENTS[component], request)


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
    row = FACTS.get(component)
    if row is None or not row.is_chosen or not binds(component, request):
        return False
    return not row.is_build_tool or request.spec.build is not None


def shown(host: Host, request: Request) -> Iterator[tuple[str, str]]:
    """What a host states that belongs to a stack solved for it, although no rule may need it."""
    for name, row in FACTS.items():
        value = stated(host, name)
        is_ours = request.runs == "host" or row.binds("container")
        if value is not None and is_ours and (name not in DRIVERS or request.accelerator in row.accelerators):
            yield name, value
