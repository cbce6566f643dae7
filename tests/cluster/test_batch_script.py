"""The rendered batch script, submitted to a real controller."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.document import write_text
from provisioner.lock.format.file import read_lock
from provisioner.render import render
from tests.cluster.conftest import PYTHON

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("slurm")]


def submitted(lock: Path, *program: str) -> tuple[int, str]:
    """The exit code of a job with a program, and what it printed."""
    read = read_lock(lock)
    on_host = replace(read, stacks=tuple(replace(stack, runs="host") for stack in read.stacks))
    write_text(lock.with_name("job.slurm"), render(on_host, "slurm", lock_file_name=lock.name))
    command = ["sbatch", "--wait", "--quiet", "--output=job.out", "--constraint=cpu", "job.slurm", *program]
    code = subprocess.run(command, cwd=lock.parent, check=False, timeout=120).returncode
    return code, lock.with_name("job.out").read_text()


def test_a_job_runs_its_program_in_the_environment(trial: Path) -> None:
    (trial.parent / ".venv").symlink_to("env")
    assert submitted(trial, "python", "-c", "import sys; print(sys.prefix)") == (0, f"{trial.parent}/.venv\n")


def test_a_job_without_its_environment_fails_in_one_line(trial: Path) -> None:
    code, printed = submitted(trial, "python", "-c", "import sys; print(sys.prefix)")
    assert code == 1
    assert printed.startswith(f"{trial.name}: {trial.parent}/.venv has no Python that runs on ")
    assert printed.endswith(f": uv venv --python {PYTHON} && uv pip install -r {trial.name}\n")
