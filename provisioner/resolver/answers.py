"""Find the answer of one attempt, or why it has none: what earlier attempts failed by is tried before anything else is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.accelerators import RUNTIMES
from provisioner.components import FRAMEWORKS
from provisioner.resolver.attempts import Failure, components_of, environment_of, in_image_with_libraries, instance_of
from provisioner.resolver.outcome.libraries import is_lacking, lacks_toolkit, may_be_elsewhere
from provisioner.resolver.python.discovered import Discoveries
from provisioner.resolver.refuting import discover, is_about_libraries, lacks_libraries, refuted
from provisioner.resolver.requirement import Key
from provisioner.resolver.search.bundled import align_bundled, misaligned
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.least_change import with_least_change
from provisioner.resolver.search.provider import LOG
from provisioner.resolver.search.resolve import pins_or_proof

if TYPE_CHECKING:
    from provisioner.index.model import Environment
    from provisioner.resolver.attempts import Attempt, Chosen, Indexes
    from provisioner.resolver.search.instance import Pair


def answer_of(attempt: Attempt, indexes: Indexes, failed: list[Failure]) -> Chosen | None:
    """Return the answer of an attempt; None if it has none, and its failure is then appended to `failed`.

    An attempt that fails by the groups of an earlier one is not decided: only what these groups are about is read for it.
    """
    LOG.info("trying python %s with %s", attempt.python, _leading(attempt))
    reasons = {one.core: one for one in reversed(failed) if _is_reason(one, attempt)}
    again = (refuted(attempt, core, indexes, like=one) for core, one in reasons.items())
    failure = next(filter(None, again), None)
    if failure is None:
        decided = _decided_in_some_image(attempt, indexes)
        if not isinstance(decided, Failure):
            return decided
        failure = decided
    LOG.info("python %s has no answer: %s", attempt.python, "; ".join(sorted(map(str, failure.core))))
    failed.append(failure)
    return None


def _leading(attempt: Attempt) -> str:
    """Return the frameworks of an attempt, or the components that it has without any, as `pytorch 2.6.0+cu124, cuda 12.4.1`."""
    leads = (*FRAMEWORKS, *RUNTIMES, "image")
    found = [f"{name} {pin.label}" for name in leads if (pin := attempt.system.get(Key(name))) is not None]
    return ", ".join(found) or "no framework"


def _is_reason(failure: Failure, attempt: Attempt) -> bool:
    """Return whether another attempt may fail by the groups that `failure` used; not if another base image may help it."""
    if failure.attempt.problem.domains is not attempt.problem.domains:
        return False  # it was decided with another base image
    return not any(map(is_about_libraries, failure.core)) or attempt.problem.in_image_with_libraries() is None


def _decided_in_some_image(attempt: Attempt, indexes: Indexes) -> Chosen | Failure:
    """Return the answer of one attempt, or its failure.

    If the spec leaves the base image open, an image that has CUDA's libraries is taken where there is no answer for lack of
    them, and where an answer would not have the CUDA or cuDNN that the spec requires.
    """
    found = _decided(attempt, indexes)
    if not (lacks_libraries(found) if isinstance(found, Failure) else lacks_toolkit(*found)):
        return found
    other = in_image_with_libraries(attempt)
    if other is None:
        return found
    again = _decided(other, indexes)
    if isinstance(again, Failure) and (not isinstance(found, Failure) or lacks_libraries(again)):
        again.search.close()
        return found
    if isinstance(found, Failure):
        found.search.close()
    return again


def _decided(attempt: Attempt, indexes: Indexes) -> Chosen | Failure:
    """Return the answer of one attempt, or its failure.

    The attempt starts again whenever metadata refers to a direct URL or a pre-release that was not a candidate before. It also
    starts again when a component cannot be at the version that a chosen distribution bundles: both are then decided together,
    as a pair. And it starts again, once, when chosen wheels need libraries that nothing chosen has: these are then required. If
    no answer has them all, but a host or an image of unknown content may have the rest, the answer that lacks them is returned.
    If the libraries are in an image with an older glibc than that of `attempt.system`, files for that glibc are searched.
    """
    from provisioner.resolver.python.libraries import ProviderCandidate

    discoveries = Discoveries(attempt.prereleases)
    pairs: frozenset[Pair] = frozenset()
    environment = environment_of(attempt)
    lacking: Chosen | None = None
    while True:
        discoveries.has_grown = False
        before = lacking[1] if lacking is not None else None
        instance = instance_of(attempt, indexes, discoveries, environment=environment, answer=before, pairs=pairs)
        found = pins_or_proof(instance, components_of(attempt, instance))
        if isinstance(found, CompleteSearch) and not discoveries.has_grown:
            discover(instance)
        if discoveries.has_grown:
            attempt.prereleases.update(discoveries.prereleases)
            if isinstance(found, CompleteSearch):
                found.close()
            continue
        if isinstance(found, CompleteSearch):
            if lacking is None or not may_be_elsewhere(attempt.problem, lacking[1]):
                core = found.refutation()
                assert core is not None, "the search proved that there is no answer"
                return Failure(attempt=attempt, instance=instance, search=found, core=core, lacking=before, pairs=pairs)
            found.close()  # the earlier answer is valid; it reports the libraries that it lacks
            return lacking
        pins = align_bundled(instance, with_least_change(instance, found))
        if (more := pairs | misaligned(instance, pins)) != pairs:
            pairs = more
        elif lacking is None and is_lacking(instance, pins):
            lacking = instance, pins
        elif _has_older_glibc(actual := environment_of(replace(attempt, system=pins)), environment):
            environment = actual
        else:  # ways to have libraries are nothing to install
            return instance, {key: one for key, one in pins.items() if not isinstance(one, ProviderCandidate)}


def _has_older_glibc(one: Environment, other: Environment) -> bool:
    """Return whether an environment has an older glibc than another one; False when one of them has none."""
    return one.glibc is not None and other.glibc is not None and one.glibc < other.glibc
