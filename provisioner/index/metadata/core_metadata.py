"""Core metadata of distributions: the few fields a resolver needs, from text, wheels and source distributions.

Source: PyPA specifications, "Core metadata" and "Binary distribution format", read 2026-11-21.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, cast

from msgspec import Struct
from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
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
from provisioner.index.metadata.requirement_text import ExtraMarker, read_marker, read_requirement

if TYPE_CHECKING:
    from io import RawIOBase

LARGEST = 16 * 1024 * 1024
"""Bytes. No real METADATA comes near it; more would be an archive built to exhaust memory."""

LARGEST_UNPACKED = 4 * 1024 * 1024 * 1024
"""Bytes of a source distribution, as far as it is gone through for its PKG-INFO."""

LONGEST = 2000
"""Characters of a name, its extras and its versions. Numbers of thousands of digits cannot even be compared."""


class UnusableMetadataError(RefusedError):
    """A distribution's metadata cannot be read without building it, or not at all: this file cannot be chosen."""

    code = "unusable-metadata"

    def __init__(
        self, message: str, *, causes: tuple[str, ...] = (), hints: tuple[str, ...] = (), is_build_needed: bool = False
    ) -> None:
        super().__init__(message, causes=causes, hints=hints)
        self.is_build_needed = is_build_needed


class CoreMetadata(Struct, frozen=True, kw_only=True):
    """What one distribution says of itself, as it spells it. `dynamic` are lower-case field names.

    `is_built`: a build on this machine said so, and on another machine it may say something else.
    """

    name: str = ""
    version: str = ""
    metadata_version: str = ""
    requires_python: str = ""
    requires: tuple[str, ...] = ()
    provides_extra: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()
    is_built: bool = False

    def record(self) -> list[Any]:
        """What a cache keeps: plain lists and texts."""
        return [self.name, self.version, self.requires_python, list(self.requires), int(self.is_built)]

    @classmethod
    def of_record(cls, record: object) -> CoreMetadata | None:
        """The metadata of a record; None for anything that `record` does not give."""
        if not (isinstance(record, list) and len(record) == 5 and isinstance(record[3], list)):
            return None
        name, version, requires_python, requires, is_built = record
        if not all(isinstance(text, str) for text in (name, version, requires_python, *requires)):
            return None
        return cls(
            name=name, version=version, requires_python=requires_python, requires=tuple(requires), is_built=bool(is_built)
        )


