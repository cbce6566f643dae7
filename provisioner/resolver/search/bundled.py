"""Components that chosen distributions bundle: the stack must name the version that the distribution installs.

A framework's build may allow any cuDNN 9, and so may the distribution that bundles cuDNN: chosen independently, the versions
may differ. In most cases the component can be set to the distribution's version once an answer is found (`align_bundled`). If
another requirement forbids that version, the component and the distribution become a pair, and the search decides both at once
(`misaligned`, `ProblemInstance.pairs`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from provisioner.resolver.requirement import PACKAGE, PYTORCH, Key, build_of
from provisioner.resolver.rules.bundled import BUNDLED, bundled_version, unlisted_release
from provisioner.resolver.search.instance import violations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import Pair, ProblemInstance


def align_bundled(
    instance: ProblemInstance, pins: dict[Key, Candidate], beside: Mapping[Key, Candidate] = MappingProxyType({})
) -> dict[Key, Candidate]:
    """Return `pins` with each component at the version that a distribution bundles, unless that version violates a requirement.

    The distribution is in `pins` or in `beside`, whose distributions were chosen earlier and do not change. Libraries that
    PyTorch's build names exactly are not changed: some are linked into PyTorch's wheel.
    """
    for key, distribution in _bundling(instance.problem, pins, beside).items():
        version = bundled_version(distribution)
        if pins[key].version != version:
            listed = instance.candidates(key)
            unlisted = unlisted_release(key, listed, distribution)
            fitting = [one for one in listed if one.version == version] if unlisted is None else [unlisted]
            pins = next((found for one in fitting if not violations(instance, found := {**pins, key: one})), pins)
    return pins


def misaligned(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate] = MappingProxyType({})
) -> frozenset[Pair]:
    """Return the pairs of a chosen component and a distribution that bundles another version of that component, as keys.

    The distribution is in `pins` or in `beside`, as for `align_bundled`.
    """
    distributions = _bundling(instance.problem, pins, beside)
    return frozenset((key, one.key) for key, one in distributions.items() if pins[key].version != bundled_version(one))


def with_bundled_candidates(problem: Problem, packages: Mapping[Key, Candidate]) -> Problem:
    """Return a problem in which components may also have the versions that the chosen distributions in `packages` bundle."""
    for key in [key for key in problem.domains if key.component in BUNDLED and not key.is_package]:
        for distribution in (packages.get(Key(name, PACKAGE)) for name in BUNDLED[key.component]):
            found = unlisted_release(key, problem.domains[key], distribution) if distribution is not None else None
            problem = problem if found is None else problem.with_candidate(key, found)
    return problem


def bundling_distribution(problem: Problem, key: Key, pins: Mapping[Key, Candidate]) -> Candidate | None:
    """Return the distribution in `pins` that bundles a component, such as nvidia-cudnn-cu12 for cuDNN; None when none does.

    Of several distributions, the one for the component's CUDA version is returned, because another one may belong to another
    framework. The result is None, too, if several remain, and if PyTorch's build names the distribution's exact version and no
    override replaces that requirement.
    """
    if key.is_package:
        return None
    found = [pins[other] for name in BUNDLED.get(key.component, ()) if (other := Key(name, PACKAGE)) in pins]
    if len(found) > 1 and (build := build_of(pins.get(key))) is not None:
        found = [one for one in found if one.key.name.endswith(f"-{build.name}")]
    if len(found) != 1 or (PYTORCH in pins and not key.slot and not problem.overrides.of(found[0].key.name)):
        return None
    return found[0]


def _bundling(problem: Problem, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    everything = {**beside, **pins}
    found = {key: bundling_distribution(problem, key, everything) for key in pins if key.component in BUNDLED}
    return {key: distribution for key, distribution in found.items() if distribution is not None}
