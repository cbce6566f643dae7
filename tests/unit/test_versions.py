"""Versions keep their spelling, and ranges mean what people write."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.versions import Range, Version, range_as_written, version_as_written


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("525.60.13", "550.144.03"),
        ("6.5.0-1017-aws", "6.10"),
        ("12.9.1", "12.10"),
        ("8.9.2.26", "9.1.0.70"),
        ("2.26.2", "2.26.2.post1"),
        ("5.15.0-105-generic", "6.1"),
    ],
)
def test_versions_compare_by_their_numbers(older: str, newer: str) -> None:
    assert Version.parse(older) < Version.parse(newer)


def test_a_version_keeps_its_spelling() -> None:
    assert str(Version.parse("550.144.03")) == "550.144.03"


def test_trailing_zeros_do_not_distinguish_versions() -> None:
    assert Version.parse("6.5.0") == Version.parse("6.5")
    assert hash(Version.parse("6.5.0")) == hash(Version.parse("6.5"))


def test_what_is_equal_is_not_different() -> None:
    one, other = Version.parse("9.28.0.42+cu12"), Version.parse("9.28.0.42")
    assert (one == other, one != other) == (True, False)
    (one_clause,), (other_clause,) = Range.parse("==12.6").clauses, Range.parse("==12.6").clauses
    assert (one_clause == other_clause, one_clause != other_clause) == (True, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("570,124", "`570,124` is not a version: no version has `,` in it"),
        ("570.124.06 (open)", "`570.124.06 (open)` is not a version: no version has ` ` in it"),
        ("latest", "`latest` is not a version: it must start with a number such as 12.6"),
    ],
)
def test_what_is_no_version_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="is not a version") as caught:
        Version.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text", ["6.8.0-45-generic", "4.18.0-553.el8_10.x86_64", "10.13.6+17G65", "12.2.0-14+deb12u1", "1!2.0"]
)
def test_the_versions_that_kernels_packages_and_systems_have_are_read(text: str) -> None:
    assert Version.parse(text).text == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("58O.95", "after 58 comes `O`; did you mean `580.95`?"),
        ("570.I33.20", "after 570 comes `.I`; did you mean `570.133.20`?"),
        ("2.3S", "after 2.3 comes `S`; did you mean `2.35`?"),
        ("6.8.O-45-generic", "after 6.8 comes `.O`; did you mean `6.8.0-45-generic`?"),
        ("580..95", "after 580 comes `..`; did you mean `580.95`?"),
        ("580.95.", "after 580.95 comes `.`; did you mean `580.95`?"),
        ("12.x.", "after 12 comes `.x`; did you mean `12`?"),
        ("3.13t", "after 3.13 comes `t`, which is no number"),
    ],
)
def test_a_version_that_a_person_mistyped_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="is not a version") as caught:
        version_as_written(text)
    assert str(caught.value) == f"`{text}` is not a version: {message}"
    with pytest.raises(ValueError, match="is not a range") as caught:
        range_as_written(f">={text}")
    assert str(caught.value) == f"`>={text}` is not a range: {message}"


@pytest.mark.parametrize(
    "text",
    [
        "6.8.0-45-generic", "4.18.0-553.el8_10.x86_64", "2.6.32.el6", "5.4.0.x86_64", "3.10.107+", "5.4.0mine",
        "5.10.16.3-microsoft-standard-WSL2", "12.2.0-14+deb12u1", "1.18.0~rc.1-1", "8.1.post1", "2.7.0a0", "2.7.0rc1",
        "378.05.05.25f13", "2.7.1+cu126", "v12.6", "6.0-dp", "12.4.1",
    ],
)  # fmt: skip
def test_a_version_as_vendors_spell_it_is_read_as_it_is_written(text: str) -> None:
    assert version_as_written(text) == Version.parse(text)
    assert range_as_written(f"=={text.partition('~')[0]}") == Range.parse(f"=={text.partition('~')[0]}")


def test_names_are_compared_as_names() -> None:
    assert Version.named("open") != Version.named("proprietary")
    assert Version.named("open") == Version.named("open")


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">=525.60.13", ["525.60.13", "580.65.06"], ["470.256.02", "525.60.12"]),
        (">=550,<580", ["550.54.14", "575.64.05"], ["580.65.06", "535.104.05"]),
        ("12.*", ["12.0.0", "12.9.1"], ["11.8.0", "13.0.0"]),
        ("==12.8", ["12.8.0", "12.8.1"], ["12.9.0", "12.80.0"]),
        ("3.11", ["3.11"], ["3.1", "3.12"]),
        ("==2.6.0", ["2.6.0"], ["2.6.1"]),
        ("==2.6.0+cu126", ["2.6.0+cu126"], ["2.6.0+cu124", "2.6.0"]),
        ("!=2.6.0", ["2.6.1", "2.5.0"], ["2.6.0", "2.6.0+cu126"]),
        ("~=2.6", ["2.6.0", "2.15.0"], ["3.0.0", "2.5.1"]),
        ("~=2.6.1", ["2.6.1", "2.6.9"], ["2.7.0", "2.6.0"]),
        (">2.6", ["2.6.1"], ["2.6.0"]),
        ("===550.144.03", ["550.144.03"], ["550.144.3"]),
        ("", ["1", "99"], []),
        ("*", ["1"], []),
    ],
)
def test_a_range_holds_what_people_mean(text: str, inside: list[str], outside: list[str]) -> None:
    wanted = Range.parse(text)
    assert [version for version in inside if not wanted.allows(Version.parse(version))] == []
    assert [version for version in outside if wanted.allows(Version.parse(version))] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abc", "`abc` is not a version: it must start with a number such as 12.6"),
        (">=550 <580", "`>=550 <580` is not a range: write for example >=2.6, ==12.* or >=550,<580"),
        (">=12.*", "`>=12.*` is not a range: .* goes only with == or !="),
        ("~=2", "`~=2` is not a range: ~= needs at least two numbers"),
        (">=550,,<580", "`` is not a range: write for example >=2.6, ==12.* or >=550,<580"),
    ],
)
def test_a_bad_range_is_refused_naming_the_clause(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Range.parse(text)
    assert str(caught.value) == message


NUMBERS = st.lists(st.integers(0, 999), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@given(NUMBERS, NUMBERS)
def test_intersection_is_both(one: str, other: str) -> None:
    both = Range.parse(f">={one}").intersect(Range.parse(f"<{other}"))
    for text in (one, other):
        version = Version.parse(text)
        assert both.allows(version) == (Range.parse(f">={one}").allows(version) and Range.parse(f"<{other}").allows(version))


@given(NUMBERS)
def test_a_range_reads_back_as_it_is_shown(text: str) -> None:
    for operator in (">=", "<", "==", "!=", "<=", ">"):
        shown = str(Range.parse(f"{operator}{text}"))
        assert str(Range.parse(shown)) == shown


def test_series_of_different_lengths_are_different_ranges() -> None:
    """Equal versions, unequal series: a cache of what a range allows would hand one the answer of the other."""
    assert Version.parse("13") == Version.parse("13.0")
    assert Range.parse("==13.*") != Range.parse("==13.0.*")
    assert Range.parse("==13.0.*") == Range.parse("==13.0.*")
    assert len({Range.parse("==13.*"), Range.parse("==13.0.*"), Range.parse("13.0")}) == 2


@pytest.mark.parametrize("operator", ["==", "!=", ">=", ">", "<", "<=", "~="])
@pytest.mark.parametrize("text", ["2", "2.1", "2.1.1", "2.*", "2.1.*"])
def test_the_answer_of_a_clause_changes_at_its_edges_alone(operator: str, text: str) -> None:
    if (text.endswith("*") and operator not in {"==", "!="}) or (text == "2" and operator == "~="):
        return
    (clause,) = Range.parse(operator + text).clauses
    edges = {str(one) for one in clause.edges(3)}
    versions = [Version.parse(".".join(map(str, numbers))) for numbers in itertools.product(range(4), range(4), range(4))]
    changes = [after for before, after in itertools.pairwise(versions) if clause.allows(before) != clause.allows(after)]
    assert changes
    assert set(changes) <= {Version.parse(one) for one in edges}
