"""What one run of a command costs: `measure.py` started as a process of its own, and its figures read back."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One run: wall and processor (user and system) seconds, peak memory in MiB, exit code, and all that it printed."""

    wall: float
    processor: float
    peak: float
    code: int
    output: str


def measured(command: Sequence[str], environment: Mapping[str, str], *, limit: float, output: Path) -> Usage:
    """Run a command that is ended after `limit` seconds; what it prints goes to the file `output`."""
    starter = [sys.executable, "-I", "-S", str(Path(__file__).parent / "measure.py"), "--limit", str(limit), str(output)]
    result = subprocess.run([*starter, *command], env=environment, capture_output=True, text=True, check=True)
    wall, processor, peak, code = result.stdout.split()
    printed = output.read_text(encoding="utf-8", errors="replace")
    return Usage(wall=float(wall), processor=float(processor), peak=float(peak), code=int(code), output=printed)
