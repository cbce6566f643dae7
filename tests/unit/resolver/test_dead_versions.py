"""Versions that nothing can be done with are found out once, and not tried again whenever the search starts again."""

from __future__ import annotations

from provisioner.index.model import Environment
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import Candidate, Key, Requirement
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.provider import SearchReporter, search
from tests import small
from tests.unit.resolver.test_finder import Shelf

VERSIONS, STARTS, LEAVES = 30, 6, 10
MATRIX = small.matrix(("pytorch", "python"), {"python": {"3.12": {}}})


class Counting(SearchReporter):
    """A reporter that counts the requirements which the engine looks at, by the distribution that has them."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_at: dict[str, int] = {}

    def adding_requirement(self, requirement: Requirement, parent: Candidate | None) -> None:
        del requirement
        name = parent.key.name if parent is not None else ""
        self.looked_at[name] = self.looked_at.get(name, 0) + 1


def test_a_version_that_needs_a_dead_one_is_not_tried_again_at_each_start() -> None:
    """As xinference, of which a hundred versions need what has no file, and each other dead version is a new start."""
    leaves = [f"leaf{number}" for number in range(LEAVES)]
    others = [f"z{number}" for number in range(STARTS)]
    metadata: dict[str, dict[str, list[str] | str]] = {
        "app": {str(number): [*leaves, *(["middle"] if number > 1 else [])] for number in range(1, VERSIONS + 1)},
        "middle": {"1": ["absent>=9"]},
        "absent": {"1": []},
    }
    metadata |= {leaf: {"1": []} for leaf in leaves}
    for name in others:
        metadata |= {name: {"2": [f"low-{name}"], "1": []}, f"low-{name}": {"1": ["absent>=9"]}}
    shelf = Shelf(metadata)
    problem = join(MATRIX, small.request({}, packages=["app", *others]))
    instance = ProblemInstance(problem, PackageFinder(problem, shelf, Environment(platform="linux/amd64", python="3.12")))
    reporter = Counting()
    pins = search(instance, reporter)
    assert pins is not None
    assert pins[Key("app", "package")].label == "1"
    assert {pins[Key(name, "package")].label for name in others} == {"1"}
    whole = LEAVES + 1
    most = VERSIONS + 3 * whole
    assert reporter.looked_at["app"] <= most, "each version fails once, and the last one stays pinned in each new start"
