"""Read requirement files as pip does: requirements, constraints, hashes, indexes, projects, and the files that name each other.

Comments, continued lines, `-r`, `-c`, `-i`, `--extra-index-url`, `-f`, `--hash` and `${VARIABLES}` have the same meaning as in
pip. Of a project in a folder (`-e .`, `./path`) the dependencies are read. Options that request builds are refused with the key
of the spec to use instead. Source: pip documentation, "Requirements File Format" and
"Secure installs", read 2026-11-21.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.document import LARGEST_DOCUMENT, FileError, Position, is_folder, is_there, read_printed
from provisioner.errors import Mistake
from provisioner.repositories import IS_NO_FILE, archive_advice, repository

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KIND = "requirement file"

_COMMENT = re.compile(r"(?:^|\s+)#.*$")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_OPTION = re.compile(r"\s-(?:-[a-z]|[a-zA-Z]\b)")
_VCS = re.compile(r"(?:^|@\s*)(?:git|hg|svn|bzr)(?:\+\w+)?:")
_NAMED_REPOSITORY = re.compile(r"(?P<name>[\w.-]+(?:\[[^\]]*\])?)\s*@\s*(?P<url>\w+\+.*)")
LONG_OPTIONS = {"-r": "--requirement", "-c": "--constraint", "-e": "--editable", "-i": "--index-url", "-f": "--find-links"}
_FILE_OPTIONS = ("--requirement", "--constraint")
_INDEX_OPTIONS = {
    "--index-url": "index-url",
    "--pypi-url": "index-url",
    "--extra-index-url": "extra-index-url",
    "--find-links": "find-links",
}
"""Options that name an index or a page of files, each with the option of pip's configuration that means the same."""

_PROJECT = re.compile(r"(?P<folder>[^\s\[\];@<>=!~#]+)(?:\[(?P<extras>[\w\s.,-]*)\])?")
_LOGIN = re.compile(r"://[^\s@]*@")
_LOGIN_ADVICE = "and this file is shared; write it as ${VARIABLE}, or put it into ~/.netrc or the keyring"
_IGNORED = {"--prefer-binary": (), "--only-binary": (":all:",)}
"""Options that ask for the default behaviour of provision and are ignored, with the values they may have."""

_PASSED_OVER = frozenset({"--trusted-host", "--use-feature"})
"""Options that decide nothing about what is installed, and are told and passed over."""

