"""Policies of the spec: the words it forbids, as requirements of candidates, and the versions it prefers and avoids.

A word is an entry of `policy.forbid` or `policy.allow`, such as `end-of-life`. Each forbidden word is a key of its own with two
candidates: the word is in force (`kept`), or it is lifted, which means that the spec no longer forbids it. The request demands
the former; a candidate that the word applies to demands the latter. So a conflict names the spec's line, the fact and
the target, and dropping the word is an edit like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.grounds.predicate import WrittenBySeveral
from provisioner.grounds.requirement import Forbids, Relation
from provisioner.host.facts import stated
from provisioner.names import COMPONENT_OF_DISTRIBUTION, DISTRIBUTION_OF_COMPONENT, pep508
from provisioner.resolver.requirement import (
    SEVERAL,
    SHARED_FILE,
    TORCH,
    Candidate,
    Key,
    Labelled,
    ReleaseCandidate,
    Requirement,
    build_of,
)
from provisioner.resolver.rules.facts import FACTS, is_stated_as
from provisioner.resolver.rules.lifecycle import WEEK, SupportStatus
from provisioner.resolver.rules.shared_files import shared_file_needs
from provisioner.versions import Range, Version, without_local

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.grounds.predicate import Predicate
    from provisioner.grounds.source import Source
    from provisioner.matrix.model import Build, Component, Matrix, Release
    from provisioner.request import Request
    from provisioner.spec.model import Policy

Some = TypeVar("Some", bound=Candidate)

POLICY = "policy"
IN_FORCE = "kept"
"""The label of the candidate of a forbidden word with which the word is in force."""

WORDS = frozenset({"end-of-life", "feature-branch", "recent", "prerelease", "patched-kernel", "shared-files"})
"""Words that exclude candidates when forbidden. All other words permit ways to meet a requirement: see `Request.allowed`."""

DATED = frozenset({"driver", "amdgpu", "webdriver", "kernel"})
"""Components of a host to which the word `recent` applies; the age of other facts of a host is not judged."""

STABLE = ("end-of-life", "feature-branch", "recent", "prerelease")
"""The words that `strategy: stable` forbids."""

_ONLY_STABLE = frozenset({"feature-branch", "recent"})


class PolicyRequirements:
    """The keys and requirements of the words that a request forbids."""

    def __init__(self, matrix: Matrix, request: Request) -> None:
        self._request = request
        self._matrix = matrix
        self.support_status = SupportStatus(matrix, request.spec.policy.exclude_newer)
        self._forbidden = dict(self._words())

    def _words(self) -> Iterator[tuple[str, Forbids]]:
        """Yield every forbidden word with its ground: the policy's strategy, or an entry of `forbid`."""
        policy, place = self._request.spec.policy, self._request.place
        for word in STABLE if policy.strategy == "stable" else ():
            if word not in policy.allow:
                day = str(self.support_status.day) if word == "recent" else ""
                yield word, Forbids(word=word, place=place("policy.strategy"), is_by_strategy=True, day=day)
        for index, word in enumerate(policy.forbid):
            if word in WORDS:
                yield word, Forbids(word=word, place=place(f"policy.forbid.{index}"))

    @property
    def words(self) -> frozenset[str]:
        """The words that the request forbids, through its strategy or in `policy.forbid`."""
        return frozenset(self._forbidden)

    @property
    def domains(self) -> dict[Key, tuple[Candidate, ...]]:
        """The candidates by key, one key for each forbidden word: the word is in force, or lifted by a change of the spec."""
        found = {}
        for word in self._forbidden:
            key = _key(word)
            found[key] = tuple(Candidate(key, Version.named(label), label) for label in (IN_FORCE, _lifted(word)))
        return found

    @property
    def roots(self) -> tuple[Requirement, ...]:
        """The root requirements that every forbidden word is in force."""
        return tuple(
            Requirement(_key(word), Labelled(frozenset({IN_FORCE})), ground) for word, ground in self._forbidden.items()
        )

    def of(self, candidate: Candidate) -> Iterator[Requirement]:
        """Yield, for each forbidden word that applies to a candidate, the requirement that the word is lifted.

        For the candidate of a shared file's key these are the requirements of `_of_shared_file`.
        """
        if candidate.key.component == SHARED_FILE:
            yield from self._of_shared_file(candidate)
            return
        if not self._forbidden:
            return
        for fact in self.support_status.facts(candidate):
            if fact.word in self._forbidden and not self._is_excused(candidate, fact.word):
                yield self.lift(candidate, fact.word, fact.predicate, source=fact.source)

    def _of_shared_file(self, candidate: Candidate) -> Iterator[Requirement]:
        """Yield the requirements of a candidate of a shared file's key.

        For a key with an owner it is the requirement that this distribution owns the file. For the candidate `SEVERAL` it is
        that the word `shared-files` is lifted.
        """
        needed = shared_file_needs(self._matrix, candidate)
        if needed is not None:
            yield needed
        if candidate.label != SEVERAL:
            return
        row = next(row for row in self._matrix.shared_files if candidate.key.name == f"{SHARED_FILE}:{row.name}")
        yield self.lift(
            candidate, "shared-files", WrittenBySeveral(row.path), source=self._matrix.place_of(f"shared-file:{row.name}")
        )

    def lift(self, candidate: Candidate, word: str, predicate: Predicate, *, source: Source | None) -> Requirement:
        """Return the requirement of a candidate that a forbidden word is lifted.

        The candidate cannot be chosen while the word is in force. `predicate` is the fact to which the word applies, `source`
        the citation of that fact.
        """
        ground = candidate.entails(predicate, Relation(candidate.key.component, f"{word} lifted"), source)
        return Requirement(_key(word), Labelled(frozenset({_lifted(word)})), ground)

    def _is_excused(self, candidate: Candidate, word: str) -> bool:
        """Return whether a forbidden word does not exclude a candidate because a host states that very version.

        A stated driver of a branch without a designation may be a supported one: that remains unverified. The age of a stated
        container toolkit or compiler is not judged.
        """
        component = candidate.key.component
        if word == "recent" and component in FACTS and component not in DATED:
            return any(is_stated_as(stated(target.host, component), candidate.label) for target in self._request.hosts)
        if word != "feature-branch" or self.support_status.is_designated(candidate):
            return False
        return any(is_stated_as(stated(target.host, "driver"), candidate.label) for target in self._request.hosts)


