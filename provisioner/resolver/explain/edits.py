"""Edits of the inputs that may resolve a conflict, and their costs; `fixes` verifies them by solving again.

A group is a set of requirements that a person could change together, such as a line of the spec or a fact of a host; a conflict
is given by its groups, which cannot hold together. Requests and facts in a conflict are relaxed directly: the search drops
their clauses. The set of hosts and the lines that shape a problem before it is solved (policy, base image, Python, constraints)
are edited in the request, from which a new problem is then made.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import Requirement as Pep508
from packaging.utils import canonicalize_name

from provisioner.accelerators import RUNTIMES
from provisioner.components import COMPONENTS, DRIVERS, FRAMEWORKS, Effort
from provisioner.errors import ProvisionError
from provisioner.grounds.edit import (
    LEFT_OUT,
    AddDistributions,
    CompileFromSource,
    DropBound,
    DropComponent,
    DropDistribution,
    DropHashes,
    DropHost,
    DropRequest,
    DropRequiresPython,
    LeaveWsl1,
    SetAccelerator,
    SetArchitecture,
    SetArchitectures,
    SetComponent,
    SetDistribution,
    SetExtras,
    SetFact,
    SetImage,
    SetPolicyWords,
    SetRuns,
    SetStrategy,
    SetTwin,
)
from provisioner.grounds.predicate import NeedsLibraries
from provisioner.grounds.requirement import (
    WHEEL,
    CompilesFor,
    CompilesOnlyFor,
    Constrains,
    Entails,
    FactOf,
    FixesPython,
    Forbids,
    GivesHashes,
    NeedsToBeUsed,
    Overrides,
    Relation,
    RequiresComponent,
    RequiresDistribution,
    RequiresPython,
    SpecLine,
)
from provisioner.resolver.choices.frameworks import is_taken_as_named
from provisioner.resolver.explain.relaxable import Relaxable, for_another_accelerator, installed, nearest, today
from provisioner.resolver.python.libraries import LIBRARIES, cuda_of
from provisioner.resolver.requirement import PACKAGE, FileCandidate, Key, Requirement, Within, build_of, is_of_system
from provisioner.resolver.rules.facts import virtualizations
from provisioner.resolver.rules.images import KINDS, WITH_LIBRARIES, images_named
from provisioner.resolver.rules.lifecycle import is_prerelease
from provisioner.versions import Range, Version, without_local

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Ground, Group
    from provisioner.matrix.model import Gpu, Matrix
    from provisioner.request import Request
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.complete import CompleteSearch
    from provisioner.resolver.search.instance import ProblemInstance

BUILD, BOUND, RUNS, RELOAD, NO_GPU = "build", "bound", "runs", "reload", "no gpu"
"""The names of changes that are not of one component. `BUILD` takes another build of the same release, `BOUND` drops a
constraint, an override or hashes, `RUNS` changes between container and host, `RELOAD` loads a driver that is installed already,
and `NO_GPU` computes on the CPU."""

_NUMBER = re.compile(r"\d+")

_OF_CUDA = re.compile(r"(.+-cu(?:da-?)?)(\d{1,2})(\d?)x?")
"""The name of a distribution for some releases of CUDA, and the digits of these: `cupy-cuda12x`, `spconv-cu118`."""

_ENDS = ("-cu", "-cuda", "-cuda-")
"""What stands between the name of a project and the digits of CUDA in the names of its distributions."""

_NEWEST = 99
"""More than any major release of CUDA."""

MOST_TWINS = 4
"""The number of distributions for other releases of CUDA that are tried in place of a requested one."""

Cost = tuple[int, int, int]
"""The effort of a change, then its depth in the conflict (see `Costs._depth`), and its place among changes of the same effort.

