"""Models of documents: what they say as plain data, and what msgspec does not look for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import convert

from provisioner.document import parse_document, parse_model
from provisioner.errors import InvalidDocumentError
from provisioner.host.model import Driver, Host, HostGpu, Libraries
from provisioner.spec.model import Spec, canonical_text
from provisioner.strict_model import plain_data, without_defaults

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


def test_what_is_right_is_read_without_pydantic() -> None:
    golden = Path(__file__).parents[1] / "golden"
    program = (
        "import sys\n"
        "from provisioner.document import parse_document, parse_model\n"
        "from provisioner.host.model import Host\n"
        "from provisioner.spec.model import SpecFile\n"
        "from provisioner.lock.format.file import parse_lock\n"
        "parse_model(parse_document('kernel: 6.8.0-45-generic', file='h', kind='host profile'), Host, kind='host profile')\n"
        "parse_model(parse_document('packages: [numpy]', file='s', kind='spec'), SpecFile, kind='spec')\n"
        "parse_lock(open(sys.argv[1], encoding='utf-8').read(), file='l')\n"
        "print('pydantic' in sys.modules)\n"
    )
    lock = str(min(golden.rglob("pylock.*.toml")))
    result = subprocess.run([sys.executable, "-c", program, lock], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
