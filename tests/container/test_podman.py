"""The same lock through Podman, where there is one that works."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from provisioner.document import write_text
from provisioner.lock.format.file import read_lock
from provisioner.render import render
from provisioner.render.helper import helper_files
from provisioner.validate.engine import EngineError, NoDeviceError, RunRequest
from provisioner.validate.podman_engine import PodmanEngine
from provisioner.validate.run import Options, measure_lock, validate_lock

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.image_locks import Wheelhouse

pytestmark = pytest.mark.docker

# For machines without systemd: cgroup version 1 in hybrid mode, and without the right to raise limits.
SETTINGS = """\
[containers]
default_ulimits=["nofile=4096:4096","nproc=8192:8192"]
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="file"
"""


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: DockerEngine, base_image: str) -> PodmanEngine:
    """A Podman that runs here and has the base image."""
    if "CONTAINERS_CONF" not in os.environ:
        (tmp_path / "containers.conf").write_text(SETTINGS)
        monkeypatch.setenv("CONTAINERS_CONF", str(tmp_path / "containers.conf"))
    try:
        found = PodmanEngine.connect()
    except EngineError as error:
        pytest.skip(error.message)
    known = subprocess.run(["podman", "image", "exists", f"localhost/{base_image}"], check=False)
    if known.returncode != 0:
        content = b"".join(engine._client.images.get(base_image).save(named=base_image))
        subprocess.run(["podman", "load", "--quiet"], input=content, check=True, capture_output=True)
    try:
        found.run(RunRequest(image=f"localhost/{base_image}", command=("python", "-V")), lambda _: None)
    except EngineError as error:
        pytest.skip(f"{error.message}: {error.causes}")
    return found


def test_podman_builds_runs_and_measures_the_same_lock(podman: PodmanEngine, wheelhouse: Wheelhouse) -> None:
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock(base=f"localhost/{wheelhouse.base_image}")
    options = Options(build_network="none")
    report = validate_lock(lock, wheelhouse.lock_path, engine=podman, options=options, log=lambda _: None)
    assert (report.verdict, report.engine.name) == ("yes", "podman")
    assert report.engine.builder == f"podman build {podman.version}"


def test_the_bill_of_materials_of_an_image_of_podman_lists_its_packages(podman: PodmanEngine, wheelhouse: Wheelhouse) -> None:
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock(base=f"localhost/{wheelhouse.base_image}")
    options = Options(level=2, build_network="none", lists_parts=True)
    found = measure_lock(lock, wheelhouse.lock_path, engine=podman, options=options, log=lambda _: None)
    assert found.bill is not None
    kinds = {kind: [part.name for part in found.bill.parts if part.kind == kind] for kind in ("system", "package")}
    assert kinds["package"] == ["demo"]
    assert {"dpkg", "libc6", "python3.11"} <= set(kinds["system"])
    assert found.bill.unread == ()


@pytest.mark.parametrize(
    "line", ["", "USER root\nRUN touch /opt/venv/lib/python3.11/site-packages/stray.py\nUSER 10001:10001\n"]
)
def test_docker_and_podman_find_the_same_facts_of_a_lock(
    podman: PodmanEngine, engine: DockerEngine, wheelhouse: Wheelhouse, line: str
) -> None:
    base = f"localhost/{wheelhouse.base_image}"
    engine._client.images.get(wheelhouse.base_image).tag(*base.rsplit(":", 1))
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock(base=base)
    if line:
        text = render(lock, "dockerfile", lock_file_name=wheelhouse.lock_path.name)
        write_text(wheelhouse.folder / "Dockerfile", text + line)
        for name, helper in helper_files("dockerfile", text).items():
            write_text(wheelhouse.folder / name, helper)
    options = Options(build_network="none")
    try:
        docker, other = (
            validate_lock(lock, wheelhouse.lock_path, engine=one, options=options, log=lambda _: None)
            for one in (engine, podman)
        )
    finally:
        engine.remove(base)
    assert (docker.fields, docker.levels) == (other.fields, other.levels)
    assert docker.verdict == other.verdict == ("no" if line else "yes")


def test_an_image_is_built_again_though_its_stages_are_in_the_cache(podman: PodmanEngine, wheelhouse: Wheelhouse) -> None:
    wheelhouse.add("demo", "1.3")
    wheelhouse.lock(base=f"localhost/{wheelhouse.base_image}")
    lock = read_lock(wheelhouse.lock_path)
    for _ in range(2):
        report = validate_lock(
            lock, wheelhouse.lock_path, engine=podman, options=Options(level=1, build_network="none"), log=lambda _: None
        )
        assert report.verdict == "yes"


def test_podman_without_devices_says_so(podman: PodmanEngine, base_image: str) -> None:
    request = RunRequest(image=f"localhost/{base_image}", command=("python", "-V"), gpus="all")
    with pytest.raises(NoDeviceError) as refused:
        podman.run(request, lambda _: None)
    assert "nvidia.com/gpu=all" in refused.value.causes[0]
