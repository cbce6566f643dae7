"""Explain the version of a component or distribution: the requirements on it, and what excludes the newest version."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import Requirement as Pep508
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError, UsageError
from provisioner.grounds.choice import (
    BundledVersion,
    CannotTell,
    ComesFirst,
    LockKeeps,
    NotFirst,
    PolicyPrefers,
    StrategyIsOldest,
)
from provisioner.grounds.conflict import Conclusion, Conflict, member_of
from provisioner.grounds.edit import LEFT_OUT, DropBound, SetComponent, SetDistribution
from provisioner.grounds.requirement import PYTHON_ATTEMPT, Constrains, RequiresComponent, RequiresDistribution
from provisioner.grounds.series import Instead
from provisioner.names import COMPONENT_OF_DISTRIBUTION, nearest
from provisioner.resolver.explain.outcomes import fix_of, gives, rejoined
from provisioner.resolver.joint import NoStackError, choose
from provisioner.resolver.refutation import Refutation, decided
from provisioner.resolver.requirement import PACKAGE, PYTORCH, SHARED_FILE, TORCH, FileCandidate, Key, Labelled, Requirement
from provisioner.resolver.search.bundled import bundling_distribution
from provisioner.resolver.series import every_newer_series, newer_series, question_about, release

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from provisioner.grounds.choice import PassedOver
    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Ground
    from provisioner.grounds.series import NewerSeries
    from provisioner.resolver.attempts import Chosen, SourceFor
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance


HIDDEN = frozenset({"accelerator", "platform", "policy", "shared-file"})
KINDS = ("fact", "request", "rule")
ANY_VERSION = "*"


class Moved(Struct, frozen=True, kw_only=True):
    """A component or distribution whose version differs between two answers.

    `old` and `new` are its versions, "" for an answer that lacks it.
    """

    name: str
    old: str
    new: str


class Counterfactual(Struct, frozen=True, kw_only=True):
    """The result of requiring the newest release of the explained component or distribution while some lines allow any version.

    `lines` are the grounds of these lines of the spec. `moved` are the other components and distributions whose version
    changes. `conflict` is the contradiction that remains without the lines, None if there is an answer. `order` is the reason
    why the solver would still prefer an older release, None if it would choose the newest.
    """

    lines: tuple[Ground, ...]
    moved: tuple[Moved, ...] = ()
    order: PassedOver | None = None
    conflict: Conflict | None = None


class Why(Struct, frozen=True, kw_only=True):
    """The explanation of the version chosen for one component or distribution.

    `reasons` are the grounds of the requirements on it. `host` is the label of its host, `slot` the framework that it is a copy
    for, such as `jax`; both "" for most. `newer` is the newest release, None if that one was chosen or the host states the
    version. Why the newest release was not chosen: `held_by` are the grounds of requirements on the component that exclude it;
    `order` is the reason why another answer is preferred; `conflict` is the contradiction that it would cause; `counterfactual`
    is the result without the lines of the spec that exclude it. `series` says what excludes each newer series, newest first.
    `is_fact` is True if the host states the version, so that nothing was chosen; `is_unknown` if an index that the newest
    release needs cannot be reached.
    """

    component: str
    chosen: str
    platform: str
    host: str = ""
    slot: str = ""
    reasons: tuple[Ground, ...]
    newer: str | None = None
    held_by: tuple[Ground, ...] = ()
    order: PassedOver | None = None
    conflict: Conflict | None = None
    counterfactual: Counterfactual | None = None
    is_fact: bool = False
    is_unknown: bool = False
    is_package: bool = False
    series: tuple[NewerSeries, ...] = ()


def why(problem: Problem, component: str, source_for: SourceFor | None = None) -> tuple[Why, ...]:
    """Return the explanation of a component or distribution, one for each host or slot that has it.

    `source_for` opens the indexes; it is needed for specs with packages. Raises `NoStackError` when there is no answer to
    explain: its `instead` is what there would be without the lines of the spec about the component. Raises `UsageError` when
    the component is not part of the answer, `UnavailableError` when an index cannot be reached.
    """
    name = COMPONENT_OF_DISTRIBUTION.get(component, component)
    try:
        chosen = choose(problem, source_for)
    except NoStackError as error:
        error.instead = _instead(problem, name, source_for)
        raise
    problem = _with_image_of(problem, chosen)
    return tuple(_why(problem, chosen, key, source_for) for key in _keys(chosen, name))


def _with_image_of(problem: Problem, chosen: Chosen) -> Problem:
    image = chosen[1].get(Key("image"))
    return problem.with_image(image.label) if image is not None else problem


def _instead(problem: Problem, name: str, source_for: SourceFor | None) -> Instead | None:
    """Return what would be chosen for a component or distribution if the lines of the spec about it allowed any version.

    `problem` has no answer. None when the spec has no such lines, or when there is no answer without them either.
    """
    grounds = [root.ground for root in problem.roots if not root.key.is_package and root.key.component == name]
    for requirement, ground in (*problem.packages, *problem.constraints):
        distribution = canonicalize_name(requirement.name)
        if COMPONENT_OF_DISTRIBUTION.get(distribution, distribution) in (name, canonicalize_name(name)):
            grounds.append(ground)
    lines = tuple(one for one in dict.fromkeys(grounds) if _names_version(one))
    opened = _open_to_versions(problem, frozenset(lines))
    if opened is None:
        return None
    with suppress(UnavailableError, UsageError):
        chosen = decided(opened, cache(source_for) if source_for is not None else None)
        if isinstance(chosen, Refutation):
            chosen.close()
            return None
        key = _keys(chosen, name)[0]
        newer = _newer(chosen[0], chosen[1][key])
        opened = _with_image_of(opened, chosen)
        return Instead(
            component=key.shown_name,
            chosen=release(chosen[1][key]),
            lines=lines,
            series=newer_series(opened, chosen, newer, source_for=source_for),
        )
    return None


def _names_version(ground: Ground) -> bool:
    if isinstance(ground, RequiresComponent):
        return ground.range != ANY_VERSION
    return not isinstance(ground, RequiresDistribution) or bool(Pep508(ground.requirement).specifier)


def why_each(problem: Problem, chosen: Chosen) -> tuple[Why, ...]:
    """Return the explanation of every component of an answer, in the matrix's order, from the matrix alone.

    `chosen` is an answer that was found before, such as that of a lock, with an instance in which nothing is fixed for being
    chosen. What excludes a newer series is told as by `why`. Series that nothing excludes are told, too: whether they would do
    is not decided, since that may depend on packages that only an index knows. `conflict`, `order` and `counterfactual` are
    None.
    """
    instance, pins = chosen
    found = []
    keys = (key for key in pins if not key.is_package and key.component not in HIDDEN)
    for key in sorted(keys, key=lambda key: (problem.order.get(key, 0), key)):
        one, newer, _ = _reasoned(instance, pins, key)
        series = every_newer_series(problem, chosen, newer, source_for=None) if newer else ()
        found.append(replace(one, series=series))
    return tuple(found)


def _reasoned(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], key: Key
) -> tuple[Why, list[Candidate], list[Requirement]]:
    """Return the explanation of a version without its newer series, its newer candidates, and what excludes the newest of them.

    The candidates are newest first.
    """
    wanted = [one for one in _wanted(instance, pins) if _is_about(one, key) and one.ground.group != PYTHON_ATTEMPT]
    found = Why(
        component=key.shown_name,
        chosen=pins[key].label,
        platform=instance.problem.request.platform,
        slot="" if key.is_package else key.slot,
        is_package=key.is_package,
        host=key.scope if not key.is_package else "",
        reasons=_reasons(wanted),
        is_fact=any(one.ground.kind == "fact" and len(_labels(one)) == 1 for one in wanted),
    )
    newer = [] if found.is_fact else _newer(instance, pins[key])
    if not newer:
        return found, [], []
    best = release(newer[0])
    some = [one for one in newer if release(one) == best]
    holding = [one for one in wanted if not any(one.allows(candidate) for candidate in some)]
    return replace(found, newer=best, held_by=_reasons(holding)), newer, holding


def _why(problem: Problem, chosen: Chosen, key: Key, source_for: SourceFor | None) -> Why:
    found, newer, holding = _reasoned(*chosen, key)
    if not newer:
        return found
    some = [one for one in newer if release(one) == found.newer]
    bundling = bundling_distribution(problem, key, chosen[1])
    if bundling is not None and str(bundling.pep440) == found.chosen:
        return replace(found, order=BundledVersion(distribution=bundling.key.name, version=found.chosen))
    with suppress(UnavailableError):
        found = replace(found, series=newer_series(problem, chosen, newer, source_for=source_for))
    try:
        return _with_obstacle(found, problem, chosen, question_about(some), holding=holding, source_for=source_for)
    except UnavailableError as error:
        return replace(found, order=CannotTell(problem=error.message), is_unknown=True)


def _with_obstacle(
    found: Why,
    problem: Problem,
    chosen: Chosen,
    question: Requirement,
    *,
    holding: Sequence[Requirement],
    source_for: SourceFor | None,
) -> Why:
    """Return `found` completed with the reason why the newest release was not chosen.

    The reason is the conflict that the newest release would cause, or why an answer with that release is less preferred.
    `question` requires the newest release, and the requirements in `holding` exclude it. Raises `UnavailableError` when an
    index cannot be reached.
    """
    found = _with_counterfactual(found, problem, chosen, question=question, holding=holding, source_for=source_for)
    if found.conflict is not None:
        return found
    try:
        other = choose(problem.with_roots(question), source_for)
    except NoStackError as error:
        return replace(found, conflict=error.conflict)
    return replace(found, order=passed_over(problem, question.key, chosen=chosen, other=other))


def _with_counterfactual(
    found: Why,
    problem: Problem,
    chosen: Chosen,
    *,
    question: Requirement,
    holding: Sequence[Requirement],
    source_for: SourceFor | None,
) -> Why:
    """Return `found` completed with the result of the problem in which the lines that exclude the newest release are open.

    An open line of the spec allows any version. `question` requires the newest release; the requirements in `holding` came from
    the lines and exclude that release. If there is then an answer with the newest release, the lines are reported as the
    conflict, and their edits as its fix. If there is none, the counterfactual has the conflict that remains. `found` itself if
    the lines cannot be opened.
    """
    opened = without_versions(problem, holding)
    if opened is None:
        return found
    try:
        (instance, pins), order = _newest(opened, question, source_for)
    except NoStackError as error:
        return replace(found, counterfactual=Counterfactual(lines=found.held_by, conflict=error.conflict))
    shown = frozenset(name for name in opened.matrix.components if not opened.is_virtual(name))
    edits = edits_of(holding, pins[question.key])
    # Dropping a constraint requires no version: the answer would still be the first in the order of preference.
    is_fix = order is None or all(edit.change != LEFT_OUT for edit in edits)
    conflict = Conflict(
        members=(member_of(question.ground), member_of(found.held_by[0])),
        fixes=(fix_of(edits, gives(instance, pins), problem.request),) if is_fix else (),
        conclusion=Conclusion(question=question.ground),
    )
    moves = moved(question.key, chosen[1], pins, shown=shown)
    return replace(found, conflict=conflict, counterfactual=Counterfactual(lines=found.held_by, moved=moves, order=order))


def _newest(opened: Problem, question: Requirement, source_for: SourceFor | None) -> tuple[Chosen, PassedOver | None]:
    """Return an answer of `opened` with the release that `question` requires, and why the solver prefers another answer.

    The reason is None when the solver prefers this answer, or when `opened` has an answer only if the release is required.
    Raises `NoStackError` when no answer has the release.
    """
    key, first = question.key, None
    with suppress(NoStackError):  # a pre-release is allowed only where a requirement names it
        first = choose(opened, source_for)
    if first is not None and key in first[1] and question.allows(first[1][key]):
        return first, None
    other = choose(opened.with_roots(question), source_for)
    return other, passed_over(opened, key, chosen=first, other=other) if first is not None else None


def _wanted(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> list[Requirement]:
    """Return all requirements on an answer: the root requirements, constraints and hashes, then those of its candidates."""
    bounds = (one for candidate in pins.values() for one in instance.bounds.about(candidate))
    return [*instance.roots, *bounds, *(one for candidate in pins.values() for one in instance.requirements(candidate))]


def _is_about(one: Requirement, key: Key) -> bool:
    """Return whether a requirement is on `key`, so that it is reported as a reason for the choice of that key.

    For a distribution `name`, a requirement on `name[extra]` counts, too, but not the one that `name[extra]` has on `name`
    itself.
    """
    if one.key != key:
        return key.is_package and one.key.is_package and one.key.distribution == key.name
    return not (one.ground.kind == "rule" and one.ground.component == key.name and key.is_package)


def _reasons(wanted: Sequence[Requirement]) -> tuple[Ground, ...]:
    """Return the grounds of some requirements without repetition, facts first, then requests, then rules."""
    return tuple(dict.fromkeys(one.ground for one in sorted(wanted, key=lambda one: KINDS.index(one.ground.kind))))


def _labels(requirement: Requirement) -> frozenset[str]:
    return requirement.test.labels if isinstance(requirement.test, Labelled) else frozenset()


def _newer(instance: ProblemInstance, chosen: Candidate) -> list[Candidate]:
    """Return the candidates of a key newer than the `chosen` one, newest first, except yanked versions and pre-releases."""
    found = [one for one in instance.candidates(chosen.key) if not one.is_withheld and one.age > chosen.age]
    return sorted(found, key=lambda one: one.age, reverse=True)


def _keys(chosen: Chosen, name: str) -> list[Key]:
    instance, pins = chosen
    package = canonicalize_name(name)
    found = [one for one in pins if not one.is_package and one.component == name]
    found = found or [one for one in pins if one.is_package and one.name == package]
    if found:
        return sorted(found)
    known = sorted({one.component for one in pins if one != TORCH} - HIDDEN | {"pytorch" for one in pins if one == PYTORCH})
    near = nearest(name, known) if name not in instance.problem.matrix.components else None
    has = ", ".join(one for one in known if Key(one, PACKAGE) not in pins)
    raise UsageError(
        f"`{name}` is not part of the stack of this spec", hints=(f"did you mean `{near}`?" if near else f"it has {has}",)
    )


def without_versions(problem: Problem, holding: Sequence[Requirement]) -> Problem | None:
    """Return the problem in which the lines of the spec that led to the requirements in `holding` allow any version.

    None when `holding` is empty, or has a requirement that comes from anything but `requires`, `packages` or `constraints`. An
    override is not opened: without its version, it would replace requirements with one that the user did not write.
    """
    return _open_to_versions(problem, frozenset(one.ground for one in holding))


def _open_to_versions(problem: Problem, grounds: Collection[Ground]) -> Problem | None:
    if not grounds or not all(isinstance(one, RequiresComponent | RequiresDistribution | Constrains) for one in grounds):
        return None
    spec = problem.request.spec
    components = {one.name for one in grounds if isinstance(one, RequiresComponent)}
    distributions = {one.distribution for one in grounds if isinstance(one, RequiresDistribution)}
    constraints = {one.index for one in grounds if isinstance(one, Constrains)}
    if not components <= {*problem.matrix.components}:
        return None
    changed = replace(
        spec,
        packages=tuple(
            _open(text) if canonicalize_name(Pep508(text).name) in distributions else text for text in spec.packages
        ),
        constraints=tuple(_open(text) if index in constraints else text for index, text in enumerate(spec.constraints)),
        requires={name: ANY_VERSION if name in components else text for name, text in spec.requires.items()},
    )
    return rejoined(problem, replace(problem.request, spec=changed))


def edits_of(holding: Sequence[Requirement], candidate: Candidate) -> tuple[Edit, ...]:
    """Return edits, one for each line of the spec behind a requirement in `holding`, to make these lines allow `candidate`."""
    by_line: dict[object, list[Ground]] = {}
    for one in holding:
        by_line.setdefault(one.ground.group, []).append(one.ground)
    edits: list[Edit] = []
    for some in by_line.values():
        ground, lines = some[0], tuple(dict.fromkeys(some))
        match ground:
            case Constrains(distribution=distribution, requirement=requirement):
                edits.append(DropBound(key="constraints", distribution=distribution, requirement=requirement))
            case RequiresDistribution(name=name, distribution=distribution):
                edits.append(SetDistribution(name=name, distribution=distribution, value=candidate.label, requests=lines))
            case _:
                edits.append(SetComponent(name=ground.component, value=candidate.label, requests=lines))
    return tuple(edits)


def _open(text: str) -> str:
    """Return a PEP 508 requirement without its version specifier."""
    requirement = Pep508(text)
    requirement.specifier = SpecifierSet()
    return str(requirement)


def moved(
    key: Key, before: Mapping[Key, Candidate], after: Mapping[Key, Candidate], *, shown: frozenset[str]
) -> tuple[Moved, ...]:
    """Return the components and distributions other than `key` whose version differs between the answers `before` and `after`.

    Components come first, only those in `shown`; then distributions.
    """
    old, new = dict(_versions(before, shown)), dict(_versions(after, shown))
    names = [*old, *(name for name in new if name not in old)]
    own = _of(key)
    changes = (Moved(name=name[1], old=old.get(name, ""), new=new.get(name, "")) for name in sorted(names) if name != own)
    return tuple(one for one in changes if one.old != one.new)


def _versions(pins: Mapping[Key, Candidate], shown: frozenset[str]) -> Iterator[tuple[tuple[bool, str], str]]:
    for key, candidate in pins.items():
        if isinstance(candidate, FileCandidate) or (not key.scope and key.component in shown):
            yield _of(key), candidate.label


def _of(key: Key) -> tuple[bool, str]:
    return key.is_package, key.distribution


def passed_over(problem: Problem, key: Key, *, chosen: Chosen, other: Chosen) -> PassedOver:
    """Return why the solver prefers the answer `chosen` to `other`, which has a newer release of `key`."""
    instance, pins = chosen
    request = problem.request
    name = key.shown_name
    if key in pins and request.preferred.get(name) == pins[key].label:
        return LockKeeps(name=name, label=pins[key].label)
    table = next((table for table in ("prefer", "avoid") if name in getattr(request.spec.policy, table)), "")
    if table:
        wanted = getattr(request.spec.policy, table)[name]
        return PolicyPrefers(table=table, name=name, range=wanted, place=request.place(f"policy.{table}.{name}"))
    if request.spec.policy.strategy == "oldest":
        return StrategyIsOldest(place=request.place("policy.strategy"))
    first = _first_difference(instance, key, pins, other[1])
    if first is None:
        return NotFirst()
    before, after = pins.get(first), other[1].get(first)
    return ComesFirst(
        name=first.shown_name,
        before=before.label if before is not None else "",
        after=after.label if after is not None else "",
    )


def _first_difference(
    instance: ProblemInstance, key: Key, pins: Mapping[Key, Candidate], others: Mapping[Key, Candidate]
) -> Key | None:
    """Return the first key, in the order of decision, with different candidates in two answers, ignoring `key` itself.

    None when the answers agree on all other keys. Which distribution writes a shared file follows from those that are chosen.
    """
    keys = (one for one in {**pins, **others} if one != key and one.component != SHARED_FILE)
    different = [one for one in keys if _label(pins, one) != _label(others, one)]
    return min(different, key=instance.decision_rank, default=None)


def _label(pins: Mapping[Key, Candidate], key: Key) -> str:
    return pins[key].label if key in pins else ""
