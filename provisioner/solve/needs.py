"""What one candidate of the matrix requires: its own needs, the rules it falls under, its GPUs and its driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provisioner.host.model import Host
from provisioner.solve.devices import Devices
from provisioner.solve.drivers import RunsCuda
from provisioner.solve.facts import ABSENT, COMPILERS, binds, is_chosen
from provisioner.solve.guards import Guards
from provisioner.solve.kernels import KernelSupport
from provisioner.solve.requirement import (
    SLOTS,
    Candidate,
    Key,
    Labelled,
    OfSystem,
    OneOf,
    Origin,
    Requirement,
    SameAs,
    Test,
    Within,
)
from provisioner.solve.target import TargetHost
from provisioner.solve.toolchain import Toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import DriverMinimum, Matrix, Need, Release, Rule
    from provisioner.solve.target import Wish

NOBODY = TargetHost(label="the target", host=Host())
"""Stands for the target of a wish without hosts: rules without guards hold on it."""


@dataclass(frozen=True, slots=True)
class Unstated:
    """A requirement nobody can judge: a host does not state `component`. `need` is the one at stake, None when it is open."""

    component: str
    label: str
    text: str
    requirement: Requirement | None = None


class Needs:
    """Turns releases, builds and rules of the matrix into requirements on the keys of one problem."""

    def __init__(self, matrix: Matrix, wish: Wish, keys: Mapping[str, tuple[Key, ...]]) -> None:
        self._matrix = matrix
        self._wish = wish
        self._keys = keys
        self._rules: dict[str, list[Rule]] = {}
        for rule in matrix.rules:
            self._rules.setdefault(rule.when.component, []).append(rule)
        self._hosts = {target.label: target for target in wish.hosts or (NOBODY,)}
        self._kernels = KernelSupport(matrix)
        self.guards = Guards(matrix, wish)
        self.devices = Devices(matrix, wish, self.guards, keys.get("gpu", ()))
        self._toolchain = Toolchain(wish, keys)

    def of(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Everything a candidate of the matrix requires; host facts and names require nothing beyond the rules."""
        return () if candidate.label == ABSENT else tuple(self._all(candidate))

    def unstated(self, candidate: Candidate) -> Iterator[Unstated]:
        """What a chosen candidate needs of facts that a host does not state, or might need if it stated them."""
        if candidate.label == ABSENT:
            return
        release, build = candidate.subject[:2] if candidate.subject else (None, None)
        if release is not None and not self._is_virtual(candidate.key.component):
            for need in (*release.needs, *(build.needs if build is not None else ())):
                if need.component not in COMPILERS:
                    yield from self._open(candidate, need, self._hosts, f"{_named(candidate)} needs {need.component} {need}")
        for rule in self._falling_under(candidate):
            hosts = self._where(candidate.key, rule)
            for need in rule.needs:
                yield from self._open(candidate, need, hosts, f"rule {rule.name} needs {need.component} {need}")
            yield from self._undecided(candidate, rule)

    def _all(self, candidate: Candidate) -> Iterator[Requirement]:
        release, build = candidate.subject[:2] if candidate.subject else (None, None)
        component = candidate.key.component
        if component == "driver":
            yield from self._kernel(candidate, release)
        elif release is not None:
            yield from self._declared(candidate, self._toolchain.needs(candidate, release))
            yield from self._platform(candidate, release.platforms)
        if build is not None:
            yield from self._declared(candidate, build.needs)
            yield from self._platform(candidate, build.platforms)
            yield from self.devices.of(candidate, build, self._place(candidate))
        if component == "nvcc" and build is not None:
            yield from self._toolchain.targets(candidate, build, self._place(candidate))
        if release is not None and release.driver is not None:
            yield from self._driver(candidate, release.driver)
        for rule in self._falling_under(candidate):
            yield from self._by_rule(candidate, rule)

    def _declared(self, candidate: Candidate, needs: tuple[Need, ...]) -> Iterator[Requirement]:
        place = self._place(candidate)
        for need in needs:
            text = f"{_named(candidate)} needs {need.component} {need}"
            group = f"{candidate.key.component} needs {need.component}"
            for key in self._reach(candidate.key, need.component):
                yield Requirement(key, _test(need, candidate), Origin("rule", candidate.key.component, group, text, place))

    def _falling_under(self, candidate: Candidate) -> Iterator[Rule]:
        for rule in self._rules.get(candidate.key.component, ()):
            if rule.when.allows(candidate.version):
                yield rule

    def _where(self, subject: Key, rule: Rule) -> dict[str, TargetHost]:
        """The hosts a rule about this subject binds: those of the subject on which every guard holds."""
        hosts = {label: target for label, target in self._hosts.items() if not subject.world or label == subject.world}
        return {label: target for label, target in hosts.items() if self.guards.hold(rule.guards, target)}

    def _by_rule(self, candidate: Candidate, rule: Rule) -> Iterator[Requirement]:
        hosts = self._where(candidate.key, rule)
        if hosts:
            for need in rule.needs:
                for key in self._reach(candidate.key, need.component):
                    if not key.world or key.world in hosts:
                        yield self._required(candidate, rule, need, key)

    def _required(self, candidate: Candidate, rule: Rule, need: Need, key: Key) -> Requirement:
        place = self._matrix.positions.get(f"rule:{rule.name}", "") or _cited(self._matrix, rule.sources)
        text = f"{_named(candidate)} needs {need.component} {need}: {rule.because}"
        origin = Origin("rule", candidate.key.component, f"rule {rule.name}", text, f"rule {rule.name}, {place}")
        return Requirement(key, _test(need, candidate), origin)

    def _open(self, candidate: Candidate, need: Need, hosts: Mapping[str, TargetHost], why: str) -> Iterator[Unstated]:
        """The hosts that do not state a fact that is needed; GPUs nobody stated are named once for the whole problem."""
        name = need.component
        if name == "gpu" or not self._is_virtual(name) or not binds(name, self._wish):
            return
        reached = {key.world for key in self._reach(candidate.key, name)}
        for label in hosts:
            if label not in reached and "" not in reached:
                yield Unstated(name, label, f"{name}: {label} does not state it, and {why}")

    def _undecided(self, candidate: Candidate, rule: Rule) -> Iterator[Unstated]:
        """Rules that would bind if a host stated a fact of their guards; whether that matters depends on the answer.

        Hardly a profile states its virtualization, so leaving it out says nothing.
        """
        for label, target in self._hosts.items():
            fact = self.guards.unknown(rule.guards, target)
            if (
                fact in {"", "virtualization"}
                or (candidate.key.world and candidate.key.world != label)
                or is_chosen(fact, self._wish)
            ):
                continue
            for need in rule.needs:
                for key in self._reach(candidate.key, need.component):
                    if not key.world or key.world == label:
                        text = (
                            f"{fact}: {label} does not state it, so whether rule {rule.name} holds is unknown: {rule.because}"
                        )
                        yield Unstated(fact, label, text, self._required(candidate, rule, need, key))

    def _platform(self, candidate: Candidate, platforms: tuple[str, ...]) -> Iterator[Requirement]:
        component = candidate.key.component
        if platforms and self._keys.get("platform"):
            test = Labelled(frozenset(platforms), " or ".join(platforms))
            text = f"{_named(candidate)} is built for {test}"
            origin = Origin("rule", component, f"{component} needs platform", text, self._place(candidate))
            yield Requirement(Key("platform"), test, origin)

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
        if target is not None and target.host.virtualization in {"wsl1", "wsl2"}:
            return  # the driver is Windows', and nothing is built on this kernel
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
        """The keys of a component as seen from a candidate.

        Its own host's when it belongs to one, every host's otherwise; of what frameworks bring along, its own framework's. What
        a host says about its libraries is not about those of a container image.
        """
        keys = self._keys.get(component, ())
        if subject.world:
            is_image = self._is_virtual(component) and component != "platform"
            return tuple(key for key in keys if key.world == subject.world or (not key.world and not is_image and not key.slot))
        slot = subject.slot or (subject.component if subject.component in SLOTS else "")
        own = tuple(key for key in keys if key.slot == slot)
        return own or tuple(key for key in keys if not key.slot)

    def _is_virtual(self, component: str) -> bool:
        found = self._matrix.components.get(component)
        return found is not None and found.is_virtual

    def _place(self, candidate: Candidate) -> str:
        name = candidate.key.component
        version = str(candidate.version)
        positions = self._matrix.positions
        place = positions.get(f"{name}=={version}") or positions.get(f"{name}=={version.partition('+')[0]}")
        return place or f"matrices/{name}.yaml"


def _test(need: Need, candidate: Candidate) -> Test:
    if need.is_same:
        return SameAs(candidate.label, candidate.version)
    if need.component == "os":
        return OfSystem(tuple(str(version) for version in need.one_of))
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
