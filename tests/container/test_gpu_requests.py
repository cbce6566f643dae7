"""Asking a real engine for GPUs on a machine that has none: the refusal, the hand-over, and the verdict that follows."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from provisioner.validate.docker_engine import DockerEngine
from provisioner.validate.engine import EngineError, NoDeviceError, RunRequest
from provisioner.validate.run import Options, validate_lock
from tests.container.conftest import unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.container.image_locks import Wheelhouse

pytestmark = pytest.mark.docker

BRIDGE = "provtest0"
SHOW = ("python", "-c", "import os; print(os.environ.get('NVIDIA_VISIBLE_DEVICES', 'none'))")


@pytest.fixture(scope="module")
def hooked_engine(engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerEngine]:
    """A second engine that finds the NVIDIA hook on its PATH, so it hands GPUs over; the hook itself does nothing."""
    program = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if program is None or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("starting a second engine needs root, dockerd and ip")
    folder = tmp_path_factory.mktemp("engine")
    hook = folder / "bin/nvidia-container-runtime-hook"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\ncat >/dev/null\nexit 0\n")
    hook.chmod(0o755)
    # A bridge of its own and no firewall rules: an engine that shares either breaks the one that was there first.
    subprocess.run(["ip", "link", "add", BRIDGE, "type", "bridge"], check=False, capture_output=True)
    subprocess.run(["ip", "addr", "replace", "172.31.77.1/24", "dev", BRIDGE], check=True)
    host = f"unix://{folder}/s"
    options = [f"--data-root={folder}/d", f"--exec-root={folder}/e", f"--pidfile={folder}/p", f"--host={host}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [program, *options, f"--bridge={BRIDGE}", "--iptables=false"],
            stdout=log,
            stderr=log,
            env={**os.environ, "PATH": f"{hook.parent}:/usr/sbin:/sbin:{os.environ['PATH']}"},
        )
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DOCKER_HOST", host)
            second = connected(process, folder / "log")
            second._client.images.load(b"".join(engine._client.images.get(base_image).save(named=base_image)))
            yield second
            second._client.close()
    finally:
        process.terminate()
        process.wait(timeout=60)
        subprocess.run(["ip", "link", "delete", BRIDGE], check=False)


def connected(process: subprocess.Popen[bytes], log: Path) -> DockerEngine:
    """The engine of a process that has just been started."""
    for _ in range(150):
        try:
            return DockerEngine.connect()
        except EngineError:
            if process.poll() is not None:
                break
            time.sleep(0.2)
    return unavailable(f"a second engine does not start: {log.read_text()[-500:]}")


def has_gpus(engine: DockerEngine) -> bool:
    try:
        engine.run(RunRequest(image="provision-test/debian:bookworm", command=SHOW, gpus="all"), lambda _: None)
    except NoDeviceError:
        return False
    return True


def test_an_engine_without_gpus_refuses_in_its_own_words(engine: DockerEngine, base_image: str) -> None:
    if has_gpus(engine):
        pytest.skip("this engine has GPUs to give")
    for gpus in ("all", "0", "0,1"):
        with pytest.raises(NoDeviceError) as refused:
            engine.run(RunRequest(image=base_image, command=SHOW, gpus=gpus), lambda _: None)
        assert refused.value.message == f"the engine cannot give a container GPUs ({gpus})"
        assert 'could not select device driver ""' in refused.value.causes[0]


def test_a_gpu_lock_on_an_engine_without_gpus_is_measured_and_stays_unverified(
    engine: DockerEngine, wheelhouse: Wheelhouse
) -> None:
    if has_gpus(engine):
        pytest.skip("this engine has GPUs to give")
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock(accelerator="cuda")
    lines: list[str] = []
    options = Options(build_network="none")
    report = validate_lock(lock, wheelhouse.lock_path, engine=engine, options=options, log=lines.append)
    fields = {field.name: field for field in report.fields}
    assert (report.verdict, report.exit_code) == ("unverified", 3)
    assert fields["packages"].verdict == "yes"
    assert fields["devices"].verdict == "unverified"
    assert 'could not select device driver ""' in fields["devices"].note
    assert any(line.startswith("no GPU: ") for line in lines)


def test_an_engine_with_the_hook_hands_over_the_devices_asked_for(hooked_engine: DockerEngine, base_image: str) -> None:
    for gpus, seen in (("all", "all"), ("0,1", "0,1"), ("1", "1"), ("", "none")):
        finished = hooked_engine.run(RunRequest(image=base_image, command=SHOW, gpus=gpus), lambda _: None)
        assert finished.stdout == f"{seen}\n"


def test_a_hook_that_finds_the_hosts_driver_too_old_is_a_no_of_the_runtimes(
    hooked_engine: DockerEngine, wheelhouse: Wheelhouse, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The words are the NVIDIA runtime's own; the refusal travels through containerd and the engine as it does with a GPU."""
    hook = next(tmp_path_factory.getbasetemp().glob("engine*/bin/nvidia-container-runtime-hook"))
    working = hook.read_text()
    reason = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6"
    hook.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{reason}' >&2\nexit 1\n")
    try:
        wheelhouse.add("demo", "1.2")
        lock = wheelhouse.lock(accelerator="cuda")
        options = Options(build_network="none")
        report = validate_lock(lock, wheelhouse.lock_path, engine=hooked_engine, options=options, log=lambda _: None)
    finally:
        hook.write_text(working)
    field = report.fields[-1]
    assert (field.name, field.measured, field.verdict, report.exit_code) == ("host", "refused", "no", 1)
    assert reason in field.note
