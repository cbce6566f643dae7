"""Compute the verdicts of the heat map: every framework build on every kind of GPU under every driver branch.

The complete search of the resolver decides each verdict. A branch stands for its newest release in the matrix. Kernels are
left out of the verdicts (an installed driver runs on its kernel); documented pairs are listed beside them. Forward
compatibility and PTX compilation at start are allowed, and a letter names the least relaxation that a build needs: a build that
runs with several CUDA releases is native as soon as the driver runs one of these natively.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import Struct, field

from provisioner.accelerators import accelerator_of_target
from provisioner.browse.shapes import Numbers, Shapes
from provisioner.browse.stacks import LABEL, frameworks, with_cuda_compat
from provisioner.grounds.requirement import Relation
from provisioner.host.model import Driver, Host, HostGpu
from provisioner.platforms import LINUX_PLATFORMS
from provisioner.request import Request, TargetHost
from provisioner.resolver.choices.variants import preference
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Candidate, Key, ReleaseCandidate
from provisioner.resolver.rules.coverage import capability, coverage
from provisioner.resolver.rules.drivers import RunsCuda, kernel_support
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.spec.model import Policy, Spec, TargetSpec
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

    from provisioner.accelerators import AcceleratorName
    from provisioner.browse.shapes import Reach
    from provisioner.grounds.requirement import Group
    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.platforms import PlatformName
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.search.instance import AllowedOf
    from provisioner.spec.model import Allowance

Value = TypeVar("Value", bound="Hashable")

LETTERS = {"native": "n", "minor-version": "m", "forward-compat": "f"}
BASES = tuple(LETTERS)
PTX, UNMEASURED, REFUSED = "p", "u", "x"
INSTALLED: tuple[Group, ...] = (Relation("driver", "kernel"),)
"""The requirements of a driver on the kernel, which are ignored because an installed driver runs on its kernel."""

VENDORS: tuple[AcceleratorName, ...] = ("cuda", "rocm")
"""The accelerators of the GPUs in the grid, in the order of the grid's devices."""

ALLOWED: tuple[Allowance, ...] = ("minor-version", "forward-compat", "ptx-jit")


class Device(Struct, frozen=True, kw_only=True):
    """One kind of GPU: the target of its code, its market (`datacenter`), and a product that represents it."""

    target: str
    kind: str
    product: str

    @property
    def is_amd(self) -> bool:
        """Whether the GPU is AMD's."""
        return self.accelerator == "rocm"

    @property
    def accelerator(self) -> AcceleratorName:
        """The accelerator whose code the GPU runs."""
        found = accelerator_of_target(self.target)
        assert found is not None, f"the matrix lists `{self.target}`, which is no target of a GPU"
        return found.name


def newest_of_branches(matrix: Matrix) -> tuple[Version, ...]:
    """Return the newest release of every driver branch, newest branch first."""
    driver = matrix.components.get("driver")
    newest: dict[int, Version] = {}
    for release in driver.releases if driver is not None else ():
        branch = release.version.release[0]
        newest[branch] = max(newest.get(branch, release.version), release.version)
    return tuple(newest[branch] for branch in sorted(newest, reverse=True))


def devices(matrix: Matrix) -> tuple[Device, ...]:
    """Return every kind of GPU with products in the matrix, and compute capabilities without any; newest first, AMD's last.

    Jetsons are left out: their driver is a part of Jetson Linux, which the grid does not cover.
    """
    found: dict[tuple[str, str], str] = {}
    for gpu in matrix.gpus:
        found.setdefault((gpu.target, gpu.kind), gpu.name)
    named = {target for target, _ in found}
    gpu_component = matrix.components.get("gpu")
    for release in gpu_component.releases if gpu_component is not None else ():
        if str(release.version) not in named:
            found[str(release.version), ""] = ""
    listed = (one for one in found.items() if one[0][1] != "jetson")
    made = (Device(target=target, kind=kind, product=product) for (target, kind), product in listed)
    return tuple(sorted(made, key=_newest_first))


