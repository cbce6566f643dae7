"""Doubts as sentences: the component, the unknown fact, and how to state or find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import COMPONENTS
from provisioner.grounds import doubt as of
from provisioner.words.ground import LABELS, request_words
from provisioner.words.notation import bounds_words, listed, undated
from provisioner.words.predicate import predicate_words

if TYPE_CHECKING:
    from provisioner.grounds.doubt import Doubt


MOST_FAILING = 3
"""The most unusable releases that a doubt about a host's release series lists."""


_OF_IMAGES = {"glibc": "glibc", "python": "Python"}
"""Facts of a base image, as keys of the spec and as spelled in sentences."""


def doubt_words(doubt: Doubt) -> str:
    """Return a doubt as one sentence that begins with its component."""
    return f"{doubt.component}: {_words(doubt)}"


def assumption_words(doubt: Doubt) -> str:
    """Return a doubt that is listed as an assumption as one sentence that states the assumption."""
    match doubt:
        case of.Unstated(host=host, reason=reason):
            return f"{doubt.component}: {host} does not state it, and is taken to have what the stack needs{_reason(reason)}"
        case of.UndocumentedKernel(host=host, driver=driver, kernel=kernel, documented=documented):
            if documented is None:
                return f"{doubt.component}: no kernel is documented for driver {driver}, which {host} is taken to run"
            known = f"driver {driver} is documented on kernel {documented}"
            return f"{doubt.component}: {known}; {host} states {kernel}, and is taken to run it there"
        case of.UnreachedLibraries(sonames=sonames):
            return f"{doubt.component}: the program is taken to import torch before it, so that it finds {listed(sonames)}"
    return doubt_words(doubt)


def _lacks_of_system(doubt: of.LacksOfSystem) -> str:
    needs = f"{doubt.subject.label} needs {listed(doubt.names)}{f' ({doubt.because})' if doubt.because else ''}"
    if doubt.packages:
        return f"{needs}; the image is without, `image: {{apt: [{', '.join(doubt.packages)}]}}` adds it"
    if not doubt.distribution:
        return f"{needs}, which {doubt.image} is taken to have"
    if doubt.bases:
        return f"{needs}; {doubt.image} is without, `image: {{base: {doubt.bases[0]}}}` has it"
    if doubt.is_of_tools:
        return f"{needs}; neither {doubt.image} nor a package of its distribution has it"
    return f"{needs}, and the matrix knows no package of {doubt.distribution} with it"


