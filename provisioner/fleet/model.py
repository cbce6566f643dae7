"""The answer for a fleet: stacks with the hosts each serves, hosts that none serves, and what is proved about the number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from provisioner.fleet.classes import HostClass
    from provisioner.fleet.cover import Bound
    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.requirement import Ground
    from provisioner.host.roster import ListedHost
    from provisioner.resolver.stack import Stack


class Note(Struct, frozen=True, kw_only=True):
    """Something to say about some of the hosts a stack serves, in words about one of them; no classes: about the stack."""

    text: str
    classes: tuple[HostClass, ...] = ()


class FleetStack(Struct, frozen=True, kw_only=True):
    """One stack and the classes of hosts that it was verified on.

    `stack.components` holds what the hosts share; `unverified` names missing facts once for all hosts that lack them; `chosen`
    what hosts leave open and would have to be installed, such as a driver. `deciding` are the classes the stack was solved for:
    what they need includes what all others need, so that any stack that serves these serves all.
    """

    stack: Stack
    classes: tuple[HostClass, ...]
    deciding: tuple[HostClass, ...] = ()
    unverified: tuple[Note, ...] = ()
    chosen: tuple[Note, ...] = ()

    @property
    def hosts(self) -> tuple[ListedHost, ...]:
        """Every host it serves, class by class."""
        return tuple(member for one in self.classes for member in one.members)

    @property
    def nodes(self) -> int:
        """How many machines these are."""
        return sum(one.nodes for one in self.classes)

    @property
    def verdict(self) -> str:
        """`yes`, or `unverified` when a fact of some host was missing."""
        return "unverified" if self.unverified else "yes"


class Unserved(Struct, frozen=True, kw_only=True):
    """Classes no stack can serve, because the same requests and rules stand against them.

    The conflict is that of the first class, for which its hints were solved again; it was proved for each of the others, with
    the facts in `also` instead of the first one's.
    """

    classes: tuple[HostClass, ...]
    conflict: Conflict
    also: tuple[Ground, ...] = ()

    @property
    def nodes(self) -> int:
        """How many machines these are."""
        return sum(one.nodes for one in self.classes)


class FleetAnswer(Struct, frozen=True, kw_only=True):
    """Everything decided about a fleet."""

    stacks: tuple[FleetStack, ...]
    unserved: tuple[Unserved, ...]
    bound: Bound

    @property
    def served_nodes(self) -> int:
        """How many machines have a stack."""
        return sum(one.nodes for one in self.stacks)

    @property
    def unserved_nodes(self) -> int:
        """How many have none."""
        return sum(one.nodes for one in self.unserved)
