"""Read YAML files as plain data with the file, line and column of every key, and write files atomically.

Only this module imports ruamel.yaml.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from contextlib import suppress
from functools import cache
from pathlib import Path
from stat import S_IMODE
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, ValidationError

from provisioner.errors import InvalidDocumentError, Mistake, ProvisionError
from provisioner.places import Place
from provisioner.strict_model import Keys, half_characters, mistakes, read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruamel.yaml import YAML
    from ruamel.yaml.composer import Composer
    from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

    Model = TypeVar("Model", bound=Struct)

KeyPath = Keys

_TAG = "tag:yaml.org,2002:"
_TAGS = frozenset({"bool", "float", "int", "map", "null", "seq", "str", "timestamp"})
_HUGE = "is nested too deeply, or holds too much, to be read"
_PLAIN = re.compile(r"[A-Za-z/][\w./-]*", re.ASCII)
"""Texts that need no quotes, but for those of `NO_TEXTS`."""

NO_TEXTS = frozenset({"n", "no", "null", "off", "on", "true", "false", "y", "yes", ".inf", ".nan"})
"""Texts that YAML 1.1 or 1.2 takes for a boolean, null or a number where they are not quoted, in lower case."""

_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that JSON leaves in quotes as they are, and that YAML does not allow there, or takes for the end of a line."""

_LONGEST_KEY = 128
"""The most characters of a key in one line with its value: parsers look no further than 1024 for the colon."""

_CONSTANTS = {True: "true", False: "false", None: "null"}

STDIN = Path("-")
"""The path by which people name stdin."""

LARGEST_FILE = 256_000_000
"""The most bytes that are read of a text file. The nodes of a cluster of 10,000, as kubectl prints them, are about 150 MB."""

LARGEST_DOCUMENT = 4_000_000
"""The most characters of a YAML or TOML file, which are read with the place of every key, about a megabyte in a second.

The lock of 165 packages has 175,000, and the largest file of the matrix, which is exempt, is read by a compiled parser.
"""

TOO_LARGE = f"the file has more than {LARGEST_DOCUMENT:,} characters, the most that are read of a document"

_DEEPEST, _MOST = 50, 100_000
"""The most levels of nesting and values accepted in one file, which take some seconds to read.

They are counted while the text is parsed, and again with every alias as what it stands for: aliases can make the data of a
short file endless, or larger than memory.
"""


class FileError(ProvisionError):
    """Raised when a file cannot be read or written: it is missing, not permitted, not text, or the disk is full."""

    code = "file"
    exit_code = 2


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file that may be larger than memory, in hexadecimal; raises `FileError` when it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"`{path}` cannot be read: {error.strerror}") from None


class Position(Struct, frozen=True):
    """A line and column in a file, counted from 1 as editors do; `file` is "" if it is the document's own file."""

    line: int
    column: int
    file: str = ""


class Document(Struct, frozen=True):
    """Plain data read from one YAML file, with the position of every key and item and the text of every scalar."""

    file: str
    data: Any
    keys: dict[KeyPath, Position]
    texts: dict[KeyPath, str]

    def position(self, path: KeyPath) -> Position:
        """Return the position of a key or item; for a key that the file lacks, that of the nearest enclosing key."""
        while path and path not in self.keys:
            path = path[:-1]
        return self.keys.get(path, Position(1, 1))

    def position_in_file(self, path: KeyPath) -> Position:
        """Return the position of a key or item, with the name of the file."""
        position = self.position(path)
        return Position(position.line, position.column, self.file)

    def value(self, path: KeyPath) -> object:
        """Return the value of a key below mappings alone; None where there is none."""
        found = self.data
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        return found

    def below(self, path: KeyPath) -> Document:
        """Return the part of this document under a key path as a document with the same positions."""
        data = self.data
        for part in path:
            data = data[part]
        length = len(path)
        keys = {key[length:]: position for key, position in self.keys.items() if key[:length] == path}
        texts = {key[length:]: text for key, text in self.texts.items() if key[:length] == path}
        return Document(self.file, data, keys, texts)

    def place(self, path: KeyPath) -> Place:
        """Return the file and line of a key."""
        position = self.position(path)
        return Place(position.file or self.file, position.line)

    def where(self, path: KeyPath) -> str:
        """Return the file and line of a key, as `file:line`."""
        return str(self.place(path))

    def places(self) -> dict[str, Place]:
        """Return the file and line of every key by its dotted path, such as `target.platform` or `packages.0`."""
        return {".".join(str(part) for part in path): self.place(path) for path in self.keys}

    def mistake(self, path: KeyPath, text: str, *, first: str = "") -> Mistake:
        """Return a mistake at a key path, to be reported with the others of the file; `first` as in `Mistake`."""
        position = self.position(path)
        where = "" if position.file else dotted(path)  # the key path is wrong for a line of another file
        return Mistake(position.file or self.file, position.line, position.column, where, text, first)


