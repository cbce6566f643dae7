"""The facts of a log's machine: stated by the log, by a host profile and by a lock, and the guards of failures on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.components import ABSENT, COMPONENTS
from provisioner.grounds.diagnosis import Disagreement, KnownFact
from provisioner.host.facts import STATED, stated, with_fact
from provisioner.host.model import Host, HostGpu
from provisioner.matrix.need import NAMED_GUARDS
from provisioner.request import TargetHost
from provisioner.resolver.requirement import is_of_system
from provisioner.resolver.rules.guards import Verdict
from provisioner.versions import Version, kernel_build

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.diagnose.recognise import Reading
    from provisioner.matrix.model import Matrix
    from provisioner.matrix.need import Need

OF_MACHINES = ("platform", "virtualization", "driver", "kernel", "glibc")
"""The facts of a log that are laid over a host profile, beside its GPUs: those that the solver is asked with."""

_KEYS = ("platform", "virtualization")
"""Facts that are keys of a profile and no components."""

_PROVED = ("accelerator", "runs", "build")
"""Guards that the message itself proves: CUDA's messages come from CUDA, a container engine's from a container."""

LABEL = "the log's machine"


class MachineFacts(Struct, frozen=True, kw_only=True):
    """Everything that is known of the machine and stack of a log.

    `facts` are those of the log, the profile and the lock; where they disagree the log comes first. `host` is the profile with
    the facts of the log laid over it.
    """

    facts: tuple[KnownFact, ...]
    host: Host
    disagreements: tuple[Disagreement, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def value(self, name: str) -> str:
        """Return the first value of a fact; "" when nobody states it."""
        return next(iter(self.values.get(name, ())), "")

    @property
    def target(self) -> TargetHost:
        """The machine as a target of the solver."""
        return TargetHost(label=LABEL, host=self.host)

    @property
    def asked_with(self) -> tuple[tuple[str, str], ...]:
        """The facts that the solver is asked with, by name."""
        names = ("driver", "amdgpu", "kernel", "glibc")
        found = [(name, value) for name in names if (value := stated(self.host, name))]
        gpus = [gpu.name or gpu.target for gpu in self.host.gpus or () if gpu.name or gpu.target]
        return (*found, *(("gpu", gpu) for gpu in dict.fromkeys(gpus) if gpu))


def machine_facts(
    readings: Iterable[Reading], matrix: Matrix, *, profile: Host | None = None, locked: Mapping[str, str] | None = None
) -> MachineFacts:
    """Return what the readings of a log, a host profile and the components of a lock say of one machine."""
    found = [KnownFact(name=one.fact, value=one.value, line=one.line, text=_spelled(one)) for one in readings]
    found += list(_derived(found, matrix))
    host, disagreements = _laid_over(profile or Host(), found)
    if profile is not None:
        found += [
            KnownFact(name=name, value=value, said_by="host")
            for name in (*OF_MACHINES, *(name for name in STATED if name not in OF_MACHINES))
            if (value := _stated(profile, name))
        ]
        found += [KnownFact(name="gpu", value=gpu.target, said_by="host") for gpu in profile.gpus or () if gpu.target]
    found += [KnownFact(name=name, value=value, said_by="lock") for name, value in (locked or {}).items()]
    values: dict[str, dict[str, None]] = {}
    for fact in found:
        values.setdefault(fact.name, {})[fact.value] = None
    return MachineFacts(
        facts=tuple(dict.fromkeys(found)),
        host=host,
        disagreements=disagreements,
        values={name: tuple(several) for name, several in values.items()},
    )


def holds(needs: Iterable[Need], facts: MachineFacts) -> Verdict:
    """Return whether the guards of a failure hold on the machine: no if one certainly does not, unknown if one is not known."""
    found = [_holds(need, facts) for need in needs]
    return min(found, key=lambda one: one.value, default=Verdict.YES)


def unknown_guards(needs: Iterable[Need], facts: MachineFacts) -> tuple[Need, ...]:
    """Return the guards that nobody states, without those that every log of the failure meets, such as its accelerator."""
    return tuple(need for need in needs if _holds(need, facts) is Verdict.UNKNOWN and need.component not in _PROVED)


def _holds(need: Need, facts: MachineFacts) -> Verdict:
    values = facts.values.get(need.component, ())
    if need.component == "accelerator":
        values = values or _accelerators(facts)
    if not values:
        return Verdict.UNKNOWN
    return Verdict.YES if any(_matches(need, value) for value in values) else Verdict.NO


def _accelerators(facts: MachineFacts) -> tuple[str, ...]:
    found = dict.fromkeys(gpu.accelerator for gpu in facts.host.gpus or () if gpu.accelerator)
    return tuple(found)


def _matches(need: Need, value: str) -> bool:
    if need.component == "os":
        return is_of_system(value, [str(name) for name in need.one_of])
    row = COMPONENTS.get(need.component)
    if need.component in NAMED_GUARDS or value == ABSENT or value.startswith("gfx") or (row is not None and row.is_named):
        return Version.named(value) in need.one_of
    try:
        return need.allows(kernel_build(value) if need.component == "kernel" else Version.parse(value))
    except ValueError:
        return False


def _spelled(reading: Reading) -> str:
    return reading.written if reading.written != reading.value else ""


def _derived(found: Iterable[KnownFact], matrix: Matrix) -> Iterator[KnownFact]:
    """Yield the driver branch that runs the CUDA of the driver, if the log states no driver, and the target of a named GPU."""
    facts = tuple(found)
    names = {fact.name for fact in facts}
    for fact in facts:
        if fact.name == "cuda_of_driver" and "driver" not in names:
            branch = next((one for one in matrix.branches if str(one.native_cuda) == fact.value), None)
            if branch is not None:
                yield KnownFact(name="driver", value=branch.branch, line=fact.line, by="cuda_of_driver")
        if fact.name == "gpu_name" and "gpu" not in names:
            named = {name.lower(): gpu for gpu in matrix.gpus for name in (gpu.name, *gpu.aliases)}
            named |= {f"nvidia {name}": gpu for name, gpu in named.items()}
            gpu = named.get(fact.value.lower())
            if gpu is not None:
                yield KnownFact(name="gpu", value=gpu.compute_capability or gpu.gfx, line=fact.line, by="gpu_name")


def _laid_over(host: Host, facts: Iterable[KnownFact]) -> tuple[Host, tuple[Disagreement, ...]]:
    """Return a host with the facts of a log, and where the host stated another value; of several values the last counts."""
    disagreements: dict[str, Disagreement] = {}
    by_name = {fact.name: fact for fact in facts}
    for name in OF_MACHINES:
        fact = by_name.get(name)
        if fact is None:
            continue
        before = _stated(host, name)
        if before and name == "driver" and fact.by and before.partition(".")[0] == fact.value:
            continue  # the profile states a release of the branch
        if before and before != fact.value:
            disagreements[name] = Disagreement(name=name, in_log=fact.value, in_profile=before, line=fact.line)
            if name == "driver":  # what the profile says of the other driver says nothing of this one
                host = replace(host, driver=None, userspace_driver=None, fabric_manager=None)
        host = replace(host, **{name: fact.value}) if name in _KEYS else with_fact(host, name, fact.value)
    targets = tuple(dict.fromkeys(fact.value for fact in facts if fact.name == "gpu"))
    if targets and not {gpu.target for gpu in host.gpus or ()} & set(targets):
        before = ", ".join(gpu.target or "" for gpu in host.gpus or ())
        line = by_name["gpu"].line
        if before:
            disagreements["gpu"] = Disagreement(name="gpu", in_log=", ".join(targets), in_profile=before, line=line)
        host = replace(host, gpus=tuple(HostGpu.of_target(target) for target in targets))
    return host, tuple(disagreements.values())


def _stated(host: Host, name: str) -> str:
    if name in _KEYS:
        return getattr(host, name) or ""
    return stated(host, name) or ""
