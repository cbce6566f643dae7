"""Split shell scripts into simple commands: words, operators between them, and redirections.

Only what install commands use is understood: quotes, `&&`, `||`, `;`, `|`, lines, comments, redirections, and assignments
before a command. A loop or a function is read as the commands in it. So is a branch, whose commands say what they depend on.
"""

from __future__ import annotations

import shlex
from copy import deepcopy
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_KEYWORDS = frozenset(
    {
        "!", "{", "}", "do", "done", "elif", "else", "esac", "fi", "if", "then", "until", "while", "time", "sudo", "exec",
        "-E", "-H",
    }
)  # fmt: skip
"""Words before a command that do not change what it installs."""

_BRANCHES = {"if": "fi", "case": "esac", "while": "done", "until": "done", "for": "done"}
"""The words that open what may run or not, or often, and those that close it."""

_TESTS = frozenset({"[", "[[", "test"})


class Command(Struct, frozen=True):
    """One simple command: its words without quotes, and its output redirections (`>`): the word before, and the target.

    `condition` is the word by which it runs on a condition alone (`if`, `case`, `while`, `||`, `&&` behind a test), "" if it
    always runs.
    """

    words: tuple[str, ...]
    redirected: tuple[tuple[str, str], ...] = ()
    condition: str = ""

    @property
    def text(self) -> str:
        """The command with the words quoted where they need it."""
        return shlex.join(self.words)


_LONGEST_QUOTATION = 20_000
"""The most characters that a quotation over several lines may have."""


class _Block(Struct):
    """A branch or loop that is open: the word that opened it, and whether what comes now depends on its condition."""

    word: str
    depends: bool = False


class _Where(Struct):
    """Where in a script a reader is: the blocks that are open, and the operator that the next command of a list depends on."""

    blocks: list[_Block] = field(default_factory=list)
    operator: str = ""

    @property
    def is_before_pattern(self) -> bool:
        """Whether a pattern of `case` comes next, with its closing parenthesis."""
        return bool(self.blocks) and self.blocks[-1].word == "case" and not self.blocks[-1].depends

    @property
    def condition(self) -> str:
        """What the next command depends on, "" for nothing."""
        return next((block.word for block in self.blocks if block.depends), self.operator)

    def keyword(self, word: str) -> None:
        """Note a word before a command."""
        if word in _BRANCHES:
            self.blocks.append(_Block(word))
        elif self.blocks and word == _BRANCHES[self.blocks[-1].word]:
            self.blocks.pop()
        elif self.blocks and word in {"then", "do", "else", "elif"}:
            self.blocks[-1].depends = self.blocks[-1].word != "for"  # its words are there, so that it runs

    def after(self, operator: str, words: Sequence[str]) -> None:
        """Note an operator behind a command with some words."""
        if operator.startswith(";;"):
            self.operator = ""
            if self.blocks and self.blocks[-1].word == "case":
                self.blocks[-1].depends = False
        elif operator == ")" and self.is_before_pattern:
            self.blocks[-1].depends = True
        elif operator == "||":
            self.operator = operator
        elif operator == "&&":
            self.operator = self.operator or (operator if words[:1] and words[0] in _TESTS else "")
        elif operator != "|":
            self.operator = ""


def commands(script: str) -> Iterator[Command]:
    """Yield the simple commands of a script; raises `ValueError` for a quote that nothing closes."""
    whole = ""
    where = _Where()
    for line in script.split("\n"):
        whole = f"{whole}{line}"
        if whole.endswith("\\"):
            whole = whole[:-1]
            continue
        after = deepcopy(where)
        try:
            found = list(_of_line(whole, after))
        except ValueError:  # the quotation ends on a later line
            whole += "\n"
            if len(whole) > _LONGEST_QUOTATION:
                raise
            continue
        where = after
        yield from found
        whole = ""
    yield from _of_line(whole, where)


def _of_line(line: str, where: _Where) -> Iterator[Command]:
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
            is_pattern = where.is_before_pattern
            words = _command_words(words, where)
            if words and not is_pattern:
                yield Command(tuple(words), tuple(redirected), where.condition)
            where.after(token, words)
            words, redirected = [], []
        else:
            words.append(token)
    words = _command_words(words, where)
    if words:
        yield Command(tuple(words), tuple(redirected), where.condition)
    where.after(";", words)


def _command_words(words: Sequence[str], where: _Where) -> list[str]:
    """Return the words of a command without the assignments and keywords before it, which are noted."""
    rest = list(words)
    while rest:
        if rest[0] in {"case", "for"}:  # what they name is no command
            where.keyword(rest[0])
            return []
        if rest[0] in _KEYWORDS:
            where.keyword(rest[0])
        elif "=" not in rest[0] or not rest[0].partition("=")[0].isidentifier():
            return rest
        rest = rest[1:]
    return []
