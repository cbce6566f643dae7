"""PEP 440 from a listing to a choice: which versions a specifier takes, and which one of them.

The expectations are the specification's own examples ("Version specifiers", packaging.python.org, read 2026-11-21), written
out; where it leaves a choice to installers, they are what pip and uv do, and the test says so.
"""

from __future__ import annotations

import pytest

from tests.file_shelf import solved, wheel


def chosen(versions: str, specifier: str, **more: tuple[str, ...]) -> str | None:
    """The version that is chosen of some for `demo` and a specifier; None when none will do."""
    files = {"demo": [wheel("demo", version) for version in versions.split()]}
    pins = solved(files, f"demo{specifier}", **more)  # type: ignore[arg-type]
    return None if pins is None else pins["demo"]


@pytest.mark.parametrize(
    ("versions", "specifier", "wanted"),
    [
        # "1.1", "1.1.0": "the release segment is zero padded"
        ("1.1.0", "==1.1", "1.1.0"),
        ("1.1", "==1.1.0", "1.1"),
        ("1.1 1.1.1", "==1.1", "1.1"),
        ("1.1 1.1.1", "!=1.1", "1.1.1"),
        ("1.1 1.1.9", "!=1.1.*", None),
        # "given the version 1.1.post1": == 1.1 no, == 1.1.post1 yes, == 1.1.* yes
        ("1.1.post1", "==1.1", None),
        ("1.1.post1", "==1.1.post1", "1.1.post1"),
        ("1.1.post1", "==1.1.*", "1.1.post1"),
        ("1.1.post1", "!=1.1", "1.1.post1"),
        ("1.1.post1", "!=1.1.post1", None),
        ("1.1.post1", "!=1.1.*", None),
        # "given the version 1.1a1": == 1.1 no, == 1.1a1 yes, == 1.1.* yes
        ("1.1a1", "==1.1", None),
        ("1.1a1", "==1.1a1", "1.1a1"),
        ("1.1a1", "==1.1.*", "1.1a1"),
        # of compatible releases: "~= 2.2" means as much as ">= 2.2, == 2.*"
        ("2.2 2.9 3.0", "~=2.2", "2.9"),
        ("2.1", "~=2.2", None),
        ("1.4.5 1.4.11 1.5", "~=1.4.5", "1.4.11"),
        # a suffix of the version is ignored when the prefix is determined: "~= 2.2.post3" means ">= 2.2.post3, == 2.*"
        ("2.2 2.2.post2", "~=2.2.post3", None),
        ("2.2.post3 2.3", "~=2.2.post3", "2.3"),
        ("1.4.5 1.5", "~=1.4.5a4", "1.4.5"),
        ("2.2.0 2.3", "~=2.2.0", "2.2.0"),
        ("1.4.5.0 1.4.6", "~=1.4.5.0", "1.4.5.0"),
        # "the exclusive ordered comparison >V MUST NOT allow a post-release of the given version unless V itself is a post
        # release"
        ("1.7 1.7.0.post1", ">1.7", None),
        ("1.7.1", ">1.7", "1.7.1"),
        ("1.7.0.post1 1.7.0.post2", ">1.7.post1", "1.7.0.post2"),
        ("1.7.0.post3", ">1.7.post2", "1.7.0.post3"),
        # "the exclusive ordered comparison <V MUST NOT allow a pre-release of the specified version unless the specified
        # version is itself a pre-release"
        ("2.0rc1", "<2.0", None),
        ("2.0a1 2.0rc1", "<2.0rc1", "2.0a1"),
        # post and dev releases in their order
        ("1.0.post1 1.0", ">=1.0", "1.0.post1"),
        ("1.0.dev4 1.0.dev12", "", "1.0.dev12"),
        ("1.0.post1.dev2 1.0", "", "1.0"),
        ("1.0a1.dev1 1.0a1", "", "1.0a1"),
        # epochs: "1!1.0" is newer than every version without one, and "==1.0" is not it
        ("2026.1 1!1.0", "", "1!1.0"),
        ("2026.1 1!1.0", "<1!0", "2026.1"),
        ("2026.1 1!1.0", "==1.0", None),
        ("1!1.0 1!1.0.5", "==1!1.0.*", "1!1.0.5"),
        ("1.0.5 1!1.0.5", "==1.0.*", "1.0.5"),
        ("1.0.5 1!1.0.5", "~=1.0", "1.0.5"),
        ("1!1.0.5 1!2.0", "~=1!1.0", "1!1.0.5"),
        ("0!1.0", "==1.0", "1.0"),
        # "if the specified version identifier is a public version identifier, then the local version label of any candidate
        # versions MUST be ignored when matching versions"
        ("1.0+cu126", "==1.0", "1.0+cu126"),
        ("1.0+cu126", "==1.0.*", "1.0+cu126"),
        ("1.0+cu126", "!=1.0", None),
        ("1.0+cu126", "<=1.0", "1.0+cu126"),
        ("1.0+cu126", "~=1.0", "1.0+cu126"),
        ("1.0+cu126", ">1.0", None),
        ("1.0 1.0+cu126 1.0+cu128", "==1.0+cu126", "1.0+cu126"),
        ("1.0 1.0+cu126", "!=1.0+cu126", "1.0"),
        ("1.0", "==1.0+cu126", None),
        # of local versions: segments of digits alone are compared as numbers, and are greater than those with letters
        ("1.0+ubuntu.9 1.0+ubuntu.10 1.0", "", "1.0+ubuntu.10"),
        ("1.0+abc 1.0+5", "", "1.0+5"),
        # normalization: v-prefix, leading zeros, separators, spellings of phases, case
        ("1.0rc1", "==1.0-RC.1", "1.0rc1"),
        ("1.0.post2", "==v1.0-2", "1.0.post2"),
        ("1.0a3", "==1.0alpha3", "1.0a3"),
        ("1.0+ubuntu.1", "==1.0+Ubuntu-1", "1.0+ubuntu.1"),
        ("2026.1.5", "==2026.01.05", "2026.1.5"),
        # spaces around clauses, clauses in any order
        ("0.8 0.9 1.0 1.5 1.9.6 2.0", " ~= 0.9 , >= 1.0 ,!= 1.3.4.*,< 2.0", None),
        ("0.9.1 0.9.9 1.9", "~=0.9.1,!=0.9.9", "0.9.1"),
    ],
)
def test_the_examples_of_the_specification(versions: str, specifier: str, wanted: str | None) -> None:
    assert chosen(versions, specifier) == wanted


