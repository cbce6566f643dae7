"""A lock against what the spec says besides versions: where it runs, its indexes, its extras, and nothing more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import Requirement as Pep508
from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError
from provisioner.index.http.settings import IndexLocation, IndexSettings
from provisioner.index.model import DIRECT_PATH, DIRECT_URL
from provisioner.index.routing import normalized_pattern, route
from provisioner.lock.artifact import public_url
from provisioner.lock.finding import Finding
from provisioner.lock.kept import kept
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.words.ground import say_with_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from packaging.utils import NormalizedName

    from provisioner.lock.model import Lock, LockedPackage
    from provisioner.matrix.model_distributions import Distribution
    from provisioner.resolver.choices.markers import Markers
    from provisioner.resolver.problem import Problem

_RECORDED_EXTRAS = re.compile(r"(?:^| and )\[([^\]]*)\]")
"""The extras in what `provisioner.lock.asked` keeps of requirements: `[gpu]>=2; python_version < "3.13" and [more]`."""

_RUNS = {"container": "in a container", "host": "on the host itself"}
_MOST_NAMES = 3


def request_findings(lock: Lock, problem: Problem, markers: Markers, *, where: str) -> Iterator[Finding]:
    """What of a lock of one platform the spec did not say, or no longer says; `markers` judges those of its environment."""
    wanted = problem.request.runs
    if lock.runs != wanted:
        text = f"the spec wants to run {_RUNS[wanted]}, the lock is for running {_RUNS[lock.runs]}"
        yield Finding(code="stale-runs", verdict="no", text=text, where=where)
    yield from _other_extras(lock, problem, markers, where)
    yield from _other_indexes(lock, problem, where)


def unasked_findings(lock: Lock, problem: Problem, *, where: str) -> Iterator[Finding]:
    """What would be installed although nothing leads to it: it stayed behind when somebody went."""
    asked = _led_to(lock, problem)
    rest = [package for package in lock.packages if package.name not in asked]
    if rest:
        verb, them = ("is", "it") if len(rest) == 1 else ("are", "them")
        text = f"{_names(rest)} {verb} locked, and nothing that the spec asks for needs {them}"
        hint = f"`provision solve` locks without {them}"
        yield Finding(code="unasked-package", verdict="no", text=text, where=where, hints=(hint,))


def _led_to(lock: Lock, problem: Problem) -> set[str]:
    """The packages that requests for distributions and for frameworks lead to, also by what the matrix alone knows of them."""
    packages = {package.name: package for package in lock.packages}
    waiting = [package.name for package in kept(lock, problem)]
    waiting += [name for component, name in DISTRIBUTION_OF_COMPONENT.items() if component in problem.request.spec.requires]
    known = {one.name: one for one in problem.matrix.distributions if one.name in packages}
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in packages and name not in found:
            found.add(name)
            waiting += [*packages[name].dependencies, *(_implied(known[name]) if name in known else ())]
    return found


def _implied(known: Distribution) -> Iterator[str]:
    """What any version of a distribution needs although its metadata does not say so."""
    for row in known.implied:
        yield from (name for name, _ in row.packages)
        yield from (DISTRIBUTION_OF_COMPONENT.get(need.component, "") for need in row.needs)
    yield DISTRIBUTION_OF_COMPONENT.get(known.compiled_against, "")


def _other_extras(lock: Lock, problem: Problem, markers: Markers, where: str) -> Iterator[Finding]:
    """Extras are decided when a lock is made: `alpha[more]` and `alpha` may have the same version and other dependencies."""
    locked = {package.name: package for package in lock.packages}
    solved = _solved_extras(lock)
    for requirement, ground in problem.packages:
        name, extras = canonicalize_name(requirement.name), {canonicalize_name(extra) for extra in requirement.extras}
        missing = sorted(extras - solved.get(name, set()))
        if name not in locked or not missing or not markers.hold(requirement.marker):
            continue
        label = f"{name} {locked[name].version}"
        cause = say_with_source(ground)
        if lock.asked:
            text = f"{label} is locked without its {_extras(missing)}, but {cause}"
            yield Finding(code="stale-package", verdict="no", text=text, where=where)
        else:
            text = f"an earlier version recorded no extras, so {label} may be locked without its {_extras(missing)}: {cause}"
            yield Finding(code="unverified", verdict="unverified", text=text, where=where)
    required = [text for package in lock.packages for text in package.requires]
    wanted = _extras_of((*problem.request.spec.packages, *problem.request.spec.overrides, *required))
    for known in sorted(solved.keys() & locked.keys()):
        if rest := sorted(solved[known] - wanted.get(known, set())):
            text = f"{known} {locked[known].version} is locked with its {_extras(rest)}, which nothing asks for any more"
            yield Finding(code="stale-package", verdict="no", text=text, where=where)


def _extras(names: Sequence[str]) -> str:
    return f"extra{'' if len(names) == 1 else 's'} {', '.join(f'`{name}`' for name in names)}"


def _solved_extras(lock: Lock) -> dict[str, set[NormalizedName]]:
    """The extras of each distribution that a lock was solved with: of the spec of then, and of what others require."""
    found = _extras_of(text for package in lock.packages for text in package.requires)
    for key, said in lock.asked.items():
        group, _, name = key.partition(".")
        if group in {"packages", "overrides"}:
            extras = [extra for part in _RECORDED_EXTRAS.findall(said) for extra in part.split(",")]
            found.setdefault(name, set()).update(canonicalize_name(extra) for extra in extras)
    return found


def _extras_of(requirements: Iterable[str]) -> dict[str, set[NormalizedName]]:
    found: dict[str, set[NormalizedName]] = {}
    for text in requirements:
        if "[" in text:
            requirement = Pep508(text)
            extras = {canonicalize_name(extra) for extra in requirement.extras}
            found.setdefault(canonicalize_name(requirement.name), set()).update(extras)
    return found


def _other_indexes(lock: Lock, problem: Problem, where: str) -> Iterator[Finding]:
    """Packages from an index that the spec does not have for them; without `indexes:` each machine has its own."""
    request = problem.request
    own = tuple(
        IndexLocation(name=one.name, url=one.url, packages=tuple(map(normalized_pattern, one.packages)))
        for one in request.spec.indexes
    )
    if not own:
        return
    settings = IndexSettings(indexes=own)
    found: dict[str, list[LockedPackage]] = {}
    for package in lock.packages:
        if package.index and package.index not in {DIRECT_PATH, DIRECT_URL} and (why := _index_obstacle(package, settings)):
            found.setdefault(why, []).append(package)
    for why, packages in found.items():
        text = f"{_names(packages)} come{'s' if len(packages) == 1 else ''} from {why}  ({request.place('indexes')})"
        yield Finding(code="stale-index", verdict="no", text=text, where=where)


def _index_obstacle(package: LockedPackage, settings: IndexSettings) -> str:
    """Why the spec would not have a package from its index, after "comes from"; "" where it would."""
    try:
        locations = route(package.name, package.index, settings).locations
    except ProvisionError:  # no index of that name, or two that claim the package
        return f"index {package.index}, which the spec does not have"
    if not locations:
        return ""
    (index,) = locations
    if index.name != package.index:
        return f"index {package.index}, and the spec has index {index.name} alone for {'it' if index.packages else 'them'}"
    if index.packages and not index.claims(package.name):
        return f"index {index.name}, which the spec has for {', '.join(index.packages)} alone"
    url = public_url(index.url).rstrip("/")
    if package.index_url and package.index_url.rstrip("/") != url:
        return f"index {index.name} at {package.index_url}, and the spec has it at {url}"
    return ""


def _names(packages: list[LockedPackage]) -> str:
    """`alpha 2.0 and beta 1.0`, or the first few and how many more."""
    labels = [f"{package.name} {package.version}" for package in packages]
    if len(labels) > _MOST_NAMES + 1:
        labels = [*labels[:_MOST_NAMES], f"{len(labels) - _MOST_NAMES} more"]
    return " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))
