"""A spec whose environment runs on the host: without `outputs` it writes the lock alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.project import project_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.project import Project


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, capsys, monkeypatch) as made:
        made.index.add_wheel("alpha", "1.0")
        yield made


@pytest.mark.parametrize("runs", ["host", "[host]"])
def test_without_outputs_the_lock_alone_is_written(project: Project, runs: str) -> None:
    project.write(
        f"name: trainer\ntarget: {{platform: linux/amd64}}\naccelerator: cpu\nrequires: {{python: '3.12'}}\nruns: {runs}\n"
        'packages: [alpha]\nindexes: [{name: local, url: "INDEX/simple"}]\n'
    )
    found = project.run("solve")
    assert found.code == 0, found.err
    assert set(project.files()) == {"provision.yaml", "pylock.trainer.toml"}
    assert project.run("check").code == 0
