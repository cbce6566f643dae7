"""The packages with which a Linux distribution ships the NVIDIA driver, chosen for the facts of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.resolver.requirement import is_of_system

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.host.model import Host
    from provisioner.matrix.model import DriverPackage, Matrix


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
