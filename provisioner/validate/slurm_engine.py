"""Slurm: the checks run as one job on a class of nodes, in an environment or an Apptainer image that the nodes share.

Tools of a login node alone are used: sbatch, scontrol, scancel. Sources, of 2026-11-23: slurm.schedmd.com/sbatch.html, and
slurm.schedmd.com/squeue.html (JOB STATE CODES, JOB REASON CODES).
"""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.document import FileError, file_sha256
from provisioner.errors import UsageError
from provisioner.names import nearest
from provisioner.render.shell import quoted, variables
from provisioner.validate.apptainer_command import DEVICE_VARIABLES, NOT_STARTED, exec_command
from provisioner.validate.engine import Built, EngineError, Finished
from provisioner.validate.local_engine import active_python, this_platform
from provisioner.validate.not_run import NotRun, NotRunError
from provisioner.validate.process import TIMED_OUT, stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.validate.engine import BuildRequest, Image, Log, RunRequest
    from provisioner.validate.node_class import NodeClass
    from provisioner.validate.not_run import Kind
    from provisioner.validate.where import Where

_GPU_OPTIONS = ("gpus", "gpus-per-node", "gpus-per-task", "gres", "tres-per-node", "tres-per-task")

_OPTIONS = frozenset(
    {
        *("account", "constraint", "cpus-per-task", "exclude", "exclusive", "licenses", "mem", "nodelist"),
        *("partition", "prefer", "qos", "reservation", "wckey", *_GPU_OPTIONS),
    }
)
"""Options of sbatch that a class of nodes may have: those that select nodes, and the rights to use them."""

_WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})

_ENDED: dict[str, Kind] = {
    "COMPLETED": "no-output",
    "FAILED": "no-output",
    "CANCELLED": "cancelled",
    "REVOKED": "cancelled",
    "PREEMPTED": "preempted",
    "NODE_FAIL": "node-failed",
    "BOOT_FAIL": "node-failed",
    "TIMEOUT": "time-limit",
    "DEADLINE": "time-limit",
    "OUT_OF_MEMORY": "out-of-memory",
    "": "no-output",
}
"""The states of jobs that have ended, with what each says where there is no result; "" for a job that Slurm has forgotten."""

