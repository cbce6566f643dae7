"""Read logs of any size and encoding into lines of plain text.

Logs come from terminals, container engines and kernels: with colours, progress bars, other encodings and binary junk. Only the
end of a long log is kept, because the error is there.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections import deque
from typing import IO, TYPE_CHECKING

from msgspec import Struct

from provisioner.errors import ProvisionError, without_logins
from provisioner.matrix.symptom import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LAST_BYTES = 16 * 2**20
"""The number of bytes at the end of a log that are read by default."""

MOST_BYTES = 4 * 2**30
"""The number of bytes after which a log is given up, such as the output of a program that never ends."""

QUOTED = 240
"""The number of characters of a line that are quoted."""

_CHUNK = 2**20
_HEAD = 4096
_GZIP = b"\x1f\x8b"
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[PX^_][^\x1b\n]*\x1b\\|[ -/]*[0-~])")
_OBEYED = dict.fromkeys(
    (
        *range(9),
        *range(0xB, 0x20),
        *range(0x7F, 0xA0),
        0x61C,
        0x200E,
        0x200F,
        *range(0x2028, 0x202F),
        *range(0x2066, 0x206A),
        0xFEFF,
    )
)
"""Characters that terminals obey instead of showing them; they are left out."""

_LAST_ERROR = "Last error:"
_WARNING = "NCCL WARN"
"""What PyTorch writes above the last warning of NCCL, and what NCCL writes before each.

