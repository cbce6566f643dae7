"""Read what was captured of machines elsewhere: a report of nvidia-smi, a must-gather, a saved tree, or nodes of Kubernetes."""

from __future__ import annotations

import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.document import FileError, unreadable
from provisioner.errors import UsageError
from provisioner.host.inspect import Inspection, inspect_host
from provisioner.host.inventory import STDIN, read_inventory
from provisioner.host.must_gather import is_must_gather, read_must_gather
from provisioner.host.smi_report import KIND, inspect_smi_report, is_smi_report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from provisioner.host.catalogue import Catalogue

_TREE = ("proc", "etc", "sys", "usr", "System")
"""Folders of which a saved tree of a machine has one at least."""

_ARCHIVES = (".gz", ".tgz", ".tar", ".xz", ".zip", ".zst")

_MOST_BYTES = 64 * 1024 * 1024
"""A report has some 120 kB for each GPU, most of it the clocks that the GPU supports."""


class Captured(Struct, frozen=True, kw_only=True):
    """One machine that was captured; `name` is its name in the cluster, "" where nothing names it."""

    name: str
    inspection: Inspection


def read_captured(path: Path, *, gpu_names: Mapping[str, tuple[str, str]], catalogue: Catalogue) -> tuple[Captured, ...]:
    """Return the machines in a file or folder that was captured elsewhere; `-` is a report of nvidia-smi on stdin.

    `gpu_names` is as for `inspect_host`; `catalogue` translates the names of GPUs and systems to those of the matrix. Raises
    `UsageError` for a folder that is none of these, an archive, or a file of more than 64 MiB; `FileError` for a file that
    cannot be read; `InvalidDocumentError` for a mistake in one.
    """
    if path.is_dir():
        return _of_folder(path, gpu_names, catalogue)
    if path.suffix.lower() in _ARCHIVES:
        raise UsageError(f"`{path}` is an archive", hints=("unpack it, and name the folder",))
    text = _text(path)
    if is_smi_report(text):
        file = "stdin" if path == STDIN else str(path)
        return (Captured(name="", inspection=inspect_smi_report(text, file=file, gpu_names=gpu_names)),)
    if path == STDIN:
        raise UsageError("stdin is no report of nvidia-smi", hints=("pipe `nvidia-smi -q -x` into it", "name a file"))
    return read_nodes(path, catalogue=catalogue)


def read_nodes(path: Path, *, catalogue: Catalogue) -> tuple[Captured, ...]:
    """Return the machines of an inventory, such as what `kubectl get nodes -o json` printed; raises as `read_inventory`."""
    listed = read_inventory((path,), catalogue=catalogue)
    return tuple(Captured(name=one.name, inspection=Inspection(host=one.host, remarks=one.remarks)) for one in listed)


def _text(path: Path) -> str:
    """Return the text of a file, or of stdin; Windows' shell writes UTF-16 with a mark in front."""
    if path == STDIN:
        text = sys.stdin.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise _too_large(path)
        return text
    try:
        with path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise unreadable(str(path), error, kind=KIND) from None
    if len(content) > _MOST_BYTES:
        raise _too_large(path)
    try:
        return content.decode("utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{KIND} `{path}` is not UTF-8 text (byte {error.start})") from None


def _too_large(path: Path) -> UsageError:
    return UsageError(f"`{path}` is larger than {_MOST_BYTES >> 20} MiB", hints=("give the report of one machine",))


def _of_folder(path: Path, gpu_names: Mapping[str, tuple[str, str]], catalogue: Catalogue) -> tuple[Captured, ...]:
    if is_must_gather(path):
        nodes = read_must_gather(path, catalogue=catalogue)
        return tuple(Captured(name=one.name, inspection=Inspection(host=one.host, remarks=one.remarks)) for one in nodes)
    if any((path / name).is_dir() for name in _TREE):
        found = inspect_host(path, gpu_names=gpu_names)
        return (Captured(name="", inspection=replace(found, host=replace(found.host, os=catalogue.identify(found.host).os))),)
    raise UsageError(
        f"`{path}` is neither a must-gather nor the saved tree of a machine",
        hints=(
            "a must-gather holds gpu_nodes.labels or cluster-scoped-resources/core/nodes",
            f"a saved tree holds {', '.join(_TREE[:-1])} or {_TREE[-1]}",
        ),
    )
