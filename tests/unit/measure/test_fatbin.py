"""GPU targets are read from fat binaries as NVIDIA's tools write them, however the stream is cut, and never from noise."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.measure.fatbin import CONTAINER_MAGIC, FatBinaryReader
from tests.built_artefacts import fat_binary, shared_library
from tests.strategies import examples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

HEADS = {
    "sm_90": (
        (
            "020001014000000058030000000000005403000000000000080001005a00000000000000000000001180000000000000"
            "0000000000000000f00c000000000000"
        ),
        856,
    ),
    "sm_90a": (
        (
            "020001014000000058030000000000005603000000000000080001005a00000000000000000000001180100000000000"
            "0000000000000000f00c000000000000"
        ),
        856,
    ),
    "compute_90a": (
        (
            "010001015000000080000000000000007a00000040000000000009005a00000000000000000000001180100000000000"
            "00000000000000007f0000000000000048000000000000000000000000000000"
        ),
        128,
    ),
    "sm_100": (
        (
            "020001017800000078040000000000007104000040000000080001006400000000000000000000001180000100000000"
            "00000000000000000a1300000000000048000000280000000002090000020c000002020100030d010103070101020300"
            "00040b08000900000000000000030e400400000000000000"
        ),
        1144,
    ),
    "sm_100f": (
        (
            "020001017800000078040000000000007204000040000000080001006400000000000000000000001180200100000000"
            "00000000000000000a1300000000000048000000280000000002090000020c000002020100030d010103070101020300"
            "00040b08000900000000000000030e400400000000000000"
        ),
        1144,
    ),
    "compute_100f": (
        (
            "010001015000000080000000000000007b00000040000000000009006400000000000000000000001180200000000000"
            "0000000000000000800000000000000048000000000000000000000000000000"
        ),
        128,
    ),
    "sm_120": (
        (
            "020001017800000070040000000000007004000040000000080001007800000000000000000000001180000100000000"
            "00000000000000000a1300000000000048000000280000000002090000020c000002020100030d010103070101020300"
            "00040b08005000000000000000030e400400000000000000"
        ),
        1136,
    ),
}
"""Heads of entries as `fatbinary` of CUDA 13.5 writes them, with the length of the image behind each."""


def fed(content: bytes, cuts: Sequence[int]) -> FatBinaryReader:
    reader = FatBinaryReader()
    edges = [0, *sorted(cut for cut in cuts if cut <= len(content)), len(content)]
    for start, stop in itertools.pairwise(edges):
        reader.feed(content[start:stop])
    return reader


def targets(content: bytes) -> Mapping[str, int]:
    """The targets of a library that is fed whole."""
    reader = FatBinaryReader()
    reader.feed(content)
    return reader.targets


@pytest.mark.parametrize("target", HEADS)
def test_heads_written_by_the_real_tool(target: str) -> None:
    head, length = HEADS[target]
    entry = bytes.fromhex(head) + bytes(length)
    assert targets(CONTAINER_MAGIC + len(entry).to_bytes(8, "little") + entry) == {target: 1}


def test_counts_are_of_every_container_and_sorted_by_architecture() -> None:
    content = bytes(5) + fat_binary("sm_100", "sm_90a", "compute_90") + bytes(9) + fat_binary("sm_90", "sm_100", "sm_90a")
    assert list(targets(content).items()) == [("compute_90", 1), ("sm_90", 1), ("sm_90a", 2), ("sm_100", 2)]


def test_a_magic_inside_an_image_is_not_a_container() -> None:
    inner = fat_binary("sm_35")
    outer = bytearray(fat_binary("sm_90", payload=len(inner) + 8))
    outer[-len(inner) :] = inner
    assert targets(bytes(outer)) == {"sm_90": 1}


def test_after_a_damaged_container_the_next_one_is_read() -> None:
    damaged = bytearray(fat_binary("sm_80", "sm_90"))
    damaged[16 + 64 + 24 + 4 : 16 + 64 + 24 + 8] = bytes(4)
    assert targets(bytes(damaged) + bytes(200) + fat_binary("sm_100")) == {"sm_80": 1, "sm_100": 1}


def test_other_kinds_of_images_are_no_targets() -> None:
    content = bytearray(fat_binary("sm_80"))
    content[16] = 8
    assert targets(bytes(content)) == {}


@given(st.lists(st.integers(0, 2000), max_size=30), st.integers(0, 300))
def test_the_way_a_stream_is_cut_changes_nothing(cuts: list[int], padding: int) -> None:
    noise = random.Random(padding).randbytes(padding)
    content = noise + fat_binary("sm_90", "sm_90a", "compute_100f") + noise + fat_binary("sm_120", payload=333) + noise
    reader = fed(content, cuts)
    assert dict(reader.targets) == {"compute_100f": 1, "sm_90": 1, "sm_90a": 1, "sm_120": 1}
    assert reader.position == len(content)
    assert reader.containers == 2


@examples(300)
@given(st.lists(st.one_of(st.binary(max_size=200), st.just(CONTAINER_MAGIC), st.just(fat_binary("sm_90")[:70])), max_size=12))
def test_no_bytes_make_it_fail(pieces: list[bytes]) -> None:
    reader = FatBinaryReader()
    for piece in pieces:
        reader.feed(piece)
    assert reader.position == sum(len(piece) for piece in pieces)
    whole = FatBinaryReader()
    whole.feed(b"".join(pieces))
    assert whole.targets == reader.targets


def test_a_compiled_library(tmp_path: Path) -> None:
    library = shared_library(tmp_path, section=fat_binary("sm_75", "sm_90a") + fat_binary("compute_90"))
    assert targets(library) == {"compute_90": 1, "sm_75": 1, "sm_90a": 1}
