"""`provision diagnose`: an error log → cause → remedy, through the same matrix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, TextIO, cast

import typer

from provisioner.cli.options import FormatOption, MatrixOption, OutputFormat, TargetOption
from provisioner.document import STDIN, told

if TYPE_CHECKING:
    from provisioner.diagnose.log import Log
    from provisioner.diagnose.remedies import Wanted
    from provisioner.host.model import Host
    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Matrix

AUTO = "auto"

LogArgument = Annotated[
    Path,
    typer.Argument(metavar="[LOG]", readable=False, help="A file, gzip too; `-`, the default, is stdin.", show_default=False),
]
HostOption = Annotated[
    str,
    typer.Option(
        "--host", metavar="FILE", help="The profile of the log's machine, or INVENTORY#NAME; `auto` for this machine."
    ),
]
LockOption = Annotated[
    Path | None, typer.Option("--lock", metavar="LOCK", readable=False, help="The lock that is to run: remedies fit it.")
]
SpecOption = Annotated[
    Path | None, typer.Option("--spec", metavar="SPEC", readable=False, help="The spec that is to be met: remedies fit it.")
]
LastOption = Annotated[int, typer.Option("--last", metavar="MB", min=1, help="Read this much of the end of a long log.")]


def diagnose(
    log: LogArgument = STDIN,
    *,
    host: HostOption = "",
    lock: LockOption = None,
    spec: SpecOption = None,
    target: TargetOption = None,
    last: LastOption = 16,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say what an error log means: the cause, and what to do.

    The root cause comes first, then what follows from it, other findings, and messages that are harmless.
    """
    from provisioner.cli.diagnose_report import diagnosis_data, diagnosis_lines
    from provisioner.cli.display import json_data, report, step
    from provisioner.diagnose.diagnosis import EXIT_CODES
    from provisioner.diagnose.diagnosis import diagnose as diagnose_log
    from provisioner.errors import UsageError
    from provisioner.lock.format.file import read_lock
    from provisioner.matrix.cache import cached_matrix

    if lock is not None and spec is not None:
        raise UsageError("--lock and --spec cannot be given together", hints=("give the one that is to run",))
    if target is not None and spec is None:
        raise UsageError("--target names a target of --spec, which is not given")
    found = cached_matrix(matrix)
    profile = _profile(host, found) if host else None
    locked = read_lock(lock) if lock is not None else None
    text = _read(log, last * 2**20)
    wanted = _wanted_spec(spec, target, matrix)
    if lock is not None and locked is not None:
        wanted = _wanted_lock(lock, locked, profile)
    with step("Diagnosing"):
        diagnosis = diagnose_log(text, found, profile=profile, wanted=wanted, locked=_components(locked, profile))
    name = told(Path(log.name))
    if format is OutputFormat.JSON:
        json_data(diagnosis_data(diagnosis, found, name=name))
    else:
        report(diagnosis_lines(diagnosis, found, name=name))
    return EXIT_CODES[diagnosis.verdict]


def _read(path: Path, last: int) -> Log:
    from provisioner.diagnose.log import read_log
    from provisioner.document import unreadable
    from provisioner.errors import UsageError

    if path == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("no log is given", hints=("provision diagnose build.log", "dmesg | provision diagnose"))
        return read_log(_binary(sys.stdin), last=last)
    try:
        with path.open("rb") as stream:
            return read_log(stream, last=last)
    except OSError as error:
        raise unreadable(str(path), error, kind="log") from None


def _binary(stream: IO[str]) -> IO[bytes]:
    return cast("TextIO", stream).buffer


def _profile(name: str, matrix: Matrix) -> Host:
    """Return the profile in a file, with the names that the matrix knows, or that of this machine."""
    if name == AUTO:
        from provisioner.cli.inspect import inspected

        return inspected().host
    from provisioner.document import Document
    from provisioner.host.inventory import read_host
    from provisioner.host.profile import host_from_document
    from provisioner.workflow.inputs import catalogue_of

    catalogue = catalogue_of(matrix)
    found = read_host(Path(name), catalogue=catalogue)
    return catalogue.identify(host_from_document(found)) if isinstance(found, Document) else found.host


def _platform_of(lock: Lock, profile: Host | None) -> str:
    stated = profile.platform if profile is not None else None
    return stated if stated in lock.platforms else lock.platforms[0]


def _components(lock: Lock | None, profile: Host | None) -> dict[str, str]:
    """Return the versions in a lock by component; empty without one."""
    if lock is None:
        return {}
    return dict(lock.on(_platform_of(lock, profile)).stack.components)


def _wanted_lock(path: Path, lock: Lock, profile: Host | None) -> Wanted:
    from provisioner.cli.plan_inputs import fixed
    from provisioner.components import FRAMEWORKS
    from provisioner.diagnose.remedies import Wanted
    from provisioner.plan.state import StackSpec
    from provisioner.spec.model import Spec

    platform = _platform_of(lock, profile)
    one = lock.on(platform)
    spec = Spec(name=lock.name)
    framework = next((name for name in FRAMEWORKS if name in one.stack.components), "")
    stack_spec = StackSpec(spec=spec, platform=platform, accelerator=one.stack.accelerator)
    return Wanted(name=path.name, stack_spec=fixed(stack_spec, one, path), framework=framework)


def _wanted_spec(path: Path | None, target: str | None, matrix: Path | None) -> Wanted | None:
    if path is None:
        return None
    from provisioner.components import FRAMEWORKS
    from provisioner.diagnose.remedies import Wanted
    from provisioner.plan.state import StackSpec
    from provisioner.workflow.inputs import read_without_hosts

    inputs = read_without_hosts(path, matrix=matrix, target=target)
    request = inputs.request(inputs.platforms[0])
    stack_spec = StackSpec(spec=inputs.spec, platform=request.platform, accelerator=request.accelerator, places=request.places)
    framework = next((name for name in FRAMEWORKS if name in inputs.spec.requires), "")
    return Wanted(name=path.name, stack_spec=stack_spec, framework=framework)
