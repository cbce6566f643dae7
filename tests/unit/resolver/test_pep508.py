"""PEP 508 from metadata to a choice: which requirements apply on the target, and what extras ask for.

Source of the expectations: "Dependency specifiers", packaging.python.org, read 2026-11-21.
"""

from __future__ import annotations

import pytest

from provisioner.index.model import Environment
from tests.file_shelf import LINUX, listed, solved, wheel

MAC = Environment(platform="macos/arm64", python="3.12", macos=(15, 0))
ARM = Environment(platform="linux/arm64", python="3.12", glibc=(2, 36))
OLD = Environment(platform="linux/amd64", python="3.9", glibc=(2, 36))

WHEELS = {name: [wheel(name, "1")] for name in ("demo", "needed", "other", "third")}


@pytest.mark.parametrize(
    ("marker", "on_linux", "on_mac", "on_arm", "on_39"),
    [
        # versions are compared as versions, not as text: "3.12" < "3.9" as text
        ("python_version < '3.9'", False, False, False, False),
        ("python_version >= '3.10'", True, True, True, False),
        ("'3.10' <= python_version", True, True, True, False),
        ("python_version == '3.12.*'", True, True, True, False),
        ("python_version ~= '3.10'", True, True, True, False),
        ("python_version != '3.12'", False, False, False, True),
        ("python_version === '3.12'", True, True, True, False),
        ("python_full_version > '3.10.0b1'", True, True, True, False),
        ("implementation_version >= '3.10'", True, True, True, False),
        # `in` and `not in` look for a part of a text, also where it is a version
        ("python_version in '3.9 3.10 3.11'", False, False, False, True),
        ("python_version not in '3.9 3.10 3.11'", True, True, True, False),
        ("'linux' in sys_platform", True, False, True, True),
        ("sys_platform not in 'win32 darwin'", True, False, True, True),
        ("'x86' not in platform_machine", False, True, True, False),
        # the names of one machine differ from system to system
        ("platform_machine == 'aarch64'", False, False, True, False),
        ("platform_machine == 'arm64'", False, True, False, False),
        ("platform_system == 'Darwin'", False, True, False, False),
        ("sys_platform == 'darwin' and platform_machine != 'x86_64'", False, True, False, False),
        ("os_name == 'posix'", True, True, True, True),
        ("os_name == 'nt'", False, False, False, False),
        ("implementation_name == 'cpython' and platform_python_implementation == 'CPython'", True, True, True, True),
        # `and` binds closer than `or`; parentheses
        ("os_name == 'nt' and python_version < '3' or sys_platform == 'linux'", True, False, True, True),
        ("os_name == 'nt' and (python_version < '3' or sys_platform == 'linux')", False, False, False, False),
        # the names of PEP 345, which old metadata still has
        ("os.name == 'posix'", True, True, True, True),
        ("sys.platform == 'linux'", True, False, True, True),
        ("platform.python_implementation == 'CPython'", True, True, True, True),
        ("python_implementation == 'CPython'", True, True, True, True),
    ],
)
def test_a_marker_is_judged_on_the_target(marker: str, *, on_linux: bool, on_mac: bool, on_arm: bool, on_39: bool) -> None:
    found = []
    for environment in (LINUX, MAC, ARM, OLD):
        in_metadata = solved(WHEELS, "demo", metadata={"demo 1": (f"needed; {marker}",)}, environment=environment)
        in_spec = solved(WHEELS, "demo", f"needed; {marker}", environment=environment)
        assert in_metadata == in_spec
        assert in_metadata is not None
        found.append("needed" in in_metadata)
    assert found == [on_linux, on_mac, on_arm, on_39]


EXTRAS = {
    "demo 1": (
        "needed; extra == 'a'",
        "other; extra == 'b'",
        "third; extra == 'a' and extra == 'b'",
        "demo[a,b]; extra == 'all'",
        "needed; 'dev' == extra and python_version >= '3'",
        "other; extra == 'a-b' or extra == 'c'",
    )
}


