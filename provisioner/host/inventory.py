"""Read an inventory: many hosts from files of several kinds, each with its name and, from Kubernetes, its labels."""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.document import Document, KeyPath, Position, dotted, parse_document, read_text
from provisioner.errors import InvalidDocumentError, Mistake, UsageError
from provisioner.host.catalogue import Catalogue
from provisioner.host.inventory_csv import KIND as KIND_OF_TABLE
from provisioner.host.inventory_csv import read_table
from provisioner.host.kubernetes import NodeReader, is_kubernetes
from provisioner.host.profile import KIND, host_from_document
from provisioner.places import Place
from provisioner.strict_model import with_tuples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.host.model import Host
    from provisioner.host.remark import NodeRemark

SUFFIXES = (".yaml", ".yml", ".json", ".csv")
STDIN = Path("-")
_KIND_OF_LIST = "host list"
_KEYS_OF_ITEM = ("count", "host", "name")
_MOST_MISTAKES = 20
"""The most mistakes reported for one file: a table made by a script may have the same mistake ten thousand times."""


class InventoryHost(Struct, frozen=True, kw_only=True):
    """One host of an inventory, or `count` identical hosts; `labels` are the Kubernetes labels, empty for other sources.

    `place` is the file with the line or item that lists the host. Hosts with equal facts share one `Host`, and nodes with equal
    labels one mapping. `remarks` are about the Kubernetes node, such as that it is cordoned, or that no label describes its
    GPUs.
    """

    name: str
    host: Host
    labels: Mapping[str, str] = field(default_factory=dict)
    place: Place | None = None
    count: int = 1
    remarks: tuple[NodeRemark, ...] = ()


def read_inventory(paths: Sequence[Path], *, catalogue: Catalogue | None = None) -> tuple[InventoryHost, ...]:
    """Return the hosts in files and directories, in the order of `paths`.

    A file is a host profile (.yaml, .json), a list of profiles (.json), a table (.csv), or the output of `kubectl get nodes`
    with `-o json` or `-o yaml`; `-` is stdin. A directory stands for all such files in and below it, sorted by name, except
    hidden files. `catalogue` translates the names in the files to those of the matrix.

    Raises `FileError` when a file cannot be read, `UsageError` for a directory without hosts or two hosts of one name, and
    `InvalidDocumentError` with the mistakes of all files.
    """
    reader = _Reader(catalogue or Catalogue())
    for path in paths:
        reader.read(path)
    return reader.inventory()


