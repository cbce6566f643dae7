"""A project with settings of uv and PDM that a spec does not read: `solve` says so, as `init --from` lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.project import Project

PROJECT = """\
[project]
name = "mine"
requires-python = ">=3.11"
dependencies = ["alpha"]

[tool.uv]
override-dependencies = ["alpha==1.0", "beta>=2"]
constraint-dependencies = ["gamma<3"]
prerelease = "allow"

[[tool.uv.index]]
name = "own"
url = "https://me:secret@own.example/simple"

[[tool.uv.index]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu126"
explicit = true

[tool.pdm.resolution.overrides]
delta = "1.2"

[tool.provision]
runs = "host"
outputs = []
{more}
"""
IS_READ_BY = "is for uv alone, and is not read"


def test_what_uv_and_pdm_are_told_is_named_with_the_key_to_write_it_under(project: Project) -> None:
    project.write(PROJECT.format(more=""), name="pyproject.toml")
    found = project.run("solve", "pyproject.toml", "--format", "json")
    text = found.out + found.err
    for warning in (
        f"`tool.uv.override-dependencies` (pyproject.toml:7) {IS_READ_BY}: `alpha==1.0`, `beta>=2`; write them under",
        f"`tool.uv.constraint-dependencies` (pyproject.toml:8) {IS_READ_BY}: `gamma<3`; write it under `constraints:`",
        f"`tool.uv.prerelease` (pyproject.toml:9) {IS_READ_BY}; a spec says so under `policy:`, if it can",
        f"`tool.uv.index` (pyproject.toml:11) {IS_READ_BY}: `https://own.example/simple`; write it under `indexes:`",
        "`tool.pdm.resolution.overrides` (pyproject.toml:21) is for PDM alone, and is not read: `delta 1.2`; write it under",
    ):
        assert warning in text, text
    assert "secret" not in text


def test_what_the_spec_says_too_is_not_told(project: Project) -> None:
    more = (
        'overrides = ["alpha==1.0", "beta>=2"]\nconstraints = ["gamma<3"]\nindexes = [{name = "local", url = "INDEX/simple"}]'
    )
    project.write(PROJECT.format(more=more), name="pyproject.toml")
    found = project.run("solve", "pyproject.toml", "--format", "json")
    assert "override-dependencies" not in found.out + found.err
    assert "constraint-dependencies" not in found.out + found.err
    assert "own.example" not in found.out + found.err
