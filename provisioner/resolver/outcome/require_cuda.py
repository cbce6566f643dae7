"""NVIDIA_REQUIRE_CUDA of a stack: the hosts that can run its image, by driver, compute capability and brand.

It is computed from the components of the image and the driver that the spec requires, not from the hosts it was solved for: it
admits every host that can run the image and that the spec allows. There is one exception: an image with cuda-compat breaks
older drivers of some GPUs, unless the host's container toolkit is of a release that ignores cuda-compat. The expression cannot
name the toolkit; these drivers are admitted if a host that the image was solved for has such a release.

Every compute capability is evaluated. A driver is evaluated at each version where the result may change: the edges of what
rules and spec require, minimums and driver branches. Nothing changes between two of them. Capabilities and drivers with the
same result are joined to ranges.

The expression names drivers and not the container toolkit's other property, `cuda`. The toolkit reads that from libcuda, so in
an image with a forward-compatibility libcuda it is the version of this library, not of the host's driver.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.host.model import Host
from provisioner.matrix.need import Need
from provisioner.matrix.once import once_per_matrix
from provisioner.request import TargetHost
from provisioner.resolver.python.bundled import bundled_libraries, bundled_runtimes
from provisioner.resolver.requirement import Key, ReleaseCandidate
from provisioner.resolver.rules.coverage import Target, compiles_for, runs_natively
from provisioner.resolver.rules.cuda_compat import forward_branches, is_mounted, tests_of_compat
from provisioner.resolver.rules.drivers import NativeDriver, RunsCuda
from provisioner.resolver.rules.guards import Guards
from provisioner.resolver.rules.images import cuda_of_compat, has_cuda_compat
from provisioner.versions import Range, Version, dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.matrix.model import DriverMinimum, Matrix, Rule
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.rules.coverage import Capability
    from provisioner.resolver.rules.drivers import WorksWithCompat

BRANDS = ("nvidia", "tesla", "unknown")
"""Brands of the GPUs that forward compatibility supports.

