"""The laws of an open Python: the best Python that has an answer is taken, and a conflict holds with each that is allowed."""

from __future__ import annotations

from functools import partial
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from provisioner.grounds.conflict import Statement
from provisioner.grounds.predicate import Requires
from provisioner.grounds.requirement import Relation, SpecLine
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from provisioner.words.conflict import fix_words
from tests import small
from tests.file_shelf import FileShelf, wheel
from tests.strategies import case, dice, examples

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from random import Random

    from provisioner.grounds.conflict import Conflict, Fix
    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Group
    from provisioner.index.model import Environment

pytestmark = pytest.mark.property

PYTHONS = ("3.10", "3.11", "3.12")
MATRIX = small.matrix(("python",), {"python": {one: {} for one in PYTHONS}}, virtual=())
SHARES = {"answer": 0.2, "conflict": 0.2}
"""The least shares of the problems that have an answer, and that have none."""


class Need(NamedTuple):
    """What a version needs of another project: at least or at most some version, with some Pythons."""

    other: str
    operator: str
    number: int
    pythons: frozenset[str]

    def allows(self, number: int) -> bool:
        return number >= self.number if self.operator == ">=" else number <= self.number

    @property
    def text(self) -> str:
        if self.pythons == frozenset(PYTHONS):
            return f"{self.other}{self.operator}{self.number}"
        marker = " or ".join(f'python_version == "{one}"' for one in sorted(self.pythons))
        return f"{self.other}{self.operator}{self.number}; {marker}"


class Entry(NamedTuple):
    """One version of a project: the Pythons that it has files for, and its needs."""

    pythons: frozenset[str]
    needs: tuple[Need, ...]


class Trial(NamedTuple):
    """A problem: projects with their versions, requests, and the oldest Python that the spec allows, "" for any."""

    projects: dict[str, dict[int, Entry]]
    requests: tuple[tuple[str, str, int], ...]
    oldest: str

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(one for one in PYTHONS if one >= self.oldest)


def some(random: Random) -> frozenset[str]:
    return frozenset(PYTHONS) if random.random() < 0.6 else frozenset(random.sample(PYTHONS, random.randint(1, 2)))


def random_trial(random: Random) -> Trial:
    names = "abcd"[: random.randint(2, 4)]
    versions = {name: range(1, random.randint(1, 3) + 1) for name in names}
    projects = {
        name: {
            number: Entry(
                some(random),
                tuple(
                    Need(other, random.choice((">=", "<=")), random.choice(versions[other]), some(random))
                    for other in names
                    if other != name and random.random() < 0.5
                ),
            )
            for number in versions[name]
        }
        for name in names
    }
    asked = random.sample(names, random.randint(1, len(names)))
    requests = tuple((name, random.choice((">=", "<=")), random.choice(versions[name])) for name in asked)
    return Trial(projects, requests, random.choice(("", "3.11", "3.12")))


def possible(trial: Trial, python: str, groups: Collection[Group] | None = None) -> bool:
    """Brute force with one Python; with `groups`, of nothing but what these are about."""

    def counts(group: Group) -> bool:
        return groups is None or group in groups

    asked = [one for one in trial.requests if counts(SpecLine("packages", one[0]))]
    options = [[None, *numbers] for numbers in trial.projects.values()]
    for choice in product(*options):
        chosen = dict(zip(trial.projects, choice, strict=True))
        if all(_meets(chosen, one) for one in asked) and _is_consistent(trial, chosen, python, counts):
            return True
    return False


def _meets(chosen: dict[str, int | None], request: tuple[str, str, int]) -> bool:
    name, operator, number = request
    found = chosen[name]
    return found is not None and Need(name, operator, number, frozenset()).allows(found)


def _is_consistent(trial: Trial, chosen: dict[str, int | None], python: str, counts: Callable[[Group], bool]) -> bool:
    for name, number in chosen.items():
        if number is None:
            continue
        entry = trial.projects[name][number]
        if counts(Relation(name, "files")) and python not in entry.pythons:
            return False
        if python not in entry.pythons:
            continue  # nothing is known of a version without a file
        for need in entry.needs:
            if python in need.pythons and counts(Relation(name, need.other)):
                found = chosen[need.other]
                if found is None or not need.allows(found):
                    return False
    return True


