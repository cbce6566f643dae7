"""Write the tables of docs/diagnose.md anew from the matrix: `python docs/failures.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.matrix.cache import cached_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.matrix.model import Failure, Matrix

PAGE = Path(__file__).parent / "diagnose.md"
BEGIN, END = "<!-- made by docs/failures.py -->\n", "<!-- end -->\n"
HEADS = {
    "cause": "Failures",
    "consequence": "Consequences, told below their cause when it is in the log",
    "benign": "Harmless messages",
}


def page(matrix: Matrix, text: str) -> str:
    """Return the page with its tables made anew from a matrix; `text` is the page as it is."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{''.join(tables(matrix))}{END}{rest.partition(END)[2]}"


def tables(matrix: Matrix) -> Iterator[str]:
    """Yield one table for each kind of message that is recognised."""
    told = [one for one in matrix.failures if one.kind != "silent"]
    messages = sum(len(one.symptoms) for one in told)
    yield f"\n{len(told)} failures by {messages} messages, and {len(matrix.statements)} kinds of lines that state facts.\n"
    for kind, head in HEADS.items():
        rows = [row(one) for one in told if one.kind == kind]
        yield f"\n### {head} ({len(rows)})\n\n| name | component | first message | meaning |\n| --- | --- | --- | --- |\n"
        yield from rows
    yield "\n"


def row(failure: Failure) -> str:
    """Return the row of a failure."""
    message = failure.symptoms[0].replace("|", "\\|").replace("`", "'")
    return f"| `{failure.name}` | `{failure.layer}` | `{message}` | {failure.cause.replace('|', chr(92) + '|')} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(cached_matrix(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
