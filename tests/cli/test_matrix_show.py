"""`provision matrix show` from outside, over the shipped matrix: both directions, rows by name, and what is wrong to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import Project


def test_what_goes_with_a_cuda_release(project: Project) -> None:
    """NVIDIA CUDA Compatibility guide, Table 1: CUDA 11.x runs on drivers from 450.80.02 by minor-version compatibility."""
    outcome = project.run("matrix", "show", "cuda==11.3")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert "NVIDIA CUDA: cuda 11.3.1" in lines
    assert "  driver, minor-version compatibility: >=450.80.02" in lines
    assert any(line.startswith("driver, minor-version ") for line in lines)
    assert any(line.startswith("cudnn ") for line in lines)
    assert any(line.startswith("  cuda-release-notes-table-3: NVIDIA CUDA Toolkit") for line in lines)


def test_a_release_as_json(project: Project) -> None:
    found = project.run("matrix", "show", "cuda==12.6.3", "--format", "json").json
    assert list(found) == ["question", "kind", "component", "title", "releases", "rules", "with", "gpus", "images", "citations"]
    assert found["releases"][0]["driver"]["minor_version"] == "525.60.13"
    company = {one["component"]: one["releases"] for one in found["with"]}
    assert "2.7.1" in {one["version"] for one in company["pytorch"]}
    assert {one["basis"] for one in company["driver"]} == {"native", "minor-version", "forward-compat"}
    assert "cuda-12-gpu-floor" in {rule["name"] for rule in found["rules"]}
    assert all(set(rule["sources"]) <= set(found["citations"]) for rule in found["rules"])
    assert any(image["cuda"] == "12.6.3" for image in found["images"])


def test_which_stacks_run_on_a_host_of_two_facts(project: Project) -> None:
    outcome = project.run("matrix", "show", "sm_61", "driver=535")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].startswith("on a host with gpu 6.1, driver 535.")
    (row,) = (line.split() for line in lines if line.startswith("pytorch 2.7.1 "))
    assert row[:5] == ["pytorch", "2.7.1", "cu126", "12.6.3", "minor-version"]
    assert any("cannot run there" in line for line in lines)
    assert "unverified: container_toolkit: host does not state it" in outcome.err


@pytest.mark.slow
def test_nothing_runs_and_the_rule_is_named(project: Project) -> None:
    """The last branch for Volta is 580 (rule driver-590-drops-volta)."""
    outcome = project.run("matrix", "show", "gpu=V100", "driver=590", "--format", "json")
    assert outcome.code == 1
    found = outcome.json
    assert found["kind"] == "stacks"
    assert found["host"]["gpu"] == "NVIDIA V100 (7.0)"
    assert found["runs"] == []
    pytorch = [one for one in found["refused"] if one["component"] == "pytorch"]
    assert any("driver-590-drops-volta" in one["rules"] for one in pytorch)
    rule = next(one for one in found["rules"] if one["name"] == "driver-590-drops-volta")
    assert set(rule["sources"]) <= set(found["citations"])
    told = project.run("matrix", "show", "gpu=V100", "driver=590")
    assert told.code == 1
    assert "no stack runs there" in told.out
    assert "driver-590-drops-volta" in told.out


def test_forward_compatibility_is_asked_for_by_name(project: Project) -> None:
    refused = project.run("matrix", "show", "gpu=A100", "driver=470", "pytorch==2.7.1+cu126", "--format", "json")
    assert refused.code == 1
    allowed = project.run(
        "matrix", "show", "gpu=A100", "driver=470", "pytorch==2.7.1+cu126", "--allow", "forward-compat", "--format", "json"
    )
    assert allowed.code == 0
    assert [(one["release"], one["basis"]) for one in allowed.json["runs"] if one["component"] == "pytorch"] == [
        ("2.7.1", "forward-compat")
    ]


def test_a_fact_of_a_host_answers_both_ways(project: Project) -> None:
    found = project.run("matrix", "show", "driver==535.104.05", "--format", "json").json
    assert found["kind"] == "release"
    assert found["stacks"]["host"] == {"driver": "535.104.05"}
    assert found["stacks"]["runs"]
    basis = {
        one["version"]: one["basis"] for group in found["with"] if group["component"] == "cuda" for one in group["releases"]
    }
    assert (basis["12.2.2"], basis["12.6.3"], basis["13.0.0"]) == ("native", "minor-version", "forward-compat")


def test_a_rule_by_name_with_its_sources(project: Project) -> None:
    outcome = project.run("matrix", "show", "cuda-13-gpu-floor")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "rule cuda-13-gpu-floor"
    assert lines[1].startswith("  cuda >=13.0 needs gpu >=7.5: ")
    assert lines[2].startswith("  stands in matrices/cuda.yaml:")
    assert any(line.startswith("  ptxas-target-lists (measured): ") for line in lines)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("ptxas-target-lists",), "source"),
        (("NVIDIA", "A100"), "gpu"),
        (("a100",), "gpu"),
        (("cuda-12-gpu-floor",), "rule"),
    ],
)
def test_other_rows_by_name(project: Project, words: tuple[str, ...], kind: str) -> None:
    outcome = project.run("matrix", "show", *words, "--format", "json")
    assert (outcome.code, outcome.json["kind"], outcome.json["row"]) == (0, "row", kind)
    assert project.run("matrix", "show", *words).out.startswith(f"{kind} ")


def test_the_name_of_a_component_lists_its_releases(project: Project) -> None:
    assert project.run("matrix", "show", "cuda") == project.run("matrix", "list", "cuda")


def test_a_release_that_does_not_exist(project: Project) -> None:
    """There is no CUDA 12.7."""
    outcome = project.run("matrix", "show", "cuda==12.7")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.splitlines()[:2] == [
        "error: the matrix has no release of cuda that is 12.7  [nothing-found]",
        "  the nearest it has: 12.6.3 and 12.8.0",
    ]


@pytest.mark.parametrize(
    ("words", "first", "hint"),
    [
        (["cudaa==12"], "error: `cudaa` in `cudaa==12` is not a component of the matrix  [bad-usage]", "did you mean `cuda`?"),
        (["cuda=>12"], "error: `cuda=>12`: `==>12` is not a range", ""),
        (
            ["gpu=NVIDIA GeForce RTX 409O"],
            "error: `NVIDIA GeForce RTX 409O` is not a GPU the matrix knows  [bad-usage]",
            "did you mean `NVIDIA GeForce RTX 4090`?",
        ),
        (["cuda-13-gpu-flor"], "error: `cuda-13-gpu-flor` is no component, rule", "did you mean `cuda-13-gpu-floor`?"),
        (["sm_80", "--allow", "magic"], "error: --allow `magic` is no way to run a stack  [bad-usage]", "ways: "),
    ],
)
def test_what_cannot_be_asked(project: Project, words: list[str], first: str, hint: str) -> None:
    outcome = project.run("matrix", "show", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(first)
    assert hint in outcome.err


def test_a_simple_question_imports_nothing_heavy(project: Project) -> None:
    """The index, the terminal library, the template engine and YAML stay where they are."""
    heavy = "{'requests', 'rich', 'jinja2', 'ruamel'}"
    before = f"import atexit, sys\natexit.register(lambda: sys.stderr.write(' '.join({heavy} & set(sys.modules))))"
    project.spawn("matrix", "list").communicate(timeout=60)  # from here on the matrix is in the cache
    process = project.spawn("matrix", "show", "cuda==12.6.3", before=before)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("NVIDIA CUDA: cuda 12.6.3")
