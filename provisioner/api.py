"""The public Python API: the jobs of the command line as functions that return values and print nothing.

`provisioner` exports every name of `__all__`. The command line calls the same functions of `provisioner.workflow`. Every
expected failure is raised as a `ProvisionError`.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec.structs import replace

from provisioner.diagnose.diagnosis import Diagnosis
from provisioner.diagnose.log import LAST_BYTES
from provisioner.doctor.model import Examination
from provisioner.document import read_text
from provisioner.errors import ProvisionError, UnavailableError
from provisioner.lock.diff.compare import compare_texts
from provisioner.lock.format.file import KIND, parse_lock
from provisioner.lock.format.model import Lock
from provisioner.render import render
from provisioner.resolver.joint import NoStackError
from provisioner.resolver.stack import Stack
from provisioner.spec.load import Asked
from provisioner.workflow import diagnosing, examining
from provisioner.workflow.checking import Question, Report
from provisioner.workflow.earlier import Upgrades, read_upgrades
from provisioner.workflow.explaining import explain_joint_component
from provisioner.workflow.inputs import platform_of, read_inputs
from provisioner.workflow.repository import check_repository
from provisioner.workflow.session import Session
from provisioner.workflow.solving import Solution, job_of, solve_job
from provisioner.workflow.system import explain_component, solve_stacks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.grounds.change import Comparison
    from provisioner.resolver.why import Why

__all__ = [
    "Diagnosis",
    "Examination",
    "Lock",
    "NoStackError",
    "ProvisionError",
    "Report",
    "Solution",
    "Stack",
    "UnavailableError",
    "check",
    "compare_locks",
    "diagnose_log",
    "examine_machine",
    "explain",
    "read_lock",
    "render_lock",
    "solve",
    "solve_system",
]

SPEC = Path("provision.yaml")


def solve(
    spec: Path | str | None = SPEC,
    *,
    packages: Iterable[str] = (),
    hosts: Iterable[Path | str] = (),
    target: str | None = None,
    folder: Path | str | None = None,
    upgrade: bool | Iterable[str] = False,
    exclude_newer: str | None = None,
    matrix: Path | str | None = None,
    is_offline: bool = False,
    is_strict: bool = False,
) -> Solution:
    """Choose the system stack and the packages of a spec, and return them with the lock and the files it renders.

    `packages` are requirements (PEP 508) that join those of the spec, whose lock is then not written; with `spec` None they are
    all that is asked for, and without `hosts` it is asked for this machine. `hosts` are host profiles that replace those the
    spec names; `target` names one of the `targets` of the spec, and is None for a spec without them. `upgrade` says which
    packages may differ from the earlier lock in `folder`: True for all, else their names. `exclude_newer` is a date or time
    (RFC 3339): files uploaded later are left out. `matrix` is a folder of matrix files. With `is_strict` nothing is assumed, as
    by `--strict`. Nothing is written: `Solution.write` writes the lock and the files into `folder`, by default that of the
    spec.

    Raises `NoStackError` when no stack satisfies the spec, which is proved: its `conflict` has the requirements that exclude
    each other and the changes that would resolve them. Raises `UnavailableError` when an index or registry that is needed does
    not answer, and other `ProvisionError`s for mistakes in the spec, a host profile or the matrix, all mistakes of a file at
    once.
    """
    inputs = read_inputs(
        Asked(path=_path(spec), packages=tuple(packages)),
        hosts=_paths(hosts),
        exclude_newer=exclude_newer,
        matrix=_path(matrix),
        target=target,
    )
    inputs = replace(inputs, is_strict=is_strict)
    upgrades: Upgrades | None
    upgrades = (None if upgrade else Upgrades()) if isinstance(upgrade, bool) else read_upgrades(sorted(upgrade))
    place = Path(folder) if folder is not None else inputs.path.parent / inputs.target
    job = job_of(inputs, place, upgrades=upgrades, is_offline=is_offline)
    with Session(inputs, job.settings) as session:
        return solve_job(job, session)


def solve_system(
    spec: Path | str = SPEC,
    *,
    hosts: Iterable[Path | str] = (),
    target: str | None = None,
    matrix: Path | str | None = None,
    is_strict: bool = False,
) -> tuple[Stack, ...]:
    """Choose the system stack of a spec alone, without its packages, and return it for each platform; no network is used.

    With `is_strict` nothing is assumed, as by `--strict`.
    Raises `NoStackError`, and other `ProvisionError`s for mistakes of the files, as `solve` does.
    """
    inputs = read_inputs(Path(spec), hosts=_paths(hosts), matrix=_path(matrix), target=target)
    return solve_stacks(replace(inputs, is_strict=is_strict))


def check(
    *paths: Path | str,
    hosts: Iterable[Path | str] = (),
    exclude_newer: str | None = None,
    matrix: Path | str | None = None,
    asks_changes: bool = False,
    reads_wheels: bool = False,
    required_level: int | None = None,
    is_offline: bool = False,
    is_strict: bool = False,
) -> tuple[Report, ...]:
    """Check locks against their specs, the matrix and the files rendered from them, and return one report for each lock.

    `paths` are folders, by default the current one, of which every environment is checked, or files, which lead to the
    environments that they belong to. A spec without a lock has a report, too. With `asks_changes`
    the indexes are asked what solving again would change; with `reads_wheels` the list of files of each locked wheel is read;
    with `required_level` there must be evidence beside each lock that this level of validation, or a higher one, was a yes;
    with `is_strict` nothing is assumed, and an image without a digest is an error.
    An error about one lock is in its report, so that the others are still checked. Raises `UsageError` when there
    is nothing to check.
    """
    question = Question(
        hosts=_paths(hosts),
        matrix=_path(matrix),
        exclude_newer=exclude_newer,
        asks_changes=asks_changes,
        reads_wheels=reads_wheels,
        required_level=required_level,
        is_offline=is_offline,
        is_strict=is_strict,
    )
    return check_repository([Path(path) for path in paths] or [Path()], question).reports


def explain(
    spec: Path | str | None,
    component: str,
    *,
    packages: Iterable[str] = (),
    hosts: Iterable[Path | str] = (),
    target: str | None = None,
    platform: str | None = None,
    matrix: Path | str | None = None,
    is_offline: bool = False,
) -> tuple[Why, ...]:
    """Return why one component or package has its version and not a newer one: one explanation for each host or slot with it.

    `spec` and `packages` are as for `solve`. `platform` is one of the spec's, by default the first. Raises `NoStackError`,
    `UnavailableError`, `UsageError` for a component that is not in the stack, and the errors of reading the files.
    """
    inputs = read_inputs(
        Asked(path=_path(spec), packages=tuple(packages)), hosts=_paths(hosts), matrix=_path(matrix), target=target
    )
    wanted = platform_of(inputs, platform)
    if not inputs.spec.packages:
        return explain_component(inputs, wanted, component)
    job = job_of(inputs, inputs.path.parent / inputs.target, is_offline=is_offline)
    with Session(inputs, job.settings) as session:
        return explain_joint_component(job, wanted, component, session=session)


def examine_machine(
    wanted: Path | str | None = None,
    *,
    host: Path | str | None = None,
    root: Path | str | None = None,
    python: Path | str | None = None,
    matrix: Path | str | None = None,
    is_strict: bool = False,
) -> Examination:
    """Examine a machine layer by layer, from GPU and kernel to packages, as `provision doctor` does; no network is used.

    `wanted` is what shall run: a lock, a folder with one lock, or a spec; None asks whether what is installed goes together.
    The machine is this one, a saved tree of its files below `root`, or the one with the profile `host` (`FILE#NAME` for one of
    an inventory). `python` is the interpreter of the environment to look at, by default the active one. With `is_strict`
    nothing is assumed.
    Commands of remedies are text, and none is run.

    Raises `UsageError` for `host` together with `root` or `python` and for a folder without, or with several, locks,
    `RefusedError` for a lock that is not for the platform of the machine, and other `ProvisionError`s for mistakes in files.
    """
    return examining.examine_machine(
        _path(wanted), host=_path(host), root=_path(root), python=_path(python), matrix=_path(matrix), is_strict=is_strict
    ).examination


def diagnose_log(
    log: Path | str | IO[bytes],
    *,
    host: Path | str | None = None,
    lock: Path | str | None = None,
    spec: Path | str | None = None,
    target: str | None = None,
    matrix: Path | str | None = None,
    last_bytes: int = LAST_BYTES,
) -> Diagnosis:
    """Diagnose an error log, as `provision diagnose` does: its root causes first, what follows, and remedies as values.

    `log` is the path of a file, gzip too, or a binary stream; of a long log the last `last_bytes` bytes are read. `host` is the
    profile of the log's machine, `FILE#NAME` for one of an inventory, or `auto` for this machine. `lock` or `spec` is what is
    to run on it, so that remedies fit it, and `target` one of the targets of the spec. No network is used.

    Raises `UsageError` for `lock` together with `spec` and for `target` without `spec`, `UnreadableLogError` for a damaged
    archive or a log without end, and other `ProvisionError`s for mistakes in the files.
    """
    question = diagnosing.Question(
        host=str(host) if host is not None else "", lock=_path(lock), spec=_path(spec), target=target
    )
    text = Path(log) if isinstance(log, str) else log
    return diagnosing.diagnose_log(text, question, matrix=_path(matrix), last=last_bytes).diagnosis


def read_lock(path: Path | str) -> Lock:
    """Read and parse a lock file; raises `FileError` or `InvalidDocumentError`."""
    return parse_lock(read_text(Path(path), kind=KIND), file=str(path))


def render_lock(path: Path | str, output: str = "dockerfile") -> str:
    """Return a lock file rendered in the format `output`; raises `UsageError` for an unknown format."""
    return render(read_lock(path), output, lock_file_name=Path(path).name)


def compare_locks(old: Path | str, new: Path | str) -> Comparison:
    """Return the changes from one lock file to another, with their causes; raises `FileError` or `InvalidDocumentError`."""
    first, second = ((str(path), read_text(Path(path), kind=KIND)) for path in (old, new))
    return compare_texts(first, second)


def _paths(paths: Iterable[Path | str]) -> tuple[Path, ...]:
    return tuple(Path(path) for path in paths)


def _path(path: Path | str | None) -> Path | None:
    return Path(path) if path is not None else None
