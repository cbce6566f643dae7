"""Find the framework releases that run on a host with some facts; the complete search of the resolver decides each."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from msgspec import Struct, convert
from msgspec.structs import replace

from provisioner.browse.query import interpret
from provisioner.document import parse_document
from provisioner.grounds.requirement import AsksFor, Relation, Row
from provisioner.host.profile import host_from_document
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.platforms import DEFAULT_PLATFORM
from provisioner.request import Request, TargetHost
from provisioner.resolver.explain.conflict import described
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Key, ReleaseCandidate, Requirement
from provisioner.resolver.rules.guards import Guards, Verdict
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.spec.model import ANY_CUDA, ImageSpec, Spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.browse.query import Fact
    from provisioner.grounds.conflict import Member
    from provisioner.grounds.doubt import Doubt
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.stack import Stack
    from provisioner.versions import Version

LABEL = "host"


class OfRelease(Struct, frozen=True):
    """The test that a candidate is a build of one release."""

    version: Version

    def allows(self, candidate: Candidate) -> bool:
        """Return whether a candidate is a build of the release."""
        return isinstance(candidate, ReleaseCandidate) and candidate.release.version.text == self.version.text

    def __str__(self) -> str:
        return str(self.version)


class Running(Struct, frozen=True, kw_only=True):
    """One framework release that runs, with the stack that the resolver chooses for it.

    `build` is the name of the framework's build in that stack, "" for a release without builds.
    """

    component: str
    release: str
    build: str
    stack: Stack


class Refused(Struct, frozen=True, kw_only=True):
    """Framework releases that cannot run, newest first, and the minimal conflict of the newest of them.

    `members` are the requirements in that conflict. `rules` are the names of the matrix's rules in it, or if it contains no
    rule, the needs in it as text (`pytorch needs gpu`).
    """

    component: str
    releases: tuple[str, ...]
    members: tuple[Member, ...]
    rules: tuple[str, ...]


class Stacks(Struct, frozen=True, kw_only=True):
    """The answer to a query about a host: its interpreted facts, the framework releases that run, and those that do not.

    `doubts` are about facts that the query lacks.
    """

    facts: tuple[tuple[str, str], ...]
    running: tuple[Running, ...]
    refused: tuple[Refused, ...]
    doubts: tuple[Doubt, ...]


def which_stacks(matrix: Matrix, facts: Sequence[Fact], allow: Sequence[str] = ("minor-version",)) -> Stacks:
    """Try every release of every framework on a host with these facts; `allow` is the `policy.allow` of the stacks' spec.

    Raises `UsageError` for a fact that no host can state. If forward compatibility is allowed, the image is assumed to have
    NVIDIA's cuda-compat if a GPU supports it (see `with_cuda_compat`).
    """
    interpreted = interpret(matrix, facts)
    host = host_from_document(parse_document(interpreted.profile_text(), file="the question", kind="question"))
    platform = host.platform or DEFAULT_PLATFORM
    spec = convert(
        {
            "requires": interpreted.requires,
            "policy": {"allow": tuple(allow)},
            "target": {"platform": platform},
            "runs": interpreted.settings.get("runs", "container"),
            "accelerator": interpreted.settings.get("accelerator"),
        },
        Spec,
    )
    request = Request(spec=spec, hosts=(TargetHost(label=LABEL, host=host),), platform=platform)
    problem = join(matrix, with_cuda_compat(matrix, request))
    running: list[Running] = []
    refused: list[Refused] = []
    required = [name for name in frameworks(matrix) if name in interpreted.requires]
    for name in required or frameworks(matrix):
        found = _framework(problem, name)
        running.extend(found[0])
        refused.extend(found[1])
    shared = _shared([one.stack.doubts for one in running])
    return Stacks(
        facts=tuple(interpreted.facts), running=tuple(running), refused=tuple(refused), doubts=shared or problem.doubts
    )


def with_cuda_compat(matrix: Matrix, request: Request) -> Request:
    """Return a request for an image that has NVIDIA's cuda-compat, if forward compatibility is allowed and a GPU supports it.

    On GPUs that are not for data centres, the package does not work and breaks minor-version compatibility, so that allowing
    more would give fewer stacks; for these the request is returned unchanged.
    """
    guards = Guards(matrix, request)
    if "forward-compat" not in request.allowed or all(guards.is_data_centre(one) is Verdict.NO for one in request.hosts):
        return request
    return replace(request, spec=replace(request.spec, image=ImageSpec(cuda_compat=ANY_CUDA)))


def frameworks(matrix: Matrix) -> tuple[str, ...]:
    """Return the frameworks with builds, in the order of the matrix."""
    names = (name for name in matrix.order if name in DISTRIBUTION_OF_COMPONENT)
    return tuple(name for name in names if any(release.builds for release in matrix.components[name].releases))


def _framework(problem: Problem, name: str) -> tuple[list[Running], list[Refused]]:
    """Return the releases of a framework that run and those that are refused, each newest first."""
    key = Key(name)
    releases: dict[str, list[ReleaseCandidate]] = {}
    wanted = [root for root in problem.roots if root.key == key]
    for candidate in problem.domains.get(key, ()):
        if not isinstance(candidate, ReleaseCandidate) or not all(root.allows(candidate) for root in wanted):
            continue  # the query does not ask for this release
        releases.setdefault(candidate.release.version.text, []).append(candidate)
    running, refused = [], []
    # What is only expected refuses nothing: a release that fails by it runs, with a doubt.
    instances = [ProblemInstance(problem), ProblemInstance(problem.lenient())]
    with ExitStack() as opened:
        searches = [opened.enter_context(closing(CompleteSearch(instance))) for instance in instances]
        for text, candidates in sorted(releases.items(), key=lambda item: item[1][0].release.version, reverse=True):
            works = (
                (instance, search, one)
                for instance, search in zip(instances, searches, strict=True)
                for one in candidates
                if search.find(given=[one], present=[key]) is not None
            )
            found = next(works, None)
            if found is None:
                refused.append(_refusal(problem.lenient(), key, text, candidates[0].release.version))
                continue
            instance, search, chosen = found
            pins = search.best(given=[chosen], present=[key])
            assert pins is not None, "what was found once is found again"
            build = chosen.build
            stack = answer(instance, pins)
            running.append(Running(component=name, release=text, build=build.name if build else "", stack=stack))
    return running, _merge_neighbours(refused)


def _refusal(problem: Problem, key: Key, text: str, version: Version) -> Refused:
    ground = AsksFor(name=key.component, release=text)
    instance = ProblemInstance(problem.with_roots(Requirement(key, OfRelease(version), ground)))
    search = CompleteSearch(instance)
    try:
        assert search.find() is None, "a release none of whose builds is possible has no stack"
        groups = search.minimal()
        members = described(instance, search, groups).members
    finally:
        search.close()
    rules = tuple(group.name for group in groups if isinstance(group, Row) and group.table == "rule")
    # If no rule of the matrix is in the conflict, the needs of releases and builds are named: `pytorch needs gpu`.
    return Refused(
        component=key.component,
        releases=(text,),
        members=tuple(member for member in members if member.group != ground.group),
        rules=rules or tuple(str(group) for group in groups if isinstance(group, Relation)),
    )


def _merge_neighbours(refused: Sequence[Refused]) -> list[Refused]:
    """Merge neighbouring refused releases with the same rules, and return the result; `members` are those of the newest."""
    found: list[Refused] = []
    for one in refused:
        if found and found[-1].rules == one.rules:
            last = found[-1]
            found[-1] = Refused(
                component=last.component, releases=(*last.releases, *one.releases), members=last.members, rules=last.rules
            )
        else:
            found.append(one)
    return found


def _shared(notes: Sequence[tuple[Doubt, ...]]) -> tuple[Doubt, ...]:
    """Return the doubts that all stacks share."""
    if not notes:
        return ()
    return tuple(note for note in notes[0] if all(note in other for other in notes[1:]))
