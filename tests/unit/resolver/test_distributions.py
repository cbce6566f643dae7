"""The C++ ABI a wheel is compiled with: which files it is asked of, and which builds of PyTorch are of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.index.model import IndexFile, PackageRelease
from provisioner.matrix.model import Distribution, ImpliedNeed, Release
from provisioner.resolver.problem import Problem, join
from provisioner.resolver.python.distributions import DistributionFacts, has_abi
from provisioner.resolver.requirement import PACKAGE, PYTORCH, FileCandidate, Key, Requirement
from provisioner.versions import Version
from provisioner.words.ground import say
from tests import small

OLD = ImpliedNeed(versions="==1.*", cxx11_abi=False, because="invented")
NEW = ImpliedNeed(versions="==2.*", cxx11_abi=True, because="invented")
LINUX = "codec-{}-cp311-cp311-manylinux_2_28_x86_64.whl"


def problem() -> Problem:
    """A release with builds of both ABIs, and one whose ABI nobody knows."""
    builds = (
        small.build("cu124", {}, default=True, cxx11_abi=False),
        small.build("cu126", {}, index="pytorch-cu126", local="cu126", cxx11_abi=True),
        small.build("cu118", {}, index="pytorch-cu118", local="cu118"),
    )
    release = Release(version=Version.parse("2.6.0"), builds=builds, source=("invented",))
    matrix = small.matrix(("pytorch", "gpu"), {"gpu": {"7.0": {}}}, releases={"pytorch": (release,)})
    known = (Distribution(name="codec", implies=(OLD, NEW)),)
    return join(replace(matrix, distributions=known), small.request({"pytorch": "==2.6.0"}, packages=["codec"]))


def asked(version: str, filename: str, *, index: str = "pypi", variant: str = "") -> list[Requirement]:
    """What a file of a version is asked for."""
    file = IndexFile(filename=filename.format(version), url="https://files.test/codec", index=index, sha256="0" * 64)
    release = PackageRelease.of(name=canonicalize_name("codec"), version_text=version, file=file)
    candidate = FileCandidate(Key("codec", PACKAGE), Version.named(version), version, release)
    return list(DistributionFacts(problem(), variant).of(candidate))


def allowed(requirement: Requirement) -> set[str]:
    return {one.label for one in problem().domains[PYTORCH] if requirement.allows(one)}


@pytest.mark.parametrize(
    ("version", "words", "labels"),
    [
        ("1.0", "old", {"2.6.0+cu124", "2.6.0+cu118"}),
        ("2.0", "new", {"2.6.0+cu126", "2.6.0+cu118"}),
    ],
)
def test_a_wheel_needs_a_build_of_its_abi_or_one_whose_abi_nobody_knows(version: str, words: str, labels: set[str]) -> None:
    (found,) = asked(version, LINUX)
    assert (found.key, allowed(found)) == (PYTORCH, labels)
    assert say(found.ground) == (
        f"codec {version} needs a build of the {words} C++ ABI of PyTorch: "
        "its libraries call functions by their names in that ABI"
    )


@pytest.mark.parametrize(
    ("version", "filename", "index"),
    [
        ("1.0", "codec-{}-cp311-cp311-macosx_11_0_arm64.whl", "pypi"),
        ("1.0", "codec-{}-py3-none-any.whl", "pypi"),
        ("1.0", "codec-{}.tar.gz", "pypi"),
        ("1.0", LINUX, "pytorch-cu126"),
        ("1.0+cu126", LINUX, "url"),
        ("3.0", LINUX, "pypi"),
    ],
    ids=["macos", "pure", "source", "variant index", "local version", "another version"],
)
def test_of_other_files_nothing_is_asked(version: str, filename: str, index: str) -> None:
    assert asked(version, filename, index=index, variant="pytorch-cu126") == []


def test_a_row_that_names_no_abi_is_held_against_no_build() -> None:
    builds = [small.build("one", {}, cxx11_abi=True), small.build("two", {}, cxx11_abi=False), None]
    assert [has_abi(build, replace(OLD, cxx11_abi=None)) for build in builds] == [True, True, True]
    assert [has_abi(build, OLD) for build in builds] == [False, True, True]
