"""Which NVIDIA drivers run the programs of a CUDA release, and by which means."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from provisioner.grounds.bound import Drivers
from provisioner.versions import Version

if TYPE_CHECKING:
    from provisioner.matrix.model import DriverMinimum, Matrix
    from provisioner.resolver.requirement import Candidate


class RunsCuda:
    """Drivers that run programs of one CUDA release, by any of the allowed means; `basis` says by which."""

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
        """`native`, `minor-version`, `forward-compat`, or "" when this driver cannot run it."""
        if self._native.runs(driver) and self._above_toolkit_floor(driver):
            return "native"
        if self._floor is not None and driver >= self._floor:
            return "minor-version"
        return "forward-compat" if str(driver.release[0]) in self._branches else ""

    def _above_toolkit_floor(self, driver: Version) -> bool:
        """A beta driver of the right branch may be older than the family's floor; the floor still binds then."""
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
        """The drivers as a ground has them."""
        native = self._native.floor
        return Drivers(
            cuda=self._native.level,
            minor_version="" if self._floor is None else str(self._floor),
            native="" if native is None else str(native),
            forward=tuple(self._branches),
        )


class NativeDriver:
    """Drivers whose own CUDA level is at least a given one, so that they also compile its PTX."""

    def __init__(self, matrix: Matrix, cuda: Version) -> None:
        self._level = cuda.release[:2]
        self._branches = sorted((int(branch.branch), branch.native_cuda.release[:2]) for branch in matrix.branches)

    def runs(self, driver: Version) -> bool:
        """Whether `driver` is of a branch that natively runs this CUDA; a branch not listed counts as the next older one."""
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
        """The CUDA level wanted, as `12.6`."""
        return ".".join(str(part) for part in self._level)
