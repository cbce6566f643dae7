"""`provision explain COMPONENT`, series by series: what keeps each newer one out, the system before packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.project import changed

if TYPE_CHECKING:
    from tests.project import Project

HOST = """\
target:
  host:
    driver: {version: 550.54.15}
    gpus: [{compute_capability: "8.9"}]
    container_toolkit: 1.17.4
"""
EXAMPLE = Path(__file__).parents[2] / "examples/trainer/provision.yaml"
NEEDS = {
    "1.0.0": ["torch==2.7.1"],
    "1.1.0": ["torch==2.9.0"],
    "1.2.0": ["torch==2.11.0"],
    "1.2.1": ["torch==2.11.0"],
    "1.3.0": ["torch==2.13.0", "leaf>=9"],
}
"""What the releases of a package need: torch 2.11 and 2.13 are for CUDA 13, and no index has a ninth leaf."""


@pytest.fixture
def engine(project: Project) -> Project:
    """An index with `engine` and what it needs, and a host whose driver ends with CUDA 12."""
    for version, requires in NEEDS.items():
        project.index.add_wheel("engine", version, requires=requires)
    for version in ("2.7.1", "2.9.0", "2.11.0", "2.13.0"):
        project.index.add_wheel("torch", version, tag="cp312-cp312-manylinux_2_28_x86_64")
    project.index.add_wheel("leaf", "1.0")
    write(project, "[engine]")
    return project


def write(project: Project, packages: str, *lines: str) -> None:
    project.write(changed("accelerator: cuda", f"packages: {packages}", "image: {base: auto}", *lines, HOST))


def nots(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("not ")]


def test_the_driver_comes_before_a_leaf_that_the_newest_lacks(engine: Project) -> None:
    outcome = engine.run("explain", "engine")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "engine 1.1.0 is chosen"
    assert nots(outcome.out) == [
        "not engine 1.2 to 1.3: driver 550.54.15 excludes them",
        "not engine 1.3.0: these cannot hold together:",
    ]
    assert "  engine 1.3.0 needs torch==2.13.0  (metadata of engine 1.3.0)" in lines
    assert "  looked at: the newest release of each series, engine 1.2.1 to 1.3.0" in lines


def test_releases_are_excluded_by_the_host_and_not_by_each_other(engine: Project) -> None:
    """Fabric Manager follows the driver: of the two the driver is told, and of the releases asked about no other one."""
    write(engine, "[engine]")
    spec = engine.folder / "provision.yaml"
    spec.write_text(spec.read_text().replace("    container_toolkit", "    fabric_manager: 550.54.15\n    container_toolkit"))
    assert nots(engine.run("explain", "engine").out)[0] == "not engine 1.2 to 1.3: driver 550.54.15 excludes them"
    of_example = engine.run("explain", str(EXAMPLE), "cuda", "--stack-only").out
    assert nots(of_example)[0].endswith("driver 535.104.05 excludes them")
    assert "cannot hold together" not in of_example


def test_a_line_of_the_spec_does_not_hide_the_driver(engine: Project) -> None:
    write(engine, "['engine<1.2']")
    assert nots(engine.run("explain", "engine").out)[0] == "not engine 1.2 to 1.3: driver 550.54.15 excludes them"
    write(engine, "[engine]", "constraints: ['engine<1.2']")
    assert nots(engine.run("explain", "engine").out)[0] == "not engine 1.2 to 1.3: driver 550.54.15 excludes them"


def test_a_pin_without_an_answer_is_told_with_what_there_would_be(engine: Project) -> None:
    write(engine, "['engine==1.2.1']")
    outcome = engine.run("explain", "engine")
    assert outcome.code == 1
    assert outcome.err.startswith("error: engine==1.2.1 and driver 550.54.15 exclude each other  [no-stack]\n")
    place = 1 + (engine.folder / "provision.yaml").read_text().splitlines().index("packages: ['engine==1.2.1']")
    lines = outcome.out.splitlines()
    assert lines[0] == f"without `engine==1.2.1`  (provision.yaml:{place}), engine 1.1.0 would be chosen"
    assert lines[1] == "not engine 1.2 to 1.3: driver 550.54.15 excludes them"
    found = engine.run("explain", "engine", "--format", "json").json
    assert found["status"] == "no-stack"
    assert (found["instead"]["component"], found["instead"]["chosen"]) == ("engine", "1.1.0")
    assert [one["releases"] for one in found["instead"]["series"]] == [["1.3.0", "1.2.1"]]
    assert "instead" not in engine.run("explain", "leaf", "--format", "json").json


def test_a_constraint_without_an_answer_is_told_alone(engine: Project) -> None:
    write(engine, "[engine]", "constraints: ['engine>=1.2']")
    outcome = engine.run("explain", "engine")
    assert outcome.code == 1
    assert outcome.out.startswith("without `engine>=1.2`  (provision.yaml:")
    assert outcome.out.splitlines()[0].endswith("), engine 1.1.0 would be chosen")


def test_of_a_framework_it_is_told_too(engine: Project) -> None:
    write(engine, "['torch==2.13.0']")
    outcome = engine.run("explain", "torch")
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    assert lines[0].startswith("without `torch==2.13.0`  (provision.yaml:")
    assert lines[0].endswith("), pytorch 2.9.0 would be chosen")
    assert lines[1].startswith("not pytorch 2.")


def test_series_that_need_other_drivers_are_told_apart(engine: Project) -> None:
    host = HOST.replace("550.54.15", "470.256.02").replace("8.9", "7.5")
    pytorch = 'requires: {python: "==3.12", pytorch: "*"}'
    engine.write(changed("accelerator: cuda", pytorch, "packages: []", "image: {base: auto}", host))
    found = engine.run("explain", "pytorch", "--stack-only", "--format", "json").json["series"]
    assert [one["releases"][-1] for one in found] == ["2.15.0", "2.8.0"]
    for one, driver in zip(found, ("driver >=580", "driver >=525"), strict=True):
        (told,) = [member["text"] for member in one["conflict"]["members"] if member["component"] == "cuda"]
        assert driver in told


def test_a_python_of_the_spec_excludes_what_has_no_files_for_it(engine: Project) -> None:
    engine.index.add_wheel("engine", "2.0.0", requires_python=">=3.13")
    assert nots(engine.run("explain", "engine").out)[:2] == [
        "not engine 2.0.0: python ==3.12 excludes it",
        "not engine 1.2 to 1.3: driver 550.54.15 excludes them",
    ]


def test_packages_hold_back_where_the_system_does_not(project: Project) -> None:
    for version in ("1.0", "2.0", "2.1", "3.0"):
        project.index.add_wheel("kappa", version)
    project.index.add_wheel("iota", "1.0", requires=["kappa<2"])
    project.spec("[iota, kappa]")
    outcome = project.run("explain", "kappa")
    assert nots(outcome.out) == [
        "not kappa 2.0 to 3.0 beside what is chosen: iota 1.0 needs kappa<2  (metadata of iota 1.0)",
        "not kappa 3.0: iota excludes it",
    ]
    (told,) = project.run("explain", "kappa", "--format", "json").json["series"]
    assert told["releases"] == ["3.0", "2.1", "2.0"]
    assert (told["beside"]["text"], told["beside"]["where"]) == ("iota 1.0 needs kappa<2", "metadata of iota 1.0")


def test_a_need_that_nothing_meets_is_named(project: Project) -> None:
    for version in ("1.0", "2.0", "3.0"):
        project.index.add_wheel("omega", version, requires=[] if version == "1.0" else ["leaf>=9"])
    project.index.add_wheel("leaf", "1.0")
    project.spec("[omega]")
    assert nots(project.run("explain", "omega").out)[0] == (
        "not omega 2.0 to 3.0: omega 3.0 needs leaf>=9, and nothing that can be used with python 3.12 meets that"
        "  (metadata of omega 3.0)"
    )


def test_what_would_work_is_given_no_reason(project: Project) -> None:
    for version in ("1.0", "2.0", "3.0"):
        project.index.add_wheel("omega", version)
    project.spec("[omega]", "policy: {strategy: oldest}")
    assert nots(project.run("explain", "omega").out) == [
        "not omega 3.0: it would work, but policy.strategy is oldest  (provision.yaml:9)"
    ]
    assert "series" not in project.run("explain", "omega", "--format", "json").json


def test_each_newer_release_of_the_chosen_series_is_looked_at(engine: Project) -> None:
    for version, torch in (("0.5.1", "2.7.1"), ("0.5.2", "2.9.0"), ("0.5.3", "2.11.0"), ("0.5.10", "2.13.0")):
        engine.index.add_wheel("server", version, requires=[f"torch=={torch}"])
    write(engine, "[server]")
    lines = engine.run("explain", "server").out.splitlines()
    assert lines[0] == "server 0.5.2 is chosen"
    assert "not server 0.5.3 to 0.5.10: driver 550.54.15 excludes them" in lines
    assert "  looked at: each release, server 0.5.3 to 0.5.10" in lines


def test_a_package_that_the_driver_holds_back_is_told_with_it(engine: Project) -> None:
    engine.index.add_wheel("engine", "1.3.1", requires=["torch==2.13.0"])
    outcome = engine.run("solve", "--dry-run")
    assert outcome.code == 0, outcome.err
    (told,) = [line for line in outcome.err.splitlines() if line.startswith("held back: engine ")]
    assert told.startswith("held back: engine 1.1.0 rather than 1.3.1: engine 1.3.1 needs torch==2.13.0; cuda 13.0")
    assert "needs driver >=580.65.06 (minor-version compatibility)" in told