def dotted(path: KeyPath) -> str:
    """Return a key path as text for messages, such as `packages[0].name`."""
    spelled = ""
    for part in path:
        spelled += f"[{part}]" if isinstance(part, int) else f".{part}" if spelled else str(part)
    return spelled


def read_text(path: Path, *, kind: str, most: int = LARGEST_FILE) -> str:
    """Return the text of a UTF-8 file; raises `FileError` as `read_content` does, and for what is not UTF-8."""
    return _decoded(read_content(path, kind=kind, most=most), "utf-8", path, kind)


def read_printed(path: Path, *, kind: str, most: int = LARGEST_FILE) -> str:
    """Return the text that a program printed into a file, or into `STDIN`: in UTF-8, or in UTF-16 with a byte order mark.

    PowerShell redirects output into UTF-16. The mark is left out. Raises `FileError` as `read_text` does.
    """
    content = _stdin(kind, most) if path == STDIN else read_content(path, kind=kind, most=most)
    is_wide = content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    return _decoded(content, "utf-16" if is_wide else "utf-8-sig", path, kind)


def _decoded(content: bytes, encoding: str, path: Path, kind: str) -> str:
    try:
        return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")  # as files of text are read
    except UnicodeDecodeError as error:
        if encoding == "utf-16":
            raise FileError(f"{kind} `{told(path)}` is not UTF-16 text, though it begins like it") from None
        raise FileError(f"{kind} `{told(path)}` is not UTF-8 text (byte {error.start})") from None


def told(path: Path) -> str:
    """Return the name of a file for messages: `stdin` for `STDIN`."""
    return "stdin" if path == STDIN else str(path)


def read_content(path: Path, *, kind: str, most: int) -> bytes:
    """Return the bytes of a file; raises `FileError` with the name of the file and the reason.

    `kind` names the kind of file in the message, `most` is the most bytes that are read of it: a device may never end.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(most + 1)
    except OSError as error:
        raise unreadable(str(path), error, kind=kind) from None
    return _bounded(content, path, kind, most)


def _stdin(kind: str, most: int) -> bytes:
    if sys.stdin is None:
        raise FileError(f"{kind} `{told(STDIN)}` is closed")
    try:
        content = sys.stdin.buffer.read(most + 1)
    except OSError as error:
        raise unreadable(told(STDIN), error, kind=kind) from None
    return _bounded(content, STDIN, kind, most)


def _bounded(content: bytes, path: Path, kind: str, most: int) -> bytes:
    if len(content) > most:
        raise FileError(f"{kind} `{told(path)}` is larger than {most // 1_000_000} MB, the most that is read of one")
    return content


def unreadable(name: str, error: OSError, *, kind: str) -> FileError:
    """Return the error of a file, as it was named, that cannot be read; `kind` names the kind of file."""
    match error:
        case FileNotFoundError():
            return FileError(f"{kind} `{name}` does not exist")
        case IsADirectoryError():
            return FileError(f"{kind} `{name}` is a directory, not a file")
        case _:
            return FileError(f"{kind} `{name}` cannot be read: {error.strerror}")


def yaml_text(data: Mapping[str, Any]) -> str:
    """Return plain data without floating-point numbers as a YAML document that parsers of YAML 1.1 and 1.2 read alike.

    A text that a parser could take for something else is quoted. Lists of scalars, and mappings of such lists and scalars that
    are items of a list, are on one line each.
    """
    return f"{_block(data, '') or '{}'}\n"  # an emitter in pure Python takes thirty times as long


def _block(value: Any, indent: str) -> str:  # noqa: ANN401 - YAML holds anything
    """Return a mapping or a list whose lines begin with `indent`, which the first one lacks."""
    if isinstance(value, dict):
        entries = (f"{_key(key, indent)}{_below(item, indent)}" for key, item in value.items())
    else:
        entries = (f"- {_flow(item) if _is_short(item) else _block(item, f'{indent}  ')}" for item in value)
    return f"\n{indent}".join(entries)


def _key(key: str, indent: str) -> str:
    text = _flow(key)
    return f"{text}:" if len(text) <= _LONGEST_KEY else f"? {text}\n{indent}:"


def _below(value: Any, indent: str) -> str:  # noqa: ANN401 - YAML holds anything
    """Return what stands behind a key and its colon."""
    if value is None:
        return ""
    if isinstance(value, dict) and value:
        return f"\n{indent}  {_block(value, f'{indent}  ')}"
    return f"\n{indent}  {_block(value, f'{indent}  ')}" if _is_nested(value) else f" {_flow(value)}"


def _is_short(item: Any) -> bool:  # noqa: ANN401 - YAML holds anything
    """Return whether an item of a list is on one line: a scalar, a list of scalars, or a mapping of such lists and scalars."""
    if not isinstance(item, dict):
        return not _is_nested(item)
    return not any(isinstance(one, dict) or _is_nested(one) or len(key) > _LONGEST_KEY for key, one in item.items())


def _flow(value: Any) -> str:  # noqa: ANN401 - YAML holds anything
    """Return a value on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_flow(key)}: {_flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in NO_TEXTS:
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04X}", quoted)
    assert not isinstance(value, float), "no document has one, and their spelling is a rule of its own"
    return _CONSTANTS[value] if isinstance(value, bool | None) else str(value)


