"""The gate of the base image in an answer: the variable that preserves it, its doubts, and the relaxation that replaces it.

The gate is the image's NVIDIA_REQUIRE_CUDA, an expression with which the container runtime refuses hosts. It binds if the spec
names the base image and does not allow `image-gate`; otherwise the NVIDIA_REQUIRE_CUDA of the stack replaces it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.gate.evaluate import NO, UNKNOWN
from provisioner.grounds.doubt import SkippedClause, UndecidedGate
from provisioner.grounds.relaxation import GateReplaced
from provisioner.resolver.requirement import ImageCandidate, Key
from provisioner.resolver.rules.gate import BASE_IMAGE_GATE, ImageGate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.doubt import Doubt
    from provisioner.matrix.model import ImageFacts
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance


def kept_gate(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> dict[str, str]:
    """Return the variable in which the rendered image preserves the base image's gate, with its value.

    {} when the base image has no gate, or the gate of the stack replaces it.
    """
    image = _image(pins)
    return {BASE_IMAGE_GATE: image.require_cuda} if image is not None and _gate_of(instance).is_binding else {}


def gate_doubts(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield the doubts about a binding gate: facts that decide it but are not stated, and clauses that are not evaluated."""
    gate, image = _gate_of(instance), _image(pins)
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


def gate_relaxations(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[GateReplaced]:
    """Yield a relaxation for each host that the base image's gate would refuse, if the gate of the stack replaces it."""
    gate, image = _gate_of(instance), _image(pins)
    request = instance.problem.request
    if image is None or gate.is_binding or request.accelerator != "cuda" or request.system != "linux":
        return
    for target, result in gate.results(image, _drivers(pins)):
        if result.verdict == NO:
            yield GateReplaced(
                component="image",
                reference=image.reference,
                host=target.label,
                refusals=result.refusals,
                source=gate.place(image),
            )


def _gate_of(instance: ProblemInstance) -> ImageGate:
    problem = instance.problem
    return ImageGate(problem.matrix, problem.request, problem.needs.guards, keys={})


def _image(pins: Mapping[Key, Candidate]) -> ImageFacts | None:
    """Return the chosen base image; None when none is chosen or it has no gate."""
    candidate = pins.get(Key("image"))
    image = candidate.image if isinstance(candidate, ImageCandidate) else None
    return image if image is not None and image.require_cuda else None


def _drivers(pins: Mapping[Key, Candidate]) -> dict[str, str]:
    return {key.scope: candidate.label for key, candidate in pins.items() if key.component == "driver"}