def source(trial: Trial, environment: Environment) -> FileShelf:
    def tags(entry: Entry) -> Iterator[str]:
        if entry.pythons == frozenset(PYTHONS):
            yield "py3-none-any"
        else:
            yield from (f"cp{one.replace('.', '')}-none-any" for one in sorted(entry.pythons))

    files = {
        name: [wheel(name, str(number), tag) for number, entry in numbers.items() for tag in tags(entry)]
        for name, numbers in trial.projects.items()
    }
    metadata = {
        f"{name} {number}": tuple(need.text for need in entry.needs)
        for name, numbers in trial.projects.items()
        for number, entry in numbers.items()
    }
    return FileShelf(files, metadata, environment, ())


def lines(trial: Trial) -> tuple[str, ...]:
    return tuple(f"{name}{operator}{number}" for name, operator, number in trial.requests)


def solve(trial: Trial) -> str | Conflict:
    """Return the Python of the answer, or the first conflict."""
    found = solve_for_all(trial)
    return found if isinstance(found, str) else found[0]


def solve_for_all(trial: Trial) -> str | tuple[Conflict, ...]:
    """Return the Python of the answer, or all conflicts."""
    requires = {"python": f">={trial.oldest}"} if trial.oldest else {}
    problem = join(MATRIX, small.request(requires, packages=lines(trial), accelerator="cpu", runs="host"))
    try:
        return solve_joint(problem, partial(source, trial)).components["python"]
    except NoStackError as error:
        return error.conflicts


def answered(trial: Trial, python: str) -> tuple[int, ...] | None:
    """The versions of the requested projects, in their order, in the answer with one Python alone; None where it has none."""
    problem = join(MATRIX, small.request({"python": f"=={python}"}, packages=lines(trial), accelerator="cpu", runs="host"))
    try:
        found = {one.name: int(str(one.version)) for one in solve_joint(problem, partial(source, trial)).packages}
    except NoStackError:
        return None
    return tuple(found[name] for name, _, _ in trial.requests)


@examples(1500, shares=SHARES)
@given(st.builds(random_trial, dice()))
def test_the_best_python_is_the_one_whose_answer_has_the_newest_of_what_is_named(trial: Trial) -> None:
    found = solve(trial)
    answers = {python: versions for python in trial.pythons if (versions := answered(trial, python)) is not None}
    assert {python for python in trial.pythons if possible(trial, python)} == answers.keys()
    if isinstance(found, str):
        case("answer")
        assert found == max(answers, key=lambda python: (answers[python], trial.pythons.index(python))), answers
    else:
        case("conflict")
        assert not answers


def test_a_python_without_a_file_of_what_the_newest_version_needs_is_passed_over() -> None:
    projects = {
        "a": {1: Entry(frozenset(PYTHONS), ()), 2: Entry(frozenset(PYTHONS), (Need("b", ">=", 1, frozenset(PYTHONS)),))},
        "b": {1: Entry(frozenset({"3.10", "3.11"}), ())},
    }
    assert solve(Trial(projects, (("a", ">=", 1),), "")) == "3.11"


def test_no_other_python_is_looked_at_where_the_first_has_the_newest_of_what_is_named() -> None:
    every = frozenset(PYTHONS)
    trial = Trial({"a": {1: Entry(every, ()), 2: Entry(every, ())}, "b": {1: Entry(every, ())}}, (("a", ">=", 1),), "")
    opened: list[str] = []

    def source_for(environment: Environment) -> FileShelf:
        opened.append(environment.python)
        return source(trial, environment)

    problem = join(MATRIX, small.request({}, packages=lines(trial), accelerator="cpu", runs="host"))
    assert solve_joint(problem, source_for).components["python"] == "3.12"
    assert opened == ["3.12"]


def test_what_is_left_of_a_problem_without_the_lines_of_its_conflict_keeps_its_python() -> None:
    """No line asks for a Python any longer, and the complete search decides what is left: it once answered without one."""
    every = frozenset(PYTHONS)
    projects = {
        "a": {1: Entry(frozenset({"3.10"}), ()), 2: Entry(every, (Need("c", "<=", 1, frozenset({"3.10", "3.12"})),))},
        "b": {
            1: Entry(frozenset({"3.12"}), (Need("a", ">=", 1, frozenset({"3.12"})), Need("d", ">=", 1, every))),
            2: Entry(every, (Need("c", ">=", 1, every), Need("d", ">=", 1, every))),
            3: Entry(frozenset({"3.10", "3.11"}), (Need("c", ">=", 1, frozenset({"3.10", "3.12"})),)),
        },
        "c": {
            1: Entry(frozenset({"3.10", "3.12"}), (Need("b", ">=", 1, every),)),
            2: Entry(every, ()),
            3: Entry(every, (Need("b", "<=", 1, frozenset({"3.10", "3.12"})), Need("d", "<=", 1, every))),
        },
        "d": {1: Entry(frozenset({"3.12"}), (Need("a", "<=", 1, every),))},
    }
    requests = (("c", ">=", 2), ("b", ">=", 1), ("a", "<=", 1), ("d", ">=", 1))
    found = solve(Trial(projects, requests, "3.12"))
    assert not isinstance(found, str)
    assert [fix.gives.get("python") for fix in found.fixes] == ["3.11"]


