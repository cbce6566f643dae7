"""Constraints, hashes and overrides of the spec: they restrict or replace requirements on distributions and add none.

A version that a constraint or a hash excludes gets a requirement on its own key that it does not satisfy. The searches can
therefore skip the version without choosing it first, and a conflict still names the line of the spec.

An override replaces every requirement on its distribution, as in uv; several overrides of one distribution, for different
environments, all replace each requirement. A requirement whose own marker does not hold is not replaced, nor are the matrix's
rows about a distribution. Source: uv documentation, "Dependency overrides", read 2026-11-21.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.requirements import Requirement as Pep508
from packaging.utils import canonicalize_name

from provisioner.grounds.requirement import Constrains, GivesHashes, Supposes
from provisioner.grounds.requirement import Overrides as Override
from provisioner.index.markers import NEWEST_PATCH, holds_for
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.requirement import Candidate, FileCandidate, Matching, Requirement, Test

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from packaging.specifiers import SpecifierSet

    from provisioner.grounds.requirement import Ground, Group
    from provisioner.index.markers import Markers
    from provisioner.request import Request
    from provisioner.resolver.requirement import Key


class Hashed(Struct, frozen=True):
    """The test that the SHA-256 digest of a candidate's file is one of `digests`; a candidate without a file fails."""

    digests: frozenset[str]

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the candidate has a file and its digest is listed."""
        file = candidate.release.file if isinstance(candidate, FileCandidate) else None
        return file is not None and file.sha256 in self.digests

    def __str__(self) -> str:
        return "a file with a known hash"


class ForPython(Struct, frozen=True):
    """The test that the newest patch release of a Python series such as `3.12` satisfies `specifier`, a Requires-Python."""

    specifier: SpecifierSet

    def allows(self, candidate: Candidate) -> bool:
        """Return whether a project with this Requires-Python runs on the candidate, a Python series."""
        return self.specifier.contains(f"{candidate.label}.{NEWEST_PATCH}", prereleases=True)

    def __str__(self) -> str:
        return str(self.specifier)


def constraints_of(request: Request) -> tuple[tuple[Pep508, Constrains], ...]:
    """Return the constraints of the spec, each parsed and with its ground, which names its line."""
    from packaging.requirements import Requirement as Parsed

    found = []
    for index, text in enumerate(request.spec.constraints):
        constraint = Parsed(text)
        name = canonicalize_name(constraint.name)
        place = request.place(f"constraints.{index}")
        found.append((constraint, Constrains(index=index, distribution=name, requirement=text, place=place)))
    return tuple(found)


class Bounds:
    """The bounds of one environment: the constraints and hashes of the spec that apply in it.

    `markers` evaluates environment markers with the chosen Python. If it is None, as before a Python is chosen, a constraint
    applies only if its marker holds with each of `pythons`, the Pythons that the spec allows.
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
        """Return the bounds except those whose line of the spec is in `groups`; this object itself if nothing is dropped."""
        if not any(ground.group in groups for tests in self._tests.values() for _, ground in tests):
            return self
        found = Bounds((), self._request)
        kept = {name: [pair for pair in tests if pair[1].group not in groups] for name, tests in self._tests.items()}
        found._tests = {name: tests for name, tests in kept.items() if tests}
        return found

    @property
    def grounds(self) -> tuple[Ground, ...]:
        """One ground for each constraint and each file hash of the spec whose marker holds in the target environment."""
        return tuple(ground for tests in self._tests.values() for _, ground in tests)

    @property
    def is_empty(self) -> bool:
        """Whether no constraint and no hash applies in the environment."""
        return not self._tests

    def excludes(self, candidate: Candidate) -> bool:
        """Return whether a constraint or a hash excludes a candidate."""
        return any(not test.allows(candidate) for test, _ in self._of(candidate))

    def of(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return the bounds that exclude a candidate, as requirements on the candidate's key; () when none does."""
        return tuple(one for one in self.about(candidate) if not one.test.allows(candidate))

    def about(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return all bounds on a candidate's distribution, also those that it meets, as requirements on its key."""
        return tuple(
            self._required(candidate.key, index, test, ground) for index, (test, ground) in enumerate(self._of(candidate))
        )

    def pins(self, candidate: Candidate) -> bool:
        """Return whether a constraint pins exactly this candidate's version, which may then be yanked (PEP 592), as in pip."""
        return any(is_exact(test) and test.allows(candidate) for test, _ in self._of(candidate))

    def _of(self, candidate: Candidate) -> list[tuple[Test, Ground]]:
        """Return the bounds that apply to a candidate, each as a test with its ground."""
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
    """Return whether a test pins one exact version, as `==1.2` does and `==1.*` does not."""
    return isinstance(test, Matching) and any(
        one.operator in {"==", "==="} and not one.version.endswith(".*") for one in test.specifier
    )


def _is_about(test: Test, candidate: Candidate) -> bool:
    """Return whether the test of a bound applies to a candidate.

    Hashes apply to distributions only, and there not to a version without a file, which another requirement excludes.
    """
    if not candidate.key.is_package:
        return isinstance(test, Matching)
    if not isinstance(test, Hashed):
        return True
    return isinstance(candidate, FileCandidate) and candidate.release.has_file


Grounded = tuple[Pep508, "Ground"]
"""A requirement on a distribution, with its ground: the line or metadata that it comes from."""

_NEVER = Supposes()
"""The ground of the requirement that replaces a removed one and whose marker never holds, so that no conflict has this
ground."""


class Overrides:
    """The overrides of one spec, grouped by the distribution that they are about."""

    def __init__(self, request: Request, dropped: Iterable[str] = ()) -> None:
        """Read the overrides of the spec; every requirement on a distribution in `dropped` is removed, overridden or not."""
        self._request = request
        self._found: dict[str, list[Grounded]] = {}
        for index, text in enumerate(request.spec.overrides):
            override = Pep508(text)
            name = canonicalize_name(override.name)
            place = request.place(f"overrides.{index}")
            ground = Override(index=index, distribution=name, requirement=text, place=place)
            self._found.setdefault(name, []).append((override, ground))
        self._found.update({name: [(Pep508(f"{name}; python_version < '0'"), _NEVER)] for name in dropped})

    @property
    def grounds(self) -> tuple[Ground, ...]:
        """The ground of every override of the spec."""
        return tuple(ground for some in self._found.values() for _, ground in some)

    def __bool__(self) -> bool:
        return bool(self._found)

    def dropping(self, names: Iterable[str]) -> Overrides:
        """Return the overrides of the spec, with every requirement on a distribution in `names` removed."""
        return Overrides(self._request, names)

    def of(self, name: str) -> list[Grounded]:
        """Return the overrides that replace each requirement on the distribution `name`; [] when there is none."""
        return self._found.get(name, [])

    def applied(self, requirement: Pep508, ground: Ground) -> list[Grounded]:
        """Return what replaces a requirement of the spec: the overrides of its distribution, each with its ground.

        Each override keeps its own marker and gets that of the requirement. Without an override the result is the given pair.
        """
        overrides = self.of(canonicalize_name(requirement.name))
        if not overrides:
            return [(requirement, ground)]
        return [(_under(requirement, override), by) for override, by in overrides]


def _under(requirement: Pep508, override: Pep508) -> Pep508:
    """Return an override whose marker is the conjunction of its own and that of the requirement it replaces."""
    markers = [f"({one.marker})" for one in (requirement, override) if one.marker is not None]
    found = Pep508(str(override).partition(";")[0].strip())
    return Pep508(f"{found}; {' and '.join(markers)}") if markers else found
