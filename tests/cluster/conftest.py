"""A real Slurm cluster, and a real kubectl; without them the tests are skipped with a reason.

With PROVISION_REQUIRE_ENGINE=1 they fail instead: `.ci/slurm.sh start` starts the cluster, and kubectl is on PATH (Debian:
kubernetes-client).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.document import write_text
from provisioner.lock.format.file import write_lock
from tests.container.conftest import unavailable
from tests.unit.validate.locks import lock_of
from tests.unit.validate.test_run import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_SCRIPT = Path(__file__).parents[2] / ".ci/slurm.sh"


@pytest.fixture(scope="session")
def slurm() -> Iterator[None]:
    """The cluster that `.ci/slurm.sh` starts."""
    finished = subprocess.run(["sh", str(_SCRIPT), "status"], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        unavailable("no Slurm controller answers; run .ci/slurm.sh start")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", finished.stdout.split()[1])
        yield


@pytest.fixture(scope="session")
def kubectl() -> None:
    """The client of Kubernetes."""
    if shutil.which("kubectl") is None:
        unavailable("there is no kubectl; install kubernetes-client")


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one package, in the current folder, beside an environment of this machine's Python that is as locked."""
    environment(tmp_path / "env", demo="1.2")
    path = tmp_path / "pylock.trial.toml"
    write_text(path, write_lock(lock_of({"demo": "1.2"}, components={"python": PYTHON})))
    monkeypatch.chdir(tmp_path)
    return path