@pytest.mark.parametrize(
    ("wanted", "brought"),
    [
        ("demo", ""),
        ("demo[a]", "needed"),
        ("demo[b]", "other"),
        ("demo[a,b]", "needed other"),
        ("demo[ b , a ]", "needed other"),
        ("demo[all]", "needed other"),
        ("demo[dev]", "needed"),
        ("demo[c]", "other"),
        # names of extras are normalized: "A.B", "a_b" and "a-b" are one
        ("demo[A_B]", "other"),
        ("demo[a.b]", "other"),
        ("Demo[A]", "needed"),
    ],
)
def test_extras_bring_what_is_guarded_by_them(wanted: str, brought: str) -> None:
    pins = solved(WHEELS, wanted, metadata=EXTRAS)
    assert pins == {"demo": "1", **dict.fromkeys(brought.split(), "1")}


def test_the_extras_of_several_requirements_are_joined() -> None:
    metadata = {**EXTRAS, "third 1": ("demo[b]",)}
    assert solved(WHEELS, "demo[a]", "third", metadata=metadata) == {"demo": "1", "needed": "1", "other": "1", "third": "1"}


def test_extras_and_their_distribution_are_of_one_version() -> None:
    files = {"demo": [wheel("demo", "1"), wheel("demo", "2")], "needed": [wheel("needed", "1")]}
    metadata = {"demo 1": ("needed; extra == 'a'",), "demo 2": ("needed>=2; extra == 'a'",)}
    assert solved(files, "demo[a]", metadata=metadata) == {"demo": "1", "needed": "1"}
    assert solved(files, "demo", metadata=metadata) == {"demo": "2"}
    assert solved(files, "demo>=2", "demo[a]", metadata=metadata) is None


@pytest.mark.parametrize(
    "metadata",
    [
        {"demo 1": ("other",), "other 1": ("demo",)},
        {"demo 1": ("demo[a]", "other; extra == 'a'"), "other 1": ("demo[a]",)},
        {"demo 1": ("other[b]; extra == 'a'", "other"), "other 1": ("demo[a]; extra == 'b'", "demo[a]")},
        {"demo 1": ("demo[b]; extra == 'a'", "demo[a]; extra == 'b'", "demo[a]", "other; extra == 'b'")},
    ],
)
def test_what_requires_itself_in_a_circle_is_taken_once(metadata: dict[str, tuple[str, ...]]) -> None:
    assert solved(WHEELS, "demo", metadata=metadata) == {"demo": "1", "other": "1"}


def test_a_circle_may_hold_an_older_version() -> None:
    files = {name: [wheel(name, "1"), wheel(name, "2")] for name in ("demo", "other")}
    metadata = {"demo 2": ("other==1",), "other 1": ("demo<2",), "demo 1": ("other",), "other 2": ("demo",)}
    assert solved(files, "demo", metadata=metadata) == {"demo": "1", "other": "2"}


@pytest.mark.parametrize(
    ("requires_python", "takes_312", "takes_39"),
    [
        (">=3.6, !=3.7.*, <4", True, True),
        (">=3.10", True, False),
        ("~=3.8", True, True),
        ("==3.*", True, True),
        (">=2.7,!=3.0.*,!=3.1.*", True, True),
        ("<3.10", False, True),
        # 3.9 is read as its newest release, which is above 3.9 itself
        (">3.9", True, True),
        (">3.9.*", True, True),
        ("> 3.11", True, False),
        ("!=3.12.*", False, True),
        ("==3.12", False, False),
        ("==3.12.*", True, False),
        ("<=3.12", False, True),
        (">=3.12.0rc1", True, False),
        (">=3.12.5", True, False),
        (">=3.8,", True, True),
        (",>=3.8", True, True),
        ("", True, True),
        # unreadable ones exclude nothing, as in pip: metadata of 2010 does not stop an installation
        ("3.12", True, True),
        (">=3.6.*", True, True),
        (">= '3.8'", True, True),
        ("python >= 3.8", True, True),
    ],
)
def test_requires_python_in_all_its_spellings(requires_python: str, *, takes_312: bool, takes_39: bool) -> None:
    files = {"demo": [listed("demo-1-py3-none-any.whl", requires_python=requires_python)]}
    assert (solved(files, "demo") is not None) == takes_312
    assert (solved(files, "demo", environment=OLD) is not None) == takes_39
