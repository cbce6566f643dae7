"""A project page of the Simple API, HTML or JSON -> its files; entries that cannot be used are skipped; pure.

Sources: PEP 503 (HTML), 592 (yanked), 658 and 714 (metadata files), 691 (JSON), 700 (sizes and times), 740 (provenance).
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from provisioner.errors import UnavailableError
from provisioner.index.address import local_path, public_url
from provisioner.index.model import IndexFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Attribute values may hold an unescaped `>`, so a tag ends at the first `>` outside quotes. It reaches over no `<` there,
# and a comment without an end goes to the page's: a page of a million openings would be gone through a million times.
_ANCHOR = re.compile(r"<a\s((?:[^<>\"']++|\"[^\"]*\"|'[^']*')*+)>", re.IGNORECASE)
_BASE = re.compile(r"<base\s[^<>]*?href\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-zA-Z][a-zA-Z0-9-]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)

_NO_TEXT = frozenset({"audio", "font", "image", "video"})
_SPECIAL = ("%", "@", "?", "#", "[", "\\", " ", "/.")
"""Parts of a link that may be an escape, a login, a fragment, or a segment that leads upwards."""


def parse_project_page(body: bytes, *, content_type: str, url: str, index: str) -> tuple[IndexFile, ...]:
    """Return the files a page lists, in its order; `url` is where the page was read, for relative links.

    Raises `UnavailableError` for JSON that is no project page, for content that is neither JSON nor text, and for an API
    version this program does not know.
    """
    kind = content_type.lower()
    if kind.partition("/")[0].strip() in _NO_TEXT or kind.startswith("application/pdf"):
        raise _not_a_page(index, url)
    if "json" in kind:
        return tuple(_json_files(body, url=url, index=index))
    return tuple(_html_files(body.decode("utf-8", errors="replace"), url=url, index=index))


def _not_a_page(index: str, url: str) -> UnavailableError:
    return UnavailableError(f"index `{index}` answers with something that is not a project page: {public_url(url)}")


class _Digests(msgspec.Struct, gc=False):
    """Hashes by algorithm, of which only sha256 is read."""

    sha256: Any = None


_Other = int | float | str | bool | list[Any] | None
"""JSON of another type than the specification asks for."""


class _JsonFile(msgspec.Struct, gc=False, rename="kebab"):
    """One entry of a JSON page. A value of the wrong type counts as absent, and does not make the page unreadable."""

    filename: Any = None
    url: Any = None
    hashes: _Digests | _Other = None
    size: Any = None
    requires_python: Any = None
    upload_time: Any = None
    yanked: Any = None
    core_metadata: _Digests | _Other = None
    dist_info_metadata: _Digests | _Other = None
    provenance: Any = None


class _Meta(msgspec.Struct, rename="kebab"):
    api_version: Any


class _JsonPage(msgspec.Struct):
    meta: _Meta
    files: list[_JsonFile | _Other]


def _json_files(body: bytes, *, url: str, index: str) -> Iterator[IndexFile]:
    try:
        page = msgspec.json.decode(body, type=_JsonPage)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise _not_a_page(index, url) from None
    version = str(page.meta.api_version)
    if version.partition(".")[0] != "1":
        raise UnavailableError(
            f"index `{index}` speaks version {version} of the Simple API; only version 1 is known",
            causes=(public_url(url),),
        )
    # JSON escapes control characters, so a page without a backslash has none.
    links = _Links(url, is_printable=body.isascii() and b"\\" not in body and b"\x7f" not in body)
    for entry in page.files:
        if not (isinstance(entry, _JsonFile) and isinstance(entry.url, str) and (file_url := links.url(entry.url))):
            continue
        metadata = entry.dist_info_metadata if entry.core_metadata is None else entry.core_metadata  # PEP 714
        yanked, size, requires_python, upload_time = entry.yanked, entry.size, entry.requires_python, entry.upload_time
        yield IndexFile(
            filename=entry.filename if entry.filename and isinstance(entry.filename, str) else _filename(file_url),
            url=file_url,
            index=index,
            sha256=_sha256(entry.hashes.sha256) if isinstance(entry.hashes, _Digests) else "",
            size=size if type(size) is int and 0 <= size < 2**63 else None,
            requires_python=requires_python if requires_python and isinstance(requires_python, str) else None,
            upload_time=upload_time if upload_time and isinstance(upload_time, str) else None,
            yanked=_in_one_line(yanked) if isinstance(yanked, str) else "" if yanked is True else None,
            has_metadata=isinstance(metadata, _Digests) or bool(metadata),
            metadata_sha256=_sha256(metadata.sha256) if isinstance(metadata, _Digests) else "",
            provenance=links.provenance(entry.provenance) if isinstance(entry.provenance, str) else "",
        )


def _html_files(text: str, *, url: str, index: str) -> Iterator[IndexFile]:
    if "<!--" in text:
        text = _COMMENT.sub("", text)
    base = _BASE.search(text)
    links = _Links(url, html.unescape(base[1]) if base else "")
    for anchor in _ANCHOR.finditer(text):
        attributes = {match[1].lower(): match[2] or match[3] or match[4] or "" for match in _ATTRIBUTE.finditer(anchor[1])}
        if "&" in anchor[1]:
            attributes = {key: html.unescape(value) for key, value in attributes.items()}
        link, _, fragment = attributes.get("href", "").partition("#")
        if file_url := links.url(link):
            yield _html_file(file_url, fragment, attributes, index=index, links=links)


def _html_file(url: str, fragment: str, attributes: Mapping[str, str], *, index: str, links: _Links) -> IndexFile:
    algorithm, _, digest = fragment.partition("&")[0].partition("=")
    metadata = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
    yanked = attributes.get("data-yanked")
    path = local_path(url)
    return IndexFile(
        filename=_filename(url),
        url=url if path is None else "",
        index=index,
        sha256=_sha256(digest) if algorithm == "sha256" else "",
        requires_python=attributes.get("data-requires-python") or None,
        upload_time=attributes.get("data-upload-time") or None,
        yanked=_in_one_line(yanked) if yanked is not None else None,
        has_metadata=metadata is not None and metadata != "false",
        metadata_sha256=_sha256((metadata or "").partition("sha256=")[2]),
        path="" if path is None else str(path),
        provenance=links.provenance(attributes.get("data-provenance", "")),
    )


class _Links:
    """Resolves the links of one page, which are relative to `base` where the page states one."""

    def __init__(self, page: str, base: str = "", *, is_printable: bool = False) -> None:
        """`is_printable` is whether all links of the page are known to be of printable ASCII."""
        self._is_printable = is_printable
        self._is_local = page.startswith("file:")
        self._start = urljoin(page, base) if base else page
        parts = urlsplit(self._start)
        is_plain = parts.scheme in {"http", "https"} and "@" not in parts.netloc
        self._site = f"{parts.scheme}://{parts.netloc}" if is_plain else ""

    def url(self, link: str) -> str:
        """Return the URL of a file; "" for a link that cannot be followed, must not be, or leads to no file.

        Only a local page may point at local files: an index elsewhere has no business with this machine's disk.
        """
        is_printable = self._is_printable or (link.isascii() and link.isprintable())
        if is_printable and self._site and not _is_special(link) and not link.endswith("/"):
            # Nearly every link, and a page has thousands: it is the URL, or a path on the site, as it is.
            if link.startswith(("https://", "http://")) and "///" not in link and link.rfind("/") > 8:
                return link
            if link.startswith("/") and "//" not in link:
                return self._site + link
        link = link.strip().replace(" ", "%20")
        try:
            url = urljoin(self._start, link) if link.isprintable() else ""
            parts, filename = urlsplit(url), _filename(url)
        except ValueError:
            return ""
        if not filename or not filename.isprintable():
            return ""
        if parts.scheme in {"http", "https"}:
            return public_url(url) if parts.hostname else ""
        return url if parts.scheme == "file" and self._is_local else ""

    def provenance(self, link: str) -> str:
        """Return the URL of a file's attestations without credentials; "" for none, or for what is no web address."""
        try:
            url = urljoin(self._start, link) if link else ""
            return public_url(url) if urlsplit(url).scheme in {"http", "https"} else ""
        except ValueError:
            return ""


def _is_special(link: str) -> bool:
    for part in _SPECIAL:  # noqa: SIM110 - a generator takes twice as long, for hundreds of thousands of links
        if part in link:
            return True
    return False


def _filename(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])


def _in_one_line(text: str) -> str:
    """Return an index's own words as one line, so that they cannot pass for lines of this program."""
    return " ".join(text.split())


def _sha256(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return a sha256 in lower case; "" for what is none."""
    try:
        return value.lower() if len(value) == 64 and len(bytes.fromhex(value)) == 32 else ""
    except (TypeError, ValueError):
        return ""
