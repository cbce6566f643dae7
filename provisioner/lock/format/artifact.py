"""A file of an index or of this machine -> a locked file: hashed, without credentials, with no absolute path."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from provisioner.document import FileError
from provisioner.errors import ProvisionError
from provisioner.index.address import local_path as path_in
from provisioner.lock.format.model import LockedFile
from provisioner.platforms import PLATFORMS

if TYPE_CHECKING:
    from provisioner.index.model import IndexFile

WHEEL_DIRECTORY = "wheels"
"""The folder beside the lock to which local files are copied: an absolute path would be valid on one machine only."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


class UnhashedFileError(ProvisionError):
    """Raised when a file has no sha256, without which a lock could not detect that the content of the file was replaced."""

    code = "unhashed-file"
    exit_code = 2


def lock_file(file: IndexFile) -> LockedFile:
    """Return the locked form of a file; a local file is hashed here when its index gave no hash.

    Raises `UnhashedFileError` naming the file and its index, or `FileError` when a local file cannot be read.
    """
    source = local_path(file)
    size = file.size
    if source is not None and size is None:
        size = _size(source)
    sha256 = file.sha256.lower() or (_hash(source) if source else "")
    if not _SHA256.fullmatch(sha256):
        found = f"`{sha256}` is not one" if sha256 else "none was given"
        raise UnhashedFileError(
            f"`{file.filename}` has no sha256, and a lock without hashes is not a lock",
            causes=(f"index `{locked_url(file.index)}` lists the file; of its sha256, {found}",),
            hints=("use an index that lists sha256 hashes, or put the file in a find-links directory",),
        )
    return LockedFile(
        filename=file.filename,
        sha256=sha256,
        url="" if source else locked_url(file.url),
        path=f"{WHEEL_DIRECTORY}/{file.filename}" if source else "",
        size=size,
        upload_time=upload_moment(file.upload_time),
    )


def local_path(file: IndexFile) -> Path | None:
    """Return the path of a local file on this machine; None for a file that is downloaded."""
    return Path(file.path) if file.path else path_in(file.url)


def locked_url(url: str) -> str:
    """Return a URL without user, password and fragment; text that is not a URL is returned unchanged.

    Raises `ProvisionError` when the URL cannot be parsed, such as `https://[::1/`.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ProvisionError(f"`{url.rpartition('@')[2]}` is not a URL: {error}") from None
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl() if parts.netloc else url


def shared_url(url: str) -> str:
    """Return a URL without credentials; for a folder of this machine only `file:` and the name of the folder."""
    parts = urlsplit(locked_url(url))
    return f"file:{unquote(parts.path).rstrip('/').rpartition('/')[2]}" if parts.scheme == "file" else parts.geturl()


def nameless(file: LockedFile) -> LockedFile:
    """Return a file named after the last part of its URL or path, because PEP 751 records no other name for an archive."""
    return replace(file, filename=name_in(file.url, file.path))


def name_in(url: str, path: str) -> str:
    """Return the name of a file: the last part of its URL, or of its path when the URL has none."""
    return unquote(urlsplit(url).path.rpartition("/")[2]) or path.rpartition("/")[2]


@lru_cache(maxsize=65536)
def fits(filename: str, platform: str) -> bool:
    """Return whether the platform tag of a wheel matches a platform or is `any`; True for a source distribution.

    A wheel may have several platform tags, joined by dots (binary distribution format, "Platform tag").
    """
    if not filename.endswith(".whl"):
        return True
    tags = filename.removesuffix(".whl").rpartition("-")[2].split(".")
    return any(tag == "any" or re.fullmatch(PLATFORMS[platform].wheel_tags, tag) for tag in tags)


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> FileError:
    kind = "wheel" if path.suffix == ".whl" else "file"
    return FileError(f"{kind} `{path.name}` cannot be read: {error.strerror}")


def upload_moment(text: str | None) -> datetime | None:
    """Parse an upload time (RFC 3339) and convert it to UTC; None if there is none or it is malformed, since it is optional."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # year 1 minus a UTC offset is out of range
        return None
