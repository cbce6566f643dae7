"""Wheels in folders of this machine: no page says which Python they need, so they say it themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from provisioner.index.cache import Cache
from provisioner.index.http.transport import Transport
from provisioner.index.metadata.reader import MetadataReader
from provisioner.index.model import IndexFile
from tests.built_files import build_wheel, metadata_text

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.index.settings import IndexSettings
    from tests.unit.index.conftest import OpenIndex

DEMO = canonicalize_name("demo")


def put(folder: Path, version: str, requires_python: str | None) -> IndexFile:
    filename, content = build_wheel("demo", version, metadata=metadata_text("demo", version, (), requires_python))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / filename).write_bytes(content)
    return IndexFile(filename=filename, url="", index="find-links", path=str(folder / filename))


@pytest.mark.parametrize("kind", ["find-links", "index"])
def test_a_wheel_for_another_python_is_not_chosen(open_index: OpenIndex, tmp_path: Path, kind: str) -> None:
    """The target has 3.12."""
    for version, requires_python in (("3.0", ">=3.13"), ("2.0", ">=3.8"), ("1.0", None)):
        put(tmp_path / "shelf" / "demo", version, requires_python)
    client = (
        open_index(indexes={}, find_links=((tmp_path / "shelf" / "demo").as_uri(),))
        if kind == "find-links"
        else open_index(indexes={"shelf": (tmp_path / "shelf").as_uri()})
    )
    assert [(str(one.version), one.is_usable, one.why_not, one.blocked_by) for one in client.releases(DEMO)] == [
        ("3.0", False, "needs python >=3.13", "python"),
        ("2.0", True, "", ""),
        ("1.0", True, "", ""),
    ]


@pytest.fixture
def reader(settings: IndexSettings) -> MetadataReader:
    return MetadataReader(settings, Cache(settings.cache_directory), Transport(settings))


def test_a_wheel_that_was_replaced_is_read_again(settings: IndexSettings, tmp_path: Path) -> None:
    """What it says is cached on disk, for reading a wheel of PyTorch takes a tenth of a second."""
    for requires_python in (">=3.13", ">=3.8", ">=3.8"):
        file = put(tmp_path, "1.0", requires_python)
        reader = MetadataReader(settings, Cache(settings.cache_directory), Transport(settings))
        assert reader.with_python(file).requires_python == requires_python


def test_what_a_page_states_is_not_asked_of_the_wheel(reader: MetadataReader, tmp_path: Path) -> None:
    file = put(tmp_path, "1.0", ">=3.13")
    stated = IndexFile(filename=file.filename, url="", index="shelf", path=file.path, requires_python=">=3.8")
    assert reader.with_python(stated) is stated


def test_a_file_that_is_no_readable_wheel_stays_as_it_is(reader: MetadataReader, tmp_path: Path) -> None:
    broken = tmp_path / "demo-1.0-py3-none-any.whl"
    broken.write_bytes(b"no wheel")
    for path in (broken, tmp_path / "gone.whl", tmp_path / "demo-1.0.tar.gz"):
        file = IndexFile(filename=path.name, url="", index="shelf", path=str(path))
        assert reader.with_python(file) == file
