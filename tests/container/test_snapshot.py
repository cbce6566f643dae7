"""Packages of the distribution as they were at one time, from a service that has the paths of snapshot.debian.org.

The service itself is not asked: a proxy answers in its place with what Debian's archive, which signs it, has today. So the test
shows that apt-get reads these addresses alone and verifies what they serve, and not that the service keeps what it promises.
"""

from __future__ import annotations

import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.validate.docker_engine import DockerEngine

pytestmark = [pytest.mark.docker, pytest.mark.network]

SCRIPT = Path(__file__).parents[2] / "provisioner/render/scripts/snapshot.sh"
TIME = "20260901T000000Z"
_DATED = re.compile(rf"http://snapshot\.debian\.org/archive/(debian|debian-security)/{TIME}/(.+)")


class Service(BaseHTTPRequestHandler):
    """A proxy that has snapshots of one time alone."""

    asked: list[str]
    damaged = False

    def do_GET(self) -> None:
        self.asked.append(self.path)
        match = _DATED.fullmatch(self.path)
        if match is None:
            self.send_error(404)
            return
        answer = requests.get(f"http://deb.debian.org/{match[1]}/{match[2]}", timeout=60)
        content = answer.content
        if self.damaged and match[2].endswith("InRelease"):
            content = content.replace(b"Codename: ", b"Codename:  ")
        self.send_response(answer.status_code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Say nothing."""


@pytest.fixture
def service(engine: DockerEngine) -> Iterator[tuple[str, type[Service]]]:
    """The address of the proxy for containers, and its handler."""
    gateway = engine._client.networks.get("bridge").attrs["IPAM"]["Config"][0].get("Gateway", "172.17.0.1")
    handler = type("OneService", (Service,), {"asked": []})
    with ThreadingHTTPServer((gateway, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{gateway}:{server.server_port}", handler
        server.shutdown()


def installed(image: str, proxy: str, *more: str) -> subprocess.CompletedProcess[str]:
    shown = "cat /etc/apt/sources.list* 2>/dev/null | sha256sum; ls -A /tmp"
    program = f'set -e; before=$({shown}); sh /opt/snapshot.sh {TIME} hello; test "$before" = "$({shown})"; hello -g dated'
    mounted = ("--volume", f"{SCRIPT}:/opt/snapshot.sh:ro", "--env", f"http_proxy={proxy}", *more)
    command = ("docker", "run", "--rm", *mounted, image, "sh", "-c", program)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_packages_come_from_the_snapshot_of_the_time_and_nothing_else_is_read_or_left(
    base_image: str, service: tuple[str, type[Service]]
) -> None:
    proxy, handler = service
    done = installed(base_image, proxy)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["dated"]), done.stderr
    assert handler.asked
    assert all(map(_DATED.fullmatch, handler.asked)), handler.asked
    suites = {path.split("/dists/")[1].removesuffix("/InRelease") for path in handler.asked if path.endswith("InRelease")}
    assert suites == {"bookworm", "bookworm-updates", "bookworm-security"}


def test_what_debian_did_not_sign_is_refused(base_image: str, service: tuple[str, type[Service]]) -> None:
    proxy, handler = service
    handler.damaged = True
    done = installed(base_image, proxy)
    assert done.returncode != 0
    assert "is not signed" in done.stderr or "BADSIG" in done.stderr, done.stderr


def test_another_distribution_is_told(base_image: str, service: tuple[str, type[Service]], tmp_path: Path) -> None:
    proxy, handler = service
    release = tmp_path / "os-release"
    release.write_text('ID=fedora\nPRETTY_NAME="Fedora Linux 42"\n')
    done = installed(base_image, proxy, "--volume", f"{release}:/etc/os-release:ro")
    assert (done.returncode, handler.asked) == (1, [])
    assert done.stderr == (
        "error: Fedora Linux 42 is no release of Debian or Ubuntu, of which alone there are snapshots; "
        "solve without image.snapshot\n"
    )
