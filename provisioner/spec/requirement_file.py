"""Read requirement files as pip does: requirements, constraints, hashes, and the files that name each other.

Comments, continued lines, `-r`, `-c`, `--hash` and `${VARIABLES}` have the same meaning as in pip. Options that name indexes or
request builds are refused with the key of the spec to use instead. Source: pip documentation, "Requirements File Format" and
"Secure installs", read 2026-11-21.
"""

from __future__ import annotations

import codecs
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.document import FileError, Position, read_text
from provisioner.errors import Mistake

if TYPE_CHECKING:
    from collections.abc import Iterator

KIND = "requirement file"

_COMMENT = re.compile(r"(?:^|\s+)#.*$")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_OPTION = re.compile(r"\s-(?:-[a-z]|[a-zA-Z]\b)")
_VCS = re.compile(r"(?:^|@\s*)(?:git|hg|svn|bzr)(?:\+\w+)?:")
_LONG = {"-r": "--requirement", "-c": "--constraint", "-e": "--editable", "-i": "--index-url", "-f": "--find-links"}
_FILE_OPTIONS = ("--requirement", "--constraint")
_IGNORED = {"--prefer-binary": (), "--only-binary": (":all:",)}
"""Options that ask for the default behaviour of provision and are ignored, with the values they may have."""

_REFUSED = {
    "--index-url": "indexes are named in the spec, under `indexes:`",
    "--pypi-url": "indexes are named in the spec, under `indexes:`",
    "--extra-index-url": "indexes are named in the spec, under `indexes:`, where each name belongs to one of them",
    "--find-links": (
        "name the page or folder in the spec, under `indexes:` with `kind: find-links`, or in pip's own configuration"
    ),
    "--no-index": "name the only index in the spec, under `indexes:`",
    "--editable": "what is installed from its source has no file to lock; build a wheel of it",
    "--pre": "say so in the spec: `policy: {allow: [prerelease]}`",
    "--no-binary": "source distributions are taken where the spec says `policy: {allow: [sdist]}` and there is no wheel",
    "--only-binary": "wheels are taken wherever there are any, of everything; leave it out",
    "--trusted-host": "hosts are trusted through certificates; leave it out",
    "--use-feature": "it is a switch of pip's; leave it out",
    "--global-option": "nothing is built with options; build a wheel",
    "--config-settings": "nothing is built with options; build a wheel",
}
"""Options of pip that are refused, each with advice for the error message."""


class RequirementLine(Struct, frozen=True, kw_only=True):
    """One requirement (PEP 508 text) with its position, the sha256 digests it allows, and whether it is a constraint."""

    text: str
    position: Position
    hashes: tuple[str, ...] = ()
    is_constraint: bool = False


class Reading(Struct):
    """The result of reading requirement files: their lines, every mistake, and the files.

    `done` has each file with whether it was read as constraints.
    """

    lines: list[RequirementLine] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    done: set[tuple[Path, bool]] = field(default_factory=set)


def read_requirement_file(path: Path, *, named_at: Position, is_constraint: bool = False) -> Reading:
    """Read a file and the files it names.

    `named_at` is the position that names the file, at which a file that cannot be read is reported.
    """
    reading = Reading()
    _read(path, named_at, reading, is_constraint=is_constraint, inside=())
    return reading


def _read(path: Path, named_at: Position, reading: Reading, *, is_constraint: bool, inside: tuple[Path, ...]) -> None:
    real = Path(os.path.realpath(path))  # `resolve` raises on a link that leads to itself
    if real in inside:
        chain = " -> ".join(one.name for one in (*inside[inside.index(real) :], real))
        reading.mistakes.append(_mistake(named_at, f"`{path}` names itself: {chain}"))
        return
    if (real, is_constraint) in reading.done:
        return
    try:
        text = _text_of(path)
    except FileError as error:
        reading.mistakes.append(_mistake(named_at, error.message))
        return
    logical = list(_logical_lines(text, str(path)))
    needs_hashes = any(line.split()[:1] == ["--require-hashes"] for line, _ in logical)
    for line, position in logical:
        _read_line(line, position, reading, is_constraint=is_constraint, inside=(*inside, real), needs_hashes=needs_hashes)
    reading.done.add((real, is_constraint))


def _text_of(path: Path) -> str:
    """Return the text of a file in UTF-8, or in the encoding of its byte order mark: PowerShell redirects output into UTF-16.

    Raises `FileError` when the file cannot be read or decoded.
    """
    try:
        with path.open("rb") as stream:
            start = stream.read(4)
    except OSError:
        start = b""
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if start.startswith(mark):
            try:
                return path.read_bytes().decode("utf-16")
            except UnicodeDecodeError:
                raise FileError(f"{KIND} `{path}` is not UTF-16 text, though it begins like it") from None
    return read_text(path, kind=KIND).removeprefix("\ufeff")