@pytest.mark.parametrize(
    ("versions", "specifier", "wanted"),
    [
        ("1.0", "===1.0", "1.0"),
        ("1.0.0", "===1.0", None),
        ("1.0+downstream1", "===1.0", None),
        ("1.0+downstream1", "===1.0+downstream1", "1.0+downstream1"),
        ("1.0", "===foobar", None),
        ("1.0rc1", "===1.0RC1", "1.0rc1"),
        ("1.0 1.1", "===1.0,>0.5", "1.0"),
    ],
)
def test_arbitrary_equality_compares_strings(versions: str, specifier: str, wanted: str | None) -> None:
    """ "Arbitrary equality comparisons are simple string equality operations which do not take into account any of the semantic
    information such as zero padding or local versions"."""  # noqa: D205, D209, D210 - the quotation ends the sentence
    assert chosen(versions, specifier) == wanted


@pytest.mark.parametrize("text", ["1.0-legacy", "2004d.x", "dev", "1.0.0.0.x", "latest"])
def test_a_file_of_no_version_is_passed_over(text: str) -> None:
    """Versions that PEP 440 does not know stand in old file names; pip and uv skip such files."""
    assert chosen(f"{text} 0.9", "") == "0.9"


def test_one_version_spelled_in_two_ways_is_one() -> None:
    files = {"demo": [wheel("demo", "1.0", "cp312-cp312-win_amd64"), wheel("demo", "1.0.0")]}
    assert solved(files, "demo==1.0") == {"demo": "1.0"}


@pytest.mark.parametrize(
    ("versions", "specifier", "wanted"),
    [
        ("1.0 2.0rc1", "", "1.0"),
        ("1.0 2.0.dev1", ">=1", "1.0"),
        ("1.0 1.0.post1.dev1", "", "1.0"),
        ("2.0a1 2.0rc1", "", "2.0rc1"),
        ("2.0a1 2.0rc1", "<2.0rc1", "2.0a1"),
        ("1.0 2.0rc1", ">=2.0", None),
    ],
)
def test_pre_releases_are_for_projects_that_have_nothing_else(versions: str, specifier: str, wanted: str | None) -> None:
    """As uv does by default; where a project has final releases and none of them will do, the answer is no."""
    assert chosen(versions, specifier) == wanted


def test_pre_releases_are_for_who_names_one() -> None:
    assert chosen("1.0 2.0rc1", ">=2.0rc1", prereleases=("demo",)) == "2.0rc1"
    assert chosen("1.0 2.0rc1 2.0", ">=2.0rc1", prereleases=("demo",)) == "2.0"
    assert chosen("1.0 2.0rc1", "<2.0", prereleases=("demo",)) == "1.0"
    assert chosen("1.0 2.0rc1", "!=2.0", prereleases=("demo",)) == "2.0rc1"


def test_several_specifiers_hold_together() -> None:
    files = {"demo": [wheel("demo", text) for text in ("1.0", "1.4", "2.0")], "other": [wheel("other", "1")]}
    metadata = {"other 1": ("demo<2,!=1.4",)}
    assert solved(files, "demo>=1", "other", metadata=metadata) == {"demo": "1.0", "other": "1"}
    assert solved(files, "demo>=1.4", "other", metadata=metadata) is None
    assert solved(files, "demo>=1", "demo<1.5", metadata=metadata) == {"demo": "1.4"}


def test_a_local_version_is_newer_than_its_public_one() -> None:
    """ "local versions sort after the corresponding public version": an index's own build wins over the plain release."""  # noqa: D210
    assert chosen("1.0 1.0+cu126", "") == "1.0+cu126"
