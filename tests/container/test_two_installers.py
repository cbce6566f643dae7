"""A lock is installed as it is by two programs that share no code, uv and pip, in containers; the result is compared with it.

Both come from the development environment: uv as its program, pip as the wheel it came from. Neither is told anything but the
lock. Where wheels lie beside the lock, the container has no network; where they are on an index, it has the loopback one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import distribution, version
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name
from packaging.version import Version
from uv import find_uv_bin

from provisioner.index.model import DIRECT_PATH, DIRECT_URL, IndexFile
from provisioner.index.settings import settings_from_pip
from provisioner.lock.create import create_lock, local_files
from provisioner.lock.format.file import read_lock, write_lock
from provisioner.lock.format.model import LockedFile
from provisioner.render import render
from provisioner.resolver.stack import PackagePin, Stack
from tests.built_files import build_wheel, metadata_text
from tests.container.conftest import unavailable
from tests.container.image_locks import pack_wheel
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from provisioner.lock.format.model import Lock
    from provisioner.validate.docker_engine import DockerEngine

pytestmark = pytest.mark.docker

LOCK = "pylock.trial.toml"
PYTHON = "3.11"
LISTED = """
import importlib.metadata, json
print(json.dumps({one.name: one.version for one in importlib.metadata.distributions()}))
"""
INSTALLERS = ("uv", "pip")
REQUIREMENTS = ("uv requirements", "pip requirements")
"""The same two, given the requirements file that is rendered from the lock."""


@pytest.fixture(scope="module")
def pip_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pip as a wheel, which runs without being installed; it reads lock files since 26.1."""
    if Version(version("pip")) < Version("26.1"):
        unavailable(f"pip {version('pip')} does not read lock files; run `make venv`, which brings a newer one")
    return pack_wheel(distribution("pip"), tmp_path_factory.mktemp("pip"))


class Container:
    """Runs one installer on one folder, in a container that is thrown away."""

    def __init__(self, engine: DockerEngine, image: str, pip: Path) -> None:
        self._client = engine._client
        self._image = image
        self._pip = pip

    def install(self, installer: str, folder: Path, *, network: str = "none") -> tuple[int, str, dict[str, str]]:
        """Install the lock of a folder into an empty environment: exit status, what was said, and what is there afterwards."""
        commands = {
            "uv for arm64": f"/tools/uv pip install --no-config --no-cache --python-platform aarch64-unknown-linux-gnu"
            f" --python /env/bin/python -r /project/{LOCK}",
            "uv requirements": "/tools/uv pip install --no-config --no-cache --python /env/bin/python"
            " --require-hashes --no-deps -r requirements.txt",
            "pip requirements": f"/env/bin/python /tools/{self._pip.name}/pip install --no-cache-dir"
            " --require-hashes --no-deps -r requirements.txt",
            "uv wheelhouse": "/tools/uv pip install --no-config --no-cache --python /env/bin/python"
            " --require-hashes --no-index --find-links wheelhouse -r wheelhouse/*.requirements.txt",
            "pip wheelhouse": f"/env/bin/python /tools/{self._pip.name}/pip install --no-cache-dir --retries=0"
            " --require-hashes --no-index --find-links wheelhouse -r wheelhouse/*.requirements.txt",
            "uv": f"/tools/uv pip install --no-config --no-cache --python /env/bin/python -r /project/{LOCK}",
            "pip": f"/env/bin/python /tools/{self._pip.name}/pip install --no-cache-dir -r /project/{LOCK}",
        }
        script = (
            "python3 -m venv --without-pip /env && cd /project || exit 99\n"
            f"{commands[installer]} >/tmp/said 2>&1; status=$?\n"
            f"/env/bin/python -c '{LISTED}'; cat /tmp/said; exit $status"
        )
        mounts = {
            str(folder): {"bind": "/project", "mode": "ro"},
            find_uv_bin(): {"bind": "/tools/uv", "mode": "ro"},
            str(self._pip): {"bind": f"/tools/{self._pip.name}", "mode": "ro"},
        }
        environment = {}
        bundle = settings_from_pip(os.environ).ca_bundle
        if bundle:
            mounts[bundle] = {"bind": "/tools/ca.crt", "mode": "ro"}
            environment = {"SSL_CERT_FILE": "/tools/ca.crt", "PIP_CERT": "/tools/ca.crt"}
        run = self._client.containers.run(
            self._image,
            ["sh", "-c", script],
            network_mode=network,
            volumes=mounts,
            environment=environment,
            detach=True,
        )
        try:
            status = run.wait(timeout=300)["StatusCode"]
            said = run.logs(stdout=True, stderr=True).decode()
        finally:
            run.remove(force=True)
        listing, _, rest = said.partition("\n")
        assert status != 99, said
        return status, rest, json.loads(listing)


@pytest.fixture(scope="module")
def container(engine: DockerEngine, base_image: str, pip_wheel: Path) -> Container:
    return Container(engine, base_image, pip_wheel)


