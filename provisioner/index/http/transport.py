"""HTTP requests to package indexes and image registries: retries, credentials per host, and error messages for failures."""

from __future__ import annotations

import re
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.activity import Activity
from provisioner.index.address import origin, public_url
from provisioner.index.http.credentials import Credentials
from provisioner.index.http.reach import UNKNOWN_NAME, Reach

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from requests import RequestException, Session
    from requests import Response as RequestsResponse
    from urllib3.exceptions import HTTPError

    from provisioner.index.read_limit import ReadLimit
    from provisioner.index.settings import IndexSettings

THREADS = 16
"""The largest number of concurrent requests of background threads, in addition to the caller's."""

DENIED = frozenset({401, 403})
"""HTTP statuses of missing credentials: Unauthorized, Forbidden."""

_PROXY_DENIED = 407
"""The status with which a proxy wants a login of its own, for which that of an index is no use (RFC 9110, 15.5.8)."""

LARGEST_BODY = 256 * 1024 * 1024
"""The largest response body in bytes, compressed or not; no genuine page comes near it, so a larger one may be an attack."""

CHUNK = 1 << 18
_DIGITS = 18
"""The most digits of a Content-Length; Python refuses to parse numbers of thousands of digits."""

_PART = re.compile(rf"bytes (\d{{1,{_DIGITS}}})-")

_MEMBERS = 64
"""The most members of a gzip body; the format allows any number, but hardly any server sends more than one."""


