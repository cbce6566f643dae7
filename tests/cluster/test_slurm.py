"""`validate --engine slurm` on a real controller with real node daemons."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.cli.app import main
from provisioner.document import write_text
from provisioner.evidence.statement import read_evidence
from provisioner.lock.format.file import write_lock
from tests.cluster.conftest import PYTHON
from tests.unit.validate.locks import lock_of

if TYPE_CHECKING:
    from provisioner.evidence.report import Report

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("slurm")]

H100, A100 = "h100: constraint=sm_90&driver_550", "a100: constraint=sm_80 gres=gpu:a100:2"


def validate(lock: Path, *words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(("validate", str(lock), "--engine", "slurm", *words))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def on(lock: Path, node_class: str, *words: str) -> Report:
    """The report of a validation on one class, with the exit code of its verdict."""
    code = validate(lock, "--python", "env/bin/python", "--node-class", f"one: {node_class}", *words)
    report = read_evidence(lock.with_name("pylock.trial.linux-amd64.one.evidence.json")).report
    assert code == report.exit_code
    return report


def cause(report: Report) -> tuple[str, str]:
    """The kind and the note of the one field of a job that did not run, which is no verdict on the lock."""
    (field,) = report.fields
    assert (field.name, field.verdict, report.verdict) == ("job", "unverified", "unverified")
    return field.measured, field.note


def squeue() -> str:
    return subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".provision-*"))


def test_each_class_of_nodes_has_a_report_of_what_its_node_measured(trial: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = validate(trial, "--python", "env/bin/python", "--node-class", H100, "--node-class", A100, "--format", "json")
    answer = json.loads(capsys.readouterr().out)
    assert (code, answer["verdict"]) == (0, "yes")
    for name, report in zip(("h100", "a100"), answer["reports"], strict=True):
        assert (report["engine"]["name"], report["engine"]["node_class"]) == ("slurm", name)
        assert {field["name"]: field["measured"] for field in report["fields"]}["packages"] == "1 as locked"
        assert read_evidence(trial.with_name(f"pylock.trial.linux-amd64.{name}.evidence.json")).report.verdict == "yes"
    assert left_behind(trial.parent) == []


def test_an_environment_that_differs_is_a_no(trial: Path) -> None:
    write_text(trial, write_lock(lock_of({"demo": "1.3"}, components={"python": PYTHON})))
    assert on(trial, "constraint=cpu").verdict == "no"


def test_the_job_gets_gpus_and_the_variables_of_the_lock(trial: Path) -> None:
    """A check of level 4 asks for a GPU; one that is a terminal is none, which is told as not verified."""
    write_text(trial, write_lock(lock_of({"demo": "1.2"}, components={"python": PYTHON}, accelerator="cuda")))
    seen = trial.parent / "seen"
    (trial.parent / "env/lib" / f"python{PYTHON}" / "site-packages/sitecustomize.py").write_text(
        f"import os\nopen({str(seen)!r}, 'w').write(os.environ.get('CUDA_VISIBLE_DEVICES', 'none'))\n"
    )
    on(trial, "constraint=sm_80 gres=gpu:a100:2", "--level", "4")
    assert seen.read_text() == "0,1"
    on(trial, "constraint=sm_80", "--level", "4")
    assert seen.read_text() in {"0", "1"}
    on(trial, "constraint=sm_80", "--level", "2")
    assert seen.read_text() in {"none", "NoDevFiles"}


def test_a_node_that_is_down_is_told_with_the_reason_of_slurm(trial: Path) -> None:
    kind, note = cause(on(trial, "partition=gone", "--wait", "3"))
    assert kind == "pending"
    assert note.startswith("the job has not started: ")
    assert "DOWN" in note or "ReqNodeNotAvail" in note
    assert note.endswith(", after 3 s")
    assert (squeue(), left_behind(trial.parent)) == ("", [])


def test_a_partition_that_is_down_is_told(trial: Path) -> None:
    assert cause(on(trial, "partition=closed", "--wait", "2")) == (
        "pending",
        "the job has not started: PartitionDown, after 2 s",
    )


def test_busy_nodes_are_told(trial: Path) -> None:
    busy = subprocess.run(
        ["sbatch", "--parsable", "--output=/dev/null", "--constraint=sm_80", "--wrap=sleep 60"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    try:
        kind, note = cause(on(trial, "constraint=sm_80", "--wait", "4"))
    finally:
        subprocess.run(["scancel", busy], check=True)
    assert (kind, note) == ("pending", "the job has not started: Resources, after 4 s")


@pytest.mark.parametrize(
    ("node_class", "note"),
    [
        ("constraint=sm_120", "Batch job submission failed: Invalid feature specification"),
        ("gres=gpu:b200:1", "Batch job submission failed: Requested node configuration is not available"),
        (
            "partition=nope",
            "invalid partition specified: nope; Batch job submission failed: Invalid partition name specified",
        ),
    ],
)
def test_a_job_that_slurm_refuses_is_told_in_its_words(trial: Path, node_class: str, note: str) -> None:
    assert cause(on(trial, node_class)) == ("refused", f"the cluster does not accept the job: {note}")


def hanging(trial: Path) -> None:
    """Let every start of the environment's interpreter take long."""
    site = trial.parent / "env/lib" / f"python{PYTHON}" / "site-packages"
    (site / "sitecustomize.py").write_text("import time\ntime.sleep(300)\n")