def _key(word: str) -> Key:
    return Key(f"{POLICY}:{word}")


def _lifted(word: str) -> str:
    """Return the line of the spec that would lift a word; it is also the label of that candidate."""
    return "strategy: newest" if word in _ONLY_STABLE else f"allow: [{word}]"


def offered(component: Component, prereleases: Sequence[Release], request: Request, *, scope: str = "") -> Sequence[Release]:
    """Return those of the prereleases of a component that may be candidates: if they are allowed, pinned or stated by a host.

    `scope` is the label of the host for whose key the candidates are, "" for a key that all hosts share: a prerelease that one
    host states is no candidate for another. If the policy forbids prereleases, they are returned, too, so that a conflict can
    name the line that excludes them.
    """
    policy = request.spec.policy
    if not prereleases or "prerelease" in policy.allow or "prerelease" in policy.forbid:
        return prereleases
    named = _named(component, request, scope)
    return [one for one in prereleases if str(one.version) in named]


def _named(component: Component, request: Request, scope: str) -> frozenset[str]:
    """Return the versions that the spec pins, or that the host `scope` states; if `scope` is "", those that any host states."""
    clauses = request.spec.requires.get(component.name, "").split(",")
    pinned = {without_local(clause.strip().lstrip("=").strip()) for clause in clauses}
    for wanted in map(pep508, request.spec.packages if component.name in DISTRIBUTION_OF_COMPONENT else ()):
        if resolved(wanted.name) == component.name:
            pinned.update(without_local(clause.version) for clause in wanted.specifier)
    hosts = (target.host for target in request.hosts if scope in {"", target.label})
    return frozenset(pinned.union(filter(None, (stated(host, component.name) for host in hosts))))


class VersionPreference:
    """The versions of a component or distribution that a request prefers and avoids.

    Both order candidates and exclude none: candidates that are not avoided come first, among them the preferred ones.
    """

    def __init__(self, request: Request, name: str) -> None:
        policy = request.spec.policy
        self._prefer = _wanted(policy.prefer, name)
        self._avoid = _wanted(policy.avoid, name)

    def __bool__(self) -> bool:
        return self._prefer is not None or self._avoid is not None

    def rank(self, candidate: Candidate) -> tuple[bool, bool]:
        """Return the sort key of a candidate, lower for a preferred one.

        It consists of whether the policy avoids the candidate, and whether the policy prefers other versions.
        """
        is_preferred = self._prefer is not None and _takes(self._prefer, candidate)
        return self.avoids(candidate), self._prefer is not None and not is_preferred

    def avoids(self, candidate: Candidate) -> bool:
        """Return whether the policy avoids the version of a candidate."""
        return self._avoid is not None and _takes(self._avoid, candidate)

    def rank_of(self, version: Version) -> tuple[bool, bool]:
        """Return whether the policy avoids a version, and whether it prefers others: a sort key, (False, False) for the first.

        The version, which may be a name such as `open`, is of this component; a candidate of another one requires it.
        """
        is_avoided = self._avoid is not None and _allows(self._avoid, version)
        return is_avoided, self._prefer is not None and not _allows(self._prefer, version)


