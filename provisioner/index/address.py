"""URLs of indexes and files: removing and reading their credentials, and converting `file:` URLs and paths."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from provisioner.errors import ProvisionError

ESCAPES = "in a login `/` is written %2F, `?` %3F and `#` %23; in a path `@` is written %40"
NO_URL_CHARACTERS = '"<>\\^`{|}'
"""The printable ASCII characters, beside the blank, that stand in no URL (RFC 3986, section 2)."""
_ESCAPES = str.maketrans({character: quote(character) for character in f" {NO_URL_CHARACTERS}"})
_END_OF_HOST = re.compile(r"[/?#]")


class AddressError(ProvisionError):
    """A URL is of an unsupported kind, or it is ambiguous where its user name and password end."""

    code = "bad-address"
    exit_code = 2


def public_url(url: str) -> str:
    """Return the URL without user name and password, for messages, cache keys and generated files."""
    if "@" not in url:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def escaped(link: str) -> str:
    """Return a link with the blanks and other characters that stand in no URL percent-encoded, as installers read it."""
    return link.translate(_ESCAPES)


def credentials_in(url: str) -> tuple[str, str] | None:
    """Return the percent-decoded user name and password in a URL; None when it has neither."""
    netloc = urlsplit(url).netloc
    if "@" not in netloc:
        return None
    user, _, password = netloc.rpartition("@")[0].partition(":")
    return unquote(user), unquote(password)


def origin(url: str) -> tuple[str, str]:
    """Return the scheme and the host with port, in lower case; credentials are sent only to the origin they belong to."""
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower()


def is_remote(url: str) -> bool:
    """Return whether the URL is one of HTTP or HTTPS."""
    return urlsplit(url).scheme.lower() in {"http", "https"}


def hides_login(url: str) -> bool:
    """Return whether a URL may have a login with an unescaped `/`, `?` or `#`, so that a parser mistakes it for the host.

    `https://ada:12/3@host/simple` parses as port 12 of host `ada`. Because paths may well contain `@` (`…/wheels@1.0/…`), the
    result is True only when the parsed host looks like the start of a login: it has a port, or has no dot.
    """
    scheme, separator, rest = url.partition("://")
    host, after = _END_OF_HOST.split(rest, maxsplit=1) if _END_OF_HOST.search(rest) else (rest, "")
    host = host.rpartition("@")[2]
    if not separator or scheme.lower() == "file" or "@" not in after or host.startswith("["):
        return False
    return ":" in host or ("." not in host and host != "localhost")


def require_clear_login(url: str, where: str) -> None:
    """Raise `AddressError` if `hides_login` is true of the URL; the message does not show the part that may be a login.

    `where` is the name of the setting, for the message. A URL without a scheme, as in proxy settings, is read as HTTP.
    """
    if hides_login(url if "://" in url else f"http://{url}"):
        raise AddressError(
            f"{where}: the address that ends in `@{url.rpartition('@')[2]}` has a `/`, `?` or `#` before its `@`, "
            "which a login cannot have as it is",
            hints=(ESCAPES,),
        )


def as_url(text: str) -> str:
    """Return the URL of an index or find-links location given as a URL or a path; `~` in a path is expanded.

    A path becomes a `file:` URL. Raises `AddressError` for a URL of another scheme than http, https and file: if it were
    treated as a path, messages would show its login.
    """
    try:
        parts = urlsplit(text)
        scheme, _ = parts.scheme.lower(), parts.port  # no number: a login with a character that ends the host
    except ValueError:
        scheme = ""
    if scheme in {"http", "https", "file"}:
        return text
    if "://" in text:
        beginning, _, rest = text.partition("://")
        shown = f"{beginning}://{rest.rpartition('@')[2]}"
        escapes = ("in a login `/` is written %2F, `?` %3F and `#` %23",) if "@" in rest else ()
        raise AddressError(
            f"`{shown}` is not an address that is read; an index is named by https://, http://, file:// or a path",
            hints=("correct it in the spec or in the installer's configuration", *escapes),
        )
    return "file://" + quote(str(Path(text).expanduser().absolute()))


def local_path(url: str) -> Path | None:
    """Return the path of a `file:` URL; None for any other URL."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme.lower() == "file" else None


def project_url(index_url: str, name: str) -> str:
    """Return the URL of a project's page in an index, with the trailing slash of PEP 503; `name` must be normalized."""
    return f"{index_url.rstrip('/')}/{name}/"
