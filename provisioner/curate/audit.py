"""The audit: measures the artefacts (wheels) that matrix rows name and compares the fields of each row with the measurement."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.curate.audit_needs import (
    abi_finding,
    compiler_findings,
    glibc_finding,
    header_findings,
    pin_findings,
    python_findings,
    version_finding,
)
from provisioner.curate.audit_targets import assembled_findings, target_findings
from provisioner.curate.audit_verdict import Audited, Row, confirmed, refuted
from provisioner.curate.audit_wheels import wheel_findings, wheel_rows
from provisioner.curate.derive_wheels import WHEELS
from provisioner.curate.image_tags import IMAGES, image_findings, image_rows
from provisioner.curate.shared_files import SHARED_FILES, shared_file_findings, shared_file_rows
from provisioner.errors import UnavailableError
from provisioner.index.metadata.core_metadata import UnusableMetadataError
from provisioner.measure import UnreadableArtefactError
from provisioner.versions import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provisioner.curate.artefacts import Artefacts
    from provisioner.curate.audit_verdict import Finding
    from provisioner.index.model import IndexFile
    from provisioner.matrix.model import Matrix
    from provisioner.measure.artefact import Measurement

HEADERS_OF = {"nvidia-cuda-nvcc": "nvidia-cuda-crt"}
"""Distribution of a compiler -> distribution of its headers: from CUDA 13 on, a wheel of their own of the same version."""


def rows(matrix: Matrix, *, component: str = "", version: str = "") -> tuple[Row, ...]:
    """Return the rows to audit: builds that name an artefact, owners of shared files, GPU wheels, base images.

    `component` and `version` restrict the result, "" for all. The component `shared-files` selects the owners of shared files,
    with the name of a shared file as `version`; `wheels` selects the GPU wheels, with a distribution as `version`; `images`
    selects the base images, with the reference of an image as `version`.
    """
    shared = shared_file_rows(matrix, version) if component in {"", SHARED_FILES} else ()
    wheels = wheel_rows(matrix, version) if component in {"", WHEELS} else ()
    images = image_rows(matrix, version) if component in {"", IMAGES} else ()
    builds = tuple(
        Row(
            component=matrix.components[name],
            release=release,
            build=build,
            place=str(matrix.positions.get(f"{name}=={release.version}+{build.name}", "")),
        )
        for name in matrix.order
        if name in matrix.components and component in {"", name}
        for release in matrix.components[name].releases
        if version in {"", str(release.version)}
        for build in release.builds
        if build.artefact
    )
    return (*builds, *shared, *wheels, *images)


def unnamed(matrix: Matrix, *, component: str = "", version: str = "") -> int:
    """Return the number of builds that name no artefact and so cannot be audited."""
    return sum(
        not build.artefact
        for name in matrix.order
        if name in matrix.components and component in {"", name}
        for release in matrix.components[name].releases
        if version in {"", str(release.version)}
        for build in release.builds
    )


def audited(matrix: Matrix, wanted: Sequence[Row], artefacts: Artefacts, *, jobs: int = 2) -> Iterator[Audited]:
    """Yield each row with its findings as soon as it is audited, `jobs` artefacts at once.

    An error of a single artefact is recorded in `Audited.why_not`, not raised. Rows with the same artefact are audited one
    after the other, so that their artefact is read only once.
    """
    groups: dict[str, list[Row]] = {}
    for row in wanted:
        groups.setdefault(row.build.artefact, []).append(row)
    with ThreadPoolExecutor(jobs, thread_name_prefix="audit") as pool:
        waiting = [pool.submit(_audit_group, matrix, group, artefacts) for group in groups.values()]
        try:
            for future in as_completed(waiting):
                yield from future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # Ends the reads that are under way, too; what was measured by then is kept.
            artefacts.close()
            raise


def _audit_group(matrix: Matrix, group: Iterable[Row], artefacts: Artefacts) -> list[Audited]:
    return [audit_row(matrix, row, artefacts) for row in group]


def audit_row(matrix: Matrix, row: Row, artefacts: Artefacts) -> Audited:
    """Measure the artefact of one row, and return the row with a finding for each field that was compared."""
    filename = row.build.artefact
    if row.component.name == IMAGES:
        return _audit_image(matrix, row, artefacts)
    if not filename.endswith(".whl"):
        return Audited(row=row, why_not=f"`{filename}` is no wheel, and only wheels are measured")
    try:
        file = artefacts.find(filename)
        if file is None:
            return Audited(row=row, why_not=f"`{filename}` is not on an index in reach")
        found = list(_hash_finding(row, file))
        if any(finding.outcome == "refuted" for finding in found):
            # Another file under the same name: what it holds says nothing about the one the row is about.
            return Audited(row=row, findings=tuple(found))
        if row.component.name == SHARED_FILES:
            return Audited(row=row, findings=(*found, *shared_file_findings(matrix, row, file, artefacts=artefacts)))
        if row.component.name == WHEELS:
            return Audited(row=row, findings=(*found, *wheel_findings(matrix, row, file, artefacts=artefacts)))
        measurement = _measured(file, artefacts)
        found += _judged(matrix, row, measurement)
        found += python_findings(row, _wheels_of(file, artefacts), _pythons(matrix))
    except (UnavailableError, UnreadableArtefactError, UnusableMetadataError) as error:
        return Audited(row=row, why_not="; ".join((error.message, *error.causes)))
    return Audited(row=row, findings=tuple(found))


def _audit_image(matrix: Matrix, row: Row, artefacts: Artefacts) -> Audited:
    try:
        return Audited(row=row, findings=tuple(image_findings(matrix, row, artefacts.online(f"`{row.build.artefact}`"))))
    except UnavailableError as error:
        return Audited(row=row, why_not="; ".join((error.message, *error.causes)))


def _judged(matrix: Matrix, row: Row, measurement: Measurement) -> Iterator[Finding]:
    yield from version_finding(row, measurement)
    if row.component.name == "nvcc":
        yield from compiler_findings(row, measurement, matrix)
        yield from header_findings(row, measurement, matrix)
        yield from assembled_findings(row, measurement)
    else:
        yield from target_findings(row, measurement)
        yield from pin_findings(row, measurement, matrix)
        yield from abi_finding(row, measurement)
        yield from glibc_finding(row, measurement)


def _measured(file: IndexFile, artefacts: Artefacts) -> Measurement:
    found = artefacts.measured(file)
    project, _, rest = file.filename.partition("-")
    headers = HEADERS_OF.get(canonicalize_name(project))
    if headers is None or found.compilers:
        return found
    beside = next(iter(artefacts.wheels(headers, rest.partition("-")[0])), None)
    if beside is None:
        return found
    other = artefacts.measured(beside)
    return replace(found, compilers=other.compilers, rsqrt_noexcept=other.rsqrt_noexcept)


def _hash_finding(row: Row, file: IndexFile) -> Iterator[Finding]:
    stated = row.build.sha256
    if stated and file.sha256:
        if stated == file.sha256:
            yield confirmed("sha256", stated, "the index announces the same")
        else:
            yield refuted("sha256", stated, f"the index announces {file.sha256}")


def _wheels_of(file: IndexFile, artefacts: Artefacts) -> tuple[IndexFile, ...]:
    """Return all wheels of the release of `file`, whose Pythons are to be compared; empty if `file` is for every Python."""
    if file.filename.endswith("-any.whl") or "-py3-none-" in file.filename or "-py2.py3-none-" in file.filename:
        return ()
    project, _, rest = file.filename.partition("-")
    return artefacts.wheels(project, rest.partition("-")[0])


def _pythons(matrix: Matrix) -> tuple[str, ...]:
    component = matrix.components.get("python")
    releases = component.releases if component is not None else ()
    return tuple(dict.fromkeys(dotted(one.version.release[:2]) for one in releases))
