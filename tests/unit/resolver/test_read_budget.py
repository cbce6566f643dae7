"""Ways out of a conflict read a bounded part of an index; the answer and its proof read what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from provisioner.cli.solve import telling_proof
from provisioner.errors import UnavailableError
from provisioner.index.model import Environment, PackageRelease
from provisioner.resolver import refutation
from provisioner.resolver.explain import fixes, values
from provisioner.resolver.joint import NoStackError, choose, solve_joint
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import NO_VERSION, PACKAGE, FileCandidate, Key
from provisioner.resolver.search.instance import OutOfStepsError, ProblemInstance, ReadBudget, StepBudget
from provisioner.words.conflict import fix_words, fixes_sought_words, refusal_hints
from provisioner.workflow.progress import Progress
from tests import small
from tests.file_shelf import LINUX, FileShelf, listed, wheel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from packaging.requirements import Requirement

    from provisioner.grounds.conflict import Conflict
    from provisioner.resolver.problem import Problem

LINKS = 30


class Counted(FileShelf):
    """A shelf that remembers whose metadata was read."""

    def __init__(self) -> None:
        """The newest tool cannot stand beside `base<2`; the one before needs a long chain. Gear likewise excludes `cog<2`."""
        chain = {f"link{place:02}": ["1.0"] for place in range(LINKS)}
        versions = {"tool": ["1.0", "2.0"], "base": ["1.0", "2.0"], "gear": ["1.0", "2.0"], "cog": ["1.0", "2.0"], **chain}
        metadata = {f"link{place:02} 1.0": (f"link{place + 1:02}",) for place in range(LINKS - 1)}
        metadata |= {"tool 2.0": ("base>=2",), "tool 1.0": ("link00",), "gear 2.0": ("cog>=2",)}
        files = {name: [wheel(name, version) for version in listed] for name, listed in versions.items()}
        super().__init__(files, metadata, LINUX, ())
        self.read: set[str] = set()

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        self.read.add(f"{release.name} {release.version}")
        return super().requirements(release, extras)


def problem(*packages: str) -> Problem:
    matrix = small.matrix(("python",), {"python": {LINUX.python: {}}}, virtual=())
    return join(matrix, small.request({"python": LINUX.python}, accelerator="cpu", packages=packages, runs="host"))


def conflict(shelf: Counted) -> Conflict:
    with pytest.raises(NoStackError) as caught:
        solve_joint(problem("tool>=2", "base<2"), lambda _: shelf)
    return caught.value.conflict


def test_another_way_out_that_needs_more_than_may_be_read_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    free, bounded = Counted(), Counted()
    with_all = conflict(free)
    monkeypatch.setattr(fixes, "MOST_READS_OF_FURTHER", LINKS // 2)
    monkeypatch.setattr(values, "MOST_READS_TO_DECIDE", 5)
    with_some = conflict(bounded)
    other = "base 2.0 instead of `base<2` would do"
    assert with_some.members == with_all.members
    assert [fix_words(hint) for hint in with_all.fixes] == [other, "tool 1.0 instead of `tool>=2` would do"]
    assert [fix_words(hint) for hint in with_some.fixes] == [other]
    assert f"link{LINKS - 1} 1.0" in free.read
    assert f"link{LINKS - 1} 1.0" not in bounded.read
    assert (with_all.is_cut_short, with_some.is_cut_short) == (False, True)
    assert refusal_hints([with_some])[-1].startswith("more fixes were not looked for: ")


def test_what_was_read_before_does_not_count_and_each_way_has_its_share() -> None:
    asked = problem("tool")
    finder = ProblemInstance(asked, PackageFinder(asked, Counted(), LINUX))
    newest, before = finder.candidates(Key("tool", PACKAGE))
    (link,) = finder.candidates(Key("link00", PACKAGE))
    budget = ReadBudget()
    budget.spend(newest)
    budget.limit(1)
    budget.spend(newest)
    with pytest.raises(UnavailableError) as caught:
        budget.spend(before)
    assert caught.value.message == "tool 1.0 was not looked at: too much was read before"
    budget.allot(2)
    budget.spend(before)
    with pytest.raises(UnavailableError):
        budget.spend(link)


def test_a_fix_reads_no_source_distribution_that_the_answer_did_not() -> None:
    def source(version: str) -> FileCandidate:
        file = listed(f"tool-{version}.tar.gz")
        release = PackageRelease.of(name=canonicalize_name("tool"), version_text=version, file=file)
        return FileCandidate(Key("tool", PACKAGE), NO_VERSION, version, release)

    budget, read_before, other = ReadBudget(), source("2.0"), source("1.0")
    budget.spend(read_before)
    budget.limit(10)
    budget.allot(10)
    budget.spend(read_before)
    with pytest.raises(UnavailableError) as caught:
        budget.spend(other)
    assert caught.value.message == "tool 1.0 was not looked at: it is a source distribution"
    assert budget.steps.was_short
    budget.limit(10, reads_sources=True)
    budget.allot(10)
    budget.spend(other)


@pytest.mark.parametrize("most", [1, 300, 600, 1_200, 2_400])
def test_the_conflict_is_that_of_any_number_of_steps_and_the_fixes_are_some_of_all(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    whole = conflict(Counted())
    monkeypatch.setattr(refutation, "MOST_STEPS", most)
    bounded, again = conflict(Counted()), conflict(Counted())
    assert bounded == again
    assert bounded.members == whole.members
    assert {fix.identities for fix in bounded.fixes} <= {fix.identities for fix in whole.fixes}
    assert bounded.is_cut_short or bounded == whole


def test_without_any_step_nothing_is_read_for_a_fix_and_no_way_out_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Counted()
    monkeypatch.setattr(refutation, "MOST_STEPS", 0)
    bounded = conflict(shelf)
    assert not bounded.fixes
    assert refusal_hints([bounded]) == ("there may be a fix: the search for them ends after a fixed amount of work",)
    assert not any(one.startswith("link") for one in shelf.read)


def test_the_steps_of_several_conflicts_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two conflicts, of which the second is not minimal where the steps end early: it is told whole or not at all."""

    def conflicts() -> tuple[Conflict, ...]:
        with pytest.raises(NoStackError) as caught:
            solve_joint(problem("tool>=2", "base<2", "gear>=2", "cog<2"), lambda _: Counted())
        return caught.value.conflicts

    whole = [one.members for one in conflicts()]
    assert len(whole) == 2
    counts = set()
    for most in range(0, 6_000, 200):
        monkeypatch.setattr(refutation, "MOST_STEPS", most)
        told = [one.members for one in conflicts()]
        assert told == whole[: len(told)]
        counts.add(len(told))
    assert counts == {1, 2}


