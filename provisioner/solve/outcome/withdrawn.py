"""Chosen files that their publishers withdrew: an exact pin may have them, and whoever wrote it should know (PEP 592)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.solve.requirement import Candidate, Key
    from provisioner.solve.search.universe import Universe


def withdrawn(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[str]:
    """One line for each chosen file that is yanked, with the reason its index gives.

    Source: PEP 592, "Installers should emit a warning when they do decide to install a yanked file".
    """
    world = universe.packages
    if world is None:
        return
    found = {release.name: release for key, one in pins.items() if key.is_package and (release := world.release_of(one)).file}
    for name, release in sorted(found.items()):
        if release.file is not None and release.file.yanked is not None:
            why = f": {release.file.yanked}" if release.file.yanked else ", with no reason given"
            yield f"{name} {release.version} is yanked{why}"
