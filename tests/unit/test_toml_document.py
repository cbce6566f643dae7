"""Where things stand in TOML; the values are the standard library's."""

from __future__ import annotations

from datetime import date, time

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.toml_document import parse_toml

TEXT = """\
# a comment
[project]
name = "x"  # its name
dependencies = [
  "a>=1", # not the end: ]
  'b',  \"\"\"c
d\"\"\",
]
"quo.ted" . k = {a = 1, "b" = [1, {z = 1979-05-27 07:32:00}], c = 'x # y'}

[[a.b]]
x = 1
[[a.b]]
x = 2
[a.b.c]
'y' = 3
"""


def test_every_key_and_item_has_its_place() -> None:
    document = parse_toml(TEXT, file="pyproject.toml", kind="spec")
    places = {path: (position.line, position.column) for path, position in document.keys.items()}
    assert places == {
        ("project",): (2, 2),
        ("project", "name"): (3, 1),
        ("project", "dependencies"): (4, 1),
        ("project", "dependencies", 0): (5, 3),
        ("project", "dependencies", 1): (6, 3),
        ("project", "dependencies", 2): (6, 9),
        ("project", "quo.ted"): (9, 1),
        ("project", "quo.ted", "k"): (9, 13),
        ("project", "quo.ted", "k", "a"): (9, 18),
        ("project", "quo.ted", "k", "b"): (9, 25),
        ("project", "quo.ted", "k", "b", 0): (9, 32),
        ("project", "quo.ted", "k", "b", 1): (9, 35),
        ("project", "quo.ted", "k", "b", 1, "z"): (9, 36),
        ("project", "quo.ted", "k", "c"): (9, 63),
        ("a",): (11, 3),
        ("a", "b"): (11, 5),
        ("a", "b", 0): (11, 5),
        ("a", "b", 0, "x"): (12, 1),
        ("a", "b", 1): (13, 5),
        ("a", "b", 1, "x"): (14, 1),
        ("a", "b", 1, "c"): (15, 6),
        ("a", "b", 1, "c", "y"): (16, 1),
    }
    assert document.texts["project", "quo.ted", "k", "b", 1, "z"] == "1979-05-27 07:32:00"
    assert document.texts["project", "dependencies", 2] == "c\nd"


def test_lists_are_tuples_and_dates_are_text_where_that_is_asked_for() -> None:
    text = "a = [1, [2.5]]\nb = 2026-09-01\nc = 07:32:00\nd = true\n"
    as_text = parse_toml(text, file="f", kind="k", dates_as_text=True)
    assert as_text.data == {"a": (1, (2.5,)), "b": "2026-09-01", "c": "07:32:00", "d": True}
    assert parse_toml(text, file="f", kind="k").data == {"a": (1, (2.5,)), "b": date(2026, 9, 1), "c": time(7, 32), "d": True}


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("a = [1,\n", "f:1:8: invalid value at the end of the file"),
        ("a = 1\nb = = 2\n", "f:2:5: invalid value"),
        ("a = 1\na = 2\n", "f:2:6: cannot overwrite a value"),
        (
            "a = 1\n<<<<<<< HEAD\nb = 1\n=======\nb = 2\n>>>>>>> topic\n",
            "f:2:1: a merge left both sides of a conflict here; keep one (a generated file is best written anew)",
        ),
        ("a = " + "[" * 5000 + "]" * 5000, "f:1:1: the file is nested too deeply to be read"),
    ],
)
def test_a_mistake_has_a_place(text: str, mistake: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        parse_toml(text, file="f", kind="k")
    assert [str(one) for one in caught.value.mistakes] == [mistake]


def test_a_key_of_very_many_parts_is_told_at_its_place() -> None:
    fine = ".".join(["a"] * 100)
    with pytest.raises(InvalidDocumentError) as told:
        parse_toml(f"{fine} = 1\nx = '{'.' * 200}'\n  {fine}.b = 2\n", file="f", kind="k")
    (mistake,) = told.value.mistakes
    assert (mistake.line, mistake.column) == (3, 3)
