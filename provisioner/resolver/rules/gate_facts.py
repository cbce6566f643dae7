"""A host as a container gate sees it: its driver, the CUDA that driver knows, and of each GPU capability and brand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.gate.evaluate import GateFacts, GateGpu
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.rules.guards import Guards


def facts_of(matrix: Matrix, guards: Guards, host: Host, *, driver: str = "") -> GateFacts:
    """What a gate would know of a host with a driver; `driver` "" stands for one that is unknown, and so is its CUDA."""
    gpus = None if host.gpus is None else tuple(_gpus(matrix, guards, host))
    return GateFacts(driver=driver, cuda=cuda_of(matrix, driver), gpus=gpus)


def cuda_of(matrix: Matrix, driver: str) -> str:
    """The CUDA a driver knows, by its branch; "" when the matrix does not list the branch."""
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
    """The brands a GPU may be reported as; () when that is anybody's guess.

    NVML names the brand of a board (nvml.h, nvmlBrandType_t), and drivers have not always named the same: a Tesla of 2020 is
    an NVIDIA today. libnvidia-container knows seven of the names, and calls every other brand unknown (src/driver.c).
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
