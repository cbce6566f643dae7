"""A web server on 127.0.0.1 that does what a script says, misbehaviour included: cut off bodies, silence, redirects.

with ScriptedServer({"/page/": [Answer(status=503), Answer(body=b"hello", cut=2), Answer(body=b"hello")]}) as server:
    server.url("/page/")
    server.seen            # every request that came: path, headers and the time
The last answer of a path is given again and again.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer. `cut` closes the connection after that many bytes of the body, `silence` waits before the rest of it.

    `drip` waits that long before each `drop` bytes of the body, with `drips_head` of the head after its first line, too.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: int | None = None
    reset: bool = False
    silence: float = 0.0
    delay: float = 0.0
    drip: float = 0.0
    drop: int = 1
    drips_head: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request that came."""

    path: str
    headers: Mapping[str, str]
    moment: float


class ScriptedServer:
    """Use as a context manager."""

    def __init__(self, script: Mapping[str, Sequence[Answer]] | None = None, *, certificate: Path | None = None) -> None:
        """`certificate` is a file with a key and a certificate for `https`."""
        self.script = {path: list(answers) for path, answers in (script or {}).items()}
        self.seen: list[Seen] = []
        self.at_once = 0
        """The most requests that were under way at the same time."""
        self.may_answer = threading.Event()
        """Requests wait for it; cleared by a test that wants them under way together."""
        self.may_answer.set()
        self._lock = threading.Lock()
        self._now = 0
        handler = type("Handler", (_Handler,), {"scripted": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # The handshake is for the thread that answers: one client that refuses it must not keep the others waiting.
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def host(self) -> str:
        """`127.0.0.1:PORT`."""
        return f"127.0.0.1:{self._server.server_port}"

    def url(self, path: str, *, host: str = "127.0.0.1") -> str:
        """The address of a path; `host` may be another name of this machine."""
        return f"{self._scheme}://{host}:{self._server.server_port}{path}"

    def paths(self) -> list[str]:
        """The paths that were asked for, in their order."""
        return [one.path for one in self.seen]

    def next(self, path: str, headers: Mapping[str, str]) -> Answer:
        """The answer to give now, after taking note of the request."""
        with self._lock:
            self.seen.append(Seen(path=path, headers=headers, moment=time.monotonic()))
            answers = self.script.get(path, [Answer(status=404)])
            return answers.pop(0) if len(answers) > 1 else answers[0]

    def begin(self) -> None:
        """A request is under way."""
        with self._lock:
            self._now += 1
            self.at_once = max(self.at_once, self._now)

    def end(self) -> None:
        """A request is answered."""
        with self._lock:
            self._now -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is not an error of the server."""


class _Handler(BaseHTTPRequestHandler):
    scripted: ClassVar[ScriptedServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:  # the name http.server calls
        self.scripted.begin()
        try:
            self._answer(self.scripted.next(self.path, {key.lower(): value for key, value in self.headers.items()}))
        finally:
            self.scripted.end()

    do_HEAD = do_GET  # noqa: N815 - the name http.server calls

    def _answer(self, answer: Answer) -> None:
        self.scripted.may_answer.wait(timeout=60)
        time.sleep(answer.delay)
        self.send_response(answer.status)
        for key, value in answer.headers.items():
            self.send_header(key, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(answer.body)))
        if answer.drips_head:
            self.flush_headers()
            self._drip(b"X-Filler: " + b"." * 400 + b"\r\n\r\n", answer)
        else:
            self.end_headers()
        first = answer.body if answer.cut is None else answer.body[: answer.cut]
        if answer.silence:
            self.wfile.write(first[:1])
            self.wfile.flush()
            time.sleep(answer.silence)
            first = first[1:]
        self._drip(first, answer)
        if answer.reset:
            # Linger 0: the rest is not sent, the client gets a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        if answer.cut is not None or answer.reset:
            self.close_connection = True

    def _drip(self, content: bytes, answer: Answer) -> None:
        drop = answer.drop if answer.drip else max(1, len(content))
        for place in range(0, len(content), drop):
            piece = content[place : place + drop]
            time.sleep(answer.drip)
            self.wfile.write(piece)
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Say nothing."""
