"""A glibc that nobody stated: what was assumed in its place is told where an answer, or a conflict, rests on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.project import Project

LINES = ("accelerator: cpu", "runs: host", "image: {}", "outputs: []")
ASSUMED = "glibc: the target does not state it, and is taken to have what the stack needs"
UNSTATED = "glibc: the target does not state it; state `glibc` in its profile (`provision inspect` writes one)"


def test_a_conflict_about_an_assumed_glibc_says_so_and_what_settles_it(project: Project) -> None:
    project.index.add_wheel("new", "1.0", tag="py3-none-manylinux_2_34_x86_64")
    project.spec("[new]", "target: {platform: linux/amd64}", *LINES)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert outcome.err.splitlines() == [
        "error: new cannot be had  [no-stack]",
        "  you require new  (provision.yaml:6)",
        (
            "  new 1.0: no wheel for glibc 2.28 on linux/amd64 (needs glibc 2.34); glibc 2.28 is assumed, for the "
            "target states none  (the package index)"
        ),
        "  so no new is left",
        "",
        "hint: state `glibc` in the target's profile (`provision inspect` writes one): wheels are then chosen for that one",
    ]


def test_a_stated_glibc_is_nothing_that_was_assumed(project: Project) -> None:
    project.index.add_wheel("new", "1.0", tag="py3-none-manylinux_2_34_x86_64")
    project.write("glibc: '2.28'\ngpus: []\n", name="old.yaml")
    project.spec("[new]", "target: {host: old.yaml}", *LINES)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert "assumed" not in outcome.err
    assert "glibc 2.28" in outcome.err


def test_the_glibc_of_a_stated_operating_system_is_nothing_that_was_assumed(project: Project) -> None:
    project.index.add_wheel("old", "1.0", tag="py3-none-manylinux_2_34_x86_64")
    project.write("os: {id: rocky, version: '9.4'}\ngpus: []\n", name="rocky.yaml")
    project.spec("[old]", "target: {host: rocky.yaml}", *LINES)
    outcome = project.run("solve")
    assert outcome.code == 0
    assert "glibc" not in project.read("pylock.trainer.toml")


def test_an_answer_that_rests_on_it_names_it_as_an_assumption(project: Project) -> None:
    project.index.add_wheel("old", "1.0", tag="py3-none-manylinux_2_28_x86_64")
    project.spec("[old]", "target: {platform: linux/amd64}", *LINES)
    outcome = project.run("solve", "--format", "json")
    assert (outcome.code, outcome.json["unverified"], outcome.json["assumes"]) == (0, [], [ASSUMED])
    assert project.run("check").code == 0
    assert project.run("solve", "--strict", "--format", "json").json["unverified"] == [UNSTATED]
    assert project.run("check", "--strict").code == 3


def test_an_accepted_unknown_is_listed_and_a_name_of_nothing_is_told(project: Project) -> None:
    project.index.add_wheel("old", "1.0", tag="py3-none-manylinux_2_28_x86_64")
    accepting = "policy: {strict: true, accept: [glibc, gilbc]}"
    project.spec("[old]", "target: {platform: linux/amd64}", *LINES, accepting)
    outcome = project.run("solve", "--format", "json")
    assert (outcome.json["verdict"], outcome.json["unverified"], outcome.json["accepts"]) == ("yes", [], [UNSTATED])
    assert "policy.accept `gilbc` (provision.yaml:12) is in no stack, so it changes nothing" in outcome.err
    assert project.run("check").code == 0
