"""A Python for which what is named requires a distribution without a file is left before anything is solved with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.resolver.attempts import Indexes, attempts_of
from provisioner.resolver.problem import join
from provisioner.resolver.pythons import best_answer
from provisioner.resolver.requirement import PACKAGE, Key
from provisioner.resolver.search.instance import ReadBudget
from tests import small
from tests.file_shelf import FileShelf, wheel

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from provisioner.index.model import Environment, PackageRelease

MATRIX = small.matrix(("python",), {"python": {"3.11": {}, "3.12": {}}}, virtual=())
FOR_311 = "cp311-cp311-manylinux_2_28_x86_64"
FILES = {
    "app": [wheel("app", "1", "py3-none-any"), wheel("app", "2", "py3-none-any")],
    "middle": [wheel("middle", "1", "py3-none-any"), wheel("middle", "2", "py3-none-any")],
    "core": [wheel("core", "1", "py3-none-any"), wheel("core", "2", FOR_311)],
}


@pytest.mark.parametrize(
    "metadata",
    [
        {"app 1": (), "app 2": ("core>=2",), "core 1": (), "core 2": ()},
        {"app 1": (), "app 2": ("middle==1",), "middle 1": ("core>=2",), "core 1": (), "core 2": ()},
    ],
    ids=("directly", "by-a-pin"),
)
def test_the_newest_version_of_what_is_named_decides_without_a_solve_for_the_newer_python(
    metadata: dict[str, tuple[str, ...]],
) -> None:
    read: list[tuple[str, str]] = []

    class Noted(FileShelf):
        def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
            read.append((self._environment.python, f"{release.name} {release.version_text}"))
            return super().requirements(release, extras)

    def shelf(environment: Environment) -> FileShelf:
        return Noted(FILES, metadata, environment, ())

    problem = join(MATRIX, small.request({}, packages=("app",), accelerator="cpu", runs="host"))
    found = best_answer(problem, attempts_of(problem), Indexes(shelf, ReadBudget()), failed=[])
    assert found is not None
    pins = found[1]
    assert (pins[Key("python")].label, pins[Key("app", PACKAGE)].label) == ("3.11", "2")
    assert ("3.12", "app 2") in read, "it is looked at"
    assert ("3.12", "app 1") not in read, "that is the version of an answer with the newer Python"
