"""Parsing of project pages of the Simple API, HTML or JSON; unusable entries are skipped; pure.

Sources: PEP 503 (HTML), 592 (yanked), 658 and 714 (metadata files), 691 (JSON), 700 (sizes and times), 740 (provenance).
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from provisioner.errors import UnavailableError
from provisioner.index.address import NO_URL_CHARACTERS, escaped, local_path, public_url
from provisioner.index.model import IndexFile
from provisioner.index.pages.selection import Listing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.index.pages.selection import ListedFile

# Attribute values may hold an unescaped `>`, so a tag ends at the first `>` outside quotes. It reaches over no `<` there,
# and a comment without an end goes to the page's: a page of a million openings would be gone through a million times.
_ANCHOR = re.compile(r"<a\s((?:[^<>\"']++|\"[^\"]*\"|'[^']*')*+)>", re.IGNORECASE)
_BASE = re.compile(r"<base\s[^<>]*?href\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-zA-Z][a-zA-Z0-9-]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_OF_OTHERS = re.compile(r"<(?:form|input|script)[\s>]", re.IGNORECASE)
"""What a page has that wants a login, such as that of a gateway, and no page of an index (PEP 503 has anchors alone)."""
_ARCHIVES = (".whl", ".gz", ".zip", ".bz2", ".egg", ".exe")
"""The ends of the names of files that projects have published on indexes."""
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_NO_TEXT = frozenset({"audio", "font", "image", "video"})
_STARTS = ("https://", "http://", "/")
_SPECIAL = ("@", "?", "#", "[", "///", "/ ", *NO_URL_CHARACTERS)
"""Texts that show a link may have a login, query or fragment, or ends in `/`; links are searched joined with spaces."""
_CONTROL_ESCAPE = re.compile("%(?:[01][0-9a-f]|7f)", re.IGNORECASE)


def parse_project_page(body: bytes, *, content_type: str, url: str, index: str) -> Listing:
    """Return the files that a project page lists; relative links are resolved against `url`, the URL of the page.

    `content_type` decides whether `body` is read as JSON or HTML, and `index` is the name of the index. Raises
    `UnavailableError` for JSON that is not a project page, for an image, font, sound, video or PDF, for a page without archives
    that asks for a login, and for an unknown version of the Simple API.
    """
    kind = content_type.lower()
    if kind.partition("/")[0].strip() in _NO_TEXT or kind.startswith("application/pdf"):
        raise _not_a_page(index, url)
    if "json" in kind:
        return _json_listing(body, url=url, index=index)
    text = body.decode("utf-8", errors="replace")
    files = tuple(_html_files(text, url=url, index=index))
    if not any(one.filename.endswith(_ARCHIVES) for one in files) and _OF_OTHERS.search(_COMMENT.sub("", text)):
        raise _not_a_page(index, url)
    return Listing(files=files)


def _not_a_page(index: str, url: str) -> UnavailableError:
    return UnavailableError(f"index `{index}` answers with something that is not a project page: {public_url(url)}")


class _Digests(msgspec.Struct, gc=False):
    """The hashes of a file in a JSON page, of which only `sha256` is read; "" when the page lists no sha256."""

    sha256: str = ""


class _JsonFile(msgspec.Struct, gc=False, rename="kebab"):
    """One entry of a JSON page."""

    url: str
    filename: str = ""
    hashes: _Digests | None = None
    size: int | None = None
    requires_python: str | None = None
    upload_time: str | None = None
    is_yanked: bool | str | None = msgspec.field(name="yanked", default=None)
    core_metadata: bool | _Digests | None = None
    dist_info_metadata: bool | _Digests | None = None
    provenance: str | None = None

    index: ClassVar[str] = ""

    @property
    def yanked(self) -> str | None:
        """The reason why the file was yanked ("" when none is given), None when it is not yanked."""
        return _in_one_line(self.is_yanked) if isinstance(self.is_yanked, str) else "" if self.is_yanked else None

    @property
    def metadata(self) -> bool | _Digests | None:
        """The announcement of the `.metadata` file: whether there is one, or its hashes; None when the entry announces none.

        It has two field names, of which PEP 714 prefers `core-metadata`.
        """
        return self.dist_info_metadata if self.core_metadata is None else self.core_metadata


class _Meta(msgspec.Struct, rename="kebab"):
    api_version: Any


class _JsonPage(msgspec.Struct):
    meta: _Meta
    files: list[_JsonFile]


class _AnyJsonPage(msgspec.Struct):
    meta: _Meta
    files: list[Any]


def _json_listing(body: bytes, *, url: str, index: str) -> Listing:
    try:
        page: _JsonPage | _AnyJsonPage = msgspec.json.decode(body, type=_JsonPage)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        try:
            page = msgspec.json.decode(body, type=_AnyJsonPage)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise _not_a_page(index, url) from None
    version = str(page.meta.api_version)
    if version.partition(".")[0] != "1":
        raise UnavailableError(
            f"index `{index}` speaks version {version} of the Simple API; only version 1 is known",
            causes=(public_url(url),),
        )
    links = _Links(url)
    files = page.files if isinstance(page, _JsonPage) else [file for entry in page.files if (file := _repaired(entry))]
    is_plain = _are_plain(files)
    if not is_plain:
        files = [file for file in files if links.url(file.url)]
        for file in files:
            file.filename = file.filename or _filename(links.url(file.url))
    resolve = links.plain_url if is_plain else links.url

    def finish(file: ListedFile) -> IndexFile:
        assert isinstance(file, _JsonFile), "a JSON page lists entries"
        metadata = file.metadata
        return IndexFile(
            filename=file.filename,
            url=resolve(file.url),
            index=index,
            sha256=_sha256(file.hashes.sha256) if file.hashes is not None else "",
            size=file.size if file.size is not None and 0 <= file.size < 2**63 else None,
            requires_python=file.requires_python or None,
            upload_time=file.upload_time or None,
            yanked=file.yanked,
            has_metadata=metadata is not None and metadata is not False,
            metadata_sha256=_sha256(metadata.sha256) if isinstance(metadata, _Digests) else "",
            provenance=links.provenance(file.provenance or ""),
        )

    return Listing(files=files, finish=finish)


def _repaired(entry: object) -> _JsonFile | None:
    """Convert an entry of a JSON page, dropping values of a wrong type; None when it has no valid URL."""
    right = {}
    for name, value in entry.items() if isinstance(entry, dict) else ():
        with suppress(msgspec.ValidationError):
            msgspec.convert({"url": "", name: value}, _JsonFile)
            right[name] = value
    return msgspec.convert(right, _JsonFile) if "url" in right else None


def _are_plain(files: Sequence[_JsonFile]) -> bool:
    """Return whether no link needs cleaning (login, query, fragment, escapes), which is true of nearly every page.

    All links are checked as one joined string, because a page has thousands.
    """
    links = " ".join([file.url for file in files]) + " "
    return (
        links.isascii()
        and links.isprintable()
        and links.count(" ") == max(1, len(files))
        and not any(sign in links for sign in _SPECIAL)
        and not _CONTROL_ESCAPE.search(links)
        and all(file.url.startswith(_STARTS) and file.url.find("/", 8) > 0 and file.filename for file in files)
    )


def _html_files(text: str, *, url: str, index: str) -> Iterator[IndexFile]:
    from html import unescape  # with a table of two thousand names, which a page in JSON does not need

    if "<!--" in text:
        text = _COMMENT.sub("", text)
    base = _BASE.search(text)
    links = _Links(url, unescape(base[1]) if base else "")
    for anchor in _ANCHOR.finditer(text):
        attributes = {match[1].lower(): match[2] or match[3] or match[4] or "" for match in _ATTRIBUTE.finditer(anchor[1])}
        if "&" in anchor[1]:
            attributes = {key: unescape(value) for key, value in attributes.items()}
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
    """Resolves the links of one page against its URL, or against `base`, the href of its `<base>` element."""

    def __init__(self, page: str, base: str = "") -> None:
        self._is_local = page.startswith("file:")
        try:
            self._start = urljoin(page, base) if base else page
        except ValueError:
            self._start = page  # a base that is no URL: browsers ignore it
        self._site = urljoin(self._start, "/").removesuffix("/")

    def url(self, link: str) -> str:
        """Return the URL of a file without credentials; "" for a link that is malformed, names no file or is not allowed.

        Only a local page may link to local files, so that a remote index cannot make this machine read its own disk.
        """
        link = escaped(link.strip())
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

    def plain_url(self, link: str) -> str:
        """Return the URL of a file, faster than `url`; only for pages whose files `_are_plain`."""
        if link.startswith(("https://", "http://")):
            return link
        return urljoin(self._start, link) if "/." in link or "//" in link else f"{self._site}{link}"

    def provenance(self, link: str) -> str:
        """Return the URL of a file's attestations without credentials; "" when absent, malformed or not of HTTP(S)."""
        try:
            url = urljoin(self._start, link) if link else ""
            return public_url(url) if urlsplit(url).scheme in {"http", "https"} else ""
        except ValueError:
            return ""


def _filename(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])


def _in_one_line(text: str) -> str:
    """Return text from an index as one line, so that it cannot imitate output lines of this program."""
    return " ".join(text.split())


def _sha256(text: str) -> str:
    """Return a sha256 in lower case; "" when the text is not one."""
    return text.lower() if _SHA256.fullmatch(text) else ""
