"""Logins: from the address, the environment, netrc and the keyring, sent to their own host and told to nobody."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError
from provisioner.index.http.credentials import Credentials
from provisioner.index.settings import (
    IndexLocation,
    IndexSettings,
    InstallerConfigurationError,
    logins_from,
    settings_from_pip,
    variable_prefix,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.loopback_index import LoopbackIndex
    from tests.unit.index.conftest import OpenIndex

DEMO = canonicalize_name("demo")


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with no netrc file and no keyring."""
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A `keyring` program that knows one login, and writes down what it was asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "keyring"
    answer = json.dumps({"username": "ada", "password": "s3cret"})
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path / "asked"}\n'
        f'case "$*" in *"get http://127.0.0.1"*simple*) echo \'{answer}\';; *) exit 1;; esac\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return tmp_path / "asked"


def of(*places: str, **changes: object) -> Credentials:
    indexes = tuple(IndexLocation(name=f"index-{number}", url=url) for number, url in enumerate(places))
    return Credentials(IndexSettings(indexes=indexes, **changes))  # type: ignore[arg-type]


def test_of_two_indexes_of_one_host_the_one_above_the_address_is_meant() -> None:
    found = of("https://a:1@host.example/team-a/simple", "https://b:2@host.example/team-b/simple")
    assert found.for_url("https://host.example/team-b/simple/demo/") == ("b", "2")
    assert found.for_url("https://host.example/team-a/simple/demo/") == ("a", "1")
    assert found.for_url("https://host.example/team-a/simple-other/demo/") == ("a", "1"), "elsewhere: the first of the host"
    assert found.for_url("https://other.example/team-a/simple/demo/") is None
    assert found.for_url("http://host.example/team-a/simple/demo/") is None, "another scheme is another place"


def test_variables_of_an_index_are_named_after_it() -> None:
    assert variable_prefix("my-index.2") == "PROVISION_INDEX_MY_INDEX_2"
    logins = logins_from(
        {"PROVISION_INDEX_INDEX_0_USERNAME": "ada", "PROVISION_INDEX_INDEX_0_PASSWORD": "s3cret", "PROVISION_INDEX_": "x"}
    )
    assert logins == {"PROVISION_INDEX_INDEX_0": ("ada", "s3cret")}
    found = of("https://host.example/simple", "https://elsewhere.example/simple", logins=logins)
    assert found.for_url("https://host.example/simple/demo/") == ("ada", "s3cret")
    assert found.for_url("https://elsewhere.example/simple/demo/") is None


def test_a_variant_index_has_the_login_of_its_template() -> None:
    found = of("https://host.example/whl/{variant}", logins={"PROVISION_INDEX_INDEX_0": ("ada", "s3cret")})
    assert found.for_url("https://host.example/whl/cu126/torch/") == ("ada", "s3cret")


def test_netrc_is_read_by_host_and_stands_before_a_name_without_a_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine host.example login ada password s3cret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert of("https://host.example/simple").for_url("https://host.example/simple/demo/") == ("ada", "s3cret")
    assert of("https://me@host.example/simple").for_url("https://host.example/simple/demo/") == ("ada", "s3cret")
    assert of("https://me:mine@host.example/simple").for_url("https://host.example/simple/demo/") == ("me", "mine")


def test_a_token_may_stand_alone_where_the_user_stands() -> None:
    assert of("https://t0ken@host.example/simple").for_url("https://host.example/simple/demo/") == ("t0ken", "")


def test_the_keyring_is_asked_once_and_only_after_a_refusal(
    served: LoopbackIndex, open_index: OpenIndex, keyring: Path
) -> None:
    served.add_wheel("demo", "1.0", requires=["other"])
    client = open_index()
    client.releases(DEMO)
    assert not keyring.exists()
    served.credentials = "ada:s3cret"
    client = open_index(fresh_seconds=0)
    (release,) = client.releases(DEMO)
    assert [str(one) for one in client.requirements(release)] == ["other"]
    client.releases(canonicalize_name("other"))
    assert keyring.read_text().splitlines() == [f"--mode=creds --output=json get {served.url}"]


