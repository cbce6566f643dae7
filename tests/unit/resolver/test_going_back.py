"""Going back from versions that no choice of components goes with: they are found out without deciding anything in between."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Literal

import pytest

from provisioner.host.model import Driver, Host, HostGpu
from provisioner.index.client import PackageIndex
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.request import Request, TargetHost
from provisioner.resolver.joint import solve_joint
from provisioner.resolver.problem import join
from provisioner.spec.model import ImageSpec, Spec
from tests.loopback_index import LoopbackIndex
from tests.shipped import shipped

if TYPE_CHECKING:
    from pathlib import Path

OLD_DRIVER = Host(driver=Driver(version="550.54.15"), gpus=(HostGpu(compute_capability="8.9"),))
"""A driver that runs CUDA 12, and no CUDA 13."""

NEW_DRIVER = Host(driver=Driver(version="580.95.05"), gpus=(HostGpu(compute_capability="8.9"),))


def test_a_server_for_a_newer_cuda_is_left_out_before_anything_else_is_tried(tmp_path: Path) -> None:
    """Thirty versions need the PyTorch for CUDA 13; of the forty versions of another package one is looked at."""
    with LoopbackIndex() as index:
        for number in range(1, 31):
            torch = "2.11.0" if number > 3 else "2.10.0"
            index.add_wheel("serve", f"0.{number}.0", requires=[f"torch=={torch}", "library"])
        for number in range(1, 41):
            index.add_wheel("library", f"4.{number}.0", requires=["leaf"])
        for number in range(1, 11):
            index.add_wheel("leaf", f"1.{number}")
        index.add_wheel("torch", "2.11.0", tag="cp312-cp312-manylinux_2_28_x86_64")
        index.add_wheel("torch", "2.10.0", tag="cp312-cp312-manylinux_2_28_x86_64")
        packages = solved(index, tmp_path, "3.12", "serve", "library")
        assert (packages["serve"], packages["library"], packages["leaf"]) == ("0.3.0", "4.40.0", "1.10")
        assert read(index, "library") == {"library-4.40.0"}


def test_a_python_comes_first_with_which_the_hosts_run_the_newest_version(tmp_path: Path) -> None:
    """The PyTorch for Python 3.13 needs another driver: 29 versions are not read to find the one that needs no PyTorch."""
    with LoopbackIndex() as index:
        for number in range(1, 31):
            index.add_wheel("train", f"0.{number}.0", requires=["torch"] if number > 1 else [])
        index.add_wheel("torch", "2.11.0", tag="cp313-cp313-manylinux_2_28_x86_64")
        index.add_wheel("torch", "2.10.0", tag="cp312-cp312-manylinux_2_28_x86_64")
        packages = solved(index, tmp_path, ">=3.12,<3.14", "train")
        assert (packages["train"], packages["torch"]) == ("0.30.0", "2.10.0")
        assert read(index, "train") == {"train-0.30.0"}


def test_of_a_python_that_is_looked_at_alone_nothing_is_read_ahead(tmp_path: Path) -> None:
    """What the version of another Python would need beside PyTorch is for nobody."""
    with LoopbackIndex() as index:
        index.add_wheel("train", "0.1.0", requires=["torch", "core"])
        for python in ("cp312", "cp313"):
            index.add_wheel("core", "1.0", tag=f"{python}-{python}-manylinux_2_28_x86_64")
        index.add_wheel("torch", "2.11.0", tag="cp313-cp313-manylinux_2_28_x86_64")
        index.add_wheel("torch", "2.10.0", tag="cp312-cp312-manylinux_2_28_x86_64")
        packages = solved(index, tmp_path, ">=3.12,<3.14", "train")
        assert (packages["torch"], packages["core"]) == ("2.10.0", "1.0")
        assert [path.rpartition("/")[2] for path in index.requests if "core-" in path and path.endswith(".metadata")] == [
            "core-1.0-cp312-cp312-manylinux_2_28_x86_64.whl.metadata"
        ]


@pytest.mark.parametrize("runs", ["container", "host"])
def test_what_keeps_a_newer_framework_out_with_one_python_is_not_solved_again_with_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, runs: Literal["container", "host"]
) -> None:
    with LoopbackIndex() as index:
        index.add_wheel("plugin", "1.0", requires=["torch<2.10"])
        for python, number in product(("cp312", "cp313", "cp314"), ("2.10.0", "2.9.1")):
            index.add_wheel("torch", number, tag=f"{python}-{python}-manylinux_2_28_x86_64")
        with caplog.at_level("INFO", "provisioner.search"):
            packages = solved(index, tmp_path, ">=3.12,<3.15", "torch", "plugin", runs=runs)
    assert packages == {"torch": "2.9.1", "plugin": "1.0"}
    tried = [one.split()[2] for one in caplog.messages if one.startswith("trying python")]
    told = [one for one in caplog.messages if one.endswith("has nothing newer of what is named")]
    assert (len(tried), len(told)) == (1, 2)


def test_a_python_with_which_the_framework_may_be_newer_is_solved(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What keeps the newer PyTorch out holds with Python 3.13 and 3.14 alone."""
    with LoopbackIndex() as index:
        index.add_wheel("plugin", "1.0", requires=["torch<2.10; python_version >= '3.13'"])
        for python, number in product(("cp312", "cp313", "cp314"), ("2.10.0", "2.9.1")):
            index.add_wheel("torch", number, tag=f"{python}-{python}-manylinux_2_28_x86_64")
        with caplog.at_level("INFO", "provisioner.search"):
            packages = solved(index, tmp_path, ">=3.12,<3.15", "torch", "plugin")
    assert packages == {"torch": "2.10.0", "plugin": "1.0"}
    assert "trying python 3.12" in caplog.text


