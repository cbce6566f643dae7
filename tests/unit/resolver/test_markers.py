"""Markers judged in one environment: as packaging judges them, and each once."""

from __future__ import annotations

import pytest
from packaging.markers import Marker

from provisioner.index.markers import marker_environment
from provisioner.index.model import Environment
from provisioner.resolver.choices.markers import Markers

VARIABLES = marker_environment(Environment(platform="linux/amd64", python="3.11", glibc=(2, 35)))


class CountingMarker(Marker):
    """A marker that counts how often it is asked."""

    asked = 0

    def evaluate(self, *arguments: object, **options: object) -> bool:
        type(self).asked += 1
        return super().evaluate(*arguments, **options)  # type: ignore[arg-type]


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
    assert Markers(VARIABLES).hold(Marker(text), extras) is holds


def test_no_marker_always_holds() -> None:
    assert Markers(VARIABLES).hold(None)


def test_a_marker_is_asked_once_for_each_extra() -> None:
    markers, marker = Markers(VARIABLES), CountingMarker("extra == 'dev'")
    for _ in range(3):
        assert not markers.hold(marker)
        assert markers.hold(marker, ("dev",))
    assert CountingMarker.asked == 2


def test_the_identity_of_a_marker_that_is_gone_is_not_taken_for_anothers() -> None:
    markers = Markers(VARIABLES)
    for _ in range(200):
        assert markers.hold(Marker("python_version < '3.12'"))
        assert not markers.hold(Marker("python_version > '3.12'"))