def _newest_first(device: Device) -> tuple[bool, tuple[int, ...], str, str]:
    numbers = () if device.is_amd else tuple(-number for number in capability(device.target))
    return device.is_amd, numbers, device.target, device.kind


def documented_kernels(matrix: Matrix, drivers: Sequence[Version]) -> dict[str, tuple[str, ...]]:
    """Return for each driver the kernel series that it is documented to build on, newest first."""
    support = kernel_support(matrix)
    kernel = matrix.components.get("kernel")
    series = sorted((release.version for release in kernel.releases), reverse=True) if kernel is not None else []
    return {
        str(driver): tuple(str(one) for one in series if (allowed := support.of(driver)) is not None and allowed.allows(one))
        for driver in drivers
    }


def request_for(
    matrix: Matrix, device: Device, platform: PlatformName, *, driver: str | None = None, allow: tuple[Allowance, ...] = ALLOWED
) -> Request:
    """Return the request for a host with one kind of GPU; without a `driver`, the solver may choose any.

    `allow` is the `policy.allow` of the request's spec.
    """
    gpu = HostGpu.of_target(device.target, name=device.product or None)
    host = Host(
        platform=platform,
        gpus=(gpu,),
        driver=Driver(version=driver) if driver is not None else None,
    )
    return open_request(matrix, device.accelerator, host, platform=platform, allow=allow)


def open_request(
    matrix: Matrix, accelerator: AcceleratorName, host: Host, *, platform: PlatformName, allow: tuple[Allowance, ...] = ALLOWED
) -> Request:
    """Return a request for a stack in containers on one host, with an accelerator and no further requirements.

    `allow` is the `policy.allow` of the request's spec.
    """
    spec = Spec(
        target=TargetSpec(platform=platform),
        accelerator=accelerator,
        policy=Policy(allow=allow),
        runs="container",
    )
    return with_cuda_compat(matrix, Request(spec=spec, hosts=(TargetHost(label=LABEL, host=host),), platform=platform))


class Code(Struct, frozen=True, kw_only=True):
    """A verdict: `letter` is `n`ative, `m`inor-version, `f`orward-compat, `p`tx, `u`nmeasured, or `x` for refused.

    `groups` are the needs and rules in a minimal conflict of a refused build. `basis` is how the driver runs the CUDA of an
    unmeasured build; `is_offered` is whether the resolver chooses such a build and reports it as unverified.
    """

    letter: str
    groups: tuple[Group, ...] = ()
    basis: str = ""
    is_offered: bool = False


class GridBuild(NamedTuple):
    """A build of a release of the framework `component`."""

    component: str
    release: Release
    build: Build


class Verdicts(Struct):
    """Numbered verdicts: `rows` have indexes of `codes`, and `table[platform][device][build]` is an index of `rows`.

    A row has the index of a code for each driver, or of a single code for GPUs of other vendors than NVIDIA. In the table, -1
    stands for a build that is not for the platform.
    """

    codes: list[Code] = field(default_factory=list)
    rows: list[tuple[int, ...]] = field(default_factory=list)
    table: dict[str, list[list[int]]] = field(default_factory=dict)
    _numbers: dict[object, int] = field(default_factory=dict)

    def code(self, code: Code) -> int:
        """Return the index of a verdict in `codes`, to which it is added if it is new."""
        return self._number(code, self.codes)

    def row(self, row: tuple[int, ...]) -> int:
        """Return the index of a row of verdicts in `rows`, to which it is added if it is new."""
        return self._number(row, self.rows)

    def _number(self, value: Value, values: list[Value]) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(values)
            values.append(value)
        return found


class Grid(Verdicts, kw_only=True):
    """The verdicts of builds, each a place in the rows of the table, under the drivers, each a place in a row."""

    drivers: tuple[Version, ...]
    devices: tuple[Device, ...]
    builds: tuple[GridBuild, ...]


def empty_grid(matrix: Matrix) -> Grid:
    """Return the grid of a matrix without any verdict."""
    known = devices(matrix)
    return Grid(drivers=newest_of_branches(matrix), devices=known, builds=tuple(_builds(matrix, known)))


