"""The documents say what the program does: specs are valid, and commands, outputs and pictures are those there are.

`pytest --accept tests/test_documents.py` writes outputs and pictures anew; the diff is the review.
"""

from __future__ import annotations

import re
import shutil
import textwrap
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import draw
import failures
import pytest
import stack
import terminal
import truth
from ruamel.yaml import YAML

from provisioner.cli.app import main
from provisioner.cli.catalogue import COMMANDS
from provisioner.document import load_document, parse_document, parse_model
from provisioner.spec.load import load_spec
from provisioner.spec.model import Spec
from tests.documented import commands_again, python_again

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.matrix.model import Matrix


def blocks(page: str) -> list[str]:
    """Return the blocks of YAML on a page."""
    return re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)


def text_of(name: str) -> str:
    """Return a page as it is now: a test before may have been told to write it anew."""
    return (ROOT / name).read_text(encoding="utf-8")


ROOT = Path(__file__).parent.parent
README = text_of("README.md")
MATRIX = text_of("docs/matrix.md")
SPECS = [*blocks(README), *blocks(text_of("docs/spec.md"))]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if path.parent.name != "reference"  # made by the build of the site
)
FACTS = ROOT / "tests/facts"
LOCKS = [*(ROOT / "dockerfiles").rglob("pylock.*.toml"), *(ROOT / "tests/golden").rglob("pylock.*.toml")]
EXAMPLES = sorted((ROOT / "examples").glob("*/provision.yaml"))


@pytest.mark.parametrize("text", SPECS, ids=["opening", "every key"])
def test_the_specs_of_the_readme_are_valid(text: str) -> None:
    spec = parse_model(parse_document(text, file="README.md", kind="spec"), Spec, kind="spec")
    assert spec.name == "trainer"


def test_the_spec_of_the_readme_is_the_one_it_names() -> None:
    text = (ROOT / "examples/trainer/provision.yaml").read_text(encoding="utf-8")
    assert "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#")) == SPECS[0]


def test_the_readme_shows_what_its_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[Path, str], None]
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    assert len(re.findall(r"^\$ provision solve examples/.*\n(?!```)", README, re.MULTILINE)) == 2
    golden(ROOT / "README.md", commands_again(README))


