"""Chosen files that their publishers withdrew: an exact pin may have them, and whoever wrote it should know (PEP 592)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.choice import Yanked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.universe import Universe


def withdrawn(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Yanked]:
    """Yield each chosen file that is yanked, with the reason its index gives.

    Source: PEP 592, "Installers should emit a warning when they do decide to install a yanked file".
    """
    world = universe.packages
    if world is None:
        return
    found = {release.name: release for key, one in pins.items() if key.is_package and (release := world.release_of(one)).file}
    for name, release in sorted(found.items()):
        if release.file is not None and release.file.yanked is not None:
            yield Yanked(name=name, version=str(release.version), reason=release.file.yanked)
