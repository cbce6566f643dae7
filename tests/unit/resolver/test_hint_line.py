"""A hint as one line: what it changes, and as much of what it gives as a reader compares."""

from __future__ import annotations

from provisioner.grounds.conflict import Fix
from provisioner.grounds.edit import DropDistribution, SetDistribution, SetFact
from provisioner.grounds.requirement import RequiresDistribution
from provisioner.places import Place
from provisioner.words.conflict import MOST_GIVEN, fix_line


def _hint(name: str, gives: dict[str, str]) -> Fix:
    edits = {
        "six": DropDistribution(name="six", distribution="six", requests=(wanted("six", "six"),)),
        "driver": SetFact(name="driver", host="host0", sign="==", value="570", today="535"),
        "nouveau": SetFact(name="loaded_modules", host="host0", sign="==", value="free", today="nouveau"),
        "zope": SetDistribution(
            name="zope-event", distribution="zope-event", value="5.1", requests=(wanted("zope-event", "zope-event==5.0"),)
        ),
    }
    return Fix(edits=(edits[name],), gives=gives)


def wanted(name: str, requirement: str) -> RequiresDistribution:
    return RequiresDistribution(name=name, distribution=name, requirement=requirement, place=Place("provision.yaml", 3))


PINNED = {f"pin-{place:02}": "1.0" for place in range(40)}


def test_a_hint_of_a_small_spec_gives_everything() -> None:
    hint = _hint("six", {"app": "1", "cuda": "12.6", "pytorch": "2.7.1", "pytorch_build": "cu126"})
    assert fix_line(hint) == "leaving out `six` would do: gives app 1, cuda 12.6, pytorch 2.7.1+cu126"


def test_a_hint_that_gives_nothing_says_so_by_saying_nothing() -> None:
    assert fix_line(_hint("driver", {})) == "driver 570 would do"


def test_a_change_that_is_more_than_a_version_says_how() -> None:
    how = "keep nouveau off the GPU: blacklist it, rebuild the initramfs and reboot"
    assert fix_line(_hint("nouveau", {})) == f"a GPU that no other module holds ({how}) would do"


def test_of_two_hundred_pins_a_hint_tells_what_it_changes_and_the_components() -> None:
    """As that of a requirement file that pins everything: what stays as it was pinned says nothing."""
    gives = {**PINNED, "cuda": "12.6", "python": "3.12", "pytorch": "2.7.1", "pytorch_build": "cu126", "zope-event": "5.1"}
    line = fix_line(_hint("zope", dict(sorted(gives.items()))))
    assert line == (
        "zope-event 5.1 instead of `zope-event==5.0` would do: gives cuda 12.6, pin-00 1.0, pin-01 1.0, pin-02 1.0, "
        "pin-03 1.0, pin-04 1.0, pin-05 1.0, pin-06 1.0, python 3.12, pytorch 2.7.1+cu126, zope-event 5.1, "
        "and 33 more, listed under --format json"
    )


def test_as_many_as_fit_are_all_told() -> None:
    few = dict(list(PINNED.items())[:MOST_GIVEN])
    assert "more" not in fix_line(_hint("driver", few))
    assert fix_line(_hint("driver", {**few, "six": "1"})).endswith("and 2 more, listed under --format json")
