"""Ways out of a conflict read a bounded part of an index; the answer and its proof read what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError
from provisioner.index.model import PackageRelease
from provisioner.resolver.explain import fixes
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import NO_VERSION, PACKAGE, FileCandidate, Key
from provisioner.resolver.search.instance import ProblemInstance, ReadBudget
from provisioner.words.conflict import fix_words
from tests import small
from tests.file_shelf import LINUX, FileShelf, listed, wheel

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from provisioner.grounds.conflict import Conflict
    from provisioner.resolver.problem import Problem

LINKS = 30


class Counted(FileShelf):
    """A shelf that remembers whose metadata was read."""

    def __init__(self) -> None:
        """The newest tool cannot stand beside `base<2`; the one before needs a long chain of others."""
        chain = {f"link{place:02}": ["1.0"] for place in range(LINKS)}
        versions = {"tool": ["1.0", "2.0"], "base": ["1.0", "2.0"], **chain}
        metadata = {f"link{place:02} 1.0": (f"link{place + 1:02}",) for place in range(LINKS - 1)}
        metadata |= {"tool 2.0": ("base>=2",), "tool 1.0": ("link00",)}
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
    monkeypatch.setattr(fixes, "MOST_READS_TO_DECIDE", 5)
    with_some = conflict(bounded)
    other = "base 2.0 instead of `base<2` would do"
    assert with_some.members == with_all.members
    assert [fix_words(hint) for hint in with_all.fixes] == [other, "tool 1.0 instead of `tool>=2` would do"]
    assert [fix_words(hint) for hint in with_some.fixes] == [other]
    assert f"link{LINKS - 1} 1.0" in free.read
    assert f"link{LINKS - 1} 1.0" not in bounded.read


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
        release = PackageRelease(name=canonicalize_name("tool"), version_text=version, file=file)
        return FileCandidate(Key("tool", PACKAGE), NO_VERSION, version, release)

    budget, read_before, other = ReadBudget(), source("2.0"), source("1.0")
    budget.spend(read_before)
    budget.limit(10)
    budget.allot(10)
    budget.spend(read_before)
    with pytest.raises(UnavailableError) as caught:
        budget.spend(other)
    assert caught.value.message == "tool 1.0 was not looked at: it is a source distribution"
