"""Files of an index on loopback, opened the way an audit opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from provisioner.index.http.transport import Transport
from provisioner.index.model import IndexFile
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.measure.wheel import RemoteWheel
from tests.built_artefacts import serve
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class OpenWheel(Protocol):
    """Serves the bytes of a wheel and opens it."""

    def __call__(self, content: bytes) -> RemoteWheel: ...


@pytest.fixture
def served() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as index:
        yield index


@pytest.fixture
def opened(served: LoopbackIndex, tmp_path: Path) -> Iterator[OpenWheel]:
    settings = IndexSettings(
        indexes=(IndexLocation(name="main", url=served.url),), retries=0, timeout=5, cache_directory=tmp_path / "cache"
    )
    transport = Transport(settings)
    wheels = []

    def open_wheel(content: bytes) -> RemoteWheel:
        file = serve(served, "demo-1.0-py3-none-any.whl", content)
        url = f"{served.root}{file.path}"
        wheels.append(RemoteWheel(IndexFile(filename=file.filename, url=url, index="main"), transport))
        return wheels[-1]

    yield open_wheel
    for wheel in wheels:
        wheel.close()
    transport.close()
