"""The result for a fleet: stacks with the hosts each serves, hosts that none serves, and a proved bound on the number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from provisioner.fleet.classes import HostClass
    from provisioner.fleet.cover import Bound
    from provisioner.grounds.choice import InstallDriver
    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.requirement import Ground
    from provisioner.host.inventory import InventoryHost
    from provisioner.resolver.stack import Stack


class Note(Struct, frozen=True, kw_only=True):
    """A doubt or a driver to install, worded for one host, and the classes of hosts that it is about.

    Without classes it is about the stack itself.
    """

    reason: Doubt | InstallDriver
    classes: tuple[HostClass, ...] = ()


class FleetStack(Struct, frozen=True, kw_only=True):
    """One stack and the classes of hosts on which it was verified.

    `stack.components` has the components that all hosts share. `deciding` are the classes for which the stack was solved: their
    requirements include those of all other classes, so that a stack that serves them serves all. `unverified` are the
    doubts about missing facts, each once for all hosts that lack the fact, `assumes` the missing facts that are assumptions;
    `chosen` are the components that must be installed because hosts state none, such as a driver.
    """

    stack: Stack
    classes: tuple[HostClass, ...]
    deciding: tuple[HostClass, ...] = ()
    unverified: tuple[Note, ...] = ()
    assumes: tuple[Note, ...] = ()
    chosen: tuple[Note, ...] = ()

    @property
    def hosts(self) -> tuple[InventoryHost, ...]:
        """Every host that the stack serves, class by class."""
        return tuple(member for one in self.classes for member in one.members)

    @property
    def nodes(self) -> int:
        """The number of machines that the stack serves."""
        return sum(one.nodes for one in self.classes)

    @property
    def verdict(self) -> str:
        """`yes`, or `unverified` when a fact of some host was missing."""
        return "unverified" if self.unverified else "yes"


class Unserved(Struct, frozen=True, kw_only=True):
    """Classes that no stack can serve, because of the same requests of the spec and the same rules.

    `conflict` is that of the first class, with hints that the solver verified for that class. The same conflict was proved for
    each other class, with the facts in `also` in place of those of the first class.
    """

    classes: tuple[HostClass, ...]
    conflict: Conflict
    also: tuple[Ground, ...] = ()

    @property
    def nodes(self) -> int:
        """The number of machines of the classes."""
        return sum(one.nodes for one in self.classes)


class Gain(Struct, frozen=True, kw_only=True):
    """Classes of hosts that one more stack would serve, or serve better: their stack now (None without one), and then."""

    classes: tuple[HostClass, ...]
    before: FleetStack | None
    after: FleetStack

    @property
    def nodes(self) -> int:
        """The number of machines of the classes."""
        return sum(one.nodes for one in self.classes)


class Limit(Struct, frozen=True, kw_only=True):
    """What a limit of the number of stacks means: at most `stacks`.

    `left_out` are the classes that a stack could serve if there were more of them. `is_proved` is whether no other choice of as
    many stacks serves more machines, or as many with newer releases. `gains` are what one more stack buys.
    """

    stacks: int
    left_out: tuple[HostClass, ...] = ()
    is_proved: bool = True
    gains: tuple[Gain, ...] = ()

    @property
    def left_out_nodes(self) -> int:
        """The number of machines of the classes left out."""
        return sum(one.nodes for one in self.left_out)


class FleetAnswer(Struct, frozen=True, kw_only=True):
    """The stacks of a fleet, the hosts without a stack, and the bound on the number of stacks.

    With a `limit` of the number of stacks, the bound is the number of stacks found.
    """

    stacks: tuple[FleetStack, ...]
    unserved: tuple[Unserved, ...]
    bound: Bound
    limit: Limit | None = None

    @property
    def served_nodes(self) -> int:
        """The number of machines with a stack."""
        return sum(one.nodes for one in self.stacks)

    @property
    def unserved_nodes(self) -> int:
        """The number of machines without a stack, those that a limit leaves out included."""
        return sum(one.nodes for one in self.unserved) + (self.limit.left_out_nodes if self.limit is not None else 0)