def _logical_lines(text: str, file: str) -> Iterator[tuple[str, Position]]:
    """Yield lines joined with their continuations, without comments, each with the position of its first word.

    As in pip, a comment line ends a continued line, even where it ends in a backslash itself.
    """
    parts: list[str] = []
    first: Position | None = None
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        is_comment = _COMMENT.match(line) is not None and line.lstrip().startswith("#")
        is_continued = line.endswith("\\") and not is_comment
        piece = f" {line}" if is_comment else line.removesuffix("\\") if is_continued else line
        if first is None and piece.strip() and not is_comment:
            first = Position(number, len(line) - len(line.lstrip()) + 1, file)
        parts.append(piece)
        if is_continued:
            continue
        whole = _COMMENT.sub("", "".join(parts)).strip()
        if whole and first is not None:
            yield whole, first
        parts, first = [], None


def _read_line(
    line: str, position: Position, reading: Reading, *, is_constraint: bool, inside: tuple[Path, ...], needs_hashes: bool
) -> None:
    missing = [name for name in _VARIABLE.findall(line) if name not in os.environ]
    if missing:
        reading.mistakes.append(_mistake(position, f"the environment variable {missing[0]} is not set"))
        return
    line = _VARIABLE.sub(lambda match: os.environ[match[1]], line)
    if line.startswith("-"):
        _read_option(line, position, reading, inside=inside)
        return
    cut = _OPTION.search(line)
    text = line[: cut.start()].strip() if cut else line
    hashes, faults = _hashes(line[cut.start() :]) if cut else ((), ())
    if needs_hashes and not hashes and not faults:
        faults = (f"`{text}` has no `--hash`, though the file says --require-hashes",)
    text = _with_wheel_name(text)
    source = _source_mistake(text)
    faults = (*faults, source) if source else faults
    reading.mistakes.extend(_mistake(position, fault) for fault in faults)
    if not faults:
        reading.lines.append(RequirementLine(text=text, position=position, hashes=hashes, is_constraint=is_constraint))


def _hashes(options: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sha256 digests in the options behind a requirement, and messages about the other options."""
    found, others, faults = [], [], []
    for name, value in _options(options):
        if name != "--hash":
            faults.append(_refusal(name, value))
        elif _HASH.fullmatch(value.lower()):
            found.append(value.lower().removeprefix("sha256:"))
        else:
            others.append(value)
    wrong = next((value for value in others if not re.fullmatch(r"sha(?:384:[0-9a-f]{96}|512:[0-9a-f]{128})", value)), None)
    if wrong is not None:
        faults.append(f"`--hash={wrong}` is not a hash that protects anything; it is sha256: and 64 hexadecimal digits")
    elif others and not found:
        faults.append("of its files only sha256 is known; give `--hash=sha256:…` as well")
    return tuple(dict.fromkeys(found)), tuple(faults)


def _options(text: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a line by their long names, each with its value, which may be a separate word."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name[:2] in _LONG and not name.startswith("--"):
            name, value, equals = _LONG[name[:2]], f"{name[2:]}{equals}{value}", name[2:]
        if not equals and words and not words[0].startswith("-"):
            value = words.pop(0)
        yield name, value


def _read_option(line: str, position: Position, reading: Reading, *, inside: tuple[Path, ...]) -> None:
    for name, value in _options(line):
        if name == "--require-hashes" or (name in _IGNORED and (not value or value in _IGNORED[name])):
            continue
        if name not in _FILE_OPTIONS:
            reading.mistakes.append(_mistake(position, _refusal(name, value)))
        elif not value or "\0" in value:
            reading.mistakes.append(_mistake(position, f"`{name}` names no file"))
        elif "://" in value:
            reading.mistakes.append(_mistake(position, f"`{value}` is not read over the network; save it beside this file"))
        else:
            # As in pip: `-r` inside a constraints file adds requirements, `-c` inside any file adds constraints.
            path = Path(position.file).parent / value
            _read(path, position, reading, is_constraint=name == "--constraint", inside=inside)


def _refusal(name: str, value: str) -> str:
    """Return why an option is refused; without the value of a known option, because URLs may contain passwords."""
    if name in _REFUSED:
        return f"`{name}` is not read from requirement files: {_REFUSED[name]}"
    word = name if name.startswith("-") else f"{name}{'=' if value else ''}{value}"
    return f"`{word}` is not an option of requirement files"


def _with_wheel_name(text: str) -> str:
    """Return a requirement line; if it is only the path or URL of a wheel, with the wheel's distribution name before it."""
    place, semicolon, marker = text.partition(";")
    place = place.strip()
    filename = place.partition("#")[0].rpartition("/")[2]
    if " " in place or not filename.endswith(".whl"):
        return text
    name = filename.partition("-")[0]
    is_local = "://" not in place and not place.startswith("file:")
    return f"{name} @ {'file:' if is_local else ''}{place}{' ;' if semicolon else ''}{marker}"


def _source_mistake(text: str) -> str:
    """Return a message about a requirement that names a repository, or a file without a name; "" for any other requirement."""
    if _VCS.search(text):
        return "a repository is not a file that can be locked: build a wheel of it, and write `name @ file:…` or `name @ https://…`"
    head = re.split(r"[;@\[<>=!~\s]", text, maxsplit=1)[0]
    is_file = "/" in head or "\\" in head or head.startswith(".") or head.endswith((".whl", ".tar.gz", ".zip"))
    if is_file:
        return "a file needs its name before it: write `name @ file:…` or `name @ https://…`"
    return ""


def _mistake(position: Position, text: str) -> Mistake:
    return Mistake(position.file, position.line, position.column, "", text)
