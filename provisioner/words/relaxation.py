"""Relaxations as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.grounds import relaxation as of
from provisioner.words.gate import refusal_words
from provisioner.words.notation import listed
from provisioner.words.predicate import predicate_words

if TYPE_CHECKING:
    from provisioner.grounds.relaxation import Relaxation


def relaxation_words(relaxation: Relaxation) -> str:
    """Return a relaxation (a feature that an answer uses and a stricter policy would refuse) as one sentence."""
    match relaxation:
        case of.DriverWay():
            return _driver_way(relaxation)
        case of.ThroughPtx(device=device, subject=subject, ptx=ptx):
            return f"gpu {device} runs {subject} through its {ptx} PTX, which the driver compiles at start"
        case of.Lifecycle(subject=subject, predicate=predicate):
            return f"{subject}{predicate_words(predicate)}"
        case of.PatchedDriver(driver=driver, kernel=kernel, carriers=carriers):
            return f"driver {driver} builds on kernel {kernel} only with the patches of {listed(carriers, 'or')}"
        case of.GateReplaced(reference=reference, host=host, refusals=refusals):
            text = f"base image {reference} alone would refuse {host} ({'; '.join(map(refusal_words, refusals))})"
            return f"{text}; the NVIDIA_REQUIRE_CUDA of this stack replaces its own"
        case of.FromSdist(subject=subject, filename=filename):
            return f"{subject} is built from a source distribution, {filename}"
        case of.MixedCuda(majors=majors):
            parts = [f"CUDA {major} of {listed(holders)}" for major, holders in majors]
            names = listed([f"libcudart.so.{major}" for major, _ in majors])
            return f"{' beside '.join(parts)}: {names} load side by side, and the driver runs both"
        case of.CpuOnly():
            return _cpu_only(relaxation)
        case of.FrameworkOnCpu(install=str(install)) if install:
            return _as_named(relaxation)
        case of.FrameworkOnCpu(subject=subject, accelerator=accelerator):
            return f"{subject} runs on the CPU: the matrix has no build of it for {ACCELERATORS[accelerator].label}"
        case of.SharedFiles(subjects=subjects, path=path, because=because):
            names = listed([str(one) for one in subjects])
            return f"{names} write files such as {path}, and the one installed last is in effect: {because}"
        case of.BuiltHere(filename=filename):
            return f"what {filename} requires was found by building it on this machine, with the build requirements of today"
        case of.DirectUrl(distribution=distribution, url=url, holder=holder):
            return f"{distribution} comes from {url}, which the metadata of {holder} names"
        case of.FromSource(subject=subject):
            return f"{subject} is compiled from source: no binary is published"
        case of.Overridden(subject=subject, requirement=requirement, distribution=name, has=has, override=override):
            found = f"{name} {has}" if has else f"no {name}"
            return f"{subject} needs {requirement}, and has {found}: you override it with {override}"
        case of.Avoided(subject=subject, avoided=avoided, range=wanted, is_stated=True):
            return f"the host has {subject}, and you avoid {avoided} {wanted}"
        case of.Avoided(subject=subject, avoided=avoided, range=wanted):
            text = f"{subject} is chosen although you avoid {avoided} {wanted}"
            return f"{text}: no other was found to go with what is decided before it"
    raise TypeError(f"no words for {type(relaxation).__name__}")


def _cpu_only(relaxation: of.CpuOnly) -> str:
    why = f", which {relaxation.needed_by} needs," if relaxation.needed_by else ""
    is_compiled = relaxation.is_compiled
    on_cpu = "is compiled for the CPU unless its build is told otherwise" if is_compiled else "runs on the CPU"
    if relaxation.gpu_twin:
        instead = f"{relaxation.gpu_twin} is the one for GPUs"
    elif relaxation.gpu_wheels:
        instead = f"its project has wheels of it for GPUs at {relaxation.gpu_wheels}"
    else:
        instead = "this wheel of it has no code for GPUs"
    return f"{relaxation.subject}{why} {on_cpu}; {instead}"


def _as_named(relaxation: of.FrameworkOnCpu) -> str:
    subject, accelerator = relaxation.subject, ACCELERATORS[relaxation.accelerator].label
    text = (
        f"{subject} is installed as it is named, without what it needs for {accelerator}; on a GPU it is `{relaxation.install}`"
    )
    if relaxation.version is None or relaxation.version == subject.label:
        return text
    return f"{text}, {relaxation.version} beside the rest" if relaxation.version else f"{text}, which does not go with the rest"


def _driver_way(relaxation: of.DriverWay) -> str:
    driver, native = relaxation.driver, relaxation.native
    knows = f"driver {driver} knows CUDA {native} itself" if native else f"driver {driver}"
    cuda = f"cuda {relaxation.cuda}{f' of {relaxation.slot}' if relaxation.slot else ''}"
    if relaxation.distribution is not None:
        cuda = f"the CUDA that {relaxation.distribution} brings"
    way = "minor-version compatibility" if relaxation.way == "minor-version" else "the image's cuda-compat package"
    return f"{knows}; {cuda} runs on it by {way}"
