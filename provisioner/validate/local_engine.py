"""The engine without containers: a Python interpreter of this machine runs the smoke script, for locks that run on the host."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.errors import UsageError
from provisioner.evidence.report import NO_ENGINE
from provisioner.host.environment import environments_here
from provisioner.validate.engine import Built
from provisioner.validate.process import stream

if TYPE_CHECKING:
    from provisioner.validate.engine import BuildRequest, Finished, Image, Log, RunRequest

_NAME_ONE = "name the interpreter of the environment: --python .venv/bin/python"

ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
"""The architectures of containers by what `uname -m` says, which is the last part of a platform's name elsewhere."""


def this_platform() -> str:
    """Return the platform of this machine in the spelling of locks, such as `linux/amd64`."""
    machine = platform.machine().lower()
    if sys.platform == "darwin":
        return f"macos/{machine}"
    return f"{sys.platform}/{ARCHITECTURES.get(machine, machine)}"


def active_python() -> Path:
    """Return the interpreter of an environment that `environments_here` yields, else the one that runs this program."""
    places = (place / "bin" / "python" for _, place in environments_here())
    return next((path for path in places if path.exists()), Path(sys.executable))


class LocalEngine:
    """An installed environment whose interpreter is `python`."""

    name = "local"
    recipe = ""
    has_entry_points = False
    node_class = ""

    def __init__(self, python: Path, version: str) -> None:
        self._python = python
        self.version = version

    @classmethod
    def connect(cls, python: Path) -> LocalEngine:
        """Read the interpreter's version; raises `UsageError` when there is none, or it is no Python."""
        if shutil.which(python) is None:
            raise UsageError(f"`{python}` is no program that can be started", hints=(_NAME_ONE,))
        finished = stream((str(python), "--version"), timeout=60)
        version = finished.stdout.strip()
        if finished.exit_code != 0 or not version.startswith("Python "):
            causes = tuple((finished.stderr or finished.stdout).strip().splitlines()[-3:])
            raise UsageError(f"`{python}` is not a Python interpreter", causes=causes, hints=(_NAME_ONE,))
        return cls(python, version)

    @property
    def platform(self) -> str:
        """Return the platform of this machine."""
        return this_platform()

    def build(self, request: BuildRequest, log: Log) -> Built:
        """Return an empty result: the environment is installed already, so nothing is built."""
        del request, log
        return Built()

    def run(self, request: RunRequest, log: Log) -> Finished:
        """Run the command of `request` with this interpreter in place of its program; the command sees all devices."""
        return stream(
            (str(self._python), *request.command[1:]), log, timeout=request.timeout, environment=dict(request.environment)
        )

    def inspect(self, image: str) -> Image | None:
        """Return None, because an environment has no configuration."""
        del image
        return None

    def find(self, reference: str, log: Log) -> Built:
        """Raise `UsageError`: there are no images here."""
        del log
        raise UsageError(
            f"--engine local measures an environment, not image `{reference}`", hints=("name its interpreter: --python",)
        )

    def remove(self, image: str) -> None:
        """Do nothing, because nothing was built."""


class NoEngine(LocalEngine):
    """What level 0 needs of an engine: the platform of this machine, and which recipe would be built."""

    name = NO_ENGINE

    def __init__(self, recipe: str) -> None:
        super().__init__(Path(sys.executable), "")
        self.recipe = recipe
