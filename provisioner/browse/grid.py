"""The heat map's verdicts: every framework build on every kind of GPU under every driver branch, each decided by the solver.

A branch stands for its newest release in the matrix. Kernels are left out of the verdicts (a driver that is installed runs on
its kernel); which pairs are documented is said beside them. Forward compatibility and PTX compiled at start are tried too, and
marked as what they are, so that a reader who does not allow them sees a refusal. A letter names the least relaxation that is
needed: where a build takes several CUDAs, it is native as soon as one of them is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.browse.axes import Device, devices, newest_of_branches, open_request, request_for
from provisioner.browse.stacks import LABEL, frameworks
from provisioner.grounds.requirement import Relation
from provisioner.host.model import Host
from provisioner.platforms import LINUX_PLATFORMS
from provisioner.resolver.choices.candidates import preference
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Candidate, Key, ReleaseCandidate
from provisioner.resolver.rules.coverage import capability, coverage
from provisioner.resolver.rules.drivers import RunsCuda
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from provisioner.grounds.requirement import Group
    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.platforms import PlatformName

LETTERS = {"native": "n", "minor-version": "m", "forward-compat": "f"}
BASES = tuple(LETTERS)
PTX, UNMEASURED, REFUSED = "p", "u", "x"
INSTALLED: tuple[Group, ...] = (Relation("driver", "kernel"),)
"""Groups that say where a driver can be built: one that is loaded has been."""


class Code(Struct, frozen=True, kw_only=True):
    """One verdict: `n`ative, `m`inor-version, `f`orward-compat, `p`tx, `u`nmeasured or `x`, refused, and then by which groups.

    `basis` is how the driver runs the CUDA of an unmeasured build; `is_offered` is whether the solver takes such a build,
    saying that it is unverified.
    """

    letter: str
    groups: tuple[Group, ...] = ()
    basis: str = ""
    is_offered: bool = False


class Grid(Struct):
    """Verdicts as numbers: `table[platform][device][build]` is a row of `rows`, -1 where the build is not for the platform.

    A row has a code for each driver, or a single one where the GPU's driver is not one of NVIDIA's.
    """

    drivers: tuple[Version, ...]
    devices: tuple[Device, ...]
    builds: list[tuple[str, Release, Build]] = field(default_factory=list)
    codes: list[Code] = field(default_factory=list)
    rows: list[tuple[int, ...]] = field(default_factory=list)
    table: dict[str, list[list[int]]] = field(default_factory=dict)

    def code(self, code: Code) -> int:
        """The number of a verdict."""
        if code not in self.codes:
            self.codes.append(code)
        return self.codes.index(code)

    def row(self, row: tuple[int, ...]) -> int:
        """The number of a row of verdicts."""
        if row not in self.rows:
            self.rows.append(row)
        return self.rows.index(row)


def make_grid(matrix: Matrix, platforms: Sequence[PlatformName] = LINUX_PLATFORMS) -> Grid:
    """Decide every cell."""
    grid = Grid(drivers=newest_of_branches(matrix), devices=devices(matrix))
    grid.builds.extend(_builds(matrix, grid.devices))
    for platform in platforms:
        decided: dict[tuple[str, tuple[bool, ...]], list[int]] = {}
        for device in grid.devices:
            twins = (device.target, _market(matrix, device))
            if twins not in decided:
                decided[twins] = _Column(matrix, grid, device, platform).numbers()
            grid.table.setdefault(platform, []).append(decided[twins])
    return grid


def _builds(matrix: Matrix, known: Sequence[Device]) -> list[tuple[str, Release, Build]]:
    """Every GPU build of every framework in the solver's own order of preference, releases newest first."""
    found: dict[tuple[str, str], list[tuple[str, Release, Build]]] = {}
    for device in (next((one for one in known if one.is_amd is is_amd), None) for is_amd in (False, True)):
        if device is None:
            continue
        requests = [request_for(device, platform) for platform in LINUX_PLATFORMS]
        domains = [join(matrix, request).domains for request in requests]
        for name in frameworks(matrix):
            # Each platform leaves out the other's builds of a label that it has itself.
            offered = {id(one.build): one for domain in domains for one in _releases(domain.get(Key(name), ()))}
            for candidate in sorted(offered.values(), key=preference, reverse=True):
                release, build = candidate.release, candidate.build
                if build is not None and build.accelerator == requests[0].accelerator:
                    found.setdefault((name, str(release.version)), []).append((name, release, build))
    rank = {name: index for index, name in enumerate(matrix.order)}
    groups = sorted(found.values(), key=lambda group: group[0][1].version, reverse=True)
    return [one for group in sorted(groups, key=lambda group: rank[group[0][0]]) for one in group]