class _Reader:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._nodes = NodeReader(catalogue)
        self._hosts: dict[Host, Host] = {}
        self._found: list[InventoryHost] = []
        self._mistakes: list[Mistake] = []
        self._kinds: dict[str, None] = {}

    def read(self, path: Path) -> None:
        if not path.is_dir():
            self._file(path, path.stem)
            return
        below = (one for one in path.rglob("*") if one.suffix.lower() in SUFFIXES and one.is_file())
        found = sorted(one for one in below if not any(part.startswith(".") for part in one.relative_to(path).parts))
        if not found:
            raise UsageError(f"`{path}` holds no hosts", hints=(f"put files in it that end in {', '.join(SUFFIXES)}",))
        for one in found:
            self._file(one, one.relative_to(path).with_suffix("").as_posix())

    def inventory(self) -> tuple[InventoryHost, ...]:
        """Return all hosts; raises `InvalidDocumentError` with all mistakes, `UsageError` if two hosts have one name."""
        if self._mistakes:
            kind = next(iter(self._kinds)) if len(self._kinds) == 1 else "list of hosts"
            raise InvalidDocumentError(kind, tuple(self._mistakes))
        seen: dict[str, InventoryHost] = {}
        for one in self._found:
            other = seen.setdefault(one.name, one)
            if other is not one:
                places = (f"{other.name}  ({other.place})", f"{one.name}  ({one.place})")
                raise UsageError(
                    f"two hosts are called `{one.name}`", causes=places, hints=("give each host a name of its own",)
                )
        return tuple(self._found)

    def _file(self, path: Path, name: str) -> None:
        try:
            self._found += self._hosts_in(path, name)
        except InvalidDocumentError as error:
            self._mistakes += error.mistakes
            self._kinds[error.kind] = None

    def _hosts_in(self, path: Path, name: str) -> Iterator[InventoryHost]:
        form, text = _form_and_text(path)
        file = "stdin" if path == STDIN else str(path)
        if form == "csv":
            for row in read_table(text, file=file):
                yield InventoryHost(name=row.name, host=self._shared(row.host), place=Place(file, row.line), count=row.count)
        elif form == "json":
            yield from self._listed(_Json(text, file), name)
        else:
            document = parse_document(text, file=file, kind=KIND)
            if is_kubernetes(document.data):
                yield from self._kubernetes(document.data, file, lambda: document)
            else:
                yield InventoryHost(name=name, host=self._shared(host_from_document(document)), place=Place(file))

    def _shared(self, host: Host) -> Host:
        """Return a host with its GPU and system names translated to those of the matrix; the same object for equal hosts."""
        if host not in self._hosts:
            identified = self._catalogue.identify(host)
            self._hosts[host] = self._hosts.setdefault(identified, identified)
        return self._hosts[host]

    def _kubernetes(self, data: Mapping[str, Any], file: str, places: Callable[[], Document]) -> Iterator[InventoryHost]:
        for path, node in self._nodes.read(data):
            place = Place(f"{file}: {dotted(path)}" if path else file)
            yield InventoryHost(
                name=node.name, host=self._shared(node.host), labels=node.labels, place=place, remarks=node.remarks
            )
        if self._nodes.mistakes:
            document = places()
            found = tuple(document.mistake(path, text) for path, text in self._nodes.mistakes[:_MOST_MISTAKES])
            self._nodes.mistakes.clear()
            raise InvalidDocumentError("list of nodes", found)

    def _listed(self, source: _Json, name: str) -> Iterator[InventoryHost]:
        if is_kubernetes(source.data):
            yield from self._kubernetes(source.data, source.file, source.places)
        elif isinstance(source.data, Mapping):
            yield InventoryHost(name=name, host=self._shared(source.host(())), place=Place(source.file))
        elif isinstance(source.data, Sequence) and not isinstance(source.data, str):
            yield from self._items(source, name)
        else:
            raise InvalidDocumentError(_KIND_OF_LIST, (Mistake(source.file, 1, 1, "", "must hold a host, or a list of them"),))

    def _items(self, source: _Json, name: str) -> Iterator[InventoryHost]:
        """Yield the hosts of a list whose items are profiles, or have a profile under `host` beside a `name` and `count`."""
        mistakes: list[Mistake] = []
        for index, item in enumerate(source.data):
            is_named = isinstance(item, Mapping) and "host" in item
            try:
                host = self._shared(source.host((index, "host") if is_named else (index,)))
                own = source.heading(index) if is_named else {}
                place = Place(f"{source.file}[{index}]")
                yield InventoryHost(name=own.get("name", f"{name}[{index}]"), host=host, place=place, count=own.get("count", 1))
            except InvalidDocumentError as error:
                mistakes += error.mistakes
                if len(mistakes) >= _MOST_MISTAKES:
                    break
        if mistakes:
            raise InvalidDocumentError(_KIND_OF_LIST, tuple(mistakes))


def _form_and_text(path: Path) -> tuple[str, str]:
    """Return the format of a file (`csv`, `json` or `yaml`), from its suffix or else its first characters, and its text."""
    suffix = path.suffix.lower()
    text = sys.stdin.read() if path == STDIN else read_text(path, kind=KIND_OF_TABLE if suffix == ".csv" else KIND)
    if suffix in SUFFIXES:
        return {".csv": "csv", ".json": "json"}.get(suffix, "yaml"), text
    begin = text.lstrip("\ufeff \t\r\n")[:1]
    return ("json" if begin in {"{", "["} else "csv" if "," in text.partition("\n")[0] else "yaml"), text


