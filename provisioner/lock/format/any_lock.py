"""Any lock file of PEP 751, whoever wrote it: its packages, and whether it is one of ours, which says far more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from provisioner.errors import InvalidDocumentError
from provisioner.lock.format.artifact import name_in
from provisioner.lock.format.file import KIND, parse_lock, require_standard
from provisioner.lock.format.model import LockedFile, LockedPackage
from provisioner.toml_document import parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.lock.format.model import Lock

_EVERYWHERE = ("any",)


def parse_any_lock(text: str, *, file: str) -> Lock | tuple[LockedPackage, ...]:
    """A lock of ours, or the packages of another program's; raises `InvalidDocumentError` with every mistake of the file."""
    document = parse_toml(text, file=file, kind=KIND)
    tool = document.data.get("tool")
    if isinstance(tool, dict) and "provision" in tool:
        return parse_lock(text, file=file)
    if "lock-version" not in document.data:
        mistake = document.mistake((), "there is no `lock-version`, so this is not a lock file of PEP 751")
        raise InvalidDocumentError(KIND, (mistake,), hints=("`provision solve`, `pip lock` and `uv export` write such files",))
    require_standard(document)
    return tuple(_package(table) for table in document.data["packages"])


def _package(table: Mapping[str, Any]) -> LockedPackage:
    """A package as the standard has it; one from a checkout or folder has its address for a file."""
    sdist, archive = table.get("sdist"), table.get("archive")
    return LockedPackage(
        name=canonicalize_name(table["name"]),
        version=table.get("version", ""),
        platforms=_EVERYWHERE,
        marker=table.get("marker", ""),
        requires_python=table.get("requires-python", ""),
        index=table.get("index", ""),
        wheels=tuple(_file(wheel) for wheel in (*table.get("wheels", ()), *_elsewhere(table))),
        sdist=_file(sdist) if sdist else None,
        archive=_file(archive) if archive else None,
        variants=_variants(table.get("variants-json")),
        attestations=table.get("attestation-identities", ()),
        dependencies=tuple(
            dict.fromkeys(canonicalize_name(one["name"]) for one in table.get("dependencies", ()) if "name" in one)
        ),
    )


def _variants(table: object) -> LockedFile | None:
    """The list of variants of draft PEP 825, which the standard does not know and so does not check."""
    if not isinstance(table, dict):
        return None
    hashes = table.get("hashes")
    texts = [table.get("url", ""), table.get("path", ""), *(hashes.values() if isinstance(hashes, dict) else ())]
    return _file(table) if hashes and all(isinstance(text, str) for text in texts) and len(texts) > 2 else None


def _elsewhere(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A checkout or folder as a file: what names it, and what tells its content apart."""
    found = []
    for kind in ("vcs", "directory"):
        source = table.get(kind)
        if source:
            place = source.get("url") or source.get("path") or ""
            hashes = source.get("hashes") or {"commit": source.get("commit-id", "")}
            found.append({"name": place, "url": source.get("url", ""), "path": source.get("path"), "hashes": hashes})
    return found


def _file(table: Mapping[str, Any]) -> LockedFile:
    """A file by its name, else by the last part of where it is; its strongest known hash stands for its content."""
    hashes = table["hashes"]
    algorithm = "sha256" if "sha256" in hashes else min(hashes)
    return LockedFile(
        filename=table.get("name") or name_in(table.get("url") or "", (table.get("path") or "").replace("\\", "/")),
        sha256=hashes[algorithm] if algorithm == "sha256" else f"{algorithm}:{hashes[algorithm]}",
        url=table.get("url") or "",
        path=table.get("path") or "",
        size=table.get("size"),
        upload_time=table.get("upload-time"),
    )
