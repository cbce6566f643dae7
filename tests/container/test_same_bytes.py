"""The same lock on other machines: a container of another Debian, C library, Python and host name writes the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.container.conftest import unavailable
from tests.loopback_index import LoopbackIndex
from tests.other_pythons import ROOT, packages_for
from tests.same_bytes import SPEC, offer, outputs

if TYPE_CHECKING:
    from provisioner.validate.docker_engine import DockerEngine

pytestmark = [pytest.mark.docker, pytest.mark.network]

SUITES = {"bookworm": "3.11", "trixie": "3.13", "forky": "3.14"}
"""The Python of each Debian."""


def written(folder: Path, index: LoopbackIndex) -> Path:
    folder.mkdir()
    (folder / "provision.yaml").write_text(SPEC.replace("INDEX", index.url), encoding="utf-8")
    return folder


@pytest.mark.parametrize("suite", SUITES)
def test_another_machine_writes_the_same_bytes(engine: DockerEngine, tmp_path: Path, suite: str) -> None:
    image = f"provision-test/debian:{suite}"
    made = subprocess.run(
        [str(Path(__file__).with_name("base_image.sh")), image, suite], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        unavailable(f"the image of {suite} cannot be made: {made.stderr.strip()[-300:]}")
    missing = packages_for(SUITES[suite], tmp_path / "packages")
    if missing:
        unavailable(f"the packages for Python {SUITES[suite]} cannot be had: {missing}")
    with LoopbackIndex(json=True) as index:
        offer(index)
        here, there = written(tmp_path / "here", index), written(tmp_path / "there", index)
        done = subprocess.run(
            [sys.executable, "-m", "provisioner", "solve"], cwd=here, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        run = engine._client.containers.run(
            image,
            ["python3", "-m", "provisioner", "solve", "/project/provision.yaml"],
            environment={"PYTHONPATH": "/source:/packages", "PYTHONDONTWRITEBYTECODE": "1", "TZ": "Asia/Kathmandu"},
            volumes={
                str(ROOT / "provisioner"): {"bind": "/source/provisioner", "mode": "ro"},
                str(ROOT / "matrices"): {"bind": "/source/matrices", "mode": "ro"},
                str(tmp_path / "packages"): {"bind": "/packages", "mode": "ro"},
                str(there): {"bind": "/project", "mode": "rw"},
            },
            network_mode="host",
            hostname="elsewhere",
            detach=True,
        )
        try:
            status = run.wait(timeout=300)["StatusCode"]
            said = run.logs().decode()
        finally:
            run.remove(force=True)
    assert status == 0, said
    assert sorted(outputs(here)) == ["Dockerfile", "provision/install.py", "pylock.trial.toml", "requirements.txt"]
    assert outputs(there) == outputs(here)
