"""`provision matrix site` from outside, over a matrix small enough to be decided at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project import Project

INDEX = """\
order: [pytorch, cuda, python, driver, gpu]
components:
  pytorch: {title: PyTorch, file: pytorch.yaml}
  cuda: {title: NVIDIA CUDA, file: cuda.yaml}
  python: {title: CPython, file: python.yaml}
  driver: {title: NVIDIA driver, file: driver.yaml, virtual: true}
  gpu: {title: GPU, file: gpu.yaml, virtual: true}
sources:
  invented: {title: "An <invented> table", read: "2026-01-01"}
"""
FILES = {
    "pytorch": """\
releases:
  - version: "2.1.0"
    builds:
      - {name: cu121, platforms: [linux/amd64], accelerator: cuda, requires: {cuda: "==12.1.*"}, sass: [sm_80], ptx: [],
         source: [invented]}
""",
    "cuda": """\
releases:
  - {version: "12.1.0", driver: {toolkit: "530.30.02", minor_version: "525.60.13"}, source: [invented]}
""",
    "python": 'releases:\n  - {version: "3.12", source: [invented]}\n',
    "driver": """\
branches:
  - {branch: "530", native_cuda: "12.1", source: [invented]}
  - {branch: "470", native_cuda: "11.4", source: [invented]}
releases:
  - {version: "530.41.03", source: [invented]}
  - {version: "470.256.02", source: [invented]}
""",
    "gpu": 'releases:\n  - {version: "8.0", source: [invented]}\n',
}


@pytest.fixture
def tiny(project: Project) -> Path:
    project.write(INDEX, name="tiny/matrix.yaml")
    for name, text in FILES.items():
        project.write(text, name=f"tiny/{name}.yaml")
    return project.folder / "tiny"


def test_the_site_is_written_and_nothing_else(project: Project, tiny: Path) -> None:
    before = set(project.files())
    outcome = project.run("matrix", "site", "--out", "site", "--matrix", str(tiny))
    assert (outcome.code, outcome.out) == (0, "")
    made = set(project.files()) - before
    assert outcome.err.startswith(f"wrote {len(made)} files, ")
    assert outcome.err.endswith("MB; open site/index.html\n")
    assert {"site/index.html", "site/data.js", "site/site.css", "site/app.js"} <= made
    assert all(name.startswith("site/") for name in made)
    assert str(project.folder) not in project.read("site/data.js")


def test_the_same_matrix_gives_the_same_bytes(project: Project, tiny: Path) -> None:
    assert project.run("matrix", "site", "--out", "one", "--matrix", str(tiny)).code == 0
    assert project.run("matrix", "site", "--out", "two", "--matrix", str(tiny)).code == 0
    files = project.files()
    one = {name.removeprefix("one/"): content for name, content in files.items() if name.startswith("one/")}
    two = {name.removeprefix("two/"): content for name, content in files.items() if name.startswith("two/")}
    assert one == two


def test_the_site_links_to_the_documentation_where_an_address_is_given(project: Project, tiny: Path) -> None:
    assert project.run("matrix", "site", "--out", "site", "--matrix", str(tiny), "--docs", '../docs/"a".html').code == 0
    assert '<a href="../docs/&#34;a&#34;.html">Documentation</a>' in project.read("site/index.html")
    assert project.run("matrix", "site", "--out", "alone", "--matrix", str(tiny)).code == 0
    assert "Documentation" not in project.read("alone/index.html")


def test_what_was_written_as_json(project: Project, tiny: Path) -> None:
    outcome = project.run("matrix", "site", "--out", "site", "--matrix", str(tiny), "--format", "json")
    assert outcome.code == 0
    assert "site/index.html" in outcome.json["written"]
    assert outcome.json["bytes"] == sum(len(content) for name, content in project.files().items() if name.startswith("site/"))


def test_a_folder_that_is_a_file(project: Project, tiny: Path) -> None:
    project.write("occupied\n", name="site")
    outcome = project.run("matrix", "site", "--out", "site", "--matrix", str(tiny))
    assert outcome.code == 2
    assert "`site` is a file" in outcome.err.replace("'", "`")