def chosen_beside(matrix: Matrix, name: str, *, release: Release, build: Build) -> dict[str, str]:
    """What the solver puts under a build where the host leaves everything open: the CUDA, cuDNN, Python … it runs with."""
    platform = build.platforms[0] if build.platforms else LINUX_PLATFORMS[0]
    problem = join(matrix, open_request(build.accelerator, platform, Host(platform=platform)))  # type: ignore[arg-type]  # a matrix has no others
    key = Key(name)
    given = _of(problem.domains.get(key, ()), release, build)
    search = CompleteSearch(ProblemInstance(problem))
    try:
        pins = search.best(given=given, present=[key], without=(*INSTALLED, Relation(name, "gpu"))) if given else None
    finally:
        search.close()
    found = {one.component: candidate.label for one, candidate in (pins or {}).items() if one != key}
    return {
        name: found[name] for name in matrix.order if name in found and name != "image" and not matrix.components[name].virtual
    }


def _releases(candidates: Iterable[Candidate]) -> list[ReleaseCandidate]:
    return [one for one in candidates if isinstance(one, ReleaseCandidate)]


def _of(candidates: Iterable[Candidate], release: Release, build: Build) -> list[ReleaseCandidate]:
    """The candidate of a build, if it is among these."""
    return [one for one in _releases(candidates) if one.release == release and one.build == build]


def _market(matrix: Matrix, device: Device) -> tuple[bool, ...]:
    """What tells GPUs of one target apart: forward compatibility is for data centres, and guards may speak of kinds."""
    kind = Version.named(device.kind)
    guards = (guard for rule in matrix.rules for guard in rule.on if guard.component == "gpu_kind")
    return (device.kind == "datacenter", *(guard.allows(kind) for guard in guards))


def _leaves(matrix: Matrix) -> frozenset[str]:
    """Components that bind nothing further, such as Python: no driver is chosen by them."""
    binding = {rule.when.component for rule in matrix.rules}
    for name, component in matrix.components.items():
        if any(one.requires or one.driver or any(build.requires for build in one.builds) for one in component.releases):
            binding.add(name)
    return frozenset(matrix.components) - binding - {"driver", "gpu", "kernel"}


