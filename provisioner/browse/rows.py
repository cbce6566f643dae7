"""Convert rows of a matrix to the plain data of JSON output and the site, and find rows by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.accelerators import COMPILED_KEYS
from provisioner.errors import UsageError
from provisioner.names import COMPONENT_OF_DISTRIBUTION, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.matrix.model import Build, Citation, Component, DriverMinimum, Gpu, ImageFacts, Matrix, Release, Rule
    from provisioner.matrix.need import Need

Data = dict[str, object]


def without_empty(data: Data) -> Data:
    """Return data without keys whose value is None, "" or empty; False stays."""
    return {key: value for key, value in data.items() if value is not None and value not in ("", (), {})}


def needs_data(needs: Iterable[Need]) -> Data:
    """Return needs as text by the component they are about; several needs about one component are joined by commas."""
    found: dict[str, str] = {}
    for need in needs:
        text = str(need)
        found[need.component] = f"{found[need.component]},{text}" if need.component in found else text
    return dict(found)


def driver_data(minimum: DriverMinimum | None) -> Data | None:
    """Return the minimum drivers of a CUDA release by the way of running it, as far as known; None without `minimum`."""
    if minimum is None:
        return None
    return without_empty(
        {
            "toolkit": str(minimum.toolkit) if minimum.toolkit else "",
            "minor_version": str(minimum.minor_version) if minimum.minor_version else "",
            "forward_compat": minimum.forward_compat,
        }
    )


def build_data(build: Build) -> Data:
    """Return the data of one build; lists of measured targets are included even if they are empty."""
    data = without_empty(
        {
            "name": build.name,
            "accelerator": build.accelerator,
            "platforms": build.platforms,
            "needs": needs_data(build.requires),
            "index": build.index,
            "install": build.install,
            "default": build.default or None,
            "compiled": build.compiled or None,
            "cxx11_abi": build.cxx11_abi,
            "artefact": build.artefact,
            "sha256": build.sha256,
            "sources": build.source,
        }
    )
    for key in COMPILED_KEYS:
        targets = getattr(build, key)
        if targets is not None:
            data[key] = list(targets)
    return data


def release_data(matrix: Matrix, component: Component, release: Release) -> Data:
    """Return the data of one release with its builds and its line in the matrix."""
    name = f"{component.name}=={release.version}"
    return without_empty(
        {
            "component": component.name,
            "version": str(release.version),
            "released": release.released,
            "end_of_life": release.end_of_life,
            "prerelease": release.prerelease,
            "platforms": release.platforms,
            "ptx_isa": release.ptx_isa,
            "needs": needs_data(release.requires),
            "expects": needs_data(release.expects),
            "driver": driver_data(release.driver),
            "patched": tuple({"kernel": str(one.kernel), "by": one.by, "sources": one.source} for one in release.patched),
            "builds": tuple(build_data(build) for build in release.builds),
            "sources": release.source,
            "place": str(matrix.positions.get(name, "")),
        }
    )


def rule_data(matrix: Matrix, rule: Rule) -> Data:
    """Return the data of one rule: condition, guards, requirements, reason, and its line in the matrix."""
    return without_empty(
        {
            "name": rule.name,
            "when": needs_data((rule.when,)),
            "on": needs_data(rule.on),
            "require": needs_data(rule.require),
            "expect": needs_data(rule.expect),
            "because": rule.because,
            "sources": rule.source,
            "place": str(matrix.positions.get(f"rule:{rule.name}", "")),
        }
    )


def gpu_data(gpu: Gpu) -> Data:
    """Return the data of one GPU product."""
    return without_empty(
        {
            "name": gpu.name,
            "compute_capability": gpu.compute_capability,
            "gfx": gpu.gfx,
            "architecture": gpu.architecture,
            "kind": gpu.kind,
            "pci_device_ids": gpu.pci_device_ids,
            "first_driver": str(gpu.first_driver) if gpu.first_driver else "",
            "modules": gpu.modules,
            "sources": gpu.source,
        }
    )


def package_data(matrix: Matrix) -> list[Data]:
    """Return the Python distributions about which the matrix has rows, each with its component and its rows, sorted by name."""
    found: dict[str, list[Data]] = {name: [] for name in COMPONENT_OF_DISTRIBUTION}
    for known in matrix.distributions:
        rows = found.setdefault(known.name, [])
        on_gpus = known.gpu_twin or known.gpu_wheels
        facts: Data = {"compiled against": known.compiled_against, "versions": known.versions, "on a GPU use": on_gpus}
        rows.append(without_empty({"title": "What its metadata does not say", **facts, "sources": known.source}))
        for implied in known.implies:
            needs: Data = {
                "needs": needs_data(implied.require),
                "packages": implied.packages,
                "brings": needs_data(implied.brings),
            }
            title = f"Version {implied.versions}" if implied.versions else "Every version"
            rows.append(without_empty({"title": title, **needs, "because": implied.because, "sources": implied.source}))
        for opened in known.opens:
            title = f"What version {opened.versions} opens" if opened.versions else "What every version opens"
            rows.append({"title": title, "files": opened.files, "because": opened.because, "sources": opened.source})
        for optional in known.optional:
            title = (
                f"What version {optional.versions} can do without" if optional.versions else "What every version can do without"
            )
            rows.append({"title": title, "files": optional.libraries, "because": optional.gives, "sources": optional.source})
        if known.used is not None:
            used: Data = {"needs": needs_data(known.used.require), "because": known.used.because, "sources": known.used.source}
            rows.append(without_empty({"title": "Where a spec names it", **used}))
    for wheel in matrix.wheels:
        facts = {"platforms": wheel.platforms, "compiled for": (*(wheel.sass or ()), *(wheel.ptx or ()), *(wheel.gfx or ()))}
        facts |= {"CUDA runtime inside": wheel.runtime, "links to": wheel.links, "NumPy": wheel.numpy}
        row = without_empty({"title": f"Wheels {wheel.versions}", **facts, "sources": wheel.source})
        found.setdefault(wheel.distribution, []).append(row)
    for limit in matrix.limits:
        facts = {"with": needs_data((limit.when,)), "on": needs_data(limit.on), "only": limit.allow}
        row = without_empty({"title": f"Limit {limit.name}", **facts, "because": limit.because, "sources": limit.source})
        found.setdefault(limit.distribution, []).append(row)
    for shared in matrix.shared_files:
        for owner in shared.owners:
            others = [one.distribution for one in shared.owners if one != owner]
            facts = {"file": shared.path, "versions": owner.versions, "with": others, "because": shared.because}
            row = without_empty({"title": f"Shared file {shared.name}", **facts, "sources": shared.source})
            found.setdefault(owner.distribution, []).append(row)
    return [
        without_empty({"name": name, "component": COMPONENT_OF_DISTRIBUTION.get(name, ""), "rows": found[name]})
        for name in sorted(found)
    ]


def image_data(image: ImageFacts) -> Data:
    """Return the data of one base image."""
    fields = (
        "reference",
        "kind",
        "distribution",
        "glibc",
        "python",
        "apt_python",
        "cuda",
        "cudnn",
        "require_cuda",
        "brings",
        "end_of_life",
        "platforms",
    )
    return without_empty({**{name: getattr(image, name) for name in fields}, "sources": image.source})


def citation_data(citation: Citation) -> Data:
    """Return the data of one source."""
    return {
        **without_empty({"title": citation.title, "where": citation.where, "url": citation.url, "read": citation.read}),
        "measured": citation.measured,
    }


def citations_of(matrix: Matrix, *rows: object) -> Data:
    """Return the sources that rows (plain data) name, sorted by key."""
    keys: set[str] = set()
    for row in rows:
        _collect(row, keys)
    return {key: citation_data(matrix.citations[key]) for key in sorted(keys) if key in matrix.citations}


def _collect(row: object, keys: set[str]) -> None:
    if isinstance(row, dict):
        sources = row.get("sources")
        if isinstance(sources, tuple | list):
            keys.update(str(one) for one in sources)
        for value in row.values():
            _collect(value, keys)
    elif isinstance(row, tuple | list):
        for value in row:
            _collect(value, keys)


class Row(Struct, frozen=True, kw_only=True):
    """One named row: its kind (`rule`, `source`, `gpu` …), its name and its data."""

    kind: str
    name: str
    data: Data


def row_named(matrix: Matrix, name: str) -> Row:
    """Return the row called `name`, of any kind; raises `UsageError` with the most similar name if there is none.

    The name of a GPU may lack its vendor.
    """
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
    """Yield every row that has a name; if rows of two kinds share one, `row_named` returns the one yielded later."""
    for key, names in citing_index(matrix).items():
        yield Row(kind="source", name=key, data=without_empty({"key": key, "sources": (key,), "rows": names}))
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
        yield Row(kind="driver package", name=package.name, data=without_empty(data))
    for override in matrix.overrides:
        data = {
            "name": override.name,
            "gfx": override.gfx,
            "runs_as": override.runs_as,
            "set": dict(sorted(override.set.items())),
        }
        yield Row(
            kind="override",
            name=override.name,
            data=without_empty({**data, "because": override.because, "sources": override.source}),
        )
    for one in matrix.variables:
        data = {
            "name": one.name,
            "when": needs_data((one.when,)),
            "on": needs_data(one.on),
            "set": dict(sorted(one.set.items())),
        }
        yield Row(kind="variables", name=one.name, data=without_empty({**data, "because": one.because, "sources": one.source}))
    for failure in matrix.failures:
        data = {
            "name": failure.name,
            "layer": failure.layer,
            "when": needs_data(failure.when),
            "on": needs_data(failure.on),
        }
        data |= {"kind": failure.kind, "symptoms": failure.symptoms, "samples": failure.samples, "follows": failure.follows}
        data |= {"cause": failure.cause, "remedy": failure.remedy, "sources": failure.source}
        yield Row(kind="failure", name=failure.name, data=without_empty(data))
    for limit in matrix.limits:
        data = {"name": limit.name, "when": needs_data((limit.when,)), "on": needs_data(limit.on)}
        data |= {"allow": {limit.distribution: limit.specifier}, "because": limit.because, "sources": limit.source}
        yield Row(kind="limit", name=limit.name, data=without_empty(data))
    for shared in matrix.shared_files:
        owners = {owner.distribution: owner.versions or "every version" for owner in shared.owners}
        data = {"name": shared.name, "path": shared.path, "owners": owners, "refused": "yes" if shared.refused else "no"}
        data |= {"because": shared.because, "sources": shared.source}
        yield Row(kind="shared file", name=shared.name, data=without_empty(data))


def citing_index(matrix: Matrix) -> dict[str, tuple[str, ...]]:
    """Return the rows that cite each source, each by its name or spelled as a query such as `cuda==11.3`."""
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
    yield from ((f"figures of PCI device {row.pci_device_id}", row.source) for row in matrix.performance)
    yield from ((image.reference, image.source) for image in matrix.images)
    for distribution in matrix.distributions:
        yield f"distribution {distribution.name}", distribution.source
        yield from ((f"distribution {distribution.name}", implied.source) for implied in distribution.implies)
        yield from ((f"distribution {distribution.name}", loading.source) for loading in distribution.loads)
        yield from ((f"distribution {distribution.name}", opened.source) for opened in distribution.opens)
        yield from ((f"distribution {distribution.name}", optional.source) for optional in distribution.optional)
        if distribution.used is not None:
            yield f"distribution {distribution.name}", distribution.used.source
    yield from ((f"file {file.name} of the toolkit", file.source) for file in matrix.toolkit_files)
    for rows in (
        matrix.limits,
        matrix.shared_files,
        matrix.published,
        matrix.declared,
        matrix.overrides,
        matrix.seen_to_run,
        matrix.variables,
        matrix.failures,
        matrix.statements,
        matrix.driver_packages,
    ):
        yield from ((one.name, one.source) for one in rows)
    yield from ((f"host repository {one.name}", one.source) for one in matrix.host_repositories)
    yield from ((f"host packages {one.component}", one.source) for one in matrix.host_packages)
    yield from ((f"build from source {one.component}", one.source) for one in matrix.source_builds)
    yield from ((f"GPU wheel {one.distribution} {one.versions}", one.source) for one in matrix.wheels)
    yield from ((f"system wheel {one.distribution} {one.versions}", one.source) for one in matrix.system_wheels)
    yield from ((f"library {one.soname}", one.source) for one in matrix.system_libraries)
    yield from ((f"tool {one.name}", one.source) for one in matrix.system_tools)
    yield from ((f"system need of {one.distribution} {one.versions}", one.source) for one in matrix.system_needs)


def citations_by_row(matrix: Matrix) -> dict[str, tuple[str, ...]]:
    """Return the keys of the sources that rows cite, by the row's key in `Matrix.positions`."""
    found: dict[str, dict[str, None]] = {}
    for key, sources in _keyed_rows(matrix):
        found.setdefault(key, {}).update(dict.fromkeys(sources))
    return {key: tuple(sources) for key, sources in found.items()}


