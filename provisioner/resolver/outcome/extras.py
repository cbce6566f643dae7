"""Extras that were asked for and that nobody provides: installers pass them over, and so the typo goes unnoticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import ProvisionError
from provisioner.grounds.choice import UnknownExtra
from provisioner.names import nearest
from provisioner.resolver.python.packages import extras_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.requirement import Ground
    from provisioner.index.model import PackageRelease
    from provisioner.resolver.python.packages import PackageWorld
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.universe import Universe


def unknown_extras(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[UnknownExtra]:
    """Yield each extra that its distribution does not have, with who asks for it."""
    world = universe.packages
    if world is None:
        return
    for key, candidate in pins.items():
        for extra in extras_of(key) if key.is_package else ():
            release = world.release_of(candidate)
            known = _known(world, release, extra)
            if known is not None and extra not in known:
                yield UnknownExtra(
                    name=release.name,
                    version=str(release.version),
                    extra=extra,
                    known=known,
                    nearest=nearest(extra, known) or "",
                    asked_by=_asked_by(universe, pins, key),
                )


def _known(world: PackageWorld, release: PackageRelease, extra: str) -> tuple[str, ...] | None:
    """The extras of a release; None where nobody can say, or where what the extra brings along says enough."""
    if world.brings(release, extra):
        return None
    try:
        return tuple(sorted(world.extras(release)))
    except ProvisionError:
        return None


def _asked_by(universe: Universe, pins: Mapping[Key, Candidate], key: Key) -> Ground | None:
    """Return why a key is required: a line of the spec, or the metadata of another distribution."""
    wanted = (*universe.roots, *(one for candidate in pins.values() for one in universe.requirements(candidate)))
    return next((one.ground for one in wanted if one.key == key), None)
