"""Summarise the components of a matrix: numbers of releases, builds and measured rows, and the newest release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.matrix.model import Component, Matrix, Release


class Summary(Struct, frozen=True, kw_only=True):
    """The numbers about one component of the matrix.

    `releases` and `builds` are the numbers of its releases and builds, `rules` is the number of rules whose condition is about
    it. `rows` is the number of its releases and builds that cite sources of their own, `measured` the number of those rows with
    a measured artefact among their sources. `newest` is its newest release, "" if its values are names or there is none.
    `end_of_life` is the latest end of life that any of its releases states, "" if none does.
    """

    name: str
    title: str
    releases: int
    builds: int
    rules: int
    newest: str
    rows: int
    measured: int
    end_of_life: str
    is_virtual: bool

    @property
    def share(self) -> str:
        """The share of measured rows in percent, "" if there are no rows."""
        return f"{100 * self.measured // self.rows} %" if self.rows else ""


def summaries(matrix: Matrix) -> tuple[Summary, ...]:
    """Return the summary of every component, in the order of the matrix."""
    return tuple(_summary(matrix, matrix.components[name]) for name in matrix.order)


def _summary(matrix: Matrix, component: Component) -> Summary:
    rows = list(_rows(component))
    newest = ""
    if component.releases:
        is_named = component.named
        newest = "" if is_named else str(max(component.releases, key=lambda release: release.version).version)
    return Summary(
        name=component.name,
        title=component.title,
        releases=len(component.releases),
        builds=sum(len(release.builds) for release in component.releases),
        rules=sum(rule.when.component == component.name for rule in matrix.rules),
        newest=newest,
        rows=len(rows),
        measured=sum(is_measured(matrix, sources) for sources in rows),
        end_of_life=max((release.end_of_life for release in component.releases), default=""),
        is_virtual=component.virtual,
    )


def _rows(component: Component) -> Iterator[tuple[str, ...]]:
    """Yield the sources of every row; as in `matrix.lint`, a build with the sources of its release is not a row."""
    for release in component.releases:
        if release.source:
            yield release.source
        yield from (build.source for build in release.builds if build.source != release.source)


def is_measured(matrix: Matrix, sources: tuple[str, ...]) -> bool:
    """Return whether any of these sources is a measured artefact."""
    return any(matrix.citations[source].measured for source in sources if source in matrix.citations)


def sources_of(release: Release) -> tuple[str, ...]:
    """Return the sources of a release and its builds, each once, in order."""
    builds = (source for build in release.builds for source in build.source)
    return tuple(dict.fromkeys((*release.source, *builds)))


def newest_first(component: Component) -> tuple[Release, ...]:
    """Return the releases of a component, newest first; named ones (`open`) in the order of the matrix."""
    if component.named:
        return tuple(component.releases)
    return tuple(sorted(component.releases, key=lambda release: release.version, reverse=True))
