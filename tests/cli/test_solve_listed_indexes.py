"""A spec that lists its indexes asks these and no other: PyTorch's own, which is built in, is asked where none is listed."""

from __future__ import annotations

import http.server
import threading
from typing import TYPE_CHECKING, ClassVar

import pytest

from tests.project import project_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.project import Project

SPEC = """\
name: trainer
target:
  host: {driver: {version: 470.256.02}, gpus: [{name: Tesla T4}]}
requires: {python: "==3.11"}
packages: [torch==2.7.1]
indexes:
  - {name: corp, url: "INDEX/simple"}
outputs: [requirements]
"""
"""Driver 470 knows CUDA 11 alone: of PyTorch 2.7.1 only the build of the index cu118 runs on it."""

PYTORCH = '  - {name: pytorch, url: "INDEX/whl/{variant}"}\n'


class Proxy:
    """A proxy on loopback that refuses everything and keeps the names of the hosts asked for."""

    def __init__(self) -> None:
        asked: list[str] = []

        class Refuse(http.server.BaseHTTPRequestHandler):
            hosts: ClassVar = asked

            def do_CONNECT(self) -> None:
                self.hosts.append(self.path.partition(":")[0])
                self.send_error(502)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.asked = asked
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuse)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    found = Proxy()
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, found.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield found
    found.close()


@pytest.fixture
def project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, proxy: Proxy
) -> Iterator[Project]:
    assert proxy.url
    with project_in(tmp_path, capsys, monkeypatch) as made:
        made.index.add_wheel("torch", "2.7.1")
        made.index.add_wheel("torch", "2.7.1+cu118", index="whl/cu118")
        yield made


def test_a_listed_index_of_pytorchs_builds_is_asked_and_the_built_in_one_is_not(project: Project, proxy: Proxy) -> None:
    project.write(SPEC.replace("outputs:", f"{PYTORCH}outputs:"))
    found = project.run("solve")
    assert found.code == 0, found.err
    assert 'version = "2.7.1+cu118"' in project.read("pylock.trainer.toml")
    assert proxy.asked == []


def test_without_one_no_request_leaves_and_the_refusal_says_what_to_list(project: Project, proxy: Proxy) -> None:
    project.write(SPEC)
    found = project.run("solve")
    assert found.code == 1
    told = (
        "pytorch 2.7.1+cu118 cannot be installed: it is of index pytorch-cu118, which `indexes:` does not list, "
        'as `{name: pytorch, url: "https://…/{variant}"}` would'
    )
    assert told in found.err
    assert proxy.asked == []


def test_a_spec_that_lists_none_asks_pytorchs_own(project: Project, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{project.index.root}/simple")
    project.write(SPEC.replace('indexes:\n  - {name: corp, url: "INDEX/simple"}\n', ""))
    assert project.run("solve").code == 3
    assert set(proxy.asked) == {"download.pytorch.org"}


def test_check_tells_a_lock_with_a_build_of_an_index_that_is_listed_no_more(project: Project) -> None:
    project.write(SPEC.replace("outputs:", f"{PYTORCH}outputs:"))
    assert project.run("solve").code == 0
    project.write(SPEC)
    found = project.run("check")
    assert found.code == 1
    assert "stale-index" in found.out
