"""Reading of the YAML files of a matrix; the mistakes of all files are collected instead of stopping at the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct, field

from provisioner.document import Document, FileError, load_document, parse_model
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.matrix.location import INDEX
from provisioner.matrix.model import (
    Build,
    Chip,
    Citation,
    DeclaredTargets,
    Distribution,
    DistributionLimit,
    DriverBranch,
    DriverPackage,
    Failure,
    Family,
    GfxOverride,
    Gpu,
    GpuWheel,
    HostPackage,
    HostRepository,
    ImageFacts,
    ImageSurvey,
    Kernels,
    Performance,
    PublishedWheels,
    PythonBuild,
    Release,
    Rule,
    SeenToRun,
    SharedFile,
    Sonames,
    SourceBuild,
    Statement,
    SystemLibrary,
    SystemNeed,
    SystemSurvey,
    SystemTool,
    SystemWheel,
    ToolkitFile,
    Variables,
    WheelSurvey,
)
from provisioner.strict_model import SpelledModel, StrictModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from provisioner.document import KeyPath

KIND = "matrix"


class SourcedFile(SpelledModel, frozen=True, kw_only=True):
    """The base of matrix files: `sources` are citations by key, which rows of any file may cite."""

    sources: dict[str, Citation] = field(default_factory=dict)


class ComponentEntry(StrictModel, frozen=True, kw_only=True):
    """A component in `matrix.yaml`: the name of its file or files, or its `values` if these are a few names.

    `series` is as in `provisioner.matrix.model.Component`.
    """

    title: str
    file: str | tuple[str, ...] = ""
    values: tuple[str, ...] = ()
    virtual: bool = False
    named: bool = False
    series: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the component's files, the generated one first."""
        names = (self.file,) if isinstance(self.file, str) else self.file
        return tuple(name for name in names if name)


class MatrixFile(SourcedFile, frozen=True, kw_only=True):
    """`matrix.yaml`: the order of the components, each of which may only require later ones, the names of all files, families.

    The name of a file is "" if the matrix has no such file.
    """

    order: tuple[str, ...]
    components: dict[str, ComponentEntry]
    gpus: str = ""
    images: str = ""
    python_builds: str = ""
    distributions: str = ""
    hazards: str = ""
    knowledge: str = ""
    failures: str = ""
    driver_packages: str = ""
    host_packages: str = ""
    wheels: str = ""
    system_packages: str = ""
    system_wheels: str = ""
    families: tuple[Family, ...] = ()


class ComponentFile(SourcedFile, frozen=True, kw_only=True):
    """The file of one component: its releases and rules; the driver's file also has the driver branches.

    The file of a library also says what the lack of kernels for a GPU means (`kernels`), that of a runtime which libraries its
    releases contain (`sonames`).
    """

    kernels: Kernels | None = None
    sonames: tuple[Sonames, ...] = ()
    branches: tuple[DriverBranch, ...] = ()
    releases: tuple[Release, ...] = ()
    rules: tuple[Rule, ...] = ()

    @property
    def builds(self) -> tuple[Build, ...]:
        """The builds of all releases in this file."""
        return tuple(build for release in self.releases for build in release.builds)


class GpuFile(SourcedFile, frozen=True, kw_only=True):
    """The file of GPU products, of the chips on them, and of GPUs that can run code of other targets.

    `overrides` are those of AMD, `seen_to_run` those of NVIDIA. `performance` are the figures that healthy boards reach.
    """

    gpus: tuple[Gpu, ...] = ()
    chips: tuple[Chip, ...] = ()
    overrides: tuple[GfxOverride, ...] = ()
    seen_to_run: tuple[SeenToRun, ...] = ()
    performance: tuple[Performance, ...] = ()


class ImageFile(SourcedFile, frozen=True, kw_only=True):
    """The file of base images; `gates` are `NVIDIA_REQUIRE_CUDA` values that several images share, by name.

    `surveys` lists the repositories whose new tags are proposed.
    """

    surveys: tuple[ImageSurvey, ...] = ()
    gates: dict[str, str] = field(default_factory=dict)
    images: tuple[ImageFacts, ...] = ()


