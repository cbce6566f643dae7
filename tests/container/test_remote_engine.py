"""A Docker engine elsewhere, at tcp:// and ssh:// addresses and by Docker contexts: the engine of this machine, reached so."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from provisioner.validate.docker_engine import DockerEngine
from provisioner.validate.engine import BuildRequest, EngineError, RunRequest
from provisioner.validate.process import TIMED_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.docker

SOCKET = "/var/run/docker.sock"
_TAG = "provision-test/remote:1"


def pump(source: socket.socket, target: socket.socket) -> None:
    """Hand on what comes until one side is closed."""
    with suppress(OSError):
        while content := source.recv(65536):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def on_tcp() -> Iterator[int]:
    """The port of a listener on loopback that leads to the engine."""
    opened: list[socket.socket] = []
    pumps: list[threading.Thread] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client = server.accept()[0]
                engine = socket.socket(socket.AF_UNIX)
                opened.extend((client, engine))
                engine.connect(SOCKET)
                for pair in ((client, engine), (engine, client)):
                    pumps.append(threading.Thread(target=pump, args=pair, daemon=True))
                    pumps[-1].start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        for one in (server, *opened):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for running in (thread, *pumps):
            running.join(timeout=10)
        for one in (server, *opened):
            one.close()


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `ssh` that notes its arguments and runs the command here; the rest of its protocol is not there."""
    program = tmp_path / "bin/ssh"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/called\nwhile [ "$1" != docker ]; do shift; done\n'
        f"unset DOCKER_HOST DOCKER_CONTEXT; exec {shutil.which('docker')} --host unix://{SOCKET} system dial-stdio\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/local/bin:/usr/bin:/bin")
    return tmp_path / "called"


def builds_and_runs(folder: Path, base: str) -> None:
    """Build an image with a secret, run it with output on both streams, end another one by a timeout, and remove the image."""
    engine = DockerEngine.connect()
    (folder / "context").mkdir()
    (folder / "token").write_text("hidden")
    (folder / "Dockerfile").write_text(f"FROM {base}\nRUN --mount=type=secret,id=token test -s /run/secrets/token\n")
    request = BuildRequest(
        context=folder / "context", dockerfile=folder / "Dockerfile", tag=_TAG, secrets={"token": folder / "token"}
    )
    built = engine.build(request, lambda _: None)
    try:
        assert engine.find(built.image, lambda _: None).image == built.image
        lines: list[str] = []
        finished = engine.run(RunRequest(image=_TAG, command=("sh", "-c", "echo out; echo err >&2; exit 3")), lines.append)
        assert (finished.exit_code, finished.stdout, finished.stderr, lines) == (3, "out\n", "err\n", ["err"])
        slow = engine.run(RunRequest(image=_TAG, command=("sleep", "60"), timeout=1), lines.append)
        assert slow.exit_code == TIMED_OUT
    finally:
        engine.remove(_TAG)
    assert engine.inspect(_TAG) is None


def test_an_engine_at_a_tcp_address(base_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with on_tcp() as port:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
        builds_and_runs(tmp_path, base_image)


def test_an_engine_at_an_ssh_address(base_image: str, tmp_path: Path, ssh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "ssh://ada@build.example:2222")
    builds_and_runs(tmp_path, base_image)
    called = ssh.read_text().splitlines()
    assert all("-l ada" in line and "-p 2222" in line and "build.example docker system dial-stdio" in line for line in called)


def test_an_engine_of_a_context(base_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DOCKER_CONTEXT comes before DOCKER_HOST, as it does for the Docker client."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "config"))
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.json").write_text("{}")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with on_tcp() as port:
        command = ["docker", "context", "create", "far", "--docker", f"host=tcp://127.0.0.1:{port}"]
        subprocess.run(command, check=True, capture_output=True)
        monkeypatch.setenv("DOCKER_CONTEXT", "far")
        builds_and_runs(tmp_path, base_image)
    monkeypatch.setenv("DOCKER_CONTEXT", "gone")
    with pytest.raises(EngineError, match="there is no Docker context `gone`"):
        DockerEngine.connect()


def test_an_ssh_address_that_does_not_answer_is_named(engine: DockerEngine, ssh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (ssh.parent / "bin/ssh").write_text(
        "#!/bin/sh\necho 'ssh: connect to host far port 22: Connection refused' >&2\nexit 255\n"
    )
    monkeypatch.setenv("DOCKER_HOST", "ssh://far")
    with pytest.raises(EngineError, match="no Docker engine answers at `ssh://far`"):
        DockerEngine.connect()
