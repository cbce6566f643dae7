"""The gate of a base image, as requirements of the image on drivers and GPUs.

A gate is the image's NVIDIA_REQUIRE_CUDA: a condition on driver and GPUs without which NVIDIA's runtime does not start the
container. If the spec names the base image, the rendered image keeps this gate in a variable of its own (`BASE_IMAGE_GATE`),
beside the NVIDIA_REQUIRE_CUDA that is computed for the stack, because all NVIDIA_REQUIRE_* of an image must be met. If the spec
allows `image-gate`, or the base image was chosen by its kind, the stack's NVIDIA_REQUIRE_CUDA replaces the gate. If that of the
stack admits a host that the gate refuses, the answer reports a relaxation.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.gate.check import check_gate
from provisioner.gate.evaluate import NO, GateFacts, GateGpu, verdict_of
from provisioner.gate.grammar import parse
from provisioner.grounds.predicate import AdmitsHosts
from provisioner.grounds.requirement import Entails, Relation
from provisioner.grounds.source import Documents
from provisioner.places import Place
from provisioner.resolver.requirement import Candidate, ImageCandidate, Key, Labelled, Requirement
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


BASE_IMAGE_GATE = "NVIDIA_REQUIRE_BASE"
"""The variable for the gate of a base image that remains in force; NVIDIA_REQUIRE_CUDA has the gate of the stack."""

WORD = "image-gate"
"""The entry of `policy.allow` that permits replacing the gate of a base image that the spec names."""


class Admits:
    """The test that a host with a certain driver passes a gate.

    A host with unknown facts passes if some values of them meet the gate.
    """

    def __init__(self, matrix: Matrix, guards: Guards, expression: Expression, *, host: Host) -> None:
        self._matrix = matrix
        self._guards = guards
        self._expression = expression
        self._host = host
        clauses = [clause for term in expression.terms for clause in term]
        self._bounds = sorted({clause.numbers for clause in clauses if clause.name == "driver"})
        self._known: dict[tuple[int, bool, str], bool] = {}

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the gate does not refuse the host with this driver."""
        numbers = candidate.version.release
        while len(numbers) > 1 and not numbers[-1]:
            numbers = numbers[:-1]
        place = bisect_right(self._bounds, numbers)
        is_bound = place > 0 and self._bounds[place - 1] == numbers
        # Drivers between two bounds of the gate that natively support the same CUDA have the same verdict.
        case = (place, is_bound, cuda_of(self._matrix, candidate.label))
        if case not in self._known:
            facts = facts_of(self._matrix, self._guards, self._host, driver=candidate.label)
            self._known[case] = verdict_of([self._expression], facts) != NO
        return self._known[case]


class ImageGate:
    """The requirements of base images on the drivers and GPUs of one problem."""

    def __init__(self, matrix: Matrix, request: Request, guards: Guards, *, keys: Mapping[str, tuple[Key, ...]]) -> None:
        self._matrix = matrix
        self._request = request
        self._guards = guards
        self._keys = keys

    def of(self, candidate: ImageCandidate) -> Iterator[Requirement]:
        """Yield the requirements of a base image on every host; nothing when it has no gate, or its gate is replaced."""
        image = candidate.image
        if not image.require_cuda or not self.is_binding:
            return
        expression = parse(image.require_cuda)
        where = self.place(image)
        for target in self._request.hosts:
            on_gpu = self._on_gpus(expression, target, image, where)
            refused = {one.key for one in on_gpu if not one.test.allows(_itself(one.key))}
            # A GPU that the gate refuses with every driver is a conflict of its own, so the driver is tested with unknown GPUs.
            host = replace(target.host, gpus=None) if refused else target.host
            yield from on_gpu
            for key in self._keys.get("driver", ()):
                if key.scope == target.label:
                    test = Admits(self._matrix, self._guards, expression, host=host)
                    result = self._stated(expression, target, host)
                    yield Requirement(key, test, _admits(image, expression, result, of="driver", cited=where))

    @property
    def is_binding(self) -> bool:
        """Whether base images keep their gate: the spec names one, for CUDA on Linux, and does not allow `image-gate`."""
        request = self._request
        is_named = request.image_base not in KINDS
        return is_named and request.accelerator == "cuda" and request.system == "linux" and WORD not in request.allowed

    def place(self, image: ImageFacts) -> Source:
        """Return the source of an image's gate.

        It is the line of the spec that states the gate, otherwise the documents that the matrix cites for the image.
        """
        if self._request.spec.image.require is not None:
            return self._request.place("image.require")
        cited = tuple(str(self._matrix.citations[source]) for source in image.source if source in self._matrix.citations)
        return Documents(cited) if cited else Place("matrices/images.yaml")

    def results(self, image: ImageFacts, drivers: Mapping[str, str]) -> Iterator[tuple[TargetHost, GateResult]]:
        """Yield every host with the result of a base image's gate on it; `drivers` are the chosen versions by host label."""
        expression = parse(image.require_cuda)
        for target in self._request.hosts:
            facts = facts_of(self._matrix, self._guards, target.host, driver=drivers.get(target.label, ""))
            yield target, check_gate([expression], facts)

    def _on_gpus(self, expression: Expression, target: TargetHost, image: ImageFacts, where: Source) -> list[Requirement]:
        """Return the requirements on a host's GPUs: the compute capabilities with which some driver passes the gate.

        [] when the gate has no condition on GPUs.
        """
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
    """Return the candidate of a GPU's key that is the host's GPU: `9.0` for the key `gpu:9.0`."""
    text = key.name.partition(":")[2]
    return Candidate(key, Version.parse(text), text)


