"""Diagnose an error log: what it means on its machine, and remedies that fit a lock or a spec."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec import Struct

from provisioner.components import FRAMEWORKS
from provisioner.diagnose.diagnosis import Diagnosis, diagnose
from provisioner.diagnose.log import LAST_BYTES, Log, read_log
from provisioner.diagnose.remedies import Wanted
from provisioner.document import Document, unreadable
from provisioner.errors import UsageError
from provisioner.host.captured import inspected_files
from provisioner.host.inspect import Inspection
from provisioner.host.inventory import read_host
from provisioner.host.profile import host_from_document
from provisioner.lock.format.file import read_lock
from provisioner.matrix.cache import cached_matrix
from provisioner.plan.state import StackSpec
from provisioner.spec.model import Spec
from provisioner.workflow.inputs import catalogue_of, gpu_names_of, read_without_hosts

if TYPE_CHECKING:
    from provisioner.host.model import Host
    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Matrix

AUTO = "auto"
"""The name of this machine, where a profile is asked for."""


class Question(Struct, frozen=True, kw_only=True):
    """The machine of a log, and what is to run on it.

    `host` is the profile of the machine, `FILE#NAME` of an inventory, `auto` for this machine, or "" where nothing is known but
    the log; `lock` or `spec` is what is to run, `target` one of the targets of the spec.
    """

    host: str = ""
    lock: Path | None = None
    spec: Path | None = None
    target: str | None = None


class Diagnosed(Struct, frozen=True, kw_only=True, eq=False):
    """A diagnosis, with the matrix that it is made by, and the inspection of this machine if its facts were read."""

    matrix: Matrix
    diagnosis: Diagnosis
    inspection: Inspection | None = None


def diagnose_log(log: Path | IO[bytes], question: Question, *, matrix: Path | None = None, last: int = LAST_BYTES) -> Diagnosed:
    """Diagnose the last `last` bytes of a log, a file or a binary stream.

    Raises `UsageError` for a lock and a spec together and for a target without a spec, `UnreadableLogError`, and the errors of
    reading the files.
    """
    lock, spec = question.lock, question.spec
    if lock is not None and spec is not None:
        raise UsageError("--lock and --spec cannot be given together", hints=("give the one that is to run",))
    if question.target is not None and spec is None:
        raise UsageError("--target names a target of --spec, which is not given")
    known = cached_matrix(matrix)
    inspection = _inspection(question.host, known) if question.host else None
    profile = inspection.host if inspection is not None else None
    locked = _on_platform(read_lock(lock), profile) if lock is not None else None
    text = _read(log, last)
    wanted = _wanted_spec(spec, question.target, known) if spec is not None else None
    if lock is not None and locked is not None:
        wanted = _wanted_lock(lock, locked)
    components = dict(locked.stack.components) if locked is not None else {}
    return Diagnosed(
        matrix=known,
        diagnosis=diagnose(text, known, profile=profile, wanted=wanted, locked=components),
        inspection=inspection if question.host == AUTO else None,
    )


def _read(log: Path | IO[bytes], last: int) -> Log:
    try:
        with log.open("rb") if isinstance(log, Path) else nullcontext(log) as stream:
            return read_log(stream, last=last)
    except OSError as error:
        raise unreadable(str(log) if isinstance(log, Path) else "stdin", error, kind="log") from None


def _inspection(name: str, matrix: Matrix) -> Inspection:
    """Return the profile in a file, with the names that the matrix knows, or that of this machine."""
    catalogue = catalogue_of(matrix)
    if name == AUTO:
        return inspected_files(Path("/"), gpu_names=gpu_names_of(matrix), catalogue=catalogue).inspection
    found = read_host(Path(name), catalogue=catalogue)
    host = catalogue.identify(host_from_document(found)) if isinstance(found, Document) else found.host
    return Inspection(host=host)


def _on_platform(lock: Lock, profile: Host | None) -> Lock:
    """Return the lock of the platform of a profile, or of the first platform of the lock."""
    stated = profile.platform if profile is not None else None
    return lock.on(stated if stated in lock.platforms else lock.platforms[0])


def _wanted_lock(path: Path, lock: Lock) -> Wanted:
    framework = next((name for name in FRAMEWORKS if name in lock.stack.components), "")
    stack_spec = StackSpec(spec=Spec(name=lock.name), platform=lock.stack.platform, accelerator=lock.stack.accelerator)
    return Wanted(name=path.name, stack_spec=stack_spec.fixed(lock, file=path.name), framework=framework)


def _wanted_spec(path: Path, target: str | None, matrix: Matrix) -> Wanted:
    inputs = read_without_hosts(path, matrix=matrix, target=target)
    request = inputs.request(inputs.platforms[0])
    stack_spec = StackSpec(spec=inputs.spec, platform=request.platform, accelerator=request.accelerator, places=request.places)
    framework = next((name for name in FRAMEWORKS if name in inputs.spec.requires), "")
    return Wanted(name=path.name, stack_spec=stack_spec, framework=framework)
