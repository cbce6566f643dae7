"""What a person could change of a conflict: one request or one fact, and the values it could have instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.solve.explain.change import LEFT_OUT, Change, line_left_out
from provisioner.solve.explain.cost import Cost, cost_of
from provisioner.solve.outcome.answer import TRIED
from provisioner.solve.python.named_files import is_named
from provisioner.solve.requirement import Within
from provisioner.solve.rules.devices import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.solve.requirement import Candidate, Key, Requirement
    from provisioner.solve.search.complete import CompleteSearch
    from provisioner.solve.search.universe import Universe

RANGES = frozenset({"driver", "amdgpu", "kernel", "glibc", "gcc", "clang", "container_toolkit", "cuda_driver", "xcode"})
"""Facts of which a hint names the nearest value as a bound: what lies beyond it mostly does as well."""

GIVEN = frozenset({"platform", "accelerator"})
"""What the target is, which is not for a hint to change."""

ELSEWHERE = frozenset({"image", "policy"})
"""What shapes a problem before it is solved: another value of these is tried by joining the inputs again."""


LEFT_OUT_ONLY = frozenset({"constraints", "overrides", "hashes", "requires-python"})
"""Lines of the spec of which no other value is proposed: without them the inputs are joined again (`other_ways`)."""

LINES_IN_A_SEARCH = LEFT_OUT_ONLY - {"requires-python"}
"""Those that rule out versions of distributions, so that a search can do without them in one environment."""


class Lever(Struct, frozen=True):
    """One request or one fact: the group of its requirements, the key it is about and what it says now."""

    group: str
    key: Key
    current: Requirement

    @property
    def is_fact(self) -> bool:
        """Whether a host states it."""
        return self.current.origin.kind == "fact"

    @property
    def is_line(self) -> bool:
        """Whether it asks for nothing and only rules versions out: a constraint, an override, hashes. It can be left out."""
        return self.group.partition(".")[0] in LINES_IN_A_SEARCH

    @property
    def name(self) -> str:
        """What a person would call it: `pytorch_build` is about PyTorch, and still another line of the spec."""
        if self.is_line:
            return self.current.origin.text  # of two lines that say the same both are left out, and that is one change
        if self.group == "requires.pytorch_build":
            return "pytorch_build"
        return self.key.name.partition("[")[0] if self.key.is_package else self.key.component

    def nearest(self, universe: Universe) -> Iterator[Sequence[Candidate]]:
        """The values to try, the nearest first, in groups of which the first one that works is taken.

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
        releases = {id(one.subject[0]) for one in candidates if self.current.allows(one)}
        return [one for one in candidates if id(one.subject[0]) in releases and not self.current.allows(one)]


def levers_of(universe: Universe, search: CompleteSearch, groups: Sequence[str]) -> list[Lever]:
    """The requests and facts among some groups that a person could change; rules are not, nor is what the target is."""
    found = []
    extra = {root.origin.group for root in universe.problem.extra}
    for group in groups:
        for parent, requirement in search.members(group)[:1]:
            lever = Lever(group, requirement.key, requirement)
            is_open = isinstance(requirement.test, Within) and not requirement.test.range.clauses
            # What is compiled for follows from the GPUs, and goes when they go.
            is_derived = lever.is_fact and lever.name == "arch_list"
            is_fixed = is_open or is_derived or lever.name in GIVEN | ELSEWHERE or group == TRIED or group in extra
            is_fixed = is_fixed or group.partition(".")[0] in LEFT_OUT_ONLY
            is_environment = universe.packages is not None and lever.name == "python"
            if (parent is None and not is_fixed and not is_environment) or lever.is_line:
                found.append(lever)
    return found


def change_of(universe: Universe, lever: Lever, candidate: Candidate) -> tuple[Change, Cost]:
    """What changing a lever to a candidate means in the user's files, and what it costs."""
    name = lever.name
    if lever.is_fact:
        return _of_fact(universe, lever, candidate), cost_of(name)
    package = lever.group.removeprefix("packages.") if lever.group.startswith("packages.") else ""
    asked = _asked(universe, lever, without=f"{name} ")
    if name == "pytorch_build":
        return Change(component=name, text=candidate.subject[1].name, instead=asked), cost_of(name)
    same = candidate.label.partition("+")[0] in {
        one.label.partition("+")[0] for one in universe.allowed(lever.current) if name in FRAMEWORKS
    }
    # A file that a requirement names is asked for by its version: by its address it is asked for already.
    wanted = str(candidate.pep440) if is_named(candidate) else candidate.label
    change = Change(component=name, text=f"=={wanted}", package=package, instead=asked)
    if name == "arch_list":
        change = Change(component=name, text=f"=={candidate.label}", instead=lever.key.name.partition(":")[2])
    return change, cost_of("build" if same else name)


def left_out(universe: Universe, lever: Lever) -> tuple[Change, Cost]:
    """A request as if it had not been made."""
    if lever.is_line:
        change = line_left_out(universe.problem.request, lever.group)
        return change, cost_of(change.component)
    package = lever.group.removeprefix("packages.") if lever.group.startswith("packages.") else ""
    asked = _asked(universe, lever)
    return Change(component=lever.name, text=LEFT_OUT, package=package, instead=asked), cost_of(LEFT_OUT)


def _asked(universe: Universe, lever: Lever, *, without: str = "") -> str:
    """What the lines behind a lever ask for: there may be several about one distribution, and all of them are changed."""
    said = (root.origin.text for root in universe.roots if root.origin.group == lever.group)
    texts = dict.fromkeys((lever.current.origin.text, *said))
    return " and ".join(f"`{text.removeprefix('you require ').removeprefix(without)}`" for text in texts)


def _of_fact(universe: Universe, lever: Lever, candidate: Candidate) -> Change:
    today = next((one for one in universe.candidates(lever.key) if lever.current.allows(one)), candidate)
    is_bound = lever.name in RANGES and bool(candidate.version.release)
    sign = "==" if not is_bound else "<=" if candidate.version < today.version else ">="
    names = tuple(gpu.name for gpu in universe.problem.matrix.gpus if lever.name == "gpu" and _kind(gpu) == today.label)
    return Change(component=lever.name, text=f"{sign}{candidate.label}", host=lever.key.world, instead=today.label, names=names)


def _kind(gpu: object) -> str | None:
    return getattr(gpu, "compute_capability", None) or getattr(gpu, "gfx", None)
