"""What a command loads: a run that finds everything in its cache pays for nothing but the search."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.project import Project

REPORT = "import atexit, sys\natexit.register(lambda: sys.stderr.write('loaded: ' + ' '.join(sys.modules)))"

HTTP = ("requests", "urllib3", "ssl", "http", "email", "certifi", "charset_normalizer", "idna", "concurrent")
"""Packages that requests to an index load, or threads that read ahead."""


def loaded(project: Project, *words: str) -> set[str]:
    """The modules that a command has loaded at its end, which must be a success."""
    process = project.spawn(*words, before=REPORT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return set(err.rpartition("loaded: ")[2].split())


def test_a_solve_that_finds_its_pages_in_the_cache_loads_nothing_for_requests(project: Project) -> None:
    project.index.cache_control = "max-age=600"
    project.spec("[alpha]")
    assert project.run("solve").code == 0
    (project.folder / "pylock.trainer.toml").unlink()
    found = loaded(project, "solve")
    assert "provisioner.index.client" in found
    assert [name for name in sorted(found) if name.partition(".")[0] in HTTP] == []
