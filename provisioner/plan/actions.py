"""Turn the moves of a machine into actions, with the packages to use, how to check the result, and how to undo the action.

A move is the name of one kind of change that a plan makes to a machine, such as `driver` (see `upgrade_path.MOVES`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.components import FOLLOWERS
from provisioner.grounds.step import (
    Action,
    BootKernel,
    BranchSupport,
    BringsKernel,
    ChangeComponent,
    ChangeDriver,
    ChangeWindowsDriver,
    ExpectDriver,
    ExpectKernel,
    InstallHeaders,
    ReinstallDriver,
    UsePackage,
)
from provisioner.plan.upgrade_path import MOVES, SOFTWARE
from provisioner.resolver.rules.host_packages import Wanted, driver_packages_for, host_package_for, knows_gpus
from provisioner.resolver.rules.lifecycle import has_ended
from provisioner.versions import kernel_flavour

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date

    from provisioner.grounds.step import Detail, Undo
    from provisioner.matrix.model import DriverBranch, DriverPackage, Matrix
    from provisioner.plan.machine import Machine

MOST_PACKAGES = 3
"""The most driver packages that a step names."""


class MoveActions(Struct, frozen=True, kw_only=True):
    """The action of one move, its details, and the way to undo it; `undo` is None if the action cannot be undone."""

    action: Action
    details: tuple[Detail, ...] = ()
    undo: Undo | None = None


class ActionFinder:
    """Finds the actions of one machine's moves, with the driver packages that the matrix lists for its Linux distribution."""

    def __init__(self, matrix: Matrix, machine: Machine, *, today: date | None) -> None:
        self._matrix = matrix
        self._machine = machine
        self._today = today

    def find(self, move: str, before: Mapping[str, str], after: Mapping[str, str]) -> MoveActions:
        """Return the action of `move`, which changes the facts `before` into `after`.

        `SOFTWARE` is not accepted, because it changes no fact of a machine.
        """
        assert move != SOFTWARE, "the software is no fact of a machine"
        if move == "driver" and "driver" in after:
            return self._driver(before, after)
        parts = MOVES.get(move, (move,))
        component = next((part for part in parts if before.get(part) != after.get(part)), move)
        return MoveActions(
            action=ChangeComponent(component=component, before=before.get(component, ""), after=after.get(component, "")),
            details=tuple(self._details(move, before, after)),
            undo=BootKernel(before.get("kernel", "")) if move == "kernel" else None,
        )

    def _details(self, move: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Detail]:
        if before.get("os") != after.get("os"):
            yield BringsKernel()
        if move == "kernel":
            yield from self._headers(before, after)
            yield ExpectKernel()

    def _headers(self, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[InstallHeaders]:
        """Yield the kernel headers to install if they change, with the package names that the driver packages depend on."""
        if before.get("kernel_headers") != after.get("kernel_headers"):
            names = dict.fromkeys(row.headers for row in self._rows(after) if row.headers)
            yield InstallHeaders(kernel=after["kernel_headers"], packages=tuple(names))

    def _driver(self, before: Mapping[str, str], after: Mapping[str, str]) -> MoveActions:
        old, new = before.get("driver", ""), after["driver"]
        if self._machine.host.virtualization in {"wsl1", "wsl2"}:
            return MoveActions(action=ChangeWindowsDriver(before=old, branch=new.partition(".")[0]))
        module, old_module = self._module(after), before.get("driver_module", "")
        followers = tuple(name for name in FOLLOWERS["driver"] if after.get(name) == new and before.get(name) != new)
        return MoveActions(
            action=ChangeDriver(before=old, after=new, module_before=old_module, module=module, followers=followers),
            details=(
                *self._headers(before, after),
                *self._support(new),
                *self._packages(after),
                ExpectDriver(driver=new, module=module),
            ),
            undo=ReinstallDriver(driver=old, module=old_module) if old else None,
        )

    def _module(self, facts: Mapping[str, str]) -> str:
        """Return the flavour of the kernel modules in `facts`; "" if a GPU is unknown, because the GPUs decide the flavour."""
        return facts.get("driver_module", "") if knows_gpus(self._matrix, self._machine.host) else ""

    def _support(self, driver: str) -> Iterator[BranchSupport]:
        branch = self._matrix.branch_of(driver)
        if branch is not None and (branch.designation or branch.end_of_life):
            yield support_of(branch, self._today)

    def _packages(self, after: Mapping[str, str]) -> Iterator[UsePackage]:
        branch = after["driver"].partition(".")[0]
        flavour = kernel_flavour(after.get("kernel", "")) or "<flavour>"
        for row in self._rows(after)[:MOST_PACKAGES]:
            name = row.name.replace("<branch>", branch).replace("<flavour>", flavour)
            packages = self._installed(row, after)
            yield UsePackage(name=name, kind=row.kind, is_signed=row.signed, headers=row.headers, packages=packages)

    def _installed(self, row: DriverPackage, after: Mapping[str, str]) -> tuple[str, ...]:
        """Return the packages to install for a driver package; () if the matrix does not say, or the kernel is unknown."""
        wanted = Wanted(
            component="driver",
            version=after["driver"],
            os=after.get("os", ""),
            kernel=after.get("kernel", ""),
            module=self._module(after),
            driver_package=row,
        )
        found = host_package_for(self._matrix, wanted)
        if found is None or (row.flavours and not kernel_flavour(wanted.kernel)):
            return ()
        return tuple(map(wanted.filled, (*found.first, *found.packages)))

    def _rows(self, after: Mapping[str, str]) -> tuple[DriverPackage, ...]:
        """Return the driver packages that fit the facts `after`."""
        return driver_packages_for(self._matrix, after, module=self._module(after), platform=self._machine.host.platform)


def support_of(branch: DriverBranch, today: date | None) -> BranchSupport:
    """Return the support status of a driver branch: its designation, its end of life, and whether that is past on `today`."""
    is_over = has_ended(branch.end_of_life, today)
    return BranchSupport(branch=branch.branch, designation=branch.designation, end=branch.end_of_life, is_over=is_over)
