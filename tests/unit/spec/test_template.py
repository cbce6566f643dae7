"""The text of a new spec is a spec, whatever folder it is written in and whatever machine it is for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.document import parse_document
from provisioner.spec.gather import Gathered
from provisioner.spec.load import parse_spec
from provisioner.spec.template import Machine, spec_name, spec_template
from tests.strategies import examples

NOTHING = Machine(platform="linux/amd64", subject="Nothing", host="{}\n")


def test_the_template_is_valid_and_holds_the_host() -> None:
    host = 'platform: linux/amd64\ngpus:\n  - {name: NVIDIA H100, compute_capability: "9.0", count: 8}\n'
    text = spec_template(
        name="trainer", machine=Machine(platform="linux/amd64", subject="The machine it must run on", host=host)
    )
    spec = parse_spec(Gathered(parse_document(text, file="provision.yaml", kind="spec")))
    assert spec.name == "trainer"
    assert spec.target.host == {
        "platform": "linux/amd64",
        "gpus": ({"name": "NVIDIA H100", "compute_capability": "9.0", "count": 8},),
    }
    assert set(spec.requires) == {"pytorch"}


def test_a_machine_of_which_nothing_is_known_makes_a_valid_spec_too() -> None:
    text = spec_template(name="trainer", machine=NOTHING)
    assert parse_spec(Gathered(parse_document(text, file="provision.yaml", kind="spec"))).target.host == {}


def test_the_commented_lines_are_valid_once_their_mark_is_taken_away() -> None:
    text = spec_template(name="trainer", machine=NOTHING)
    marks = ("# policy:", "#   ", "# image:", "# accelerator:", "  # python:", "  # cuda:", "  # driver:")
    lines = [line.replace("# ", "", 1) if line.startswith(marks) else line for line in text.splitlines()]
    spec = parse_spec(Gathered(parse_document("\n".join(lines), file="provision.yaml", kind="spec")))
    assert spec.policy.exclude_newer == "2026-09-01"
    assert spec.image.base == "auto"
    assert set(spec.requires) == {"python", "pytorch", "cuda", "driver"}


@pytest.mark.parametrize(
    ("folder", "name"),
    [("trainer", "trainer"), ("my models (v2)", "my-models-v2"), ("日本", "environment"), ("", "environment")],
)
def test_a_spec_is_named_after_its_folder(folder: str, name: str) -> None:
    assert spec_name(folder) == name


@examples(100)
@given(folder=st.text())
def test_any_folder_gives_a_valid_name(folder: str) -> None:
    text = spec_template(name=spec_name(folder), machine=NOTHING)
    assert parse_spec(Gathered(parse_document(text, file="provision.yaml", kind="spec"))).name == spec_name(folder)
