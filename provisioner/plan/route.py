"""In which order: the shortest way from today's state to the wanted one through states in which the machine works."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.components import ABSENT, COMPONENTS, Move
from provisioner.plan.machine import BROUGHT, FOLLOWERS, followed
from provisioner.resolver.requirement import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.requirement import Ground, Group
    from provisioner.plan.judge import Judge, Software
    from provisioner.plan.machine import Facts, Machine
    from provisioner.resolver.requirement import Requirement

SOFTWARE = "software"

MOVES = {
    move.value: (move.value, *(row.name for row in COMPONENTS.values() if row.move is move and row.name != move))
    for move in Move
}
"""What is changed in one go, its leading part first, in the order in which people do it: which decides between ways of the same
length."""


STOPS = ("kernel", "driver")
"""What may be something else on the way, even where it ends as it was."""


class State(Struct, frozen=True, kw_only=True):
    """The facts of a machine, and whether the new software runs on it already."""

    facts: tuple[tuple[str, str], ...]
    is_new: bool

    @classmethod
    def of(cls, facts: Facts, *, is_new: bool) -> State:
        """Facts in any order are the same state."""
        return cls(facts=tuple(sorted(facts.items())), is_new=is_new)


class Leg(Struct, frozen=True, kw_only=True):
    """One step of a way: what moves in it, several things only where no order of them works, and the facts afterwards."""

    moves: tuple[str, ...]
    facts: Facts
    is_new: bool


class Router:
    """Finds ways for one machine from the software of today to another one."""

    def __init__(self, judge: Judge, machine: Machine, *, old: Software, new: Software, free: Sequence[str] = STOPS) -> None:
        self._judge = judge
        self._machine = machine
        self._old = old
        self._new = new
        self._free = free
        self._judged: dict[State, bool] = {}
        self._wrong = judge.unmet(machine, machine.facts, old)
        self._broken = self._groups(self._wrong)

    @property
    def broken(self) -> tuple[Ground, ...]:
        """What does not hold on the machine as it is: no step can be held to it."""
        return tuple(dict.fromkeys(one.ground for one in self._wrong))

    def way(self, target: Facts, *, has_software: bool) -> tuple[Leg, ...]:
        """The shortest way to the facts of `target` and, with `has_software`, to the new software; () where they are today's.

        Each state on it breaks no rule that holds today. Where no order of the changes does that, other kernels and
        drivers are tried in between; where those do not help, as few changes as possible are made at once.
        """
        moves = self._moves(target, has_software=has_software)
        direct = self._direct(dict(self._machine.facts), target, moves, at_once=1)
        if direct is not None:
            return direct
        bridged = self._bridged(target, moves)
        if bridged is not None:
            return bridged
        for size in range(2, len(moves)):
            joined = self._direct(dict(self._machine.facts), target, moves, at_once=size)
            if joined is not None:
                return joined
        return (Leg(moves=moves, facts=dict(target), is_new=SOFTWARE in moves),)

    def works(self, facts: Facts, *, is_new: bool) -> bool:
        """Whether a state breaks nothing that holds today; the new software must be wholly at home."""
        state = State.of(facts, is_new=is_new)
        if state not in self._judged:
            self._judged[state] = not self.breaks(facts, is_new=is_new)
        return self._judged[state]

    def breaks(self, facts: Facts, *, is_new: bool) -> tuple[Requirement, ...]:
        """What does not hold in a state that does not work.

        What the spec asks of a machine is where the way leads, and no need of what runs on it meanwhile.
        """
        if not is_new:
            unmet = self._judge.unmet(self._machine, facts, self._old)
            return tuple(one for one in unmet if one.ground.group not in self._broken)
        unmet = self._judge.unmet(self._machine, facts, self._new)
        return tuple(one for one in unmet if not (one.ground.is_request and one.key.scope))

    def _groups(self, unmet: Sequence[Requirement]) -> frozenset[Group]:
        return frozenset(one.ground.group for one in unmet)

    def _moves(self, target: Facts, *, has_software: bool) -> tuple[str, ...]:
        before = self._machine.facts
        found = [
            name for name, parts in MOVES.items() if any(before.get(part) != target[part] for part in parts if part in target)
        ]
        if "driver" not in found:
            found += [name for name in FOLLOWERS if before.get(name) != target.get(name)]
            is_alone = "kernel" not in found and "os" not in found
            if is_alone and before.get("kernel_headers") != target.get("kernel_headers"):
                found.append("kernel_headers")
        return (*found, SOFTWARE) if has_software else tuple(found)

    def moved(self, facts: Facts, move: str, target: Facts) -> Facts:
        """The facts after one move towards the target, with what is installed beside it."""
        parts = MOVES.get(move, (move,))
        found = {**facts, **{part: target[part] for part in parts if part in target}}
        if move == "os" and facts.get("os") != found.get("os"):
            found = {name: value for name, value in found.items() if name not in BROUGHT or name in target}
        if move in {"kernel", "driver", "os"}:
            found = followed(found, self._machine)
            if "kernel_headers" in target and found.get("kernel_headers") == ABSENT:
                found["kernel_headers"] = found.get("kernel", ABSENT)
        return found

    def _direct(self, facts: Facts, target: Facts, moves: tuple[str, ...], *, at_once: int) -> tuple[Leg, ...] | None:
        """Each move once, in the first order in which every state works; up to `at_once` of them together."""
        dead: set[tuple[frozenset[str], bool]] = set()

        def walk(now: Facts, left: tuple[str, ...], *, is_new: bool) -> tuple[Leg, ...] | None:
            if not left:
                return ()
            place = (frozenset(left), is_new)
            if place in dead:
                return None
            for size in range(1, min(at_once, len(left)) + 1):
                for chosen in combinations(left, size):
                    after = now
                    for move in chosen:
                        after = self.moved(after, move, target) if move != SOFTWARE else after
                    becomes_new = is_new or SOFTWARE in chosen
                    if not self.works(after, is_new=becomes_new):
                        continue
                    rest = walk(after, tuple(one for one in left if one not in chosen), is_new=becomes_new)
                    if rest is not None:
                        return (Leg(moves=chosen, facts=after, is_new=becomes_new), *rest)
            dead.add(place)
            return None

        return walk(facts, moves, is_new=False)

    def _bridged(self, target: Facts, moves: tuple[str, ...]) -> tuple[Leg, ...] | None:
        """The shortest way with other kernels and drivers in between: breadth first, so that no shorter one is missed."""
        stops = {move: tuple(self._stops(move, target)) for move in STOPS if move in self._free and move in target}
        moves = (*(move for move in stops if move not in moves), *moves)
        start = dict(self._machine.facts)
        ways: dict[State, tuple[Leg, ...]] = {State.of(start, is_new=False): ()}
        frontier = [(start, False)]
        goal = State.of(target, is_new=SOFTWARE in moves)
        while frontier:
            following = []
            for facts, is_new in frontier:
                way = ways[State.of(facts, is_new=is_new)]
                for move, after, becomes_new in self._next((facts, is_new), target, moves, stops):
                    state = State.of(after, is_new=becomes_new)
                    if state in ways or not self.works(after, is_new=becomes_new):
                        continue
                    ways[state] = (*way, Leg(moves=(move,), facts=after, is_new=becomes_new))
                    if state == goal:
                        return ways[state]
                    following.append((after, becomes_new))
            frontier = following
        return None

    def _next(
        self, now: tuple[Facts, bool], target: Facts, moves: tuple[str, ...], stops: dict[str, tuple[Facts, ...]]
    ) -> Iterator[tuple[str, Facts, bool]]:
        facts, is_new = now
        # A stop at another driver is cheaper than one at another kernel; the software moves last where it can.
        machine = [move for move in reversed(moves) if move != SOFTWARE]
        for move in (*machine, *(move for move in moves if move == SOFTWARE)):
            if move == SOFTWARE:
                if not is_new:
                    yield move, facts, True
                continue
            for stop in (target, *stops.get(move, ())):
                after = self.moved(facts, move, {**target, **stop})
                if after != facts:
                    yield move, after, is_new

    def _stops(self, move: str, target: Facts) -> Iterator[Facts]:
        """What a machine may have in between: every kernel series, and of each driver branch its newest release.

        Drivers of a branch only ever learn newer kernels, so that an older release of it opens no way the newest does not.
        """
        instance = self._judge.instance(self._machine, {**target, "kernel": ""}, self._new.aim)
        if move == "kernel":
            for candidate in instance.candidates(Key("kernel", self._machine.label)):
                yield {"kernel": candidate.label}
            return
        branches: set[int] = set()
        for candidate in instance.candidates(Key("driver", self._machine.label)):
            if candidate.version.release[0] not in branches:
                branches.add(candidate.version.release[0])
                for flavour in ("open", "proprietary"):
                    yield {"driver": candidate.label, "driver_module": flavour}
