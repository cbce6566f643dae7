"""Whether the cache still says what it said: page by page and record by record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.index.store.cache import Cache, StoredPage
from provisioner.index.store.standing import stand

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_000_000.0
URL = "https://pypi.org/simple/demo/"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    made = Cache(tmp_path)
    made.store_page(StoredPage(url=URL, sha256="a" * 64, fetched=NOW - 100, fresh=600))
    made.store_record("requires:b", ["other>=2"])
    return made


def page(cache: Cache, sha256: str = "a" * 64, *, url: str = URL, is_offline: bool = False) -> list[list[object]]:
    return [[str(cache.path), url, sha256, is_offline]]


def record(cache: Cache, key: str = "requires:b") -> list[list[object]]:
    told: list[list[object]] = []
    import sys

    is_on = True

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if is_on and event == "provision.record":
            told.append(list(arguments))

    sys.addaudithook(hear)
    cache.record(key)
    is_on = False
    return told


def test_what_is_as_it_was_stands(cache: Cache) -> None:
    assert stand(page(cache), record(cache), now=NOW)


def test_nothing_stands_by_itself() -> None:
    assert stand([], [], now=NOW)


def test_another_page_does_not(cache: Cache) -> None:
    assert not stand(page(cache, "b" * 64), [], now=NOW)
    assert not stand(page(cache, url=f"{URL}x/"), [], now=NOW)


@pytest.mark.parametrize(("moment", "stands"), [(NOW, True), (NOW + 499, True), (NOW + 500, False), (NOW - 101, False)])
def test_a_page_stands_while_it_is_fresh_and_offline_for_ever(cache: Cache, moment: float, *, stands: bool) -> None:
    assert stand(page(cache), [], now=moment) is stands
    assert stand(page(cache, is_offline=True), [], now=moment)


def test_a_record_that_changed_came_or_went_does_not(cache: Cache) -> None:
    known, absent = record(cache), record(cache, "requires:c")
    assert stand([], [*known, *absent], now=NOW)
    cache.store_record("requires:c", [])
    assert not stand([], absent, now=NOW)
    cache.store_record("requires:b", ["other>=3"])
    assert not stand([], known, now=NOW)


def test_a_cache_that_is_gone_or_damaged_says_nothing(cache: Cache) -> None:
    pages = page(cache, is_offline=True)
    cache.close()
    cache.path.write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    assert not stand(pages, [], now=NOW)
    cache.path.unlink()
    assert not stand(pages, [], now=NOW)
    assert not cache.path.exists()
