"""The HTTP session of an index client: proxies, retries, certificates, and the slowest answer that is waited for.

A module of its own because importing requests takes a tenth of a second, which a run that finds everything in its cache saves.
"""

from __future__ import annotations

import io
import ssl
import time
import warnings
from contextlib import contextmanager, suppress
from http.client import HTTPResponse
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies_environment

from requests import PreparedRequest, Session
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import InsecureRequestWarning, InvalidHeader
from urllib3.poolmanager import pool_classes_by_scheme
from urllib3.util import Retry
from urllib3.util.ssl_ import create_urllib3_context

from provisioner import __version__
from provisioner.index.address import require_clear_login
from provisioner.index.settings import InstallerConfigurationError

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer
    from urllib3 import BaseHTTPResponse, PoolManager

    from provisioner.index.settings import IndexSettings

RETRIED_STATUSES = (429, 500, 502, 503, 504)

BACKOFF_SECONDS = 0.25
"""Pause factor: no pause before the first retry, twice this before the second, doubling. Not random, so runs are repeatable."""

LONGEST_PAUSE_SECONDS = 30.0
"""Upper bound on a server's Retry-After."""

SLOWEST = 1000
"""Bytes a second that an answer must bring on average, as curl's `--speed-limit`; a slower one is given up."""

SPEED_WINDOW_SECONDS = 15.0
"""Seconds of waiting over which the speed is averaged where a connection has no timeout of its own."""


_MMAP_THRESHOLD = -3
"""The option M_MMAP_THRESHOLD of mallopt(3), as <malloc.h> of glibc has it."""


class TooSlowError(TimeoutError):
    """An answer comes at less than `SLOWEST` bytes a second."""


