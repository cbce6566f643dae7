"""A roster: many hosts from files of several kinds, each with its name and, where Kubernetes told it, its labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.document import Document, Position, dotted, parse_document, read_text
from provisioner.errors import InvalidDocumentError, Mistake, UsageError
from provisioner.host.kubernetes import NodeReader, is_kubernetes, node_objects
from provisioner.host.products import Products
from provisioner.host.profile import KIND, host_from_document
from provisioner.host.roster_csv import read_table
from provisioner.host.roster_json import load_json, with_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.document import KeyPath
    from provisioner.host.model import Host

SUFFIXES = (".yaml", ".yml", ".json", ".csv")
STDIN = Path("-")
_KIND_OF_LIST = "host list"
_MOST_MISTAKES = 20
"""Mistakes of one file that are looked for: a table made by a script has the same one ten thousand times."""


class ListedHost(Struct, frozen=True, kw_only=True):
    """One host of a roster, or `count` identical ones. `labels` are its Kubernetes labels, none elsewhere.

    `where` is its place: a file, with the line or the item. Hosts that state the same share one `Host`, and nodes labelled
    alike one mapping. `notes` are what a person should know beside the facts: a node that is cordoned, GPUs no label describes.
    """

    name: str
    host: Host
    labels: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    count: int = 1
    notes: tuple[str, ...] = ()


def read_roster(paths: Sequence[Path], *, products: Mapping[str, str] | None = None) -> tuple[ListedHost, ...]:
    """Read the hosts of files and directories, in the order given.

    A file is a host profile (.yaml, .json), a list of profiles (.json), a table (.csv), or what `kubectl get nodes` prints with
    `-o json` or `-o yaml`; `-` is what comes in on stdin. A directory stands for every such file in it and below it, by name;
    what is hidden is left out.
    `products` maps the products somebody knows, and their PCI device ids, to what they are, for labels that tell only those.
    Raises `FileError`, `UsageError` (nothing there, two hosts of one name) and `InvalidDocumentError` with the mistakes of all.
    """
    reader = _Reader(NodeReader(Products(products or {})))
    for path in paths:
        reader.read(path)
    return reader.roster()


def _form_and_text(path: Path) -> tuple[str, str]:
    """How a file is written, by its ending, and where that says nothing by how it begins; and its text."""
    if path == STDIN:
        import sys

        text = sys.stdin.read()
    else:
        text = read_text(path, kind="host table" if path.suffix.lower() == ".csv" else KIND)
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return {".csv": "csv", ".json": "json"}.get(suffix, "yaml"), text
    begin = text.lstrip("\ufeff \t\r\n")[:1]
    return ("json" if begin in {"{", "["} else "csv" if "," in text.partition("\n")[0] else "yaml"), text


class _Reader:
    def __init__(self, nodes: NodeReader) -> None:
        self._nodes = nodes
        self._hosts: dict[Host, Host] = {}
        self._found: list[ListedHost] = []
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

    def roster(self) -> tuple[ListedHost, ...]:
        """What was found; raises `InvalidDocumentError` for all that was wrong, `UsageError` for names given twice."""
        if self._mistakes:
            kind = next(iter(self._kinds)) if len(self._kinds) == 1 else "list of hosts"
            raise InvalidDocumentError(kind, tuple(self._mistakes))
        seen: dict[str, ListedHost] = {}
        for one in self._found:
            other = seen.setdefault(one.name, one)
            if other is not one:
                places = (f"{other.name}  ({other.where})", f"{one.name}  ({one.where})")
                raise UsageError(
                    f"two hosts are called `{one.name}`", causes=places, hints=("give each host a name of its own",)
                )
        return tuple(self._found)

    def _file(self, path: Path, name: str) -> None:
        try:
            self._found += self._hosts_in(path, name)
        except InvalidDocumentError as error:
            self._mistakes += error.mistakes
            self._kinds[error.message.rpartition(" has ")[0]] = None

    def _hosts_in(self, path: Path, name: str) -> Iterator[ListedHost]:
        form, text = _form_and_text(path)
        file = "stdin" if path == STDIN else str(path)
        if form == "csv":
            for row in read_table(text, file=file):
                yield ListedHost(name=row.name, host=self._one(row.host), where=f"{file}:{row.line}", count=row.count)
        elif form == "json":
            yield from self._listed(_Json(load_json(text, file=file, kind=_KIND_OF_LIST), text, file), name)
        else:
            document = parse_document(text, file=file, kind=KIND)
            if is_kubernetes(document.data):
                yield from self._kubernetes(document.data, file, lambda: document)
            else:
                yield ListedHost(name=name, host=self._one(host_from_document(document)), where=file)

    def _one(self, host: Host) -> Host:
        return self._hosts.setdefault(host, host)

    def _kubernetes(self, data: Mapping[str, Any], file: str, places: Callable[[], Document]) -> Iterator[ListedHost]:
        wrong: list[tuple[KeyPath, str]] = []
        for path, item in node_objects(data, _noting(wrong, ())):
            node = self._nodes.read(item, _noting(wrong, path))
            if node is not None:
                host, where = self._one(node.host), f"{file}: {dotted(path)}" if path else file
                yield ListedHost(name=node.name, host=host, labels=node.labels, where=where, notes=node.notes)
        if wrong:
            document = places()
            found = tuple(document.mistake(path, text) for path, text in wrong[:_MOST_MISTAKES])
            raise InvalidDocumentError("list of nodes", found)

    def _listed(self, source: _Json, name: str) -> Iterator[ListedHost]:
        if is_kubernetes(source.data):
            yield from self._kubernetes(source.data, source.file, source.places)
        elif isinstance(source.data, Mapping):
            yield ListedHost(name=name, host=self._one(source.host(())), where=source.file)
        elif isinstance(source.data, Sequence) and not isinstance(source.data, str):
            yield from self._items(source, name)
        else:
            raise InvalidDocumentError(_KIND_OF_LIST, (Mistake(source.file, 1, 1, "", "must hold a host, or a list of them"),))

    def _items(self, source: _Json, name: str) -> Iterator[ListedHost]:
        """Profiles, each as it is or under `host` beside its `name` and `count`."""
        mistakes: list[Mistake] = []
        for index, item in enumerate(source.data):
            is_named = isinstance(item, Mapping) and "host" in item
            try:
                host = self._one(source.host((index, "host") if is_named else (index,)))
                own = source.heading(index) if is_named else {}
                where = f"{source.file}[{index}]"
                yield ListedHost(name=own.get("name", f"{name}[{index}]"), host=host, where=where, count=own.get("count", 1))
            except InvalidDocumentError as error:
                mistakes += error.mistakes
                if len(mistakes) >= _MOST_MISTAKES:
                    break
        if mistakes:
            raise InvalidDocumentError(_KIND_OF_LIST, tuple(mistakes))


def _noting(found: list[tuple[KeyPath, str]], base: KeyPath) -> Callable[[KeyPath, str], None]:
    """Where to report what is wrong below `base`."""
    return lambda path, text: found.append(((*base, *path), text))


class _Json:
    """A JSON file: its data, and where things stand in it, which is worked out when something is wrong."""

    def __init__(self, data: Any, text: str, file: str) -> None:  # noqa: ANN401 - whatever the file holds
        self.data = data
        self.file = file
        self._text = text
        self._document: Document | None = None
        self._valid: dict[str, Host] = {}

    def places(self) -> Document:
        """The file with the place of every key."""
        if self._document is None:
            self._document = with_places(self._text, self.data, file=self.file)
        return self._document

    def host(self, path: KeyPath) -> Host:
        """The profile at a path; raises `InvalidDocumentError`. One that was read before is not checked again."""
        import json

        data = self.data
        for part in path:
            data = data[part]
        spelled = json.dumps(data, sort_keys=True)
        if spelled not in self._valid:
            try:
                self._valid[spelled] = host_from_document(Document(self.file, _tuples(data), {}, {}))
            except InvalidDocumentError:
                located = replace(self.places().below(path), data=_tuples(data))
                located.keys.setdefault((), self.places().keys.get(path, Position(1, 1)))
                self._valid[spelled] = host_from_document(located)
        return self._valid[spelled]

    def heading(self, index: int) -> dict[str, Any]:
        """`name` and `count` of an item; raises `InvalidDocumentError` for what is neither."""
        item = self.data[index]
        wrong = [((index, key), f"unknown key `{key}`; known keys: count, host, name") for key in item if key not in _HEADING]
        name, count = item.get("name", "x"), item.get("count", 1)
        if not isinstance(name, str) or not name:
            wrong.append(((index, "name"), "must be text"))
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            wrong.append(((index, "count"), "must be a whole number from 1"))
        if wrong:
            raise InvalidDocumentError(_KIND_OF_LIST, tuple(self.places().mistake(path, text) for path, text in wrong))
        return {key: item[key] for key in ("name", "count") if key in item}


_HEADING = frozenset({"name", "count", "host"})


def _tuples(value: Any) -> Any:  # noqa: ANN401 - plain data
    """Lists as tuples, which is what documents hold."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
