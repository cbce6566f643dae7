"""Why a cluster did not run a validation to its end: causes that say nothing about the lock."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from provisioner.validate.engine import EngineError

Kind = Literal[
    "refused",
    "pending",
    "image-unavailable",
    "not-started",
    "cancelled",
    "preempted",
    "node-failed",
    "time-limit",
    "out-of-memory",
    "no-output",
]
"""What came between a job and its measurement."""

_SENTENCES: dict[Kind, str] = {
    "refused": "the cluster does not accept the job",
    "pending": "the job has not started",
    "image-unavailable": "a node cannot get the image",
    "not-started": "the checks could not be started on the node",
    "cancelled": "the job was cancelled",
    "preempted": "the job was removed from its node in favour of others",
    "node-failed": "the node of the job failed",
    "time-limit": "the time limit of the job was reached",
    "out-of-memory": "the job exceeded its memory",
    "no-output": "the job ended without a result",
}


class NotRun(Struct, frozen=True, kw_only=True):
    """One cause: its kind, and the cluster's own word for it, such as `ReqNodeNotAvail`; "" if it gave none."""

    kind: Kind
    reason: str = ""

    def __str__(self) -> str:
        return _SENTENCES[self.kind] + (f": {self.reason}" if self.reason else "")


class NotRunError(EngineError):
    """Raised when a cluster did not run a job to its end, with the cause; there is no verdict on the lock then."""

    code = "not-run"

    def __init__(self, cause: NotRun) -> None:
        super().__init__(str(cause))
        self.cause = cause