class _Column:
    """All builds on one kind of GPU: one problem, asked again and again."""

    def __init__(self, matrix: Matrix, grid: Grid, device: Device, platform: PlatformName) -> None:
        self._grid = grid
        self._device = device
        self._platform = platform
        self._problem = join(matrix, request_for(device, platform))
        self._instance = ProblemInstance(self._problem)
        self._search = CompleteSearch(self._instance)
        drivers = {one.version: one for one in self._problem.domains.get(Key("driver", LABEL), ())}
        self._drivers = [] if device.is_amd else [drivers[version] for version in grid.drivers]
        self._known: dict[frozenset[Group], tuple[Group, ...]] = {}
        self._rows: dict[tuple[object, ...], int] = {}
        self._leaves = _leaves(matrix)
        self._bases: dict[tuple[Candidate, Candidate], str] = {}

    def numbers(self) -> list[int]:
        """A row number for each build of the grid."""
        try:
            return [self._number(*one) for one in self._grid.builds]
        finally:
            self._search.close()

    def _number(self, component: str, release: Release, build: Build) -> int:
        if build.platforms and self._platform not in build.platforms:
            return -1
        found = _of(self._problem.domains.get(Key(component), ()), release, build)
        if not found:
            return -1
        candidate = found[0]
        first = self._judge(candidate, build)
        if not self._drivers or first.letter == REFUSED:
            return self._grid.row((self._grid.code(first),) * max(1, len(self._drivers)))
        twins = self._twins(candidate, first)
        if twins not in self._rows:
            cells = (self._judge(candidate, build, driver) for driver in self._drivers)
            self._rows[twins] = self._grid.row(tuple(self._grid.code(cell) for cell in cells))
        return self._rows[twins]

    def _twins(self, candidate: Candidate, first: Code) -> tuple[object, ...]:
        """What the driver can matter to: builds that agree in it, and run at all, have the same row."""
        wanted = self._instance.requirements(candidate)
        bound = ((one.key, str(one.test)) for one in wanted if one.key.component not in self._leaves)
        return (candidate.key.component, first, *sorted(bound))

    def _judge(self, framework: Candidate, build: Build, *drivers: Candidate) -> Code:
        given = [framework, *drivers]
        is_measured = (build.gfx if self._device.is_amd else build.sass) is not None
        pins = self._search.find(given=given, present=[framework.key], without=INSTALLED)
        if pins is not None and is_measured:
            is_ptx = not self._device.is_amd and self._is_ptx(build)
            return Code(letter=PTX if is_ptx else LETTERS[self._basis(given, pins, INSTALLED)])
        if pins is not None:
            return Code(letter=UNMEASURED, basis=self._basis(given, pins, INSTALLED), is_offered=True)
        ignored = INSTALLED if is_measured else (*INSTALLED, Relation(framework.key.component, "gpu"))
        if not is_measured:
            pins = self._search.find(given=given, present=[framework.key], without=ignored)
        if pins is not None:
            return Code(letter=UNMEASURED, basis=self._basis(given, pins, ignored))
        return Code(letter=REFUSED, groups=self._why(given, frozenset(self._search.core(without=ignored)), ignored))

    def _is_ptx(self, build: Build) -> bool:
        return coverage(build.sass or (), build.ptx or (), capability(self._device.target)) == "ptx"

    def _basis(self, given: list[Candidate], pins: dict[Key, Candidate], ignored: Sequence[Group]) -> str:
        """The least relaxation that runs some CUDA the build takes; a stack without CUDA needs no such bridge."""
        key = next((key for key in pins if key.component == "cuda"), None)
        driver = next((one for key, one in pins.items() if key.component == "driver"), None)
        if key is None or driver is None:
            return "native"
        found = self._runs(pins[key], driver)
        taken = self._taken(given[0], key)
        for better in BASES[: BASES.index(found)]:
            among = [one for one in taken if self._runs(one, driver) == better]
            if among and self._search.find(given=given, present=[given[0].key], without=ignored, among=among) is not None:
                return better
        return found

    def _taken(self, framework: Candidate, key: Key) -> list[Candidate]:
        """The CUDA releases that a build's own needs leave."""
        wanted = [one for one in self._instance.requirements(framework) if one.key == key]
        return [one for one in self._instance.candidates(key) if all(one in self._instance.allowed(need) for need in wanted)]

    def _runs(self, cuda: Candidate, driver: Candidate) -> str:
        """How a driver runs a CUDA release, as the solver judges it; "" where it does not."""
        known = self._bases.get((cuda, driver))
        if known is None:
            tests = (one.test for one in self._instance.requirements(cuda) if one.key == driver.key)
            runs = next((test for test in tests if isinstance(test, RunsCuda)), None)
            known = self._bases[cuda, driver] = "native" if runs is None else runs.basis(driver.version)
        return known

    def _why(self, given: list[Candidate], core: frozenset[Group], ignored: Collection[Group]) -> tuple[Group, ...]:
        """The core made smaller: a group stays only if the rest can hold together without it."""
        kept = self._known.get(core)
        if kept is not None and self._is_refuted(given, kept, ignored):
            return self._rules(kept)
        found = sorted(core, key=str)
        for group in tuple(found):
            rest = [one for one in found if one != group]
            if group in found and self._is_refuted(given, rest, ignored):
                found = rest
        self._known[core] = tuple(found)
        return self._rules(found)

    def _is_refuted(self, given: list[Candidate], kept: Iterable[Group], ignored: Collection[Group]) -> bool:
        without = {*self._search.groups, *ignored} - set(kept)
        if self._search.find(given=given, present=[given[0].key], without=without) is not None:
            return False
        return set(self._search.core(without=without)) <= set(kept)  # groups met on the way count for nothing

    def _rules(self, groups: Iterable[Group]) -> tuple[Group, ...]:
        """From the framework down to the host, without the facts and requests: the cell itself states those."""
        order = self._problem.order
        ranked = []
        for group in groups:
            subjects = [order[parent.key] for parent, _ in self._search.members(group) if parent is not None]
            if subjects:
                ranked.append((min(subjects), group))
        return tuple(group for _, group in sorted(ranked, key=lambda one: (one[0], str(one[1]))))