def make_grid(
    matrix: Matrix, platforms: Sequence[PlatformName] = LINUX_PLATFORMS, *, told: Callable[[int, int], None] | None = None
) -> Grid:
    """Return the grid with the verdict of every framework build on every kind of GPU under every driver branch.

    `told` is called with the number of kinds of GPUs that are decided, and with the number of all of them.
    """
    grid = empty_grid(matrix)
    done, of = count(1), len(platforms) * len(grid.devices)

    def tell() -> None:
        if told is not None:
            told(next(done), of)

    return joined(grid, [decide(matrix, grid, vendor, platforms=platforms, told=tell) for vendor in VENDORS])


def decide(
    matrix: Matrix,
    grid: Grid,
    vendor: AcceleratorName,
    *,
    platforms: Sequence[PlatformName] = LINUX_PLATFORMS,
    told: Callable[[], None] | None = None,
) -> Verdicts:
    """Return the verdicts of all builds of a grid on the GPUs of one vendor, which depend on no other vendor's.

    `told` is called for every kind of GPU that is decided, on every platform.
    """
    own = Verdicts()
    decided = Decided()
    for platform in platforms:
        known: dict[tuple[str, tuple[bool, ...]], list[int]] = {}
        for device in (one for one in grid.devices if one.accelerator == vendor):
            equal = (device.target, _market(matrix, device))
            if equal not in known:
                known[equal] = _Column(matrix, grid, own, device, platform=platform, decided=decided).row_indexes()
            own.table.setdefault(platform, []).append(known[equal])
            if told is not None:
                told()
    return own


def joined(grid: Grid, parts: Sequence[Verdicts]) -> Grid:
    """Return a grid with the verdicts of all vendors, in the order of `VENDORS`, numbered in the order of its table."""
    numbers: list[dict[int, int]] = [{-1: -1} for _ in parts]
    for platform in dict.fromkeys(platform for part in parts for platform in part.table):
        for part, known in zip(parts, numbers, strict=True):
            for indexes in part.table.get(platform, ()):
                for index in indexes:
                    if index not in known:
                        known[index] = grid.row(tuple(grid.code(part.codes[code]) for code in part.rows[index]))
                grid.table.setdefault(platform, []).append([known[index] for index in indexes])
    return grid


def _builds(matrix: Matrix, known: Sequence[Device]) -> list[GridBuild]:
    """Return every GPU build of every framework in the resolver's order of preference, releases newest first."""
    found: dict[tuple[str, str], list[GridBuild]] = {}
    for device in (next((one for one in known if one.is_amd is is_amd), None) for is_amd in (False, True)):
        if device is None:
            continue
        requests = [request_for(matrix, device, platform) for platform in LINUX_PLATFORMS]
        domains = [join(matrix, request).domains for request in requests]
        for name in frameworks(matrix):
            # Each platform leaves out the other's builds of a label that it has itself.
            offered = {id(one.build): one for domain in domains for one in _releases(domain.get(Key(name), ()))}
            for candidate in sorted(offered.values(), key=preference, reverse=True):
                release, build = candidate.release, candidate.build
                if build is not None and build.accelerator == requests[0].accelerator:
                    found.setdefault((name, str(release.version)), []).append(GridBuild(name, release, build))
    rank = {name: index for index, name in enumerate(matrix.order)}
    groups = sorted(found.values(), key=lambda group: group[0].release.version, reverse=True)
    return [one for group in sorted(groups, key=lambda group: rank[group[0].component]) for one in group]


def chosen_beside(matrix: Matrix, builds: Sequence[GridBuild]) -> list[dict[str, str]]:
    """Return for each build the other components (CUDA, cuDNN, Python …) that the resolver chooses if the host states nothing.

    Empty for a build without a stack.
    """
    found: list[dict[str, str]] = [{} for _ in builds]
    alike: dict[tuple[PlatformName, str], list[int]] = {}
    for index, one in enumerate(builds):
        platform = one.build.platforms[0] if one.build.platforms else LINUX_PLATFORMS[0]
        alike.setdefault((platform, one.build.accelerator), []).append(index)
    for (platform, accelerator), indexes in alike.items():
        problem = join(matrix, open_request(matrix, accelerator, Host(platform=platform), platform=platform))  # type: ignore[arg-type]  # a matrix has no others
        search = CompleteSearch(ProblemInstance(problem))
        try:
            for index in indexes:
                found[index] = _beside(matrix, problem, search, builds[index])
        finally:
            search.close()
    return found


