"""AMD targets in offload bundles, plain and packed, however the stream is cut."""

from __future__ import annotations

import struct
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from provisioner.measure.offload import PACKED_MAGIC, PLAIN_MAGIC, WINDOW, OffloadReader


def bundle(*targets: str) -> bytes:
    """A bundle as Clang's tool lays it out: the host first, then an entry for each target, images all zeros."""
    names = ["host-x86_64-unknown-linux-gnu-", *(f"hipv4-amdgcn-amd-amdhsa--{target}" for target in targets)]
    entries = b"".join(struct.pack("<QQQ", 4096, 64, len(name)) + name.encode() for name in names)
    return PLAIN_MAGIC + struct.pack("<Q", len(names)) + entries + bytes(500)


def packed(content: bytes, *, version: int, method: int) -> bytes:
    sizes = {1: "<I", 2: "<II", 3: "<QQ"}[version]
    body = zlib.compress(content) if method == 0 else b"\x28\xb5\x2f\xfd" + content
    lengths = [len(content)] if version == 1 else [len(body), len(content)]
    return PACKED_MAGIC + struct.pack("<HH", version, method) + struct.pack(sizes, *lengths) + bytes(8) + body


def read(content: bytes, *, size: int) -> OffloadReader:
    reader = OffloadReader()
    for start in range(0, len(content), size):
        reader.feed(content[start : start + size])
    reader.finish()
    return reader


@pytest.mark.parametrize("size", [100, 5000, 10 * WINDOW])
def test_plain_bundles(size: int) -> None:
    content = bytes(77) + bundle("gfx90a:sramecc+:xnack-", "gfx942") + bytes(2 * WINDOW) + bundle("gfx942", "gfx1100")
    assert read(content, size=size).targets == {"gfx1100": 1, "gfx90a": 1, "gfx942": 2}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_packed_bundles_are_unpacked_as_far_as_their_list(version: int) -> None:
    reader = read(packed(bundle("gfx90a", "gfx1201"), version=version, method=0), size=4096)
    assert reader.targets == {"gfx1201": 1, "gfx90a": 1}
    assert reader.unread == 0


def test_bundles_packed_with_zstd_are_read() -> None:
    plain = bundle("gfx90a", "gfx1201")
    body = zstandard.ZstdCompressor().compress(plain)
    head = PACKED_MAGIC + struct.pack("<HHQQ", 3, 1, len(body), len(plain)) + bytes(8)
    reader = read(head + body + bytes(WINDOW), size=4096)
    assert (reader.targets, reader.unread) == ({"gfx1201": 1, "gfx90a": 1}, 0)


def test_bundles_packed_with_zstd_that_cannot_be_read_are_counted_not_guessed() -> None:
    reader = read(packed(bundle("gfx90a"), version=3, method=1)[:60] + bytes(100), size=4096)
    assert (reader.targets, reader.unread) == ({}, 1)


@given(
    st.lists(
        st.one_of(st.binary(max_size=60), st.just(PLAIN_MAGIC), st.just(PACKED_MAGIC), st.just(bundle("gfx9"))), max_size=9
    )
)
def test_no_bytes_make_it_fail(pieces: list[bytes]) -> None:
    reader = OffloadReader()
    for piece in pieces:
        reader.feed(piece)
    reader.finish()
    assert set(reader.targets) <= {"gfx9"}