_REFUSED = {
    "--no-index": "name the only index in the spec, under `indexes:`",
    "--pre": "say so in the spec: `policy: {allow: [prerelease]}`",
    "--no-binary": "source distributions are taken where the spec says `policy: {allow: [sdist]}` and there is no wheel",
    "--only-binary": "wheels are taken wherever there are any, of everything; leave it out",
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


class IndexLine(Struct, frozen=True, kw_only=True):
    """One line that names an index, or a page or folder of files.

    `option` is the option as pip's configuration spells it: `index-url`, `extra-index-url` or `find-links`. A relative folder
    starts from the folder of the file. The URL may carry a login.
    """

    option: str
    url: str
    position: Position


class OptionLine(Struct, frozen=True, kw_only=True):
    """One option with its value that is read by pip alone."""

    name: str
    value: str
    position: Position


class ProjectLine(Struct, frozen=True, kw_only=True):
    """One line that names the folder of a project, with the extras wanted of it; `text` is the line as written."""

    text: str
    folder: Path
    extras: tuple[str, ...]
    position: Position


class Reading(Struct):
    """The result of reading requirement files: their lines by kind, every mistake, and the files.

    `done` has each file with whether it was read as constraints. With `reads_environment` a `${VARIABLE}` is replaced by its
    value, as pip does; without, a line with one is a mistake, so that no secret is copied into another file.
    """

    lines: list[RequirementLine] = field(default_factory=list)
    indexes: list[IndexLine] = field(default_factory=list)
    projects: list[ProjectLine] = field(default_factory=list)
    passed_over: list[OptionLine] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    done: set[tuple[Path, bool]] = field(default_factory=set)
    reads_environment: bool = True


def read_requirement_file(
    path: Path, *, named_at: Position, is_constraint: bool = False, reads_environment: bool = True
) -> Reading:
    """Read a file and the files it names.

    `named_at` is the position that names the file, at which a file that cannot be read is reported.
    """
    reading = Reading(reads_environment=reads_environment)
    _read(path, named_at, reading, is_constraint=is_constraint, inside=())
    return reading


def read_requirement_lines(lines: Iterable[tuple[str, Position]]) -> Reading:
    """Read lines of a requirement file that stand in another file, such as the arguments of `pip install`.

    A relative path starts from the folder of the position's file. A `${VARIABLE}` is a mistake (see `Reading`).
    """
    reading = Reading(reads_environment=False)
    for line, position in lines:
        _read_line(line, position, reading, is_constraint=False, inside=(), needs_hashes=False)
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
    """Return the text of a file, which `pip freeze` may have printed; raises `FileError` if it cannot be read or decoded."""
    text = read_printed(path, kind=KIND, most=LARGEST_DOCUMENT)
    if "\0" in text:  # such as /proc/self/environ, whose content must not be told in a mistake
        raise FileError(f"{KIND} `{path}` is not text: it has a NUL character")
    return text


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
    variables = _VARIABLE.findall(line)
    if variables and not reading.reads_environment:
        text = f"the value of the environment variable {variables[0]} is not copied; write what it stands for"
        reading.mistakes.append(_mistake(position, text))
        return
    missing = [name for name in variables if name not in os.environ]
    if missing:
        reading.mistakes.append(_mistake(position, f"the environment variable {missing[0]} is not set"))
        return
    login = _LOGIN.search(line)
    line = _VARIABLE.sub(lambda match: os.environ[match[1]], line)
    if line.startswith("-"):
        name = next(_options(line))[0]
        if login is not None and name in _INDEX_OPTIONS and "${" not in login[0]:
            reading.mistakes.append(_mistake(position, f"the address of `{name}` carries a login, {_LOGIN_ADVICE}"))
            return
        _read_option(line, position, reading, inside=inside)
        return
    cut = _OPTION.search(line)
    text = line[: cut.start()].strip() if cut else line
    if not cut and _names_folder(text, position):
        _read_project_line(text, text, position, reading)
        return
    hashes, faults = _hashes(line[cut.start() :]) if cut else ((), ())
    if needs_hashes and not hashes and not faults:
        faults = (f"`{text}` has no `--hash`, though the file says --require-hashes",)
    text = _with_project_name(_with_wheel_name(text))
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
        if name[:2] in LONG_OPTIONS and not name.startswith("--"):
            name, value, equals = LONG_OPTIONS[name[:2]], f"{name[2:]}{equals}{value}", name[2:]
        if not equals and words and not words[0].startswith("-"):
            value = words.pop(0)
        yield name, value


def _read_option(line: str, position: Position, reading: Reading, *, inside: tuple[Path, ...]) -> None:
    for name, value in _options(line):
        if name == "--require-hashes" or (name in _IGNORED and (not value or value in _IGNORED[name])):
            continue
        if name in _FILE_OPTIONS:
            _read_named_file(name, value, position, reading, inside=inside)
        elif name not in {*_INDEX_OPTIONS, *_PASSED_OVER, "--editable"}:
            reading.mistakes.append(_mistake(position, _refusal(name, value)))
        elif not value or "\0" in value:
            reading.mistakes.append(_mistake(position, f"`{name}` names nothing"))
        elif name in _INDEX_OPTIONS:
            reading.indexes.append(IndexLine(option=_INDEX_OPTIONS[name], url=_address(value, position), position=position))
        elif name in _PASSED_OVER:
            reading.passed_over.append(OptionLine(name=name, value=value, position=position))
        elif _VCS.search(value):
            _read_repository(value, position, reading)
        else:
            _read_project_line(line, value, position, reading)


def _read_named_file(name: str, value: str, position: Position, reading: Reading, *, inside: tuple[Path, ...]) -> None:
    """Read the file that `-r` or `-c` names."""
    if not value or "\0" in value:
        reading.mistakes.append(_mistake(position, f"`{name}` names no file"))
    elif "://" in value:
        reading.mistakes.append(_mistake(position, f"`{value}` is not read over the network; save it beside this file"))
    else:
        # As in pip: `-r` inside a constraints file adds requirements, `-c` inside any file adds constraints.
        path = Path(position.file).parent / value
        _read(path, position, reading, is_constraint=name == "--constraint", inside=inside)


def _read_repository(value: str, position: Position, reading: Reading) -> None:
    """Add the repository that `-e` names: what it holds at a commit, which nobody can edit in an image."""
    text = _with_project_name(value)
    fault = _repository_mistake(text)
    if fault:
        reading.mistakes.append(_mistake(position, fault))
    else:
        reading.lines.append(RequirementLine(text=text, position=position))


def _address(value: str, position: Position) -> str:
    """Return the value of an index option as a URL; a path that exists from the folder of the file starts from there."""
    if "://" in value or value.startswith("file:"):
        return value
    path = Path(position.file).parent / value
    return path.absolute().as_uri() if is_there(path) else value


def _names_folder(text: str, position: Position) -> bool:
    """Return whether a line is the path of a folder, as pip decides: it starts with `.` or has a `/`, and the folder exists."""
    match = _PROJECT.fullmatch(text)
    if match is None or "://" in text:
        return False
    folder = match["folder"].removeprefix("file:")
    return (folder.startswith(".") or "/" in folder) and is_folder(Path(position.file).parent / folder)


def _read_project_line(line: str, value: str, position: Position, reading: Reading) -> None:
    """Add the project in a folder, named by `-e` or alone, to the reading."""
    match = _PROJECT.fullmatch(value)
    folder = Path(position.file).parent / match["folder"].removeprefix("file://").removeprefix("file:") if match else None
    if match is None or folder is None:
        reading.mistakes.append(_mistake(position, f"`{value}` is not the folder of a project such as `.` or `./path[extra]`"))
    elif not is_folder(folder):
        reading.mistakes.append(_mistake(position, f"`{value}` is not read: there is no folder `{match['folder']}`"))
    else:
        extras = tuple(extra.strip() for extra in (match["extras"] or "").split(",") if extra.strip())
        reading.projects.append(ProjectLine(text=line, folder=folder, extras=extras, position=position))


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


def _with_project_name(text: str) -> str:
    """Return a requirement line; if it is only the address of a repository, with the name of its project before it.

    That is the name in its fragment. Without one it is that of the repository, if it can be locked: where the metadata at the
    commit has another name, that is told when it is read.
    """
    found = repository(text)
    if found is None:
        return text
    name = found.project or (found.name if found.is_commit and found.archive() else "")
    return f"{name} @ {text}" if name else text


def _repository_mistake(text: str) -> str:
    """Return the message about a line that names a repository that cannot be locked, with what to write; "" if it can be."""
    named = _NAMED_REPOSITORY.match(text)
    name, url = (named["name"], named["url"]) if named else ("", text)
    found = repository(url.partition(";")[0].strip())
    if found is not None and found.is_commit and found.archive() and name:
        return ""
    advice = archive_advice(found, name or found.project or found.name) if found is not None else ""
    wheel = "build a wheel of it (`pip wheel --no-deps`), and write `name @ file:…` or `name @ https://…`"
    return f"{IS_NO_FILE}, and {advice}" if advice else f"{IS_NO_FILE}: {wheel}"


def _source_mistake(text: str) -> str:
    """Return a message about a repository that cannot be locked, or a file without a name; "" for any other requirement."""
    if _VCS.search(text):
        return _repository_mistake(text)
    head = re.split(r"[;@\[<>=!~\s]", text, maxsplit=1)[0]
    is_file = "/" in head or "\\" in head or head.startswith(".") or head.endswith((".whl", ".tar.gz", ".zip"))
    if is_file:
        return "a file needs its name before it: write `name @ file:…` or `name @ https://…`"
    return ""


def _mistake(position: Position, text: str) -> Mistake:
    return Mistake(position.file, position.line, position.column, "", text)
