"""What a reader would want to know of the packages in an answer: overrides, named files, builds, wheels for the CPU alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.index.places.direct_reference import shown_url
from provisioner.solve.python.distributions import Seat
from provisioner.solve.python.named_files import FileSeat
from provisioner.solve.requirement import PACKAGE, TORCH, Candidate, Key
from provisioner.solve.stack import Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from packaging.requirements import Requirement as Pep508

    from provisioner.index.model import IndexFile
    from provisioner.solve.search.universe import Universe


def overridden(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
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
            for override, origin in overrides.of(name):
                if not _is_met(needed, versions.get(name)):
                    has = f"{name} {versions[name]}" if name in versions else f"no {name}"
                    spelled = str(needed).partition(";")[0].strip()
                    text = f"{release.name} {release.version} needs {spelled}, and has {has}: you override it with {override}"
                    yield Relaxation(name="override", component=name, text=text, where=origin.where)


def _is_met(needed: Pep508, version: str | None) -> bool:
    return version is not None and needed.specifier.contains(PackageVersion(version), prereleases=True)


def file_relaxations(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    """Files that only metadata names, and requirements that were found by building: what a reader would want to know."""
    for key, candidate in pins.items():
        seat = candidate.subject
        if key.is_seat and isinstance(seat, FileSeat):
            holder = f"{seat.holder.key.name} {seat.holder.label}"
            text = f"{seat.name} comes from {shown_url(seat.url)}, which the metadata of {holder} names"
            yield Relaxation(name="direct-url", component=seat.name, text=text, where=f"metadata of {holder}")
    for name, file in _built(universe, pins):
        text = f"what {file.filename} requires was found by building it on this machine, with the build requirements of today"
        yield Relaxation(name="build", component=name, text=text, where=f"index {file.index}")


def built_elsewhere(universe: Universe, pins: Mapping[Key, Candidate]) -> tuple[str, ...]:
    """What nobody can promise of a build: that another machine finds the same requirements."""
    return tuple(
        f"{name}: what {file.filename} requires was found by building it on one machine; another may find something else"
        for name, file in _built(universe, pins)
    )


def _built(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[tuple[str, IndexFile]]:
    for key, candidate in pins.items():
        is_plain = key.is_package and key != TORCH and "[" not in key.name and not isinstance(candidate.subject, Seat)
        file = candidate.subject.file if is_plain and universe.packages is not None else None
        if file is not None and universe.packages is not None and universe.packages.is_built(file):
            yield key.name, file


def cpu_only(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    """Those that other packages brought along; who names one in the spec knows what it is."""
    problem, packages = universe.problem, universe.packages
    if problem.request.accelerator != "cuda" or packages is None:
        return
    named = {key.name.partition("[")[0] for key in packages.order}
    for row in problem.matrix.distributions:
        chosen = pins.get(Key(row.name, PACKAGE)) if row.gpu_twin else None
        if chosen is None or row.name in named:
            continue
        asking = sorted({one.key.name.partition("[")[0] for one in pins.values() if _requires(universe, one, chosen)})
        why = f", which {asking[0]} needs," if asking else ""
        text = f"{row.name} {chosen.label}{why} runs on the CPU; {row.gpu_twin} is the one for GPUs"
        where = problem.matrix.positions.get(f"distribution:{row.name}", "the matrix")
        yield Relaxation(name="cpu-only", component=row.name, text=text, where=where)


def _requires(universe: Universe, one: Candidate, other: Candidate) -> bool:
    return one is not other and any(needed.key == other.key for needed in universe.requirements(one))
