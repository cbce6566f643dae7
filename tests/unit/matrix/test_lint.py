"""Rows that are well-formed and have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.matrix.lint import count, lint
from provisioner.matrix.load import load_matrix

if TYPE_CHECKING:
    from pathlib import Path

MATRIX = """\
order: [pytorch, cuda, os, driver, gpu]
components:
  pytorch: {title: PyTorch, file: pytorch.yaml}
  cuda: {title: CUDA, file: cuda.yaml}
  os: {title: OS, file: os.yaml, virtual: true, named: true}
  driver: {title: driver, file: driver.yaml, virtual: true}
  gpu: {title: GPU, file: gpu.yaml, virtual: true}
gpus: gpus.yaml
"""
FILES = {
    "pytorch": """\
releases:
  - {version: "2.7.0", requires: {cuda: "==12.6.*"}, source: [notes]}
""",
    "cuda": """\
sources:
  notes: {title: release notes}
  wheel: {title: a wheel, measured: true}
releases:
  - {version: "12.8.1", source: [notes]}
  - {version: "12.6.3", source: [notes]}
rules:
  - {name: floor, when: {cuda: ">=12"}, require: {gpu: ">=5.0"}, because: "Kepler is gone", source: [notes]}
""",
    "os": """\
releases:
  - {version: "ubuntu 22.04", source: [notes]}
""",
    "driver": """\
releases:
  - {version: "560.35.05", source: [wheel]}
""",
    "gpu": """\
releases:
  - {version: "9.0", source: [notes]}
""",
    "gpus": """\
gpus:
  - {name: H100, compute_capability: "9.0", architecture: Hopper, source: [notes]}
""",
}


def load(directory: Path, **changed: str) -> list[tuple[str, str]]:
    (directory / "matrix.yaml").write_text(MATRIX, encoding="utf-8")
    for name, text in {**FILES, **changed}.items():
        (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
    return [(found.kind, found.text) for found in lint(load_matrix(directory))]


def test_a_sound_matrix_has_no_finding(tmp_path: Path) -> None:
    assert load(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "shadowed"),
    [
        ('when: {cuda: ">=12"}, require: {gpu: ">=5.0"}', ["x"]),
        ('when: {cuda: ">=12.8"}, require: {gpu: ">=4.0"}', ["x"]),
        ('when: {cuda: ">=12.8"}, on: {os: ubuntu}, require: {gpu: ">=5.0"}', ["x"]),
        ('when: {cuda: ">=11"}, require: {gpu: ">=5.2"}', ["floor"]),
        ('when: {cuda: ">=12"}, require: {gpu: ">=5.2"}', ["floor"]),
        ('when: {cuda: ">=11"}, on: {os: ubuntu}, require: {gpu: ">=5.2"}', []),
        ('when: {cuda: ">=12.8"}, require: {gpu: ">=7.5"}', []),
        ('when: {cuda: ">=12.8"}, require: {gpu: "<9.5"}', []),
        ('when: {cuda: ">=12"}, require: {driver: ">=525"}', []),
    ],
)
def test_a_rule_that_another_one_implies_is_found(tmp_path: Path, body: str, shadowed: list[str]) -> None:
    rule = f'  - {{name: x, {body}, because: "so", source: [notes]}}\n'
    other = {"x": "floor", "floor": "x"}
    expected = [("shadowed-rule", f"rule `{name}`: rule `{other[name]}` says all of it") for name in shadowed]
    assert load(tmp_path, cuda=FILES["cuda"] + rule) == expected


def test_a_rule_that_binds_nothing_is_found(tmp_path: Path) -> None:
    rule = '\nrules:\n  - {name: x, when: {pytorch: ">=2"}, require: {cuda: ">=12"}, because: "so", source: [notes]}\n'
    assert load(tmp_path, pytorch=FILES["pytorch"] + rule) == [
        ("idle-rule", "rule `x`: every release of `cuda` is >=12, so it binds nothing")
    ]


def test_a_guard_may_name_a_family_and_what_is_not_stated(tmp_path: Path) -> None:
    rules = (
        '  - {name: x, when: {cuda: ">=12"}, on: {os: ubuntu}, require: {driver: ">=1"}, because: "so", source: [notes]}\n'
        '  - {name: y, when: {cuda: ">=12"}, on: {driver: none}, require: {driver: ">=1"}, because: "so", source: [notes]}\n'
    )
    assert load(tmp_path, cuda=FILES["cuda"] + rules) == []


def test_an_older_release_above_a_newer_one_is_found(tmp_path: Path) -> None:
    text = FILES["cuda"].replace('"12.8.1"', '"12.4.1"')
    assert load(tmp_path, cuda=text) == [("order", "`cuda` 12.6.3 stands below 12.4.1; newest comes first")]


def test_a_source_nobody_cites_is_found(tmp_path: Path) -> None:
    text = FILES["cuda"].replace("  wheel:", "  spare: {title: an old table}\n  wheel:")
    assert load(tmp_path, cuda=text) == [("unused-source", "no row cites source `spare` (an old table)")]


def test_a_product_no_target_can_serve_is_found(tmp_path: Path) -> None:
    text = FILES["gpus"].replace('"9.0"', '"9.9"')
    assert load(tmp_path, gpus=text) == [
        ("unreachable-row", "`H100` has compute capability 9.9, which component `gpu` does not list")
    ]


def test_rows_are_counted_once_and_by_what_they_are(tmp_path: Path) -> None:
    load(tmp_path)
    counts = count(load_matrix(tmp_path))
    assert (counts.rows, counts.measured) == (8, 1)
    assert counts.kinds == {"pytorch": 1, "cuda": 2, "os": 1, "driver": 1, "gpu": 1, "rules": 1, "gpus": 1}
    assert counts.measured_kinds == {"driver": 1}