def _is_nested(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, dict | list | tuple) for item in value)


def write_text(path: Path, text: str) -> None:
    """Write a file atomically; raises `FileError` (disk full, not permitted) and leaves an existing file unchanged."""
    write_together({path: text.encode()})


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write several files together: all are on disk under temporary names before the first is renamed.

    An existing file keeps its mode. Of a symbolic link, the file it points to is replaced. Raises `FileError` (disk full, not
    permitted). After that error no file has changed, unless a rename failed after others had succeeded; the message then names
    the files that have changed.
    """
    staged: list[tuple[Path, Path, Path]] = []
    done, path = "", Path()
    try:
        for path, content in files.items():
            if path.exists() and not path.is_file():  # checked before any file has been renamed
                raise FileExistsError(0, "it is a directory" if path.is_dir() else "it is a device or a pipe")
            place = Path(os.path.realpath(path)) if path.is_symlink() else path
            place.parent.mkdir(parents=True, exist_ok=True)
            temporary = place.with_name(f".provision-{os.urandom(8).hex()}")  # `tempfile` takes a millisecond to import
            staged.append((path, place, temporary))
            with temporary.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            if place.exists() and (mode := place.stat().st_mode) != temporary.stat().st_mode:
                temporary.chmod(S_IMODE(mode))
        for path, place, temporary in staged:
            temporary.replace(place)
            done = f"{done}`{path}` is written already; "
    except OSError as error:
        hint = f"{done or 'nothing was changed; '}free space or choose another --out"
        raise FileError(f"`{path}` cannot be written: {error.strerror}", hints=(hint,)) from None
    finally:
        for _, _, temporary in staged:  # also after an interrupt
            temporary.unlink(missing_ok=True)


def load_document(path: Path, *, kind: str, is_ours: bool = False) -> Document:
    """Read one YAML file; raises `FileError`, or `InvalidDocumentError` as `parse_document` does, with the same options."""
    text = read_text(path, kind=kind, most=LARGEST_DOCUMENT)
    return parse_document(text, file=str(path), kind=kind, is_ours=is_ours)


def parse_document(text: str, *, file: str, kind: str, is_ours: bool = False) -> Document:
    """Read YAML text; raises `InvalidDocumentError` with the position of a syntax error, or of every duplicate key.

    `kind` names the kind of file in messages. `is_ours` marks a file of a matrix, or another that this package ships. Libyaml
    parses it and all that is plain, eight times as fast as pure Python, unless it may be nested so deep that libyaml crashes.
    """
    from ruamel.yaml.error import MarkedYAMLError

    if len(text) > LARGEST_DOCUMENT:
        raise InvalidDocumentError(kind, (Mistake(file, 1, 1, "", TOO_LARGE),))
    if (is_ours or _is_plain(text)) and not _may_be_deep(text):
        try:
            return _converted(_yaml(is_compiled=True).compose(text), file, kind, max(_MOST, len(text)) if is_ours else _MOST)
        except MarkedYAMLError:
            pass
        except InvalidDocumentError:
            if is_ours:
                raise
    return _parsed(text, file, kind)


def _yaml(*, is_compiled: bool) -> YAML:
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=not is_compiled)
    if not is_compiled:
        yaml.Composer = _bounded_composer()
        yaml.max_depth = _DEEPEST + 1
        yaml.composer.warn_double_anchors = False  # YAML 1.2.2, 7.1: an alias means the last node that was so anchored
    return yaml


def _parsed(text: str, file: str, kind: str) -> Document:
    """Read YAML text with the parser in pure Python, whose errors are told."""
    from ruamel.yaml.composer import MaxDepthExceededError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        node = _yaml(is_compiled=False).compose(text)
    except MarkedYAMLError as error:
        if unmerged := merge_conflicts(text, file):
            raise InvalidDocumentError(kind, unmerged) from None
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        is_deep = isinstance(error, MaxDepthExceededError)
        reason = f"the file {_HUGE}" if is_deep else " ".join(filter(None, (error.context, error.problem))) or "not YAML"
        if error.problem == _TAB:
            reason = "a tab cannot indent YAML; write spaces"
        raise InvalidDocumentError(kind, (Mistake(file, line, column, "", reason),)) from None
    except (YAMLError, RecursionError) as error:
        reason = str(error).splitlines()[0] if isinstance(error, YAMLError) else "the file is nested too deeply to be read"
        raise InvalidDocumentError(kind, (Mistake(file, 1, 1, "", reason),)) from None
    return _converted(node, file, kind, _MOST)


def _converted(node: Node | None, file: str, kind: str, most: int) -> Document:
    """Return the document of a node graph with at most `most` values; raises `InvalidDocumentError`."""
    reader = _Reader(file, kind, most)  # only aliases make more values than signs
    data = reader.value(node, ()) if node is not None else None
    if reader.mistakes:
        raise InvalidDocumentError(kind, tuple(reader.mistakes))
    return Document(file, data, reader.keys, reader.texts)


_RARE = re.compile(r"""[&!|%]|>(?![=\d])|["']:(?=\S)""")
"""Signs that libyaml may read otherwise: of anchors, tags, texts of several lines, directives, and of keys as JSON has them."""


