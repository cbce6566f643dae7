from __future__ import annotations

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from provisioner.index.model import IndexFile, PackageRelease
from provisioner.resolver.choices.candidates import candidates_of
from provisioner.resolver.python.named_build import NamedBuild, named_build
from tests import small
from tests.shipped import shipped


def release(filename: str, folder: str = "", index: str = "pypi") -> PackageRelease:
    name, version, *_ = filename.split("-")
    file = IndexFile(filename=filename, url=f"https://files.example{folder}/{filename.replace('+', '%2B')}", index=index)
    return PackageRelease(name=canonicalize_name(name), version=Version(version), file=file)


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("pt25cu124", NamedBuild("2.5", "cuda 12.4")),
        ("pt210cu130", NamedBuild("2.10", "cuda 13.0")),
        ("pt113cpu", NamedBuild("1.13", "cpu")),
        ("cu12torch2.5cxx11abiFALSE", NamedBuild("2.5", "cuda 12", is_new_abi=False)),
        ("cu122torch2.2cxx11abiTRUE", NamedBuild("2.2", "cuda 12.2", is_new_abi=True)),
        ("rocm62torch2.6cxx11abiTRUE", NamedBuild("2.6", "rocm 6.2", is_new_abi=True)),
        ("torch2.10.0", NamedBuild("2.10")),
        ("cu124", None),
        ("opt25", None),
        ("git20240101", None),
    ],
)
def test_a_local_version_tells_the_build(local: str, expected: NamedBuild | None) -> None:
    assert named_build(release(f"demo-1.0+{local}-cp311-cp311-linux_x86_64.whl"), ()) == expected


def test_the_folders_of_a_page_tell_it_and_those_of_an_index_do_not() -> None:
    filename, folder = "mmcv-2.2.0-cp311-cp311-manylinux1_x86_64.whl", "/mmcv/dist/cu121/torch2.4.0"
    assert named_build(release(filename, folder, "mmcv"), {"mmcv"}) == NamedBuild("2.4", "cuda 12.1")
    assert named_build(release(filename, folder, "corp"), {"mmcv"}) is None


def test_a_source_distribution_is_compiled_for_what_is_there() -> None:
    assert named_build(release("demo-1.0+pt25cu124.tar.gz"), ()) is None


@pytest.mark.parametrize(
    ("told", "builds"),
    [
        (NamedBuild("2.5", "cuda 12.4"), {"2.5.0+cu124", "2.5.1+cu124"}),
        (NamedBuild("2.2", "cuda 12.2"), {"2.2.0+cu121", "2.2.1+cu121", "2.2.2+cu121"}),
        (NamedBuild("2.6", "cuda 12", is_new_abi=False), {"2.6.0+cu124"}),
        (NamedBuild("2.6", "cuda 12", is_new_abi=True), {"2.6.0+cu126"}),
        (NamedBuild("9.9", "cuda 12"), set()),
    ],
)
def test_the_builds_that_a_name_tells(told: NamedBuild, builds: set[str]) -> None:
    request = small.request({"python": "==3.11"}, {"driver": {"version": "580.95.05"}, "gpus": [{"compute_capability": "9.0"}]})
    assert told.labels(candidates_of(shipped().components["pytorch"], request)) == builds
