"""Without what the spec itself says of a version: whether anything else holds the newest back, and what would come with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import Requirement as Pep508
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.solve.explain.change import LEFT_OUT, Change
from provisioner.solve.explain.hints import rejoined
from provisioner.solve.python.distributions import Seat
from provisioner.solve.requirement import TORCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.solve.problem import Problem
    from provisioner.solve.requirement import Candidate, Key, Requirement
    from provisioner.solve.stack import Conflict, Reason
    from provisioner.request import Request

ANY_VERSION = "*"


class Moved(Struct, frozen=True, kw_only=True):
    """One thing that would not be what it is: its version now and then, "" where there is none."""

    name: str
    old: str
    new: str


class Freed(Struct, frozen=True, kw_only=True):
    """What choosing the newest would mean without some lines of the spec: what moves with it, or what still is in its way.

    `order` says why another would be chosen even so, "" where it would not.
    """

    lines: tuple[Reason, ...]
    moved: tuple[Moved, ...] = ()
    order: str = ""
    conflict: Conflict | None = None


def freed(problem: Problem, holding: Sequence[Requirement]) -> Problem | None:
    """The problem where the lines behind some requirements ask for any version; None where others than such lines hold.

    An override replaces what others require, so without its version it would ask for something else.
    """
    groups = {one.origin.group for one in holding}
    spec = problem.request.spec
    packages = _opened("packages", spec.packages, groups)
    constraints = _opened("constraints", spec.constraints, groups)
    requires = {name: ANY_VERSION if f"requires.{name}" in groups else text for name, text in spec.requires.items()}
    known = {f"requires.{name}" for name in requires if name in problem.matrix.components}
    known |= {f"packages.{_name(text)}" for text in packages} | {f"constraints.{place}" for place in range(len(constraints))}
    if not groups or not groups <= known:
        return None
    changed = replace(spec, packages=packages, constraints=constraints, requires=requires)
    return rejoined(problem, replace(problem.request, spec=changed))


def changes_of(request: Request, holding: Sequence[Requirement], candidate: Candidate) -> tuple[Change, ...]:
    """What a person would change so that the lines behind some requirements allow a candidate; each line once."""
    found: dict[str, Change] = {}
    for one in holding:
        group, origin = one.origin.group, one.origin
        key, _, name = group.partition(".")
        said = f"`{origin.text.removeprefix('you require ').removeprefix('you constrain ')}`"
        if key == "constraints":
            name = f"{key}.{_name(request.spec.constraints[int(name)])}"
            found[group] = Change(component=name, text=LEFT_OUT, instead=f"the constraint {said}")
            continue
        if key == "requires":
            said = said.replace(f"`{name} ", "`", 1)
        if group in found:
            said = f"{found[group].instead} and {said}"
        package = name if key == "packages" else ""
        found[group] = Change(component=origin.component, text=f"=={candidate.label}", package=package, instead=said)
    return tuple(found.values())


def _opened(key: str, texts: Sequence[str], groups: set[str]) -> tuple[str, ...]:
    """Lines about distributions, without the versions of those that are meant; a line keeps its place."""
    found = []
    for index, text in enumerate(texts):
        requirement = Pep508(text)
        if groups & {f"{key}.{index}", f"{key}.{_name(text)}"}:
            requirement.specifier = SpecifierSet()
        found.append(str(requirement))
    return tuple(found)


def _name(text: str) -> str:
    return canonicalize_name(Pep508(text).name)


def moved(
    key: Key, before: Mapping[Key, Candidate], after: Mapping[Key, Candidate], *, shown: frozenset[str]
) -> tuple[Moved, ...]:
    """What differs between two answers beside `key`: components first, of which `shown` are told, then distributions."""
    old, new = dict(_versions(before, shown)), dict(_versions(after, shown))
    names = [*old, *(name for name in new if name not in old)]
    own = _of(key)
    changes = (Moved(name=name[1], old=old.get(name, ""), new=new.get(name, "")) for name in sorted(names) if name != own)
    return tuple(one for one in changes if one.old != one.new)


def _versions(pins: Mapping[Key, Candidate], shown: frozenset[str]) -> Iterator[tuple[tuple[bool, str], str]]:
    for key, candidate in pins.items():
        if key == TORCH or isinstance(candidate.subject, Seat):
            continue
        if key.is_package or (not key.world and key.component in shown):
            yield _of(key), candidate.label


def _of(key: Key) -> tuple[bool, str]:
    return key.is_package, key.name.partition("[")[0]
