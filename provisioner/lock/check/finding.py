"""What a check says of a lock, one thing at a time."""

from __future__ import annotations

from msgspec import Struct


class Finding(Struct, frozen=True, kw_only=True):
    """One thing a check found. `verdict` is `no` or `unverified`; `where` is the file (and line) it is about."""

    code: str
    verdict: str
    text: str
    where: str
    details: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
