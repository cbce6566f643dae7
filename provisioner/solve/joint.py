"""The entry: one problem, system and packages, decided for one platform."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from provisioner.errors import RefusedError
from provisioner.index.model import Environment, PackageSource
from provisioner.solve.answer import TRIED, answer
from provisioner.solve.conflict import explain_conflict
from provisioner.solve.devices import FRAMEWORKS
from provisioner.solve.explain import conflict_lines, hint_line
from provisioner.solve.facts import stated
from provisioner.solve.hints import gives
from provisioner.solve.packages import PackageWorld
from provisioner.solve.requirement import PYTORCH, Candidate, Key, Labelled, Origin, Requirement
from provisioner.solve.resolve import decide
from provisioner.solve.stack import Conflict, Hint
from provisioner.solve.universe import Universe
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.solve.problem import Problem
    from provisioner.solve.stack import Stack

PYTHON = Key("python")
GLIBC_WHEN_UNKNOWN = (2, 28)
"""What manylinux wheels of the day need; a base image nobody knows is assumed to have that much, and said to be unverified."""


class NoStackError(RefusedError):
    """Nothing fits, which is proved; `conflict` says what cannot hold together and what would."""

    code = "no-stack"

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(
            "no stack satisfies the spec on this target",
            causes=conflict_lines(conflict),
            hints=tuple(hint_line(hint) for hint in conflict.hints),
        )
        self.conflict = conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One Python to try: the universe with it fixed, and the best system stack there, None when there is none."""

    python: str
    problem: Problem
    system: dict[Key, Candidate]


def solve_system(problem: Problem) -> Stack:
    """Solve the system stack alone, with no index; raises `NoStackError`."""
    universe = Universe(problem)
    pins = decide(universe)
    if pins is None:
        raise NoStackError(explain_conflict(universe))
    return answer(universe, pins)


def solve_joint(problem: Problem, source_for: Callable[[Environment], PackageSource]) -> Stack:
    """Solve system and packages as one problem; raises `NoStackError` or `UnavailableError`.

    An environment has one Python, and which files and markers apply depends on it. So the Pythons that the system half
    allows are tried in turn, best system stack first and then newest; each try is the whole problem with Python fixed.
    """
    attempts = list(_attempts(problem))
    if not attempts:
        universe = Universe(problem)
        pins = decide(universe)
        if pins is None:
            raise NoStackError(explain_conflict(universe))
        return answer(universe, pins)
    failed = []
    for attempt in attempts:
        universe = _universe(attempt, source_for)
        pins = decide(universe)
        if pins is not None:
            return answer(universe, pins)
        failed.append(universe)
    conflict = _most_telling([explain_conflict(universe) for universe in failed])
    raise NoStackError(_with_python_hint(conflict, problem, source_for, {attempt.python for attempt in attempts}))


def _attempts(problem: Problem) -> Iterator[Attempt]:
    """The Pythons the system half allows, most wanted first."""
    found = []
    for candidate in problem.domains[PYTHON]:
        if not all(one.allows(candidate) for one in problem.roots if one.key == PYTHON):
            continue
        narrowed = problem.with_roots(_fix_python(problem, candidate))
        system = decide(Universe(narrowed))
        if system is not None:
            found.append(Attempt(python=candidate.label, problem=narrowed, system=system))
    is_oldest = problem.wish.spec.policy.strategy == "oldest"

    def rank(attempt: Attempt) -> Version:
        found = (attempt.system.get(Key(name)) for name in FRAMEWORKS)
        return next((one.version for one in found if one is not None), Version.parse("0"))

    locked = problem.wish.preferred.get("python")
    found.sort(key=rank, reverse=not is_oldest)
    return iter(sorted(found, key=lambda attempt: attempt.python != locked))


def _fix_python(problem: Problem, candidate: Candidate) -> Requirement:
    """Fix the Python; when the user asked for one, a conflict with it is a conflict with what they asked."""
    asked = next((one.origin for one in problem.roots if one.key == PYTHON and one.origin.group == "requires.python"), None)
    if asked is not None:
        text = asked.text if asked.text.endswith(candidate.label) else f"{asked.text} ({candidate.label} was tried)"
        origin = asked._replace(text=text)
    else:
        origin = Origin("fact", "python", TRIED, f"python {candidate.label} was tried", "")
    return Requirement(PYTHON, Labelled(frozenset({candidate.label}), candidate.label), origin)


def _universe(attempt: Attempt, source_for: Callable[[Environment], PackageSource]) -> Universe:
    environment = Environment(
        platform=attempt.problem.wish.platform, python=attempt.python, glibc=_glibc(attempt), macos=_macos(attempt)
    )
    framework = attempt.system.get(PYTORCH)
    variant = framework.subject[1].index if framework is not None else ""
    world = PackageWorld(attempt.problem, source_for(environment), environment, variant)
    return Universe(attempt.problem, world)


def _glibc(attempt: Attempt) -> tuple[int, int] | None:
    """The glibc wheels must run on: the base image's in a container, the oldest host's otherwise."""
    if not attempt.problem.wish.platform.startswith("linux"):
        return None
    image = next((one for key, one in attempt.system.items() if key.name == "image"), None)
    if image is not None and not image.subject[2].glibc:
        return GLIBC_WHEN_UNKNOWN
    found = [
        one.version.release for key, one in attempt.system.items() if key.name == "glibc" and isinstance(one.version, Version)
    ]
    if not found:
        stated = [target.host.glibc for target in attempt.problem.wish.hosts if target.host.glibc]
        found = [Version.parse(text).release for text in stated]
    oldest = min(found, default=GLIBC_WHEN_UNKNOWN)
    return oldest[0], oldest[1]


def _macos(attempt: Attempt) -> tuple[int, int] | None:
    """The macOS wheels must run on: the oldest any host states, None where none does."""
    found = [stated(target.host, "macos") for target in attempt.problem.wish.hosts]
    oldest = min((Version.parse(text).release for text in found if text is not None), default=None)
    return None if oldest is None else (oldest[0], (*oldest, 0)[1])


def _most_telling(conflicts: list[Conflict]) -> Conflict:
    """Of one conflict for each Python tried, the first that does not merely say that Python was the wrong one to try."""
    for conflict in conflicts:
        if not any(member.component == "python" and member.kind == "fact" for member in conflict.members):
            return conflict
    return conflicts[0]


def _with_python_hint(
    conflict: Conflict, problem: Problem, source_for: Callable[[Environment], PackageSource], tried: set[str]
) -> Conflict:
    """When the Python asked for is part of the conflict, look for another one that works; each is an environment of its own."""
    if not any(member.component == "python" and member.kind == "request" for member in conflict.members):
        return conflict
    for attempt in _attempts(problem.without_group("requires.python")):
        if attempt.python in tried:
            continue
        universe = _universe(attempt, source_for)
        pins = decide(universe)
        if pins is not None:
            hint = Hint(
                changes=(("python", f"=={attempt.python}"),),
                text=f"python {attempt.python} would do",
                gives=gives(universe, pins),
            )
            return replace(conflict, hints=(hint, *conflict.hints))
    return conflict