@examples(1500, shares=SHARES)
@given(st.builds(random_trial, dice()))
def test_a_conflict_holds_with_every_python_that_is_allowed_and_each_member_is_needed(trial: Trial) -> None:
    found = solve(trial)
    if isinstance(found, str):
        case("answer")
        return
    case("conflict")
    groups = {member.group for member in found.members}
    python = SpecLine("requires", "python")
    assert not any(possible(trial, one, groups) for one in trial.pythons), groups
    for group in groups - {python}:
        assert any(possible(trial, one, groups - {group}) for one in trial.pythons), (group, groups)
    if python in groups:
        others = [one for one in PYTHONS if one not in trial.pythons]
        assert any(possible(trial, one, groups - {python}) for one in others), "a Python that was asked for is blamed"


@examples(1500, shares=SHARES)
@given(st.builds(random_trial, dice()))
def test_what_holds_with_some_pythons_alone_is_told_of_these_alone(trial: Trial) -> None:
    found = solve(trial)
    if isinstance(found, str):
        case("answer")
        return
    case("conflict")
    for clause in (clause for member in found.members for clause in member.clauses):
        if not isinstance(clause, Statement) or not isinstance(clause.predicate, Requires):
            continue
        newest = trial.projects[clause.name][int(clause.subjects[0].spans[-1].last)]
        needs = [need for need in newest.needs if need.other == clause.predicate.name]
        for python in clause.pythons or newest.pythons.intersection(trial.pythons):
            assert any(python in need.pythons for need in needs), (clause, python)


def fixes_of_one_conflict(trial: Trial) -> tuple[Fix, ...]:
    """Return the fixes of a problem's only conflict; other problems do not count."""
    found = solve_for_all(trial)
    conflicts = () if isinstance(found, str) else found
    assume(len(conflicts) == 1)
    return conflicts[0].fixes


def helps(trial: Trial, edits: Collection[Edit]) -> bool:
    """Return whether something that was asked for can be had with some Python after the edits."""
    values = {edit.component: edit.change for edit in edits}
    pythons: tuple[str, ...] = trial.pythons
    if "python" in values:
        pythons = tuple(one for one in PYTHONS if values["python"] in {f"=={one}", f">={one}", "left out"})
    requests = tuple(one for one in trial.requests if values.get(one[0]) != "left out")
    for name, value in values.items():
        if value.startswith("==") and name != "python":
            number = int(value.removeprefix("=="))
            requests = tuple(one for one in requests if one[0] != name)
            requests = (*requests, (name, ">=", number), (name, "<=", number))
    return bool(requests) and any(possible(trial._replace(requests=requests), one) for one in pythons)


@examples(300)
@given(st.builds(random_trial, dice()))
def test_of_the_changes_that_are_said_to_be_needed_together_no_part_is_enough(trial: Trial) -> None:
    for fix in fixes_of_one_conflict(trial):
        assert helps(trial, fix.edits), fix_words(fix)
        for count in range(1, len(fix.edits)):
            for part in combinations(fix.edits, count):
                assert not helps(trial, part), (fix_words(fix), part)


def single_changes(trial: Trial) -> Iterator[tuple[str, int]]:
    """Each single request that gives an answer with one Python that is allowed where it is changed (0: left out)."""
    for name, _, _ in trial.requests:
        rest = tuple(one for one in trial.requests if one[0] != name)
        changed = {number: (*rest, (name, ">=", number), (name, "<=", number)) for number in trial.projects[name]}
        changed |= {0: rest} if rest else {}
        for number, requests in changed.items():
            if any(possible(trial._replace(requests=requests), python) for python in trial.pythons):
                yield name, number


@examples(300)
@given(st.builds(random_trial, dice()))
def test_where_a_single_request_is_enough_with_some_python_a_hint_changes_no_more(trial: Trial) -> None:
    fixes = fixes_of_one_conflict(trial)
    if not any(len(fix.edits) == 1 for fix in fixes):
        assert next(single_changes(trial), None) is None, [*map(fix_words, fixes)]
