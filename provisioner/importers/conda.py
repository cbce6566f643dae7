"""Read a conda `environment.yml`: match specs, channels and the `pip:` list.

Source: conda documentation, "Managing environments: Creating an environment file manually", read 2026-11-23.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.document import Document, Position, load_document
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.grounds.omission import (
    BuildString,
    Channel,
    Installer,
    NoPythonPackage,
    OfChannel,
    UnknownKey,
    VersionNotation,
    WithCompiler,
)
from provisioner.importers.conda_names import conda_names
from provisioner.importers.importing import INSTALLERS
from provisioner.importers.match_spec import MatchSpec, parse_match_spec
from provisioner.importers.requirement_lines import record_lines
from provisioner.importers.requirements import read_named_requirements
from provisioner.versions import Range

if TYPE_CHECKING:
    from provisioner.document import KeyPath
    from provisioner.importers.conda_names import ComponentRow, SystemRow
    from provisioner.importers.importing import Importing
    from provisioner.matrix.model import Matrix

KIND = "conda environment"

_CUDA_LABEL = re.compile(r"(?:.*/)?nvidia/label/cuda-(?P<version>\d+(?:\.\d+)+)")
_CUDA_BUILD = re.compile(r"cuda_?(?P<dotted>\d+\.\d+)|cuda(?P<major>\d{2})(?P<minor>\d)(?!\d)")
_PYTHON_BUILD = re.compile(r"(?:^|_)py(?P<dotted>\d\.\d+)(?:_|$)|(?:^|_)py(?P<major>\d)(?P<minor>\d{1,2})(?:_|h|$)")
_CPU_BUILD = re.compile(r"(?:^|[_*])cpu(?:[_*]|$)")
_TOKEN = re.compile(r"/t/[^/\s]+")
"""The token in the address of a private channel. Source: conda documentation, "Managing channels"."""

_DEFAULT_CHANNELS = frozenset({"conda-forge", "defaults", "nodefaults", "pytorch", "nvidia", "anaconda", "main"})
_FREE_NAME = "base"
"""The name of conda's own environment, which says nothing of the project."""


def read_conda(path: Path, importing: Importing, matrix: Matrix) -> None:
    """Read an environment file; raises `FileError`, or `InvalidDocumentError` with every mistake at its line and column."""
    read_conda_file(path, importing, MatchSpecs(importing, matrix))


def read_conda_file(path: Path, importing: Importing, match_specs: MatchSpecs) -> None:
    """Read an environment file with a reader of match specs; raises as `read_conda` does."""
    _Environment(load_document(path, kind=KIND), importing, match_specs).read()


class _Environment:
    """Reads one environment file."""

    def __init__(self, document: Document, importing: Importing, match_specs: MatchSpecs) -> None:
        self._document = document
        self._folder = Path(document.file).parent
        self._importing = importing
        self._match_specs = match_specs
        self._mistakes: list[Mistake] = []

    def read(self) -> None:
        data = self._document.data
        if not isinstance(data, dict):
            text = "an environment file holds a mapping with `dependencies`"
            raise InvalidDocumentError(KIND, (Mistake(self._document.file, 1, 1, "", text),))
        self._keys(data)
        for index, item in enumerate(self._list(("dependencies",), data.get("dependencies", ()))):
            path: KeyPath = ("dependencies", index)
            if isinstance(item, dict) and set(item) == {"pip"}:
                self._pip((*path, "pip"), item["pip"])
            elif isinstance(item, str):
                self._dependency(path, item)
            else:
                self._mistake(path, "must be a match spec such as numpy>=1.26, or {pip: [...]}")
        if self._mistakes:
            raise InvalidDocumentError(KIND, tuple(self._mistakes))

    def _keys(self, data: dict[str, object]) -> None:
        name = data.get("name")
        if isinstance(name, str) and name != _FREE_NAME:
            self._importing.name(name)
        for index, channel in enumerate(self._list(("channels",), data.get("channels", ()))):
            if isinstance(channel, str):
                self._match_specs.named_channel(channel, self._document.position_in_file(("channels", index)))
        for key in data:
            if key not in {"name", "channels", "dependencies", "prefix"}:
                self._importing.omit(key, self._document.position_in_file((key,)), UnknownKey())

    def _dependency(self, path: KeyPath, text: str) -> None:
        try:
            self._match_specs.read(text, self._document.position_in_file(path))
        except ValueError as error:
            self._mistake(path, str(error))

    def _list(self, path: KeyPath, value: object) -> tuple[object, ...]:
        if isinstance(value, tuple):
            return value
        if value is not None:
            self._mistake(path, "must be a list")
        return ()

    def _pip(self, path: KeyPath, items: object) -> None:
        """Read the lines that conda gives to pip as a requirement file."""
        lines = []
        for index, item in enumerate(self._list(path, items)):
            position = self._document.position_in_file((*path, index))
            if not isinstance(item, str):
                self._mistake((*path, index), "must be a requirement such as numpy>=2")
            elif match := re.fullmatch(r"(?:-r|--requirement)[\s=]*(?P<file>\S+)", item.strip()):
                read_named_requirements(self._folder / match["file"], position, self._importing)
            else:
                lines.append((item.strip(), position))
        record_lines(lines, self._importing)

    def _mistake(self, path: KeyPath, text: str) -> None:
        self._mistakes.append(self._document.mistake(path, text))


