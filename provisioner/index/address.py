"""Addresses of indexes and files: URLs without their credentials, and `file:` URLs as paths."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from provisioner.errors import ProvisionError


def public_url(url: str) -> str:
    """The URL without the user name and password it may carry, for messages, cache keys and artefacts."""
    if "@" not in url:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def credentials_in(url: str) -> tuple[str, str] | None:
    """The user name and password a URL carries, unquoted; None when it carries none."""
    netloc = urlsplit(url).netloc
    if "@" not in netloc:
        return None
    user, _, password = netloc.rpartition("@")[0].partition(":")
    return unquote(user), unquote(password)


def origin(url: str) -> tuple[str, str]:
    """Scheme and host with port: what credentials belong to."""
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower()


def is_remote(url: str) -> bool:
    """Whether the URL is read over HTTP."""
    return urlsplit(url).scheme.lower() in {"http", "https"}


def as_url(text: str) -> str:
    """What a user wrote for an index or a find-links place, as a URL: paths become `file:` URLs, `~` is expanded.

    Raises `ProvisionError` for an address of another kind: as a path it would be told with the login it may carry.
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
        raise ProvisionError(
            f"`{shown}` is not an address that is read; an index is named by https://, http://, file:// or a path",
            hints=("correct it in the spec or in the installer's configuration", *escapes),
        )
    return "file://" + quote(str(Path(text).expanduser().absolute()))


def local_path(url: str) -> Path | None:
    """The path a `file:` URL names; None for any other URL."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme.lower() == "file" else None


def project_url(index_url: str, name: str) -> str:
    """Where an index keeps the page of a project: PEP 503 asks for the normalized name and a trailing slash."""
    return f"{index_url.rstrip('/')}/{name}/"
