"""Loading of a matrix from its YAML files; all mistakes of all files are reported in one error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.errors import InvalidDocumentError
from provisioner.matrix.check import check
from provisioner.matrix.files import KIND, read_files
from provisioner.matrix.location import content_digest, default_directory
from provisioner.matrix.model import Component, Matrix, Release
from provisioner.places import Place
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.matrix.files import KeyPosition, MatrixFiles


def load_matrix(directory: Path | None = None) -> Matrix:
    """Return the matrix of a directory (default: the shipped one), read from its YAML and checked.

    Raises `MatrixMissingError` when the directory has no matrix, and `InvalidDocumentError` listing the mistakes of all files.
    """
    directory = directory if directory is not None else default_directory()
    digest = content_digest(directory)
    files = read_files(directory)
    mistakes = (*files.mistakes, *check(files))
    if mistakes:
        raise InvalidDocumentError(KIND, mistakes)
    gates = files.images.content.gates
    return Matrix(
        order=files.index.content.order,
        components={name: _component(files, name) for name in files.index.content.order},
        rules=tuple(rule for file in files.component_files for rule in file.content.rules),
        branches=tuple(branch for file in files.component_files for branch in file.content.branches),
        gpus=files.gpus.content.gpus,
        images=tuple(replace(one, require_cuda=gates.get(one.require_cuda, "")) for one in files.images.content.images),
        citations={key: entry for file in files.all_files for key, entry in file.content.sources.items()},
        digest=digest,
        positions=_positions(files),
        distributions=files.distributions.content.distributions,
        limits=files.distributions.content.limits,
        toolkit_files=files.distributions.content.toolkit_files,
        shared_files=files.hazards.content.shared_files,
        published=files.distributions.content.published,
        declared=files.distributions.content.declared,
        overrides=files.gpus.content.overrides,
        seen_to_run=files.gpus.content.seen_to_run,
        performance=files.gpus.content.performance,
        chips=files.gpus.content.chips,
        variables=files.knowledge.content.variables,
        failures=files.failures.content.failures,
        statements=files.failures.content.statements,
        driver_packages=files.driver_packages.content.packages,
        host_repositories=files.host_packages.content.repositories,
        host_packages=files.host_packages.content.packages,
        source_builds=files.host_packages.content.source_builds,
        wheels=files.wheels.content.wheels,
        system_wheels=files.system_wheels.content.wheels,
        system_libraries=files.system_packages.content.libraries,
        system_tools=files.system_packages.content.tools,
        system_needs=files.system_packages.content.needs,
        families=files.index.content.families,
        python_builds=files.python_builds.content.builds,
        kernels={
            name: file.content.kernels
            for name, parts in files.components.items()
            for file in parts
            if file.content.kernels is not None
        },
        sonames={
            name: found
            for name, parts in files.components.items()
            if (found := tuple(row for file in parts for row in file.content.sonames))
        },
    )


def _component(files: MatrixFiles, name: str) -> Component:
    """Return a component with the releases of all its files; the builds of a release in several files are merged."""
    entry = files.index.content.components[name]
    releases = {version: Release(version=version) for version in map(Version.named, entry.values)}
    for row in (row for file in files.components[name] for row in file.content.releases):
        builds = tuple(build if build.source else replace(build, source=row.source) for build in row.builds)
        first = releases.get(row.version)
        if first is None:
            releases[row.version] = replace(row, builds=builds)
        else:
            releases[row.version] = replace(first, builds=(*first.builds, *builds))
    return Component(
        name=name,
        title=entry.title,
        releases=tuple(releases.values()),
        virtual=entry.virtual,
        named=entry.named,
        series=entry.series,
    )


def _positions(files: MatrixFiles) -> dict[str, Place]:
    """Return the file and line of each row for `Matrix.positions`; the first one if several rows have the same key."""
    found: dict[str, Place] = {}
    for name, at in _named_rows(files):
        if name not in found:
            found[name] = Place(f"{at.file.directory.name}/{at.file.name}", at.line)
    return found


def _named_rows(files: MatrixFiles) -> Iterator[tuple[str, KeyPosition]]:
    for component, parts in files.components.items():
        for at, release in (row for part in parts for row in part.at().each("releases", part.content.releases)):
            yield f"{component}=={release.version}", at
            builds = at.each("builds", release.builds)
            yield from ((f"{component}=={release.version}+{build.name}", below) for below, build in builds)
    for file in files.component_files:
        yield from ((f"rule:{rule.name}", at) for at, rule in file.at().each("rules", file.content.rules))
    top, about = files.distributions.at(), files.distributions.content
    for at, distribution in top.each("distributions", about.distributions):
        yield f"distribution:{distribution.name}", at
        implied = at.each("implies", distribution.implies)
        yield from ((f"distribution:{distribution.name} {row.versions}", below) for below, row in implied)
        opened = at.each("opens", distribution.opens)
        yield from ((f"opens:{distribution.name} {row.versions}", below) for below, row in opened)
    yield from ((f"limit:{limit.name}", at) for at, limit in top.each("limits", about.limits))
    yield from ((f"published:{row.name}", at) for at, row in top.each("published", about.published))
    yield from ((f"declared:{row.name}", at) for at, row in top.each("declared", about.declared))
    top, shared_files = files.hazards.at(), files.hazards.content.shared_files
    yield from ((f"shared-file:{shared.name}", at) for at, shared in top.each("shared_files", shared_files))
    top, known = files.knowledge.at(), files.knowledge.content
    yield from ((f"variables:{variables.name}", at) for at, variables in top.each("variables", known.variables))
    top, logged = files.failures.at(), files.failures.content
    yield from ((f"failure:{failure.name}", at) for at, failure in top.each("failures", logged.failures))
    yield from ((f"statement:{statement.name}", at) for at, statement in top.each("statements", logged.statements))
    packages = files.driver_packages.at().each("packages", files.driver_packages.content.packages)
    yield from ((f"driver-package:{package.os} {package.name}", at) for at, package in packages)
    rows = files.wheels.at().each("wheels", files.wheels.content.wheels)
    yield from ((f"wheel:{wheel.distribution} {wheel.versions}", at) for at, wheel in rows)
    of_wheels = files.system_wheels.at().each("wheels", files.system_wheels.content.wheels)
    yield from ((f"system-wheel:{row.distribution} {row.versions}", at) for at, row in of_wheels)
    needs = files.system_packages.at().each("needs", files.system_packages.content.needs)
    yield from ((f"system-need:{row.distribution} {row.versions}", at) for at, row in needs)