def _words(doubt: Doubt) -> str:
    match doubt:
        case of.Unstated(host=host, reason=reason, profile_key=key):
            return f"{host} does not state it{_reason(reason)}{_settled_by(key)}"
        case of.UnstatedGpus(host=host, profile_key=key):
            return f"{host} does not state its GPUs, so no compiled target was compared{_settled_by(key)}"
        case of.NamelessGpu(host=host, index=index):
            text = f"a GPU of {host} states neither name nor compute_capability"
            return f"{text}; state one in `gpus[{index}]` of its profile (`provision inspect` writes one)"
        case of.MissingToolkit(host=host):
            return f"{host} has none, without which no container is given a GPU; install it"
        case of.UnknownImage(reference=reference, unknown=keys):
            were = f"{listed([_OF_IMAGES[name] for name in keys])} {'was' if len(keys) == 1 else 'were'} not compared"
            stated = ", ".join(f"{name}: …" for name in keys)
            them = "it" if len(keys) == 1 else "them"
            return f"the matrix does not know base image {reference}, so its {were}; `image: {{{stated}}}` states {them}"
        case of.TakenForKnown(reference=reference, known=known):
            return f"{reference} is taken to be {known}, by its name"
        case of.OwnFramework(reference=reference, brought=brought, subject=subject):
            own = f"{reference} brings {subject.name} {brought}, with its libraries on LD_LIBRARY_PATH"
            return f"{own}; whether {subject} loads them or its own is not known; `image: {{base: auto}}` takes one without"
        case of.UnpinnedImage(reference=reference):
            return f"{reference} is not pinned by digest"
        case of.UndatedPackages(names=names):
            return undated(names)
        case of.UnmeasuredTargets(subject=subject):
            return f"nobody has measured which GPUs {subject} is compiled for"
        case of.SilentRows(subject=subject, object=name):
            label = COMPONENTS[name].label if name in COMPONENTS else name
            return f"no row says which {label} {subject} goes with; `provision matrix check` lists such releases"
        case of.UnmeasuredWheel(subject=subject, uploaded=uploaded, older_than=older_than):
            settle = "`provision matrix refresh wheels --measure` reads it"
            old = f", which was uploaded {uploaded} and{predicate_words(older_than)}" if older_than is not None else ""
            return f"nobody has measured for which GPUs {subject} has code{old}; {settle}"
        case of.DeclaredForOthers(subject=subject, targets=targets, gpus=gpus, has_ptx=has_ptx):
            named = listed([f"gpu {one}" for one in gpus])
            runs = f"of which {named} runs PTX alone, with `ptx-jit` in `policy.allow`"
            runs = runs if has_ptx else f"of which none runs on {named}"
            said = f"the recipe of its project compiles {subject} for {listed(targets)}, {runs}"
            return f"{said}; nobody has read the wheel itself"
        case of.MissingLibraries():
            return _missing_libraries(doubt)
        case of.LacksOfSystem():
            return _lacks_of_system(doubt)
        case of.UnreadWheels(distributions=wheels):
            link = f"{listed(wheels)} {'links' if len(wheels) == 1 else 'link'}"
            read = f"nobody has read which libraries of the system {link} to"
            return f"{read}; where an import lacks one, `image: {{apt: […]}}` adds its package"
        case of.UnreachedLibraries(subject=subject, sonames=sonames, is_of_pytorch=True):
            return f"{subject.label} finds {listed(sonames)} only in a program that imports torch before it"
        case of.UnreachedLibraries(subject=subject, sonames=sonames, providers=providers, folders=folders, call=call):
            where = f"{listed(providers)} {'has' if len(providers) == 1 else 'have'} in {listed(folders)}"
            way = f"start the program with {'that folder' if len(folders) == 1 else 'these folders'} on LD_LIBRARY_PATH"
            way = f"have the program call `{call}` first, or {way}" if call else way
            return f"{subject.label} needs {listed(sonames)}, which {where}, and looks elsewhere; {way}"
        case of.ShadowedLibrary(host=host, library=library, stated=stated, chosen=chosen, variables=variables):
            where = f"{host} has {library} {stated} in a directory of {listed(variables)}, which the loader searches"
            way = f"start the program without {'it' if len(variables) == 1 else 'them'}"
            return f"{where} before that of {library} {chosen}; {way}"
        case of.NothingAccelerated(accelerator=accelerator, instead=instead):
            swaps = listed([f"{twin} instead of {name}" for name, twin in instead])
            way = f"ask for {swaps}, or leave `accelerator` out" if swaps else "leave `accelerator` out if the CPU will do"
            wish = LABELS.get(accelerator, accelerator)
            return f"you ask for {wish}, and nothing in the answer is known to compute on it; {way}"
        case of.Unrealised(subject=subject, image=image, distribution=distribution):
            pin = f"{distribution}=={subject.label}" if doubt.is_version else distribution
            ways = [f"add `{pin}` to `packages`"] if distribution else []
            ways.extend([f"take `image: {{base: {doubt.base}}}`"] if doubt.base else [])
            ways.extend(["write `host-script`, which installs it, under `outputs`"] if doubt.is_installed else [])
            way = f"; {', or '.join(ways)}" if ways else ""
            place = f"base image {image}" if image else "the host"
            return f"the lock has nothing that installs {subject.label}, and {place} is not known to have it{way}"
        case of.FromSource(subject=subject):
            return f"{subject} is compiled from source: no binary is published"
        case of.UnlistedBundle(carrier=carrier):
            return f"{carrier} carries a release that the matrix does not list, so what it needs is not known"
        case of.UnreadLine(ground=ground, python=python):
            applies = f"which applies with Python {python}, " if python else ""
            return f"`{request_words(ground)}`, {applies}was left aside: it names a Python, and no packages were solved"
        case of.UnsupportedOverride(devices=devices, runs_as=runs_as, settings=settings, because=because):
            named = " ".join(f"{name}={value}" for name, value in settings)
            return f"{', '.join(devices)} runs code for {runs_as} with {named}, which nobody supports: {because}"
        case of.UnsupportedGpu(device=device, rocm=rocm):
            return f"{device} has code in the build, but AMD does not list it as supported by ROCm {rocm}"
        case of.ApartGpus(host=host, subject=subject, devices=devices, because=because):
            return f"{host} has several GPUs, and {subject} has no kernels for {listed(devices)}: {because}"
        case of.UndocumentedKernel(host=host, driver=driver, documented=None):
            return f"no kernel is documented for driver {driver} of {host}"
        case of.UndocumentedKernel(host=host, driver=driver, kernel=kernel, documented=documented):
            return f"driver {driver} is documented on kernel {documented}; {host} states {kernel}"
        case of.Unexpected(subject=subject, needs=needs, bound=bound, chosen=chosen, because=because):
            expected = because or f"{subject} is expected to need {needs} {bounds_words((bound,))}, which no source states"
            return f"{expected}; {needs} {chosen} was chosen"
        case of.OtherMinorNvcc(nvcc=nvcc, cuda=cuda, host=host):
            where = f" of {host}" if host else ""
            return f"{nvcc}{where} is not of CUDA {cuda}, the framework's; PyTorch warns of another minor release"
        case of.AssumedMacosBuild(host=host, build=build):
            return f"{host} does not state its build; {build} was assumed"
        case of.UnlistedSeries(host=host, version=version, newest=newest, is_judged=is_judged):
            if not newest:
                return f"the matrix knows nothing like {version} of {host}, so what goes with it is not known"
            judged = f", and was judged as {newest}" if is_judged else ""
            known = f"{version} of {host} is newer than all that the matrix knows (up to {newest}){judged}"
            return f"{known}, so what goes with it is not known"
        case of.StatedSeries(host=host, series=series, assumed=assumed, failing=failing, profile_key=key):
            known = f"{series} without a release"
            more = len(failing) - MOST_FAILING
            shown = (*failing[:MOST_FAILING], *([f"{more} more"] if more > 0 else []))
            others = f"; {listed(shown)} would not do" if failing else ""
            return f"{host} states {known}, and {assumed} was assumed{others}{_settled_by(key)}"
        case of.BroughtFramework(framework=framework, version=version, install=install):
            name = f"name `{install}` to have that" if install else "the matrix has none for this target"
            return f"{framework} {version} comes along with other packages, without its GPU build; {name}"
        case of.FindsLibrary(framework=framework, version=version, library=library, bound=bound):
            needs = f"{library.name} {bounds_words((bound,))}"
            return f"{framework} {version} finds {library} beside it and uses it on a GPU, but was built for {needs}"
        case of.AssumedDriver(host=host, version=version, profile_key=key):
            return f"{host} has a driver and does not state its version; {version} was assumed{_settled_by(key)}"
        case of.NamelessForward(host=host, profile_key=key):
            return f"{host} does not name its GPUs, and forward compatibility is for data-centre GPUs only{_settled_by(key)}"
        case of.UnlistedBranches(host=host, driver=driver, cuda=cuda, native=native):
            older = f"driver {driver} of {host} is older than the cuda-compat {cuda} of the base image, which containers load"
            unknown = "no source lists the driver branches that this supports; on others CUDA fails (error 803)"
            return f"{older}, and {unknown}{f'; drivers from {native} on do not load it' if native else ''}"
        case of.SkippedClause(clause=clause, reference=reference):
            what = f"`{clause}` in the NVIDIA_REQUIRE_CUDA of {reference}"
            return f"{what} is about nothing that runtimes know: one runtime skips it, another refuses it"
        case of.UndecidedGate(reference=reference, host=host, properties=properties, profile_key=key):
            lets_in = f"whether the NVIDIA_REQUIRE_CUDA of {reference} lets {host} in"
            return f"{lets_in} depends on its {' and '.join(properties)}, which is not known{_settled_by(key)}"
        case of.UndatedRelease(label=label):
            return f"no source says when {label} was released, so it may be of this week"
        case of.UndatedFile(label=label, index=index):
            return f"index {index} gives no upload time of {label}, so it may be of this week"
        case of.UndesignatedBranch(branch=branch):
            return f"no source says whether branch {branch} is a production branch or a feature branch"
        case of.BuiltMetadata(filename=filename):
            return f"what {filename} requires was found by building it on one machine; another may find something else"
        case of.PackedMetadata(filename=filename):
            return f"what {filename} requires is what it was packed with; it leaves the last word to its build"
    raise TypeError(f"no words for {type(doubt).__name__}")


