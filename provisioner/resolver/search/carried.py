"""Components that distributions carry: what is installed is the distribution's, so the stack must name that version.

A framework's build may take any cuDNN 9, and so may the distribution that brings it: chosen apart they need not agree. Mostly
the component can be put at the version of the distribution once an answer is found. Where something forbids that, the two are
a pair: the search is told that each version of the distribution is that version of the component, and decides both at once.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from provisioner.resolver.requirement import PACKAGE, PYTORCH, Key, build_of
from provisioner.resolver.rules.carriers import CARRIED, carried_version, unlisted
from provisioner.resolver.search.universe import violations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.universe import Pair, Universe


def as_carried(
    universe: Universe, pins: dict[Key, Candidate], beside: Mapping[Key, Candidate] = MappingProxyType({})
) -> dict[Key, Candidate]:
    """An answer with each component at the version of the distribution that carries it, where everything still holds then.

    The distribution is one of the answer, or of those that were chosen before it and stay `beside` it.
    PyTorch's own are left as they are: its builds name them exactly, and some are linked into its libraries.
    """
    for key, carrier in _carriers(universe.problem, pins, beside).items():
        version = carried_version(carrier)
        if pins[key].version != version:
            listed = universe.candidates(key)
            unknown = unlisted(key, listed, carrier)
            fitting = [one for one in listed if one.version == version] if unknown is None else [unknown]
            pins = next((found for one in fitting if not violations(universe, found := {**pins, key: one})), pins)
    return pins


def apart(
    universe: Universe, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate] = MappingProxyType({})
) -> frozenset[Pair]:
    """The components of an answer that are not at the version of the distribution that carries them, each with that."""
    carriers = _carriers(universe.problem, pins, beside)
    return frozenset((key, one.key) for key, one in carriers.items() if pins[key].version != carried_version(one))


def with_carried(problem: Problem, packages: Mapping[Key, Candidate]) -> Problem:
    """A problem in which components may also be at the version that one of some chosen distributions carries."""
    for key in [key for key in problem.domains if key.component in CARRIED and not key.is_package]:
        for carrier in (packages.get(Key(name, PACKAGE)) for name in CARRIED[key.component]):
            found = unlisted(key, problem.domains[key], carrier) if carrier is not None else None
            problem = problem if found is None else problem.with_candidate(key, found)
    return problem


def carrier_of(problem: Problem, key: Key, pins: Mapping[Key, Candidate]) -> Candidate | None:
    """The one distribution that carries a component; None for none, or several, or where PyTorch's build names it exactly.

    Of several it is the one for the CUDA of the component: another may be somebody else's.
    """
    if key.is_package:
        return None
    found = [pins[carrier] for name in CARRIED.get(key.component, ()) if (carrier := Key(name, PACKAGE)) in pins]
    if len(found) > 1 and (build := build_of(pins.get(key))) is not None:
        found = [one for one in found if one.key.name.endswith(f"-{build.name}")]
    if len(found) != 1 or (PYTORCH in pins and not key.slot and not problem.overrides.of(found[0].key.name)):
        return None
    return found[0]


def _carriers(problem: Problem, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    everything = {**beside, **pins}
    found = {key: carrier_of(problem, key, everything) for key in pins if key.component in CARRIED}
    return {key: carrier for key, carrier in found.items() if carrier is not None}