def _wanted(table: Mapping[str, str], name: str) -> str | None:
    """Return the range in a table of the policy for a component or distribution, by any of its names; None if it has none."""
    return next((text for key, text in table.items() if resolved(key) == resolved(name)), None)


def resolved(name: str) -> str:
    """Return the component that a distribution's name means, otherwise the normalized name: `pytorch` for `torch`."""
    canonical = canonicalize_name(name)
    return COMPONENT_OF_DISTRIBUTION.get(canonical, canonical)


def _takes(text: str, candidate: Candidate) -> bool:
    if candidate.key.is_package:
        return _specifier(text).contains(candidate.pep440, prereleases=True)
    return candidate.label == text if not candidate.version.release else _allows(text, candidate.version)


def _allows(text: str, version: Version) -> bool:
    return Range.parse(text).allows(version) if version.release else version.text == text


def _specifier(text: str) -> SpecifierSet:
    """Return a range of the policy as a PEP 440 specifier.

    A range that only the matrix's grammar allows, such as `3.12`, becomes the specifier of that series.
    """
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return SpecifierSet(str(Range.parse(text)))


def arranged(candidates: Sequence[Some], request: Request, name: str) -> tuple[Some, ...]:
    """Return a component's candidates in order of preference: by `prefer` and `avoid`, then the locked one, then as given.

    The spec counts more than an earlier lock: `avoid: {python: "3.13"}` is about the locked environment, too.
    """
    policy, locked = request.spec.policy, request.preferred.get(name)
    if not (policy.prefer or policy.avoid):
        return tuple(candidates) if locked is None else tuple(sorted(candidates, key=lambda one: one.label != locked))
    preference = VersionPreference(request, name)
    places: dict[Version | None, int] = {}
    rank: dict[Some, tuple[int, bool, bool]] = {}
    for one in candidates:  # builds of one release share its index; names have no order and share one index, too
        place = places.setdefault(one.version if one.version.release else None, len(places))
        rank[one] = (place, *_rank_of_needs(one, request))
    kept = next((one for one in candidates if one.label == locked), None)
    if kept is not None and any(rank[one][0] == rank[kept][0] and rank[one] < rank[kept] for one in candidates):
        kept = None
    return tuple(sorted(candidates, key=lambda one: (*preference.rank(one), one is not kept, rank[one])))


def _rank_of_needs(candidate: Candidate, request: Request) -> tuple[bool, bool]:
    """Return the sort key of a build or image by its name and the single versions it requires, such as its CUDA and Python.

    It consists of whether the candidate requires an avoided version, and whether it requires one that is not preferred.
    Components are decided in the matrix's order, so a preferred CUDA alone would come too late: PyTorch's build is decided
    before and requires a CUDA.
    """
    if not isinstance(candidate, ReleaseCandidate):
        return False, False
    policy = request.spec.policy
    release, build = candidate.release, candidate.build
    fixed = dict(_fixed(release, build))
    if build is not None:
        fixed[resolved(f"{candidate.key.component}_build")] = Version.named(build.name)
    names = dict.fromkeys((*policy.prefer, *policy.avoid))
    ranks = [VersionPreference(request, name).rank_of(fixed[resolved(name)]) for name in names if resolved(name) in fixed]
    return any(is_avoided for is_avoided, _ in ranks), any(is_other for _, is_other in ranks)


def _fixed(release: Release, build: Build | None) -> Iterator[tuple[str, Version]]:
    for need in (*release.requires, *(build.requires if build is not None else ())):
        versions = need.one_of or tuple(one.version for one in need.range.clauses if one.operator in {"==", "==="})
        if len(versions) == 1:
            yield resolved(need.component), versions[0]


def avoided(request: Request, pins: Mapping[Key, Candidate]) -> Iterator[tuple[str, Candidate]]:
    """Yield the chosen candidates that the policy avoids, each with the name under which the policy lists it.

    `pins` are the chosen candidates.
    """
    for name, text in request.spec.policy.avoid.items():
        for key, candidate in pins.items():
            if key == TORCH or "[" in key.name:
                continue  # the wheel of a chosen PyTorch, an extra of a chosen distribution
            build = build_of(candidate)
            is_build = resolved(name) == "pytorch-build" and key.name == "pytorch" and build is not None and build.name == text
            if is_build or (resolved(key.shown_name) == resolved(name) and VersionPreference(request, name).avoids(candidate)):
                yield name, candidate


def uploads_until(matrix: Matrix, policy: Policy) -> str | None:
    """Return the last day, or time, at which a file may have been uploaded; None for no limit.

    It is the policy's `exclude-newer`; with `strategy: stable` it is a week before the day of `policy_day`.
    """
    if policy.strategy != "stable":
        return policy.exclude_newer
    day = SupportStatus(matrix, policy.exclude_newer).day
    return None if day is None else str(day - WEEK)
