"""GPUs that a library of the chosen runtime has no kernels for, where that excludes no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import FRAMEWORKS
from provisioner.grounds.choice import MissingKernels
from provisioner.grounds.doubt import ApartGpus
from provisioner.resolver.requirement import PYTORCH, Key
from provisioner.resolver.rules.rocm_libraries import carried_libraries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.rules.rocm_libraries import CarriedLibrary
    from provisioner.resolver.search.instance import ProblemInstance


def missing_kernels(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[MissingKernels]:
    """Yield a warning for each library without kernels for a GPU for which PyTorch uses another library."""
    if PYTORCH not in pins:
        return
    devices = dict.fromkeys(one.label for key, one in pins.items() if key.component == "gpu")
    for library in _beside(instance, pins, "slower"):
        left = tuple(device for device in devices if not library.serves(instance.problem.matrix, device))
        if left:
            yield MissingKernels(subject=library.subject, devices=left, because=library.lack.because)


def apart_gpus(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[ApartGpus]:
    """Yield a doubt for each host with several GPUs and each library without kernels for them that only such hosts need."""
    if not any(Key(name) in pins for name in FRAMEWORKS):
        return
    problem = instance.problem
    for library in _beside(instance, pins, "several-gpus"):
        for target in problem.request.hosts:
            found = [(problem.needs.guards.device(one), one.count) for one in target.host.gpus or ()]
            if sum(count for _, count in found) < 2:
                continue
            left = tuple(dict.fromkeys(one for one, _ in found if one and not library.serves(problem.matrix, one)))
            if left:
                because = library.lack.because
                yield ApartGpus(host=target.label, subject=library.subject, devices=left, because=because)


def _beside(instance: ProblemInstance, pins: Mapping[Key, Candidate], lack: str) -> Iterator[CarriedLibrary]:
    """Yield the libraries of the chosen runtimes with one meaning of their lack, except those that the spec names.

    A library that is named is held to the GPUs as a requirement.
    """
    for key, candidate in pins.items():
        if not key.is_package and key.component not in instance.problem.matrix.kernels:
            found = carried_libraries(instance.problem.matrix, candidate)
            yield from (one for one in found if one.lack.lack == lack and Key(one.name) not in pins)
