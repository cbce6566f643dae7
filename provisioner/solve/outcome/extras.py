"""Extras that were asked for and that nobody provides: installers pass them over, and so the typo goes unnoticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import ProvisionError
from provisioner.names import nearest
from provisioner.solve.python.packages import extras_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.index.model import PackageRelease
    from provisioner.solve.python.packages import PackageWorld
    from provisioner.solve.requirement import Candidate, Key
    from provisioner.solve.search.universe import Universe

MOST = 8
"""How many extras are listed of a distribution that has others than the one asked for."""


def unknown_extras(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[str]:
    """One line for each extra that its distribution does not have, with who asks for it."""
    world = universe.packages
    if world is None:
        return
    for key, candidate in pins.items():
        for extra in extras_of(key) if key.is_package else ():
            release = world.release_of(candidate)
            known = _known(world, release, extra)
            if known is not None and extra not in known:
                near = nearest(extra, known)
                others = f"{', '.join(known[:MOST])}{f' and {len(known) - MOST} more' if len(known) > MOST else ''}"
                has = f"did you mean `{near}`?" if near else f"it has {others}" if known else "it has none"
                yield f"{release.name} {release.version} has no extra `{extra}`; {has}  ({_who(universe, pins, key)})"


def _known(world: PackageWorld, release: PackageRelease, extra: str) -> tuple[str, ...] | None:
    """The extras of a release; None where nobody can say, or where what the extra brings along says enough."""
    if world.brings(release, extra):
        return None
    try:
        return tuple(sorted(world.extras(release)))
    except ProvisionError:
        return None


def _who(universe: Universe, pins: Mapping[Key, Candidate], key: Key) -> str:
    """Who asks for a key: a line of the spec, or the metadata of another distribution."""
    for root in universe.roots:
        if root.key == key:
            return f"{root.origin.text}, {root.origin.where}"
    for candidate in pins.values():
        for needed in universe.requirements(candidate):
            if needed.key == key:
                return needed.origin.text
    return "nobody"
