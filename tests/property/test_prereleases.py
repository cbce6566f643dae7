"""Pre-releases that metadata names, in random worlds: what is found holds, and what is not found does not exist.

A world lists final versions and pre-releases of a few distributions that require each other. A requirement takes a pre-release
of a distribution that has final versions if it names one and no final version meets it. The check tries every environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version

from provisioner.index.model import EXPLICIT_ONLY, Environment, IndexFile, PackageRelease
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from provisioner.resolver.python.discovered import Discoveries
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from tests import small
from tests.extras_named import applicable
from tests.strategies import examples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from packaging.utils import NormalizedName

pytestmark = pytest.mark.property

SETTINGS = examples(400, derandomize=True)
MATRIX = small.matrix(("python",), {"python": {"3.12": {}}}, virtual=())

NAMES = ("a", "b", "c")
VERSIONS = ("1", "2a1", "2", "3a1", "3a2")
Pins = dict[str, str]


@dataclass(frozen=True)
class World:
    """`listed` maps (name, version) to requirements; `roots` are the spec's packages, which name no pre-release."""

    listed: Mapping[tuple[str, str], tuple[str, ...]]
    roots: tuple[str, ...]

    def versions(self, name: str) -> list[str]:
        return sorted((version for known, version in self.listed if known == name), key=Version)

    def is_early(self, name: str, version: str) -> bool:
        """Whether a version is a pre-release beside final ones."""
        return "a" in version and any("a" not in other for other in self.versions(name))


class Source:
    """The `PackageSource` and `PrereleaseSource` of a world, in memory."""

    def __init__(self, world: World) -> None:
        self.world = world

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        assert not index
        return tuple(
            self._release(name, one) for one in reversed(self.world.versions(name)) if not self.world.is_early(name, one)
        )

    def prereleases(self, name: NormalizedName) -> tuple[PackageRelease, ...]:
        listed = reversed(self.world.versions(name))
        return tuple(self._release(name, one, is_explicit_only=True) for one in listed if self.world.is_early(name, one))

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        return applicable((Requirement(text) for text in self.world.listed[release.name, str(release.version)]), extras)

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        del release
        return ()

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        """Everything is at hand."""

    def _release(self, name: NormalizedName, version: str, *, is_explicit_only: bool = False) -> PackageRelease:
        file = IndexFile(
            filename=f"{name}-{version}-py3-none-any.whl", url=f"https://files.test/{name}-{version}", index="pypi"
        )
        why_not = EXPLICIT_ONLY if is_explicit_only else ""
        return PackageRelease.of(
            name=name, version_text=str(Version(version)), file=file, why_not=why_not, is_explicit_only=is_explicit_only
        )


EARLY_WISHES = (">=2a1", "==2a1", ">=3a1", "==3a2", "<3,>=2a1")
FINAL_WISHES = ("", "", ">=1", ">=2", "==1", "==2", "<2", "!=2")
FINAL = st.builds("{}{}".format, st.sampled_from(NAMES), st.sampled_from(FINAL_WISHES))
EITHER = st.builds("{}{}".format, st.sampled_from(NAMES), st.sampled_from((*EARLY_WISHES, *FINAL_WISHES)))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Most distributions have a final version, and half of the requirements ask for a pre-release."""
    places = [(name, version) for name in NAMES for version in VERSIONS]
    final, early = st.lists(EITHER, min_size=1, max_size=2).map(tuple), st.lists(EITHER, max_size=1).map(tuple)
    kept = draw(st.lists(st.sampled_from(places), min_size=6, unique=True))
    listed = {place: draw(early if "a" in place[1] else final) for place in kept}
    return World(listed, draw(st.lists(FINAL, min_size=1, max_size=2).map(tuple)))


def takes(world: World, requirement: Requirement, version: str) -> bool:
    specifier = requirement.specifier
    if not specifier.contains(version, prereleases=True):
        return False
    if not world.is_early(requirement.name, version):
        return True
    names_one = any(one.operator in {">=", "=="} and "a" in one.version for one in specifier)
    finals = (one for one in world.versions(requirement.name) if "a" not in one)
    return names_one and not any(specifier.contains(one) for one in finals)


def is_environment(world: World, pins: Pins) -> bool:
    wanted = [*world.roots, *(text for pin in pins.items() for text in world.listed[pin])]
    return all(one.name in pins and takes(world, one, pins[one.name]) for one in map(Requirement, wanted))


def environments(world: World) -> Iterator[Pins]:
    options: list[list[str | None]] = [[None, *world.versions(name)] for name in NAMES]
    for picked in product(*options):
        pins = {name: version for name, version in zip(NAMES, picked, strict=True) if version is not None}
        if is_environment(world, pins):
            yield pins


def answer(world: World) -> Pins | None:
    request = small.request({"python": "==3.12"}, packages=world.roots, accelerator="cpu", runs="host")
    try:
        stack = solve_joint(join(MATRIX, request), lambda _: Source(world))
    except NoStackError:
        return None
    told = {one.component for one in stack.relaxations if one.name == "prerelease"}
    pins = {package.name: package.version for package in stack.packages}
    assert told == {name for name, version in pins.items() if "a" in version}
    return pins


def searched(world: World) -> Pins | None:
    """What the complete search alone finds, begun again as long as it meets requirements of pre-releases."""
    request = small.request({"python": "==3.12"}, packages=world.roots, accelerator="cpu", runs="host")
    problem, met = join(MATRIX, request), Discoveries()
    while True:
        met.has_grown = False
        environment = Environment(platform="linux/amd64", python="3.12")
        search = CompleteSearch(ProblemInstance(problem, PackageFinder(problem, Source(world), environment, discoveries=met)))
        pins = search.best()
        search.close()
        if not met.has_grown:
            return None if pins is None else {key.name: one.label for key, one in pins.items() if key.is_package}


@SETTINGS
@given(worlds())
def test_both_searches_find_what_there_is_and_nothing_else(world: World) -> None:
    is_possible = next(environments(world), None) is not None
    for found in (answer(world), searched(world)):
        assert (found is not None) is is_possible
        assert found is None or is_environment(world, found)


@SETTINGS
@given(worlds())
def test_the_order_of_an_index_and_of_requirements_decides_nothing(world: World) -> None:
    turned = {place: tuple(reversed(needs)) for place, needs in reversed(list(world.listed.items()))}
    assert answer(World(turned, world.roots)) == answer(world)
