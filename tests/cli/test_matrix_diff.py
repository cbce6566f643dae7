"""`provision matrix diff` and `check`: what others say differently, as words, as JSON and as an exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.leaving import leave

if TYPE_CHECKING:
    from pathlib import Path

MATRIX = """\
order: [cuda, driver]
components:
  cuda: {title: CUDA, file: cuda.yaml}
  driver: {title: driver, file: driver.yaml, virtual: true}
"""
CUDA = """\
sources:
  notes: {title: release notes, where: Table 3}
  wheel: {title: a wheel, measured: true}
releases:
  - {version: "12.6.3", driver: {toolkit: "560.35.05", minor_version: "525.60.13"}, source: [notes]}
  - {version: "11.8.0", driver: {toolkit: "520.61.05", minor_version: "450.80.02"}, source: [wheel]}
"""
UV = """\
static LINUX_CUDA_DRIVERS: LazyLock<[(TorchBackend, Version); 3]> = LazyLock::new(|| {
        (TorchBackend::Cu126, Version::new([528, 33])),
        (TorchBackend::Cu118, Version::new([450, 80, 2])),
        (TorchBackend::Cu92, Version::new([396, 26])),
"""
REASONS = """\
disagreements:
  - {table: uv, question: driver-floor, subject: "cuda 12.6", says: ">=528.33", because: "that is the floor of Windows"}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A small matrix, and a table of uv's beside it."""
    found = tmp_path / "rules"
    (found / "published").mkdir(parents=True)
    (tmp_path / "backend.rs").write_text(UV, encoding="utf-8")
    (found / "matrix.yaml").write_text(MATRIX, encoding="utf-8")
    (found / "cuda.yaml").write_text(CUDA, encoding="utf-8")
    (found / "driver.yaml").write_text("releases: []\n", encoding="utf-8")
    return found


def test_an_unexplained_difference_is_shown_with_our_evidence(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("matrix", "diff", "--matrix", rules, "--against", rules.parent / "backend.rs") == 1
    assert (
        capsys.readouterr().out
        == """\
uv (line 2): cuda 12.6: the oldest Linux driver that runs a CUDA release
  theirs: >=528.33
  ours:   >=525.60.13
  rules/cuda.yaml:5: release notes, Table 3
  reason: none was written; this is a disagreement to settle

table  claims  agree  explained  unexplained  not in the matrix
uv          3      1          0            1                  1
all         3      1          0            1                  1
"""
    )


def test_an_explained_difference_is_shown_with_its_reason(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rules / "published/disagreements.yaml").write_text(REASONS, encoding="utf-8")
    assert leave("matrix", "diff", "--matrix", rules, "--against", rules.parent / "backend.rs") == 0
    assert "  reason: that is the floor of Windows\n" in capsys.readouterr().out


def test_json_says_the_same(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    against = rules.parent / "backend.rs"
    assert leave("matrix", "diff", "--matrix", rules, "--against", against, "--format", "json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["tables"] == {"uv": {"where": ["backend.rs"], "agrees": 1, "explained": 0, "unexplained": 1, "silent": 1}}
    (difference,) = report["differences"]
    assert difference == {
        "table": "uv",
        "question": "driver-floor",
        "subject": "cuda 12.6",
        "line": 2,
        "theirs": ">=528.33",
        "ours": ">=525.60.13",
        "outcome": "unexplained",
        "evidence": ["rules/cuda.yaml:5: release notes, Table 3"],
        "reason": "",
    }


def test_all_shows_what_agrees_and_what_is_not_held(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leave("matrix", "diff", "--matrix", rules, "--against", rules.parent / "backend.rs", "--all")
    shown = capsys.readouterr().out
    assert "uv: cuda 11.8, driver-floor: >=450.80.02 (agrees)\n" in shown
    assert "uv: cuda 9.2, driver-floor: >=396.26 (not judged: no driver is known for CUDA 9.2)\n" in shown


def test_a_table_is_extracted_as_yaml_that_is_then_compared(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("matrix", "diff", "--against", rules.parent / "backend.rs", "--extract") == 0
    (rules / "published/uv.yaml").write_text(capsys.readouterr().out, encoding="utf-8")
    (rules / "published/disagreements.yaml").write_text(REASONS, encoding="utf-8")
    assert leave("matrix", "diff", "--matrix", rules) == 0
    assert "all         3      1          1            0                  1\n" in capsys.readouterr().out


def test_a_reason_that_explains_nothing_any_more_is_told(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leave("matrix", "diff", "--against", rules.parent / "backend.rs", "--extract")
    extract = capsys.readouterr().out
    (rules / "published/uv.yaml").write_text(extract.replace("528.33", "525.60.13"), encoding="utf-8")
    (rules / "published/disagreements.yaml").write_text(REASONS, encoding="utf-8")
    assert leave("matrix", "diff", "--matrix", rules) == 1
    assert "uv, driver-floor, cuda 12.6: the reason explains no difference any more" in capsys.readouterr().out


def test_a_file_that_is_no_table_is_refused(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("matrix", "diff", "--against", rules / "cuda.yaml") == 2
    printed = capsys.readouterr().err
    assert "cuda.yaml` is none of the tables that can be compared" in printed
    assert "hint: known are uv's accelerator table (backend.rs)" in printed


def test_check_counts_rows_and_measurements(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("matrix", "check", "--matrix", rules) == 0
    assert (
        capsys.readouterr().out
        == """\
0 families of rows speak of every release, or should; a silent one makes an answer unverified:
0 other families are silent about some releases, which is no limit; --format json has them
rows of  rows  measured
cuda        2         1
all         2         1
2 rows, every one cited, 1 measured from an artefact; 0 claims of other tables: 0 agree, 0 differ with a reason, \
0 unexplained, 0 about what this matrix does not hold
"""
    )


def test_check_leaves_with_one_when_a_row_has_no_effect(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rules / "cuda.yaml").write_text(CUDA.replace("  wheel:", "  spare: {title: an old table}\n  wheel:"), encoding="utf-8")
    assert leave("matrix", "check", "--matrix", rules, "--format", "json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["findings"] == [
        {"kind": "unused-source", "where": "spare", "text": "no row cites source `spare` (an old table)"}
    ]
    assert (report["rows"], report["measured"]) == (2, 1)


def test_check_leaves_with_two_when_the_matrix_cannot_be_meant(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rules / "cuda.yaml").write_text(CUDA.replace("[notes]", "[nots]"), encoding="utf-8")
    assert leave("matrix", "check", "--matrix", rules) == 2
    assert "cuda.yaml:5" in capsys.readouterr().err


def test_the_shipped_matrix_has_no_finding_and_no_unexplained_difference(capsys: pytest.CaptureFixture[str]) -> None:
    code = leave("matrix", "check", "--format", "json")
    report = json.loads(capsys.readouterr().out)
    assert report["findings"] == []
    assert report["claims"]["unexplained"] == 0
    assert code == 0
    assert report["rows"] == sum(kind["rows"] for kind in report["kinds"].values())
