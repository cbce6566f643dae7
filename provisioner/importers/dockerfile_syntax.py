"""Parse a Dockerfile into instructions: continued lines, comments, here-documents, flags, the exec form and variables.

The parsers on PyPI do not fit: dockerfile-parse reads the lines of here-documents as instructions, and the one that wraps
BuildKit's own parser has no wheel for Linux on Arm. `tests/unit/importers/test_dockerfile_oracle.py` compares this one with it.
Source: Dockerfile reference, "Format", "Parser directives", "Environment replacement", "Here-Documents", read 2026-11-23.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.document import Position, read_text
from provisioner.errors import InvalidDocumentError, Mistake

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

KIND = "Dockerfile"

MOST_CHARACTERS = 250_000
"""The most characters of a Dockerfile that is read; nobody writes one that long."""

WORDS = frozenset(
    {
        "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER", "ONBUILD",
        "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
    }
)  # fmt: skip
"""The instructions that the reference lists."""

_WITH_HEREDOCS = frozenset({"ADD", "COPY", "RUN"})
_DIRECTIVE = re.compile(r"\s*#\s*(?P<name>[a-zA-Z][\w-]*)\s*=\s*(?P<value>\S.*?)\s*")
_HEREDOC = re.compile(r"""(?<![<\\])\d*<<(?P<tabs>-?)(?P<quote>["']?)(?P<name>[A-Za-z_][\w.-]*)(?P=quote)""")
_FLAG = re.compile(r"--(?P<name>[a-z][a-z-]*)(?:=(?P<value>\S*))?(?:\s+|$)")
_VARIABLE = re.compile(r"\\(?P<escaped>.)|\$(?:(?P<name>\w+)|\{(?P<braced>\w+)(?::?(?P<sign>[-+])(?P<word>[^{}]*))?\})")


class Instruction(Struct, frozen=True, kw_only=True):
    """One instruction.

    `flags` are those before the value (`--from=builder`), as name and value; `value` is the text on one line, without its
    continuations and comments; `heredocs` are the contents of its here-documents. `position` is that of its first line.
    """

    word: str
    value: str
    flags: tuple[tuple[str, str], ...] = ()
    heredocs: tuple[str, ...] = ()
    position: Position

    @property
    def arguments(self) -> tuple[str, ...] | None:
        """The list of the exec form (`["pip", "install", "x"]`); None for the shell form."""
        if not self.value.startswith("["):
            return None
        try:
            found = json.loads(self.value)
        except (ValueError, RecursionError):
            return None
        return tuple(found) if isinstance(found, list) and all(isinstance(one, str) for one in found) else None

    def flag(self, name: str) -> str:
        """Return the value of a flag; "" if the instruction has it not."""
        return next((value for key, value in self.flags if key == name), "")


def load_dockerfile(path: Path) -> tuple[Instruction, ...]:
    """Return the instructions of a Dockerfile.

    Raises `FileError` when it cannot be read as text, and `InvalidDocumentError` for an instruction that does not exist, one
    before the first FROM other than ARG, and a file that is too long or has no FROM.
    """
    text = read_text(path, kind=KIND).removeprefix("\ufeff")
    file = str(path)
    if len(text) > MOST_CHARACTERS:
        why = f"the file has {len(text)} characters; more than {MOST_CHARACTERS} are not read"
        raise InvalidDocumentError(KIND, (Mistake(file, 1, 1, "", why),))
    found = parse_dockerfile(text, file=file)
    mistakes = tuple(_mistakes(found, file))
    if mistakes:
        raise InvalidDocumentError(KIND, mistakes)
    return found


def _mistakes(found: Sequence[Instruction], file: str) -> list[Mistake]:
    """Return the mistakes for which no builder reads the file."""
    mistakes, is_in_stage = [], False
    for one in found:
        is_in_stage = is_in_stage or one.word == "FROM"
        line, column = one.position.line, one.position.column
        if one.word not in WORDS:
            shown = one.word if len(one.word) <= 40 else f"{one.word[:39]}…"
            mistakes.append(Mistake(file, line, column, "", f"`{shown}` is no instruction of a Dockerfile"))
        elif not is_in_stage and one.word != "ARG":
            mistakes.append(Mistake(file, line, column, "", f"`{one.word}` stands before the first FROM; only ARG may"))
        elif one.word == "FROM" and not one.value:
            mistakes.append(Mistake(file, line, column, "", "FROM names no image"))
    if not is_in_stage and not mistakes:
        mistakes.append(Mistake(file, 1, 1, "", "no line names a base image (FROM)"))
    return mistakes


def parse_dockerfile(text: str, *, file: str) -> tuple[Instruction, ...]:
    """Return the instructions of the text of a Dockerfile; anything that starts a line is taken for one."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    ends = {line: at for at, line in enumerate(lines)}
    ends_behind_tabs = {line.lstrip("\t"): at for at, line in enumerate(lines)}
    escape = _escape(lines)
    found: list[Instruction] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        position = Position(at, len(line) - len(line.lstrip()) + 1, file)
        parts = [line.lstrip()]
        while _continues(parts[-1], escape):
            parts[-1] = parts[-1].rstrip()[:-1]
            # As in BuildKit, comments and empty lines in a continued instruction are left out.
            while at < len(lines) and (not lines[at].strip() or lines[at].lstrip().startswith("#")):
                at += 1
            if at == len(lines):
                break
            parts.append(lines[at])
            at += 1
        word, _, rest = "".join(parts).strip().replace("\t", " ").partition(" ")
        flags, value = _flags(rest.strip())
        heredocs: list[str] = []
        if word.upper() in _WITH_HEREDOCS:
            for mark in _HEREDOC.finditer(value):
                end = (ends_behind_tabs if mark["tabs"] else ends).get(mark["name"], -1)
                if end >= at:  # if nothing ends it, `<<` is no mark
                    content, at = _heredoc(lines, at, mark)
                    heredocs.append(content)
        found.append(Instruction(word=word.upper(), value=value, flags=flags, heredocs=tuple(heredocs), position=position))
    return tuple(found)


def _escape(lines: Sequence[str]) -> str:
    r"""Return the character that continues lines: `\`, or what a directive in the first lines says."""
    for line in lines:
        match = _DIRECTIVE.fullmatch(line)
        if match is None:
            break
        if match["name"].lower() == "escape" and match["value"] in {"\\", "`"}:
            return match["value"]
    return "\\"


def _continues(line: str, escape: str) -> bool:
    return line.rstrip(" \t").endswith(escape)


def _flags(text: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the flags at the start of a value, and the rest."""
    flags = []
    while (match := _FLAG.match(text)) is not None:
        flags.append((match["name"], match["value"] or ""))
        text = text[match.end() :]
    return tuple(flags), text


def _heredoc(lines: Sequence[str], at: int, mark: re.Match[str]) -> tuple[str, int]:
    """Return the content of a here-document from line `at` on, and the number of the line behind the one that ends it."""
    content: list[str] = []
    while (line := lines[at].lstrip("\t") if mark["tabs"] else lines[at]) != mark["name"]:
        content.append(line)
        at += 1
    return "\n".join(content), at + 1


def substitute(text: str, variables: Mapping[str, str]) -> str:
    r"""Return a text with `$NAME`, `${NAME}`, `${NAME:-word}` and `${NAME:+word}` replaced; unknown names stay as they are.

    An escaped `\$` stays escaped. Once the result is longer than a whole file may be, nothing more is replaced: a few lines of
    `ENV A=$A$A` would fill any memory.
    """
    left = MOST_CHARACTERS

    def value(match: re.Match[str]) -> str:
        nonlocal left
        found = meant(match) if left > 0 else match[0]
        left -= len(found)
        return found

    def meant(match: re.Match[str]) -> str:
        if match["escaped"] is not None:
            return match[0]
        name = match["name"] or match["braced"]
        if match["sign"] == "+":
            return (match["word"] or "") if variables.get(name) else ""
        if variables.get(name):
            return variables[name]
        if match["sign"] == "-":
            return match["word"] or ""
        return variables.get(name, match[0])

    return _VARIABLE.sub(value, text)


def unset_variable(text: str) -> str:
    """Return the name of the first variable that is left in a text; "" if there is none."""
    found = next((match for match in _VARIABLE.finditer(text) if match["escaped"] is None), None)
    return "" if found is None else found["name"] or found["braced"]
