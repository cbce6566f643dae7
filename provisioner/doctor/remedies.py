"""Find the remedies of faults: the fixes of the resolver, the steps of a plan, and the command that carries each out."""

from __future__ import annotations

from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.components import COMPONENTS, FOLLOWERS, Move
from provisioner.doctor import commands
from provisioner.doctor.judge import spec_asking
from provisioner.grounds import fault as of
from provisioner.grounds.edit import SetComponent, SetFact
from provisioner.grounds.fault import Remedy
from provisioner.host.facts import with_fact
from provisioner.host.remark import DriverNotLoaded
from provisioner.index.settings import PYTORCH
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.plan.actions import ActionFinder
from provisioner.plan.machine import machines_of, with_installed_together
from provisioner.resolver.joint import NoStackError, UnlistedReleaseError, solve_system
from provisioner.resolver.problem import join

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.doctor.model import Case
    from provisioner.grounds.conflict import Fix
    from provisioner.grounds.fault import Act, Fault

_STEPS = (Move.LOADED_MODULES, Move.MIG, Move.SECURE_BOOT, Move.CONTAINER_TOOLKIT)
"""The changes of machines, besides that of a driver, that are told as a plan tells them."""

MOST_REMEDIES = 3
"""The number of remedies that a fault has: the nearest, and what could take its place."""


