"""What an answer says of the gate of its base image: the variable that keeps it, what it leaves open, what replaced it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.gate.evaluate import NO, UNKNOWN
from provisioner.solve.requirement import Key
from provisioner.solve.rules.gate import KEPT, WORD, ImageGate
from provisioner.solve.stack import Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import ImageFacts
    from provisioner.solve.requirement import Candidate
    from provisioner.solve.search.universe import Universe


def kept_gate(universe: Universe, pins: Mapping[Key, Candidate]) -> dict[str, str]:
    """The variable that keeps the gate of a named base; {} where there is none to keep."""
    image = _image(pins)
    return {KEPT: image.require_cuda} if image is not None and _gate_of(universe).is_binding else {}


def gate_unverified(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[str]:
    """What a kept gate asks of hosts that do not state it."""
    gate, image = _gate_of(universe), _image(pins)
    if image is None or not gate.is_binding:
        return
    for target, judgement in gate.judgements(image, _drivers(pins)):
        for clause in judgement.skipped:
            what = f"`{clause}` in the NVIDIA_REQUIRE_CUDA of {image.reference}"
            yield f"image: {what} is about nothing that runtimes know: one runtime skips it, another refuses it"
        if judgement.verdict == UNKNOWN:
            asked = " and ".join(judgement.unknown)
            is_nameless = "brand" in judgement.unknown and any(gpu.name is None for gpu in target.host.gpus or ())
            settle = "; state `gpus[].name` in its profile (`provision inspect` writes one)" if is_nameless else ""
            lets_in = f"whether the NVIDIA_REQUIRE_CUDA of {image.reference} lets {target.label} in"
            yield f"image: {lets_in} depends on its {asked}, which is not known{settle}"


def gate_relaxations(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    """The relaxation that was used where a base's own gate would have refused a host and is replaced."""
    gate, image = _gate_of(universe), _image(pins)
    request = universe.problem.request
    if image is None or gate.is_binding or request.accelerator != "cuda" or request.system != "linux":
        return
    for target, judgement in gate.judgements(image, _drivers(pins)):
        if judgement.verdict == NO:
            text = (
                f"base image {image.reference} alone would refuse {target.label} ({judgement});"
                " the NVIDIA_REQUIRE_CUDA of this stack replaces its own"
            )
            yield Relaxation(name=WORD, component="image", text=text, where=gate.place(image))


def _gate_of(universe: Universe) -> ImageGate:
    problem = universe.problem
    return ImageGate(problem.matrix, problem.request, problem.needs.guards, keys={})


def _image(pins: Mapping[Key, Candidate]) -> ImageFacts | None:
    """The chosen base, when it has a gate."""
    candidate = pins.get(Key("image"))
    image: ImageFacts | None = candidate.subject[2] if candidate is not None and candidate.subject else None
    return image if image is not None and image.require_cuda else None


def _drivers(pins: Mapping[Key, Candidate]) -> dict[str, str]:
    return {key.world: candidate.label for key, candidate in pins.items() if key.component == "driver"}
