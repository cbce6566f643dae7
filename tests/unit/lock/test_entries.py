"""A lock that is read package by package is the lock that a parser of the whole file reads."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.lock.format.entries import parts_of
from provisioner.lock.format.file import lock_digest, parse_lock, verify_digest
from provisioner.toml_document import loads_compiled

ROOT = Path(__file__).parents[3]
LOCKS = sorted((ROOT / "dockerfiles").rglob("pylock.*.toml"))
INSERTED = (
    *(
        '"""',
        "'''",
        'note = """',
        '[[packages]]\nname = "six"',
        "[tool.provision]",
        "[[packages.wheels]]",
        "[other]",
        "packages = []",
    ),
    *(
        "[packages.tool.provision]",
        "x = 1",
        "tool.provision.x = 1",
        "[[packages]] # again",
        "[[ packages ]]",
        "]",
        '"',
        "x = [",
        "",
    ),
)
"""Lines that a merge or a person may leave in a lock, some of which move what follows them into another table."""


def _edited(draw: random.Random, text: str) -> str:
    """A text with some of its lines left out, given twice, moved, or with others among them."""
    lines = text.splitlines()
    for _ in range(draw.randint(1, 3)):
        at, to = draw.randrange(len(lines)), draw.randrange(len(lines) + 1)
        match draw.randrange(4):
            case 0:
                del lines[at]
            case 1:
                lines[to:to] = lines[at : at + draw.randint(1, 12)]
            case 2:
                lines[to:to] = [draw.choice(INSERTED)]
            case _:
                near = min(len(lines), at + draw.randint(0, 3))
                lines[near:near] = [draw.choice(INSERTED)]
    return "\n".join(lines) + "\n"


def _whole(text: str) -> dict[str, object] | None:
    try:
        return loads_compiled(text)
    except ValueError:
        return None


def _in_parts(text: str) -> dict[str, object] | None:
    try:
        parts = parts_of(text)
    except ValueError:
        return None
    return {**parts.rest, "packages": [entry.data for entry in parts.entries]}


@pytest.mark.parametrize("seed", range(8))
def test_an_edited_lock_has_the_same_data_read_in_parts(seed: int) -> None:
    draw = random.Random(seed)
    # The first packages are enough: what an edit does to a table does not depend on how many there are.
    texts = [_short(path.read_text(encoding="utf-8")) for path in LOCKS]
    for _ in range(150):
        text = _edited(draw, draw.choice(texts))
        whole, parts = _whole(text), _in_parts(text)
        if whole is None or not isinstance(whole.get("packages"), list):
            assert parts is None, text
        else:
            assert parts == whole, text


def _short(text: str) -> str:
    head, *packages = text.split("\n[[packages]]\n")
    own = packages[-1].partition("\n[tool.provision]\n")
    return "\n[[packages]]\n".join([head, *packages[:3], own[0]]) + own[1] + own[2]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_the_digest_of_a_lock_is_that_of_its_parts(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert verify_digest(text)
    assert f'digest = "{lock_digest(parse_lock(text, file=path.name))}"' in text


def test_a_lock_without_packages_is_refused() -> None:
    head, *packages = LOCKS[0].read_text(encoding="utf-8").split("\n[[packages]]\n")
    own = packages[-1].partition("\n[tool.provision]\n")
    with pytest.raises(InvalidDocumentError):
        parse_lock(f"{head}{own[1]}{own[2]}", file="pylock.toml")
