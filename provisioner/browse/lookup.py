"""One row by its name: a rule, a source, a GPU product, an image, a known failure … and the rows a source speaks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.browse.data import gpu_data, image_data, kept, needs_data, rule_data
from provisioner.errors import UsageError
from provisioner.names import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.browse.data import Data
    from provisioner.matrix.model import Matrix


class Row(Struct, frozen=True, kw_only=True):
    """One named row: its kind (`rule`, `source`, `gpu` …), its name and what it says."""

    kind: str
    name: str
    data: Data


def row_named(matrix: Matrix, name: str) -> Row:
    """Return the row of this name, whatever its kind; raises `UsageError` with the nearest name."""
    table = {row.name.casefold(): row for row in named_rows(matrix)}
    wanted = name.casefold()
    for spelling in (wanted, f"nvidia {wanted}", f"nvidia geforce {wanted}", f"amd {wanted}"):
        if spelling in table:
            return table[spelling]
    near = nearest(wanted, (*table, *matrix.components))
    known = table[near].name if near in table else near
    hints = (f"did you mean `{known}`?",) if known else ()
    raise UsageError(
        f"`{name}` is no component, rule, source or product of the matrix",
        hints=(*hints, "`provision matrix list` names the components; write facts as cuda==11.3, sm_61 or driver=535"),
    )


def named_rows(matrix: Matrix) -> Iterator[Row]:
    """Every row that has a name of its own; where two kinds share a name the later one is found."""
    for key, names in citing_index(matrix).items():
        yield Row(kind="source", name=key, data=kept({"key": key, "sources": (key,), "rows": names}))
    for image in matrix.images:
        yield Row(kind="image", name=image.reference, data=image_data(image))
    for gpu in matrix.gpus:
        yield Row(kind="gpu", name=gpu.name, data=gpu_data(gpu))
    yield from _knowledge(matrix)
    for rule in matrix.rules:
        yield Row(kind="rule", name=rule.name, data=rule_data(matrix, rule))


def _knowledge(matrix: Matrix) -> Iterator[Row]:
    for package in matrix.driver_packages:
        data = {field: getattr(package, field) for field in ("name", "os", "kind", "branches", "modules", "kernel")}
        data |= {field: getattr(package, field) for field in ("signed", "headers", "note")} | {"sources": package.source}
        yield Row(kind="driver package", name=package.name, data=kept(data))
    for override in matrix.overrides:
        data = {
            "name": override.name,
            "gfx": override.gfx,
            "runs_as": override.runs_as,
            "set": dict(sorted(override.set.items())),
        }
        yield Row(
            kind="override", name=override.name, data=kept({**data, "because": override.because, "sources": override.source})
        )
    for one in matrix.variables:
        data = {
            "name": one.name,
            "when": needs_data((one.when,)),
            "on": needs_data(one.on),
            "set": dict(sorted(one.set.items())),
        }
        yield Row(kind="variables", name=one.name, data=kept({**data, "because": one.because, "sources": one.source}))
    for failure in matrix.failures:
        data = {
            "name": failure.name,
            "layer": failure.layer,
            "when": needs_data(failure.when),
            "on": needs_data(failure.on),
        }
        data |= {"symptoms": failure.symptoms, "cause": failure.cause, "remedy": failure.remedy, "sources": failure.source}
        yield Row(kind="failure", name=failure.name, data=kept(data))
    for limit in matrix.limits:
        data = {"name": limit.name, "when": needs_data((limit.when,)), "on": needs_data(limit.on)}
        data |= {"allow": {limit.distribution: limit.specifier}, "because": limit.because, "sources": limit.source}
        yield Row(kind="limit", name=limit.name, data=kept(data))
    for shared in matrix.shared_files:
        owners = {owner.distribution: owner.versions or "every version" for owner in shared.owners}
        data = {"name": shared.name, "path": shared.path, "owners": owners, "refused": "yes" if shared.refused else "no"}
        data |= {"because": shared.because, "sources": shared.source}
        yield Row(kind="shared file", name=shared.name, data=kept(data))


def citing_index(matrix: Matrix) -> dict[str, tuple[str, ...]]:
    """What each source speaks for, every row as a person would ask for it."""
    found: dict[str, dict[str, None]] = {key: {} for key in matrix.citations}
    for name, sources in _cited_rows(matrix):
        for key in sources:
            if key in found:
                found[key][name] = None
    return {key: tuple(names) for key, names in found.items()}


def _cited_rows(matrix: Matrix) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in matrix.order:
        for release in matrix.components[name].releases:
            spelled = f"{name}=={release.version}"
            yield spelled, release.source
            yield from ((f"{spelled}+{build.name}", build.source) for build in release.builds)
            yield from ((spelled, patch.source) for patch in release.patched)
    yield from ((rule.name, rule.source) for rule in matrix.rules)
    yield from ((f"driver branch {branch.branch}", branch.source) for branch in matrix.branches)
    yield from ((gpu.name, gpu.source) for gpu in matrix.gpus)
    yield from ((image.reference, image.source) for image in matrix.images)
    for distribution in matrix.distributions:
        yield f"distribution {distribution.name}", distribution.source
        yield from ((f"distribution {distribution.name}", implied.source) for implied in distribution.implies)
    for rows in (
        matrix.limits,
        matrix.shared_files,
        matrix.overrides,
        matrix.variables,
        matrix.failures,
        matrix.driver_packages,
    ):
        yield from ((one.name, one.source) for one in rows)
