"""A hint as one line: what it changes, and as much of what it gives as a reader compares."""

from __future__ import annotations

from provisioner.solve.explain.words import MOST_GIVEN, hint_line

from provisioner.solve.stack import Hint


def _hint(text: str, gives: dict[str, str]) -> Hint:
    return Hint(changes=(), text=text, gives=gives)


PINNED = {f"pin-{place:02}": "1.0" for place in range(40)}


def test_a_hint_of_a_small_spec_gives_everything() -> None:
    hint = _hint("leaving out `six` would do", {"app": "1", "cuda": "12.6", "pytorch": "2.7.1", "pytorch_build": "cu126"})
    assert hint_line(hint) == "leaving out `six` would do: gives app 1, cuda 12.6, pytorch 2.7.1+cu126"


def test_a_hint_that_gives_nothing_says_so_by_saying_nothing() -> None:
    assert hint_line(_hint("driver 570 would do", {})) == "driver 570 would do"


def test_of_two_hundred_pins_a_hint_tells_what_it_changes_and_the_components() -> None:
    """As that of a requirement file that pins everything: what stays as it was pinned says nothing."""
    gives = {**PINNED, "cuda": "12.6", "python": "3.12", "pytorch": "2.7.1", "pytorch_build": "cu126", "zope-event": "5.1"}
    line = hint_line(_hint("zope-event 5.1 instead of `zope-event==5.0` would do", dict(sorted(gives.items()))))
    assert line == (
        "zope-event 5.1 instead of `zope-event==5.0` would do: gives cuda 12.6, pin-00 1.0, pin-01 1.0, pin-02 1.0, "
        "pin-03 1.0, pin-04 1.0, pin-05 1.0, pin-06 1.0, python 3.12, pytorch 2.7.1+cu126, zope-event 5.1, "
        "and 33 more, listed under --format json"
    )


def test_as_many_as_fit_are_all_told() -> None:
    few = dict(list(PINNED.items())[:MOST_GIVEN])
    assert "more" not in hint_line(_hint("this would do", few))
    assert hint_line(_hint("this would do", {**few, "six": "1"})).endswith("and 2 more, listed under --format json")
