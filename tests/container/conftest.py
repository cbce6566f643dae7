"""A real engine, base image, registry and installer, each made once; without an engine the tests are skipped with a reason.

With PROVISION_REQUIRE_ENGINE=1 they fail instead: `.ci/engine.sh start` provides everything they need.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from importlib.metadata import distribution
from pathlib import Path
from typing import NoReturn

import pytest

from provisioner.validate.docker_engine import DockerEngine
from provisioner.validate.engine import EngineError
from tests.container.image_locks import Wheelhouse, pack_wheel
from tests.container.siblings import make_tools

BASE_TAG = "provision-test/debian:bookworm"
SUITE_OF_TOOLS = "provision-test/debian:trixie"
_MANIFESTS = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"
)
"""Without all four a registry may convert a manifest, and its digest is then another one."""


def unavailable(reason: str) -> NoReturn:
    """Skip, or fail where an engine is required."""
    if os.environ.get("PROVISION_REQUIRE_ENGINE") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def engine() -> DockerEngine:
    """The Docker engine of this machine."""
    try:
        return DockerEngine.connect()
    except EngineError as error:
        unavailable(f"{error.message}; run .ci/engine.sh start")


@pytest.fixture(scope="session")
def base_image(engine: DockerEngine) -> str:
    """A Debian image with Python, made with debootstrap unless it is there already."""
    script = Path(__file__).with_name("base_image.sh")
    finished = subprocess.run([str(script), BASE_TAG], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        unavailable(f"the base image cannot be made: {finished.stderr.strip()[-300:]}")
    return BASE_TAG


@pytest.fixture(scope="session")
def registry(engine: DockerEngine) -> str:
    """The address of the loopback registry."""
    address = f"localhost:{os.environ.get('PROVISION_REGISTRY_PORT', '5000')}"
    try:
        urllib.request.urlopen(f"http://{address}/v2/", timeout=5).close()
    except (urllib.error.URLError, OSError) as error:
        unavailable(f"no registry answers at {address}: {error}; run .ci/engine.sh start")
    return address


@pytest.fixture(scope="session")
def installer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the installer that the development environment holds, packed again from its files: no network is needed."""
    return pack_wheel(distribution("uv"), tmp_path_factory.mktemp("installer"))


@pytest.fixture
def wheelhouse(tmp_path: Path, installer: Path, base_image: str) -> Wheelhouse:
    """A folder with the installer in it, where wheels are built and a lock over them is written."""
    house = Wheelhouse(folder=tmp_path, base_image=base_image, installer=installer)
    house.wheels.mkdir()
    shutil.copyfile(installer, house.wheels / installer.name)
    return house


def push(engine: DockerEngine, image: str, reference: str) -> str:
    """Tag an image, push it to the loopback registry and return the digest the registry knows it by."""
    client = engine._client
    name, _, tag = reference.rpartition(":")
    assert client.images.get(image).tag(name, tag)
    for line in client.images.push(name, tag=tag, stream=True, decode=True):
        assert "error" not in line, line
    address, _, path = name.partition("/")
    request = urllib.request.Request(f"http://{address}/v2/{path}/manifests/{tag}", headers={"Accept": _MANIFESTS})
    with urllib.request.urlopen(request, timeout=30) as response:
        body = response.read()
        stated = response.headers["Docker-Content-Digest"]
    assert json.loads(body)["schemaVersion"] == 2
    assert stated == f"sha256:{hashlib.sha256(body).hexdigest()}"
    return str(stated)


@pytest.fixture(scope="session")
def tools_image(engine: DockerEngine) -> None:
    """The image with the programs, built once."""
    script = Path(__file__).with_name("base_image.sh")
    made = subprocess.run([str(script), SUITE_OF_TOOLS, "trixie"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        unavailable(f"the base image of the tools cannot be made: {made.stderr.strip()[-300:]}")
    if failure := make_tools(SUITE_OF_TOOLS):
        unavailable(f"the image of the tools cannot be made: {failure}")
