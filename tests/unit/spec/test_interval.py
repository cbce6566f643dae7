"""Bounds prove contradictions, and only those: checked against the versions themselves."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from provisioner.spec.interval import interval_of_range, interval_of_specifier
from provisioner.versions import Range, Version
from tests.strategies import examples

NUMBERS = st.lists(st.integers(min_value=0, max_value=3), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))
PUBLISHED = [f"{major}.{minor}.{micro}" for major in range(4) for minor in range(4) for micro in range(4)]


@st.composite
def clauses(draw: st.DrawFn) -> str:
    found = []
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        operator, number = draw(st.sampled_from(["==", "!=", ">=", "<=", "<", ">", "~=", "==*"])), draw(NUMBERS)
        if operator == "~=" and "." not in number:
            number += ".0"
        found.append(f"=={number}.*" if operator == "==*" else f"{operator}{number}")
    return ",".join(found)


@examples(150)
@given(text=clauses(), other=clauses())
def test_two_specifiers_called_apart_share_no_version(text: str, other: str) -> None:
    first, second = SpecifierSet(text), SpecifierSet(other)
    assume(interval_of_specifier(first).intersect(interval_of_specifier(second)).is_empty)
    assert not [version for version in PUBLISHED if version in first and version in second]


@examples(150)
@given(text=clauses(), other=clauses())
def test_a_range_and_a_specifier_called_apart_share_no_version(text: str, other: str) -> None:
    wanted, specifier = Range.parse(text), SpecifierSet(other)
    assume(interval_of_range(wanted).intersect(interval_of_specifier(specifier)).is_empty)
    assert not [version for version in PUBLISHED if wanted.allows(Version.parse(version)) and version in specifier]


@pytest.mark.parametrize(
    ("wanted", "specifier", "is_apart"),
    [
        ("==2.6", "==2.7", True),
        ("==2.6", "==2.6.0", False),
        ("==2.6", "==2.6.1", False),
        ("2.6", "==2.7.1", True),
        (">=2.6,<2.7", ">=2.7", True),
        ("~=2.6.0", ">=2.7", True),
        ("<2.7", "==2.7", True),
        ("<=2.7", ">=2.7", False),
        ("*", "==2.7", False),
        (">=2.7", "", False),
        ("<3", "==1!2.0", False),
    ],
)
def test_bounds_follow_each_sides_reading_of_a_version(wanted: str, specifier: str, is_apart: bool) -> None:  # noqa: FBT001 - the expected value
    bounds = interval_of_range(Range.parse(wanted))
    assert bounds.intersect(interval_of_specifier(SpecifierSet(specifier))).is_empty is is_apart


@pytest.mark.parametrize("text", [">=2.7rc1,<2.7rc3", "==2.7rc1", ">2.7,<2.7.1", "===2.7", ">=2.7.post1,<=2.7.post3"])
def test_what_pre_and_post_releases_could_meet_is_not_called_empty(text: str) -> None:
    assert not interval_of_specifier(SpecifierSet(text)).is_empty
