"""What one candidate of the matrix requires: its own needs, the rules it falls under, its GPUs and its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.coverage import capability, coverage
from provisioner.solve.kernels import KernelSupport
from provisioner.solve.requirement import Candidate, Key, Labelled, OneOf, Origin, Requirement, Test, Within
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import Build, DriverMinimum, Matrix, Need, Release, Rule
    from provisioner.solve.target import TargetHost, Wish


class Needs:
    """Turns releases, builds and rules of the matrix into requirements on the keys of one problem."""

    def __init__(self, matrix: Matrix, wish: Wish, keys: Mapping[str, tuple[Key, ...]]) -> None:
        self._matrix = matrix
        self._wish = wish
        self._keys = keys
        self._rules: dict[str, list[Rule]] = {}
        for rule in matrix.rules:
            self._rules.setdefault(rule.when.component, []).append(rule)
        self._hosts = {target.label: target for target in wish.hosts}
        self._kernels = KernelSupport(matrix)
        gpu = matrix.components.get("gpu")
        self._capabilities = tuple(release.version for release in gpu.releases) if gpu else ()

    def of(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Everything a candidate of the matrix requires; host facts and names require nothing beyond the rules."""
        return tuple(self._all(candidate))

    def _all(self, candidate: Candidate) -> Iterator[Requirement]:
        release, build = candidate.subject[:2] if candidate.subject else (None, None)
        component = candidate.key.component
        if component == "driver":
            yield from self._kernel(candidate, release)
        elif release is not None:
            yield from self._declared(candidate, release.needs)
        if build is not None:
            yield from self._declared(candidate, build.needs)
            yield from self._platform(candidate, build)
            yield from self._devices(candidate, build)
        if release is not None and release.driver is not None:
            yield from self._driver(candidate, release.driver)
        for rule in self._rules.get(component, ()):
            if rule.when.allows(candidate.version):
                yield from self._by_rule(candidate, rule)

    def _declared(self, candidate: Candidate, needs: tuple[Need, ...]) -> Iterator[Requirement]:
        place = self._place(candidate)
        for need in needs:
            text = f"{_named(candidate)} needs {need.component} {need}"
            group = f"{candidate.key.component} needs {need.component}"
            for key in self._reach(candidate.key, need.component):
                yield Requirement(key, _test(need), Origin("rule", candidate.key.component, group, text, place))

    def _by_rule(self, candidate: Candidate, rule: Rule) -> Iterator[Requirement]:
        hosts = {label for label, target in self._hosts.items() if self._guarded(rule, target)}
        if not hosts:
            return
        place = self._matrix.positions.get(f"rule:{rule.name}", "") or _cited(self._matrix, rule.sources)
        for need in rule.needs:
            text = f"{_named(candidate)} needs {need.component} {need}: {rule.because}"
            origin = Origin("rule", candidate.key.component, f"rule {rule.name}", text, f"rule {rule.name}, {place}")
            for key in self._reach(candidate.key, need.component):
                if not key.world or key.world in hosts:
                    yield Requirement(key, _test(need), origin)

    def _guarded(self, rule: Rule, target: TargetHost) -> bool:
        return all(self._holds(guard, target) for guard in rule.guards)

    def _holds(self, guard: Need, target: TargetHost) -> bool:
        if guard.component == "gpu":
            found = [gpu.compute_capability for gpu in target.host.gpus or () if gpu.compute_capability]
            return any(guard.allows(Version.parse(text)) for text in found)
        if guard.component == "kernel" and target.host.kernel:
            return guard.allows(Version.parse(target.host.kernel))
        if guard.component == "driver" and target.host.driver and target.host.driver.version:
            return guard.allows(Version.parse(target.host.driver.version))
        return guard.component == "platform" and guard.allows(Version.named(self._wish.platform))

    def _platform(self, candidate: Candidate, build: Build) -> Iterator[Requirement]:
        place = self._place(candidate)
        component = candidate.key.component
        if build.platforms and self._keys.get("platform"):
            test = Labelled(frozenset(build.platforms), " or ".join(build.platforms))
            text = f"{_named(candidate)} is built for {test}"
            yield Requirement(Key("platform"), test, Origin("rule", component, f"{component} needs platform", text, place))

    def _devices(self, candidate: Candidate, build: Build) -> Iterator[Requirement]:
        """Every GPU of every host must be served by the build's compiled code."""
        if build.accelerator != "cuda" or candidate.key.component != "pytorch":
            return
        gpus = self._keys.get("gpu", ())
        if not gpus:
            return
        place = self._place(candidate)
        if build.sass is None:
            if self._asked_by_name(candidate):
                return
            text = f"{_named(candidate)} was measured by nobody, so which GPUs it serves is unknown"
            test: Test = Labelled(frozenset(), "a measured list of targets")
        else:
            allows_ptx = "ptx-jit" in self._wish.allowed
            served = {
                str(version): how
                for version in self._capabilities
                if (how := coverage(build.sass, build.ptx or (), capability(str(version)))) == "native"
                or (how == "ptx" and allows_ptx)
            }
            targets = " ".join((*build.sass, *(build.ptx or ())))
            text = f"{_named(candidate)} is compiled for {targets}"
            test = Labelled(frozenset(served), f"one of {targets}")
            yield from self._ptx(candidate, build, served)
        for key in gpus:
            yield Requirement(key, test, Origin("rule", "pytorch", "pytorch needs gpu", text, place))

    def _ptx(self, candidate: Candidate, build: Build, served: dict[str, str]) -> Iterator[Requirement]:
        """PTX is outside minor-version compatibility: the driver must natively know the CUDA that made it.

        Source: CUDA Compatibility guide, "Minor Version Compatibility", limitation on PTX.
        """
        cuda = next((need.range for need in build.needs if need.component == "cuda"), None)
        for target in self._wish.hosts:
            devices = {gpu.compute_capability for gpu in target.host.gpus or ()}
            through_ptx = sorted(device for device in devices if device and served.get(device) == "ptx")
            if not through_ptx or cuda is None:
                continue
            devices_text = ", ".join(through_ptx)
            text = f"{_named(candidate)} reaches gpu {devices_text} only through PTX, so the driver must know CUDA {cuda}"
            test = NativeDriver(self._matrix, cuda.clauses[0].version)
            origin = Origin("rule", "pytorch", "pytorch needs driver for PTX", text, self._place(candidate))
            for key in self._reach(candidate.key, "driver"):
                if key.world == target.label:
                    yield Requirement(key, test, origin)

    def _driver(self, candidate: Candidate, minimum: DriverMinimum) -> Iterator[Requirement]:
        place = self._place(candidate)
        for key in self._reach(candidate.key, "driver"):
            target = self._hosts.get(key.world)
            may_forward = self._wish.carries_cuda_compat and _is_data_centre(self._matrix, target)
            test = RunsCuda(self._matrix, candidate.version, minimum, self._wish.allowed, may_forward=may_forward)
            text = f"{_named(candidate)} needs driver {test}"
            yield Requirement(key, test, Origin("rule", "cuda", "cuda needs driver", text, place))

    def _kernel(self, candidate: Candidate, release: Release | None) -> Iterator[Requirement]:
        target = self._hosts.get(candidate.key.world)
        is_stated = target is not None and target.host.driver is not None and target.host.driver.version == candidate.label
        if is_stated and target is not None and target.host.kernel:
            return  # the host states both, so they run together; what is not documented is said in `unverified`
        need = self._kernels.of(candidate.version)
        if need is None and is_stated:
            return
        place = self._place(candidate) if release is not None else _cited(self._matrix, ())
        test: Test = OneOf(()) if need is None else Within(need)
        text = (
            f"{_named(candidate)} is documented on no kernel"
            if need is None
            else f"{_named(candidate)} builds on kernel {need}"
        )
        for key in self._reach(candidate.key, "kernel"):
            yield Requirement(key, test, Origin("rule", "driver", "driver needs kernel", text, place))

    def _reach(self, subject: Key, component: str) -> tuple[Key, ...]:
        """The keys of a component as seen from a candidate: its own host's when it belongs to one, every host's otherwise."""
        keys = self._keys.get(component, ())
        host = subject.world
        return tuple(key for key in keys if not subject.world or not key.world or key.world == host)

    def _asked_by_name(self, candidate: Candidate) -> bool:
        request = self._wish.spec.requires.get("pytorch", "")
        return f"+{candidate.subject[1].name}" in request or self._wish.spec.requires.get("pytorch_build") is not None

    def _place(self, candidate: Candidate) -> str:
        name = candidate.key.component
        version = str(candidate.version)
        positions = self._matrix.positions
        place = positions.get(f"{name}=={version}") or positions.get(f"{name}=={version.partition('+')[0]}")
        return place or f"matrices/{name}.yaml"


