"""A real package index on 127.0.0.1, for tests: real wheels, the Simple API in HTML and JSON, `.metadata` files and ranges.

with LoopbackIndex() as index:
    index.add_wheel("demo", "1.0", requires=["other>=2"], requires_python=">=3.9")
    index.url       # http://127.0.0.1:PORT/simple
    index.template  # http://127.0.0.1:PORT/whl/{variant}; add_wheel(..., index="whl/cu126") fills it
    index.requests["/simple/demo/"]
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import socket
import ssl
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, ClassVar, Self, TypedDict, Unpack
from urllib.parse import unquote

from msgspec import Struct

from tests.built_files import build_sdist, build_wheel, metadata_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

JSON_TYPE = "application/vnd.pypi.simple.v1+json"


class FileFields(TypedDict, total=False):
    """What a file of the index may state; `index` is the path of the index it is listed in.

    `provenance` announces attestations, which `serve` then answers with at `/integrity/FILENAME/provenance`.
    """

    requires: Sequence[str]
    tag: str
    requires_python: str | None
    upload_time: str | None
    yanked: str | bool | None
    extras: Sequence[str]
    build: str
    padding: int
    dynamic: bool
    needs: str
    index: str
    provenance: bool


class ServedFile(Struct, frozen=True, kw_only=True):
    """One file, the bytes it has, and what its index says of it."""

    filename: str
    path: str
    content: bytes
    metadata: bytes | None
    requires_python: str | None
    upload_time: str | None
    yanked: str | bool | None
    provenance: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


@dataclass(kw_only=True)
class LoopbackIndex:
    """Use as a context manager. Every option may also be changed while it serves.

    `metadata` is whether `.metadata` files exist, `advertise` whether pages say so, `hashes` whether pages give sha256,
    `status` answers every request with that status, `statuses` does so for single paths, `delay` is in seconds,
    `credentials` (`user:password`) makes everything else a 401, `cache_control` "" sends no such header. `certificate` is a
    file with a key and a certificate, for `https`.
    """

    json: bool = False
    metadata: bool = True
    advertise: bool = True
    hashes: bool = True
    ranges: bool = True
    etag: bool = True
    delay: float = 0.0
    status: int | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    credentials: str = ""
    cache_control: str = "max-age=0"
    certificate: Path | None = None
    requests: Counter[str] = field(default_factory=Counter)
    bytes_sent: int = 0
    pages: dict[str, dict[str, list[ServedFile]]] = field(default_factory=dict)
    files: dict[str, ServedFile] = field(default_factory=dict)
    bodies: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"index": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            # The handshake is for the thread that answers: one client that refuses it must not keep the others waiting.
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def root(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"{'http' if self.certificate is None else 'https'}://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """The main index, where files are listed unless they name another."""
        return f"{self.root}/simple"

    @property
    def template(self) -> str:
        """An index per framework build; files listed with `index="whl/cu126"` are in the one of cu126."""
        return f"{self.root}/whl/{{variant}}"

    def add_wheel(self, name: str, version: str, **fields: Unpack[FileFields]) -> str:
        """Build a real wheel and list it; returns its filename."""
        metadata = metadata_text(
            name, version, fields.get("requires", ()), fields.get("requires_python"), fields.get("extras", ())
        )
        tag = fields.get("tag", "py3-none-any")
        filename, content = build_wheel(
            name, version, tag=tag, metadata=metadata, build=fields.get("build", ""), padding=fields.get("padding", 0)
        )
        return self._add(name, filename, content, metadata.encode(), fields)

    def add_sdist(self, name: str, version: str, **fields: Unpack[FileFields]) -> str:
        """Build a source distribution and list it; `dynamic` leaves its dependencies to a build, which `needs` something."""
        metadata = metadata_text(
            name, version, fields.get("requires", ()), fields.get("requires_python"), fields.get("extras", ())
        )
        filename, content = build_sdist(
            name, version, metadata=metadata, is_dynamic=fields.get("dynamic", False), build=fields.get("needs", "")
        )
        return self._add(name, filename, content, None, fields)

    def add_project(self, name: str, *, index: str = "simple") -> None:
        """List a project without any file."""
        self.pages.setdefault(index, {}).setdefault(normalized(name), [])

    def serve(self, path: str, body: bytes, *, content_type: str = "text/html") -> None:
        """Answer `path` with these very bytes."""
        self.bodies[path] = (content_type, body)

    def _add(self, name: str, filename: str, content: bytes, metadata: bytes | None, fields: FileFields) -> str:
        index = fields.get("index", "simple")
        served = ServedFile(
            filename=filename,
            path=f"/files/{filename}" if index == "simple" else f"/files/{index}/{filename}",
            content=content,
            metadata=metadata,
            requires_python=fields.get("requires_python"),
            upload_time=fields.get("upload_time"),
            yanked=fields.get("yanked"),
            provenance=f"/integrity/{filename}/provenance" if fields.get("provenance") else "",
        )
        self.pages.setdefault(index, {}).setdefault(normalized(name), []).append(served)
        self.files[served.path] = served
        return filename

    def page(self, index: str, project: str) -> tuple[str, bytes] | None:
        """The content type and body of one project page; None when the index does not know the project."""
        files = self.pages.get(index, {}).get(project)
        if files is None:
            return None
        if self.json:
            listed = [self._json_entry(served) for served in files]
            page = {"meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": listed}
            return JSON_TYPE, json.dumps(page).encode()
        up = "../" * (index.count("/") + 2)
        anchors = "".join(self._anchor(served, up=up) for served in files)
        return "text/html", f"<!DOCTYPE html>\n<html><body>\n{anchors}</body></html>\n".encode()

    def _json_entry(self, served: ServedFile) -> dict[str, object]:
        entry: dict[str, object] = {
            "filename": served.filename,
            "url": f"{self.root}{served.path}",
            "hashes": {"sha256": served.sha256} if self.hashes else {},
            "size": len(served.content),
        }
        if served.requires_python is not None:
            entry["requires-python"] = served.requires_python
        if served.upload_time is not None:
            entry["upload-time"] = served.upload_time
        if served.yanked is not None:
            entry["yanked"] = served.yanked
        if served.provenance:
            entry["provenance"] = f"{self.root}{served.provenance}"
        if self.metadata and self.advertise and served.metadata is not None:
            entry["core-metadata"] = {"sha256": hashlib.sha256(served.metadata).hexdigest()}
        return entry

    def _anchor(self, served: ServedFile, *, up: str) -> str:
        attributes = {"data-requires-python": served.requires_python, "data-upload-time": served.upload_time}
        if served.yanked is not None and served.yanked is not False:
            attributes["data-yanked"] = "" if served.yanked is True else served.yanked
        if self.metadata and self.advertise and served.metadata is not None:
            attributes["data-core-metadata"] = f"sha256={hashlib.sha256(served.metadata).hexdigest()}"
        attributes["data-provenance"] = f"{self.root}{served.provenance}" if served.provenance else None
        spelled = "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items() if value is not None)
        fragment = f"#sha256={served.sha256}" if self.hashes else ""
        return f'<a href="{up}{served.path[1:]}{fragment}"{spelled}>{served.filename}</a><br/>\n'


def normalized(name: str) -> str:
    """A project's name as indexes spell it in URLs."""
    return re.sub(r"[-_.]+", "-", name).lower()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    ports_taken: ClassVar[set[int]] = set()

    def server_bind(self) -> None:
        """Take a port that no earlier index of this run had: what was cached of that one would be taken for this one's."""
        wanted = self.server_address
        super().server_bind()
        while not wanted[1] and self.server_port in self.ports_taken:
            self.socket.close()
            self.socket = socket.socket(self.address_family, self.socket_type)
            self.server_address = wanted
            super().server_bind()
        self.ports_taken.add(self.server_port)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is not an error of the server."""


class _Handler(BaseHTTPRequestHandler):
    index: ClassVar[LoopbackIndex]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def do_GET(self) -> None:  # the name http.server calls
        index = self.index
        path = unquote(self.path.partition("?")[0])
        index.requests[path] += 1
        if index.delay:
            time.sleep(index.delay)
        forced = index.statuses.get(path, index.status)
        if forced is not None:
            self._send(forced, "text/plain", b"forced\n")
        elif index.credentials and not self._is_authorized():
            self._send(401, "text/plain", b"who are you?\n", {"WWW-Authenticate": 'Basic realm="loopback"'})
        else:
            self._answer(path)

    do_HEAD = do_GET  # noqa: N815 - the name http.server calls

    def _is_authorized(self) -> bool:
        wanted = base64.b64encode(self.index.credentials.encode()).decode()
        return self.headers.get("Authorization") == f"Basic {wanted}"

    def _answer(self, path: str) -> None:
        index = self.index
        if path in index.bodies:
            self._send_page(*index.bodies[path])
            return
        if path in index.files:
            self._send_file(index.files[path].content)
            return
        described = index.files.get(path.removesuffix(".metadata"))
        if described is not None and described.metadata is not None and index.metadata:
            self._send_page("text/plain", described.metadata)
            return
        listing, _, project = path.strip("/").rpartition("/")
        page = index.page(listing, project)
        if page is None:
            self._send(404, "text/plain", b"no such page\n")
        else:
            self._send_page(*page)

    def _send_page(self, content_type: str, body: bytes) -> None:
        headers = {"Cache-Control": self.index.cache_control} if self.index.cache_control else {}
        if self.index.etag:
            headers["ETag"] = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
            if self.headers.get("If-None-Match") == headers["ETag"]:
                self._send(304, "", b"", headers)
                return
        self._send(200, content_type, body, headers)

    def _send_file(self, content: bytes) -> None:
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if wanted is None or not self.index.ranges:
            self._send(200, "application/octet-stream", content)
            return
        first, last = wanted.groups()
        start = int(first) if first else max(0, len(content) - int(last))
        stop = min(int(last) + 1 if first and last else len(content), len(content))
        if start >= stop:
            self._send(416, "text/plain", b"", {"Content-Range": f"bytes */{len(content)}"})
            return
        span = {"Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"}
        self._send(206, "application/octet-stream", content[start:stop], span)

    def _send(self, status: int, content_type: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Type": content_type, **(headers or {})}.items():
            if value:
                self.send_header(key, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status != 304:
            self.wfile.write(body)
            self.index.bytes_sent += len(body)

    def log_message(self, *_: object) -> None:
        """Tests read `requests`; nothing is printed."""
