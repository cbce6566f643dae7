"""The pooled session behind `transport`: proxies, retries and certificates decided once, and kept to the hosts they are for.

Its own module because importing requests takes a tenth of a second, which a run that finds everything in its cache need not
spend.
"""

from __future__ import annotations

import warnings
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

from requests import PreparedRequest, Session
from requests import Response as RequestsResponse
from requests.utils import get_environ_proxies, get_netrc_auth
from urllib3.exceptions import InsecureRequestWarning, InvalidHeader
from urllib3.util import Retry

from provisioner import __version__
from provisioner.index.address import origin, require_clear_login
from provisioner.index.http.allocator import give_back_large_blocks
from provisioner.index.http.connection import PacedAdapter

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

    from provisioner.index.http.settings import IndexSettings

POOL = 40
"""Connections kept open to one host; more than there are threads, so that none is opened twice."""

RETRIED = (429, 500, 502, 503, 504)
BACKOFF_SECONDS = 0.25
"""The first retry comes at once, the second after twice this, and so on. Without chance, so that a run can be repeated."""

LONGEST_WAIT_SECONDS = 30.0
"""What a server may ask for with Retry-After. Longer, and a person should decide whether to wait."""


class PatientRetry(Retry):
    """Waits as long as a server asks for, within bounds; a header that cannot be read asks for nothing."""

    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        """The seconds to wait, None where the server does not say."""
        try:
            wanted = super().get_retry_after(response)
        except (InvalidHeader, ValueError, OverflowError):
            return None
        return None if wanted is None else min(wanted, LONGEST_WAIT_SECONDS)


class TrustingAdapter(PacedAdapter):
    """For the hosts of pip's `trusted-host`: their certificates are not checked. A redirect elsewhere leaves it."""

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> RequestsResponse:  # noqa: ANN401 - as in the base class
        """Send without a check."""
        return super().send(request, *args, **{**options, "verify": False})


class IndexSession(Session):
    """A session that reads the environment once for each host and not for each request."""

    def __init__(self, proxy: str) -> None:
        super().__init__()
        self.trust_env = False
        self._proxy = proxy
        self._proxies: dict[tuple[str, str], dict[str, str]] = {}

    def proxies_for(self, url: str) -> dict[str, str]:
        """The proxies for an address: those of the installer's configuration, else those of the environment (`NO_PROXY`)."""
        if self._proxy:
            return {"http": self._proxy, "https": self._proxy}
        place = origin(url)
        if place not in self._proxies:
            self._proxies[place] = get_environ_proxies(url)
            for scheme, proxy in self._proxies[place].items():
                require_clear_login(proxy, f"{scheme.upper()}_PROXY")
        return self._proxies[place]

    def rebuild_proxies(self, prepared_request: PreparedRequest, proxies: dict[str, str] | None) -> dict[str, str]:
        """Follow a redirect through the proxy of where it leads."""
        del proxies
        wanted: dict[str, str] = super().rebuild_proxies(  # type: ignore[no-untyped-call]
            prepared_request, self.proxies_for(str(prepared_request.url))
        )
        return wanted

    def rebuild_auth(self, prepared_request: PreparedRequest, response: RequestsResponse) -> None:
        """Follow a redirect without the login of where it came from, and with that of netrc for where it leads."""
        super().rebuild_auth(prepared_request, response)  # type: ignore[no-untyped-call]
        url = str(prepared_request.url)
        if origin(url) != origin(str(response.request.url)):
            login = get_netrc_auth(url)
            if login is not None:
                prepared_request.prepare_auth(login)


def new_session(settings: IndexSettings) -> IndexSession:
    """A session as the installer's configuration wants it; the process is made ready for large answers."""
    give_back_large_blocks()
    session = IndexSession(settings.proxy)
    for scheme in ("https://", "http://"):
        session.mount(scheme, PacedAdapter(pool_connections=POOL, pool_maxsize=POOL, max_retries=retries(settings)))
    for host in settings.trusted_hosts:
        trusting = TrustingAdapter(pool_connections=POOL, pool_maxsize=POOL, max_retries=retries(settings))
        for ending in ("/",) if ":" in host else ("/", ":"):
            session.mount(f"https://{host.lower()}{ending}", trusting)
    if settings.trusted_hosts:
        # It is the user's own decision; urllib3 would warn about it once for every request.
        warnings.filterwarnings("ignore", category=InsecureRequestWarning)
    session.headers["User-Agent"] = f"provision/{__version__}"
    session.headers["Accept-Encoding"] = "gzip"
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.cert = settings.client_certificate or None
    return session


def retries(settings: IndexSettings) -> PatientRetry:
    """What is tried again: connections that fail or stall, and answers that a busy server gives."""
    return PatientRetry(
        total=settings.retries,
        backoff_factor=BACKOFF_SECONDS,
        status_forcelist=RETRIED,
        allowed_methods=("GET", "HEAD"),
        raise_on_status=False,
    )