def pin(folder: Path, name: str, number: str, *, tag: str = "py3-none-any", requires: Sequence[str] = ()) -> PackagePin:
    """A wheel on this machine, as a find-links folder offers it."""
    filename, content = build_wheel(name, number, tag=tag, metadata=metadata_text(name, number, requires, ">=3.8"))
    (folder / filename).write_bytes(content)
    file = IndexFile(filename=filename, url="", index="find-links", path=str(folder / filename), requires_python=">=3.8")
    return PackagePin(name=name, version=number, file=file, requires=tuple(requires))


def stack(platform: str, *packages: PackagePin, python: str = PYTHON) -> Stack:
    return Stack(
        platform=platform, accelerator="cpu", components={"python": python}, pins=(), packages=packages, runs="host"
    )  # fmt: skip


def write(folder: Path, *stacks: Stack) -> Lock:
    """The lock of stacks in a folder of its own, with its wheels beside it."""
    lock = create_lock(stacks, name="trial", matrix_digest=f"sha256:{'1' * 64}", spec_digest=f"sha256:{'2' * 64}")
    return put(folder, lock, stacks)


def put(folder: Path, lock: Lock, stacks: Sequence[Stack]) -> Lock:
    (folder / "wheels").mkdir(parents=True, exist_ok=True)
    for place, source in local_files(list(stacks)).items():
        shutil.copyfile(source, folder / place)
    (folder / LOCK).write_text(write_lock(lock), encoding="utf-8")
    (folder / "requirements.txt").write_text(render(lock, "requirements", lock_file_name=LOCK), encoding="utf-8")
    return lock


def packages_on(lock: Lock, platform: str) -> dict[str, str]:
    return {package.name: package.version for package in lock.on(platform).packages}


