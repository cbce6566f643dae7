"""From validated files to what the matrix knows of Python distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.matrix.model_distributions import Distribution, DistributionLimit, FileOwner, ImpliedNeed, SharedFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.matrix.files import MatrixFiles
    from provisioner.matrix.need import Need
    from provisioner.matrix.schema import Needs as NeedTexts
    from provisioner.matrix.schema_distributions import DistributionEntry, LimitEntry, SharedFileEntry

    ReadNeeds = Callable[[NeedTexts], tuple[Need, ...]]


def distributions(files: MatrixFiles, positions: dict[str, str], needs: ReadNeeds) -> tuple[Distribution, ...]:
    """The distributions of a matrix; where each row stands is added to `positions`."""
    file = files.distributions
    if file is None:
        return ()
    for index, entry in enumerate(file.content.distributions):
        path = ("distributions", index)
        positions[f"distribution:{entry.name}"] = files.place(file, path)
        for row, implied in enumerate(entry.implies):
            positions[f"distribution:{entry.name} {implied.versions}"] = files.place(file, (*path, "implies", row))
    return tuple(_distribution(entry, needs) for entry in file.content.distributions)


def _distribution(entry: DistributionEntry, needs: ReadNeeds) -> Distribution:
    return Distribution(
        name=entry.name,
        compiled_against=entry.compiled_against,
        versions=entry.versions,
        served_by=entry.served_by,
        implied=tuple(
            ImpliedNeed(
                versions=row.versions,
                needs=needs(row.require),
                packages=tuple(row.packages.items()),
                brings=needs(row.brings),
                cxx11_abi=row.cxx11_abi,
                because=row.because,
                served_by=row.served_by,
                sources=row.source,
            )
            for row in entry.implies
        ),
        sources=entry.source,
        gpu_twin=entry.gpu_twin,
    )


def limits(files: MatrixFiles, positions: dict[str, str], needs: ReadNeeds) -> tuple[DistributionLimit, ...]:
    """The limits on distributions; where each row stands is added to `positions`."""
    file = files.distributions
    if file is None:
        return ()
    for index, entry in enumerate(file.content.limits):
        positions[f"limit:{entry.name}"] = files.place(file, ("limits", index))
    return tuple(_limit(entry, needs) for entry in file.content.limits)


def _limit(entry: LimitEntry, needs: ReadNeeds) -> DistributionLimit:
    (when,) = needs(entry.when)
    ((distribution, specifier),) = entry.allow.items()
    return DistributionLimit(
        name=entry.name,
        when=when,
        guards=needs(entry.on),
        distribution=distribution,
        specifier=specifier,
        because=entry.because,
        sources=entry.source,
    )


def shared_files(files: MatrixFiles, positions: dict[str, str]) -> tuple[SharedFile, ...]:
    """The files that several distributions write; where each row stands is added to `positions`."""
    file = files.hazards
    if file is None:
        return ()
    for index, entry in enumerate(file.content.shared_files):
        positions[f"shared-file:{entry.name}"] = files.place(file, ("shared_files", index))
    return tuple(_shared(entry) for entry in file.content.shared_files)


def _shared(entry: SharedFileEntry) -> SharedFile:
    return SharedFile(
        name=entry.name,
        path=entry.path,
        owners=tuple(
            FileOwner(
                distribution=owner.distribution,
                versions=owner.versions,
                artefact=owner.artefact,
                sha256=owner.sha256,
                content=owner.content,
            )
            for owner in entry.owners
        ),
        because=entry.because,
        is_refused=entry.refused,
        sources=entry.source,
    )
