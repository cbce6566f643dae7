"""`provision solve` where a pin asks for what its publisher withdrew: it is locked, and said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK

if TYPE_CHECKING:
    from tests.project import Project


@pytest.mark.parametrize(
    ("yanked", "told"),
    [("breaks on Mondays", "delta 2.0 is yanked: breaks on Mondays"), (True, "delta 2.0 is yanked, with no reason given")],
)
def test_a_pin_that_asks_for_a_yanked_release_is_warned_of_it(project: Project, *, yanked: str | bool, told: str) -> None:
    project.index.add_wheel("delta", "1.0")
    project.index.add_wheel("delta", "2.0", yanked=yanked, requires=["epsilon"], extras=["more"])
    project.index.add_wheel("epsilon", "1.0")
    project.spec("['delta[more]==2.0']", "outputs: []")
    outcome = project.run("solve")
    assert (outcome.code, outcome.err.count(f"warning: {told}\n")) == (0, 1)
    assert 'version = "2.0"' in project.read(LOCK)
    assert told in project.run("solve", "--format", "json").json["warnings"]


def test_who_does_not_pin_it_gets_another_and_hears_nothing(project: Project) -> None:
    project.index.add_wheel("delta", "1.0")
    project.index.add_wheel("delta", "2.0", yanked="breaks on Mondays")
    project.spec("[delta]", "outputs: []")
    outcome = project.run("solve")
    assert (outcome.code, "yanked" in outcome.err) == (0, False)
