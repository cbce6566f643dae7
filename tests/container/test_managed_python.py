"""A base image without the locked Python gets it from an archive: downloaded, compared with its hash, unpacked, used.

The archive has the layout of python-build-standalone's (`python/bin`, `python/lib`) and holds the Python of the base image.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.document import write_text
from provisioner.lock.format.file import write_lock
from provisioner.resolver.stack import ManagedPython
from provisioner.validate.run import Options, validate_lock
from tests.unit.validate.locks import failed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.evidence.report import Report
    from provisioner.lock.format.model import Lock
    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.image_locks import Wheelhouse

pytestmark = pytest.mark.docker

LAYOUT = "tar -C / -cz --exclude=__pycache__ --transform s,^usr,python, usr/bin/python3.11 usr/lib/python3.11"


@pytest.fixture
def archive(base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedPython]:
    folder = tmp_path_factory.mktemp("served")
    content = subprocess.run(["docker", "run", "--rm", base_image, *LAYOUT.split()], capture_output=True, check=True).stdout
    (folder / "cpython-3.11.2.tar.gz").write_bytes(content)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/cpython-3.11.2.tar.gz"
    yield ManagedPython(version="3.11.2", url=url, sha256=hashlib.sha256(content).hexdigest())
    server.shutdown()
    server.server_close()


def locked(wheelhouse: Wheelhouse, archive: ManagedPython) -> Lock:
    """The lock of an image whose distribution has another Python than the locked 3.11."""
    wheelhouse.add("demo", "1.2")
    lock = wheelhouse.lock()
    (stack,) = lock.stacks
    assert stack.image is not None
    image = replace(stack.image, python="", apt_python="3.9", managed_python=archive)
    found = replace(lock, stacks=(replace(stack, image=image),))
    write_text(wheelhouse.lock_path, write_lock(found))
    return found


def validated(lock: Lock, lock_path: Path, engine: DockerEngine, *, level: int = 2) -> tuple[Report, str]:
    lines: list[str] = []
    options = Options(build_network="host", level=level)
    return validate_lock(lock, lock_path, engine=engine, options=options, log=lines.append), "\n".join(lines)


def test_the_image_has_the_locked_python_from_the_archive(
    engine: DockerEngine, wheelhouse: Wheelhouse, archive: ManagedPython
) -> None:
    lock = locked(wheelhouse, archive)
    report, told = validated(lock, wheelhouse.lock_path, engine)
    assert failed(report.fields) == (), told
    assert {field.name for field in report.fields} >= {"python", "packages", "files"}
    assert "/tmp/python.tar.gz: OK" in told
    (python,) = (field for field in report.fields if field.name == "python")
    assert (python.measured, python.verdict) == ("3.11.2", "yes")
    assert report.verdict == "yes"


def test_an_archive_that_was_exchanged_does_not_build(
    engine: DockerEngine, wheelhouse: Wheelhouse, archive: ManagedPython
) -> None:
    lock = locked(wheelhouse, replace(archive, sha256="0" * 64))
    report, _ = validated(lock, wheelhouse.lock_path, engine)
    field = report.fields[-1]
    assert (field.name, field.measured, field.verdict, report.exit_code) == ("build", "failed", "no", 1)
    assert "/tmp/python.tar.gz: FAILED" in field.note
