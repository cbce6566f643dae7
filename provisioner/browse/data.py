"""Rows of a matrix as plain data: the form in which JSON output and the site show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import COMPILED_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.matrix.model import Build, Citation, Component, DriverMinimum, Gpu, ImageFacts, Matrix, Release, Rule
    from provisioner.matrix.need import Need

Data = dict[str, object]


def kept(data: Data) -> Data:
    """Leave out what nobody stated; False and an empty measured list are statements, "" and None are not."""
    return {key: value for key, value in data.items() if value is not None and value not in ("", (), {})}


def needs_data(needs: Iterable[Need]) -> Data:
    """Component -> what is needed of it, in words; a component needed twice has both."""
    found: dict[str, str] = {}
    for need in needs:
        text = str(need)
        found[need.component] = f"{found[need.component]},{text}" if need.component in found else text
    return dict(found)


def driver_data(minimum: DriverMinimum | None) -> Data | None:
    """The three minimum drivers of a CUDA release, kept apart."""
    if minimum is None:
        return None
    return kept(
        {
            "toolkit": str(minimum.toolkit) if minimum.toolkit else "",
            "minor_version": str(minimum.minor_version) if minimum.minor_version else "",
            "forward_compat": minimum.forward_compat,
        }
    )


def build_data(build: Build) -> Data:
    """One build; measured lists stay lists, even empty ones."""
    data = kept(
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
    """One release with its builds, and where in the matrix it stands."""
    name = f"{component.name}=={release.version}"
    return kept(
        {
            "component": component.name,
            "version": str(release.version),
            "released": release.released,
            "end_of_life": release.end_of_life,
            "prerelease": release.prerelease,
            "platforms": release.platforms,
            "ptx_isa": release.ptx_isa,
            "needs": needs_data(release.requires),
            "driver": driver_data(release.driver),
            "patched": tuple({"kernel": str(one.kernel), "by": one.by, "sources": one.source} for one in release.patched),
            "builds": tuple(build_data(build) for build in release.builds),
            "sources": release.source,
            "place": str(matrix.positions.get(name, "")),
        }
    )


def rule_data(matrix: Matrix, rule: Rule) -> Data:
    """One rule: when, on which hosts, what it requires, why, and where it stands."""
    return kept(
        {
            "name": rule.name,
            "when": needs_data((rule.when,)),
            "on": needs_data(rule.on),
            "require": needs_data(rule.require),
            "because": rule.because,
            "sources": rule.source,
            "place": str(matrix.positions.get(f"rule:{rule.name}", "")),
        }
    )


def gpu_data(gpu: Gpu) -> Data:
    """One product."""
    return kept(
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


def image_data(image: ImageFacts) -> Data:
    """One base image."""
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
        "end_of_life",
        "platforms",
    )
    return kept({**{name: getattr(image, name) for name in fields}, "sources": image.source})


def citation_data(citation: Citation) -> Data:
    """One source."""
    return {
        **kept({"title": citation.title, "where": citation.where, "url": citation.url, "read": citation.read}),
        "measured": citation.measured,
    }


def cited(matrix: Matrix, *rows: object) -> Data:
    """The sources that some rows (plain data) name, key -> source, sorted."""
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