Lower is cheaper.
"""

_COSTS: dict[str, tuple[int, int]] = {
    **{row.name: (row.effort, place) for place, row in enumerate(COMPONENTS.values()) if row.effort is not None},
    BUILD: (Effort.BUILD, -1),
    RELOAD: (Effort.RELOAD, 0),
    NO_GPU: (Effort.NO_GPU, 0),
    BOUND: (Effort.POLICY, 0),
    RUNS: (Effort.CONTAINER, 0),
    # A driver that its distribution patched for a kernel is less sure than another driver, and nearer than another kernel.
    "patched-kernel": (Effort.DRIVER, len(COMPONENTS)),
    LEFT_OUT: (Effort.FEWER_REQUESTS, 0),
}


class Costs(Struct, frozen=True):
    """The costs of the changes that may resolve one conflict, which is given by its groups."""

    groups: tuple[Group, ...]

    def of(self, change: str, name: str = "") -> Cost:
        """Return the cost of a change of the component or distribution `name`, by default the one that `change` names.

        `change` is a component, or a change of no component such as `BUILD`; any other word has the cost of a distribution.
        """
        effort, place = _COSTS.get(change, _COSTS["package"])
        return effort, self._depth(name or change), place

    def _depth(self, name: str) -> int:
        """Return how far a component is from those that need nothing else in the conflict: 0 to 2.

        0: something in the conflict needs it and it needs nothing. 2: it needs something and nothing needs it. 1 otherwise.
        """
        relations = [group for group in self.groups if isinstance(group, Relation)]
        is_needed = any(one.object == name for one in relations)
        is_needy = any(one.subject.partition("[")[0] == name for one in relations)
        return 1 + is_needy - is_needed

    def of_edit(self, edit: Edit) -> Cost:
        """Return the cost of an edit of the lines that shape a problem, such as the policy or the base image."""
        match edit:
            case SetExtras(extras=extras, before=before):
                is_swap = extras.count(",") == before.count(",") and bool(extras)
                return self.of(BUILD if is_swap else LEFT_OUT, edit.name)
            case SetPolicyWords(key="allow", words=words) if words[-1] in _COSTS:
                return self.of(words[-1], "driver")
            case SetTwin(name=name, twin=twin, is_for_cpu=is_for_cpu):
                effort, depth, _ = self.of(NO_GPU if is_for_cpu else BUILD, name)
                return effort, depth, _apart(name, twin)
            case SetAccelerator(build=build) if build:
                return self.of(BUILD)
            case SetAccelerator(accelerator="cpu"):
                return self.of(NO_GPU)
            case DropBound() | DropHashes() | DropRequiresPython() | DropRequest():
                return self.of(BOUND)
        return self.of(edit.component)


def rank(costs: list[Cost]) -> tuple[int, int, list[Cost]]:
    """Return the rank of several changes together, lowest first: by the highest effort, then their number, then all costs."""
    return max(level for level, _, _ in costs), len(costs), sorted(costs)


# -- requests and facts of a conflict ------------------------------------------------------------------------------------------

RANGES = frozenset(
    {"driver", "amdgpu", "jetson", "kernel", "glibc", "gcc", "host_gcc", "clang", "container_toolkit", "cuda_driver", "xcode"}
)
"""Facts for which a fix states a range (`driver >= 550`) instead of one value, because values beyond it mostly work, too."""


def edit_of(instance: ProblemInstance, one: Relaxable, candidate: Candidate, *, costs: Costs) -> tuple[Edit, Cost]:
    """Return the edit that changes a request or fact to the value of a candidate, and its cost."""
    name = one.name
    if one.is_fact:
        shown_by = installed(instance, one).get(candidate.label, "")
        return _of_fact(instance, one, candidate, shown_by), costs.of(RELOAD if shown_by else name, name)
    lines = _grounds(instance, one)
    if name == "pytorch_build":
        build = build_of(candidate)
        assert build is not None, "every release of PyTorch has builds"
        return SetComponent(name=name, value=build.name, requests=lines), costs.of(name)
    if name == "arch_list":
        return SetArchitecture(before=one.key.name.partition(":")[2], architecture=candidate.label), costs.of(name)
    releases = {without_local(other.label) for other in instance.allowed(one.current)} if name in FRAMEWORKS else ()
    is_other_build = without_local(candidate.label) in releases
    # The request of a direct URL is changed to a version: the URL itself is requested already.
    is_direct = isinstance(candidate, FileCandidate) and candidate.is_direct
    wanted = str(candidate.pep440) if is_direct else candidate.label
    ground = one.current.ground
    edit: Edit = SetComponent(name=name, value=wanted, requests=lines)
    if isinstance(ground, RequiresDistribution):
        edit = SetDistribution(name=name, distribution=ground.distribution, value=wanted, requests=lines)
        edit = replace(edit, extras=_extras_for_gpus(instance.problem, edit, candidate))
    # A line of the spec is no hardware, also where it is about the GPU.
    change = BUILD if is_other_build else "policy" if name == "gpu" else name
    return edit, costs.of(change, name)


def _extras_for_gpus(problem: Problem, edit: SetDistribution, candidate: Candidate) -> frozenset[str]:
    """Return the extras to name with a build for GPUs, where its version alone would leave the GPUs out."""
    component, build = problem.matrix.components.get(edit.name), build_of(candidate)
    if component is None or build is None or not build.install or not is_taken_as_named(component, edit.apply(problem.request)):
        return frozenset()
    installed = Pep508(build.install)
    return frozenset(installed.extras) if canonicalize_name(installed.name) == edit.distribution else frozenset()


def left_out(instance: ProblemInstance, one: Relaxable, costs: Costs) -> tuple[Edit, Cost]:
    """Return the edit that drops a request, and its cost."""
    ground = one.current.ground
    if (edit := bound_left_out(ground)) is not None:
        return edit, costs.of_edit(edit)
    lines = _grounds(instance, one)
    if isinstance(ground, RequiresDistribution):
        return DropDistribution(name=one.name, distribution=ground.distribution, requests=lines), costs.of(LEFT_OUT)
    return DropComponent(name=one.name, requests=lines), costs.of(LEFT_OUT)


def request_left_out(ground: Ground) -> Edit | None:
    """Return the edit that drops a line of the spec, given its ground; None for a line that cannot be dropped."""
    match ground:
        case RequiresDistribution(name=name, distribution=distribution):
            return DropDistribution(name=name, distribution=distribution, requests=(ground,))
        case RequiresComponent(name=name):
            return DropComponent(name=name, requests=(ground,))
        case RequiresPython(range=text):
            return DropRequiresPython(ranges=(text,))
    return bound_left_out(ground)


def bound_left_out(ground: Ground) -> Edit | None:
    """Return the edit that drops a constraint, an override or hashes; None for the ground of any other requirement."""
    match ground:
        case Constrains(distribution=distribution, requirement=requirement):
            return DropBound(key="constraints", distribution=distribution, requirement=requirement)
        case Overrides(distribution=distribution, requirement=requirement):
            return DropBound(key="overrides", distribution=distribution, requirement=requirement)
        case GivesHashes(distribution=distribution):
            return DropHashes(distribution=distribution)
    return None


def _grounds(instance: ProblemInstance, one: Relaxable) -> tuple[Ground, ...]:
    """Return the grounds of a request: several lines may be about one distribution, and an edit changes all of them.

    What a line needs of a host in order to be used is no line of its own.
    """
    others = (root.ground for root in instance.roots if root.ground.group == one.group)
    return tuple(dict.fromkeys((one.current.ground, *(other for other in others if not isinstance(other, NeedsToBeUsed)))))


def _of_fact(instance: ProblemInstance, one: Relaxable, candidate: Candidate, shown_by: str) -> SetFact:
    now = today(instance, one)
    before = now.label if now is not None else candidate.label
    edit = SetFact(name=one.name, host=one.key.scope, value=candidate.label, today=before, shown_by=shown_by)
    return _with_products(instance, edit) if one.name == "gpu" else edit


def _with_products(instance: ProblemInstance, edit: SetFact) -> SetFact:
    """Return the edit to another GPU with the names of products: those that it replaces, the host's own, and one to take.

    The one to take is a card for servers where there is any, and not a module with a CPU of its own.
    """
    request, matrix = instance.problem.request, instance.problem.matrix
    hosts = [target.host for target in request.hosts if target.label == edit.host]
    products = tuple(gpu.name for gpu in matrix.gpus if gpu.target == edit.today)
    stated = (gpu.name or "" for host in hosts for gpu in host.gpus or () if gpu.target == edit.today or gpu.name in products)
    cards = (gpu for gpu in matrix.gpus if gpu.target == edit.value)

    def place(gpu: Gpu) -> tuple[object, ...]:
        """Return the place of a product among others with its device: variants of a card have a longer name than the card."""
        is_variant = not gpu.name[-1].isdigit()
        return bool(gpu.platform), gpu.kind != "datacenter", gpu.name.count(" "), is_variant, gpu.name

    example = next((gpu.name for gpu in sorted(cards, key=place)), "")
    return replace(edit, products=products, product=next(stated, ""), example=example)


# -- edits of the inputs that shape a problem ----------------------------------------------------------------------------------


def _relates(group: Group, subjects: Collection[str], to: str) -> bool:
    return isinstance(group, Relation) and group.subject in subjects and group.object == to


ALLOWANCES: dict[str, Callable[[Group], bool]] = {
    "minor-version": lambda group: _relates(group, {"cuda"}, "driver"),
    "forward-compat": lambda group: _relates(group, {"cuda"}, "driver"),
    "ptx-jit": lambda group: isinstance(group, Relation) and group.object == "gpu",
    "patched-kernel": lambda group: _relates(group, {"driver"}, "kernel"),
    "prerelease": lambda group: isinstance(group, SpecLine) and group.key in {"requires", "packages"},
    "image-gate": lambda group: _relates(group, {"image"}, "driver") or _relates(group, {"image"}, "gpu"),
    "end-of-life": lambda _: False,
    "shared-files": lambda _: False,
}
"""Words that a fix may add to `policy.allow` or remove from `policy.forbid`, each with a test.

