"""Core metadata of distributions: the few fields a resolver needs, from text, wheels and source distributions.

Source: PyPA specifications, "Core metadata" and "Binary distribution format", read 2026-11-21.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import IO, TYPE_CHECKING, cast

from msgspec import Struct
from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    NormalizedName,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from provisioner.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import RawIOBase

LARGEST = 16 * 1024 * 1024
"""The largest METADATA file in bytes; a larger one would be made to exhaust memory."""

LARGEST_UNPACKED = 4 * 1024 * 1024 * 1024
"""The most unpacked bytes of a source distribution that are searched for its PKG-INFO."""

LONGEST = 2000
"""The longest requirement in characters, its marker aside; numbers of thousands of digits cannot even be compared."""


class UnusableMetadataError(RefusedError):
    """A distribution's metadata is invalid or cannot be read without a build, so this file cannot be chosen.

    `reason` is the message without the filename, so that messages about several versions can be merged. `is_build_needed` is
    True when a build would give the metadata.
    """

    code = "unusable-metadata"

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        causes: tuple[str, ...] = (),
        hints: tuple[str, ...] = (),
        is_build_needed: bool = False,
    ) -> None:
        super().__init__(message, causes=causes, hints=hints)
        self.reason = reason or message
        self.is_build_needed = is_build_needed


def unusable(
    filename: str, reason: str, *, verb: str = "", causes: tuple[str, ...] = (), hints: tuple[str, ...] = ()
) -> UnusableMetadataError:
    """Return the error about one file; its message is the filename, `verb` (such as "is ") and `reason`."""
    return UnusableMetadataError(f"`{filename}` {verb}{reason}", reason=reason, causes=causes, hints=hints)


class CoreMetadata(Struct, frozen=True, kw_only=True, array_like=True):
    """The core metadata fields of a distribution, spelled as in its METADATA file; an absent field is "" or empty.

    `requires` are the Requires-Dist texts, `dynamic` lower-case field names. `invalid` is the first text of `requires` that
    violates PEP 508, "" when all are valid; a file with an invalid text cannot be chosen. `is_built` is True when a build on
    this machine gave the metadata, which may differ on another machine.
    """

    name: str = ""
    version: str = ""
    metadata_version: str = ""
    requires_python: str = ""
    requires: tuple[str, ...] = ()
    provides_extra: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()
    invalid: str = ""
    is_built: bool = False


def parse_metadata(content: bytes) -> CoreMetadata:
    """Parse the header of a METADATA or PKG-INFO file; fields continued on indented lines are joined (RFC 822).

    A malformed line is skipped. `email`, and so `packaging.metadata.parse_email`, would end the header there and lose the
    requirements below the unindented licence texts of old distributions.
    """
    fields: dict[str, list[str]] = {}
    values: list[str] = []
    for line in content.decode("utf-8", errors="replace").splitlines():
        if not line:
            break
        if line[0] in " \t":
            if values:
                values[-1] = f"{values[-1]} {line.strip()}".strip()
            continue
        key, colon, value = line.partition(":")
        if colon:
            values = fields.setdefault(key.strip().lower(), [])
            values.append(value.strip())
    requires = tuple(fields.get("requires-dist", ()))
    return CoreMetadata(
        name=fields.get("name", [""])[0],
        version=fields.get("version", [""])[0],
        metadata_version=fields.get("metadata-version", [""])[0],
        requires_python=fields.get("requires-python", [""])[0],
        requires=requires,
        provides_extra=tuple(fields.get("provides-extra", ())),
        dynamic=tuple(value.lower() for value in fields.get("dynamic", ())),
        invalid=first_invalid(requires),
    )


def first_invalid(requires: Iterable[str]) -> str:
    """Return the first text that is not a valid requirement (PEP 508), "" when all are valid."""
    for text in requires:
        try:
            parse_requirement(text)
        except UnusableMetadataError:
            return text
    return ""


def require_same_release(filename: str, metadata: CoreMetadata, *, is_direct: bool = False) -> None:
    """Raise `UnusableMetadataError` if a file's metadata names another project or version than its filename.

    pip discards such a file of an index, and uv fails in the middle of an installation. For a direct reference (`is_direct`)
    two mismatches are accepted: a wheel that was renamed to add a local version label (the metadata of
    `flash_attn-2.7+cu12torch2.6-…` has version 2.7), and a source archive, which may be named after its tag. Source: pip 26.3,
    `LinkCandidate`; uv, `uv-install-wheel`; read 2026-11-22.
    """
    is_wheel = filename.endswith(".whl")
    if is_direct and not is_wheel:
        return
    try:
        name, version = parse_wheel_filename(filename)[:2] if is_wheel else _sdist_release(filename, metadata.name)
        own_version = Version(metadata.version) if metadata.version else version
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return
    own_name = canonicalize_name(metadata.name) if metadata.name else name
    is_renamed = is_wheel and own_name == name and str(own_version) == version.public
    if (own_name, own_version) != (name, version) and not (is_direct and is_renamed):
        who = "pip refuses of what an index lists" if is_renamed else "installers refuse"
        raise unusable(
            filename,
            f"says in its metadata that it is {own_name} {own_version}, which {who}",
            hints=("tell its maker: a file must be named after what is in it",),
        )


def _sdist_release(filename: str, own_name: str) -> tuple[NormalizedName, Version]:
    """Return the name and version in a source distribution's filename.

    In old filenames both may contain hyphens; `own_name`, the name in the metadata, shows where the version begins.
    """
    name, version = parse_sdist_filename(filename)
    stem = filename.removesuffix(".zip").removesuffix(".tar.gz")
    for position in (place for place, character in enumerate(stem) if character == "-"):
        if canonicalize_name(stem[:position]) == canonicalize_name(own_name):
            return canonicalize_name(own_name), Version(stem[position + 1 :])
    return name, version


def wheel_metadata(stream: IO[bytes] | RawIOBase, filename: str) -> CoreMetadata:
    """Read the METADATA member of a wheel, reading only the necessary parts of `stream`.

    Raises `UnusableMetadataError` when the archive is damaged or does not have exactly one METADATA file.
    """
    import lzma
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(cast("IO[bytes]", stream)) as archive:
            members = [info for info in archive.infolist() if _is_metadata(info.filename)]
            if len(members) != 1:
                raise unusable(filename, f"has {len(members)} METADATA files where a wheel has one")
            if members[0].file_size > LARGEST:
                raise unusable(filename, f"has a METADATA file of {members[0].file_size} bytes")
            if members[0].compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                # Others are unpacked in one go, to gigabytes if that is what they hold, before their size is looked at.
                raise unusable(filename, "has a METADATA file that is neither stored nor deflated")
            content = archive.read(members[0])
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError) as error:
        raise unusable(filename, f"not a wheel: {error}", verb="is ") from None
    return parse_metadata(content)


def _is_metadata(path: str) -> bool:
    directory, _, name = path.partition("/")
    return name == "METADATA" and directory.endswith(".dist-info")


def sdist_metadata(content: bytes, filename: str) -> CoreMetadata:
    """Return the metadata of a source distribution whose dependencies are static (Metadata-Version 2.2 or later).

    Raises `UnusableMetadataError` when its dependencies are decided by a build, or it has no PKG-INFO. Source: PEP 643.
    """
    metadata = parse_metadata(_package_info(content, filename))
    if not _is_static(metadata):
        reason = (
            "a source distribution whose dependencies are decided when it is built; "
            "policy `allow: [build]` would build it to find out"
        )
        raise UnusableMetadataError(
            f"`{filename}` is {reason}",
            reason=reason,
            causes=(
                f"Metadata-Version {metadata.metadata_version or 'missing'}, Dynamic: {', '.join(metadata.dynamic) or 'none'}",
            ),
            hints=("ask for a version that has a wheel for the target, or build a wheel and name its directory in find-links",),
            is_build_needed=True,
        )
    return metadata


def _is_static(metadata: CoreMetadata) -> bool:
    major, _, minor = metadata.metadata_version.partition(".")
    has_promise = major.isdigit() and minor.isdigit() and (int(major), int(minor)) >= (2, 2)
    return has_promise and "requires-dist" not in metadata.dynamic


def _package_info(content: bytes, filename: str) -> bytes:
    """Return the PKG-INFO of a source distribution; raises `UnusableMetadataError` when the archive is damaged or has none."""
    import lzma
    import tarfile
    import zipfile
    import zlib

    try:
        found = _zip_info(content) if filename.endswith(".zip") else _tar_info(content)
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, zlib.error, lzma.LZMAError, RuntimeError) as error:
        raise unusable(filename, f"not a source distribution: {error}", verb="is ") from None
    if found is None:
        reason = "has no PKG-INFO file"
        raise UnusableMetadataError(f"`{filename}` {reason}", reason=reason, is_build_needed=True)
    return found


def _tar_info(content: bytes) -> bytes | None:
    import tarfile

    with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
        for member in archive:
            if member.offset_data + member.size > LARGEST_UNPACKED:
                raise tarfile.TarError(f"it unpacks to more than {LARGEST_UNPACKED >> 30} GiB")
            if _is_package_info(member.name) and member.isfile():
                stream = archive.extractfile(member)
                return stream.read(LARGEST) if stream is not None else None
    return None


def _zip_info(content: bytes) -> bytes | None:
    import zipfile

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            is_plain = info.compress_type in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
            if _is_package_info(info.filename) and info.file_size <= LARGEST and is_plain:
                return archive.read(info)
    return None


def _is_package_info(path: str) -> bool:
    parts = path.removeprefix("./").split("/")
    return len(parts) == 2 and parts[1] == "PKG-INFO"


@lru_cache(maxsize=65536)
def parse_requirement(text: str) -> Requirement:
    """Parse one requirement, caching the result; raises `UnusableMetadataError`, naming the text, when PEP 508 forbids it."""
    head = text.partition(";")[0]
    if len(head) > LONGEST:
        raise UnusableMetadataError(f"`{head[:40]}…` is {len(head)} characters long; no requirement is")
    try:
        requirement = Requirement(text)
        if requirement.marker is not None:  # `os_name ~= "posix"` is defined nowhere, whatever the target
            requirement.marker.evaluate({"extra": ""})
    except (ValueError, UndefinedEnvironmentName, RecursionError):
        raise UnusableMetadataError(f"`{text[:LONGEST]}` is not a requirement that PEP 508 allows") from None
    return requirement
