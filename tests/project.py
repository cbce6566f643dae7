"""A project folder for tests of whole commands: a spec, an index of its own on loopback, and the program run in place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import pytest

from provisioner.cli.app import main
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IMAGE = f"python:3.12-slim-bookworm@sha256:{'d' * 64}"
UV_TAG = "py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64"

SPEC = """\
name: trainer
accelerator: cpu
requires:
  python: "==3.12"
packages:
  - alpha
indexes:
  - {name: local, url: "INDEX/simple"}
image: {base: "IMAGE"}
"""
LOCK = "pylock.trainer.toml"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left: its exit code, and both streams with `INDEX` for the root of the loopback index."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON holds anything
        return json.loads(self.out)


class Project:
    """A folder with a spec, which is also the working directory, and an index that offers what `offer` adds."""

    def __init__(self, folder: Path, index: LoopbackIndex, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.index = index
        self._capsys = capsys

    def write(self, text: str = SPEC, *, name: str = "provision.yaml") -> Path:
        """Write a file of the project; `INDEX` and `IMAGE` stand for the index's root and a base image with digest."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("INDEX", self.index.root).replace("IMAGE", IMAGE), encoding="utf-8")
        return path

    def spec(self, packages: str, *lines: str) -> None:
        """The usual spec with other packages (a YAML list) and more lines; a line replaces the usual one of its key."""
        self.write(changed(f"packages: {packages}", *lines))

    def run(self, *words: str) -> Outcome:
        """Run the program in this process."""
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert isinstance(stopped.value.code, int)
        printed = self._capsys.readouterr()
        return Outcome(stopped.value.code, self._portable(printed.out), self._portable(printed.err))

    def spawn(
        self, *words: str, before: str = "", stdout: IO[str] | int = subprocess.PIPE, **variables: str
    ) -> subprocess.Popen[str]:
        """Start the program as a process of its own, after the Python statements in `before`."""
        code = f"{before}\nfrom provisioner.cli.app import main; main()"
        environment = {**os.environ, **variables}
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=self.folder,
            env=environment,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    def files(self) -> dict[str, bytes]:
        """Every file of the folder by its relative path, hidden ones too."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in sorted(found)}

    def read(self, name: str) -> str:
        """The text of one file."""
        return self._portable((self.folder / name).read_text(encoding="utf-8"))

    def _portable(self, text: str) -> str:
        return text.replace(self.index.root, "INDEX").replace(IMAGE, "IMAGE")


def changed(*lines: str) -> str:
    """The usual spec, where each line (or block) replaces the block of its key or is added at the end."""
    keys = tuple(f"{line.partition(':')[0]}:" for line in lines)
    kept, is_kept = [], True
    for line in SPEC.splitlines():
        if not line.startswith(" "):
            is_kept = not line.startswith(keys)
        if is_kept:
            kept.append(line)
    return "\n".join([*kept, *lines, ""])


@contextmanager
def project_in(folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project in an empty folder; the installer's own configuration is kept out of what is printed."""
    for variable in [name for name in os.environ if name.startswith("PIP_")]:
        patch.delenv(variable)
    patch.setenv("PIP_CONFIG_FILE", os.devnull)
    patch.setenv("NETRC", os.devnull)
    patch.chdir(folder)
    with LoopbackIndex() as index:
        index.add_wheel("uv", "0.9.11", tag=UV_TAG, upload_time="2025-11-20T10:00:00Z")
        index.add_wheel("alpha", "1.0", requires=["beta>=1"])
        index.add_wheel("alpha", "2.0", requires=["beta>=2"])
        index.add_wheel("beta", "1.0")
        index.add_wheel("beta", "2.0")
        index.add_wheel("gamma", "1.0", requires=["beta<2"])
        made = Project(folder, index, capsys)
        made.write()
        yield made