Sources: getNcclErrorDetailStr in torch/csrc/distributed/c10d/NCCLUtils.cpp; ncclDebugLog in src/debug.cc of NCCL.
"""

_SECRET = re.compile(
    r"""(?ix)
    (?P<name>\b[\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key)\b["']?\s*[:=]\s*["']?)[^\s"',;&]+
    | (?P<scheme>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}
    | \b(?:hf_|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|AKIA|ASIA|pypi-)[A-Za-z0-9_-]{12,}
    """
)


class UnreadableLogError(ProvisionError):
    """Raised when a log cannot be read to its end: a damaged archive, or output that never ends."""

    code = "unreadable-log"
    exit_code = 2


class Log(Struct, frozen=True, kw_only=True):
    """The lines of a log that were read, each with its number in the log, from 1; `skipped` bytes before them were not kept.

    `shown` are the lines without control characters, logins and tokens; `lines` are the same lines as they are compared. A line
    that a progress bar wrote several times counts as several lines of one number.
    """

    numbers: tuple[int, ...]
    shown: tuple[str, ...]
    lines: tuple[str, ...]
    skipped: int = 0
    skipped_lines: int = 0

    @property
    def has_other_letters(self) -> bool:
        """Whether a line has a letter that English has not: its messages may be translated."""
        return any(not line.isascii() and any(one.isalpha() and not one.isascii() for one in line) for line in self.lines)


def read_log(stream: IO[bytes], *, last: int = LAST_BYTES) -> Log:
    """Return the last `last` bytes of a log as lines; a log in UTF-16 or compressed by gzip is read, too.

    Raises `UnreadableLogError` for a damaged archive and for more than `MOST_BYTES`.
    """
    head = _read_head(stream)
    chunks = _chunks(stream, head)
    if head.startswith(_GZIP):
        chunks = _unpacked(chunks)
        first = next(chunks, b"")
        head, chunks = first[:_HEAD], _after(first, chunks)
    decoder = codecs.getincrementaldecoder(_encoding(head))(errors="replace")
    kept: deque[tuple[int, str]] = deque()
    size = total = skipped = skipped_lines = 0
    for chunk in chunks:
        total += len(chunk)
        if total > MOST_BYTES:
            raise UnreadableLogError(
                f"the log has more than {MOST_BYTES >> 30} GB",
                hints=("give its end alone: tail -c 10000000 LOG | provision diagnose -",),
            )
        kept.append((len(chunk), decoder.decode(chunk)))
        size += len(chunk)
        while len(kept) > 1 and size - kept[0][0] >= last:
            length, text = kept.popleft()
            size, skipped, skipped_lines = size - length, skipped + length, skipped_lines + text.count("\n")
    text = "".join(text for _, text in kept) + decoder.decode(b"", final=True)
    if skipped:
        cut = text.find("\n") + 1  # the first line is not whole
        text, skipped_lines = text[cut:], skipped_lines + (cut > 0)
    return log_of(text, skipped=skipped, skipped_lines=skipped_lines)


def log_of(text: str, *, skipped: int = 0, skipped_lines: int = 0) -> Log:
    """Return the log with a text; the numbers of its lines begin after `skipped_lines`."""
    found = list(_lines(_SEQUENCE.sub("", text), skipped_lines))
    return Log(
        numbers=tuple(number for number, _ in found),
        shown=tuple(line for _, line in found),
        lines=tuple(_with_warnings(plain(line) for _, line in found)),
        skipped=skipped,
        skipped_lines=skipped_lines,
    )


def quoted(line: str, start: int = 0, end: int = 0) -> str:
    """Return a line as it may be shown: without secrets, and cut around the part from `start` to `end` if it is long."""
    text = line.strip()
    if len(text) > QUOTED:
        begin = max(0, min(start - QUOTED // 3, len(line) - QUOTED))
        cut = line[begin : max(begin + QUOTED, min(end, begin + 2 * QUOTED))].strip()
        text = f"{'…' if begin else ''}{cut}{'…' if begin + len(cut) < len(line) else ''}"
    return without_secrets(text)


def without_secrets(text: str) -> str:
    """Return a text with the logins of URLs, and what looks like a token or a password, masked."""
    return _SECRET.sub(lambda match: f"{match['name'] or match['scheme'] or ''}***", without_logins(text))


def _lines(text: str, before: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=before + 1):
        for part in line.split("\r") if "\r" in line else (line,):
            clean = part if part.isprintable() else part.translate(_OBEYED)
            if clean.strip():
                yield number, clean


def _with_warnings(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, and the one after `Last error:` as the warning of NCCL that it was, after what both lines begin with.

    NCCL keeps the text of its last warning without `NCCL WARN`, and PyTorch tells it with an error of NCCL.
    """
    before: str | None = None
    for line in lines:
        is_warning = before is not None and line.startswith(before)
        yield f"{before}{_WARNING} {line.removeprefix(before or '')}" if is_warning else line
        before = line.rstrip().removesuffix(_LAST_ERROR) if line.rstrip().endswith(_LAST_ERROR) else None


def _read_head(stream: IO[bytes]) -> bytes:
    head = b""
    while len(head) < _HEAD:
        more = stream.read(_HEAD - len(head))
        if not more:
            break
        head += more
    return head


def _chunks(stream: IO[bytes], head: bytes) -> Iterator[bytes]:
    if head:
        yield head
    while chunk := stream.read(_CHUNK):
        yield chunk


def _after(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _unpacked(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the content of a gzip archive in pieces of at most `_CHUNK` bytes."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        for chunk in chunks:
            data = chunk
            while data:
                if piece := unpacker.decompress(data, _CHUNK):
                    yield piece
                data = unpacker.unconsumed_tail
                if unpacker.eof:  # another archive may follow in the same file
                    data, unpacker = unpacker.unused_data, zlib.decompressobj(wbits=31)
    except (zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableLogError(f"the log is a gzip archive that cannot be unpacked: {error}") from None


def _encoding(head: bytes) -> str:
    """Return the encoding of a log by its first bytes: UTF-16 by its mark or by its many zeros, else UTF-8."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    pairs = len(head) // 2
    if pairs >= 8:
        even, odd = head[: 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
        if odd > pairs * 0.6 and even < pairs * 0.1:
            return "utf-16-le"
        if even > pairs * 0.6 and odd < pairs * 0.1:
            return "utf-16-be"
    return "utf-8"
