"""Run the real programs that read what is rendered beside a Dockerfile, in a container that has them all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLS = "provision-test/siblings:3"
_RECIPE = Path(__file__).with_name("siblings.Dockerfile")

RIGHTS = (
    "--device",
    "/dev/fuse",
    "--cap-add",
    "SYS_ADMIN",
    "--security-opt",
    "seccomp=unconfined",
    "--security-opt",
    "apparmor=unconfined",
    "--security-opt",
    "systempaths=unconfined",
)
"""What Apptainer needs to mount file systems; not all rights, which an engine inside a container cannot give."""


def make_tools(base: str) -> str:
    """Build the image with the programs, unless it is there; returns the last lines of a build that failed, else ""."""
    if subprocess.run(["docker", "image", "inspect", TOOLS], capture_output=True, check=False).returncode == 0:
        return ""
    command = ["docker", "build", "--network", "host", "--build-arg", f"BASE={base}", "--tag", TOOLS, "-"]
    # A client may lack the plug-in for BuildKit, which this recipe does not need.
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    finished = subprocess.run(command, input=_RECIPE.read_bytes(), capture_output=True, env=environment, check=False)
    output = (finished.stdout + finished.stderr).decode(errors="replace")
    return "" if finished.returncode == 0 else output[-500:]


class Tools(Struct, frozen=True):
    """Commands that run in a folder, which has the same path inside the container, with the engine of this machine."""

    folder: Path

    def run(self, script: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a shell script as root and return its result."""
        socket = "/var/run/docker.sock"
        variables = [part for name, value in (environment or {}).items() for part in ("--env", f"{name}={value}")]
        command = ["docker", "run", "--rm", *RIGHTS, "--network", "host", "--volume", f"{socket}:{socket}", *variables]
        command += [
            "--env",
            "LC_ALL=C.UTF-8",
            "--env",
            "APPTAINER_USERNS=1",
            "--volume",
            f"{self.folder}:{self.folder}",
            "--workdir",
            str(self.folder),
            TOOLS,
            "bash",
            "-c",
            script,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def output(self, script: str, environment: Mapping[str, str] | None = None) -> str:
        """Run a shell script that has to succeed, and return what it printed."""
        finished = self.run(script, environment)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout
