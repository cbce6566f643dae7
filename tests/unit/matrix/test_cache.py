"""The cache gives exactly what the YAML gives, and a bad cache is as good as none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from provisioner.errors import InvalidDocumentError
from provisioner.matrix.cache import FORMAT, SHIPPED, cached_matrix, pack, ship, unpack
from provisioner.matrix.load import load_matrix

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.matrix.model import Matrix

MATRIX = """\
order: [cuda, driver]
components:
  cuda: {title: CUDA, file: cuda.yaml}
  driver: {title: driver, file: driver.yaml, virtual: true}
"""
CUDA = """\
sources: {notes: {title: release notes}}
releases:
  - {version: "12.6.3", requires: {driver: ">=525.60.13"}, source: [notes]}
"""
DRIVER = """\
releases:
  - {version: "560.35.05", source: [notes]}
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small matrix, and a cache directory of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = tmp_path / "rules"
    found.mkdir()
    for name, text in (("matrix", MATRIX), ("cuda", CUDA), ("driver", DRIVER)):
        (found / f"{name}.yaml").write_text(text, encoding="utf-8")
    return found


def test_unpacking_gives_back_the_whole_shipped_matrix() -> None:
    shipped = load_matrix()
    content = pack(shipped)
    found = unpack(content, shipped.digest)
    assert found == shipped
    # Versions are equal that are spelled differently (13 and 13.0), and a lock holds the spelling.
    assert repr(found) == repr(shipped)
    assert pack(found) == content


def without_releases(matrix: Matrix) -> Matrix:
    """Return another matrix than the YAML says, under the same hash: who gets it did not read the YAML."""
    return replace(matrix, components={name: replace(one, releases=()) for name, one in matrix.components.items()})


def test_a_second_run_reads_the_cache_and_not_the_yaml(directory: Path, tmp_path: Path) -> None:
    first = cached_matrix(directory)
    (kept,) = (tmp_path / "cache").rglob("*.cache")
    assert unpack(kept.read_bytes(), first.digest) == first
    kept.write_bytes(pack(without_releases(first)))
    assert cached_matrix(directory) == without_releases(first)


def test_a_matrix_that_was_shipped_decoded_is_not_read_from_yaml_and_not_kept_again(directory: Path, tmp_path: Path) -> None:
    ship(directory, directory / SHIPPED)
    first = load_matrix(directory)
    assert cached_matrix(directory) == first
    (directory / SHIPPED).write_bytes(pack(without_releases(first)))
    assert cached_matrix(directory) == without_releases(first)
    assert not (tmp_path / "cache").exists()


def test_a_matrix_that_was_shipped_is_left_alone_where_the_yaml_is_another_by_now(directory: Path) -> None:
    ship(directory, directory / SHIPPED)
    (directory / "cuda.yaml").write_text(CUDA.replace("12.6.3", "12.8.1"), encoding="utf-8")
    assert str(cached_matrix(directory).components["cuda"].releases[0].version) == "12.8.1"


def test_a_matrix_with_mistakes_is_not_shipped(directory: Path) -> None:
    (directory / "cuda.yaml").write_text(CUDA.replace("12.6.3", "no version"), encoding="utf-8")
    with pytest.raises(InvalidDocumentError):
        ship(directory, directory / SHIPPED)
    assert not (directory / SHIPPED).exists()


def test_a_changed_file_is_read_again(directory: Path) -> None:
    cached_matrix(directory)
    (directory / "cuda.yaml").write_text(CUDA.replace("12.6.3", "12.8.1"), encoding="utf-8")
    assert str(cached_matrix(directory).components["cuda"].releases[0].version) == "12.8.1"


def test_what_other_structs_packed_is_ignored(directory: Path) -> None:
    matrix = load_matrix(directory)
    head, body = pack(matrix).split(b"\n", 1)
    data = msgpack.decode(body)
    data["components"]["cuda"]["releases"][0]["a key of old"] = 1
    other = msgpack.encode(data)
    changed = head.replace(f"{crc32(body):08x}".encode(), f"{crc32(other):08x}".encode()) + b"\n" + other
    assert unpack(changed, matrix.digest) is None


@pytest.mark.parametrize("content", ["", "{", "\n", f"provision matrix {FORMAT}", f"provision matrix {FORMAT} 0 0\n"])
def test_a_damaged_cache_is_ignored_and_replaced(directory: Path, tmp_path: Path, content: str) -> None:
    first = cached_matrix(directory)
    (path,) = (tmp_path / "cache").rglob("*.cache")
    sound = path.read_bytes()
    path.write_text(content, encoding="utf-8")
    assert cached_matrix(directory) == first
    assert path.read_bytes() == sound


def test_a_flipped_byte_in_any_part_is_found_at_once(directory: Path, tmp_path: Path) -> None:
    first = cached_matrix(directory)
    (path,) = (tmp_path / "cache").rglob("*.cache")
    sound = path.read_bytes()
    for place in range(len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        assert cached_matrix(directory) == first
        assert path.read_bytes() == sound


def test_a_cache_of_another_matrix_under_this_name_is_not_believed(directory: Path, tmp_path: Path) -> None:
    first = cached_matrix(directory)
    (path,) = (tmp_path / "cache").rglob("*.cache")
    shutil.copytree(directory, tmp_path / "other")
    (tmp_path / "other" / "cuda.yaml").write_text(CUDA.replace("12.6.3", "12.8.1"), encoding="utf-8")
    assert cached_matrix(tmp_path / "other") != first
    (other,) = set((tmp_path / "cache").rglob("*.cache")) - {path}
    path.write_bytes(other.read_bytes())
    assert cached_matrix(directory) == first


def test_a_place_that_cannot_hold_a_cache_does_no_harm(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a directory should be", encoding="utf-8")
    assert cached_matrix(directory) == load_matrix(directory)


def test_the_same_files_under_another_name_have_positions_of_their_own(directory: Path) -> None:
    assert str(cached_matrix(directory).positions["cuda==12.6.3"]) == "rules/cuda.yaml:3"
    moved = directory.rename(directory.parent / "mine")
    assert str(cached_matrix(moved).positions["cuda==12.6.3"]) == "mine/cuda.yaml:3"


def test_a_warm_start_reads_no_yaml(directory: Path) -> None:
    cached_matrix(directory)
    program = (
        "import sys, pathlib\n"
        "from provisioner.matrix.cache import cached_matrix\n"
        "cached_matrix(pathlib.Path(sys.argv[1]))\n"
        "print('ruamel.yaml' in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", program, str(directory)], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


def test_the_cache_file_is_named_after_the_content(directory: Path, tmp_path: Path) -> None:
    digest = cached_matrix(directory).digest
    assert [path.name for path in (tmp_path / "cache").rglob("*.cache")] == [f"rules-{digest}-{FORMAT}.cache"]