def test_the_tutorial_shows_what_its_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[Path, str], None]
) -> None:
    for name in ("examples", "dockerfiles"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    page = text_of("docs/tutorial.md")
    assert len(re.findall(r"^\$ provision .*\n(?!```)", page, re.MULTILINE)) == 3
    golden(ROOT / "docs/tutorial.md", commands_again(page))


def test_the_picture_of_the_stack_is_drawn_from_the_matrix(matrix: Matrix, golden: Callable[[Path, str], None]) -> None:
    golden(stack.PICTURE, stack.picture(matrix))


def test_the_picture_of_the_terminal_shows_what_the_program_prints(golden: Callable[[Path, str], None]) -> None:
    golden(terminal.PICTURE, terminal.picture())


def test_the_screen_of_doctor_is_the_one_that_is_shown(
    golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    golden(ROOT / "docs/doctor.md", commands_again(text_of("docs/doctor.md")))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_examples_are_valid_and_named_after_their_folders(path: Path) -> None:
    spec = parse_model(load_document(path, kind="spec"), Spec, kind="spec")
    assert spec.name == path.parent.name
    hosts = (spec.target.host,) if isinstance(spec.target.host, str) else spec.target.host
    assert isinstance(hosts, tuple) or list(path.parent.glob("*.csv"))  # a fleet's are given beside the spec
    assert all((path.parent / host).is_file() for host in hosts or ())


def test_the_example_of_a_project_is_a_spec_with_its_extras_groups_and_constraints() -> None:
    loaded = load_spec(ROOT / "examples/pyproject/pyproject.toml")
    spec, document = loaded.spec, loaded.document
    assert (spec.name, spec.requires, spec.requires_python) == ("finetune", {"pytorch": ">=2.6"}, (">=3.11",))
    assert spec.packages == (
        *("transformers>=4.50", "accelerate", "numpy", "tensorboard", "fastapi", "uvicorn[standard]; sys_platform == 'linux'"),
        *("pytest>=8", "ruff"),
    )
    assert (spec.constraints, spec.overrides) == (("torch<2.7", "numpy<2.3", "pydantic>=2.10,<3"), ("protobuf>=5,<7",))
    assert document.where(("constraints", 1)).endswith("examples/pyproject/constraints.txt:2")


def test_the_readme_lists_every_command_in_the_order_of_the_help() -> None:
    assert re.findall(r"^\| `provision ([a-z]+)", README, re.MULTILINE) == list(COMMANDS)


def test_the_layering_table_names_every_part_there_is() -> None:
    table = text_of("ARCHITECTURE.md").partition("## Layers")[2].partition("## Starting up")[0]
    parts = {path.stem for path in (ROOT / "provisioner").iterdir() if path.is_dir() or path.suffix == ".py"}
    parts = {part for part in parts if not part.startswith(("_", "."))}
    assert {part for part in parts if f"`{part}`" not in table} == set()


def test_the_pictures_are_what_the_imports_say(golden: Callable[[Path, str], None]) -> None:
    page = text_of("ARCHITECTURE.md")
    assert len(draw.PICTURE.findall(page)) == 2
    golden(ROOT / "ARCHITECTURE.md", draw.drawn(page))


def test_the_page_of_diagnoses_lists_the_failures_of_the_matrix(matrix: Matrix, golden: Callable[[Path, str], None]) -> None:
    golden(failures.PAGE, failures.page(matrix, text_of("docs/diagnose.md")))


def test_the_page_of_truth_counts_the_matrix_and_the_machines(matrix: Matrix, golden: Callable[[Path, str], None]) -> None:
    assert sorted(truth.KINDS) == sorted(path.stem for path in truth.PROFILES.glob("*.yaml"))
    golden(ROOT / "docs/truth.md", truth.page(matrix))


def test_the_trace_of_a_solve_is_one(monkeypatch: pytest.MonkeyPatch, golden: Callable[[Path, str], None]) -> None:
    monkeypatch.chdir(ROOT)
    again = python_again(text_of("ARCHITECTURE.md"))
    assert again.count(">>> ") > 30
    assert "Traceback" not in again
    golden(ROOT / "ARCHITECTURE.md", again)


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_the_files_that_are_named_exist(name: str) -> None:
    named = re.findall(r"`([\w.-]+)/([\w./-]*)`", text_of(name))
    # What is built is named, too, and need not be there.
    names = {first for first, _ in named} - {"build", "dist"}
    roots = {first: root for first in names for root in (ROOT, ROOT / "provisioner") if (root / first).is_dir()}
    assert len(roots) > 3
    assert [f"{first}/{rest}" for first, rest in named if first in roots and not (roots[first] / first / rest).exists()] == []


def test_every_key_of_our_table_in_a_lock_is_explained() -> None:
    section = text_of("ARCHITECTURE.md").partition("## The lock\n")[2].partition("\n## ")[0]
    rows = "\n".join(line for line in section.splitlines() if line.startswith("| "))
    explained = {name.rpartition(".")[2] for name in re.findall(r"`([a-z.-]+)`", rows)}
    tables = [tomllib.loads(path.read_text(encoding="utf-8"))["tool"]["provision"] for path in LOCKS]
    assert tables
    assert set().union(*map(keys_of, tables)) - explained == set()


def keys_of(value: object) -> set[str]:
    """Return the keys of a table and of those inside it, but for those of a file and those that name a part or a variable."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if not isinstance(value, dict):
        return set()
    names = {"stack", "host-requirements", "environment", "asked", "file"}
    return set(value).union(*(keys_of(below) for key, below in value.items() if key not in names))


@pytest.mark.parametrize("name", PAGES)
def test_links_between_the_documents_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text_of(name))
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


def test_the_readme_leads_to_every_page() -> None:
    """A page that nobody finds is not read: each is linked from the README, or from a page that the README links."""
    found, new = set[str](), {"README.md"}
    while new:
        found |= new
        links = {
            (ROOT / name).parent.joinpath(link).resolve().relative_to(ROOT).as_posix()
            for name in new
            for link in re.findall(r"\]\((?!https?:)([^)#]+\.md)", text_of(name))
        }
        new = links - found
    assert set(PAGES) - found - {"CHANGELOG.md"} == set()


@pytest.mark.slow
def test_the_page_of_the_matrix_tells_the_rows_and_disagreements_that_are_counted(
    capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    with pytest.raises(SystemExit):
        main(["matrix", "check"])
    counted = capsys.readouterr().out.splitlines()[-1]
    if request.config.getoption("--accept"):
        shown = textwrap.fill(f"{counted}.", 116, break_on_hyphens=False)
        page, count = re.subn(r"^\d+ rows, every one cited,[^.]*\.$", shown, MATRIX, flags=re.MULTILINE)
        assert count == 1
        (ROOT / "docs/matrix.md").write_text(page, encoding="utf-8")
    assert counted in " ".join(text_of("docs/matrix.md").split()), "run pytest --accept and read the diff"


def test_the_page_of_the_matrix_tells_how_many_published_facts_are_tested() -> None:
    counts = {
        kind: sum(
            len(YAML(typ="safe").load(path.read_text(encoding="utf-8"))["cases"]) for path in (FACTS / kind).glob("*.yaml")
        )
        for kind in ("accepted", "refused")
    }
    told = (
        f"{counts['accepted']} published combinations are accepted and {counts['refused']} documented incompatibilities refused"
    )
    assert told in MATRIX


DECISIONS = sorted(path.name for path in (ROOT / "docs/decisions").glob("[0-9]*.md"))


def test_the_decisions_are_numbered_and_listed() -> None:
    listed = re.findall(r"^- \[(\d{3}\. .+)\]\(([\w-]+\.md)\)$", text_of("docs/decisions/README.md"), re.MULTILINE)
    assert [name for _, name in listed] == DECISIONS
    assert [text_of(f"docs/decisions/{name}").partition("\n")[0] for name in DECISIONS] == [f"# {title}" for title, _ in listed]
    assert len({name[:3] for name in DECISIONS}) == len(DECISIONS)


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_has_a_date_a_context_and_consequences(name: str) -> None:
    page = text_of(f"docs/decisions/{name}")
    assert re.search(r"^# \d{3}\. .+\n\n\d{4}-\d\d-\d\d\n\n## Context\n\n", page)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["Context", "Decision", "Consequences"]
