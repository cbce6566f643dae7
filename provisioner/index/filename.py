"""Filenames of distributions: what a wheel or source distribution says of itself; pure.

Source: PyPA specifications, "Binary distribution format" and "Source distribution format", read 2026-11-21.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from packaging.utils import canonicalize_name
from packaging.version import Version

_BUILD = re.compile(r"(\d{1,100})(?!\d)(.*)")
_SDIST_ENDINGS = (".tar.gz", ".zip")


@dataclass(frozen=True, slots=True)
class Filename:
    """A filename taken apart. `tag` is "" for a source distribution; `build` orders wheels of equal tags."""

    version: Version
    tag: str = ""
    build: tuple[int, str] = (0, "")


def parse_filename(filename: str, name: str) -> Filename | None:
    """Take a file of the project `name` (normalized) apart; None for anything installers would not take for it."""
    if filename.endswith(".whl"):
        return _wheel(filename.removesuffix(".whl"), name)
    for ending in _SDIST_ENDINGS:
        if filename.endswith(ending):
            return _sdist(filename.removesuffix(ending), name)
    return None


def _wheel(stem: str, name: str) -> Filename | None:
    parts = stem.split("-")
    if len(parts) not in {5, 6} or _normalized(parts[0]) != name:
        return None
    version = parsed_version(parts[1])
    build = (0, "")
    if len(parts) == 6:
        number = _BUILD.fullmatch(parts[2])
        if number is None:
            return None
        build = (int(number[1]), number[2])
    return None if version is None else Filename(version, "-".join(parts[-3:]), build)


def _sdist(stem: str, name: str) -> Filename | None:
    # Names and versions of old source distributions may both hold hyphens; the project's own name settles it.
    for position, character in enumerate(stem):
        if character == "-" and _normalized(stem[:position]) == name:
            version = parsed_version(stem[position + 1 :])
            if version is not None:
                return Filename(version)
    return None


@lru_cache(maxsize=4096)
def _normalized(name: str) -> str:
    return canonicalize_name(name)


@lru_cache(maxsize=65536)
def parsed_version(text: str) -> Version | None:
    """The PEP 440 version a text spells; None when it spells none."""
    try:
        return Version(text)
    except ValueError:  # `InvalidVersion`, or digits by the thousand, which Python refuses to read as a number
        return None
