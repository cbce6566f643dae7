"""A lock in which one value is something else, its digest made again: `check` answers or says what is wrong."""

from __future__ import annotations

import copy
import random
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import tomli_w

from provisioner.lock.format.file import digest_of, write_lock
from tests.lock_examples import cuda_stack, lock_of
from tests.project import LOCK, changed, project_in
from tests.strategies import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.project import Project

GARBAGE: tuple[Any, ...] = ("", "x y", "not valid!!", ">=", "@", "1" * 5000, "\u202e\x07x", 5, ["a"], {"a": 1}, True)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:  # noqa: ANN401 - TOML holds anything
    """The place of every value that is neither a table nor a list."""
    if isinstance(value, (dict, list)):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(below, (*path, key))
    else:
        yield path


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, capsys, monkeypatch) as made:
        yield made


@pytest.mark.property
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_whatever_stands_there_is_answered_in_words(project: Project, kind: str) -> None:
    if kind == "cpu":
        project.spec("[alpha]", "outputs: []")
        assert project.run("solve").code == 0
        text = (project.folder / LOCK).read_text(encoding="utf-8")
    else:
        project.write(changed("accelerator: cuda", 'requires: {pytorch: "==2.7.1"}', "packages: [torch]", "outputs: []"))
        text = write_lock(lock_of(cuda_stack()))
    table = tomllib.loads(text)
    # One of each kind of place: of a list of packages, any.
    kinds: dict[tuple[str, ...], list[tuple[str | int, ...]]] = {}
    for path in leaves(table):
        kinds.setdefault(tuple("*" if isinstance(part, int) else part for part in path), []).append(path)
    choose = random.Random(kind)
    for places in kinds.values():
        for garbage in choose.sample(GARBAGE, max(2, min(len(GARBAGE), round(len(GARBAGE) * TIMES)))):
            written = copy.deepcopy(table)
            *way, last = choose.choice(places)
            holder: Any = written
            for part in way:
                holder = holder[part]
            holder[last] = garbage
            if last != "digest":
                written["tool"]["provision"]["digest"] = digest_of(written)
            (project.folder / LOCK).write_text(tomli_w.dumps(written), encoding="utf-8")
            outcome = project.run("check", LOCK)
            assert outcome.code in {0, 1, 2, 3}
            # A mistake of one lock of many is in the report; one that ends the run is an error.
            assert outcome.out or (outcome.code == 2 and outcome.err.startswith("error: ")), (way, last, garbage)
