"""A wheel read by ranges holds what the wheel holds, costs what was asked for, and damage is named."""

from __future__ import annotations

import os
import random
import struct
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.errors import UnavailableError
from provisioner.index.http.transport import Transport
from provisioner.index.model import IndexFile
from provisioner.index.settings import IndexSettings, settings_from_pip
from provisioner.measure import UnreadableArtefactError
from provisioner.measure.wheel import CHUNK, RemoteWheel
from tests.built_artefacts import zipped

if TYPE_CHECKING:
    from pathlib import Path

    from tests.loopback_index import LoopbackIndex
    from tests.unit.measure.conftest import OpenWheel

NOISE = random.Random(7).randbytes(3 * CHUNK)
MEMBERS = {"demo/small.py": b"x = 1\n", "demo/large.so": NOISE, "demo/zeros.bin": bytes(5 * CHUNK), "demo/empty": b""}


def test_members_are_the_same_packed_or_stored_remote_or_local(opened: OpenWheel, tmp_path: Path) -> None:
    content = zipped(MEMBERS, stored=("demo/large.so",))
    wheel = opened(content)
    assert wheel.names() == tuple(MEMBERS)
    assert {name: wheel.read(name) for name in wheel.names()} == MEMBERS
    assert [wheel.size(name) for name in MEMBERS] == [len(member) for member in MEMBERS.values()]
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(content)
    file = IndexFile(filename=path.name, url=path.as_uri(), index="find-links", path=str(path))
    with RemoteWheel(file, Transport(IndexSettings())) as local:
        assert {name: local.read(name) for name in local.names()} == MEMBERS


def test_a_small_member_costs_little_and_a_stream_that_is_left_costs_what_was_read(
    opened: OpenWheel, served: LoopbackIndex
) -> None:
    wheel = opened(zipped(MEMBERS))
    assert wheel.read("demo/small.py") == b"x = 1\n"
    assert wheel.fetched == served.bytes_sent < 80 * 1024
    first = next(iter(wheel.stream("demo/large.so")))
    assert NOISE.startswith(first)
    assert CHUNK <= wheel.fetched < CHUNK + 128 * 1024


def test_a_read_is_given_up_when_the_wheel_is_closed(opened: OpenWheel, served: LoopbackIndex) -> None:
    wheel = opened(zipped(MEMBERS))
    pieces = wheel.stream("demo/large.so")
    next(pieces)
    sent = served.bytes_sent
    wheel.close()
    with pytest.raises(UnavailableError, match="given up"):
        next(pieces)
    assert served.bytes_sent == sent


def test_well_packed_members_come_in_pieces_of_bounded_size(opened: OpenWheel) -> None:
    pieces = [len(piece) for piece in opened(zipped(MEMBERS)).stream("demo/zeros.bin")]
    assert sum(pieces) == 5 * CHUNK
    assert max(pieces) <= CHUNK


def test_a_member_that_is_not_there_is_named(opened: OpenWheel) -> None:
    with pytest.raises(UnreadableArtefactError, match="has no member `demo/none`"):
        opened(zipped(MEMBERS)).read("demo/none")


@pytest.mark.parametrize("content", [b"", b"not a wheel", zipped(MEMBERS)[:-30], b"PK\x05\x06" + bytes(18) + b"x"])
def test_what_is_no_wheel_is_named(opened: OpenWheel, content: bytes) -> None:
    with pytest.raises((UnreadableArtefactError, UnavailableError)):
        opened(content).read("demo/small.py")


def test_damage_inside_a_member_is_found(opened: OpenWheel) -> None:
    content = bytearray(zipped(MEMBERS, stored=("demo/large.so",)))
    content[content.index(NOISE[:64]) + 1000] ^= 0xFF
    with pytest.raises(UnreadableArtefactError, match=r"member `demo/large\.so` is damaged"):
        opened(bytes(content)).read("demo/large.so")


def test_damage_of_packed_bytes_is_found(opened: OpenWheel) -> None:
    content = bytearray(zipped({"demo/a.bin": b"abc" * 5000}))
    content[45:60] = bytes(15)
    with pytest.raises(UnreadableArtefactError, match=r"demo/a\.bin"):
        opened(bytes(content)).read("demo/a.bin")


def test_a_member_elsewhere_than_the_list_says_is_found(opened: OpenWheel) -> None:
    content = bytearray(zipped({"demo/a.bin": b"abc"}))
    content[:4] = struct.pack("<I", 0)
    with pytest.raises(UnreadableArtefactError, match="is not where the wheel says"):
        opened(bytes(content)).read("demo/a.bin")


def test_a_server_without_ranges_is_not_asked_for_the_whole_of_a_large_file(opened: OpenWheel, served: LoopbackIndex) -> None:
    served.ranges = False
    assert opened(zipped({"demo/a.bin": b"abc"})).read("demo/a.bin") == b"abc"
    with pytest.raises(UnavailableError, match="byte ranges"):
        opened(zipped(MEMBERS))


@pytest.mark.network
def test_a_real_wheel_on_the_real_index(tmp_path: Path) -> None:
    from provisioner.curate.artefacts import Artefacts

    settings = replace(settings_from_pip(os.environ), cache_directory=tmp_path)
    with Artefacts(settings) as artefacts:
        file = artefacts.find("nvidia_cuda_crt-13.5.37-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl")
        assert file is not None
        found = artefacts.measured(file)
    assert found.compilers == {"gcc": 17, "clang": 23}
    assert found.rsqrt_noexcept is True
    assert found.fetched < 100_000
