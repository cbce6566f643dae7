"""What a tool answered: each distribution and its version, from whatever file the tool writes."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from packaging.markers import Marker
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)

_TARGET = {
    "implementation_name": "cpython", "implementation_version": "3.11.0", "os_name": "posix", "platform_machine": "x86_64",
    "platform_python_implementation": "CPython", "platform_release": "", "platform_system": "Linux", "platform_version": "",
    "python_full_version": "3.11.0", "python_version": "3.11", "sys_platform": "linux", "extra": "",
}  # fmt: skip


def answered(path: Path) -> dict[str, str] | None:
    """The versions a tool chose for the target, by normalized name; None where it left no answer."""
    if not path.is_file():
        return None
    return {
        canonicalize_name(name): _plain(version) for name, version in _READERS[path.suffix](path.read_text(encoding="utf-8"))
    }


def _plain(version: str) -> str:
    """One spelling, without the label of the build: that `2.6.0` is `2.6.0+cu124` is for the index to say."""
    try:
        return Version(version).public
    except InvalidVersion:
        return version


def _requirements(text: str) -> Iterator[tuple[str, str]]:
    yield from _PINNED.findall(text)


def _report(text: str) -> Iterator[tuple[str, str]]:
    """The installation report of pip."""
    for item in json.loads(text)["install"]:
        yield item["metadata"]["name"], item["metadata"]["version"]


def _locked(text: str) -> Iterator[tuple[str, str]]:
    """`packages` of PEP 751, `package` of PDM and Poetry; those whose marker is not for the target are left out."""
    document = tomllib.loads(text)
    for package in document.get("packages", document.get("package", ())):
        if _holds(package):
            yield package["name"], package["version"]


def _holds(package: dict[str, Any]) -> bool:
    marker = package.get("marker") or package.get("markers") or ""
    texts = marker.values() if isinstance(marker, dict) else [marker]  # Poetry: one a group, where they differ
    return any(not text or Marker(text).evaluate(_TARGET) for text in texts)


_READERS = {".txt": _requirements, ".json": _report, ".toml": _locked, ".lock": _locked}
