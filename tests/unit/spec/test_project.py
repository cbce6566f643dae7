"""What a project file requires: dependencies, extras that name each other, and dependency groups, each at its place."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.dependency_groups import resolve_dependency_groups

from provisioner.document import Position
from provisioner.spec.pyproject import ProjectRequirements, project_requirements
from provisioner.toml_document import parse_toml

NAMED = Position(7, 3, "provision.yaml")

TEXT = """\
[project]
name = "My.App"
requires-python = ">=3.11"
dependencies = ["httpx>=0.27", "my-app[Net]"]

[project.optional-dependencies]
net = ["idna", "my_app[deep.down] ; sys_platform == 'linux'"]
Deep-Down = ["h2; python_version > '3'", "my-app[net]"]
gpu = ["cupy @ https://x.test/cupy-1-py3-none-any.whl"]
everything = ["my-app[gpu]; os_name == 'posix'", "my-app[net]"]

[dependency-groups]
Dev = ["pytest", {include-group = "lint"}, "my-app[gpu]"]
lint = ["ruff"]
both = [{include-group = "dev"}, {include-group = "LINT"}]
"""


def read(text: str, **wanted: Any) -> ProjectRequirements:  # noqa: ANN401 - any argument
    document = parse_toml(text, file="pyproject.toml", kind="project file")
    return project_requirements(document, named_at=NAMED, **{"extras": (), "groups": (), "with_dependencies": True, **wanted})


def told(found: ProjectRequirements) -> list[str]:
    return [f"{position.line}:{position.column} {text}" for text, position in found.requirements]


def test_the_project_with_the_extras_its_own_dependencies_name() -> None:
    found = read(TEXT)
    assert told(found) == [
        "4:17 httpx>=0.27",
        "7:8 idna",
        '8:14 h2; sys_platform == "linux" and python_version > "3"',
    ]
    assert [(text, position.line) for text, position in found.requires_python] == [(">=3.11", 3)]
    assert found.mistakes == []


def test_extras_and_groups_by_any_spelling_of_their_names() -> None:
    found = read(TEXT, extras=["GPU"], groups=["DEV", "lint"], with_dependencies=False)
    assert told(found) == [
        "9:8 cupy @ https://x.test/cupy-1-py3-none-any.whl",
        "13:8 pytest",
        "14:9 ruff",
    ]
    assert found.requires_python == []


def test_the_marker_of_a_self_reference_guards_what_it_brings() -> None:
    found = read(TEXT, extras=["everything"], with_dependencies=False)
    assert told(found)[0] == '9:8 cupy @ https://x.test/cupy-1-py3-none-any.whl ; os_name == "posix"'


@pytest.mark.parametrize("group", ["dev", "lint", "both"])
def test_groups_are_what_the_reference_implementation_resolves(group: str) -> None:
    document = parse_toml(TEXT.replace(', "my-app[gpu]"', ""), file="pyproject.toml", kind="project file")
    listed = {
        name: [dict(item) if isinstance(item, dict) else item for item in items]
        for name, items in document.data["dependency-groups"].items()
    }
    found = read(TEXT.replace(', "my-app[gpu]"', ""), groups=[group], with_dependencies=False)
    assert [text for text, _ in found.requirements] == list(dict.fromkeys(resolve_dependency_groups(listed, group)))


WRONG = """\
[project]
name = "x"
dynamic = ["dependencies", "requires-python"]
optional-dependencies = {a = "numpy", A = [1]}
requires-python = "3.11 or so"
dependency-groups = {}

[dependency-groups]
one = [{include-group = "two"}]
two = [{include-group = "ONE"}, {include = "x"}, 3, {include-group = "thre"}]
three = "pytest"
"""


def test_every_mistake_has_its_place() -> None:
    found = read(WRONG, extras=["a", "b"], groups=["one", "three", "lint"])
    assert [str(one) for one in found.mistakes] == [
        "pyproject.toml:4:39: project.optional-dependencies.A: `A` and `a` are the same name, which is given twice",
        (
            "pyproject.toml:3:12: project.dynamic[0]: `dependencies` is dynamic, so that only a build tells it; state it in "
            "this file, or list the packages"
        ),
        (
            "pyproject.toml:3:28: project.dynamic[1]: `requires-python` is dynamic, so that only a build tells it; state it in "
            "this file, or list the packages"
        ),
        "pyproject.toml:5:1: project.requires-python: `3.11 or so` is not a range of Python versions such as >=3.11",
        "pyproject.toml:4:26: project.optional-dependencies.a: must be a list of requirements",
        "provision.yaml:7:3: `pyproject.toml` has no extra `b`; it has a",
        (
            "pyproject.toml:10:9: dependency-groups.two[0].include-group: dependency groups include each other in a circle: "
            "one -> two -> one"
        ),
        'pyproject.toml:10:33: dependency-groups.two[1]: must be a requirement, or {include-group = "name of another group"}',
        'pyproject.toml:10:50: dependency-groups.two[2]: must be a requirement, or {include-group = "name of another group"}',
        "pyproject.toml:10:54: `pyproject.toml` has no dependency group `thre`; did you mean `three`?",
        "pyproject.toml:11:1: dependency-groups.three: must be a list of requirements",
        "provision.yaml:7:3: `pyproject.toml` has no dependency group `lint`; it has one, three, two",
    ]


def test_a_file_of_groups_alone_has_no_project() -> None:
    text = '[dependency-groups]\ndev = ["ruff"]\n'
    assert told(read(text, groups=["dev"], with_dependencies=False)) == ["2:8 ruff"]
    (mistake,) = read(text, groups=["dev"]).mistakes
    advice = "name `groups` and `project: false` to read its groups alone"
    assert str(mistake) == f"provision.yaml:7:3: `pyproject.toml` has no [project] table; {advice}"
    assert read("project = 3\n").mistakes[0].text == "must be a table"
