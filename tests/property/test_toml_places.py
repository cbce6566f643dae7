"""Places in TOML, against the standard library's reader: what stands at a place is what the reader read there."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from provisioner.toml_document import KeyPositions, parse_toml
from tests.strategies import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from provisioner.document import KeyPath

pytestmark = pytest.mark.property

WORDS = st.text(alphabet="ab.\"'\\#[]{}=, \té\n", max_size=6)
SCALARS = st.one_of(st.integers(-9, 99), st.booleans(), WORDS, st.floats(allow_nan=False, allow_infinity=False), st.dates())
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=12
)
TABLES = st.dictionaries(
    WORDS, VALUES | st.lists(st.dictionaries(WORDS, VALUES, max_size=2), min_size=1, max_size=3), max_size=4
)


def paths(value: Any, above: KeyPath = ()) -> Iterator[KeyPath]:  # noqa: ANN401 - TOML holds anything
    """Every key and item of plain data."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield (*above, key)
        yield from paths(below, (*above, key))


@examples(300)
@given(data=TABLES)
def test_every_key_and_item_is_placed_and_no_other(data: dict[str, Any]) -> None:
    text = tomli_w.dumps(data)
    document = parse_toml(text, file="f", kind="k")
    assert set(document.keys) == set(paths(tomllib.loads(text)))


@examples(300)
@given(data=TABLES, asked=st.randoms(use_true_random=False))
def test_a_key_has_the_same_place_whatever_was_asked_before(data: dict[str, Any], asked: Random) -> None:
    text = tomli_w.dumps(data)
    every = parse_toml(text, file="f", kind="k").keys
    wanted = [*every, ("no such key",)]
    asked.shuffle(wanted)
    positions = KeyPositions(text)
    assert {path: positions.get(path) for path in wanted} == {**every, ("no such key",): None}


@examples(300)
@given(data=TABLES)
def test_what_stands_at_a_place_begins_there(data: dict[str, Any]) -> None:
    text = tomli_w.dumps(data)
    lines = text.split("\n")
    for path, position in parse_toml(text, file="f", kind="k").keys.items():
        rest = "\n".join([lines[position.line - 1][position.column - 1 :], *lines[position.line :]])
        key = path[-1]
        if isinstance(key, str):  # a bare key, or one that is quoted and escaped
            bare = key and all(one.isascii() and (one.isalnum() or one in "-_") for one in key)
            assert rest.startswith(key if bare else ('"', "'"))
        else:
            assert not rest[:1].isspace()
