"""A remote file read in parts is the same file, and a server that misbehaves is named."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING

import pytest

from provisioner.errors import UnavailableError
from provisioner.index.http.transport import Transport
from provisioner.index.metadata.ranged import SMALL, STEP, TAIL, RangedFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.index.settings import IndexSettings
    from tests.loopback_index import LoopbackIndex

PATH = "/files/demo-1.0-py3-none-any.whl"


@pytest.fixture
def transport(settings: IndexSettings) -> Iterator[Transport]:
    opened = Transport(settings)
    yield opened
    opened.close()


def ranged(served: LoopbackIndex, transport: Transport) -> RangedFile:
    return RangedFile(transport, f"{served.root}{PATH}", source="index `main`")


@pytest.mark.parametrize("padding", [0, 100, TAIL, 10 * TAIL])
def test_any_slice_is_the_slice_of_the_file(served: LoopbackIndex, transport: Transport, padding: int) -> None:
    served.add_wheel("demo", "1.0", padding=padding)
    content = served.files[PATH].content
    whole = io.BytesIO(content)
    chance = random.Random(padding)
    with ranged(served, transport) as stream:
        assert stream.seek(0, io.SEEK_END) == len(content)
        for _ in range(50):
            place, size = chance.randrange(len(content) + 10), chance.choice([0, 1, 100, TAIL, -1])
            assert (stream.seek(place), whole.seek(place)) == (place, place)
            assert stream.read(size) == whole.read(size)
            assert stream.tell() == min(whole.tell(), max(place, whole.tell()))


def test_a_span_is_not_kept_and_every_byte_is_counted(served: LoopbackIndex, transport: Transport) -> None:
    served.add_wheel("demo", "1.0", padding=10 * TAIL)
    content = served.files[PATH].content
    with ranged(served, transport) as stream:
        for _ in range(2):
            assert stream.span(100, 5000) == content[100:5000]
        assert stream.span(len(content) - 10, len(content) + 10) == content[-10:]
        assert stream.span(len(content), len(content) + 10) == b""
        assert stream.fetched == served.bytes_sent == TAIL + 2 * 4900
        assert stream.tell() == 0


def test_a_part_is_fetched_once(served: LoopbackIndex, transport: Transport) -> None:
    served.add_wheel("demo", "1.0", padding=10 * TAIL)
    with ranged(served, transport) as stream:
        for _ in range(3):
            stream.seek(0)
            stream.read(100)
        stream.seek(200)
        stream.read(STEP - 200)
    assert served.requests[PATH] == 2


@pytest.mark.parametrize(("padding", "stated", "first"), [(TAIL, True, SMALL), (2 * SMALL, True, TAIL), (TAIL, False, TAIL)])
def test_a_file_that_is_said_to_be_small_is_asked_for_as_a_whole(
    served: LoopbackIndex, transport: Transport, padding: int, first: int, *, stated: bool
) -> None:
    served.add_wheel("demo", "1.0", padding=padding)
    content = served.files[PATH].content
    size = len(content) if stated else None
    with RangedFile(transport, f"{served.root}{PATH}", source="index `main`", size=size) as stream:
        assert stream.fetched == min(first, len(content))
        assert stream.read(100) == content[:100]
    assert served.requests[PATH] == (1 if first > len(content) else 2)


def test_a_file_that_is_larger_than_its_index_says_is_read_like_any_other(served: LoopbackIndex, transport: Transport) -> None:
    served.add_wheel("demo", "1.0", padding=2 * SMALL)
    content = served.files[PATH].content
    with RangedFile(transport, f"{served.root}{PATH}", source="index `main`", size=1) as stream:
        assert stream.fetched == SMALL
        assert stream.read() == content


def test_a_file_that_is_not_there_is_named(served: LoopbackIndex, transport: Transport) -> None:
    with pytest.raises(UnavailableError) as caught:
        ranged(served, transport)
    assert caught.value.message == "index `main` answers 404 (Not Found)"
    assert caught.value.causes == (f"{served.root}{PATH}",)
