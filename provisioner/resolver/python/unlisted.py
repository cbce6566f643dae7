"""Releases of components that the matrix does not list yet; whether they fit a stack is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.grounds.conflict import Newest, Unlisted
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.choices.constraints import ForPython
from provisioner.resolver.requirement import Candidate, Key, Matching, Within
from provisioner.resolver.rules.bundled import BUNDLED
from provisioner.resolver.rules.lifecycle import day_of, last_day
from provisioner.versions import Version, dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.index.model import PackageRelease, PackageSource
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.requirement import Requirement

DISTRIBUTIONS = {**{component: (name,) for component, name in DISTRIBUTION_OF_COMPONENT.items()}, **BUNDLED}
"""The distributions that have the releases of a component, by component."""


def unlisted_releases(matrix: Matrix, source: PackageSource, unmet: Iterable[Requirement]) -> Iterator[Unlisted]:
    """Yield for each requirement the unlisted releases on the index `source` that meet it, newest first, if there are any.

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
            yield Unlisted(name=key.component, versions=found)


def newest_known(matrix: Matrix, unmet: Requirement, until: str | None, *, is_asked: bool) -> Newest | None:
    """Return the newest release that the matrix knows, if only newer ones meet a requirement and none is known not to exist.

    None if `is_asked`, for a component that an index tells of; and if the newest release came out after `until`, the policy's
    `exclude-newer`, because newer ones then did, too.
    """
    name, component = unmet.key.component, matrix.components.get(unmet.key.component)
    is_on_index = name in DISTRIBUTIONS
    if component is None or component.named or (is_on_index and is_asked):
        return None
    newest = max(component.releases, key=lambda one: one.version, default=None)
    if newest is None or (until is not None and newest.released and last_day(newest.released) > day_of(until)):
        return None
    known = (release.version.public for release in component.releases)
    is_beyond = any(unmet.allows(unlisted_candidate(unmet.key, text)) for text in _newer(newest.version, unmet))
    if not is_beyond or any(unmet.allows(unlisted_candidate(unmet.key, text)) for text in known):
        return None
    return Newest(name=name, version=newest.version.text, released=newest.released, is_on_index=is_on_index)


def _newer(newest: Version, requirement: Requirement) -> Iterator[str]:
    """Yield versions newer than `newest` of which a requirement allows one, if it allows any that vendors would publish.

    They are those that the requirement names and, like `newest`, these with one of their numbers raised.
    """
    match requirement.test:
        case Within(range=bounds):
            named = [clause.version for clause in bounds.clauses]
        case Matching(specifier=specifier) | ForPython(specifier=specifier):
            named = [Version.parse(one.version.removesuffix(".*")) for one in specifier if one.operator != "==="]
        case _:
            return
    for version in (newest, *named):
        numbers = version.release
        raised = (dotted((*numbers[:place], number + 1)) for place, number in enumerate((*numbers, 0)))
        yield from (text for text in (version.text, *raised) if Version.parse(text) > newest)


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
