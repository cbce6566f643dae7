"""Prove that an attempt has no answer: by groups that another attempt failed by, without some groups, or without reading.

What contradicts itself with one Python mostly does so with the others, too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.errors import UnavailableError
from provisioner.grounds.requirement import Relation
from provisioner.resolver.attempts import Failure, instance_of
from provisioner.resolver.python.discovered import Discoveries
from provisioner.resolver.search.complete import CompleteSearch, every_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.attempts import Attempt, Indexes
    from provisioner.resolver.requirement import Key
    from provisioner.resolver.search.instance import ProblemInstance

    Prove = Callable[[ProblemInstance, CompleteSearch], tuple[Group, ...] | None]
    """Returns the groups by which a search of an instance has no answer; None when it has one."""


def refuted(
    attempt: Attempt,
    groups: tuple[Group, ...],
    indexes: Indexes,
    *,
    like: Failure | None = None,
    includes: Callable[[Key], bool] = every_key,
) -> Failure | None:
    """Return the failure of an attempt by `groups` alone; None when they can hold together, or when that is unknown.

    It is unknown when an index cannot be reached. `like` is the failure that `groups` are of; `includes` tells which keys
    count.
    """
    return _failure(attempt, indexes, Discoveries(), lambda _, search: search.refuting(groups), like=like, includes=includes)


def refuted_without(attempt: Attempt, without: Collection[Group], indexes: Indexes) -> Failure | None:
    """Return the failure of an attempt in which the groups in `without` need not hold; None if it has an answer, or is unknown.

    It is unknown when an index cannot be reached, and when another base image may help.
    """

    def prove(instance: ProblemInstance, search: CompleteSearch) -> tuple[Group, ...] | None:
        core = search.refutation(without=without) if search.find(without=without) is None else None
        with suppress(UnavailableError):
            discover(instance)
        return core

    found = _failure(attempt, indexes, Discoveries(attempt.prereleases), prove)
    if found is None:
        return None
    found = replace(found, without=frozenset(without))
    if lacks_libraries(found) and attempt.problem.in_image_with_libraries() is not None:
        found.search.close()
        return None
    return found


def refuted_unread(
    attempt: Attempt, without: Collection[Group], indexes: Indexes, *, includes: Callable[[Key], bool] = every_key
) -> Failure | None:
    """Return the failure of an attempt, without the groups in `without`, that is proved without reading metadata; or None."""
    return _failure(attempt, indexes, Discoveries(), lambda _, search: search.refutation(without=without), includes=includes)


def _failure(
    attempt: Attempt,
    indexes: Indexes,
    discoveries: Discoveries,
    prove: Prove,
    *,
    like: Failure | None = None,
    includes: Callable[[Key], bool] = every_key,
) -> Failure | None:
    """Return the failure of an attempt by the groups that `prove` returns; None when there are none, or that is unknown.

    It is proved again whenever metadata refers to files or pre-releases that were no candidates before.
    """
    lacking, pairs = (like.lacking, like.pairs) if like is not None else (None, frozenset())
    quiet = indexes._replace(reads_ahead="nothing")
    while True:
        discoveries.has_grown = False
        instance = instance_of(attempt, quiet, discoveries, answer=lacking, pairs=pairs)
        search = CompleteSearch(instance, includes)
        core = None
        with suppress(UnavailableError):
            core = prove(instance, search)
        if core is not None and not discoveries.has_grown:
            return Failure(attempt=attempt, instance=instance, search=search, core=core, lacking=lacking, pairs=pairs)
        search.close()
        if not discoveries.has_grown:
            return None


def discover(instance: ProblemInstance) -> None:
    """Read the metadata of the first candidate of every root requirement on a distribution, to discover direct URLs in it.

    The search may have ended before it read them. Errors of an index are ignored.
    """
    for root in instance.roots:
        if root.key.is_package:
            first = next((one for one in instance.candidates(root.key) if root.allows(one)), None)
            with suppress(UnavailableError):
                _ = instance.requirements(first) if first is not None else ()


def lacks_libraries(failure: Failure) -> bool:
    """Return whether the proof that there is no answer uses a requirement of a wheel on libraries."""
    return any(map(is_about_libraries, failure.core)) and any(map(is_about_libraries, failure.groups))


def is_about_libraries(group: Group) -> bool:
    """Return whether a group is the requirement of a wheel on CUDA libraries, which another base image may have."""
    from provisioner.resolver.python.libraries import LIBRARIES  # not for a stack without packages

    return isinstance(group, Relation) and group.object == LIBRARIES
