"""Find the order of changes: the shortest path from today's state to the wanted one through states that work."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.components import ABSENT, COMPONENTS, FOLLOWERS, Move
from provisioner.plan.machine import INSTALLED_WITH_OS, with_installed_together
from provisioner.resolver.requirement import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.requirement import Ground, Group
    from provisioner.plan.machine import Facts, Machine
    from provisioner.plan.state import Software, StateChecker
    from provisioner.resolver.requirement import Requirement

SOFTWARE = "software"

MOVES = {
    move.value: (move.value, *(row.name for row in COMPONENTS.values() if row.move is move and row.name != move))
    for move in Move
}
"""Components that change together, by the name of the move, the leading component first.

Moves are in the order in which people make the changes, which decides between paths of the same length.
"""

INTERMEDIATE = ("kernel", "driver")
"""Components that may have a third value between the start and the end of a path, even if start and end are equal."""


class State(Struct, frozen=True, kw_only=True):
    """The facts of a machine, and whether the new software runs on it already."""

    facts: tuple[tuple[str, str], ...]
    is_new: bool

    @classmethod
    def of(cls, facts: Facts, *, is_new: bool) -> State:
        """Return the state with these facts; equal facts in another order give an equal state."""
        return cls(facts=tuple(sorted(facts.items())), is_new=is_new)


class Transition(Struct, frozen=True, kw_only=True):
    """One step of a path: the moves made at once, several only if no order of single ones works, and the state afterwards."""

    moves: tuple[str, ...]
    facts: Facts
    is_new: bool


class PathFinder:
    """Finds paths for one machine from today's facts and the software `old` to other facts and the software `new`.

    Only components in `free`, which may change, get intermediate values.
    """

    def __init__(
        self, checker: StateChecker, machine: Machine, *, old: Software, new: Software, free: Sequence[str] = INTERMEDIATE
    ) -> None:
        self._checker = checker
        self._machine = machine
        self._old = old
        self._new = new
        self._free = free
        self._judged: dict[State, bool] = {}
        self._unmet_today = checker.unmet(machine, machine.facts, old)
        self._broken: frozenset[Group] = frozenset(one.ground.group for one in self._unmet_today)

    @property
    def broken(self) -> tuple[Ground, ...]:
        """The grounds of requirements that are unmet on the machine today, so that no state on the path must meet them."""
        return tuple(dict.fromkeys(one.ground for one in self._unmet_today))

    def find_path(self, target: Facts, *, has_software: bool) -> tuple[Transition, ...]:
        """Return the shortest path to the facts of `target` and, with `has_software`, to the new software; () for no change.

        No state on the path breaks a rule that is satisfied today. If no order of the changes achieves that, other kernels and
        drivers are tried in between; if that fails, too, as few changes as possible are made at once.
        """
        moves = self._moves(target, has_software=has_software)
        direct = self._direct(dict(self._machine.facts), target, moves, at_once=1)
        if direct is not None:
            return direct
        indirect = self._indirect(target, moves)
        if indirect is not None:
            return indirect
        for size in range(2, len(moves)):
            joined = self._direct(dict(self._machine.facts), target, moves, at_once=size)
            if joined is not None:
                return joined
        return (Transition(moves=moves, facts=dict(target), is_new=SOFTWARE in moves),)

    def works(self, facts: Facts, *, is_new: bool) -> bool:
        """Return whether a state may be on the path, that is whether `breaks` returns nothing for it."""
        state = State.of(facts, is_new=is_new)
        if state not in self._judged:
            self._judged[state] = not self.breaks(facts, is_new=is_new)
        return self._judged[state]

    def breaks(self, facts: Facts, *, is_new: bool) -> tuple[Requirement, ...]:
        """Return the requirements that a state on the path must meet and does not.

        While the old software runs (`is_new` is false), these are the requirements that are met today. With the new software,
        these are all but the spec's requirements on hosts, which must be met at the end of the path only.
        """
        if not is_new:
            unmet = self._checker.unmet(self._machine, facts, self._old)
            return tuple(one for one in unmet if one.ground.group not in self._broken)
        unmet = self._checker.unmet(self._machine, facts, self._new)
        return tuple(one for one in unmet if not (one.ground.is_request and one.key.scope))

    def _moves(self, target: Facts, *, has_software: bool) -> tuple[str, ...]:
        before = self._machine.facts
        found = [
            name for name, parts in MOVES.items() if any(before.get(part) != target[part] for part in parts if part in target)
        ]
        if "driver" not in found:
            found += [name for name in FOLLOWERS["driver"] if before.get(name) != target.get(name)]
            is_alone = "kernel" not in found and "os" not in found
            if is_alone and before.get("kernel_headers") != target.get("kernel_headers"):
                found.append("kernel_headers")
        return (*found, SOFTWARE) if has_software else tuple(found)

    def moved(self, facts: Facts, move: str, target: Facts) -> Facts:
        """Return the facts after one move to the values of `target`; components installed with the moved ones follow."""
        parts = MOVES.get(move, (move,))
        found = {**facts, **{part: target[part] for part in parts if part in target}}
        if move == "os" and facts.get("os") != found.get("os"):
            found = {name: value for name, value in found.items() if name not in INSTALLED_WITH_OS or name in target}
        if move in {"kernel", "driver", "os"}:
            found = with_installed_together(found, self._machine)
            if "kernel_headers" in target and found.get("kernel_headers") == ABSENT:
                found["kernel_headers"] = found.get("kernel", ABSENT)
        return found

    def _direct(self, facts: Facts, target: Facts, moves: tuple[str, ...], *, at_once: int) -> tuple[Transition, ...] | None:
        """Return the path with each move once, in the first order in which every state works; None if there is no such order.

        One transition makes up to `at_once` moves.
        """
        dead: set[tuple[frozenset[str], bool]] = set()

        def walk(now: Facts, left: tuple[str, ...], *, is_new: bool) -> tuple[Transition, ...] | None:
            if not left:
                return ()
            key = (frozenset(left), is_new)
            if key in dead:
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
                        return (Transition(moves=chosen, facts=after, is_new=becomes_new), *rest)
            dead.add(key)
            return None

        return walk(facts, moves, is_new=False)

    def _indirect(self, target: Facts, moves: tuple[str, ...]) -> tuple[Transition, ...] | None:
        """Return the shortest path with other kernels and drivers in between, by breadth-first search; None if none exists."""
        between = {
            move: tuple(self._intermediate(move, target)) for move in INTERMEDIATE if move in self._free and move in target
        }
        moves = (*(move for move in between if move not in moves), *moves)
        start = dict(self._machine.facts)
        paths: dict[State, tuple[Transition, ...]] = {State.of(start, is_new=False): ()}
        frontier = [(start, False)]
        goal = State.of(target, is_new=SOFTWARE in moves)
        while frontier:
            following = []
            for facts, is_new in frontier:
                path = paths[State.of(facts, is_new=is_new)]
                for move, after, becomes_new in self._next((facts, is_new), target, moves, between):
                    state = State.of(after, is_new=becomes_new)
                    if state in paths or not self.works(after, is_new=becomes_new):
                        continue
                    paths[state] = (*path, Transition(moves=(move,), facts=after, is_new=becomes_new))
                    if state == goal:
                        return paths[state]
                    following.append((after, becomes_new))
            frontier = following
        return None

    def _next(
        self, now: tuple[Facts, bool], target: Facts, moves: tuple[str, ...], between: dict[str, tuple[Facts, ...]]
    ) -> Iterator[tuple[str, Facts, bool]]:
        facts, is_new = now
        # An intermediate driver is cheaper than an intermediate kernel; the software moves last where it can.
        machine = [move for move in reversed(moves) if move != SOFTWARE]
        for move in (*machine, *(move for move in moves if move == SOFTWARE)):
            if move == SOFTWARE:
                if not is_new:
                    yield move, facts, True
                continue
            for values in (target, *between.get(move, ())):
                after = self.moved(facts, move, {**target, **values})
                if after != facts:
                    yield move, after, is_new

    def _intermediate(self, move: str, target: Facts) -> Iterator[Facts]:
        """Yield values to try in between: every kernel series, or the newest release of each driver branch.

        An older release of a branch opens no path that the newest one does not, because later releases only add kernels.
        """
        instance = self._checker.instance(self._machine, {**target, "kernel": ""}, self._new.stack_spec)
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
