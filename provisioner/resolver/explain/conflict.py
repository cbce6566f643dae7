"""Explain minimal conflicts, which are found by solving again and never from the causes that an engine reports.

A group is a set of requirements that a person could drop together, such as "cuda needs driver", which has a requirement for
every CUDA release. A conflict has a member for each of its groups. A member has statements such as "cuda 12.4 to 12.6 needs
driver >=525": a name, the subjects of which the predicate holds, and the predicate. Subjects are shown as spans: ranges of
versions that all have the predicate.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.components import FRAMEWORKS
from provisioner.grounds.conflict import (
    Conclusion,
    Conflict,
    ForAnother,
    Member,
    NotOffered,
    Offered,
    Span,
    Statement,
    Subjects,
    Withdrawn,
)
from provisioner.grounds.predicate import (
    BuiltFor,
    CompiledFor,
    CompiledForOthers,
    Needs,
    NeedsWithin,
    Requires,
    Unmeasured,
    joined,
    object_of,
)
from provisioner.grounds.requirement import (
    PYTHON_ATTEMPT,
    AsksAccelerator,
    AsksImage,
    AsksWhyNot,
    Entails,
    Forbids,
    HostGpu,
    RequiresComponent,
    RequiresDistribution,
)
from provisioner.grounds.source import Documents, Index
from provisioner.matrix.model import Distribution
from provisioner.matrix.once import once_per_matrix
from provisioner.names import COMPONENT_OF_DISTRIBUTION, nearest
from provisioner.places import Place
from provisioner.resolver.choices.constraints import ForPython
from provisioner.resolver.explain.fixes import fixes
from provisioner.resolver.explain.relaxable import for_another_accelerator, nearest_to_named
from provisioner.resolver.requirement import TORCH, FileCandidate, Matching, Within, build_of
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.proof import Member as Required
from provisioner.resolver.search.proof import Proof
from provisioner.versions import without_local

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from provisioner.grounds.conflict import Offer
    from provisioner.grounds.predicate import Predicate
    from provisioner.grounds.requirement import Ground, Group
    from provisioner.grounds.source import Source
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.explain.outcomes import SolveAgain
    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.instance import ProblemInstance

Groups = dict["Group", tuple[Required, ...]]
"""The requirements of a conflict by group."""

KINDS = ("request", "rule", "fact")

SHOWN = 4
"""The number of statements of a member that are shown before the rest is counted, and of versions that an offer names."""

SIMILAR = 0.8
"""The least similarity of a name that no index has to the one that is offered in its place (see `nearest`)."""

MOST_RANGES = 9
"""The number of ranges of one component or distribution that are listed as alternatives."""

MOST_SPANS = 4
"""The number of spans of a statement that are shown before the rest becomes `and others`."""


class Merged(Struct, frozen=True, kw_only=True):
    """Requirements that become one statement.

    `name` is the name of the statement's subjects, `predicate` its predicate, and `alike` are the predicates of the
    requirements (`members`). For a ground without a subject, which is not merged with others, `name` is "" and `predicate`
    None.
    """

    name: str
    predicate: Predicate | None
    members: tuple[Required, ...]
    alike: frozenset[Predicate]

    @property
    def subjects(self) -> frozenset[str]:
        """The versions of the subjects, as labels."""
        return frozenset(parent.label for parent, _ in self.members if parent is not None)


def explain_conflict(
    instance: ProblemInstance, search: CompleteSearch | None = None, *, solve_again: SolveAgain | None = None
) -> Conflict:
    """Return the conflict of an instance without an answer: its minimal members, in order, and fixes that were solved again.

    `search` is the search that proved that there is no answer; its clauses are used again, and it is closed here. `solve_again`
    solves a changed request and returns its outcome, None when there is none; it may be None itself (see `fixes`).
    """
    search = search or CompleteSearch(instance)
    try:
        groups = search.minimal()
        return replace(described(instance, search, groups), fixes=fixes(instance, search, groups, solve_again=solve_again))
    finally:
        search.close()


def described(instance: ProblemInstance, search: CompleteSearch, groups: Sequence[Group]) -> Conflict:
    """Return the conflict of `groups`, which cannot hold together: its members in order and its conclusion, without fixes."""
    by_group = needed_members(instance, search, groups)
    ordered = ordered_groups(instance, by_group)
    members = tuple(member_of_group(instance, by_group, group) for group in ordered)
    return Conflict(members=members, conclusion=conclusion_of(instance, [by_group[group] for group in ordered]))


def needed_members(instance: ProblemInstance, search: CompleteSearch, groups: Sequence[Group]) -> Groups:
    """Return a minimal choice of requirements that cannot hold together: those of each group, newest subject first."""
    proof = _proof(instance, [Required(parent, one) for group in groups for parent, one in search.members(group)])
    try:
        needed = proof.minimal_members(lambda member: (member.requirement.ground.group, _statement_of(member)))
    finally:
        proof.close()
    found: dict[Group, list[Required]] = {group: [] for group in groups}
    for member in needed:
        if member.requirement.ground.group != PYTHON_ATTEMPT:
            found[member.requirement.ground.group].append(member)
    return {group: tuple(sorted(some, key=_newest_first)) for group, some in found.items() if some}


def _proof(instance: ProblemInstance, members: Sequence[Required]) -> Proof:
    """Return the proof of some requirements: the Python of the environment holds, too, whatever else is dropped."""
    pythons = (Required(None, root) for root in instance.roots if root.ground.group == PYTHON_ATTEMPT)
    return Proof(instance, [*members, *pythons])


def _newest_first(member: Required) -> tuple[tuple[int, ...], str]:
    """Return the sort key of a requirement: newest subject first, independent of the order in which the search read them."""
    parent, _ = member
    if parent is None:
        return (), ""
    release = parent.pep440.release if parent.key.is_package else parent.version.release
    return tuple(-number for number in (*release, 0, 0, 0, 0)[:6]), parent.label


def ordered_groups(instance: ProblemInstance, by_group: Groups) -> list[Group]:
    """Return the groups of a conflict in order: requests, then rules, then facts of hosts.

    Among the requests, questions come first. Rules of distributions come before those of components, which are in the matrix's
    order.
    """
    order = instance.problem.order
    depths = _depths(by_group)

    def place(group: Group) -> tuple[object, ...]:
        members = by_group[group]
        kind = KINDS.index(members[0].requirement.ground.kind)
        subjects = [parent.key for parent, _ in members if parent is not None]
        is_package = all(key.is_package for key in subjects) if subjects else False
        subject = min((depths.get(key, 0) if is_package else order.get(key, -1) for key in subjects), default=-1)
        target = min((order.get(one.key, len(order)) for _, one in members), default=0)
        is_question = members[0].requirement in instance.problem.extra
        return kind, not is_question, not is_package, subject, target, str(group)

    return sorted(by_group, key=place)


def _depths(by_group: Groups) -> dict[Key, int]:
    """Return, for each key, the number of requirements between it and the nearest root requirement."""
    depths = {one.key: 0 for members in by_group.values() for parent, one in members if parent is None}
    edges = [(parent.key, one.key) for members in by_group.values() for parent, one in members if parent is not None]
    for _ in edges:
        for subject, target in edges:
            if subject in depths and depths.get(target, len(edges) + 1) > depths[subject] + 1:
                depths[target] = depths[subject] + 1
    return depths


def member_of_group(instance: ProblemInstance, by_group: Groups, group: Group, *, is_summed_up: bool = False) -> Member:
    """Return the member of a conflict for one of its groups, its requirements merged to statements.

    Ranges of one object are told one by one if there are no more than `SHOWN` statements, unless `is_summed_up`.
    """
    members = by_group[group]
    ground = members[0].requirement.ground
    merged = _merged(members)
    offer = _offer(instance, members[0].requirement) if len({one.ground for _, one in members}) == 1 else None
    for of_builds in (_of_the_platform, _of_no_platform, _of_other_gpus):
        merged = of_builds(instance, by_group, merged)
    if len(merged) > SHOWN and not is_summed_up:
        merged = _as_alternatives(merged)
    if len(merged) > SHOWN or is_summed_up:
        merged = _as_spans(instance, by_group, merged)
    more = 0
    if len(merged) > SHOWN:
        most = sorted(merged, key=lambda one: -len(one.members))[: SHOWN - 1]
        more = len({parent for one in merged if one not in most for parent, _ in one.members})
        merged = [one for one in merged if one in most]
    clauses = tuple(_clause(instance, one) for one in merged)
    return Member(
        kind=ground.kind,
        component=ground.component,
        group=group,
        clauses=clauses,
        sources=_sources(members),
        more=more,
        offer=offer,
    )


def _sources(members: Sequence[Required]) -> tuple[Source, ...]:
    """Return the sources of some requirements, each once, in their order.

    For a distribution whose requirements have none, the source is the index.
    """
    found = dict.fromkeys(one.ground.source for _, one in members)
    sources = tuple(source for source in found if source is not None and source != Documents(()))
    parent = members[0].parent
    return sources or ((Index(),) if parent is not None and parent.key.is_package else ())


# -- merged requirements ------------------------------------------------------------------------------------------------------


def _statement_of(member: Required) -> tuple[str, Predicate | Ground]:
    """Return the statement of a requirement: the name of its subject, and its predicate.

    "" and the ground itself when the ground has no predicate or its subject is not the candidate that has the requirement.
    """
    parent, requirement = member
    ground = requirement.ground
    if parent is None or not isinstance(ground, Entails):
        return "", ground
    if ground.subject is None:
        return ground.name, ground.predicate
    if ground.subject.label != parent.label:
        return "", ground
    # The wheel of a framework's build is reported as the build.
    return ground.name if parent.key == TORCH else ground.subject.name, ground.predicate


def _merged(members: Sequence[Required]) -> list[Merged]:
    """Return requirements merged by predicate, in order.

    Requirements that have the same subjects and allow different ranges of one object become alternatives of one statement.
    """
    by_statement: dict[tuple[str, Predicate | Ground], list[Required]] = {}
    for member in members:
        by_statement.setdefault(_statement_of(member), []).append(member)
    together: dict[object, list[Merged]] = {}
    for (name, statement), some in by_statement.items():
        ground = some[0].requirement.ground
        predicate = ground.predicate if isinstance(ground, Entails) and statement == ground.predicate else None
        alike = frozenset({predicate} if predicate is not None else ())
        merged = Merged(name=name, predicate=predicate, members=tuple(some), alike=alike)
        about: object = statement if predicate is None else object_of(predicate)
        about = predicate if about is None else about
        together.setdefault((name, about, merged.subjects), []).append(merged)
    return [some[0] if len(some) == 1 else _joined(some) for some in together.values()]


def _joined(some: Sequence[Merged], predicate: Predicate | None = None) -> Merged:
    """Return several merged requirements as one, with `predicate` or, if it is None, with their predicates as alternatives."""
    return Merged(
        name=some[0].name,
        predicate=predicate or joined([one.predicate for one in some if one.predicate is not None]),
        members=tuple(member for one in some for member in one.members),
        alike=frozenset(predicate for one in some for predicate in one.alike),
    )


def _object(merged: Merged) -> object:
    return object_of(merged.predicate) if merged.predicate is not None else None


def _of_the_platform(instance: ProblemInstance, by_group: Groups, found: list[Merged]) -> list[Merged]:
    """Return `found` without the compiled targets of builds for other platforms, if the target's build is among the members.

    A build has a row in the matrix for each platform, each with compiled targets of its own.
    """
    del by_group
    platform = instance.problem.request.platform

    def is_here(parent: Candidate | None) -> bool:
        if parent is None or parent.key.component not in FRAMEWORKS:
            return True
        build = build_of(parent)
        return build is None or not build.platforms or platform in build.platforms

    compiled = [member for one in found if isinstance(one.predicate, CompiledFor) for member in one.members]
    labels = {parent.label for parent, _ in compiled if parent is not None and is_here(parent)}
    kept = []
    for one in found:
        members = tuple(
            member
            for member in one.members
            if is_here(member.parent) or member.parent is None or member.parent.label not in labels
        )
        if members:
            kept.append(replace(one, members=members) if isinstance(one.predicate, CompiledFor) else one)
    return kept


def _of_no_platform(instance: ProblemInstance, by_group: Groups, found: list[Merged]) -> list[Merged]:
    """Return `found` as one statement if it has several and all of them state that builds are for other platforms.

    Otherwise `found` is returned unchanged.
    """
    del instance, by_group
    built = [one.predicate for one in found if isinstance(one.predicate, BuiltFor)]
    if len(found) < 2 or len(built) < len(found):
        return found
    return [_joined(found, BuiltFor(tuple(sorted({name for one in built for name in one.platforms})), is_all=True))]


def _of_other_gpus(instance: ProblemInstance, by_group: Groups, found: list[Merged]) -> list[Merged]:
    """Return `found` with three or more lists of compiled targets as one statement: the GPUs that the builds do not support.

    The example in the statement is the newest build. `found` is returned unchanged when it has fewer lists, or when no GPU of a
    host is in the conflict.
    """
    del instance
    lists = [one for one in found if isinstance(one.predicate, CompiledFor)]
    keys = {one.key for merged in lists for _, one in merged.members}
    roots = (one for members in by_group.values() for parent, one in members if parent is None)
    facts = (one.ground for one in roots if one.key in keys)
    missing = tuple(dict.fromkeys(ground.device for ground in facts if isinstance(ground, HostGpu)))
    if len(lists) < 3 or not missing:
        return found
    newest, first = lists[0].members[0].parent, lists[0].predicate
    assert newest is not None, "what is compiled is a build"
    assert isinstance(first, CompiledFor), "the list has nothing else"
    unmeasured = [one for one in found if isinstance(one.predicate, Unmeasured)]
    predicate = CompiledForOthers(missing=missing, example=newest.label, targets=first.targets, or_unmeasured=bool(unmeasured))
    summed_up = [*lists, *unmeasured]
    return [_joined(summed_up, predicate), *(one for one in found if one not in summed_up)]


def _as_alternatives(found: list[Merged]) -> list[Merged]:
    """Return `found` with all ranges of one object as alternatives of one statement.

    `found` is returned unchanged when the ranges are of several objects or more than `MOST_RANGES`.
    """
    ranges = [one for one in found if _object(one) is not None]
    objects = {(one.name, _object(one)) for one in ranges}
    if len(objects) != 1 or len(ranges) > MOST_RANGES:
        return found
    return [_joined(ranges), *(one for one in found if one not in ranges)]


def _as_spans(instance: ProblemInstance, by_group: Groups, found: list[Merged]) -> list[Merged]:
    """Return `found` with all ranges of one object replaced by one range around them, or by one on either side of a gap.

    The gap is what is asked for where some releases need older and some newer versions. `found` is returned unchanged when the
    ranges are of several objects, or when the conflict would not remain with the wider ones.
    """
    ranges = [one for one in found if _object(one) is not None]
    members = [member for one in ranges for member in one.members]
    keys = {one.key for _, one in members}
    if len(ranges) < 2 or len(keys) != 1 or len({_object(one) for one in ranges}) != 1:
        return found
    (key,) = keys
    domain = sorted(instance.candidates(key), key=lambda one: one.age)
    places = {id(one): _places(instance, one, domain) for one in ranges}
    whole = sorted({place for some in places.values() for place in some})
    if not whole or not (key.is_package or domain[0].version.release):
        return found
    # A range without candidates lies between the others: as a statement of its own it would split their span.
    none = [one for one in ranges if not places[id(one)]]
    proof = _proof(instance, [member for some in by_group.values() for member in some])
    try:
        for spans in _spans_around(whole):
            parts = [[one for one in ranges if places[id(one)] and places[id(one)] <= set(span)] for span in spans]
            if sum(map(len, parts)) + len(none) < len(ranges):
                continue  # a range reaches over the gap
            allowed = [domain[place] for span in spans for place in span]
            if proof.refutes(members, key=key, allowed=allowed):
                break
        else:
            return found
    finally:
        proof.close()
    others = [one for one in found if one not in ranges]
    if len(spans) == 1:
        rest = none[0].predicate if len(none) == 1 else None
        return [_joined(ranges, _within(key, ranges[0], domain, spans[0], otherwise=rest)), *others]
    told = [_joined(part, _within(key, part[0], domain, span)) for part, span in zip(parts, spans, strict=True)]
    return [*told, *none, *others]


def _places(instance: ProblemInstance, merged: Merged, domain: Sequence[Candidate]) -> set[int]:
    """Return the places in `domain` of the candidates that merged requirements allow."""
    allowed = {candidate for _, one in merged.members for candidate in instance.allowed(one)}
    return {place for place, candidate in enumerate(domain) if candidate in allowed}


def _spans_around(places: Sequence[int]) -> Iterator[tuple[range, ...]]:
    """Yield the span around sorted places, and then, for each gap between them, the spans on its two sides, newer first."""
    first, last = places[0], places[-1]
    yield (range(first, last + 1),)
    for below, above in reversed(list(pairwise(places))):
        if above > below + 1:
            yield range(above, last + 1), range(first, below + 1)


def _within(
    key: Key, merged: Merged, domain: Sequence[Candidate], span: range, *, otherwise: Predicate | None = None
) -> NeedsWithin:
    """Return the predicate that ranges of one object lie within a span of the domain; `merged` is one of them."""
    first = merged.predicate
    name = first.component if isinstance(first, Needs) else first.name if isinstance(first, Requires) else key.component
    return NeedsWithin(component=name, first=domain[span[0]].label, last=domain[span[-1]].label, otherwise=otherwise)


# -- subjects as spans ---------------------------------------------------------------------------------------------------------


def _clause(instance: ProblemInstance, merged: Merged) -> Ground | Statement:
    if merged.predicate is None:
        return merged.members[0].requirement.ground
    chosen: dict[Key, list[Candidate]] = {}
    for parent, _ in merged.members:
        assert parent is not None, "a predicate has a subject"
        chosen.setdefault(parent.key, []).append(parent)
    is_alike = _alike(instance, merged)
    subjects = dict.fromkeys(_subjects(instance, key, some, is_alike) for key, some in chosen.items())
    return Statement(name=merged.name, subjects=tuple(subjects), predicate=merged.predicate)


def _alike(instance: ProblemInstance, merged: Merged) -> Callable[[Candidate], bool]:
    """Return a function that returns whether a candidate has the predicate of a merged statement.

    For a distribution only versions in `merged` pass, because the metadata of others may not have been read.
    """
    known = {parent for parent, _ in merged.members}
    group = merged.members[0].requirement.ground.group

    def is_alike(candidate: Candidate) -> bool:
        if candidate in known or candidate.key.is_package:
            return candidate in known
        wanted = (one for one in instance.requirements(candidate) if one.ground.group == group)
        found = (_statement_of(Required(candidate, one)) for one in wanted)
        return any(name == merged.name and predicate in merged.alike for name, predicate in found)

    return is_alike


def _subjects(
    instance: ProblemInstance, key: Key, chosen: Sequence[Candidate], is_alike: Callable[[Candidate], bool]
) -> Subjects:
    domain = sorted(instance.candidates(key), key=lambda one: (one.age, one.label))
    wanted = set(chosen)
    if key.component in FRAMEWORKS and len(wanted) > 2:
        whole = list(_runs(_by(domain, without_local), wanted, is_alike, is_each_named=False))
        covered = {candidate for run in whole for _, some in run for candidate in some}
        if wanted <= covered and len(whole) == 1:
            spans = spans_of_run([name for name, _ in whole[0]])
            return Subjects(spans=spans, every_build_for=instance.problem.request.accelerator)
    spans_found: list[Span] = []
    builds = dict.fromkeys(candidate.label.partition("+")[2] for candidate in domain if candidate in wanted)
    for build in builds:
        items = _by([one for one in domain if one.label.partition("+")[2] == build], lambda label: label)
        for run in _runs(items, wanted, is_alike):
            spans_found.extend(spans_of_run([label for label, _ in run]))
    has_others = len(spans_found) > MOST_SPANS
    return Subjects(spans=tuple(spans_found[: MOST_SPANS - 1] if has_others else spans_found), has_others=has_others)


def spans_of_run(labels: Sequence[str]) -> tuple[Span, ...]:
    """Return neighbouring releases as one span, or as one each where there are no more than two."""
    return tuple(Span(label, label) for label in labels) if len(labels) <= 2 else (Span(labels[0], labels[-1]),)


def _by(domain: Sequence[Candidate], name: Callable[[str], str]) -> list[tuple[str, list[Candidate]]]:
    """Return candidates grouped by what `name` returns for their labels; a build may have one for each platform."""
    found: dict[str, list[Candidate]] = {}
    for candidate in domain:
        found.setdefault(name(candidate.label), []).append(candidate)
    return list(found.items())


def _runs(
    items: Sequence[tuple[str, list[Candidate]]],
    wanted: Collection[Candidate],
    is_alike: Callable[[Candidate], bool],
    *,
    is_each_named: bool = True,
) -> Iterator[list[tuple[str, list[Candidate]]]]:
    """Yield runs of adjacent candidates with the same predicate, trimmed to begin and end with candidates in `wanted`.

    `items` are labels with their candidates, and a run is a list of such items. A label of which only some candidates have the
    predicate is a run of its own if `is_each_named`, and otherwise left out.
    """
    run: list[tuple[str, list[Candidate]]] = []
    last = 0
    for item in items:
        is_wanted = any(candidate in wanted for candidate in item[1])
        if (run or is_wanted) and all(is_alike(candidate) for candidate in item[1]):
            run.append(item)
            last = len(run) if is_wanted else last
            continue
        if run:
            yield run[:last]
        run, last = [], 0
        if is_wanted and is_each_named:
            yield [item]
    if run:
        yield run[:last]


# -- offers and the conclusion -------------------------------------------------------------------------------------------------


def _offer(instance: ProblemInstance, requirement: Requirement) -> Offer | None:
    """Return the versions available instead, for a requirement on versions that allows no candidate; None for any other."""
    key, request = requirement.key, instance.problem.request
    name = key.distribution if key.is_package else key.component
    foreign = for_another_accelerator(instance, requirement)
    if foreign is not None and foreign.build is not None:
        return ForAnother(name=name, version=foreign.label, accelerator=foreign.build.accelerator, wanted=request.accelerator)
    if not isinstance(requirement.test, Matching | Within | ForPython) or instance.allowed(requirement):
        return None
    offered = instance.candidates(key)
    until = request.spec.policy.exclude_newer or ""
    if not offered:
        return NotOffered(
            name=name,
            is_distribution=key.is_package,
            accelerator=request.accelerator,
            platform=request.platform,
            until=until,
            near=_similar(instance.problem.matrix, key.project) if key.is_package else "",
        )
    withdrawn = next((one for one in offered if one.is_withheld and requirement.allows(one)), None)
    if isinstance(withdrawn, FileCandidate):
        return Withdrawn(name=name, version=withdrawn.label, problem=withdrawn.release.why_not)
    if not key.is_package and offered[0].version.release:
        offered = tuple(sorted(offered, key=lambda one: one.version, reverse=True))  # newest first, whatever is preferred
    labels = list(dict.fromkeys(without_local(one.label) for one in offered))
    near = list(dict.fromkeys(without_local(one.label) for one in nearest_to_named(requirement, offered)))[:SHOWN]
    versions, more = tuple(label for label in labels if label in near), max(len(labels) - SHOWN, 0)
    if key.is_package and all(isinstance(one, FileCandidate) and one.is_direct for one in offered):
        place = next((one.ground.source for one in instance.roots if one.key == key and one.ground.source is not None), None)
        file = place if isinstance(place, Place) else None
        return Offered(name=name, by="spec", versions=versions, more=more, place=file)
    if key.is_package:
        return Offered(name=name, by="index", versions=versions, more=more)
    accelerator = request.accelerator if name in FRAMEWORKS and request.accelerator != "cuda" else ""
    return Offered(name=name, by="matrix", versions=versions, more=more, accelerator=accelerator, until=until)


def _similar(matrix: Matrix, name: str) -> str:
    """Return the distribution of the matrix whose name is most like `name`; "" when none is like it.

    Only names of the matrix are offered: a name that is merely like another one on an index may be somebody's trap.
    """
    return _nearest(name, _names_of(matrix))


@once_per_matrix
def _names_of(matrix: Matrix) -> frozenset[str]:
    """Return the names of distributions that the matrix knows."""
    rows = (matrix.distributions, matrix.wheels, matrix.system_wheels)
    known = {one.name if isinstance(one, Distribution) else one.distribution for some in rows for one in some}
    return frozenset({*known, *COMPONENT_OF_DISTRIBUTION})


@lru_cache(maxsize=64)  # each Python that a conflict is proved for asks for the same name
def _nearest(name: str, known: frozenset[str]) -> str:
    return nearest(name, known - {name}, similarity=SIMILAR) or ""


def conclusion_of(instance: ProblemInstance, groups: Sequence[Sequence[Required]]) -> Conclusion:
    """Return the conclusion of a conflict: what cannot be chosen, and for which hosts.

    `groups` are the requirements of the conflict's groups, in the order of its members.
    """
    roots = [one for members in groups for parent, one in members if parent is None]
    whole = _for_whom(instance, roots)
    requests = [one for one in roots if isinstance(one.ground, RequiresComponent | RequiresDistribution | AsksWhyNot)]
    question = next((one.ground for one in requests if isinstance(one.ground, AsksWhyNot)), None)
    if question is not None:
        return replace(whole, question=question)
    if requests:

        def is_other(one: Requirement) -> bool:
            return not one.key.is_package and one.key.component not in FRAMEWORKS

        # Frameworks and distributions come first: the environment is for them.
        return replace(whole, requests=tuple(dict.fromkeys(one.ground for one in sorted(requests, key=is_other))))
    wanted = next((one for one in roots if isinstance(one.test, Within) and not one.test.range.clauses), None)
    if wanted is not None:
        return replace(whole, name=wanted.key.component)
    facts = tuple(one.ground for one in roots if one.ground.kind == "fact")
    lines = (one.ground for one in roots if one.ground.is_request)
    refused = next(
        (one for one in lines if isinstance(one, AsksAccelerator | AsksImage) or (isinstance(one, Forbids) and facts)), None
    )
    return replace(whole, refused=refused, facts=facts)


def _for_whom(instance: ProblemInstance, roots: Sequence[Requirement]) -> Conclusion:
    """Return a conclusion that has only the hosts whose facts are in the conflict.

    If there are none, the conclusion has only the platform if that is in the conflict, and is empty otherwise.
    """
    hosts = instance.problem.request.hosts
    taking_part = {one.key.scope for one in roots if one.key.scope and not one.key.is_package}
    concerned = tuple(target.label for target in hosts if target.label in taking_part)
    if concerned:
        return Conclusion(hosts=concerned, is_one_host=sum(target.count for target in hosts) == 1)
    has_platform = any(one.key.name == "platform" for one in roots)
    return Conclusion(platform=instance.problem.request.platform if has_platform else "")
