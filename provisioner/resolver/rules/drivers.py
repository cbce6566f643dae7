"""NVIDIA drivers: which of them run programs of a CUDA release, and which Linux kernel versions they build on.

NVIDIA publishes only a minimum kernel; the newest kernel that a driver release builds on is known release by release, from
distributions (matrices/driver.yaml cites each). A driver without an entry gets the kernels of the nearest older driver of its
branch. That is the cautious choice, because newer drivers of a branch only ever add newer kernels.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.grounds.bound import Drivers
from provisioner.matrix.once import once_per_matrix
from provisioner.versions import Version, dotted

if TYPE_CHECKING:
    from provisioner.matrix.model import DriverMinimum, Matrix, PatchedKernels
    from provisioner.resolver.requirement import Candidate
    from provisioner.versions import Range


class RunsCuda:
    """The test that a driver runs programs of the CUDA release `cuda` in one of the `allowed` ways.

    Besides native support these are minor-version compatibility, for which `minimum` has the oldest driver, and forward
    compatibility for the branches in `forward`: () if the image or the GPUs of the host do not support it.
    """

    def __init__(
        self,
        matrix: Matrix,
        cuda: Version,
        minimum: DriverMinimum,
        allowed: frozenset[str],
        *,
        forward: tuple[str, ...] = (),
    ) -> None:
        self._matrix = matrix
        self._native = NativeDriver(matrix, cuda)
        self._minimum = minimum
        self._floor = minimum.minor_version if "minor-version" in allowed else None
        self._branches = forward if "forward-compat" in allowed else ()
        self._asked = self._native, self._floor, minimum.minor_version, self._branches
        """What the answers depend on: the CUDA releases of one series have equal tests, which are evaluated once."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunsCuda) and self._asked == other._asked

    def __hash__(self) -> int:
        return hash(self._asked)

    def basis(self, driver: Version) -> str:
        """Return the way a driver runs the release, `native`, `minor-version` or `forward-compat`; "" when it cannot."""
        if self._native.runs(driver) and self._above_toolkit_floor(driver):
            return "native"
        if self._floor is not None and driver >= self._floor:
            return "minor-version"
        return "forward-compat" if str(driver.release[0]) in self._branches else ""

    def _above_toolkit_floor(self, driver: Version) -> bool:
        """Return whether a driver is at least the CUDA toolkit's minimum; True when the matrix has no minimum.

        The minimum also applies to beta drivers, which may be older although their branch is new enough.
        """
        floor = self._minimum.minor_version
        return floor is None or driver >= floor

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the driver runs programs of the CUDA release in any allowed way."""
        return bool(self.basis(candidate.version))

    @property
    def floor(self) -> Version | None:
        """The oldest driver allowed without forward compatibility; None when no branch of the matrix is new enough."""
        return self._floor if self._floor is not None else self._native.floor

    @property
    def bound(self) -> Drivers:
        """The allowed drivers, as the type that messages about a conflict need."""
        native = self._native.floor
        return Drivers(
            cuda=self._native.level,
            minor_version="" if self._floor is None else str(self._floor),
            native="" if native is None else str(native),
            forward=tuple(self._branches),
        )


@once_per_matrix
def _native_levels(matrix: Matrix) -> list[tuple[int, tuple[int, ...]]]:
    """Return the driver branches, oldest first, each with the series of CUDA that it natively supports."""
    return sorted((int(branch.branch), branch.native_cuda.release[:2]) for branch in matrix.branches)


class NativeDriver:
    """The test that a driver natively supports the CUDA release `cuda`, or a newer one, and so compiles PTX of that release."""

    def __init__(self, matrix: Matrix, cuda: Version) -> None:
        self._level = cuda.release[:2]
        self._branches = _native_levels(matrix)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NativeDriver) and (self._level, self._branches) == (other._level, other._branches)

    def __hash__(self) -> int:
        return hash(self._level)

    def runs(self, driver: Version) -> bool:
        """Return whether a driver's branch natively supports the CUDA release.

        An unlisted branch counts as the next older one.
        """
        newer = bisect_right(self._branches, (driver.release[0] + 1,))  # index of the first branch newer than the driver's
        return newer > 0 and self._branches[newer - 1][1] >= self._level

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the candidate's branch natively supports the CUDA release."""
        return self.runs(candidate.version)

    @property
    def floor(self) -> Version | None:
        """The oldest branch that natively supports the CUDA release, as a version; None when the matrix lists none."""
        first = next((branch for branch, level in self._branches if level >= self._level), None)
        return None if first is None else Version.parse(str(first))

    @property
    def level(self) -> str:
        """The required CUDA release, such as `12.6`."""
        return dotted(self._level)


