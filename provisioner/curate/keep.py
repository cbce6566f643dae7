"""What a refresh does not read again, and what it must not lose; pure.

Facts read inside an artefact (compiled targets, a need of glibc, a library linked statically) cost hundreds of megabytes.
They cite a source of their own, and stay true as long as name and hash of the artefact are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.matrix.schema import BuildEntry, ComponentFile, ReleaseEntry, SourceEntry

FIELDS = ("sass", "ptx", "gfx", "cxx11_abi")
NEEDS = ("cudnn", "nccl", "glibc")
"""What may have been read inside an artefact: fields of a build, and components it needs."""

_ORDER = ("cuda", "cudnn", "nccl", "cusparselt", "nvshmem", "triton", "python", "glibc", "macos")

Place = tuple[str, str, str]
"""Release, build and platform."""


def with_kept_facts(old: ComponentFile, derived: ComponentFile) -> tuple[ComponentFile, tuple[str, ...]]:
    """Add to derived rows what `old` knows of the same artefacts; also returns what is lost because an artefact changed."""
    known = {
        (build.name, build.artefact, build.sha256): build
        for build in _builds(old)
        if build.artefact and set(build.source) - derived.sources.keys()
    }
    releases = []
    kept: set[tuple[str, str, str]] = set()
    for release in derived.releases:
        builds = []
        for build in release.builds:
            key = (build.name, build.artefact, build.sha256)
            before = known.get(key)
            builds.append(build if before is None else _joined(build, before, derived.sources))
            kept.add(key)
        releases.append(release.model_copy(update={"builds": tuple(builds)}))
    cited = {key for release in releases for build in release.builds for key in build.source}
    sources = {**derived.sources, **{key: entry for key, entry in old.sources.items() if key in cited - derived.sources.keys()}}
    result = derived.model_copy(update={"releases": tuple(releases), "sources": sources})
    lost = (_lost(build, derived.sources) for key, build in known.items() if key not in kept)
    return _with_days_of(old, result), tuple(dict.fromkeys(text for text in lost if text))


def _joined(build: BuildEntry, before: BuildEntry, derived: Mapping[str, SourceEntry]) -> BuildEntry:
    requires = dict(build.requires)
    requires.update({name: before.requires[name] for name in _kept_needs(before) if name not in requires or name == "glibc"})
    ordered = {name: requires[name] for name in sorted(requires, key=_ORDER.index)}
    fields = {name: getattr(before, name) for name in FIELDS if name in before.model_fields_set}
    own = tuple(key for key in before.source if key not in derived)
    return build.model_copy(update={**fields, "requires": ordered, "source": (*build.source, *own)})


def _kept_needs(build: BuildEntry) -> tuple[str, ...]:
    return tuple(name for name in NEEDS if name in build.requires)


def _lost(build: BuildEntry, derived: Mapping[str, SourceEntry]) -> str:
    """What is no longer known of an artefact that is gone or is another file now; "" when nothing was."""
    fields = [name for name in FIELDS if name in build.model_fields_set]
    facts = [*fields, *(f"need of {name}" for name in _kept_needs(build) if name == "glibc" or not fields)]
    own = ", ".join(key for key in build.source if key not in derived)
    return f"`{build.artefact}` is gone or has another hash; dropped: {', '.join(facts)} (of {own})" if facts else ""


def _with_days_of(old: ComponentFile, new: ComponentFile) -> ComponentFile:
    """The day facts were read is the day they were first read: where none changed, the day does not either."""
    if old.releases != new.releases:
        return new
    same = {
        key: old.sources[key]
        for key, entry in new.sources.items()
        if key in old.sources and old.sources[key].model_copy(update={"read": entry.read}) == entry
    }
    return new.model_copy(update={"sources": {**new.sources, **same}})


def losses(old: ComponentFile, new: ComponentFile) -> tuple[str, ...]:
    """The rows of `old` that `new` lacks: releases, builds on a platform, Pythons of a build; each named once."""
    return tuple(_losses(old.releases, {_number(release.version): release for release in new.releases}))


def _losses(old: Iterable[ReleaseEntry], new: Mapping[tuple[int, ...] | str, ReleaseEntry]) -> Iterator[str]:
    for release in old:
        now = new.get(_number(release.version))
        if now is None:
            yield f"release {release.version}"
            continue
        after = dict(_places(now))
        for place, pythons in _places(release):
            _, build, platform = place
            where = " on ".join(part for part in (f"build {build} of {release.version}", platform) if part)
            found = after.get((now.version, build, platform))
            if found is None:
                yield where
            elif pythons - found:
                yield f"{where}: python {', '.join(sorted(pythons - found))}"


def _places(release: ReleaseEntry) -> Iterator[tuple[Place, frozenset[str]]]:
    """Each build on each of its platforms, with the Pythons it lists there."""
    found: dict[Place, frozenset[str]] = {}
    for build in release.builds:
        pythons = build.requires.get("python", ())
        listed = frozenset(pythons) if isinstance(pythons, tuple) else frozenset()
        for platform in build.platforms or ("",):
            place = (release.version, build.name, platform)
            found[place] = found.get(place, frozenset()) | listed
    yield from found.items()


def _number(version: str) -> tuple[int, ...] | str:
    """A version without the zeros at its end: `13.0.3` and `13.0.3.0` are one release."""
    parts = version.split(".")
    if not all(part.isdigit() for part in parts):
        return version
    numbers = [int(part) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _builds(file: ComponentFile) -> Iterator[BuildEntry]:
    for release in file.releases:
        yield from release.builds
