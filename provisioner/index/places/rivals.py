"""Whether what another index has under a name is something else: a mirror lists the same files with the same hashes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.index.address import is_remote
from provisioner.index.pages.reader import local_root

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from packaging.utils import NormalizedName

    from provisioner.index.cache import Cache
    from provisioner.index.http.settings import IndexLocation
    from provisioner.index.model import IndexFile
    from provisioner.index.pages.reader import PageReader, ProjectPage

ENOUGH = 16
"""Files of one name in both indexes that are compared. Nobody who only took a name has a single one with the same hash."""


class Rivals:
    """Compares project pages of two indexes; `one_at_a_time` is held while a page is read, which takes memory."""

    def __init__(self, pages: PageReader, cache: Cache, one_at_a_time: threading.Lock) -> None:
        self._pages = pages
        self._cache = cache
        self._lock = one_at_a_time

    def has_others(self, index: IndexLocation, name: NormalizedName, owner: ProjectPage) -> bool:
        """Whether an index has files under a name and is no mirror of the page they were taken from.

        What two pages came to is kept as long as both say what they said. Raises `UnavailableError`.
        """
        state = self._state(index, name)
        if not state:
            return False
        key = f"same:{state}:{self._state(owner.location, name, owner)}"
        known = self._cache.load(key, bool)
        if known is None:
            page = self._pages.page(index, name)
            theirs = self._files(page, name) if page is not None else ()
            known = bool(theirs) and not is_mirror(theirs, self._files(owner, name))
            self._cache.store(key, known)
        return known

    def _state(self, index: IndexLocation, name: NormalizedName, page: ProjectPage | None = None) -> str:
        """What tells a page from another one of the project; "" where there is none. A folder is not read for it."""
        if not is_remote(index.url):
            return _folder_state(index, name)
        page = page if page is not None else self._pages.page(index, name)
        return page.cached.sha256 if page is not None and page.cached is not None else ""

    def _files(self, page: ProjectPage, name: NormalizedName) -> tuple[IndexFile, ...]:
        with self._lock:
            return self._pages.files(page, name)


def _folder_state(index: IndexLocation, name: NormalizedName) -> str:
    """What a folder has of a project, as a hash: its list of files, or their names and sizes; "" for nothing.

    Raises `UnavailableError` for a folder that is not there or cannot be read.
    """
    directory = local_root(index) / name
    try:
        if not directory.is_dir():
            return ""
        listing = directory / "index.html"
        if listing.is_file():
            text = listing.read_bytes()
        else:
            found = sorted(path for path in directory.iterdir() if path.is_file())
            text = "\0".join(f"{path.name} {path.stat().st_size}" for path in found).encode()
    except OSError as error:
        raise UnavailableError(f"index `{index.name}` cannot be read: `{directory}`: {error.strerror}") from None
    return hashlib.sha256(f"{directory}\0".encode() + text).hexdigest() if text else ""


def is_mirror(theirs: Sequence[IndexFile], ours: Sequence[IndexFile]) -> bool:
    """Whether two pages share files and these have the same hashes, as far as that is known; sizes are not enough."""
    by_name = {file.filename: file for file in ours}
    pairs = [(file, by_name[file.filename]) for file in theirs if file.filename in by_name][:ENOUGH]
    stated = [(one.sha256, other.sha256) for one, other in pairs if one.sha256 and other.sha256]
    if not stated and pairs:  # one is a folder of files: a single one is read
        stated = [(_sha256(pairs[0][0]), _sha256(pairs[0][1]))]
    return bool(stated) and all(one == other != "" for one, other in stated)


def _sha256(file: IndexFile) -> str:
    """The hash of a file that its index states, or of one on this machine; "" for none."""
    if file.sha256 or not file.path:
        return file.sha256
    try:
        with Path(file.path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""
