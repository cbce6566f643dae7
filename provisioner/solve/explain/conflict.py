"""A minimal conflict in words, found by solving again; never from an engine's own account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.solve.explain.conclusion import conclusion
from provisioner.solve.explain.fold import joined, listed, plural, said, saying_of, sayings
from provisioner.solve.explain.hints import hints
from provisioner.solve.python.named_files import is_named
from provisioner.solve.requirement import Matching, Within
from provisioner.solve.rules.devices import FRAMEWORKS
from provisioner.solve.search.complete import CompleteSearch
from provisioner.solve.search.proof import Member, Proof
from provisioner.solve.stack import Conflict, Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.matrix.model import Build
    from provisioner.solve.explain.fold import Saying
    from provisioner.solve.explain.hints import Settle
    from provisioner.solve.requirement import Candidate, Key, Requirement
    from provisioner.solve.search.universe import Universe

Groups = dict[str, tuple[Member, ...]]
"""The requirements of a conflict by group."""

KINDS = ("request", "rule", "fact")
SHOWN = 4
"""How many sayings of one group are spelled out before the rest is summed up."""

MOST_RANGES = 9
BUILT, COMPILED, UNMEASURED = "is built for ", "is compiled for ", "was measured by nobody"


def explain_conflict(universe: Universe, search: CompleteSearch | None = None, *, settle: Settle | None = None) -> Conflict:
    """Explain a universe that was proved impossible: the minimal members in order, and hints that were re-solved.

    `search` is the one that proved it, if there was one: what it learnt is used again. It is closed here. `settle` solves a
    changed request and says what that gives; without it hints are solved with the system stack alone.
    """
    search = search or CompleteSearch(universe)
    try:
        groups = search.minimal()
        return replace(described(universe, search, groups), hints=hints(universe, search, groups, settle=settle))
    finally:
        search.close()


def described(universe: Universe, search: CompleteSearch, groups: Sequence[str]) -> Conflict:
    """Some groups that cannot hold together, in words, without hints."""
    by_group = _needed(universe, search, groups)
    ordered = _ordered(universe, by_group)
    members = tuple(_reason(universe, by_group, group) for group in ordered)
    return Conflict(members=members, conclusion=conclusion(universe, [by_group[group] for group in ordered]))


def members_of(universe: Universe, search: CompleteSearch, groups: tuple[str, ...]) -> tuple[Reason, ...]:
    """One line for each group, in order: requests, rules down the order, facts."""
    return described(universe, search, groups).members


def _needed(universe: Universe, search: CompleteSearch, groups: Sequence[str]) -> Groups:
    """The requirements of each group that the conflict rests on, newest subject first; a minimal choice of them."""
    everything = [Member(parent, one) for group in groups for parent, one in search.members(group)]
    proof = Proof(universe, everything)
    try:
        needed = proof.needed(lambda member: (member.requirement.origin.group, saying_of(member)))
    finally:
        proof.close()
    found: dict[str, list[Member]] = {group: [] for group in groups}
    for member in needed:
        found[member.requirement.origin.group].append(member)
    return {group: tuple(sorted(some, key=_newest_first)) for group, some in found.items() if some}


def _ordered(universe: Universe, by_group: Groups) -> list[str]:
    """Requests, then rules down the order, distributions before the system they run on, then facts."""
    order = universe.problem.order
    depths = _depths(by_group)

    def place(group: str) -> tuple[object, ...]:
        members = by_group[group]
        kind = KINDS.index(members[0].requirement.origin.kind)
        subjects = [parent.key for parent, _ in members if parent is not None]
        is_package = all(key.is_package for key in subjects) if subjects else False
        subject = min((depths.get(key, 0) if is_package else order.get(key, -1) for key in subjects), default=-1)
        target = min((order.get(one.key, len(order)) for _, one in members), default=0)
        is_question = members[0].requirement in universe.problem.extra
        return kind, not is_question, not is_package, subject, target, group

    return sorted(by_group, key=place)


def _depths(by_group: Groups) -> dict[Key, int]:
    """How many requirements lie between what the user named and a key."""
    depths = {one.key: 0 for members in by_group.values() for parent, one in members if parent is None}
    edges = [(parent.key, one.key) for members in by_group.values() for parent, one in members if parent is not None]
    for _ in edges:
        for subject, target in edges:
            if subject in depths and depths.get(target, len(edges) + 1) > depths[subject] + 1:
                depths[target] = depths[subject] + 1
    return depths


def _newest_first(member: Member) -> tuple[tuple[int, ...], str]:
    """Subjects from new to old, whatever order the search met them in."""
    parent, _ = member
    if parent is None:
        return (), ""
    release = parent.pep440.release if parent.key.is_package else parent.version.release
    return tuple(-number for number in (*release, 0, 0, 0, 0)[:6]), parent.label


def _reason(universe: Universe, by_group: Groups, group: str) -> Reason:
    members = by_group[group]
    origin = members[0].requirement.origin
    texts = dict.fromkeys(one.origin.text for _, one in members)
    offer = _offer(universe, members[0].requirement) if len(texts) == 1 else ""
    text = _words(universe, by_group, group)
    return Reason(
        component=origin.component, kind=origin.kind, text=f"{text}: {offer}" if offer else text, where=_where(members)
    )


def _where(members: Sequence[Member]) -> str:
    """Where the newest of them stands, and how many more places there are."""
    places = list(dict.fromkeys(one.origin.where for _, one in members if one.origin.where))
    if not places:
        parent = members[0].parent
        return "the package index" if parent is not None and parent.key.is_package else ""
    return places[0] if len(places) == 1 else f"{places[0]} and {len(places) - 1} more"


def _words(universe: Universe, by_group: Groups, group: str) -> str:
    """Say a whole group in one line: the one requirement it has, or what its subjects need, folded together."""
    found = sayings(by_group[group])
    for sum_up in (_here, _platforms, _compiled, _listed_ranges, _spanned_ranges):
        found = sum_up(universe, by_group, found)
    if len(found) <= SHOWN:
        return "; ".join(said(universe, saying) for saying in found)
    most = sorted(found, key=lambda saying: -len(saying.members))[: SHOWN - 1]
    rest = len({parent for saying in found if saying not in most for parent, _ in saying.members})
    parts = [said(universe, saying) for saying in found if saying in most]
    return "; ".join([*parts, f"and {rest} more like {'it' if rest == 1 else 'them'}"])


def _here(universe: Universe, by_group: Groups, found: list[Saying]) -> list[Saying]:
    """A build has a row for each platform, which may be compiled for other GPUs: the target's is told, not the others."""
    del by_group
    platform = universe.problem.request.platform

    def is_here(parent: Candidate | None) -> bool:
        if parent is None or parent.key.is_package or parent.key.component not in FRAMEWORKS or not parent.subject:
            return True
        build: Build | None = parent.subject[1]
        return build is None or not build.platforms or platform in build.platforms

    compiled = [member for saying in found if saying.need.startswith(COMPILED) for member in saying.members]
    labels = {parent.label for parent, _ in compiled if parent is not None and is_here(parent)}
    kept = []
    for saying in found:
        members = tuple(
            one for one in saying.members if is_here(one.parent) or one.parent is None or one.parent.label not in labels
        )
        if members:
            kept.append(replace(saying, members=members) if saying.need.startswith(COMPILED) else saying)
    return kept


