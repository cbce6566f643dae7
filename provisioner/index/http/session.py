"""The HTTP session of an index client: proxies, retries, TLS certificates, and a lower bound on the speed of responses.

It is a module of its own because importing requests takes a tenth of a second, which a fully cached run saves.
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
from typing import TYPE_CHECKING, Any, Self
from urllib.request import getproxies_environment

from requests import PreparedRequest, Session
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    InsecureRequestWarning,
    InvalidHeader,
    MaxRetryError,
    NewConnectionError,
)
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
"""urllib3's backoff factor in seconds: no pause before the first retry, twice this before the second, then doubling."""

LONGEST_PAUSE_SECONDS = 30.0
"""The upper bound in seconds on a server's Retry-After."""

SLOWEST = 1000
"""The minimum average speed of a response in bytes per second, like curl's `--speed-limit`; a slower one is aborted."""

SPEED_WINDOW_SECONDS = 15.0
"""The seconds of waiting over which the speed is averaged if the connection has no timeout; else the timeout is used."""


_MMAP_THRESHOLD = -3
"""The option M_MMAP_THRESHOLD of mallopt(3), as <malloc.h> of glibc has it."""


class TooSlowError(TimeoutError):
    """A response arrives at less than `SLOWEST` bytes per second."""


class _SpeedCheckedStream(io.RawIOBase):
    """The byte stream of a socket, which fails when too few bytes arrive.

    The timeout of a socket restarts with every byte, so a server that sends one byte every ten seconds would block a run
    forever. Only time spent waiting for bytes counts, so that the caller may pause between two reads.
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
        """Receive bytes once and return their number; None when the socket does not block and has no bytes.

        Raises `TooSlowError` when bytes arrived slower than `SLOWEST` since the speed was last checked.
        """
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
    """A requests adapter whose connections share one TLS context and abort responses slower than `SLOWEST` bytes per second.

    The context is shared because OpenSSL takes 20 ms to load a CA bundle, and urllib3 would load it for each connection.
    """

    def __init__(self, settings: IndexSettings, *, connections: int, is_verifying: bool = True) -> None:
        self._settings = settings
        self._is_verifying = is_verifying
        self._lock = Lock()
        self._context: ssl.SSLContext | None = None
        super().__init__(pool_connections=connections, pool_maxsize=connections, max_retries=retries(settings))

    def init_poolmanager(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as in the base class
        """Create the pool manager, with speed-checked connections."""
        super().init_poolmanager(*args, **options)
        _check_speed(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> PoolManager:  # noqa: ANN401 - as in the base class
        """Return the pool manager for a proxy; the certificate of an HTTPS proxy is verified like that of a server."""
        if proxy.lower().startswith("https:"):
            options["proxy_ssl_context"] = self._tls_context()
        manager: PoolManager = super().proxy_manager_for(proxy, **options)
        _check_speed(manager)
        return manager

    def build_connection_pool_key_attributes(self, request: PreparedRequest, verify: Any, cert: Any = None) -> Any:  # noqa: ANN401 - as in the base class
        """Return host and pool keyword arguments: the shared TLS context in place of the paths of certificates."""
        place, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return place, {"ssl_context": self._tls_context()} if place["scheme"] == "https" else {}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ANN401 - as in the base class
        """Do nothing: the shared TLS context has loaded all certificates."""

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
    """Return a TLS context with the CA bundle and client certificate of the settings.

    Raises `InstallerConfigurationError` when one of these files is missing or holds no certificate.
    """
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
    """Convert an `OSError` about a certificate file to `InstallerConfigurationError`, naming the file and its setting."""
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
    """urllib3's retries, with Retry-After limited to `LONGEST_PAUSE_SECONDS` and ignored when malformed.

    A connection that timed out is not tried again: TCP asked several times in these seconds (RFC 6298), and a firewall that
    drops what it does not let through would take four times as long.
    """

    def increment(self, method: str | None = None, url: str | None = None, *args: Any, **options: Any) -> Self:  # noqa: ANN401 - as in the base class
        """Return the retries that are left after a failure; raises `MaxRetryError` when there are none."""
        error = options.get("error")
        if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
            raise MaxRetryError(options["_pool"], url, error) from error
        return super().increment(method, url, *args, **options)

    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        """Return the seconds to wait; None when Retry-After is absent or malformed."""
        try:
            wanted = super().get_retry_after(response)
        except (InvalidHeader, ValueError, OverflowError):
            return None
        return None if wanted is None else min(wanted, LONGEST_PAUSE_SECONDS)


def retries(settings: IndexSettings) -> Retry:
    """Return the retry policy of a request: failed or stalled connections and the statuses `RETRIED_STATUSES` are retried."""
    return _IndexRetry(
        total=settings.retries,
        backoff_factor=BACKOFF_SECONDS,
        status_forcelist=RETRIED_STATUSES,
        allowed_methods=("GET", "HEAD"),
        raise_on_status=False,
    )


def new_session(settings: IndexSettings, *, connections: int) -> Session:
    """Return a new session configured by `settings`, which keeps up to `connections` connections to one host open.

    Proxies and netrc logins are read from the environment by requests. Raises `AddressError` for a proxy URL whose login is
    ambiguous.
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
    """Make glibc return freed memory blocks of 128 KiB and more to the system at once; no effect with another C library.

    By default glibc raises this threshold to the largest block freed so far (mallopt(3), "dynamic mmap threshold"). Project
    pages would then fragment the heaps of `THREADS` threads: 200 MiB instead of 141 to resolve 380 packages (docs/speed.md,
    "Memory").
    """
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 128 * 1024)
