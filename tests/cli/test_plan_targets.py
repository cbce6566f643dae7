"""`provision plan` and `provision fleet` of a spec with several targets: one of them is meant, and it is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.test_plan import A100, CU130, V100, lock

if TYPE_CHECKING:
    from tests.project import Project

SPEC = """\
name: trainer
targets:
  ampere: {host: a100.yaml}
  volta: {host: v100.yaml}
requires: {python: "==3.12", pytorch: ">=2.0"}
"""
WHICH = (
    "error: provision.yaml is for several targets (ampere, volta), and this needs one  [bad-usage]\n"
    "\n"
    "hint: choose one with --target\n"
)


@pytest.fixture(autouse=True)
def spec(project: Project) -> None:
    """A spec of two targets, a host each."""
    project.write(SPEC)
    project.write(A100, name="a100.yaml")
    project.write(V100, name="v100.yaml")


@pytest.mark.parametrize("command", [("plan", "--to", "pytorch>=2.9"), ("fleet",)])
def test_a_target_that_is_missing_or_unknown_is_told_with_those_there_are(project: Project, command: tuple[str, ...]) -> None:
    missing = project.run(*command)
    assert (missing.code, missing.out, missing.err) == (2, "", WHICH)
    wrong = project.run(*command, "--target", "amper")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err == (
        "error: provision.yaml has no target `amper`; did you mean `ampere`?  [bad-usage]\n\nhint: it has ampere, volta\n"
    )


def test_a_plan_is_for_the_hosts_of_its_target(project: Project) -> None:
    plans = {name: project.run("plan", *CU130, "--target", name, "--format", "json") for name in ("ampere", "volta")}
    assert plans["ampere"].code != 1
    assert plans["volta"].code == 1, "no build for CUDA 13 has kernels for a V100"
    assert "a100.yaml" in plans["ampere"].out
    assert "v100.yaml" not in plans["ampere"].out
    assert "v100.yaml" in plans["volta"].out


def test_the_lock_of_today_is_that_of_the_target(project: Project) -> None:
    (project.folder / "ampere").mkdir()
    lock(project, "ampere/pylock.trainer.toml", "2.6.0+cu118")
    with_lock = project.run("plan", *CU130, "--target", "ampere")
    given = project.run("plan", *CU130, "--target", "ampere", "--from", "ampere/pylock.trainer.toml")
    assert with_lock.out == given.out
    assert "2.6.0+cu118" in with_lock.out
    (project.folder / "ampere/pylock.trainer.toml").unlink()
    assert "2.6.0+cu118" not in project.run("plan", *CU130, "--target", "ampere").out


def test_another_spec_as_the_goal_is_read_for_the_same_target(project: Project) -> None:
    project.write(SPEC.replace(">=2.0", "==2.11.0+cu130"), name="next.yaml")
    project.write(SPEC.replace(">=2.0", "==2.11.0+cu130").replace("volta", "turing"), name="others.yaml")
    project.write(
        "name: trainer\ntarget: {host: a100.yaml}\nrequires: {python: '==3.12', pytorch: '==2.11.0+cu130'}\n", name="one.yaml"
    )
    laid = project.run("plan", *CU130, "--target", "ampere", "--format", "json").json
    for goal in ("next.yaml", "one.yaml"):
        outcome = project.run("plan", "--to", goal, "--target", "ampere", "--format", "json")
        assert outcome.json["verdict"] == laid["verdict"]
        assert [plan["status"] for plan in outcome.json.get("plans", [])] == [plan["status"] for plan in laid.get("plans", [])]
    outcome = project.run("plan", "--to", "others.yaml", "--target", "volta")
    assert (outcome.code, outcome.err) == (
        2,
        "error: others.yaml has no target `volta`  [bad-usage]\n\nhint: it has ampere, turing\n",
    )


def test_a_package_that_no_plan_weighs_is_told(project: Project) -> None:
    outcome = project.run("plan", *CU130, "--to", "einops>=0.8", "--target", "ampere", "--format", "json")
    assert outcome.err.splitlines()[0] == (
        "warning: --to `einops>=0.8` was not weighed: a plan orders components, not packages; "
        "`provision solve`, then --to LOCK, weighs both"
    )
    assert outcome.out == project.run("plan", *CU130, "--target", "ampere", "--format", "json").out
    assert "warning" not in project.run("plan", *CU130, "--target", "ampere").err


def test_a_fleet_is_the_hosts_of_its_target_unless_others_are_given(project: Project) -> None:
    outcome = project.run("fleet", "--target", "volta", "--format", "json")
    assert outcome.code == 0, outcome.err
    assert "v100.yaml" in outcome.out
    assert "a100.yaml" not in outcome.out
    both = project.run("fleet", "--target", "volta", "--hosts", "a100.yaml", "--format", "json")
    assert ('"a100"' in both.out, "v100" in both.out) == (True, False)
