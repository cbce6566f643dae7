"""The fewest stacks for the classes of one pool: which classes one stack can serve together, and how few sets hold them all.

Classes with equal demands are one *kind*; a kind whose demands are all among another's rides along with it, so only the
*chiefs*, whose demands no other kind includes, decide how many stacks there must be. Every maximal set of chiefs that one stack
can serve is listed (`resolver/search/sets.py`), and the fewest of them that hold every chief are the answer, which is then exact.
Where there are too many sets to list, what was listed is covered, and a lower bound is proved: chiefs of which no two share a
stack.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.resolver.rules.devices import FRAMEWORKS
from provisioner.resolver.search.sets import Clauses, Members, apart, covers, fewest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from provisioner.fleet.effects import Effects
    from provisioner.fleet.local import Choice, Demand

EXACT_CHIEFS = 20
"""With so many chiefs or fewer every set is listed, whatever their number."""

MOST_SETS = 4_000
"""How many sets are listed for more chiefs."""

MOST_COVERS = 60
"""How many covers of the smallest size are compared by what they give."""


class Bound(Struct, frozen=True, kw_only=True):
    """How many stacks are proved to be needed, and how many were found."""

    lower: int
    found: int

    @property
    def is_optimal(self) -> bool:
        """Whether it is proved that no fewer will do."""
        return self.lower == self.found


class Coverage:
    """Asks which classes of a pool one stack can serve together; what one question taught serves the next."""

    def __init__(self, effects: Effects, *, is_joint: bool = False) -> None:
        self._shared = effects.shared
        self.is_joint = is_joint
        """Whether what a kind demands depends on who else is served, so that no kind stands for another."""
        self._clauses = Clauses()
        self._choices: dict[Choice, int] = {}
        self._requests: dict[frozenset[Demand], int] = {}
        self.kinds: tuple[frozenset[Demand], ...] = tuple(dict.fromkeys(effects.demands))
        """The different sets of demands, in the order of their first classes."""
        places = {kind: place for place, kind in enumerate(self.kinds)}
        self.kind_of = tuple(places[one] for one in effects.demands)
        """For each class, which kind it is."""
        for name in sorted(self._shared.sizes):
            self._clauses.at_most_one([self._choice((name, place)) for place in range(self._shared.sizes[name])])
        for name, allowed in sorted(self._shared.roots, key=_sortable):
            self._clauses.add([self._choice((name, place)) for place in allowed])
        for choice, name, allowed in sorted(self._shared.needs, key=_sortable):
            self._clauses.add([-self._choice(choice), *(self._choice((name, place)) for place in allowed)])
        self._selectors = [self._request(kind) for kind in self.kinds]

    def close(self) -> None:
        """Free the solver's memory."""
        self._clauses.close()

    @cached_property
    def served(self) -> tuple[int, ...]:
        """The kinds that some stack serves."""
        return tuple(index for index, selector in enumerate(self._selectors) if self._clauses.model((selector,)) is not None)

    @cached_property
    def chiefs(self) -> tuple[int, ...]:
        """The served kinds whose demands no other served kind includes."""
        return self.outermost(self.served)

    def outermost(self, kinds: Iterable[int]) -> tuple[int, ...]:
        """Those of some kinds whose demands are not all among another's: a stack that serves these serves all.

        Where demands depend on the company, no kind stands for another.
        """
        if self.is_joint:
            return tuple(sorted(kinds))
        masks = {kind: self._masks[kind] for kind in kinds}
        ordered = sorted(masks, key=lambda kind: (-masks[kind].bit_count(), kind))
        kept: list[int] = []
        for kind in ordered:
            if not any(masks[kind] & ~masks[other] == 0 for other in kept):
                kept.append(kind)
        return tuple(sorted(kept))

    @cached_property
    def _masks(self) -> tuple[int, ...]:
        bits: dict[Demand, int] = {}
        return tuple(sum(1 << bits.setdefault(one, len(bits)) for one in kind) for kind in self.kinds)

    def refuse(self, kinds: Collection[int]) -> None:
        """Learn that no stack serves all of these, which solving them together has proved."""
        self._clauses.add([-self._selectors[kind] for kind in kinds])

    def can_share(self, kinds: Iterable[int]) -> bool:
        """Whether one stack can serve all of these kinds."""
        return self._clauses.model([self._selectors[kind] for kind in kinds]) is not None

    def serves(self, choices: Iterable[Choice], kind: int) -> bool:
        """Whether a stack of these choices, and of nothing else, serves a kind."""
        chosen = frozenset(choices)
        open_ones = []
        for demand in self.kinds[kind]:
            match demand:
                case ("no", choice):
                    if choice in chosen:
                        return False
                case ("if", choice, str(name), frozenset() as places):
                    if (choice is None or choice in chosen) and not any((name, place) in chosen for place in places):
                        return False
                case _:
                    open_ones.append(demand)
        if not open_ones:
            return True
        present = {name for name, _ in chosen}
        absent = [-literal for (name, _), literal in self._choices.items() if name not in present]
        assumed = [self._choice(one) for one in sorted(chosen)]
        return self._clauses.model([self._selectors[kind], *assumed, *absent]) is not None

    def rank(self, kinds: Collection[int], *, at_least: int = 0) -> int | None:
        """How far from the most wanted the best leading component is that serves these kinds: 0 is the most wanted itself.

        None when no stack serves them all. `at_least` is what is known already, which is mostly the answer.
        """
        literals = [self._choice((self.lead, place)) for place in range(self._shared.sizes[self.lead])]
        selectors = [self._selectors[kind] for kind in sorted(kinds)]

        def is_within(place: int) -> bool:
            return self._clauses.model([*selectors, *(-literal for literal in literals[place + 1 :])]) is not None

        if is_within(at_least):
            return at_least
        low, high = at_least + 1, len(literals) - 1
        if low > high or not is_within(high):
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if is_within(middle) else (middle + 1, high)
        return low

    @cached_property
    def lead(self) -> str:
        """The component whose newness comes first: the framework asked for, else of those required the highest in the order."""
        order = self._shared.order
        required = {name for name, _ in self._shared.roots}
        framework = next((name for name in FRAMEWORKS if name in required), "")
        ranked = [name for name in required or order if order.get(name, -1) >= 0 and name != "image"]
        return framework or min(ranked or order, key=lambda name: (order.get(name, -1), name))

    def listed(self) -> tuple[list[Members], bool]:
        """Maximal sets of chiefs that one stack can serve, sorted, and whether these are all there are."""
        chiefs = self.chiefs
        most = 2**EXACT_CHIEFS if len(chiefs) <= EXACT_CHIEFS else MOST_SETS
        by_selector = {self._selectors[kind]: kind for kind in chiefs}
        found = [
            frozenset(by_selector[selector] for selector in one) for one in self._clauses.maximal(list(by_selector), most=most)
        ]
        is_complete = len(found) < most
        missing = set(chiefs) - {kind for members in found for kind in members}
        while missing:
            first = self._selectors[min(missing)]
            grown = self._clauses.grown((first,), list(by_selector))
            assert grown is not None, "a kind that is served alone is in some set"
            found.append(frozenset(by_selector[selector] for selector in grown))
            missing -= found[-1]
        return sorted(found, key=lambda members: (-len(members), sorted(members))), is_complete

    def smallest(self) -> tuple[list[list[Members]], Bound]:
        """Covers of the smallest size that was found, and what is proved about it."""
        if not self.chiefs:
            return [[]], Bound(lower=0, found=0)
        sets, is_complete = self.listed()
        first = fewest(sets, self.chiefs)
        size = len(first)
        lower = size if is_complete else min(size, len(self._apart()))
        choices = covers(sets, self.chiefs, size=size, most=MOST_COVERS) or [first]
        return [[sets[index] for index in one] for one in choices], Bound(lower=lower, found=size)

    def _apart(self) -> tuple[int, ...]:
        together = {kind: {kind} for kind in self.chiefs}
        for place, kind in enumerate(self.chiefs):
            for other in self.chiefs[place + 1 :]:
                if self.can_share((kind, other)):
                    together[kind].add(other)
                    together[other].add(kind)
        return apart(self.chiefs, {kind: frozenset(some) for kind, some in together.items()})

    def _choice(self, choice: Choice) -> int:
        if choice not in self._choices:
            self._choices[choice] = self._clauses.variable()
        return self._choices[choice]

    def _request(self, kind: frozenset[Demand]) -> int:
        """A literal that, when it holds, makes the stack serve a kind."""
        selector = self._clauses.variable()
        own: dict[Choice, int] = {}
        domains = {demand[1]: demand[2] for demand in kind if demand[0] == "domain"}
        for name in sorted(domains, key=str):
            places = sorted(domains[name])  # type: ignore[call-overload]
            own.update({(str(name), place): self._clauses.variable() for place in places})
            self._clauses.at_most_one([own[str(name), place] for place in places])
        for demand in sorted(kind, key=_sortable):
            clause = self._clause(demand, own)
            if clause is not None:
                self._clauses.add([-selector, *clause])
        return selector

    def _clause(self, demand: Demand, own: dict[Choice, int]) -> list[int] | None:
        match demand:
            case ("no", (str(name), int(place))):
                return [-self._choice((name, place))]
            case ("never",):
                return []
            case ("if", choice, str(name), frozenset() as places):
                given = [] if choice is None else [-self._choice(choice)]  # type: ignore[arg-type]
                return [*given, *(self._choice((name, place)) for place in places)]
            case ("want", (str(given), int(at)), str(name), frozenset() as places):
                return [-self._choice((given, at)), *(own[name, place] for place in places)]
            case ("has", str(name)):
                return [literal for (key, _), literal in own.items() if key == name]
            case ("inner", str(given), int(at), str(name), frozenset() as places):
                return [-own[given, at], *(own[name, place] for place in places)]
            case ("outward", str(given), int(at), str(name), frozenset() as places):
                return [-own[given, at], *(self._choice((name, place)) for place in places)]
        assert demand[0] == "domain", demand
        return None


def _sortable(value: object) -> tuple[str, ...]:
    """An order for demands that does not depend on hashes."""
    if isinstance(value, frozenset):
        return tuple(f"{place:06d}" for place in sorted(value))
    if isinstance(value, tuple):
        return tuple(text for part in value for text in _sortable(part))
    return (f"{value:06d}",) if isinstance(value, int) else (str(value),)
