"""The laws of an explanation: it is sufficient, minimal, short, true of every release it spans, and blames nobody else."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from provisioner.resolver.explain.conflict import explain_conflict
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import UnknownGpuError, join
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.versions import Range, Version
from provisioner.words.conflict import MOST_LINES, conflict_lines, member_words
from provisioner.words.notation import sources_words
from tests import oracle, small
from tests.random_requests import requests
from tests.shipped import shipped
from tests.strategies import dice, examples, times
from tests.told import conclusion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.grounds.conflict import Conflict, Member
    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.matrix.need import Need

pytestmark = pytest.mark.property

SETTINGS = examples(150)
REQUESTS = max(times(100), 30)
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
Table = dict[str, dict[str, dict[str, list[str]]]]

SAYING = re.compile(r"(?P<name>[a-z_]+) (?P<labels>.+?) needs? (?P<target>[a-z_]+) (?P<ranges>.+)")
REQUEST = re.compile(r"you require (?P<name>[a-z]+) >=(?P<number>\d+)")


@st.composite
def problems(draw: st.DrawFn) -> tuple[Table, dict[str, str]]:
    """Up to five components of up to five versions, each needing some versions of others in any direction, and requests."""
    names = NAMES[: draw(st.integers(2, 5))]
    seed = draw(dice())
    versions = {name: [str(number) for number in range(1, seed.randint(1, 5) + 1)] for name in names}
    density = seed.choice((0.3, 0.5, 0.8))
    table = {
        name: {
            version: {
                other: sorted(seed.sample(versions[other], seed.randint(1, len(versions[other]))))
                for other in names
                if other != name and seed.random() < density
            }
            for version in versions[name]
        }
        for name in names
    }
    return table, {name: f">={seed.choice(versions[name])}" if seed.random() < 0.4 else ">=0" for name in names}


def matrix_of(table: Table) -> Matrix:
    return small.matrix(tuple(table), table, virtual=())


def is_possible(table: Table, requires: dict[str, str]) -> bool:
    wanted = {name: Range.parse(text) for name, text in requires.items()}
    return next(oracle.stacks(matrix_of(table), wanted), None) is not None


def explained(table: Table, requires: dict[str, str]) -> Conflict:
    return explain_conflict(ProblemInstance(join(matrix_of(table), small.request(requires))))


def pair(member: Member) -> tuple[str, str]:
    """What a line of a conflict is about, read from its words: who needs what, or what is asked for."""
    asked = REQUEST.fullmatch(member_words(member))
    if asked is not None:
        return "", asked["name"]
    said = SAYING.fullmatch(member_words(member).partition("; ")[0])
    assert said is not None, member_words(member)
    return said["name"], said["target"]


def holds_together(table: Table, requires: dict[str, str], pairs: set[tuple[str, str]]) -> bool:
    """Brute force over the problem with nothing left but what some lines are about; what nothing needs is not there."""
    asked = {name for subject, name in pairs if not subject}
    options = [[*(() if name in asked else (None,)), *versions] for name, versions in table.items()]
    return any(_is_valid(dict(zip(table, choice, strict=True)), table, requires, pairs) for choice in product(*options))


def _is_valid(choice: dict[str, str | None], table: Table, requires: dict[str, str], pairs: set[tuple[str, str]]) -> bool:
    for name, version in choice.items():
        if version is None:
            continue
        if ("", name) in pairs and int(version) < int(requires[name].removeprefix(">=")):
            return False
        for other, allowed in table[name][version].items():
            if (name, other) in pairs and choice[other] not in allowed:
                return False
    return True


@SETTINGS
@given(problems())
def test_the_words_alone_are_sufficient_and_each_line_is_needed(problem: tuple[Table, dict[str, str]]) -> None:
    """Law 7 and law 8, of what a person reads: "the problem reduced to its conflict is still impossible", "minimal"."""
    assume(not is_possible(*problem))
    conflict = explained(*problem)
    pairs = {pair(member) for member in conflict.members}
    assert len(pairs) == len(conflict.members), "two lines about the same thing"
    assert not holds_together(*problem, pairs), conflict_lines(conflict)
    for one in pairs:
        assert holds_together(*problem, pairs - {one}), (one, conflict_lines(conflict))


@SETTINGS
@given(problems())
def test_every_line_is_true_of_every_release_it_spans(problem: tuple[Table, dict[str, str]]) -> None:
    table, requires = problem
    assume(not is_possible(*problem))
    for member in explained(table, requires).members:
        if member.kind != "rule":
            continue
        for text in member_words(member).split("; "):
            said = SAYING.fullmatch(text)
            assert said is not None, text
            for version in spanned(said["labels"], list(table[said["name"]])):
                allowed = table[said["name"]][version].get(said["target"])
                assert allowed is not None, f"{said['name']} {version} needs no {said['target']}: {text}"
                assert all(covers(said["ranges"], one) for one in allowed), f"{version} allows {allowed}: {text}"


def spanned(labels: str, versions: list[str]) -> Iterator[str]:
    """`1 … 3, 5 and 7` as the versions it stands for."""
    ordered = sorted(versions, key=int)
    for part in re.split(r", | and ", labels.removesuffix(" and others")):
        first, _, last = part.partition(" … ")
        yield from ordered[ordered.index(first) : ordered.index(last or first) + 1]


def covers(ranges: str, version: str) -> bool:
    """Whether `1 or 2`, or `ranges within 1 … 3`, holds a version."""
    if ranges.startswith("ranges within "):
        first, _, last = ranges.removeprefix("ranges within ").partition(" … ")
        return int(first) <= int(version) <= int(last or first)
    return version in re.split(r" or |, ", ranges)


@SETTINGS
@given(problems())
def test_nothing_is_blamed_that_the_conflict_does_without(problem: tuple[Table, dict[str, str]]) -> None:
    """A component none of whose requirements take part may be removed, with all that is said about it, and nothing changes."""
    table, requires = problem
    assume(not is_possible(*problem))
    conflict = explained(table, requires)
    named = {name for member in conflict.members for name in NAMES if re.search(rf"\b{name}\b", member_words(member))}
    taking_part = {name for member in conflict.members for name in pair(member) if name}
    assert named == taking_part
    assert all(member.component in taking_part for member in conflict.members)
    assert all(name in taking_part or name not in conclusion(conflict) for name in NAMES)


@pytest.fixture(scope="module")
def conflicts() -> list[Conflict]:
    """What random requests over the shipped matrix come to."""
    matrix = shipped()
    found = []
    for request in requests(matrix, seed=7, count=REQUESTS):
        try:
            solve_system(join(matrix, request))
        except NoStackError as error:
            found.append(error.conflict)
        except UnknownGpuError:
            continue
    return found


def test_an_explanation_is_never_longer_than_a_screen_and_every_line_has_a_source(conflicts: list[Conflict]) -> None:
    assert len(conflicts) > REQUESTS // 2
    for conflict in conflicts:
        lines = conflict_lines(conflict)
        assert len(lines) <= MOST_LINES
        assert lines[-1].startswith("so ")
        assert all(sources_words(member.sources) for member in conflict.members), lines


def test_facts_follow_rules_and_rules_follow_requests(conflicts: list[Conflict]) -> None:
    kinds = ("request", "rule", "fact")
    for conflict in conflicts:
        order = [kinds.index(member.kind) for member in conflict.members]
        assert order == sorted(order), conflict_lines(conflict)


DECLARED = re.compile(
    r"(?:every (?P<kind>\w+) build of )?(?P<name>[a-z_]+) (?P<labels>[\w.+… ,]+?)"
    r" needs? (?P<target>[a-z_]+) (?P<ranges>(?:[=<>!~\d]|ranges within).*)"
)


def test_what_is_said_of_releases_of_the_shipped_matrix_stands_in_it(conflicts: list[Conflict]) -> None:
    """Read from the words, against the rows of the matrix: each release and build in a span has such a need."""
    matrix = shipped()
    checked = 0
    for conflict in conflicts:
        for member in conflict.members:
            for text in (
                member_words(member).split("; ")
                if member.kind == "rule" and not sources_words(member.sources).startswith("rule ")
                else ()
            ):
                said = DECLARED.fullmatch(text.replace(" and others", "", 1))
                if said is None or "driver" in {said["name"], said["target"]}:  # their needs are rules, and no columns of rows
                    continue
                for release, builds in rows(matrix, said["name"], said["labels"]):
                    wanted = [need for need in needs_of(release, builds) if need.component == said["target"]]
                    told = any(is_told(matrix, need, said["ranges"]) for need in wanted)
                    assert told, f"{release.version} does not: {text}: {wanted}"
                    checked += 1
    assert checked > REQUESTS // 2


def is_told(matrix: Matrix, need: Need, ranges: str) -> bool:
    """Whether a need is one of the stated ranges, or allows nothing outside the stated span, `ranges within 12.4 … 12.9`."""
    span = re.fullmatch(r"ranges within (\S+)(?: … (\S+))?", ranges)
    if span is None:
        stated = re.split(r", | or ", ranges)
        return set(str(need).split(" or ")) <= set(stated) or stands_in(str(need), stated)
    low, high = Version.parse(span[1]), Version.parse(span[2] or span[1])
    allowed = [one.version for one in matrix.components[need.component].releases if need.allows(one.version)]
    return all(low.release <= version.release <= high.release for version in allowed)


def stands_in(need: str, stated: list[str]) -> bool:
    """Whether one exact version is named by a wider series that is stated: `==13.0.2` by `==13.0.*`."""
    exact = need.removeprefix("==")
    return (
        any(Range.parse(one).allows(Version.parse(exact)) for one in stated if one.startswith("=="))
        if exact[:1].isdigit()
        else False
    )


def needs_of(release: Release, builds: tuple[Build, ...]) -> tuple[Need, ...]:
    return (*release.requires, *(need for build in builds for need in build.requires))


def rows(matrix: Matrix, name: str, labels: str) -> Iterator[tuple[Release, tuple[Build, ...]]]:
    """The releases that `2.4.0+cu124 … 2.6.0+cu124` or `12.6.0 and 12.6.3` stands for, with the builds it is about."""
    for part in re.split(r", | and ", labels):
        first, _, last = part.partition(" … ")
        low, high = Version.parse(first), Version.parse(last or first)
        for release in matrix.components[name].releases:
            if low.release <= release.version.release <= high.release:
                builds = tuple(build for build in release.builds if low.local in {"", build.name})
                if builds or not low.local:
                    yield release, builds
