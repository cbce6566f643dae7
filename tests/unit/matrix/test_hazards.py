"""What a matrix says of shared files: read, refused with its place, and true of the shipped one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.matrix.load import load_matrix
from tests.shipped import shipped
from tests.unit.matrix.test_distributions import INDEX, write

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.matrix.model import Matrix

PATH = "nvidia/nccl/lib/libnccl.so.2"
SAME = f"7:5: shared_files[0].owners: all owners of `{PATH}` have the same content, so it does not matter whose is in effect"
HASHES = [f"sha256={letter * 43}" for letter in "AB"]
HAZARDS = f"""\
sources:
  records: {{title: RECORD, read: "2026-01-01", measured: true}}
shared_files:
  - name: nccl
    path: nvidia/nccl/lib/libnccl.so.2
    because: of its name
    owners:
      - {{distribution: nccl-a, artefact: nccl_a-1-py3-none-any.whl, sha256: {"a" * 64}, content: {HASHES[0]}}}
      - {{distribution: nccl-b, versions: ">=2", artefact: nccl_b-2-py3-none-any.whl, sha256: {"b" * 64}, content: {HASHES[1]}}}
    source: [records]
"""


def load(directory: Path, hazards: str = HAZARDS) -> Matrix:
    target = write(directory)
    (target / "hazards.yaml").write_text(hazards, encoding="utf-8")
    (target / "matrix.yaml").write_text(f"{INDEX}hazards: hazards.yaml\n", encoding="utf-8")
    return load_matrix(target)


def test_a_matrix_holds_its_shared_files(tmp_path: Path) -> None:
    matrix = load(tmp_path)
    (row,) = matrix.shared_files
    assert (row.name, row.path, row.refused, row.because) == ("nccl", "nvidia/nccl/lib/libnccl.so.2", True, "of its name")
    assert [(one.distribution, one.versions, one.content) for one in row.owners] == [
        ("nccl-a", "", HASHES[0]),
        ("nccl-b", ">=2", HASHES[1]),
    ]
    assert str(matrix.positions["shared-file:nccl"]) == "rules/hazards.yaml:4"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "distribution: nccl-b",
            "distribution: NCCL_B",
            "9:10: shared_files[0].owners[1].distribution: `NCCL_B` is spelled `nccl-b` by indexes",
        ),
        (
            ">=2",
            "2.x",
            "9:32: shared_files[0].owners[1].versions: `2.x` is not a version specifier such as >=1.0,<2 or ==1.*",
        ),
        (
            "nccl_b-2-py3",
            "nccl-2-py3",
            "9:49: shared_files[0].owners[1].artefact: `nccl-2-py3-none-any.whl` is not a wheel of `nccl-b`",
        ),
        (
            HASHES[1],
            HASHES[0],
            SAME,
        ),
        ("source: [records]", "source: []", "4:5: shared_files[0]: shared file `nccl` cites no source; add `source: [...]`"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        load(tmp_path, HAZARDS.replace(old, new))
    assert [cause.removeprefix(f"{tmp_path}/rules/hazards.yaml:") for cause in caught.value.causes] == [expected]


def test_a_file_that_one_distribution_has_is_not_shared(tmp_path: Path) -> None:
    lines = HAZARDS.splitlines(keepends=True)
    with pytest.raises(InvalidDocumentError) as caught:
        load(tmp_path, "".join(line for line in lines if "nccl-b" not in line))
    assert "shared file `nccl` must have two owners or more" in "".join(caught.value.causes)


def test_every_shipped_row_is_measured_and_no_distribution_owns_a_file_twice() -> None:
    matrix = shipped()
    assert len(matrix.shared_files) > 40
    for row in matrix.shared_files:
        names = [one.distribution for one in row.owners]
        assert len(set(names)) == len(names) > 1, row.name
        assert len({one.content for one in row.owners}) == len(names), row.name
        assert any(matrix.citations[key].measured for key in row.source), row.name
