"""Runs of the program of which one can tell whether they solved or had the answer at hand."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.project import Project

TELLS = """
import atexit, os, sys
def tell():
    with open(os.environ["TELLS"], "w") as stream:
        stream.write("solved" if "provisioner.solve.problem" in sys.modules else "at hand")
atexit.register(tell)
"""
OFFLINE = ("solve", "--offline")
YOUNG = 0.06
"""Seconds for which a file that was just written is not trusted to be what a run has read."""


def settle(project: Project, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Solve a project once, with pages that stay fresh and a cache of its own, but for the matrix, which takes long to read."""
    matrix = Path(os.environ["XDG_CACHE_HOME"]) / "provision" / "matrix"
    matrix.mkdir(parents=True, exist_ok=True)
    own = folder / "cache" / "provision"
    own.mkdir(parents=True)
    (own / "matrix").symlink_to(matrix)
    patch.setenv("XDG_CACHE_HOME", str(own.parent))
    patch.setenv("TELLS", str(folder / "how"))
    project.index.cache_control = "max-age=600"
    assert run(project, "solve")[0] == 0


def run(project: Project, *words: str, **variables: str) -> tuple[int, str, str, str]:
    """Exit code, both streams without words of progress, and how the answer was found."""
    time.sleep(YOUNG)
    process = project.spawn(*words, before=TELLS, **variables)  # type: ignore[arg-type]
    out, err = process.communicate()
    err = err.replace("Solving ...\n", "")
    return process.returncode, out, err, Path(os.environ["TELLS"]).read_text(encoding="utf-8")


def in_cache(statement: str) -> None:
    """Change the index cache behind the program's back."""
    with sqlite3.connect(next(Path(os.environ["XDG_CACHE_HOME"]).rglob("index-*.sqlite3"))) as connection:
        connection.execute(statement)