def _keyed_rows(matrix: Matrix) -> Iterator[tuple[str, tuple[str, ...]]]:
    for component in matrix.components.values():
        for release in component.releases:
            key = f"{component.name}=={release.version}"
            yield key, release.source
            yield from ((f"{key}+{build.name}", build.source) for build in release.builds)
    for distribution in matrix.distributions:
        yield f"distribution:{distribution.name}", distribution.source
        for implied in distribution.implies:
            yield f"distribution:{distribution.name} {implied.versions}", implied.source
        for opened in distribution.opens:
            yield f"opens:{distribution.name} {opened.versions}", opened.source
    yield from ((f"rule:{row.name}", row.source) for row in matrix.rules)
    yield from ((f"limit:{row.name}", row.source) for row in matrix.limits)
    yield from ((f"shared-file:{row.name}", row.source) for row in matrix.shared_files)
    yield from ((f"published:{row.name}", row.source) for row in matrix.published)
    yield from ((f"declared:{row.name}", row.source) for row in matrix.declared)
    yield from ((f"variables:{row.name}", row.source) for row in matrix.variables)
    yield from ((f"wheel:{row.distribution} {row.versions}", row.source) for row in matrix.wheels)
    yield from ((f"system-wheel:{row.distribution} {row.versions}", row.source) for row in matrix.system_wheels)
    yield from ((f"system-need:{row.distribution} {row.versions}", row.source) for row in matrix.system_needs)
