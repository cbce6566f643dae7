"""What `check --changes` says solving would change is what solving then changes; the oracle is `solve` itself."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from provisioner.lock.format.file import read_lock
from tests.project import LOCK, Project, project_in

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.property

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
OPERATORS = (">=", "<", "!=", "~=")


def random_release(project: Project, dice: random.Random, day: int) -> None:
    """A wheel with a random version and up to two requirements on others, uploaded that day."""
    name = dice.choice(NAMES)
    version = f"{dice.randint(1, 4)}.{dice.randint(0, 3)}.{day}"
    others = [one for one in NAMES if one != name]
    requires = [
        f"{other}{dice.choice(OPERATORS)}{dice.randint(1, 4)}.{dice.randint(0, 3)}"
        for other in dice.sample(others, dice.choice([0, 0, 1, 1, 2]))
    ]
    project.index.add_wheel(name, version, requires=requires, upload_time=f"2026-05-{day:02}T00:00:00Z")


def random_packages(dice: random.Random) -> str:
    chosen = dice.sample(NAMES, 3)
    return f"[{', '.join(one if dice.random() < 0.7 else f'{one}<{dice.randint(2, 4)}' for one in chosen)}]"


def versions(folder: Path) -> dict[str, str]:
    return {package.name: package.version for package in read_lock(folder / LOCK).packages}


def after(before: dict[str, str], changes: list[dict[str, Any]]) -> dict[str, str]:
    """What a lock holds once these changes are made to it."""
    made = dict(before)
    for change in changes:
        if change["section"] == "packages" and change["aspect"] == "version":
            assert made.pop(change["name"], "") == change["from"]
            if change["to"]:
                made[change["name"]] = change["to"]
    return made


@pytest.mark.parametrize("seed", range(8))
def test_what_is_said_is_what_happens(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)
    with project_in(tmp_path, capsys, monkeypatch) as project:
        for day in range(1, 15):
            random_release(project, dice, day)
        project.spec(random_packages(dice), "outputs: []")
        while project.run("solve").code != 0:
            project.spec(random_packages(dice), "outputs: []")
        assert project.run("check", "--changes", "--format", "json").json["locks"][0]["changes"]["least"] == []
        for day in range(15, 25):
            random_release(project, dice, day)
        if dice.random() < 0.5:
            project.spec(random_packages(dice), "outputs: []")
        report = project.run("check", "--changes", "--format", "json")
        said = report.json["locks"][0]["changes"]
        before = versions(project.folder)
        shutil.copy(project.folder / LOCK, project.folder / "kept")
        for words, kind in ((("solve",), "least"), (("solve", "--upgrade"), "upgrade")):
            outcome = project.run(*words)
            if said[kind] is None:
                assert (outcome.code, report.code) == (1, 1)
                continue
            assert outcome.code == 0
            assert versions(project.folder) == after(before, said[kind])
            assert bool(said["least"]) == (after(before, said["least"]) != before)
            shutil.copy(project.folder / "kept", project.folder / LOCK)
