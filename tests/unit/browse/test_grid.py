"""Every cell of the heat map is what the solver says of that host; two thousand of them are sampled."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.browse.grid import LETTERS, Code, Device, Grid, chosen_beside, make_grid, newest_of_branches, request_for
from provisioner.browse.stacks import frameworks
from provisioner.grounds.requirement import AsksFor, Relation, Row
from provisioner.platforms import LINUX_PLATFORMS
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Key, Requirement, build_of, release_of
from provisioner.resolver.rules.coverage import capability, coverage
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.platforms import PlatformName
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.spec.model import Allowance

PLATFORM = LINUX_PLATFORMS[0]
"""One is enough here, and half the work; the browser's tests compare hosts of both."""

KNOWN = "pytorch", "2.7.1"
"""The release of the cells that are known by hand."""

HOSTS, BUILDS = 100, 20
"""How many pairs of GPU and driver are sampled, and how many builds on each: up to two thousand cells."""


@pytest.fixture(scope="module")
def grid(matrix: Matrix) -> Grid:
    return make_grid(matrix, (PLATFORM,))


@pytest.fixture(
    scope="module", params=[pytest.param("one release"), pytest.param("the whole matrix", marks=pytest.mark.slow)], ids=str
)
def known_grid(request: pytest.FixtureRequest, matrix: Matrix) -> Grid:
    """The grid of the known builds alone, and for `make test-all` the whole one, which takes a minute to make."""
    if request.param == "the whole matrix":
        whole: Grid = request.getfixturevalue("grid")
        return whole
    kept = {
        name: replace(component, releases=tuple(one for one in component.releases if (name, str(one.version)) == KNOWN))
        if name in frameworks(matrix)
        else component
        for name, component in matrix.components.items()
    }
    return make_grid(replace(matrix, components=kept), (PLATFORM,))


def problems(matrix: Matrix, device: Device, platform: PlatformName, driver: str | None) -> list[tuple[str, Problem]]:
    """The host behind a cell as a problem for each letter, the least relaxation first; the driver is a stated fact."""
    ways: tuple[tuple[str, tuple[Allowance, ...]], ...] = (
        ("n", ("ptx-jit",)),
        ("m", ("minor-version", "ptx-jit")),
        ("f", ("minor-version", "forward-compat", "ptx-jit")),
    )
    return [(letter, join(matrix, request_for(matrix, device, platform, driver=driver, allow=allow))) for letter, allow in ways]


def solved(host: list[tuple[str, Problem]], grid: Grid, index: int) -> str:
    """The letter of a cell by the main search, which the grid does not use."""
    name, release, build = grid.builds[index]
    asked = Requirement(Key(name), Only(release, build), AsksFor(name=name, release=str(release.version)))
    if decide(ProblemInstance(host[-1][1].with_roots(asked))) is None:
        return "x"
    letter = next(letter for letter, problem in host if decide(ProblemInstance(problem.with_roots(asked))) is not None)
    target = host[0][1].request.hosts[0].host.gpus
    assert target is not None
    device = target[0].compute_capability
    is_ptx = build.sass is not None and device and coverage(build.sass, build.ptx or (), capability(device)) == "ptx"
    return "p" if is_ptx else letter


def letter_of(code: Code) -> str:
    """The letter of how CUDA is run, for builds that nobody measured too."""
    return LETTERS[code.basis] if code.letter == "u" else code.letter


class Only:
    """The candidate of one build: a build for another platform may have the same label."""

    def __init__(self, release: Release, build: Build) -> None:
        self._release, self._build = release, build

    def allows(self, candidate: Candidate) -> bool:
        return (release_of(candidate), build_of(candidate)) == (self._release, self._build)


@pytest.mark.slow
def test_two_thousand_cells_are_what_the_solver_says(matrix: Matrix, grid: Grid) -> None:
    chance = random.Random(20261121)
    compared = {"x": 0, "n": 0, "m": 0, "f": 0, "p": 0}
    for _ in range(HOSTS):
        place = chance.randrange(len(grid.devices))
        column = chance.randrange(len(grid.drivers))
        device = grid.devices[place]
        driver = None if device.is_amd else str(grid.drivers[column])
        host = problems(matrix, device, PLATFORM, driver)
        numbers = grid.table[PLATFORM][place]
        known = [index for index, number in enumerate(numbers) if number >= 0]
        for index in chance.sample(known, min(BUILDS, len(known))):
            row = grid.rows[numbers[index]]
            code = grid.codes[row[0 if len(row) == 1 else column]]
            if code.letter == "u" and not code.is_offered:
                continue  # the solver refuses such a build unless it is asked for by name
            name, release, build = grid.builds[index]
            cell = f"{name} {release.version}+{build.name} on {device} with driver {driver}: {code}"
            assert solved(host, grid, index) == letter_of(code), cell
            compared[letter_of(code)] += 1
    assert sum(compared.values()) > HOSTS * BUILDS // 3
    assert all(compared[letter] for letter in "xnm"), compared


@pytest.mark.slow
def test_a_refusal_names_rules_and_never_facts(grid: Grid) -> None:
    refused = [code for code in grid.codes if code.letter == "x"]
    assert refused
    for code in refused:
        assert code.groups
        assert all(isinstance(group, Row | Relation) for group in code.groups), code


def test_known_cells(matrix: Matrix, known_grid: Grid) -> None:
    """NVIDIA's Volta on the first branch without it (rule driver-590-drops-volta), and CUDA 12.6 on branch 535."""
    volta = next(i for i, one in enumerate(known_grid.devices) if one.target == "7.0")
    hopper = next(i for i, one in enumerate(known_grid.devices) if (one.target, one.kind) == ("9.0", "datacenter"))
    branch = {driver.release[0]: index for index, driver in enumerate(newest_of_branches(matrix))}
    build = next(i for i, (n, r, b) in enumerate(known_grid.builds) if (n, str(r.version), b.name) == (*KNOWN, "cu126"))

    def code(device: int, driver: int) -> tuple[str, tuple[str, ...]]:
        found = known_grid.codes[known_grid.rows[known_grid.table["linux/amd64"][device][build]][branch[driver]]]
        return found.letter, tuple(str(group) for group in found.groups)

    assert code(volta, 590) == ("x", ("rule driver-590-drops-volta",))
    assert code(volta, 580) == ("n", ())
    assert code(hopper, 535) == ("m", ())
    assert code(hopper, 470) == ("x", ("rule driver-ada-hopper-first",))


def test_what_lies_beside_a_build(matrix: Matrix, known_grid: Grid) -> None:
    build = next(one for one in known_grid.builds if (one[0], str(one[1].version), one[2].name) == (*KNOWN, "cu126"))
    (beside,) = chosen_beside(matrix, [build])
    assert beside["cuda"].startswith("12.6.")
    assert beside["cudnn"] == "9.5.1.17"
    assert "driver" not in beside
