"""Releases of components that an index offers and the matrix does not list yet; whether they fit a stack is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.requirement import Candidate, Key, Matching, Within
from provisioner.resolver.rules.bundled import BUNDLED
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.index.model import PackageRelease, PackageSource
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.requirement import Requirement

DISTRIBUTIONS = {**{component: (name,) for component, name in DISTRIBUTION_OF_COMPONENT.items()}, **BUNDLED}
"""The distributions that have the releases of a component, by component."""


def unlisted_releases(
    matrix: Matrix, source: PackageSource, unmet: Iterable[Requirement]
) -> Iterator[tuple[Requirement, tuple[str, ...]]]:
    """Yield each requirement that unlisted releases on the index `source` meet, with these releases, newest first.

    `unmet` are the requirements to examine, which nothing in the matrix meets. Raises `UnavailableError` when the index cannot
    be reached.
    """
    for requirement in unmet:
        key = requirement.key
        if key.is_package or not isinstance(requirement.test, Matching | Within):
            continue
        names = DISTRIBUTIONS.get(key.component, ())
        releases = [one for name in names for one in source.releases(canonicalize_name(name))]
        found = tuple(
            text for text in unlisted_versions(matrix, key, releases) if requirement.allows(unlisted_candidate(key, text))
        )
        if found:
            yield requirement, found


def unlisted_versions(matrix: Matrix, key: Key, releases: Iterable[PackageRelease]) -> Iterator[str]:
    """Yield the final versions among the releases of an index that the matrix does not list, each once, newest first."""
    component = matrix.components.get(key.component)
    known = {release.version for release in component.releases} if component is not None else set()
    seen: set[str] = set()
    for one in sorted(releases, key=lambda release: release.version, reverse=True):
        text = one.version.public
        is_installable = one.is_usable or bool(one.blocked_by)  # for another Python, glibc or platform
        if text in seen or one.version.is_prerelease or not is_installable or Version.parse(text) in known:
            continue
        seen.add(text)
        yield text


def unlisted_candidate(key: Key, text: str) -> Candidate:
    """Return a version of a component that the matrix does not list as a candidate, only for tests of its version."""
    return Candidate(key, Version.parse(text), text)
