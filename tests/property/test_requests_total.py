"""Files of requirements can hold anything: they are read, or every mistake has a place; nothing else ever happens."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.document import Position
from provisioner.errors import InvalidDocumentError
from provisioner.spec.load import load_spec
from provisioner.spec.requirement_file import read_requirement_file
from provisioner.toml_document import parse_toml
from tests.strategies import examples

pytestmark = pytest.mark.property

# fmt: off
PIECES = st.sampled_from([
    "numpy", ">=2", "==1.*", "<2", "; ", "python_version < '3'", "[x]", " @ ", "file:./a-1-py3-none-any.whl", "https://x.test/",
    "-r ", "-c ", "r.txt", "c.txt", " --hash=sha256:", "a" * 64, "\\\n", "\n", " # ", "#", "${HOME}", "${_NO}", "-e .", "--pre",
    "'", '"', "git+", "\t", "é", "\x00", "(", ")", " and ", "~=", "===", "1!2+local", "{", "}",
])
TEXTS = st.lists(PIECES, max_size=12).map("".join)
TOML_PIECES = st.sampled_from([
    "[project]\n", "[tool.provision]\n", "[dependency-groups]\n", "name = ", "dependencies = ", "constraints = ",
    "packages-from = ", '"numpy"', '["a", "b<2"]', "[", "]", "{", "}", '{file = "pyproject.toml", groups = ["a"]}',
    '{include-group = "a"}', "a = ", "\n", " ", ".", '"', "'", '"""', "#", "3", "2026-09-01", "true", ",", "=", "\\",
    "requires-python = ", "x.y",
])
# fmt: on
TOML_TEXTS = st.lists(TOML_PIECES, max_size=14).map("".join)


@examples(300)
@given(text=TEXTS, other=TEXTS)
def test_a_requirement_file_is_read_or_its_mistakes_have_places(text: str, other: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "r.txt").write_text(text, encoding="utf-8")
        (Path(folder) / "c.txt").write_text(other, encoding="utf-8")
        reading = read_requirement_file(Path(folder) / "r.txt", named_at=Position(1, 1, "provision.yaml"))
        last = max(len(text.splitlines()), len(other.splitlines()), 1)
        assert all(1 <= one.position.line <= last and one.text.strip() for one in reading.lines)
        assert all(1 <= one.line <= last and one.column >= 1 and one.text for one in reading.mistakes)


@examples(100)
@given(text=TEXTS, other=TEXTS)
def test_a_spec_with_any_requirement_files_loads_or_is_refused(text: str, other: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "r.txt").write_text(text, encoding="utf-8")
        (Path(folder) / "c.txt").write_text(other, encoding="utf-8")
        spec = Path(folder) / "provision.yaml"
        spec.write_text("packages-from: [r.txt]\nconstraints: [c.txt]\noverrides: [r.txt]\n")
        _loaded_or_refused(spec)


@examples(300)
@given(text=TOML_TEXTS)
def test_any_project_file_loads_or_is_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pyproject.toml"
        path.write_text(text, encoding="utf-8")
        _loaded_or_refused(path)
    with suppress(InvalidDocumentError):
        parse_toml(text, file="f", kind="k")


def _loaded_or_refused(path: Path) -> None:
    with suppress(InvalidDocumentError):
        load_spec(path)
