"""`provision solve` where an index has a release that the matrix does not know yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.project import Project

CUDA = "accelerator: cuda"
TAG = "cp312-cp312-manylinux_2_28_x86_64"
LINES = (CUDA, "runs: host", "image: {}", "outputs: []")


def test_a_pin_to_what_only_the_index_has_cannot_be_told(project: Project) -> None:
    project.index.add_wheel("torch", "2.99.0", tag=TAG)
    project.spec("[torch==2.99.0]", *LINES)
    outcome = project.run("solve")
    assert outcome.code == 3, outcome.err
    assert outcome.err.splitlines()[0] == (
        "error: an index has pytorch 2.99.0, which the matrix does not know yet  [unlisted-release]"
    )
    line = "  you require torch==2.99.0: an index has 2.99.0, which the matrix does not know yet  (provision.yaml:6)"
    assert line in outcome.err.splitlines()
    hint = "`provision matrix refresh pytorch` reads its builds into the matrix, and the question can then be answered"
    assert f"hint: {hint}" in outcome.err.splitlines()


def test_a_pin_to_what_neither_has_is_refused(project: Project) -> None:
    project.index.add_wheel("torch", "2.99.0", tag=TAG)
    project.spec("[torch==2.98.0]", *LINES)
    outcome = project.run("solve")
    assert outcome.code == 1, outcome.err
    assert "you require torch==2.98.0: the matrix has 2.15.0" in outcome.err


def test_the_system_stack_alone_asks_no_index_and_says_what_the_matrix_has(project: Project) -> None:
    project.index.add_wheel("torch", "2.99.0", tag=TAG)
    project.spec("[torch==2.99.0]", *LINES)
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 1, outcome.err


def test_json_says_error_and_not_no_stack(project: Project) -> None:
    project.index.add_wheel("torch", "2.99.0", tag=TAG)
    project.spec("[torch==2.99.0]", *LINES)
    outcome = project.run("solve", "--format", "json")
    assert (outcome.code, outcome.json["status"], outcome.json["code"]) == (3, "error", "unlisted-release")
