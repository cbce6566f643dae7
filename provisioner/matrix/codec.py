"""A matrix as plain JSON values and back, without pydantic or ruamel: what makes a warm start fast.

Rows are lists in the order of the dataclass fields below; ranges are texts and parsed once each. The format is private to
one version of this program: `FORMAT` names it, and a reader that finds another one reads the YAML again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provisioner.matrix.model import (
    Build,
    Citation,
    Component,
    Distribution,
    DistributionLimit,
    DriverBranch,
    DriverMinimum,
    Gpu,
    ImageFacts,
    ImpliedNeed,
    Matrix,
    Need,
    Release,
    Rule,
)
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FORMAT = 2

Plain = Any


def encode(matrix: Matrix) -> dict[str, Plain]:
    """The matrix as JSON values."""
    return {
        "format": FORMAT,
        "digest": matrix.digest,
        "order": list(matrix.order),
        "components": [_component_row(matrix.components[name]) for name in matrix.order],
        "rules": [
            [r.name, _need_row(r.when), _needs_row(r.guards), _needs_row(r.needs), r.because, r.sources] for r in matrix.rules
        ],
        "branches": [[b.branch, str(b.native_cuda), b.designation, b.end_of_life, b.sources] for b in matrix.branches],
        "gpus": [_gpu_row(gpu) for gpu in matrix.gpus],
        "images": [_image_row(image) for image in matrix.images],
        "distributions": [_distribution_row(one) for one in matrix.distributions],
        "limits": [_limit_row(limit) for limit in matrix.limits],
        "citations": [[c.key, c.title, c.where, c.url, c.read, c.measured] for c in matrix.citations.values()],
        "positions": dict(matrix.positions),
    }


def decode(plain: dict[str, Plain]) -> Matrix:
    """The matrix `encode` was given; raises `ValueError`, `KeyError`, `TypeError` or `IndexError` for anything else."""
    if plain["format"] != FORMAT:
        raise ValueError("another format")
    named = {"platform"} | {row[0] for row in plain["components"] if row[3]}
    components = [_component(row, named) for row in plain["components"]]
    return Matrix(
        order=tuple(plain["order"]),
        components={component.name: component for component in components},
        rules=tuple(_rule(row, named) for row in plain["rules"]),
        branches=tuple(_branch(row) for row in plain["branches"]),
        gpus=tuple(_gpu(row) for row in plain["gpus"]),
        images=tuple(_image(row) for row in plain["images"]),
        distributions=tuple(_distribution(row, named) for row in plain["distributions"]),
        limits=tuple(_limit(row, named) for row in plain["limits"]),
        citations={row[0]: _citation(row) for row in plain["citations"]},
        digest=plain["digest"],
        positions=plain["positions"],
    )


def _component_row(component: Component) -> list[Plain]:
    releases = [_release_row(release) for release in component.releases]
    return [component.name, component.title, component.is_virtual, component.is_named, releases]


def _component(row: Sequence[Plain], named: set[str]) -> Component:
    name, title, is_virtual, is_named, releases = row
    read = tuple(_release(release, named, is_named=is_named) for release in releases)
    return Component(name=name, title=title, releases=read, is_virtual=is_virtual, is_named=is_named)


def _release_row(release: Release) -> list[Plain]:
    driver = release.driver
    minimum = driver and [_text(driver.toolkit), _text(driver.minor_version), driver.forward_compat]
    builds = [_build_row(build) for build in release.builds]
    life = [release.released, release.end_of_life]
    return [str(release.version), builds, _needs_row(release.needs), minimum, life, release.sources]


def _release(row: Sequence[Plain], named: set[str], *, is_named: bool) -> Release:
    version, builds, needs, minimum, (released, end_of_life), sources = row
    return Release(
        version=Version.named(version) if is_named else Version.parse(version),
        builds=tuple(_build(build, named) for build in builds),
        needs=_needs(needs, named),
        driver=minimum and _minimum(minimum),
        released=released,
        end_of_life=end_of_life,
        sources=tuple(sources),
    )


def _minimum(row: Sequence[Plain]) -> DriverMinimum:
    toolkit, minor_version, branches = row
    return DriverMinimum(toolkit=_version(toolkit), minor_version=_version(minor_version), forward_compat=tuple(branches))


def _build_row(build: Build) -> list[Plain]:
    where = [build.index, build.local, build.accelerator, build.is_default, build.artefact]
    return [build.name, build.platforms, _needs_row(build.needs), build.sass, build.ptx, where, build.sources]


def _build(row: Sequence[Plain], named: set[str]) -> Build:
    name, platforms, needs, sass, ptx, (index, local, accelerator, is_default, artefact), sources = row
    return Build(
        name=name,
        platforms=tuple(platforms),
        needs=_needs(needs, named),
        sass=None if sass is None else tuple(sass),
        ptx=None if ptx is None else tuple(ptx),
        index=index,
        local=local,
        accelerator=accelerator,
        is_default=is_default,
        artefact=artefact,
        sources=tuple(sources),
    )


def _need_row(need: Need) -> list[Plain]:
    if need.one_of:
        return [need.component, [str(version) for version in need.one_of]]
    return [need.component, str(need.range) if need.range.clauses else ""]


def _needs_row(needs: Iterable[Need]) -> list[Plain]:
    return [_need_row(need) for need in needs]


def _need(row: Sequence[Plain], named: set[str]) -> Need:
    component, value = row
    if isinstance(value, str):
        return Need(component=component, range=Range.parse(value))
    spell = Version.named if component in named else Version.parse
    return Need(component=component, range=Range(), one_of=tuple(spell(text) for text in value))


def _needs(rows: Sequence[Plain], named: set[str]) -> tuple[Need, ...]:
    return tuple(_need(row, named) for row in rows)


def _rule(row: Sequence[Plain], named: set[str]) -> Rule:
    name, when, guards, needs, because, sources = row
    return Rule(
        name=name,
        when=_need(when, named),
        guards=_needs(guards, named),
        needs=_needs(needs, named),
        because=because,
        sources=tuple(sources),
    )


def _branch(row: Sequence[Plain]) -> DriverBranch:
    branch, native_cuda, designation, end_of_life, sources = row
    return DriverBranch(
        branch=branch,
        native_cuda=Version.parse(native_cuda),
        designation=designation,
        end_of_life=end_of_life,
        sources=tuple(sources),
    )


def _gpu_row(gpu: Gpu) -> list[Plain]:
    what = [gpu.name, gpu.compute_capability, gpu.architecture, gpu.kind]
    return [what, gpu.pci_device_ids, _text(gpu.first_driver), gpu.modules, gpu.sources]


def _gpu(row: Sequence[Plain]) -> Gpu:
    (name, compute_capability, architecture, kind), devices, first_driver, modules, sources = row
    return Gpu(
        name=name,
        compute_capability=compute_capability,
        architecture=architecture,
        kind=kind,
        pci_device_ids=tuple(devices),
        first_driver=_version(first_driver),
        modules=tuple(modules),
        sources=tuple(sources),
    )


def _image_row(image: ImageFacts) -> list[Plain]:
    pythons = [image.python, image.apt_python]
    cuda = [image.cuda, image.cudnn, image.require_cuda]
    return [image.reference, image.kind, image.distribution, image.glibc, pythons, cuda, image.platforms, image.sources]


def _image(row: Sequence[Plain]) -> ImageFacts:
    reference, kind, distribution, glibc, (python, apt_python), (cuda, cudnn, require_cuda), platforms, sources = row
    return ImageFacts(
        reference=reference,
        kind=kind,
        distribution=distribution,
        glibc=glibc,
        python=python,
        apt_python=apt_python,
        cuda=cuda,
        cudnn=cudnn,
        require_cuda=require_cuda,
        platforms=tuple(platforms),
        sources=tuple(sources),
    )


def _distribution_row(one: Distribution) -> list[Plain]:
    implied = [[row.versions, _needs_row(row.needs), row.because, row.served_by, row.sources] for row in one.implied]
    return [one.name, one.compiled_against, one.versions, one.served_by, implied, one.sources]


def _distribution(row: Sequence[Plain], named: set[str]) -> Distribution:
    name, compiled_against, versions, served_by, implied, sources = row
    return Distribution(
        name=name,
        compiled_against=compiled_against,
        versions=versions,
        served_by=served_by,
        implied=tuple(_implied(one, named) for one in implied),
        sources=tuple(sources),
    )


def _implied(row: Sequence[Plain], named: set[str]) -> ImpliedNeed:
    versions, needs, because, served_by, sources = row
    return ImpliedNeed(
        versions=versions, needs=_needs(needs, named), because=because, served_by=served_by, sources=tuple(sources)
    )


def _limit_row(limit: DistributionLimit) -> list[Plain]:
    allowed = [limit.distribution, limit.specifier]
    return [limit.name, _need_row(limit.when), _needs_row(limit.guards), allowed, limit.because, limit.sources]


def _limit(row: Sequence[Plain], named: set[str]) -> DistributionLimit:
    name, when, guards, (distribution, specifier), because, sources = row
    return DistributionLimit(
        name=name,
        when=_need(when, named),
        guards=_needs(guards, named),
        distribution=distribution,
        specifier=specifier,
        because=because,
        sources=tuple(sources),
    )


def _citation(row: Sequence[Plain]) -> Citation:
    key, title, where, url, read, measured = row
    return Citation(key=key, title=title, where=where, url=url, read=read, measured=measured)


def _text(version: Version | None) -> str | None:
    return None if version is None else str(version)


def _version(text: str | None) -> Version | None:
    return None if text is None else Version.parse(text)
