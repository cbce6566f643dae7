"""`validate --engine kubernetes`: a real kubectl, over HTTP, with a server that plays the cluster (api_server.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from provisioner.cli.app import main
from provisioner.document import write_text
from provisioner.evidence.statement import read_evidence
from provisioner.lock.format.file import read_lock, write_lock
from provisioner.validate.kubernetes_engine import split_log
from provisioner.validate.not_run import NotRunError
from tests.cluster.api_server import RUN, ApiServer, Cluster, ended, expanded, status, unscheduled, waiting
from tests.cluster.conftest import PYTHON
from tests.lock_examples import cuda_stack
from tests.lock_examples import lock_of as container_lock_of
from tests.unit.validate.locks import lock_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.evidence.report import Report

IMAGE = "registry.example/team/trial:1"
NO_NODES = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."

pytestmark = pytest.mark.kubectl


@pytest.fixture
def lock(trial: Path, kubectl: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock of `trial`, for containers; the environment is what a container of this machine finds on its PATH."""
    found = lock_of({"demo": "1.2"}, components={"python": PYTHON})
    write_text(trial, write_lock(replace(found, stacks=tuple(replace(one, runs="container") for one in found.stacks))))
    monkeypatch.setenv("HOME", str(trial.parent))  # kubectl keeps what it learnt of a server there
    monkeypatch.setenv("KUBECONFIG", str(trial.with_name("config")))
    return trial


@contextmanager
def served(cluster: Cluster, lock: Path) -> Iterator[Cluster]:
    cluster.environment = {"PATH": f"{lock.parent}/env/bin:{os.environ['PATH']}", **cluster.environment}
    with ApiServer(cluster) as server:
        server.write_configuration(lock.with_name("config"))
        yield cluster


def validated(cluster: Cluster, lock: Path, *words: str) -> tuple[int, Report]:
    """The exit code and the report; whatever happens, nothing stays in the cluster."""
    with served(cluster, lock), pytest.raises(SystemExit) as stopped:
        main(("validate", str(lock), "--engine", "kubernetes", "--image", IMAGE, *words))
    assert cluster.job is None
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, read_evidence(lock.with_name("pylock.trial.linux-amd64.evidence.json")).report


def cause(cluster: Cluster, lock: Path, *words: str) -> tuple[str, str]:
    """The kind and the note of a job that did not run, which is no verdict on the lock."""
    code, report = validated(cluster, lock, *words)
    (field,) = report.fields
    assert (code, field.name, field.verdict, report.verdict) == (3, "job", "unverified", "unverified")
    return field.measured, field.note


