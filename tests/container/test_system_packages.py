"""An image has the libraries that a real wheel links to, and a compiler for what compiles at run time."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from provisioner.lock.format.file import read_lock
from provisioner.validate.run import Options, validate_lock
from tests.built_files import build_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.validate.docker_engine import DockerEngine

pytestmark = [pytest.mark.docker, pytest.mark.network]

OPENCV = "opencv-python==4.12.0.88"
SPEC = """\
name: vision
target: {{platform: linux/amd64}}
accelerator: cpu
requires: {{python: "3.11"}}
packages: [{opencv}, triton==3.5.1]
image: {{base: "{base}", distribution: "debian:12", apt: [libpython3.11-dev]}}
"""
COMPILE = """\
import importlib.util, os, subprocess, sysconfig, tempfile
folder = tempfile.mkdtemp()
source, library = os.path.join(folder, "launcher.c"), os.path.join(folder, "launcher.so")
with open(source, "w") as file:
    file.write('#include <Python.h>\\nstatic struct PyModuleDef own = {PyModuleDef_HEAD_INIT, "launcher", 0, -1, 0};\\n'
               'PyMODINIT_FUNC PyInit_launcher(void) { return PyModule_Create(&own); }\\n')
include = sysconfig.get_paths(scheme="posix_prefix")["include"]
subprocess.check_call(["gcc", source, "-O3", "-shared", "-fPIC", "-I" + include, "-o", library])
spec = importlib.util.spec_from_file_location("launcher", library)
print(spec.loader.create_module(spec).__name__)
"""
"""What Triton does with the launcher of a kernel: triton/runtime/build.py."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real wheels of OpenCV, NumPy and uv, and one that is called Triton."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), "--only-binary", ":all:"]
    finished = subprocess.run([*command, "--python-version", "3.11", OPENCV, "uv"], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        pytest.skip(f"{OPENCV} cannot be downloaded by pip's configuration")
    name, content = build_wheel("triton", "3.5.1")
    (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def image(engine: DockerEngine, base_image: str, wheels: Path, tmp_path: Path) -> Iterator[str]:
    """The image of a lock that was solved with these wheels alone."""
    spec = tmp_path / "provision.yaml"
    spec.write_text(SPEC.format(opencv=OPENCV, base=base_image), encoding="utf-8")
    alone = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}
    solve = [sys.executable, "-m", "provisioner", "solve", str(spec)]
    finished = subprocess.run(solve, env=alone, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    path = tmp_path / "pylock.vision.toml"
    options = Options(level=1, keep_image=True, gpus="none")
    report = validate_lock(read_lock(path), path, engine=engine, options=options, log=lambda _: None)
    assert report.image, report
    yield report.image
    subprocess.run(["docker", "image", "rm", "--force", report.image], capture_output=True, check=True)


def run(image: str, program: str) -> subprocess.CompletedProcess[str]:
    command = ["docker", "run", "--rm", image, "python", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_wheels_link_to_and_compile_with_is_there(image: str) -> None:
    imported = run(image, "import cv2; print(cv2.__version__)")
    assert (imported.returncode, imported.stdout) == (0, "4.12.0\n"), imported.stderr
    compiled = run(image, COMPILE)
    assert (compiled.returncode, compiled.stdout) == (0, "launcher\n"), compiled.stderr
    left = run(image, "import os; print(os.listdir('/var/lib/apt/lists'), os.path.getsize('/var/log/dpkg.log'))")
    assert left.stdout == "[] 0\n"
