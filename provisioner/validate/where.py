"""Where and in what an engine runs the checks, as far as a user says it."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.validate.node_class import NodeClass

if TYPE_CHECKING:
    from pathlib import Path


class Where(Struct, frozen=True, kw_only=True):
    """What runs the checks, and on which nodes.

    `python` is the interpreter of `local` and `slurm` (default: that of this program), `modules` are those that a job of Slurm
    loads first. `nodes` are the nodes of a cluster. A job that has not started after `wait` seconds is given up, and all jobs
    are once `stop` is set.
    """

    python: Path | None = None
    modules: tuple[str, ...] = ()
    nodes: NodeClass = NodeClass()
    wait: float = 600.0
    stop: Event = field(default_factory=Event)
