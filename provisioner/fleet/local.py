"""Model the choices that one host leaves open, and reduce them to constraints on the part that all hosts share.

A key is what the solver makes a choice for: a component or package, either shared by all hosts or on this host. A position is
the index of a candidate among the candidates of its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

Choice = tuple[str, int]
"""A candidate: the name of its key, and its index among the candidates of the key."""


class Refuses(NamedTuple):
    """The constraint that no stack with the shared candidate `choice` serves the host."""

    choice: Choice


class Unservable(NamedTuple):
    """The constraint that no stack serves the host."""


class Implies(NamedTuple):
    """A constraint within the shared part: if `choice` is made, one of the candidates at `positions` of `key` must be chosen.

    With None for `choice`, one of these candidates must be chosen in any stack.
    """

    choice: Choice | None
    key: str
    positions: frozenset[int]


class ImpliesLocal(NamedTuple):
    """The constraint that a stack with the shared `choice` needs one of the host's candidates at `positions` of `key`."""

    choice: Choice
    key: str
    positions: frozenset[int]


class Chosen(NamedTuple):
    """The constraint that some candidate of the host's `key` must be chosen with any stack."""

    key: str


class Domain(NamedTuple):
    """The constraint that at most one candidate of the host's `key` is chosen, and only one of those at `positions`."""

    key: str
    positions: frozenset[int]


class LocalImplies(NamedTuple):
    """A constraint within one host: if the candidate `given` is chosen, one of those at `positions` of `key` must be, too."""

    given: Choice
    key: str
    positions: frozenset[int]


class LocalImpliesShared(NamedTuple):
    """The constraint that the host's candidate `given` needs one of the candidates at `positions` of the shared `key`."""

    given: Choice
    key: str
    positions: frozenset[int]


Constraint = Refuses | Unservable | Implies | ImpliesLocal | Chosen | Domain | LocalImplies | LocalImpliesShared
"""A constraint of a host on a stack."""


class Want(NamedTuple):
    """A requirement: one of the candidates at the positions `allowed` of `key` must be chosen."""

    key: str
    allowed: frozenset[int]


class Local:
    """The keys of one host with the positions of their candidates, and all requirements on them."""

    def __init__(self) -> None:
        self._domains: dict[str, set[int]] = {}
        self._required: set[str] = set()
        self._wanted: set[tuple[Choice, Want]] = set()
        self._inner: dict[tuple[str, int], set[Want]] = {}
        self._outward: dict[tuple[str, int], set[Want]] = {}
        self._refused: set[tuple[str, int]] = set()
        self._outer: set[tuple[Choice | None, str, frozenset[int]]] = set()

    def positions(self, key: str) -> set[int]:
        """Return the positions of a key that can be chosen."""
        return self._domains[key]

    def domain(self, key: str, positions: Iterable[int], *, is_required: bool) -> None:
        """Add a key of the host with the positions that can be chosen; with `is_required`, any stack needs one of them."""
        self._domains.setdefault(key, set(positions))
        if is_required:
            self._required.add(key)

    def wanted(self, choice: Choice, want: Want) -> None:
        """Add the requirement of a shared candidate on a key of this host."""
        self._wanted.add((choice, want))

    def inner(self, key: str, position: int, want: Want) -> None:
        """Add the requirement of a candidate of this host on another key of this host."""
        self._inner.setdefault((key, position), set()).add(want)

    def reaching_out(self, key: str, position: int, want: Want) -> None:
        """Add the requirement of a candidate of this host on a shared key; if it allows nothing, the candidate is ruled out."""
        if want.allowed:
            self._outward.setdefault((key, position), set()).add(want)
        else:
            self._refused.add((key, position))

    def outer(self, choice: Choice | None, key: str, allowed: frozenset[int]) -> None:
        """Add a requirement on a shared key that this host causes for a shared candidate, or for any stack (None)."""
        self._outer.add((choice, key, allowed))

    def constraints(self) -> frozenset[Constraint]:
        """Return the constraints of the host on the shared part.

        Hosts with equal requirements have equal constraints, a host with fewer requirements has a subset of them. Candidates
        that cannot be chosen are removed. A requirement that every remaining candidate meets is left out, unless one of these
        candidates has requirements itself.
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
        """Remove candidates whose requirements no candidate meets, until all remaining ones can be met."""
        for key, position in self._refused:
            self._domains[key].discard(position)
        is_changing = True
        while is_changing:
            is_changing = False
            for (key, position), wants in self._inner.items():
                domain = self._domains[key]
                if position in domain and any(not want.allowed & self._domains[want.key] for want in wants):
                    domain.discard(position)
                    is_changing = True

    def _free(self) -> set[str]:
        """Return the keys for which every candidate can be chosen, independent of the choices for other keys.

        No candidate of such a key has a requirement on a shared key, or on a key of the host that is not free itself.
        """
        free = {key for key, domain in self._domains.items() if domain}
        is_changing = True
        while is_changing:
            bound = {key for key in free if any(self._binds(key, position, free) for position in self._domains[key])}
            is_changing = bool(bound)
            free -= bound
        return free

    def _binds(self, key: str, position: int, free: set[str]) -> bool:
        if self._outward.get((key, position)):
            return True
        wants = self._inner.get((key, position), ())
        return any(want.key not in free or not want.allowed >= self._domains[want.key] for want in wants)

    def _described(self, kept: set[str], free: set[str]) -> Iterable[Constraint]:
        """Yield the domains and requirements of the keys in `kept`, and of all keys that these depend on."""
        waiting, seen = sorted(kept), set[str]()
        while waiting:
            key = waiting.pop()
            if key in seen:
                continue
            seen.add(key)
            yield Domain(key, frozenset(self._domains[key]))
            for position in self._domains[key]:
                for want in self._inner.get((key, position), ()):
                    if want.key not in free or not want.allowed >= self._domains[want.key]:
                        yield LocalImplies((key, position), want.key, frozenset(want.allowed & self._domains[want.key]))
                        waiting.append(want.key)
                for want in self._outward.get((key, position), ()):
                    yield LocalImpliesShared((key, position), want.key, want.allowed)
