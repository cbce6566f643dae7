"""Markers judged in one environment, as packaging judges them."""

from __future__ import annotations

from itertools import product

import pytest
from packaging.markers import Marker

from provisioner.index.markers import Markers, marker_environment
from provisioner.index.model import Environment

VARIABLES = marker_environment(Environment(platform="linux/amd64", python="3.11", glibc=(2, 35)))


@pytest.mark.parametrize(
    ("text", "extras", "holds"),
    [
        ("python_version < '3.12'", ("",), True),
        ("sys_platform == 'win32'", ("",), False),
        ("extra == 'dev'", ("",), False),
        ("extra == 'dev'", ("dev",), True),
        ("extra == 'dev'", ("test", "dev"), True),
        ("extra == 'dev' and sys_platform == 'win32'", ("dev",), False),
        ("extra == 'Dev_Tools'", ("dev-tools",), True),
    ],
)
def test_a_marker_holds_when_it_does_for_one_of_the_extras(text: str, extras: tuple[str, ...], *, holds: bool) -> None:
    markers = Markers(VARIABLES)
    for _ in range(2):
        assert markers.hold(Marker(text), extras) is markers.hold_text(text, extras) is holds


def test_no_marker_always_holds() -> None:
    assert Markers(VARIABLES).hold(None)
    assert Markers(VARIABLES).hold_text("")


COMPARISONS = (
    "extra == 'dev'",
    'extra=="Dev"',
    "'dev' == extra",
    "extra != 'dev'",
    "(extra == 'dev' or os_name == 'posix')",
    "python_version<'3.9'",
    "sys_platform == 'linux'",
    "platform_version == \"x and extra == 'dev'\"",
)


def test_a_marker_holds_where_packaging_says_so() -> None:
    markers = Markers(VARIABLES)
    joints = (" and ", " or ")
    for first, joint, second, other, third in product(COMPARISONS, joints, COMPARISONS, joints, COMPARISONS):
        for text in (f"{first}{joint}{second}", f"{first}{joint}{second}{other}{third}"):
            for extra in ("", "dev"):
                says = Marker(text).evaluate({**VARIABLES, "extra": extra})
                assert markers.hold_text(text, (extra,)) is says, text
