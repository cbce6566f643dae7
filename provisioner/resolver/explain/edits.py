"""Edits of the inputs that may resolve a conflict, and their costs; `fixes` verifies them by solving again.

A group is a set of requirements that a person could change together, such as a line of the spec or a fact of a host; a conflict
is given by its groups. Requests and facts in a conflict are relaxed directly, in the clauses of the search. The set of hosts
and lines that shape a problem before it is solved (policy, base image, Python, constraints) are edited in the request, and a
new problem is made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.components import COMPONENTS, CUDA_LIBRARIES, FRAMEWORKS, Effort
from provisioner.grounds.edit import (
    LEFT_OUT,
    DropBound,
    DropComponent,
    DropDistribution,
    DropHashes,
    DropHost,
    DropRequiresPython,
    OpenPython,
    SetAccelerator,
    SetArchitecture,
    SetComponent,
    SetDistribution,
    SetFact,
    SetImage,
    SetPolicyWords,
    SetStrategy,
)
from provisioner.grounds.requirement import (
    PYTHON_ATTEMPT,
    CompilesOnlyFor,
    Constrains,
    FactOf,
    Forbids,
    GivesHashes,
    Overrides,
    Relation,
    RequiresComponent,
    RequiresDistribution,
    RequiresPython,
    SpecLine,
)
from provisioner.request import may_compute_on_nvidia
from provisioner.resolver.python.libraries import LIBRARIES
from provisioner.resolver.requirement import FileCandidate, Key, ReleaseCandidate, Within, build_of
from provisioner.resolver.rules.lifecycle import is_prerelease
from provisioner.versions import without_local

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Ground, Group
    from provisioner.request import Request
    from provisioner.resolver.requirement import Candidate, Requirement
    from provisioner.resolver.search.complete import CompleteSearch
    from provisioner.resolver.search.instance import ProblemInstance


Cost = tuple[int, int]
"""The effort of a change, and its rank among changes of the same effort; lower is cheaper."""

_COSTS: dict[str, Cost] = {
    **{row.name: (row.effort, place) for place, row in enumerate(COMPONENTS.values()) if row.effort is not None},
    # Changes that are not of one component: another build of the same release, and a dropped request.
    "build": (Effort.BUILD, -1),
    LEFT_OUT: (Effort.FEWER_REQUESTS, 0),
}


def cost_of(change: str) -> Cost:
    """Return the cost of a change, named by its component, or `build` for another build, or `left out` for a dropped request.

    Any other name is that of a package.
    """
    return _COSTS.get(change, _COSTS["package"])


def rank(costs: list[Cost]) -> tuple[int, int, list[Cost]]:
    """Return the rank of several changes together, lowest first: by the highest effort, then their number, then their costs."""
    return max(level for level, _ in costs), len(costs), sorted(costs)


# -- requests and facts of a conflict ------------------------------------------------------------------------------------------

RANGES = frozenset(
    {"driver", "amdgpu", "jetson", "kernel", "glibc", "gcc", "host_gcc", "clang", "container_toolkit", "cuda_driver", "xcode"}
)
"""Facts for which a fix states a bound (`driver >= 550`) instead of one value, because values beyond it mostly work, too."""

FIXED = frozenset({"platform", "accelerator", "image", "policy"})
"""Components that are not relaxed directly: the target, which no fix changes, and those that are edited in the request."""


class Relaxable(Struct, frozen=True):
    """A request or fact that a person could change: the group of its requirements, its key and its current requirement."""

    group: Group
    key: Key
    current: Requirement

    @property
    def is_fact(self) -> bool:
        """Whether this is a fact of a host."""
        return self.current.ground.kind == "fact"

    @property
    def is_bound(self) -> bool:
        """Whether this only excludes versions, so that a fix drops it: a constraint, an override or hashes."""
        return isinstance(self.current.ground, Constrains | Overrides | GivesHashes)

    @property
    def name(self) -> str:
        """The name of the line or fact.

        It differs from the key for a constraint or override, for hashes, and for `pytorch_build`, a line of its own on
        PyTorch's key.
        """
        ground = self.current.ground
        if isinstance(ground, Constrains | Overrides):
            return f"{ground.requirement} bound"  # two equal lines are dropped together, as one change
        if isinstance(ground, GivesHashes):
            return str(self.group)
        if isinstance(ground, RequiresComponent) and ground.name == "pytorch_build":
            return "pytorch_build"
        return self.key.distribution if self.key.is_package else self.key.component

    def nearest(self, instance: ProblemInstance) -> Iterator[Sequence[Candidate]]:
        """Yield lists of values to try, nearest first; of each list, the first value that works is taken.

        For a host fact these are the newer values, then the older ones; the other way round for a kernel; all other values if
        they are not numbers. For a request they are the other builds of the same release if it is one of a framework, otherwise
        none.
        """
        candidates = instance.candidates(self.key)
        if not self.is_fact:
            yield self._same_release(candidates)
            return
        today = next((one for one in candidates if self.current.allows(one)), None)
        if today is None:
            return
        if not candidates[0].version.release:
            yield [one for one in candidates if one is not today]
            return
        newer = sorted((one for one in candidates if one.version > today.version), key=lambda one: one.version)
        older = sorted((one for one in candidates if one.version < today.version), key=lambda one: one.version, reverse=True)
        yield from (older, newer) if self.key.name == "kernel" else (newer, older)

    def _same_release(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        if self.key.component not in FRAMEWORKS or self.key.is_package:
            return []
        rows = [one for one in candidates if isinstance(one, ReleaseCandidate)]
        releases = {id(one.release) for one in rows if self.current.allows(one)}
        return [one for one in rows if id(one.release) in releases and not self.current.allows(one)]


def relaxables(instance: ProblemInstance, search: CompleteSearch, groups: Sequence[Group]) -> list[Relaxable]:
    """Return the requests and facts among some groups that a person could change.

    Left out are rules, the target, requirements added by a question or a lock, and lines that are edited in the request only,
    such as Python when there are packages.
    """
    found = []
    extra = {root.ground.group for root in instance.problem.extra}
    for group in groups:
        for parent, requirement in search.members(group)[:1]:
            one = Relaxable(group, requirement.key, requirement)
            is_open = isinstance(requirement.test, Within) and not requirement.test.range.clauses
            # The architectures to compile for follow from the GPUs, whose change changes them.
            is_derived = one.is_fact and one.name == "arch_list"
            is_fixed = is_open or is_derived or one.name in FIXED or group == PYTHON_ATTEMPT or group in extra
            is_fixed = is_fixed or one.is_bound or _is_pointless(one, instance)
            is_fixed = is_fixed or isinstance(requirement.ground, RequiresPython | CompilesOnlyFor)
            is_environment = instance.finder is not None and one.name == "python"
            if (parent is None and not is_fixed and not is_environment) or one.is_bound:
                found.append(one)
    return found


def _is_pointless(one: Relaxable, instance: ProblemInstance) -> bool:
    """Return whether a fact is the macOS of a Mac without a GPU of NVIDIA, on which no macOS runs CUDA."""
    request = instance.problem.request
    if one.name != "macos" or request.accelerator != "cuda":
        return False
    return not any(may_compute_on_nvidia(target.host) for target in request.hosts if target.label == one.key.scope)


def edit_of(instance: ProblemInstance, one: Relaxable, candidate: Candidate) -> tuple[Edit, Cost]:
    """Return the edit that changes a request or fact to the value of a candidate, and its cost."""
    name = one.name
    if one.is_fact:
        return _of_fact(instance, one, candidate), cost_of(name)
    lines = _grounds(instance, one)
    if name == "pytorch_build":
        build = build_of(candidate)
        assert build is not None, "every release of PyTorch has builds"
        return SetComponent(name=name, value=build.name, requests=lines), cost_of(name)
    if name == "arch_list":
        return SetArchitecture(before=one.key.name.partition(":")[2], architecture=candidate.label), cost_of(name)
    releases = {without_local(other.label) for other in instance.allowed(one.current)} if name in FRAMEWORKS else ()
    is_other_build = without_local(candidate.label) in releases
    # The request of a direct URL is changed to a version: the URL itself is requested already.
    is_direct = isinstance(candidate, FileCandidate) and candidate.is_direct
    wanted = str(candidate.pep440) if is_direct else candidate.label
    ground = one.current.ground
    edit: Edit = SetComponent(name=name, value=wanted, requests=lines)
    if isinstance(ground, RequiresDistribution):
        edit = SetDistribution(name=name, distribution=ground.distribution, value=wanted, requests=lines)
    return edit, cost_of("build" if is_other_build else name)


def left_out(instance: ProblemInstance, one: Relaxable) -> tuple[Edit, Cost]:
    """Return the edit that drops a request, and its cost."""
    ground = one.current.ground
    if (edit := bound_left_out(ground)) is not None:
        return edit, cost_of(edit.component)
    lines = _grounds(instance, one)
    if isinstance(ground, RequiresDistribution):
        return DropDistribution(name=one.name, distribution=ground.distribution, requests=lines), cost_of(LEFT_OUT)
    return DropComponent(name=one.name, requests=lines), cost_of(LEFT_OUT)


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
    """Return the grounds of a request: several lines may be about one distribution, and an edit changes all of them."""
    others = (root.ground for root in instance.roots if root.ground.group == one.group)
    return tuple(dict.fromkeys((one.current.ground, *others)))


def _of_fact(instance: ProblemInstance, one: Relaxable, candidate: Candidate) -> SetFact:
    today = next((other for other in instance.candidates(one.key) if one.current.allows(other)), candidate)
    is_bound = one.name in RANGES and bool(candidate.version.release)
    sign = "==" if not is_bound else "<=" if candidate.version < today.version else ">="
    gpus = instance.problem.matrix.gpus if one.name == "gpu" else ()
    products = tuple(gpu.name for gpu in gpus if (gpu.compute_capability or gpu.gfx) == today.label)
    return SetFact(name=one.name, host=one.key.scope, sign=sign, value=candidate.label, today=today.label, products=products)


# -- edits of the inputs that shape a problem ----------------------------------------------------------------------------------


def _relates(group: Group, subjects: Collection[str], to: str) -> bool:
    return isinstance(group, Relation) and group.subject in subjects and group.object == to


ALLOWANCES: dict[str, Callable[[Group], bool]] = {
    "minor-version": lambda group: _relates(group, {"cuda"}, "driver"),
    "forward-compat": lambda group: _relates(group, {"cuda"}, "driver"),
    "ptx-jit": lambda group: _relates(group, (*FRAMEWORKS, "cuda", *CUDA_LIBRARIES), "gpu"),
    "patched-kernel": lambda group: _relates(group, {"driver"}, "kernel"),
    "prerelease": lambda group: isinstance(group, SpecLine) and group.key in {"requires", "packages"},
    "end-of-life": lambda _: False,
    "shared-files": lambda _: False,
}
"""Words of `policy.allow` or `policy.forbid` that a fix may change, each with a test for groups of a conflict that suggest it.

