"""The steps of a plan: their actions, how to carry these out and undo them, and notes on the plan of a machine."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from provisioner.grounds.requirement import Ground  # noqa: TC001 - part of types that are matched at run time


class ComponentChange(NamedTuple):
    """A component with its values before and after a step, each "" if it has none."""

    component: str
    before: str
    after: str


class Action(Struct, frozen=True, kw_only=True):
    """The base of all actions."""

    @property
    def change(self) -> ComponentChange:
        """The main component that the action changes, with its values."""
        raise NotImplementedError


class ChangeComponent(Action, frozen=True, kw_only=True):
    """Install, upgrade or replace one component of a machine."""

    component: str
    before: str
    after: str

    @property
    def change(self) -> ComponentChange:
        return ComponentChange(self.component, self.before, self.after)


class ChangeDriver(Action, frozen=True, kw_only=True):
    """Install a release of the NVIDIA driver, or only another flavour of its kernel modules.

    `module` is the flavour, "" if it depends on unknown GPUs. `before` and `module_before` are the installed ones, "" for none.
    `followers` are the components that the same installation moves to the driver's version.
    """

    before: str
    after: str
    module_before: str
    module: str
    followers: tuple[str, ...] = ()

    @property
    def change(self) -> ComponentChange:
        if self.before == self.after:
            return ComponentChange("driver_module", self.module_before, self.module)
        return ComponentChange("driver", self.before, self.after)


class ChangeWindowsDriver(Action, frozen=True, kw_only=True):
    """Install a driver of a branch on Windows, for WSL; `before` is the installed driver, "" for none."""

    before: str
    branch: str

    @property
    def change(self) -> ComponentChange:
        return ComponentChange("driver", self.before, self.branch)


class InstallLock(Action, frozen=True, kw_only=True):
    """Build and roll out the image of the new lock, or install its packages; `changes` are the main changes of versions."""

    is_image: bool
    changes: tuple[ComponentChange, ...]

    @property
    def change(self) -> ComponentChange:
        name, before, after = self.changes[0] if self.changes else ComponentChange("", "", "")
        component = "image" if self.is_image else "packages"
        return ComponentChange(component, before and f"{name} {before}", after and f"{name} {after}")


class DoTogether(Action, frozen=True, kw_only=True):
    """Drain the machine and do several actions at once, the main one first."""

    actions: tuple[Action, ...]

    @property
    def change(self) -> ComponentChange:
        return self.actions[0].change


class FindOut(Action, frozen=True, kw_only=True):
    """Find out a fact that the profile of the machine does not state; the machine is not changed."""

    component: str

    @property
    def change(self) -> ComponentChange:
        return ComponentChange(self.component, "", "")


class NotAlwaysNeeded(Struct, frozen=True):
    """A condition on a step: as no profile states a driver, the step is unneeded if the installed one meets the needs."""


class BringsKernel(Struct, frozen=True):
    """A new release of the operating system that has a kernel of its own."""


class InstallHeaders(Struct, frozen=True, kw_only=True):
    """The headers of a kernel, which are needed to build modules; `packages` are their names in the Linux distribution."""

    kernel: str
    packages: tuple[str, ...]


class ExpectKernel(Struct, frozen=True):
    """The expected result of a step: an inspection reports the new kernel, and the driver as before."""


class ExpectDriver(Struct, frozen=True, kw_only=True):
    """The expected result of a step: an inspection reports `driver`; `module` is its kernel module flavour, "" if unknown."""

    driver: str
    module: str


class BranchSupport(Struct, frozen=True, kw_only=True):
    """The support of a driver branch: its designation, its end of life, each "" if unknown, and whether that has passed."""

    branch: str
    designation: str
    end: str
    is_over: bool


class UsePackage(Struct, frozen=True, kw_only=True):
    """A package of the operating system that contains the driver, as listed by the matrix.

    `is_signed` is None when it is undocumented whether its modules are signed; `headers` are the kernel headers that it needs.
    """

    name: str
    kind: str
    is_signed: bool | None
    headers: str


class SolveAndValidate(Struct, frozen=True):
    """The commands that make the new lock, and try it before it is rolled out."""


Detail = (
    NotAlwaysNeeded
    | BringsKernel
    | InstallHeaders
    | ExpectKernel
    | ExpectDriver
    | BranchSupport
    | UsePackage
    | SolveAndValidate
)
"""How to carry out a step, and how to check the result."""


class BootKernel(Struct, frozen=True):
    """Boot the kernel that ran before the step."""

    kernel: str


class ReinstallDriver(Struct, frozen=True, kw_only=True):
    """Install the driver that the step replaced; `module` is the flavour of its kernel modules, "" if unknown."""

    driver: str
    module: str


class ReturnToLock(Struct, frozen=True):
    """Go back to today's lock, which runs on the machine as it is after the step."""


Undo = BootKernel | ReinstallDriver | ReturnToLock
"""How to undo a step."""


class DependsOnGpus(Struct, frozen=True):
    """A profile that states neither driver nor GPUs, so that the steps are unknown."""


class UnlistedLock(Struct, frozen=True):
    """Components of today's lock, such as `pytorch 9.9.9`, that the matrix does not list, so the steps may break that lock."""

    components: tuple[str, ...]


class LockDoesNotRun(Struct, frozen=True):
    """A stack of today's lock that does not run on the machine as it is, so that no step has to keep it running."""


class BrokenToday(Struct, frozen=True):
    """A requirement that does not hold on the machine before any step."""

    ground: Ground


class KeepsEndedDriver(Struct, frozen=True, kw_only=True):
    """A driver that the plan keeps although its branch is past its end of life, which was on the day `end`."""

    driver: str
    branch: str
    end: str


PlanNote = DependsOnGpus | UnlistedLock | LockDoesNotRun | BrokenToday | KeepsEndedDriver
"""Notes on the plan of a machine."""


class LastStackNeeds(Struct, frozen=True, kw_only=True):
    """The needs of the best stack that a machine excluded from a plan can ever run: `changes` of it, or a relaxed spec.

    `driver` is the driver it runs on, "" for none, and `support` the support of its branch, None if unknown. `is_beyond_spec`:
    the stack needs a spec without some of its requirements.
    """

    changes: tuple[ComponentChange, ...]
    driver: str
    support: BranchSupport | None
    is_beyond_spec: bool
