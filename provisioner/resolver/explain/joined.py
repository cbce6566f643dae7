"""Explain why no Python of a problem has an answer: one conflict that holds with each of them.

Each attempt is the problem with one Python, and failed by groups of its own. The conflict is a minimal set of groups that
cannot hold together with any Python of the matrix, so a request on Python is a member only if another Python would do.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property, partial
from itertools import chain, groupby
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.errors import UnavailableError
from provisioner.grounds.conflict import Conflict, Statement, Subjects
from provisioner.grounds.predicate import NeedsWithin, NoFile, Requires
from provisioner.grounds.requirement import FILES, Entails, Relation
from provisioner.resolver.attempts import GLIBC_WHEN_UNKNOWN, PYTHON, Failure, known_glibc, other_attempts
from provisioner.resolver.explain.conflict import (
    KINDS,
    conclusion_of,
    member_of_group,
    needed_members,
    ordered_groups,
    spans_of_run,
)
from provisioner.resolver.explain.fixes import SHOWN, fixes, never
from provisioner.resolver.refuting import refuted, refuted_unread
from provisioner.resolver.requirement import PACKAGE, Key
from provisioner.resolver.search.complete import every_key
from provisioner.resolver.search.proof import Member as Required
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from provisioner.grounds.conflict import Fix, Member
    from provisioner.grounds.requirement import Ground, Group
    from provisioner.resolver.attempts import Indexes
    from provisioner.resolver.explain.conflict import Groups
    from provisioner.resolver.explain.outcomes import SolveAgain
    from provisioner.resolver.problem import Problem


def most_telling(failed: Sequence[Failure]) -> Failure:
    """Return the failed attempt to report: the first whose conflict has no requirement on Python; the first if all have one."""
    return next((one for one in failed if not one.involves(PYTHON)), failed[0])


class JointConflict:
    """The conflict of a problem of which every attempt failed.

    `failed` are the failed attempts, the most preferred Python first. With `indexes`, the Pythons that are not among the
    attempts are looked at, too, in searches of the keys that `includes` tells.
    """

    def __init__(
        self,
        problem: Problem,
        failed: Sequence[Failure],
        indexes: Indexes | None = None,
        *,
        includes: Callable[[Key], bool] = every_key,
    ) -> None:
        self._failed = failed
        self._includes = includes
        self._told = most_telling(failed)
        self._excluded: list[Failure] = []
        self._of_pythons: tuple[Group, ...] = ()
        if indexes is not None:
            self._look_at_other_pythons(problem, indexes)

    def _look_at_other_pythons(self, problem: Problem, indexes: Indexes) -> None:
        """Find out why the Pythons that no attempt was made with have no answer.

        The components exclude such a Python: then it fails by what is known of it without metadata, and the conflict has to
        hold with it, too. Or a request excludes it: the request takes part in the conflict unless that Python has no answer
        either. Both by the groups of the attempts, or by the files of what they are about, so that no other request takes part,
        or else for a reason that is known without metadata.
        """
        groups = _union(self._failed)
        files = _files_of(groups)
        like = next((one for one in self._failed if one.lacking is not None or one.pairs), None)
        requests = [root for root in problem.roots if root.key == PYTHON]
        asked = tuple(dict.fromkeys(root.ground.group for root in requests))
        for candidate, attempt in other_attempts(problem, [one.attempt for one in self._failed]):
            excluding = [root.ground.group for root in requests if not root.allows(candidate)]
            found = refuted(attempt, groups, indexes, like=like, includes=self._includes)
            if found is None:  # versions of the same distributions may be for other Pythons alone
                found = refuted(attempt, (*groups, *files), indexes, like=like, includes=self._includes)
            found = found or refuted_unread(attempt, asked if excluding else (), indexes, includes=self._includes)
            if excluding and found is not None and any(_is_request([found], group) for group in {*found.groups} - {*groups}):
                found.search.close()
                found = None  # by itself the conflict would not hold with that Python
            if found is None:
                if not set(excluding) & set(self._of_pythons):
                    self._of_pythons = (*self._of_pythons, *excluding[:1])
            elif excluding:
                found.search.close()
            else:
                self._excluded.append(found)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """A minimal set of groups that cannot hold together with any Python that the requests allow.

        If another Python would do, the requests that exclude it are members, too.
        """
        return (*self._of_pythons, *(one for one in self._joint if one not in self._of_pythons))

    @cached_property
    def _joint(self) -> tuple[Group, ...]:
        return _minimal([*self._failed, *self._excluded])

    @cached_property
    def conflict(self) -> Conflict:
        """The conflict, without fixes."""
        return _described(self._told, [*self._failed, *self._excluded], self._joint, self._of_pythons)

    def fixes(
        self,
        solve_again: SolveAgain,
        unless: Callable[[], bool] = never,
        *,
        exclude: Callable[[Failure, tuple[Group, ...], str], None],
    ) -> tuple[Fix, ...]:
        """Return the fixes of the conflict, at most `SHOWN`, each of them verified by `solve_again`.

        `unless` and `exclude`, which is told of which attempt a proof is, are those of `fixes`.
        """
        told = self._told

        def of(one: Failure, groups: tuple[Group, ...]) -> tuple[Fix, ...]:
            known = partial(exclude, one)
            return fixes(one.instance, one.search, groups, solve_again=solve_again, exclude=known, unless=unless)

        found = [*of(told, self.groups)]
        if not found and unless():
            return ()
        for other in self._failed:
            # A distribution may have files for another Python only. Then every fix for this Python drops a request.
            if other.groups != told.groups and all(fix.gives_up for fix in found):
                found.extend(of(other, other.groups))
        best: dict[frozenset[tuple[object, ...]], Fix] = {}
        for fix in sorted(found, key=lambda fix: fix.gives_up):
            best.setdefault(fix.identities, fix)
        # Less is enough with another Python: what changes more besides is left out.
        return tuple(fix for fix in best.values() if not any(other < fix.identities for other in best))[:SHOWN]

    def close(self) -> None:
        """Free the memory of the searches of the Pythons that are not among the attempts."""
        for one in self._excluded:
            one.search.close()


def _union(failures: Sequence[Failure]) -> tuple[Group, ...]:
    return tuple(dict.fromkeys(group for one in failures for group in one.groups))


def _minimal(failures: Sequence[Failure]) -> tuple[Group, ...]:
    """Return a minimal set of groups that cannot hold together in any of the failed attempts.

    Requests that the files of the others make needless are dropped first, then groups that few attempts need.
    """
    kept = list(_union(failures))
    count = Counter(group for one in failures for group in one.groups)
    if all(set(one.groups) == set(kept) for one in failures):
        return tuple(kept)
    for group in sorted(filter(partial(_is_request, failures), kept), key=lambda group: count[group]):
        # With a Python that one attempt failed by another request, the rest may have no file: that it failed by first.
        rest = [other for other in kept if other != group]
        rest = list(dict.fromkeys((*rest, *_files_of(rest))))
        if all(_is_refuted(one, rest) for one in failures):
            kept = rest
    for group in sorted(kept, key=lambda group: count[group]):
        rest = [other for other in kept if other != group]
        if all(_is_refuted(one, rest) for one in failures):
            kept = rest
    return tuple(kept)


def _is_request(failures: Sequence[Failure], group: Group) -> bool:
    found = next((members for one in failures if (members := one.search.members(group))), ())
    return any(requirement.ground.is_request for _, requirement in found)


def _files_of(groups: Sequence[Group]) -> tuple[Relation, ...]:
    """Return the groups of the files of what some groups are about."""
    return tuple(Relation(name, FILES) for name in dict.fromkeys(one.subject for one in groups if isinstance(one, Relation)))


def _is_refuted(failure: Failure, groups: Collection[Group]) -> bool:
    try:
        return not failure.search.holds(groups)
    except UnavailableError:
        return False


def _described(told: Failure, failures: Sequence[Failure], groups: Sequence[Group], of_pythons: Sequence[Group]) -> Conflict:
    """Return the conflict of `groups`, without fixes: each member as the attempt to report has it, then as others have it.

    `of_pythons` are the groups of the requests on Python that are members besides.
    """
    roots = told.instance.roots
    by_group: Groups = {
        group: tuple(Required(None, root) for root in roots if root.ground.group == group) for group in of_pythons
    }
    members = {group: member_of_group(told.instance, by_group, group) for group in of_pythons}
    needed: dict[Group, list[tuple[Failure, Groups]]] = {}
    for failure in sorted(failures, key=lambda one: one is not told):
        if not _is_refuted(failure, groups):
            continue  # an index is out of reach
        groups_of = needed_members(failure.instance, failure.search, groups)
        for group in ordered_groups(failure.instance, groups_of):
            by_group.setdefault(group, groups_of[group])
            needed.setdefault(group, []).append((failure, groups_of))
    members.update((group, _member(group, some)) for group, some in needed.items() if group not in members)
    # Among the requests those on Python come last: they are told for what excludes each other with the Pythons that they allow.
    ordered = sorted(members, key=lambda group: (KINDS.index(members[group].kind), group in of_pythons))
    assumed = GLIBC_WHEN_UNKNOWN if known_glibc(told.attempt) is None else None
    runs = told.instance.problem.request.runs
    return Conflict(
        members=tuple(_completed(_for_pythons(members[group], failures), assumed, runs=runs) for group in ordered),
        conclusion=conclusion_of(told.instance, [by_group[group] for group in ordered]),
    )


def _member(group: Group, needed: Sequence[tuple[Failure, Groups]]) -> Member:
    """Return the member of a conflict for a group: its clauses with the first Python, then those that it has with others.

    If Pythons differ in their clauses, the ranges of one object are told as the spans around them; overlapping ones become one.
    """
    for is_summed_up in (False, True):
        found = [
            (failure, member_of_group(failure.instance, groups, group, is_summed_up=is_summed_up)) for failure, groups in needed
        ]
        member = found[0][1]
        for failure, other in found[1:]:
            member = _with_clauses(member, other, failure)
        if len(member.clauses) == max(len(other.clauses) for _, other in found):
            break
    return member


def _with_clauses(member: Member, other: Member, failure: Failure) -> Member:
    """Return a member of a conflict with the clauses that the same member has with another Python, that of `failure`."""
    clauses = list(member.clauses)
    for clause in other.clauses:
        place, both = next(
            ((place, both) for place, known in enumerate(clauses) if (both := _in_one(known, clause, failure)) is not None),
            (len(clauses), clause),
        )
        clauses[place : place + 1] = [both]
    if tuple(clauses) == member.clauses:
        return member
    sources = tuple(dict.fromkeys((*member.sources, *other.sources)))
    return replace(member, clauses=tuple(clauses), sources=sources)


def _in_one(first: Ground | Statement, second: Ground | Statement, failure: Failure) -> Ground | Statement | None:
    """Return two clauses of a member as one, the second with the Python of `failure`; None if they tell different things.

    A predicate that both have is told once, of the versions of both; so are spans of one component that overlap.
    """
    if not isinstance(first, Statement) or not isinstance(second, Statement):
        return first if first == second else None
    if first.name == second.name and first.predicate == second.predicate:
        return _of_both(first, second, failure)
    if _claim(first) == _claim(second):
        return first
    some, others = first.predicate, second.predicate
    if first.name != second.name or not isinstance(some, NeedsWithin) or not isinstance(others, NeedsWithin):
        return None
    span = _around(some, others)
    return None if span is None else _of_both(replace(first, predicate=span), second, failure)


def _around(some: NeedsWithin, others: NeedsWithin) -> NeedsWithin | None:
    """Return the span around two spans of one component that overlap; None for any others."""
    if (some.component, some.otherwise) != (others.component, others.otherwise):
        return None
    first, last = max(some.first, others.first, key=Version.parse), min(some.last, others.last, key=Version.parse)
    if Version.parse(first) > Version.parse(last):
        return None
    return replace(
        some, first=min(some.first, others.first, key=Version.parse), last=max(some.last, others.last, key=Version.parse)
    )


def _of_both(first: Statement, second: Statement, failure: Failure) -> Statement:
    """Return a statement about versions of a distribution that has the subjects of two, of which the second is of `failure`."""
    labels = _labels(first.name, failure)
    subjects = (*first.subjects, *second.subjects)
    if any(one.every_build_for or one.has_others for one in subjects) or not labels.keys() >= set(_ends(subjects)):
        return first
    runs = [list(run) for is_told, run in groupby(labels, lambda label: _is_subject(label, subjects, labels)) if is_told]
    return replace(first, subjects=(Subjects(spans=tuple(chain.from_iterable(map(spans_of_run, runs)))),))


def _labels(name: str, failure: Failure) -> dict[str, int]:
    """Return the place of each version of a distribution, oldest first."""
    listed = sorted(failure.instance.candidates(Key(name, PACKAGE)), key=lambda one: (one.age, one.label))
    return {one.label: place for place, one in enumerate(listed)}


def _ends(subjects: Sequence[Subjects]) -> Iterator[str]:
    return (label for one in subjects for span in one.spans for label in (span.first, span.last))


def _is_subject(label: str, subjects: Sequence[Subjects], labels: Mapping[str, int]) -> bool:
    """Return whether a version is in one of the spans of subjects; `labels` are the places of all versions."""
    spans = (span for one in subjects for span in one.spans)
    return any(labels[span.first] <= labels[label] <= labels[span.last] for span in spans)


def _claim(clause: Ground | Statement) -> object:
    """Return what tells a clause from others of its member.

    Which Python a distribution has no files for does not, nor whether a Python could take its source distribution instead.
    """
    if not isinstance(clause, Statement):
        return clause
    if not isinstance(clause.predicate, NoFile) or not clause.predicate.component:
        return clause.name, clause.predicate
    is_about_python = clause.predicate.component == PYTHON.name
    return clause.name, NoFile if is_about_python else (clause.predicate.component, clause.subjects)


def _for_pythons(member: Member, failed: Sequence[Failure]) -> Member:
    """Return a member of a conflict, each clause with the Pythons that it is true of, if it is not true of all that failed."""
    clauses = tuple(
        _of_other_python(_with_pythons(one, failed), failed) if isinstance(one, Statement) else one for one in member.clauses
    )
    return member if clauses == member.clauses else replace(member, clauses=clauses)


def _of_other_python(statement: Statement, failed: Sequence[Failure]) -> Statement:
    """Return a statement that versions have no file for one Python with whether each has one for another that failed, too."""
    if not isinstance(statement.predicate, NoFile) or statement.predicate.component != PYTHON.name:
        return statement
    listed = [failure.instance.candidates(Key(statement.name, PACKAGE)) for failure in failed]
    usable = {one.label for some in listed for one in some if not one.has_no_file}
    labels = _labels(statement.name, failed[0])
    if not labels.keys() >= set(_ends(statement.subjects)):
        return statement
    lacking = {one for one in labels if _is_subject(one, statement.subjects, labels)}
    return replace(statement, is_of_other_python=True) if lacking <= usable else statement


def _with_pythons(statement: Statement, failed: Sequence[Failure]) -> Statement:
    """Return a statement with the Pythons of which it is true: metadata may require something for some Pythons alone.

    The newest subject is looked at, with each Python that it has files for.
    """
    if not isinstance(statement.predicate, Requires) or len(failed) < 2:
        return statement
    is_true: dict[str, bool] = {}
    for failure in failed:
        listed = failure.instance.candidates(Key(statement.name, PACKAGE))
        found = next((one for one in listed if _is_newest(one.label, statement)), None)
        if found is None or found.has_no_file:
            continue
        try:
            needed = failure.instance.requirements(found)
        except UnavailableError:
            continue
        grounds = [one.ground for one in needed if isinstance(one.ground, Entails)]
        is_true[failure.attempt.python] = any(ground.predicate == statement.predicate for ground in grounds)
    if all(is_true.values()):
        return statement
    return replace(statement, pythons=tuple(python for python, holds in is_true.items() if holds))


def _is_newest(label: str, statement: Statement) -> bool:
    return any(label == span.last for subjects in statement.subjects for span in subjects.spans[-1:])


def _completed(member: Member, assumed: tuple[int, int] | None, *, runs: str) -> Member:
    """Return a member of a conflict; one about the glibc that files need gets the glibc that was assumed for the target.

    `assumed` is None when the target's glibc is known. `runs` is `host` or `container`.
    """
    is_about_glibc = any(
        isinstance(one, Statement) and isinstance(one.predicate, NoFile) and one.predicate.component == "glibc"
        for one in member.clauses
    )
    if assumed is None or not is_about_glibc:
        return member
    return replace(member, assumed_glibc=assumed, is_assumed_of_image=runs != "host")
