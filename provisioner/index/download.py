"""Download files of known hashes into a folder: each is resumed, verified, and renamed when it is complete."""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.document import FileError
from provisioner.errors import UnavailableError
from provisioner.index.http.session import BACKOFF_SECONDS
from provisioner.index.http.transport import CHUNK, Transport
from provisioner.index.metadata.reader import HashMismatchError

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.index.activity import Activity
    from provisioner.index.settings import IndexSettings

PARTIAL = ".partial"
"""The folder, inside the folder of the files, of those that are not complete; each is named by its wanted sha256."""


class KnownFile(Struct, frozen=True, kw_only=True):
    """A file with its URL and sha256; `size` is in bytes, None when unknown."""

    filename: str
    url: str
    sha256: str
    size: int | None = None


class Downloads:
    """Downloads files into one folder; threads may share it. Call `close` at the end."""

    def __init__(self, settings: IndexSettings, folder: Path) -> None:
        self._folder = folder
        self._retries = settings.retries
        self._transport = Transport(settings)

    @property
    def activity(self) -> Activity:
        """The bytes received so far, and the URLs of the requests in flight."""
        return self._transport.activity

    def close(self) -> None:
        """Close every connection, and remove the folder of incomplete files if it is empty."""
        self._transport.close()
        with suppress(OSError):
            (self._folder / PARTIAL).rmdir()

    def fetch(self, file: KnownFile) -> None:
        """Download a file, resuming what an earlier run left of it, and give it its name once its hash is right.

        Raises `UnavailableError` when it cannot be read to its end, `HashMismatchError` when it has another content, and
        `FileError` when it cannot be written.
        """
        part = self._folder / PARTIAL / file.sha256
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            found, is_whole = self._read(file, part)
            if found != file.sha256 and not is_whole:  # what was left of an earlier run was not the beginning of this file
                part.unlink()
                found, _ = self._read(file, part)
            if found != file.sha256:
                part.unlink()
                raise _other_content(file, found)
            part.replace(self._folder / file.filename)
        except OSError as error:
            raise FileError(f"`{self._folder / file.filename}` cannot be written: {error.strerror}") from None

    def _read(self, file: KnownFile, part: Path) -> tuple[str, bool]:
        """Read a file to its end, and return its sha256, and whether all of it was read in this run."""
        is_whole = not part.exists()
        for attempt in range(self._retries + 1):
            before = part.stat().st_size if part.exists() else 0
            try:
                return self._go_on(file, part), is_whole
            except UnavailableError:
                has_grown = part.exists() and part.stat().st_size > before
                if attempt == self._retries or not has_grown:
                    raise
                time.sleep(BACKOFF_SECONDS * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _go_on(self, file: KnownFile, part: Path) -> str:
        digest, start = hashlib.sha256(), 0
        if part.exists():
            start = part.stat().st_size
            if file.size is not None and start > file.size:
                part.unlink()
                start = 0
            else:
                with part.open("rb") as stream:
                    while piece := stream.read(CHUNK):
                        digest.update(piece)
        if start and start == file.size:
            return digest.hexdigest()
        with self._transport.opened(file.url, source=f"`{file.filename}`", start=start) as body:
            if body.start != start:
                digest = hashlib.sha256()
            with part.open("ab" if body.start else "wb") as stream:
                for piece in body.pieces:
                    stream.write(piece)
                    digest.update(piece)
        return digest.hexdigest()


def _other_content(file: KnownFile, found: str) -> HashMismatchError:
    return HashMismatchError(
        f"`{file.filename}` is not the file that is locked",
        causes=(f"wanted sha256 {file.sha256}", f"found sha256 {found}", file.url),
        hints=("do not use it before you know why; `provision check --changes` asks the index",),
    )
