"""Steps in words: what to do, with which packages, how to look at the result, and how to go back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.components import ABSENT, COMPONENTS
from provisioner.plan.machine import FOLLOWERS
from provisioner.plan.route import MOVES, SOFTWARE
from provisioner.resolver.requirement import is_of_system
from provisioner.resolver.rules.lifecycle import has_ended
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date

    from provisioner.matrix.model import DriverBranch, DriverPackage, Matrix
    from provisioner.plan.machine import Machine

MOST_PACKAGES = 3


class Said(Struct, frozen=True, kw_only=True):
    """One move in words: the component it is known by, its values before and after, the sentence, and what goes with it."""

    component: str
    before: str
    after: str
    text: str
    details: tuple[str, ...] = ()


class Words:
    """Says moves of one machine, with what the matrix knows of its distribution."""

    def __init__(self, matrix: Matrix, machine: Machine, *, today: date | None) -> None:
        self._matrix = matrix
        self._machine = machine
        self._today = today

    def said(self, move: str, before: Mapping[str, str], after: Mapping[str, str]) -> Said:
        """One move that changes the facts `before` to those `after`; the software is no fact, so not for it."""
        assert move != SOFTWARE, "the software is no fact of a machine"
        if move == "driver" and "driver" in after:
            return self._driver(before, after)
        parts = MOVES.get(move, (move,))
        component = next((part for part in parts if before.get(part) != after.get(part)), move)
        old, new = before.get(component, ""), after.get(component, "")
        details = tuple(self._beside(move, before, after))
        return Said(component=component, before=old, after=new, text=self._plain(component, old, new), details=details)

    def _plain(self, component: str, old: str, new: str) -> str:
        row = COMPONENTS[component]
        if component == "kernel" and new.count(".") < 2:
            return f"boot a kernel of the {new} series in place of {old}"
        if row.instruction:
            return row.instruction.format(before=old, after=new)
        return f"install {row.label} {new}" if old in {"", ABSENT} else f"install {row.label} {new} in place of {old}"

    def _beside(self, move: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
        if before.get("os") != after.get("os"):
            yield "it brings a kernel of its own, for which the driver is built: `provision inspect`, then plan the rest"
        if move == "kernel":
            yield from self._headers(before, after)
            yield "`provision inspect` must then report this kernel, and the driver as before"
            yield f"undo: boot {before.get('kernel', '')} again"

    def _headers(self, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
        """The headers that are installed along, under the names that the distribution's packages of drivers ask for."""
        if before.get("kernel_headers") != after.get("kernel_headers"):
            names = ", ".join(dict.fromkeys(row.headers for row in self._rows(after) if row.headers))
            yield f"with the headers of kernel {after['kernel_headers']}{f' ({names})' if names else ''}, to build modules with"

    def _driver(self, before: Mapping[str, str], after: Mapping[str, str]) -> Said:
        old, new = before.get("driver", ""), after["driver"]
        module, old_module = self._module(after), before.get("driver_module", "")
        if self._machine.host.virtualization in {"wsl1", "wsl2"}:
            branch = new.partition(".")[0]
            text = f"install a driver of branch {branch} on Windows; inside WSL no driver is installed"
            return Said(component="driver", before=old, after=branch, text=text)
        flavour = f" with the {module} kernel modules" if module else " with the kernel modules that its GPUs call for"
        place = f" in place of {old}{f' ({old_module})' if old_module else ''}" if old else ""
        if old == new:
            text = f"install the {module} kernel modules of driver {new} in place of the {old_module or 'other'} ones"
        else:
            text = f"install driver {new}{flavour}{place}"
        followers = [COMPONENTS[name].label for name in FOLLOWERS if after.get(name) == new and before.get(name) != new]
        if followers:
            text += f", and {' and '.join(followers)} of the same version"
        component = "driver" if old != new else "driver_module"
        values = (old, new) if old != new else (old_module, module)
        details = (*self._headers(before, after), *self._life(new), *self._packages(after), *self._look(before, after))
        return Said(component=component, before=values[0], after=values[1], text=text, details=details)

    def _module(self, facts: Mapping[str, str]) -> str:
        """The flavour of kernel modules, "" where nobody says which GPUs it is for: a flavour would be a guess."""
        return facts.get("driver_module", "") if knows_gpus(self._matrix, self._machine) else ""

    def _life(self, driver: str) -> Iterator[str]:
        branch = self._matrix.branch_of(driver)
        if branch is None:
            return
        kind = f"a {branch.designation}" if branch.designation else ""
        found = ", ".join(part for part in (kind, life_of(branch, self._today)) if part)
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
        """The ways this distribution ships such a driver for such a kernel: built and signed already before built here."""
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

    def _look(self, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
        module = f", module {self._module(after)}" if self._module(after) else ""
        yield f"`provision inspect` must then report driver {after['driver']}{module}"
        if before.get("driver"):
            old = f" ({before['driver_module']})" if before.get("driver_module") else ""
            yield f"undo: install driver {before['driver']}{old} again"


def knows_gpus(matrix: Matrix, machine: Machine) -> bool:
    """Whether a machine states what every GPU of it is."""
    names = {gpu.name for gpu in matrix.gpus}
    gpus = machine.host.gpus
    return gpus is not None and all(gpu.target or gpu.name in names for gpu in gpus)


def life_of(branch: DriverBranch, today: date | None) -> str:
    """Until when a branch is supported, "" where nobody says."""
    if not branch.end_of_life:
        return ""
    return f"ended {branch.end_of_life}" if has_ended(branch.end_of_life, today) else f"supported until {branch.end_of_life}"
