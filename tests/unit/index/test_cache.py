"""What the cache gives back is what it was given, or nothing."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from provisioner.index.model import IndexFile, PackageRelease
from provisioner.index.store.cache import FILE, Cache, StoredPage
from provisioner.index.store.compact import decode_releases, encode_releases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE = StoredPage(
    url="https://x.example/demo/",
    sha256="a" * 64,
    etag='"1"',
    modified="then",
    fetched=1000.0,
    fresh=60.0,
    content_type="text/html",
    answered="https://y.example/demo/",
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


def test_a_page_is_kept_with_how_to_ask_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.page(PAGE.url) is None
    cache.store_page(PAGE)
    cache.close()
    again = Cache(tmp_path)
    assert again.page(PAGE.url) == PAGE
    again.store_page(replace(PAGE, fetched=2000.0))
    assert again.page(PAGE.url) == replace(PAGE, fetched=2000.0)
    again.close()


def test_a_selection_belongs_to_one_body_and_one_wish(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store_selection(PAGE, "wish", b"[1]")
    assert cache.selection(PAGE, "wish") == b"[1]"
    assert cache.selection(PAGE, "another") is None
    assert cache.selection(replace(PAGE, sha256="other"), "wish") is None
    cache.close()


def test_freshness_ends_and_a_clock_set_back_ends_it_too() -> None:
    assert [PAGE.is_fresh(now) for now in (999.0, 1000.0, 1059.0, 1060.0)] == [False, True, True, False]


@pytest.mark.parametrize("blob", [b"", b"junk", b"x\x9c\x03\x00\x00\x00\x00\x01", "text", None, 7])
def test_a_damaged_entry_is_a_miss(tmp_path: Path, blob: object) -> None:
    cache = Cache(tmp_path)
    cache.store_record("key", ["kept"])
    assert cache.record("key") == ["kept"]
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("UPDATE record SET content = ?", (blob,))
    connection.commit()
    connection.close()
    assert cache.record("key") is None
    cache.store_record("key", ["again"])
    assert cache.record("key") == ["again"]
    cache.close()


def test_releases_survive_their_rows() -> None:
    name = canonicalize_name("demo")
    releases = (
        PackageRelease(name=name, version=Version("2.0"), file=None, why_not="why", blocked_by="python", requires_python=">=9"),
        PackageRelease(name=name, version=Version("1.0"), file=WHEEL, why_not="yanked"),
    )
    found = decode_releases(encode_releases(releases))
    assert found == releases
    assert [str(one.version) for one in found] == ["2.0", "1.0"]


@pytest.mark.parametrize(
    "kept",
    [
        None,
        b"",
        b"7",
        b"[7]",
        b"[[]]",
        b'[["demo"]]',
        b'[["demo", 1, null]]',
        b'[["demo", "1.0"',
        b"\xff",
        b'[["\xff", "1.0", null]]',
    ],
)
def test_rows_of_another_shape_are_a_miss(kept: bytes | None) -> None:
    assert decode_releases(kept) is None


@pytest.mark.parametrize("text", ["1.0", "2!1.0", "1.0a1", "1.0.post1", "1.0.dev3", "1.0+cu126.d1", "1!2.3rc4.post5.dev6+a.7"])
def test_a_kept_version_is_the_version(text: str) -> None:
    name = canonicalize_name("demo")
    (found,) = decode_releases(encode_releases([PackageRelease(name=name, version=Version(text), file=None)])) or ()
    kept, version = found.version, Version(text)
    assert (str(kept), kept, hash(kept)) == (text, version, hash(version))
    parts = ("epoch", "release", "pre", "post", "dev", "local", "public", "base_version", "is_prerelease", "major", "micro")
    assert [getattr(kept, part) for part in parts] == [getattr(version, part) for part in parts]
    assert (kept < Version("99!0"), Version("99!0") > kept, kept in SpecifierSet(f"==={text}")) == (True, True, True)
    assert len({version, kept}) == 1


def test_a_kept_version_is_taken_apart_once_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of two threads, the later would take away the sort key that the earlier one was about to compare.
    kept = encode_releases([PackageRelease(name=canonicalize_name("demo"), version=Version("1.0rc1"), file=None)])
    (found,) = decode_releases(kept) or ()
    started, final, taken_apart = threading.Barrier(4), Version("1.0"), []

    def slowly(self: Version, text: str, whole: Callable[[Version, str], None] = Version.__init__) -> None:
        taken_apart.append(text)
        time.sleep(0.05)
        whole(self, text)

    def ask() -> bool:
        started.wait()
        return found.version < final

    monkeypatch.setattr(Version, "__init__", slowly)
    with ThreadPoolExecutor(4) as pool:
        assert [one.result() for one in [pool.submit(ask) for _ in range(4)]] == [True] * 4
    assert taken_apart == ["1.0rc1"]


def test_a_kept_version_has_no_other_parts_than_a_version() -> None:
    (found,) = (
        decode_releases(encode_releases([PackageRelease(name=canonicalize_name("demo"), version=Version("1"), file=None)]))
        or ()
    )
    with pytest.raises(AttributeError, match="no_such_part"):
        getattr(found.version, "no_such_part")  # noqa: B009 - a type checker knows that there is none