class Response(Struct, frozen=True, kw_only=True):
    """One complete HTTP response.

    The names in `headers` are case-insensitive. `url` is the final URL after redirects. `content` is the body as sent,
    `encoding` its compression ("" for none). `looked_at` are the sources searched for credentials when access was denied, one
    line each; empty for other responses.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes
    url: str
    encoding: str = ""
    looked_at: tuple[str, ...] = ()

    @property
    def body(self) -> bytes:
        """The decompressed body; raises `UnavailableError` when it is truncated or damaged."""
        found = unpacked(self.content, self.encoding)
        if found is None:
            raise UnavailableError("an answer cannot be unpacked", causes=(self.url,))
        return found


class Body(Struct, frozen=True):
    """The body of a response, from the byte `start` of a file on, in pieces that can be read once."""

    start: int
    pieces: Iterator[bytes]


class Transport:
    """Sends the HTTP requests of one run; threads may share it.

    The session is opened by the first request, because importing requests takes time.
    """

    def __init__(self, settings: IndexSettings, *, limit: ReadLimit | None = None, reach: Reach | None = None) -> None:
        """Count what is received against `limit`; None sets no limit. Clients of one run share it and `reach`."""
        self._settings = settings
        self._limit = limit
        self._reach = reach or Reach()
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._credentials = Credentials(settings)
        self.activity = Activity()
        self.has_sent = False
        """Whether any request has been sent."""

    def request(
        self, url: str, *, source: str, method: str = "GET", headers: Mapping[str, str] | None = None, limit: int | None = None
    ) -> Response:
        """Send a request and return the complete response, whatever its status.

        `source` is the owner of the URL as error messages name it (index `pypi`). With a `limit`, a body of more bytes, or of
        undeclared length, is not read and returned empty. Raises `UnavailableError` when no response arrives; a server whose
        host name is unknown, or to which no connection could be made after all retries, is not tried again in the run.
        """
        self._require_reach(url, source)
        from requests import RequestException
        from urllib3.exceptions import HTTPError

        from provisioner.index.http.session import BACKOFF_SECONDS

        for attempt in range(self._settings.retries + 1):
            try:
                with self.activity.waiting_for(url), self._send(url, method, headers or {}) as answer:
                    content, encoding = self._content(answer, limit, source)
                    return Response(
                        status=answer.status_code,
                        headers=answer.headers,
                        content=content,
                        encoding=encoding,
                        url=public_url(answer.url),
                        looked_at=self._looked_at(answer.status_code, url),
                    )
            except (RequestException, HTTPError) as error:
                # What fails before an answer begins was retried by the session already.
                if attempt == self._settings.retries or not _broke_off(error):
                    if _is_without_connection(error):
                        self._reach.refuse(url, _reason(error, self._settings))
                    raise self._unavailable(error, url, source) from None
                time.sleep(BACKOFF_SECONDS * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def chunks(self, url: str, *, source: str, size: int = CHUNK, is_limited: bool = True) -> Generator[bytes]:
        """Yield the body of a file in pieces of up to `size` bytes; closing the generator ends the download.

        With `is_limited` the bytes count against the limit of the run, which may end the download, too. Raises
        `UnavailableError` when the body cannot be read or the status is not 200.
        """
        with self.opened(url, source=source, size=size, is_limited=is_limited) as body:
            yield from body.pieces

    @contextmanager
    def opened(self, url: str, *, source: str, start: int = 0, size: int = CHUNK, is_limited: bool = False) -> Iterator[Body]:
        """Yield the body of a file from the byte `start` on; from its beginning where the server sends no part of it.

        The pieces have up to `size` bytes. With `is_limited` they count against the limit of the run. Raises
        `UnavailableError`, also while the pieces are read, when the file cannot be read or the status is an error.
        """
        self._require_reach(url, source)
        from requests import RequestException

        wanted = {"Range": f"bytes={start}-"} if start else {}
        try:
            with self.activity.waiting_for(url), self._send(url, "GET", {"Accept-Encoding": "identity", **wanted}) as answer:
                is_part = answer.status_code == 206 and _first_byte(answer.headers) == start
                if answer.status_code != 200 and not is_part:
                    looked_at = self._looked_at(answer.status_code, url)
                    raise refusal(answer.status_code, url, source=source, looked_at=looked_at)
                pieces = self._counted(url, answer.iter_content(size), is_limited=is_limited)
                yield Body(start=start if is_part else 0, pieces=pieces)
        except RequestException as error:
            raise self._unavailable(error, url, source) from None

    def _counted(self, url: str, pieces: Iterable[bytes], *, is_limited: bool) -> Iterator[bytes]:
        for piece in pieces:
            self._count(url, len(piece), is_limited=is_limited)
            yield piece

    def _count(self, url: str, received: int, *, is_limited: bool = True) -> None:
        """Count bytes received from a URL; raises `ReadLimitError` when the run may read no more."""
        self.activity.count(received=received)
        if self._limit is not None and is_limited:
            self._limit.spend(url, received)
            self._limit.require_rest()

    @property
    def received(self) -> int:
        """The bytes of response bodies received so far."""
        return self.activity.received

    def close(self) -> None:
        """Close every connection; a later request opens new ones."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    def login_for(self, url: str) -> tuple[str, str] | None:
        """Return the user name and password sent with requests to a URL; None when there is no login.

        A login from the keyring is returned only after the index has refused a request in this run.
        """
        return self._credentials.for_url(url)

    def _require_reach(self, url: str, source: str) -> None:
        """Raise `UnavailableError` for a URL whose server is known to be out of reach."""
        reason = self._reach.why_not(url, proxy=self._settings.proxy)
        if reason:
            raise _unreached(reason, url, source)

    def _looked_at(self, status: int, url: str) -> tuple[str, ...]:
        return self._credentials.looked_at(url) if status in DENIED else ()

    def _send(self, url: str, method: str, headers: Mapping[str, str]) -> RequestsResponse:
        """Send a request with the configured login; if the response is 401, send it again with the keyring's login, if any."""
        answer = self._sent(url, method, headers, self._credentials.for_url(url))
        if answer.status_code == 401 and origin(answer.url) == origin(url) and not _wants_token(answer):
            login = self._credentials.after_refusal(url)
            if login is not None:
                answer.close()
                answer = self._sent(url, method, headers, login)
        return answer

    def _sent(self, url: str, method: str, headers: Mapping[str, str], login: tuple[str, str] | None) -> RequestsResponse:
        self.has_sent = True
        proxy = self._settings.proxy
        return self._open().request(
            method,
            public_url(url),
            headers=dict(headers),
            auth=login,
            timeout=self._settings.timeout,
            proxies={"http": proxy, "https": proxy} if proxy else None,
            stream=True,
        )

    def _open(self) -> Session:
        from provisioner.index.http.session import new_session

        with self._lock:
            if self._session is None:
                self._session = new_session(self._settings, connections=THREADS + 1)
            return self._session

    def _content(self, answer: RequestsResponse, limit: int | None, source: str) -> tuple[bytes, str]:
        """Return the body and its compression, `gzip` or ""; a body with another compression is decompressed.

        A body longer than `limit` is not read and returned empty. Raises `UnavailableError` for one longer than `LARGEST_BODY`.
        """
        declared = length_in(answer.headers)
        if limit is not None and (declared is None or declared > limit):
            return b"", ""
        encoding = answer.headers.get("Content-Encoding", "").strip().lower()
        is_plain = encoding in {"", "identity"}
        is_kept = is_plain or encoding in {"gzip", "x-gzip"}
        pieces, length = [], 0
        for piece in answer.raw.stream(CHUNK, decode_content=not is_kept):
            pieces.append(piece)
            length += len(piece)
            if length > LARGEST_BODY:
                raise UnavailableError(
                    f"{source} sends more than {LARGEST_BODY >> 20} MiB, which is no answer", causes=(public_url(answer.url),)
                )
        content = b"".join(pieces)
        self._count(answer.url, len(content))
        return content, "gzip" if is_kept and not is_plain and content else ""

    def _unavailable(self, error: RequestException | HTTPError, url: str, source: str) -> ProvisionError:
        from requests.exceptions import SSLError

        bundle = self._settings.ca_bundle if isinstance(error, SSLError) else ""
        configured_by = f" ({self._settings.ca_bundle_from})" if self._settings.ca_bundle_from else ""
        trusted = (f"trusted is who `{bundle}`{configured_by} names",) if bundle else ()
        return _unreached(_reason(error, self._settings), url, source, *trusted)


