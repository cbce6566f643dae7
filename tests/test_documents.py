"""The documents say what the program does: their specs are valid, and the commands they list are those there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from provisioner.cli.app import main
from provisioner.cli.catalogue import COMMANDS
from provisioner.document import load_document, parse_document, parse_model
from provisioner.spec.load import load_spec
from provisioner.spec.model import Spec

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SPECS = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
FACTS = ROOT / "tests/facts"
EXAMPLES = sorted((ROOT / "examples").glob("*/provision.yaml"))


@pytest.mark.parametrize("text", SPECS, ids=["opening", "every key"])
def test_the_specs_of_the_readme_are_valid(text: str) -> None:
    spec = parse_model(parse_document(text, file="README.md", kind="spec"), Spec, kind="spec")
    assert spec.name == "trainer"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_examples_are_valid_and_named_after_their_folders(path: Path) -> None:
    spec = parse_model(load_document(path, kind="spec"), Spec, kind="spec")
    assert spec.name == path.parent.name
    hosts = (spec.target.host,) if isinstance(spec.target.host, str) else spec.target.host
    assert isinstance(hosts, tuple) or list(path.parent.glob("*.csv"))  # a fleet's are given beside the spec
    assert all((path.parent / host).is_file() for host in hosts or ())


def test_the_example_of_a_project_is_a_spec_with_its_extras_groups_and_constraints() -> None:
    spec, document = load_spec(ROOT / "examples/pyproject/pyproject.toml")
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
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Layers")[2].partition("## Starting up")[0]
    parts = {path.stem for path in (ROOT / "provisioner").iterdir() if path.is_dir() or path.suffix == ".py"}
    parts = {part for part in parts if not part.startswith(("_", "."))}
    assert {part for part in parts if f"`{part}`" not in table} == set()


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_between_the_documents_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_tells_the_rows_and_disagreements_that_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["matrix", "check"])
    counted = capsys.readouterr().out.splitlines()[-1]
    told = README.partition("### matrix")[2].partition("## The spec")[0]
    assert counted in " ".join(told.split()), f"write into README.md, under `### matrix`: {counted}"


def test_the_readme_tells_how_many_published_facts_are_tested() -> None:
    counts = {
        kind: sum(
            len(YAML(typ="safe").load(path.read_text(encoding="utf-8"))["cases"]) for path in (FACTS / kind).glob("*.yaml")
        )
        for kind in ("accepted", "refused")
    }
    told = (
        f"{counts['accepted']} published combinations are accepted and {counts['refused']} documented incompatibilities refused"
    )
    assert told in README