def started(trial: Path) -> tuple[subprocess.Popen[str], str]:
    """A validation in a process of its own whose job runs and hangs, and the job's id."""
    hanging(trial)
    words = [sys.executable, "-m", "provisioner", "validate", str(trial), "--engine", "slurm", "--python", "env/bin/python"]
    process = subprocess.Popen([*words, "--level", "2"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "RUNNING" in line:
            return process, line.split()[1].rstrip(":")
    raise AssertionError(process.wait())


def test_a_job_that_somebody_cancels_is_told(trial: Path) -> None:
    process, job = started(trial)
    subprocess.run(["scancel", job], check=True)
    process.communicate(timeout=60)
    assert process.returncode == 3
    kind, note = cause(read_evidence(trial.with_name("pylock.trial.linux-amd64.evidence.json")).report)
    assert (kind, note) == ("cancelled", "the job was cancelled: CANCELLED")


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_removes_the_job_and_its_files(trial: Path, by: signal.Signals) -> None:
    process, job = started(trial)
    process.send_signal(by)
    process.communicate(timeout=60)
    assert process.returncode == 130
    for _ in range(50):
        if not squeue():
            break
        time.sleep(0.2)
    assert (squeue(), left_behind(trial.parent)) == ("", [])
    assert not trial.with_name("pylock.trial.linux-amd64.evidence.json").exists()
    assert job


def test_checks_that_hang_are_stopped_after_the_time_given(trial: Path) -> None:
    hanging(trial)
    (field,) = on(trial, "constraint=sm_90", "--timeout", "3").fields
    assert (field.name, field.measured, field.verdict) == ("smoke test", "time ran out", "unverified")


def test_a_crash_of_the_checks_is_a_no_and_a_kill_is_none(trial: Path) -> None:
    site = trial.parent / "env/lib" / f"python{PYTHON}" / "site-packages"
    for how, measured, verdict in (("SIGSEGV", "signal 11", "no"), ("SIGKILL", "killed", "unverified")):
        # Of another length each time: bytecode of the first is else taken for that of the second, written in the same second.
        (site / "sitecustomize.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.{how})  # {measured}\n")
        (field,) = on(trial, "constraint=sm_90").fields
        assert (field.name, field.measured, field.verdict) == ("smoke test", measured, verdict)


def test_an_interpreter_or_a_module_that_nodes_lack_is_told(trial: Path) -> None:
    assert validate(trial, "--python", "gone/bin/python") == 3
    kind, note = cause(read_evidence(trial.with_name("pylock.trial.linux-amd64.evidence.json")).report)
    assert kind == "not-started"
    assert "gone/bin/python: not found" in note
    assert validate(trial, "--module", "torch/2.6") == 3
    assert cause(read_evidence(trial.with_name("pylock.trial.linux-amd64.evidence.json")).report)[0] == "not-started"


def test_a_module_is_loaded_before_the_checks_start(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs get the functions that the login shell exports, as bash does with `module`."""
    body = f'() {{ [ "$2" = torch/2.6 ] && PATH={trial.parent}/env/bin:$PATH; }}'
    monkeypatch.setenv("BASH_FUNC_module%%", body)
    assert validate(trial, "--module", "torch/2.6") == 0
    assert read_evidence(trial.with_name("pylock.trial.linux-amd64.evidence.json")).report.verdict == "yes"


def test_an_image_is_run_by_apptainer_on_the_node(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apptainer is played by a script that notes how it was called and runs the program outside of any image."""
    stub = trial.parent / "bin/apptainer"
    stub.parent.mkdir()
    stub.write_text(
        f'#!/bin/sh\necho "$1 $2 $3 $4" > {trial.parent}/called\n'
        f'while [ "$1" != python ]; do shift; done; shift; exec {trial.parent}/env/bin/python "$@"\n'
    )
    stub.chmod(0o755)
    (trial.parent / "trial.sif").write_bytes(b"an image")
    monkeypatch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")
    assert validate(trial, "--image", "trial.sif") == 0
    assert (trial.parent / "called").read_text() == f"exec --cleanenv --contain {trial.parent}/trial.sif\n"
    image = hashlib.sha256(b"an image").hexdigest()
    assert read_evidence(trial.with_name("pylock.trial.linux-amd64.evidence.json")).report.image == f"sha256:{image}"


def test_a_controller_that_does_not_answer_is_exit_code_3(
    trial: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        text = Path(os.environ["SLURM_CONF"]).read_text()
        silent = trial.with_name("slurm.conf")
        silent.write_text(re.sub(r"SlurmctldPort=\d+", f"SlurmctldPort={closed.getsockname()[1]}", text))
        monkeypatch.setenv("SLURM_CONF", str(silent))
        assert validate(trial) == 3
    error = capsys.readouterr().err
    assert error.startswith("error: no Slurm controller answers  [engine]\n")
    assert "Unable to contact slurm controller" in error


def test_a_machine_without_slurm_is_exit_code_3(
    trial: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(trial.parent))
    assert validate(trial) == 3
    message = "no Slurm answers: `scontrol` cannot be started: No such file or directory"
    assert capsys.readouterr().err.startswith(f"error: {message}  [engine]\n")
