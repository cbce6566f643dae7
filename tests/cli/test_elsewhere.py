"""A project whose names another tool takes from elsewhere: `solve` asks indexes for them, and says so with what to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK

if TYPE_CHECKING:
    from tests.project import Outcome, Project

PROJECT = """\
[project]
name = "mine"
dependencies = ["alpha", "beta"]

[tool.uv.sources]
alpha = {{ {source} }}
gamma = {{ git = "https://host.example/gamma" }}

[[tool.uv.index]]
name = "Own Index"
url = "https://me:secret@own.example/simple"
"""
GIT = 'git = "https://ada:secret@host.example/alpha", rev = "main"'
ASKED = "and here the indexes are asked for it"


def solved(project: Project, source: str, *lines: str, packages: str = "[]", place: str = "") -> Outcome:
    """One run for a project with a source for `alpha`, beside the spec or in a folder below it."""
    project.write(PROJECT.format(source=source), name=f"{place}pyproject.toml")
    project.spec(packages, f"packages-from: [{place}pyproject.toml]", "runs: host", "image: {}", "outputs: []", *lines)
    return project.run("solve", "--format", "json")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            GIT,
            (
                f"from the repository https://host.example/alpha, {ASKED}; "
                "build a wheel (`pip wheel --no-deps`) and write `alpha @ URL` under `packages:`"
            ),
        ),
        (
            'index = "Own Index"',
            (
                f"from the index `Own Index`, https://own.example/simple, {ASKED}; write "
                '`{name: own-index, url: "https://own.example/simple", packages: [alpha]}` under `indexes:`'
            ),
        ),
        (
            "workspace = true",
            (f"from its workspace, {ASKED}; build a wheel (`pip wheel --no-deps`) and write `alpha @ URL` under `packages:`"),
        ),
        (
            'url = "https://host.example/alpha-1.0-py3-none-any.whl"',
            (
                f"from https://host.example/alpha-1.0-py3-none-any.whl, {ASKED}; "
                "write `alpha @ https://host.example/alpha-1.0-py3-none-any.whl` under `packages:`"
            ),
        ),
        (
            'path = "dist/alpha-1.0-py3-none-any.whl"',
            (
                f"from the path dist/alpha-1.0-py3-none-any.whl, {ASKED}; "
                "write `alpha @ file:sub/dist/alpha-1.0-py3-none-any.whl` under `packages:`"
            ),
        ),
    ],
)
def test_a_name_that_uv_takes_from_elsewhere_is_told_with_what_to_write(project: Project, source: str, told: str) -> None:
    outcome = solved(project, source, place="sub/")
    assert outcome.code == 0, outcome.err
    assert outcome.json["warnings"] == [f"uv takes `alpha` (sub/pyproject.toml:6) {told}"]
    assert "secret" not in outcome.out + outcome.err + project.read(LOCK)
    assert f"warning: uv takes `alpha` (sub/pyproject.toml:6) {told}\n" in project.run("solve").err


def test_what_is_written_instead_is_done_and_no_longer_told(project: Project) -> None:
    assert "warnings" in solved(project, GIT).json
    project.index.add_wheel("alpha", "7.0")
    address = project.index.url.replace("/simple", "/files/alpha-7.0-py3-none-any.whl")
    named = solved(project, GIT, packages=f"['alpha @ {address}']")
    claimed = solved(project, GIT, 'indexes: [{name: local, url: "INDEX/simple", packages: ["al*", beta]}]')
    for outcome in (named, claimed):
        assert outcome.code == 0, outcome.err
        assert "warnings" not in outcome.json


def test_an_index_that_is_asked_anyway_is_not_told(project: Project) -> None:
    text = PROJECT.format(source='index = "Own Index"')
    project.write(text.replace("https://me:secret@own.example/simple", "INDEX/simple/"), name="pyproject.toml")
    project.spec("[]", "packages-from: [pyproject.toml]", "runs: host", "image: {}", "outputs: []")
    outcome = project.run("solve", "--format", "json")
    assert outcome.code == 0, outcome.err
    assert "warnings" not in outcome.json


def test_a_name_that_no_index_has_is_told_too(project: Project) -> None:
    project.spec("[]", "packages-from: [pyproject.toml]", "runs: host", "image: {}", "outputs: []")
    text = PROJECT.format(source=GIT).replace('"beta"]', '"beta", "gamma-internal"]')
    project.write(text.replace("gamma = ", "Gamma_Internal = "), name="pyproject.toml")
    outcome = project.run("solve")
    assert outcome.code == 1
    assert (
        f"warning: uv takes `gamma-internal` (pyproject.toml:7) from the repository https://host.example/gamma, {ASKED}; "
        in (outcome.err)
    )
