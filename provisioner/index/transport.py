"""HTTP for indexes and registries: one pooled session, retries, credentials kept to their host, every failure in words."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.address import credentials_in, origin, public_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from requests import RequestException, Session
    from requests import Response as RequestsResponse

    from provisioner.index.settings import IndexSettings

POOL = 32
RETRIED = (429, 500, 502, 503, 504)
CHUNK = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One complete answer. `headers` are looked up without regard to case; `url` is where redirects ended."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


class Transport:
    """Sends requests for one run; threads share it. The session is made when it is first needed: importing it takes time."""

    def __init__(self, settings: IndexSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._session: Session | None = None
        self.received = 0
        """Bytes of bodies that came so far."""
        places = (*(location.url for location in settings.indexes), *settings.find_links)
        self._credentials = {origin(url): found for url in places if (found := credentials_in(url)) is not None}

    def request(
        self, url: str, *, source: str, method: str = "GET", headers: Mapping[str, str] | None = None, limit: int | None = None
    ) -> Response:
        """Send one request and read the whole answer, whatever its status.

        `source` is what the address belongs to, as errors name it (index `pypi`). With `limit` (bytes) a longer body is left
        unread and comes back empty. Raises `UnavailableError` when no answer comes.
        """
        from requests import RequestException

        try:
            with self._send(url, method, headers or {}) as answer:
                declared = answer.headers.get("Content-Length", "")
                is_wanted = limit is None or (declared.isdigit() and int(declared) <= limit)
                body = answer.content if is_wanted else b""
                self._count(len(body))
                return Response(status=answer.status_code, headers=answer.headers, body=body, url=public_url(answer.url))
        except RequestException as error:
            raise self._unavailable(error, url, source) from None
        except OSError as error:
            raise self._unusable_file(error) from None

    def chunks(self, url: str, *, source: str) -> Iterator[bytes]:
        """The body of a file, piece by piece; raises `UnavailableError` when it does not come or comes with another status."""
        from requests import RequestException

        try:
            with self._send(url, "GET", {"Accept-Encoding": "identity"}) as answer:
                if answer.status_code != HTTPStatus.OK:
                    raise refusal(answer.status_code, url, source=source)
                for chunk in answer.iter_content(CHUNK):
                    self._count(len(chunk))
                    yield chunk
        except RequestException as error:
            raise self._unavailable(error, url, source) from None
        except OSError as error:
            raise self._unusable_file(error) from None

    def _count(self, length: int) -> None:
        with self._lock:
            self.received += length

    def close(self) -> None:
        """Close every connection; a later request opens new ones."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    def _send(self, url: str, method: str, headers: Mapping[str, str]) -> RequestsResponse:
        session = self._open()
        host = origin(url)[1]
        is_trusted = {host, host.rpartition(":")[0]} & set(self._settings.trusted_hosts)
        return session.request(
            method,
            public_url(url),
            headers=dict(headers),
            auth=self._credentials.get(origin(url)),
            timeout=self._settings.timeout,
            # Given per request because the session's own value loses against REQUESTS_CA_BUNDLE (psf/requests#3829).
            verify=False if is_trusted else self._settings.ca_bundle or True,
            allow_redirects=True,
            stream=True,
        )

    def _open(self) -> Session:
        with self._lock:
            if self._session is None:
                self._session = self._new_session()
            return self._session

    def _new_session(self) -> Session:
        from http.cookiejar import DefaultCookiePolicy

        from requests import Session
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        from provisioner import __version__

        retries = Retry(
            total=self._settings.retries,
            backoff_factor=0.25,
            status_forcelist=RETRIED,
            allowed_methods=("GET", "HEAD"),
            raise_on_status=False,
        )
        adapter = HTTPAdapter(pool_connections=POOL, pool_maxsize=POOL, max_retries=retries)
        session = Session()
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        session.headers["User-Agent"] = f"provision/{__version__}"
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        if self._settings.proxy:
            session.proxies = {"http": self._settings.proxy, "https": self._settings.proxy}
        session.cert = self._settings.client_certificate or None
        if self._settings.trusted_hosts:
            _silence_insecure_warnings()
        return session

    def _unavailable(self, error: RequestException, url: str, source: str) -> UnavailableError:
        return UnavailableError(
            f"{source} cannot be reached: {_reason(error, self._settings)}",
            causes=(public_url(url),),
            hints=("check the network, the proxy and the installer's configuration; --offline uses what is cached",),
        )

    def _unusable_file(self, error: OSError) -> ProvisionError:
        bundle = self._settings.ca_bundle or self._settings.client_certificate
        return ProvisionError(
            f"the certificate file `{bundle}` cannot be used: {error.strerror or 'it does not exist or is not a certificate'}",
            hints=("correct `cert` in pip.conf, PIP_CERT, REQUESTS_CA_BUNDLE or SSL_CERT_FILE",),
        )


def refusal(status: int, url: str, *, source: str) -> UnavailableError:
    """The error for an answer that is neither the thing asked for nor a plain `there is none`."""
    phrase = next((known.phrase for known in HTTPStatus if known == status), "unknown status")
    asks = ("give credentials in the index URL or in ~/.netrc",) if status in {401, 403, 407} else ()
    return UnavailableError(f"{source} answers {status} ({phrase})", causes=(public_url(url),), hints=asks)


def _reason(error: RequestException, settings: IndexSettings) -> str:
    """What went wrong, without the exception's own text: that may hold credentials and object addresses."""
    from requests import exceptions
    from urllib3.exceptions import NameResolutionError, ReadTimeoutError

    chain = tuple(_chain(error))
    # A read that times out after retries arrives as a plain ConnectionError around urllib3's own.
    if isinstance(error, exceptions.Timeout) or any(isinstance(found, ReadTimeoutError) for found in chain):
        return f"no answer within {settings.timeout:g} s"
    if isinstance(error, exceptions.SSLError):
        return f"its TLS certificate is not accepted ({_deepest(error)})"
    if isinstance(error, exceptions.ProxyError):
        return "the proxy does not let the request through"
    if isinstance(error, exceptions.InvalidURL | exceptions.MissingSchema | exceptions.InvalidSchema):
        return "its address is not a usable URL"
    if isinstance(error, exceptions.TooManyRedirects):
        return "it redirects in a circle"
    if any(isinstance(found, NameResolutionError) for found in chain):
        return "its host name cannot be resolved"
    return _deepest(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        inner = next((part for part in found.args if isinstance(part, BaseException)), None)
        found = getattr(found, "reason", None) or inner or found.__cause__ or found.__context__
        found = found if isinstance(found, BaseException) else None


def _deepest(error: BaseException) -> str:
    reasons = [found.strerror for found in _chain(error) if isinstance(found, OSError) and found.strerror]
    verification = next((text for found in _chain(error) if (text := getattr(found, "verify_message", ""))), "")
    return str(verification or (reasons[-1].lower() if reasons else "the connection broke"))


def _silence_insecure_warnings() -> None:
    """`trusted-host` is the user's own decision; urllib3 would warn about it once for every request."""
    import warnings

    from urllib3.exceptions import InsecureRequestWarning

    warnings.filterwarnings("ignore", category=InsecureRequestWarning)
