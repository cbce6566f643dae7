"""Explain why no stack serves some hosts: a minimal conflict, reported once for all hosts that share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.components import LEADS
from provisioner.fleet.model import Unserved
from provisioner.grounds.conflict import Conflict, Fix, Member, member_of
from provisioner.grounds.edit import AddPlatform, UseWsl2
from provisioner.grounds.patch import patch_of
from provisioner.grounds.requirement import FactOf, Ground, HostFact, HostGpu, SpecPlatforms
from provisioner.grounds.source import MatrixRow
from provisioner.host.facts import stated
from provisioner.platforms import PLATFORMS
from provisioner.resolver.explain.conflict import described, explain_conflict
from provisioner.resolver.joint import NoStackError, UnlistedReleaseError, solve_system
from provisioner.resolver.problem import join
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.words.ground import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provisioner.fleet.classes import HostClass
    from provisioner.grounds.edit import Edit
    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request

Reasons = tuple[tuple[str, ...], ...]
"""The groups of a conflict (the facts, requests and rules it consists of) without the names of hosts, sorted."""


class Explaining:
    """Explains classes one after the other; a conflict is reused for classes that state the same facts."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._guards = {rule.name: frozenset(guard.component for guard in rule.on) for rule in matrix.rules}

    def explain(self, request: Request, classes: Iterable[HostClass]) -> list[Unserved]:
        """Return the conflicts of classes without a stack, one for all classes that the same requests and rules exclude.

        A conflict is proved for each class, or for another class with the same values of all facts that the conflict depends
        on. The conflict of the first class is complete, with hints that the solver verified for this class; for the other
        classes only their own facts are added.
        """
        proved: dict[Reasons, list[tuple[HostClass, tuple[Member, ...]]]] = {}
        known: list[tuple[frozenset[str], object, Reasons, tuple[Member, ...]]] = []
        for one in classes:
            at = next((at for at, (read, facts, _, _) in enumerate(known) if _facts(one.host, read) == facts), None)
            if at is None:
                groups, members = self._conflict(replace(request, hosts=(one.target,)))
                read = self._read(members)
                known.append((read, _facts(one.host, read), groups, members))
                at = len(known) - 1
            _, _, groups, members = known[at]
            proved.setdefault(groups, []).append((one, members))
        return [self._unserved(request, some) for some in proved.values()]

    def _conflict(self, request: Request) -> tuple[Reasons, tuple[Member, ...]]:
        """Return a minimal conflict as its groups without the host's name, and its members (the statements that it reports)."""
        instance = ProblemInstance(join(self._matrix, request))
        search = CompleteSearch(instance)
        try:
            groups = search.minimal()
            members = described(instance, search, groups).members
            reasons = tuple(sorted(_unnamed(search.members(group)[0][1].ground) for group in groups))
        finally:
            search.close()
        return reasons, members

    def _unserved(self, request: Request, proved: Sequence[tuple[HostClass, tuple[Member, ...]]]) -> Unserved:
        first = proved[0][0]
        conflict = explain_conflict(ProblemInstance(join(self._matrix, replace(request, hosts=(first.target,)))))
        own = {say(fact) for fact in _facts_in(conflict.members)}
        others = {say(fact): fact for _, members in proved for fact in _facts_in(members)}
        also = tuple(others[text] for text in sorted(others) if text not in own)
        return Unserved(classes=tuple(one for one, _ in proved), conflict=conflict, also=also)

    def _read(self, members: Iterable[Member]) -> frozenset[str]:
        """Return the names of the facts that a conflict depends on.

        These are the components in its members, and those that the guards (the conditions on hosts) of its rules read.
        """
        read: set[str] = set()
        for member in members:
            for source in member.sources:
                if isinstance(source, MatrixRow) and source.table == "rule":
                    read |= self._guards.get(source.name, frozenset())
            read.add(member.component)
        return frozenset(read)

    def other_platforms(self, request: Request, classes: Sequence[HostClass], *, platforms: Sequence[str]) -> list[Unserved]:
        """Return the conflicts of hosts whose platform the spec does not name.

        If adding the platform to the spec gives a stack, the conflict has this edit as a fix.
        """
        by_platform: dict[str, list[HostClass]] = {}
        for one in classes:
            by_platform.setdefault(one.host.platform or "", []).append(one)
        return [
            self._other_platform(request, platform, some, platforms=platforms) for platform, some in sorted(by_platform.items())
        ]

    def _other_platform(
        self, request: Request, platform: str, classes: list[HostClass], *, platforms: Sequence[str]
    ) -> Unserved:
        requested = SpecPlatforms(platforms=tuple(platforms) or tuple(PLATFORMS), place=request.place("target.platform"))
        target = classes[0].target
        place = target.place("platform" if platform else "os")
        system = target.host.os.id if target.host.os is not None else ""
        fact = HostFact(name="platform", value=platform or system, host=target.label, place=place)
        edit: AddPlatform | UseWsl2 | None = None
        if platform in PLATFORMS:
            edit = AddPlatform(platforms=(*platforms, platform))
        elif platform == "windows" and request.platform.startswith("linux/"):
            edit = UseWsl2(host=target.label, platform=request.platform)
        fixes = self._fix(edit, replace(request, hosts=(target,))) if edit is not None else ()
        return Unserved(classes=tuple(classes), conflict=Conflict(members=(member_of(requested), member_of(fact)), fixes=fixes))

    def _fix(self, edit: Edit, tried: Request) -> tuple[Fix, ...]:
        """Return an edit as a fix; () if the edited request has no stack."""
        try:
            stack = solve_system(join(self._matrix, edit.apply(tried)), finds_all=False)
        except (NoStackError, UnlistedReleaseError):
            return ()
        names = (name for lead in (*LEADS, "python") for name in (lead, f"{lead}_build"))
        gives = {name: stack.components[name] for name in names if name in stack.components}
        return (Fix(edits=(edit,), gives=gives, patch=patch_of(tried, [edit])),)


def _unnamed(ground: Ground) -> tuple[str, ...]:
    """Return a sort key of a ground without its host: `gpu 9.0 of node-7` becomes a fact about GPUs."""
    group = ground.group
    if not isinstance(group, FactOf):
        return (str(group),)
    is_foreign = isinstance(ground, HostGpu) and bool(ground.foreign_to)
    return type(ground).__name__, group.component, str(is_foreign)


def _facts_in(members: Iterable[Member]) -> Iterator[Ground]:
    for member in members:
        yield from (clause for clause in member.clauses if isinstance(clause, Ground) and clause.kind == "fact")


def _facts(host: Host, read: frozenset[str]) -> tuple[object, ...]:
    """Return the values that a host states of the components `read`, and always those of its GPUs and virtualization.

    GPUs and virtualization are included because requirements of other components read them.
    """
    gpus = None if host.gpus is None else frozenset((gpu.name, gpu.target) for gpu in host.gpus)
    return (gpus, host.virtualization, *(stated(host, name) for name in sorted(read)))
