from __future__ import annotations

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.lock.toml import parse_toml

TEXT = """\
a = 1
[one]
"b c" = [1, 2]
[[one.list]]
d.e = "x"
[[one.list]]
f = {g = 1}
[one.list.h]
i = 2
"""


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        (("a",), 1, 1),
        (("one",), 2, 1),
        (("one", "b c"), 3, 1),
        (("one", "b c", 1), 3, 1),
        (("one", "list", 0, "d", "e"), 5, 1),
        (("one", "list", 1), 6, 1),
        (("one", "list", 1, "f", "g"), 7, 1),
        (("one", "list", 1, "h", "i"), 9, 1),
    ],
)
def test_every_key_knows_its_line(path: tuple[str | int, ...], line: int, column: int) -> None:
    position = parse_toml(TEXT, file="x.toml", kind="file").keys[path]
    assert (position.line, position.column) == (line, column)


def test_lists_are_frozen() -> None:
    assert parse_toml("a = [[1], [2]]", file="x.toml", kind="file").data == {"a": ((1,), (2,))}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a = 1\nb = = 2\n", "x.toml:2:5: Invalid value"),
        ("a = 1\na = 2\n", "x.toml:2:6: Cannot overwrite a value"),
        ('a = "', "x.toml:1:1: Unterminated string"),
        ("a = " + "[" * 5000, "x.toml:1:1: values are nested too deep to read"),
    ],
)
def test_a_syntax_error_names_line_and_column(text: str, cause: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        parse_toml(text, file="x.toml", kind="file")
    assert caught.value.causes == (cause,)
