"""The requests and facts of a conflict that a person could change, and the values each could have instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.grounds.edit import (
    DropBound,
    DropComponent,
    DropDistribution,
    DropHashes,
    SetArchitecture,
    SetComponent,
    SetDistribution,
    SetFact,
)
from provisioner.grounds.requirement import (
    PYTHON_ATTEMPT,
    Constrains,
    GivesHashes,
    Overrides,
    RequiresComponent,
    RequiresDistribution,
    RequiresPython,
)
from provisioner.resolver.explain.cost import LEFT_OUT, Cost, cost_of
from provisioner.resolver.requirement import FileCandidate, ReleaseCandidate, Within, build_of
from provisioner.resolver.rules.devices import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Ground, Group
    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.complete import CompleteSearch
    from provisioner.resolver.search.universe import Universe

RANGES = frozenset({"driver", "amdgpu", "kernel", "glibc", "gcc", "clang", "container_toolkit", "cuda_driver", "xcode"})
"""Facts of which a fix names the nearest value as a bound: what lies beyond it mostly does as well."""

FIXED = frozenset({"platform", "accelerator", "image", "policy"})
"""What the target is, which no fix changes, and what shapes a problem before it is solved, which is changed by joining
again."""


class Relaxable(Struct, frozen=True):
    """One request or one fact: the group of its requirements, the key it is about and what it says now."""

    group: Group
    key: Key
    current: Requirement

    @property
    def is_fact(self) -> bool:
        """Whether a host states it."""
        return self.current.ground.kind == "fact"

    @property
    def is_bound(self) -> bool:
        """Whether it asks for nothing and only rules versions out: a constraint, an override, hashes. It can be left out."""
        return isinstance(self.current.ground, Constrains | Overrides | GivesHashes)

    @property
    def name(self) -> str:
        """The name a person has for it: `pytorch_build` is about PyTorch, and still another line of the spec."""
        ground = self.current.ground
        if isinstance(ground, Constrains | Overrides):
            return f"{ground.requirement} bound"  # of two lines that say the same both are left out, and that is one change
        if isinstance(ground, GivesHashes):
            return str(self.group)
        if isinstance(ground, RequiresComponent) and ground.name == "pytorch_build":
            return "pytorch_build"
        return self.key.distribution if self.key.is_package else self.key.component

    def nearest(self, universe: Universe) -> Iterator[Sequence[Candidate]]:
        """Yield the values to try, the nearest first, in groups of which the first one that works is taken.

        For a host fact newer ones come first, except for a kernel; for a request other builds of the same release.
        """
        candidates = universe.candidates(self.key)
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


def relaxables(universe: Universe, search: CompleteSearch, groups: Sequence[Group]) -> list[Relaxable]:
    """Return the requests and facts among some groups that a person could change; rules are not, nor is what the target is."""
    found = []
    extra = {root.ground.group for root in universe.problem.extra}
    for group in groups:
        for parent, requirement in search.members(group)[:1]:
            one = Relaxable(group, requirement.key, requirement)
            is_open = isinstance(requirement.test, Within) and not requirement.test.range.clauses
            # The architectures to compile for follow from the GPUs, and go when they go.
            is_derived = one.is_fact and one.name == "arch_list"
            is_fixed = is_open or is_derived or one.name in FIXED or group == PYTHON_ATTEMPT or group in extra
            is_fixed = is_fixed or one.is_bound or isinstance(requirement.ground, RequiresPython)
            is_environment = universe.packages is not None and one.name == "python"
            if (parent is None and not is_fixed and not is_environment) or one.is_bound:
                found.append(one)
    return found


def edit_of(universe: Universe, one: Relaxable, candidate: Candidate) -> tuple[Edit, Cost]:
    """Return the edit that changes a request or fact to a candidate, and what it costs a person."""
    name = one.name
    if one.is_fact:
        return _of_fact(universe, one, candidate), cost_of(name)
    asked = _asked(universe, one)
    if name == "pytorch_build":
        build = build_of(candidate)
        assert build is not None, "every release of PyTorch has builds"
        return SetComponent(name=name, value=build.name, asked=asked), cost_of(name)
    if name == "arch_list":
        return SetArchitecture(asked=one.key.name.partition(":")[2], architecture=candidate.label), cost_of(name)
    same = _public(candidate.label) in {_public(other.label) for other in universe.allowed(one.current) if name in FRAMEWORKS}
    # A file that a requirement names is asked for by its version: by its address it is asked for already.
    is_named = isinstance(candidate, FileCandidate) and candidate.is_named
    wanted = str(candidate.pep440) if is_named else candidate.label
    ground = one.current.ground
    edit: Edit = SetComponent(name=name, value=wanted, asked=asked)
    if isinstance(ground, RequiresDistribution):
        edit = SetDistribution(name=name, distribution=ground.distribution, value=wanted, asked=asked)
    return edit, cost_of("build" if same else name)


def left_out(universe: Universe, one: Relaxable) -> tuple[Edit, Cost]:
    """Return the edit by which a request goes, and what that costs a person."""
    ground = one.current.ground
    if (edit := bound_left_out(ground)) is not None:
        return edit, cost_of(edit.component)
    asked = _asked(universe, one)
    if isinstance(ground, RequiresDistribution):
        return DropDistribution(name=one.name, distribution=ground.distribution, asked=asked), cost_of(LEFT_OUT)
    return DropComponent(name=one.name, asked=asked), cost_of(LEFT_OUT)


def bound_left_out(ground: Ground) -> Edit | None:
    """Return the edit by which a line goes that only rules versions out; None for the ground of another line."""
    match ground:
        case Constrains(distribution=distribution, requirement=requirement):
            return DropBound(key="constraints", distribution=distribution, requirement=requirement)
        case Overrides(distribution=distribution, requirement=requirement):
            return DropBound(key="overrides", distribution=distribution, requirement=requirement)
        case GivesHashes(distribution=distribution):
            return DropHashes(distribution=distribution)
    return None


def _public(label: str) -> str:
    return label.partition("+")[0]


def _asked(universe: Universe, one: Relaxable) -> tuple[Ground, ...]:
    """Return the lines behind a request: there may be several about one distribution, and all of them are changed."""
    others = (root.ground for root in universe.roots if root.ground.group == one.group)
    return tuple(dict.fromkeys((one.current.ground, *others)))


def _of_fact(universe: Universe, one: Relaxable, candidate: Candidate) -> SetFact:
    today = next((other for other in universe.candidates(one.key) if one.current.allows(other)), candidate)
    is_bound = one.name in RANGES and bool(candidate.version.release)
    sign = "==" if not is_bound else "<=" if candidate.version < today.version else ">="
    gpus = universe.problem.matrix.gpus if one.name == "gpu" else ()
    products = tuple(gpu.name for gpu in gpus if (gpu.compute_capability or gpu.gfx) == today.label)
    return SetFact(name=one.name, host=one.key.scope, sign=sign, value=candidate.label, today=today.label, products=products)
