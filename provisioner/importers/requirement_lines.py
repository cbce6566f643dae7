"""Record lines of requirement files as parts of a spec: requirements, indexes, and projects in folders."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.document import is_file
from provisioner.grounds.omission import Login, MissingFile, OwnerUnknown, PyTorchIndex, Refused
from provisioner.importers.importing import LOGIN
from provisioner.importers.project import record_project
from provisioner.spec.requirement_file import read_requirement_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.document import Position
    from provisioner.importers.importing import Importing
    from provisioner.spec.requirement_file import IndexLine, Reading

_PYTORCH = re.compile(r"https?://download\.pytorch\.org/(?:whl|libtorch)/?(?P<rest>.*)")
_VARIANT = re.compile(r"(?:nightly/|test/)?(?P<name>cpu|cu\d+|rocm[\d.]+|xpu)/?(?:torch_stable\.html)?")


def record_lines(lines: Sequence[tuple[str, Position]], importing: Importing) -> None:
    """Record lines that stand in another file, such as the arguments of `pip install`, with what a spec refuses of them."""
    readings = [read_requirement_lines([line]) for line in lines]
    is_torch_pinned = any(map(_pins_torch, readings))
    for (text, position), reading in zip(lines, readings, strict=True):
        _record(reading, importing, is_torch_pinned=is_torch_pinned)
        for mistake in reading.mistakes:
            importing.omit(text, position, Refused(mistake.text))


def record_reading(reading: Reading, importing: Importing) -> None:
    """Record the lines of requirement files as a copy, with what a spec refuses of them."""
    _record(reading, importing, is_torch_pinned=_pins_torch(reading))
    for mistake in reading.mistakes:
        importing.mistake(mistake)


def _record(reading: Reading, importing: Importing, *, is_torch_pinned: bool) -> None:
    for line in reading.lines:
        importing.package(line.text, line.position, is_constraint=line.is_constraint)
    for index in reading.indexes:
        _index(index, importing, is_torch_pinned=is_torch_pinned)
    for project in reading.projects:
        path = project.folder / "pyproject.toml"
        if is_file(path):
            record_project(path, project.position, importing=importing, extras=project.extras)
        else:
            importing.omit(project.text, project.position, MissingFile(importing.relative(path)))


def _index(line: IndexLine, importing: Importing, *, is_torch_pinned: bool) -> None:
    """Record an index: one of PyTorch as the build that it has, any other under its host's name."""
    text = f"--{line.option} {line.url}"
    pytorch = _PYTORCH.fullmatch(line.url)
    if LOGIN.search(line.url):
        importing.omit(text, line.position, Login())
    elif pytorch is not None:
        _pytorch_index(line, importing, pytorch["rest"], is_torch_pinned=is_torch_pinned)
    elif line.option == "find-links":
        importing.omit(text, line.position, OwnerUnknown())
    else:
        importing.index(line.url, line.position, is_default=line.option == "index-url")


def _pytorch_index(line: IndexLine, importing: Importing, rest: str, *, is_torch_pinned: bool) -> None:
    """Record what an index of PyTorch means: pip takes its build if it is the only index, or if one version is asked for.

    Beside PyPI and without a version, pip takes the newest version of both, whichever build that is.
    """
    variant = _VARIANT.fullmatch(rest)
    name = variant["name"] if variant is not None else ""
    if name == "cpu" and (is_torch_pinned or line.option == "index-url"):
        importing.accelerator("cpu", line.position)
    elif name and (is_torch_pinned or line.option == "index-url"):
        importing.require("pytorch_build", name, line.position)
    else:
        importing.omit(f"--{line.option} {line.url}", line.position, PyTorchIndex("" if name == "cpu" else name))


def _pins_torch(reading: Reading) -> bool:
    """Return whether a line asks for one version of PyTorch."""
    for line in reading.lines:
        try:
            found = Requirement(line.text)
        except InvalidRequirement:
            continue
        if canonicalize_name(found.name) == "torch" and any(one.operator == "==" for one in found.specifier):
            return True
    return False