@pytest.fixture
def apart(tmp_path: Path) -> tuple[Stack, Stack]:
    """Two platforms with one package in common, another version, another file, and a package that only one of them has."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    everywhere = pin(shelf, "everywhere", "1.0")
    amd64 = stack(
        "linux/amd64",
        everywhere,
        pin(shelf, "moved", "2.0", requires=["everywhere>=1"]),
        pin(shelf, "compiled", "1.0", tag="cp311-cp311-manylinux_2_17_x86_64"),
        pin(shelf, "intel", "1.5"),
    )
    arm64 = stack(
        "linux/arm64",
        everywhere,
        pin(shelf, "moved", "1.0", requires=["everywhere>=1"]),
        pin(shelf, "compiled", "1.0", tag="cp311-cp311-manylinux_2_17_aarch64"),
    )
    return amd64, arm64


@pytest.mark.parametrize("installer", REQUIREMENTS)
def test_the_rendered_requirements_install_the_same(
    container: Container, apart: tuple[Stack, Stack], tmp_path: Path, installer: str
) -> None:
    lock = write(tmp_path / "project", *apart)
    status, said, installed = container.install(installer, tmp_path / "project")
    assert (status, installed) == (0, packages_on(lock, "linux/amd64")), said


@pytest.mark.parametrize("installer", INSTALLERS)
class TestWithoutANetwork:
    def test_exactly_what_is_locked_for_this_platform_is_installed(
        self, container: Container, apart: tuple[Stack, Stack], tmp_path: Path, installer: str
    ) -> None:
        lock = write(tmp_path / "project", *apart)
        status, said, installed = container.install(installer, tmp_path / "project")
        assert status == 0, said
        assert installed == packages_on(lock, "linux/amd64")
        assert installed == {"everywhere": "1.0", "moved": "2.0", "compiled": "1.0", "intel": "1.5"}

    def test_what_only_a_draft_or_an_index_adds_is_in_nobodys_way(
        self, container: Container, apart: tuple[Stack, Stack], tmp_path: Path, installer: str
    ) -> None:
        """`variants-json` of draft PEP 825, and identities with claims of every type that TOML has in common with JSON."""
        lock = write(tmp_path / "project", *apart)
        claims = {"ref": "refs/heads/main", "jobs": ("a", "b"), "attempt": 2, "is_tag": True}
        variants = LockedFile(
            filename="everywhere-1.0-variants.json", sha256="0" * 64, url="https://example.org/everywhere-1.0-variants.json"
        )
        packages = (
            replace(
                package,
                index="local",
                index_url="https://example.org/simple",
                variants=variants if package.name == "everywhere" else None,
                attestations=({"kind": "GitHub", "repository": "ada/alpha", "claims": claims},),
            )
            for package in lock.packages
        )
        put(tmp_path / "project", replace(lock, packages=tuple(packages)), apart)
        status, said, installed = container.install(installer, tmp_path / "project")
        assert (status, installed) == (0, packages_on(lock, "linux/amd64")), said

    def test_nothing_is_installed_on_a_platform_the_lock_is_not_for(
        self, container: Container, apart: tuple[Stack, Stack], tmp_path: Path, installer: str
    ) -> None:
        write(tmp_path / "project", apart[1])
        status, said, installed = container.install(installer, tmp_path / "project")
        assert (status != 0, installed) == (True, {}), said

    def test_nothing_is_installed_for_another_python(
        self, container: Container, apart: tuple[Stack, Stack], tmp_path: Path, installer: str
    ) -> None:
        write(tmp_path / "project", replace(apart[0], components={"python": "3.12"}))
        status, said, installed = container.install(installer, tmp_path / "project")
        assert (status != 0, installed) == (True, {}), said

    def test_nothing_is_installed_when_one_wheel_was_exchanged(
        self, container: Container, apart: tuple[Stack, Stack], tmp_path: Path, installer: str
    ) -> None:
        write(tmp_path / "project", *apart)
        wheel = tmp_path / "project" / "wheels" / "intel-1.5-py3-none-any.whl"
        content = bytearray(wheel.read_bytes())
        content[10] ^= 2  # the time of the first member
        wheel.write_bytes(content)
        status, said, installed = container.install(installer, tmp_path / "project")
        assert (status != 0, installed) == (True, {}), said
        assert "hash" in said.lower()


def test_the_other_platform_gets_its_own(container: Container, apart: tuple[Stack, Stack], tmp_path: Path) -> None:
    """Uv can be told that it installs for another machine; pip cannot be told so of markers."""
    lock = write(tmp_path / "project", *apart)
    status, said, installed = container.install("uv for arm64", tmp_path / "project")
    assert (status, installed) == (0, packages_on(lock, "linux/arm64")), said
    assert installed == {"everywhere": "1.0", "moved": "1.0", "compiled": "1.0"}


@pytest.mark.parametrize("installer", [*INSTALLERS, *REQUIREMENTS])
def test_files_that_requirements_name_themselves_are_installed_as_archives(
    container: Container, served: LoopbackIndex, tmp_path: Path, installer: str
) -> None:
    filename = served.add_wheel("remote", "1.0")
    content = served.files[f"/files/{filename}"].content
    url = f"{served.root}/files/{filename}"
    remote = IndexFile(filename=filename, url=url, index=DIRECT_URL, sha256=sha256(content).hexdigest(), size=len(content))
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    local = pin(shelf, "beside", "2.0")
    local = replace(local, file=replace(local.file, index=DIRECT_PATH))
    lock = write(tmp_path / "project", stack("linux/amd64", PackagePin(name="remote", version="1.0", file=remote), local))
    assert [(package.archive is not None, package.wheels) for package in lock.packages] == [(True, ()), (True, ())]
    status, said, installed = container.install(installer, tmp_path / "project", network="host")
    assert (status, installed) == (0, {"remote": "1.0", "beside": "2.0"}), said


@pytest.fixture
def served() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as index:
        yield index


@pytest.mark.parametrize("installer", INSTALLERS)
def test_a_lock_of_an_index_is_installed_from_that_index(
    container: Container, served: LoopbackIndex, tmp_path: Path, installer: str
) -> None:
    names = {"alpha": "1.0", "beta": "2.0+local.1"}
    pins = []
    for name, number in names.items():
        filename = served.add_wheel(name, number)
        file = served.files[f"/files/{filename}"]
        url = f"{served.root}/files/{filename.replace('+', '%2B')}"
        pins.append(
            PackagePin(
                name=name,
                version=number,
                file=IndexFile(filename=filename, url=url, index="local", sha256=file.sha256, size=len(file.content)),
            )
        )
    write(tmp_path / "project", stack("linux/amd64", *pins))
    status, said, installed = container.install(installer, tmp_path / "project", network="host")
    assert (status, installed) == (0, names), said
    assert not any(path.startswith("/simple") for path in served.requests), "nothing is left to an index to decide"


REAL = """\
name: trial
target: {platform: linux/amd64, host: {platform: linux/amd64, glibc: "2.36"}}
accelerator: cpu
runs: host
outputs: []
requires: {python: "==3.11"}
packages: ["requests>=2.32", "rich", "numpy<3", "pydantic"]
"""


@pytest.mark.network
def test_what_the_command_locks_of_the_real_index_is_what_both_install(container: Container, tmp_path: Path) -> None:
    (tmp_path / "provision.yaml").write_text(REAL, encoding="utf-8")
    command = [sys.executable, "-m", "provisioner", "solve", "--upgrade"]
    solved = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert solved.returncode == 0, solved.stderr
    lock = read_lock(tmp_path / LOCK)
    assert {"requests", "rich", "numpy", "pydantic", "pydantic-core"} <= packages_on(lock, "linux/amd64").keys()
    assert [file.filename for package in lock.packages for file in package.files if not file.size] == []
    for installer in INSTALLERS:
        status, said, installed = container.install(installer, tmp_path, network="host")
        found = {canonicalize_name(name): number for name, number in installed.items()}
        assert (status, found) == (0, packages_on(lock, "linux/amd64")), said
