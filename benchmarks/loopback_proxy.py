"""A caching package index on loopback, so that resolvers can be compared and not the network between them and an index.

It answers from memory what a current index answers: PEP 691 JSON and PEP 503 HTML pages with the PEP 658 attribute on every
wheel, metadata files, `ETag` and `max-age`. What its upstream lacks it makes up for: the metadata of a wheel without a
`.metadata` file is read out of the wheel by range requests. Files themselves are redirected to the upstream, or passed on, so
that their bytes are counted too.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import os
import pickle
import re
import threading
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self
from urllib.parse import urldefrag, urljoin, urlsplit

import requests

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
HTML_TYPE = "application/vnd.pypi.simple.v1+html"
_ANCHOR = re.compile(r"<a\s([^>]*)>([^<]*)</a>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r'([a-z-]+)\s*=\s*"([^"]*)"', re.IGNORECASE)
_MAX_AGE_SECONDS = 600
_SNAPSHOT_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Page:
    """One answer kept in memory."""

    status: int
    body: bytes
    content_type: str = "text/plain"
    etag: str = field(init=False)
    """A validator that changes with the content."""

    def __post_init__(self) -> None:
        # Once a page and not once a request: large pages are asked for often.
        object.__setattr__(self, "etag", f'"{hashlib.sha256(self.body).hexdigest()[:32]}"')


@dataclass(slots=True)
class Tally:
    """What was sent: answers by kind (`page`, `metadata`, `file`), and the bytes of all their bodies; thread-safe."""

    answers: Counter[str] = field(default_factory=Counter)
    size: int = 0
    guard: threading.Lock = field(default_factory=threading.Lock)

    def count(self, kind: str, size: int) -> None:
        """Add one answer and the bytes of its body."""
        with self.guard:
            self.answers[kind] += 1
            self.size += size


@dataclass(slots=True)
class Memory:
    """What was fetched from the upstream; each thing is fetched once, however many ask for it at the same time.

    `misses` counts what was fetched: a run that made the upstream answer measured a network. `saved` is how many of them the
    snapshot has. `tally` counts what was sent. With `is_relay`, files are passed on in place of redirected. Pages are fresh for
    `max_age` seconds.
    """

    upstream: str
    session: requests.Session
    is_relay: bool = False
    max_age: int = _MAX_AGE_SECONDS
    tally: Tally = field(default_factory=Tally)
    pages: dict[str, Page] = field(default_factory=dict)
    guards: dict[str, threading.Lock] = field(default_factory=dict)
    misses: int = 0
    saved: int = 0

    def recall(self, key: str, make: Callable[[str], Page], argument: str) -> Page:
        """Return the page kept under `key`, made from `argument` the first time."""
        with self.guards.setdefault(key, threading.Lock()):
            if key not in self.pages:
                self.misses += 1
                self.pages[key] = make(argument)
        return self.pages[key]

    def json_page(self, name: str) -> Page:
        """The PEP 691 page of a project."""
        return self.recall(f"json {name}", self._json_page, name)

    def html_page(self, name: str) -> Page:
        """The PEP 503 page of a project."""
        return self.recall(f"html {name}", self._html_page, name)

    def metadata(self, address: str) -> Page:
        """The METADATA of the wheel at an upstream address."""
        return self.recall(f"metadata {address}", self._metadata, address)

    def _json_page(self, name: str) -> Page:
        url = f"{self.upstream}/{name}/"
        answer = self.session.get(url, headers={"Accept": f"{JSON_TYPE}, {HTML_TYPE};q=0.5, text/html;q=0.4"}, timeout=60)
        if not answer.ok:
            return Page(answer.status_code, b"")
        is_json = answer.headers.get("Content-Type", "").startswith(JSON_TYPE)
        files = answer.json()["files"] if is_json else _files_of(answer.text, answer.url)
        document = {"meta": {"api-version": "1.1"}, "name": name, "files": [_served(entry) for entry in files]}
        return Page(200, json.dumps(document).encode(), JSON_TYPE)

    def _html_page(self, name: str) -> Page:
        source = self.json_page(name)
        if source.status != 200:
            return source
        anchors = "".join(_anchor(entry) for entry in json.loads(source.body)["files"])
        return Page(200, f"<!DOCTYPE html>\n<html><body>\n{anchors}</body></html>\n".encode(), "text/html")

    def _metadata(self, address: str) -> Page:
        answer = self.session.get(f"{address}.metadata", timeout=60)
        if answer.ok:
            return Page(200, answer.content)
        with zipfile.ZipFile(io.BufferedReader(RemoteFile(self.session, address), 1 << 16)) as wheel:
            name = next(name for name in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
            return Page(200, wheel.read(name))


def load_snapshot(memory: Memory, path: Path) -> None:
    """Start from what another run fetched from the same upstream not long ago, so that it need not be fetched again."""
    if path.is_file() and time.time() - path.stat().st_mtime < _SNAPSHOT_SECONDS:
        with path.open("rb") as stream:
            upstream, pages = pickle.load(stream)
        if upstream == memory.upstream:
            memory.pages.update(pages)


def save_snapshot(memory: Memory, path: Path) -> None:
    """Keep what was fetched, but for what the upstream could not answer; the age of a snapshot is that of its first page."""
    if memory.misses == memory.saved:
        return
    memory.saved = memory.misses
    kept = {key: page for key, page in memory.pages.items() if page.status in {200, 404}}
    begun = path.stat().st_mtime if path.is_file() else time.time()
    is_old = time.time() - begun > _SNAPSHOT_SECONDS
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as stream:
        pickle.dump((memory.upstream, kept), stream)
    part.replace(path)
    if not is_old:
        os.utime(path, (begun, begun))


class RemoteFile(io.RawIOBase):
    """A file on a web server, read by range requests."""

    def __init__(self, session: requests.Session, url: str) -> None:
        self.session, self.url, self.offset = session, url, 0
        head = session.head(url, timeout=60, allow_redirects=True)
        head.raise_for_status()
        self.size = int(head.headers["Content-Length"])

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read in any order."""
        return True

    def tell(self) -> int:
        """Return the offset of the next byte read."""
        return self.offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset from the start, the current place, or the end."""
        self.offset = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.offset, io.SEEK_END: self.size}[whence]
        return self.offset

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any writable buffer is wider than needed here
        """Fill a buffer with one range request; 0 at the end."""
        if self.offset >= self.size:
            return 0
        last = min(self.size, self.offset + len(buffer)) - 1
        answer = self.session.get(self.url, headers={"Range": f"bytes={self.offset}-{last}"}, timeout=60)
        answer.raise_for_status()
        buffer[: len(answer.content)] = answer.content
        self.offset += len(answer.content)
        return len(answer.content)


def _files_of(page: str, url: str) -> list[dict[str, object]]:
    """The files a PEP 503 page links to, as PEP 691 entries."""
    files: list[dict[str, object]] = []
    for attributes, text in _ANCHOR.findall(page):
        found = {name.lower(): html.unescape(value) for name, value in _ATTRIBUTE.findall(attributes)}
        address, fragment = urldefrag(urljoin(url, found["href"]))
        algorithm, _, digest = fragment.partition("=")
        entry: dict[str, object] = {
            "filename": html.unescape(text),
            "url": address,
            "hashes": {algorithm: digest} if digest else {},
        }
        if "data-requires-python" in found:
            entry["requires-python"] = found["data-requires-python"]
        if "data-yanked" in found:
            entry["yanked"] = found["data-yanked"] or True
        if "data-upload-time" in found:
            entry["upload-time"] = found["data-upload-time"]
        files.append(entry)
    return files


def _served(entry: dict[str, object]) -> dict[str, object]:
    """An upstream's entry with the address on this server, and the PEP 658 attribute on wheels."""
    parts = urlsplit(str(entry["url"]))
    served = {**entry, "url": f"/files/{parts.scheme}/{parts.netloc}{parts.path}"}
    if str(entry["filename"]).endswith(".whl") and not entry.get("core-metadata"):
        served["core-metadata"] = True
    return served


