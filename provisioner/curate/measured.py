"""Facts read inside the artefacts of builds that lack them: what every measurement shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.measure.fatbin import FatBinaryReader, target_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from provisioner.curate.derive import Sitting
    from provisioner.curate.shelf import Wheel
    from provisioner.matrix.schema import BuildEntry, ComponentFile

FEW = 0.5
"""Targets with fewer entries than this part of the most frequent one's cover only some kernels: no GPU can count on them."""

QUIET = 8 << 20
"""A library is read until so many bytes of it, as inflated, brought no new target after its fat binaries began.

Measured: in libnccl 2.26.2 and libcudnn_ops 9.28 every target is in the first container, and the last container adds none.
"""


class Reading(Struct, frozen=True, kw_only=True):
    """One kind of fact, and the source a build cites for it: `where` in wheels of `project` it is read.

    `fields` returns what is to be set in a build; nothing where the build has it already, or its artefact does not tell.
    """

    source: str
    title: str
    where: str
    project: str
    fields: Callable[[Sitting, Wheel, BuildEntry], Mapping[str, object]]


def with_readings(
    sitting: Sitting, derived: ComponentFile, *, projects: Iterable[str], readings: tuple[Reading, ...]
) -> ComponentFile:
    """Add what `readings` find in the artefacts of builds, which are wheels of `projects`."""
    wheels = {
        (wheel.file.filename, wheel.file.sha256): wheel for project in projects for wheel in sitting.shelf.wheels(project)
    }

    def read(build: BuildEntry) -> BuildEntry:
        wheel = wheels.get((build.artefact, build.sha256))
        return build if wheel is None else _read(sitting, wheel, build, readings)

    found = iter(sitting.shelf.side_by_side(read, [build for release in derived.releases for build in release.builds]))
    releases = [
        release.model_copy(update={"builds": tuple(next(found) for _ in release.builds)}) for release in derived.releases
    ]
    cited = {key for release in releases for build in release.builds for key in build.source}
    sources = {
        one.source: sitting.old.sources.get(one.source, sitting.source(one.title, one.where, one.project))
        for one in readings
        if one.source in cited
    }
    return derived.model_copy(update={"releases": tuple(releases), "sources": {**derived.sources, **sources}})


def _read(sitting: Sitting, wheel: Wheel, build: BuildEntry, readings: tuple[Reading, ...]) -> BuildEntry:
    for one in readings:
        fields = one.fields(sitting, wheel, build)
        if fields:
            cited = tuple(dict.fromkeys((*build.source, one.source)))
            build = build.model_copy(update={**fields, "source": cited})
    return build


def target_fields(targets: Iterable[str]) -> dict[str, object]:
    """Targets as the fields of a build; none where there are none, because then nothing was read."""
    known = tuple(targets)
    if not known:
        return {}
    return {
        name: tuple(one for one in known if one.startswith(prefix)) for name, prefix in (("sass", "sm_"), ("ptx", "compute_"))
    }


def fat_targets(pieces: Iterable[bytes]) -> list[str]:
    """The targets of a library's fat binaries, read from its start until nothing new comes; those of a few kernels left out."""
    reader = FatBinaryReader()
    known, last_new = 0, 0
    for piece in pieces:
        reader.feed(piece)
        if len(reader.targets) > known:
            known, last_new = len(reader.targets), reader.position
        if known and reader.position - last_new >= QUIET:
            break
    most = max(reader.targets.values(), default=0)
    return sorted((name for name, count in reader.targets.items() if count >= FEW * most), key=target_key)
