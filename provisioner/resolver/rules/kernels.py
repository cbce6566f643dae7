"""Which kernels a driver is documented to build on.

NVIDIA publishes only a minimum; the newest kernel a driver release builds on is known release by release, from
distributions (matrices/driver.yaml cites each). A release nobody wrote down is judged by the nearest older one of its
branch, which is the careful side: drivers of a branch only ever learn newer kernels.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix, PatchedKernels
    from provisioner.resolver.requirement import Candidate
    from provisioner.versions import Range, Version


class BuildsOn(Struct, frozen=True):
    """Kernels a driver builds on as it is published, and those it builds on with patches that somebody carries."""

    documented: Range | None
    patched: tuple[PatchedKernels, ...] = ()

    def allows(self, candidate: Candidate) -> bool:
        """Whether the driver builds on this kernel, patched or not."""
        is_documented = self.documented is not None and self.documented.allows(candidate.version)
        return is_documented or any(row.kernel.allows(candidate.version) for row in self.patched)


class KernelSupport:
    """Answers for any driver version, listed in the matrix or not."""

    def __init__(self, matrix: Matrix) -> None:
        driver = matrix.components.get("driver")
        self._known: list[tuple[Version, Range]] = sorted(
            (
                (release.version, need.range)
                for release in (driver.releases if driver else ())
                for need in release.needs
                if need.component == "kernel" and any(clause.operator in {"<", "<="} for clause in need.range.clauses)
            ),
            key=lambda row: row[0],
        )
        self._versions = [version for version, _ in self._known]
        self._patched = {release.version: release.patched for release in (driver.releases if driver else ()) if release.patched}

    def of(self, driver: Version) -> Range | None:
        """The documented kernels of a driver; None when nothing is documented for it or an older one of its branch."""
        index = bisect_right(self._versions, driver)
        if index == 0:
            return None
        version, kernels = self._known[index - 1]
        return kernels if version.release[0] == driver.release[0] else None

    def patched(self, driver: Version) -> tuple[PatchedKernels, ...]:
        """The kernels this very release builds on with patches; patches are for one release and say nothing of another."""
        return self._patched.get(driver, ())

    def carriers(self, driver: Version, kernel: Version) -> tuple[PatchedKernels, ...]:
        """Who carries the patches a driver needs on a kernel; nobody where it builds there as it is, or not at all."""
        documented = self.of(driver)
        if documented is not None and documented.allows(kernel):
            return ()
        return tuple(row for row in self.patched(driver) if row.kernel.allows(kernel))
