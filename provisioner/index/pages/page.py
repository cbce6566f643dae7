"""A project page of the Simple API -> files; HTML and JSON alike, bad entries skipped; pure.

Sources: PEP 503 (HTML), 592 (yanked), 658 and 714 (metadata files), 691 (JSON), 700 (sizes and times), 740 (provenance).
"""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

from provisioner.errors import UnavailableError
from provisioner.index.address import local_path, public_url
from provisioner.index.model import IndexFile
from provisioner.index.pages.listing import Listing
from provisioner.index.pages.stated import in_one_line, provenance_url, sha256_in, size_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Attribute values may hold an unescaped `>`, so a tag ends at the first `>` outside quotes. It reaches over no `<` there,
# and a comment without an end goes to the page's: a page of a million openings would be gone through a million times.
_ANCHOR = re.compile(r"<a\s((?:[^<>\"']++|\"[^\"]*\"|'[^']*')*+)>", re.IGNORECASE)
_BASE = re.compile(r"<base\s[^<>]*?href\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-zA-Z][a-zA-Z0-9-]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def parse_page(body: bytes, *, content_type: str, url: str, index: str) -> tuple[IndexFile, ...]:
    """The files a page lists, in its order; raises what `read_page` raises."""
    return read_page(body, content_type=content_type, url=url, index=index).finished()


def read_page(body: bytes, *, content_type: str, url: str, index: str) -> Listing:
    """What a page lists, as far as a choice among its files needs.

    `url` is where the page was read, for relative links. Raises `UnavailableError` for JSON that is no project page, for
    content that is neither JSON nor text, and for an API version this program does not know.
    """
    kind = content_type.partition("/")[0].strip().lower()
    if kind in {"audio", "font", "image", "video"} or content_type.lower().startswith("application/pdf"):
        raise _not_a_page(index, url)
    if "json" not in content_type.lower():
        return Listing(files=tuple(_html_files(body.decode("utf-8", errors="replace"), url=url, index=index)))
    # A run that finds everything in its cache need not load what reads pages.
    from provisioner.index.pages import json_page

    quickly = json_page.listing(body, url=url, index=index)
    if quickly is not None:
        return quickly
    return Listing(files=tuple(_json_files(body.decode("utf-8", errors="replace"), url=url, index=index)))


def _not_a_page(index: str, url: str) -> UnavailableError:
    return UnavailableError(f"index `{index}` answers with something that is not a project page: {public_url(url)}")


def _html_files(text: str, *, url: str, index: str) -> Iterator[IndexFile]:
    if "<!--" in text:
        text = _COMMENT.sub("", text)
    base = _BASE.search(text)
    start = urljoin(url, html.unescape(base[1])) if base else url
    for anchor in _ANCHOR.finditer(text):
        attributes = {match[1].lower(): match[2] or match[3] or match[4] or "" for match in _ATTRIBUTE.finditer(anchor[1])}
        if "&" in anchor[1]:
            attributes = {key: html.unescape(value) for key, value in attributes.items()}
        yield from _file(attributes.get("href", ""), attributes, url=url, start=start, index=index)


def _file(href: str, attributes: Mapping[str, str], *, url: str, start: str, index: str) -> Iterator[IndexFile]:
    place, _, fragment = href.partition("#")
    address = _address(place, start, page=url)
    if address is None:
        return
    file_url, path, filename = address
    algorithm, _, digest = fragment.partition("&")[0].partition("=")
    metadata = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
    yanked = attributes.get("data-yanked")
    yield IndexFile(
        filename=filename,
        url=file_url,
        index=index,
        sha256=sha256_in(digest) if algorithm == "sha256" else "",
        requires_python=attributes.get("data-requires-python") or None,
        upload_time=attributes.get("data-upload-time") or None,
        yanked=in_one_line(yanked) if yanked is not None else None,
        has_metadata=metadata is not None and metadata != "false",
        metadata_sha256=sha256_in((metadata or "").partition("sha256=")[2]),
        path=path,
        provenance=provenance_url(attributes.get("data-provenance", ""), start),
    )


def _address(place: str, start: str, *, page: str) -> tuple[str, str, str] | None:
    """URL, local path ("" for a remote file) and filename of a link; None for one that must not or cannot be followed.

    `start` is what the link is relative to, `page` where it was read: a page may move the one, never the other.
    """
    place = place.strip().replace(" ", "%20")
    if not place or not place.isprintable():
        return None
    try:
        url = place if place.startswith("https://") else urljoin(start, place)
        parts = urlsplit(url)
    except ValueError:
        return None
    filename = unquote(parts.path.rpartition("/")[2])
    if not filename or not filename.isprintable():
        return None
    if parts.scheme in {"http", "https"}:
        return public_url(url), "", filename
    # Only a local page may point at local files: an index elsewhere has no business with this machine's disk.
    path = local_path(url) if page.startswith("file:") else None
    return ("", str(path), filename) if path is not None else None


def _json_files(text: str, *, url: str, index: str) -> Iterator[IndexFile]:
    try:
        page = json.loads(text)
        version = str(page["meta"]["api-version"])
        entries = list(page["files"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _not_a_page(index, url) from None
    if version.partition(".")[0] != "1":
        raise UnavailableError(
            f"index `{index}` speaks version {version} of the Simple API; only version 1 is known",
            causes=(public_url(url),),
        )
    for entry in entries:
        if isinstance(entry, dict):
            yield from _json_file(entry, url=url, index=index)


def _json_file(entry: Mapping[str, Any], *, url: str, index: str) -> Iterator[IndexFile]:
    address = _address(_text(entry.get("url")), url, page=url)
    if address is None:
        return
    metadata = entry.get("core-metadata")
    if metadata is None:
        metadata = entry.get("dist-info-metadata")
    hashes = entry.get("hashes")
    yanked = entry.get("yanked")
    yield IndexFile(
        filename=_text(entry.get("filename")) or address[2],
        url=address[0],
        index=index,
        sha256=sha256_in(_text(hashes.get("sha256"))) if isinstance(hashes, dict) else "",
        size=size_in(entry.get("size")),
        requires_python=_text(entry.get("requires-python")) or None,
        upload_time=_text(entry.get("upload-time")) or None,
        yanked=in_one_line(_text(yanked)) if isinstance(yanked, str) else "" if yanked is True else None,
        has_metadata=isinstance(metadata, dict) or bool(metadata),
        metadata_sha256=sha256_in(_text(metadata.get("sha256"))) if isinstance(metadata, dict) else "",
        path=address[1],
        provenance=provenance_url(_text(entry.get("provenance")), url),
    )


def _text(value: object) -> str:
    """A text, "" for anything else; half of a character, which JSON can escape and nothing can be written with, is a `?`."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""
