"""What is kept of each hard problem: what the tools said, and what it cost."""

from __future__ import annotations

import msgspec
from second_opinion import Opinion  # noqa: TC002 - msgspec evaluates the annotations of models


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool said: `status` is `answer`, `no`, `out of reach`, `late` or `error`.

    The Python is that of the answer; of a refusal that of the first hint that names one, where there is such a hint.
    """

    status: str
    packages: dict[str, str] = {}
    python: str = ""
    words: str = ""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What the index sent to an empty cache: answers by kind, and the bytes of all of them, uncompressed."""

    pages: int
    metadata: int
    files: int
    size: int


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Wall and processor seconds, and the peak memory in MiB."""

    wall: float
    processor: float
    peak: float


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One problem: `digest` of the request, `port` of its index; the warm costs are absent until they are measured."""

    digest: str
    port: int = 8931
    ours: Outcome
    theirs: Outcome
    ours_counted: Counted
    theirs_counted: Counted
    ours_cold: Cost
    theirs_cold: Cost
    ours_warm: Cost | None = None
    theirs_warm: Cost | None = None
    opinions: tuple[Opinion, ...] = ()
