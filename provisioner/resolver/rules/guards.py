"""Evaluate the guards of rules, their conditions under `on:`, on the facts of a host and the request, before solving.

A fact is a value that a host profile or the request states, such as the driver's version or the platform.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from provisioner.components import ABSENT, PRESENT
from provisioner.host.facts import stated
from provisioner.matrix.need import NAMED_GUARDS
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.requirement import is_of_system
from provisioner.resolver.rules.facts import WSL, boards, has_driver_of_some_version, interpreter, is_jetson, virtualizations
from provisioner.versions import Version, kernel_build

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from provisioner.host.model import Host, HostGpu
    from provisioner.matrix.model import Matrix
    from provisioner.matrix.need import Need
    from provisioner.request import Request, TargetHost


class Verdict(Enum):
    """Whether a guard holds; `UNKNOWN` when the host does not state the fact."""

    NO = 0
    UNKNOWN = 1
    YES = 2


@once_per_matrix
def _kinds(matrix: Matrix) -> dict[str, str]:
    return {gpu.name: gpu.kind for gpu in matrix.gpus}


@once_per_matrix
def devices_by_name(matrix: Matrix) -> dict[str, str]:
    """Return the compute capability or gfx target of each GPU of a matrix by its name."""
    return {gpu.name: gpu.target for gpu in matrix.gpus}


class Guards:
    """The evaluation of guards for one problem."""

    def __init__(self, matrix: Matrix, request: Request) -> None:
        self._matrix = matrix
        self._request = request
        self._kinds = _kinds(matrix)
        self._devices = devices_by_name(matrix)
        build = request.spec.build
        self._requested = {
            "platform": request.platform,
            "accelerator": request.accelerator,
            "runs": request.runs,
            "build": build.kind if build is not None else ABSENT,
            "framework": PRESENT if request.names_framework else ABSENT,
            "cuda_compat": "present" if request.spec.image.cuda_compat else ABSENT,
        }

    def hold(self, guards: Iterable[Need], target: TargetHost) -> bool:
        """Return whether every guard holds on a host; a guard about a fact that the host does not state does not hold."""
        return all(self._verdict(guard, target.host) is Verdict.YES for guard in guards)

    def may_hold(self, guards: Iterable[Need], target: TargetHost) -> bool:
        """Return whether no guard certainly fails on a host; one about a fact that the host does not state may hold."""
        return all(self._verdict(guard, target.host) is not Verdict.NO for guard in guards)

    def open(self, guards: Iterable[Need], target: TargetHost) -> tuple[Need, ...]:
        """Return the guards that are undecided because a host does not state their facts.

        () when the stated facts already decide whether all guards hold, as when one of them certainly does not hold.
        """
        found = [(self._verdict(guard, target.host), guard) for guard in guards]
        if any(verdict is Verdict.NO for verdict, _ in found):
            return ()
        return tuple(guard for verdict, guard in found if verdict is Verdict.UNKNOWN)

    def unknown(self, guards: Iterable[Need], target: TargetHost) -> str:
        """Return the name of the first unstated fact that decides whether the guards hold on a host.

        "" when the stated facts decide it.
        """
        return next((guard.component for guard in self.open(guards, target)), "")

    def device(self, gpu: HostGpu) -> str | None:
        """Return the compute capability or gfx target of a GPU, stated or known by its name; None when unknown."""
        return gpu.target or self._devices.get(gpu.name or "")

    def is_data_centre(self, target: TargetHost) -> Verdict:
        """Return whether every GPU of a host is of the data-centre class, which forward compatibility requires.

        Unknown when the host does not state its GPUs, or when the class of a GPU is unknown and none is of another class.
        """
        gpus = target.host.gpus
        if gpus is None:
            return Verdict.UNKNOWN
        kinds = {self._kinds.get(gpu.name or "") for gpu in gpus}
        if not kinds or kinds - {"datacenter", "", None}:
            return Verdict.NO
        return Verdict.YES if kinds == {"datacenter"} else Verdict.UNKNOWN

    def allows(self, guard: Need, label: str) -> bool:
        """Return whether a guard holds if `label` is chosen for its component."""
        return self._matches(guard, label)

    def _verdict(self, guard: Need, host: Host) -> Verdict:
        if guard.component == "virtualization":
            wanted = {str(one) for one in guard.one_of}
            return _of_some([value in wanted for value in virtualizations(host)])
        if guard.component == "gpu" and (possible := boards(self._matrix, host)):
            return _of_some([self._matches(guard, value) for value in possible])
        values = list(self._values(guard.component, host))
        if guard.component not in NAMED_GUARDS and [str(one) for one in guard.one_of] == [ABSENT]:
            is_there = has_driver_of_some_version(host, guard.component) or any(value not in {None, ABSENT} for value in values)
            is_there = is_there or (guard.component == "jetson" and is_jetson(self._matrix, host))
            return Verdict.NO if is_there else Verdict.YES
        known = [value for value in values if value]
        if any(self._matches(guard, value) for value in known):
            return Verdict.YES
        return Verdict.NO if len(known) == len(values) else Verdict.UNKNOWN

    def _values(self, component: str, host: Host) -> Iterator[str | None]:
        """Yield the values of a component on a host, None for one that is not stated.

        A fact about GPUs has one value for each GPU.
        """
        if component in self._requested:
            yield self._requested[component]
        elif component == "python_arch":
            yield interpreter(host, self._request.platform)
        elif component in {"gpu", "gpu_kind"}:
            if host.gpus is None:
                is_board = component == "gpu_kind" and host.jetson is not None
                yield "jetson" if is_board else None
            for gpu in host.gpus or ():
                yield self.device(gpu) if component == "gpu" else self._kinds.get(gpu.name or "") or None
        elif component == "prebuilt_modules":
            yield PRESENT if self._has_prebuilt_modules(host) else ABSENT
        elif component == "mig":
            # Few machines divide their GPUs, and a device that nobody made is missed at once: so unstated counts as no MIG.
            yield host.mig or "disabled"
        elif component == "nvswitch":
            # Few machines have an NVSwitch, and a wrong assumption fails there at once and by name: so unstated counts as none.
            yield host.nvswitch or ABSENT
        else:
            yield stated(host, component)

    def _has_prebuilt_modules(self, host: Host) -> bool:
        """Return whether a driver need not be built on a host: its system has built modules, or WSL takes those of Windows."""
        system = stated(host, "os") or ""
        is_listed = any(is_of_system(system, [row.os]) for row in self._matrix.driver_packages if not row.is_built_on_host)
        return is_listed or virtualizations(host) <= WSL

    def _matches(self, guard: Need, value: str) -> bool:
        if guard.component == "os":
            return is_of_system(value, [str(name) for name in guard.one_of])
        component = self._matrix.components.get(guard.component)
        is_named = guard.component in NAMED_GUARDS or value == ABSENT or value.startswith("gfx")
        if is_named or (component is not None and component.named):
            return Version.named(value) in guard.one_of
        return guard.allows(kernel_build(value) if guard.component == "kernel" else Version.parse(value))


def _of_some(hits: Collection[bool]) -> Verdict:
    """Return `YES` if a guard holds with every possible value of a fact, `NO` if with none, otherwise `UNKNOWN`.

    `hits` has for each of these values whether the guard holds with it.
    """
    return Verdict.YES if all(hits) else Verdict.UNKNOWN if any(hits) else Verdict.NO
