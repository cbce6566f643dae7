"""The environments in `dockerfiles/`: a change of the matrix or the renderer must not overtake their locks unseen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provisioner.cli.app import main

FOLDER = Path(__file__).parents[2] / "dockerfiles"


def test_each_lock_solves_its_spec_and_each_dockerfile_is_of_its_lock(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(("check", str(FOLDER), "--format", "json"))
    report = json.loads(capsys.readouterr().out)
    assert stopped.value.code == 0
    assert [Path(lock["lock"]).parent.name for lock in report["locks"]] == sorted(
        path.parent.name for path in FOLDER.glob("*/*.yaml")
    )
    # What their README says of them: a registry was not in reach, and their packages of the distribution have no day.
    told = {finding["code"] for lock in report["locks"] for finding in lock["findings"]}
    assert told == {"unpinned-image", "undated-packages"}


def test_their_readme_names_each() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/provision.yaml")}
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    assert {line.split("`")[1] for line in lines if line.startswith("| `")} == folders