class WorksWithCompat:
    """The test that a driver works in an image with the cuda-compat of one CUDA release.

    A driver whose branch natively supports the release works, because the cuda-compat is not loaded with it. An older driver
    works only if its branch is in `forward`; otherwise cuInit returns 803. `forward` is () for a host whose GPUs do not support
    cuda-compat, on which cuInit returns 804. Source: CUDA Compatibility guide, "Forward Compatibility"; cuda.h.
    """

    def __init__(self, matrix: Matrix, cuda: Version, forward: tuple[str, ...] = ()) -> None:
        self._native = NativeDriver(matrix, cuda)
        self.forward = forward

    def basis(self, driver: Version) -> str:
        """Return `native` for a driver that is left alone, `forward-compat` for one that is replaced; "" if CUDA fails."""
        if self._native.runs(driver):
            return "native"
        return "forward-compat" if str(driver.release[0]) in self.forward else ""

    def runs(self, driver: Version) -> bool:
        """Return whether CUDA initialises with a driver."""
        return bool(self.basis(driver))

    def allows(self, candidate: Candidate) -> bool:
        """Return whether CUDA initialises in the image with the candidate, a driver."""
        return self.runs(candidate.version)

    @property
    def bound(self) -> Drivers:
        """The allowed drivers, as the type that messages about a conflict need."""
        floor = self._native.floor
        return Drivers(cuda=self._native.level, native="" if floor is None else str(floor), forward=self.forward)


class BuildsOn(Struct, frozen=True):
    """The test that a driver's kernel module builds on a Linux kernel version.

    `documented` are the kernel versions on which it builds as published, None when nothing is documented; `patched` are those
    on which it builds with patches that a Linux distribution maintains.
    """

    documented: Range | None
    patched: tuple[PatchedKernels, ...] = ()

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the driver builds on this kernel, with patches or without."""
        is_documented = self.documented is not None and self.documented.allows(candidate.version)
        return is_documented or any(row.kernel.allows(candidate.version) for row in self.patched)


class KernelSupport:
    """The Linux kernel versions that drivers build on, also for drivers that the matrix does not list."""

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
        """Return the range of Linux kernel versions documented for a driver.

        A driver without an entry gets that of the nearest older driver of its branch; None when there is none either.
        """
        index = bisect_right(self._versions, driver)
        if index == 0:
            return None
        version, kernels = self._known[index - 1]
        return kernels if version.release[0] == driver.release[0] else None

    def patched(self, driver: Version) -> tuple[PatchedKernels, ...]:
        """Return the Linux kernel versions that a driver release builds on with patches; () when there are no patches.

        Patches are made for one driver release and are not used for others of its branch.
        """
        return self._patched.get(driver, ())

    def patches(self, driver: Version, kernel: Version) -> tuple[PatchedKernels, ...]:
        """Return the patches that a driver needs on a kernel; () when it builds as published, and when no patches exist."""
        documented = self.of(driver)
        if documented is not None and documented.allows(kernel):
            return ()
        return tuple(row for row in self.patched(driver) if row.kernel.allows(kernel))


kernel_support = once_per_matrix(KernelSupport)
"""Return the `KernelSupport` of a matrix, which every problem asks."""
