"""The steps of a plan: what each does, how to carry it out and to undo it, and notes on the plan of a machine."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from provisioner.grounds.requirement import Ground  # noqa: TC001 - part of types that are matched at run time


class ComponentChange(NamedTuple):
    """A component with its values before and after a step, "" if it has none."""

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

    `module` is the flavour, "" if it depends on GPUs that are not known. `before` and `module_before` are those of today, ""
    for none. `followers` are the components that the same installation brings to the version of the driver.
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
    """Install a driver of a branch on Windows, for WSL; `before` is today's driver, "" for none."""

    before: str
    branch: str

    @property
    def change(self) -> ComponentChange:
        return ComponentChange("driver", self.before, self.branch)


class InstallLock(Action, frozen=True, kw_only=True):
    """Build and roll out the image of the new lock, or install its packages; `changes` are the main ones."""

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
    """Find a fact that the profile of the machine does not state; the machine stays as it is."""

    component: str

    @property
    def change(self) -> ComponentChange:
        return ComponentChange(self.component, "", "")


class NotAlwaysNeeded(Struct, frozen=True):
    """No profile states a driver, so that the step is unneeded if one that meets the requirements is installed already."""


class BringsKernel(Struct, frozen=True):
    """The release of the operating system has a kernel of its own."""


class InstallHeaders(Struct, frozen=True, kw_only=True):
    """The headers of a kernel are needed to build modules; `packages` are their names in the distribution."""

    kernel: str
    packages: tuple[str, ...]


class ExpectKernel(Struct, frozen=True):
    """An inspection must then report the new kernel, and the driver as before."""


class ExpectDriver(Struct, frozen=True, kw_only=True):
    """An inspection must then report a driver; `module` is the flavour of its kernel modules, "" if unknown."""

    driver: str
    module: str


class BranchSupport(Struct, frozen=True, kw_only=True):
    """The support of a driver branch: its designation, its end of life, each "" if unknown, and whether that has passed."""

    branch: str
    designation: str
    end: str
    is_over: bool


class UsePackage(Struct, frozen=True, kw_only=True):
    """A package with which the operating system ships the driver, of the matrix.

    `is_signed` is None when it is undocumented whether its modules are signed; `headers` are the kernel headers that it needs.
    """

    name: str
    kind: str
    is_signed: bool | None
    headers: str


class SolveAndValidate(Struct, frozen=True):
    """The new lock is made and tried by commands before it is rolled out."""


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
    """The profile states neither driver nor GPUs, so the steps are not known."""


class UnlistedLock(Struct, frozen=True):
    """The matrix does not list some `components` of today's lock, such as `pytorch 9.9.9`, so the steps may break that lock."""

    components: tuple[str, ...]


class LockDoesNotRun(Struct, frozen=True):
    """The stack of today's lock does not run on the machine as it is, so no step has to keep it running."""


class BrokenToday(Struct, frozen=True):
    """A requirement does not hold on the machine before any step."""

    ground: Ground


class KeepsEndedDriver(Struct, frozen=True, kw_only=True):
    """The plan keeps a driver whose branch is past its end of life."""

    driver: str
    branch: str
    end: str


PlanNote = DependsOnGpus | UnlistedLock | LockDoesNotRun | BrokenToday | KeepsEndedDriver
"""Notes on the plan of a machine."""


class LastStackNeeds(Struct, frozen=True, kw_only=True):
    """What the last stack of an excluded machine needs: `changes` of the machine, and possibly a relaxed spec.

    `driver` is the driver it runs on, "" for none, with the support of its branch, None if unknown.
    """

    changes: tuple[ComponentChange, ...]
    driver: str
    support: BranchSupport | None
    is_beyond_spec: bool
