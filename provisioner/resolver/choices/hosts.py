"""Translate hosts to keys with candidates, root requirements and doubts.

A fact is a property that a host states, such as its driver or a GPU; it becomes a key of that host, required at the stated
value. A component that the solver chooses on a host becomes a key of that host with all its candidates. A doubt is an unknown
fact that the answer relies on, such as one that the host does not state.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.accelerators import ON_GPUS
from provisioner.components import ABSENT, FOLLOWERS
from provisioner.errors import ProvisionError
from provisioner.grounds.doubt import MissingToolkit, NamelessGpu, SilentRows, UnlistedSeries, Unstated, UnstatedGpus
from provisioner.grounds.requirement import HostFact, HostGpu, NeedsSomeDriver, NoGpu, Subject
from provisioner.host.facts import following, stated
from provisioner.host.gpu_names import GpuNames, UnreadName
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.choices.candidates import candidates_of
from provisioner.resolver.requirement import (
    Candidate,
    Key,
    Labelled,
    NewerCandidate,
    ReleaseCandidate,
    Requirement,
    Within,
    is_of_system,
    with_key,
)
from provisioner.resolver.rules.devices import version_of_device
from provisioner.resolver.rules.facts import (
    FACTS,
    NOT_ON_JETSONS,
    WSL,
    binds,
    board_drivers,
    has_driver_of_some_version,
    has_running_driver,
    is_chosen,
    is_installable,
    is_jetson,
    is_settled_by_driver,
    is_stated_as,
    profile_key,
    shown_by_drivers,
    virtualizations,
)
from provisioner.resolver.rules.guards import devices_by_name
from provisioner.versions import Range, Version, without_local
from provisioner.words.gpu_name import name_hints, target_hints, unread_name_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.grounds.doubt import Doubt
    from provisioner.matrix.model import Component, Matrix
    from provisioner.request import Request, TargetHost
    from provisioner.resolver.rules.silence import Silence

_NUMBER = re.compile(r"\d+(\.\d+)*")

DRIVERS = ("driver", "amdgpu")
"""Drivers, one of which a GPU on Linux requires. If the host states none, the solver chooses one to be installed."""


class UnknownGpuError(ProvisionError):
    """Raised when the compute capability or gfx target of a GPU is unknown.

    The profile gives only the GPU's name, which fits no product of the matrix, or products of several targets.
    """

    code = "unknown-gpu"
    exit_code = 2


class HostRequirements:
    """The keys, root requirements and doubts of a request's hosts, collected host by host.

    `domains` has the candidates of every key, most preferred first; `roots` are the root requirements; `doubts` are the facts
    that a host should state and does not, or states in a version that the matrix does not list.
    """

    def __init__(self, matrix: Matrix, request: Request, silence: Silence) -> None:
        self._matrix = matrix
        self._request = request
        self._silence = silence
        self._partners = _partners(matrix)
        self._known = devices_by_name(matrix)
        self._shown = shown_by_drivers(matrix)
        self._listed: dict[tuple[str, object], tuple[Candidate, ...]] = {}
        self.domains: dict[Key, tuple[Candidate, ...]] = {}
        self.roots: list[Requirement] = []
        self.doubts: list[Doubt] = []

    def add(self, target: TargetHost) -> None:
        """Add the keys, root requirements and doubts of one host; raises `UnknownGpuError` if a GPU cannot be identified."""
        request, host, label = self._request, target.host, target.label
        has_own_driver = is_jetson(self._matrix, host)
        has_driver = has_own_driver or has_running_driver(host)
        for name in self._of_hosts():
            if has_own_driver and name in NOT_ON_JETSONS and (name == "driver" or name not in request.spec.requires):
                continue
            value = stated(host, name) if binds(name, request) or name in request.spec.requires else None
            is_open = is_chosen(name, request) and not (name in self._shown and has_driver)
            if value is not None or is_open or name in request.spec.requires:
                self._fact(target, name, value)
            if name in request.spec.requires and is_settled_by_driver(name, host):
                self.doubts.append(Unstated(fact=name, host=label, profile_key=profile_key(name)))
        if has_own_driver and "driver" in request.spec.requires:
            self._driver_of_board(target)
        self._let_follow(target)
        if (
            request.runs == "host"
            and request.system == "linux"
            and host.glibc is None
            and not self._has_glibc_of_system(target)
        ):
            self.doubts.append(Unstated(fact="glibc", host=label, profile_key=profile_key("glibc")))
        if request.accelerator not in ON_GPUS:
            return
        self._gpus(target)
        if request.accelerator == "cuda" and request.runs == "container" and host.container_toolkit is None:
            self.doubts.append(Unstated(fact="container_toolkit", host=label, profile_key=profile_key("container_toolkit")))
        if request.accelerator == "cuda" and request.runs == "container" and host.container_toolkit == ABSENT:
            self.doubts.append(MissingToolkit(host=label))

    def _has_glibc_of_system(self, target: TargetHost) -> bool:
        """Return whether a host states an operating system of which the matrix knows the glibc."""
        component, value = self._matrix.components.get("os"), stated(target.host, "os")
        if component is None or value is None:
            return False
        rows = (one for one in component.releases if value == one.version.text or value.startswith(f"{one.version.text}."))
        return any(need.component == "glibc" for one in rows for need in one.requires)

    def _driver_of_board(self, target: TargetHost) -> None:
        """Add the driver of a Jetson, which its Jetson Linux brings, as a key; a rule of the matrix says which one.

        Without such a rule, or if the host does not state its Jetson Linux, a doubt is recorded instead.
        """
        jetson = target.host.jetson
        release = jetson.l4t if jetson is not None else None
        if release is None:
            self.doubts.append(Unstated(fact="jetson", host=target.label, profile_key=profile_key("jetson")))
            return
        brought = board_drivers(self._matrix)
        if not any(releases.allows(Version.parse(release)) for releases in brought.values()):
            self.doubts.append(SilentRows(subject=Subject("jetson", release), object="driver"))
            return
        key = Key("driver", target.label)
        self.domains[key] = tuple(Candidate(key, Version.parse(text), text) for text in brought)

    def _of_hosts(self) -> Iterator[str]:
        """Yield the components that have a key for every host, because the host and not a container image provides them."""
        for name, component in self._matrix.components.items():
            source = FACTS.get(name)
            is_of_host = component.virtual or (source is not None and source.is_build_tool)
            if is_of_host and name != "gpu" and not is_shared(name, component, self._request):
                yield name

    def _fact(self, target: TargetHost, name: str, value: str | None) -> None:
        """Add a component of a host as a key.

        If the host states `value`, the key must have it. If `value` is None, the key is chosen from all candidates of the
        component; a driver for GPUs is then required in some version, if there is a candidate.
        """
        component = self._matrix.components[name]
        key = Key(name, target.label)
        candidates = self._candidates(component, target) if value is not None or is_installable(name, self._request) else ()
        for partner in self._partners.get(name, ()):
            for other in self._possible(target, partner):
                candidates = candidates if _labels(candidates, other) else _with(candidates, component, key, other)
        if value is None:
            if name in DRIVERS and candidates and not is_jetson(self._matrix, target.host):
                is_there = has_driver_of_some_version(target.host, name)
                needs_some = NeedsSomeDriver(name=name, host=target.label, is_there=is_there)
                self.roots.append(Requirement(key, Within(Range()), needs_some))
        else:
            labels = _labels(candidates, value)
            if not labels:
                candidates, labels = _with(candidates, component, key, value), frozenset({value})
            self._judge(target, component, value)
            fact = HostFact(name=name, value=value, host=target.label, place=target.place(FACTS[name].key))
            self.roots.append(Requirement(key, Labelled(labels), fact))
        self.domains[key] = candidates

    def _let_follow(self, target: TargetHost) -> None:
        """Add the versions of a stated component as candidates of what is installed with it, because a fix may change both."""
        for leader in FOLLOWERS:
            others = self.domains.get(Key(leader, target.label), ()) if stated(target.host, leader) is not None else ()
            for name in following(target.host, leader):
                key = Key(name, target.label)
                own = self.domains.get(key)
                if own is not None:
                    known = {one.label for one in own}
                    added = (Candidate(key, one.version, one.label) for one in others if one.label not in known)
                    self.domains[key] = (*own, *added)

    def _possible(self, target: TargetHost, name: str) -> tuple[str, ...]:
        """Return the versions of a component that a host may have: the stated one, or the releases of the stated series."""
        value = stated(target.host, name)
        if value is None or value == ABSENT:
            return ()
        labels = _labels(self._candidates(self._matrix.components[name], target), value)
        return tuple(sorted(labels)) or (value,)

    def _judge(self, target: TargetHost, component: Component, value: str) -> None:
        """Record a doubt if a host states a version of a series of which the matrix has no release.

        No doubt is recorded for a component, such as the kernel, if the host's running driver shows that the stated version
        suffices.
        """
        name = component.name
        version = Version.named(value) if component.named or value == ABSENT else Version.parse(value)
        is_shown = name in self._shown and has_running_driver(target.host)
        if not version.release or is_shown or component.has_series_of(version):
            return
        if name == "driver" and virtualizations(target.host) <= WSL and self._matrix.branch_of(value) is not None:
            return  # the number of the driver for Windows
        newest = component.newest_before(version)
        self.doubts.append(
            UnlistedSeries(
                name=name,
                host=target.label,
                version=value,
                newest=str(newest) if newest is not None else "",
                is_judged=component.virtual,
            )
        )

    def _candidates(self, component: Component, target: TargetHost) -> tuple[Candidate, ...]:
        """Return the candidates of a component on a host.

        They are cached for all hosts that state the same value, because a pre-release is a candidate only on a host that has
        it.
        """
        name, key = component.name, Key(component.name, target.label)
        known = self._listed.get((name, stated(target.host, name)))
        if known is not None:
            return tuple(with_key(one, key) for one in known)
        found = self._listed[name, stated(target.host, name)] = candidates_of(
            component, self._request, key, silence=self._silence
        )
        return found

    def _gpus(self, target: TargetHost) -> None:
        if target.host.gpus is None:
            self.doubts.append(UnstatedGpus(host=target.label, profile_key=profile_key("gpu")))
            return
        if not target.host.gpus and not self._request.has_no_gpu:
            self._no_gpu(target)
        for index, gpu in enumerate(target.host.gpus):
            found = gpu.target or self._known.get(gpu.name or "")
            if found is None:
                self._unknown_gpu(target, gpu.name, index)
                continue
            place = target.place(f"gpus.{index}")
            key = Key(f"gpu:{found}", target.label)
            if key in self.domains:
                continue
            if found.startswith("gfx") != (self._request.accelerator == "rocm"):
                # No build of any version has code for a GPU of another vendor.
                own, other = ("rocm", "cuda") if found.startswith("gfx") else ("cuda", "rocm")
                foreign = HostGpu(device=found, product="", host=target.label, place=place, foreign_to=other)
                self.roots.append(Requirement(Key("accelerator"), Labelled(frozenset({own})), foreign))
                continue
            labels = dict.fromkeys(self._devices(found))
            if found not in labels:
                labels[found] = None
                self._unlisted_gpu(target, found)
            self.domains[key] = tuple(Candidate(key, version_of_device(text), text) for text in labels)
            stated_gpu = HostGpu(device=found, product=gpu.name or "", host=target.label, place=place)
            self.roots.append(Requirement(key, Labelled(frozenset({found})), stated_gpu))

    def _unlisted_gpu(self, target: TargetHost, device: str) -> None:
        """Record a doubt about a GPU whose compute capability or gfx target, `device`, the matrix does not list."""
        if "gpu" not in self._matrix.components:
            return
        newest = None if device.startswith("gfx") else self._matrix.components["gpu"].newest_before(Version.parse(device))
        self.doubts.append(UnlistedSeries(name="gpu", host=target.label, version=device, newest=str(newest or "")))

    def _no_gpu(self, target: TargetHost) -> None:
        """Require the accelerator `cpu`, because one of several hosts has no GPU.

        An accelerated stack would fall back to the CPU on that host.
        """
        ground = NoGpu(host=target.label, place=target.place("gpus"))
        self.roots.append(Requirement(Key("accelerator"), Labelled(frozenset({"cpu"})), ground))

    def _devices(self, found: str) -> Iterator[str]:
        """Yield every device of the matrix of the same vendor as the device `found`, because a fix may propose another one."""
        if found.startswith("gfx"):
            yield from (gpu.gfx for gpu in self._matrix.gpus if gpu.gfx)
        elif "gpu" in self._matrix.components:
            yield from (str(release.version) for release in self._matrix.components["gpu"].releases)

    def _unknown_gpu(self, target: TargetHost, name: str | None, index: int) -> None:
        """Record a doubt about a GPU without name, compute capability and gfx target, the GPU `index` of the host.

        Raises `UnknownGpuError` when the GPU has a name that fits no product of the matrix, or products of several targets.
        """
        place = target.place(f"gpus.{index}")
        if name is None:
            self.doubts.append(NamelessGpu(host=target.label, index=index))
            return
        read = GpuNames(self._matrix.gpus, self._matrix.chips).read(name)
        assert isinstance(read, UnreadName), "the hosts of a request have the names and targets of the matrix"
        raise UnknownGpuError(
            f"`{name}` ({place.place}) {unread_name_words(read)}", hints=(*name_hints(read), *target_hints(read))
        )


def is_shared(name: str, component: Component, request: Request) -> bool:
    """Return whether all hosts share one choice of a component, because the image or an installer provides it."""
    source = FACTS.get(name)
    if source is None:
        return not component.virtual
    return request.runs == "container" and not source.binds("container")


@once_per_matrix
def _partners(matrix: Matrix) -> dict[str, list[str]]:
    """Return, for each component, the components that a rule requires at the same version.

    A value that a host states of one of them is then a candidate of the others, too.
    """
    found: dict[str, list[str]] = {}
    for rule in matrix.rules:
        for need in rule.require:
            if need.is_same:
                found.setdefault(need.component, []).append(rule.when.component)
                found.setdefault(rule.when.component, []).append(need.component)
    return found


def _labels(candidates: tuple[Candidate, ...], value: str) -> frozenset[str]:
    """Return the labels of the candidates that a host stating `value` may have.

    They are `value` itself, or every build of that version of macOS (`10.13.6`). If there are none, they are the releases of
    the series that `value` names, as `12.4` names the series of 12.4.0 and 12.4.1.
    """
    same = frozenset(one.label for one in candidates if without_local(one.label) == value or one.label == value)
    is_number = _NUMBER.fullmatch(value) is not None
    return same or frozenset(one.label for one in candidates if is_number and is_stated_as(value, without_local(one.label)))


def _with(candidates: tuple[Candidate, ...], component: Component, key: Key, value: str) -> tuple[Candidate, ...]:
    """Return the candidates with `value`, which a host states, inserted by its version if it is not among them.

    The matrix need not list the value.
    """
    if any(candidate.label == value for candidate in candidates):
        return candidates
    version = Version.named(value) if component.named or value == ABSENT else Version.parse(value)
    place = next((i for i, other in enumerate(candidates) if other.version <= version), len(candidates))
    added = _added(candidates, component, Candidate(key, version, value))
    return (*candidates[:place], added, *candidates[place:])


def _added(candidates: tuple[Candidate, ...], component: Component, one: Candidate) -> Candidate:
    """Return `one`, a stated version not among the candidates, with the data of the matrix that apply to it.

    A point release of an operating system has the row of its release, and a release of a compiler that of the newest one of its
    series. A version newer than all releases of the matrix gets the version of the newest.
    """
    listed = [other for other in candidates if isinstance(other, ReleaseCandidate)]
    if component.name == "os":
        alike = next((other for other in listed if is_of_system(one.label, [other.label])), None)
        return one if alike is None else ReleaseCandidate(one.key, one.version, one.label, alike.release)
    if component.virtual and (newest := component.newest_before(one.version)) is not None:
        return NewerCandidate(one.key, newest, one.label)
    if component.virtual or not component.series:
        return one
    series = one.version.release[: component.series]
    alike = next((other for other in listed if other.version.release[: component.series] == series), None)
    return one if alike is None else ReleaseCandidate(one.key, one.version, one.label, alike.release, alike.build)
