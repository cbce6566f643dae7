"""`docker build` as the Dockerfile's own comment says it, in a network as companies have them.

The index is reached through a proxy alone, has a certificate of a private authority, and asks for a login, as the proxy does.
It listens on the loopback address of the machine, which no step of a build can reach: what arrives came through the proxy.
The base image is the one that a registry of the company has, by digest.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.document import write_text
from provisioner.lock.format.file import write_lock
from provisioner.lock.format.model import LockedFile, LockedPackage
from provisioner.render import render
from provisioner.render.helper import helper_files
from provisioner.resolver.stack import ManagedPython
from provisioner.validate.builder import docker_builder
from provisioner.validate.docker_engine import DockerEngine
from provisioner.validate.engine import EngineError
from provisioner.validate.run import Options, validate_lock
from tests.container.conftest import push, unavailable
from tests.container.image_locks import LOCK_NAME, source_distribution
from tests.container.test_managed_python import LAYOUT
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.lock.format.model import Lock
    from tests.container.image_locks import Wheelhouse

pytestmark = [pytest.mark.docker, pytest.mark.network]

USER, PASSWORD = "ada", "not-in-any-layer"
PROXY_PASSWORD, PROXY_PASSWORD_IN_URLS = "notInAnyLayer7", "not%49nAnyLayer7"
TAG = "provision-test/company:1"


@dataclass(frozen=True, kw_only=True)
class Company:
    """A folder with `ca.pem`, the address of the proxy, its log, and the index behind it."""

    folder: Path
    proxy: str
    log: Path
    index: LoopbackIndex


@pytest.fixture(scope="module")
def company(engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    for program in ("tinyproxy", "openssl"):
        if shutil.which(program) is None:
            unavailable(f"there is no {program}; run .ci/engine.sh start")
    folder = tmp_path_factory.mktemp("company")
    certificate = certified(folder)
    configuration = engine._client.networks.get("bridge").attrs["IPAM"]["Config"][0]
    gateway = configuration.get("Gateway", "172.17.0.1")
    with socket.create_server((gateway, 0)) as found:
        port = found.getsockname()[1]
    log = folder / "proxy.log"
    settings = (
        f'Port {port}\nListen {gateway}\nAllow {configuration["Subnet"]}\nLogFile "{log}"\nLogLevel Connect\nMaxClients 50\n'
        f"BasicAuth {USER} {PROXY_PASSWORD}\n"
    )
    (folder / "tinyproxy.conf").write_text(settings, encoding="utf-8")
    process = subprocess.Popen(["tinyproxy", "-d", "-c", folder / "tinyproxy.conf"], stdout=subprocess.DEVNULL)
    try:
        until_it_answers(gateway, port)
        with LoopbackIndex(certificate=certificate, credentials=f"{USER}:{PASSWORD}") as index:
            proxy = f"http://{USER}:{PROXY_PASSWORD_IN_URLS}@{gateway}:{port}"
            yield Company(folder=folder, proxy=proxy, log=log, index=index)
    finally:
        process.terminate()
        process.wait()


def certified(folder: Path) -> Path:
    """Make a private authority, `ca.pem`, and a certificate of it for 127.0.0.1; returns the file with key and certificate."""
    (folder / "server.ext").write_text("subjectAltName=IP:127.0.0.1\n", encoding="utf-8")
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=Company",
        "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=index",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile server.ext",
    ):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)
    both = folder / "server.pem"
    both.write_bytes((folder / "server.key").read_bytes() + (folder / "server.crt").read_bytes())
    return both


def until_it_answers(host: str, port: int) -> None:
    for _ in range(100):
        with socket.socket() as tried:
            if tried.connect_ex((host, port)) == 0:
                return
        time.sleep(0.1)
    unavailable(f"the proxy does not answer at {host}:{port}")


@pytest.fixture(scope="module")
def mirrored(engine: DockerEngine, base_image: str, registry: str) -> tuple[str, str]:
    """The base image as the registry has it, and its digest."""
    reference = f"{registry}/provision-test/company:bookworm"
    return reference, push(engine, base_image, reference)


@pytest.fixture
def project(company: Company, wheelhouse: Wheelhouse, base_image: str, mirrored: tuple[str, str]) -> Lock:
    """A lock of which every file is on the index: uv, a wheel, a source distribution, and an archive of Python."""
    index = company.index
    shutil.copyfile(company.folder / "ca.pem", wheelhouse.folder / "ca.pem")
    (wheelhouse.folder / ".netrc").write_text(f"machine 127.0.0.1 login {USER} password {PASSWORD}\n", encoding="utf-8")
    version = f"1.{time.time_ns()}"  # not in the cache of an earlier build
    filename = index.add_wheel("alpha", version)
    served = index.files[f"/files/{filename}"]
    wheelhouse.add_file("alpha", version, filename, sha256=served.sha256, url=f"{index.root}{served.path}")
    sdist = serve(index, "compiled-3.0.tar.gz", source_distribution())
    wheelhouse.packages.append(LockedPackage(name="compiled", version="3.0", platforms=("linux/amd64",), sdist=sdist))
    reference, digest = mirrored
    lock = wheelhouse.lock(base=reference, digest=digest)
    (stack,) = lock.stacks
    assert stack.image is not None
    assert stack.installer is not None
    python = subprocess.run(["docker", "run", "--rm", base_image, *LAYOUT.split()], capture_output=True, check=True).stdout
    archive = serve(index, "cpython-3.11.2.tar.gz", python)
    managed = ManagedPython(version="3.11.2", url=archive.url, sha256=archive.sha256)
    image = replace(stack.image, python="", apt_python="3.9", managed_python=managed)
    installer = wheelhouse.wheels / wheelhouse.installer.name
    housed = serve(index, installer.name, installer.read_bytes())
    shutil.rmtree(wheelhouse.wheels)
    stack = replace(stack, image=image, installer=replace(stack.installer, file=housed))
    lock = replace(lock, stacks=(stack,))
    write_text(wheelhouse.lock_path, write_lock(lock))
    return lock


def serve(index: LoopbackIndex, filename: str, content: bytes) -> LockedFile:
    index.serve(f"/files/{filename}", content, content_type="application/octet-stream")
    return LockedFile(filename=filename, sha256=hashlib.sha256(content).hexdigest(), url=f"{index.root}/files/{filename}")


def test_the_command_in_the_dockerfile_builds_and_leaves_no_trace(
    engine: DockerEngine, company: Company, project: Lock, wheelhouse: Wheelhouse
) -> None:
    text = render(project, "dockerfile", lock_file_name=LOCK_NAME)
    for name, content in {"Dockerfile": text, **helper_files("dockerfile", text)}.items():
        write_text(wheelhouse.folder / name, content)
    (line,) = (line for line in text.splitlines() if line.startswith("# Proxy, CA, logins: docker build "))
    builder = docker_builder(engine._host)
    program = " ".join(builder.command)
    command = line.partition(": ")[2].replace("docker build", f"{program} --tag {TAG} --no-cache")
    variables = {"HTTP_PROXY": company.proxy, "HTTPS_PROXY": company.proxy, "HOME": str(wheelhouse.folder)}
    environment = {**os.environ, **dict(builder.environment), **variables}
    built = subprocess.run(
        ["sh", "-c", command], cwd=wheelhouse.folder, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    try:
        show = "import alpha, compiled, sys; print(compiled.built, sys.base_prefix)"
        ran = subprocess.run(["docker", "run", "--rm", TAG, "python", "-c", show], capture_output=True, text=True, check=False)
        assert ran.stdout == "from source /opt/python\n", ran.stderr
        saved = b"".join(engine._client.images.get(TAG).save())
        authority = (company.folder / "ca.pem").read_text(encoding="utf-8").splitlines()[1]
        for trace in (PASSWORD, PROXY_PASSWORD, PROXY_PASSWORD_IN_URLS, company.proxy.rpartition("@")[2], authority):
            assert trace.encode() not in saved
    finally:
        engine.remove(TAG)
    asked = {path for path, count in company.index.requests.items() if count}
    assert {path.rpartition("/")[2] for path in asked} >= {file.filename for file in project.files if file.url}
    assert "CONNECT 127.0.0.1:" in company.log.read_text(encoding="utf-8")


def lend(monkeypatch: pytest.MonkeyPatch, company: Company, folder: Path, *, but: str = "") -> None:
    """Set the variables of this process that name proxy, authority and logins, but one."""
    given = {
        "proxy": {"HTTP_PROXY": company.proxy, "HTTPS_PROXY": company.proxy},
        "ca": {"SSL_CERT_FILE": str(folder / "ca.pem")},
        "netrc": {"NETRC": str(folder / ".netrc")},
    }
    for name in ("REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder.parent))
    for kind, variables in given.items():
        for name, value in variables.items():
            if kind == but:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)


def test_validate_lends_the_build_what_this_process_has(
    company: Company, project: Lock, wheelhouse: Wheelhouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    lend(monkeypatch, company, wheelhouse.folder)
    engine = DockerEngine.connect()
    report = validate_lock(project, wheelhouse.lock_path, engine=engine, options=Options(level=2), log=lambda _: None)
    assert report.verdict == "yes", report.fields


@pytest.mark.parametrize("missing", ["proxy", "ca", "netrc"])
def test_without_one_of_the_three_validate_cannot_tell(
    company: Company, project: Lock, wheelhouse: Wheelhouse, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    lend(monkeypatch, company, wheelhouse.folder, but=missing)
    with pytest.raises(EngineError, match="could not reach what it needs"):
        validate_lock(
            project, wheelhouse.lock_path, engine=DockerEngine.connect(), options=Options(level=1), log=lambda _: None
        )
