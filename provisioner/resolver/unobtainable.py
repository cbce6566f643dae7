"""Find what the spec asks for and nobody can have, whatever else is chosen, from the pages of the named projects alone.

A name without a page, a pin that no version meets, lines that contradict each other, a project without a file for the target:
none of it depends on what other distributions require, so it is told before anything else is asked of an index.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from provisioner.errors import UnavailableError
from provisioner.grounds.requirement import FILES, Relation
from provisioner.resolver.attempts import Failure, instance_of
from provisioner.resolver.python.discovered import PYPI_HOSTS, Discoveries, names_prerelease
from provisioner.resolver.requirement import FileCandidate, Matching
from provisioner.resolver.search.complete import CompleteSearch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.attempts import Attempt, Indexes
    from provisioner.resolver.requirement import Key, Requirement
    from provisioner.resolver.search.instance import ProblemInstance


def unobtainable(attempts: Sequence[Attempt], indexes: Indexes) -> list[tuple[Failure, ...]]:
    """Return, for each distribution that the spec names and that no attempt can have, the failure of each attempt by it.

    The failures are in the order of `attempts`, the distributions in that of the spec. A distribution is looked at only where
    nothing that is read later could add versions of it: [] when metadata may name a file of it by URL, and when an index cannot
    be reached. The searches of the failures are for the caller to close.
    """
    with suppress(UnavailableError):
        discoveries = Discoveries()
        first = instance_of(attempts[0], indexes._replace(reads_ahead="named"), discoveries)
        keys = [key for key in first.named if _is_out(first, key)]
        if keys:
            _look_for_urls(first)
            keys = [key for key in keys if not discoveries.urls(key.project)]
        others, quiet = attempts[1:] if keys else (), indexes._replace(reads_ahead="nothing")
        instances = [first, *(instance_of(one, quiet, Discoveries()) for one in others)]
        keys = [key for key in keys if all(_is_out(one, key) for one in instances[1:])]
        found = [tuple(_failures(key, attempts, instances)) for key in keys]
        for failure in (failure for some in found if len(some) < len(attempts) for failure in some):
            failure.search.close()
        return [some for some in found if len(some) == len(attempts)]
    return []


def _is_out(instance: ProblemInstance, key: Key) -> bool:
    """Return whether no version of a distribution meets all lines of the spec about it and has a file for the target.

    False for source distributions that are allowed, which have to be read, and for lines that name a pre-release.
    """
    roots = [root for root in instance.roots if root.key == key]
    tests = [root.test for root in roots]
    if any(not isinstance(test, Matching) or names_prerelease(test.specifier) for test in tests):
        return False
    listed = instance.candidates(key)
    usable = (one for one in listed if not one.has_no_file and not instance.bounds.of(one))
    return all(isinstance(one, FileCandidate) for one in listed) and not any(
        all(instance.accepts(root, one) for root in roots) for one in usable
    )


def _look_for_urls(instance: ProblemInstance) -> None:
    """Read the metadata of the first version of each line, as where a search has failed: it may name files by URL.

    That of files of PyPI is not read, for they cannot name files elsewhere.
    """
    for root in instance.roots:
        if root.key.is_package:
            first = next((one for one in instance.candidates(root.key) if root.allows(one)), None)
            file = first.release.file if isinstance(first, FileCandidate) else None
            if first is not None and file is not None and urlsplit(file.url).netloc not in PYPI_HOSTS:
                with suppress(UnavailableError):
                    instance.requirements(first)


def _failures(key: Key, attempts: Sequence[Attempt], instances: Sequence[ProblemInstance]) -> Iterator[Failure]:
    """Yield the failure of each attempt by the lines about a distribution, its files, and the constraints on it."""
    for attempt, instance in zip(attempts, instances, strict=True):
        search = CompleteSearch(instance)
        core = search.refuting(_groups(instance, key))
        if core is None:
            search.close()
            return
        yield Failure(attempt=attempt, instance=instance, search=search, core=core)


def _groups(instance: ProblemInstance, key: Key) -> tuple[Group, ...]:
    lines = (root.ground.group for root in instance.roots if root.key == key)
    bounds = (one.ground.group for candidate in instance.candidates(key) for one in instance.bounds.of(candidate))
    return tuple(dict.fromkeys((*lines, *bounds, Relation(key.project, FILES))))


def is_beyond_help(failures: Sequence[Failure], groups: Collection[Group]) -> bool:
    """Return whether nothing but another name or another kind of file helps against an `unobtainable` distribution.

    This is so if no version of it has a file that can be used, whatever is asked for, and if no Python, platform or fact of a
    host keeps them out, which could be another one. `groups` are those of the conflict of `failures` with every Python.
    """
    kept_out = {root.key for failure in failures for root in failure.instance.roots if root.ground.group in groups}
    if any(not key.is_package for key in kept_out):
        return False
    listed = [one for failure in failures for key in kept_out for one in failure.instance.candidates(key)]
    return all(isinstance(one, FileCandidate) and one.has_no_file and not one.release.blocked_by for one in listed)


def requests_of(failure: Failure) -> list[Requirement]:
    """Return the requests of the distribution that a failure of `unobtainable` is about, one for each distribution."""
    groups = frozenset(failure.core)
    found = (root for root in failure.instance.roots if root.key.is_package and root.ground.group in groups)
    return list({root.key.project: root for root in found}.values())
