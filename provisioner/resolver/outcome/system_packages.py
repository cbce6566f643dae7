"""The packages of the base image's Linux distribution that an image needs beside the wheels.

They are those that the spec asks for, those with the shared libraries that chosen wheels link to or open and with the programs
that they start, and compilers for what is compiled at run time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.specifiers import SpecifierSet

from provisioner.grounds.doubt import LacksOfSystem, UnreadWheels
from provisioner.grounds.predicate import TakesFromSystem
from provisioner.grounds.requirement import AsksSystemPackage, Relation, Row
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.python.libraries import library_of
from provisioner.resolver.python.wheels import neighbours
from provisioner.resolver.requirement import FileCandidate, ImageCandidate, Key
from provisioner.resolver.rules.images import KINDS
from provisioner.resolver.stack import SystemPackage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from packaging.version import Version as PackageVersion

    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.requirement import Ground
    from provisioner.matrix.model import ImageFacts, Matrix, SystemLibrary, SystemNeed, SystemTool, SystemWheel
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance

_specifier = lru_cache(maxsize=1024)(SpecifierSet)

_SYSTEM = "the system"
"""The object of the relation between a distribution and what it takes from the system."""


class _Need(Struct, frozen=True, kw_only=True):
    """A library or tool (`name`) that a chosen distribution needs, for the reason `ground`.

    `packages` are the packages of the base image's distribution that have it; None when no package is known. With `optional`
    only a part of the distribution needs it. `is_tool` is False for a library, `is_compiler` also for a program that compiles
    nothing. `bases` are words for base images that have it.
    """

    name: str
    ground: Ground
    candidate: Candidate
    packages: tuple[str, ...] | None
    because: str = ""
    optional: bool = False
    is_tool: bool = False
    is_compiler: bool = False
    bases: tuple[str, ...] = ()


def system_packages(
    problem: Problem, pins: Mapping[Key, Candidate], needs: Sequence[_Need] | None = None
) -> tuple[SystemPackage, ...]:
    """Return the packages to install in the image, sorted by name, each with the reasons for it; () without an image.

    `needs` are those of the chosen distributions, if they were found already.
    """
    image = _image(pins)
    if image is None:
        return ()
    spec, found = problem.request.spec.image, dict[str, dict["Ground", None]]()
    for index, name in enumerate(spec.apt):
        ground = AsksSystemPackage(name=name, place=problem.request.place(f"image.apt.{index}"))
        found.setdefault(name.partition("=")[0], {})[ground] = None
    versions = {name.partition("=")[0]: name for name in spec.apt}
    for need in _needs(problem, pins, image) if needs is None else needs:
        if not need.optional and not (need.is_compiler and spec.compiler == "none"):
            for name in need.packages or ():
                found.setdefault(name, {})[need.ground] = None
    return tuple(
        SystemPackage(name=versions.get(name, name), reasons=tuple(reasons)) for name, reasons in sorted(found.items())
    )


def system_doubts(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield a doubt for each chosen distribution that needs of the system what the image is not known to have."""
    problem, image = instance.problem, _image(pins)
    if image is None:
        return
    every = tuple(_needs(problem, pins, image))
    installed = {one.name.partition("=")[0] for one in system_packages(problem, pins, every)}
    lacks: dict[tuple[Candidate, bool], list[_Need]] = {}
    for need in every:
        if need.packages is None or not installed.issuperset(need.packages):
            lacks.setdefault((need.candidate, need.packages is None), []).append(need)
    for (candidate, _), needs in lacks.items():
        yield LacksOfSystem(
            subject=candidate.subject,
            names=tuple(dict.fromkeys(one.name for one in needs)),
            image=image.reference.partition("@")[0],
            distribution=image.distribution,
            packages=tuple(dict.fromkeys(name for one in needs for name in one.packages or ())),
            because=next((one.because for one in needs if one.because), ""),
            bases=tuple(dict.fromkeys(base for one in needs for base in one.bases)),
            is_of_tools=all(one.is_tool for one in needs),
        )
    unread = tuple(_unread(instance, pins))
    if unread:
        yield UnreadWheels(distributions=unread)


