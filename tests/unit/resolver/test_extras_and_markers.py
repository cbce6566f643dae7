"""Extras nobody has, extras of the framework, and markers of a target whose patch release is not known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from packaging.markers import Marker

from provisioner.index.markers import Markers, darwin, holds_for, marker_environment
from provisioner.index.model import Environment
from provisioner.places import Place
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from provisioner.words.choice import caution_words
from provisioner.words.conflict import conflict_lines
from tests import small
from tests.unit.resolver.test_finder import Shelf, matrix_with_facts

LINUX = Markers(marker_environment(Environment(platform="linux/amd64", python="3.11")))
MAC = Markers(marker_environment(Environment(platform="macos/arm64", python="3.11", macos=(13, 0))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('python_full_version < "3.11.3"', True),
        ('python_full_version >= "3.11.4"', True),
        ('implementation_version > "3.11.2"', True),
        ('python_full_version <= "3.11.0a6"', False),
        ('python_full_version >= "3.12"', False),
        ('python_full_version < "3.11.3" and python_full_version >= "3.11.4"', False),
        ('platform_release >= "20.0"', False),
        ('platform_machine == "x86_64" and sys_platform == "linux"', True),
    ],
)
def test_a_marker_holds_for_the_first_or_the_newest_patch(text: str, *, expected: bool) -> None:
    assert LINUX.hold(Marker(text)) == expected


@pytest.mark.parametrize(
    ("text", "extras", "expected"),
    [
        ('extra == "Foo_Bar"', ("foo-bar",), True),
        ('extra == "foo.bar" and python_version >= "3.11"', ("foo-bar",), True),
        ('extra == "a" or extra == "b"', ("b",), True),
        ('(extra == "a" or sys_platform == "linux") and os_name == "posix"', ("",), True),
        ('extra == "a" and extra == "b"', ("a", "b"), False),
        ('extra == "a" and python_full_version >= "3.11.4"', ("a",), True),
        ('extra == "a"', ("",), False),
    ],
)
def test_extras_inside_markers(text: str, extras: tuple[str, ...], *, expected: bool) -> None:
    assert LINUX.hold(Marker(text), extras) == expected


def test_the_release_of_a_mac_is_that_of_its_deployment_target() -> None:
    assert [darwin(macos) for macos in ((10, 13), (10, 15), (11, 0), (12, 3), (15, 0), (26, 0))] == [17, 19, 20, 21, 24, 25]
    assert [MAC.hold(Marker(f'platform_release >= "{release}"')) for release in ("21.0", "22.0", "23.0")] == [True, True, False]
    unknown = Markers(marker_environment(Environment(platform="macos/arm64", python="3.11")))
    assert not unknown.hold(Marker('platform_release >= "20.0"'))


def test_markers_that_need_no_python_are_settled_beforehand() -> None:
    assert holds_for(Marker('sys_platform == "linux"'), "linux/amd64", ["3.11", "3.12"])
    assert holds_for(Marker('sys_platform == "linux"'), "macos/arm64", ["3.11", "3.12"]) is False
    assert holds_for(Marker('python_version >= "3.12"'), "linux/amd64", ["3.11", "3.12"]) is None
    assert holds_for(Marker('python_version >= "3.12"'), "linux/amd64", ["3.12", "3.13"])
    assert holds_for(Marker('python_version < "3.12"'), "linux/amd64", ["3.12", "3.13"]) is False


TABLE: dict[str, dict[str, list[str] | str]] = {
    "app": {"1": ["core[Fast_Path, slow]", "torch[opt-einsum]>=2.1"]},
    "core": {"1": ["speed; extra == 'fast.path'", "gone; extra == 'empty' and python_version < '3'"]},
    "speed": {"1": []},
    "torch": {"2.4.0": ["einsum; extra == 'opt-einsum'"], "2.1.0": []},
    "einsum": {"1": ["torch"]},
}


def warnings(packages: list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    request = small.request({"python": "3.11"}, {}, packages=packages)
    places = {f"packages.{index}": Place("provision.yaml", index + 3) for index in range(len(packages))}
    stack = solve_joint(join(matrix_with_facts(), replace(request, places=places)), lambda _: Shelf(TABLE))
    return {package.name: package.version for package in stack.packages}, tuple(map(caution_words, stack.warnings))


def test_an_extra_that_nobody_has_is_told_with_who_asks_for_it() -> None:
    found, told = warnings(["core[fast-pth,empty]", "speed[x]"])
    assert found == {"core": "1", "speed": "1"}
    assert told == (
        "core 1 has no extra `fast-pth`; did you mean `fast-path`?  (you require core[fast-pth,empty], provision.yaml:3)",
        "speed 1 has no extra `x`; it has none  (you require speed[x], provision.yaml:4)",
    )


def test_extras_of_what_others_require_of_the_framework_too() -> None:
    found, told = warnings(["app"])
    assert found == {"app": "1", "core": "1", "speed": "1", "torch": "2.4.0", "einsum": "1"}
    assert told == ("core 1 has no extra `slow`; it has empty, fast-path  (app 1 needs core)",)


def test_the_frameworks_extra_is_of_the_build_that_is_chosen() -> None:
    assert warnings(["torch[opt-einsum]"]) == ({"torch": "2.4.0", "einsum": "1"}, ())
    found, told = warnings(["torch[opt-einsum]<2.4"])
    assert found == {"torch": "2.1.0"}
    assert told == (
        "torch 2.1.0 has no extra `opt-einsum`; it has none  (you require torch[opt-einsum]<2.4, provision.yaml:3)",
    )
    assert warnings(["core", "torch; sys_platform == 'win32'"])[0] == {"core": "1"}
    assert warnings(["core", "torch<2.4; python_version >= '3.11'"])[0] == {"core": "1", "torch": "2.1.0"}


GROWN: dict[str, dict[str, list[str] | str]] = {
    "core": {"3": ["limited<2", "gpu; extra == 'cuda12'"], "2": ["gpu; extra == 'cuda12'"], "1": []},
    "limited": {"2": [], "1": []},
    "gpu": {"1": ["limited>=2"]},
}


def solved(packages: list[str]) -> dict[str, str]:
    request = small.request({"python": "3.11"}, {}, packages=packages)
    stack = solve_joint(join(matrix_with_facts(), request), lambda _: Shelf(GROWN))
    return {package.name: package.version for package in stack.packages}


def test_an_older_version_without_the_extra_asked_for_is_no_answer() -> None:
    assert solved(["core[cuda12]"]) == {"core": "2", "gpu": "1", "limited": "2"}
    assert solved(["core", "limited<2"]) == {"core": "3", "limited": "1"}
    with pytest.raises(NoStackError) as caught:
        solved(["core[cuda12]", "limited<2"])
    assert "core 1 has no extra `cuda12`, which 3 has" in "\n".join(conflict_lines(caught.value.conflict))


def test_the_version_that_the_spec_pins_is_an_answer_and_a_warning() -> None:
    assert solved(["core[cuda12]==1"]) == {"core": "1"}
