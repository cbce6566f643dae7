"""A machine as a plan sees it: facts that can be changed, what follows from a change, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, convert, field
from msgspec.structs import replace

from provisioner.host.model import Driver, Host, OperatingSystem, SecureBoot
from provisioner.resolver.rules.facts import ABSENT, FACTS, stated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.request import TargetHost

Facts = dict[str, str]

FOLLOWERS = ("userspace_driver", "fabric_manager")
"""Installed with the driver, under its very number (rules `userspace-driver-is-of-the-kernel-module` and
`fabric-manager-is-of-the-driver` of the matrix)."""

REBUILT = frozenset({"os", "kernel", "driver", "driver_module", "amdgpu"})
"""A change of one of these loads modules anew, so that they must be documented to go together; what runs already, runs."""

EXPENSE = {
    "cuda": ("os", "kernel", "driver", "driver_module", "container_toolkit"),
    "rocm": ("os", "kernel", "amdgpu"),
    "mps": (),
    "cpu": ("os",),
}
"""What can be changed on a Linux machine, by the accelerator its stack uses: the most expensive change first."""

EXPENSE_ON_MACOS = {"cuda": ("macos", "webdriver", "cuda_driver"), "mps": ("macos",), "cpu": ("macos",), "rocm": ()}

BROUGHT = ("kernel", "kernel_headers", "glibc")
"""What a release of a Linux distribution brings along."""

PREPARED = ("secure_boot", "loaded_modules", "kernel_headers", "gcc", *FOLLOWERS)
"""Facts that stand in a change's way and can be put right beside it."""


class Machine(Struct, frozen=True, kw_only=True, eq=False):
    """Identical hosts: one of them with the places of its facts, the names of all, and what they state."""

    target: TargetHost
    names: tuple[str, ...]
    count: int
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What the class is called: its first host."""
        return self.target.label

    @property
    def host(self) -> Host:
        """The facts as the profile has them."""
        return self.target.host


def machines_of(targets: Sequence[TargetHost], counts: Sequence[int]) -> tuple[Machine, ...]:
    """Collapse hosts that state the same into one machine each, in the order in which they are listed."""
    found: dict[Host, list[int]] = {}
    for index, target in enumerate(targets):
        found.setdefault(target.host, []).append(index)
    return tuple(
        Machine(
            target=targets[members[0]],
            names=tuple(targets[index].label for index in members),
            count=sum(counts[index] for index in members),
            facts=facts_of(host),
        )
        for host, members in found.items()
    )


def facts_of(host: Host) -> Facts:
    """What a host states of the components of a matrix."""
    found = ((name, stated(host, name)) for name in FACTS)
    return {name: value for name, value in found if value is not None}


def movable(machine: Machine, accelerator: str, *, keep: frozenset[str], may_change: frozenset[str]) -> tuple[str, ...]:
    """What may be changed on a machine, the most expensive first.

    A Jetson's driver and kernel are parts of its Jetson Linux, and WSL's kernel is Microsoft's: neither is chosen here.
    """
    is_mac = (machine.host.platform or "").startswith("macos")
    order = EXPENSE_ON_MACOS[accelerator] if is_mac else EXPENSE[accelerator]
    fixed = set(keep)
    if machine.host.jetson is not None:
        fixed |= {"driver", "driver_module", "kernel", "os"}
    elif machine.host.virtualization in {"wsl1", "wsl2"}:
        fixed |= {"kernel"}
    fixed |= {"os", "macos"} - (may_change | ({"macos"} if "os" in may_change else set()))
    if "driver" in keep:
        fixed |= {"driver_module", "amdgpu", "webdriver"}
    return tuple(name for name in order if name not in fixed)


def open_host(machine: Machine, free: Sequence[str]) -> Host:
    """The host with everything left out that may be changed, and what follows from it: the solver then chooses it."""
    if not free:
        return machine.host
    drops: dict[str, object] = {name: None for name in ("kernel", "container_toolkit", "cuda_driver") if name in free}
    if {"kernel", "driver", "amdgpu"} & set(free):
        drops |= dict.fromkeys(("kernel_headers", "secure_boot", "loaded_modules", "gcc", *FOLLOWERS))
    if {"driver", "amdgpu", "webdriver"} & set(free):
        drops["driver"] = None
    elif "driver_module" in free and machine.host.driver is not None:
        drops["driver"] = replace(machine.host.driver, module=None)
    if "os" in free or "macos" in free:
        drops |= {"os": _family(machine.host), "glibc": None}
    return replace(machine.host, **drops)


def unprepared(host: Host) -> Host:
    """The host without the facts that can be put right beside a change: no more is in its way than has to be."""
    return replace(host, **dict.fromkeys(PREPARED))


def _family(host: Host) -> OperatingSystem | None:
    return OperatingSystem(id="macos") if host.os is not None and host.os.id == "macos" else None


def followed(facts: Facts, machine: Machine) -> Facts:
    """The facts after some of them were changed, with those that are installed together with what changed."""
    found = dict(facts)
    before = machine.facts
    if found.get("driver") != before.get("driver"):
        found.update({name: found["driver"] for name in FOLLOWERS if before.get(name, ABSENT) != ABSENT})
    if any(found.get(name) != before.get(name) for name in REBUILT) and "kernel_headers" in before and "kernel" in found:
        found["kernel_headers"] = found["kernel"]
    return found


def changed_host(machine: Machine, facts: Mapping[str, str]) -> Host:
    """The profile of a machine with these facts: what `inspect` would then find there."""
    host = machine.host
    update: dict[str, object] = {}
    plain = ("kernel", "kernel_headers", "container_toolkit", "cuda_driver", "gcc", "glibc", *FOLLOWERS)
    for name in plain:
        if facts.get(name) != machine.facts.get(name):
            update[name] = facts.get(name)
    driver = _driver(host, facts)
    if driver != host.driver:
        update["driver"] = driver
    if facts.get("secure_boot") != machine.facts.get("secure_boot"):
        update["secure_boot"] = SecureBoot(enabled=True, mok_enrolled=True)
    if facts.get("loaded_modules") != machine.facts.get("loaded_modules"):
        held = {"nouveau", "vfio-pci", "vfio_pci"}
        update["loaded_modules"] = tuple(name for name in host.loaded_modules or () if name not in held)
    for name in ("os", "macos"):
        if facts.get(name) != machine.facts.get(name) and facts.get(name):
            update["os"] = _system(name, facts[name])
    return replace(host, **update) if update else host


def _driver(host: Host, facts: Mapping[str, str]) -> Driver | None:
    module = facts.get("driver_module")
    for component, kind in (("driver", "nvidia"), ("amdgpu", "amdgpu"), ("webdriver", "webdriver")):
        if component in facts:
            values = {"version": facts[component], "kind": kind, "module": module if kind == "nvidia" else None}
            return convert(values, Driver)
    return host.driver


def _system(component: str, value: str) -> OperatingSystem:
    if component == "macos":
        version, _, build = value.partition("+")
        return OperatingSystem(id="macos", version=version, build=build or None)
    name, _, version = value.partition(" ")
    return OperatingSystem(id=name, version=version or None)
