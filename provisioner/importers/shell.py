"""Split shell scripts into simple commands: words, operators between them, and redirections.

Only what install commands use is understood: quotes, `&&`, `||`, `;`, `|`, lines, comments, redirections, and assignments
before a command. A loop or a function is read as the commands in it.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEYWORDS = frozenset({"!", "{", "}", "do", "done", "else", "fi", "if", "then", "time", "sudo", "exec", "-E", "-H"})
"""Words before a command that do not change what it installs."""


class Command(Struct, frozen=True):
    """One simple command: its words without quotes, and its output redirections (`>`): the word before, and the target."""

    words: tuple[str, ...]
    redirected: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The command with the words quoted where they need it."""
        return shlex.join(self.words)


_LONGEST_QUOTATION = 20_000
"""The most characters that a quotation over several lines may have."""


def commands(script: str) -> Iterator[Command]:
    """Yield the simple commands of a script; raises `ValueError` for a quote that nothing closes."""
    whole = ""
    for line in script.split("\n"):
        whole = f"{whole}{line}"
        if whole.endswith("\\"):
            whole = whole[:-1]
            continue
        try:
            found = list(_of_line(whole))
        except ValueError:  # the quotation ends on a later line
            whole += "\n"
            if len(whole) > _LONGEST_QUOTATION:
                raise
            continue
        yield from found
        whole = ""
    yield from _of_line(whole)


def _of_line(line: str) -> Iterator[Command]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""  # shlex takes a `#` inside a word for a comment, too
    words: list[str] = []
    redirected: list[tuple[str, str]] = []
    takes_target = ""
    for token in lexer:
        if token.startswith("#"):
            break
        is_operator = bool(token) and set(token) <= set("();<>|&")
        if takes_target:
            if takes_target.startswith(">"):
                redirected.append((words[-1] if words else "", token))
            takes_target = ""
        elif is_operator and set(token) & set("<>") and not set(token) & set(";|"):
            takes_target = token.strip("&") or token
            if words and words[-1].isdigit():  # the number of a stream, as in `2>/dev/null`
                words.pop()
        elif is_operator:
            yield from _command(words, redirected)
            words, redirected = [], []
        else:
            words.append(token)
    yield from _command(words, redirected)


def _command(words: list[str], redirected: list[tuple[str, str]]) -> Iterator[Command]:
    """Yield a command without the assignments and keywords before it."""
    while words and (words[0] in _KEYWORDS or ("=" in words[0] and words[0].partition("=")[0].isidentifier())):
        words = words[1:]
    if words:
        yield Command(tuple(words), tuple(redirected))
