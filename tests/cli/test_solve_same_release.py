"""`provision solve` where a file is named after another version than it holds: what neither uv nor pip would install."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.built_files import build_wheel, metadata_text
from tests.project import LOCK, changed

if TYPE_CHECKING:
    from tests.project import Project

TOLD = "says in its metadata that it is delta 2.1, which installers refuse"


@pytest.fixture
def misnamed(project: Project) -> bytes:
    """Delta 1.0 as it should be, and delta 2.1 under the name of 2.0."""
    project.index.add_wheel("delta", "1.0")
    _, content = build_wheel("delta", "2.1", metadata=metadata_text("delta", "2.1"))
    return content


def test_an_older_version_is_taken_instead(project: Project, misnamed: bytes) -> None:
    project.index.add_wheel("delta", "2.0")
    honest = project.index.pages["simple"]["delta"].pop()
    metadata = metadata_text("delta", "2.1").encode()
    served = replace(honest, content=misnamed, metadata=metadata)
    project.index.pages["simple"]["delta"].append(served)
    project.index.files[served.path] = served
    project.spec("[delta]", "outputs: []")
    assert project.run("solve").code == 0
    assert 'version = "1.0"' in project.read(LOCK)
    project.spec("['delta>=2']", "outputs: []")
    outcome = project.run("solve")
    assert outcome.code == 1
    assert TOLD in outcome.err


def test_a_file_that_the_spec_names_is_refused_with_the_reason(project: Project, misnamed: bytes) -> None:
    (project.folder / "delta-2.0-py3-none-any.whl").write_bytes(misnamed)
    project.write(changed("packages: ['delta @ file:./delta-2.0-py3-none-any.whl']", "outputs: []"))
    outcome = project.run("solve")
    assert outcome.code != 0
    assert TOLD in outcome.err
