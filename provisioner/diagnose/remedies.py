"""Compute remedies: what the matrix and the solver say for the machine of a log, and for a lock or a spec if there is one."""

from __future__ import annotations

from functools import cached_property
from shlex import quote
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.components import FRAMEWORKS
from provisioner.errors import ProvisionError
from provisioner.grounds.diagnosis import (
    Advice,
    BroughtBy,
    BuildsFor,
    CannotFollow,
    ChangeHost,
    CudaNeeds,
    DriverRuns,
    DriversFor,
    FactWanted,
    KernelOutOfRange,
    NothingRuns,
    NothingToChange,
    Run,
    RunsHere,
)
from provisioner.grounds.step import FindOut
from provisioner.index.settings import PYTORCH
from provisioner.matrix.check_failures import FACT_OF_STEP
from provisioner.matrix.need import need_of
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.places import Place
from provisioner.plan.model import PlanRequest
from provisioner.plan.planner import make_plan
from provisioner.request import Request
from provisioner.resolver.joint import NoStackError, UnlistedReleaseError, solve_system
from provisioner.resolver.problem import join
from provisioner.resolver.rules.coverage import capability, coverage, runs_on
from provisioner.spec.model import Spec
from provisioner.versions import Version, kernel_build, series

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from provisioner.diagnose.facts import MachineFacts
    from provisioner.grounds.diagnosis import Remedy
    from provisioner.matrix.model import Build, Failure, Matrix, RemedyStep
    from provisioner.matrix.need import Need
    from provisioner.plan.state import StackSpec
    from provisioner.resolver.stack import Stack

MOST_DRIVERS = 4
"""The number of driver branches that are named for a kernel: those nearest to the driver of the log, else the newest."""

_CUDA_FACTS = ("cuda_wanted", "cuda_of_pytorch", "cuda", "cuda_other")
"""The facts of a log that name the CUDA which needs a driver, the most certain first."""


class Wanted(Struct, frozen=True, kw_only=True):
    """A lock or a spec that is to run: its name, the requirements of its stack, and the framework in it, "" for none."""

    name: str
    stack_spec: StackSpec
    framework: str = ""


