"""What a matrix knows beside versions: variables, failures, driver packages, overrides; and every mistake in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.matrix.load import load_matrix

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "matrix": """\
order: [cuda, rocm, os, driver]
components:
  cuda: {title: CUDA, file: cuda.yaml}
  rocm: {title: ROCm, file: rocm.yaml}
  os: {title: OS, file: os.yaml, virtual: true, named: true}
  driver: {title: driver, file: driver.yaml, virtual: true}
gpus: gpus.yaml
knowledge: knowledge.yaml
failures: failures.yaml
driver_packages: packages.yaml
host_packages: hosts.yaml
""",
    "cuda": """\
sources: {notes: {title: notes}}
releases:
  - {version: "12.6.3", source: [notes]}
rules:
  - {name: floor, when: {cuda: ">=12"}, on: {driver: ">=1"}, require: {driver: ">=525"}, because: so, source: [notes]}
""",
    "rocm": 'releases: [{version: "6.4.1", source: [notes]}]\n',
    "os": 'releases: [{version: "ubuntu 22.04", source: [notes]}]\n',
    "driver": 'releases: [{version: "560.35.05", source: [notes]}]\n',
    "gpus": """\
gpus:
  - {name: Radeon, architecture: RDNA2, gfx: gfx1031, source: [notes]}
overrides:
  - {name: pass, when: {rocm: "<7"}, gfx: [gfx1031], runs_as: gfx1030, set: {HSA: "1"}, because: so, source: [notes]}
""",
    "knowledge": """\
variables:
  - {name: home, when: {cuda: ">=12"}, on: {os: ubuntu}, set: {CUDA_HOME: /x}, because: so, source: [notes]}
""",
    "failures": """\
failures:
  - name: old
    layer: driver
    symptoms: ["driver {driver:version} is old"]
    samples: ["driver 470.86 is old"]
    cause: c
    remedy: r
    steps: [{run: "install {driver|any}"}]
    source: [notes]
  - {name: odd, layer: driver, symptoms: ["it is odd"], samples: ["it is odd"], cause: c, remedy: r, source: [notes]}
statements:
  - {name: told, symptoms: ["Driver Version: {driver:version}"], samples: ["Driver Version: 1.2"], source: [notes]}
""",
    "packages": "packages: [{name: p, os: ubuntu, kind: dkms, source: [notes]}]\n",
    "hosts": """\
repositories:
  - {name: extra, os: [ubuntu], kind: apt-line, line: "https://example.org/ stable main", source: [notes]}
packages:
  - {component: driver, os: [ubuntu 22.04, macos], versions: ">=560", repositories: [extra], packages: [p], source: [notes]}
source_builds:
  - {component: cuda, os: [macos], repository: "https://example.org/cuda.git", because: so, source: [notes]}
