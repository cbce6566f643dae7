"""The YAML files of one matrix, read and validated one by one; every mistake of every file is collected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from provisioner.document import FileError, load_document, parse_model
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.matrix.location import INDEX
from provisioner.matrix.schema import ComponentFile, DistributionFile, GpuFile, ImageFile, MatrixFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import BaseModel

    from provisioner.document import Document, KeyPath
    from provisioner.matrix.schema import Sources

KIND = "matrix"

Content = TypeVar("Content", bound="BaseModel", covariant=True)  # noqa: PLC0105 - named after what it stands for
Model = TypeVar("Model", bound="BaseModel")


@dataclass(frozen=True, slots=True)
class Parsed(Generic[Content]):
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


@dataclass(slots=True)
class MatrixFiles:
    """Every file of one matrix that could be read; `mistakes` holds what was wrong with the others."""

    directory: Path
    index: Parsed[MatrixFile]
    components: dict[str, Parsed[ComponentFile]] = field(default_factory=dict)
    gpus: Parsed[GpuFile] | None = None
    images: Parsed[ImageFile] | None = None
    distributions: Parsed[DistributionFile] | None = None
    mistakes: list[Mistake] = field(default_factory=list)

    def place(self, file: Parsed[BaseModel], path: KeyPath) -> str:
        """`matrices/pytorch.yaml:12`: where a key stands, the same on every machine."""
        return f"{self.directory.name}/{file.name}:{file.line(path)}"

    def sources(self) -> Iterator[tuple[Parsed[BaseModel], Sources]]:
        """The `sources:` of every file, in a fixed order."""
        yield self.index, self.index.content.sources
        for component in self.components.values():
            yield component, component.content.sources
        if self.gpus is not None:
            yield self.gpus, self.gpus.content.sources
        if self.images is not None:
            yield self.images, self.images.content.sources
        if self.distributions is not None:
            yield self.distributions, self.distributions.content.sources


def read_files(directory: Path) -> MatrixFiles:
    """Read `matrix.yaml` and every file it names; raises `InvalidDocumentError` only when `matrix.yaml` itself is unusable."""
    files = MatrixFiles(directory, _read(directory, INDEX, MatrixFile))
    for name, entry in files.index.content.components.items():
        if entry.file:
            parsed = _try(files, ("components", name, "file"), entry.file, ComponentFile)
            if parsed is not None:
                files.components[name] = parsed
    index = files.index.content
    if index.gpus:
        files.gpus = _try(files, ("gpus",), index.gpus, GpuFile)
    if index.images:
        files.images = _try(files, ("images",), index.images, ImageFile)
    if index.distributions:
        files.distributions = _try(files, ("distributions",), index.distributions, DistributionFile)
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
    document = load_document(directory / name, kind=KIND)
    return Parsed(name, document, parse_model(document, model, kind=KIND))