def test_a_job_measures_the_image_and_is_deleted(lock: Path) -> None:
    cluster = Cluster(moments=(None, unscheduled(NO_NODES), waiting("ContainerCreating"), status("Running"), RUN))
    code, report = validated(cluster, lock)
    assert (code, report.verdict, report.engine.name, report.engine.version) == (0, "yes", "kubernetes", "v1.32.3")
    assert {one.name: one.measured for one in report.fields}["packages"] == "1 as locked"
    assert report.image == "registry.example/team/trial@sha256:" + "a" * 64
    (job,) = cluster.created
    spec = job["spec"]
    assert (job["kind"], spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == ("Job", 0, 600)
    (container,) = spec["template"]["spec"]["containers"]
    assert container["image"] == IMAGE
    assert "args" not in container


def test_an_image_that_differs_is_a_no(lock: Path) -> None:
    write_text(lock, write_lock(replace(read_lock(lock), packages=())))
    code, report = validated(Cluster(), lock)
    assert (code, report.verdict) == (1, "no")


def test_the_job_is_that_of_the_lock_on_the_nodes_of_the_class(lock: Path) -> None:
    """It is valid by the published schema, asks for the GPU at level 4 alone, and goes where lock and class agree."""
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    stack = replace(cuda_stack(), require_cuda="driver>=550")
    write_text(lock, write_lock(container_lock_of(stack, name="trial")))
    for level in ("2", "4"):
        cluster = Cluster(moments=(unscheduled(NO_NODES),))
        words = ("--wait", "1", "--level", level, "--node-class", "h100: nvidia.com/gpu.product=NVIDIA-H100")
        with served(cluster, lock), pytest.raises(SystemExit):
            main(("validate", str(lock), "--engine", "kubernetes", "--image", IMAGE, *words))
        (job,) = cluster.created
        kubernetes_validate.validate(job, "1.32", strict=True)
        pod = job["spec"]["template"]["spec"]
        assert pod["nodeSelector"]["nvidia.com/gpu.product"] == "NVIDIA-H100"
        assert pod["nodeSelector"]["kubernetes.io/os"] == "linux"
        (container,) = pod["containers"]
        assert container.get("resources") == ({"limits": {"nvidia.com/gpu": 1}} if level == "4" else None)
        # The entry point, which checks the host, comes before the checks.
        assert "/opt/provision/guard.py" in container["command"]
        assert read_evidence(lock.with_name("pylock.trial.linux-amd64.h100.evidence.json")).report.engine.node_class == "h100"


@pytest.mark.parametrize(
    ("moments", "kind", "note"),
    [
        ([unscheduled(NO_NODES)], "pending", f"the job has not started: Unschedulable: {NO_NODES}, after 1 s"),
        (
            [waiting("ErrImagePull", "manifest unknown"), waiting("ImagePullBackOff", "Back-off pulling image")],
            "image-unavailable",
            "a node cannot get the image: ImagePullBackOff: manifest unknown",
        ),
        (
            [waiting("InvalidImageName", "couldn't parse image")],
            "image-unavailable",
            "a node cannot get the image: InvalidImageName: couldn't parse image",
        ),
        (
            [waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")],
            "not-started",
            (
                "the checks could not be started on the node: CreateContainerConfigError: "
                "container has runAsNonRoot and image will run as root"
            ),
        ),
        (
            [status("Running"), status("Failed", reason="Evicted", message="The node was low on resource: memory.")],
            "preempted",
            "the job was removed from its node in favour of others: Evicted: The node was low on resource: memory.",
        ),
        (
            [ended(137, "OOMKilled")],
            "out-of-memory",
            "the job exceeded its memory: OOMKilled",
        ),
        (
            [ended(128, "StartError", message='exec: "python": executable file not found in $PATH')],
            "not-started",
            'the checks could not be started on the node: StartError: exec: "python": executable file not found in $PATH',
        ),
        (
            [status("Failed", reason="NodeShutdown", message="Pod was terminated in response to imminent node shutdown.")],
            "node-failed",
            "the node of the job failed: NodeShutdown: Pod was terminated in response to imminent node shutdown.",
        ),
    ],
)
def test_what_comes_between_a_job_and_its_measurement_is_told(
    lock: Path, moments: list[dict[str, object]], kind: str, note: str
) -> None:
    assert cause(Cluster(moments=moments), lock, "--wait", "1") == (kind, note)


def test_what_the_user_may_not_do_is_told_in_the_words_of_the_server(lock: Path) -> None:
    denied = 'jobs.batch is forbidden: User "ada" cannot create resource "jobs" in API group "batch" in the namespace "lab"'
    kind, note = cause(Cluster(forbids={"create jobs": denied}), lock)
    assert (kind, denied in note) == ("refused", True)
    kind, note = cause(Cluster(forbids={"list pods": "pods is forbidden"}), lock)
    assert (kind, "pods is forbidden" in note) == ("refused", True)
    kind, note = cause(Cluster(forbids={"get pods/log": "pods/log is forbidden"}), lock)
    assert (kind, "pods/log is forbidden" in note) == ("no-output", True)


def test_a_job_without_a_pod_is_told_by_its_events_and_conditions(lock: Path) -> None:
    event = {
        "kind": "Event",
        "apiVersion": "v1",
        "type": "Warning",
        "reason": "FailedCreate",
        "message": "exceeded quota: gpus",
    }
    assert cause(Cluster(moments=(None,), events=(event,)), lock, "--wait", "1") == (
        "pending",
        "the job has not started: FailedCreate: exceeded quota: gpus, after 1 s",
    )
    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active longer"}
    assert cause(Cluster(moments=(None,), job_status={"conditions": [failed]}), lock) == (
        "time-limit",
        "the time limit of the job was reached: DeadlineExceeded: Job was active longer",
    )


def test_a_refusal_of_the_entry_point_is_a_no_about_the_host(lock: Path) -> None:
    cluster = Cluster(moments=(ended(78, "Error"),), log=b"provision: this image cannot run on this host: driver>=550\n")
    code, report = validated(cluster, lock)
    (field,) = report.fields
    assert (code, field.name, field.measured, field.verdict) == (1, "host", "refused", "no")
    assert field.note == "this image cannot run on this host: driver>=550"


@pytest.mark.parametrize(
    "seen",
    [ended(143, "Error"), ended(0, "Completed"), status("Failed")],
    ids=["ended by SIGTERM", "ended by a kubelet of 1.20, which says exit code 0", "without the container's state"],
)
def test_a_job_that_somebody_deletes_while_it_runs_is_no_verdict(seen: dict[str, Any], lock: Path) -> None:
    """A kubelet ends the container first, and the pod is still listed while it goes; all three were seen of real ones."""
    cluster = Cluster(moments=(status("Running"), seen), log=b"smoke: files\n", deleted="2026-11-27T22:00:00Z")
    assert cause(cluster, lock) == ("cancelled", "the job was cancelled: somebody deleted it")


def test_checks_that_hang_are_stopped_after_the_time_given(lock: Path) -> None:
    code, report = validated(Cluster(moments=(status("Running"),), log=b"smoke: files\n"), lock, "--timeout", "1")
    (field,) = report.fields
    assert (code, field.measured, field.note) == (3, "time ran out", "stopped after 1 s; the last line was: smoke: files")


def test_a_second_sigterm_does_not_keep_the_job_from_being_deleted(lock: Path) -> None:
    """`timeout` sends the signal to its program and to the group of processes, CI systems to each process of a job."""
    cluster = Cluster(moments=(unscheduled(NO_NODES),))
    words = [sys.executable, "-m", "provisioner", "validate", str(lock), "--engine", "kubernetes", "--image", IMAGE]
    with served(cluster, lock), subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        limit = time.monotonic() + 30
        while "list pods" not in cluster.requests and time.monotonic() < limit:
            time.sleep(0.05)
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        process.communicate(timeout=30)
        assert cluster.job is None
        assert process.returncode == 130


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_deletes_the_job(lock: Path, by: signal.Signals) -> None:
    cluster = Cluster(moments=(status("Running"),))
    words = [sys.executable, "-m", "provisioner", "validate", str(lock), "--engine", "kubernetes", "--image", IMAGE]
    with served(cluster, lock), subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        limit = time.monotonic() + 30
        while "list pods" not in cluster.requests and time.monotonic() < limit:
            time.sleep(0.05)
        process.send_signal(by)
        process.communicate(timeout=30)
        assert process.returncode == 130
        assert len(cluster.created) == 1
        assert cluster.job is None


def test_a_class_of_nodes_that_the_lock_excludes_is_bad_usage(lock: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster()
    words = ("--node-class", "arm: kubernetes.io/arch=arm64")
    with served(cluster, lock), pytest.raises(SystemExit) as stopped:
        main(("validate", str(lock), "--engine", "kubernetes", "--image", IMAGE, *words))
    assert (stopped.value.code, cluster.created) == (2, [])
    assert "nodes with kubernetes.io/arch=arm64 are not the lock's" in capsys.readouterr().err


def test_a_server_that_does_not_answer_is_exit_code_3(lock: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ApiServer(Cluster()) as server:
        server.write_configuration(lock.with_name("config"))
    with pytest.raises(SystemExit) as stopped:
        main(("validate", str(lock), "--engine", "kubernetes", "--image", IMAGE))
    assert stopped.value.code == 3
    assert capsys.readouterr().err.startswith("error: no Kubernetes API server answers  [engine]\n")


def test_arguments_reach_a_container_as_they_are() -> None:
    from provisioner.validate.kubernetes_engine import _literal

    for text in ("$(HOME) $$ $$(HOME) $", "a", "price: $5", "$$$(X)"):
        assert expanded(_literal(text), {"HOME": "/root", "X": "y"}) == text


def test_the_streams_of_a_log_are_told_apart_however_they_mix() -> None:
    mixed = ["smoke: files", "provision-stdout eyJh", "warning", "provision-stdout IjogMX0=", ""]
    assert split_log(mixed) == ('{"a": 1}', "smoke: files\nwarning\n\n")
    assert json.loads(split_log(mixed)[0]) == {"a": 1}
    with pytest.raises(NotRunError, match="the log of the pod is not complete"):
        split_log(["provision-stdout eyJhI"])