def _anchor(entry: dict[str, object]) -> str:
    hashes = entry["hashes"]
    assert isinstance(hashes, dict)
    fragment = next((f"#{algorithm}={digest}" for algorithm, digest in hashes.items()), "")
    extra = ' data-core-metadata="true" data-dist-info-metadata="true"' if entry.get("core-metadata") else ""
    if "requires-python" in entry:
        extra += f' data-requires-python="{html.escape(str(entry["requires-python"]))}"'
    if entry.get("yanked"):
        reason = entry["yanked"]
        extra += f' data-yanked="{html.escape(reason if isinstance(reason, str) else "")}"'
    return f'<a href="{entry["url"]}{fragment}"{extra}>{html.escape(str(entry["filename"]))}</a><br/>\n'


class Handler(BaseHTTPRequestHandler):
    """Answers `/simple/<project>/`, `/files/…` and `/files/….metadata`."""

    protocol_version = "HTTP/1.1"
    # Otherwise every answer waits 40 ms for the delayed acknowledgement of its head.
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    memory: Memory

    def do_GET(self) -> None:
        """Answer one request; an upstream that fails is a 502."""
        try:
            self._answer()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except (requests.RequestException, zipfile.BadZipFile, StopIteration) as error:
            self._send(Page(502, f"{self.path}: {error}\n".encode()))

    do_HEAD = do_GET  # noqa: N815 - the name http.server calls

    def _answer(self) -> None:
        if match := re.fullmatch(r"/simple/([A-Za-z0-9._-]+)/?", self.path):
            name = re.sub(r"[-_.]+", "-", match[1]).lower()
            wants_json = JSON_TYPE in self.headers.get("Accept", "")
            self._send(self.memory.json_page(name) if wants_json else self.memory.html_page(name), "page")
        elif match := re.fullmatch(r"/files/(https?)/(.+?)(\.metadata)?", self.path):
            address = f"{match[1]}://{match[2]}"
            if match[3]:
                self._send(self.memory.metadata(address), "metadata")
            elif self.memory.is_relay:
                self._relay(address)
            else:
                self._send(Page(302, address.encode()), "file")
        else:
            self._send(Page(404, b"no such page\n"))

    def _relay(self, address: str) -> None:
        """Pass on a file of the upstream, or the part of it that was asked for."""
        headers = {"Accept-Encoding": "identity", **({"Range": self.headers["Range"]} if "Range" in self.headers else {})}
        answer = self.memory.session.request(self.command, address, headers=headers, stream=True, timeout=60)
        self.send_response(answer.status_code)
        for name in ("Content-Length", "Content-Range", "Accept-Ranges", "Content-Type", "ETag"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.end_headers()
        sent = 0
        if self.command != "HEAD":
            for block in answer.iter_content(1 << 16):
                self.wfile.write(block)
                sent += len(block)
        self.memory.tally.count("file", sent)

    def _send(self, page: Page, kind: str = "") -> None:
        is_known = page.status == 200 and self.headers.get("If-None-Match") == page.etag
        self.send_response(304 if is_known else page.status)
        if page.status == 302:
            self.send_header("Location", page.body.decode())
        elif page.status == 200:
            self.send_header("ETag", page.etag)
            self.send_header("Cache-Control", f"max-age={self.memory.max_age}")
            self.send_header("Content-Type", page.content_type)
        body = b"" if is_known or page.status == 302 else page.body
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        if page.status == 200:
            self.memory.tally.count(kind, len(body) if self.command != "HEAD" else 0)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Say nothing: a line a request would be measured too."""


class Server(ThreadingHTTPServer):
    """Takes as many connections at once as a fast client opens."""

    daemon_threads = True
    request_queue_size = 256


class LoopbackIndex:
    """Serve an upstream index on loopback for the length of a `with` block; `url` is what installers are given.

    With a `port`, the address is the same in every run, so that a tool's cache of one run is warm in the next.
    """

    def __init__(self, upstream: str, port: int = 0) -> None:
        session = requests.Session()
        session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=32))
        self.memory = Memory(upstream.rstrip("/"), session)
        handler = type("BoundHandler", (Handler,), {"memory": self.memory})
        self._server = Server(("127.0.0.1", port), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/simple/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