def test_a_share_of_the_steps_ends_with_its_block() -> None:
    budget = StepBudget()
    budget.take(1_000)
    budget.limit(100)
    with budget.share(1 / 2):
        budget.take(50)
        with pytest.raises(OutOfStepsError):
            budget.take()
    assert budget.was_short
    budget.take(50)
    assert not budget.has_more()


def test_the_conflicts_are_told_before_anything_is_read_for_a_fix() -> None:
    shelf, told = Counted(), []

    def tell(conflicts: Sequence[Conflict]) -> None:
        told.append((fixes_sought_words(conflicts), {one for one in shelf.read if one.startswith("link")}))

    with pytest.raises(NoStackError):
        choose(problem("tool>=2", "base<2"), lambda _: shelf, when_refuted=tell)
    assert told == [("no answer: base<2 and tool>=2 exclude each other; looking for fixes", set())]
    assert any(one.startswith("link") for one in shelf.read)


def test_who_interrupts_the_search_for_fixes_is_told_the_proof() -> None:
    progress = Progress()

    def interrupt(conflicts: Sequence[Conflict]) -> None:
        progress.refuse(conflicts)
        raise KeyboardInterrupt

    with pytest.raises(NoStackError) as caught, telling_proof(progress):
        choose(problem("tool>=2", "base<2"), lambda _: Counted(), when_refuted=interrupt)
    assert caught.value.message == "base<2 and tool>=2 exclude each other"
    assert refusal_hints(caught.value.conflicts) == ("there may be a fix: the search for them was interrupted",)


def test_an_interrupt_before_anything_is_proved_is_one() -> None:
    with pytest.raises(KeyboardInterrupt), telling_proof(Progress()):
        raise KeyboardInterrupt


def test_a_fix_that_needs_too_much_for_one_python_is_looked_for_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one Python no version of base works, and more would have to be read than may be; with the other the first does."""
    most = 20
    versions = [f"2.{minor}" for minor in range(3 * most)]

    def shelf(environment: Environment) -> FileShelf:
        files = {
            **{name: [wheel(name, "1.0"), wheel(name, "2.0")] for name in ("kit", "tool")},
            "base": [wheel("base", version) for version in ("1.0", *versions)],
            "part": [wheel("part", version, "cp313-cp313-manylinux_2_28_x86_64") for version in versions],
        }
        metadata = {f"base {version}": (f"part=={version}",) for version in versions}
        return FileShelf(files, metadata | {"kit 2.0": ("base>=2",), "tool 2.0": ("base>=2",)}, environment, ())

    matrix = small.matrix(("python",), {"python": {"3.14": {}, "3.13": {}}}, virtual=())
    packages = ("base<2", "kit>=2", "tool>=2")
    asked = small.request({"python": ">=3.13"}, accelerator="cpu", packages=packages, runs="host")
    monkeypatch.setattr(fixes, "MOST_READS_OF_ONE", most)
    with pytest.raises(NoStackError) as caught:
        solve_joint(join(matrix, asked), shelf)
    assert [fix_words(one) for one in caught.value.conflict.fixes] == ["base 2.0 instead of `base<2` would do"]
