"""Carrying measured facts of a matrix file over to its newly derived rows, and finding rows that were lost; pure.

Facts measured inside an artefact (GPU targets, a need of glibc, a statically linked library) take hundreds of megabytes to
read. They cite a source of their own and remain true while the artefact has the same name and hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.matrix.need import need_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from provisioner.matrix.files import ComponentFile
    from provisioner.matrix.model import Build, Release
    from provisioner.matrix.need import Need

FIELDS = ("sass", "ptx", "gfx", "cxx11_abi")
NEEDS = ("cudnn", "nccl", "glibc")
"""The components whose needs may have been measured inside an artefact, like the fields `FIELDS` of a build."""

_ORDER = ("cuda", "cudnn", "nccl", "cusparselt", "nvshmem", "triton", "python", "glibc", "macos")


def with_kept_facts(old: ComponentFile, derived: ComponentFile) -> tuple[ComponentFile, tuple[str, ...]]:
    """Return `derived` with the measured facts that `old` has about the same artefacts, and messages about lost facts.

    Facts are lost when their artefact is gone or has another hash.
    """
    known = {_identity(build): build for build in old.builds if build.artefact and set(build.source) - derived.sources.keys()}
    releases = tuple(
        replace(
            release,
            builds=tuple(
                build if (before := known.get(_identity(build))) is None else _joined(build, before, derived.sources)
                for build in release.builds
            ),
        )
        for release in derived.releases
    )
    cited = {key for release in releases for build in release.builds for key in build.source}
    kept = {key: old.sources[key] for key in old.sources if key in cited - derived.sources.keys()}
    result = replace(derived, releases=releases, sources={**derived.sources, **kept})
    there = {_identity(build) for build in derived.builds}
    lost = (_lost(build, derived.sources) for identity, build in known.items() if identity not in there)
    return _with_days_of(old, result), tuple(dict.fromkeys(text for text in lost if text))


def _identity(build: Build) -> tuple[str, str, str]:
    return build.name, build.artefact, build.sha256


def _joined(build: Build, before: Build, derived: Collection[str]) -> Build:
    found = {need.component: need for need in build.requires}
    found.update({name: need for name, need in _kept_needs(before).items() if name not in found or name == "glibc"})
    fields = {name: getattr(before, name) for name in _kept_fields(before)}
    own = tuple(key for key in before.source if key not in derived)
    requires = tuple(found[name] for name in sorted(found, key=_ORDER.index))
    return replace(build, **fields, requires=requires, source=(*build.source, *own))


def _kept_fields(build: Build) -> list[str]:
    return [name for name in FIELDS if getattr(build, name) is not None]


def _kept_needs(build: Build) -> dict[str, Need]:
    return {need.component: need for need in build.requires if need.component in NEEDS}


def _lost(build: Build, derived: Collection[str]) -> str:
    """Return a message on the facts of an artefact that is gone or has another hash; "" when it had no measured facts."""
    fields = _kept_fields(build)
    needs = [name for name in NEEDS if name in _kept_needs(build) and (name == "glibc" or not fields)]
    facts = [*fields, *(f"need of {name}" for name in needs)]
    own = ", ".join(key for key in build.source if key not in derived)
    return f"`{build.artefact}` is gone or has another hash; dropped: {', '.join(facts)} (of {own})" if facts else ""


def _with_days_of(old: ComponentFile, new: ComponentFile) -> ComponentFile:
    """Return `new`, with the dates of reading of `old` if all releases are equal, so that an unchanged file keeps its text."""
    if old.releases != new.releases:
        return new
    same = {
        key: old.sources[key]
        for key, entry in new.sources.items()
        if key in old.sources and replace(old.sources[key], read=entry.read) == entry
    }
    return replace(new, sources={**new.sources, **same})


def losses(old: ComponentFile, new: ComponentFile) -> tuple[str, ...]:
    """Return the names of what `old` has and `new` lacks: releases, builds on a platform, Pythons of a build."""
    return tuple(_losses(old, new))


def _losses(old: ComponentFile, new: ComponentFile) -> Iterator[str]:
    now = {release.version: release for release in new.releases}
    for release in old.releases:
        if release.version not in now:
            yield f"release {release.version}"
            continue
        after = _pythons(now[release.version])
        for (build, platform), pythons in _pythons(release).items():
            where = " on ".join(part for part in (f"build {build} of {release.version}", platform) if part)
            found = after.get((build, platform))
            if found is None:
                yield where
            elif pythons - found:
                yield f"{where}: python {', '.join(sorted(pythons - found))}"


def _pythons(release: Release) -> dict[tuple[str, str], frozenset[str]]:
    """Return the Pythons that the builds of a release list, by the name of the build and its platform ("" for no platform)."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for build in release.builds:
        need = need_of(build.requires, "python")
        listed = frozenset(version.text for version in need.one_of) if need is not None else frozenset()
        for platform in build.platforms or ("",):
            found[build.name, platform] = found.get((build.name, platform), frozenset()) | listed
    return found
