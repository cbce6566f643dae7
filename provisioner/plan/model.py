"""The nouns of a plan: steps, the hosts they are for, and the hosts that fall out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.grounds.choice import StepReason
    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.doubt import Doubt
    from provisioner.host.model import Host
    from provisioner.plan.judge import Aim
    from provisioner.request import TargetHost
    from provisioner.resolver.stack import Stack


class Question(Struct, frozen=True, kw_only=True):
    """What is asked: the hosts of one platform (each may stand for several), today's aim, the wanted one, and what may change.

    `base` is the spec without what is newly wanted, for hosts that stay; `today` fixes what a lock has, nothing where there is
    none. `keep` and `may_change` name components of hosts.
    """

    hosts: tuple[TargetHost, ...]
    counts: tuple[int, ...]
    today: Aim
    base: Aim
    wanted: Aim
    keep: frozenset[str] = frozenset()
    may_change: frozenset[str] = frozenset()


FIND_OUT = "find-out"
"""The kind of a step that changes nothing: it finds a fact that the plan lacks."""


class Step(Struct, frozen=True, kw_only=True):
    """One thing to do, after which the machine works again.

    `before` and `after` are the values of `component`, "" where there is none. `changes` lists everything that moves in this
    step (the module flavour and the libraries with a driver), `details` say with what and how to look at the result,
    `state` holds the facts of the machine afterwards. `is_together`: no order of the single changes keeps the machine
    working, so that it must be drained first.
    """

    kind: str
    component: str
    before: str
    after: str
    text: str
    why: tuple[StepReason, ...] = ()
    details: tuple[str, ...] = ()
    changes: tuple[tuple[str, str, str], ...] = ()
    is_reboot: bool = False
    is_together: bool = False
    state: Mapping[str, str] = field(default_factory=dict)


class FallsOut(Struct, frozen=True, kw_only=True):
    """Why hosts cannot follow, and the last stack that serves them: None where the spec has none for them at all.

    `text` says what `last` means for the machines as they are; `until` when the driver of that stack ends, "" where unknown.
    """

    conflict: Conflict
    last: Stack | None = None
    text: str = ""
    until: str = ""


class HostPlan(Struct, frozen=True, kw_only=True):
    """What identical hosts have to do. `hosts` are their names, `count` how many machines they are, `profile` their facts."""

    hosts: tuple[str, ...]
    count: int
    platform: str
    profile: Host | None = None
    steps: tuple[Step, ...] = ()
    falls_out: FallsOut | None = None
    doubts: tuple[Doubt, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """Whether a fact is missing without which nobody can say that this plan is right."""
        return any(step.kind == FIND_OUT for step in self.steps)


class Plan(Struct, frozen=True, kw_only=True):
    """The plan of one platform: the one stack that is wanted, None where no host can have it, and what each class does."""

    platform: str
    wanted: Stack | None
    hosts: tuple[HostPlan, ...]

    @property
    def status(self) -> str:
        """`nothing-to-do`, `possible` (for some hosts at least) or `impossible`."""
        if all(one.falls_out is not None for one in self.hosts):
            return "impossible"
        return "possible" if any(one.falls_out is not None or one.steps for one in self.hosts) else "nothing-to-do"

    @property
    def verdict(self) -> str:
        """`no` where a host falls out, `unverified` where a fact is missing, else `yes`."""
        if any(one.falls_out is not None for one in self.hosts):
            return "no"
        return "unverified" if any(one.is_unknown for one in self.hosts) else "yes"