class RunsCuda:
    """Drivers that run programs of one CUDA release, by any of the allowed means; `basis` says by which."""

    def __init__(
        self,
        matrix: Matrix,
        cuda: Version,
        minimum: DriverMinimum,
        allowed: frozenset[str],
        *,
        may_forward: bool,
    ) -> None:
        self._matrix = matrix
        self._native = NativeDriver(matrix, cuda)
        self._minimum = minimum
        self._floor = minimum.minor_version if "minor-version" in allowed else None
        self._branches = minimum.forward_compat if "forward-compat" in allowed and may_forward else ()

    def basis(self, driver: Version) -> str:
        """`native`, `minor-version`, `forward-compat`, or "" when this driver cannot run it."""
        if self._native.runs(driver) and self._above_toolkit_floor(driver):
            return "native"
        if self._floor is not None and driver >= self._floor:
            return "minor-version"
        return "forward-compat" if str(driver.release[0]) in self._branches else ""

    def _above_toolkit_floor(self, driver: Version) -> bool:
        """A beta driver of the right branch may be older than the family's floor; the floor still binds then."""
        floor = self._minimum.minor_version
        return floor is None or driver >= floor

    def allows(self, candidate: Candidate) -> bool:
        """Whether the driver runs it by any allowed means."""
        return bool(self.basis(candidate.version))

    @property
    def cuda_level(self) -> str:
        """The CUDA this is about, as `12.6`."""
        return self._native.level

    @property
    def forward_branches(self) -> tuple[str, ...]:
        """Older driver branches allowed through the forward-compatibility package."""
        return self._branches

    @property
    def floor(self) -> Version | None:
        """The oldest driver allowed, forward compatibility aside; None when no branch of the matrix is new enough."""
        return self._floor if self._floor is not None else self._native.floor

    def __str__(self) -> str:
        ways = [f">={self._floor} (minor-version compatibility)" if self._floor is not None else str(self._native)]
        if self._branches:
            ways.append(f"{'/'.join(self._branches)} (forward compatibility)")
        return " or ".join(ways)


