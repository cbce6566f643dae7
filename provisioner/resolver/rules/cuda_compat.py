"""An image's cuda-compat, NVIDIA's package with a newer libcuda: it lets some older drivers run newer CUDA and breaks others.

The package has the libcuda of a CUDA release. The container toolkit makes containers load that libcuda in place of the libcuda
of an older driver, whatever the GPU; but only data-centre GPUs support that, on other GPUs cuInit returns 804. Source: CUDA
Compatibility guide, "Forward Compatibility"; NVIDIA/nvidia-docker issues 1294 and 1515.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import ABSENT
from provisioner.gate.grammar import parse
from provisioner.grounds.predicate import NeedsCudaCompat, NeedsDriver
from provisioner.grounds.requirement import Relation
from provisioner.host.facts import stated
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.requirement import Candidate, ImageCandidate, Key, Labelled, Requirement
from provisioner.resolver.rules.drivers import RunsCuda, WorksWithCompat
from provisioner.resolver.rules.guards import Verdict
from provisioner.resolver.rules.images import cuda_of_compat, images_with_cuda_compat
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.source import Source
    from provisioner.host.model import Host
    from provisioner.matrix.model import DriverMinimum, Matrix
    from provisioner.request import Request, TargetHost
    from provisioner.resolver.rules.guards import Guards

NOT_MOUNTED = "cuda-compat-not-mounted"
"""The name of the matrix's failure row on container toolkits that do not load an image's cuda-compat in place of the driver's
libcuda."""


def forward_branches(matrix: Matrix, request: Request, cuda: Version, *, minimum: DriverMinimum) -> tuple[str, ...]:
    """Return the driver branches that run the release `cuda` through the image's cuda-compat.

    `minimum` is what the matrix states about drivers for `cuda`. The cuda-compat is of the release `cuda` unless the spec
    states a cuda-compat of another release, which supports other branches. () when the stated cuda-compat is older than `cuda`
    and cannot run it: it is of another major version, or the policy does not allow minor-version compatibility.
    """
    if request.stated_cuda_compat is None:
        return minimum.forward_compat
    held = request.stated_cuda_compat.release[:2]
    is_newer = held >= cuda.release[:2]
    if not is_newer and (held[0] != cuda.release[0] or "minor-version" not in request.allowed):
        return ()
    return branches_of_compat(matrix, request.stated_cuda_compat) or minimum.forward_compat


def branches_of_compat(matrix: Matrix, cuda: Version) -> tuple[str, ...]:
    """Return the older driver branches that the cuda-compat of a CUDA release supports; () if the matrix does not know them."""
    return _branches_by_series(matrix).get(cuda.release[:2], ())


@once_per_matrix
def _branches_by_series(matrix: Matrix) -> dict[tuple[int, ...], tuple[str, ...]]:
    """Return the branches that cuda-compat supports by CUDA series, for which there is one package: `(12, 6)`.

    They are the branches of the rows of CUDA releases, which are those that all distributions of an image list, and those that
    the gate of some image lists.
    """
    found: dict[tuple[int, ...], set[str]] = {}
    for release in matrix.components["cuda"].releases if "cuda" in matrix.components else ():
        if release.driver is not None:
            found.setdefault(release.version.release[:2], set()).update(release.driver.forward_compat)
    for cuda, gate in {(image.cuda, image.require_cuda) for image in matrix.images if image.cuda and image.require_cuda}:
        found.setdefault(Version.parse(cuda).release[:2], set()).update(_branches_of_gate(gate))
    return {series: tuple(sorted(branches, key=int)) for series, branches in found.items()}


def _branches_of_gate(gate: str) -> Iterator[str]:
    """Yield the driver branches that a gate lets in for some brands of GPUs: 535 of `brand=tesla,driver>=535,driver<536`."""
    for term in parse(gate).terms:
        if any(clause.name == "brand" for clause in term):
            yield from (str(one.numbers[0]) for one in term if one.name == "driver" and one.operator == ">=")


def tests_of_compat(matrix: Matrix, cuda: Version) -> tuple[WorksWithCompat, WorksWithCompat | None]:
    """Return the tests of a driver beside the cuda-compat of a CUDA release: on any GPU, and on those of data centres.

    The latter is None if the matrix does not know which older branches the package supports.
    """
    branches = branches_of_compat(matrix, cuda)
    return WorksWithCompat(matrix, cuda), WorksWithCompat(matrix, cuda, branches) if branches else None


def is_mounted(matrix: Matrix, host: Host) -> bool:
    """Return whether a host's container toolkit loads an image's cuda-compat in place of an older driver's libcuda.

    The matrix lists the toolkit releases that do not load the cuda-compat (`NOT_MOUNTED`). A host that does not state its
    toolkit is assumed to have another release.
    """
    toolkit = stated(host, "container_toolkit")
    without = (need for one in matrix.failures if one.name == NOT_MOUNTED for need in one.when)
    return toolkit in {None, ABSENT} or not any(need.allows(Version.parse(str(toolkit))) for need in without)


class CudaCompat:
    """The requirements of CUDA releases and base images on the drivers of one problem, with cuda-compat taken into account."""

    def __init__(self, matrix: Matrix, request: Request, guards: Guards) -> None:
        self._matrix = matrix
        self._request = request
        self._guards = guards
        self._tests: dict[Version, tuple[WorksWithCompat, WorksWithCompat | None]] = {}

    def of_cuda(
        self, candidate: Candidate, minimum: DriverMinimum, targets: Mapping[Key, TargetHost | None], *, source: Source
    ) -> Iterator[Requirement]:
        """Yield the requirements of a CUDA release on each driver, and on the base image if a driver needs its cuda-compat.

        `targets` are the keys of the drivers, each with its host, None for a key that all hosts share. `minimum` is what the
        matrix states about drivers for the release, `source` the citation of that. The image is required only for a driver that
        a host states.
        """
        is_forbidden = "minor-version" not in self._request.allowed and minimum.minor_version is not None
        branches = forward_branches(self._matrix, self._request, candidate.version, minimum=minimum)
        plain, through = (
            RunsCuda(self._matrix, candidate.version, minimum, self._request.allowed, forward=forward)
            for forward in ((), branches)
        )
        for key, target in targets.items():
            driver = self._driver_of_image(through, target)
            test = through if driver or (self._request.has_cuda_compat and self._is_used(target)) else plain
            predicate = NeedsDriver((test.bound,), is_forbidden)
            yield Requirement(key, test, candidate.entails(predicate, Relation("cuda", "driver"), source))
            if driver:
                labels = images_with_cuda_compat(self._matrix, self._request, candidate.version)
                ground = candidate.entails(NeedsCudaCompat(driver), Relation("cuda", "image"), source)
                yield Requirement(Key("image"), Labelled(labels), ground)

    def of_image(
        self, candidate: ImageCandidate, targets: Mapping[Key, TargetHost | None], source: Source
    ) -> Iterator[Requirement]:
        """Yield the requirements of a base image that drivers work with its cuda-compat (`WorksWithCompat`).

        `targets` is as in `of_cuda`. `source` is the citation of the image, used unless the spec states the cuda-compat.
        """
        is_stated = self._request.stated_cuda_compat is not None
        place = self._request.place("image.cuda_compat") if is_stated else source
        for key, target in targets.items():
            cuda = self.loaded(candidate, target) if target is not None else None
            if target is None or cuda is None:
                continue
            if cuda not in self._tests:
                self._tests[cuda] = tests_of_compat(self._matrix, cuda)
            anywhere, in_data_centres = self._tests[cuda]
            test = anywhere if self._guards.is_data_centre(target) is Verdict.NO else in_data_centres
            if test is not None:
                predicate = NeedsDriver((test.bound,), is_compat_harmful=True)
                yield Requirement(key, test, candidate.entails(predicate, Relation("image", "driver"), place))

    def knows(self, image: Candidate) -> bool:
        """Return whether the matrix knows the driver branches that a base image's cuda-compat supports; True if it has none."""
        cuda = cuda_of_compat(self._request, image)
        return cuda is None or bool(branches_of_compat(self._matrix, cuda))

    def loaded(self, image: Candidate | None, target: TargetHost) -> Version | None:
        """Return the CUDA release of the cuda-compat that a host loads in place of an older driver's libcuda in a base image.

        None when the host loads none, or its release is unknown.
        """
        is_loaded = self._request.runs == "container" and is_mounted(self._matrix, target.host)
        return cuda_of_compat(self._request, image) if is_loaded else None

    def of_unknown_branches(self, image: Candidate | None, target: TargetHost, driver: Version) -> WorksWithCompat | None:
        """Return the test that a driver of a host fails if it loads a cuda-compat whose supported branches nobody knows.

        None for GPUs that no cuda-compat supports, for which `of_image` requires that the driver loads none.
        """
        cuda = self.loaded(image, target)
        if cuda is None or self._guards.is_data_centre(target) is Verdict.NO:
            return None
        anywhere, in_data_centres = tests_of_compat(self._matrix, cuda)
        return anywhere if in_data_centres is None and not anywhere.runs(driver) else None

    def _is_used(self, target: TargetHost | None) -> bool:
        """Return whether a host's driver may run newer CUDA through the image's cuda-compat; False when `target` is None."""
        return (
            target is not None
            and self._guards.is_data_centre(target) is not Verdict.NO
            and is_mounted(self._matrix, target.host)
        )

    def _driver_of_image(self, test: RunsCuda, target: TargetHost | None) -> str:
        """Return the driver version that a host states if it passes `test` only with an image's cuda-compat; otherwise "".

        "" also when no image with cuda-compat may be chosen, or the host's GPUs do not support cuda-compat.
        """
        if target is None or not self._request.may_take_cuda_compat or self._guards.is_data_centre(target) is Verdict.NO:
            return ""
        driver = stated(target.host, "driver")
        return driver if driver and test.basis(Version.parse(driver)) == "forward-compat" else ""
