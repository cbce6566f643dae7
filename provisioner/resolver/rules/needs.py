"""Translate the matrix to requirements of a candidate: its own needs, the rules on it, its GPU code and its driver.

A need is the demand of a matrix row on a component: a range of versions, or some versions or names. A rule has needs that bind
only where its guards, conditions on facts of hosts, hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.components import ABSENT, FRAMEWORKS
from provisioner.grounds.bound import Kernels, Names, SameVersion, Versions
from provisioner.grounds.doubt import NeededBy, Undecided, Unstated
from provisioner.grounds.predicate import BuildsOn as BuildsOnKernels
from provisioner.grounds.predicate import BuildsPatched, BuiltFor
from provisioner.grounds.predicate import Needs as NeedsComponent
from provisioner.grounds.requirement import EXPECTATION, Relation, Row
from provisioner.grounds.source import Documents, MatrixRow
from provisioner.host.facts import stated
from provisioner.host.model import Host
from provisioner.matrix.once import once_per_matrix
from provisioner.places import Place
from provisioner.request import TargetHost
from provisioner.resolver.requirement import (
    SLOTS,
    Candidate,
    ImageCandidate,
    Key,
    Labelled,
    OfSystem,
    OneOf,
    Requirement,
    SameAs,
    Test,
    Unless,
    Within,
    build_of,
    release_of,
)
from provisioner.resolver.rules.bundled import BundleOverrides
from provisioner.resolver.rules.cuda_compat import CudaCompat
from provisioner.resolver.rules.devices import Devices
from provisioner.resolver.rules.drivers import BuildsOn, kernel_support
from provisioner.resolver.rules.facts import (
    COMPILERS,
    DRIVER_KINDS,
    NOT_ON_JETSONS,
    WSL,
    binds,
    has_running_driver,
    is_chosen,
    is_jetson,
    is_stated_as,
    profile_key,
    shown_by_drivers,
    virtualizations,
)
from provisioner.resolver.rules.gate import ImageGate
from provisioner.resolver.rules.guards import Guards
from provisioner.resolver.rules.policy import PolicyRequirements
from provisioner.resolver.rules.rocm_libraries import kernel_requirements
from provisioner.resolver.rules.shared_files import runtime_needs
from provisioner.resolver.rules.signed_modules import BUILT_ON_THE_HOST, SignedModules
from provisioner.resolver.rules.silence import Silence
from provisioner.resolver.rules.toolchain import Toolchain
from provisioner.versions import Version, without_local

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.grounds.bound import Bound
    from provisioner.grounds.predicate import BuiltOnHost
    from provisioner.grounds.source import Source
    from provisioner.matrix.model import Build, DriverMinimum, Matrix, Release, Rule
    from provisioner.matrix.need import Need
    from provisioner.request import Request

NO_HOST = TargetHost(label="the target", host=Host())
"""The target of a request without hosts: it states no fact, so only rules without guards bind on it."""


class OpenRequirement(Struct, frozen=True):
    """A requirement that cannot be verified because a host does not state a fact; `doubt` names the fact.

    `requirement` is None if the host does not state the required component either; `need` is then the name of that component.
    `guards` are the guards of the rule that are undecided.
    """

    doubt: Unstated
    requirement: Requirement | None = None
    need: str = ""
    guards: tuple[Need, ...] = ()


class Rules:
    """The rules of a matrix by what they are about; those on a version are looked for once, and kept for all problems."""

    def __init__(self, matrix: Matrix) -> None:
        self._of: dict[str, list[Rule]] = {}
        for rule in matrix.rules:
            self._of.setdefault(rule.when.component, []).append(rule)
        self._on: dict[tuple[str, str, tuple[int, ...]], tuple[Rule, ...]] = {}

    def on(self, candidate: Candidate) -> tuple[Rule, ...]:
        """Return the rules whose condition allows the version of a candidate, in the order of the matrix."""
        component, version = candidate.key.component, candidate.version
        # The spelling tells a build's version from its release's, the numbers a version from a name that is spelled as one.
        key = component, version.text, version.release
        found = self._on.get(key)
        if found is None:
            found = self._on[key] = tuple(rule for rule in self._of.get(component, ()) if rule.when.allows(version))
        return found


_rules = once_per_matrix(Rules)


class Needs:
    """The translation of releases, builds and rules of the matrix to requirements on the keys of one problem."""

    def __init__(
        self, matrix: Matrix, request: Request, keys: Mapping[str, tuple[Key, ...]], *, is_lenient: bool = False
    ) -> None:
        self._matrix = matrix
        self._request = request
        boards = {target.label for target in request.hosts if is_jetson(matrix, target.host)}
        drivers = keys.get("driver", ())
        self._board_drivers = {key.scope: key for key in drivers if key.scope in boards}
        """The keys of the drivers of Jetsons: they come with Jetson Linux, and nothing else is said of them."""
        if self._board_drivers:
            keys = {**keys, "driver": tuple(key for key in drivers if key.scope not in boards)}
        self._keys = keys
        self._rules = _rules(matrix)
        self._known: dict[Candidate, tuple[Requirement, ...]] = {}
        self._reached: dict[tuple[Key, str], tuple[Key, ...]] = {}
        self._hosts = {target.label: target for target in request.hosts or (NO_HOST,)}
        self._held: dict[tuple[str, str], dict[str, TargetHost]] = {}
        self._on_choices: dict[tuple[str, str], dict[Key, Need]] = {}
        self._kernels = kernel_support(matrix)
        self._signed_modules = SignedModules(matrix, request)
        self._shown = shown_by_drivers(matrix)
        self._bundle_overrides = BundleOverrides(matrix, request)
        self.policy = PolicyRequirements(matrix, request)
        self.guards = Guards(matrix, request)
        self.silence = Silence(matrix, request)
        self.devices = Devices(matrix, request, self.guards, keys.get("gpu", ()))
        self._toolchain = Toolchain(matrix, request, self.guards, keys)
        self._gate = ImageGate(matrix, request, self.guards, keys=keys)
        self._is_lenient = is_lenient
        self.cuda_compat = CudaCompat(matrix, request, self.guards)

    def _of_one_component(self, candidate: Candidate) -> Iterator[Requirement]:
        """Yield the special requirements of ROCm and its libraries on GPUs, an image on hosts, nvcc on targets."""
        if candidate.key.component == "rocm" or candidate.key.component in self._matrix.kernels:
            yield from kernel_requirements(self._matrix, candidate, self._keys.get("gpu", ()))
        elif isinstance(candidate, ImageCandidate):
            yield from self._gate.of(candidate)
            yield from self.cuda_compat.of_image(candidate, self._drivers_for(candidate), self._place(candidate))
        elif candidate.key.component == "nvcc" and (build := build_of(candidate)) is not None:
            yield from self._toolchain.targets(candidate, build, self._place(candidate))

    def lenient(self) -> Needs:
        """Return a copy of this translation that leaves out the requirements of `expected`."""
        return Needs(self._matrix, self._request, self._keys, is_lenient=True)

    def of(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return the requirements of a candidate; () for `ABSENT`, the value of a component that is not installed.

        Nor does the driver of a Jetson have any. A fact of a host, or a name such as that of a platform, has requirements only
        from the policy and from rules. Requirements are found once: a problem is searched for one Python after another.
        """
        found = self._known.get(candidate)
        if found is None:
            is_without = candidate.label == ABSENT or candidate.key in self._board_drivers.values()
            found = self._known[candidate] = () if is_without else tuple(self._all(candidate))
        return found

    def unstated(self, candidate: Candidate) -> Iterator[OpenRequirement]:
        """Yield the requirements of a chosen candidate that cannot be verified because a host does not state a fact.

        A driver that runs on its host has none, because its requirements are evidently met there. Nor has a driver where no
        host is described: the answer is then about every machine that runs such a driver.
        """
        is_of_board = candidate.key in self._board_drivers.values()
        if candidate.label == ABSENT or is_of_board or self._is_running_driver(candidate):
            return
        release, build = release_of(candidate), build_of(candidate)
        if release is not None and not self._is_virtual(candidate.key.component):
            for need in (*release.requires, *(build.requires if build is not None else ())):
                if need.component not in COMPILERS - {"xcode"}:  # macOS has no other compiler
                    needed_by = NeededBy(needs=need.component, bound=bound_of(need), subject=candidate.subject)
                    yield from self._open(candidate, need, self._hosts, needed_by)
        for need in BUILT_ON_THE_HOST:
            every = self._of(candidate.key).items()
            hosts = {label: one for label, one in every if self._lacks_signed_modules(candidate, one, need)}
            needed_by = NeededBy(needs=need.component, bound=bound_of(need), subject=candidate.subject)
            yield from self._open(candidate, need, hosts, needed_by)
        for rule in self._rules_on(candidate):
            hosts = self._where(candidate.key, rule)
            for need in rule.require:
                needed_by = NeededBy(needs=need.component, bound=bound_of(need), rule=rule.name)
                yield from self._open(candidate, need, hosts, needed_by)
            yield from self._undecided(candidate, rule)

    def _is_shown(self, component: str, host: Host) -> bool:
        """Return whether a host need not state a component, because its running driver shows that the value is good enough.

        A Jetson need not state a component either that exists on PCs and servers only.
        """
        if is_jetson(self._matrix, host):
            return component in self._shown or component in NOT_ON_JETSONS
        return component in self._shown and (host == NO_HOST.host or has_running_driver(host))

    def _may_be_shown(self, candidate: Candidate, fact: str, host: Host) -> bool:
        """Return whether a driver that may run on a host already would show that a fact is good enough for it.

        The host then leaves out whether it runs one, or which release. The release of the system decides which drivers it has
        packages of.
        """
        is_driver = candidate.key.component in DRIVER_KINDS and (host.driver is None or host.driver.version is None)
        return is_driver and (fact in self._shown or fact == "os")

    def _is_running_driver(self, candidate: Candidate) -> bool:
        target = self._hosts.get(candidate.key.scope)
        is_evident = target is not None and (target.host == NO_HOST.host or has_running_driver(target.host))
        return candidate.key.component in DRIVER_KINDS and is_evident

    def _all(self, candidate: Candidate) -> Iterator[Requirement]:
        release, build = release_of(candidate), build_of(candidate)
        component = candidate.key.component
        yield from self.policy.of(candidate)
        if component == "cuda" and any(key.slot for key in self._keys.get("cuda", ())):
            yield from runtime_needs(self._matrix, candidate)
        if component == "driver":
            yield from self._kernel(candidate, release)
            yield from self._built_on_host(candidate)
        else:
            yield from self._declared(candidate, self._toolchain.needs(candidate, release))
            yield from self._platform(candidate, release.platforms if release is not None else ())
        if build is not None:
            yield from self._declared(candidate, build.requires)
            yield from self._platform(candidate, build.platforms)
        code = self.devices.code_of(candidate)
        if code is not None and component in FRAMEWORKS:
            yield from self.devices.of_code(candidate, code, self._place(candidate))
        yield from self._of_one_component(candidate)
        if release is not None and release.driver is not None:
            yield from self._driver(candidate, release.driver)
        by_rule = [one for rule in self._rules_on(candidate) for one in self._by_rule(candidate, rule, rule.require)]
        yield from by_rule
        if code is not None and component not in FRAMEWORKS:
            yield from self._by_code(candidate, code, by_rule)
        if not self._is_lenient:
            yield from self.expected(candidate)

    def expected(self, candidate: Candidate) -> Iterator[Requirement]:
        """Yield the requirements that a candidate is expected to have although no source states them.

        An answer that violates one is unverified.
        """
        if candidate.key in self._board_drivers.values():
            return
        release, build = release_of(candidate), build_of(candidate)
        for need in (*(release.expects if release is not None else ()), *(build.expects if build is not None else ())):
            row = Row(EXPECTATION, need.component, candidate.key.component)
            ground = candidate.entails(NeedsComponent(need.component, (bound_of(need),)), row, self._place(candidate))
            for key in self._reach(candidate.key, need.component):
                yield Requirement(key, _test(need, candidate), ground)
        if candidate.key.component in FRAMEWORKS and build is not None:
            yield from self.devices.expected(candidate, build, self._place(candidate))
        for rule in self._rules_on(candidate):
            for one in self._by_rule(candidate, rule, rule.expect):
                yield replace(one, ground=replace(one.ground, relation=Row(EXPECTATION, rule.name)))

    def on_gpus(self, candidate: Candidate, code: Build) -> Iterator[Requirement]:
        """Yield the requirements of a library or a CUDA release on GPUs: by the rules on it, and by its GPU code, `code`."""
        by_rule = [one for rule in self._rules_on(candidate) for one in self._by_rule(candidate, rule, rule.require)]
        yield from (one for one in by_rule if one.key.component == "gpu")
        yield from self._by_code(candidate, code, by_rule)

    def _by_code(self, candidate: Candidate, code: Build, by_rule: Iterable[Requirement]) -> Iterator[Requirement]:
        """Yield the requirements of GPU code on GPUs, except on unknown ones and on those that `by_rule` excludes.

        `by_rule` are the requirements of the candidate by rules, which state the reason better. A GPU newer than every one in
        the matrix is a doubt instead.
        """
        on_gpus = [one for one in by_rule if one.key.component == "gpu"]
        devices = {key: Candidate(key, version, version.text) for key, version in self.devices.by_key.items()}
        excluded = {*self.devices.newer, *(one.key for one in on_gpus if not one.test.allows(devices[one.key]))}
        for one in self.devices.of_code(candidate, code, self._place_of_code(candidate)):
            if one.key not in excluded:
                yield one

    def _declared(self, candidate: Candidate, needs: tuple[Need, ...]) -> Iterator[Requirement]:
        place = self._place(candidate)
        for need in needs:
            predicate = NeedsComponent(need.component, (bound_of(need),))
            ground = candidate.entails(predicate, Relation(candidate.key.component, need.component), place)
            for key in self._reach(candidate.key, need.component):
                replacement = self._bundle_overrides.replacement(candidate, need, key)
                yield replacement or Requirement(key, _test(need, candidate), ground)

    def _where(self, subject: Key, rule: Rule) -> dict[str, TargetHost]:
        """Return the hosts, by label, on which a rule about the key `subject` binds because all its guards hold there."""
        found = self._held.get((rule.name, subject.scope))
        if found is None:  # cached for all candidates of the subject: with many hosts this takes most of the time
            hosts = self._of(subject).items()
            found = {label: target for label, target in hosts if self.guards.hold(rule.on, target)}
            self._held[rule.name, subject.scope] = found
        return found

    def _of(self, subject: Key) -> dict[str, TargetHost]:
        """Return the host that the key `subject` belongs to, by label; every host if all hosts share the key."""
        if not subject.scope:
            return self._hosts
        return {subject.scope: self._hosts[subject.scope]} if subject.scope in self._hosts else {}

    def _rules_on(self, candidate: Candidate) -> Iterator[Rule]:
        """Yield the rules on a candidate, except those on builds for another accelerator than that of its own build."""
        build = build_of(candidate)
        own = build.accelerator if build is not None else ""
        for rule in self._rules.on(candidate):
            if not own or all(self.guards.allows(one, own) for one in rule.on if one.component == "accelerator"):
                yield rule

    def _by_rule(self, candidate: Candidate, rule: Rule, needs: tuple[Need, ...]) -> Iterator[Requirement]:
        if not needs:
            return
        hosts = self._where(candidate.key, rule)
        chosen = self._guards_on_choices(candidate.key, rule)
        for need in needs:
            for key in self._reach(candidate.key, need.component):
                if hosts and (not key.scope or key.scope in hosts):
                    yield self._required(candidate, rule, need, key)
                elif key in chosen:
                    required = self._required(candidate, rule, need, key)
                    yield replace(required, test=Unless(chosen[key], required.test))

    def _guards_on_choices(self, subject: Key, rule: Rule) -> dict[Key, Need]:
        """Return the guards of a rule that depend on a choice of the solver, by the key of that choice.

        A guard is included if it is the only undecided one on a host and the solver chooses the guard's component there. The
        rule then binds for those candidates of the component's key for which the guard holds.
        """
        found = self._on_choices.get((rule.name, subject.scope))
        if found is None:
            found = {}
            for label, target in self._of(subject).items():
                undecided = self.guards.open(rule.on, target)
                if len(undecided) == 1 and is_chosen(undecided[0].component, self._request):
                    found[Key(undecided[0].component, label)] = undecided[0]
            self._on_choices[rule.name, subject.scope] = found
        return found

    def _required(self, candidate: Candidate, rule: Rule, need: Need, key: Key) -> Requirement:
        place = self._matrix.positions.get(f"rule:{rule.name}") or cited(self._matrix, rule.source)
        predicate = NeedsComponent(need.component, (bound_of(need),), rule.because)
        ground = candidate.entails(predicate, Row("rule", rule.name), MatrixRow("rule", rule.name, place))
        return Requirement(key, _test(need, candidate), ground)

    def _open(
        self, candidate: Candidate, need: Need, hosts: Mapping[str, TargetHost], needed_by: NeededBy
    ) -> Iterator[OpenRequirement]:
        """Yield an open requirement for each host that does not state the component that a need is about.

        Nothing is yielded for GPUs: those that are not stated are one doubt of the whole problem.
        """
        name = need.component
        if name == "gpu" or not self._is_virtual(name) or not binds(name, self._request):
            return
        reached = {key.scope for key in self._reach(candidate.key, name)}
        for label in hosts:
            if label not in reached and "" not in reached and not self._is_shown(name, hosts[label].host):
                key, of_driver = profile_key(name, hosts[label].host), self._may_be_shown(candidate, name, hosts[label].host)
                doubt = Unstated(fact=name, host=label, profile_key=key, reason=needed_by, is_of_driver=of_driver)
                yield OpenRequirement(doubt)

    def _undecided(self, candidate: Candidate, rule: Rule) -> Iterator[OpenRequirement]:
        """Yield the requirements of a rule that would bind if a host stated facts with which the undecided guards hold."""
        for label, target in self._of(candidate.key).items():
            guards = self.guards.open(rule.on, target)
            if not guards or not all(binds(one.component, self._request) for one in guards):
                continue
            fact = next((one.component for one in guards if not is_chosen(one.component, self._request)), guards[0].component)
            reason = Undecided(table="rule", name=rule.name, because=rule.because)
            key, of_driver = profile_key(fact, target.host), self._may_be_shown(candidate, fact, target.host)
            doubt = Unstated(fact=fact, host=label, profile_key=key, reason=reason, is_of_driver=of_driver)
            for need in rule.require:
                if self._is_shown(need.component, target.host) and stated(target.host, need.component) is None:
                    continue
                keys = [one for one in self._reach(candidate.key, need.component) if one.scope in {"", label}]
                for one in keys:
                    yield OpenRequirement(doubt, self._required(candidate, rule, need, one), guards=guards)
                is_of_host = self._is_virtual(need.component) and need.component != "gpu"
                if not keys and is_of_host and binds(need.component, self._request):
                    yield OpenRequirement(doubt, need=need.component, guards=guards)

    def _platform(self, candidate: Candidate, platforms: tuple[str, ...]) -> Iterator[Requirement]:
        if platforms and self._keys.get("platform"):
            relation = Relation(candidate.key.component, "platform")
            ground = candidate.entails(BuiltFor(platforms), relation, self._place(candidate))
            yield Requirement(Key("platform"), Labelled(frozenset(platforms)), ground)

    def _driver(self, candidate: Candidate, minimum: DriverMinimum) -> Iterator[Requirement]:
        yield from self.cuda_compat.of_cuda(candidate, minimum, self._drivers_for(candidate), source=self._place(candidate))

    def _drivers_for(self, candidate: Candidate) -> dict[Key, TargetHost | None]:
        """Return the keys of the drivers on which a candidate runs, each with its host; None for a key of all hosts."""
        return {key: self._hosts.get(key.scope) for key in self._reach(candidate.key, "driver")}

    def _kernel(self, candidate: Candidate, release: Release | None) -> Iterator[Requirement]:
        target = self._hosts.get(candidate.key.scope)
        if target is not None and virtualizations(target.host) <= WSL:
            return  # WSL uses the driver of Windows, which is not built on the Linux kernel
        is_stated = target is not None and is_stated_as(stated(target.host, "driver"), candidate.label)
        place: Source | None = self._place(candidate) if release is not None else None
        if is_stated and target is not None and target.host.kernel:
            # The host runs both, so they work together; a kernel that is not documented is a doubt.
            yield from self._patched(candidate, target.host.kernel, place)
            return
        need = self._kernels.of(candidate.version)
        if need is None and is_stated:
            return
        patched = self._kernels.patched(candidate.version) if "patched-kernel" in self._request.allowed else ()
        test: Test = OneOf(()) if need is None else Within(need)
        bounds: tuple[Kernels, ...] = ()
        if need is not None or patched:
            test = BuildsOn(need, patched) if patched else test
            bounds = (Kernels(need, tuple((row.kernel, row.by) for row in patched)),)
        ground = candidate.entails(BuildsOnKernels(bounds), Relation("driver", "kernel"), place)
        for key in self._reach(candidate.key, "kernel"):
            yield Requirement(key, test, ground)

    def _lacks_signed_modules(self, candidate: Candidate, target: TargetHost, need: Need) -> BuiltOnHost | None:
        is_driver = candidate.key.component == "driver"
        return self._signed_modules.lacking(candidate.version, target.host, need) if is_driver else None

    def _built_on_host(self, candidate: Candidate) -> Iterator[Requirement]:
        """Yield the requirements of a driver without signed modules: what is built on the host loads, and can be built."""
        for need in BUILT_ON_THE_HOST:
            for key in self._reach(candidate.key, need.component):
                target = self._hosts.get(key.scope)
                if target is None or (predicate := self._lacks_signed_modules(candidate, target, need)) is None:
                    continue
                relation = Relation("driver", need.component)
                ground = candidate.entails(predicate, relation, self._signed_modules.place(target.host))
                yield Requirement(key, _test(need, candidate), ground)

    def _patched(self, candidate: Candidate, kernel: str, place: Source | None) -> Iterator[Requirement]:
        """Yield the requirement that `patched-kernel` is allowed, if a driver builds on a host's kernel only with patches.

        Nothing is yielded unless the policy forbids `patched-kernel`.
        """
        patches = self._kernels.patches(candidate.version, Version.parse(kernel))
        if patches and "patched-kernel" in self.policy.words:
            predicate = BuildsPatched(kernel, tuple(dict.fromkeys(row.by for row in patches)))
            yield self.policy.lift(candidate, "patched-kernel", predicate, source=place)

    def _reach(self, subject: Key, component: str) -> tuple[Key, ...]:
        """Return the keys of a component that a requirement of the key `subject` applies to.

        For a subject of one host these are the component's keys of that host and the key that all hosts share. The shared key
        is left out if hosts provide the component, for then that key is of a container image, which provides it in place of the
        host. For a shared subject they are the keys of every host; if the component has slots, only the key of the subject's
        framework.
        """
        found = self._reached.get((subject, component))
        if found is None:
            found = self._reached[subject, component] = self._keys_for(subject, component)
        return found

    def _keys_for(self, subject: Key, component: str) -> tuple[Key, ...]:
        keys = self._keys.get(component, ())
        if component == "driver" and subject.component == "jetson" and subject.scope in self._board_drivers:
            return (self._board_drivers[subject.scope],)
        if subject.scope:
            is_image = self._is_virtual(component) and component != "platform"
            return tuple(key for key in keys if key.scope == subject.scope or (not key.scope and not is_image and not key.slot))
        slot = subject.slot or (subject.component if subject.component in SLOTS else "")
        own = tuple(key for key in keys if key.slot == slot)
        return own or tuple(key for key in keys if not key.slot)

    def _is_virtual(self, component: str) -> bool:
        found = self._matrix.components.get(component)
        return found is not None and found.virtual

    def _place_of_code(self, candidate: Candidate) -> Place:
        """Return the line of the matrix with a candidate's GPU targets: for a CUDA release that of its nvcc, else its own."""
        compiler = self._matrix.positions.get(f"nvcc=={candidate.label}") if candidate.key.component == "cuda" else None
        return compiler or self._place(candidate)

    def _place(self, candidate: Candidate) -> Place:
        return place_of(self._matrix, candidate)


def place_of(matrix: Matrix, candidate: Candidate) -> Place:
    """Return the file and line of a candidate's row in the matrix; the component's file when no row has its version."""
    name, version = candidate.key.component, str(candidate.version)
    positions = matrix.positions
    found = positions.get(f"{name}=={version}") or positions.get(f"{name}=={without_local(version)}")
    return found or Place(f"matrices/{name}.yaml")


def cited(matrix: Matrix, sources: tuple[str, ...]) -> Documents:
    """Return the documents that a row of the matrix cites; `sources` are their keys among the matrix's citations."""
    return Documents(tuple(str(matrix.citations[source]) for source in sources if source in matrix.citations))


def bound_of(need: Need) -> Bound:
    """Return the versions that a need allows, as the type that grounds (typed reasons) use."""
    if need.is_same:
        return SameVersion()
    if need.component == "os":
        return Names(tuple(str(version) for version in need.one_of))
    return Versions(need.one_of) if need.one_of else need.range


def _test(need: Need, candidate: Candidate) -> Test:
    if need.is_same:
        return SameAs(candidate.label)
    if need.component == "os":
        return OfSystem(tuple(str(version) for version in need.one_of))
    return OneOf(need.one_of) if need.one_of else Within(need.range)
