"""Addresses of indexes and files: URLs without their credentials, and `file:` URLs as paths."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from provisioner.errors import ProvisionError

ESCAPES = "in a login `/` is written %2F, `?` %3F and `#` %23; in a path `@` is written %40"
_END_OF_HOST = re.compile(r"[/?#]")


class AddressError(ProvisionError):
    """An address cannot be read, or it is ambiguous where its login ends."""

    code = "bad-address"
    exit_code = 2


def public_url(url: str) -> str:
    """Return the URL without the user name and password it may carry, for messages, cache keys and artefacts."""
    if "@" not in url:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def credentials_in(url: str) -> tuple[str, str] | None:
    """Return the user name and password a URL carries, unquoted; None when it carries none."""
    netloc = urlsplit(url).netloc
    if "@" not in netloc:
        return None
    user, _, password = netloc.rpartition("@")[0].partition(":")
    return unquote(user), unquote(password)


def origin(url: str) -> tuple[str, str]:
    """Return scheme and host with port: what credentials belong to."""
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower()


def is_remote(url: str) -> bool:
    """Whether the URL is read over HTTP."""
    return urlsplit(url).scheme.lower() in {"http", "https"}


def hides_login(url: str) -> bool:
    """Whether an `@` after the host may be the end of a login with a `/`, `?` or `#` in it, which ends a host.

    `https://ada:12/3@host/simple` reads as port 12 of host `ada`. An `@` in a path is nothing rare (`…/wheels@1.0/…`), so it
    counts only after a host that is not complete: one with a port, or without a dot.
    """
    scheme, separator, rest = url.partition("://")
    host, after = _END_OF_HOST.split(rest, maxsplit=1) if _END_OF_HOST.search(rest) else (rest, "")
    host = host.rpartition("@")[2]
    if not separator or scheme.lower() == "file" or "@" not in after or host.startswith("["):
        return False
    return ":" in host or ("." not in host and host != "localhost")


def require_clear_login(url: str, where: str) -> None:
    """Raise `AddressError` for an address that `hides_login`; the message does not repeat what may be the login.

    `where` says where it was written. An address without a scheme, as proxies have, is one of HTTP.
    """
    if hides_login(url if "://" in url else f"http://{url}"):
        raise AddressError(
            f"{where}: the address that ends in `@{url.rpartition('@')[2]}` has a `/`, `?` or `#` before its `@`, "
            "which a login cannot have as it is",
            hints=(ESCAPES,),
        )


def as_url(text: str) -> str:
    """Return the URL of an index or find-links place as a user wrote it: paths become `file:` URLs, `~` is expanded.

    Raises `AddressError` for an address of another kind: as a path it would be shown with the login it may carry.
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
    """Return the path a `file:` URL names; None for any other URL."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme.lower() == "file" else None


def project_url(index_url: str, name: str) -> str:
    """Return the URL of a project page: PEP 503 asks for the normalized name and a trailing slash."""
    return f"{index_url.rstrip('/')}/{name}/"
