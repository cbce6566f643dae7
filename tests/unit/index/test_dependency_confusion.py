"""What is said of names that came from where they are by the order of the indexes alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError
from provisioner.index.cache import NotCachedError
from provisioner.index.dependency_confusion import confusion_notices
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.words.notice import source_notice_words

if TYPE_CHECKING:
    from packaging.utils import NormalizedName

ONE, TWO, THREE = (IndexLocation(name=name, url=f"https://me:s3cret@{name}.example/simple") for name in ("one", "two", "three"))
SETTINGS = IndexSettings(indexes=(ONE, TWO, THREE), main_index="three")
A, B, C = (canonicalize_name(name) for name in "abc")


def told(chosen: dict[NormalizedName, IndexLocation], **others: str) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """The lines, and what was asked; `others` are the names each index has other files of."""
    asked: list[tuple[str, str]] = []

    def has_others(index: IndexLocation, name: NormalizedName) -> bool:
        asked.append((index.name, name))
        return name in others.get(index.name, "")

    with ThreadPoolExecutor(2) as pool:
        lines = tuple(map(source_notice_words, confusion_notices(chosen, SETTINGS, has_others, workers=lambda: pool)))
    return lines, sorted(asked)


def test_only_later_indexes_are_asked_and_only_for_names_that_came_before() -> None:
    lines, asked = told({A: ONE, B: TWO, C: THREE})
    assert asked == [("three", "a"), ("three", "b"), ("two", "a")]
    default = "and not from `three` (https://three.example/simple), which is the default"
    assert lines == (
        f"from index `one` (https://one.example/simple) {default}: a",
        f"from index `two` (https://two.example/simple) {default}: b",
    )


def test_names_with_the_same_rivals_share_a_line() -> None:
    lines, _ = told({A: ONE, B: ONE, C: ONE}, two="ab", three="abc")
    assert lines == (
        (
            "a, b: taken from index `one` (https://one.example/simple), and `two` (https://two.example/simple) and "
            "`three` (https://three.example/simple) have other files under these names, too; say whose they are under "
            "`indexes:`, by `packages: [a, b]`"
        ),
        (
            "c: taken from index `one` (https://one.example/simple), and `three` (https://three.example/simple) has other "
            "files under this name, too; say whose it is under `indexes:`, by `packages: [c]`"
        ),
    )


def test_of_many_names_the_first_are_told() -> None:
    many = {canonicalize_name(f"n{number:02}"): TWO for number in range(20)}
    lines, _ = told(many, three=" ".join(many))
    assert lines[0].startswith("n00, n01, n02, n03, n04, n05, n06, n07 and 12 more: taken from index `two` ")
    assert lines[0].endswith("say whose they are under `indexes:`, by `packages:`")
    lines, _ = told(dict(list(many.items())[:9]), three=" ".join(many))
    assert lines[0].startswith("n00, n01, n02, n03, n04, n05, n06, n07, n08: taken from index `two` ")


@pytest.mark.parametrize(
    ("error", "reason", "times"),
    [
        (NotCachedError("`a` of index two"), "offline, and not in the cache", 2),
        (
            UnavailableError("index `two` cannot be reached: no answer within 5 s"),
            "index `two` cannot be reached: no answer within 5 s",
            1,
        ),
    ],
)
def test_what_is_not_known_is_said(error: UnavailableError, reason: str, times: int) -> None:
    asked = []

    def has_others(index: IndexLocation, name: NormalizedName) -> bool:
        if index != TWO:
            return False
        asked.append(name)
        raise error

    settings = IndexSettings(indexes=(ONE, TWO))
    with ThreadPoolExecutor(1) as pool:
        lines = tuple(map(source_notice_words, confusion_notices({A: ONE, B: ONE}, settings, has_others, workers=lambda: pool)))
    assert lines == (f"whether index `two` (https://two.example/simple) has other files under a, b is not known: {reason}",)
    assert len(asked) == times


def test_one_index_leaves_no_doubt() -> None:
    def never(index: IndexLocation, name: NormalizedName) -> bool:
        raise AssertionError((index, name))

    with ThreadPoolExecutor(1) as pool:
        assert confusion_notices({A: ONE}, IndexSettings(indexes=(ONE,)), never, workers=lambda: pool) == ()
