"""`provision doctor`: examine this machine, or a recorded one, layer by layer, beside what shall run on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from provisioner.cli.options import FormatOption, MatrixOption, OutputFormat, StrictOption
from provisioner.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from provisioner.doctor.model import Patient, Question
    from provisioner.matrix.model import Matrix

EXIT_CODES = {"yes": 0, "no": 1, "unverified": 3}

WantedArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[LOCK]",
        readable=False,
        help="What shall run: a lock, a folder with one lock, or a spec; default: what is here.",
    ),
]

OneHostOption = Annotated[
    Path | None,
    typer.Option(
        "--host", metavar="FILE", readable=False, help="A recorded host profile, or INVENTORY#NAME, instead of this machine."
    ),
]

RootOption = Annotated[
    Path | None, typer.Option("--root", metavar="DIR", help="A saved tree, or a mounted machine, instead of this one.")
]

PythonOption = Annotated[
    Path | None,
    typer.Option(
        "--python", metavar="FILE", help="The interpreter of the environment to look at; default: the one that is active."
    ),
]


def doctor(
    wanted: WantedArgument = None,
    host: OneHostOption = None,
    root: RootOption = None,
    python: PythonOption = None,
    *,
    strict: StrictOption = False,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say layer by layer what is found, what is wanted, and what to do, from GPU and kernel to framework and packages.

    Works offline and needs no root. Without LOCK it judges whether what is installed goes together.
    """
    from provisioner.cli.display import json_data, step, warn
    from provisioner.cli.doctor_report import examination_data, tell
    from provisioner.doctor.examine import examine, untold
    from provisioner.matrix.cache import cached_matrix
    from provisioner.words.remark import remark_words

    if host is not None and (root is not None or python is not None):
        other = "--root" if root is not None else "--python"
        raise UsageError(
            f"--host names a recorded profile, and {other} a part of a machine that is read",
            hints=("give one of them; `provision inspect --root DIR` writes the profile of a saved tree",),
        )
    known = cached_matrix(matrix)
    with step("Examining"):
        patient = _recorded(known, host) if host is not None else _read(known, root or Path("/"), python)
        question = _question(wanted, patient, matrix, is_strict=strict)
        examination = examine(known, patient, question)
    for remark in untold(patient, examination):
        warn(remark_words(remark))
    if format is OutputFormat.JSON:
        json_data(examination_data(examination, question, patient, matrix=known))
    else:
        tell(examination, question, patient, matrix=known)
    return EXIT_CODES[examination.verdict]


def _recorded(matrix: Matrix, path: Path) -> Patient:
    from provisioner.doctor.model import Patient
    from provisioner.document import Document
    from provisioner.host.inventory import read_host
    from provisioner.host.profile import host_from_document
    from provisioner.request import TargetHost, listed_target
    from provisioner.workflow.inputs import catalogue_of

    catalogue = catalogue_of(matrix)
    found = read_host(path, catalogue=catalogue)
    if not isinstance(found, Document):
        return Patient(target=listed_target(found, label=path.name), file=str(path))
    host = catalogue.identify(host_from_document(found))
    return Patient(target=TargetHost(label=path.name, host=host, places=found.places()), file=str(path))


def _read(matrix: Matrix, root: Path, python: Path | None) -> Patient:
    from provisioner.cli.inspect import gpu_names_of
    from provisioner.doctor.model import Patient
    from provisioner.host.condition import read_condition
    from provisioner.host.environment import active_environment
    from provisioner.host.inspect import inspect_host, machine_at
    from provisioner.request import TargetHost
    from provisioner.workflow.inputs import catalogue_of

    inspection = inspect_host(root, gpu_names=gpu_names_of(matrix))
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
    from provisioner.doctor.model import Question
    from provisioner.lock.format.file import lock_path, read_lock
    from provisioner.workflow.inputs import read_without_hosts

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
