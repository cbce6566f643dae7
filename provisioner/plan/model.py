"""The types of a plan: its request, its steps, the hosts that the steps are for, and excluded hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.plan.machine import MODULE_RELOADING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.grounds.choice import StepReason
    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.step import Action, ComponentChange, Detail, LastStackNeeds, PlanNote, Undo
    from provisioner.host.model import Host
    from provisioner.plan.state import StackSpec
    from provisioner.request import TargetHost
    from provisioner.resolver.stack import Stack


class PlanRequest(Struct, frozen=True, kw_only=True):
    """A request to plan the changes of hosts of one platform from the `current` stack to the `wanted` one.

    `counts` is the number of machines behind each host. `current` has the versions of today's lock, if there is one. `base` is
    the spec without the newly wanted requirements, from which the last stacks of excluded hosts are chosen. `keep` are
    components of hosts that must not change, `may_change` those that change only if they are named, such as `os`.
    """

    hosts: tuple[TargetHost, ...]
    counts: tuple[int, ...]
    current: StackSpec
    base: StackSpec
    wanted: StackSpec
    keep: frozenset[str] = frozenset()
    may_change: frozenset[str] = frozenset()


FIND_OUT = "find-out"
"""The kind of a step that changes nothing and finds a fact that no profile states."""


class Step(Struct, frozen=True, kw_only=True):
    """One change of a machine, after which the machine works again.

    `kind` is the move (such as `driver`), `software`, `together` or `FIND_OUT`. `why` are the reasons for the step and for its
    position in the order. `changes` has every component that changes in this step (with a driver its kernel modules and
    libraries) with its values before and after; `details` name the packages and the check of the result; `undo` is None if the
    step cannot be undone; `state` has the facts of the machine afterwards. `is_together`: several components change at once,
    because no order of single changes keeps the machine working, so that the machine must be drained first.
    """

    kind: str
    action: Action
    why: tuple[StepReason, ...] = ()
    details: tuple[Detail, ...] = ()
    undo: Undo | None = None
    changes: tuple[ComponentChange, ...] = ()
    is_reboot: bool = False
    is_together: bool = False
    state: Mapping[str, str] = field(default_factory=dict)

    @property
    def component(self) -> str:
        """The main component that the step changes."""
        return self.action.change.component

    @property
    def before(self) -> str:
        """The value of `component` before the step, "" if it has none."""
        return self.action.change.before

    @property
    def after(self) -> str:
        """The value of `component` after the step, "" if it has none."""
        return self.action.change.after


class Exclusion(Struct, frozen=True, kw_only=True):
    """The reason why hosts cannot have the wanted stack, and the last stack that they can have.

    `last` is the best stack by the spec, else by the spec relaxed to any release of its framework or runtime and without
    packages; None if there is neither. `needs` has the changes of the hosts that `last` requires; None without `last`.
    """

    conflict: Conflict
    last: Stack | None = None
    needs: LastStackNeeds | None = None

    @property
    def until(self) -> str:
        """The end of life of the driver branch that `last` runs on, "" if unknown."""
        support = self.needs.support if self.needs is not None else None
        return support.end if support is not None else ""


class HostPlan(Struct, frozen=True, kw_only=True):
    """The plan of hosts that state the same facts: their names, how many machines they are, the steps or the exclusion.

    `profile` holds their facts. `doubts` are what makes the stack at the end of the plan unverified, `assumes` its assumptions.
    """

    hosts: tuple[str, ...]
    count: int
    platform: str
    profile: Host | None = None
    steps: tuple[Step, ...] = ()
    exclusion: Exclusion | None = None
    doubts: tuple[Doubt, ...] = ()
    assumes: tuple[Doubt, ...] = ()
    notes: tuple[PlanNote, ...] = ()

    @property
    def lacks_facts(self) -> bool:
        """Whether the plan depends on a fact that has to be found out first."""
        return any(step.kind == FIND_OUT for step in self.steps)

    @property
    def is_unverified(self) -> bool:
        """Whether the plan depends on a fact that is not known, or the stack at its end is unverified."""
        return bool(self.doubts) or self.lacks_facts

    @property
    def reboots(self) -> int:
        """The number of reboots of the machine."""
        return sum(step.is_reboot for step in self.steps)

    @property
    def drains(self) -> bool:
        """Whether nothing may run on the machine for a while: it reboots, or its GPU's kernel modules are loaded anew."""
        return any(step.is_reboot or step.is_together or step.component in MODULE_RELOADING for step in self.steps)

    @property
    def undo(self) -> str:
        """How much of the plan can be undone: `yes`, `partly` or `no`; "" without a step that changes something."""
        can = [step.undo is not None for step in self.steps if step.kind != FIND_OUT]
        return ("yes" if all(can) else "partly" if any(can) else "no") if can else ""


class Wave(Struct, frozen=True, kw_only=True):
    """Machines that are disturbed alike, so that they are changed together: whether they are drained, how often they reboot."""

    number: int
    drains: bool
    reboots: int
    hosts: tuple[HostPlan, ...]

    @property
    def count(self) -> int:
        """The number of machines."""
        return sum(one.count for one in self.hosts)


def waves_of(plans: Sequence[Plan]) -> tuple[Wave, ...]:
    """Return the machines that follow in waves: those that are disturbed least come first, and show whether the stack works.

    Machines without a step, excluded ones, and those of which a fact has to be found out first are in no wave.
    """
    ready = (one for plan in plans for one in plan.hosts if one.exclusion is None and one.steps and not one.lacks_facts)
    alike: dict[tuple[int, bool], list[HostPlan]] = {}
    for one in ready:
        alike.setdefault((one.reboots, one.drains), []).append(one)
    return tuple(
        Wave(number=number, drains=drains, reboots=reboots, hosts=tuple(some))
        for number, ((reboots, drains), some) in enumerate(sorted(alike.items(), key=lambda item: item[0]), start=1)
    )


class Plan(Struct, frozen=True, kw_only=True):
    """The plan of one platform: the chosen stack, None if no host can have one, and the plan of each class of hosts."""

    platform: str
    wanted: Stack | None
    hosts: tuple[HostPlan, ...]

    @property
    def status(self) -> str:
        """`nothing-to-do`, `possible` (for some hosts at least) or `impossible`."""
        if all(one.exclusion is not None for one in self.hosts):
            return "impossible"
        return "possible" if any(one.exclusion is not None or one.steps for one in self.hosts) else "nothing-to-do"

    @property
    def verdict(self) -> str:
        """`no` if a host is excluded, `unverified` if a fact is missing or the stack at the end is unverified, else `yes`."""
        if any(one.exclusion is not None for one in self.hosts):
            return "no"
        return "unverified" if any(one.is_unverified for one in self.hosts) else "yes"
