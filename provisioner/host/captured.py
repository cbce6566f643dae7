"""Read what was captured of machines elsewhere: reports of the tools of GPUs, must-gathers, saved trees, and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.document import read_printed, told
from provisioner.errors import UsageError
from provisioner.host.condition import Condition, read_condition
from provisioner.host.inspect import Inspection, inspect_host, machine_at
from provisioner.host.inventory import inventory_in, plain_json, read_inventory
from provisioner.host.must_gather import is_must_gather, read_must_gather
from provisioner.host.rocm_report import inspect_rocm_report, is_rocm_report
from provisioner.host.smi_report import KIND, inspect_smi_report, is_smi_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from provisioner.host.catalogue import Catalogue
    from provisioner.host.inventory import InventoryHost

_TREE = ("proc", "etc", "sys", "usr", "System")
"""Folders of which a saved tree of a machine has one at least."""

_ARCHIVES = (".gz", ".tgz", ".tar", ".xz", ".zip", ".zst")

_LONGEST_REPORT = 64_000_000
"""The most characters of a report of nvidia-smi.

One has some 120 kB for each GPU, most of it the clocks that the GPU supports.
"""


class Captured(Struct, frozen=True, kw_only=True):
    """One machine that was captured; `name` is its name in the cluster, "" where nothing names it.

    `condition` is None where the files of the machine were not captured.
    """

    name: str
    inspection: Inspection
    condition: Condition | None = None


def read_captured(path: Path, *, gpu_names: Mapping[str, tuple[str, str]], catalogue: Catalogue) -> tuple[Captured, ...]:
    """Return the machines in a file or folder that was captured elsewhere; `-` is a file on stdin.

    `gpu_names` is as for `inspect_host`; `catalogue` translates the names of GPUs and systems to those of the matrix. Raises
    `UsageError` for a folder that is none of these, an archive, or a report that is too long; `FileError` for a file that
    cannot be read; `InvalidDocumentError` for a mistake in one.
    """
    if path.is_dir():
        return _of_folder(path, gpu_names, catalogue)
    if path.suffix.lower() in _ARCHIVES:
        raise UsageError(f"`{path}` is an archive", hints=("unpack it, and name the folder",))
    text = read_printed(path, kind=KIND)
    if is_smi_report(text):
        if len(text) > _LONGEST_REPORT:
            message = f"`{told(path)}` has more than {_LONGEST_REPORT:,} characters"
            raise UsageError(message, hints=("give the report of one machine",))
        return (Captured(name="", inspection=inspect_smi_report(text, file=told(path), gpu_names=gpu_names)),)
    data = plain_json(text)
    if is_rocm_report(data):
        return (Captured(name="", inspection=inspect_rocm_report(data, catalogue=catalogue)),)
    return _captured(inventory_in(text, path, catalogue=catalogue))


def inspected_files(root: Path, *, gpu_names: Mapping[str, tuple[str, str]], catalogue: Catalogue) -> Captured:
    """Return the machine whose files are below `root`, `/` for this one, with its condition; raises as `inspect_host`.

    What the machine says of itself stays as it is, and a system that the matrix knows needs no system it is like.
    """
    found = inspect_host(root, gpu_names=gpu_names, modules=catalogue.modules)
    inspection = replace(found, host=replace(found.host, os=catalogue.identify(found.host).os))
    is_mac = (found.host.platform or "").startswith("macos/")
    condition = None if is_mac else read_condition(machine_at(root), inspection.host)
    return Captured(name="", inspection=inspection, condition=condition)


def read_nodes(path: Path, *, catalogue: Catalogue) -> tuple[Captured, ...]:
    """Return the machines of an inventory, such as what `kubectl get nodes -o json` printed; raises as `read_inventory`."""
    return _captured(read_inventory((path,), catalogue=catalogue))


def _captured(listed: Iterable[InventoryHost]) -> tuple[Captured, ...]:
    return tuple(Captured(name=one.name, inspection=Inspection(host=one.host, remarks=one.remarks)) for one in listed)


def _of_folder(path: Path, gpu_names: Mapping[str, tuple[str, str]], catalogue: Catalogue) -> tuple[Captured, ...]:
    if is_must_gather(path):
        nodes = read_must_gather(path, catalogue=catalogue)
        return tuple(Captured(name=one.name, inspection=Inspection(host=one.host, remarks=one.remarks)) for one in nodes)
    if any((path / name).is_dir() for name in _TREE):
        return (inspected_files(path, gpu_names=gpu_names, catalogue=catalogue),)
    raise UsageError(
        f"`{path}` is neither a must-gather nor the saved tree of a machine",
        hints=(
            "a must-gather holds gpu_nodes.labels or cluster-scoped-resources/core/nodes",
            f"a saved tree holds {', '.join(_TREE[:-1])} or {_TREE[-1]}",
        ),
    )
