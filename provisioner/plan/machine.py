"""A machine as a plan sees it: facts that can be changed, what follows from a change, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.accelerators import ACCELERATORS
from provisioner.components import ABSENT, COMPONENTS, Move
from provisioner.host.facts import stated, with_fact
from provisioner.resolver.rules.facts import FACTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provisioner.host.model import Host
    from provisioner.request import TargetHost

Facts = dict[str, str]


def _installed_with(component: str) -> tuple[str, ...]:
    """What a component brings along, and what that brings along in turn; the most expensive first."""
    own = [row.name for row in reversed(COMPONENTS.values()) if row.installed_with == component]
    return (*own, *(name for one in own for name in _installed_with(one)))


FOLLOWERS = _installed_with("driver")
"""Installed with the driver, under its very number (rules `userspace-driver-is-of-the-kernel-module` and
`fabric-manager-is-of-the-driver` of the matrix)."""

BROUGHT = _installed_with("os")
"""What a release of a Linux distribution brings along."""

BESIDE = frozenset(row.name for row in COMPONENTS.values() if row.installed_with and row.move is None)
"""What only ever changes along with something else."""

REBUILT = frozenset(row.name for row in COMPONENTS.values() if row.reloads_modules)
"""A change of one of these loads modules anew, so that they must be documented to go together; what runs already, runs."""

PREPARED = tuple(row.name for row in COMPONENTS.values() if row.is_prepared)
"""Facts that stand in a change's way and can be put right beside it."""

CHANGEABLE = tuple(
    row.name
    for row in reversed(COMPONENTS.values())
    if row.move is not None and not row.is_prepared and row.installed_with != row.move
)
"""What a plan may decide to change on a machine, the most expensive first."""


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
    """Which components may be changed on a machine for a stack of an accelerator, the most expensive first.

    A Jetson's driver and kernel are parts of its Jetson Linux, and WSL's kernel is Microsoft's: neither is chosen here. A new
    release of the operating system is a new machine, and is chosen only where `may_change` names it.
    """
    system = "macos" if (machine.host.platform or "").startswith("macos") else "linux"
    fixed = set(keep)
    if machine.host.jetson is not None:
        fixed |= {"driver", "driver_module", "kernel", "os"}
    elif machine.host.virtualization in {"wsl1", "wsl2"}:
        fixed |= {"kernel"}
    if "os" not in may_change:
        fixed |= {"os", "macos"} - may_change
    if "driver" in keep:
        fixed |= {row.name for row in COMPONENTS.values() if row.move is Move.DRIVER}
    return tuple(
        name
        for name in CHANGEABLE
        if name not in fixed
        and system in ACCELERATORS[accelerator].systems & COMPONENTS[name].systems
        and accelerator in COMPONENTS[name].accelerators
    )


def open_host(machine: Machine, free: Sequence[str]) -> Host:
    """The host without the facts of what may be changed, nor of what follows from it: the solver then chooses them."""
    dropped = list(free)
    if set(free) & (REBUILT - {"os"}):
        dropped += PREPARED
    if "os" in free or "macos" in free:
        dropped.append("glibc")
    return without(machine.host, dropped)


def without(host: Host, components: Iterable[str]) -> Host:
    """The host without what it states of some components."""
    for name in components:
        host = with_fact(host, name, None)
    return host


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
    for name in FACTS:
        if facts.get(name) != machine.facts.get(name):
            host = with_fact(host, name, facts.get(name))
    return host
