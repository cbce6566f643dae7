"""Files that metadata names, in random worlds: every answer holds, judged by a check that knows nothing of the solver.

A world has a few distributions. An index lists versions of them; files lie at addresses that requirements may name. What
somebody names must be that very file; a file is in an environment only where somebody in it, or the spec, names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from provisioner.errors import ProvisionError
from provisioner.index.model import DIRECT_URL, IndexFile, PackageRelease
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from tests import small
from tests.extras_named import applicable
from tests.strategies import case, examples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.utils import NormalizedName

    from provisioner.index.model import Environment

pytestmark = pytest.mark.property

MATRIX = small.matrix(("python",), {"python": {"3.12": {}}}, virtual=())

NAMES = ("a", "b", "c")
VERSIONS = ("1", "2", "3")
PLACE = "https://files.test"


@dataclass(frozen=True)
class World:
    """`listed` and `files` map (name, version) to requirements; `roots` are the spec's packages."""

    listed: dict[tuple[str, str], tuple[str, ...]]
    files: dict[tuple[str, str], tuple[str, ...]]
    roots: tuple[str, ...]


def address(name: str, version: str) -> str:
    return f"{PLACE}/{name}-{version}-py3-none-any.whl"


class Source:
    """The `PackageSource` of a world, in memory."""

    def __init__(self, world: World) -> None:
        self.world = world

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        found = [version for known, version in self.world.listed if known == name and not index]
        return tuple(self._release(name, version, "pypi") for version in sorted(found, key=Version, reverse=True))

    def direct(self, name: NormalizedName, url: str) -> PackageRelease:
        version = url.rpartition("/")[2].split("-")[1]
        if (str(name), version) not in self.world.files:
            raise ProvisionError(f"`{url}` is not there")
        return self._release(name, version, DIRECT_URL)

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        assert release.file is not None
        table = self.world.files if release.file.index == DIRECT_URL else self.world.listed
        return applicable((Requirement(text) for text in table[release.name, str(release.version)]), extras)

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        del release
        return ()

    def is_built(self, _: IndexFile) -> bool:
        return False

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        """Everything is at hand."""

    def _release(self, name: NormalizedName, version: str, index: str) -> PackageRelease:
        file = IndexFile(
            filename=f"{name}-{version}-py3-none-any.whl", url=address(name, version), index=index, sha256="0" * 64
        )
        return PackageRelease.of(name=name, version_text=version, file=file)


@st.composite
def requirements(draw: st.DrawFn) -> str:
    name, version = draw(st.sampled_from(NAMES)), draw(st.sampled_from(VERSIONS))
    return draw(st.sampled_from([name, f"{name}>={version}", f"{name}<={version}", f"{name} @ {address(name, version)}"]))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    places = [(name, version) for name in NAMES for version in VERSIONS]
    needs = st.lists(requirements(), max_size=2).map(tuple)
    listed = draw(st.dictionaries(st.sampled_from(places), needs, max_size=7))
    files = draw(st.dictionaries(st.sampled_from(places), needs, max_size=4))
    roots = draw(st.lists(requirements(), min_size=1, max_size=3).map(tuple))
    return World(listed, files, roots)


Choice = tuple[str, bool]
"""A version, and whether it is a file that requirements name."""


def holds(requirement: Requirement, chosen: dict[str, Choice]) -> bool:
    found = chosen.get(canonicalize_name(requirement.name))
    if found is None:
        return False
    version, is_file = found
    if requirement.url is not None:
        return is_file and requirement.url == address(requirement.name, version)
    return requirement.specifier.contains(version, prereleases=True)


def is_environment(world: World, chosen: dict[str, Choice]) -> bool:
    """Whether everything that is required holds, and every file is named by somebody."""
    tables = {True: world.files, False: world.listed}
    wanted = [Requirement(text) for text in world.roots]
    for name, (version, is_file) in chosen.items():
        wanted += [Requirement(text) for text in tables[is_file][name, version]]
    named = {one.url for one in wanted}
    return all(holds(one, chosen) for one in wanted) and all(
        address(name, version) in named for name, (version, is_file) in chosen.items() if is_file
    )


def environments(world: World) -> Iterator[dict[str, Choice]]:
    """Every way to choose at most one of each distribution."""
    options: list[list[Choice | None]] = []
    for name in NAMES:
        listed = [(version, False) for known, version in world.listed if known == name]
        files = [(version, True) for known, version in world.files if known == name]
        options.append([None, *listed, *files])
    for picked in product(*options):
        chosen = {name: one for name, one in zip(NAMES, picked, strict=True) if one is not None}
        if is_environment(world, chosen):
            yield chosen


def answer(world: World) -> dict[str, Choice] | None:
    request = small.request({"python": "==3.12"}, packages=world.roots, accelerator="cpu", runs="host")

    def source(_: Environment) -> Source:
        return Source(world)

    try:
        stack = solve_joint(join(MATRIX, request), source)
    except NoStackError:
        return None
    return {package.name: (package.version, package.file.index == DIRECT_URL) for package in stack.packages}


@examples(400, derandomize=True, shares={"answered": 0.3, "impossible": 0.05})
@given(worlds())
def test_every_answer_holds_and_what_the_spec_names_makes_nothing_impossible(world: World) -> None:
    try:
        found = answer(world)
    except ProvisionError:
        # A file that the spec names and that is not there is a mistake in the spec, not a conflict.
        urls = [one for text in world.roots if (one := Requirement(text)).url is not None]
        assert any((one.name, str(one.url).rpartition("/")[2].split("-")[1]) not in world.files for one in urls)
    else:
        if found is not None:
            case("answered")
            assert is_environment(world, found)
        elif not any("@" in text for needs in (*world.listed.values(), *world.files.values()) for text in needs):
            # What metadata names is known when it is read: a search that ends before says "impossible" of what it has seen.
            case("impossible")
            assert next(environments(world), None) is None
