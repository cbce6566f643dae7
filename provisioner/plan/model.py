"""The types of a plan: its request, its steps, the hosts that the steps are for, and excluded hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.grounds.choice import StepReason
    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.doubt import Doubt
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


class ComponentChange(NamedTuple):
    """A component with its values before and after a step, "" if it has none."""

    component: str
    before: str
    after: str


class Step(Struct, frozen=True, kw_only=True):
    """One change of a machine, after which the machine works again.

    `before` and `after` are the values of `component`, "" if it has none. `changes` has every component that changes in this
    step (with a driver its kernel modules and libraries) with its values before and after; `details` name the packages, the
    check of the result and how to undo the step; `state` has the facts of the machine afterwards. `is_together`: several
    components change at once, because no order of single changes keeps the machine working, so it must be drained first.
    """

    kind: str
    component: str
    before: str
    after: str
    text: str
    why: tuple[StepReason, ...] = ()
    details: tuple[str, ...] = ()
    changes: tuple[ComponentChange, ...] = ()
    is_reboot: bool = False
    is_together: bool = False
    state: Mapping[str, str] = field(default_factory=dict)


class Exclusion(Struct, frozen=True, kw_only=True):
    """Why hosts cannot have the wanted stack, and the last stack they can have, None if no stack of the spec serves them.

    `text` names the changes that `last` needs on the hosts; `until` is the end of life of its driver branch, "" if unknown.
    """

    conflict: Conflict
    last: Stack | None = None
    text: str = ""
    until: str = ""


class HostPlan(Struct, frozen=True, kw_only=True):
    """The plan of hosts that state the same facts: their names, how many machines they are, the steps or the exclusion.

    `profile` holds their facts.
    """

    hosts: tuple[str, ...]
    count: int
    platform: str
    profile: Host | None = None
    steps: tuple[Step, ...] = ()
    exclusion: Exclusion | None = None
    doubts: tuple[Doubt, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """Whether the plan depends on a fact that is not known."""
        return any(step.kind == FIND_OUT for step in self.steps)


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
        """`no` if a host is excluded, `unverified` if a fact is missing, else `yes`."""
        if any(one.exclusion is not None for one in self.hosts):
            return "no"
        return "unverified" if any(one.is_unknown for one in self.hosts) else "yes"
