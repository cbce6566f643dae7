"""Files that several wheels write: found in their RECORDs, and rows of the matrix about them measured again."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import pytest

from provisioner.curate.artefacts import Artefacts
from provisioner.curate.audit import audited, rows
from provisioner.curate.shared_files import overlaps, recorded_hash
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.matrix.model import FileOwner, SharedFile
from tests import small
from tests.built_artefacts import serve, zipped
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.curate.audit_verdict import Audited
    from provisioner.matrix.model import Matrix

PATH = "nvidia/nccl/lib/libnccl.so.2"
RECORD = "nccl_a-1.dist-info/RECORD"


def hashed(content: bytes) -> str:
    """A hash as a RECORD has it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def record(**members: bytes) -> str:
    """A RECORD of members, of which `__` in a name stands for a slash and `_dot_` for a dot."""
    paths = {name.replace("__", "/").replace("_dot_", "."): content for name, content in members.items()}
    return "".join(f"{path},{hashed(content)},{len(content)}\n" for path, content in paths.items())


@pytest.fixture
def index() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as served:
        yield served


def matrix(owner: FileOwner) -> Matrix:
    other = FileOwner(distribution="nccl-b", artefact="nccl_b-1-py3-none-any.whl", sha256="0" * 64, content=hashed(b"b"))
    row = SharedFile(name="nccl", path=PATH, owners=(owner, other), because="of its name", source=("invented",))
    return small.matrix((), {}, shared_files=(row,))


def audit(index: LoopbackIndex, folder: Path, owner: FileOwner) -> Audited:
    location = IndexLocation(name="pypi", url=index.url)
    known = matrix(owner)
    wanted = rows(known, component="shared-files", version="nccl")
    with Artefacts(IndexSettings(indexes=(location,), cache_directory=folder / "cache")) as artefacts:
        return next(one for one in audited(known, wanted[:1], artefacts))


def served(index: LoopbackIndex, text: str) -> FileOwner:
    filename = "nccl_a-1-py3-none-any.whl"
    content = zipped({PATH: b"a", RECORD: text.encode()})
    serve(index, filename, content)
    sha256 = hashlib.sha256(content).hexdigest()
    return FileOwner(distribution="nccl-a", artefact=filename, sha256=sha256, content=hashed(b"a"))


def outcomes(found: Audited) -> dict[str, tuple[str, str]]:
    return {one.field: (one.outcome, one.read) for one in found.findings}


def test_a_row_is_confirmed_where_the_record_states_path_and_hash(index: LoopbackIndex, tmp_path: Path) -> None:
    found = audit(index, tmp_path, served(index, f"{PATH},{hashed(b'a')},1\n"))
    assert outcomes(found) == {
        "sha256": ("confirmed", "the index announces the same"),
        "path": ("confirmed", "its RECORD lists it"),
        "content": ("confirmed", f"its RECORD says {hashed(b'a')}"),
    }
    assert found.row.name == "shared-files==nccl+nccl-a"


def test_another_content_refutes_a_row(index: LoopbackIndex, tmp_path: Path) -> None:
    found = audit(index, tmp_path, served(index, f"{PATH},{hashed(b'c')},1\n"))
    assert (found.outcome, outcomes(found)["content"]) == ("refuted", ("refuted", f"its RECORD says {hashed(b'c')}"))


def test_a_path_that_is_not_there_refutes_a_row(index: LoopbackIndex, tmp_path: Path) -> None:
    found = audit(index, tmp_path, served(index, f"elsewhere,{hashed(b'a')},1\n"))
    assert outcomes(found)["path"] == ("refuted", "its RECORD does not list it")
    assert found.outcome == "refuted"


def test_a_wheel_without_a_record_is_not_measurable(index: LoopbackIndex, tmp_path: Path) -> None:
    owner = served(index, "")
    content = zipped({PATH: b"a"})
    serve(index, owner.artefact, content)
    owner = FileOwner(distribution="nccl-a", artefact=owner.artefact, sha256=hashlib.sha256(content).hexdigest(), content="")
    found = audit(index, tmp_path, owner)
    assert (found.outcome, found.why_not) == ("not measurable", f"`{owner.artefact}` cannot be measured: it has no RECORD")


def test_a_record_states_a_hash_or_none() -> None:
    text = f'a.py,{hashed(b"a")},1\n"b, c.py",{hashed(b"b")},1\na-1.dist-info/RECORD,,\n'
    assert [recorded_hash(text, path) for path in ("b, c.py", "a-1.dist-info/RECORD", "d.py")] == [hashed(b"b"), "", None]


def test_paths_of_different_content_overlap_and_equal_ones_do_not() -> None:
    first = record(cv2__cv2_dot_so=b"1", cv2__data=b"same", own=b"1")
    second = record(cv2__cv2_dot_so=b"2", cv2__data=b"same", other=b"2")
    assert list(overlaps({"opencv-b": second, "opencv-a": first, "else": record(own2=b"1")})) == [
        (("opencv-a", "opencv-b"), ("cv2/cv2.so",))
    ]


def test_what_is_installed_from_a_scheme_overlaps_too() -> None:
    first = f"a-1.data/purelib/cv2/x.py,{hashed(b'1')},1\n"
    assert list(overlaps({"a": first, "b": record(cv2__x_dot_py=b"2")})) == [(("a", "b"), ("cv2/x.py",))]


def test_metadata_namespaces_and_what_has_no_hash_do_not_overlap() -> None:
    first = f"nvidia/__init__.py,{hashed(b'')},0\nx-1.dist-info/METADATA,{hashed(b'1')},1\nplain.py,,\n"
    second = f"nvidia/__init__.py,{hashed(b'c')},1\nx-1.dist-info/METADATA,{hashed(b'2')},1\nplain.py,{hashed(b'2')},1\n"
    assert list(overlaps({"a": first, "b": second})) == []
