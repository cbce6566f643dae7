"""Write the texts of steps: the action, the packages to use, how to check the result, and how to undo it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.components import ABSENT, COMPONENTS
from provisioner.plan.machine import INSTALLED_WITH_DRIVER
from provisioner.plan.upgrade_path import MOVES, SOFTWARE
from provisioner.resolver.requirement import is_of_system
from provisioner.resolver.rules.lifecycle import has_ended
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date

    from provisioner.matrix.model import DriverBranch, DriverPackage, Matrix
    from provisioner.plan.machine import Machine

MOST_PACKAGES = 3
"""The number of packages that a step names."""


class MoveText(Struct, frozen=True, kw_only=True):
    """The text of one move, with its main component and its values before and after; `undo` is "" if nothing can be undone."""

    component: str
    before: str
    after: str
    text: str
    details: tuple[str, ...] = ()
    undo: str = ""


class MoveWriter:
    """Writes the moves of one machine, with the driver packages that the matrix lists for its distribution."""

    def __init__(self, matrix: Matrix, machine: Machine, *, today: date | None) -> None:
        self._matrix = matrix
        self._machine = machine
        self._today = today

    def write(self, move: str, before: Mapping[str, str], after: Mapping[str, str]) -> MoveText:
        """Return the text of a move that changes the facts `before` into those `after`, for any move but the software's."""
        assert move != SOFTWARE, "the software is no fact of a machine"
        if move == "driver" and "driver" in after:
            return self._driver(before, after)
        parts = MOVES.get(move, (move,))
        component = next((part for part in parts if before.get(part) != after.get(part)), move)
        old, new = before.get(component, ""), after.get(component, "")
        return MoveText(
            component=component,
            before=old,
            after=new,
            text=self._action(component, old, new),
            details=tuple(self._details(move, before, after)),
            undo=f"boot {before.get('kernel', '')} again" if move == "kernel" else "",
        )

    def _action(self, component: str, old: str, new: str) -> str:
        row = COMPONENTS[component]
        if component == "kernel" and new.count(".") < 2:
            return f"boot a kernel of the {new} series in place of {old}"
        if row.instruction:
            return row.instruction.format(before=old, after=new)
        return f"install {row.label} {new}" if old in {"", ABSENT} else f"install {row.label} {new} in place of {old}"

    def _details(self, move: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
        if before.get("os") != after.get("os"):
            yield "it brings a kernel of its own, for which the driver is built: `provision inspect`, then plan the rest"
        if move == "kernel":
            yield from self._headers(before, after)
            yield "`provision inspect` must then report this kernel, and the driver as before"

    def _headers(self, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
        """Yield the kernel headers to install, under the names that the distribution's driver packages depend on."""
        if before.get("kernel_headers") != after.get("kernel_headers"):
            names = ", ".join(dict.fromkeys(row.headers for row in self._rows(after) if row.headers))
            yield f"with the headers of kernel {after['kernel_headers']}{f' ({names})' if names else ''}, to build modules with"

    def _driver(self, before: Mapping[str, str], after: Mapping[str, str]) -> MoveText:
        old, new = before.get("driver", ""), after["driver"]
        module, old_module = self._module(after), before.get("driver_module", "")
        if self._machine.host.virtualization in {"wsl1", "wsl2"}:
            branch = new.partition(".")[0]
            text = f"install a driver of branch {branch} on Windows; inside WSL no driver is installed"
            return MoveText(component="driver", before=old, after=branch, text=text)
        flavour = f" with the {module} kernel modules" if module else " with the kernel modules that its GPUs call for"
        place = f" in place of {old}{f' ({old_module})' if old_module else ''}" if old else ""
        if old == new:
            text = f"install the {module} kernel modules of driver {new} in place of the {old_module or 'other'} ones"
        else:
            text = f"install driver {new}{flavour}{place}"
        followers = [
            COMPONENTS[name].label for name in INSTALLED_WITH_DRIVER if after.get(name) == new and before.get(name) != new
        ]
        if followers:
            text += f", and {' and '.join(followers)} of the same version"
        component = "driver" if old != new else "driver_module"
        values = (old, new) if old != new else (old_module, module)
        shown_module = f", module {module}" if module else ""
        return MoveText(
            component=component,
            before=values[0],
            after=values[1],
            text=text,
            details=(
                *self._headers(before, after),
                *self._support(new),
                *self._packages(after),
                f"`provision inspect` must then report driver {new}{shown_module}",
            ),
            undo=f"install driver {old}{f' ({old_module})' if old_module else ''} again" if old else "",
        )

    def _module(self, facts: Mapping[str, str]) -> str:
        """Return the flavour of kernel modules, "" if the GPUs, which decide the flavour, are not known."""
        return facts.get("driver_module", "") if knows_gpus(self._matrix, self._machine) else ""

    def _support(self, driver: str) -> Iterator[str]:
        branch = self._matrix.branch_of(driver)
        if branch is None:
            return
        kind = f"a {branch.designation}" if branch.designation else ""
        found = ", ".join(part for part in (kind, support_text(branch, self._today)) if part)
        if found:
            yield f"branch {branch.branch}: {found}"

    def _packages(self, after: Mapping[str, str]) -> Iterator[str]:
        rows = self._rows(after)
        branch = after["driver"].partition(".")[0]
        for row in rows[:MOST_PACKAGES]:
            name = row.name.replace("<branch>", branch)
            signed = {True: ", signed", False: ", signed by this host", None: ""}[row.signed]
            headers = f", needs {row.headers}" if row.headers else ""
            yield f"as `{name}` ({row.kind}{signed}{headers})"

    def _rows(self, after: Mapping[str, str]) -> list[DriverPackage]:
        """Return the packages of this distribution with such a driver for such a kernel, prebuilt and signed ones first."""
        branch, module = after.get("driver", "").partition(".")[0], self._module(after)
        kernel, secure = after.get("kernel"), after.get("secure_boot")
        found = [
            row
            for row in self._matrix.driver_packages
            if is_of_system(after.get("os", ""), [row.os])
            and (not row.branches or branch in row.branches)
            and (not row.modules or not module or module in row.modules)
            and (not row.kernel or kernel is None or Range.parse(row.kernel).allows(Version.parse(kernel)))
            and not (secure == "enforced" and row.signed is False)
        ]
        return sorted(found, key=lambda row: ("container" in row.name, row.kind != "precompiled", row.signed is not True))


def knows_gpus(matrix: Matrix, machine: Machine) -> bool:
    """Return whether a machine states a target or a listed product for each of its GPUs."""
    names = {gpu.name for gpu in matrix.gpus}
    gpus = machine.host.gpus
    return gpus is not None and all(gpu.target or gpu.name in names for gpu in gpus)


def support_text(branch: DriverBranch, today: date | None) -> str:
    """Return until when a driver branch is supported or when it ended, "" if that is not known."""
    if not branch.end_of_life:
        return ""
    return f"ended {branch.end_of_life}" if has_ended(branch.end_of_life, today) else f"supported until {branch.end_of_life}"
