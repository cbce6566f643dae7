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
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
"""A pattern of the characters that nobody sees and a terminal, editor or browser obeys, except tabs and line breaks.

They are controls, marks that reverse the direction of writing or take no width, so that a text looks different from its
content, and halves of characters, which nothing can be written with.
"""


def visible(text: str) -> str:
    r"""Return a text with each character of `CONTROLS` spelled out, such as `\u202e`."""
    return re.sub(CONTROLS, lambda match: ascii(match[0])[1:-1], text)


def escaped_in_json(text: str) -> str:
    r"""Return the text of a JSON document with each character of `CONTROLS` in its strings escaped, such as `\u202e`."""
    import json

    return re.sub(CONTROLS, lambda match: json.dumps(match[0])[1:-1], text)


def without_userinfo(text: str) -> str:
    """Return a text with the login in each URL replaced by `…`, and with all else as it was, such as `…/repository@v1`."""
    return _USERINFO.sub(r"\1…", text)


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

    `first` is the place of the first of two equal entries, "" for other mistakes; it is separate from the message `text`, so
    that `text` does not change when lines move. `str()` masks the login in a URL, because the printed text ends up in logs.
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
        return f"{self.file}:{self.line}:{self.column}: {what}"


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
