"""Reach a Docker engine at an `ssh://` address, as the Docker client does: each connection is a program that relays it.

docker-py would need paramiko, which is not the user's ssh with its agent and configuration. Source:
docs.docker.com/engine/security/protect-access (use SSH to protect the Docker daemon socket), 2026-11-23.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

from provisioner.validate.engine import EngineError


class SshTunnel:
    """A local socket whose connections lead to the engine at `host`; open until this program ends."""

    def __init__(self, host: str) -> None:
        """Listen; raises `EngineError` without a Docker client, which connects through ssh."""
        program = shutil.which("docker")
        if program is None:
            hints = ("install the Docker client: apt-get install docker-cli, or docker-ce-cli from Docker's own packages",)
            raise EngineError(f"`{host}` is reached through the Docker client, and there is none on PATH", hints=hints)
        self._command = (program, "system", "dial-stdio")
        self._environment = {name: value for name, value in os.environ.items() if name != "DOCKER_CONTEXT"} | {
            "DOCKER_HOST": host
        }
        self._folder = tempfile.TemporaryDirectory(prefix="provision-ssh-")
        path = Path(self._folder.name) / "docker.sock"
        self.address = f"unix://{path}"
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(path))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._server.accept()
            threading.Thread(target=self._relay, args=(connection,), daemon=True).start()

    def _relay(self, connection: socket.socket) -> None:
        """Lend a connection to the client, as its standard input and output, until either side closes it."""
        with connection:
            subprocess.run(  # noqa: S603 - a fixed argument list; no shell is involved
                self._command,
                stdin=connection.fileno(),
                stdout=connection.fileno(),
                env=self._environment,
                start_new_session=True,  # an interrupt is this program's, which still removes its container
                check=False,
            )
