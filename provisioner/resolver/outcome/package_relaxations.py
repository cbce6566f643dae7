"""What a reader would want to know of the packages in an answer: overrides, named files, builds, wheels for the CPU alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.grounds.doubt import BuiltMetadata
from provisioner.grounds.relaxation import BuiltHere, CpuOnly, DirectUrl, Overridden
from provisioner.grounds.requirement import Subject
from provisioner.grounds.source import Index, Metadata
from provisioner.index.places.direct_reference import shown_url
from provisioner.places import Place
from provisioner.resolver.python.named_files import NamedFileCandidate
from provisioner.resolver.requirement import PACKAGE, Candidate, FileCandidate, Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from packaging.requirements import Requirement as Pep508

    from provisioner.index.model import IndexFile
    from provisioner.resolver.search.universe import Universe


def overridden(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Overridden]:
    """Every requirement of metadata that an answer does not meet because an override stands in its place."""
    world, overrides = universe.packages, universe.problem.overrides
    if world is None or not overrides:
        return
    versions = {world.release_of(one).name: str(world.release_of(one).version) for key, one in pins.items() if key.is_package}
    for key, candidate in pins.items():
        if not key.is_package:
            continue
        release = world.release_of(candidate)
        for needed in world.applicable(candidate):
            name = canonicalize_name(needed.name)
            for override, ground in overrides.of(name):
                if not _is_met(needed, versions.get(name)):
                    yield Overridden(
                        component=name,
                        subject=Subject(release.name, str(release.version)),
                        requirement=str(needed).partition(";")[0].strip(),
                        distribution=name,
                        has=versions.get(name, ""),
                        override=str(override),
                        source=ground.source,
                    )


def _is_met(needed: Pep508, version: str | None) -> bool:
    return version is not None and needed.specifier.contains(PackageVersion(version), prereleases=True)


def file_relaxations(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[DirectUrl | BuiltHere]:
    """Files that only metadata names, and requirements that were found by building: what a reader would want to know."""
    for candidate in pins.values():
        if isinstance(candidate, NamedFileCandidate):
            holder = Subject(candidate.holder.key.name, candidate.holder.label)
            source = Metadata(holder.name, holder.label)
            name, url = candidate.name, shown_url(candidate.url)
            yield DirectUrl(component=name, distribution=name, url=url, holder=holder, source=source)
    for name, file in _built(universe, pins):
        yield BuiltHere(component=name, filename=file.filename, source=Index(file.index))


def built_elsewhere(universe: Universe, pins: Mapping[Key, Candidate]) -> tuple[BuiltMetadata, ...]:
    """Return the files of which nobody can promise that another machine finds the same requirements by building them."""
    return tuple(BuiltMetadata(name=name, filename=file.filename) for name, file in _built(universe, pins))


def _built(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[tuple[str, IndexFile]]:
    for key, candidate in pins.items():
        file = candidate.release.file if isinstance(candidate, FileCandidate) and "[" not in key.name else None
        if file is not None and universe.packages is not None and universe.packages.is_built(file):
            yield key.name, file


def cpu_only(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[CpuOnly]:
    """Those that other packages brought along; who names one in the spec knows what it is."""
    problem, packages = universe.problem, universe.packages
    if problem.request.accelerator != "cuda" or packages is None:
        return
    named = {key.distribution for key in packages.order}
    for row in problem.matrix.distributions:
        chosen = pins.get(Key(row.name, PACKAGE)) if row.gpu_twin else None
        if chosen is None or row.name in named:
            continue
        asking = sorted({one.key.distribution for one in pins.values() if _requires(universe, one, chosen)})
        yield CpuOnly(
            component=row.name,
            subject=Subject(row.name, chosen.label),
            gpu_twin=row.gpu_twin,
            needed_by=asking[0] if asking else "",
            source=Place.parse(problem.matrix.positions.get(f"distribution:{row.name}", "the matrix")),
        )


def _requires(universe: Universe, one: Candidate, other: Candidate) -> bool:
    return one is not other and any(needed.key == other.key for needed in universe.requirements(one))
