"""Warnings about chosen distributions: yanked files, and extras that a distribution does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.choice import UnknownExtra, Yanked
from provisioner.names import nearest
from provisioner.resolver.python.finder import extras_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.requirement import Ground
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.instance import ProblemInstance


def yanked(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Yanked]:
    """Yield a warning for each chosen file that is yanked, with the reason that its index gives.

    Source: PEP 592, "Installers should emit a warning when they do decide to install a yanked file".
    """
    finder = instance.finder
    if finder is None:
        return
    found = {release.name: release for key, one in pins.items() if key.is_package and (release := finder.release_of(one)).file}
    for name, release in sorted(found.items()):
        if release.file is not None and release.file.yanked is not None:
            yield Yanked(name=name, version=str(release.version), reason=release.file.yanked)


def unknown_extras(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[UnknownExtra]:
    """Yield a warning for each required extra that its distribution does not have: installers ignore such an extra silently."""
    finder = instance.finder
    if finder is None:
        return
    for key, candidate in pins.items():
        for extra in extras_of(key) if key.is_package else ():
            release = finder.release_of(candidate)
            known = finder.extras_without(release, extra)
            if known is not None:
                yield UnknownExtra(
                    name=release.name,
                    version=str(release.version),
                    extra=extra,
                    known=known,
                    nearest=nearest(extra, known) or "",
                    requested_by=_ground_of(instance, pins, key),
                )


def _ground_of(instance: ProblemInstance, pins: Mapping[Key, Candidate], key: Key) -> Ground | None:
    """Return the ground of the first requirement on a key: a line of the spec, or metadata of another distribution.

    None when nothing requires the key.
    """
    wanted = (*instance.roots, *(one for candidate in pins.values() for one in instance.requirements(candidate)))
    return next((one.ground for one in wanted if one.key == key), None)
