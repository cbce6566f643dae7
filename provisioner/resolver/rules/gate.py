"""The gate of a base image: what the image's own NVIDIA_REQUIRE_CUDA lets in, as requirements on the hosts of a problem.

A base that the spec names keeps its gate, in a variable of its own beside the one that says what was solved, for all
NVIDIA_REQUIRE_* of an image must be met. Where the spec allows `image-gate`, and for bases chosen by kind, the rendered image's
NVIDIA_REQUIRE_CUDA replaces it, and where that lets in a host that the base's own would refuse, the relaxation is named.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.gate.check import check_gate
from provisioner.gate.evaluate import NO, verdict_of
from provisioner.gate.grammar import parse
from provisioner.grounds.predicate import AdmitsHosts
from provisioner.grounds.requirement import Entails, Relation
from provisioner.grounds.source import Documents
from provisioner.places import Place
from provisioner.resolver.requirement import Candidate, ImageCandidate, Key, Labelled, Requirement
from provisioner.resolver.rules.gate_facts import cuda_of, facts_of
from provisioner.resolver.rules.images import KINDS
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.gate.check import GateResult
    from provisioner.gate.grammar import Expression
    from provisioner.grounds.source import Source
    from provisioner.host.model import Host
    from provisioner.matrix.model import ImageFacts, Matrix
    from provisioner.request import Request, TargetHost
    from provisioner.resolver.rules.guards import Guards

KEPT = "NVIDIA_REQUIRE_BASE"
"""The variable a kept gate goes by: NVIDIA_REQUIRE_CUDA is the stack's."""

WORD = "image-gate"
"""The word of `policy.allow` that lifts the gate of a named base."""


class Admits:
    """Drivers with which one host passes a gate, or might: what is unknown does not refuse."""

    def __init__(self, matrix: Matrix, guards: Guards, expression: Expression, *, host: Host) -> None:
        self._matrix = matrix
        self._guards = guards
        self._expression = expression
        self._host = host
        clauses = [clause for term in expression.terms for clause in term]
        self._bounds = sorted({clause.numbers for clause in clauses if clause.name == "driver"})
        self._known: dict[tuple[int, bool, str], bool] = {}

    def allows(self, candidate: Candidate) -> bool:
        """Whether the gate would not refuse this driver on the host."""
        numbers = candidate.version.release
        while len(numbers) > 1 and not numbers[-1]:
            numbers = numbers[:-1]
        place = bisect_right(self._bounds, numbers)
        is_bound = place > 0 and self._bounds[place - 1] == numbers
        # Between two mentioned drivers, and with the same CUDA, every driver fares alike.
        case = (place, is_bound, cuda_of(self._matrix, candidate.label))
        if case not in self._known:
            facts = facts_of(self._matrix, self._guards, self._host, driver=candidate.label)
            self._known[case] = verdict_of([self._expression], facts) != NO
        return self._known[case]


class ImageGate:
    """Requirements of base images on the drivers and GPUs of one problem."""

    def __init__(self, matrix: Matrix, request: Request, guards: Guards, *, keys: Mapping[str, tuple[Key, ...]]) -> None:
        self._matrix = matrix
        self._request = request
        self._guards = guards
        self._keys = keys

    def of(self, candidate: ImageCandidate) -> Iterator[Requirement]:
        """What a base image requires of every host; nothing where its gate is replaced."""
        image = candidate.image
        if not image.require_cuda or not self.is_binding:
            return
        expression = parse(image.require_cuda)
        where = self.place(image)
        for target in self._request.hosts:
            on_gpu = self._on_gpus(expression, target, image, where)
            refused = {one.key for one in on_gpu if not one.test.allows(_itself(one.key))}
            # A GPU that no driver helps is the GPU's conflict: the driver is judged as on a GPU that passes.
            host = replace(target.host, gpus=None) if refused else target.host
            yield from on_gpu
            for key in self._keys.get("driver", ()):
                if key.scope == target.label:
                    test = Admits(self._matrix, self._guards, expression, host=host)
                    result = self._stated(expression, target, host)
                    yield Requirement(key, test, _admits(image, expression, result, of="driver", cited=where))

    @property
    def is_binding(self) -> bool:
        """Whether the gate of the base is kept: the spec names the base, and does not lift its gate."""
        request = self._request
        is_named = request.image_base not in KINDS
        return is_named and request.accelerator == "cuda" and request.system == "linux" and WORD not in request.allowed

    def place(self, image: ImageFacts) -> Source:
        """Return where the requirement of a base is written: the spec's line, or what the matrix cites."""
        if self._request.spec.image.require is not None:
            return self._request.place("image.require")
        cited = tuple(str(self._matrix.citations[source]) for source in image.source if source in self._matrix.citations)
        return Documents(cited) if cited else Place("matrices/images.yaml")

    def results(self, image: ImageFacts, drivers: Mapping[str, str]) -> Iterator[tuple[TargetHost, GateResult]]:
        """What the gate of a base says to every host, given its driver by label of the host."""
        expression = parse(image.require_cuda)
        for target in self._request.hosts:
            facts = facts_of(self._matrix, self._guards, target.host, driver=drivers.get(target.label, ""))
            yield target, check_gate([expression], facts)

    def _on_gpus(self, expression: Expression, target: TargetHost, image: ImageFacts, where: Source) -> list[Requirement]:
        """The capabilities that some driver, on the host's GPU of this kind, passes the gate with."""
        if not any(clause.name in {"arch", "brand"} for term in expression.terms for clause in term):
            return []
        known = (
            [str(one.version) for one in self._matrix.components["gpu"].releases] if "gpu" in self._matrix.components else []
        )
        found = []
        for gpu in target.host.gpus or ():
            device = self._guards.device(gpu)
            key = Key(f"gpu:{device}", target.label)
            if device is None or key not in self._keys.get("gpu", ()):
                continue
            passing = []
            for text in dict.fromkeys((*known, device)):
                host = replace(target.host, gpus=(replace(gpu, compute_capability=text),))
                if verdict_of([expression], facts_of(self._matrix, self._guards, host)) != NO:
                    passing.append(text)
            alone = replace(target.host, gpus=(gpu,))
            result = check_gate([expression], facts_of(self._matrix, self._guards, alone))
            ground = _admits(image, expression, result, of="gpu", cited=where)
            found.append(Requirement(key, Labelled(frozenset(passing)), ground))
        return found

    def _stated(self, expression: Expression, target: TargetHost, host: Host) -> GateResult:
        driver = target.host.driver.version if target.host.driver is not None else None
        return check_gate([expression], facts_of(self._matrix, self._guards, host, driver=driver or ""))


def _itself(key: Key) -> Candidate:
    """What the host states of one of its GPUs, as a candidate."""
    text = key.name.partition(":")[2]
    return Candidate(key, Version.parse(text), text)


def _admits(image: ImageFacts, expression: Expression, result: GateResult, *, of: str, cited: Source) -> Entails:
    refusals = result.unmet if result.verdict == NO else ()
    predicate = AdmitsHosts(image.reference, expression.text, refusals)
    return Entails(name="image", subject=None, predicate=predicate, relation=Relation("image", of), cited=cited)
