"""PEP 592: a yanked file is "always ignored, unless they are the only file that matches a version specifier that 'pins'"."""

from __future__ import annotations

import pytest

from tests.file_shelf import listed, solved, wheel


def chosen(versions: str, *packages: str, **more: dict[str, tuple[str, ...]]) -> str | None:
    """The version of `demo` that is chosen; those in brackets are yanked. `other 1` may require what `metadata` says."""
    files = {
        "demo": [
            wheel("demo", text.strip("()"), yanked="broken" if text.startswith("(") else None) for text in versions.split()
        ],
        "other": [wheel("other", "1")],
    }
    pins = solved(files, *packages, **more)  # type: ignore[arg-type]
    return None if pins is None else pins["demo"]


@pytest.mark.parametrize(
    ("versions", "specifier", "wanted"),
    [
        ("1.0 (2.0)", "", "1.0"),
        ("1.0 (2.0)", ">=1", "1.0"),
        ("1.0 (2.0)", ">=2", None),
        ("1.0 (2.0)", "~=2.0", None),
        ("1.0 (2.0)", "==2.*", None),
        ("1.0 (2.0)", "!=1.0", None),
        ("1.0 (2.0)", "==2.0", "2.0"),
        ("1.0 (2.0)", "==2", "2.0"),
        ("1.0 (2.0)", "===2.0", "2.0"),
        ("1.0 (2.0)", "===2", None),
        ("1.0 (2.0)", ">=1,==2.0", "2.0"),
        ("1.0 (2.0)", "==2.0,!=2.0.*", None),
        ("(1.0) (2.0)", "", None),
        ("(1.0) (2.0)", "==1.0", "1.0"),
        # "matching this version specifier should otherwise be done as per PEP 440 for things like local versions, zero padding"
        ("(2.0+cu1)", "==2.0", "2.0+cu1"),
        ("(2.0) 2.0+cu1", "==2.0", "2.0+cu1"),
        ("2.0 (2.0+cu1)", "==2.0", "2.0"),
        ("2.0 (2.0+cu1)", "==2.0+cu1", "2.0+cu1"),
        # a pre-release is no better for being the only one that was not yanked
        ("(1.0) 2.0rc1", "", "2.0rc1"),
        ("(1.0) 2.0rc1", "==1.0", "1.0"),
    ],
)
def test_a_yanked_version_is_for_who_pins_it(versions: str, specifier: str, wanted: str | None) -> None:
    assert chosen(versions, f"demo{specifier}") == wanted


def test_the_pin_of_another_distribution_counts() -> None:
    """As in pip; uv takes yanked versions only for pins of the person who asks."""
    assert chosen("1.0 (2.0)", "other", metadata={"other 1": ("demo==2.0",)}) == "2.0"
    assert chosen("1.0 (2.0)", "other", metadata={"other 1": ("demo>=2.0",)}) is None
    assert chosen("1.0 (2.0)", "other", metadata={"other 1": ("demo",)}) == "1.0"


def test_a_pin_in_the_spec_is_for_everybody_and_one_of_a_distribution_for_itself() -> None:
    assert chosen("1.0 (2.0)", "demo==2.0", "other", metadata={"other 1": ("demo>=1",)}) == "2.0"
    assert chosen("1.0 (2.0)", "demo>=1", "other", metadata={"other 1": ("demo==2.0",)}) is None


def test_a_constraint_that_pins_lets_it_in() -> None:
    assert chosen("1.0 (2.0)", "demo", constraints=["demo==2.0"]) == "2.0"  # type: ignore[arg-type]
    assert chosen("1.0 (2.0)", "demo", constraints=["demo>=2.0"]) is None  # type: ignore[arg-type]


def test_of_a_version_with_some_yanked_files_another_file_is_taken() -> None:
    """Yanking is of files on an index that knows it so (PEP 592); PyPI yanks all files of a release at once."""
    good = listed("demo-1.0-py3-none-any.whl")
    better = listed("demo-1.0-cp312-cp312-manylinux2014_x86_64.whl", yanked="crashes")
    assert solved({"demo": [better, good]}, "demo>=1") == {"demo": "1.0"}
    assert solved({"demo": [better]}, "demo>=1") is None
    assert solved({"demo": [better]}, "demo==1.0") == {"demo": "1.0"}