def _is_plain(text: str) -> bool:
    """Return whether libyaml reads a YAML text as the parser in pure Python does: it also takes tabs and other line ends."""
    return all(map(str.isprintable, text.split("\n"))) and not _RARE.search(text)


_DEEPEST_COMPILED = 1_000
"""The most levels of nesting, as `_may_be_deep` counts them, with which libyaml is trusted: it crashes at some 100,000."""

_OPENS = re.compile(r"^[ ?-]+|[\[\]{}]", re.MULTILINE)


def _may_be_deep(text: str) -> bool:
    """Return whether a YAML text may be nested deeper than `_DEEPEST_COMPILED` levels; brackets in quotes count, too."""
    open_brackets = 0
    for found in _OPENS.findall(text):
        if found in "[{":
            open_brackets += 1
        elif found in "]}":
            open_brackets -= 1
        elif len(found) > _DEEPEST_COMPILED:  # as many blanks, or `- ` as often
            return True
        if open_brackets > _DEEPEST_COMPILED:
            return True
    return False


_TAB = r"found character '\t' that cannot start any token"
"""What the parser says of a tab at the beginning of a line."""

_CONFLICT = re.compile(r"^<<<<<<< ", re.MULTILINE)


def merge_conflicts(text: str, file: str) -> tuple[Mistake, ...]:
    """Return a mistake for each conflict that a merge of git left in a text, which no parser names as such."""
    lines = (text.count("\n", 0, found.start()) + 1 for found in _CONFLICT.finditer(text))
    reason = "a merge left both sides of a conflict here; keep one (a generated file is best written anew)"
    return tuple(Mistake(file, line, 1, "", reason) for line in lines)


@cache
def _bounded_composer() -> type[Composer]:
    """Return the class that builds the nodes of a YAML text, and refuses more than `_MOST` of them."""
    from ruamel.yaml import composer

    class BoundedComposer(composer.Composer):
        count = 0

        def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - as the method that it replaces
            self.count += 1
            if self.count > _MOST:
                raise composer.ComposerError(None, None, f"the file {_HUGE}", self.parser.peek_event().start_mark)
            return super().compose_node(parent, index)

    return BoundedComposer


