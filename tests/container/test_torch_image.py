"""PyTorch for the CPU, from its real wheels, in a real image."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from packaging.utils import parse_wheel_filename

from provisioner.validate.run import Options, validate_lock
from tests.unit.validate.locks import failed

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.image_locks import Wheelhouse

pytestmark = [pytest.mark.docker, pytest.mark.network]

RELEASE = "2.13.0"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"


@pytest.fixture(scope="module")
def torch_wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of PyTorch for the CPU and what it needs, as pip finds them: by its own configuration, or on their index."""
    folder = tmp_path_factory.mktemp("torch")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), "--only-binary", ":all:"]
    command += ["--python-version", "3.11", f"torch=={RELEASE}+cpu"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        finished = subprocess.run([*command, "--extra-index-url", CPU_INDEX], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        pytest.skip(f"torch {RELEASE}+cpu cannot be downloaded, neither by pip's configuration nor from {CPU_INDEX}")
    return folder


def test_pytorch_for_the_cpu_computes_in_its_image(engine: DockerEngine, wheelhouse: Wheelhouse, torch_wheels: Path) -> None:
    for path in sorted(torch_wheels.glob("*.whl")):
        shutil.copyfile(path, wheelhouse.wheels / path.name)
        name, version, _, _ = parse_wheel_filename(path.name)
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        wheelhouse.add_file(str(name), str(version), path.name, sha256=sha256)
    lock = wheelhouse.lock(components={"pytorch": RELEASE, "pytorch_build": "cpu"})
    options = Options(level=3, build_network="none")
    report = validate_lock(lock, wheelhouse.lock_path, engine=engine, options=options, log=lambda _: None)
    assert failed(report.fields) == ()
    assert (report.verdict, report.exit_code) == ("yes", 0)
    assert {field.name for field in report.fields} >= {"pytorch", "pytorch_build", "libraries", "packages", "cpu compute"}