def compiles_with(problem: Problem, pins: Mapping[Key, Candidate], kind: str) -> bool:
    """Return whether a chosen distribution compiles, when it runs, with a tool that base images of a kind contain."""
    tools, stated = {str(one.name): one for one in problem.matrix.system_tools}, _stated(problem.matrix)
    return any(
        kind in tools[tool].kinds
        for name, candidate in _distributions(pins)
        for need in stated.get(name, ())
        if _applies(need, candidate, problem.request.accelerator)
        for tool in need.tools
    )


def _applies(need: SystemNeed, candidate: Candidate, accelerator: str) -> bool:
    is_version = _specifier(need.versions).contains(candidate.pep440, prereleases=True)
    return is_version and (not need.accelerators or accelerator in need.accelerators)


def _image(pins: Mapping[Key, Candidate]) -> ImageFacts | None:
    return next((one.image for one in pins.values() if isinstance(one, ImageCandidate)), None)


def _distributions(pins: Mapping[Key, Candidate]) -> list[tuple[str, Candidate]]:
    """Return the chosen version of each distribution by its name, sorted."""
    return sorted({one.key.project: one for one in pins.values() if isinstance(one, FileCandidate)}.items())


def _needs(problem: Problem, pins: Mapping[Key, Candidate], image: ImageFacts) -> Iterator[_Need]:
    """Yield what each chosen distribution needs of the system, and what a base image may lack."""
    matrix, accelerator = problem.matrix, problem.request.accelerator
    libraries, tools = _libraries(matrix), {str(one.name): one for one in matrix.system_tools}
    wheels, stated = _wheels(matrix), _stated(matrix)
    python = pins[Key("python")].label if Key("python") in pins else ""
    for name, candidate in _distributions(pins):
        rows, is_inferred = wheels.rows_of(candidate, problem.request.platform)
        if rows:
            place = matrix.place_of(f"system-wheel:{name} {rows[0].versions}")
            links = sorted({soname for row in rows for soname in row.links})
            for soname in _any_of_each(links, libraries, image.distribution):
                predicate = TakesFromSystem(name=soname, is_inferred=is_inferred)
                yield _Need(
                    name=soname,
                    ground=candidate.entails(predicate, Relation(name, _SYSTEM), place),
                    candidate=candidate,
                    packages=_with_library(libraries.get(soname), image),
                )
        for need in stated.get(name, ()):
            if _applies(need, candidate, accelerator):
                yield from _stated_needs(matrix, need, candidate, image, tools=tools, python=python)


def _stated_needs(
    matrix: Matrix,
    need: SystemNeed,
    candidate: Candidate,
    image: ImageFacts,
    *,
    tools: Mapping[str, SystemTool],
    python: str,
) -> Iterator[_Need]:
    """Yield the libraries and tools of a row on a distribution, without the tools that the base image has."""
    libraries = _libraries(matrix)
    place = matrix.place_of(f"system-need:{need.distribution} {need.versions}")

    def needed(name: str, packages: tuple[str, ...] | None, *, tool: SystemTool | None = None) -> _Need:
        predicate = TakesFromSystem(name=name, because=need.because)
        return _Need(
            name=name,
            ground=candidate.entails(predicate, Row("system-need", need.distribution), place),
            candidate=candidate,
            packages=packages,
            because=need.because,
            optional=need.optional,
            is_tool=tool is not None,
            is_compiler=tool is not None and tool.is_compiler,
            bases=tuple(kind for kind in tool.kinds if kind in KINDS) if tool is not None else (),
        )

    for soname in _any_of_each(need.libraries, libraries, image.distribution):
        yield needed(soname, _with_library(libraries.get(soname), image))
    for tool in (tools[name] for name in need.tools):
        if not _has(image, tool, python):
            yield needed(tool.title, _with_tool(tool, image, python), tool=tool)


