"""Clients with a cache of their own, for indexes that serve real HTTP on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest
from msgspec.structs import replace

from provisioner.index.client import PackageIndex
from provisioner.index.model import Environment
from provisioner.index.settings import IndexLocation, IndexSettings
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TARGET = Environment(platform="linux/amd64", python="3.12", glibc=(2, 28))


class OpenIndex(Protocol):
    """Makes a client of the loopback index, or of the indexes given by name."""

    def __call__(self, *, indexes: dict[str, str] | None = None, **changes: Any) -> PackageIndex: ...  # noqa: ANN401


@pytest.fixture
def served() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as index:
        yield index


@pytest.fixture
def settings(served: LoopbackIndex, tmp_path: Path) -> IndexSettings:
    return IndexSettings(
        indexes=(IndexLocation(name="main", url=served.url),), retries=0, timeout=5, cache_directory=tmp_path / "cache"
    )


@pytest.fixture
def open_index(settings: IndexSettings) -> Iterator[OpenIndex]:
    opened: list[PackageIndex] = []

    def make(*, indexes: dict[str, str] | None = None, **changes: Any) -> PackageIndex:  # noqa: ANN401
        if indexes is not None:
            changes["indexes"] = tuple(IndexLocation(name=name, url=url) for name, url in indexes.items())
        client = PackageIndex(replace(settings, **changes), TARGET)
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.close()