A word is also tried if a requirement of the conflict says that the policy forbids it.
"""

BASES = ("auto", "cuda-runtime")
"""Base images to try in place of the spec's: the smallest, and the one with CUDA and its newer libcuda."""

MOST_WITHOUT_HOSTS = 3
"""How many sets of hosts to drop are tried."""


def edits_of_inputs(instance: ProblemInstance, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield sets of edits that may resolve a conflict, of lines that shape the problem, cheapest first."""
    request = instance.problem.request
    roots = [root for root in instance.roots if root.ground.group in groups]
    is_python_requested = any(root.key == Key("python") and root.ground.is_request for root in roots)
    if is_python_requested and (edit := open_python(instance)) is not None:
        yield (edit,)
    for ground in dict.fromkeys(root.ground for root in roots if isinstance(root.ground, CompilesOnlyFor)):
        yield from ((SetArchitecture(before=one, architecture=ground.device),) for one in ground.architectures)
    yield from _accelerators(request, groups)
    yield from _bounds(instance, groups)
    policies = list(_policies(instance, groups))
    for policy in policies:
        yield (policy,)
    images = [SetImage(base=base, before=request.spec.image.base) for base in _bases(request, groups)]
    for image in images:
        yield (image,)
    for policy in policies:
        if isinstance(policy, SetPolicyWords) and "forward-compat" in policy.words and policy.key == "allow":
            # Forward compatibility needs an image with the newer libcuda.
            yield from ((policy, image) for image in images if image.base.startswith("cuda-"))


def open_python(instance: ProblemInstance) -> OpenPython | None:
    """Return the edit that drops the requirement on Python; None when the spec has none or there are no packages."""
    request = instance.problem.request
    if instance.finder is None or "python" not in request.spec.requires:
        return None
    ground = RequiresComponent(name="python", range=request.spec.requires["python"], place=request.place("requires.python"))
    return OpenPython(requests=(ground,))


def cuda_image(instance: ProblemInstance) -> SetImage | None:
    """Return the edit that takes a base image with CUDA; None where it has CUDA, or no package may need its libraries."""
    request = instance.problem.request
    base = request.spec.image.base
    if instance.finder is None or request.runs != "container" or base not in {"auto", "slim"}:
        return None
    needs_libraries = any(instance.finder.libraries.may_need(key) for key in instance.named)
    return SetImage(base="cuda-runtime", before=base) if needs_libraries else None


def _accelerators(request: Request, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edit to the accelerator that the target's GPUs imply, if the spec's differs and is in the conflict.

    The accelerator of a Mac is in every conflict, for it decides which builds there are, and its frameworks may have builds for
    the CPU alone.
    """
    requested = request.spec.accelerator
    if requested is None:
        return
    own = replace(request, spec=replace(request.spec, accelerator=None)).accelerator
    if own != requested and (request.system == "macos" or SpecLine("accelerator") in groups):
        yield (SetAccelerator(accelerator=own, before=requested),)
    elif own == requested == "mps":
        yield (SetAccelerator(accelerator="cpu", before=requested),)


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

    It could if a requested component has one in the matrix, or if no version of a requested distribution is allowed.
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


def _bases(request: Request, groups: tuple[Group, ...]) -> Iterator[str]:
    lacks_libraries = any(isinstance(group, Relation) and group.object == LIBRARIES for group in groups)
    concerns_image = lacks_libraries or {SpecLine("image"), Relation("cuda", "driver")}.intersection(groups)
    if request.runs != "container" or not concerns_image:
        return
    base = request.spec.image.base
    for other in BASES:
        if other != base and not (other == "auto" and base == "slim") and (other == "auto" or request.accelerator == "cuda"):
            yield other


def fewer_hosts(instance: ProblemInstance, search: CompleteSearch, groups: Sequence[Group]) -> Iterator[tuple[Edit, ...]]:
    """Yield sets of hosts to drop, as edits, after which the clauses read so far are satisfiable.

    Each search for a set starts from another host whose facts are in the conflict; at most `MOST_WITHOUT_HOSTS` are returned.
    """
    facts = _facts_of_hosts(instance)
    found: list[frozenset[str]] = []
    for start in _concerned(facts, groups):
        gone = _gone(search, facts, start, groups)
        if gone and gone not in found and len(found) < MOST_WITHOUT_HOSTS:
            found.append(gone)
            yield tuple(DropHost(host=label) for label in facts if label in gone)


def _facts_of_hosts(instance: ProblemInstance) -> dict[str, frozenset[FactOf]]:
    """Return the groups of facts of each host by the host's label, in the order of the target."""
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
    """Return the hosts to drop: `start`, and those that still conflict after the hosts before them were dropped.

    None when no host would remain, or when the remaining conflict has no fact of another host.
    """
    gone = {start}
    against = _kinds(facts[start].intersection(groups))
    while len(gone) < len(facts):
        dropped = frozenset[FactOf]().union(*(facts[label] for label in gone))
        if not search.refutes(without=dropped):
            return frozenset(gone)
        core = search.core(without=dropped)
        others = [label for label in _concerned(facts, core) if label not in gone]
        if not others:
            return None
        # Of two hosts that exclude each other, drop the one that is most like those dropped before.
        gone.add(max(others, key=lambda label: len(against & _kinds(facts[label].intersection(core)))))
    return None


def _kinds(facts: Collection[FactOf]) -> set[tuple[str, str]]:
    """Return facts as pairs of component and value, without their hosts: `gpu`, `7.0`."""
    return {(fact.component, fact.value) for fact in facts}
