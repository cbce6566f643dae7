"""The short way to a requirement leads where the long one does: to the same object, or to the same refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement

from provisioner.index.requirement_text import _PLAIN, read_requirement

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = [
    "demo",
    " demo ",
    "Demo.Thing_x-1",
    "demo>=1",
    "demo >= 1, <2",
    "demo (>=1,<2)",
    "demo ( >=1 , <2 )",
    "demo[a]",
    "demo [ a , B.c ] >=1",
    "demo==1.*",
    "demo!=1.0.*,>=0.9rc1",
    "demo~=1.4.post2",
    "demo==1.0+local.1",
    "demo<2.0.dev0",
]
NOT_PLAIN = [
    "demo===1.0",
    "demo @ https://x.test/demo.whl",
    "demo ; python_version < '3.9'",
    "demo>=1!2.0",
    "demo[]",
    "demo ()",
    "demo>=v1",
    "demo>=1,",
    "demo>= 1 <2",
    "demo>=1.*",
    "demo~=1",
    "demo=>1",
    "demo (>=1",
    "demo >=1)",
    "demo[a",
    "demo[a,]",
    "demo-",
    "-demo",
    "démo",
    "demo\n",
    "demo >=\n1",
    "demo==1.0-",
    "",
]


def whole(requirement: Requirement) -> tuple[object, ...]:
    marker = None if requirement.marker is None else str(requirement.marker)
    return requirement.name, requirement.url, requirement.extras, str(requirement.specifier), marker, str(requirement)


def outcome(text: str, read: Callable[[str], Requirement]) -> tuple[object, ...]:
    """Everything a requirement says, or why it is none."""
    try:
        return whole(read(text))
    except InvalidRequirement as error:
        return (str(error),)


def agree(text: str) -> None:
    assert outcome(text, read_requirement) == outcome(text, Requirement)


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_requirement_takes_the_short_way(text: str) -> None:
    assert _PLAIN.fullmatch(text)
    agree(text)


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_any_other_is_judged_by_the_whole_parser(text: str) -> None:
    agree(text)


def test_the_extras_of_one_requirement_are_its_own() -> None:
    first, second = read_requirement("demo[a]>=1"), read_requirement("demo[a]>=1")
    first.extras.add("b")
    assert second.extras == {"a"}


PIECES = st.sampled_from(
    [*"a1,[]() \t\n+.-_!@;*vé", "demo", "B_c", "2.0", "1.*", "rc1", ">=", "<", "==", "===", "~=", "!=", "dev", "post"]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_whatever_the_text_both_ways_agree(text: str) -> None:
    agree(text)


@given(st.builds("{}{}{}{}".format, st.sampled_from(["demo", "a.b"]), st.sampled_from(["", " ", "[x]"]), PIECES, PIECES))
def test_so_they_do_near_the_plain_ones(text: str) -> None:
    agree(text)
