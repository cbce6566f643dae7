"""Parsing of the filenames of wheels and source distributions; pure.

Source: PyPA specifications, "Binary distribution format" and "Source distribution format", read 2026-11-21.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct
from packaging.utils import canonicalize_name
from packaging.version import Version

_BUILD = re.compile(r"(\d{1,100})(?!\d)([\w.+]*)")
_LABEL = re.compile(r"[0-9a-z_.]{1,16}")
_PLATFORM = re.compile(r"any|win32|\w+_[\w.]+")
_SDIST_ENDINGS = (".tar.gz", ".zip")


class Filename(Struct, frozen=True):
    """The parsed parts of a filename; `tag` is "" for a source distribution, `build` is the build number of a wheel."""

    version: Version
    tag: str = ""
    build: tuple[int, str] = (0, "")


def parse_filename(filename: str, name: str) -> Filename | None:
    """Parse the filename of a distribution of the project `name` (normalized).

    None when installers would ignore the file: another project, an invalid version or tag, another kind of file, or a wheel
    variant.
    """
    parts = split_filename(filename, name)
    version = parsed_version(parts[0]) if parts is not None else None
    if parts is None or version is None or is_variant(parts[1]):
        return None
    return Filename(version, parts[1], build_number(parts[2]))


def split_filename(filename: str, name: str) -> tuple[str, str, str] | None:
    """Return the texts of version, tag and build number in a filename; None for a file that is not of the project `name`.

    A variant wheel (draft PEP 825) is split too; its tag ends in the label: `cp312-cp312-linux_x86_64-x86_64_v3`. The version
    of a wheel is not validated: a page lists many files of few versions, so the caller parses each text once.
    """
    if filename.endswith(".whl"):
        parts = filename[:-4].split("-", 2)
        # Nearly every file of nearly every page is such a wheel, so it is not taken apart any further.
        if len(parts) == 3 and parts[2].count("-") == 2:
            is_own = parts[0] == name or _normalized(parts[0]) == name
            return (parts[1], parts[2], "") if is_own and _names_interpreters(parts[2]) else None
        return _wheel(filename[:-4].split("-"), name)
    for ending in _SDIST_ENDINGS:
        if filename.endswith(ending):
            version = _sdist_version(filename.removesuffix(ending), name)
            return None if version is None else (version, "", "")
    return None


def _names_interpreters(tag: str) -> bool:
    """Return whether each interpreter in a tag is a name; `py3.10-none-any` is for `py3` and for `10`, which pip refuses."""
    interpreters = tag.partition("-")[0]
    return "." not in interpreters or all(map(str.isidentifier, interpreters.split(".")))


def _wheel(parts: list[str], name: str) -> tuple[str, str, str] | None:
    """Return version, tag and build number of a wheel with a build number or variant label; None if not of project `name`.

    `parts` are the parts of the filename between its hyphens.
    """
    if len(parts) in {6, 7} and _has_label(parts) and _normalized(parts[0]) == name:
        return parts[1], "-".join(parts[-4:]), parts[2] if len(parts) == 7 else ""
    if len(parts) != 6 or _normalized(parts[0]) != name or _BUILD.fullmatch(parts[2]) is None:
        return None
    return parts[1], f"{parts[3]}-{parts[4]}-{parts[5]}", parts[2]


def _has_label(parts: list[str]) -> bool:
    """Return whether a wheel name of six or seven parts ends in a variant label, with a platform tag before it.

    Source: draft PEP 825, "Variant label", read 2026-11-21.
    """
    has_build = _BUILD.fullmatch(parts[2]) is not None
    return has_build == (len(parts) == 7) and bool(_LABEL.fullmatch(parts[-1]) and _PLATFORM.fullmatch(parts[-2]))


def is_variant(tag: str) -> bool:
    """Return whether a tag has a variant label (`cp312-cp312-linux_x86_64-x86_64_v3`); no environment accepts such a tag."""
    return tag.count("-") == 3


def build_number(text: str) -> tuple[int, str]:
    """Return the sort key of a wheel's build tag: its leading number and the rest; (0, "") for no build tag."""
    number = _BUILD.fullmatch(text)
    return (0, "") if number is None else (int(number[1]), number[2])


def _sdist_version(stem: str, name: str) -> str | None:
    # Names and versions of old source distributions may both hold hyphens; the project's own name settles it.
    for position, character in enumerate(stem):
        if character == "-" and _normalized(stem[:position]) == name:
            version = stem[position + 1 :]
            if parsed_version(version) is not None:
                return version
    return None


@lru_cache(maxsize=4096)
def _normalized(name: str) -> str:
    return canonicalize_name(name)


@lru_cache(maxsize=65536)
def parsed_version(text: str) -> Version | None:
    """Return the PEP 440 version of a text; None when it is invalid or has surrounding white space."""
    try:
        return Version(text) if text == text.strip() else None
    except ValueError:  # `InvalidVersion`, or digits by the thousand, which Python refuses to read as a number
        return None
