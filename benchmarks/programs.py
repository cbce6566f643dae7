"""The programs to compare with: each in an environment of its own, as its manual says to install it, newest release."""

from __future__ import annotations

import os
import subprocess
import venv
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

REQUIREMENTS = {
    "uv": "uv",
    "pip": "pip",
    "pip-tools": "pip-tools",
    # Without `locked`, the newest of everything it depends on is installed, with which it may not work.
    "pdm": "pdm[locked]",
    "poetry": "poetry",
}

_PASSED_ON = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "HTTP_PROXY", "HTTPS_PROXY",
    "NO_PROXY",
)  # fmt: skip
"""What a program needs of this machine to reach an index; nothing else of the environment is passed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Where the programs are, and the directory everything is written in."""

    python: str
    provision: str
    home: Path
    scratch: Path

    def path(self, name: str, program: str = "") -> str:
        """An installed program: `path("pip-tools", "pip-compile")`."""
        return str(self.home / name / "bin" / (program or name))

    def version(self, name: str) -> str:
        """The version of an installed distribution."""
        code = f"import importlib.metadata as found; print(found.version({name!r}))"
        return subprocess.run(
            [self.path(name, "python"), "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()


def install(programs: Programs) -> None:
    """Install what is not there yet; delete the folder to have newer ones."""
    for name, requirement in REQUIREMENTS.items():
        if not (programs.home / name / "installed").exists():
            _install(programs.home / name, requirement)


def install_own(home: Path, source: Path) -> str:
    """Install this program as its users have it, from a wheel of `source`; return the path of the program."""
    _install(home, str(source))
    return str(home / "bin" / "provision")


def _install(home: Path, *wanted: str) -> None:
    """Make an environment and install, by the newest pip: an older one writes starters that import more."""
    venv.create(home, with_pip=True, clear=True)
    for names in dict.fromkeys((("pip",), wanted)):
        command = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--upgrade", *names]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise SystemExit(f"{home.name} could not be installed: {result.stderr.strip().splitlines()[-1]}")
    (home / "installed").touch()


def environment(**settings: str) -> dict[str, str]:
    """The environment of a measured program: its settings, a plain PATH, and how this machine reaches an index."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **passed, **settings}