class RemedyFinder:
    """Finds the remedies of the faults of one machine.

    The request of `case` is that of the question with the nearest fixes of all conflicts applied, so that a driver is chosen
    for the machine as it will be then.
    """

    def __init__(self, case: Case) -> None:
        self._matrix = case.matrix
        self._patient = case.patient
        self._question = case.question
        self._request = case.request
        (self._machine,) = machines_of((case.patient.target,), (1,))

    def remedies(self, faults: Sequence[Fault]) -> tuple[Remedy, ...]:
        """Return the remedies of the faults of one layer: a step for each fault, with its alternatives, the nearest first.

        A fault that a remedy before it mends, too, has none of its own. Modules are loaded once they are there.
        """
        steps: list[tuple[Remedy, ...]] = []
        for fault in faults:
            ways = tuple(self._of(fault))[:MOST_REMEDIES]
            if ways and not any(way in step for way in ways for step in steps):
                steps.append(ways)
        steps.sort(key=lambda ways: isinstance(ways[0].act, of.LoadModule))
        return tuple(replace(way, is_alternative=at > 0) for ways in steps for at, way in enumerate(ways))

    def _of(self, fault: Fault) -> Iterator[Remedy]:
        if isinstance(fault, of.Contradicts):
            is_of_lock = self._question.lock is not None and any(one.component == "gpu" for one in fault.conflict.members)
            if is_of_lock and all(_is_of_hardware(fix) for fix in fault.conflict.fixes):
                yield self._run(
                    of.SolveAnew(self._question.spec_file if self._question.spec is not None else "", self._patient.file)
                )
            for fix in fault.conflict.fixes:
                yield from self._of_fix(fix)
        else:
            yield from self._of_driver(fault)
            yield from self._of_devices(fault)
            yield from self._of_containers(fault)
            yield from self._of_environment(fault)

    def _of_driver(self, fault: Fault) -> Iterator[Remedy]:
        match fault:
            case of.Seen(remark=DriverNotLoaded()):
                yield self._run(of.LoadModule("nvidia"))
            case of.KeyNotEnrolled(builder=builder):
                yield self._run(of.EnrolKey(builder))
            case of.LinuxDriverInWsl(packages=packages):
                yield self._run(of.RemovePackages(packages))
            case of.NotBuilt(component="driver", version=version) if not self._builds(version):
                yield from self._install("driver", "")
            case of.NotBuilt(kernel=kernel, lacks_headers=lacks_headers):
                yield self._run(of.BuildModule(kernel=kernel, needs_headers=lacks_headers))
            case of.NoDriver(component="amdgpu"):
                yield self._run(of.LoadModule("amdgpu"))
            case of.NoDriver(component=component):
                yield from self._install(component, "")

    def _of_devices(self, fault: Fault) -> Iterator[Remedy]:
        match fault:
            case of.NotServed():
                yield self._run(of.UseWsl())
            case of.MissingDevices(accelerator="wsl") | of.NoWslLibrary():
                yield self._run(of.RestartWsl())
            case of.MissingDevices(accelerator="cuda", is_container=is_container):
                yield self._run(of.PassGpus() if is_container else of.MakeDevices())
            case of.MissingDevices(files=files):
                yield self._run(of.ProvideDevices(files))
            case of.ForbiddenDevices(groups=groups):
                yield self._run(of.JoinGroups(groups))

    def _of_containers(self, fault: Fault) -> Iterator[Remedy]:
        match fault:
            case of.StaleCdi(file=file):
                yield self._run(of.WriteCdi(file))
            case of.NoContainerToolkit():
                engines = self._patient.condition.engines if self._patient.condition is not None else None
                yield self._run(of.InstallToolkit(commands.configured_engine(engines or ())))

    def _of_environment(self, fault: Fault) -> Iterator[Remedy]:
        match fault:
            case of.CpuBuild(subject=subject, accelerator=accelerator):
                yield from self._build(subject.name, subject.label.partition("+")[0], accelerator)
            case of.NotAsLocked():
                yield self._run(of.InstallLock(quote(self._question.lock_file)))
            case of.OtherPython(locked=locked):
                yield self._run(of.InstallLock(quote(self._question.lock_file), python=locked))
            case of.UnmetRequirements(differences=differences):
                yield self._run(of.InstallMissing(tuple(dict.fromkeys(one.needed for one in differences))))

    def _run(self, act: Act) -> Remedy:
        return Remedy(act=act, command=commands.command(act, self._patient.target.host))

    def _of_fix(self, fix: Fix) -> Iterator[Remedy]:
        """Yield a fix of the resolver as a remedy; the change of one fact of a machine is the step of a plan."""
        edit = fix.edits[0]
        if len(fix.edits) == 1 and isinstance(edit, SetFact) and not edit.shown_by:
            if edit.name == "driver":
                yield from self._install("driver", edit.change)
                return
            if COMPONENTS[edit.name].move in _STEPS:
                yield self._change(edit)
                return
        yield Remedy(act=of.Mend(fix=fix), command=self._command_of(fix, edit) if len(fix.edits) == 1 else "")

    def _command_of(self, fix: Fix, edit: object) -> str:
        if isinstance(edit, SetFact):
            return self._command_of_fact(edit)
        if isinstance(edit, SetComponent) and edit.name in {"pytorch", "pytorch_build"} and self._question.lock is None:
            version, build = fix.gives.get("pytorch", ""), fix.gives.get("pytorch_build", "")
            if version and build:
                return commands.command(_torch(version, build), self._patient.target.host)
        return ""

    def _change(self, edit: SetFact) -> Remedy:
        move = COMPONENTS[edit.name].move
        assert move is not None, "the component is one that a plan changes"
        before = self._machine.facts
        found = ActionFinder(self._matrix, self._machine, today=None).find(
            move.value, before, {**before, edit.name: edit.value}
        )
        return Remedy(act=of.Carry(action=found.action, details=found.details), command=self._command_of_fact(edit))

    def _command_of_fact(self, edit: SetFact) -> str:
        built_by = (one.built_by for one in self._patient.remarks if isinstance(one, DriverNotLoaded))
        return commands.of_fact(edit, self._patient.target.host, next(built_by, None))

    def _install(self, component: str, change: str) -> Iterator[Remedy]:
        """Yield the remedy that installs the driver which the resolver would choose for the machine, within a range."""
        chosen = self._chosen(component, change)
        if not chosen:
            return
        before = self._machine.facts
        after = {**before, **chosen}
        if component == "driver":
            after = with_installed_together(after, self._machine)
        found = ActionFinder(self._matrix, self._machine, today=None).find("driver", before, after)
        command = commands.driver_command(chosen, self._patient.target.host) if component == "driver" else ""
        yield Remedy(act=of.Carry(action=found.action, details=found.details), command=command)

    def _builds(self, driver: str) -> bool:
        """Return whether a driver can be installed for the kernel of the machine, or whether no other one can either."""
        with suppress(UnlistedReleaseError):
            return bool(self._chosen("driver", f"=={driver}")) or not self._chosen("driver", "")
        return True

    def _chosen(self, component: str, change: str) -> dict[str, str]:
        """Return the driver, and the flavour of its modules, to install in place of what the machine has; {} if none fits."""
        host = self._request.hosts[0].host
        for name in ("driver", *FOLLOWERS["driver"]):
            host = with_fact(host, name, None)
        hosts = (replace(self._request.hosts[0], host=replace(host, gpus=self._patient.target.host.gpus)),)
        for strategy in ("stable", "newest"):
            spec = spec_asking(
                name="driver",
                accelerator=self._request.accelerator,
                runs="host",
                requires={component: change or "*"},
                policy={"strategy": strategy},
            )
            with suppress(NoStackError):
                stack = solve_system(join(self._matrix, replace(self._request, spec=spec, hosts=hosts)), finds_all=False)
                return {name: stack.components[name] for name in (component, "driver_module") if name in stack.components}
        return {}

    def _build(self, component: str, version: str, accelerator: str) -> Iterator[Remedy]:
        """Yield the remedy that installs the build of an installed release for the GPUs of the machine, if there is one."""
        spec = spec_asking(name="build", accelerator=accelerator, runs="host", requires={component: f"=={version}"})
        try:
            stack = solve_system(join(self._matrix, replace(self._request, spec=spec)), finds_all=False)
        except (NoStackError, UnlistedReleaseError):
            return
        pin = next((one for one in stack.pins if one.component == component), None)
        if component == "pytorch" and "pytorch_build" in stack.components:
            yield self._run(_torch(version, stack.components["pytorch_build"]))
        elif pin is not None:
            releases = (one for one in self._matrix.components[component].releases if str(one.version) == version)
            install = next((one.install for release in releases for one in release.builds if one.name == pin.build), "")
            if install:
                yield self._run(of.InstallBuild(requirement=f"{install}=={version}"))


def _is_of_hardware(fix: Fix) -> bool:
    return any(edit.component == "gpu" for edit in fix.edits)


def _torch(version: str, build: str) -> of.InstallBuild:
    distribution = DISTRIBUTION_OF_COMPONENT["pytorch"]
    return of.InstallBuild(requirement=f"{distribution}=={version}+{build}", index=PYTORCH.format(variant=build))
