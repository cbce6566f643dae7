"""TLS to an index: checked against the bundle that is configured, which is read once however many connections there are."""

from __future__ import annotations

import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest
from msgspec.structs import replace

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.http.transport import Transport
from provisioner.index.settings import IndexSettings, settings_from_pip
from tests.scripted_server import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

TLS = Path(__file__).parents[2] / "fixtures" / "tls"
SERVER, AUTHORITY = TLS / "server.pem", TLS / "authority.pem"
"""A key for tests and its own certificate, for 127.0.0.1 and no other name."""

HASH = "2f08aabb"
"""Of its subject, by which OpenSSL finds it in a directory (`openssl x509 -subject_hash`)."""

SOURCE = "index `main`"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer({"/a": [Answer(body=b"content", delay=0.05)]}, certificate=SERVER) as opened:
        yield opened


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IndexSettings:
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    return IndexSettings(
        indexes=(),
        retries=0,
        timeout=5,
        cache_directory=tmp_path / "cache",
        keyring_provider="disabled",
        ca_bundle=str(AUTHORITY),
    )


def asked(settings: IndexSettings, url: str) -> bytes:
    transport = Transport(settings)
    try:
        return transport.request(url, source=SOURCE).body
    finally:
        transport.close()


def test_the_bundle_is_read_once_for_all_connections(
    server: ScriptedServer, settings: IndexSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    load = ssl.SSLContext.load_verify_locations

    def counted(context: ssl.SSLContext, *places: str | None) -> None:
        read.append(places)
        load(context, *places)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
    transport = Transport(settings)
    with ThreadPoolExecutor(8) as threads:
        bodies = list(threads.map(lambda _: transport.request(server.url("/a"), source=SOURCE).body, range(24)))
    transport.close()
    assert bodies == [b"content"] * 24
    assert server.at_once == 8
    assert read == [(str(AUTHORITY), None)]


class Tunnel:
    """A proxy that connects to where it is told and passes everything on; use as a context manager."""

    def __enter__(self) -> Self:
        self.asked: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1)
        place = head.split()[1]
        self.asked.append(place)
        host, _, port = place.decode().partition(":")
        server = socket.create_connection((host, int(port)))
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        back = threading.Thread(target=self._pass_on, args=(server, client), daemon=True)
        back.start()
        self._pass_on(client, server)
        back.join()
        for end in (client, server):
            end.close()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)


def test_through_a_proxy_a_certificate_is_checked_as_without_one(server: ScriptedServer, settings: IndexSettings) -> None:
    with Tunnel() as tunnel:
        assert asked(replace(settings, proxy=tunnel.url), server.url("/a")) == b"content"
        with pytest.raises(UnavailableError, match="its TLS certificate is not accepted"):
            asked(replace(settings, proxy=tunnel.url, ca_bundle=""), server.url("/a"))
        assert tunnel.asked == [server.host.encode()] * 2


def test_a_proxy_that_speaks_tls_is_checked_against_the_same_bundle(settings: IndexSettings) -> None:
    with ScriptedServer({"http://index.example/a": [Answer(body=b"content")]}, certificate=SERVER) as proxy:
        through = replace(settings, proxy=proxy.url(""))
        assert asked(through, "http://index.example/a") == b"content"
        with pytest.raises(UnavailableError):
            asked(replace(through, ca_bundle=""), "http://index.example/a")
        assert proxy.paths() == ["http://index.example/a"]


def test_a_directory_of_certificates_is_a_bundle_too(server: ScriptedServer, settings: IndexSettings, tmp_path: Path) -> None:
    (tmp_path / "certificates").mkdir()
    (tmp_path / "certificates" / f"{HASH}.0").write_bytes(AUTHORITY.read_bytes())
    assert asked(replace(settings, ca_bundle=str(tmp_path / "certificates")), server.url("/a")) == b"content"


def test_a_certificate_that_nobody_trusts_is_refused(server: ScriptedServer, settings: IndexSettings) -> None:
    with pytest.raises(UnavailableError) as caught:
        asked(replace(settings, ca_bundle=""), server.url("/a"))
    assert caught.value.message == (
        "index `main` cannot be reached: its TLS certificate is not accepted (self-signed certificate)"
    )


def test_a_certificate_for_another_name_is_refused(server: ScriptedServer, settings: IndexSettings) -> None:
    with pytest.raises(UnavailableError) as caught:
        asked(settings, server.url("/a", host="localhost"))
    assert caught.value.message == (
        "index `main` cannot be reached: its TLS certificate is not accepted "
        "(Hostname mismatch, certificate is not valid for 'localhost'.)"
    )


def test_a_trusted_host_is_not_checked_and_others_are(server: ScriptedServer, settings: IndexSettings) -> None:
    trusting = replace(settings, ca_bundle="", trusted_hosts=("localhost",))
    assert asked(trusting, server.url("/a", host="localhost")) == b"content"
    with pytest.raises(UnavailableError, match="its TLS certificate is not accepted"):
        asked(trusting, server.url("/a"))


BROKEN = "-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize("content", ["", "not a certificate", BROKEN])
@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"PIP_CERT": "FILE"}, "PIP_CERT"),
        ({"REQUESTS_CA_BUNDLE": "FILE", "SSL_CERT_FILE": "/other.pem"}, "REQUESTS_CA_BUNDLE"),
        ({"SSL_CERT_FILE": "FILE", "PIP_CERT": ""}, "SSL_CERT_FILE"),
        ({"PIP_CONFIG_FILE": "CONFIG"}, "`cert` in pip.conf"),
        ({"SSL_CERT_FILE": str(AUTHORITY), "PIP_CLIENT_CERT": "FILE"}, "PIP_CLIENT_CERT"),
    ],
)
def test_a_file_without_certificates_is_named_with_what_names_it(
    server: ScriptedServer, tmp_path: Path, content: str, variables: dict[str, str], named: str
) -> None:
    file, config = tmp_path / "bundle.pem", tmp_path / "pip.conf"
    file.write_text(content)
    config.write_text(f"[global]\ncert = {file}\n")
    environ = {"PIP_CONFIG_FILE": "/dev/null"}
    environ |= {name: value.replace("FILE", str(file)).replace("CONFIG", str(config)) for name, value in variables.items()}
    found = settings_from_pip(environ)
    with pytest.raises(ProvisionError) as caught:
        asked(replace(found, retries=0, cache_directory=tmp_path, keyring_provider="disabled"), server.url("/a"))
    assert caught.value.message == (
        f"the certificate file `{file}` ({named}) cannot be used: there is no certificate in it that can be read"
    )
    assert caught.value.hints == (f"correct {named}",)
    assert caught.value.exit_code == 2


def test_who_is_trusted_is_said_where_a_certificate_is_not(
    server: ScriptedServer, settings: IndexSettings, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnavailableError) as caught:
        asked(replace(settings, ca_bundle=str(tmp_path / "empty"), ca_bundle_from="PIP_CERT"), server.url("/a"))
    assert caught.value.causes == (server.url("/a"), f"trusted is who `{tmp_path / 'empty'}` (PIP_CERT) names")


@pytest.mark.parametrize("kept", ["ca_bundle", "client_certificate"])
def test_of_two_files_the_one_that_is_not_there_is_named(server: ScriptedServer, settings: IndexSettings, kept: str) -> None:
    files = {"ca_bundle": "/no/such.pem", "client_certificate": "/no/such.pem", kept: str(SERVER)}
    with pytest.raises(ProvisionError) as caught:
        asked(replace(settings, **files), server.url("/a"))
    assert caught.value.message == "the certificate file `/no/such.pem` cannot be used: it does not exist"