def _beside(matrix: Matrix, problem: Problem, search: CompleteSearch, of: GridBuild) -> dict[str, str]:
    key = Key(of.component)
    given = _of(problem.domains.get(key, ()), of.release, of.build)
    pins = search.best(given=given, present=[key], without=(*INSTALLED, Relation(of.component, "gpu"))) if given else None
    found = {one.component: candidate.label for one, candidate in (pins or {}).items() if one != key}
    return {
        name: found[name] for name in matrix.order if name in found and name != "image" and not matrix.components[name].virtual
    }


def _releases(candidates: Iterable[Candidate]) -> list[ReleaseCandidate]:
    return [one for one in candidates if isinstance(one, ReleaseCandidate)]


def _of(candidates: Iterable[Candidate], release: Release, build: Build) -> list[ReleaseCandidate]:
    """Return a list with the candidate of a build of a release, [] if `candidates` lacks it."""
    return [one for one in _releases(candidates) if one.release == release and one.build == build]


def _market(matrix: Matrix, device: Device) -> tuple[bool, ...]:
    """Return what rules read of the market of a GPU: whether it is for data centres, and whether each `gpu_kind` guard holds.

    Devices with an equal target and an equal result have equal verdicts.
    """
    kind = Version.named(device.kind)
    guards = (guard for rule in matrix.rules for guard in rule.on if guard.component == "gpu_kind")
    return (device.kind == "datacenter", *(guard.allows(kind) for guard in guards))


class Decided(Struct):
    """The numbers of the verdicts that are decided, by what they depend on (see `provisioner.browse.shapes`).

    `without_driver` has the refusals of builds that no driver can change, and None for other builds; `drivers` has those of
    drivers that no build can change. `problems` has the first one of each platform, whose candidates the others share,
    and `allowed` what tests allow of these.
    """

    numbers: Numbers = field(default_factory=Numbers)
    problems: dict[PlatformName, Problem] = field(default_factory=dict)
    allowed: AllowedOf = field(default_factory=dict)
    without_driver: dict[tuple[object, ...], int | None] = field(default_factory=dict)
    drivers: dict[tuple[object, ...], int | None] = field(default_factory=dict)
    cells: dict[tuple[object, ...], int] = field(default_factory=dict)


