"""Guards of rules (`on:`), judged against the facts of one host and the wish before anything is solved."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from provisioner.matrix.guards import NAMED_GUARDS
from provisioner.solve.facts import ABSENT, stated
from provisioner.solve.requirement import is_of_system
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.host.model import Host, HostGpu
    from provisioner.matrix.model import Matrix, Need
    from provisioner.solve.target import TargetHost, Wish


class Verdict(Enum):
    """Whether a guard holds; `UNKNOWN` when the host does not state the fact."""

    NO = 0
    UNKNOWN = 1
    YES = 2


class Guards:
    """Judges guards for one problem."""

    def __init__(self, matrix: Matrix, wish: Wish) -> None:
        self._matrix = matrix
        self._wish = wish
        self._kinds = {gpu.name: gpu.kind for gpu in matrix.gpus}
        self._devices = {gpu.name: gpu.compute_capability or gpu.gfx for gpu in matrix.gpus}
        build = wish.spec.build
        self._wished = {
            "platform": wish.platform,
            "accelerator": wish.accelerator,
            "runs": wish.runs,
            "build": build.kind if build is not None else ABSENT,
        }

    def hold(self, guards: Iterable[Need], target: TargetHost) -> bool:
        """Whether every guard holds on a host; what the host does not state does not hold."""
        return all(self._verdict(guard, target.host) is Verdict.YES for guard in guards)

    def unknown(self, guards: Iterable[Need], target: TargetHost) -> str:
        """The first unstated fact that alone decides whether the guards hold; "" when they are decided."""
        found = [(self._verdict(guard, target.host), guard.component) for guard in guards]
        if any(verdict is Verdict.NO for verdict, _ in found):
            return ""
        return next((component for verdict, component in found if verdict is Verdict.UNKNOWN), "")

    def device(self, gpu: HostGpu) -> str | None:
        """The compute capability or gfx target of a GPU, stated or known by its name."""
        return gpu.compute_capability or gpu.gfx or self._devices.get(gpu.name or "")

    def _verdict(self, guard: Need, host: Host) -> Verdict:
        values = list(self._values(guard.component, host))
        if guard.component not in NAMED_GUARDS and [str(one) for one in guard.one_of] == [ABSENT]:
            return Verdict.YES if all(value in {None, ABSENT} for value in values) else Verdict.NO
        known = [value for value in values if value]
        if any(self._matches(guard, value) for value in known):
            return Verdict.YES
        return Verdict.NO if len(known) == len(values) else Verdict.UNKNOWN

    def _values(self, component: str, host: Host) -> Iterator[str | None]:
        """What a host has of a component: several values for several GPUs, None for what it does not state."""
        if component in self._wished:
            yield self._wished[component]
        elif component == "virtualization":
            yield host.virtualization
        elif component in {"gpu", "gpu_kind"}:
            if host.gpus is None:
                yield None
            for gpu in host.gpus or ():
                yield self.device(gpu) if component == "gpu" else self._kinds.get(gpu.name or "") or None
        else:
            yield stated(host, component)

    def _matches(self, guard: Need, value: str) -> bool:
        if guard.component == "os":
            return is_of_system(value, [str(name) for name in guard.one_of])
        component = self._matrix.components.get(guard.component)
        is_named = guard.component in NAMED_GUARDS or value == ABSENT or value.startswith("gfx")
        if is_named or (component is not None and component.is_named):
            return Version.named(value) in guard.one_of
        return guard.allows(Version.parse(value))
