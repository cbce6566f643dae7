"""Find wheels that projects publish outside package indexes, for distributions that no index has a usable file of.

The rows of the matrix say for which builds of PyTorch and which Pythons there are wheels. Which of them the target can run is
decided by the components alone; the wheels themselves are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import SpecifierSet

from provisioner.grounds.conflict import Published
from provisioner.resolver.attempts import system_half
from provisioner.resolver.python.bundled import CUDA
from provisioner.resolver.python.distributions import GPU
from provisioner.resolver.python.named_builds import NamedBuild
from provisioner.resolver.python.wheels import declared_code
from provisioner.resolver.requirement import PYTORCH, Labelled, Matching, Requirement, build_of
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.matrix.model import PublishedWheels
    from provisioner.resolver.attempts import Attempt
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate

_MAJORS = frozenset({"cu11", "cu12", "cu13"})
"""The names in `PublishedWheels.builds` that stand for all builds of one major CUDA release."""


class _Fitting(NamedTuple):
    row: PublishedWheels
    python: str
    pytorch: Candidate
    build: str


def published_wheels(attempts: Sequence[Attempt], requests: Sequence[Requirement]) -> tuple[Published, ...]:
    """Return, for each requested distribution that the matrix knows published wheels of, the best one for the target.

    The best one is for the most preferred build of PyTorch, then for the Python of the first attempt. A row of a version that
    a request does not allow is left out.
    """
    found = []
    problem = attempts[0].problem
    for request in requests:
        rows = _rows(problem, request)
        fitting = _best(attempts, rows, request) if rows else None
        index = next((row for row in rows if row.is_index), None)
        if fitting is not None:
            found.append(_published(request.key.project, fitting, problem))
        elif index is not None:
            source = problem.matrix.place_of(f"published:{index.name}")
            found.append(Published(name=request.key.project, address=index.address, kind="index", source=source))
    return tuple(found)


def _rows(problem: Problem, request: Requirement) -> list[PublishedWheels]:
    """Return the rows on wheels of a distribution for the target, without those of a version that the request excludes."""

    def is_allowed(row: PublishedWheels) -> bool:
        test = request.test
        return not (isinstance(test, Matching) and row.version) or test.specifier.contains(row.version, prereleases=True)

    rows = (row for row in problem.matrix.published if request.key.project in row.distributions)
    fitting = (row for row in rows if not row.platforms or problem.request.platform in row.platforms)
    return [row for row in fitting if is_allowed(row) and _runs_on_gpus(row, request.key.project, problem)]


def _runs_on_gpus(row: PublishedWheels, name: str, problem: Problem) -> bool:
    """Return whether the GPUs of all hosts are those that the matrix says the kernels of a distribution's release run on."""
    if problem.request.accelerator != CUDA or not row.version:
        return True
    known = (implied for one in problem.matrix.distributions if one.name == name for implied in one.implies)
    fitting = (one for one in known if SpecifierSet(one.versions).contains(row.version, prereleases=True))
    needs = [need for one in fitting for need in one.require if need.component == GPU]
    return all(need.allows(device) for need in needs for device in problem.needs.devices.by_key.values())


def _is_compiled_for_gpus(row: PublishedWheels, build: str, name: str, problem: Problem) -> bool:
    """Return whether the recipe of a release's wheels compiles a build for the GPUs of all hosts; True when none is known."""
    if problem.request.accelerator != CUDA or not row.version:
        return True
    code = declared_code(problem.matrix, name, row.version, build=build)
    return code is None or not problem.needs.devices.unserved_by(code)


def _best(attempts: Sequence[Attempt], rows: Sequence[PublishedWheels], request: Requirement) -> _Fitting | None:
    """Return the most preferred build of PyTorch that the target runs with a Python of `attempts` and `rows` have wheels for.

    None if there is none.
    """
    found: list[tuple[int, _Fitting]] = []
    for attempt in attempts:
        domain = attempt.problem.domains[PYTORCH]
        fitting: dict[str, _Fitting] = {}
        for row in (row for row in rows if attempt.python in row.python):
            for candidate in domain:
                build = _build_in(row, candidate)
                if build and _is_compiled_for_gpus(row, build, request.key.project, attempt.problem):
                    fitting.setdefault(candidate.label, _Fitting(row, attempt.python, candidate, build))
        if fitting:
            asked = Requirement(PYTORCH, Labelled(frozenset(fitting)), request.ground)
            pins = decide(ProblemInstance(system_half(attempt.problem.with_roots(asked))))
            if pins is not None:
                found.append((domain.index(pins[PYTORCH]), fitting[pins[PYTORCH].label]))
    return min(found, key=lambda one: one[0])[1] if found else None


def _build_in(row: PublishedWheels, candidate: Candidate) -> str:
    """Return the name by which a row has wheels for a build of PyTorch, "" if it has none or if their name is not known."""
    build = build_of(candidate)
    series = ".".join(map(str, candidate.version.release[:2]))
    if build is None or (build.cxx11_abi is None and "{abi}" in row.address):
        return ""
    names = (one for one in row.builds.get(series, ()) if NamedBuild(series, one, is_major=one in _MAJORS).admits(candidate))
    return next(names, "")


def _published(name: str, fitting: _Fitting, problem: Problem) -> Published:
    row, build = fitting.row, build_of(fitting.pytorch)
    address = row.address.format(
        pytorch=".".join(map(str, fitting.pytorch.version.release[:2])),
        build=fitting.build,
        abi="TRUE" if build is not None and build.cxx11_abi else "FALSE",
        python=f"cp{fitting.python.replace('.', '')}",
    )
    place = problem.matrix.place_of(f"published:{row.name}")
    return Published(
        name=name,
        address=address,
        kind="wheel" if row.version else "find-links",
        pytorch=fitting.pytorch.label,
        python=fitting.python,
        source=place,
    )
