"""Reports of `rocm-smi` and `amd-smi`, in the forms of several releases, and the number of AMD's kernel module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.host.captured import read_captured
from provisioner.host.inspect import inspect_host
from provisioner.host.model import Driver
from provisioner.host.parse import amdgpu_release
from provisioner.host.profile import host_document
from provisioner.host.rocm_report import is_rocm_report
from provisioner.words.remark import remark_words
from provisioner.workflow.inputs import catalogue_of, gpu_names_of, modules_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.matrix.model import Matrix

REPORTS = Path(__file__).parents[2] / "fixtures/rocm"


@pytest.mark.parametrize("name", sorted(path.stem for path in REPORTS.glob("*.json")))
def test_a_report_is_the_profile_of_its_machine(name: str, golden: Callable[[Path, str], None], matrix: Matrix) -> None:
    path = REPORTS / f"{name}.json"
    (found,) = read_captured(path, gpu_names=gpu_names_of(matrix), catalogue=catalogue_of(matrix))
    notes = "".join(f"# note: {remark_words(one)}\n" for one in found.inspection.remarks)
    golden(REPORTS / f"{name}.yaml", host_document(found.inspection.host) + notes)


@pytest.mark.parametrize(
    "data",
    [{}, [], {"kind": "List", "items": []}, {"gpus": []}, [{"name": "gpu-1", "host": {}}], {"gpu_data": 1}, "card0", None],
)
def test_what_is_no_report(data: object) -> None:
    assert not is_rocm_report(data)


@pytest.mark.parametrize("data", [{"card0": 1}, {"card0": {}, "system": []}, {"gpu_data": [1]}, {"gpu_data": [{"asic": []}]}])
def test_a_report_with_other_values_tells_nothing_of_them(data: object, tmp_path: Path, matrix: Matrix) -> None:
    import json

    (tmp_path / "smi.json").write_text(json.dumps(data), encoding="utf-8")
    (found,) = read_captured(tmp_path / "smi.json", gpu_names={}, catalogue=catalogue_of(matrix))
    assert found.inspection.host.driver == Driver(kind="amdgpu")


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("1:6.2.4.50701-1664922.22.04", "5.7.1"), ("1:6.8.5.60204-2070768.22.04", "6.2.4"), ("6.12.12.60404-1", "6.4.4"),
        ("1:6.16.6.30200100-2255209.24.04", "30.20.1"), ("6.19.14.31400000", "31.40.0"),
        ("5.18.2.22.40.50300-1483871.22.04", "5.3.0"),
        ("30.30.2", "30.30.2"), ("6.16.6", None), ("6.2.4", None), ("6.8.0-40-generic", None), ("", None),
    ],
)  # fmt: skip
def test_the_release_of_the_driver_is_told_by_its_package(text: str, release: str | None) -> None:
    assert amdgpu_release(text) == release


def test_a_module_serves_the_releases_of_one_series(matrix: Matrix) -> None:
    rows = [row for row in matrix.components["amdgpu"].releases if row.module]
    assert len(rows) >= 20
    for row in rows:
        assert str(row.version).startswith(f"{modules_of(matrix)[row.module]}.")


def machine(root: Path, module: str, package: str = "") -> Path:
    """Write the files of a machine with one MI210 whose driver is loaded, and whose package is installed."""
    for path, text in {
        "sys/class/kfd/kfd/topology/nodes/1/properties": "gfx_target_version 90010\n",
        "sys/module/amdgpu/version": f"{module}\n",
        "var/lib/dpkg/status": f"Package: amdgpu-dkms\nStatus: install ok installed\nVersion: {package}\n" if package else "",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def test_the_package_of_the_loaded_module_tells_the_release(tmp_path: Path) -> None:
    found = inspect_host(machine(tmp_path, "6.12.12", "1:6.12.12.60403-2194681.22.04"))
    assert (found.host.driver, found.remarks) == (Driver(kind="amdgpu", version="6.4.3"), ())


def test_the_package_of_another_module_does_not(tmp_path: Path) -> None:
    found = inspect_host(machine(tmp_path, "6.10.5", "1:6.12.12.60403-2194681.22.04"), modules={"6.10.5": "6.3"})
    assert found.host.driver == Driver(kind="amdgpu", version="6.3")


def test_a_module_that_nobody_knows_is_no_release(tmp_path: Path) -> None:
    found = inspect_host(machine(tmp_path, "6.20.1"))
    assert found.host.driver == Driver(kind="amdgpu")
    (told,) = map(remark_words, found.remarks)
    assert told == (
        "driver: 6.20.1 is what the amdgpu module calls itself, and no release of the driver; `dpkg -l amdgpu-dkms` "
        "or `rpm -q amdgpu-dkms` has it behind that number (.60404 is 6.4.4, .30200100 30.20.1)"
    )
