"""Compute which framework builds run on which Macs: Apple silicon, and Intel Macs with and without a GPU of NVIDIA.

As in the heat map, the complete search of the resolver decides each verdict. A release of macOS stands for its series, by the
newest release in the matrix. The web driver and the CUDA driver of an Intel Mac are left open, and chosen by the solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from provisioner.browse.stacks import LABEL, frameworks
from provisioner.host.model import Host, HostGpu, OperatingSystem
from provisioner.request import Request, TargetHost
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Key, ReleaseCandidate
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance, violations
from provisioner.spec.model import Policy, Spec, TargetSpec

if TYPE_CHECKING:
    from provisioner.accelerators import AcceleratorName
    from provisioner.grounds.requirement import Group
    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.platforms import PlatformName
    from provisioner.resolver.requirement import Candidate

MACS: tuple[tuple[PlatformName, str, tuple[AcceleratorName, ...]], ...] = (
    ("macos/arm64", "", ("mps", "cpu")),
    ("macos/x86_64", "", ("cpu",)),
    ("macos/x86_64", "6.1", ("cuda",)),
    ("macos/x86_64", "5.2", ("cuda",)),
    ("macos/x86_64", "3.5", ("cuda",)),
)
"""The kinds of Macs: the platform, the compute capability of a GPU of NVIDIA, "" without one, and what a stack may use.

No driver for macOS runs GPUs newer than Pascal (6.1; rule web-driver-ends-before-volta)."""


class Mac(Struct, frozen=True, kw_only=True):
    """A kind of Mac with a release of macOS; `gpu` is the compute capability of a GPU of NVIDIA, "" without one."""

    platform: PlatformName
    macos: str
    gpu: str


class MacBuild(NamedTuple):
    """A build of a release of the framework `component` for the accelerator `accelerator`."""

    component: str
    release: Release
    build: Build


class MacGrid(Struct):
    """The verdicts as indexes: `table[mac][build]` is an index of `refusals`, `RUNS`, or `OTHER` (for another Mac).

    A refusal is the groups of a minimal conflict.
    """

    macs: list[Mac] = field(default_factory=list)
    builds: list[MacBuild] = field(default_factory=list)
    refusals: list[tuple[Group, ...]] = field(default_factory=list)
    table: list[list[int]] = field(default_factory=list)


RUNS, OTHER = -1, -2


def mac_grid(matrix: Matrix) -> MacGrid:
    """Return the verdict of every framework build for macOS on every kind of Mac under every series of macOS."""
    grid = MacGrid()
    accelerators = {one for _, _, some in MACS for one in some}
    for name in frameworks(matrix):
        for release in sorted(matrix.components[name].releases, key=lambda one: one.version, reverse=True):
            for build in release.builds:
                if build.accelerator in accelerators and any(one.startswith("macos/") for one in build.platforms):
                    grid.builds.append(MacBuild(name, release, build))
    for platform, gpu, used in MACS:
        for version in _systems(matrix, platform):
            grid.macs.append(Mac(platform=platform, macos=version, gpu=gpu))
            row = [OTHER] * len(grid.builds)
            for accelerator in used:
                _decide(matrix, grid, row, accelerator)
            grid.table.append(row)
    return grid


def _systems(matrix: Matrix, platform: PlatformName) -> list[str]:
    """Return the newest release of each series of macOS for a platform, newest first."""
    component = matrix.components.get("macos")
    newest: dict[tuple[int, ...], str] = {}
    for release in sorted(component.releases if component is not None else (), key=lambda one: one.version):
        if not release.platforms or platform in release.platforms:
            parts = release.version.release
            newest[parts[:2] if parts[0] == 10 else parts[:1]] = str(release.version)
    return [newest[series] for series in sorted(newest, reverse=True)]


def _decide(matrix: Matrix, grid: MacGrid, row: list[int], accelerator: AcceleratorName) -> None:
    """Set the verdicts of the builds for an accelerator on the last Mac of the grid."""
    mac = grid.macs[-1]
    gpus = (HostGpu.of_target(mac.gpu),) if mac.gpu else None
    host = Host(platform=mac.platform, os=OperatingSystem(id="macos", version=mac.macos), gpus=gpus)
    policy = Policy(allow=("minor-version",))
    spec = Spec(target=TargetSpec(platform=mac.platform), accelerator=accelerator, policy=policy, runs="host")
    problem = join(matrix, Request(spec=spec, hosts=(TargetHost(label=LABEL, host=host),), platform=mac.platform))
    instance = ProblemInstance(problem)
    search = CompleteSearch(instance)
    beside: dict[Key, Candidate] = {}
    """The stack of the last build that runs: most others run in the same, which is checked sooner than searched for."""
    try:
        for index, (component, release, build) in enumerate(grid.builds):
            if build.accelerator != accelerator or mac.platform not in build.platforms:
                continue
            key = Key(component)
            of = [one for one in problem.domains.get(key, ()) if isinstance(one, ReleaseCandidate)]
            given = [one for one in of if one.release == release and one.build == build]
            if not given:
                continue
            if len(given) > 1 or violations(instance, {**beside, key: given[0]}):
                found = search.find(given=given, present=[key])
                beside = found if found is not None else beside
            else:
                found = beside
            if found is not None:
                row[index] = RUNS
                continue
            core = search.refutation(given=given, present=[key]) or ()
            kept = _minimal(search, given, core)
            if kept not in grid.refusals:
                grid.refusals.append(kept)
            row[index] = grid.refusals.index(kept)
    finally:
        search.close()


def _minimal(search: CompleteSearch, given: list[ReleaseCandidate], core: tuple[Group, ...]) -> tuple[Group, ...]:
    """Return a minimal part of some groups that rules a build out; facts of the Mac in it are left out of the answer."""
    found = sorted(core, key=str)
    for group in tuple(found):
        rest = [one for one in found if one != group]
        without = set(search.groups) - set(rest)
        if search.refutes(given=given, present=[given[0].key], without=without):
            found = rest
    return tuple(group for group in found if any(parent is not None for parent, _ in search.members(group)))
