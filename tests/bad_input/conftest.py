"""The project folder that tests of whole commands work in."""

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
    """A folder with a spec in it, which is the working directory, and an index on loopback."""
    with project_in(tmp_path, capsys, monkeypatch) as made:
        yield made