class _Column:
    """Decides the verdicts of all builds on one kind of GPU with one incremental search."""

    def __init__(
        self, matrix: Matrix, grid: Grid, verdicts: Verdicts, device: Device, *, platform: PlatformName, decided: Decided
    ) -> None:
        self._builds = grid.builds
        self._verdicts = verdicts
        self._device = device
        self._platform = platform
        self._decided = decided
        problem = join(matrix, request_for(matrix, device, platform))
        self._problem = problem.sharing(decided.problems.setdefault(platform, problem))
        self._instance = ProblemInstance(self._problem, allowed=decided.allowed)
        self._search = CompleteSearch(self._instance)
        driver = Key("driver", LABEL)
        drivers = {one.version: one for one in self._problem.domains.get(driver, ())}
        self._drivers = [] if device.is_amd else [drivers[version] for version in grid.drivers]
        self._subject = [Key(name) for name in frameworks(matrix)]
        self._shapes = Shapes(self._instance, decided.numbers, driver=driver, subject=self._subject, ignored=INSTALLED)
        self._known: dict[frozenset[Group], tuple[Group, ...]] = {}
        self._bases: dict[tuple[Candidate, Candidate], str] = {}

    def row_indexes(self) -> list[int]:
        """Return the index of a row for each build of the grid, -1 for builds of other platforms."""
        found = self._candidates()
        for candidate in (*found, *self._drivers):
            if candidate is not None:
                self._shapes.reach(candidate)  # the effects of drivers are known when all requirements on drivers are read
        effects = [self._shapes.effect(driver) for driver in self._drivers]
        try:
            return [-1 if one is None else self._verdicts.row(self._row(one, effects)) for one in found]
        finally:
            self._search.close()

    def _candidates(self) -> list[ReleaseCandidate | None]:
        """Return the candidate of each build of the grid; None if the build is not for the platform, or for other GPUs."""
        known: dict[tuple[int, int], ReleaseCandidate] = {}
        for key in self._subject:
            for one in _releases(self._problem.domains.get(key, ())):
                known[id(one.release), id(one.build)] = one
        return [
            None if build.platforms and self._platform not in build.platforms else known.get((id(release), id(build)))
            for _, release, build in self._builds
        ]

    def _row(self, framework: ReleaseCandidate, effects: Sequence[int]) -> tuple[int, ...]:
        """Return the index of a verdict for each driver, or of a single verdict; `effects` are those of the drivers."""
        build = framework.build
        assert build is not None, "the grid is made of builds"
        is_measured = (build.gfx if self._device.is_amd else build.sass) is not None
        is_ptx = not self._device.is_amd and self._is_ptx(build)
        reach = self._shapes.reach(framework)
        base = (framework.key, self._shapes.roots, reach.shapes, is_measured, is_ptx)
        if not self._drivers:
            return (self._cell(base, framework, build),)
        known = self._decided.without_driver
        if base not in known:
            known[base] = self._refusal(
                framework, without=frozenset((*self._ignored(framework, build), *self._shapes.groups_on_drivers()))
            )
        refused = known[base]
        if refused is not None:
            return (refused,) * len(self._drivers)
        seen = self._shapes.effects_on(reach.on_drivers)
        number = self._decided.numbers.number(base)
        cells = []
        for driver, effect in zip(self._drivers, effects, strict=True):
            own = self._shapes.reach(driver)
            alone = self._alone(driver, own)
            is_apart = not own.keys & reach.keys
            key = number, effect & seen, 0 if is_apart else own.shapes
            cells.append(alone if alone is not None else self._cell(key, framework, build, driver))
        return tuple(cells)

    def _is_ptx(self, build: Build) -> bool:
        return coverage(build.sass or (), build.ptx or (), capability(self._device.target)) == "ptx"

    def _alone(self, driver: Candidate, own: Reach) -> int | None:
        """Return the number of the refusal of a driver that does not run on the GPU whatever the build; None if it runs."""
        known, key = self._decided.drivers, (self._shapes.roots, own.shapes)
        if key not in known:
            known[key] = self._refusal(driver, without=INSTALLED)
        return known[key]

    def _refusal(self, candidate: Candidate, *, without: Collection[Group]) -> int | None:
        """Return the number of a candidate's refusal by the groups that are not in `without`; None if these allow it."""
        if self._search.find(given=[candidate], present=[candidate.key], without=without) is not None:
            return None
        core = self._search.refutation(given=[candidate], present=[candidate.key], without=without) or ()
        return self._verdicts.code(Code(letter=REFUSED, groups=self._minimal_core([candidate], frozenset(core), without)))

    def _cell(self, key: tuple[object, ...], framework: Candidate, build: Build, *drivers: Candidate) -> int:
        """Return the number of the verdict of a cell, decided once for all cells with the same `key`."""
        known = self._decided.cells
        if key not in known:
            known[key] = self._verdicts.code(self._code(framework, build, *drivers))
        return known[key]

    def _ignored(self, framework: Candidate, build: Build) -> tuple[Group, ...]:
        """Return the groups that are ignored: of a build whose targets nobody measured, its requirement on the GPU too."""
        is_measured = (build.gfx if self._device.is_amd else build.sass) is not None
        return INSTALLED if is_measured else (*INSTALLED, Relation(framework.key.component, "gpu"))

    def _code(self, framework: Candidate, build: Build, *drivers: Candidate) -> Code:
        given = [framework, *drivers]
        is_measured = (build.gfx if self._device.is_amd else build.sass) is not None
        pins = self._search.find(given=given, present=[framework.key], without=INSTALLED)
        if pins is not None and is_measured:
            is_ptx = not self._device.is_amd and self._is_ptx(build)
            return Code(letter=PTX if is_ptx else LETTERS[self._basis(given, pins, INSTALLED)])
        if pins is not None:
            return Code(letter=UNMEASURED, basis=self._basis(given, pins, INSTALLED), is_offered=True)
        ignored = self._ignored(framework, build)
        if not is_measured:
            pins = self._search.find(given=given, present=[framework.key], without=ignored)
        if pins is not None:
            return Code(letter=UNMEASURED, basis=self._basis(given, pins, ignored))
        core = self._search.refutation(given=given, present=[framework.key], without=ignored) or ()
        return Code(letter=REFUSED, groups=self._minimal_core(given, frozenset(core), ignored))

    def _basis(self, given: list[Candidate], pins: dict[Key, Candidate], ignored: Sequence[Group]) -> str:
        """Return the least relaxation with which the driver runs some CUDA of the build; `native` for a stack without CUDA.

        `given` are the framework build and, if it is fixed, the driver; `pins` is a stack found for them, and `ignored` are the
        requirements that do not count.
        """
        key = next((key for key in pins if key.component == "cuda"), None)
        driver = next((one for key, one in pins.items() if key.component == "driver"), None)
        if key is None or driver is None:
            return "native"
        found = self._runs(pins[key], driver)
        taken = self._taken(given[0], key)
        for better in BASES[: BASES.index(found)]:
            among = [one for one in taken if self._runs(one, driver) == better]
            if among and self._search.find(given=given, present=[given[0].key], without=ignored, among=(among,)) is not None:
                return better
        return found

    def _taken(self, framework: Candidate, key: Key) -> list[Candidate]:
        """Return the candidates of the CUDA key `key` that the requirements of a framework build allow."""
        wanted = [one for one in self._instance.requirements(framework) if one.key == key]
        return [one for one in self._instance.candidates(key) if all(one in self._instance.allowed(need) for need in wanted)]

    def _runs(self, cuda: Candidate, driver: Candidate) -> str:
        """Return how a driver runs a CUDA release (one of `BASES`), "" if it does not."""
        known = self._bases.get((cuda, driver))
        if known is None:
            tests = (one.test for one in self._instance.requirements(cuda) if one.key == driver.key)
            runs = next((test for test in tests if isinstance(test, RunsCuda)), None)
            known = self._bases[cuda, driver] = "native" if runs is None else runs.basis(driver.version)
        return known

    def _minimal_core(self, given: list[Candidate], core: frozenset[Group], ignored: Collection[Group]) -> tuple[Group, ...]:
        """Return the needs and rules in a minimal part of `core` that rules out every stack with the candidates `given`.

        Facts and requests in that part are left out. `core` are groups of requirements that together are unsatisfiable;
        `ignored` groups never count.
        """
        known = self._known.get(core)
        if known is not None and self._is_refuted(given, known, ignored):
            return self._rules(known)
        found = sorted(core, key=str)
        for group in tuple(found):
            rest = [one for one in found if one != group]
            if group in found and self._is_refuted(given, rest, ignored):
                found = rest
        self._known[core] = tuple(found)
        return self._rules(found)

    def _is_refuted(self, given: list[Candidate], groups: Iterable[Group], ignored: Collection[Group]) -> bool:
        """Return whether the groups in `groups` alone rule out every stack with the candidates `given`."""
        without = {*self._search.groups, *ignored} - set(groups)
        core = self._search.refutation(given=given, present=[given[0].key], without=without)
        return core is not None and set(core) <= set(groups)

    def _rules(self, groups: Iterable[Group]) -> tuple[Group, ...]:
        """Return the groups of needs and rules, from the framework down to the host.

        Facts and requests are left out: the position of the verdict in the heat map shows these.
        """
        order = self._problem.order
        ranked = []
        for group in groups:
            subjects = [order[parent.key] for parent, _ in self._search.members(group) if parent is not None]
            if subjects:
                ranked.append((min(subjects), group))
        return tuple(group for _, group in sorted(ranked, key=lambda one: (one[0], str(one[1]))))
