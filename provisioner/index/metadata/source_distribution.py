"""Reading of what a source distribution states of its requirements, from as few bytes of its archive as possible.

Requirements are static in a PKG-INFO of Metadata-Version 2.2 or later that does not name them as dynamic (PEP 643), and in the
`[project]` table of a pyproject.toml that does not (PEP 621). Everything else is decided by a build. uv reads the same two
files, `StaticMetadata::read` in `crates/uv-distribution/src/source/mod.rs`, but downloads the whole archive first (read
2026-11-23).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

from msgspec.structs import replace
from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner import toml_document
from provisioner.index.metadata.core_metadata import (
    LARGEST_METADATA,
    CoreMetadata,
    UnusableMetadataError,
    first_invalid,
    parse_metadata,
    unusable,
)
from provisioner.index.metadata.download import LARGEST_SEARCHED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from io import RawIOBase
    from pathlib import Path

    from provisioner.index.model import IndexFile

LARGEST_UNPACKED = 4 * 1024 * 1024 * 1024
"""The most unpacked bytes of a source distribution that are searched for its PKG-INFO."""

BEYOND = 1024 * 1024
"""The most unpacked bytes behind a PKG-INFO without static requirements that are searched for a pyproject.toml."""

FIRST_STATIC = "2020-06-22"
"""The day on which PEP 621 was published, the older one of the two that define static requirements (PEP 643: 2020-10-24).

No file uploaded before it can have any.
"""


def source_metadata(stream: IO[bytes] | RawIOBase, filename: str) -> CoreMetadata:
    """Return what a source distribution states of itself, static or not; an empty `CoreMetadata` when it states nothing.

    `stream` needs to be seekable for a zip file only. It is read up to the file that tells. Raises `UnusableMetadataError` when
    the archive is damaged.
    """
    with _damage_told(filename):
        return _first_static(_texts(stream, filename))


def build_requirements(path: Path) -> tuple[str, ...]:
    """Return what the build of a source distribution requires: `[build-system]` of its pyproject.toml, or PEP 517's default.

    Raises `UnusableMetadataError` when the archive is damaged.
    """
    with path.open("rb") as stream, _damage_told(path.name):
        texts = _texts(stream, path.name, beyond=LARGEST_UNPACKED)
        project = next((content for name, content in texts if name == "pyproject.toml"), b"")
    try:
        requires = toml_document.loads(project.decode())["build-system"]["requires"]
        return tuple(str(Requirement(text)) for text in requires)
    except (ValueError, KeyError, TypeError, RecursionError):  # no such table
        return ("setuptools>=40.8.0", "wheel")


@contextmanager
def _damage_told(filename: str) -> Iterator[None]:
    import lzma
    import tarfile
    import zipfile
    import zlib

    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, zlib.error, lzma.LZMAError, RuntimeError) as error:
        raise unusable(filename, f"not a source distribution: {error}", verb="is ") from None


def require_static(metadata: CoreMetadata, filename: str, *, uploaded: str | None = None) -> CoreMetadata:
    """Return the metadata of a source distribution if it states its requirements, otherwise raise `UnusableMetadataError`.

    Requirements that a PKG-INFO of Metadata-Version 2.2 or later lists and calls dynamic are returned as packed: usually a
    setup.py lists them, and a build finds the same. uv 0.13.9 takes them without a word, because it compares the name of the
    field with `Requires-Dist` and setuptools writes `requires-dist`. The error has `is_build_needed` set. `uploaded` is the
    upload time of a file for which `is_too_old` holds, otherwise None.
    """
    if is_static(metadata):
        return metadata
    if _has_promise(metadata) and metadata.requires:
        return replace(metadata, is_packed=True)
    if not (metadata.name or uploaded):
        reason = f"has no PKG-INFO file in its first {LARGEST_SEARCHED >> 20} MiB"
        raise UnusableMetadataError(f"`{filename}` {reason}", reason=reason, is_build_needed=True)
    reason = (
        "a source distribution whose dependencies are decided when it is built; "
        "policy `allow: [build]` would build it to find out"
    )
    stated = f"Metadata-Version {metadata.metadata_version or 'missing'}, Dynamic: {', '.join(metadata.dynamic) or 'none'}"
    raise UnusableMetadataError(
        f"`{filename}` is {reason}",
        reason=reason,
        causes=(f"uploaded {uploaded[:10]}, before any could state them (PEP 643)" if uploaded else stated,),
        hints=("ask for a version that has a wheel for the target, or build a wheel and name its directory in find-links",),
        is_build_needed=True,
    )


def is_too_old(file: IndexFile) -> bool:
    """Return whether a source distribution was uploaded before `FIRST_STATIC`, so that a build decides its requirements."""
    return file.upload_time is not None and file.upload_time < FIRST_STATIC


def is_static(metadata: CoreMetadata) -> bool:
    """Return whether the requirements in the metadata of a source distribution are those of every wheel built from it."""
    return _has_promise(metadata) and not {"requires-dist", "provides-extra"} & {*metadata.dynamic}


def _has_promise(metadata: CoreMetadata) -> bool:
    """Return whether the version of the metadata is one that tells which fields a build may change."""
    major, _, minor = metadata.metadata_version.partition(".")
    return major.isdigit() and minor.isdigit() and (int(major), int(minor)) >= (2, 2)


def _first_static(texts: Iterable[tuple[str, bytes]]) -> CoreMetadata:
    """Return the first static metadata among the PKG-INFO and pyproject.toml in `texts`, otherwise that of the PKG-INFO.

    A pyproject.toml that leaves the version to the build has that of the PKG-INFO.
    """
    stated, project = CoreMetadata(), None
    for name, content in texts:
        if name == "PKG-INFO":
            stated = parse_metadata(content)
        else:
            project = _project_metadata(content)
        if is_static(stated):
            return stated
        if project is not None and (project.version or stated.version):
            return project
    return stated


def _project_metadata(content: bytes) -> CoreMetadata | None:
    """Return the metadata of the `[project]` table of a pyproject.toml; None when it leaves requirements to the build.

    A table without `dependencies` beside Poetry's own is not taken at its word, as in uv (`parse_pyproject_toml` in
    `crates/uv-pypi-types/src/metadata/metadata_resolver.rs`): the author forgot to list them there.
    """
    try:
        document = toml_document.loads(content.decode())
        project: Mapping[str, Any] = document["project"]
        if {"dependencies", "optional-dependencies", "requires-python"} & {*project.get("dynamic", ())}:
            return None
        if "dependencies" not in project and "poetry" in document.get("tool", {}):
            return None
        extras: Mapping[str, list[str]] = project.get("optional-dependencies", {})
        requires = (
            *map(str, project.get("dependencies", ())),
            *(_with_extra(text, extra) for extra, texts in extras.items() for text in texts),
        )
        return CoreMetadata(
            name=str(project["name"]),
            version=str(project.get("version", "")),
            metadata_version="2.2",
            requires_python=str(project.get("requires-python", "")),
            requires=requires,
            provides_extra=tuple(extras),
            invalid=first_invalid(requires),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # not TOML, or not PEP 621
        return None


def _with_extra(text: str, extra: str) -> str:
    """Return a requirement as the core metadata spells it, if it is needed only with an extra."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return text
    condition = f'extra == "{canonicalize_name(extra)}"'
    requirement.marker = Marker(f"({requirement.marker}) and {condition}" if requirement.marker else condition)
    return str(requirement)


