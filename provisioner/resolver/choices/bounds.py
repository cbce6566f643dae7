"""What the spec says of distributions without asking for them: constraints, and the hashes their files must have.

Neither brings anything in. A version that one of them rules out requires what cannot be beside it, another version of itself,
and so needs no seat in any search: the searches know beforehand that it is out, and a conflict still names the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.utils import canonicalize_name

from provisioner.grounds.requirement import Constrains, GivesHashes
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.choices.markers import NEWEST_PATCH, holds_for
from provisioner.resolver.requirement import Candidate, FileCandidate, Matching, Requirement, Test

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from packaging.requirements import Requirement as Pep508
    from packaging.specifiers import SpecifierSet

    from provisioner.grounds.requirement import Ground, Group
    from provisioner.request import Request
    from provisioner.resolver.choices.markers import Markers
    from provisioner.resolver.requirement import Key


class Hashed(Struct, frozen=True):
    """The candidate's file has one of some sha256 digests."""

    digests: frozenset[str]

    def allows(self, candidate: Candidate) -> bool:
        """Whether the file of the candidate, a distribution, is one of those that may be installed."""
        file = candidate.release.file if isinstance(candidate, FileCandidate) else None
        return file is not None and file.sha256 in self.digests

    def __str__(self) -> str:
        return "a file with a known hash"


class ForPython(Struct, frozen=True):
    """The candidate is a Python series of which the newest patch release is in a range."""

    specifier: SpecifierSet

    def allows(self, candidate: Candidate) -> bool:
        """Whether a project that states this range runs on the candidate."""
        return self.specifier.contains(f"{candidate.label}.{NEWEST_PATCH}", prereleases=True)

    def __str__(self) -> str:
        return str(self.specifier)


def constraints_of(request: Request) -> tuple[tuple[Pep508, Constrains], ...]:
    """The spec's constraints, each with its line."""
    from packaging.requirements import Requirement as Parsed

    found = []
    for index, text in enumerate(request.spec.constraints):
        constraint = Parsed(text)
        name = canonicalize_name(constraint.name)
        place = request.place(f"constraints.{index}")
        found.append((constraint, Constrains(index=index, distribution=name, requirement=text, place=place)))
    return tuple(found)


class Bounds:
    """The constraints and hashes of one problem, in one environment.

    `markers` are those of the chosen Python. Without them, before one is chosen, a constraint binds whose marker holds with
    each of `pythons`, those that the spec leaves.
    """

    def __init__(
        self,
        constraints: Sequence[tuple[Pep508, Constrains]],
        request: Request,
        markers: Markers | None = None,
        pythons: Collection[str] = (),
    ) -> None:
        self._request = request
        self._tests: dict[str, list[tuple[Test, Ground]]] = {}
        for constraint, ground in constraints:
            marker = constraint.marker
            binds = holds_for(marker, request.platform, pythons) if marker and markers is None else True
            if markers.hold(marker) if markers is not None else binds:
                self._tests.setdefault(canonicalize_name(constraint.name), []).append((Matching(constraint.specifier), ground))
        for name, digests in request.spec.hashes.items():
            hashes = GivesHashes(distribution=name, place=request.place(f"hashes.{name}"))
            self._tests.setdefault(name, []).append((Hashed(frozenset(digests)), hashes))
        self._requirements: dict[tuple[Key, int], Requirement] = {}

    def without(self, groups: Collection[Group]) -> Bounds:
        """The same but for some lines of the spec; itself where none of them is about a distribution's versions."""
        if not any(ground.group in groups for tests in self._tests.values() for _, ground in tests):
            return self
        found = Bounds((), self._request)
        kept = {name: [pair for pair in tests if pair[1].group not in groups] for name, tests in self._tests.items()}
        found._tests = {name: tests for name, tests in kept.items() if tests}
        return found

    @property
    def grounds(self) -> tuple[Ground, ...]:
        """Every constraint and hash that binds here."""
        return tuple(ground for tests in self._tests.values() for _, ground in tests)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is bounded."""
        return not self._tests

    def excludes(self, candidate: Candidate) -> bool:
        """Whether a candidate is out."""
        return any(not test.allows(candidate) for test, _ in self._of(candidate))

    def of(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """What rules a candidate out: requirements of its own key that it does not meet."""
        return tuple(one for one in self.about(candidate) if not one.test.allows(candidate))

    def about(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Everything that bounds a candidate's distribution, met or not, as requirements of the candidate's key."""
        return tuple(
            self._required(candidate.key, index, test, ground) for index, (test, ground) in enumerate(self._of(candidate))
        )

    def pins(self, candidate: Candidate) -> bool:
        """Whether a constraint names exactly this version, which lets in a release that was withdrawn (PEP 592), as in pip."""
        return any(is_exact(test) and test.allows(candidate) for test, _ in self._of(candidate))

    def _of(self, candidate: Candidate) -> list[tuple[Test, Ground]]:
        """The tests of a candidate's distribution; hashes are of files, which only distributions have."""
        if not self._tests:
            return []
        key = candidate.key
        name = key.distribution if key.is_package else DISTRIBUTION_OF_COMPONENT.get(key.name, "")
        return [pair for pair in self._tests.get(name, ()) if _is_about(pair[0], candidate)]

    def _required(self, key: Key, index: int, test: Test, ground: Ground) -> Requirement:
        found = self._requirements.get((key, index))
        if found is None:
            found = self._requirements[key, index] = Requirement(key, test, ground)
        return found


def is_exact(test: Test) -> bool:
    """Whether a test names one exact version, which `==1.*` does not."""
    return isinstance(test, Matching) and any(
        one.operator in {"==", "==="} and not one.version.endswith(".*") for one in test.specifier
    )


def _is_about(test: Test, candidate: Candidate) -> bool:
    """Whether a test can be asked of a candidate: a version without a file is out for a reason of its own."""
    if not candidate.key.is_package:
        return isinstance(test, Matching)
    if not isinstance(test, Hashed):
        return True
    return isinstance(candidate, FileCandidate) and candidate.release.file is not None
