"""What the spec says of distributions without asking for them: constraints, and the hashes their files must have.

Neither brings anything in. A version that one of them rules out requires what cannot be beside it, another version of itself,
and so needs no seat in any search: the searches know beforehand that it is out, and a conflict still names the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.utils import canonicalize_name

from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.solve.choices.markers import NEWEST_PATCH, is_settled
from provisioner.solve.requirement import Candidate, Matching, Origin, Requirement, Test

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from packaging.requirements import Requirement as Pep508
    from packaging.specifiers import SpecifierSet

    from provisioner.solve.choices.markers import Markers
    from provisioner.solve.requirement import Key
    from provisioner.request import Request


class Hashed(Struct, frozen=True):
    """The candidate's file has one of some sha256 digests."""

    digests: frozenset[str]

    def allows(self, candidate: Candidate) -> bool:
        """Whether the file of the candidate, a distribution, is one of those that may be installed."""
        file = getattr(candidate.subject, "file", None)
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


def constraints_of(request: Request) -> tuple[tuple[Pep508, Origin], ...]:
    """The spec's constraints, each with its line."""
    from packaging.requirements import Requirement as Parsed

    found = []
    for index, text in enumerate(request.spec.constraints):
        constraint = Parsed(text)
        name = canonicalize_name(constraint.name)
        place = request.place(f"constraints.{index}")
        found.append((constraint, Origin("request", name, f"constraints.{index}", f"you constrain {text}", place)))
    return tuple(found)


class Bounds:
    """The constraints and hashes of one problem, in one environment.

    Without `markers`, which is where no Python has been chosen yet, what depends on the Python does not bind.
    """

    def __init__(self, constraints: Sequence[tuple[Pep508, Origin]], request: Request, markers: Markers | None = None) -> None:
        self._request = request
        self._tests: dict[str, list[tuple[Test, Origin]]] = {}
        for constraint, origin in constraints:
            marker = constraint.marker
            is_open = marker is not None and markers is None and not is_settled(marker, request.platform)
            if not is_open and (markers is None or markers.hold(marker)):
                self._tests.setdefault(canonicalize_name(constraint.name), []).append((Matching(constraint.specifier), origin))
        for name, digests in request.spec.hashes.items():
            place = request.place(f"hashes.{name}")
            text = f"you give hashes of {name}, and no file for this target has one of them"
            origin = Origin("request", name, f"hashes.{name}", text, place)
            self._tests.setdefault(name, []).append((Hashed(frozenset(digests)), origin))
        self._requirements: dict[tuple[Key, int], Requirement] = {}

    def without(self, groups: Collection[str]) -> Bounds:
        """The same but for some lines of the spec; itself where none of them is about a distribution's versions."""
        if not any(origin.group in groups for tests in self._tests.values() for _, origin in tests):
            return self
        found = Bounds((), self._request)
        kept = {name: [pair for pair in tests if pair[1].group not in groups] for name, tests in self._tests.items()}
        found._tests = {name: tests for name, tests in kept.items() if tests}
        return found

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
            self._required(candidate.key, index, test, origin) for index, (test, origin) in enumerate(self._of(candidate))
        )

    def pins(self, candidate: Candidate) -> bool:
        """Whether a constraint names exactly this version, which lets in a release that was withdrawn (PEP 592), as in pip."""
        return any(is_exact(test) and test.allows(candidate) for test, _ in self._of(candidate))

    def _of(self, candidate: Candidate) -> list[tuple[Test, Origin]]:
        """The tests of a candidate's distribution; hashes are of files, which only distributions have."""
        if not self._tests:
            return []
        key = candidate.key
        name = key.name.partition("[")[0] if key.is_package else DISTRIBUTION_OF_COMPONENT.get(key.name, "")
        return [pair for pair in self._tests.get(name, ()) if _is_about(pair[0], candidate)]

    def _required(self, key: Key, index: int, test: Test, origin: Origin) -> Requirement:
        found = self._requirements.get((key, index))
        if found is None:
            found = self._requirements[key, index] = Requirement(key, test, origin)
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
    return getattr(candidate.subject, "file", None) is not None