class NativeDriver:
    """Drivers whose own CUDA level is at least a given one, so that they also compile its PTX."""

    def __init__(self, matrix: Matrix, cuda: Version) -> None:
        self._level = cuda.release[:2]
        self._branches = sorted((int(branch.branch), branch.native_cuda.release[:2]) for branch in matrix.branches)

    def runs(self, driver: Version) -> bool:
        """Whether `driver` is of a branch that natively runs this CUDA; a branch not listed counts as the next older one."""
        older = [level for branch, level in self._branches if branch <= driver.release[0]]
        return bool(older) and older[-1] >= self._level

    def allows(self, candidate: Candidate) -> bool:
        """Whether the candidate's branch is new enough."""
        return self.runs(candidate.version)

    @property
    def floor(self) -> Version | None:
        """The first branch that is new enough, as a version; None when the matrix knows none."""
        first = next((branch for branch, level in self._branches if level >= self._level), None)
        return None if first is None else Version.parse(str(first))

    @property
    def level(self) -> str:
        """The CUDA level wanted, as `12.6`."""
        return ".".join(str(part) for part in self._level)

    def __str__(self) -> str:
        if self.floor is None:
            return f"of a branch that knows CUDA {self.level}"
        return f">={self.floor} (native CUDA {self.level})"


def _test(need: Need) -> Test:
    return OneOf(need.one_of) if need.one_of else Within(need.range)


def _named(candidate: Candidate) -> str:
    return f"{candidate.key.component} {candidate.label}"


def _cited(matrix: Matrix, sources: tuple[str, ...]) -> str:
    return "; ".join(str(matrix.citations[source]) for source in sources if source in matrix.citations)


def _is_data_centre(matrix: Matrix, target: TargetHost | None) -> bool:
    """Whether every GPU of a host is known to be of the class forward compatibility supports."""
    if target is None or not target.host.gpus:
        return False
    kinds = {gpu.name: gpu.kind for gpu in matrix.gpus}
    return all(gpu.name is not None and kinds.get(gpu.name) == "datacenter" for gpu in target.host.gpus)