class Remedies:
    """The remedies for one log."""

    def __init__(self, matrix: Matrix, facts: MachineFacts, *, wanted: Wanted | None = None) -> None:
        self._matrix = matrix
        self._facts = facts
        self._wanted = wanted

    def of(self, failure: Failure) -> tuple[Remedy, ...]:
        """Return the steps against a failure, in order; a question for which the facts are missing says which ones."""
        if not failure.steps:
            return (Advice(failure.remedy),) if failure.remedy else ()
        found: list[Remedy] = []
        for remedy in (remedy for step in failure.steps for remedy in self._step(step, failure)):
            if remedy not in found:  # two questions may need the same fact; not every remedy can be hashed
                found.append(remedy)
        return tuple(found)

    def _step(self, step: RemedyStep, failure: Failure) -> Iterator[Remedy]:
        if step.run:
            yield Run(command=self._filled(step.run, is_shell=True), note=self._filled(step.note, is_shell=False))
        elif step.say:
            yield Advice(self._filled(step.say, is_shell=False))
        elif step.solve == "stack":
            yield from self._stack(failure)
        elif step.solve == "driver":
            yield from self._driver()
        elif step.solve == "gpu":
            yield from self._gpu(failure)
        elif step.solve == "library":
            yield from self._libraries()
        else:
            yield from self._kernel()

    def _filled(self, text: str, *, is_shell: bool) -> str:
        def value(match: re.Match[str]) -> str:
            fact, default = match["fact"], match["default"]
            found = self._facts.value(fact)
            if not found:
                return default if default is not None else f"<{fact}>"
            return quote(found) if is_shell else found

        return FACT_OF_STEP.sub(value, text)

    # What the matrix says

    def _gpu(self, failure: Failure) -> Iterator[Remedy]:
        """Yield the builds with code for each GPU of the log, then the stack that the solver finds for them."""
        targets = dict.fromkeys(gpu.target for gpu in self._facts.host.gpus or () if gpu.target)
        if not targets:
            yield FactWanted(("gpu",))
            return
        framework = "nvcc" if failure.layer == "nvcc" else self._framework(failure)
        for target in targets:
            found = [
                f"{release.version}+{build.name}" if framework == "pytorch" else str(release.version)
                for release in self._matrix.components[framework].releases
                for build in release.builds
                if not release.prerelease
                and not build.compiled
                and _has_code_for(build, target, is_compiler=framework == "nvcc")
                and self._is_for_platform(build)
            ]
            yield BuildsFor(gpu=target, framework=framework, newest=next(iter(found), ""), oldest=next(reversed(found), ""))
        if framework != "nvcc":
            yield from self._stack(failure)

    def _is_for_platform(self, build: Build) -> bool:
        return not build.platforms or self._platform in build.platforms

    def _kernel(self) -> Iterator[Remedy]:
        """Yield whether the driver of the log builds on its kernel, and the releases that do, without patches."""
        kernel, driver = self._facts.value("kernel"), self._facts.value("driver")
        if not kernel:
            yield FactWanted(("kernel",))
            return
        newest: dict[str, str] = {}
        for release in self._matrix.components["driver"].releases:
            need = need_of(release.requires, "kernel")
            if need is not None and str(release.version) == driver and not need.allows(kernel_build(kernel)):
                yield KernelOutOfRange(driver=driver, kernel=kernel, range=str(need.range))
            if not release.prerelease and need is not None and _bounds_above(need) and need.allows(kernel_build(kernel)):
                newest.setdefault(str(release.version).partition(".")[0], str(release.version))
        branch = driver.partition(".")[0]
        same = newest.pop(branch, "")
        nearest = sorted(newest, key=lambda one: abs(int(one) - int(branch))) if branch.isdigit() else list(newest)
        others = tuple(newest[one] for one in nearest[:MOST_DRIVERS])
        yield DriversFor(kernel=kernel, driver=driver, same_branch=same if same != driver else "", others=others)

    def _libraries(self) -> Iterator[Remedy]:
        """Yield what contains each library of the log, as far as it was measured; only NVIDIA's own distributions, if any."""
        names = dict.fromkeys(value.rpartition("/")[2] for value in self._facts.values.get("library", ()))
        for name in names:
            found = dict.fromkeys(wheel.distribution for wheel in self._matrix.wheels if name in wheel.provides)
            vendors = [one for one in found if one.startswith("nvidia-")]
            packages = [item for row in self._matrix.system_libraries if row.soname == name for item in row.packages.items()]
            if found or packages:
                yield BroughtBy(library=name, distributions=tuple(vendors or found), packages=tuple(packages))

    def _driver(self) -> Iterator[Remedy]:
        """Yield what the driver of the log runs, what the wanted CUDA needs, and the steps to the wanted lock or spec."""
        driver = self._facts.value("driver")
        branch = self._matrix.branch_of(driver) if driver else None
        if branch is not None:
            yield DriverRuns(branch=branch.branch, cuda=str(branch.native_cuda))
        cuda = next((value for name in _CUDA_FACTS if (value := self._facts.value(name))), "")
        if cuda and (needs := self._needs_of(cuda)) is not None:
            yield needs
        yield from self._plan()

    def _needs_of(self, cuda: str) -> CudaNeeds | None:
        wanted = series(cuda)
        minima = [one.driver for one in self._matrix.components["cuda"].releases if series(str(one.version)) == wanted]
        oldest = next((str(one.minor_version) for one in minima if one is not None and one.minor_version is not None), "")
        native = [branch for branch in self._matrix.branches if branch.native_cuda >= Version.parse(wanted)]
        first = min(native, key=lambda one: int(one.branch), default=None)
        if not oldest and first is None:
            return None
        return CudaNeeds(cuda=cuda, minor_version=oldest, native_branch=first.branch if first is not None else "")

    # What the solver says

    def _framework(self, failure: Failure) -> str:
        if self._wanted is not None and self._wanted.framework:
            return self._wanted.framework
        stated = next((name for name in FRAMEWORKS if self._facts.value(name) or self._facts.value(f"{name}_wanted")), "")
        return failure.layer if failure.layer in FRAMEWORKS else stated or FRAMEWORKS[0]

    @property
    def _platform(self) -> str:
        if self._wanted is not None:
            return self._wanted.stack_spec.platform
        return self._facts.host.platform or "linux/amd64"

    def _stack(self, failure: Failure) -> Iterator[Remedy]:
        """Yield the newest stack for the machine of the log: of the spec, or of the framework of the lock or of the log."""
        if not self._facts.asked_with:
            yield FactWanted(("driver", "gpu"))
            return
        framework = self._framework(failure)
        target = self._facts.target
        is_amd = any(gpu.accelerator == "rocm" for gpu in target.host.gpus or ())
        spec = Spec(name="log", requires={framework: "*"}, accelerator="rocm" if is_amd else "cuda", runs="host")
        if self._wanted is not None:
            base = self._wanted.stack_spec.spec
            requires = base.requires or {framework: "*"}
            spec = replace(base, requires=requires, packages=(), accelerator=self._wanted.stack_spec.accelerator)
        try:
            stack = solve_system(join(self._matrix, Request(spec=spec, hosts=(target,), platform=self._platform)))
        except (NoStackError, UnlistedReleaseError) as error:
            yield NothingRuns(host=self._facts.asked_with, conflict=error.conflict)
        except ProvisionError:
            yield FactWanted(("driver", "gpu"))  # such as a GPU that the matrix does not list
        else:
            yield self._runs_here(stack, framework)

    def _runs_here(self, stack: Stack, framework: str) -> RunsHere:
        names = tuple(dict.fromkeys((framework, "cuda", "rocm", "cudnn", "nccl", "python")))
        found = {name: stack.components[name] for name in names if name in stack.components}
        requirement = index = ""
        if "pytorch" in found:
            found["pytorch"] = f"{found['pytorch']}+{stack.components['pytorch_build']}"
        if self._wanted is not None:
            pass  # a lock or spec has packages of its own and is solved again
        elif framework == "pytorch":
            build = self._build(stack.components["pytorch"], stack.components["pytorch_build"])
            if build is not None and not build.compiled:
                requirement = f"{DISTRIBUTION_OF_COMPONENT[framework]}=={stack.components['pytorch']}"
                variant = build.index.removeprefix("pytorch-")
                index = PYTORCH.format(variant=variant) if variant != build.index else ""
        elif framework in DISTRIBUTION_OF_COMPONENT:
            requirement = f"{DISTRIBUTION_OF_COMPONENT[framework]}=={stack.components[framework]}"
        return RunsHere(
            host=self._facts.asked_with,
            components=tuple(found.items()),
            basis=stack.basis,
            verdict=stack.verdict,
            doubts=len(stack.doubts),
            requirement=requirement,
            index=index,
        )

    def _build(self, version: str, name: str) -> Build | None:
        for release in self._matrix.components["pytorch"].releases:
            if str(release.version) == version:
                named = (build for build in release.builds if build.name == name and self._is_for_platform(build))
                return next(named, None)
        return None

    def _plan(self) -> Iterator[Remedy]:
        """Yield the steps from the machine of the log to the lock or spec; nothing without one."""
        if self._wanted is not None:
            yield from self._steps

    @cached_property
    def _steps(self) -> tuple[Remedy, ...]:
        assert self._wanted is not None, "a plan has a goal"
        wanted, target = self._wanted, self._facts.target
        base = replace(wanted.stack_spec, locked={}, locked_in=Place(""))
        current = replace(base, spec=replace(base.spec, requires={}, packages=()))
        request = PlanRequest(hosts=(target,), counts=(1,), current=current, base=base, wanted=wanted.stack_spec)
        try:
            (host,) = make_plan(self._matrix, request).hosts
        except ProvisionError:
            return (FactWanted(("driver", "gpu")),)  # a release or a GPU that the matrix does not list
        if host.exclusion is not None:
            return (CannotFollow(wanted=wanted.name, conflict=host.exclusion.conflict),)
        steps = [step for step in host.steps if not isinstance(step.action, FindOut) and step.kind != "software"]
        lacking = tuple(step.component for step in host.steps if isinstance(step.action, FindOut))
        found: list[Remedy] = [ChangeHost(action=step.action, wanted=wanted.name, is_reboot=step.is_reboot) for step in steps]
        if lacking:
            found.append(FactWanted(lacking))
        return tuple(found) or (NothingToChange(wanted.name),)


def _has_code_for(build: Build, target: str, *, is_compiler: bool) -> bool:
    if is_compiler:
        return f"sm_{target.replace('.', '')}" in (build.sass or ())
    if target.startswith("gfx"):
        return runs_on(build.gfx or (), target)
    return coverage(build.sass or (), (), capability(target)) == "native"


def _bounds_above(need: Need) -> bool:
    return any(clause.operator.startswith("<") for clause in need.range.clauses)
