"""Digests from a registry that speaks the distribution protocol over real HTTP."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

import pytest

from provisioner.errors import UnavailableError
from provisioner.index.http.transport import Transport
from provisioner.index.image_registry import LARGEST_ANSWER, ImageReference, ImageReferenceError, Repository, resolve_digest
from provisioner.index.settings import IndexSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = IndexSettings(retries=0, timeout=5)
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Registry:
    """One repository, `team/base`; with `realm`, nobody gets anything without the token of that realm."""

    def __init__(self) -> None:
        self.contents: dict[str, tuple[str, bytes]] = {}
        self.has_token = False
        self.token = b'{"token": "let-me-in"}'
        self.states_digest = True
        self.seen: list[str] = []

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"registry": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def push(self, content: dict[str, object], *, kind: str = MANIFEST, tag: str = "") -> str:
        body = json.dumps(content).encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        place = "blobs" if not kind else "manifests"
        self.contents[f"/v2/team/base/{place}/{digest}"] = (kind, body)
        if tag:
            self.contents[f"/v2/team/base/manifests/{tag}"] = (kind, body)
        return digest

    def push_image(self, platform: str, *, tag: str = "", **config: object) -> str:
        system, _, architecture = platform.partition("/")
        digest = self.push({"os": system, "architecture": architecture, "config": config}, kind="")
        return self.push({"schemaVersion": 2, "config": {"digest": digest}, "layers": []}, tag=tag)

    def push_index(self, *platforms: tuple[str, str], tag: str) -> str:
        entries = [
            {"digest": digest, "platform": dict(zip(("os", "architecture"), platform.split("/"), strict=True))}
            for platform, digest in platforms
        ]
        return self.push({"schemaVersion": 2, "manifests": entries}, kind=INDEX, tag=tag)


class _Handler(BaseHTTPRequestHandler):
    registry: Registry
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        registry = self.registry
        registry.seen.append(f"{self.command} {self.path}")
        path = self.path.partition("?")[0]
        if path == "/token":
            self._send(200, "application/json", registry.token)
        elif registry.has_token and self.headers.get("Authorization") != "Bearer let-me-in":
            realm = f'Bearer realm="http://{registry.host}/token",service="here",scope="repository:team/base:pull"'
            self._send(401, "application/json", b"{}", {"WWW-Authenticate": realm})
        elif path in registry.contents and (MANIFEST in self.headers["Accept"] and INDEX in self.headers["Accept"]):
            kind, body = registry.contents[path]
            digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
            stated = {"Docker-Content-Digest": digest} if registry.states_digest else {}
            self._send(200, kind or "application/octet-stream", body, stated)
        else:
            self._send(404, "application/json", b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')

    do_HEAD = do_GET  # noqa: N815 - the name http.server calls

    def _send(self, status: int, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Tests read `seen`; nothing is printed."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


@pytest.mark.parametrize("states_digest", [True, False])
def test_a_tag_is_resolved_to_the_digest_of_the_index(registry: Registry, *, states_digest: bool) -> None:
    registry.states_digest = states_digest
    image = registry.push_image("linux/amd64")
    wanted = registry.push_index(("linux/amd64", image), tag="1.0")
    assert resolve_digest(f"{registry.host}/team/base:1.0", settings=SETTINGS) == wanted


def test_an_anonymous_token_is_asked_for_where_one_is_wanted(registry: Registry) -> None:
    registry.has_token = True
    wanted = registry.push_image("linux/amd64", tag="latest")
    assert resolve_digest(f"{registry.host}/team/base", settings=SETTINGS) == wanted
    assert registry.seen == [
        "HEAD /v2/team/base/manifests/latest",
        "GET /token?scope=repository%3Ateam%2Fbase%3Apull&service=here",
        "HEAD /v2/team/base/manifests/latest",
    ]


def test_a_reference_with_a_digest_needs_no_registry() -> None:
    digest = f"sha256:{'a' * 64}"
    assert resolve_digest(f"no-such-registry.invalid/x@{digest}", settings=SETTINGS) == digest


def test_a_tag_the_registry_does_not_know_is_bad_input(registry: Registry) -> None:
    with pytest.raises(ImageReferenceError) as caught:
        resolve_digest(f"{registry.host}/team/base:9", settings=SETTINGS)
    assert caught.value.message == (
        f"image `{registry.host}/team/base:9` does not exist: registry `{registry.host}` does not know it"
    )
    assert caught.value.exit_code == 2


def test_a_registry_out_of_reach_is_no_answer(registry: Registry) -> None:
    host = registry.host
    registry._server.shutdown()
    registry._server.server_close()
    with pytest.raises(UnavailableError) as caught:
        resolve_digest(f"{host}/team/base:9", settings=SETTINGS)
    assert caught.value.message == f"registry `{host}` cannot be reached: connection refused"


def test_offline_no_registry_is_asked() -> None:
    with pytest.raises(UnavailableError, match=r"offline: the registry of `ubuntu:24\.04` cannot be asked"):
        resolve_digest("ubuntu:24.04", settings=IndexSettings(offline=True))


@pytest.mark.parametrize("token", [b"<html>", b"[]", b"[" * 100_000])
def test_a_token_service_that_gives_none_is_named(registry: Registry, token: bytes) -> None:
    registry.has_token, registry.token = True, token
    with pytest.raises(UnavailableError) as caught:
        resolve_digest(f"{registry.host}/team/base", settings=SETTINGS)
    assert caught.value.message == (f"the token service of registry `{registry.host}` answers with something that is no token")


@pytest.mark.parametrize(
    ("text", "url", "tag"),
    [
        ("ubuntu", "https://registry-1.docker.io/v2/library/ubuntu", "latest"),
        ("docker.io/ubuntu:24.04", "https://registry-1.docker.io/v2/library/ubuntu", "24.04"),
        ("nvidia/cuda:12.6.3-base", "https://registry-1.docker.io/v2/nvidia/cuda", "12.6.3-base"),
        ("nvcr.io/nvidia/pytorch:25.01-py3", "https://nvcr.io/v2/nvidia/pytorch", "25.01-py3"),
        ("localhost/base", "http://localhost/v2/base", "latest"),
        ("localhost:5000/a/b:c", "http://localhost:5000/v2/a/b", "c"),
        ("registry:5000/base", "https://registry:5000/v2/base", "latest"),
        ("127.0.0.1:5000/base", "http://127.0.0.1:5000/v2/base", "latest"),
    ],
)
def test_references_are_read_as_engines_read_them(text: str, url: str, tag: str) -> None:
    reference = ImageReference.parse(text)
    assert (reference.base_url, reference.tag) == (url, tag)


@pytest.mark.parametrize(
    "text",
    ["", "Ubuntu", "ubuntu:", "ubuntu:a b", "ubuntu@sha256:12", "https://ubuntu", "a//b", "-x", "host.example/", "a:b:c"],
)
def test_a_text_that_is_no_reference_is_named(text: str) -> None:
    with pytest.raises(ImageReferenceError) as caught:
        ImageReference.parse(text)
    assert caught.value.message.startswith(f"`{text}` is not an image reference: `")


@pytest.mark.parametrize(
    "manifest",
    [
        {"manifests": [1, {"platform": {"os": "linux"}}]},
        {"manifests": [{"platform": {"os": "linux"}, "digest": "../../secret"}]},
        {"config": ["sha256"]},
        {"config": None},
    ],
    ids=["an entry without digest", "a digest that leads elsewhere", "a list for a configuration", "no configuration"],
)
def test_an_index_or_manifest_of_another_shape_is_no_answer(registry: Registry, manifest: dict[str, object]) -> None:
    registry.push(manifest, tag="12")
    with pytest.raises(UnavailableError):
        contents(registry).content("12")


def test_an_answer_that_is_too_large_is_read_no_further(registry: Registry) -> None:
    registry.push({"manifests": [], "config": {"digest": ""}, "padding": "x" * LARGEST_ANSWER}, tag="12")
    with pytest.raises(UnavailableError, match=r"answers with something that is no JSON object: manifests/12"):
        contents(registry).content("12")


@pytest.mark.parametrize("config", [{"config": [1]}, {"config": {"Env": 5}}, {"config": {"Env": None}}])
def test_a_configuration_without_a_list_of_variables_has_none(registry: Registry, config: dict[str, object]) -> None:
    digest = registry.push({"os": "linux", "architecture": "amd64", **config}, kind="")
    registry.push({"schemaVersion": 2, "config": {"digest": digest}}, tag="12")
    assert contents(registry).content("12").environments == {"linux/amd64": {}}


def contents(registry: Registry) -> Repository:
    transport = Transport(IndexSettings(indexes=(), pytorch_index="", retries=0))
    return Repository(ImageReference.parse(f"{registry.host}/team/base:12"), transport)
