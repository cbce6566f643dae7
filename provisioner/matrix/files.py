"""The YAML files of one matrix, read and validated one by one; every mistake of every file is collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct, field

from provisioner.document import FileError, load_document, parse_model
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.matrix.location import INDEX
from provisioner.matrix.schema import (
    ComponentFile,
    DriverPackageFile,
    GpuFile,
    ImageFile,
    KnowledgeFile,
    MatrixFile,
)
from provisioner.matrix.schema_distributions import DistributionFile, HazardFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pydantic import BaseModel

    from provisioner.document import Document, KeyPath
    from provisioner.matrix.schema import Sources

KIND = "matrix"

Content = TypeVar("Content", bound="BaseModel", covariant=True)  # noqa: PLC0105 - named after what it stands for
Model = TypeVar("Model", bound="BaseModel")


class Parsed(Struct, Generic[Content], frozen=True):
    """One file: its document, for positions, and its validated content."""

    name: str
    document: Document
    content: Content

    def mistake(self, path: KeyPath, text: str) -> Mistake:
        """A mistake at a key of this file."""
        return self.document.mistake(path, text)

    def line(self, path: KeyPath) -> int:
        """The line a key of this file stands on."""
        return self.document.position(path).line

    def repeated(self, key: str, kind: str, names: Iterable[str]) -> Iterator[Mistake]:
        """Entries of the list `key` whose name another one before them has."""
        lines: dict[str, int] = {}
        for index, name in enumerate(names):
            if name in lines:
                text = f"{kind} `{name}` is given twice; the first is on line {lines[name]}"
                yield self.mistake((key, index, "name"), text)
            lines.setdefault(name, self.line((key, index)))


class MatrixFiles(Struct):
    """Every file of one matrix that could be read; `mistakes` holds what was wrong with the others."""

    directory: Path
    index: Parsed[MatrixFile]
    components: dict[str, tuple[Parsed[ComponentFile], ...]] = field(default_factory=dict)
    gpus: Parsed[GpuFile] | None = None
    images: Parsed[ImageFile] | None = None
    distributions: Parsed[DistributionFile] | None = None
    hazards: Parsed[HazardFile] | None = None
    knowledge: Parsed[KnowledgeFile] | None = None
    driver_packages: Parsed[DriverPackageFile] | None = None
    mistakes: list[Mistake] = field(default_factory=list)

    def place(self, file: Parsed[BaseModel], path: KeyPath) -> str:
        """`matrices/pytorch.yaml:12`: where a key stands, the same on every machine."""
        return f"{self.directory.name}/{file.name}:{file.line(path)}"

    def sources(self) -> Iterator[tuple[Parsed[BaseModel], Sources]]:
        """The `sources:` of every file, in a fixed order."""
        yield self.index, self.index.content.sources
        for component in self.component_files():
            yield component, component.content.sources
        if self.gpus is not None:
            yield self.gpus, self.gpus.content.sources
        if self.images is not None:
            yield self.images, self.images.content.sources
        if self.distributions is not None:
            yield self.distributions, self.distributions.content.sources
        if self.hazards is not None:
            yield self.hazards, self.hazards.content.sources
        if self.knowledge is not None:
            yield self.knowledge, self.knowledge.content.sources
        if self.driver_packages is not None:
            yield self.driver_packages, self.driver_packages.content.sources

    def component_files(self) -> Iterator[Parsed[ComponentFile]]:
        """The files of all components, in the order `matrix.yaml` names them."""
        for files in self.components.values():
            yield from files


def read_files(directory: Path) -> MatrixFiles:
    """Read `matrix.yaml` and every file it names; raises `InvalidDocumentError` only when `matrix.yaml` itself is unusable."""
    files = MatrixFiles(directory, _read(directory, INDEX, MatrixFile))
    for name, entry in files.index.content.components.items():
        names = (entry.file,) if isinstance(entry.file, str) else entry.file
        found = (_try(files, ("components", name, "file"), text, ComponentFile) for text in names if text)
        files.components[name] = tuple(parsed for parsed in found if parsed is not None)
    index = files.index.content
    if index.gpus:
        files.gpus = _try(files, ("gpus",), index.gpus, GpuFile)
    if index.images:
        files.images = _try(files, ("images",), index.images, ImageFile)
    if index.distributions:
        files.distributions = _try(files, ("distributions",), index.distributions, DistributionFile)
    if index.hazards:
        files.hazards = _try(files, ("hazards",), index.hazards, HazardFile)
    if index.knowledge:
        files.knowledge = _try(files, ("knowledge",), index.knowledge, KnowledgeFile)
    if index.driver_packages:
        files.driver_packages = _try(files, ("driver_packages",), index.driver_packages, DriverPackageFile)
    return files


def _try(files: MatrixFiles, path: KeyPath, name: str, model: type[Model]) -> Parsed[Model] | None:
    try:
        return _read(files.directory, name, model)
    except InvalidDocumentError as error:
        files.mistakes.extend(error.mistakes)
    except FileError as error:
        files.mistakes.append(files.index.mistake(path, error.message))
    return None


def _read(directory: Path, name: str, model: type[Model]) -> Parsed[Model]:
    document = load_document(directory / name, kind=KIND, is_ours=True)
    return Parsed(name, document, parse_model(document, model, kind=KIND))