class _Json:
    """A JSON file with its data, and the line and column of every key, which are computed only to report a mistake.

    Raises `InvalidDocumentError` at the line and column of a syntax error.
    """

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._text = text.removeprefix("\ufeff")
        self._places: Document | None = None
        self._valid: dict[str, Host] = {}
        try:
            self.data = json.loads(self._text)
        except json.JSONDecodeError as error:
            mistake = Mistake(file, error.lineno, error.colno, "", f"is not JSON: {error.msg}")
            raise InvalidDocumentError(_KIND_OF_LIST, (mistake,)) from None
        except RecursionError:
            mistake = Mistake(file, 1, 1, "", "is nested too deeply to be read")
            raise InvalidDocumentError(_KIND_OF_LIST, (mistake,)) from None

    def places(self) -> Document:
        """Return the file as a document with the line and column of every key."""
        if self._places is None:
            walk = _Walk(self._text)
            walk.value(walk.blank(0), ())
            self._places = Document(self.file, self.data, walk.keys, walk.texts)
        return self._places

    def host(self, path: KeyPath) -> Host:
        """Return the profile at a path; raises `InvalidDocumentError`. Equal profiles are validated once."""
        data = self.data
        for part in path:
            data = data[part]
        spelled = json.dumps(data, sort_keys=True)
        if spelled not in self._valid:
            try:
                self._valid[spelled] = host_from_document(Document(self.file, with_tuples(data), {}, {}))
            except InvalidDocumentError:
                located = replace(self.places().below(path), data=with_tuples(data))
                located.keys.setdefault((), self.places().keys.get(path, Position(1, 1)))
                self._valid[spelled] = host_from_document(located)
        return self._valid[spelled]

    def heading(self, index: int) -> dict[str, Any]:
        """Return those of `name` and `count` that the item at `index` has; raises `InvalidDocumentError` if one is invalid."""
        item = self.data[index]
        known = ", ".join(_KEYS_OF_ITEM)
        wrong = [((index, key), f"unknown key `{key}`; known keys: {known}") for key in item if key not in _KEYS_OF_ITEM]
        name, count = item.get("name", "x"), item.get("count", 1)
        if not isinstance(name, str) or not name:
            wrong.append(((index, "name"), "must be text"))
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            wrong.append(((index, "count"), "must be a whole number from 1"))
        if wrong:
            raise InvalidDocumentError(_KIND_OF_LIST, tuple(self.places().mistake(path, text) for path, text in wrong))
        return {key: item[key] for key in ("name", "count") if key in item}


class _Walk:
    """Walks over valid JSON text and records the line and column of every key and item, and the text of every scalar."""

    _decoder = json.JSONDecoder()

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(index + 1 for index, char in enumerate(text) if char == "\n")]
        self.keys: dict[KeyPath, Position] = {}
        self.texts: dict[KeyPath, str] = {}

    def blank(self, index: int) -> int:
        """Return the index of the next character that is not white space."""
        while index < len(self._text) and self._text[index] in " \t\n\r":
            index += 1
        return index

    def value(self, index: int, path: KeyPath) -> int:
        """Walk over the value at `index`, and return the index after its end."""
        first = self._text[index]
        if first in "{[":
            return self._container(index, path, is_mapping=first == "{")
        value, end = self._decoder.raw_decode(self._text, index)
        self.texts[path] = value if isinstance(value, str) else self._text[index:end]
        return end

    def _container(self, index: int, path: KeyPath, *, is_mapping: bool) -> int:
        index = self.blank(index + 1)
        number = 0
        while self._text[index] not in "}]":
            below: KeyPath = (*path, number)
            line = bisect_right(self._lines, index)
            position = Position(line, index - self._lines[line - 1] + 1)
            if is_mapping:
                key, index = self._decoder.raw_decode(self._text, index)
                below = (*path, key)
                index = self.blank(self.blank(index) + 1)
            self.keys[below] = position
            index = self.blank(self.value(index, below))
            number += 1
            if self._text[index] == ",":
                index = self.blank(index + 1)
        return index + 1
