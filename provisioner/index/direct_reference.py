"""Parsing of direct references, the URL or path after `@` in a requirement (`demo @ https://…/demo-1.0-py3-none-any.whl`).

A commit of a repository is read as its archive (`provisioner.repositories`).

Source: PEP 508, "Grammar" (`urlspec`); PyPA specifications, "Direct URL Data Structure" (hashes in fragments), read 2026-11-21.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import ProvisionError
from provisioner.index.address import ESCAPES, escaped, hides_login, is_remote, public_url
from provisioner.repositories import archive_advice, locked_archive, repository

_VERSION_CONTROL = re.compile(r"(git|hg|svn|bzr)(\+|:|$)")
_WEAK = ("md5", "sha1", "sha224", "sha384", "sha512")
_ENDINGS = (".whl", ".tar.gz", ".zip")


class DirectReferenceError(ProvisionError):
    """A direct reference cannot be locked: it is of an unsupported kind, of another project, or its file does not exist."""

    code = "direct-reference"
    exit_code = 2


class DirectReference(Struct, frozen=True, kw_only=True):
    """The file that a direct reference names.

    `url` has neither credentials nor a fragment; `path` is "" for a remote file. `sha256` is the hash in the URL's fragment, ""
    when there is none.
    """

    url: str
    path: str = ""
    sha256: str = ""

    @property
    def filename(self) -> str:
        """The filename: the last component of the path or URL, percent-decoded."""
        return Path(self.path).name if self.path else unquote(urlsplit(self.url).path.rpartition("/")[2])


def direct_reference(name: str, url: str, folder: Path) -> DirectReference:
    """Parse the direct reference of the requirement `name @ url`; a relative path is resolved against `folder`.

    Raises `DirectReferenceError` when the reference cannot be locked: a version control URL, an unsupported scheme, a
    subdirectory of an archive, a hash that is not sha256, or a file that is neither a wheel nor a source distribution. A commit
    of a repository is the archive of it, if the host of the repository is known to offer one.
    """
    shown = f"{name} @ {shown_url(url)}"
    url = locked_archive(url) or url
    parts = urlsplit(url)
    if _VERSION_CONTROL.match(parts.scheme) or parts.scheme == "ssh":
        found = repository(public_url(url))
        advice = archive_advice(found, name) if found is not None else ""
        raise DirectReferenceError(
            f"`{shown}` is a version control address, and a lock names files with their hashes",
            hints=(advice or "build a wheel of it (`pip wheel --no-deps URL`) and name the wheel, or serve it from an index",),
        )
    if parts.scheme not in {"http", "https", "file", ""}:
        raise DirectReferenceError(f"`{shown}` is not read; a file is named by https://, http://, file: or a path")
    if hides_login(url):
        raise DirectReferenceError(f"`{shown}` has an `@` that may end a login, and this file is shared", hints=(ESCAPES,))
    reference = _local(url, folder) if not is_remote(url) else DirectReference(url=urlunsplit(parts._replace(fragment="")))
    reference = replace(reference, url=escaped(public_url(reference.url)), sha256=_sha256(parts.fragment, shown))
    if not reference.filename.endswith(_ENDINGS):
        raise DirectReferenceError(
            f"`{shown}` does not end in the name of a wheel (.whl) or of a source distribution ({', '.join(_ENDINGS[1:])})",
            hints=("build a wheel of it and name that",),
        )
    return reference


def require_file(reference: DirectReference, requirement: str, *, hints: tuple[str, ...] = ()) -> None:
    """Raise `DirectReferenceError` when the path of a local reference is a directory or does not exist."""
    path = Path(reference.path)
    if path.is_file():
        return
    raise DirectReferenceError(
        f"`{requirement}` is a directory of sources; build a wheel of it (`pip wheel --no-deps DIRECTORY`) and name that"
        if path.is_dir()
        else f"`{requirement}` does not exist",
        hints=hints,
    )


def shown_url(url: str) -> str:
    """Return a direct URL as shown in messages and lock files: without credentials and fragment.

    An absolute local path is shortened to its filename; a commit of a repository is its archive (see `direct_reference`).
    """
    url = locked_archive(url) or url
    parts = urlsplit(url)
    if hides_login(url):
        return f"{parts.scheme}://…"
    if parts.scheme not in {"file", ""}:
        return public_url(urlunsplit(parts._replace(fragment="")))
    return f"file:…/{Path(parts.path).name}" if parts.path.startswith("/") else url.partition("#")[0]


def _local(url: str, folder: Path) -> DirectReference:
    parts = urlsplit(url)
    path = Path(unquote(parts.path))
    if parts.netloc not in {"", "localhost"}:
        # `file://name.whl` has `name.whl` as its host; the path is meant.
        path = Path(unquote(f"{parts.netloc}{parts.path}"))
    whole = path if path.is_absolute() else folder / path
    return DirectReference(url=f"file://{quote(str(whole.absolute()))}", path=str(whole))


def _sha256(fragment: str, shown: str) -> str:
    """Return the sha256 in the URL fragment of a direct reference, "" when there is none.

    Raises `DirectReferenceError` when the fragment names a subdirectory, has hashes but no sha256, or has a malformed sha256.
    """
    found = dict(parse_qsl(fragment, keep_blank_values=True))
    if found.get("subdirectory"):
        raise DirectReferenceError(
            f"`{shown}` asks for the subdirectory `{found['subdirectory']}` of an archive, which is not locked",
            hints=("build a wheel of it (`pip wheel --no-deps URL`) and name the wheel",),
        )
    weak = [name for name in _WEAK if name in found]
    if weak and "sha256" not in found:
        raise DirectReferenceError(f"`{shown}` states {weak[0]} only", hints=("state `#sha256=…`, or nothing: it is computed",))
    stated = found.get("sha256", "").lower()
    if "sha256" in found and not re.fullmatch(r"[0-9a-f]{64}", stated):
        raise DirectReferenceError(f"`{shown}` states `{found['sha256']}`, which is not a sha256")
    return stated
