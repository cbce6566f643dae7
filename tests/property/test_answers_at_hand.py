"""With answers kept and without them nothing is different, whatever happens between two runs."""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.at_hand import OFFLINE, in_cache, run, settle
from tests.project import LOCK, Project, changed, project_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.property

STEPS = 16
COMMANDS = (("solve",), ("solve",), OFFLINE, ("solve", "--dry-run", "--format", "json"), ("solve", "--stack-only"), ("check",))


def random_change(project: Project, dice: random.Random) -> None:
    """One of the things that happen between two runs; often nothing."""
    names = ["alpha", "beta", "gamma"]
    lock = project.folder / LOCK
    more = project.folder / "more.txt"
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: None,
        lambda: None,
        lambda: project.write(changed(f"packages: {dice.sample(names, 2)}".replace("'", ""))),
        lambda: project.write(changed("packages: [alpha]", "packages-from: [more.txt]")),
        lambda: more.write_text(dice.choice(["beta\n", "beta<2\n", "gamma\n", ""]), encoding="utf-8"),
        lambda: project.write(changed(f'policy: {{strategy: "{dice.choice(["newest", "oldest"])}"}}')),
        lambda: project.index.add_wheel(dice.choice(names), f"{dice.randint(2, 9)}.{dice.randint(0, 9)}.{dice.randint(0, 99)}"),
        lambda: lock.unlink(missing_ok=True),
        lambda: (project.folder / "Dockerfile").write_text("FROM scratch\n", encoding="utf-8"),
        lambda: (project.folder / "Dockerfile").unlink(missing_ok=True),
        lambda: in_cache("UPDATE page SET fetched = 0.0 WHERE url LIKE '%beta%'"),
    ]
    dice.choice(changes)()


@pytest.mark.parametrize("freshness", ["max-age=600", "max-age=0"])
@pytest.mark.parametrize("seed", range(2))
def test_with_answers_kept_and_without_them_nothing_is_different(
    seed: int,
    freshness: str,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The oracle is the program itself, told to keep nothing, in a folder of its own and with a cache of its own."""
    dice = random.Random(seed)
    found, twin = [], tmp_path_factory.mktemp("twin")
    with project_in(tmp_path_factory.mktemp("folder"), capsys, monkeypatch) as project:
        settle(project, tmp_path_factory.mktemp("run"), monkeypatch)
        project.index.cache_control = freshness
        project.write("beta\n", name="more.txt")
        for _ in range(STEPS):
            random_change(project, dice)
            words = dice.choice(COMMANDS)
            *expected, _ = _in_twin(twin, project, words)
            *actual, how = run(project, *words)
            assert actual == expected
            assert project.files() == _files(twin / "folder")
            found.append(how)
    assert {"at hand", "solved"} <= {*found} or freshness == "max-age=0"


def _in_twin(twin: Path, project: Project, words: tuple[str, ...]) -> tuple[int, str, str, str]:
    """The same command in another folder and with another cache that look the same; nothing is kept there."""
    shutil.rmtree(twin)
    shutil.copytree(project.folder, twin / "folder")
    shutil.copytree(os.environ["XDG_CACHE_HOME"], twin / "cache", symlinks=True)
    other = Project(twin / "folder", project.index, capsys=None)  # type: ignore[arg-type]
    return run(other, *words, XDG_CACHE_HOME=str(twin / "cache"), PROVISION_NO_ANSWER_CACHE="1")


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
