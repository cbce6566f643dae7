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


def test_the_system_stack_alone_asks_no_index_and_cannot_tell_of_what_is_newer_than_the_matrix(project: Project) -> None:
    project.spec("[torch==2.99.0]", *LINES)
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 3, outcome.err
    assert outcome.err.startswith("error: the matrix does not know a pytorch newer than 2.15.0 yet  [unlisted-release]\n")
    hint = "`provision matrix refresh pytorch` reads its builds into the matrix, and the question can then be answered"
    assert f"hint: {hint}" in outcome.err.splitlines()


def test_what_is_newer_than_a_matrix_that_no_index_tells_of_is_unknown_with_packages_too(project: Project) -> None:
    project.index.add_wheel("idna", "3.10")
    project.spec("[idna]", *LINES, 'requires: {cuda: "99.0"}')
    outcome = project.run("solve")
    assert outcome.code == 3, outcome.err
    assert outcome.err.splitlines()[1].startswith("  you require cuda 99.0: the newest that the matrix knows is 13.")


def test_a_proved_conflict_beside_it_makes_the_answer_no(project: Project) -> None:
    project.spec("[]", *LINES, 'requires: {cuda: "99.0", python: "3.4"}')
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 1, outcome.err
    assert "you require python 3.4: the matrix has 3.8, 3.7, 3.6, 3.5 and 7 more" in outcome.err


def test_doctor_tells_a_conflict_of_what_is_newer_than_the_matrix(project: Project) -> None:
    project.write('name: app\nrequires: {cuda: "99.0"}\n')
    outcome = project.run("doctor", "provision.yaml")
    assert (outcome.code, "cuda 99.0" in outcome.out) == (1, True), outcome.out + outcome.err


def test_json_says_error_and_not_no_stack(project: Project) -> None:
    project.index.add_wheel("torch", "2.99.0", tag=TAG)
    project.spec("[torch==2.99.0]", *LINES)
    outcome = project.run("solve", "--format", "json")
    assert (outcome.code, outcome.json["status"], outcome.json["code"]) == (3, "error", "unlisted-release")
