"""`provision explain` from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.project import changed

if TYPE_CHECKING:
    from tests.project import Project

T4 = """\
target:
  host:
    driver: {version: 470.256.02}
    gpus: [{compute_capability: "7.5"}]
    container_toolkit: 1.17.4
"""


def gpu_spec(pytorch: str) -> str:
    return changed("accelerator: cuda", f'requires: {{python: "==3.11", pytorch: "{pytorch}"}}', "image: {base: auto}", T4)


def test_the_whole_stack_is_a_table_with_a_reason_each_and_no_index_is_asked(project: Project) -> None:
    outcome = project.run("explain")
    assert (outcome.code, outcome.err) == (0, "")
    rows = [line.split(maxsplit=2) for line in outcome.out.splitlines()]
    assert rows == [
        ["component", "chosen", "because"],
        ["image", "IMAGE", "the base image is IMAGE  (provision.yaml:9)"],
        ["python", "3.12", "you require python ==3.12  (provision.yaml:4)"],
        ["glibc", "2.36", "image IMAGE needs glibc 2.36  (matrices/image.yaml)"],
        ["platform", "linux/amd64"],
    ]
    assert not project.index.requests


def test_one_component_is_told_with_what_holds_back_a_newer_one(project: Project) -> None:
    project.write(gpu_spec("*"))
    outcome = project.run("explain", "provision.yaml", "pytorch")
    assert outcome.code == 0
    first, *rest = outcome.out.splitlines()
    assert first.startswith("pytorch 2.")
    assert first.endswith(" is chosen")
    assert rest[0] == "  you require pytorch *  (provision.yaml:7)"
    assert any(line.startswith("not pytorch 2.") and line.endswith("because these cannot hold together:") for line in rest)
    assert "  the host has driver 470.256.02  (provision.yaml:11)" in rest
    assert any(line.startswith("hint: driver >=") for line in rest)


def test_one_component_as_json(project: Project) -> None:
    project.write(gpu_spec("*"))
    outcome = project.run("explain", "provision.yaml", "pytorch", "--format", "json")
    assert outcome.code == 0
    assert list(outcome.json) == ["status", "component", "chosen", "reasons", "newer", "conflict"]
    members = {(member["kind"], member["component"]) for member in outcome.json["conflict"]["members"]}
    assert ("fact", "driver") in members


def test_the_component_alone_is_about_the_spec_of_this_folder(project: Project) -> None:
    assert project.run("explain", "python") == project.run("explain", "provision.yaml", "python")


def test_what_the_distribution_is_called_means_the_component(project: Project) -> None:
    project.write(gpu_spec("*"))
    assert project.run("explain", "torch").out == project.run("explain", "pytorch").out


def test_nothing_fits_is_explained_and_the_answer_is_no(project: Project) -> None:
    project.write(gpu_spec(">=2.9"))
    outcome = project.run("explain")
    assert (outcome.code, outcome.out) == (1, "")
    lines = outcome.err.splitlines()
    assert lines[0] == "error: no stack satisfies the spec on this target  [no-stack]"
    assert lines[1] == "  you require pytorch >=2.9  (provision.yaml:7)"
    assert "  the host has driver 470.256.02  (provision.yaml:11)" in lines
    assert any(line.startswith("hint: ") for line in lines)
    told = project.run("explain", "--format", "json")
    assert (told.code, told.json["status"]) == (1, "no-stack")


def test_a_component_that_is_not_in_the_stack_is_a_mistake(project: Project) -> None:
    outcome = project.run("explain", "pyhton")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error: `pyhton` is not part of the stack of this spec  [bad-usage]\n\nhint: did you mean `python`?\n"
    )
