"""The choices one host leaves open, and what is left of them once everything that is fixed has been worked out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

Choice = tuple[str, int]
"""A candidate of the shared part: the name of its key, and its place among the key's candidates."""


class Refuses(NamedTuple):
    """No stack with this choice serves the host."""

    choice: Choice


class Unservable(NamedTuple):
    """No stack serves the host at all."""


class Implies(NamedTuple):
    """Where a choice of the shared part is made (None: in any stack), one of these places of another shared key is chosen."""

    choice: Choice | None
    key: str
    places: frozenset[int]


class ImpliesLocal(NamedTuple):
    """Where a choice of the shared part is made, one of these places of a key of the host is chosen."""

    choice: Choice
    key: str
    places: frozenset[int]


class Chosen(NamedTuple):
    """Some place of a key of the host is chosen, whatever the stack is."""

    key: str


class Domain(NamedTuple):
    """The places of a key of the host, of which at most one is chosen."""

    key: str
    places: frozenset[int]


class LocalImplies(NamedTuple):
    """Where a place of a key of the host is chosen, one of these places of another key of the host is chosen, too."""

    given: Choice
    key: str
    places: frozenset[int]


class LocalImpliesShared(NamedTuple):
    """Where a place of a key of the host is chosen, one of these places of a shared key is chosen, too."""

    given: Choice
    key: str
    places: frozenset[int]


Constraint = Refuses | Unservable | Implies | ImpliesLocal | Chosen | Domain | LocalImplies | LocalImpliesShared
"""What a host asks of a stack."""


class Want(NamedTuple):
    """One of these places of a key is to be chosen."""

    key: str
    allowed: frozenset[int]


class Local:
    """The keys of one host with the places of their candidates, and everything that is wanted of them."""

    def __init__(self) -> None:
        self._domains: dict[str, set[int]] = {}
        self._required: set[str] = set()
        self._wanted: set[tuple[Choice, Want]] = set()
        self._inner: dict[tuple[str, int], set[Want]] = {}
        self._outward: dict[tuple[str, int], set[Want]] = {}
        self._refused: set[tuple[str, int]] = set()
        self._outer: set[tuple[Choice | None, str, frozenset[int]]] = set()

    def places(self, key: str) -> set[int]:
        """What may be chosen for a key."""
        return self._domains[key]

    def domain(self, key: str, places: Iterable[int], *, is_required: bool) -> None:
        """Add a key; one that is required must be chosen whatever the stack is."""
        self._domains.setdefault(key, set(places))
        if is_required:
            self._required.add(key)

    def wanted(self, choice: Choice, want: Want) -> None:
        """A choice of the shared part wants something of this host."""
        self._wanted.add((choice, want))

    def inner(self, key: str, place: int, want: Want) -> None:
        """A choice of this host wants another one of it."""
        self._inner.setdefault((key, place), set()).add(want)

    def reaching_out(self, key: str, place: int, want: Want) -> None:
        """A choice of this host wants one of the shared part; where there is none, it is no choice."""
        if want.allowed:
            self._outward.setdefault((key, place), set()).add(want)
        else:
            self._refused.add((key, place))

    def outer(self, choice: Choice | None, key: str, allowed: frozenset[int]) -> None:
        """Because of this host, a choice of the shared part (None: any stack) wants another one of it."""
        self._outer.add((choice, key, allowed))

    def constraints(self) -> frozenset[Constraint]:
        """Return what the host asks of the shared part: equal for hosts that ask the same, a subset for one that asks less.

        Values that cannot be chosen are taken out; a want that every value left meets says nothing, unless those values want
        something themselves.
        """
        self._propagate()
        free = self._free()
        found: set[Constraint] = {Implies(*one) for one in self._outer}
        kept: set[str] = set()
        for choice, want in self._wanted:
            domain = self._domains[want.key]
            allowed = want.allowed & domain
            if not allowed:
                found.add(Refuses(choice))
            elif len(allowed) < len(domain) or want.key not in free:
                found.add(ImpliesLocal(choice, want.key, frozenset(allowed)))
                kept.add(want.key)
        for key in self._required:
            if not self._domains[key]:
                found.add(Unservable())
            elif key not in free:
                found.add(Chosen(key))
                kept.add(key)
        found.update(self._described(kept, free))
        return frozenset(found)

    def _propagate(self) -> None:
        """Take out what wants something that cannot be had."""
        for key, place in self._refused:
            self._domains[key].discard(place)
        is_changing = True
        while is_changing:
            is_changing = False
            for (key, place), wants in self._inner.items():
                domain = self._domains[key]
                if place in domain and any(not want.allowed & self._domains[want.key] for want in wants):
                    domain.discard(place)
                    is_changing = True

    def _free(self) -> set[str]:
        """Keys of which any value will do whatever else is chosen: none of them wants anything that is not free itself."""
        free = {key for key, domain in self._domains.items() if domain}
        is_changing = True
        while is_changing:
            bound = {key for key in free if any(self._binds(key, place, free) for place in self._domains[key])}
            is_changing = bool(bound)
            free -= bound
        return free

    def _binds(self, key: str, place: int, free: set[str]) -> bool:
        if self._outward.get((key, place)):
            return True
        wants = self._inner.get((key, place), ())
        return any(want.key not in free or not want.allowed >= self._domains[want.key] for want in wants)

    def _described(self, kept: set[str], free: set[str]) -> Iterable[Constraint]:
        """The domains and inner wants of the keys that matter, and of those they reach."""
        waiting, seen = sorted(kept), set[str]()
        while waiting:
            key = waiting.pop()
            if key in seen:
                continue
            seen.add(key)
            yield Domain(key, frozenset(self._domains[key]))
            for place in self._domains[key]:
                for want in self._inner.get((key, place), ()):
                    if want.key not in free or not want.allowed >= self._domains[want.key]:
                        yield LocalImplies((key, place), want.key, frozenset(want.allowed & self._domains[want.key]))
                        waiting.append(want.key)
                for want in self._outward.get((key, place), ()):
                    yield LocalImpliesShared((key, place), want.key, want.allowed)
