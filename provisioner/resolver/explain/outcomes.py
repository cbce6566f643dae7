"""What edits give: the answer to a changed request, and sets of edits that were verified to give one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from provisioner.components import Effort
from provisioner.errors import ProvisionError
from provisioner.grounds.conflict import Fix
from provisioner.grounds.patch import patch_of
from provisioner.resolver.explain.edits import rank
from provisioner.resolver.outcome.answer import doubts_of
from provisioner.resolver.outcome.cautions import unknown_extras
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import ReleaseCandidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from provisioner.grounds.choice import UnknownExtra
    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.edit import Edit
    from provisioner.request import Request
    from provisioner.resolver.explain.edits import Cost
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.instance import ProblemInstance

    SolveAgain = Callable[[Request], "Outcome | None"]

MOST_READS_OF_ONE = 400
"""The number of versions whose metadata may be read for one fix.

A fix of a large conflict takes some hundreds; one that takes thousands would keep the user waiting for too long.
"""


class Outcome(NamedTuple):
    """The answer to a changed request: the versions in it, by name, its doubts, and the requested extras that it lacks.

    `is_whole` is False for an answer that leaves out the frameworks whose builds are on an index out of reach.
    """

    gives: Mapping[str, str]
    doubts: tuple[Doubt, ...]
    unknown_extras: tuple[UnknownExtra, ...] = ()
    is_whole: bool = True

    @property
    def is_measured(self) -> bool:
        """Whether no doubt is about the chosen versions themselves, such as that nobody measured their GPU code."""
        return not any(one.is_of_choice for one in self.doubts)

    @property
    def told(self) -> Mapping[str, str]:
        """The versions to tell: without the frameworks that are left out, which Python the answer has says nothing."""
        return self.gives if self.is_whole else {name: version for name, version in self.gives.items() if name != "python"}

    @property
    def is_settled(self) -> bool:
        """Whether the chosen versions are measured, and none is left out for want of its index."""
        return self.is_whole and self.is_measured


class Working(Struct, frozen=True, kw_only=True):
    """A set of edits verified to give an answer, with their costs and outcome, by which fixes are ranked.

    `chosen` are the candidates that the edits change requests and facts to; empty when the edits are of other inputs.
    `is_least`: no part of the edits gives an answer. `place` is the place of edits of other inputs among those that were tried,
    the nearest first; 0 for edits of requests and facts.
    """

    edits: tuple[Edit, ...]
    costs: tuple[Cost, ...]
    outcome: Outcome
    chosen: frozenset[Candidate] = frozenset()
    is_least: bool = True
    place: int = 0

    @property
    def identities(self) -> frozenset[tuple[object, ...]]:
        """The identities of the edits."""
        return frozenset(edit.identity for edit in self.edits)

    @property
    def gives_up(self) -> bool:
        """Whether one of the edits drops a request."""
        return any(edit.gives_up for edit in self.edits)

    @property
    def is_last_resort(self) -> bool:
        """Whether the edits give up the GPU or a request, or change hardware."""
        return max(self.costs)[0] >= Effort.NO_GPU

    @property
    def rank(self) -> tuple[object, ...]:
        """The rank among fixes, lowest first: fixes with measured choices, those with unmeasured ones, then last resorts."""
        told = [(edit.change, str(edit.identity)) for edit in self.edits]
        return self.is_last_resort, not self.outcome.is_measured, rank(list(self.costs)), self.place, told


def fix_of(edits: Sequence[Edit], gives: Mapping[str, str], request: Request) -> Fix:
    """Return edits of a request as a fix, which names the hosts if the request has more than one machine.

    `gives` are the versions of the answer, by name.
    """
    names_hosts = sum(target.count for target in request.hosts) > 1
    labels = {target.label: target.names or (target.label,) for target in request.hosts} if names_hosts else {}
    requested = frozenset(request.spec.requires)
    return Fix(edits=tuple(edits), gives=gives, hosts=labels, requested=requested, patch=patch_of(request, edits))


def rejoined(problem: Problem, request: Request) -> Problem:
    """Return the problem of a changed request, with the extra requirements of `problem`, such as a question or a lock."""
    return join(problem.matrix, request).with_roots(*problem.extra)


def applied(request: Request, edits: Iterable[Edit]) -> Request:
    """Return a request after the edits were applied in order."""
    for edit in edits:
        request = edit.apply(request)
    return request


def gives(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> dict[str, str]:
    """Return the versions of an answer that a fix shows, by name, sorted.

    They are those of frameworks, CUDA, ROCm, Python and the distributions of the spec.
    """
    found: dict[str, str] = {}
    for key, candidate in pins.items():
        if key.name == "pytorch" and isinstance(candidate, ReleaseCandidate) and candidate.build is not None:
            found["pytorch"] = str(candidate.release.version)
            found["pytorch_build"] = candidate.build.name
        elif key.name in {"cuda", "rocm", "python", "tensorflow", "jax"}:
            found[key.name] = candidate.label
    found.update({key.name: pins[key].label for key in instance.named if key in pins})
    return dict(sorted(found.items()))


def outcome(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Outcome:
    """Return the outcome of an answer."""
    return Outcome(gives(instance, pins), doubts_of(instance, pins), tuple(unknown_extras(instance, pins)))


def outcome_of(solve_again: SolveAgain, request: Request, edits: Sequence[Edit]) -> Outcome | None:
    """Return the outcome of a request after some edits; None when there is no answer or an index cannot be reached."""
    try:
        return solve_again(applied(request, edits))
    except ProvisionError:
        return None