@pytest.mark.parametrize("provider", ["disabled", "import"])
def test_a_keyring_program_that_is_not_to_be_used_is_not(
    served: LoopbackIndex, open_index: OpenIndex, keyring: Path, provider: str
) -> None:
    served.credentials = "ada:s3cret"
    with pytest.raises(UnavailableError) as caught:
        open_index(keyring_provider=provider).releases(DEMO)
    assert not keyring.exists()
    state = "disabled" if provider == "disabled" else "not installed"
    assert caught.value.causes == (
        f"{served.url}/demo/",
        "looked for a login: its URL and PROVISION_INDEX_MAIN_PASSWORD: no password",
        "looked for a login: netrc: no login for 127.0.0.1",
        f"looked for a login: keyring: {state}",
    )
    assert caught.value.hints == (
        "put its login into ~/.netrc or the keyring, or give PROVISION_INDEX_<NAME>_USERNAME and _PASSWORD",
    )


def test_a_login_that_an_index_does_not_take_is_named_and_not_shown(
    served: LoopbackIndex, open_index: OpenIndex, keyring: Path
) -> None:
    served.credentials = "somebody:else"
    with pytest.raises(UnavailableError) as caught:
        open_index().releases(DEMO)
    assert caught.value.causes[-1] == "looked for a login: keyring: a login, which it does not take"
    assert "s3cret" not in repr(caught.value.causes)
    assert len(keyring.read_text().splitlines()) == 1
    logins = {"PROVISION_INDEX_MAIN": ("ada", "s3cret")}
    with pytest.raises(UnavailableError) as caught:
        open_index(logins=logins).releases(DEMO)
    assert caught.value.causes[1:] == (
        "looked for a login: its URL and PROVISION_INDEX_MAIN_PASSWORD: a password, which it does not take",
    )


class _Elsewhere(BaseHTTPRequestHandler):
    """Another host, that writes down what it is told."""

    def do_GET(self) -> None:  # the name http.server calls
        self.server.heard.append(self.headers.get("Authorization"))  # type: ignore[attr-defined]
        body = b"<html></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def elsewhere() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere)
    server.heard = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


class _Redirecting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the name http.server calls
        self.send_response(302)
        self.send_header("Location", self.server.target)  # type: ignore[attr-defined]
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


def test_a_redirect_to_another_host_drops_the_login(elsewhere: ThreadingHTTPServer, open_index: OpenIndex) -> None:
    redirecting = ThreadingHTTPServer(("127.0.0.1", 0), _Redirecting)
    redirecting.target = f"http://127.0.0.1:{elsewhere.server_port}/simple/demo/"  # type: ignore[attr-defined]
    threading.Thread(target=redirecting.serve_forever, daemon=True).start()
    try:
        client = open_index(indexes={"main": f"http://ada:s3cret@127.0.0.1:{redirecting.server_port}/simple"})
        assert client.releases(DEMO) == ()
    finally:
        redirecting.shutdown()
        redirecting.server_close()
    assert elsewhere.heard == [None]  # type: ignore[attr-defined]


def test_the_provider_of_keyrings_is_pip_s() -> None:
    empty = {"PIP_CONFIG_FILE": "/dev/null"}
    assert settings_from_pip(empty).keyring_provider == "auto"
    assert settings_from_pip({**empty, "PIP_NO_INPUT": "1"}).keyring_provider == "disabled"
    named = {**empty, "PIP_NO_INPUT": "1", "PIP_KEYRING_PROVIDER": "subprocess"}
    assert settings_from_pip(named).keyring_provider == "subprocess"
    with pytest.raises(InstallerConfigurationError) as caught:
        settings_from_pip({**empty, "PIP_KEYRING_PROVIDER": "wallet"})
    assert caught.value.message == ("pip's `keyring-provider` is not one of auto, disabled, import, subprocess")


_AT_ONCE = """
import sys, threading
from provisioner.index.http.credentials import _netrc_login

def connect(): from requests import Session

def together(works, wrong):
    start = threading.Barrier(len(works))
    def run(work):
        start.wait()
        try: work()
        except ImportError as error: wrong.append(error)
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

sys.setswitchinterval(1e-6)
wrong = []
for _ in range(40):
    for name in [name for name in sys.modules if name.partition(".")[0] == "requests"]: del sys.modules[name]
    together([lambda: _netrc_login("https://index.example/simple"), connect] * 3, wrong)
sys.exit(str(wrong[0]) if wrong else 0)
"""


def test_logins_may_be_looked_up_while_another_thread_still_loads_requests() -> None:
    done = subprocess.run([sys.executable, "-c", _AT_ONCE], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