def parse_metadata(content: bytes) -> CoreMetadata:
    """Read the header of a METADATA or PKG-INFO file; the description below it is not looked at.

    A field that is continued on indented lines is joined, as RFC 822 has it.
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
    return CoreMetadata(
        name=_first(fields, "name"),
        version=_first(fields, "version"),
        metadata_version=_first(fields, "metadata-version"),
        requires_python=_first(fields, "requires-python"),
        requires=tuple(fields.get("requires-dist", ())),
        provides_extra=tuple(fields.get("provides-extra", ())),
        dynamic=tuple(value.lower() for value in fields.get("dynamic", ())),
    )


def _first(fields: dict[str, list[str]], key: str) -> str:
    return fields.get(key, [""])[0]


def require_same_release(filename: str, metadata: CoreMetadata, *, is_named: bool = False) -> None:
    """Raise `UnusableMetadataError` for a file that says it is another project or version than its name does.

    pip discards such a candidate of an index, and uv fails while it installs, when half of the environment is there already.
    Of a file that a requirement names itself (`is_named`) more is taken: a wheel that was renamed after its build
    (`flash_attn-2.7+cu12torch2.6-…` says that it is 2.7), and a source archive, which may be called after its tag.
    Source: pip 26.3, `LinkCandidate`; uv, `uv-install-wheel`; read 2026-11-22.
    """
    is_wheel = filename.endswith(".whl")
    if is_named and not is_wheel:
        return
    try:
        name, version = parse_wheel_filename(filename)[:2] if is_wheel else _of_source_name(filename, metadata.name)
        own_version = Version(metadata.version) if metadata.version else version
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return
    own_name = canonicalize_name(metadata.name) if metadata.name else name
    is_renamed = is_wheel and own_name == name and str(own_version) == version.public
    if (own_name, own_version) != (name, version) and not (is_named and is_renamed):
        who = "pip refuses of what an index lists" if is_renamed else "installers refuse"
        raise UnusableMetadataError(
            f"`{filename}` says in its metadata that it is {own_name} {own_version}, which {who}",
            hints=("tell its maker: a file must be named after what is in it",),
        )


def _of_source_name(filename: str, own_name: str) -> tuple[NormalizedName, Version]:
    """Name and version of a source distribution. Old ones have hyphens in both: then where its own name ends settles it."""
    name, version = parse_sdist_filename(filename)
    stem = filename.removesuffix(".zip").removesuffix(".tar.gz")
    for position in (place for place, character in enumerate(stem) if character == "-"):
        if canonicalize_name(stem[:position]) == canonicalize_name(own_name):
            return canonicalize_name(own_name), Version(stem[position + 1 :])
    return name, version


def wheel_metadata(stream: IO[bytes] | RawIOBase, filename: str) -> bytes:
    """The METADATA member of a wheel; only the parts of `stream` that are needed are read.

    Raises `UnusableMetadataError` for an archive that is damaged or has none.
    """
    import lzma
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(cast("IO[bytes]", stream)) as archive:
            members = [info for info in archive.infolist() if _is_metadata(info.filename)]
            if len(members) != 1:
                raise UnusableMetadataError(f"`{filename}` has {len(members)} METADATA files where a wheel has one")
            if members[0].file_size > LARGEST:
                raise UnusableMetadataError(f"`{filename}` has a METADATA file of {members[0].file_size} bytes")
            if members[0].compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                # Others are unpacked in one go, to gigabytes if that is what they hold, before their size is looked at.
                raise UnusableMetadataError(f"`{filename}` has a METADATA file that is neither stored nor deflated")
            return archive.read(members[0])
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError) as error:
        raise UnusableMetadataError(f"`{filename}` is not a wheel: {error}") from None


def _is_metadata(path: str) -> bool:
    directory, _, name = path.partition("/")
    return name == "METADATA" and directory.endswith(".dist-info")


def sdist_requires(content: bytes, filename: str) -> CoreMetadata:
    """The metadata of a source distribution whose dependencies are fixed before it is built.

    Raises `UnusableMetadataError` for any other: nothing is ever built here to find out. Source: PEP 643.
    """
    metadata = parse_metadata(_package_info(content, filename))
    if not _is_static(metadata):
        raise UnusableMetadataError(
            f"`{filename}` is a source distribution whose dependencies are decided when it is built; "
            "policy `allow: [build]` would build it to find out",
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
    import lzma
    import tarfile
    import zipfile
    import zlib

    try:
        found = _zip_info(content) if filename.endswith(".zip") else _tar_info(content)
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, zlib.error, lzma.LZMAError, RuntimeError) as error:
        raise UnusableMetadataError(f"`{filename}` is not a source distribution: {error}") from None
    if found is None:
        raise UnusableMetadataError(f"`{filename}` has no PKG-INFO file", is_build_needed=True)
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
def parsed_requirement(text: str) -> Requirement:
    """One Requires-Dist, parsed once per process; raises `UnusableMetadataError` naming the text.

    Markers repeat (`extra == "dev"` forty times in one project) and take most of the time, so each is parsed once.
    """
    head, _, tail = text.partition(";")
    if len(head) > LONGEST:
        raise UnusableMetadataError(f"`{head[:40]}…` is {len(head)} characters long; no requirement is")
    try:
        if not tail or "@" in head:
            return read_requirement(text)
        requirement = read_requirement(head)
        requirement.marker = _marker(tail.strip())
    except (InvalidRequirement, InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, RecursionError):
        raise UnusableMetadataError(f"`{text[:LONGEST]}` is not a requirement that PEP 508 allows") from None
    return requirement


@lru_cache(maxsize=16384)
def _marker(text: str) -> Marker:
    marker = read_marker(text)
    if not isinstance(marker, ExtraMarker):  # `os_name ~= "posix"` is defined nowhere, whatever the target
        marker.evaluate({"extra": ""})
    return marker
