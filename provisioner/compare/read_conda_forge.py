"""Read conda-forge's `cuda-version` recipe and its global pinning, both templates over YAML, as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.compare.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAJOR = re.compile(r"^\s*- __cuda >=\{\{\s*version\.split\(\"\.\", 1\)\[0\]\s*\}\}")
_ENTRY = re.compile(r"^\s+- \"?([\d.]+|None)\"?\s*(?:#\s*\[(.*)\])?")


def is_conda_forge(text: str) -> bool:
    """Return whether a text is the recipe (it has `__cuda >=`), its list of versions, or a pinning of CUDA compilers."""
    has_versions = re.search(r"^version:\n(\s+- [\d.]+\n)+", text, re.MULTILINE) is not None
    return "__cuda >=" in text or "cuda_compiler_version:" in text or has_versions


def claims(text: str) -> Iterator[Claim]:
    """Yield the claim that any driver for a CUDA major is enough, and claims of the GCC used with each CUDA compiler."""
    for number, line in enumerate(text.splitlines(), start=1):
        if _MAJOR.match(line):
            yield Claim(question="driver-major", subject="cuda", says="the same major is enough", line=number)
    compilers = [version for version, _ in _list(text, "c_compiler_version", only="CF_CUDA_ENABLED")]
    toolkits = _list(text, "cuda_compiler_version", only="CF_CUDA_ENABLED")
    if len(compilers) == 1:
        for version, number in toolkits:
            yield Claim(question="gcc", subject=f"cuda {version}", says=f"accepts {compilers[0]}", line=number)


def _list(text: str, key: str, *, only: str) -> list[tuple[str, int]]:
    """Return the values of the top-level list `key`, each with its line number, from lines whose selector names `only`."""
    found: list[tuple[str, int]] = []
    is_inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line and not line[0].isspace():
            is_inside = line.startswith(f"{key}:")
            continue
        entry = _ENTRY.match(line) if is_inside else None
        if entry and entry[1] != "None" and only in (entry[2] or ""):
            found.append((entry[1], number))
    return found