def _platforms(universe: Universe, by_group: Groups, found: list[Saying]) -> list[Saying]:
    """A build has a row for each platform it is published for: together they say where it cannot go."""
    del universe, by_group
    if len(found) < 2 or not all(saying.need.startswith(BUILT) for saying in found):
        return found
    names = sorted({name for saying in found for name in saying.need.removeprefix(BUILT).split(" or ")})
    return [joined(found, f"is built for nothing but {listed(names, 'and')}")]


def _compiled(universe: Universe, by_group: Groups, found: list[Saying]) -> list[Saying]:
    """Lists of compiled targets are long: the newest build's is shown, of the others what they lack."""
    lists = [saying for saying in found if saying.need.startswith(COMPILED)]
    missing = _fixed(universe, by_group, {one.key for saying in lists for _, one in saying.members})
    if len(lists) < 3 or not missing:
        return found
    newest = lists[0].members[0].parent
    assert newest is not None, "what is compiled is a build"
    example = f"({newest.label}: {lists[0].need.removeprefix(COMPILED)})"
    unmeasured = [saying for saying in found if saying.need.startswith(UNMEASURED)]
    more = f" or {UNMEASURED}" if unmeasured else ""
    summed = joined([*lists, *unmeasured], f"is compiled for other GPUs than {missing} {example}{more}")
    return [summed, *(saying for saying in found if saying not in lists and saying not in unmeasured)]


