"""What an attempt failed by is not proved again for a changed request that leaves all of it as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.resolver.attempts import Indexes, attempts_of
from provisioner.resolver.known_failures import KnownFailures, choose_or_none
from provisioner.resolver.problem import join
from provisioner.resolver.pythons import best_answer
from provisioner.resolver.search.instance import ReadBudget
from tests import small
from tests.file_shelf import FileShelf, wheel

if TYPE_CHECKING:
    from provisioner.index.model import Environment
    from provisioner.resolver.attempts import Failure
    from provisioner.resolver.problem import Problem

MATRIX = small.matrix(("python",), {"python": {"3.11": {}, "3.12": {}}}, virtual=())
FILES = {
    "app": [wheel("app", "1", "py3-none-any"), wheel("app", "2", "py3-none-any")],
    "tool": [wheel("tool", "1", "py3-none-any"), wheel("tool", "2", "py3-none-any")],
    "more": [wheel("more", "1", "py3-none-any")],
}
METADATA = {"app 1": ("tool<2",), "app 2": (), "tool 1": (), "tool 2": (), "more 1": ()}


def problem(*packages: str) -> Problem:
    return join(MATRIX, small.request({}, packages=packages, accelerator="cpu", runs="host"))


def shelf(environment: Environment) -> FileShelf:
    return FileShelf(FILES, METADATA, environment, ())


def nothing(environment: Environment) -> FileShelf:
    raise AssertionError(f"an index was opened for python {environment.python}")


@pytest.fixture
def known() -> KnownFailures:
    failed: list[Failure] = []
    asked = problem("app==1", "tool>=2")
    assert best_answer(asked, attempts_of(asked), Indexes(shelf, ReadBudget()), failed=failed) is None
    assert [one.attempt.python for one in failed] == ["3.12", "3.11"]
    found = KnownFailures(failed)
    for one in failed:
        one.search.close()
    return found


def test_what_keeps_the_lines_of_a_failure_fails_without_an_index(known: KnownFailures) -> None:
    assert choose_or_none(problem("app==1", "tool>=2", "more"), Indexes(nothing, ReadBudget()), known) is None


@pytest.mark.parametrize("packages", [("app==2", "tool>=2"), ("app==1", "tool"), ("app==1",)])
def test_what_changes_one_of_them_is_solved(known: KnownFailures, packages: tuple[str, ...]) -> None:
    assert choose_or_none(problem(*packages), Indexes(shelf, ReadBudget()), known) is not None


def test_what_fails_for_another_reason_is_added(known: KnownFailures) -> None:
    assert choose_or_none(problem("app==1", "more>=2"), Indexes(shelf, ReadBudget()), known) is None
    assert choose_or_none(problem("app==2", "more>=2"), Indexes(nothing, ReadBudget()), known) is None
