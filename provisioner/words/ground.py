"""Grounds of requirements as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import ABSENT, COMPONENTS
from provisioner.grounds import requirement as of
from provisioner.grounds.predicate import AdmitsHosts, IsExtraOf, NoToolkit, WrittenBySeveral
from provisioner.platforms import PLATFORMS
from provisioner.words.notation import component_words, source_words, value_words
from provisioner.words.predicate import predicate_words

if TYPE_CHECKING:
    from provisioner.grounds.predicate import Predicate
    from provisioner.grounds.requirement import Ground

MEANING = {
    "end-of-life": "nothing past its end of life",
    "feature-branch": "drivers of production and long-term branches only",
    "recent": "nothing released in the week before",
    "prerelease": "no alphas, betas and release candidates",
    "patched-kernel": "no driver that builds on its kernel only with patches",
    "shared-files": "no packages that write the same file",
}
"""The meaning of each word in `policy.forbid`, as it is printed."""

LABELS = {"cuda": "CUDA", "rocm": "ROCm", "mps": "MPS", "cpu": "CPU"}
"""Accelerators as spelled in sentences."""


def say(ground: Ground) -> str:
    """Return a ground as one sentence without its source."""
    if isinstance(ground, of.Entails):
        own = own_subject_words(ground.predicate, ground.name)
        subject = subject_words(ground.subject) if ground.subject is not None else ""
        return own if own is not None else f"{subject}{predicate_words(ground.predicate)}"
    return _fact(ground) if ground.kind == "fact" else _request(ground)


def say_with_source(ground: Ground) -> str:
    """Return a ground as one sentence, with its source in brackets if there is one."""
    source = source_words(ground.source)
    return f"{say(ground)}  ({source})" if source else say(ground)


def request_words(ground: Ground) -> str:
    """Return the requirement of a request alone: `pytorch >=2.6`, `numpy<2`; for any other ground, the result of `say`."""
    match ground:
        case of.RequiresComponent(name=name, range=wanted):
            return f"{component_words(name)} {wanted}"
        case of.RequiresDistribution(requirement=requirement) | of.Constrains(requirement=requirement):
            return requirement
        case of.AsksWhyNot(name=name, release=release):
            return value_words(name, release)
    return say(ground)


def noun_words(ground: Ground) -> str:
    """Return a request or a fact as a noun: `pytorch >=2.6`, `driver 470.256.02`; "" when there is no short name for it."""
    match ground:
        case of.RequiresComponent(name=name, range=wanted) if (row := COMPONENTS.get(name)) and row.phrases:
            return value_words(name, wanted)
        case of.RequiresComponent() | of.RequiresDistribution() | of.AsksWhyNot():
            return request_words(ground)
        case of.NeedsToBeUsed(requested=requested):
            return request_words(requested)
        case of.Constrains(requirement=requirement):
            return f"the constraint {requirement}"
        case of.Overrides(requirement=requirement):
            return f"the override {requirement}"
        case of.GivesHashes(distribution=distribution):
            return f"the hashes of {distribution}"
        case of.RequiresPython(range=wanted):
            return f"the project's python {wanted}"
        case of.PackagesNeedPython():
            return "the Python of the packages"
        case of.TargetPlatform(platform=platform):
            return platform
        case of.AsksAccelerator(accelerator=accelerator) | of.CallsForAccelerator(accelerator=accelerator):
            return f"accelerator {accelerator}"
        case of.AsksImage(base=base, has_libraries=has_libraries):
            return f"base image {base}" if base else f"a base image{' with the libraries of CUDA' if has_libraries else ''}"
        case of.Forbids(word=word, is_by_strategy=is_by_strategy):
            return "strategy stable" if is_by_strategy else f"a policy without {word}"
        case of.BuildNeeds(build=build):
            return f"a build of {'an extension' if build == 'extension' else 'PyTorch'}"
        case of.CompilesFor(architecture=architecture) | of.CompilesForGpu(architecture=architecture):
            return f"code for {architecture}"
        case of.CompilesOnlyFor(architectures=architectures):
            return f"code for {', '.join(architectures)} alone"
        case of.AsksFor(name=name, release=release):
            return value_words(name, release)
        case of.LockHas(name=name, label=label) | of.OthersGet(name=name, label=label):
            return value_words(name, label)
        case of.HostFact(name=name, value=value):
            return value_words(name, value) if value != ABSENT else f"no {component_words(name)}"
        case of.HostGpu(device=device):
            return f"gpu {device}"
        case of.NoGpu():
            return "a host without GPU"
        case of.OtherDriver(driver=driver):
            return f"driver {driver}"
        case of.NeedsSomeDriver():
            return "a driver"
    return ""


def subject_words(subject: of.Subject) -> str:
    """Return a release or a value of a component as the subject of a sentence."""
    return value_words(subject.name, subject.label) if subject.label else component_words(subject.name)


def own_subject_words(predicate: Predicate, name: str) -> str | None:
    """Return the clause of a predicate that names its own subject, `name`; None for a predicate that needs a subject."""
    match predicate:
        case WrittenBySeveral() | NoToolkit():
            return predicate_words(predicate).strip()
        case AdmitsHosts(reference=reference):
            return f"base image {reference}{predicate_words(predicate)}"
        case IsExtraOf():
            return f"{name}{predicate_words(predicate)}"
    return None


def _request(ground: Ground) -> str:
    match ground:
        case of.RequiresComponent():
            return f"you require {noun_words(ground)}"
        case of.RequiresDistribution(requirement=requirement, is_unlisted=is_unlisted):
            return f"you require {requirement}{', a build the matrix does not list' if is_unlisted else ''}"
        case of.NeedsToBeUsed(requested=requested, predicate=predicate):
            return f"{say(requested)}, which{predicate_words(predicate)}"
        case of.Constrains(requirement=requirement):
            return f"you constrain {requirement}"
        case of.Overrides(distribution=distribution, requirement=requirement):
            return f"you override {distribution} with {requirement}"
        case of.GivesHashes(distribution=distribution):
            return f"you give hashes of {distribution}, and no file for this target has one of them"
        case of.RequiresPython(range=wanted):
            return f"the project requires python {wanted}"
        case of.PackagesNeedPython():
            return "packages need a Python"
        case of.TargetPlatform(platform=platform):
            return f"the target is {platform}"
        case of.LockIsFor(accelerator=accelerator):
            return f"the lock is for accelerator {accelerator}"
        case of.AsksAccelerator(accelerator=accelerator):
            return f"you ask for accelerator {accelerator}"
        case of.AsksImage(base=base, has_libraries=has_libraries):
            if has_libraries:
                return "a base image with the libraries of CUDA is chosen, for packages need them and nothing else has them"
            return f"the base image is {base}" if base else "a base image is chosen"
        case of.AsksSystemPackage(name=name):
            return f"you ask for package {name} in the image"
        case of.Forbids(word=word, is_by_strategy=is_by_strategy, day=day):
            meaning = f"{MEANING[word]}{f' {day}' if day else ''}"
            return f"{'you ask for strategy stable' if is_by_strategy else f'you forbid {word}'}: {meaning}"
        case of.BuildNeeds(build=build, tool=tool):
            return f"you build {'an extension' if build == 'extension' else 'PyTorch'}, which needs {tool}"
        case of.CompilesOnlyFor(architectures=architectures, device=device):
            return f"you compile for {', '.join(architectures)} alone, which gpu {device} does not run"
        case of.CompilesFor(architecture=architecture, is_ptx=is_ptx):
            return f"you compile for {architecture}{', as PTX too' if is_ptx else ''}"
        case of.AsksWhyNot():
            return f"you ask why not {request_words(ground)}"
        case of.AsksFor(name=name, release=release):
            return f"you ask for {value_words(name, release)}"
        case of.LockHas(name=name, label=label):
            return f"the lock has {value_words(name, label)}"
        case of.LockedPackagesRequire(distribution=distribution):
            return f"locked packages require {distribution}"
        case of.OthersGet(name=name, label=label):
            return f"the other hosts get {value_words(name, label)}, and the plan is for one stack"
        case of.OnePlanOneStack(accelerator=accelerator):
            return f"the other hosts' GPUs call for accelerator {accelerator}, and the plan is for one stack"
        case of.PlanHas():
            return "the plan has it"
        case of.SpecPlatforms(platforms=platforms) if set(platforms) == PLATFORMS.keys():
            return f"the spec names no platform, and stacks are for {', '.join(platforms)}"
        case of.SpecPlatforms(platforms=platforms):
            return f"the spec is for {', '.join(platforms)}"
        case of.Supposes():
            return "a change was tried"
    raise TypeError(f"no words for {type(ground).__name__}")


def _fact(ground: Ground) -> str:
    match ground:
        case of.CallsForAccelerator(accelerator=accelerator):
            return f"the target's GPUs call for {accelerator}"
        case of.CompilesForGpu(architecture=architecture, host=host):
            return f"you compile for gpu {architecture} of {host}"
        case of.HostFact(name=name, value=value):
            return f"the host has {value_words(name, value) if value != ABSENT else f'no {component_words(name)}'}"
        case of.HostGpu(device=device, product=product, foreign_to=foreign_to):
            if foreign_to:
                return f"the host has gpu {device}, which {LABELS[foreign_to]} does not run on"
            return f"the host has gpu {device}{f' ({product})' if product else ''}"
        case of.NoGpu(host=host):
            return f"{host} has no GPU" if host else "the target has no GPU"
        case of.NeedsSomeDriver(host=host, is_there=is_there):
            return f"{host} needs a driver, and {'does not state its version' if is_there else 'states none'}"
        case of.LacksFact(name=name, host=host):
            return f"{host} does not state {component_words(name)}"
        case of.OtherDriver(driver=driver):
            return f"the host's GPU driver is {driver}"
    raise TypeError(f"no words for {type(ground).__name__}")
