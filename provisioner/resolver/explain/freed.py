"""Without the version that the spec itself asks for: whether anything else holds the newest back, and what comes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import Requirement as Pep508
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.grounds.edit import DropBound, SetComponent, SetDistribution
from provisioner.grounds.requirement import Constrains, RequiresComponent, RequiresDistribution
from provisioner.resolver.explain.fixes import rejoined
from provisioner.resolver.requirement import FileCandidate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.grounds.choice import PassedOver
    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Ground
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Key, Requirement

ANY_VERSION = "*"


class Moved(Struct, frozen=True, kw_only=True):
    """One thing that would be at another version: its version now and then, "" where there is none."""

    name: str
    old: str
    new: str


class Freed(Struct, frozen=True, kw_only=True):
    """What choosing the newest would mean without some lines of the spec: what moves with it, or what still is in its way.

    `order` says why another would be chosen even so, None where it would not.
    """

    lines: tuple[Ground, ...]
    moved: tuple[Moved, ...] = ()
    order: PassedOver | None = None
    conflict: Conflict | None = None


def freed(problem: Problem, holding: Sequence[Requirement]) -> Problem | None:
    """Return the problem where the lines behind some requirements ask for any version; None where others than such lines hold.

    An override replaces what others require, so without its version it would ask for something else.
    """
    grounds = {one.ground for one in holding}
    if not grounds or not all(isinstance(one, RequiresComponent | RequiresDistribution | Constrains) for one in grounds):
        return None
    spec = problem.request.spec
    components = {one.name for one in grounds if isinstance(one, RequiresComponent)}
    distributions = {one.distribution for one in grounds if isinstance(one, RequiresDistribution)}
    constraints = {one.index for one in grounds if isinstance(one, Constrains)}
    if not components <= {*problem.matrix.components}:
        return None
    changed = replace(
        spec,
        packages=tuple(_open(text) if _name(text) in distributions else text for text in spec.packages),
        constraints=tuple(_open(text) if index in constraints else text for index, text in enumerate(spec.constraints)),
        requires={name: ANY_VERSION if name in components else text for name, text in spec.requires.items()},
    )
    return rejoined(problem, replace(problem.request, spec=changed))


def edits_of(holding: Sequence[Requirement], candidate: Candidate) -> tuple[Edit, ...]:
    """Return the edits by which the lines behind some requirements allow a candidate; each line once."""
    by_line: dict[object, list[Ground]] = {}
    for one in holding:
        by_line.setdefault(one.ground.group, []).append(one.ground)
    edits: list[Edit] = []
    for some in by_line.values():
        ground, asked = some[0], tuple(dict.fromkeys(some))
        match ground:
            case Constrains(distribution=distribution, requirement=requirement):
                edits.append(DropBound(key="constraints", distribution=distribution, requirement=requirement))
            case RequiresDistribution(name=name, distribution=distribution):
                edits.append(SetDistribution(name=name, distribution=distribution, value=candidate.label, asked=asked))
            case _:
                edits.append(SetComponent(name=ground.component, value=candidate.label, asked=asked))
    return tuple(edits)


def _open(text: str) -> str:
    """Return a requirement without its versions."""
    requirement = Pep508(text)
    requirement.specifier = SpecifierSet()
    return str(requirement)


def _name(text: str) -> str:
    return canonicalize_name(Pep508(text).name)


def moved(
    key: Key, before: Mapping[Key, Candidate], after: Mapping[Key, Candidate], *, shown: frozenset[str]
) -> tuple[Moved, ...]:
    """Return what differs between two answers beside `key`: components first, of which `shown` are told, then distributions."""
    old, new = dict(_versions(before, shown)), dict(_versions(after, shown))
    names = [*old, *(name for name in new if name not in old)]
    own = _of(key)
    changes = (Moved(name=name[1], old=old.get(name, ""), new=new.get(name, "")) for name in sorted(names) if name != own)
    return tuple(one for one in changes if one.old != one.new)


def _versions(pins: Mapping[Key, Candidate], shown: frozenset[str]) -> Iterator[tuple[tuple[bool, str], str]]:
    for key, candidate in pins.items():
        if isinstance(candidate, FileCandidate) or (not key.scope and key.component in shown):
            yield _of(key), candidate.label


def _of(key: Key) -> tuple[bool, str]:
    return key.is_package, key.distribution
