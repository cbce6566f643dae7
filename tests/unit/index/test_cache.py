"""What the cache gives back is what it was given, or nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name
from packaging.version import Version

from provisioner.index.cache import FILE, Cache
from provisioner.index.client import SelectedReleases
from provisioner.index.model import IndexFile, PackageRelease
from provisioner.index.pages.reader import CachedPage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = CachedPage(
    url="https://x.example/demo/",
    sha256="a" * 64,
    etag='"1"',
    last_modified="then",
    fetched=1000.0,
    fresh=60.0,
    content_type="text/html",
    final_url="https://y.example/demo/",
    encoding="gzip",
)
WHEEL = IndexFile(
    filename="demo-1.0-py3-none-any.whl",
    url="https://x.example/demo-1.0-py3-none-any.whl",
    index="main",
    sha256="b" * 64,
    size=3,
    requires_python=">=3.9",
    upload_time="2026-01-01T00:00:00Z",
    yanked="",
    has_metadata=True,
    metadata_sha256="c" * 64,
    provenance="https://x.example/integrity/demo/1.0/provenance",
)
DEMO = canonicalize_name("demo")
VERSIONS = ("2.0", "1.0", "2!1.0", "1.0a1", "1.0.post1", "1.0.dev3", "1.0+cu126.d1", "1!2.3rc4.post5.dev6+a.7")
RELEASES = SelectedReleases(
    page="a" * 64,
    releases=(
        PackageRelease.of(name=DEMO, version_text="2.0", file=None, why_not="why", blocked_by="python", requires_python=">=9"),
        PackageRelease.of(name=DEMO, version_text="1.0", file=WHEEL, why_not="yanked"),
        *(PackageRelease.of(name=DEMO, version_text=text, file=None) for text in VERSIONS),
    ),
)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with closing(Cache(tmp_path)) as opened:
        yield opened


@pytest.mark.parametrize("value", [PAGE, RELEASES, "text", 7, True, ("a", "b")], ids=lambda value: type(value).__name__)
def test_an_entry_survives_the_run(cache: Cache, tmp_path: Path, value: object) -> None:
    assert cache.load("key", type(value)) is None
    cache.store("key", "something before")
    cache.store("key", value)
    cache.close()
    with closing(Cache(tmp_path)) as again:
        assert again.load("key", type(value)) == value


@pytest.mark.parametrize("value", [None, 7, ["a"], {}, {"page": "a"}, {"page": "a", "releases": [["demo", 1, None]]}])
def test_an_entry_of_another_shape_is_a_miss(cache: Cache, value: object) -> None:
    cache.store("key", value)
    assert cache.load("key", SelectedReleases) is None


@pytest.mark.parametrize("blob", [b"", b"junk", b"x\x9c\x03\x00\x00\x00\x00\x01", "text", None, 7])
def test_a_damaged_entry_is_a_miss(cache: Cache, tmp_path: Path, blob: object) -> None:
    cache.store("key", "kept")
    assert cache.load("key", str) == "kept"
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.execute("UPDATE entry SET content = ?", (blob,))
    assert cache.load("key", str) is None
    cache.store("key", "again")
    assert cache.load("key", str) == "again"


def test_half_a_character_cannot_be_a_key(cache: Cache) -> None:
    cache.store("\ud800", "kept")
    assert cache.load("\ud800", str) is None


def test_the_body_of_a_page_is_kept_beside_the_table(cache: Cache) -> None:
    assert cache.body("https://x.example/demo/") is None
    cache.store_body("https://x.example/demo/", b"one")
    cache.store_body("https://x.example/demo/", b"two")
    assert cache.body("https://x.example/demo/") == b"two"


def test_freshness_ends_and_a_clock_set_back_ends_it_too() -> None:
    assert [PAGE.is_fresh(now) for now in (999.0, 1000.0, 1059.0, 1060.0)] == [False, True, True, False]


def test_a_release_from_the_cache_has_its_version(cache: Cache) -> None:
    cache.store("key", RELEASES)
    loaded = cache.load("key", SelectedReleases)
    assert loaded is not None
    assert [one.version for one in loaded.releases[2:]] == [Version(text) for text in VERSIONS]


def test_a_release_from_the_cache_has_its_file(cache: Cache) -> None:
    cache.store("key", RELEASES)
    loaded = cache.load("key", SelectedReleases)
    assert loaded is not None
    without, yanked, *_ = loaded.releases
    assert (without.file, without.has_file, without.is_wheel) == (None, False, False)
    assert (yanked.file, yanked.has_file, yanked.is_wheel) == (WHEEL, True, True)
    source = replace(WHEEL, filename="demo-1.0.tar.gz")
    assert (yanked.with_file(source).file, yanked.with_file(source).is_wheel) == (source, False)
    assert yanked.with_file(source).why_not == "yanked"