libnvidia-container names seven of NVML's eighteen brands (src/driver.c, driver_get_device_brand). It calls an A100, whose brand
is NVIDIA, unknown; NVIDIA's own images list unknown for that reason.
"""

_HIGHEST_MINOR = 9
_LENGTH_OF_DRIVERS = 3
"""How many numbers the version of a driver has at most."""
_NO_HOST = TargetHost(label="", host=Host())

Interval = tuple[Version | None, Version | None]
"""A range of drivers: from the first version on and below the second; None means that this side has no bound."""


class _HostNeed(Struct, frozen=True):
    """A requirement of the image's components, or of the spec, on `gpu` or `driver`.

    It applies to hosts for which all `guards` (conditions on these two) hold.
    """

    guards: tuple[Need, ...]
    need: Need


def require_cuda(problem: Problem, pins: Mapping[Key, Candidate]) -> str:
    """Return the NVIDIA_REQUIRE_CUDA of a stack for NVIDIA GPUs on Linux; "" for every other stack."""
    if problem.request.accelerator != "cuda" or problem.request.system != "linux":
        return ""
    return _Gate(problem, pins).text()


class _Gate:
    def __init__(self, problem: Problem, pins: Mapping[Key, Candidate]) -> None:
        self._problem = problem
        self._matrix = problem.matrix
        self._request = problem.request
        image = pins.get(Key("image"))
        self._has_cuda_compat = has_cuda_compat(problem.request, image)
        is_put_first = problem.request.runs == "container" and all(
            is_mounted(problem.matrix, target.host) for target in problem.request.hosts
        )
        compat = cuda_of_compat(problem.request, image) if is_put_first else None
        self._compat: WorksWithCompat | None = None
        self._compat_of_brands: WorksWithCompat | None = None
        if compat is not None:
            self._compat, self._compat_of_brands = tests_of_compat(problem.matrix, compat)
        virtual = {name for name, component in self._matrix.components.items() if component.virtual}
        named = (one for one in pins.values() if one.key.component in self._matrix.components)
        releases = (one for one in named if isinstance(one, ReleaseCandidate))
        self._parts = [one for one in releases if one.key.component not in virtual]
        self._parts.extend((*bundled_runtimes(problem.matrix, pins), *bundled_libraries(problem, pins)))
        self._needs = list(self._host_needs())
        self._minimums = [(one.version, one.release.driver) for one in self._parts if one.release.driver]
        codes = (problem.needs.devices.code_of(one) for one in self._parts)
        self._builds = [build for build in codes if build is not None and build.accelerator == "cuda"]

    def text(self) -> str:
        """Return the value of NVIDIA_REQUIRE_CUDA, in ascending order; "" when every host is admitted."""
        groups: dict[tuple[tuple[Interval, ...], ...], list[Capability]] = {}
        points = list(self._points())
        drivers: dict[tuple[object, ...], tuple[tuple[Interval, ...], ...]] = {}
        on_gpus, on_drivers = ([one for one in self._needs if one.need.component == name] for name in ("gpu", "driver"))
        for point in points:
            device = Version.parse(dotted(point))
            levels = self._levels(point)
            if levels is None or any(_on_gpu(one, device) and not one.need.allows(device) for one in on_gpus):
                continue
            applying = tuple(one for one in on_drivers if _on_gpu(one, device))
            signature = (levels, applying)
            if signature not in drivers:
                drivers[signature] = self._drivers(levels, applying)
            groups.setdefault(drivers[signature], []).append(point)
        terms = [
            ",".join(filter(None, (way, *span)))
            for (plain, forward), served in groups.items()
            for way in (*map(_driver, plain), *(f"brand={brand},{_driver(one)}" for one in forward for brand in BRANDS))
            for span in _spans(served, points)
        ]
        return "" if "" in terms else " ".join(terms)

    def _host_needs(self) -> Iterator[_HostNeed]:
        for name in ("driver", "gpu"):
            asked = self._request.spec.requires.get(name)
            if asked is not None and not asked.startswith("gfx"):
                yield _HostNeed((), Need(component=name, range=Range.parse(asked)))
        static = Guards(self._matrix, self._request)
        for part in self._parts:
            for need in (*part.release.requires, *(part.build.requires if part.build is not None else ())):
                if need.component in {"gpu", "driver"}:
                    yield _HostNeed((), need)
            for rule, wanted in _rules_on_hosts(self._matrix).get(part.key.component, ()):
                if not rule.when.allows(part.version):
                    continue
                own = tuple(guard for guard in rule.on if guard.component in {"gpu", "driver"})
                # A gate cannot test guards on other facts of a host.
                if static.hold([guard for guard in rule.on if guard not in own], _NO_HOST):
                    yield from (_HostNeed(own, need) for need in wanted)

    def _points(self) -> Iterator[Capability]:
        """Yield every compute capability to evaluate; the results for higher capabilities equal that for the last one."""
        stated = (
            [str(one.version) for one in self._matrix.components["gpu"].releases] if "gpu" in self._matrix.components else []
        )
        targets = [Target.parse(text) for build in self._builds for text in (*(build.sass or ()), *(build.ptx or ()))]
        majors = [*(int(text.partition(".")[0]) for text in stated), *(one.capability[0] for one in targets)]
        for major in range(1, max(majors, default=0) + 2):
            yield from ((major, minor) for minor in range(_HIGHEST_MINOR + 1))

    def _levels(self, device: Capability) -> tuple[Version, ...] | None:
        """Return the CUDA releases that the driver must support natively to compile PTX for a device.

        () when no PTX is needed; None when a build has no code that runs on the device.
        """
        levels: list[Version] = []
        for build in self._builds:
            if build.sass is None:
                continue  # its targets are not measured, and it was requested by name
            is_native, is_compiled = _runs_on(build.sass, build.ptx or (), device)
            if is_native:
                continue
            if "ptx-jit" not in self._request.allowed or not is_compiled:
                return None
            cuda = next((need.range for need in build.requires if need.component == "cuda"), None)
            levels.extend(clause.version for clause in (cuda.clauses[:1] if cuda else ()))
        return tuple(sorted(set(levels)))

    def _drivers(self, levels: Sequence[Version], needs: Sequence[_HostNeed]) -> tuple[tuple[Interval, ...], ...]:
        """Return the drivers allowed for any brand of GPU, and those allowed only for `BRANDS`, both as intervals.

        `levels` are the CUDA releases that a driver must support natively, `needs` the requirements on drivers.
        """
        natives = [NativeDriver(self._matrix, level) for level in levels]

        def allows(driver: Version, tests: Iterable[RunsCuda]) -> bool:
            return (
                all(test.basis(driver) for test in tests)
                and all(native.runs(driver) for native in natives)
                and all(
                    one.need.allows(driver)
                    for one in needs
                    if all(guard.component != "driver" or guard.allows(driver) for guard in one.guards)
                )
            )

        runs = [self._runs(version, minimum, ()) for version, minimum in self._minimums]
        forward = [self._runs(version, minimum, self._forward(version, minimum)) for version, minimum in self._minimums]
        bounds = self._bounds(needs)
        compat, of_brands = self._compat, self._compat_of_brands

        def allows_anywhere(driver: Version) -> bool:
            return allows(driver, runs) and (compat is None or compat.runs(driver))

        def allows_brands(driver: Version) -> bool:
            return allows(driver, forward) and (of_brands is None or of_brands.runs(driver))

        plain = _intervals(bounds, allows_anywhere)
        beyond = _intervals(bounds, lambda driver: allows_brands(driver) and not allows_anywhere(driver))
        return plain, beyond

    def _runs(self, version: Version, minimum: DriverMinimum, forward: tuple[str, ...]) -> RunsCuda:
        return RunsCuda(self._matrix, version, minimum, self._request.allowed, forward=forward)

    def _forward(self, version: Version, minimum: DriverMinimum) -> tuple[str, ...]:
        return forward_branches(self._matrix, self._request, version, minimum=minimum) if self._has_cuda_compat else ()

    def _bounds(self, needs: Sequence[_HostNeed]) -> list[Version]:
        """Return every driver version at which the result may change, oldest first."""
        found = {"0": Version.parse("0")}
        for need in (part for one in needs for part in (one.need, *one.guards) if part.component == "driver"):
            edges = (edge for clause in need.range.clauses for edge in clause.edges(_LENGTH_OF_DRIVERS))
            found.update((edge.text, edge) for edge in edges)
        for version, minimum in self._minimums:
            floor = minimum.minor_version
            found.update({floor.text: floor} if floor is not None else {})
            for branch in self._forward(version, minimum):
                found.update(_around(branch))
        for branch in self._compat_of_brands.forward if self._compat_of_brands is not None else ():
            found.update(_around(branch))
        for branch in (one.branch for one in self._matrix.branches):
            found.setdefault(branch, Version.parse(branch))
        return sorted(set(found.values()))


def _around(branch: str) -> dict[str, Version]:
    """Return the first version of a driver branch and that of the branch after it, by their texts."""
    return {text: Version.parse(text) for text in (branch, str(int(branch) + 1))}


@once_per_matrix
def _rules_on_hosts(matrix: Matrix) -> dict[str, list[tuple[Rule, list[Need]]]]:
    """Return the rules with needs of GPUs or drivers, each with these needs, by the component that they are about."""
    found: dict[str, list[tuple[Rule, list[Need]]]] = {}
    for rule in matrix.rules:
        wanted = [need for need in rule.require if need.component in {"gpu", "driver"} and not need.is_same]
        if wanted:
            found.setdefault(rule.when.component, []).append((rule, wanted))
    return found


@lru_cache(maxsize=256)
def _targets(texts: tuple[str, ...]) -> tuple[Target, ...]:
    return tuple(Target.parse(text) for text in texts)


@lru_cache(maxsize=16384)
def _runs_on(sass: tuple[str, ...], ptx: tuple[str, ...], device: Capability) -> tuple[bool, bool]:
    """Return whether code for some targets runs on a device as it is, and whether some PTX can be compiled for it."""
    is_native = any(runs_natively(target, device) for target in _targets(sass))
    return is_native, any(compiles_for(target, device) for target in _targets(ptx))


def _on_gpu(one: _HostNeed, device: Version) -> bool:
    return all(guard.allows(device) for guard in one.guards if guard.component == "gpu")


def _intervals(bounds: Sequence[Version], allows: Callable[[Version], bool]) -> tuple[Interval, ...]:
    """Return the versions that `allows` accepts, as intervals between `bounds`, the versions at which its result may change."""
    found: list[Interval] = []
    start: Version | None = None
    is_open = False
    for bound in bounds:
        if allows(bound) == is_open:
            continue
        if is_open:
            found.append((start, bound))
        else:
            start = bound if bound is not bounds[0] else None
        is_open = not is_open
    return (*found, (start, None)) if is_open else tuple(found)


def _driver(interval: Interval) -> str:
    low, high = interval
    return ",".join(f"driver{operator}{bound}" for operator, bound in ((">=", low), ("<", high)) if bound is not None)


def _spans(served: Sequence[Capability], points: Sequence[Capability]) -> Iterator[tuple[str, ...]]:
    """Yield the compute capabilities `served` as ranges in the syntax of NVIDIA_REQUIRE_CUDA (`arch>=7.0`, `arch<9.0`).

    A single capability that is missing inside a range is excluded by `arch!=`.
    """
    wanted = set(served)
    runs: list[list[int]] = []
    for index, point in enumerate(points):
        if point not in wanted:
            continue
        if runs and index - runs[-1][-1] <= 2:
            runs[-1].append(index)
        else:
            runs.append([index])
    for run in runs:
        first, last = run[0], run[-1]
        holes = sorted(set(range(first, last + 1)) - set(run))
        if first == last and first:
            yield (f"arch={dotted(points[first])}",)
            continue
        low = (f"arch>={dotted(points[first])}",) if first else ()
        high = (f"arch<{dotted(points[last + 1])}",) if last + 1 < len(points) else ()
        yield (*low, *high, *(f"arch!={dotted(points[hole])}" for hole in holes))