def _admits(image: ImageFacts, expression: Expression, result: GateResult, *, of: str, cited: Source) -> Entails:
    predicate = AdmitsHosts(image.reference, expression.text, result.refusals)
    return Entails(name="image", subject=None, predicate=predicate, relation=Relation("image", of), cited=cited)


def facts_of(matrix: Matrix, guards: Guards, host: Host, *, driver: str = "") -> GateFacts:
    """Return the facts of a host on which a gate is evaluated: the driver ("" when unknown), its CUDA, and the GPUs."""
    gpus = None if host.gpus is None else tuple(_gpus(matrix, guards, host))
    return GateFacts(driver=driver, cuda=cuda_of(matrix, driver), gpus=gpus)


def cuda_of(matrix: Matrix, driver: str) -> str:
    """Return the CUDA that a driver's branch natively supports; "" when the matrix does not list the branch."""
    if not driver[:1].isdigit():
        return ""
    native = matrix.native_cuda(Version.parse(driver))
    return str(native) if native is not None else ""


def _gpus(matrix: Matrix, guards: Guards, host: Host) -> Iterator[GateGpu]:
    kinds = {gpu.name: gpu.kind for gpu in matrix.gpus}
    for gpu in host.gpus or ():
        arch = guards.device(gpu) or ""
        if arch.startswith("gfx"):
            continue
        label = " ".join(filter(None, ("gpu", arch, f"({gpu.name})" if gpu.name else "")))
        yield GateGpu(arch=arch, brands=brands_of(gpu.name or "", kinds.get(gpu.name or "", "")), label=label)


def brands_of(name: str, kind: str) -> tuple[str, ...]:
    """Return the brand names that the driver may report for a GPU; () when they are unknown.

    `name` is the name of the GPU and `kind` its kind in the matrix. NVML reports the brand of a board (nvml.h,
    nvmlBrandType_t), and drivers have not always reported the same: a board with the brand Tesla in 2020 has the brand NVIDIA
    today. libnvidia-container knows seven of the names, and reports every other brand as unknown (src/driver.c).
    """
    upper = name.upper()
    if kind == "geforce":
        return ("titan", "titanrtx") if "TITAN" in upper else ("geforce", "geforcertx")
    if upper.startswith("TESLA"):
        return ("tesla",)
    if kind == "datacenter":
        return ("nvidia", "nvidiartx", "tesla", "unknown") if "RTX" in upper else ("nvidia", "tesla", "unknown")
    if kind == "workstation":
        if "QUADRO" in upper:
            return ("quadro", "quadrortx", "unknown") if "RTX" in upper else ("quadro",)
        return ("nvidia", "nvidiartx", "quadro", "quadrortx", "unknown")
    return ()
