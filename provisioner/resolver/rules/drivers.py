"""NVIDIA drivers: which of them run programs of a CUDA release, and which kernels they are documented to build on.

NVIDIA publishes only a minimum kernel; the newest kernel that a driver release builds on is known release by release, from
distributions (matrices/driver.yaml cites each). A driver that is not listed has the kernels of the nearest older one of its
branch, which is the careful side: drivers of a branch only ever add newer kernels.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.grounds.bound import Drivers
from provisioner.versions import Version

if TYPE_CHECKING:
    from provisioner.matrix.model import DriverMinimum, Matrix, PatchedKernels
    from provisioner.resolver.requirement import Candidate
    from provisioner.versions import Range


class RunsCuda:
    """Test of drivers that run programs of one CUDA release, by any of the allowed means; `basis` returns which."""

    def __init__(
        self,
        matrix: Matrix,
        cuda: Version,
        minimum: DriverMinimum,
        allowed: frozenset[str],
        *,
        may_forward: bool,
    ) -> None:
        self._matrix = matrix
        self._native = NativeDriver(matrix, cuda)
        self._minimum = minimum
        self._floor = minimum.minor_version if "minor-version" in allowed else None
        self._branches = minimum.forward_compat if "forward-compat" in allowed and may_forward else ()

    def basis(self, driver: Version) -> str:
        """Return `native`, `minor-version`, `forward-compat`, or "" when a driver cannot run the release."""
        if self._native.runs(driver) and self._above_toolkit_floor(driver):
            return "native"
        if self._floor is not None and driver >= self._floor:
            return "minor-version"
        return "forward-compat" if str(driver.release[0]) in self._branches else ""

    def _above_toolkit_floor(self, driver: Version) -> bool:
        """Whether a driver is at least the toolkit's minimum, which also binds beta drivers of a new enough branch."""
        floor = self._minimum.minor_version
        return floor is None or driver >= floor

    def allows(self, candidate: Candidate) -> bool:
        """Whether the driver runs it by any allowed means."""
        return bool(self.basis(candidate.version))

    @property
    def floor(self) -> Version | None:
        """The oldest driver allowed, forward compatibility aside; None when no branch of the matrix is new enough."""
        return self._floor if self._floor is not None else self._native.floor

    @property
    def bound(self) -> Drivers:
        """The allowed drivers, as grounds have them."""
        native = self._native.floor
        return Drivers(
            cuda=self._native.level,
            minor_version="" if self._floor is None else str(self._floor),
            native="" if native is None else str(native),
            forward=tuple(self._branches),
        )


class NativeDriver:
    """Test of drivers whose native CUDA is at least a given one, so that they also compile its PTX."""

    def __init__(self, matrix: Matrix, cuda: Version) -> None:
        self._level = cuda.release[:2]
        self._branches = sorted((int(branch.branch), branch.native_cuda.release[:2]) for branch in matrix.branches)

    def runs(self, driver: Version) -> bool:
        """Whether a driver's branch natively runs the CUDA; a branch that is not listed counts as the next older one."""
        newer = bisect_right(self._branches, (driver.release[0] + 1,))  # the first that is newer than the driver's own
        return newer > 0 and self._branches[newer - 1][1] >= self._level

    def allows(self, candidate: Candidate) -> bool:
        """Whether the candidate's branch is new enough."""
        return self.runs(candidate.version)

    @property
    def floor(self) -> Version | None:
        """The first branch that is new enough, as a version; None when the matrix knows none."""
        first = next((branch for branch, level in self._branches if level >= self._level), None)
        return None if first is None else Version.parse(str(first))

    @property
    def level(self) -> str:
        """The required CUDA, as `12.6`."""
        return ".".join(str(part) for part in self._level)


class BuildsOn(Struct, frozen=True):
    """Test of kernels that a driver builds on: as published (`documented`), or with patches that a distribution maintains."""

    documented: Range | None
    patched: tuple[PatchedKernels, ...] = ()

    def allows(self, candidate: Candidate) -> bool:
        """Whether the driver builds on this kernel, patched or not."""
        is_documented = self.documented is not None and self.documented.allows(candidate.version)
        return is_documented or any(row.kernel.allows(candidate.version) for row in self.patched)


class KernelSupport:
    """The kernels of any driver version, listed in the matrix or not."""

    def __init__(self, matrix: Matrix) -> None:
        driver = matrix.components.get("driver")
        self._known: list[tuple[Version, Range]] = sorted(
            (
                (release.version, need.range)
                for release in (driver.releases if driver else ())
                for need in release.requires
                if need.component == "kernel" and any(clause.operator in {"<", "<="} for clause in need.range.clauses)
            ),
            key=lambda row: row[0],
        )
        self._versions = [version for version, _ in self._known]
        self._patched = {release.version: release.patched for release in (driver.releases if driver else ()) if release.patched}

    def of(self, driver: Version) -> Range | None:
        """Return the documented kernels of a driver; None when none are for it or an older driver of its branch."""
        index = bisect_right(self._versions, driver)
        if index == 0:
            return None
        version, kernels = self._known[index - 1]
        return kernels if version.release[0] == driver.release[0] else None

    def patched(self, driver: Version) -> tuple[PatchedKernels, ...]:
        """Return the kernels that a driver release builds on with patches, which are for one release only."""
        return self._patched.get(driver, ())

    def patches(self, driver: Version, kernel: Version) -> tuple[PatchedKernels, ...]:
        """Return the patches that a driver needs on a kernel; () where it builds as published, or not at all."""
        documented = self.of(driver)
        if documented is not None and documented.allows(kernel):
            return ()
        return tuple(row for row in self.patched(driver) if row.kernel.allows(kernel))
