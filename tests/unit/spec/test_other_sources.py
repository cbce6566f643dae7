"""Where uv, PDM and Poetry take what a project requires from: which names, which place, which line."""

from __future__ import annotations

import pytest

from provisioner.spec.pyproject import OtherSource, other_sources
from provisioner.toml_document import parse_toml


def found(text: str, *asked: str, parts: tuple[tuple[str, str], ...] = ()) -> list[OtherSource]:
    return list(other_sources(parse_toml(text, file="pyproject.toml", kind="project file"), set(asked), set(parts)))


def told(text: str, *asked: str, parts: tuple[tuple[str, str], ...] = ()) -> list[tuple[str, ...]]:
    return [
        (one.tool, one.table, one.name, one.kind, one.address, one.index, f"{one.position.file}:{one.position.line}")
        for one in found(text, *asked, parts=parts)
    ]


UV = """\
[tool.uv.sources]
A_B = { git = "https://host.example/a", rev = "main" }
c = [{ index = "own", marker = "sys_platform == 'linux'" }, { path = "../c" }]
d = { workspace = true }
e = { workspace = false }
f = { url = "https://host.example/f.whl", extra = "Some_Thing" }
g = { git = "https://host.example/g", group = "dev" }

[[tool.uv.index]]
name = "own"
url = "https://own.example/simple"
"""


def test_sources_of_uv_for_the_names_that_are_asked_for() -> None:
    assert told(UV, "a-b", "c", "d", "e", "f", "g") == [
        ("uv", "tool.uv.sources", "a-b", "git", "https://host.example/a", "", "pyproject.toml:2"),
        ("uv", "tool.uv.sources", "c", "index", "https://own.example/simple", "own", "pyproject.toml:3"),
        ("uv", "tool.uv.sources", "c", "path", "../c", "", "pyproject.toml:3"),
        ("uv", "tool.uv.sources", "d", "workspace", "", "", "pyproject.toml:4"),
    ]
    assert told(UV, "x") == []


def test_a_source_of_an_extra_or_a_group_counts_where_that_is_read() -> None:
    both = (("extra", "some-thing"), ("group", "dev"))
    assert [one.name for one in found(UV, "f", "g", parts=both)] == ["f", "g"]
    assert [one.name for one in found(UV, "f", "g", parts=both[1:])] == ["g"]


def test_indexes_of_pdm_name_their_packages_by_globs() -> None:
    text = """\
[[tool.pdm.source]]
name = "pypi"
url = "https://mirror.example/simple"

[[tool.pdm.source]]
name = "private"
url = "https://private.example/simple"
include_packages = ["Acme_*", "b"]
"""
    place = ("index", "https://private.example/simple", "private", "pyproject.toml:8")
    assert told(text, "acme-core", "acme-io", "b", "c") == [
        ("PDM", "tool.pdm.source", name, *place) for name in ("acme-core", "acme-io", "b")
    ]


def test_poetry_says_more_of_what_the_project_requires() -> None:
    text = """\
[tool.poetry.dependencies]
python = "^3.11"
a = "^1"
b = { version = "*", source = "foo" }
c = { git = "git@host.example:c.git" }
[tool.poetry.group.dev.dependencies]
d = { file = "d.whl" }
[[tool.poetry.source]]
name = "foo"
url = "https://foo.example/simple"
"""
    main = [
        ("Poetry", "tool.poetry.dependencies", "b", "index", "https://foo.example/simple", "foo", "pyproject.toml:4"),
        ("Poetry", "tool.poetry.dependencies", "c", "git", "git@host.example:c.git", "", "pyproject.toml:5"),
    ]
    assert told(text, "a", "b", "c", "d") == main
    group = ("Poetry", "tool.poetry.group.dev.dependencies", "d", "path", "d.whl", "", "pyproject.toml:7")
    assert told(text, "a", "b", "c", "d", parts=(("group", "dev"),)) == [*main, group]


@pytest.mark.parametrize(
    "text",
    [
        "tool = 1",
        "[tool]\nuv = 1\npdm = [1]\npoetry = 'x'",
        "[tool.uv]\nsources = [1]\nindex = 1",
        "[tool.uv.sources]\na = 1",
        "[tool.uv.sources]\na = [1, ['x']]",
        "[tool.pdm]\nsource = 1",
        "[[tool.pdm.source]]\ninclude_packages = 'a'",
        "[tool.poetry]\ngroup = 1\ndependencies = 1\nsource = [1]",
    ],
)
def test_tables_of_others_that_are_not_what_they_should_be_are_their_business(text: str) -> None:
    assert found(text, "a", parts=(("group", "dev"),)) == []
