"""What `provision fetch` puts into a folder is all that installers and image builds need where there is no network."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.document import write_text
from provisioner.lock.format.file import read_lock, write_lock
from provisioner.render import render
from provisioner.render.helper import helper_files
from provisioner.validate.connect import connect
from provisioner.validate.engine import BuildRequest, EngineError, RunRequest
from provisioner.validate.run import Options, validate_lock
from tests.container.conftest import push, unavailable
from tests.container.image_locks import LOCK_NAME
from tests.container.test_two_installers import Container, container, pip_wheel
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.image_locks import Wheelhouse

__all__ = ["container", "pip_wheel"]  # fixtures

pytestmark = pytest.mark.docker

LISTED = "import importlib.metadata as m; print(sorted(f'{d.name}-{d.version}' for d in m.distributions()))"
INSTALLED = "['alpha-1.0', 'beta-2.0+cu126']"


@pytest.fixture
def fetched(wheelhouse: Wheelhouse) -> Path:
    """A project: a lock whose files were on an index that is gone, and the folder they were fetched into."""
    with LoopbackIndex() as index:
        for name, version, listing in (("alpha", "1.0", "simple"), ("beta", "2.0+cu126", "whl/cu126")):
            filename = index.add_wheel(name, version, index=listing)
            served = next(file for file in index.files.values() if file.filename == filename)
            url = f"{index.root}{served.path.replace('+', '%2B')}"
            added = wheelhouse.add_file(name, version, filename, sha256=served.sha256, url=url)
            wheelhouse.packages[-1] = replace(added, index=listing.rpartition("/")[2], index_url=f"{index.root}/{listing}")
        lock = wheelhouse.lock()
        installer = wheelhouse.wheels / wheelhouse.installer.name
        index.serve(f"/files/{installer.name}", installer.read_bytes(), content_type="application/octet-stream")
        installer.unlink()
        stack = lock.stack
        assert stack.installer is not None
        file = replace(stack.installer.file, path="", url=f"{index.root}/files/{installer.name}")
        stack = replace(stack, installer=replace(stack.installer, file=file))
        lock = replace(lock, stacks=(stack,), asked={"indexes.simple": "here"})
        write_text(wheelhouse.lock_path, write_lock(lock))
        run(wheelhouse.folder, "fetch", LOCK_NAME, "--to", "wheelhouse")
    for output, name in (("dockerfile", "Dockerfile"), ("requirements", "requirements.txt")):
        text = render(lock, output, lock_file_name=LOCK_NAME)
        for path, content in {name: text, **helper_files(output, text)}.items():
            write_text(wheelhouse.folder / path, content)
    return wheelhouse.folder


def run(folder: Path, *words: str) -> str:
    """Run the program, as a process of its own, in a folder; returns what it printed."""
    command = [sys.executable, "-m", "provisioner", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", ["pip wheelhouse", "uv wheelhouse"])
def test_an_installer_finds_everything_in_the_folder(container: Container, fetched: Path, program: str) -> None:
    status, said, installed = container.install(program, fetched)
    assert (status, installed) == (0, {"alpha": "1.0", "beta": "2.0+cu126"}), said


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_the_rendered_dockerfile_builds_from_the_folder(engine: DockerEngine, fetched: Path, tmp_path: Path, name: str) -> None:
    try:
        chosen = engine if name == "docker" else connect(name)
    except EngineError as error:
        unavailable(error.message)
    if name == "podman":
        base = read_lock(fetched / LOCK_NAME).stack.image
        assert base is not None
        archive = tmp_path / "base.tar"
        for command in (
            ("/usr/bin/docker", "save", "--output", str(archive), base.reference),
            ("podman", "load", "--input", str(archive)),
        ):
            subprocess.run(command, check=True, capture_output=True)
    request = BuildRequest(
        context=fetched, dockerfile=fetched / "Dockerfile", tag="provision-test/no-network:trial", network="none"
    )
    built = chosen.build(request, lambda _: None)
    try:
        if name == "podman":  # it builds in more places than it runs; every step of the build has run
            return
        finished = chosen.run(RunRequest(image=built.image, command=("/opt/venv/bin/python", "-c", LISTED)), lambda _: None)
        assert (finished.exit_code, finished.stdout.strip()) == (0, INSTALLED), finished.stderr
    finally:
        chosen.remove(built.image)


def test_a_pinned_base_image_is_carried_as_a_tar(engine: DockerEngine, registry: str, fetched: Path, base_image: str) -> None:
    reference = f"{registry}/provision-test/carried:1"
    digest = push(engine, base_image, reference)
    lock = read_lock(fetched / LOCK_NAME)
    image = lock.stack.image
    assert image is not None
    stack = replace(lock.stack, image=replace(image, reference=reference, digest=digest))
    write_text(fetched / LOCK_NAME, write_lock(replace(lock, stacks=(stack,))))
    said = run(fetched, "fetch", LOCK_NAME, "--to", "wheelhouse", "--image")
    name = f"{reference.replace(':', '-').replace('/', '-')}-{digest.removeprefix('sha256:')[:12]}.tar"
    assert said.splitlines()[-1] == f"wheelhouse/{name}"
    engine._client.images.remove(reference, force=True)
    with (fetched / "wheelhouse" / name).open("rb") as stream:
        loaded = engine._client.images.load(stream)
    assert [tag for one in loaded for tag in one.tags if "carried" in tag] == [reference]
    before = (fetched / "wheelhouse" / name).stat().st_mtime_ns
    run(fetched, "fetch", LOCK_NAME, "--to", "wheelhouse", "--image")
    assert (fetched / "wheelhouse" / name).stat().st_mtime_ns == before, "an archive of this digest is not saved again"


def test_a_validation_builds_from_the_folder(engine: DockerEngine, fetched: Path) -> None:
    options = Options(level=2, build_network="none")
    report = validate_lock(
        read_lock(fetched / LOCK_NAME), fetched / LOCK_NAME, engine=engine, options=options, log=lambda _: None
    )
    assert report.verdict == "yes", report
