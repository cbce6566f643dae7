"""The instructions of a Dockerfile as frozen structs; `str()` returns the text.

They use only syntax that BuildKit of a Docker 20.10 engine and newer, and Podman 4.3 build without downloading a frontend: no
heredoc, no `COPY --link`, no `RUN --network`; mounts of type bind, cache, secret and tmpfs.
"""

from __future__ import annotations

import json
import re

from msgspec import Struct

from provisioner.errors import ProvisionError

_CONTINUATION = " \\\n    "
_WIDTH = 128
"""The width of a line, in characters, up to which mounts share it."""

CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class UnwritableValueError(ProvisionError):
    """Raised when a value has a control character, which a Dockerfile cannot express."""

    code = "unwritable-value"
    exit_code = 2


class Comment(Struct, frozen=True):
    """A comment, one `#` line for each line of text."""

    text: str

    def __str__(self) -> str:
        return "\n".join(f"# {line}".rstrip() for line in self.text.splitlines())


class From(Struct, frozen=True):
    """The start of the stage `stage` from `image`: an image, with its `digest` unless that is "", or an earlier stage."""

    image: str
    stage: str
    digest: str = ""

    def __str__(self) -> str:
        reference = f"{self.image}@{self.digest}" if self.digest else self.image
        return f"FROM {reference} AS {self.stage}"


class Arg(Struct, frozen=True):
    """Build arguments, which are empty unless the caller sets them."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "ARG " + " ".join(f'{name}=""' for name in self.names)


class Env(Struct, frozen=True):
    """Environment variables in the order given.

    With `expands`, `$NAME` in a value is replaced by the value that the variable had before.
    """

    variables: tuple[tuple[str, str], ...]
    expands: bool = False

    def __str__(self) -> str:
        return "ENV " + _assignments(self.variables, expands=self.expands)


class Label(Struct, frozen=True):
    """Labels in the order given; with `expands`, `$NAME` in a value is replaced by that build argument."""

    labels: tuple[tuple[str, str], ...]
    expands: bool = False

    def __str__(self) -> str:
        return "LABEL " + _assignments(self.labels, expands=self.expands)


class Mount(Struct, frozen=True):
    """A mount of a `RUN` instruction; `kind` is `bind`, `cache`, `secret` or `tmpfs`.

    `options` are its further options as names and values, such as `target` and a path.
    """

    kind: str
    options: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        options = "".join(f",{name}={value}" for name, value in self.options)
        return f"--mount=type={self.kind}{options}"


def fill(words: tuple[str, ...], width: int, separator: str = " ") -> tuple[str, ...]:
    """Return words as lines of at most `width` characters; a longer word has a line of its own."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(separator) + len(word) <= width:
            lines[-1] += separator + word
        else:
            lines.append(word)
    return tuple(lines)


class Run(Struct, frozen=True):
    """Shell commands joined by `&&`, and their mounts."""

    commands: tuple[str, ...]
    mounts: tuple[Mount, ...] = ()

    def __str__(self) -> str:
        # After a line break without a backslash, even in quotes, the rest of the command would be an instruction.
        for command in self.commands:
            _require_plain(command.replace("\\\n", ""))
        mounts = (_filled(tuple(map(str, self.mounts))),) if self.mounts else ()
        return "RUN " + _CONTINUATION.join((*mounts, f"{_CONTINUATION}&& ".join(self.commands)))


class CopyContext(Struct, frozen=True):
    """A copy of files of the build context, named by paths and patterns, into the folder `target` of the current stage.

    A pattern may match nothing where a path does.
    """

    sources: tuple[str, ...]
    target: str

    def __str__(self) -> str:
        return f"COPY {' '.join(self.sources)} {self.target}"


class CopyStage(Struct, frozen=True):
    """A copy of what is in the folder `source` of an earlier stage into the folder `target` of the current one.

    Owners, modes and times are those of the earlier stage, also of folders that were there.
    """

    stage: str
    source: str
    target: str

    def __str__(self) -> str:
        return f"COPY --from={self.stage} {self.source} {self.target}"


class User(Struct, frozen=True):
    """The user of the instructions that follow: `root`, or numeric ids, which an orchestrator can check without the image."""

    user: str

    def __str__(self) -> str:
        return f"USER {self.user}"


class Workdir(Struct, frozen=True):
    """The working directory of the instructions that follow."""

    path: str

    def __str__(self) -> str:
        return f"WORKDIR {self.path}"


class Cmd(Struct, frozen=True):
    """The default command of a container, started without a shell."""

    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"CMD {json.dumps(list(self.arguments))}"


class Entrypoint(Struct, frozen=True):
    """The program of a container, started without a shell; the container's command becomes its arguments."""

    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"ENTRYPOINT {json.dumps(list(self.arguments))}"


Instruction = Arg | Cmd | Comment | CopyContext | CopyStage | Entrypoint | Env | From | Label | Run | User | Workdir


def _assignments(pairs: tuple[tuple[str, str], ...], *, expands: bool = False) -> str:
    return _filled(tuple(f"{name}={quote(value, expands=expands)}" for name, value in pairs))


def _filled(words: tuple[str, ...]) -> str:
    """Return words on lines of at most `_WIDTH` characters, with their backslashes."""
    return _CONTINUATION.join(fill(words, _WIDTH - len(_CONTINUATION)))


def quote(value: str, *, expands: bool = False) -> str:
    r"""Quote a value for ENV and LABEL: `\`, `"` and, unless it `expands`, `$` are escaped.

    Raises `UnwritableValueError` for a control character, which a Dockerfile cannot express inside a value.
    """
    _require_plain(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if expands else '"' + escaped.replace("$", "\\$") + '"'


def _require_plain(value: str) -> None:
    if CONTROL.search(value) is not None:
        raise UnwritableValueError(f"{value!r} holds a control character, which a Dockerfile cannot")
