"""Predicates as the second half of a sentence, after its subject, in the singular or the plural."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.grounds import predicate as of
from provisioner.words.gate import refusal_words
from provisioner.words.notation import bounds_words, component_words, listed, needed_words, source_words, value_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.bound import Drivers
    from provisioner.grounds.predicate import Predicate

LONGEST_EXPRESSION = 60
"""The longest NVIDIA_REQUIRE_CUDA in characters that is printed whole rather than as its first alternative."""

MOST_SONAMES = 2
"""The number of libraries that a wheel links to which are named."""


def predicate_words(predicate: Predicate, *, plural: bool = False) -> str:
    """Return a predicate, beginning with a space or colon: ` needs cuda ==12.6.*`, `: no wheel for cp313 on linux/amd64`."""
    text = _words(predicate, plural=plural)
    return text if text.startswith(":") else f" {text}"


def _words(predicate: Predicate, *, plural: bool) -> str:
    need, be = ("need", "are") if plural else ("needs", "is")
    match predicate:
        case of.Needs(component=component, bounds=bounds, because=because):
            return f"{need} {needed_words(component, bounds)}{_because(because)}"
        case of.NeedsOutside(component=component, excluded=excluded, because=because):
            return f"{need} {component_words(component)} outside {excluded}{_because(because)}"
        case of.NeedsDriver(bounds=bounds, is_minor_version_forbidden=is_forbidden, is_compat_harmful=is_harmful):
            why = _why_no_other_driver(bounds, is_forbidden=is_forbidden, is_compat_harmful=is_harmful)
            return f"{need} driver {bounds_words(bounds)}{why}"
        case of.NeedsCudaCompat(driver=driver):
            return f"{need} a base image with cuda-compat, for the host's driver is {driver}"
        case of.NeedsNativeDriver(gpus=gpus, cuda=cuda):
            reach = "reach" if plural else "reaches"
            return f"{reach} gpu {', '.join(gpus)} only through PTX, so the driver must know CUDA {cuda}"
        case of.BuiltOnHost():
            return _built_on_host(predicate, need)
        case of.NeedsWithin(component=component, first=first, last=last, otherwise=otherwise):
            span = first if first == last else f"{first} … {last}"
            rest = f" or{predicate_words(otherwise, plural=True)}" if otherwise is not None else ""
            return f"{need} {component_words(component)} ranges within {span}{rest}"
        case of.BuildsOn(bounds=()):
            return f"{be} documented on no kernel"
        case of.BuildsOn(bounds=bounds):
            return f"{'build' if plural else 'builds'} on kernel {bounds_words(bounds)}"
        case of.Requires():
            return _requirement(predicate, need)
        case of.RequiresFile():
            return _file(predicate, need)
        case of.BuiltFor(platforms=platforms, is_all=is_all):
            return f"{be} built for {'nothing but ' if is_all else ''}{listed(platforms, 'and' if is_all else 'or')}"
        case of.CompiledFor(targets=targets):
            return f"{be} compiled for {' '.join(targets)}"
        case of.CompiledForOthers(missing=missing, example=example, targets=targets, or_unmeasured=or_unmeasured):
            also = " or was measured by nobody" if or_unmeasured else ""
            return f"{be} compiled for other GPUs than {listed(missing)} ({example}: {' '.join(targets)}){also}"
        case of.OlderThanCompiler(gpu=gpu, cuda=cuda, released=released):
            older, has = ("are older", "they have") if plural else ("is older", "it has")
            return f"{older} than CUDA {cuda} ({released}), the first that compiles for gpu {gpu}: {has} PTX for it at best"
        case of.LinksToRocm(sonames=sonames):
            they_link = "they link" if plural else "it links"
            return f"{be} for AMD's GPUs alone: {they_link} to {listed(sonames[:MOST_SONAMES])} of ROCm"
        case of.Unmeasured():
            return f"{'were' if plural else 'was'} measured by nobody, so which GPUs it serves is unknown"
        case of.KnowsTarget(target=target, is_known=is_known):
            verb = "know" if plural else "knows"
            return f"{verb} {target}" if is_known else f"{'do' if plural else 'does'} not know {target}"
        case of.WritesFile(path=path, through=through, framework=framework):
            write = "write" if plural else "writes"
            if not through:
                return f"{write} files such as {path}"
            come = "come" if plural else "comes"
            return f"{f'of {framework} ' if framework else ''}{come} with {through}, which writes files such as {path}"
        case of.CompiledAgainst():
            return _compiled_against(predicate, be=be)
        case of.CompiledForLocal(local=local):
            return f"{be} compiled for the PyTorch build that its local version {local} names"
        case of.CompiledForNamed() | of.NeedsAbi():
            return _compiled_for(predicate, be=be, need=need)
        case of.BundlesCuda() | of.IsOfCuda():
            return _cuda(predicate, plural=plural)
        case of.NeedsLibraries():
            return _libraries(predicate, need)
        case of.TakesFromSystem(name=name, because=because, is_inferred=is_inferred):
            return f"{need} {name}{', as measured next to it' if is_inferred else ''}{_because(because)}"
        case of.BundlesCompiler(cuda=cuda, oldest=oldest, newest=newest):
            verb = "compile" if plural else "compiles"
            return f"{verb} for the GPU with the compiler of CUDA {cuda}, which knows GPUs from {oldest} to {newest}"
        case of.Bundles(component=component, version=version, needs=needs):
            verb = "carry" if plural else "carries"
            return f"{verb} {value_words(component, version)}{f', which{predicate_words(needs)}' if needs is not None else ''}"
        case of.InstalledAs(name=name, bounds=bounds):
            return f"{be} installed as {name}{bounds_words(bounds)}"
        case of.InstalledFromWheel():
            return f"{be} installed from {'their' if plural else 'its'} wheel"
        case of.NoFile(problem=problem):
            return f": {problem}"
        case of.LacksExtra(extra=extra, since=since):
            return f"{'have' if plural else 'has'} no extra `{extra}`, which {since} has"
        case of.NoWheel(problem=problem):
            return f"cannot be installed: {problem}"
        case of.Unpublished():
            return f"cannot be locked: {'they are' if plural else 'it is'} compiled from source, no binary is published"
        case of.IsForHolders():
            return f"{be} for who names this file"
        case of.NamesFile():
            return f"{'name' if plural else 'names'} the file"
        case of.IsExtraOf(name=name):
            return f"{be} {name}"
        case of.BuildsPatched(kernel=kernel, carriers=carriers):
            return f"{'build' if plural else 'builds'} on kernel {kernel} only with the patches of {listed(carriers, 'or')}"
        case of.AdmitsHosts(expression=expression, refusals=refusals):
            failing = f"; {'; '.join(map(refusal_words, refusals))}" if refusals else ""
            return f"{'let' if plural else 'lets'} in hosts with {shortened(expression)}{failing}"
        case of.WrittenBySeveral(path=path):
            return f"{path} would be written by several packages"
        case of.NoToolkit():
            return "containers reach the GPU through the NVIDIA Container Toolkit, and none is installed"
    return _lifecycle(predicate, be)


def _built_on_host(predicate: of.BuiltOnHost, need: str) -> str:
    if predicate.branches:
        signed = f"signed modules for kernel {predicate.kernel} of driver {listed(predicate.branches)} only"
    else:
        signed = f"no signed modules for kernel {predicate.kernel}, but for {listed(predicate.kernels)}"
    lack = "and none are installed" if predicate.component == "kernel_headers" else ""
    for_what = f"the headers of its kernel, {lack}" if lack else "an enrolled key (mokutil --import)"
    why = f"{predicate.system} has {signed}, and what is built on the host needs {for_what}"
    return f"{need} {needed_words(predicate.component, predicate.bounds)}: {why}"


def _why_no_other_driver(bounds: Sequence[Drivers], *, is_forbidden: bool, is_compat_harmful: bool) -> str:
    if is_compat_harmful and any(one.forward for one in bounds):
        return ", for the image's cuda-compat is put before an older one, and supports no other branch (error 803)"
    if is_compat_harmful:
        return ", for the image's cuda-compat is put before an older one, which only data-centre GPUs support (error 804)"
    return ", for the spec does not allow minor-version compatibility" if is_forbidden else ""


def _lifecycle(predicate: Predicate, be: str) -> str:
    match predicate:
        case of.Ended(end=end, branch=branch):
            return f"{be} of branch {branch}, which ended {end}" if branch else f"ended {end}"
        case of.IsPrerelease(stage=stage):
            return f"{be} a {stage or 'prerelease'}"
        case of.IsOfBranch(branch=branch, designation=designation):
            named = f"a {designation}" if designation else ""
            return f"{be} of branch {branch}, {named or 'of which no source says that it is a production or long-term branch'}"
        case of.IsRecent(released=released, day=day, is_after=is_after):
            was = "were" if be == "are" else "was"
            return f"{was} released {released}, {'after' if is_after else 'less than a week before'} {day}"
    raise TypeError(f"no words for {type(predicate).__name__}")


def _libraries(predicate: of.NeedsLibraries, need: str) -> str:
    has = f"{listed(predicate.bearers, 'or')} has" if predicate.bearers else "nothing else in the answer has"
    like = ", as measured next to it" if predicate.is_inferred else ""
    return f"{need} {listed(predicate.sonames)}{like}, which {has}"


def _compiled_against(predicate: of.CompiledAgainst, *, be: str) -> str:
    index = predicate.index
    also = ", or for one with CUDA where that is a CPU build" if predicate.or_with_cuda else ""
    if predicate.accelerator:
        meant, wanted = ACCELERATORS[predicate.accelerator].label, ACCELERATORS[predicate.wanted].label
        why = ": the hosts state that they have no GPU" if predicate.has_no_gpu else ""
        also = f", which is for {meant} and not for {wanted}{why}"
    return f"from the {index} index {be} compiled for the PyTorch build of the {index} index{also}"


def _compiled_for(predicate: of.CompiledForNamed | of.NeedsAbi, *, be: str, need: str) -> str:
    if isinstance(predicate, of.NeedsAbi):
        abi = "new" if predicate.is_new else "old"
        return f"{need} a build of the {abi} C++ ABI of PyTorch: its libraries call functions by their names in that ABI"
    label = ACCELERATORS[predicate.accelerator].label
    built = f"with {label} {predicate.release}" if predicate.release else "for the CPU"
    abi = "" if predicate.is_new_abi is None else f" and the {'new' if predicate.is_new_abi else 'old'} C++ ABI"
    return f"{be} compiled for PyTorch {predicate.series} {built}{abi}, as the name of the file says"


def _cuda(predicate: of.BundlesCuda | of.IsOfCuda, *, plural: bool) -> str:
    if isinstance(predicate, of.IsOfCuda):
        return f"{'are' if plural else 'is'} for CUDA {predicate.cuda}, which{predicate_words(predicate.needs)}"
    verb, needs = "bring" if plural else "brings", predicate_words(predicate.needs)
    return f"{verb} CUDA {predicate.major}, which{needs}{_because(predicate.because)}"


def _because(because: str) -> str:
    return f": {because}" if because else ""


def _requirement(predicate: of.Requires, need: str) -> str:
    """Return a requirement such as `needs numpy<2`; `need` is the verb, `need` or `needs`.

    A space follows the distribution's name if there are several alternatives or the matrix gives a reason.
    """
    texts = [bound.text for bound in predicate.bounds]
    gap = " " if predicate.because or len(texts) > 1 else ""
    spelled = texts[0] if len(texts) == 1 else bounds_words(predicate.bounds)
    note = ", and names no pre-release: policy `allow: [prerelease]` would take one" if predicate.is_final_only else ""
    return f"{need} {predicate.name}{gap}{spelled}{_because(predicate.because)}{note}"


def _file(predicate: of.RequiresFile, need: str) -> str:
    text = f"{need} {predicate.name} @ {predicate.url}"
    if predicate.is_for_specs:
        return f"{text}, and only a spec may name that file"
    if predicate.instead:
        return f"{text}, where the spec names {predicate.instead} ({source_words(predicate.place)})"
    return f"{text}{_because(predicate.problem)}"


def shortened(expression: str) -> str:
    """Return an NVIDIA_REQUIRE_CUDA value in backticks; a long one is cut to its first alternative and the number of others."""
    if len(expression) <= LONGEST_EXPRESSION:
        return f"`{expression}`"
    first, *others = expression.split()
    return f"`{first}` or {len(others)} more alternatives" if others else f"`{first[: LONGEST_EXPRESSION - 1]}…`"