def _has_own_packages(channel: str) -> bool:
    """Return whether a channel is none of those whose Python packages are those of PyPI."""
    return bool(channel) and not _CUDA_LABEL.fullmatch(channel) and channel.partition("/")[0] not in _DEFAULT_CHANNELS


class MatchSpecs:
    """Records what match specs ask for, wherever they stand: in an environment file, or behind `conda install`."""

    def __init__(self, importing: Importing, matrix: Matrix) -> None:
        self._importing = importing
        self._matrix = matrix

    def named_channel(self, channel: str, position: Position) -> None:
        """Record a channel: one of NVIDIA's labels is a release of CUDA, one with packages of its own has no counterpart."""
        label = _CUDA_LABEL.fullmatch(channel)
        if label is not None:
            self._importing.require("cuda", f"=={label['version']}", position)
        elif _has_own_packages(channel):
            self._importing.omit(_TOKEN.sub("/t/…", channel), position, Channel())

    def read(self, text: str, position: Position) -> None:
        """Record what a match spec asks for; raises `ValueError` if the text is none."""
        found = parse_match_spec(text)
        names = conda_names()
        channel = _TOKEN.sub("/t/…", found.channel)
        if _has_own_packages(found.channel) and not names.has(found.name) and found.name not in INSTALLERS:
            self._importing.omit(_TOKEN.sub("/t/…", text), position, OfChannel(found.name, channel))
            return
        if found.channel:
            self.named_channel(found.channel, position)
        if found.name in INSTALLERS:
            self._importing.omit(text, position, Installer())
        elif (component := names.components.get(found.name)) is not None:
            self._component(found, component, text, position)
        elif (system := names.systems.get(found.name)) is not None:
            self._system(system, text, position)
        elif names.is_other(found.name):
            self._importing.omit(text, position, NoPythonPackage())
        else:
            distribution = names.distributions.get(found.name, str(canonicalize_name(found.name)))
            self._importing.package(f"{distribution}{self._specifier(found, position)}", position)
            self._build(found, position)
        for key in found.others:
            self._importing.omit(f"{found.name}[{key}=…]", position, UnknownKey())

    def _specifier(self, found: MatchSpec, position: Position) -> str:
        if found.specifier is None:
            self._importing.omit(f"{found.name} {found.version}", position, VersionNotation(found.name))
        return found.specifier or ""

    def _component(self, found: MatchSpec, row: ComponentRow, text: str, position: Position) -> None:
        """Record a package that is a component; a range that components cannot have is left out like one of a package."""
        if row.component:
            spelled = _component_range(self._specifier(found, position))
            try:
                Range.parse(spelled)
            except ValueError:
                self._importing.omit(f"{found.name} {found.version}", position, VersionNotation(row.component))
                spelled = ""
            label = found.channel and _CUDA_LABEL.fullmatch(found.channel)
            if spelled or not label:
                self._importing.require(row.component, spelled, position)
        if row.accelerator:
            self._importing.accelerator(row.accelerator, position)
        if row.compiler:
            self._importing.omit(text, position, WithCompiler())
        self._build(found, position)

    def _build(self, found: MatchSpec, position: Position) -> None:
        """Record what a build string says of CUDA, Python and CPUs, and that it has no counterpart itself."""
        build = found.build
        if build in {"", "*"}:
            return
        cuda, python = _CUDA_BUILD.search(build), _PYTHON_BUILD.search(build)
        if cuda is not None:
            self._importing.require("cuda", f"{cuda['dotted'] or cuda['major'] + '.' + cuda['minor']}.*", position)
        if python is not None:
            self._importing.require("python", f"{python['dotted'] or python['major'] + '.' + python['minor']}.*", position)
        if _CPU_BUILD.search(build) is not None:
            self._importing.accelerator("cpu", position)
        elif "cuda" in build:
            self._importing.accelerator("cuda", position)
        self._importing.omit(f"{found.name}=…={build}", position, BuildString())

    def _system(self, row: SystemRow, text: str, position: Position) -> None:
        """Record what a system has instead of a package: the names that the matrix knows on every distribution of images."""
        packages = [name for tool in self._matrix.system_tools if tool.name in row.tools for name in tool.packages]
        for library in self._matrix.system_libraries:
            if library.soname in row.libraries and len(library.packages) == 1:
                packages += library.packages
        for name in packages:
            self._importing.apt(name, position)
        if not packages:
            self._importing.omit(text, position, NoPythonPackage())


def _component_range(specifier: str) -> str:
    """Return PEP 440 specifiers as a range of a component: `==12.1.*` is written `12.1.*`, and `==2.1.0.*` as `==2.1.0`."""
    clauses = []
    for clause in filter(None, specifier.split(",")):
        number = clause.removeprefix("==").removesuffix(".*")
        if clause.startswith("==") and clause.endswith(".*"):
            clauses.append(f"=={number}" if number.count(".") > 1 else f"{number}.*")
        else:
            clauses.append(clause)
    return ",".join(clauses)
