"""Machines of a plan: the facts they state, the components that may change, and those that change together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.accelerators import ACCELERATORS
from provisioner.components import ABSENT, COMPONENTS, FOLLOWERS, Move
from provisioner.host.facts import stated, with_fact
from provisioner.resolver.rules.facts import FACTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provisioner.host.model import Host
    from provisioner.request import TargetHost

Facts = dict[str, str]
"""The values that a machine has of its components, by the name of the component: `driver` -> `550.54.15`."""


def _installed_with(component: str) -> tuple[str, ...]:
    """Return the components installed with `component`, directly or through another one, the most expensive to change first."""
    own = [row.name for row in reversed(COMPONENTS.values()) if row.installed_with == component]
    return (*own, *(name for one in own for name in _installed_with(one)))


INSTALLED_WITH_OS = _installed_with("os")
"""Components that a release of a Linux distribution contains."""

MODULE_RELOADING = frozenset(row.name for row in COMPONENTS.values() if row.reloads_modules)
"""Components whose change reloads kernel modules, so that the matrix must document driver and kernel to go together."""

REMEDIABLE = tuple(row.name for row in COMPONENTS.values() if row.is_prepared)
"""Components whose value may prevent another change and can be corrected, such as Secure Boot without an enrolled key."""

CHANGEABLE = tuple(
    row.name
    for row in reversed(COMPONENTS.values())
    if row.move is not None and not row.is_prepared and row.installed_with != row.move
)
"""Components that a plan may change on a machine, most expensive first."""


class Machine(Struct, frozen=True, kw_only=True, eq=False):
    """Hosts with equal profiles, which a plan treats as one machine.

    `target` is the first of the hosts, with the file and line of each fact. `names` are the labels of all, `count` is the
    number of real machines behind them, and `facts` has the value of each component that they state.
    """

    target: TargetHost
    names: tuple[str, ...]
    count: int
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The label of the first host."""
        return self.target.label

    @property
    def host(self) -> Host:
        """The profile of the hosts."""
        return self.target.host


def machines_of(targets: Sequence[TargetHost], counts: Sequence[int]) -> tuple[Machine, ...]:
    """Return one machine for each set of hosts with equal profiles, in the order of the first host of each.

    `counts` is the number of real machines behind each host.
    """
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
    """Return the components that a host states, with their values."""
    found = ((name, stated(host, name)) for name in FACTS)
    return {name: value for name, value in found if value is not None}


def changeable_components(
    machine: Machine, accelerator: str, *, keep: frozenset[str], may_change: frozenset[str]
) -> tuple[str, ...]:
    """Return the components that may change on a machine for a stack of an accelerator, most expensive first.

    The driver and kernel of a Jetson come with Jetson Linux, the kernel of WSL with Windows: they do not change. The release of
    the operating system changes only if `may_change` has its component.
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
    """Return the machine's host without the facts of the components in `free` and of those that change with them.

    The resolver then chooses the values.
    """
    dropped = list(free)
    if set(free) & (MODULE_RELOADING - {"os"}):
        dropped += REMEDIABLE
    if "os" in free or "macos" in free:
        dropped.append("glibc")
    return without_facts(machine.host, dropped)


def without_facts(host: Host, components: Iterable[str]) -> Host:
    """Return a host without the facts of some components."""
    for name in components:
        host = with_fact(host, name, None)
    return host


def with_installed_together(facts: Facts, machine: Machine) -> Facts:
    """Return `facts`, a changed state of `machine`, with the components updated that are installed with a changed one.

    Kernel headers, for example, are installed with a kernel.
    """
    found = dict(facts)
    before = machine.facts
    if found.get("driver") != before.get("driver"):
        found.update({name: found["driver"] for name in FOLLOWERS["driver"] if before.get(name, ABSENT) != ABSENT})
    if (
        any(found.get(name) != before.get(name) for name in MODULE_RELOADING)
        and "kernel_headers" in before
        and "kernel" in found
    ):
        found["kernel_headers"] = found["kernel"]
    return found


def changed_host(machine: Machine, facts: Mapping[str, str]) -> Host:
    """Return the profile that `provision inspect` would print on the machine once it has these facts."""
    host = machine.host
    for name in FACTS:
        if facts.get(name) != machine.facts.get(name):
            host = with_fact(host, name, facts.get(name))
    return host