class PythonBuildFile(SourcedFile, frozen=True, kw_only=True):
    """The file of archives of CPython; `latest` is the address of the document that names their newest release."""

    latest: str = ""
    builds: tuple[PythonBuild, ...] = ()


class DistributionFile(SourcedFile, frozen=True, kw_only=True):
    """The matrix file of Python distributions, limits on their versions, files that they open, and wheels that no index has."""

    distributions: tuple[Distribution, ...] = ()
    limits: tuple[DistributionLimit, ...] = ()
    toolkit_files: tuple[ToolkitFile, ...] = ()
    published: tuple[PublishedWheels, ...] = ()
    declared: tuple[DeclaredTargets, ...] = ()


class HazardFile(SourcedFile, frozen=True, kw_only=True):
    """The matrix file of conflicts between wheels that their metadata does not declare."""

    shared_files: tuple[SharedFile, ...] = ()


class KnowledgeFile(SourcedFile, frozen=True, kw_only=True):
    """The matrix file of environment variables to set."""

    variables: tuple[Variables, ...] = ()


class FailureFile(SourcedFile, frozen=True, kw_only=True):
    """The matrix file of the messages in logs: known failures, and statements of facts."""

    failures: tuple[Failure, ...] = ()
    statements: tuple[Statement, ...] = ()


class DriverPackageFile(SourcedFile, frozen=True, kw_only=True):
    """The file of the packages with which operating systems ship the NVIDIA driver."""

    packages: tuple[DriverPackage, ...] = ()


class HostPackageFile(SourcedFile, frozen=True, kw_only=True):
    """The file of the repositories and packages that bring components to hosts, and of builds from source."""

    repositories: tuple[HostRepository, ...] = ()
    packages: tuple[HostPackage, ...] = ()
    source_builds: tuple[SourceBuild, ...] = ()


class WheelFile(SourcedFile, frozen=True, kw_only=True):
    """The file of the GPU code in wheels of Python distributions; `surveys` lists the distributions to measure."""

    surveys: tuple[WheelSurvey, ...] = ()
    wheels: tuple[GpuWheel, ...] = ()


class SystemPackageFile(SourcedFile, frozen=True, kw_only=True):
    """The file of the packages of Linux distributions with the libraries and tools that wheels take from the system."""

    libraries: tuple[SystemLibrary, ...] = ()
    tools: tuple[SystemTool, ...] = ()
    needs: tuple[SystemNeed, ...] = ()


class SystemWheelFile(SourcedFile, frozen=True, kw_only=True):
    """The file of the libraries of the system that wheels link to; `surveys` lists the distributions to measure."""

    surveys: tuple[SystemSurvey, ...] = ()
    wheels: tuple[SystemWheel, ...] = ()


Content = TypeVar("Content", bound=SourcedFile, covariant=True)  # noqa: PLC0105 - named after what it stands for
Model = TypeVar("Model", bound=SourcedFile)
Row = TypeVar("Row")


class Parsed(Struct, Generic[Content], frozen=True):
    """A parsed matrix file: its directory and name, its YAML document (for line numbers), and its content."""

    directory: Path
    name: str
    document: Document
    content: Content

    def at(self, *path: str | int) -> KeyPosition:
        """Return the position of the key at a path in this file; that of the file itself for an empty path."""
        return KeyPosition(self, path)


class KeyPosition(Struct, frozen=True):
    """A position in a matrix file: the path of keys and list indices that lead to it."""

    file: Parsed[SourcedFile]
    path: KeyPath = ()

    def at(self, *path: str | int) -> KeyPosition:
        """Return the position at a path below this one."""
        return KeyPosition(self.file, (*self.path, *path))

    def each(self, key: str, rows: Iterable[Row]) -> Iterator[tuple[KeyPosition, Row]]:
        """Yield each of `rows`, the list under `key`, with its own position."""
        return ((self.at(key, index), row) for index, row in enumerate(rows))

    def mistake(self, text: str, *, first: str = "") -> Mistake:
        """Return a mistake at this position with a message; `first` is the position of the first of two equal rows."""
        return self.file.document.mistake(self.path, text, first=first)

    @property
    def line(self) -> int:
        """The line of the key, counted from 1."""
        return self.file.document.position(self.path).line

    @property
    def text(self) -> str | None:
        """The scalar at this position as written in the file; None when there is no scalar."""
        return self.file.document.texts.get(self.path)

    def __str__(self) -> str:
        """Return the position with the name of the directory, without its path: `matrices/pytorch.yaml:12`."""
        return f"{self.file.directory.name}/{self.file.name}:{self.line}"


