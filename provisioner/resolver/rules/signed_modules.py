"""Drivers whose kernel modules a Linux distribution has signed: all that Secure Boot loads without an enrolled key.

They are built, too: the modules of every other driver are built on the host, which takes the headers of its kernel.
The matrix lists them by release of the distribution, kernel series and kernel flavour (driver_packages.yaml). A distribution of
which it lists none has rules of its own on what is built on the host (driver_rules.yaml).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.bound import Versions
from provisioner.grounds.predicate import BuiltOnHost
from provisioner.host.facts import stated
from provisioner.matrix.need import Need
from provisioner.resolver.requirement import is_of_system
from provisioner.resolver.rules.facts import has_running_driver
from provisioner.versions import Range, Version, kernel_flavour

if TYPE_CHECKING:
    from provisioner.host.model import Host
    from provisioner.matrix.model import DriverPackage, Matrix
    from provisioner.places import Place
    from provisioner.request import Request

_LOADING = tuple(map(Version.named, ("disabled", "enrolled")))
"""The states of Secure Boot in which modules that were built on the host load."""

BUILT_ON_THE_HOST = (
    Need(component="secure_boot", range=Range(), one_of=_LOADING),
    Need(component="kernel_headers", range=Range.parse(">=2")),
)
"""The needs of a driver without signed modules: what is built loads, and there is what it is built with."""


class SignedModules:
    """The driver branches with signed modules on the hosts of one request."""

    def __init__(self, matrix: Matrix, request: Request) -> None:
        self._positions = matrix.positions
        self._rows = [row for row in matrix.driver_packages if row.flavours and request.platform in row.platforms]

    def lacking(self, driver: Version, host: Host, need: Need) -> BuiltOnHost | None:
        """Return a need of `BUILT_ON_THE_HOST` if a driver still to be installed has no signed modules for a host's kernel.

        None if its branch has some, or if the matrix does not list the signed modules of the host's distribution, or if the
        host states no kernel: then one can be booted that has.
        """
        kernel, system = stated(host, "kernel"), stated(host, "os") or ""
        if has_running_driver(host) or kernel is None:
            return None
        rows = self._of_system(system)
        branches = {branch for row in rows if row.is_for_kernel(kernel) for branch in row.branches}
        if not rows or str(driver.release[0]) in branches:
            return None
        return BuiltOnHost(
            component=need.component,
            bounds=(Versions(need.one_of) if need.one_of else need.range,),
            system=system,
            kernel=kernel,
            branches=tuple(sorted(branches, key=int)),
            kernels=() if branches else _kernels(rows, kernel_flavour(kernel)),
        )

    def place(self, host: Host) -> Place | None:
        """Return the line of the first of the signed modules that the matrix lists for a host's distribution."""
        rows = self._of_system(stated(host, "os") or "")
        return self._positions.get(f"driver-package:{rows[0].os} {rows[0].name}") if rows else None

    def _of_system(self, system: str) -> list[DriverPackage]:
        return [row for row in self._rows if is_of_system(system, [row.os])]


def _kernels(rows: list[DriverPackage], flavour: str) -> tuple[str, ...]:
    """Return the kernel series, oldest first, of which there are signed modules for a flavour; for any, where it has none."""
    same = [row for row in rows if flavour in row.flavours] or rows
    series = {clause.version for row in same for clause in Range.parse(row.kernel).clauses}
    return tuple(map(str, sorted(series)))
