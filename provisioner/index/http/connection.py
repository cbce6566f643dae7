"""Connections that are given up when an answer trickles in, and that read the certificates they trust once and not each.

A timeout of requests starts again with every byte that comes; to read a bundle of certificates takes 20 ms.
"""

from __future__ import annotations

import io
import ssl
import threading
import time
from contextlib import suppress
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any, ClassVar

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.poolmanager import pool_classes_by_scheme
from urllib3.util.ssl_ import create_urllib3_context, resolve_cert_reqs

if TYPE_CHECKING:
    import socket

    from _typeshed import WriteableBuffer
    from urllib3 import PoolManager

SLOWEST = 1000
"""Bytes a second, on average over one timeout of waiting. A page would take minutes; curl calls this --speed-limit."""

WINDOW_SECONDS = 15.0
"""How long to look at an answer where its connection has no timeout."""


class TooSlowError(TimeoutError):
    """An answer comes, but so slowly that it might as well not."""


class _Paced(io.RawIOBase):
    """What a socket receives. Only the time spent waiting counts, so a caller may take its time between two reads."""

    def __init__(self, received: io.RawIOBase, window: float) -> None:
        super().__init__()
        self._received = received
        self._window = window
        self._waited = 0.0
        self._came = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Receive once; raises `TooSlowError` at the end of a window in which next to nothing came."""
        begun = time.perf_counter()
        count: int | None = self._received.readinto(buffer)
        self._waited += time.perf_counter() - begun
        self._came += count or 0
        if self._waited >= self._window:
            if count and self._came < SLOWEST * self._waited:
                raise TooSlowError
            self._waited, self._came = 0.0, 0
        return count

    def close(self) -> None:
        """Close what is received from, too: the connection counts its readers."""
        self._received.close()
        super().close()


class _PacedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as in the base class
        super().__init__(sock, *args, **options)
        received = self.fp.detach()
        self.fp = io.BufferedReader(_Paced(received, sock.gettimeout() or WINDOW_SECONDS))


class _Connection(HTTPConnection):
    response_class = _PacedResponse


class _Trust:
    """What the connections of one adapter trust, by the bundle it is read from."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[tuple[str | None, str | None], ssl.SSLContext] = {}

    def context(self, bundle: str | None, directory: str | None) -> ssl.SSLContext:
        """A context that trusts a bundle and a directory of certificates; raises `OSError` where they cannot be read."""
        with self._lock:
            found = self._read.get((bundle, directory))
            if found is None:
                found = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED)
                found.load_verify_locations(bundle, directory)
                self._read[bundle, directory] = found
            return found


class _SecureConnection(HTTPSConnection):
    response_class = _PacedResponse
    trust: ClassVar[_Trust]

    def connect(self) -> None:
        """Connect as urllib3 does, which would read the bundle for each connection.

        One with a certificate of its own or through a proxy with one, which is held against the same bundle, is left alone; so
        is one that checks nothing, and one whose bundle cannot be read: urllib3 says so.
        """
        is_plain = self.ssl_context is None and not self.cert_file and not (self.proxy and self.proxy.scheme == "https")
        if is_plain and resolve_cert_reqs(self.cert_reqs) == ssl.CERT_REQUIRED and (self.ca_certs or self.ca_cert_dir):
            with suppress(OSError):
                self.ssl_context = self.trust.context(self.ca_certs, self.ca_cert_dir)
                self.ca_certs = self.ca_cert_dir = None
        super().connect()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class PacedAdapter(HTTPAdapter):
    """Sends through connections that give up on an answer, head or body, of less than `SLOWEST`; HTTP proxies included."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as in the base class
        """Make the pools of hosts."""
        super().init_poolmanager(*args, **options)
        _pace(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:  # noqa: ANN401 - as in the base class
        """Make the pools behind a proxy."""
        manager = super().proxy_manager_for(proxy, **options)
        _pace(manager)
        return manager


def _pace(manager: PoolManager) -> None:
    # The pools of a SOCKS proxy are of another kind, and ours would go round it.
    if manager.pool_classes_by_scheme is pool_classes_by_scheme:
        connection = type("SecureConnection", (_SecureConnection,), {"trust": _Trust()})
        secure = type("SecurePool", (HTTPSConnectionPool,), {"ConnectionCls": connection})
        manager.pool_classes_by_scheme = {"http": _Pool, "https": secure}
