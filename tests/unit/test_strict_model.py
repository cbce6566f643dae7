"""Models of documents: what they say as plain data, and what msgspec does not look for."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from msgspec import convert
from msgspec.structs import fields

from provisioner.document import parse_document, parse_model
from provisioner.errors import InvalidDocumentError
from provisioner.host.model import Driver, Host, HostGpu, Libraries
from provisioner.spec.model import Spec, SpecFile, canonical_text
from provisioner.strict_model import StrictModel, plain_data, without_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = Host(
    platform="linux/amd64",
    driver=Driver(version="550.54.15"),
    gpus=(HostGpu(compute_capability="9.0", count=8),),
    libraries=Libraries(),
    loaded_modules=(),
)


def test_plain_data_leaves_out_what_is_unknown_and_keeps_what_is_empty() -> None:
    assert plain_data(HOST) == {
        "platform": "linux/amd64",
        "driver": {"version": "550.54.15", "kind": "nvidia"},
        "gpus": [{"compute_capability": "9.0", "count": 8}],
        "libraries": {"on_path": []},
        "loaded_modules": [],
    }


def test_what_nobody_said_is_left_out() -> None:
    said = {
        "target": {"host": {"driver": {"version": "550"}}},
        "indexes": ({"name": "own", "url": "https://x.example"},),
        "policy": {"exclude-newer": "2026-01-10"},
        "packages": ("numpy",),
    }
    full = {**said, "name": "environment", "image": {"base": "auto"}, "requires": {}, "outputs": ("dockerfile",)}
    assert without_defaults(convert(full, Spec)) == said


def test_the_digest_of_a_spec_is_made_of_the_text_it_always_was_made_of() -> None:
    spec = convert({"packages": ("é",), "indexes": ({"name": "own", "url": "https://x"},)}, Spec)
    assert canonical_text(spec) == (
        '{"name":"environment","target":{"platform":"linux/amd64","host":null},"accelerator":null,"requires":{},'
        '"packages":["é"],"indexes":[{"name":"own","url":"https://x"}],"policy":{"strategy":"newest","allow":["minor-version"],'
        '"forbid":[],"prefer":{},"avoid":{},"exclude-newer":null},"build":null,"image":{"base":"auto","cuda":null,'
        '"cuda_compat":null,"require":null},"runs":null,"outputs":["dockerfile"]}'
    )
    bound = convert({"constraints": ("a<2",), "hashes": {"a": ("0",)}, "requires-python": (">=3.9",)}, Spec)
    assert canonical_text(bound).endswith('"outputs":["dockerfile"],"hashes":{"a":["0"]},"requires-python":[">=3.9"]}')
    assert '"packages":[],"constraints":["a<2"],"indexes":[]' in canonical_text(bound)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('gpus:\n  - name: "\\ud800"\n', (2, 5, "gpus[0].name")),
        ('gpus:\n  - gfx: "\\ud800"\n', (2, 5, "gpus[0].gfx")),  # a text with a pattern
        ('driver:\n  module: "\\ud83d\\ude00"\n', (2, 3, "driver.module")),  # one of several words; both halves, apart
        ('libraries: "\\ud800"\n', (1, 1, "libraries")),  # no mapping
        ('kernel: 6.8.0\n"\\ud800": 1\n', (2, 1, "\ud800")),
    ],
)
def test_half_a_character_is_refused_where_it_stands(text: str, place: tuple[int, int, str]) -> None:
    document = parse_document(text, file="host.yaml", kind="host profile")
    with pytest.raises(InvalidDocumentError) as caught:
        parse_model(document, Host, kind="host profile")
    (mistake,) = caught.value.mistakes
    assert (mistake.line, mistake.column, mistake.path) == place
    assert mistake.text == "holds half of a character, which nothing can be written with; write the whole one"


MAPPINGS = [model for model in StrictModel.__subclasses__() if model.example]
"""The models of keys that people write as plain text where a mapping belongs."""


@pytest.mark.parametrize("model", MAPPINGS, ids=lambda model: model.__name__)
def test_the_example_of_a_mapping_is_one(model: type[StrictModel]) -> None:
    document = parse_document(model.example, file="example.yaml", kind="example")
    assert plain_data(parse_model(document, model, kind="example"))


def test_every_mapping_of_a_spec_and_a_profile_has_an_example() -> None:
    named = {kind for model in (Host, SpecFile) for field in fields(model) for kind in structs_in(field.type)}
    assert {Driver, HostGpu} < named
    assert named <= set(MAPPINGS)


def structs_in(kind: object) -> Iterator[type[StrictModel]]:
    if isinstance(kind, type) and issubclass(kind, StrictModel):
        yield kind
    for part in get_args(kind):
        yield from structs_in(part)
