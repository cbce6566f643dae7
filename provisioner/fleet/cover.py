"""Find the fewest stacks for the classes of one pool: which classes one stack can serve together, and a set cover of them.

A class is hosts with equal facts; its constraints on a stack are its *signature*, which several classes may have in common. A
stack serves a signature if it runs on the hosts with these constraints. It then serves every signature whose
constraints are a subset, so only the *maximal* signatures, which are a subset of no other, decide how many stacks there must
be: a set cover. Every largest set of maximal signatures that one stack can serve is listed (`resolver/search/sat.py`); the
fewest of these sets that hold every maximal signature are the exact answer. If there are too many sets to list, those that were
listed are covered, and a lower bound is proved: signatures of which no two can share a stack.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.components import FRAMEWORKS
from provisioner.fleet.local import (
    Chosen,
    Domain,
    Implies,
    ImpliesLocal,
    LocalImplies,
    LocalImpliesShared,
    Refuses,
    Unservable,
)
from provisioner.resolver.search.sat import Clauses, Members, covers, fewest, independent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from provisioner.fleet.effects import Effects
    from provisioner.fleet.local import Choice, Constraint

EXACT_SIGNATURES = 20
"""The most maximal signatures for which all sets that one stack can serve are listed, however many these are."""

MOST_SETS = 4_000
"""The most sets of signatures that are listed if there are more than `EXACT_SIGNATURES` maximal signatures."""

MOST_COVERS = 60
"""The most covers of the smallest size among which the one with the newest stacks is chosen."""


class Bound(Struct, frozen=True, kw_only=True):
    """A proved lower bound of the number of stacks needed, and the number of stacks found."""

    lower: int
    found: int

    @property
    def is_optimal(self) -> bool:
        """Whether it is proved that fewer stacks do not suffice."""
        return self.lower == self.found


class Coverage:
    """Decides which signatures of a pool one stack can serve together.

    One SAT solver answers all questions, so that it reuses what it learns from each.
    """

    def __init__(self, effects: Effects, *, is_joint: bool = False) -> None:
        self._shared = effects.shared
        self.is_joint = is_joint
        """Whether the constraints of a host depend on which other hosts the stack serves.

        Then serving a signature does not imply that another one, with fewer constraints, is served.
        """
        self._clauses = Clauses()
        self._choices: dict[Choice, int] = {}
        self._requests: dict[frozenset[Constraint], int] = {}
        self.signatures: tuple[frozenset[Constraint], ...] = tuple(dict.fromkeys(effects.constraints))
        """The different signatures (sets of constraints), in the order of the first class with each."""
        positions = {signature: position for position, signature in enumerate(self.signatures)}
        self.signature_of = tuple(positions[one] for one in effects.constraints)
        """The index of the signature of each class, in the order of the classes."""
        for name in sorted(self._shared.sizes):
            self._clauses.at_most_one([self._choice((name, position)) for position in range(self._shared.sizes[name])])
        for name, allowed in sorted(self._shared.roots, key=_sortable):
            self._clauses.add([self._choice((name, position)) for position in allowed])
        for choice, name, allowed in sorted(self._shared.needs, key=_sortable):
            self._clauses.add([-self._choice(choice), *(self._choice((name, position)) for position in allowed)])
        self._selectors = [self._request(signature) for signature in self.signatures]

    def close(self) -> None:
        """Free the solver's memory."""
        self._clauses.close()

    @cached_property
    def served(self) -> tuple[int, ...]:
        """The indexes of the signatures that some stack serves."""
        return tuple(index for index, selector in enumerate(self._selectors) if self._clauses.model((selector,)) is not None)

    @cached_property
    def maximal(self) -> tuple[int, ...]:
        """The indexes of the served signatures whose constraints are no subset of another served signature's."""
        return self.outermost(self.served)

    def outermost(self, signatures: Iterable[int]) -> tuple[int, ...]:
        """Return those of `signatures` whose constraints are no subset of another's, so that a stack for them serves all.

        All are returned if `is_joint`.
        """
        if self.is_joint:
            return tuple(sorted(signatures))
        masks = {signature: self._masks[signature] for signature in signatures}
        ordered = sorted(masks, key=lambda signature: (-masks[signature].bit_count(), signature))
        kept: list[int] = []
        for signature in ordered:
            if not any(masks[signature] & ~masks[other] == 0 for other in kept):
                kept.append(signature)
        return tuple(sorted(kept))

    @cached_property
    def _masks(self) -> tuple[int, ...]:
        bits: dict[Constraint, int] = {}
        return tuple(sum(1 << bits.setdefault(one, len(bits)) for one in signature) for signature in self.signatures)

    def refuse(self, signatures: Collection[int]) -> None:
        """Record that no stack serves all of `signatures`, as the solver proved for their hosts together."""
        self._clauses.add([-self._selectors[signature] for signature in signatures])

    def can_share(self, signatures: Iterable[int]) -> bool:
        """Return whether one stack can serve all of `signatures`."""
        return self._clauses.model([self._selectors[signature] for signature in signatures]) is not None

    def serves(self, choices: Iterable[Choice], signature: int) -> bool:
        """Return whether a stack with exactly the shared candidates `choices` serves the signature at an index."""
        chosen = frozenset(choices)
        open_ones = []
        for constraint in self.signatures[signature]:
            match constraint:
                case Refuses(choice):
                    if choice in chosen:
                        return False
                case Implies(choice, name, positions):
                    if (choice is None or choice in chosen) and not any((name, position) in chosen for position in positions):
                        return False
                case _:
                    open_ones.append(constraint)
        if not open_ones:
            return True
        present = {name for name, _ in chosen}
        absent = [-literal for (name, _), literal in self._choices.items() if name not in present]
        assumed = [self._choice(one) for one in sorted(chosen)]
        return self._clauses.model([self._selectors[signature], *assumed, *absent]) is not None

    def rank(self, signatures: Collection[int], *, at_least: int = 0) -> int | None:
        """Return the rank of the most preferred candidate of `lead` with which one stack serves all of `signatures`.

        0 is the most preferred; None means that no stack serves them. `at_least` is a rank known to be a lower bound.
        """
        literals = [self._choice((self.lead, position)) for position in range(self._shared.sizes[self.lead])]
        selectors = [self._selectors[signature] for signature in sorted(signatures)]

        def is_within(position: int) -> bool:
            return self._clauses.model([*selectors, *(-literal for literal in literals[position + 1 :])]) is not None

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
        """The name of the component whose release ranks stacks.

        This is the required framework, else the first required component, else the first of all, in the resolver's order.
        """
        order = self._shared.order
        required = {name for name, _ in self._shared.roots}
        framework = next((name for name in FRAMEWORKS if name in required), "")
        ranked = [name for name in required or order if order.get(name, -1) >= 0 and name != "image"]
        return framework or min(ranked or order, key=lambda name: (order.get(name, -1), name))

    @property
    def lead_labels(self) -> tuple[str, ...]:
        """The labels of the candidates of `lead`, the most preferred first."""
        return self._shared.labels[self.lead]

    def listed(self) -> tuple[list[Members], bool]:
        """Return the largest sets of maximal signatures that one stack can serve, sorted, and whether these are all of them."""
        maximal = self.maximal
        most = 2**EXACT_SIGNATURES if len(maximal) <= EXACT_SIGNATURES else MOST_SETS
        by_selector = {self._selectors[signature]: signature for signature in maximal}
        found = [
            frozenset(by_selector[selector] for selector in one) for one in self._clauses.maximal(list(by_selector), most=most)
        ]
        is_complete = len(found) < most
        missing = set(maximal) - {signature for members in found for signature in members}
        while missing:
            first = self._selectors[min(missing)]
            grown = self._clauses.grown((first,), list(by_selector))
            assert grown is not None, "a signature that is served alone is in some set"
            found.append(frozenset(by_selector[selector] for selector in grown))
            missing -= found[-1]
        return sorted(found, key=lambda members: (-len(members), sorted(members))), is_complete

    def smallest(self) -> tuple[list[list[Members]], Bound]:
        """Return covers of the smallest size found, each a list of sets of signatures, and the bound proved for that size."""
        if not self.maximal:
            return [[]], Bound(lower=0, found=0)
        sets, is_complete = self.listed()
        first = fewest(sets, self.maximal)
        size = len(first)
        lower = size if is_complete else min(size, len(self._apart()))
        choices = covers(sets, self.maximal, size=size, most=MOST_COVERS) or [first]
        return [[sets[index] for index in one] for one in choices], Bound(lower=lower, found=size)

    def _apart(self) -> tuple[int, ...]:
        together = {signature: {signature} for signature in self.maximal}
        for position, signature in enumerate(self.maximal):
            for other in self.maximal[position + 1 :]:
                if self.can_share((signature, other)):
                    together[signature].add(other)
                    together[other].add(signature)
        return independent(self.maximal, {signature: frozenset(some) for signature, some in together.items()})

    def _choice(self, choice: Choice) -> int:
        if choice not in self._choices:
            self._choices[choice] = self._clauses.variable()
        return self._choices[choice]

    def _request(self, signature: frozenset[Constraint]) -> int:
        """Add the clauses of a signature to the SAT problem, and return a literal that requires the stack to serve it."""
        selector = self._clauses.variable()
        own: dict[Choice, int] = {}
        for domain in sorted(constraint for constraint in signature if isinstance(constraint, Domain)):
            positions = sorted(domain.positions)
            own.update({(domain.key, position): self._clauses.variable() for position in positions})
            self._clauses.at_most_one([own[domain.key, position] for position in positions])
        for constraint in sorted(signature, key=lambda one: (type(one).__name__, *_sortable(one))):
            clause = self._clause(constraint, own)
            if clause is not None:
                self._clauses.add([-selector, *clause])
        return selector

    def _clause(self, constraint: Constraint, own: dict[Choice, int]) -> list[int] | None:
        match constraint:
            case Refuses(choice):
                return [-self._choice(choice)]
            case Unservable():
                return []
            case Implies(choice, key, positions):
                given = [-self._choice(choice)] if choice is not None else []
                return [*given, *(self._choice((key, position)) for position in positions)]
            case ImpliesLocal(choice, key, positions):
                return [-self._choice(choice), *(own[key, position] for position in positions)]
            case Chosen(key):
                return [literal for (name, _), literal in own.items() if name == key]
            case LocalImplies(one, key, positions):
                return [-own[one], *(own[key, position] for position in positions)]
            case LocalImpliesShared(one, key, positions):
                return [-own[one], *(self._choice((key, position)) for position in positions)]
            case Domain():
                return None


def _sortable(value: object) -> tuple[str, ...]:
    """Return a sort key of a constraint that is the same in every run, unlike the order of a set."""
    if isinstance(value, frozenset):
        return tuple(f"{position:06d}" for position in sorted(value))
    if isinstance(value, tuple):
        return tuple(text for part in value for text in _sortable(part))
    return (f"{value:06d}",) if isinstance(value, int) else (str(value),)
