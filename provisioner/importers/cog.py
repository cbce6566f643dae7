"""Read a `cog.yaml`: how Replicate's cog builds the image of a model.

Source: replicate/cog docs/yaml.md and pkg/config/data/config_schema_v1.0.json, read 2026-11-23.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.document import Document, Position, load_document
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.grounds.omission import Application, UnknownKey
from provisioner.importers.install_commands import InstallCommands, ScriptPlace
from provisioner.importers.requirement_lines import record_lines
from provisioner.importers.requirements import read_named_requirements

if TYPE_CHECKING:
    from provisioner.document import KeyPath
    from provisioner.importers.importing import Importing
    from provisioner.matrix.model import Matrix

KIND = "cog file"

_OF_APPLICATION = frozenset({"concurrency", "environment", "image", "model", "predict", "run", "tests", "train", "weights"})
_VERSIONS = {"cuda": "cuda", "cudnn": "cudnn", "python_version": "python"}
"""Keys of `build` that are versions, with the components that they are versions of."""


def read_cog(path: Path, importing: Importing, matrix: Matrix) -> None:
    """Read a cog file; raises `FileError`, or `InvalidDocumentError` with every mistake at its line and column."""
    _Cog(load_document(path, kind=KIND), importing, matrix).read()


class _Cog:
    """Reads one cog file."""

    def __init__(self, document: Document, importing: Importing, matrix: Matrix) -> None:
        self._document = document
        self._folder = Path(document.file).parent
        self._importing = importing
        self._install = InstallCommands(importing, matrix)
        self._mistakes: list[Mistake] = []

    def read(self) -> None:
        data = self._document.data
        build = data.get("build") if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(build, dict | None):
            raise InvalidDocumentError(KIND, (Mistake(self._document.file, 1, 1, "", "a cog file holds a mapping, `build`"),))
        for key in data:
            if key != "build":
                reason = Application() if key in _OF_APPLICATION else UnknownKey()
                self._importing.omit(key, self._document.position_in_file((key,)), reason)
        self._build(build or {})
        if self._mistakes:
            raise InvalidDocumentError(KIND, tuple(self._mistakes))

    def _build(self, build: dict[str, object]) -> None:
        at = self._document.position_in_file(("build", "gpu"))
        # cog builds an image without CUDA where nothing says `gpu: true`.
        self._importing.accelerator("cuda" if build.get("gpu") is True else "cpu", at)
        for key, value in build.items():
            path: KeyPath = ("build", key)
            if key in _VERSIONS:
                self._version(path, _VERSIONS[key], value)
            elif key == "python_packages":
                self._python_packages(path, value)
            elif key == "python_requirements" and isinstance(value, str):
                read_named_requirements(self._folder / value, self._document.position_in_file(path), self._importing)
            elif key == "system_packages":
                for position, text in self._texts(path, value):
                    self._importing.apt(text, position)
            elif key in {"run", "pre_install"}:
                self._commands(path, value)
            elif key != "gpu":
                self._importing.omit(f"build.{key}", self._document.position_in_file(path), UnknownKey())

    def _version(self, path: KeyPath, component: str, value: object) -> None:
        """Record a version; cog reads `3.10` without quotes as text, so the text of the file counts."""
        text = self._document.texts.get(path, "")
        if not isinstance(value, str | int | float) or isinstance(value, bool) or not text.replace(".", "").isdigit():
            self._mistake(path, "must be a version such as 3.11")
        else:
            self._importing.require(
                component, f"=={text}" if text.count(".") > 1 else f"{text}.*", self._document.position_in_file(path)
            )

    def _python_packages(self, path: KeyPath, value: object) -> None:
        lines = [(text, position) for position, text in self._texts(path, value)]
        record_lines(lines, self._importing)

    def _commands(self, path: KeyPath, value: object) -> None:
        """Record what the commands of `run` install: texts, or mappings with the text under `command`."""
        for index, item in enumerate(value if isinstance(value, tuple) else ()):
            below: KeyPath = (*path, index)
            text = item.get("command") if isinstance(item, dict) else item
            if isinstance(text, str):
                self._install.script(text, ScriptPlace(self._document.position_in_file(below), lambda _: None))
            else:
                self._mistake(below, "must be a command")

    def _texts(self, path: KeyPath, value: object) -> list[tuple[Position, str]]:
        found = []
        for index, item in enumerate(value if isinstance(value, tuple) else ()):
            if isinstance(item, str):
                found.append((self._document.position_in_file((*path, index)), item.strip()))
            else:
                self._mistake((*path, index), "must be text")
        if value is not None and not isinstance(value, tuple):
            self._mistake(path, "must be a list")
        return found

    def _mistake(self, path: KeyPath, text: str) -> None:
        self._mistakes.append(self._document.mistake(path, text))
