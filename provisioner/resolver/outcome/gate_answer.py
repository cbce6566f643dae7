"""What an answer says of the gate of its base image: the variable that keeps it, what it leaves open, what replaced it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.gate.evaluate import NO, UNKNOWN
from provisioner.grounds.doubt import SkippedClause, UndecidedGate
from provisioner.grounds.relaxation import GateReplaced
from provisioner.resolver.requirement import ImageCandidate, Key
from provisioner.resolver.rules.gate import KEPT, ImageGate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.doubt import Doubt
    from provisioner.matrix.model import ImageFacts
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.universe import Universe


def kept_gate(universe: Universe, pins: Mapping[Key, Candidate]) -> dict[str, str]:
    """The variable that keeps the gate of a named base; {} where there is none to keep."""
    image = _image(pins)
    return {KEPT: image.require_cuda} if image is not None and _gate_of(universe).is_binding else {}


def gate_doubts(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """What a kept gate asks of hosts that do not state it."""
    gate, image = _gate_of(universe), _image(pins)
    if image is None or not gate.is_binding:
        return
    for target, result in gate.results(image, _drivers(pins)):
        for clause in result.skipped:
            yield SkippedClause(clause=clause, reference=image.reference)
        if result.verdict == UNKNOWN:
            is_nameless = "brand" in result.unknown and any(gpu.name is None for gpu in target.host.gpus or ())
            yield UndecidedGate(
                reference=image.reference,
                host=target.label,
                properties=result.unknown,
                profile_key="gpus[].name" if is_nameless else "",
            )


def gate_relaxations(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[GateReplaced]:
    """The relaxation that was used where a base's own gate would have refused a host and is replaced."""
    gate, image = _gate_of(universe), _image(pins)
    request = universe.problem.request
    if image is None or gate.is_binding or request.accelerator != "cuda" or request.system != "linux":
        return
    for target, result in gate.results(image, _drivers(pins)):
        if result.verdict == NO:
            yield GateReplaced(
                component="image",
                reference=image.reference,
                host=target.label,
                refusals=result.unmet,
                source=gate.place(image),
            )


def _gate_of(universe: Universe) -> ImageGate:
    problem = universe.problem
    return ImageGate(problem.matrix, problem.request, problem.needs.guards, keys={})


def _image(pins: Mapping[Key, Candidate]) -> ImageFacts | None:
    """The chosen base, when it has a gate."""
    candidate = pins.get(Key("image"))
    image = candidate.image if isinstance(candidate, ImageCandidate) else None
    return image if image is not None and image.require_cuda else None


def _drivers(pins: Mapping[Key, Candidate]) -> dict[str, str]:
    return {key.scope: candidate.label for key, candidate in pins.items() if key.component == "driver"}
