"""The short way to a requirement leads where the long one does: to the same object, or to the same refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement

from provisioner.index.markers import marker_environment
from provisioner.index.metadata.requirement_text import _PLAIN, ExtraMarker, read_marker, read_requirement
from provisioner.index.model import Environment

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


FOR_AN_EXTRA = [
    'extra == "dev"',
    "extra=='Dev_Tools.x'",
    '(extra == "dev")',
    'python_version < "3.9" and extra == "dev"',
    "python_version < '3.9' and sys_platform != 'win32' and extra == 'dev'",
    "(sys_platform == 'linux' or sys_platform == 'win32') and extra == 'dev'",
    '( python_version >= "3.9" and python_version < "3.14" ) and ( extra == "dev" )',
    'platform_machine in "x86_64 aarch64" and os_name not in "nt" and extra == "dev"',
]
NOT_FOR_AN_EXTRA = [
    'python_version < "3.9"',
    'extra == ""',
    'extra != "dev"',
    'extra == "dev" and python_version < "3.9"',
    'extra == "dev" or extra == "test"',
    'python_version < "3.9" or extra == "dev"',
    'python_version < "3.9" or os_name == "nt" and extra == "dev"',
    'python_version < "3.9" and (os_name == "nt" or extra == "dev")',
    '"dev" == extra',
    'extra == "dev',
    'extra = "dev"',
    '(extra == "dev"',
    'no_such_variable == "1" and extra == "dev"',
    'python_version == and extra == "dev"',
    'os_name in"nt" and extra == "dev"',
    "extra == \"dev'",
    'extra == "dev"\n',
    "",
]
LINUX = marker_environment(Environment(platform="linux/amd64", python="3.11"))


def verdicts(text: str, read: Callable[[str], Marker]) -> tuple[object, ...]:
    """How a marker is written, and where it holds, or why it is none."""
    try:
        marker = read(text)
        return (str(marker), *(marker.evaluate({**LINUX, "extra": extra}) for extra in ("", "dev", "dev-tools-x", "test")))
    except (InvalidMarker, UndefinedEnvironmentName) as error:  # the latter for `"dev" == "dev"`, which compares no variable
        return (str(error),)


def judged_alike(text: str) -> None:
    marker = read_marker(text) if text in FOR_AN_EXTRA or _is_marker(text) else None
    assert verdicts(text, read_marker) == verdicts(text, Marker)
    if isinstance(marker, ExtraMarker):
        elsewhere = {extra for extra in ("", "dev", "dev-tools-x", "test") if Marker(text).evaluate({**LINUX, "extra": extra})}
        assert elsewhere <= {marker.extra}


def _is_marker(text: str) -> bool:
    try:
        Marker(text)
    except InvalidMarker:
        return False
    return True


@pytest.mark.parametrize("text", FOR_AN_EXTRA)
def test_a_marker_for_an_extra_takes_the_short_way(text: str) -> None:
    assert isinstance(read_marker(text), ExtraMarker)
    judged_alike(text)


@pytest.mark.parametrize("text", NOT_FOR_AN_EXTRA)
def test_any_other_marker_is_judged_by_the_whole_parser(text: str) -> None:
    assert not _is_marker(text) or type(read_marker(text)) is Marker
    judged_alike(text)


@pytest.mark.parametrize(("text", "extra"), [(FOR_AN_EXTRA[0], "dev"), (FOR_AN_EXTRA[1], "dev-tools-x")])
def test_the_extra_is_spelled_as_keys_are(text: str, extra: str) -> None:
    marker = read_marker(text)
    assert isinstance(marker, ExtraMarker)
    assert (marker.extra, hash(marker), marker == Marker(text)) == (extra, hash(Marker(text)), True)


MARKER_PIECES = st.sampled_from(
    [
        "extra",
        "==",
        '"dev"',
        "'test'",
        " ",
        " and ",
        " or ",
        "(",
        ")",
        "python_version",
        "<",
        '"3.9"',
        " in ",
        " not in ",
        "os_name",
        "!=",
    ]
)
CLAUSES = st.sampled_from(
    [
        'extra == "dev"',
        "extra == 'test'",
        'python_version < "3.9"',
        "os_name == 'posix'",
        'sys_platform in "linux"',
        'os_name>"a"',
    ]
)


@given(st.lists(MARKER_PIECES, max_size=12).map("".join))
def test_whatever_the_marker_both_ways_agree(text: str) -> None:
    judged_alike(text)


@given(
    st.recursive(
        CLAUSES,
        lambda inner: st.builds(
            "{}{} {} {}{}".format,
            st.sampled_from(["", "("]),
            inner,
            st.sampled_from(["and", "or"]),
            inner,
            st.sampled_from(["", ")"]),
        ),
        max_leaves=5,
    )
)
def test_so_they_do_near_the_common_ones(text: str) -> None:
    judged_alike(text)
