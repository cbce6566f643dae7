"""A release that an index has and the matrix has not is no proof that nothing fits: nobody can tell yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.errors import UnavailableError
from provisioner.resolver.joint import NoStackError, UnlistedReleaseError, solve_joint
from provisioner.resolver.problem import join
from provisioner.words.choice import caution_words
from tests import small
from tests.unit.resolver.test_finder import Shelf, matrix_with_facts

if TYPE_CHECKING:
    from packaging.utils import NormalizedName

    from provisioner.index.model import PackageRelease
    from provisioner.resolver.problem import Problem

REFRESH = "`provision matrix refresh pytorch` reads its builds into the matrix, and the question can then be answered"
SHELF: dict[str, dict[str, list[str] | str]] = {
    "torch": {"2.99.0": [], "2.4.0": [], "2.1.0": []},
    "tool": {"2": ["torch==2.99.0"], "1": ["torch"]},
}


def problem(*packages: str, **requires: str) -> Problem:
    return join(matrix_with_facts(), small.request({"python": "==3.11", **requires}, {}, packages=packages))


@pytest.mark.parametrize(
    ("packages", "requires"),
    [(("torch==2.99.0",), {}), (("torch>2.90",), {}), ((), {"pytorch": "==2.99.0"}), (("tool==2",), {})],
)
def test_an_answer_that_only_an_unlisted_release_could_be_is_not_told_to_be_none(
    packages: tuple[str, ...], requires: dict[str, str]
) -> None:
    with pytest.raises(UnlistedReleaseError) as caught:
        solve_joint(problem(*packages, **requires), lambda _: Shelf(SHELF))
    error = caught.value
    assert (error.code, error.exit_code) == ("unlisted-release", 3)
    assert error.message == "an index has pytorch 2.99.0, which the matrix does not know yet"
    assert error.hints[0] == REFRESH
    assert not any("the matrix has" in line for line in error.causes), error.causes
    assert any("pytorch" in line or "torch" in line for line in error.causes)


@pytest.mark.parametrize("wanted", ["torch==2.98.0", "torch==3.*"])
def test_what_neither_has_remains_a_no(wanted: str) -> None:
    with pytest.raises(NoStackError):
        solve_joint(problem(wanted), lambda _: Shelf(SHELF))


def test_a_release_of_which_the_spec_asks_for_none_leaves_the_no_as_it_is() -> None:
    with pytest.raises(NoStackError):
        solve_joint(problem("torch==2.4.0", "tool==2"), lambda _: Shelf({**SHELF, "tool": {"2": ["torch==2.1.0"]}}))


class Cut(Shelf):
    """A shelf that cannot be reached for PyTorch."""

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        if name == "torch":
            raise UnavailableError("index `pypi` cannot be reached: no route")
        return super().releases(name, index=index)


def test_an_index_that_cannot_be_asked_leaves_the_question_open() -> None:
    with pytest.raises(UnavailableError) as caught:
        solve_joint(problem("torch==2.99.0"), lambda _: Cut(SHELF))
    assert caught.value.exit_code == 3


def test_a_newer_release_that_the_matrix_does_not_know_is_named_beside_an_answer() -> None:
    stack = solve_joint(problem("torch"), lambda _: Shelf(SHELF))
    assert stack.components["pytorch"].startswith("2.4.0")
    told = "pytorch: the index has 2.99.0, which the matrix does not know yet: `provision matrix refresh pytorch`"
    assert [caution_words(one) for one in stack.warnings] == [told]


def test_a_newer_release_that_the_spec_excludes_is_not_named() -> None:
    stack = solve_joint(problem("torch<2.5"), lambda _: Shelf(SHELF))
    assert stack.warnings == ()
