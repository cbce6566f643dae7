"""What is wrong in a lock is told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.lock.format.file import parse_lock

GOLDEN = sorted((Path(__file__).parents[2] / "golden").rglob("pylock.*.toml"))


@pytest.mark.parametrize(
    ("key", "value", "mistake"),
    [
        ("schema-version", "true", "`true` must be a whole number"),
        ("schema-version", "1.0", "`1.0` must be a whole number"),
        ("schema-version", "2", "`2` must be 1"),
        ("name", '"two words"', "`two words` is not spelled right; it must match ^[A-Za-z0-9][A-Za-z0-9_-]*$"),
        ("another", "1", "unknown key `another`"),
    ],
)
def test_what_is_wrong_has_its_place(key: str, value: str, mistake: str) -> None:
    head, table, rest = GOLDEN[0].read_text(encoding="utf-8").partition("\n[tool.provision]\n")
    others = rest.splitlines()
    first = next((line for line in others if line.startswith(f"{key} = ")), None)
    if first is not None:
        others.remove(first)
    text = f"{head}{table}" + "\n".join([f"{key} = {value}", *others, ""])
    with pytest.raises(InvalidDocumentError) as caught:
        parse_lock(text, file="pylock.toml")
    (found,) = caught.value.mistakes
    line = text[: text.index(f"\n{key} = {value}") + 1].count("\n") + 1
    assert (found.line, found.path) == (line, f"tool.provision.{key}")
    assert found.text.startswith(mistake)
