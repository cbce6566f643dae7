"""Decide a problem whose choices are almost all made, such as that of a lock: nothing is tried, and nothing taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.resolver.requirement import Labelled
from provisioner.resolver.search.instance import violations

if TYPE_CHECKING:
    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.instance import ProblemInstance


def direct_answer(instance: ProblemInstance) -> dict[Key, Candidate] | None:
    """Return the most preferred valid assignment of a problem without packages; None where a search has to find it.

    A key with one candidate left has that one, and what it requires leaves others fewer. The keys with several are decided in
    the order of `CompleteSearch.best`, each with the first candidate that leaves every key it requires a candidate: what is
    passed over is in no answer, so that the result is the answer of that search.
    """
    return _Choices(instance).answer()


class _Choices:
    """The candidates that are `left` to each key that something requires, and the chosen ones, `pins`."""

    def __init__(self, instance: ProblemInstance) -> None:
        self._instance = instance
        self._left: dict[Key, frozenset[Candidate]] = {}
        self._pins: dict[Key, Candidate] = {}

    def answer(self) -> dict[Key, Candidate] | None:
        instance = self._instance
        # A root that names one candidate spares the others of its key all further tests.
        if not self._require(sorted(instance.roots, key=_names_one)):
            return None
        required = {root.key for root in instance.roots}
        decided: dict[Key, Candidate] = {}
        while waiting := required - decided.keys():
            key = min(waiting, key=instance.decision_rank)
            if key not in self._pins:
                fitting = (one for one in instance.candidates(key) if one in self._left[key] and self._fits(one))
                pin = next(fitting, None)
                if pin is None or not self._pin(key, pin):
                    return None
            decided[key] = self._pins[key]
            required.update(one.key for one in instance.requirements(decided[key]))
        assert not violations(instance, decided), "every requirement was asked of the candidate that was left"
        return decided

    def _fits(self, candidate: Candidate) -> bool:
        """Return whether what a candidate requires leaves each of these keys a candidate."""
        for one in self._instance.requirements(candidate):
            if one.key in self._pins:
                if not self._instance.accepts(one, self._pins[one.key]):
                    return False
            elif not self._still_allowed(one):
                return False
        return True

    def _still_allowed(self, requirement: Requirement) -> frozenset[Candidate]:
        left = self._left.get(requirement.key)
        if left is None:
            return self._instance.allowed(requirement)
        return frozenset(one for one in left if self._instance.accepts(requirement, one))

    def _pin(self, key: Key, candidate: Candidate) -> bool:
        self._pins[key] = candidate
        return self._require(list(self._instance.requirements(candidate)))

    def _require(self, waiting: list[Requirement]) -> bool:
        """Apply requirements, the last first, and those of candidates that they leave alone; return whether all can hold."""
        while waiting:
            requirement = waiting.pop()
            key = requirement.key
            if key in self._pins:
                if not self._instance.accepts(requirement, self._pins[key]):
                    return False
                continue
            left = self._left[key] = self._still_allowed(requirement)
            if not left:
                return False
            if len(left) == 1:
                (self._pins[key],) = left
                waiting.extend(self._instance.requirements(self._pins[key]))
        return True


def _names_one(requirement: Requirement) -> bool:
    return isinstance(requirement.test, Labelled) and len(requirement.test.labels) == 1
