"""Other Pythons than the one that runs the tests, with what this package needs, so that it can run under them.

An interpreter is looked for on the PATH and among those of pyenv. The packages are wheels for that series in a folder of their
own: nothing is installed anywhere, so the same folder serves a container that has the same series.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
SERIES = ("3.11", "3.12", "3.13", "3.14")
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"


def interpreters() -> dict[str, str]:
    """One interpreter of each known series but our own that is on this machine: series -> program."""
    found: dict[str, str] = {}
    for program in _candidates():
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        series = re.match(r"Python (3\.\d+)\.\d+$", told.strip())
        if series and series[1] in SERIES and series[1] != OWN:
            found.setdefault(series[1], program)
    return dict(sorted(found.items()))


def _candidates() -> Iterator[str]:
    for series in SERIES:
        yield from filter(None, [shutil.which(f"python{series}")])
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from sorted(str(path) for path in versions.glob("3.*/bin/python"))


def packages_for(series: str, folder: Path) -> str:
    """Put what this package depends on into a folder, as wheels of a series; returns "" or why it cannot be had."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(folder)]
    command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", series, *needs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip()[-300:]
