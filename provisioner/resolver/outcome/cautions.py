"""Warnings about an answer: yanked files, extras that do not exist, lowered compile targets, and newer releases on an index.

No warning makes an answer unverified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.choice import LoweredTarget, UnknownExtra, UnlistedRelease, Yanked
from provisioner.names import DISTRIBUTION_OF_COMPONENT, nearest
from provisioner.resolver.python.unlisted import unlisted_candidate, unlisted_versions
from provisioner.resolver.requirement import Key, Matching, ReleaseCandidate, Within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.requirement import Ground
    from provisioner.resolver.requirement import Candidate
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


def lowered_targets(pins: Mapping[Key, Candidate]) -> Iterator[LoweredTarget]:
    """Yield a warning for each GPU for which an older architecture is compiled, because nvcc does not know the GPU's own."""
    nvcc = next((one for key, one in pins.items() if key.component == "nvcc"), None)
    for key, candidate in pins.items():
        device = key.name.partition(":")[2]
        if key.component == "arch_list" and nvcc is not None and candidate.label != device:
            yield LoweredTarget(device=device, target=candidate.label, nvcc=nvcc.label)


def unknown_extras(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[UnknownExtra]:
    """Yield a warning for each required extra that its distribution does not have: installers ignore such an extra silently."""
    finder = instance.finder
    if finder is None:
        return
    for key, candidate in pins.items():
        for extra in key.extras if key.is_package else ():
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


def newer_on_index(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[UnlistedRelease]:
    """Yield a warning for each framework of which the index of its build has a release newer than all in the matrix.

    Only releases that the spec allows count. The page of that index has been read already, to find the files of the chosen
    build.
    """
    finder = instance.finder
    if finder is None:
        return
    for component in DISTRIBUTION_OF_COMPONENT:
        chosen = pins.get(Key(component))
        if not isinstance(chosen, ReleaseCandidate) or chosen.build is None:
            continue
        newest = max(release.version for release in instance.problem.matrix.components[component].releases)
        roots = [root for root in instance.roots if root.key == chosen.key and isinstance(root.test, Matching | Within)]
        for text in unlisted_versions(instance.problem.matrix, chosen.key, finder.listed(chosen)):
            one = unlisted_candidate(chosen.key, text)
            if one.version > newest and all(root.allows(one) for root in roots):
                yield UnlistedRelease(component=component, versions=(text,))
                break