def _reason(reason: of.NeededBy | of.Undecided | None) -> str:
    match reason:
        case None:
            return ""
        case of.NeededBy(needs=needs, bound=bound, subject=subject, rule=rule):
            who = str(subject) if subject is not None else f"rule {rule}"
            return f", and {who} needs {needs} {bounds_words((bound,))}"
        case of.Undecided(table=table, name=name, because=because):
            return f", so whether {table} {name} holds is unknown: {because}"


def _settled_by(profile_key: str) -> str:
    return f"; state `{profile_key}` in its profile (`provision inspect` writes one)" if profile_key else ""


def _missing_libraries(doubt: of.MissingLibraries) -> str:
    where = "nor the image has" if doubt.in_container else "is known to have, unless the host has it"
    lead = "neither the lock" if doubt.in_container else "nothing in the lock"
    if doubt.runtime:
        there = f"install {doubt.runtime}, or state it as `libraries.rocm` if it is there"
        way = f"take an `image` that has {doubt.runtime}" if doubt.in_container else there
    elif doubt.providers:
        image = ", or take `image: {base: cuda-runtime}`" if doubt.in_container else ""
        found = "" if doubt.is_reached else f" and {'its' if len(doubt.providers) == 1 else 'their'} folders to LD_LIBRARY_PATH"
        way = f"add {listed(doubt.providers)} to `packages`{found}{image}"
    else:
        where = "nor the image is known to have" if doubt.in_container else where
        they = "it" if len(doubt.sonames) == 1 else "them"
        way = f"take an `image` that has {they}" if doubt.in_container else f"install {they} there"
    return f"{doubt.subject.label} needs {listed(doubt.sonames)}, which {lead} {where}; {way}"