class MatrixFiles(Struct, frozen=True, kw_only=True):
    """All files of one matrix; a file that is not configured or has mistakes is empty, and `mistakes` lists the mistakes."""

    directory: Path
    index: Parsed[MatrixFile]
    components: dict[str, tuple[Parsed[ComponentFile], ...]]
    gpus: Parsed[GpuFile]
    images: Parsed[ImageFile]
    python_builds: Parsed[PythonBuildFile]
    distributions: Parsed[DistributionFile]
    hazards: Parsed[HazardFile]
    knowledge: Parsed[KnowledgeFile]
    failures: Parsed[FailureFile]
    driver_packages: Parsed[DriverPackageFile]
    host_packages: Parsed[HostPackageFile]
    wheels: Parsed[WheelFile]
    system_packages: Parsed[SystemPackageFile]
    system_wheels: Parsed[SystemWheelFile]
    mistakes: tuple[Mistake, ...]

    @property
    def component_files(self) -> tuple[Parsed[ComponentFile], ...]:
        """The files of all components, in the order `matrix.yaml` names them."""
        return tuple(file for files in self.components.values() for file in files)

    @property
    def all_files(self) -> tuple[Parsed[SourcedFile], ...]:
        """Every file, in a fixed order."""
        rest = (self.distributions, self.hazards, self.knowledge, self.failures)
        packages = (self.driver_packages, self.host_packages, self.wheels)
        system = (self.system_packages, self.system_wheels)
        return (self.index, *self.component_files, self.gpus, self.images, self.python_builds, *rest, *packages, *system)


def read_files(directory: Path) -> MatrixFiles:
    """Read `matrix.yaml` and every file it names; raises `InvalidDocumentError` only for mistakes in `matrix.yaml` itself."""
    index = _read(directory, INDEX, MatrixFile)
    mistakes: list[Mistake] = []

    def read(model: type[Model], path: KeyPath, name: str) -> Parsed[Model] | None:
        """Read the file that `matrix.yaml` names at `path`; None if `name` is "" or the file has mistakes, which are added."""
        try:
            return _read(directory, name, model) if name else None
        except InvalidDocumentError as error:
            mistakes.extend(error.mistakes)
        except FileError as error:
            mistakes.append(index.at(*path).mistake(error.message))
        return None

    def read_one(model: type[Model], key: str, name: str) -> Parsed[Model]:
        return read(model, (key,), name) or Parsed(directory, name, Document(name, {}, {}, {}), model())

    content = index.content
    components = {
        name: [read(ComponentFile, ("components", name, "file"), file) for file in entry.files]
        for name, entry in content.components.items()
    }
    return MatrixFiles(
        directory=directory,
        index=index,
        components={name: tuple(file for file in files if file is not None) for name, files in components.items()},
        gpus=read_one(GpuFile, "gpus", content.gpus),
        images=read_one(ImageFile, "images", content.images),
        python_builds=read_one(PythonBuildFile, "python_builds", content.python_builds),
        distributions=read_one(DistributionFile, "distributions", content.distributions),
        hazards=read_one(HazardFile, "hazards", content.hazards),
        knowledge=read_one(KnowledgeFile, "knowledge", content.knowledge),
        failures=read_one(FailureFile, "failures", content.failures),
        driver_packages=read_one(DriverPackageFile, "driver_packages", content.driver_packages),
        host_packages=read_one(HostPackageFile, "host_packages", content.host_packages),
        wheels=read_one(WheelFile, "wheels", content.wheels),
        system_packages=read_one(SystemPackageFile, "system_packages", content.system_packages),
        system_wheels=read_one(SystemWheelFile, "system_wheels", content.system_wheels),
        mistakes=tuple(mistakes),
    )


def _read(directory: Path, name: str, model: type[Model]) -> Parsed[Model]:
    document = load_document(directory / name, kind=KIND, is_ours=True)
    return Parsed(directory, name, document, parse_model(document, model, kind=KIND))
