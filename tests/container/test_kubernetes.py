"""`validate --engine kubernetes` on a real cluster: API server, controllers, scheduler and a kubelet that runs the pods.

`.ci/kubernetes.sh build` builds it. What they found of real clusters is in tests/cluster/test_kubernetes.py, too,
which needs none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.cli.app import main
from provisioner.document import write_text
from provisioner.evidence.statement import read_evidence
from provisioner.render import render
from provisioner.render.helper import helper_files
from tests.container.conftest import push, unavailable
from tests.container.image_locks import kept_image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.evidence.report import Report
    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.image_locks import Wheelhouse

pytestmark = [pytest.mark.docker, pytest.mark.kubectl]

_SCRIPT = Path(__file__).parents[2] / ".ci/kubernetes.sh"


def script(word: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", str(_SCRIPT), word], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def configuration(engine: DockerEngine) -> Iterator[str]:
    """The configuration of a cluster that answers, or of one that is built: that is started, and stopped again."""
    if shutil.which("kubectl") is None:
        unavailable("there is no kubectl; install kubernetes-client")
    is_own = script("status").stdout.strip() == "kubernetes built"
    if is_own and (started := script("start")).returncode != 0:
        unavailable(f"Kubernetes does not start: {started.stderr.strip()[-1000:]}")
    found = script("status")
    if found.returncode != 0:
        unavailable("no Kubernetes is built; run .ci/kubernetes.sh build")
    yield found.stdout.split()[1]
    if is_own:
        script("stop")


@pytest.fixture
def cluster(configuration: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cluster for kubectl; whatever a test leaves in it is deleted, and fails the test."""
    monkeypatch.setenv("KUBECONFIG", configuration)
    yield
    left = kubectl("get", "jobs", "--output", "name")
    kubectl("delete", "jobs", "--all", "--wait=false")
    assert left == ""


def kubectl(*words: str) -> str:
    return subprocess.run(["kubectl", *words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def image(cluster: None, engine: DockerEngine, wheelhouse: Wheelhouse, registry: str) -> Iterator[str]:
    """An image of a lock of one small package, built as validate builds it, in the loopback registry."""
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock()
    text = render(lock, "dockerfile", lock_file_name=wheelhouse.lock_path.name)
    for path, content in {"Dockerfile": text, **helper_files("dockerfile", text)}.items():
        write_text(wheelhouse.folder / path, content)
    with pytest.raises(SystemExit) as stopped:
        main(("validate", str(wheelhouse.lock_path), "--level", "1", "--keep-image", "--no-record"))
    assert stopped.value.code == 0
    reference = f"{registry}/provision-test/kubernetes:1"
    push(engine, kept_image(lock), reference)
    yield reference
    for name in (reference, kept_image(lock)):
        subprocess.run(["docker", "image", "rm", name], capture_output=True, check=False)


def validated(folder: Wheelhouse, image: str, *words: str) -> tuple[int, Report]:
    command = ("validate", str(folder.lock_path), "--engine", "kubernetes", "--image", image, "--level", "2", *words)
    with pytest.raises(SystemExit) as stopped:
        main((*command, "--evidence", str(folder.folder / "evidence.json")))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, read_evidence(folder.folder / "evidence.json").report


def cause(report: Report) -> tuple[str, str]:
    (field,) = report.fields
    assert (field.name, field.verdict, report.verdict) == ("job", "unverified", "unverified")
    return field.measured, field.note


def test_a_pod_measures_the_image(image: str, wheelhouse: Wheelhouse) -> None:
    code, report = validated(wheelhouse, image)
    assert (code, report.verdict) == (0, "yes")
    assert {one.name: one.measured for one in report.fields}["packages"] == "1 as locked"
    assert report.image.startswith(f"{image.rpartition(':')[0]}@sha256:")


def test_an_image_that_differs_is_a_no(image: str, wheelhouse: Wheelhouse) -> None:
    wheelhouse.packages.clear()
    wheelhouse.add("demo", "1.3")
    wheelhouse.lock()
    assert validated(wheelhouse, image)[0] == 1


def test_what_keeps_a_pod_from_starting_is_told(image: str, wheelhouse: Wheelhouse) -> None:
    missing = f"{image.rpartition(':')[0]}:2"
    kind, note = cause(validated(wheelhouse, missing)[1])
    assert kind == "image-unavailable"
    assert note.startswith("a node cannot get the image: ")
    words = ("--node-class", "h100: nvidia.com/gpu.product=NVIDIA-H100", "--wait", "3")
    kind, note = cause(validated(wheelhouse, image, *words)[1])
    assert kind == "pending"
    assert note.startswith("the job has not started: Unschedulable: 0/1 nodes are available: ")


SLOW = r"""
FROM {image}
USER 0
RUN mkdir /slow && printf '#!/bin/sh\ntrap "exit 143" TERM\nsleep 120 &\nwait\n' > /slow/python && chmod 755 /slow/python
ENV PATH=/slow:$PATH
USER 10001
"""
"""An image whose checks last until somebody ends them: a kubelet may never tell that a shorter one runs."""


def test_a_job_that_somebody_deletes_while_it_runs_is_no_verdict(
    image: str, wheelhouse: Wheelhouse, engine: DockerEngine
) -> None:
    def delete() -> None:
        limit = time.monotonic() + 120
        while "Running" not in kubectl("get", "pods", "--output", "jsonpath={.items[*].status.phase}"):
            assert time.monotonic() < limit
            time.sleep(0.2)
        kubectl("delete", "jobs", "--all", "--wait=false")

    slow = f"{image.rpartition(':')[0]}:slow"
    recipe = SLOW.format(image=image).encode()
    build = ["docker", "build", "--quiet", "--tag", "provision-test/kubernetes:slow", "-"]
    subprocess.run(build, input=recipe, env={**os.environ, "DOCKER_BUILDKIT": "0"}, capture_output=True, check=True)
    push(engine, "provision-test/kubernetes:slow", slow)
    somebody = threading.Thread(target=delete)
    somebody.start()
    _, report = validated(wheelhouse, slow)
    somebody.join()
    assert cause(report) == ("cancelled", "the job was cancelled: somebody deleted it")
    for name in ("provision-test/kubernetes:slow", slow):
        subprocess.run(["docker", "image", "rm", "--force", name], capture_output=True, check=False)


def test_the_server_takes_what_is_rendered(cluster: None, wheelhouse: Wheelhouse) -> None:
    """But for `podFailurePolicy`, which servers have from 1.25 on."""
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock()
    for name in ("kubernetes", "kubernetes-deployment"):
        path = wheelhouse.folder / f"{name}.yaml"
        path.write_text(render(lock, name, lock_file_name=wheelhouse.lock_path.name), encoding="utf-8")
        assert kubectl("apply", "--dry-run=server", "--filename", str(path)).endswith("created (server dry run)")
