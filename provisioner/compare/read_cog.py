"""Read cog's compatibility tables: `pkg/config/*_compatibility.json` of replicate/cog."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from provisioner.compare.claims import Claim
from provisioner.versions import numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS = ({"Torch", "CUDA", "Pythons"}, {"Tag", "CUDA", "CuDNN"}, {"TF", "CUDA", "CuDNN"})
"""For each of cog's tables (PyTorch builds, image tags, TensorFlow releases), the keys that every row has."""


def is_cog(text: str) -> bool:
    """Return whether a text is one of cog's three tables: a JSON list of objects, each with the keys of one of `KEYS`."""
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(rows, list)
        and bool(rows)
        and all(isinstance(row, dict) and any(keys <= row.keys() for keys in KEYS) for row in rows)
    )


def claims(text: str) -> Iterator[Claim]:
    """Yield the claims of each row about a PyTorch build, a TensorFlow release, or an image tag."""
    lines, rows = text.splitlines(), json.loads(text)
    listed = sorted((python for row in rows for python in row.get("Pythons", ())), key=numbers_of)
    scope = f">={listed[0]}" if listed else ""
    cursor = 0
    for row in rows:
        mark = json.dumps(next(row[key] for key in ("Torch", "Tag", "TF") if key in row))
        cursor = next((at for at in range(cursor, len(lines)) if mark in lines[at]), cursor)
        yield from _row(row, cursor + 1, scope)


def _row(row: dict[str, Any], line: int, scope: str) -> Iterator[Claim]:
    if "Tag" in row:
        says = f"cuda {row['CUDA']}, cudnn {row['CuDNN']}"
        yield Claim(question="image", subject=f"nvidia/cuda:{row['Tag']}", says=says, line=line)
    elif "TF" in row:
        subject = f"tensorflow {row['TF']}"
        if row["CUDA"]:
            says = f"cuda {row['CUDA']}, cudnn {row['CuDNN']}"
            yield Claim(question="tensorflow-cuda", subject=subject, says=says, line=line)
        yield Claim(question="tensorflow-python", subject=subject, says=_pythons(row), scope=scope, line=line)
    else:
        version, _, build = row["Torch"].partition("+")
        subject = f"pytorch {version}+{build}" if build else f"pytorch {version}"
        if row["CUDA"]:
            yield Claim(question="pytorch-cuda", subject=subject, says=f"cuda {row['CUDA']}", line=line)
        yield Claim(question="pytorch-python", subject=subject, says=_pythons(row), scope=scope, line=line)


def _pythons(row: dict[str, Any]) -> str:
    return " ".join(sorted(row["Pythons"], key=numbers_of))
