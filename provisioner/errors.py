"""Errors that a user can cause or act on: what failed, why, and what to do next. They are printed by `cli` alone."""

from __future__ import annotations

import re
from typing import ClassVar

from msgspec import Struct

_LOGIN = re.compile(r"://\S*@")
_USERINFO = re.compile(r"(:/{1,2})[^\s/@]+(?=@)")
"""The login of an address (RFC 3986, 3.2.1); the path of a file has one slash where the address had two."""


def without_logins(text: str) -> str:
    """Return a text with `…` in place of all before the last `@` of each URL: in a login that a person wrote, `/` may stand."""
    return _LOGIN.sub("://…@", text)


CONTROLS = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""A pattern of the characters that nobody sees and a terminal, editor or browser obeys, except tabs and line breaks.

They are controls, halves of characters, which nothing can be written with, and the characters that Unicode lets a reader ignore
(`Default_Ignorable_Code_Point` of DerivedCoreProperties.txt), such as marks that reverse the direction of writing or take no
width: a text with them looks different from its content.
"""

_COMMAND = r"(?<=#)#(?=\[)"
"""A sign of `##[`, with which a line has a command of GitHub Actions anywhere in it, such as `##[error]` or `##[add-mask]`.

Source: `ActionCommand.TryParse` of github.com/actions/runner, which each line is given to that `TryParseV2` finds nothing in.
"""

_OBEYED = f"{CONTROLS}|{_COMMAND}"


def visible(text: str) -> str:
    r"""Return a text with each character of `CONTROLS` spelled out, such as `\u202e`, and `##[` as `#\x23[`."""
    return re.sub(_OBEYED, lambda match: r"\x23" if match[0] == "#" else ascii(match[0])[1:-1], text)


def obeyed(text: str) -> re.Match[str] | None:
    """Return the first place of a text that `visible` spells out; None if there is none."""
    is_plain = text.isascii() and "##[" not in text and text.replace("\n", "").replace("\t", "").isprintable()
    return None if is_plain else re.search(_OBEYED, text)


def escaped_in_json(text: str) -> str:
    r"""Return the text of a JSON document with all that `visible` spells out escaped in its strings, such as `\u202e`."""
    import json

    if obeyed(text) is None:
        return text
    return re.sub(_OBEYED, lambda match: r"\u0023" if match[0] == "#" else json.dumps(match[0])[1:-1], text)


_WITH_USERINFO = re.compile(r"://[^\s/@]+@")


def login_in(text: str) -> re.Match[str] | None:
    """Return the first place of a text where a URL has a login; None if there is none."""
    return _WITH_USERINFO.search(text)


def without_userinfo(text: str) -> str:
    """Return a text with the login in each URL replaced by `…`, and with all else as it was, such as `…/repository@v1`."""
    return _USERINFO.sub(r"\1…", text)


EXIT_CODES = {"yes": 0, "no": 1, "unverified": 3}
"""The exit codes of the verdicts."""


class ProvisionError(Exception):
    """A failure that the user can act on.

    `message` names the token the user wrote; `causes` are the facts found, one line each; `hints` say what to do next. `code`
    is kebab-case and stable, so that scripts can search for it; `exit_code` is 1 for a negative answer, 2 for bad input or
    usage, 3 if no answer is possible.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, causes: tuple[str, ...] = (), hints: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.causes: tuple[str, ...] = ()
        self.hints: tuple[str, ...] = ()
        self.add(causes=causes, hints=hints)

    def add(self, *, causes: tuple[str, ...] = (), hints: tuple[str, ...] = ()) -> None:
        """Add causes and hints; they become notes (PEP 678), too, so that a traceback shows them."""
        self.causes += causes
        self.hints += hints
        for note in (*causes, *(f"hint: {hint}" for hint in hints)):
            self.add_note(note)

    def __reduce__(self) -> tuple[object, ...]:
        """Return what another process needs to have this error, too: an error is not made from its `args` alone."""
        return _as_raised, (type(self), self.args), self.__dict__


def _as_raised(kind: type[ProvisionError], args: tuple[object, ...]) -> ProvisionError:
    return kind.__new__(kind, *args)


class UsageError(ProvisionError):
    """Raised when the command line asks for something that does not exist, or contradicts itself."""

    code = "bad-usage"
    exit_code = 2


class Mistake(Struct, frozen=True, order=True):
    """One mistake in one file: 1-based line and column, the key path, and the message.

    Line 0 means that `file` is an option of the command line, which has no lines. `first` is the place of the first of two
    equal entries, "" for other mistakes; it is separate from the message `text`, so that `text` does not change when lines
    move. `str()` masks the login in a URL, because the printed text ends up in logs.
    """

    file: str
    line: int
    column: int
    path: str
    text: str
    first: str = ""

    def __str__(self) -> str:
        text = f"{self.text}; the first is {self.first}" if self.first else self.text
        what = without_logins(f"{self.path}: {text}" if self.path else text)
        return f"{self.file}:{self.line}:{self.column}: {what}" if self.line else f"{self.file}: {what}"


class InvalidDocumentError(ProvisionError):
    """Raised when a file that the user wrote is invalid, with every mistake in it."""

    code = "invalid-document"
    exit_code = 2

    def __init__(self, kind: str, mistakes: tuple[Mistake, ...], *, hints: tuple[str, ...] = ()) -> None:
        count = len(mistakes)
        noun = "mistake" if count == 1 else "mistakes"
        super().__init__(f"{kind} has {count} {noun}", causes=tuple(str(mistake) for mistake in sorted(mistakes)), hints=hints)
        self.kind = kind
        self.mistakes = tuple(sorted(mistakes))


class UnavailableError(ProvisionError):
    """Raised when an index, an engine, a registry or a GPU is out of reach, so that no verdict is possible."""

    code = "unavailable"
    exit_code = 3


class RefusedError(ProvisionError):
    """Raised when the answer of the program is negative, such as that no stack exists, or that an image does not build."""

    code = "refused"
    exit_code = 1