""",
}


def mistakes(directory: Path, *, file: str = "matrix", old: str = "", new: str = "") -> list[str]:
    assert old in FILES[file]
    for name, text in {**FILES, file: FILES[file].replace(old, new) if old else FILES[file]}.items():
        (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
    try:
        load_matrix(directory)
    except InvalidDocumentError as error:
        return [str(mistake).replace(f"{directory}/", "") for mistake in error.mistakes]
    return []


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    assert mistakes(tmp_path) == []
    matrix = load_matrix(tmp_path)
    assert [one.set for one in matrix.variables] == [{"CUDA_HOME": "/x"}]
    assert [one.symptoms for one in matrix.failures] == [("driver {driver:version} is old",), ("it is odd",)]
    assert [str(need) for one in matrix.overrides for need in one.when] == ["<7"]
    assert [one.kind for one in matrix.driver_packages] == ["dkms"]
    assert [one.name for one in matrix.host_repositories] == ["extra"]
    assert [one.packages for one in matrix.host_packages] == [("p",)]
    assert [one.component for one in matrix.source_builds] == ["cuda"]


@pytest.mark.parametrize(
    ("file", "old", "new", "text"),
    [
        ("failures", "name: odd, layer: driver", "name: odd, layer: drivr", "there is no component `drivr`"),
        ("failures", 'symptoms: ["it is odd"]', "symptoms: []", "failure `odd` has no symptom, so nobody can recognise it"),
        ("failures", 'samples: ["it is odd"], ', "", "failure `odd` has no sample; add a real message"),
        ("failures", 'samples: ["it is odd"]', 'samples: ["is even"]', "no sample of failure `odd` has this message"),
        ("failures", '"it is odd"], samples', '"it is {*}"], samples', "has no fixed text of 6 characters"),
        ("failures", "{driver:version} is", "{driver:versoin} is", "`versoin` is no notation; did you mean `version`?"),
        (
            "failures",
            "{driver:version} is",
            "{drivr:version} is",
            "`drivr` is no fact that a message states",
        ),
        ("failures", "{driver:version} is", "{driver} is", "has a brace that is no placeholder"),
        ("failures", "{driver|any}", "{drivr|any}", "there is no fact `drivr`; did you mean `driver`?"),
        ("failures", '{run: "install {driver|any}"}', "{note: n}", "a step is one of `run`, `say` and `solve`"),
        ("failures", "remedy: r, source: [notes]}\nstat", "source: [notes]}\nstat", "failure `odd` has no remedy"),
        ("failures", "{name: odd,", "{name: odd, follows: [od],", "there is no failure `od`; did you mean `old`?"),
        ("failures", "{name: odd,", "{name: odd, follows: [odd],", "failure `odd` follows itself"),
        ("failures", "{name: odd,", "{name: odd, alike: [pair],", "no other failure is `alike` `pair`"),
        ("failures", "{name: told,", "{name: told, states: {drivr: x},", "there is no fact `drivr`; did you mean `driver`?"),
        ("knowledge", '{cuda: ">=12"}', '{cuda: ">=12", rocm: ">=6"}', "variables[0].when: must have one component, it has 2"),
        ("knowledge", '{cuda: ">=12"}', "{cuda: same}", "`same` goes only with `require`: a condition has no subject"),
        ("knowledge", "because: so, source: [notes]", "because: so", "variables `home` cites no source"),
        ("packages", "os: ubuntu", "os: ubutnu", "there is no operating system `ubutnu` in this matrix"),
        ("packages", "source: [notes]", "source: []", "driver package `p` cites no source"),
        ("hosts", "os: [ubuntu], kind", "os: [ubutnu], kind", "there is no operating system `ubutnu` in this matrix"),
        ("hosts", 'line: "https://example.org/ stable main", ', "", "repository `extra` has no address; add `urls` or `line`"),
        ("hosts", "repositories: [extra]", "repositories: [extar]", "there is no repository `extar`"),
        ("hosts", "component: driver", "component: drivr", "there is no component `drivr`"),
        ("hosts", '">=560"', '">=x560"', "x560"),
        ("hosts", "packages: [p], ", "", "the row brings nothing of `driver`; add `packages`, `url` or `file`"),
        ("hosts", "because: so, source: [notes]", "because: so", "build of `cuda` cites no source"),
        ("gpus", '{rocm: "<7"}', '{cuda: "<13"}', "an override may depend on `rocm` only, not on `cuda`"),
        ("gpus", "gfx: gfx1031, source", 'gfx: gfx1031, compute_capability: "9.0", source', "needs one of compute_capability"),
        ("cuda", '{driver: ">=1"}', "{driver: same}", "`same` goes only with `require`: a condition has no subject"),
        ("cuda", 'when: {cuda: ">=12"}', "when: {cuda: same}", "`same` goes only with `require`: a condition has no subject"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, *, file: str, old: str, new: str, text: str) -> None:
    (found,) = mistakes(tmp_path, file=file, old=old, new=new)
    assert text in found


def test_an_entry_given_twice_is_named(tmp_path: Path) -> None:
    entry = FILES["failures"].splitlines()[9]
    (found,) = mistakes(tmp_path, file="failures", old=entry, new=f"{entry}\n{entry}")
    assert found.endswith("failure `odd` is given twice; the first is on line 10")
