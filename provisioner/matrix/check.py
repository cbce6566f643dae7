"""What a schema cannot say: references that lead nowhere, rules that point up the order, duplicates, missing citations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.matrix.check_distributions import check_distributions
from provisioner.matrix.check_hazards import check_hazards
from provisioner.matrix.check_knowledge import check_knowledge
from provisioner.matrix.check_needs import NeedChecker
from provisioner.names import nearest
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from provisioner.document import KeyPath
    from provisioner.errors import Mistake
    from provisioner.matrix.files import MatrixFiles, Parsed
    from provisioner.matrix.schema import BuildEntry, ComponentFile, GpuFile, ImageFile, ReleaseEntry

    AnyFile = Parsed[BaseModel]


def check(files: MatrixFiles) -> tuple[Mistake, ...]:
    """Every mistake of meaning in the files that could be read."""
    return tuple(_Checker(files).mistakes())


class _Checker:
    def __init__(self, files: MatrixFiles) -> None:
        self.files = files
        self.needs = NeedChecker(files)
        # a file that could not be read may hold the source or release that looks missing, so absence proves nothing then
        self.is_complete = not files.mistakes
        self.source_keys = {key for _, sources in files.sources() for key in sources}
        self.rule_places: dict[str, str] = {}

    def mistakes(self) -> Iterator[Mistake]:
        yield from self._order()
        yield from self._sources()
        for name, files in self.files.components.items():
            yield from self._releases(name, files)
            for file in files:
                yield from self._rules(name, file)
                yield from self._branches(file)
        if self.files.gpus is not None:
            yield from self._gpus(self.files.gpus)
        if self.files.images is not None:
            yield from self._images(self.files.images)
        if self.files.distributions is not None:
            yield from check_distributions(self.files, self.files.distributions, needs=self.needs, cited=self._cited)
        if self.files.hazards is not None:
            yield from check_hazards(self.files.hazards, cited=self._cited)
        yield from check_knowledge(self.files, needs=self.needs, cited=self._cited)

    def _order(self) -> Iterator[Mistake]:
        index = self.files.index
        components = index.content.components
        seen: set[str] = set()
        for position, name in enumerate(index.content.order):
            if name in seen:
                yield index.mistake(("order", position), f"`{name}` stands in the order twice")
            seen.add(name)
            if name not in components:
                yield index.mistake(("order", position), _unknown(name, "component", components))
        for name in components:
            if name not in seen:
                yield index.mistake(("components", name), f"`{name}` is missing in `order`, so no rule can point to it")

    def _sources(self) -> Iterator[Mistake]:
        first: dict[str, str] = {}
        for file, sources in self.files.sources():
            for key in sources:
                place = self.files.place(file, ("sources", key))
                if key in first:
                    text = f"source `{key}` is given twice; the first is {first[key]}"
                    yield file.mistake(("sources", key), text)
                first.setdefault(key, place)

    def _cited(self, file: AnyFile, path: KeyPath, source: Sequence[str], subject: str) -> Iterator[Mistake]:
        """A fact needs a citation, and a citation a source."""
        if not source:
            yield file.mistake(path, f"{subject} cites no source; add `source: [...]`")
        yield from self._known(file, path, source)

    def _known(self, file: AnyFile, path: KeyPath, source: Sequence[str]) -> Iterator[Mistake]:
        if self.is_complete:
            for index, key in enumerate(source):
                if key not in self.source_keys:
                    yield file.mistake((*path, "source", index), _unknown(key, "source", self.source_keys))

    def _releases(self, name: str, files: Sequence[Parsed[ComponentFile]]) -> Iterator[Mistake]:
        first: dict[Version, tuple[str, Parsed[ComponentFile], int]] = {}
        builds: dict[Version, dict[tuple[str, str, str], str]] = {}
        is_named = self.files.index.content.components[name].named
        for file in files:
            for index, release in enumerate(file.content.releases):
                path = ("releases", index)
                found: Sequence[Mistake] = ()
                version: Version | None = Version.named(release.version)
                if not is_named:
                    version, found = self.needs.version(file, (*path, "version"), release.version)
                yield from found
                if version is not None and version in first:
                    yield from self._again(file, path, release, first=first[version])
                if version is not None:
                    first.setdefault(version, (release.version, file, file.line(path)))
                    yield from self._builds(name, file, path, release, first=builds.setdefault(version, {}))
                yield from self._release(name, file, path, release)

    def _again(
        self, file: AnyFile, path: KeyPath, release: ReleaseEntry, *, first: tuple[str, AnyFile, int]
    ) -> Iterator[Mistake]:
        """A release may be repeated in another file of its component, where it only adds builds."""
        text, other, line = first
        if other is not file:
            extra = sorted(release.model_fields_set - {"version", "builds", "source"})
            if extra or not release.builds:
                place = f"{self.files.directory.name}/{other.name}:{line}"
                text = f"release `{release.version}` is described {place}; here it may only add builds, not {', '.join(extra)}"
                yield file.mistake((*path, extra[0] if extra else "version"), text)
            return
        same = f"the same as `{text}`" if text != release.version else "given twice"
        yield file.mistake((*path, "version"), f"release `{release.version}` is {same}; the first is on line {line}")

    def _release(self, name: str, file: Parsed[ComponentFile], path: KeyPath, release: ReleaseEntry) -> Iterator[Mistake]:
        yield from self.needs.needs(file, (*path, "requires"), release.requires, subject=name)
        if not release.builds or release.source:
            yield from self._cited(file, path, release.source, f"release `{release.version}`")
        if release.driver is not None:
            for key in ("toolkit", "minor_version"):
                text = getattr(release.driver, key)
                if text is not None:
                    yield from self.needs.version(file, (*path, "driver", key), text)[1]
        for index, row in enumerate(release.patched):
            yield from self.needs.condition(file, (*path, "patched", index), {"kernel": row.kernel})
            yield from self._cited(file, (*path, "patched", index), row.source, f"patched `{release.version}`")

    def _builds(
        self,
        name: str,
        file: Parsed[ComponentFile],
        path: KeyPath,
        release: ReleaseEntry,
        *,
        first: dict[tuple[str, str, str], str],
    ) -> Iterator[Mistake]:
        for index, build in enumerate(release.builds):
            below = (*path, "builds", index)
            yield from self.needs.needs(file, (*below, "requires"), build.requires, subject=name)
            if not release.source or build.source:
                yield from self._cited(file, below, build.source, f"build `{build.name}` of `{release.version}`")
            yield from self._duplicate_build(file, below, build, first)

    def _duplicate_build(
        self, file: Parsed[ComponentFile], path: KeyPath, build: BuildEntry, first: dict[tuple[str, str, str], str]
    ) -> Iterator[Mistake]:
        """Builds of one name are allowed when no platform and Python falls under both."""
        python = build.requires.get("python", "")
        pythons = python if isinstance(python, tuple) else (python,)
        for platform in build.platforms or ("",):
            for version in pythons:
                key = (build.name, platform, version)
                if key in first:
                    where = " and ".join(part for part in (platform, f"python {version}" if version else "") if part)
                    twice = f"build `{build.name}` is given twice{' for ' + where if where else ''}"
                    yield file.mistake((*path, "name"), f"{twice}; the first is {first[key]}")
                    return
                line = file.line((*path, "name"))
                first[key] = f"on line {line}"

    def _rules(self, name: str, file: Parsed[ComponentFile]) -> Iterator[Mistake]:
        for index, rule in enumerate(file.content.rules):
            path = ("rules", index)
            if rule.name in self.rule_places:
                yield file.mistake(
                    (*path, "name"), f"rule `{rule.name}` is given twice; the first is {self.rule_places[rule.name]}"
                )
            self.rule_places.setdefault(rule.name, self.files.place(file, (*path, "name")))
            if len(rule.when) != 1:
                yield file.mistake(
                    (*path, "when"), f"rule `{rule.name}` must have one component in `when`, it has {len(rule.when)}"
                )
                continue
            (subject,) = rule.when
            if subject != name and subject in self.files.index.content.components:
                text = f"rule `{rule.name}` is about `{subject}`, so it belongs in the file of `{subject}`"
                yield file.mistake((*path, "when", subject), text)
            yield from self.needs.condition(file, (*path, "when"), rule.when)
            yield from self.needs.guards(file, (*path, "on"), rule.on)
            if not rule.require:
                yield file.mistake((*path, "require"), f"rule `{rule.name}` requires nothing")
            yield from self.needs.needs(file, (*path, "require"), rule.require, subject=subject)
            yield from self._cited(file, path, rule.source, f"rule `{rule.name}`")

    def _branches(self, file: Parsed[ComponentFile]) -> Iterator[Mistake]:
        lines: dict[str, int] = {}
        for index, branch in enumerate(file.content.branches):
            path = ("branches", index)
            if branch.branch in lines:
                text = f"branch `{branch.branch}` is given twice; the first is on line {lines[branch.branch]}"
                yield file.mistake((*path, "branch"), text)
            lines.setdefault(branch.branch, file.line(path))
            yield from self.needs.version(file, (*path, "native_cuda"), branch.native_cuda)[1]
            yield from self._cited(file, path, branch.source, f"branch `{branch.branch}`")

    def _gpus(self, file: Parsed[GpuFile]) -> Iterator[Mistake]:
        yield from file.repeated("gpus", "GPU", (gpu.name for gpu in file.content.gpus))
        for index, gpu in enumerate(file.content.gpus):
            path = ("gpus", index)
            if bool(gpu.compute_capability) == bool(gpu.gfx):
                text = f"GPU `{gpu.name}` needs one of compute_capability (NVIDIA) and gfx (AMD)"
                yield file.mistake((*path, "name"), text)
            if gpu.first_driver is not None:
                yield from self.needs.version(file, (*path, "first_driver"), gpu.first_driver)[1]
            yield from self._cited(file, path, gpu.source, f"GPU `{gpu.name}`")

    def _images(self, file: Parsed[ImageFile]) -> Iterator[Mistake]:
        lines: dict[tuple[str, str], int] = {}
        for index, image in enumerate(file.content.images):
            path = ("images", index)
            keys = [(image.reference, platform) for platform in image.platforms or ("",)]
            first = next((lines[key] for key in keys if key in lines), None)
            if first is not None:
                text = f"image `{image.reference}` is given twice for one platform; the first is on line {first}"
                yield file.mistake((*path, "reference"), text)
            lines.update({key: file.line(path) for key in keys if key not in lines})
            if image.gate and image.gate not in file.content.gates:
                yield file.mistake((*path, "gate"), _unknown(image.gate, "gate", file.content.gates))
            for key in ("glibc", "python", "apt_python", "cuda", "cudnn"):
                text = getattr(image, key)
                if text:
                    yield from self.needs.version(file, (*path, key), text)[1]
            yield from self._cited(file, path, image.source, f"image `{image.reference}`")


def _unknown(name: str, kind: str, known: Mapping[str, object] | set[str]) -> str:
    near = nearest(name, known)
    advice = (
        f"did you mean `{near}`?"
        if near
        else f"known are {', '.join(sorted(known))}"
        if len(known) <= 20
        else f"add it to `{kind}s`"
    )
    return f"there is no {kind} `{name}`; {advice}"
