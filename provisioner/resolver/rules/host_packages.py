"""The packages that bring a driver, a toolkit or a library to a host, chosen from the matrix for the facts of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.resolver.requirement import is_of_system
from provisioner.versions import Range, Version, kernel_flavour

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.host.model import Host
    from provisioner.matrix.model import DriverPackage, HostPackage, Matrix


class Wanted(Struct, frozen=True, kw_only=True):
    """A component, of `version` ("" for any), that is wanted on a host that runs `os`.

    `cuda` is the release of the stack's CUDA and `kernel` the host's kernel, "" for unknown ones. For a driver, `module` is the
    flavour of its kernel modules, "" for any, and `driver_package` the row with which the distribution ships it.
    """

    component: str
    version: str
    os: str
    cuda: str = ""
    kernel: str = ""
    module: str = ""
    driver_package: DriverPackage | None = None

    def filled(self, text: str) -> str:
        """Return a name or an address of a row without placeholders, but for those that only the host can fill in."""
        numbers = [*self.version.split("."), "", ""]
        values = {
            # The name of a driver package has placeholders of its own, so it comes first.
            "<name>": self.driver_package.name if self.driver_package is not None else "",
            "<version>": self.version,
            "<short>": self.version.removesuffix(".0") if self.version.count(".") > 1 else self.version,
            "<major>": numbers[0],
            "<minor>": numbers[1],
            "<branch>": numbers[0],
            "<cuda>": self.cuda.partition(".")[0],
            "<flavour>": kernel_flavour(self.kernel),
        }
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        return text


def host_package_for(matrix: Matrix, wanted: Wanted) -> HostPackage | None:
    """Return the first row of the matrix that brings a component to a host; None when there is none."""
    package = wanted.driver_package
    for row in matrix.host_packages:
        if (
            row.component == wanted.component
            and is_of_system(wanted.os, row.os)
            and allows(row.versions, wanted.version)
            and allows(row.cuda, wanted.cuda)
            and (package is None or package.name.startswith(row.of))
            and (not row.modules or wanted.module in row.modules)
        ):
            return row
    return None


def allows(versions: str, version: str) -> bool:
    """Return whether a row for some `versions`, "" for all, is for a version."""
    return not versions or (bool(version) and Range.parse(versions).allows(Version.parse(version)))


def driver_packages_for(
    matrix: Matrix, facts: Mapping[str, str], *, module: str, platform: str | None
) -> tuple[DriverPackage, ...]:
    """Return the driver packages that fit `facts`, those with prebuilt modules first, then signed ones.

    A package fits if it is for the operating system, driver branch and kernel of `facts`, and for the flavour of kernel modules
    `module`, "" for any. A package known to be unsigned does not fit if Secure Boot is enforced. Packages for containers come
    last.
    """
    branch, kernel, secure = facts.get("driver", "").partition(".")[0], facts.get("kernel"), facts.get("secure_boot")
    found = [
        row
        for row in matrix.driver_packages
        if is_of_system(facts.get("os", ""), [row.os])
        and (not row.branches or branch in row.branches)
        and (not row.modules or not module or module in row.modules)
        and (not row.platforms or platform in {None, *row.platforms})
        and (kernel is None or row.is_for_kernel(kernel))
        and not (secure == "enforced" and row.signed is False)
    ]
    return tuple(sorted(found, key=lambda row: ("container" in row.name, row.kind != "precompiled", row.signed is not True)))


def knows_gpus(matrix: Matrix, host: Host) -> bool:
    """Return whether a host states, for each GPU, its target (such as `9.0`) or a product that the matrix lists."""
    names = {gpu.name for gpu in matrix.gpus}
    return host.gpus is not None and all(gpu.target or gpu.name in names for gpu in host.gpus)
