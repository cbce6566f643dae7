"""Connect to the container engine, or the local interpreter, that a user names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.errors import UsageError

if TYPE_CHECKING:
    from provisioner.validate.engine import Engine

ENGINES = ("docker", "podman", "local")


def connect(name: str, *, python: Path | None = None, is_needed: bool = True) -> Engine:
    """Connect to the engine called `name`, and return it after it has answered.

    Where it is not needed, a stand-in that runs nothing is returned. `python` is the interpreter of the engine `local`
    (default: that of this program). Raises `UsageError` for an unknown name, and `EngineError` for an engine that does not
    answer.
    """
    if python is not None and name != "local":
        raise UsageError(f"--python names the interpreter of --engine local, not of --engine {name}")
    if not is_needed and name in ENGINES:
        from provisioner.validate.local_engine import NoEngine

        return NoEngine(Path(sys.executable), "")
    if name == "docker":
        from provisioner.validate.docker_engine import DockerEngine

        return DockerEngine.connect()
    if name == "podman":
        from provisioner.validate.podman_engine import PodmanEngine

        return PodmanEngine.connect()
    if name == "local":
        from provisioner.validate.local_engine import LocalEngine

        return LocalEngine.connect(Path(sys.executable) if python is None else python)
    hints = (f"choose one of {', '.join(ENGINES)}",)
    if name == "kubernetes":
        raise UsageError("--engine kubernetes is not supported in this version", hints=hints)
    raise UsageError(f"`{name}` is not an engine", hints=hints)
