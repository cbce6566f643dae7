"""`-v` tells the course of the search on stderr, `-vv` each of its steps; the answer on stdout stays what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.project import Project

SEARCH = "provisioner.search: "


def search_of(project: Project, *words: str) -> tuple[str, list[str]]:
    """What is printed, and what is told of the search, by the program as a process of its own."""
    process = project.spawn("solve", "--dry-run", *words)
    out, err = process.communicate(timeout=120)
    assert process.returncode in {0, 1}, err
    return out, [line.removeprefix(SEARCH) for line in err.splitlines() if line.startswith(SEARCH)]


def test_the_attempts_and_how_they_end_are_told(project: Project) -> None:
    quiet, nothing = search_of(project)
    assert nothing == []
    told, lines = search_of(project, "-v")
    assert quiet.splitlines()[0] == told.splitlines()[0]
    first, second = lines
    assert first.startswith("trying python 3.12 with image python:3.12-slim-bookworm@sha256:")
    assert second.startswith("components and packages: an answer in ")


def test_each_choice_is_told_if_everything_is_asked_for(project: Project) -> None:
    _, lines = search_of(project, "-vv")
    assert "python 3.12" in lines
    assert [line for line in lines if line.startswith("alpha ")]


def test_an_attempt_without_an_answer_is_told_with_what_excludes_it(project: Project) -> None:
    project.spec("[alpha, alpha<1, alpha>2]")
    _, lines = search_of(project, "-v")
    assert "python 3.12 has no answer: packages.alpha" in lines