def test_a_python_that_could_only_win_with_a_wheel_whose_libraries_are_missing_is_not_solved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """ONNX Runtime 1.31.1 links to libraries of CUDA 13, which PyTorch 2.6 has with no Python."""
    with LoopbackIndex() as index:
        index.add_wheel("onnxruntime-gpu", "1.31.1")
        index.add_wheel("onnxruntime-gpu", "1.26.0")
        for python in ("cp311", "cp312", "cp313"):
            index.add_wheel("torch", "2.6.0", tag=f"{python}-{python}-manylinux_2_28_x86_64")
        with caplog.at_level("INFO", "provisioner.search"):
            packages = solved(
                index,
                tmp_path,
                ">=3.11,<3.14",
                "torch",
                "onnxruntime-gpu",
                host=NEW_DRIVER,
                image=ImageSpec(base="ubuntu:24.04"),
            )
    assert packages == {"torch": "2.6.0", "onnxruntime-gpu": "1.26.0"}
    assert [one.split()[2] for one in caplog.messages if one.startswith("trying python")] == ["3.12"]


def solved(
    index: LoopbackIndex,
    folder: Path,
    python: str,
    *packages: str,
    host: Host = OLD_DRIVER,
    runs: Literal["container", "host"] = "container",
    image: ImageSpec | None = None,
) -> dict[str, str]:
    """Return the version of each package of the answer for a host."""
    settings = IndexSettings(
        indexes=(IndexLocation(name="pypi", url=index.url),), cache_directory=folder / "cache", fresh_seconds=0
    )
    spec = Spec(name="demo", requires={"python": python}, packages=packages, runs=runs, image=image or ImageSpec())
    asked = Request(spec=spec, hosts=(TargetHost(label="host", host=host),), platform="linux/amd64")
    stack = solve_joint(join(shipped(), asked), lambda environment: PackageIndex(settings, environment))
    return {one.name: one.version for one in stack.packages}


def read(index: LoopbackIndex, name: str) -> set[str]:
    """Return the versions of a project whose metadata was sent, as `NAME-VERSION`."""
    files = (path.rpartition("/")[2] for path in index.requests if path.endswith(".metadata"))
    return {"-".join(file.split("-")[:2]) for file in files if file.startswith(f"{name}-")}