def _fixed(universe: Universe, by_group: Groups, keys: set[Key]) -> str:
    """What the hosts state about some keys."""
    del universe
    roots = (one for members in by_group.values() for parent, one in members if parent is None)
    stated = dict.fromkeys(str(one.test) for one in roots if one.key in keys and one.origin.kind == "fact")
    return " and ".join(stated)


def _listed_ranges(universe: Universe, by_group: Groups, found: list[Saying]) -> list[Saying]:
    """Some ranges of one thing as `one of`: the releases that need them are then one span."""
    del universe, by_group
    ranges = [saying for saying in found if saying.verb]
    verbs = {(saying.name, saying.verb) for saying in ranges}
    if len(found) <= SHOWN or len(verbs) != 1 or len(ranges) > MOST_RANGES:
        return found
    return [joined(ranges), *(saying for saying in found if saying not in ranges)]


def _spanned_ranges(universe: Universe, by_group: Groups, found: list[Saying]) -> list[Saying]:
    """Many ranges as the one span they lie in, where the conflict stands on no more than that."""
    ranges = [saying for saying in found if saying.verb]
    members = [member for saying in ranges for member in saying.members]
    keys = {one.key for _, one in members}
    if len(found) <= SHOWN or len(keys) != 1 or len({saying.verb for saying in ranges}) != 1:
        return found
    (key,) = keys
    allowed = {candidate for _, one in members for candidate in universe.allowed(one)}
    domain = sorted(universe.candidates(key), key=lambda one: one.version)
    places = [place for place, candidate in enumerate(domain) if candidate in allowed]
    if not places or not domain[0].version.release:
        return found
    span = domain[places[0] : places[-1] + 1]
    proof = Proof(universe, [member for some in by_group.values() for member in some])
    try:
        is_enough = proof.refutes(members, key=key, allowed=span)
    finally:
        proof.close()
    if not is_enough:
        return found
    within = f"{span[0].label} … {span[-1].label}" if len(span) > 1 else span[0].label
    # Those that go with nothing stand between the others: told apart, neither would be a span.
    none = [saying for saying in found if not any(universe.allowed(one) for _, one in saying.members)]
    more = f" or {plural(none[0].need)}" if len(none) == 1 else ""
    summed = joined([*ranges, *none] if more else ranges, f"{ranges[0].verb} ranges within {within}{more}")
    return [summed, *(saying for saying in found if saying not in ranges and not (more and saying in none))]


def _offer(universe: Universe, requirement: Requirement) -> str:
    """What there is, for a range in which there is nothing; "" where something is in it."""
    if not isinstance(requirement.test, Matching | Within) or universe.allowed(requirement):
        return ""
    key = requirement.key
    name = key.name.partition("[")[0] if key.is_package else key.component
    offered = universe.candidates(key)
    request = universe.problem.request
    cut = request.spec.policy.exclude_newer
    until = f" until {cut}" if cut else ""
    if not offered:
        target = f"{request.accelerator} on {request.platform}"
        return f"no index offers `{name}`{until}" if key.is_package else f"the matrix has no {name} for {target}{until}"
    withdrawn = next((one for one in offered if one.is_yanked and requirement.allows(one)), None)
    if withdrawn is not None:
        return f"{name} {withdrawn.label} is {withdrawn.subject.why_not}"
    if key.is_package and all(is_named(one) for one in offered):
        place = next((f" ({one.origin.where})" for one in universe.roots if one.key == key and one.origin.where), "")
        return f"the file that the spec names is {_listed(offered)}{place}"
    if key.is_package:
        return f"the index has {_listed(offered)}"
    built_for = f" for {request.accelerator}" if name in FRAMEWORKS and request.accelerator != "cuda" else ""
    return f"the matrix has {_listed(offered)}{built_for}{until}"


def _listed(offered: Sequence[Candidate]) -> str:
    labels = list(dict.fromkeys(one.label.partition("+")[0] for one in offered))
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return f"{', '.join(labels[:SHOWN])}{more}"