_NO_ENVIRONMENT = (126, 127)
"""Exit codes of a shell for a program that cannot be run, or cannot be found."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
"""Seconds between two questions to the controller, which many users share."""

_UNTIL_SEEN = 30.0
"""The most seconds until a file of a node is seen here: NFS keeps the attributes of a folder that long (nfs(5), acdirmin)."""


class _State(Struct, frozen=True):
    """What Slurm says of a job: its state, and the reason, "" for none."""

    state: str
    reason: str = ""


class SlurmEngine:
    """The cluster that the commands of this machine speak to, and one class of its nodes."""

    name = "slurm"
    recipe = ""
    has_entry_points = False

    def __init__(self, version: str, where: Where) -> None:
        self.version = version
        self.platform = this_platform()
        self.node_class = where.nodes.name
        self._nodes = where.nodes
        self._environment = shared_python(where.python, where.modules)
        self._wait = where.wait
        self._stop = where.stop

    @classmethod
    def connect(cls, where: Where) -> SlurmEngine:
        """Ask the controller for its version; in what, where, and how long a job may wait is said by `where`.

        Raises `EngineError` if no controller answers, and `UsageError` for options of the class that are not known.
        """
        for name in sorted(where.nodes.selects.keys() - _OPTIONS):
            near = nearest(name, _OPTIONS)
            hints = ((f"did you mean `{near}`?",) if near else ()) + (f"there are {', '.join(sorted(_OPTIONS))}",)
            raise UsageError(f"`{name}` is not an option of sbatch that selects nodes", hints=hints)
        hints = ("run it on a login node, where sbatch works; SLURM_CONF names another configuration",)
        try:
            finished = stream(("scontrol", "show", "config"), timeout=60)
        except EngineError as error:
            raise EngineError(f"no Slurm answers: {error.message}", hints=hints) from None
        version = re.search(r"^SLURM_VERSION\s*=\s*(\S+)", finished.stdout, re.MULTILINE)
        if finished.exit_code != 0 or version is None:
            raise EngineError("no Slurm controller answers", causes=_last_lines(finished), hints=hints)
        return cls(version[1], where)

    def build(self, request: BuildRequest, log: Log) -> Built:
        """Return an empty result: nothing is built on a cluster's nodes."""
        del request, log
        return Built()

    def find(self, reference: str, log: Log) -> Built:
        """Return the image of a file that the nodes can read; raises `UsageError` for what is no file."""
        path = Path(reference)
        if not path.is_file():
            hints = ("build it: apptainer build NAME.sif apptainer.def, in a folder that the nodes share",)
            raise UsageError(f"`{reference}` is not an Apptainer image: there is no such file", hints=hints)
        log(f"reading {reference}")
        self._environment = SlurmEnvironment(image=path.absolute(), modules=self._environment.modules)
        try:
            return Built(image=f"sha256:{file_sha256(path)}")
        except FileError as error:
            raise EngineError(error.message) from None

    def inspect(self, image: str) -> Image | None:
        """Return None: a login node may lack Apptainer, which alone reads labels."""
        del image
        return None

    def remove(self, image: str) -> None:
        """Do nothing, because nothing was built."""

    def run(self, request: RunRequest, log: Log) -> Finished:
        """Run the command of `request` as a job, and remove the job and its files whatever happens.

        Raises `NotRunError` when the job does not run to its end.
        """
        # Beside other output of jobs: in the folder where the user is, which Slurm takes for shared, too.
        folder = Path(tempfile.mkdtemp(prefix=".provision-slurm-", dir=Path.cwd()))
        job = ""
        try:
            (folder / "job.sh").write_text(self._environment.script(request, folder), encoding="utf-8")
            job = self._submit(request, folder)
            log(f"job {job} of Slurm")
            finished = self._follow(job, request, folder, log)
            job = ""
            return finished
        finally:
            if job:
                stream(("scancel", "--quiet", job), timeout=60)
            _remove(folder)

    def _submit(self, request: RunRequest, folder: Path) -> str:
        """Submit the job and return its id; raises `NotRunError` with the reason why the cluster does not take it."""
        options = {
            "job-name": "provision-validate",
            "chdir": str(folder),
            "output": str(folder / "stdout"),
            "error": str(folder / "stderr"),
            "nodes": "1",
            "ntasks": "1",
            "time": str(math.ceil(request.timeout / 60) + 1),
            **_gpu_option(request.gpus, self._nodes),
            **self._nodes.selects,
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        finished = stream(("sbatch", "--parsable", "--no-requeue", *words, str(folder / "job.sh")), timeout=120)
        if finished.exit_code != 0:
            lines = [line.rpartition("error: ")[2] for line in finished.stderr.strip().splitlines()]
            raise NotRunError(NotRun(kind="refused", reason="; ".join(lines[-2:])))
        # Of several clusters it prints ID;CLUSTER.
        return finished.stdout.strip().splitlines()[-1].partition(";")[0]

    def _follow(self, job: str, request: RunRequest, folder: Path, log: Log) -> Finished:
        """Wait until the job has ended, and return its result."""
        begun = time.monotonic()
        started: float | None = None
        seen = _State("")
        pause = _FIRST_PAUSE
        while True:
            now = _ask(job, seen)
            if now != seen:
                log(f"job {job}: {now.state or 'forgotten'}{f' ({now.reason})' if now.reason else ''}")
                pause = _FIRST_PAUSE
            seen = now
            if now.state in _ENDED:
                return _result(now, folder, log)
            if now.state not in _WAITING and started is None:
                started = time.monotonic()
            if started is None and time.monotonic() - begun > self._wait:
                raise NotRunError(NotRun(kind="pending", reason=f"{now.reason or now.state}, after {self._wait:g} s"))
            if started is not None and time.monotonic() - started > request.timeout:
                stream(("scancel", "--quiet", job), timeout=60)
                return Finished(exit_code=TIMED_OUT, stdout="", stderr=_text(folder / "stderr"))
            if self._stop.wait(pause):
                raise KeyboardInterrupt
            pause = min(pause * 1.5, _LONGEST_PAUSE)


class SlurmEnvironment(Struct, frozen=True, kw_only=True):
    """What runs the checks on a node: an Apptainer image, or an interpreter, after loading `modules`.

    Without an image, `python` "" is the `python` of the modules.
    """

    image: Path | None = None
    python: str = ""
    modules: tuple[str, ...] = ()

    def script(self, request: RunRequest, folder: Path) -> str:
        """Return the batch script that runs the command of `request`, and leaves its exit code in the file `code` of a folder.

        Raises `UnrenderableError` for a variable of the lock that a shell cannot have.
        """
        # Modules are a function of login shells.
        lines = ["#!/bin/bash -l" if self.modules else "#!/bin/sh", *self._prepared(request)]
        if self.image is not None:
            command = exec_command("apptainer", str(self.image), request)
        else:
            command = (self.python or "python", *request.command[1:])
        lines += [" ".join(map(quoted, command)), "code=$?"]
        lines += [
            f"echo $code > {quoted(f'{folder}/code.part')} && mv {quoted(f'{folder}/code.part')} {quoted(f'{folder}/code')}"
        ]
        return "\n".join([*lines, ""])

    def _prepared(self, request: RunRequest) -> Iterator[str]:
        ended = f"{{ echo {_NO_ENVIRONMENT[1]} > code.part; mv code.part code; exit {_NO_ENVIRONMENT[1]}; }}"
        for module in self.modules:
            yield f"module load {quoted(module)} || {ended}"
        if self.image is not None:
            for name in DEVICE_VARIABLES:
                yield f'[ -z "${{{name}+set}}" ] || export APPTAINERENV_{name}="${name}"'
        elif request.lock is not None:
            yield from (f"export {name}={quoted(value)}" for name, value in variables(request.lock.stack).items())


def shared_python(python: Path | None, modules: tuple[str, ...]) -> SlurmEnvironment:
    """Return the environment of an interpreter, by default the active one, or the one that modules bring."""
    if python is None:
        return SlurmEnvironment(python="" if modules else str(active_python()), modules=modules)
    return SlurmEnvironment(python=os.path.abspath(python), modules=modules)  # noqa: PTH100 - a link to an interpreter stays one


def _gpu_option(gpus: str, nodes: NodeClass) -> dict[str, str]:
    """Return the option that asks for a GPU, unless none is wanted, or the class of nodes says which."""
    if not gpus or any(name in nodes.selects for name in _GPU_OPTIONS):
        return {}
    if gpus[0].isdigit():
        raise UsageError(
            f"--gpus {gpus} names devices, and Slurm chooses those of a job",
            hints=('say how many: --node-class "NAME: gres=gpu:2"',),
        )
    return {"gres": "gpu:1"}


def _ask(job: str, before: _State) -> _State:
    """Return the state of a job, `before` if the controller does not answer; with an empty state if the job is forgotten."""
    finished = stream(("scontrol", "--oneliner", "show", "job", job), timeout=60)
    if finished.exit_code != 0:
        return (
            _State("")
            if "Invalid job id" in finished.stderr + finished.stdout
            else before
            if before.state
            else _State("PENDING")
        )
    found = dict(re.findall(r"\b(JobState|Reason)=(\S+)", finished.stdout))
    reason = found.get("Reason", "None")
    return _State(found.get("JobState", "").partition("+")[0], "" if reason in {"None", "(null)"} else reason.replace("_", " "))


def _result(ended: _State, folder: Path, log: Log) -> Finished:
    """Return the result of a job that has ended, from the files that it left; raises `NotRunError` if there is none."""
    kind = _ENDED[ended.state]
    code = _exit_code(folder, is_expected=ended.state == "COMPLETED") if kind == "no-output" else None
    errors = _text(folder / "stderr")
    for line in errors.splitlines():
        log(line)
    if code is None:
        reason = " ".join(filter(None, (ended.state, f"({ended.reason})" if ended.reason else "")))
        if kind == "no-output":
            told = errors.strip().splitlines()[-1:] or ["nothing was written here: do the nodes share the current folder?"]
            reason = f"{reason or 'Slurm no longer knows the job'}; {told[0]}"
        raise NotRunError(NotRun(kind=kind, reason=reason))
    printed = _text(folder / "stdout")
    if not printed.strip() and (code in _NO_ENVIRONMENT or (code == NOT_STARTED and "FATAL" in errors)):
        last = errors.strip().splitlines()[-1:] or [f"exit code {code}"]
        raise NotRunError(NotRun(kind="not-started", reason=last[0]))
    return Finished(exit_code=code, stdout=printed, stderr=errors)


def _exit_code(folder: Path, *, is_expected: bool) -> int | None:
    """Return the exit code that the job left, as soon as it is seen here; None if it left none.

    It is expected of a script that ran to its end.
    """
    file = folder / "code"
    limit = time.monotonic() + (_UNTIL_SEEN if is_expected else 1.0)
    while not os.path.lexists(file) and time.monotonic() < limit:
        os.listdir(folder)  # noqa: PTH208 - a file system of the network reads a folder again when it is listed
        time.sleep(0.2)
    text = _text(file).strip()
    return int(text) if text.isdigit() else None


def _remove(folder: Path) -> None:
    """Remove a folder, again if a job that is being ended still wrote into it."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.2)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _last_lines(finished: Finished) -> tuple[str, ...]:
    return tuple((finished.stderr or finished.stdout).strip().splitlines()[-3:])
