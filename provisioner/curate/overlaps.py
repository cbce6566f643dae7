"""Files that several wheels write, each with its own content: what RECORDs say of a chosen set, whatever the matrix knows."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Overlap = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of the wheels, and the paths that they write differently."""

_SCHEMED = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")


def overlaps(records: Mapping[str, str]) -> Iterator[Overlap]:
    """Wheels, by name and RECORD, that write the same paths with different content, and the paths; sorted.

    What wheels share byte for byte is nobody's loss, and what no hash is stated of cannot be told. Metadata and scripts are
    under names of their own. An `__init__.py` at the top of a namespace (`nvidia/__init__.py`) holds a licence or nothing.
    """
    writers: dict[str, dict[str, str]] = {}
    for name, record in records.items():
        for path, content in _written(record):
            writers.setdefault(path, {})[name] = content
    found: dict[tuple[str, ...], list[str]] = {}
    for path, by_name in writers.items():
        if len(set(by_name.values())) > 1:
            found.setdefault(tuple(sorted(by_name)), []).append(path)
    yield from ((names, tuple(sorted(found[names]))) for names in sorted(found))


def _written(record: str) -> Iterator[tuple[str, str]]:
    for row in csv.reader(record.splitlines()):
        if len(row) < 2 or not row[1]:
            continue
        path = _SCHEMED.sub("", row[0], count=1) if _SCHEMED.match(row[0]) else row[0]
        folder, _, name = path.partition("/")
        if folder.endswith((".dist-info", ".data")) or name == "__init__.py":
            continue
        yield path, row[1]
