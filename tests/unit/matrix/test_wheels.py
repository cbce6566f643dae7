"""What a matrix says of GPU wheels: read, and refused with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.matrix.lint import count
from provisioner.matrix.load import load_matrix
from tests.unit.matrix.test_distributions import INDEX, write

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.matrix.model import Matrix

WHEELS = f"""\
sources:
  gpu-wheels: {{title: wheels, read: "2026-01-01", measured: true}}
surveys:
  - {{distribution: demo, most: 3, also: ["1.0"]}}
wheels:
  - distribution: demo
    versions: ">=1.0,<=1.2"
    platforms: [linux/amd64]
    sass: [sm_70, sm_90a]
    ptx: []
    runtime: "12.8"
    links: [libcublas.so.12]
    opens: [libnccl.so.2]
    numpy: "<2"
    artefacts: {{demo-1.2-py3-none-any.whl: "{"a" * 64}", demo-1.0-py3-none-any.whl: "{"b" * 64}"}}
    source: [gpu-wheels]
"""


def load(directory: Path, wheels: str = WHEELS) -> Matrix:
    target = write(directory)
    (target / "wheels.yaml").write_text(wheels, encoding="utf-8")
    (target / "matrix.yaml").write_text(f"{INDEX}wheels: wheels.yaml\n", encoding="utf-8")
    return load_matrix(target)


def test_a_matrix_holds_its_gpu_wheels(tmp_path: Path) -> None:
    matrix = load(tmp_path)
    (row,) = matrix.wheels
    assert (row.distribution, row.versions, row.sass, row.ptx, row.gfx) == (
        "demo",
        ">=1.0,<=1.2",
        ("sm_70", "sm_90a"),
        (),
        None,
    )
    assert (row.runtime, row.compiler, row.numpy) == ("12.8", "", "<2")
    assert (row.links, row.opens, row.provides) == (("libcublas.so.12",), ("libnccl.so.2",), ())
    assert str(matrix.positions["wheel:demo >=1.0,<=1.2"]) == "rules/wheels.yaml:6"
    assert (count(matrix).kinds["GPU wheels"], count(matrix).measured_kinds["GPU wheels"]) == (1, 1)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("- distribution: demo", "- distribution: Demo", "6:5: wheels[0].distribution: `Demo` is spelled `demo` by indexes"),
        ('">=1.0,<=1.2"', '"1.0-1.2"', "`1.0-1.2` is not a version specifier such as >=1.0,<2 or ==1.*"),
        (">=1.0,<=1.2", ">=1.0,<=1.1", "`demo-1.2-py3-none-any.whl` is of none of the releases >=1.0,<=1.1"),
        ("demo-1.2-py3", "other-1.2-py3", "`other-1.2-py3-none-any.whl` is not a wheel of `demo`"),
        (f'"{"a" * 64}"', '""', "what was measured in `demo-1.2-py3-none-any.whl` needs the wheel's sha256"),
        ("sm_90a", "90a", "`90a` is not spelled like sm_90"),
        ("libnccl.so.2", "nccl", "`nccl` is not spelled like libcudart.so.12"),
        ('"12.8"', '"12.8.1"', "`12.8.1` is not spelled like 12.8"),
        ("source: [gpu-wheels]", "source: [other]", "there is no source `other`"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        load(tmp_path, WHEELS.replace(old, new, 1))
    assert any(expected in str(mistake) for mistake in caught.value.mistakes)


def test_an_artefact_is_measured_in_one_row_only(tmp_path: Path) -> None:
    row = WHEELS[WHEELS.index("  - distribution") :]
    with pytest.raises(InvalidDocumentError) as caught:
        load(tmp_path, WHEELS + row)
    assert "`demo-1.2-py3-none-any.whl` is measured in a row above already" in str(caught.value.mistakes[0])
