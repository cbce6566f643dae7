"""Why no stack serves some hosts: a minimal conflict for each, told once for all hosts it is the same for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.fleet.model import Unserved
from provisioner.solve.explain.conflict import explain_conflict, members_of
from provisioner.solve.joint import NoStackError, solve_system
from provisioner.solve.problem import join
from provisioner.solve.rules.facts import stated
from provisioner.solve.search.complete import CompleteSearch
from provisioner.solve.search.universe import Universe
from provisioner.solve.stack import Conflict, Hint, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from provisioner.fleet.classes import HostClass
    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request

_RULE = re.compile(r"^rule ([^\s,]+)")


class Explaining:
    """Explains classes one after the other; what one class is told holds for others that state the same."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._guards = {rule.name: frozenset(guard.component for guard in rule.on) for rule in matrix.rules}

    def explain(self, request: Request, classes: Iterable[HostClass]) -> list[Unserved]:
        """One conflict for all classes that the same requests and rules stand against.

        Each class is proved to have it, or states the same as one that was of everything the conflict reads. The first
        class's is told in full, with hints that were solved again for it; of the others what they state instead.
        """
        proved: dict[tuple[str, ...], list[tuple[HostClass, tuple[Reason, ...]]]] = {}
        known: list[tuple[frozenset[str], object, tuple[str, ...], tuple[Reason, ...]]] = []
        for one in classes:
            at = next((at for at, (read, facts, _, _) in enumerate(known) if _facts(one.host, read) == facts), None)
            if at is None:
                groups, members = self._conflict(replace(request, hosts=(one.target,)))
                read = self._read(members)
                known.append((read, _facts(one.host, read), groups, members))
                at = len(known) - 1
            _, _, groups, members = known[at]
            proved.setdefault(groups, []).append((one, members))
        return [self._told(request, some) for some in proved.values()]

    def _conflict(self, request: Request) -> tuple[tuple[str, ...], tuple[Reason, ...]]:
        """A minimal conflict: its groups without the host's name, and its members."""
        universe = Universe(join(self._matrix, request))
        search = CompleteSearch(universe)
        try:
            groups = search.minimal()
            members = members_of(universe, search, groups)
        finally:
            search.close()
        return tuple(sorted(_unnamed(group, request.hosts[0].label) for group in groups)), members

    def _told(self, request: Request, proved: Sequence[tuple[HostClass, tuple[Reason, ...]]]) -> Unserved:
        first = proved[0][0]
        conflict = explain_conflict(Universe(join(self._matrix, replace(request, hosts=(first.target,)))))
        own = {member.text for member in conflict.members}
        facts = dict.fromkeys(
            member.text for _, members in proved for member in members if member.kind == "fact" and member.text not in own
        )
        return Unserved(classes=tuple(one for one, _ in proved), conflict=conflict, also=tuple(sorted(facts)))

    def _read(self, members: Iterable[Reason]) -> frozenset[str]:
        """The facts a conflict rests on: those it names, and those that decide whether its rules hold."""
        read: set[str] = set()
        for member in members:
            rule = _RULE.match(member.where)
            if rule is not None:
                read |= self._guards.get(rule[1], frozenset())
            read.add(member.component)
        return frozenset(read)

    def strangers(self, request: Request, classes: Sequence[HostClass], *, platforms: Sequence[str]) -> list[Unserved]:
        """Hosts of platforms the spec does not name, and whether naming them would do."""
        by_platform: dict[str, list[HostClass]] = {}
        for one in classes:
            by_platform.setdefault(one.host.platform or "", []).append(one)
        return [self._stranger(request, platform, some, platforms=platforms) for platform, some in sorted(by_platform.items())]

    def _stranger(self, request: Request, platform: str, classes: list[HostClass], *, platforms: Sequence[str]) -> Unserved:
        text, place = f"the spec is for {', '.join(platforms)}", classes[0].target.place("platform")
        members = (
            Reason(component="platform", kind="request", text=text, where=request.place("target.platform")),
            Reason(component="platform", kind="fact", text=f"the host has platform {platform}", where=place),
        )
        wanted = f"[{', '.join((*platforms, platform))}]"
        text = f"target.platform {wanted} would do"
        tried = replace(request, hosts=(classes[0].target,), platform=platform)
        hints = self._hint(tried, ("platform", wanted), text)
        return Unserved(classes=tuple(classes), conflict=Conflict(members=members, hints=hints))

    def without_gpu(self, request: Request, classes: Sequence[HostClass], *, accelerators: Iterable[str]) -> list[Unserved]:
        """Hosts without a GPU beside hosts that have one: a stack for CPUs is for who asks for it."""
        if not classes:
            return []
        names = " and ".join(sorted(set(accelerators)))
        first = classes[0]
        members = (
            Reason(component="gpu", kind="fact", text=f"the fleet's GPUs call for {names}", where=request.place("accelerator")),
            Reason(component="gpu", kind="fact", text="the host has no GPU", where=first.target.place("gpus")),
        )
        spec = replace(request.spec, accelerator="cpu")
        tried = replace(request, spec=spec, hosts=(first.target,), platform=first.host.platform or request.platform)
        text = "accelerator cpu, in a spec of their own, would do"
        hints = self._hint(tried, ("accelerator", "cpu"), text)
        return [Unserved(classes=tuple(classes), conflict=Conflict(members=members, hints=hints))]

    def _hint(self, tried: Request, change: tuple[str, str], text: str) -> tuple[Hint, ...]:
        """A change as a hint, if it was solved and works."""
        try:
            stack = solve_system(join(self._matrix, tried))
        except NoStackError:
            return ()
        names = ("pytorch", "pytorch_build", "tensorflow", "jax", "cuda", "rocm", "python")
        gives = {name: stack.components[name] for name in names if name in stack.components}
        return (Hint(changes=(change,), text=text, gives=gives),)


def _unnamed(group: str, label: str) -> str:
    """A group that is about a fact of one host, as it is called for any: `gpu 9.0 of node-7` is a fact about the GPU."""
    for suffix in (f" of {label}", f" on {label}"):
        if group.endswith(suffix):
            return f"{group.partition(' ')[0]}{suffix[:3]}"
    return group


def _facts(host: Host, read: frozenset[str]) -> tuple[object, ...]:
    """What a host states of some components; GPUs and virtualization are read by requirements of others, and always count."""
    gpus = None if host.gpus is None else frozenset((gpu.name, gpu.compute_capability, gpu.gfx) for gpu in host.gpus)
    return (gpus, host.virtualization, *(stated(host, name) for name in sorted(read)))