class _SpeedCheckedStream(io.RawIOBase):
    """The bytes a socket receives. Only time spent waiting counts, so that a caller may pause between two reads.

    The timeout of a socket begins anew with every byte: a server that sends one every ten seconds would keep a run forever.
    """

    def __init__(self, received: io.RawIOBase, window: float) -> None:
        super().__init__()
        self._received = received
        self._window = window
        self._waited = 0.0
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Receive once; raise `TooSlowError` at the end of a window in which too few bytes came."""
        begun = time.perf_counter()
        count: int | None = self._received.readinto(buffer)
        self._waited += time.perf_counter() - begun
        self._count += count or 0
        if self._waited >= self._window:
            if count and self._count < SLOWEST * self._waited:
                raise TooSlowError
            self._waited, self._count = 0.0, 0
        return count

    def close(self) -> None:
        self._received.close()  # the socket counts its readers
        super().close()


class _SpeedCheckedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as in the base class
        super().__init__(sock, *args, **options)
        stream = _SpeedCheckedStream(self.fp.detach(), sock.gettimeout() or SPEED_WINDOW_SECONDS)
        self.fp = io.BufferedReader(stream)


class _Connection(HTTPConnection):
    response_class = _SpeedCheckedResponse


class _TlsConnection(HTTPSConnection):
    response_class = _SpeedCheckedResponse


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class IndexAdapter(HTTPAdapter):
    """Connections that share one TLS context and give up on answers slower than `SLOWEST`.

    One context, because OpenSSL takes 20 ms to read a bundle of certificates, and urllib3 would read it for each connection.
    """

    def __init__(self, settings: IndexSettings, *, connections: int, is_verifying: bool = True) -> None:
        self._settings = settings
        self._is_verifying = is_verifying
        self._lock = Lock()
        self._context: ssl.SSLContext | None = None
        super().__init__(pool_connections=connections, pool_maxsize=connections, max_retries=retries(settings))

    def init_poolmanager(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as in the base class
        """Make the pools of hosts."""
        super().init_poolmanager(*args, **options)
        _check_speed(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> PoolManager:  # noqa: ANN401 - as in the base class
        """Return the pools behind a proxy; a proxy that speaks TLS is verified as servers are."""
        if proxy.lower().startswith("https:"):
            options["proxy_ssl_context"] = self._tls_context()
        manager: PoolManager = super().proxy_manager_for(proxy, **options)
        _check_speed(manager)
        return manager

    def build_connection_pool_key_attributes(self, request: PreparedRequest, verify: Any, cert: Any = None) -> Any:  # noqa: ANN401 - as in the base class
        """Return where to connect to, and the shared context in place of paths of certificates."""
        place, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return place, {"ssl_context": self._tls_context()} if place["scheme"] == "https" else {}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ANN401 - as in the base class
        """Leave the pool as it is: its context has all certificates."""

    def _tls_context(self) -> ssl.SSLContext:
        with self._lock:
            if self._context is None:
                self._context = _tls_context(self._settings, is_verifying=self._is_verifying)
            return self._context


def _check_speed(manager: PoolManager) -> None:
    # The pools of a SOCKS proxy are of another kind, and these would go round it.
    if manager.pool_classes_by_scheme is pool_classes_by_scheme:
        manager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}


def _tls_context(settings: IndexSettings, *, is_verifying: bool) -> ssl.SSLContext:
    """Load the certificates that the settings name; raise `InstallerConfigurationError` for a file that holds none."""
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if is_verifying else ssl.CERT_NONE)
    if is_verifying:
        bundle = settings.ca_bundle or DEFAULT_CA_BUNDLE_PATH
        with _naming(bundle, settings.ca_bundle_from):
            is_folder = Path(bundle).is_dir()
            context.load_verify_locations(None if is_folder else bundle, bundle if is_folder else None)
    if settings.client_certificate:
        with _naming(settings.client_certificate, settings.client_certificate_from):
            context.load_cert_chain(settings.client_certificate)
    return context


@contextmanager
def _naming(path: str, configured_by: str) -> Iterator[None]:
    """Turn an error about a certificate file into one that names the file and the setting it is from."""
    try:
        yield
    except OSError as error:
        if isinstance(error, ssl.SSLError):
            reason = "there is no certificate in it that can be read"
        else:
            reason = "it does not exist" if isinstance(error, FileNotFoundError) else str(error.strerror).lower()
        by = f" ({configured_by})" if configured_by else ""
        raise InstallerConfigurationError(
            f"the certificate file `{path}`{by} cannot be used: {reason}",
            hints=(f"correct {configured_by}" if configured_by else "name another file",),
        ) from None


class _IndexRetry(Retry):
    """Retries that obey Retry-After within bounds and ignore one that cannot be read."""

    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        """Return the seconds to wait; None where the server states none."""
        try:
            wanted = super().get_retry_after(response)
        except (InvalidHeader, ValueError, OverflowError):
            return None
        return None if wanted is None else min(wanted, LONGEST_PAUSE_SECONDS)


def retries(settings: IndexSettings) -> Retry:
    """Return the retries of one request: connections that fail or stall, and answers of a busy server."""
    return _IndexRetry(
        total=settings.retries,
        backoff_factor=BACKOFF_SECONDS,
        status_forcelist=RETRIED_STATUSES,
        allowed_methods=("GET", "HEAD"),
        raise_on_status=False,
    )


def new_session(settings: IndexSettings, *, connections: int) -> Session:
    """Open a session as the installer's configuration wants it, which keeps so many connections to one host open.

    Proxies and the logins of netrc come from the environment, as requests reads it. Raises `AddressError` for a proxy whose
    login cannot be told from its host.
    """
    _return_large_blocks()
    for scheme, proxy in getproxies_environment().items():
        if scheme != "no":
            require_clear_login(proxy, f"{scheme.upper()}_PROXY")
    session = Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, IndexAdapter(settings, connections=connections))
    trusting = IndexAdapter(settings, connections=connections, is_verifying=False)
    for host in settings.trusted_hosts:
        for ending in ("/",) if ":" in host else ("/", ":"):
            session.mount(f"https://{host.lower()}{ending}", trusting)
    if settings.trusted_hosts:
        # It is the user's own decision; urllib3 would warn about it once for every request.
        warnings.filterwarnings("ignore", category=InsecureRequestWarning)
    session.headers["User-Agent"] = f"provision/{__version__}"
    session.headers["Accept-Encoding"] = "gzip"
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return session


def _return_large_blocks() -> None:
    """Have the C library give blocks of 128 KiB and more back to the system as soon as they are freed.

    That is how glibc begins, but it raises the bound to the largest block freed so far (mallopt(3), "dynamic mmap threshold"):
    project pages would be cut from the heaps of `THREADS` threads and leave holes there, 200 MiB in place of 141 where 380
    packages are resolved (docs/speed.md, "Memory"). Where there is no such call, nothing changes.
    """
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 128 * 1024)
