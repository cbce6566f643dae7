"""How many rows a matrix has, and how many of them were measured from an artefact."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import Matrix


class Counts(Struct, frozen=True, kw_only=True):
    """`kinds` counts rows by what they are about: a component, `rules`, `gpus`, `images` ….

    A row counts as measured when one of its citations says that the artefact itself was read.
    """

    rows: int
    measured: int
    kinds: Mapping[str, int]
    measured_kinds: Mapping[str, int]


def count(matrix: Matrix) -> Counts:
    """Count every row that carries a citation of its own."""
    kinds: Counter[str] = Counter()
    measured: Counter[str] = Counter()
    for kind, sources in rows(matrix):
        kinds[kind] += 1
        if any(matrix.citations[source].measured for source in sources):
            measured[kind] += 1
    return Counts(rows=kinds.total(), measured=measured.total(), kinds=dict(kinds), measured_kinds=dict(measured))


def rows(matrix: Matrix) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every row as its kind and the keys of its citations; a release with builds is as many rows as it has builds."""
    for component in matrix.components.values():
        for release in component.releases:
            if release.sources and not release.builds:
                yield component.name, release.sources
            yield from ((component.name, build.sources) for build in release.builds)
            yield from (("driver patches", patch.sources) for patch in release.patched)
    yield from (("rules", rule.sources) for rule in matrix.rules)
    yield from (("driver branches", branch.sources) for branch in matrix.branches)
    yield from (("gpus", gpu.sources) for gpu in matrix.gpus)
    yield from (("gfx overrides", override.sources) for override in matrix.overrides)
    yield from (("images", image.sources) for image in matrix.images)
    for distribution in matrix.distributions:
        if distribution.sources:
            yield "distributions", distribution.sources
        yield from (("distributions", implied.sources) for implied in distribution.implied)
    yield from (("limits", limit.sources) for limit in matrix.limits)
    yield from (("shared files", shared.sources) for shared in matrix.shared_files)
    yield from (("variables", one.sources) for one in matrix.variables)
    yield from (("failures", one.sources) for one in matrix.failures)
    yield from (("driver packages", one.sources) for one in matrix.driver_packages)
