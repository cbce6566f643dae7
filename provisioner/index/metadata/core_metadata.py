"""Core metadata of distributions: the few fields a resolver needs, from text and from wheels.

Source: PyPA specifications, "Core metadata" and "Binary distribution format", read 2026-11-21.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import IO, TYPE_CHECKING, cast

from msgspec import Struct
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
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
    from collections.abc import Iterable, Mapping, Sequence
    from io import RawIOBase

LARGEST_METADATA = 16 * 1024 * 1024
"""The largest METADATA file in bytes; a larger one would be made to exhaust memory."""

LONGEST = 2000
"""The longest requirement in characters, its marker aside; numbers of thousands of digits cannot even be compared."""

_LONGEST_NAME = 120
"""The most characters of a licence's name or expression; more is the text of a licence."""

_GROUPS = {"License", "OSI Approved"}
"""The ends of classifiers that name a group of licences and none of them."""

_NO_LICENSE = {"unknown", "none", "n/a"}


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
    this machine gave the metadata, which may differ on another machine. `is_packed` is True for a source distribution that
    leaves its requirements to a build: `requires` are those that it was packed with. `licenses` are what `declared_licenses`
    makes of its fields.
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
    is_packed: bool = False
    licenses: tuple[str, ...] = ()


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
        licenses=declared_licenses(fields),
    )


def declared_licenses(fields: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the licences that metadata fields declare: one SPDX expression, or names as they are written; empty if none is.

    An expression in `License-Expression` comes first, then one in `License`, then the names of classifiers, then a `License`
    of one line, as many old distributions have their whole licence text there. Source: PyPA specifications, "Core metadata",
    License-Expression, License, Classifier, 2026-11-23.
    """
    (text, *_) = (*fields.get("license-expression", ()), *fields.get("license", ()), "")
    is_short = 0 < len(text) <= _LONGEST_NAME
    with suppress(InvalidLicenseExpression):
        if is_short:
            return (canonicalize_license_expression(text),)
    classified = (one.split(" :: ") for one in fields.get("classifier", ()))
    names = {words[-1] for words in classified if words[0] == "License" and words[-1] not in _GROUPS}
    return tuple(sorted(names)) or ((text,) if is_short and text.lower() not in _NO_LICENSE else ())


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


def sdist_project(filename: str) -> str:
    """Return the normalized name of the project in the filename of a source distribution."""
    try:
        return parse_sdist_filename(filename)[0]
    except (InvalidSdistFilename, InvalidVersion):
        return canonicalize_name(filename.rpartition("-")[0])


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
            if members[0].file_size > LARGEST_METADATA:
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