def _texts(stream: IO[bytes] | RawIOBase, filename: str, *, beyond: int = BEYOND) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of the PKG-INFO and pyproject.toml of a source distribution.

    In a tar archive what is behind the PKG-INFO is looked for in `beyond` bytes: it may have gigabytes, and no pyproject.toml.
    """
    return _zip_texts(stream) if filename.endswith(".zip") else _tar_texts(stream, beyond)


def _tar_texts(stream: IO[bytes] | RawIOBase, beyond: int) -> Iterator[tuple[str, bytes]]:
    import tarfile

    limit = LARGEST_UNPACKED
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|*") as archive:
        for member in archive:
            if member.offset_data + member.size > limit:
                if limit < LARGEST_UNPACKED:
                    return
                raise tarfile.TarError(f"it unpacks to more than {LARGEST_UNPACKED >> 30} GiB")
            name = _telling(member.name)
            if name and member.isfile():
                content = archive.extractfile(member)
                yield name, content.read(LARGEST_METADATA) if content is not None else b""
            if name == "PKG-INFO":
                limit = min(limit, member.offset_data + member.size + beyond)


def _zip_texts(stream: IO[bytes] | RawIOBase) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of the PKG-INFO and pyproject.toml of a zip file, the PKG-INFO first."""
    import zipfile

    with zipfile.ZipFile(cast("IO[bytes]", stream)) as archive:
        for info in sorted(archive.infolist(), key=lambda one: _telling(one.filename)):
            name = _telling(info.filename)
            if name and info.compress_type in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} and info.file_size <= LARGEST_METADATA:
                yield name, archive.read(info)


def _telling(path: str) -> str:
    """Return `PKG-INFO` or `pyproject.toml` if a member of an archive is that file of the distribution, otherwise ""."""
    parts = path.removeprefix("./").split("/")
    return parts[1] if len(parts) == 2 and parts[1] in {"PKG-INFO", "pyproject.toml"} else ""