class _Reader:
    """Converts a ruamel.yaml node graph into plain data, and records the position of every key and the text of every scalar."""

    def __init__(self, file: str, kind: str, most: int) -> None:
        self.file = file
        self.kind = kind
        self.keys: dict[KeyPath, Position] = {}
        self.texts: dict[KeyPath, str] = {}
        self.mistakes: list[Mistake] = []
        self._left = most
        self._inside: dict[int, KeyPath] = {}

    def value(self, node: Node, path: KeyPath) -> Any:  # noqa: ANN401 - YAML holds anything
        from ruamel.yaml.nodes import MappingNode, SequenceNode

        self._left -= 1
        circle, name = self._inside.get(id(node)), node.anchor
        if circle is not None or self._left < 0 or len(path) > _DEEPEST:
            words = f"`&{name}` holds itself, as `*{name}` at {dotted(path)}; write it out" if circle is not None else _HUGE
            self._mistake(node, path[:1] if circle is None else circle, words)
            raise InvalidDocumentError(self.kind, tuple(self.mistakes))
        tag = str(node.tag)
        if tag.removeprefix(_TAG) not in _TAGS:
            self._mistake(node, path, f"the tag `{tag.replace(_TAG, '!!')}` is not read; write the value without it")
            return None
        if isinstance(node, MappingNode | SequenceNode):
            self._inside[id(node)] = path
            found = self._mapping(node, path) if isinstance(node, MappingNode) else self._sequence(node, path)
            del self._inside[id(node)]
            return found
        self.texts[path] = node.value
        return self._scalar(node)

    def _mistake(self, node: Node, path: KeyPath, text: str) -> None:
        mark = node.start_mark
        self.mistakes.append(Mistake(self.file, mark.line + 1, mark.column + 1, dotted(path), text))

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if not isinstance(key_node.value, str) or key == "<<":
                self._mistake(key_node, path, "keys must be plain words; merge keys (<<) are not read")
                continue
            below = (*path, key)
            if key in result:
                self._mistake(key_node, below, f"`{key}` is given twice; the first is on line {self.keys[below].line}")
                continue
            self.keys[below] = Position(key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            result[key] = self.value(value_node, below)
        return result

    def _sequence(self, node: SequenceNode, path: KeyPath) -> tuple[Any, ...]:
        result = []
        for index, item in enumerate(node.value):
            below = (*path, index)
            self.keys[below] = Position(item.start_mark.line + 1, item.start_mark.column + 1)
            result.append(self.value(item, below))
        return tuple(result)

    def _scalar(self, node: Node) -> str | int | float | bool | None:
        tag = str(node.tag).removeprefix(_TAG)
        text = str(node.value)
        if tag == "null":
            return None
        if tag == "bool":
            return text.lower() == "true"
        with suppress(ValueError):  # 0o9, or too many digits: remains text, which the model rejects if it requires a number
            if tag == "int":
                return int(text.replace("_", ""), 0)
            if tag == "float":
                return float(text.replace("_", ""))
        return text


def parse_model(document: Document, model: type[Model], *, kind: str, besides: tuple[Mistake, ...] = ()) -> Model:
    """Validate a document against a model; raises `InvalidDocumentError` with every mistake at its line and column.

    `besides` are mistakes that other checks found; they are reported, too, except at positions where the model finds a mistake.
    """
    if not isinstance(document.data, dict):
        raise InvalidDocumentError(kind, (Mistake(document.file, 1, 1, "", "the file must hold a mapping of keys to values"),))
    valid, wrong = None, half_characters(document.data)
    if not wrong:
        try:
            valid = read(document.data, model)
        except ValidationError:
            wrong = mistakes(document.data, model, document.texts)
            assert wrong, "what msgspec refuses has a mistake"
    found = [document.mistake(one.path, one.text) for one in wrong]
    places = {(one.file, one.line, one.column) for one in found}
    found += [one for one in besides if (one.file, one.line, one.column) not in places]
    if valid is None or found:
        raise InvalidDocumentError(kind, tuple(found))
    return valid


def is_there(path: Path) -> bool:
    """Return whether there is a file or folder at a path; a path that no file system takes names none."""
    try:
        return path.exists()
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Return whether there is a file at a path; a path that no file system takes, such as one that is too long, names none."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Return whether there is a folder at a path; a path that no file system takes names none."""
    try:
        return path.is_dir()
    except OSError:
        return False
