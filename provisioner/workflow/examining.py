"""Examine a machine, or a recorded one, beside what shall run on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.doctor.examine import examine
from provisioner.doctor.model import Examination, Patient, Question
from provisioner.document import Document
from provisioner.errors import RefusedError, UsageError
from provisioner.host.condition import read_condition
from provisioner.host.environment import active_environment
from provisioner.host.inspect import inspect_host, machine_at
from provisioner.host.inventory import read_host
from provisioner.host.profile import host_from_document
from provisioner.lock.format.file import lock_path, read_lock
from provisioner.matrix.cache import cached_matrix
from provisioner.request import TargetHost, listed_target
from provisioner.workflow.inputs import catalogue_of, gpu_names_of, modules_of, read_without_hosts

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix


class Examined(Struct, frozen=True, kw_only=True, eq=False):
    """An examination, with the machine, the question and the matrix that it is the answer to."""

    matrix: Matrix
    patient: Patient
    question: Question
    examination: Examination


def examine_machine(
    wanted: Path | None,
    *,
    host: Path | None = None,
    root: Path | None = None,
    python: Path | None = None,
    matrix: Path | None = None,
    is_strict: bool = False,
) -> Examined:
    """Examine this machine, the one whose files are below `root`, or the one with the profile `host`.

    `wanted` is a lock, a folder with one lock, or a spec; without it the question is whether what is installed goes together.
    `python` is the interpreter of the environment to look at, by default the active one. Raises `UsageError` for a profile and
    a part of a machine together, and for a folder without, or with several, locks; `RefusedError` for a lock of other
    platforms; and the errors of reading the files.
    """
    if host is not None and (root is not None or python is not None):
        other = "--root" if root is not None else "--python"
        raise UsageError(
            f"--host names a recorded profile, and {other} a part of a machine that is read",
            hints=("give one of them; `provision inspect --root DIR` writes the profile of a saved tree",),
        )
    known = cached_matrix(matrix)
    patient = _recorded(known, host) if host is not None else _read(known, root or Path("/"), python)
    question = _question(wanted, patient, matrix, is_strict=is_strict)
    return Examined(matrix=known, patient=patient, question=question, examination=examine(known, patient, question))


def _recorded(matrix: Matrix, path: Path) -> Patient:
    catalogue = catalogue_of(matrix)
    found = read_host(path, catalogue=catalogue)
    if not isinstance(found, Document):
        return Patient(target=listed_target(found, label=path.name), file=str(path))
    host = catalogue.identify(host_from_document(found))
    return Patient(target=TargetHost(label=path.name, host=host, places=found.places()), file=str(path))


def _read(matrix: Matrix, root: Path, python: Path | None) -> Patient:
    inspection = inspect_host(root, gpu_names=gpu_names_of(matrix), modules=modules_of(matrix))
    machine = machine_at(root)
    host = catalogue_of(matrix).identify(inspection.host)
    return Patient(
        target=TargetHost(label="this machine" if machine.is_live else root.name, host=host),
        remarks=inspection.remarks,
        condition=read_condition(machine, host),
        environment=active_environment(machine, python),
    )


def _question(wanted: Path | None, patient: Patient, matrix: Path | None, *, is_strict: bool) -> Question:
    """Return the question that the argument asks; raises `UsageError` for a folder without, or with several, locks."""
    if wanted is None:
        return Question(is_strict=is_strict)
    path = _one_lock(wanted) if wanted.is_dir() else wanted
    if path.suffix == ".toml" and path.name != "pyproject.toml":
        lock = read_lock(path)
        platform = patient.target.host.platform or lock.platforms[0]
        if platform not in lock.platforms:
            raise RefusedError(
                f"`{path}` is for {', '.join(lock.platforms)}, and {patient.target.label} is {platform}",
                hints=(f"add {platform} under `target.platform` of its spec, and solve again",),
            )
        one = lock.on(platform)
        spec_path = path.parent / one.spec_file
        spec = None
        if spec_path.is_file():
            spec = read_without_hosts(spec_path, matrix=matrix, target=one.target or None).spec
        return Question(lock=one, lock_file=str(path), spec=spec, spec_file=str(spec_path), is_strict=is_strict)
    inputs = read_without_hosts(path, matrix=matrix)
    beside = path.parent / lock_path(inputs.spec.name)
    if beside.is_file():
        return replace(_question(beside, patient, matrix, is_strict=is_strict), spec=inputs.spec)
    return Question(spec=inputs.spec, spec_file=str(path), is_strict=is_strict)


def _one_lock(folder: Path) -> Path:
    found = sorted(folder.glob("pylock.*.toml"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"no pylock.*.toml in `{folder}`", hints=("`provision solve` writes one",))
    names = ", ".join(path.name for path in found)
    raise UsageError(f"`{folder}` has {len(found)} locks, and one is examined at a time", hints=(f"name one of {names}",))