The test of a word returns whether a group of a conflict suggests to change the word. A word is also tried if a requirement of
the conflict says that the policy forbids what the word permits.
"""

BASES = ("auto", "cuda-runtime")
"""Kinds of base images to try in place of the spec's image: the smallest, and one with CUDA and its newer libcuda.

One with the compilers of the toolkit is tried for what opens files of these.
"""

MOST_IMAGES = 2
"""The number of newer images of the same Linux distribution that are tried in place of the spec's image."""

MOST_LIBRARIES = 2
"""The number of sets of distributions with libraries that are tried for one wheel that needs them."""

MOST_WITHOUT_HOSTS = 3
"""The number of sets of hosts to drop that are tried."""


def edits_of_inputs(instance: ProblemInstance, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield sets of edits of the lines that shape the problem, which may resolve a conflict, cheapest first."""
    request = instance.problem.request
    roots = [root for root in instance.roots if root.ground.group in groups]
    yield from _architectures(instance, roots)
    yield from _extras(instance, groups)
    yield from _twins(instance, groups, is_for_cpu=False)
    yield from _with_libraries(instance, groups)
    yield from _accelerators(request, groups)
    yield from _accelerators_of_builds(instance, roots)
    yield from _bounds(instance, groups)
    yield from _unused(instance, roots)
    policies = list(_policies(instance, groups))
    for policy in policies:
        yield (policy,)
    images = [SetImage(base=base, before=request.spec.image.base) for base in _bases(instance, groups)]
    for image in images:
        yield (image,)
    for policy in policies:
        if isinstance(policy, SetPolicyWords) and "forward-compat" in policy.words and policy.key == "allow":
            # Forward compatibility needs an image with the newer libcuda.
            yield from ((policy, image) for image in images if image.base.startswith("cuda-"))
    yield from _containers(request, groups)
    yield from _wsl(request, groups)


def _architectures(instance: ProblemInstance, roots: Sequence[Requirement]) -> Iterator[tuple[Edit, ...]]:
    """Yield edits of the architectures to compile for: without those in the conflict, one changed, then those of the GPUs."""
    build = instance.problem.request.spec.build
    if build is None:
        return
    listed = build.arch_list
    grounds = dict.fromkeys(root.ground for root in roots)
    refused = {one.architecture for one in grounds if isinstance(one, CompilesFor)}
    rest = tuple(one for one in listed if one.removesuffix("+PTX") not in refused)
    if refused and rest:
        yield (SetArchitectures(before=listed, architectures=rest),)
    for ground in grounds:
        if isinstance(ground, CompilesOnlyFor):
            yield from ((SetArchitecture(before=one, architecture=ground.device),) for one in ground.architectures)
    keys = [key for key in instance.problem.domains if key.component == "gpu" and not key.is_package]
    devices = tuple(sorted({key.name.partition(":")[2] for key in keys}, key=Version.parse))
    if any(isinstance(one, CompilesFor | CompilesOnlyFor) for one in grounds) and len(listed) > 1 and devices:
        yield (SetArchitectures(before=listed, architectures=devices),)


def from_source(instance: ProblemInstance, groups: tuple[Group, ...]) -> CompileFromSource | None:
    """Return the edit that compiles a framework on the host, if its builds without wheels are in the conflict; else None.

    The matrix has to say how it is compiled on the system of the target.
    """
    request = instance.problem.request
    systems = [f"{one.host.os.id} {one.host.os.version}" if one.host.os is not None else "" for one in request.hosts]
    if request.runs != "host":
        return None
    for row in instance.problem.matrix.source_builds:
        if Relation(row.component, WHEEL) in groups and all(is_of_system(system, row.os) for system in systems):
            name = COMPONENTS[row.component].distribution
            lines = [str(one.specifier) for one in map(Pep508, request.spec.packages) if canonicalize_name(one.name) == name]
            ranges = dict.fromkeys((request.spec.requires.get(row.component, "*"), *lines))
            requirement = ",".join(text for text in ranges if text not in {"", "*"}) or "*"
            return CompileFromSource(name=row.component, requirement=requirement, distribution=name)
    return None


def without_gpu(instance: ProblemInstance, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edit that computes a framework on the CPU, if a GPU or its driver is in the conflict.

    Nothing is yielded if the spec requires no framework, or requires a runtime, a driver or a distribution with GPU code of its
    own, nor if a caller added requirements to the problem, such as a question.
    """
    problem, request = instance.problem, instance.problem.request
    facts = {group.component for group in groups if isinstance(group, FactOf)}
    named = {key.project for key in instance.named}
    frameworks = {name for name in FRAMEWORKS if name in request.spec.requires or COMPONENTS[name].distribution in named}
    own = named.difference(COMPONENTS[name].distribution for name in frameworks)
    is_for_gpus = any(name in request.spec.requires for name in (*RUNTIMES, *DRIVERS))
    is_for_gpus = is_for_gpus or any(row.distribution in own for row in problem.matrix.wheels)
    if not frameworks or is_for_gpus or problem.extra or request.accelerator == "cpu":
        return
    if facts.intersection({"gpu", *DRIVERS}):
        yield (SetAccelerator(accelerator="cpu", before=request.spec.accelerator or ""),)


def for_the_cpu(instance: ProblemInstance, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edits that give up the GPU for a framework (`without_gpu`), or for a distribution with a twin for the CPU."""
    yield from without_gpu(instance, groups)
    yield from _twins(instance, groups, is_for_cpu=True)


def other_pythons(instance: ProblemInstance) -> tuple[SetComponent, ...]:
    """Return the edits that require another Python, nearest first; () when the spec requires none or there are no packages."""
    request = instance.problem.request
    if instance.finder is None or "python" not in request.spec.requires:
        return ()
    text = request.spec.requires["python"]
    ground = RequiresComponent(name="python", range=text, place=request.place("requires.python"))
    asked = Requirement(Key("python"), Within(Range.parse(text)), ground)
    others = nearest(instance, Relaxable(ground.group, asked.key, asked))
    return tuple(SetComponent(name="python", value=one.label, requests=(ground,)) for some in others for one in some)


def permits_several_pythons(instance: ProblemInstance) -> bool:
    """Return whether the spec and the components permit another Python than that of the environment of `instance`."""
    asked = [root for root in instance.roots if root.key == Key("python") and not isinstance(root.ground, FixesPython)]
    pythons = (one for one in instance.problem.domains[Key("python")] if all(root.allows(one) for root in asked))
    return len(list(pythons)) > 1


def is_python_in(instance: ProblemInstance, groups: Collection[Group]) -> bool:
    """Return whether a line of the spec about Python is among `groups`."""
    roots = (root for root in instance.roots if root.ground.group in groups)
    return any(root.key == Key("python") and root.ground.is_request for root in roots)


def _extras(instance: ProblemInstance, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield edits of a requested distribution in the conflict that replace or drop one of its extras.

    A replacement is an extra whose name differs in its numbers alone, such as `cuda13` for `cuda12`.
    """
    for root in instance.roots:
        ground = root.ground
        if ground.group not in groups or not isinstance(ground, RequiresDistribution):
            continue
        extras = sorted(Pep508(ground.requirement).extras)
        name, before = ground.name, ",".join(extras)
        for extra in extras:
            rest = [other for other in extras if other != extra]
            # Without its extra a framework would silently become the one for the CPU.
            less = () if ground.name in FRAMEWORKS else ("",)
            for other in (*_like(extra, _extras_of(instance, root)), *less):
                text = ",".join(sorted(filter(None, (*rest, other))))
                yield (SetExtras(name=name, distribution=ground.distribution, extras=text, before=before),)


def _twins(instance: ProblemInstance, groups: tuple[Group, ...], *, is_for_cpu: bool) -> Iterator[tuple[Edit, ...]]:
    """Yield edits that replace a requested distribution in the conflict by one of the same modules.

    Its twins are those for other releases of CUDA, the nearest first, such as `cupy-cuda12x` of `cupy-cuda110` and of
    `cupy`, and the one for GPUs (`gpu_twin` of the matrix). With `is_for_cpu` the twin of such a one is that for the CPU.
    """
    matrix = instance.problem.matrix
    grounds = (root.ground for root in instance.roots if root.ground.group in groups)
    requested = [one for one in grounds if isinstance(one, RequiresDistribution) and one.distribution]
    names = dict.fromkeys(one.distribution for one in requested)
    for name in names:
        of_gpu = (row.gpu_twin for row in matrix.distributions if row.name == name and row.gpu_twin)
        of_cpu = (row.name for row in matrix.distributions if row.gpu_twin == name)
        like = for_other_cuda(matrix, name)[:MOST_TWINS]
        ranges = (str(Pep508(one.requirement).specifier) for one in requested if one.distribution == name)
        kept = ",".join(dict.fromkeys(filter(None, ranges)))
        for twin in (one for one in (of_cpu if is_for_cpu else (*like, *of_gpu)) if one not in names):
            # The versions of two that differ in the use of a GPU are mostly the same, and the first is nearer then.
            yield from (
                (SetTwin(name=name, twin=twin, kept=some, is_for_cpu=is_for_cpu),) for some in dict.fromkeys((kept, ""))
            )


def for_other_cuda(matrix: Matrix, distribution: str) -> list[str]:
    """Return the measured distributions of the same modules for other releases of CUDA, the nearest first, one for each major.

    They are `cupy-cuda12x` and others for `cupy-cuda110`, and for `cupy` itself, which names no CUDA.
    """
    match = _OF_CUDA.fullmatch(distribution)
    stems = (match[1],) if match else tuple(f"{distribution}{end}" for end in _ENDS)
    measured = dict.fromkeys(row.distribution for row in matrix.wheels)
    like = [other for other in measured if (found := _OF_CUDA.fullmatch(other)) and found[1] in stems]
    newest = {_series_of(other)[0]: other for other in sorted(like, key=_series_of)}
    return sorted((one for one in newest.values() if one != distribution), key=lambda other: _apart(distribution, other))


def _apart(distribution: str, twin: str) -> int:
    """Return how many major releases of CUDA two distributions of the same modules are apart.

    The newest is the nearest to a distribution that names no CUDA.
    """
    return abs((_series_of(distribution)[0] or _NEWEST) - _series_of(twin)[0])


def _series_of(distribution: str) -> tuple[int, float]:
    """Return the major and minor release of CUDA in the name of a distribution: (11, 8) for `spconv-cu118`.

    One for a whole major release (`cupy-cuda11x`) comes after those for its minor releases: it replaced them.
    """
    match = _OF_CUDA.fullmatch(distribution)
    return (int(match[2]), float(match[3] or "inf")) if match else (0, 0)


def _extras_of(instance: ProblemInstance, root: Requirement) -> tuple[str, ...]:
    """Return the extras of the newest version that a root requirement allows; () when they cannot be read.

    Those of a framework other than PyTorch are the extras with which the builds of the matrix are installed.
    """
    if not root.key.is_package:
        builds = (build_of(one) for one in instance.candidates(root.key))
        installs = {build.install for build in builds if build is not None and build.install}
        return tuple(sorted({extra for install in installs for extra in Pep508(install).extras}))
    allowed = instance.allowed(root)
    newest = next((one for one in instance.candidates(root.key) if one in allowed and not one.has_no_file), None)
    try:
        return instance.finder.extras(newest.release) if instance.finder and isinstance(newest, FileCandidate) else ()
    except ProvisionError:
        return ()


def _like(extra: str, known: Iterable[str]) -> list[str]:
    """Return the extras in `known` whose names differ from `extra` in their numbers alone, the highest first."""
    stem = _NUMBER.sub("", extra)
    same = [other for other in known if extra not in {other, stem} and _NUMBER.sub("", other) == stem]
    return sorted(same, key=lambda other: [int(number) for number in _NUMBER.findall(other)], reverse=True)


def _with_libraries(instance: ProblemInstance, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield edits that add the distributions with the libraries which wheels in the conflict need and nothing else has.

    Versions of one distribution need different libraries: those of the most preferred versions are tried, if distributions for
    one CUDA major version have all of them.
    """
    finder = instance.finder
    if finder is None or finder.required_libraries is None:
        return
    lacking = dict.fromkeys(one.subject for one in groups if isinstance(one, Relation) and one.object == LIBRARIES)
    roots = [root for root in instance.roots if root.key.is_package]
    for name in lacking:
        tried: dict[tuple[str, ...], None] = {}
        for candidate in instance.candidates(Key(name, PACKAGE)):
            if not all(root.allows(candidate) for root in roots if root.key.project == name):
                continue
            needs = [one.ground.predicate for one in finder.required_libraries.of(candidate) if isinstance(one.ground, Entails)]
            unmet = [one for one in needs if isinstance(one, NeedsLibraries) and not one.bearers and not one.is_inferred]
            if not unmet:
                continue
            names = finder.libraries.providers_of([(soname,) for one in unmet for soname in one.sonames])
            is_of_one_cuda = len(set(map(cuda_of, names))) == 1
            tried.update({tuple(names): None} if is_of_one_cuda else {})
            if len(tried) == MOST_LIBRARIES:
                break
        yield from ((AddDistributions(names=names),) for names in tried)


def cuda_images(instance: ProblemInstance) -> tuple[SetImage, ...]:
    """Return the edits that take a base image with CUDA, and with the compilers of its toolkit, in place of a smaller one.

    () if the spec names another base image or none, if the stack has no packages or is not for a container, or if no requested
    package may need CUDA libraries, or files of a toolkit. Where the spec names none, one with CUDA is taken without an edit.
    """
    request = instance.problem.request
    base = request.spec.image.base
    if instance.finder is None or request.runs != "container" or base not in {"slim", *WITH_LIBRARIES}:
        return ()
    libraries = instance.finder.libraries
    found = ["cuda-runtime"] if any(map(libraries.may_need, instance.named)) and base == "slim" else []
    found += ["cuda-devel"] if any(map(libraries.may_open, instance.named)) and base != "cuda-devel" else []
    return tuple(SetImage(base=kind, before=base) for kind in found)


def _accelerators(request: Request, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edit to the accelerator that the target implies, if the spec names another one that may cause the conflict.

    On a Mac the accelerator counts as part of every conflict, because it decides which builds are candidates. If the spec names
    the Mac's own accelerator, the CPU is tried instead, because a framework may have builds for the CPU alone.
    """
    requested = request.spec.accelerator
    if requested is None:
        return
    own = replace(request, spec=replace(request.spec, accelerator=None)).accelerator
    may_matter = request.system == "macos" or {SpecLine("accelerator"), SpecLine("platform")}.intersection(groups)
    if own != requested and may_matter:
        yield (SetAccelerator(accelerator=own, before=requested),)
    elif own == requested == "mps":
        yield (SetAccelerator(accelerator="cpu", before=requested),)


def _accelerators_of_builds(instance: ProblemInstance, roots: Iterable[Requirement]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edits to the accelerators of the builds that requests in a conflict name, and that are for another one."""
    before = instance.problem.request.spec.accelerator or ""
    for root in roots:
        found = for_another_accelerator(instance, root)
        if found is not None and found.build is not None:
            yield (SetAccelerator(accelerator=found.build.accelerator, before=before, build=found.label),)


def _containers(request: Request, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edit to run in a container, if a fact of the host that an image would provide is in the conflict."""
    components = {group.component for group in groups if isinstance(group, FactOf)}
    if request.runs != "host" or request.system != "linux":
        return
    is_of_the_system = Relation("os", "glibc") in groups  # an image brings a glibc of its own
    if is_of_the_system or any(name in COMPONENTS and not COMPONENTS[name].binds("container") for name in components):
        yield (SetRuns(runs="container", before=request.spec.runs_in),)


def _wsl(request: Request, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield, for each host in WSL 1 with facts in the conflict, the edit to leave WSL 1."""
    concerned = {group.host for group in groups if isinstance(group, FactOf)}
    for target in request.hosts:
        if target.label in concerned and virtualizations(target.host) == {"wsl1"}:
            yield (LeaveWsl1(host=target.label),)


def _bounds(instance: ProblemInstance, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edits that drop a constraint, an override, hashes or `requires-python` of the conflict."""
    problem = instance.problem
    lines: dict[Group, Ground] = {ground.group: ground for _, ground in problem.constraints}
    lines |= {ground.group: ground for ground in problem.overrides.grounds}
    lines |= {ground.group: ground for ground in instance.bounds.grounds}
    for group in groups:
        if group == SpecLine("requires-python"):
            yield (DropRequiresPython(ranges=tuple(problem.request.spec.requires_python)),)
        elif group in lines and (edit := bound_left_out(lines[group])) is not None:
            yield (edit,)


def _unused(instance: ProblemInstance, roots: Iterable[Requirement]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edit that drops what the spec names beside a framework, which may bring it and not use it.

    That is so of a compiler, such as Triton, that does not compile for a GPU of the conflict. Without a GPU it is so beside
    any other package.
    """
    request = instance.problem.request
    is_beside = request.names_framework or (request.has_no_gpu and len(request.spec.packages) > 1)
    for ground in dict.fromkeys(root.ground for root in roots):
        if isinstance(ground, NeedsToBeUsed) and is_beside:
            edit = request_left_out(ground.requested)
            if edit is not None:
                yield (edit,)


def _policies(instance: ProblemInstance, groups: tuple[Group, ...]) -> Iterator[Edit]:
    policy = instance.problem.request.spec.policy
    roots = (root.ground for root in instance.roots if root.ground.group in groups)
    forbidden = [ground for ground in roots if isinstance(ground, Forbids)]
    words = {ground.word for ground in forbidden}
    for word, is_about in ALLOWANCES.items():
        is_concerned = word in words or any(map(is_about, groups))
        if not is_concerned or (word == "prerelease" and word not in words and not _has_prereleases(instance, groups)):
            continue
        if word in policy.forbid:
            yield SetPolicyWords(key="forbid", words=tuple(one for one in policy.forbid if one != word))
        elif word not in policy.allow:
            yield SetPolicyWords(key="allow", words=(*policy.allow, word))
    if any(ground.is_by_strategy for ground in forbidden):
        yield SetStrategy(strategy="newest")


def _has_prereleases(instance: ProblemInstance, groups: tuple[Group, ...]) -> bool:
    """Return whether a pre-release could meet a request in the conflict.

    It could if a requested component has one in the matrix, or if a requested distribution has no allowed version.
    """
    components = instance.problem.matrix.components
    for root in instance.roots:
        if root.ground.group in groups and root.ground.is_request:
            component = components.get(root.key.component)
            if root.key.is_package and not instance.allowed(root):
                return True
            if component is not None and any(is_prerelease(release) for release in component.releases):
                return True
    return False


def _bases(instance: ProblemInstance, groups: tuple[Group, ...]) -> Iterator[str]:
    """Yield the base images to try in place of the spec's image: newer ones of the same kind first, then other kinds."""
    request = instance.problem.request
    lacks_libraries = any(isinstance(group, Relation) and group.object == LIBRARIES for group in groups)
    of_image = {SpecLine("image"), Relation("cuda", "driver"), Relation("image", "driver")}
    concerns_image = lacks_libraries or of_image.intersection(groups)
    if request.runs != "container" or not concerns_image:
        return
    base = request.spec.image.base
    images = instance.problem.matrix.images
    own = next(iter(images_named(instance.problem.matrix, base)), None)
    finder = instance.finder
    bearers = {group.subject for group in groups if isinstance(group, Relation) and group.object == LIBRARIES}
    opens = finder is not None and any(finder.libraries.may_open(Key(name, PACKAGE)) for name in bearers)
    kinds = dict.fromkeys((own.kind if own is not None else "", *BASES, *(["cuda-devel"] if opens else [])))
    if own is not None and own.kind not in KINDS.values():
        later = [image for image in images if image.kind == own.kind and Version.parse(image.glibc) > Version.parse(own.glibc)]
        yield from (image.reference for image in sorted(later, key=lambda image: Version.parse(image.glibc))[:MOST_IMAGES])
    is_about_glibc = Relation("image", "glibc") in groups and not lacks_libraries
    for other in kinds:
        is_for_accelerator = other == "auto" or (request.accelerator == "cuda" and not is_about_glibc)
        is_same = other == base or (other == "auto" and base == "slim")
        is_same = is_same or (is_about_glibc and other == "slim")  # `auto` is the newest of them
        if other in KINDS and not is_same and is_for_accelerator:
            yield other


def fewer_hosts(instance: ProblemInstance, search: CompleteSearch, groups: Sequence[Group]) -> Iterator[tuple[Edit, ...]]:
    """Yield sets of edits, each dropping hosts so that the clauses read so far are satisfiable.

    Each search for a set starts from a different host with facts in the conflict; at most `MOST_WITHOUT_HOSTS` sets are
    yielded.
    """
    facts = _facts_of_hosts(instance)
    found: list[frozenset[str]] = []
    for start in _concerned(facts, groups):
        gone = _gone(search, facts, start, groups)
        if gone and gone not in found and len(found) < MOST_WITHOUT_HOSTS:
            found.append(gone)
            yield tuple(DropHost(host=label) for label in facts if label in gone)


def _facts_of_hosts(instance: ProblemInstance) -> dict[str, frozenset[FactOf]]:
    """Return the groups of the facts of each host, by its label, in the order of the hosts in the target."""
    facts: dict[str, set[FactOf]] = {target.label: set() for target in instance.problem.request.hosts}
    for root in instance.roots:
        group = root.ground.group
        if isinstance(group, FactOf) and group.host in facts:
            facts[group.host].add(group)
    return {label: frozenset(some) for label, some in facts.items()}


def _concerned(facts: dict[str, frozenset[FactOf]], groups: Collection[Group]) -> list[str]:
    return [label for label, some in facts.items() if some.intersection(groups)]


def _gone(
    search: CompleteSearch, facts: dict[str, frozenset[FactOf]], start: str, groups: Sequence[Group]
) -> frozenset[str] | None:
    """Return the hosts to drop: `start`, and those still in conflict after the hosts before them were dropped.

    None when no host would remain, or when the remaining conflict has no fact of another host.
    """
    gone = {start}
    against = _kinds(facts[start].intersection(groups))
    while len(gone) < len(facts):
        dropped = frozenset[FactOf]().union(*(facts[label] for label in gone))
        core = search.refutation(without=dropped)
        if core is None:
            return frozenset(gone)
        others = [label for label in _concerned(facts, core) if label not in gone]
        if not others:
            return None
        # Of two hosts that exclude each other, drop the one that is most like those dropped before.
        gone.add(max(others, key=lambda label: len(against & _kinds(facts[label].intersection(core)))))
    return None


def _kinds(facts: Collection[FactOf]) -> set[tuple[str, str]]:
    """Return facts as pairs of component and value, without their hosts: `gpu`, `7.0`."""
    return {(fact.component, fact.value) for fact in facts}