def _any_of_each(sonames: Iterable[str], libraries: Mapping[str, SystemLibrary], distribution: str) -> Iterator[str]:
    """Yield one soname of each library: of several versions the newest that the distribution packages, else the newest."""
    by_name: dict[str, list[str]] = {}
    for soname in sonames:
        by_name.setdefault(library_of(soname), []).append(soname)
    for some in by_name.values():
        packaged = [one for one in some if one in libraries and libraries[one].package_in(distribution)]
        yield (packaged or some)[-1]


def _with_library(library: SystemLibrary | None, image: ImageFacts) -> tuple[str, ...] | None:
    """Return the package with a library in the distribution of a base image; None when no row names one."""
    package = library.package_in(image.distribution) if library is not None else ""
    return (package,) if package else None


def _with_tool(tool: SystemTool, image: ImageFacts, python: str) -> tuple[str, ...] | None:
    """Return the packages with a tool in the distribution of a base image; None when it has none."""
    if not tool.packages or not image.distribution:
        return None
    return tuple(name.replace("{python}", python) for name in tool.packages)


def _has(image: ImageFacts, tool: SystemTool, python: str) -> bool:
    """Return whether a base image has a tool; a Python that its distribution does not package brings its headers.

    A Python that the spec states of its base image, and that the distribution packages, is taken to be the distribution's.
    """
    if any("{python}" in name for name in tool.packages):
        packaged = image.apt_python or ("" if image.kind else tool.pythons.get(image.distribution, ""))
        return python != packaged and bool(image.python or image.distribution)
    return image.kind in tool.kinds


def _unread(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[str]:
    """Yield the distributions, sorted, of which a wheel with compiled code was chosen and none was ever read for links."""
    if instance.finder is None:
        return
    read = {*_wheels(instance.problem.matrix).distributions, *_stated(instance.problem.matrix)}
    for name, candidate in _distributions(pins):
        file = instance.finder.release_of(candidate).file
        if name not in read and file is not None and not file.filename.endswith("-any.whl"):
            yield name


@once_per_matrix
def _libraries(matrix: Matrix) -> dict[str, SystemLibrary]:
    return {row.soname: row for row in matrix.system_libraries}


class _Wheels:
    """The wheels that were read for links, by distribution; those that stand for a version are looked for once."""

    def __init__(self, matrix: Matrix) -> None:
        self._rows: dict[str, list[SystemWheel]] = {}
        for row in matrix.system_wheels:
            self._rows.setdefault(row.distribution, []).append(row)
        self._known: dict[tuple[str, PackageVersion, str], tuple[tuple[SystemWheel, ...], bool]] = {}

    @property
    def distributions(self) -> Collection[str]:
        """The distributions of which wheels were read."""
        return self._rows.keys()

    def rows_of(self, candidate: Candidate, platform: str) -> tuple[tuple[SystemWheel, ...], bool]:
        """Return the row on a version's wheels and False; without one, the rows on the nearest measured versions and True.

        They are those of the nearest version below and the nearest above: where between them the needs changed is unknown.
        """
        key = candidate.key.project, candidate.pep440, platform
        found = self._known.get(key)
        if found is None:
            rows = self._rows.get(candidate.key.project, ())
            here = [row for row in rows if not row.platforms or platform in row.platforms]
            fits = (row for row in here if _specifier(row.versions).contains(candidate.pep440, prereleases=True))
            exact = next(fits, None)
            around = tuple(neighbours(here or rows, candidate.pep440)) if exact is None else (exact,)
            found = self._known[key] = around, exact is None
        return found


_wheels = once_per_matrix(_Wheels)


@once_per_matrix
def _stated(matrix: Matrix) -> dict[str, list[SystemNeed]]:
    found: dict[str, list[SystemNeed]] = {}
    for row in matrix.system_needs:
        found.setdefault(row.distribution, []).append(row)
    return found
