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
    """The installation, upgrade or replacement of a component of a machine, from version `before`, "" for none, to `after`."""

    component: str
    before: str
    after: str

    @property
    def change(self) -> ComponentChange:
        return ComponentChange(self.component, self.before, self.after)


class ChangeDriver(Action, frozen=True, kw_only=True):
    """The installation of a release of the NVIDIA driver, or only of another flavour of its kernel modules.

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
    """The installation of a driver of `branch` on Windows, for WSL; `before` is the installed driver, "" for none."""

    before: str
    branch: str

    @property
    def change(self) -> ComponentChange:
        return ComponentChange("driver", self.before, self.branch)


class InstallLock(Action, frozen=True, kw_only=True):
    """The rollout of a new lock: of the image that is built from it (`is_image`), or of its packages alone.

    `changes` are the most important changes of versions, the main one first.
    """

    is_image: bool
    changes: tuple[ComponentChange, ...]

    @property
    def change(self) -> ComponentChange:
        name, before, after = self.changes[0] if self.changes else ComponentChange("", "", "")
        component = "image" if self.is_image else "packages"
        return ComponentChange(component, before and f"{name} {before}", after and f"{name} {after}")


class DoTogether(Action, frozen=True, kw_only=True):
    """Several actions, the main one first, that are carried out at once after the machine is drained."""

    actions: tuple[Action, ...]

    @property
    def change(self) -> ComponentChange:
        return self.actions[0].change


class FindOut(Action, frozen=True, kw_only=True):
    """The search for a fact (`component`) that the profile of the machine does not state; the machine is not changed."""

    component: str

    @property
    def change(self) -> ComponentChange:
        return ComponentChange(self.component, "", "")


class NotAlwaysNeeded(Struct, frozen=True):
    """A condition on a step, as no profile states a driver: if the installed driver meets the needs, the step is unneeded."""


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

    `kind` is that of the matrix row (`precompiled`, `dkms`). `is_signed`: the package's kernel modules are signed; None when
    undocumented. `headers` is the package of kernel headers that the package needs, "" for none. `packages` are those that a
    package manager installs for it, () when the matrix does not say.
    """

    name: str
    kind: str
    is_signed: bool | None
    headers: str
    packages: tuple[str, ...] = ()


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
    """A reboot into `kernel`, the one that ran before the step."""

    kernel: str


class ReinstallDriver(Struct, frozen=True, kw_only=True):
    """The installation of the driver that the step replaced; `module` is the flavour of its kernel modules, "" if unknown."""

    driver: str
    module: str


class ReturnToLock(Struct, frozen=True):
    """The return to today's lock, which still runs on the machine after the step."""


Undo = BootKernel | ReinstallDriver | ReturnToLock
"""How to undo a step."""


class DependsOnGpus(Struct, frozen=True):
    """A profile that states neither driver nor GPUs, so that the steps are unknown."""


class UnlistedLock(Struct, frozen=True):
    """Components of today's lock, such as `pytorch 9.9.9`, that the matrix does not list, so the steps may break the lock."""

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
    """The needs of the best stack that a machine can ever run, if the plan excludes the machine.

    `changes` are the changes of the machine's components that the stack needs. `driver` is the driver that the stack runs on,
    "" for none, and `support` the support of that driver's branch, None if its end is unknown. `is_beyond_spec`: the spec
    allows no stack on the machine; this one is for a relaxed spec, with any release of the framework and without packages.
    """

    changes: tuple[ComponentChange, ...]
    driver: str
    support: BranchSupport | None
    is_beyond_spec: bool
