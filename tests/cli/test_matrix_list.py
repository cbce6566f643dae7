"""`provision matrix list` from outside, over the shipped matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.project import Project


def test_every_component_in_the_matrix_s_order(project: Project) -> None:
    outcome = project.run("matrix", "list")
    assert (outcome.code, outcome.err) == (0, "")
    head, *rows = outcome.out.splitlines()
    assert head.split() == [
        "component",
        "releases",
        "builds",
        "rules",
        "newest",
        "measured",
        "end",
        "of",
        "life",
        "what",
        "it",
        "is",
    ]
    names = [row.split()[0] for row in rows]
    assert names[0] == "pytorch"
    assert names.index("cuda") < names.index("driver") < names.index("kernel")
    assert rows[names.index("driver")].endswith("NVIDIA driver (of the host)")


def test_components_as_json(project: Project) -> None:
    outcome = project.run("matrix", "list", "--format", "json")
    found = {one["name"]: one for one in outcome.json["components"]}
    assert list(found["cuda"]) == [
        "name",
        "title",
        "virtual",
        "releases",
        "builds",
        "rules",
        "newest",
        "rows",
        "measured",
        "end_of_life",
    ]
    assert found["driver"]["virtual"] is True
    assert 0 < found["pytorch"]["measured"] <= found["pytorch"]["rows"]


def test_the_releases_of_one_component_newest_first(project: Project) -> None:
    outcome = project.run("matrix", "list", "cuda")
    assert (outcome.code, outcome.err) == (0, "")
    head, *rows = outcome.out.splitlines()
    assert head.split() == ["release", "released", "end", "of", "life", "builds", "needs", "source"]
    versions = [row.split()[0] for row in rows]
    assert versions.index("12.6.3") < versions.index("12.6.2") < versions.index("11.8.0")
    (row,) = (row for row in rows if row.startswith("12.6.3 "))
    assert "driver >=525.60.13" in row


def test_releases_as_json_carry_their_sources(project: Project) -> None:
    outcome = project.run("matrix", "list", "torch", "--format", "json")
    assert outcome.json["component"] == "pytorch"
    release = next(one for one in outcome.json["releases"] if one["version"] == "2.7.1")
    keys = {key for build in release["builds"] for key in build["sources"]}
    assert keys
    assert keys <= set(outcome.json["citations"])


def test_a_typo_gets_the_nearest_component(project: Project) -> None:
    outcome = project.run("matrix", "list", "cudnnn")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: `cudnnn` is not a component of the matrix  [bad-usage]\n\nhint: did you mean `cudnn`?\n"
