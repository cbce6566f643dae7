"""Translate the licence names of Debian's copyright files into SPDX expressions, where they mean the same.

Source: "Machine-readable debian/copyright file", version 1.0, sections 7.1 "Short name" and 7.2 "Syntax" (debian-policy 4.7),
2026-11-27: names are case-insensitive, a missing version is the lowest, `+` is any later version, versions that end in `.0` are
those without; `and` binds closer than `or` unless a comma stands before it. A name that its list does not have means what its
author says, and is translated only if SPDX has it, too. `MIT`, of which there are many, `BSD` and `public-domain` name no
licence of SPDX, and of `Artistic` and `Perl` it has several.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

_GNU = re.compile(r"(a?gpl|lgpl|gfdl)(-niv)?(?:-([\d.]+))?(\+?)", re.IGNORECASE)
_LOWEST = {"gpl": "1.0", "agpl": "1.0", "lgpl": "2.0", "gfdl": "1.0"}
_VERSIONED = re.compile(r"([a-z][a-z0-9-]*?)-(\d+)(?:\.0)*", re.IGNORECASE)
_SAME = {"expat": "MIT", "python": "Python-2.0"}
_UNCLEAR = frozenset({"mit", "bsd", "public-domain"})


def spdx_licenses(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the licences of a package as one expression, or, where SPDX lacks one of them, each by its expression or name."""
    found = tuple(dict.fromkeys(spdx_expression(name) or name for name in names))
    if all(map(spdx_expression, names)):
        return (_joined(found, "AND"),) if found else ()
    return found


def spdx_expression(name: str) -> str:
    """Return a licence of a copyright file, such as `GPL-2+ or Artistic-2.0`, as an SPDX expression; "" where SPDX lacks it."""
    groups = [
        [[_identifier(one) for one in re.split(r"\s+and\s+", both)] for both in re.split(r",?\s+or\s+", group)]
        for group in re.split(r",\s+and\s+", name.strip())
    ]
    if not all(one for group in groups for both in group for one in both):
        return ""
    return _joined([_joined([_joined(both, "AND") for both in group], "OR") for group in groups], "AND")


def _joined(parts: Sequence[str], word: str) -> str:
    """Return expressions with a word between them; those that have the other word get parentheses."""
    other = " OR " if word == "AND" else " AND "
    return f" {word} ".join(f"({part})" if other in part and len(parts) > 1 else part for part in parts)


def _identifier(name: str) -> str:
    """Return what SPDX calls the licence of one short name; "" if it has none."""
    gnu = _GNU.fullmatch(name)
    if gnu:
        return _known(_of_gnu(*gnu.groups(default="")))
    if name.lower() in _UNCLEAR:
        return ""
    versioned = _VERSIONED.fullmatch(name)
    return _SAME.get(name.lower(), "") or _known(name) or (_known(f"{versioned[1]}-{versioned[2]}.0") if versioned else "")


def _of_gnu(family: str, is_plain: str, version: str, later: str) -> str:
    major, _, minor = (version or _LOWEST[family.lower()]).partition(".")
    invariants = "-no-invariants" if is_plain else ""
    return f"{family.upper()}-{major}.{minor.partition('.')[0] or '0'}{invariants}-{'or-later' if later else 'only'}"


def _known(name: str) -> str:
    """Return the identifier of a licence as SPDX spells it; "" if SPDX has none of that name."""
    if not re.fullmatch(r"[\w.-]+", name):
        return ""
    with suppress(InvalidLicenseExpression):
        return str(canonicalize_license_expression(name))
    return ""