def _unreached(reason: str, url: str, source: str, *causes: str) -> UnavailableError:
    """Return the error for a server that cannot be reached."""
    return UnavailableError(
        f"{source} cannot be reached: {reason}",
        causes=(public_url(url), *causes),
        hints=("check the network, the proxy and the installer's configuration; --offline uses what is cached",),
    )


def length_in(headers: Mapping[str, str]) -> int | None:
    """Return the Content-Length of a response in bytes; None when it is absent or malformed."""
    stated = headers.get("Content-Length", "")
    return int(stated) if stated.isascii() and stated.isdigit() and len(stated) <= _DIGITS else None


def _first_byte(headers: Mapping[str, str]) -> int | None:
    """Return the number of the first byte that a response with a part of a file has; None when it states none."""
    match = _PART.match(headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def unpacked(content: bytes, encoding: str) -> bytes | None:
    """Return a body decompressed from `encoding` (`gzip`, or "" for none).

    None when the body is truncated or damaged, or its decompressed size exceeds `LARGEST_BODY`.
    """
    if not encoding:
        return content
    body = b""
    for _ in range(_MEMBERS):
        if not content:
            break
        inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            body += inflate.decompress(content, LARGEST_BODY + 1 - len(body))
        except zlib.error:
            return None
        if not inflate.eof or len(body) > LARGEST_BODY:
            return None
        content = inflate.unused_data
    return None if content else body


def refusal(status: int, url: str, *, source: str, looked_at: tuple[str, ...] = ()) -> UnavailableError:
    """Return the error for a response with an unexpected status; a denial gets a hint on how to configure a login.

    `looked_at` are the sources searched for credentials (`Response.looked_at`).
    """
    from http import HTTPStatus

    phrase = next((known.phrase for known in HTTPStatus if known == status), "unknown status")
    hints: tuple[str, ...] = ()
    if status in DENIED:
        hints = ("put its login into ~/.netrc or the keyring, or give PROVISION_INDEX_<NAME>_USERNAME and _PASSWORD",)
    elif status == _PROXY_DENIED:
        hints = ("write the proxy's login into its address: https_proxy, or `proxy` in pip's configuration",)
    return UnavailableError(
        f"{source} answers {status} ({phrase})",
        causes=(public_url(url), *(f"looked for a login: {words}" for words in looked_at)),
        hints=hints,
    )


def _wants_token(answer: RequestsResponse) -> bool:
    """Return whether a 401 response requests a bearer token, which a registry's token service issues and no keyring has."""
    return answer.headers.get("WWW-Authenticate", "").lower().startswith("bearer")


def _broke_off(error: BaseException) -> bool:
    """Return whether the connection was lost or stalled after a response had begun."""
    from requests.exceptions import ChunkedEncodingError
    from urllib3.exceptions import ProtocolError, ReadTimeoutError

    return isinstance(error, ChunkedEncodingError | ProtocolError | ReadTimeoutError)


def _is_without_connection(error: BaseException) -> bool:
    """Return whether no connection was made at all: a server that is slow or refuses one request may answer another."""
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    return any(isinstance(found, NewConnectionError | ConnectTimeoutError) for found in _chain(error))


def _reason(error: RequestException | HTTPError, settings: IndexSettings) -> str:
    """Return the reason of a failed request for messages; the exception's own text may hold credentials."""
    from requests import exceptions
    from urllib3.exceptions import NameResolutionError, ReadTimeoutError

    from provisioner.index.http.session import SLOWEST, TooSlowError

    chain = tuple(_chain(error))
    if any(isinstance(found, TooSlowError) for found in chain):
        return f"it sends less than {SLOWEST} bytes a second"
    # A read that times out after retries arrives as a plain ConnectionError around urllib3's own.
    if isinstance(error, exceptions.Timeout) or any(isinstance(found, ReadTimeoutError) for found in chain):
        return f"no answer within {settings.timeout:g} s"
    if isinstance(error, exceptions.SSLError):
        return f"its TLS certificate is not accepted ({_deepest(chain)})"
    if isinstance(error, exceptions.ProxyError):
        return "the proxy does not let the request through"
    if isinstance(error, exceptions.InvalidURL | exceptions.MissingSchema | exceptions.InvalidSchema):
        return "its address is not a usable URL"
    if isinstance(error, exceptions.TooManyRedirects):
        return "it redirects in a circle"
    if any(isinstance(found, NameResolutionError) for found in chain):
        return UNKNOWN_NAME
    return _deepest(chain)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that caused it, the outermost first."""
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        inner = next((part for part in found.args if isinstance(part, BaseException)), None)
        found = getattr(found, "reason", None) or inner or found.__cause__ or found.__context__
        found = found if isinstance(found, BaseException) else None


def _deepest(chain: tuple[BaseException, ...]) -> str:
    """Return the certificate error of a chain of exceptions, otherwise the system's message for the innermost `OSError`."""
    reasons = [found.strerror for found in chain if isinstance(found, OSError) and found.strerror]
    verification = next((text for found in chain if (text := getattr(found, "verify_message", ""))), "")
    return str(verification or (reasons[-1].lower() if reasons else "the connection broke"))
