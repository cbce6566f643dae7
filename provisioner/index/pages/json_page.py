"""JSON pages that keep to the specification, decoded in one go: ten times as fast as entry by entry; pure.

Sources: PEP 691 (JSON), 700 (sizes and times), 714 (metadata files), 740 (provenance).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urljoin, urlsplit

import msgspec

from provisioner.index.model import IndexFile
from provisioner.index.pages.listing import Listing
from provisioner.index.pages.stated import in_one_line, provenance_url, sha256_in, size_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.index.pages.listing import Listed

_STARTS = ("https://", "http://", "/")
_HOSTS = ("ht", "//")
_CONTROL = re.compile("%(?:[01][0-9a-f]|7f)", re.IGNORECASE)
_UNUSUAL = ("[", "?", "#", "@", "\\")
"""What makes a link that has to be taken apart before it can be trusted; and a blank does."""


class Digest(msgspec.Struct, gc=False):
    """A hash by its algorithm; others than sha256 are not looked at."""

    sha256: str = ""


class Entry(msgspec.Struct, gc=False, rename="kebab"):
    """One file of a JSON page that states everything with the type that PEP 691, 700, 714 and 740 give it."""

    filename: str
    url: str
    hashes: Digest | None = None
    size: int | None = None
    requires_python: str | None = None
    upload_time: str | None = None
    withdrawn: bool | str | None = msgspec.field(name="yanked", default=None)
    core_metadata: bool | Digest | None = None
    dist_info_metadata: bool | Digest | None = None
    provenance: str | None = None

    index: ClassVar[str] = ""

    @property
    def yanked(self) -> str | None:
        """Why it was withdrawn, as `Listed` has it."""
        return in_one_line(self.withdrawn) if isinstance(self.withdrawn, str) else "" if self.withdrawn else None

    @property
    def metadata(self) -> bool | Digest | None:
        """What is said of its metadata file; PEP 714 prefers the newer of the two names."""
        return self.dist_info_metadata if self.core_metadata is None else self.core_metadata


class _Meta(msgspec.Struct, rename="kebab"):
    api_version: str


class _JsonPage(msgspec.Struct):
    meta: _Meta
    files: list[Entry]


def listing(body: bytes, *, url: str, index: str) -> Listing | None:
    """What a JSON page of version 1 lists; None for any page that has to be read with more patience."""
    try:
        page = msgspec.json.decode(body, type=_JsonPage)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    is_known = page.meta.api_version.partition(".")[0] == "1"
    return Listing(files=page.files, finish=_finisher(url, index)) if is_known and _are_plain(page.files) else None


def _are_plain(entries: list[Entry]) -> bool:
    """Whether each link can be followed and ends in a filename; signs are looked for in all links at once, which is faster."""
    if "" in [entry.filename for entry in entries]:
        return False
    # A blank begins and ends each link here: one that holds a blank itself makes one more than there are links.
    links = "".join([f" {entry.url}" for entry in entries]) + " "
    if links.count(" ") != len(entries) + 1 or not links.isascii() or not links.isprintable():
        return False
    if any(sign in links for sign in _UNUSUAL) or "/ " in links or ("%" in links and _CONTROL.search(links)):
        return False
    return _begin_alike(links, len(entries)) or all(_is_placed(entry.url) for entry in entries)


def _begin_alike(links: str, number: int) -> bool:
    """Whether all links begin with one scheme, host and slash, or all with a slash, as on most pages."""
    if links.startswith(" /"):
        return " //" not in links and links.count(" /") == number
    # From the ninth sign of a link on, `https://` and `http://x` lie behind: a slash there begins a path.
    stop = links.find("/", 9) + 1 if links.startswith((" https://", " http://")) else 0
    return stop > 0 and links.count(links[:stop]) == number


def _is_placed(url: str) -> bool:
    return url.startswith(_STARTS) and (url.find("/", 8) > 0 or url[:2] not in _HOSTS)


def _finisher(start: str, index: str) -> Callable[[Listed], IndexFile]:
    parts = urlsplit(start)
    site = f"{parts.scheme}://{parts.netloc}"

    def finish(file: Listed) -> IndexFile:
        assert isinstance(file, Entry), "a JSON page lists entries"
        metadata = file.metadata
        return IndexFile(
            filename=file.filename,
            url=_joined(site, start, file.url),
            index=index,
            sha256=sha256_in(file.hashes.sha256) if file.hashes is not None else "",
            size=size_in(file.size),
            requires_python=file.requires_python or None,
            upload_time=file.upload_time or None,
            yanked=file.yanked,
            has_metadata=metadata is not None and metadata is not False,
            metadata_sha256=sha256_in(metadata.sha256) if isinstance(metadata, Digest) else "",
            provenance=provenance_url(file.provenance or "", start),
        )

    return finish


def _joined(site: str, start: str, place: str) -> str:
    """The address of a plain link; what is no absolute address and no simple path is joined as RFC 3986 has it."""
    if place.startswith("https://"):
        return place
    is_simple = place.startswith("/") and "/." not in place and "//" not in place
    return f"{site}{place}" if is_simple else urljoin(start, place)
