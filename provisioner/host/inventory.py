"""Read an inventory: many hosts from files of several kinds, each with its name and, from Kubernetes, its labels."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.document import (
    STDIN,
    Document,
    FileError,
    KeyPath,
    Position,
    dotted,
    is_there,
    parse_document,
    read_printed,
    told,
)
from provisioner.errors import InvalidDocumentError, Mistake, UsageError
from provisioner.host.ansible import KIND as KIND_OF_ANSIBLE
from provisioner.host.ansible import AnsibleReader, ansible_document, is_ansible, is_ansible_text
from provisioner.host.catalogue import Catalogue
from provisioner.host.inventory_csv import KIND as KIND_OF_TABLE
from provisioner.host.inventory_csv import read_table
from provisioner.host.kubernetes import NodeReader, is_kubernetes
from provisioner.host.profile import KIND, host_from_document, profile_names
from provisioner.host.remark import VariablesElsewhere
from provisioner.host.slurm import SlurmReader, is_slurm, is_slurm_text, slurm_document
from provisioner.places import Place
from provisioner.strict_model import with_tuples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.host.model import Host
    from provisioner.host.remark import NodeRemark

_FORMS = {".csv": "csv", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}
SUFFIXES = (*_FORMS, ".ini")
"""The suffixes of the files that are read in a directory."""

_KIND_OF_LIST = "host list"
_KEYS_OF_ITEM = ("count", "host", "name")
_MOST_MISTAKES = 20
"""The most mistakes reported for one file: a table made by a script may have the same mistake ten thousand times."""

_MOST_NAMES = 10
_KEY = re.compile(r"^[a-z_]+:", re.MULTILINE)
"""A key at the top level of a host profile; a text without one is something else."""

_CAPTURED = "`provision inspect` prints the profile of its machine, and with `--from FILE` what a captured report tells"
_VARIABLES = ("group_vars", "host_vars")
"""The folders beside an Ansible inventory that hold variables, too."""

Origin = Literal["", "kubernetes", "slurm", "ansible"]

Listed_co = TypeVar("Listed_co", covariant=True)


class _Named(Protocol):
    """What a list names; read-only, so that frozen structs are such."""

    @property
    def name(self) -> str: ...


NamedT = TypeVar("NamedT", bound=_Named)


class _NodeReader(Protocol[Listed_co]):
    """Reads what one program lists; `mistakes` are pairs of a key path in the document and a message."""

    mistakes: list[tuple[KeyPath, str]]

    def read(self, data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Listed_co]]: ...


class InventoryHost(Struct, frozen=True, kw_only=True):
    """One host of an inventory, or `count` identical hosts.

    `origin` is the program that lists the host; "" for profiles and tables. `labels` are those of a Kubernetes node, `features`
    those of a Slurm node; both are empty for other origins. `place` is the file with the line or item that lists the host.
    Hosts with equal facts share one `Host`, and nodes with equal labels one mapping. `remarks` are about the node, such as that
    it is cordoned, or that nothing describes its GPUs.
    """

    name: str
    host: Host
    origin: Origin = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    place: Place | None = None
    count: int = 1
    remarks: tuple[NodeRemark, ...] = ()


def read_inventory(
    paths: Sequence[Path], *, single: Sequence[Path] = (), catalogue: Catalogue | None = None
) -> tuple[InventoryHost, ...]:
    """Return the hosts in files and directories, in the order of `paths`, and after them those that `single` names.

    Each path in `single` is one for `read_host`.

    A file is a host profile or a list of profiles (.yaml, .json), a table (.csv), the output of `kubectl get nodes` with
    `-o json` or `-o yaml`, of `scontrol show node` (also with `--json`) or `sinfo --json`, or an inventory of Ansible: YAML,
    INI, or what `ansible-inventory --list` printed. What a file holds is seen from its content. `-` is stdin. A directory
    stands for all files in and below it with a known suffix, sorted by name, except hidden files. `catalogue` translates the
    names in the files to those of the matrix.

    Raises `FileError` when a file cannot be read, `UsageError` for a directory without hosts or two hosts of one name, and
    `InvalidDocumentError` with the mistakes of all files.
    """
    reader = _Reader(catalogue or Catalogue())
    for path in paths:
        reader.read(path)
    for path in single:
        reader.read_one(path)
    return reader.inventory()


def inventory_in(text: str, path: Path, *, catalogue: Catalogue | None = None) -> tuple[InventoryHost, ...]:
    """Return the hosts in the text that was read of a file or of stdin; raises as `read_inventory`."""
    reader = _Reader(catalogue or Catalogue())
    reader.read_text(path, text)
    return reader.inventory()


def read_host(path: Path, *, catalogue: Catalogue | None = None) -> Document | InventoryHost:
    """Return the one host that a path names: `FILE#NAME` is a host of an inventory, `FILE` that of a file with one host.

    A profile is returned as its document, in which every fact has a line. Raises `UsageError`, with the nearest names, if the
    inventory has no such host, or several for a path without a name, and the errors of `read_inventory`.
    """
    file, name = file_and_name(path)
    document = _profile_in(file) if not name and file != STDIN else None
    if document is not None:
        return document
    listed = read_inventory((file,), catalogue=catalogue)
    if name:
        return host_named(listed, name, path=file)
    if len(listed) == 1:
        return listed[0]
    if not listed:
        raise UsageError(f"`{file}` lists no host")
    raise UsageError(
        f"`{file}` lists {len(listed):,} hosts, and one is meant here",
        hints=(f"name it behind a #, as in {file}#{listed[0].name}", _listing(listed)),
    )


def host_named(listed: Sequence[NamedT], name: str, *, path: Path) -> NamedT:
    """Return the host of a list with a name; raises `UsageError` with the nearest names if there is none.

    `path` is the file that lists them.
    """
    found = next((one for one in listed if one.name == name), None)
    if found is not None:
        return found
    near = get_close_matches(name, [one.name for one in listed], n=3)
    hint = f"did you mean {' or '.join(f'`{one}`' for one in near)}?" if near else _listing(listed)
    raise UsageError(f"`{path}` lists no host `{name}`", hints=(hint,))


def _listing(listed: Sequence[_Named]) -> str:
    names = ", ".join(one.name for one in listed[:_MOST_NAMES]) or "no host"
    return f"it lists {names}{f' and {len(listed) - _MOST_NAMES:,} more' if len(listed) > _MOST_NAMES else ''}"


def file_and_name(path: Path) -> tuple[Path, str]:
    """Return the file and the name in `FILE#NAME`; the path itself and "" without a `#`, or if a file of this name exists."""
    file, mark, name = str(path).partition("#")
    return (path, "") if not mark or not file or is_there(path) else (Path(file), name)


class _Reader:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._hosts: dict[Host, Host] = {}
        self._found: list[InventoryHost] = []
        self._mistakes: list[Mistake] = []
        self._kinds: dict[str, None] = {}

    def read_text(self, path: Path, text: str) -> None:
        self._keep(self._hosts_in(_form(path, text), text, path, path.stem))

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

    def read_one(self, path: Path) -> None:
        found = read_host(path, catalogue=self._catalogue)
        if isinstance(found, Document):
            self._file(path, path.stem)
        else:
            self._found.append(found)

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
        form, text = _form_and_text(path)
        self._keep(self._hosts_in(form, text, path, name))

    def _keep(self, hosts: Iterable[InventoryHost]) -> None:
        try:
            self._found += hosts
        except InvalidDocumentError as error:
            self._mistakes += error.mistakes
            self._kinds[error.kind] = None

    def _hosts_in(self, form: str, text: str, path: Path, name: str) -> Iterator[InventoryHost]:
        file = told(path)
        match form:
            case "csv":
                for row in read_table(text, file=file):
                    place = Place(file, row.line)
                    yield InventoryHost(name=row.name, host=self._shared(row.host), place=place, count=row.count)
            case "json":
                yield from self._listed(_Json(text, file), path, name)
            case "scontrol":
                yield from self._slurm(_Yaml(slurm_document(text, file=file)))
            case "ini":
                yield from self._ansible(_Yaml(ansible_document(text, file=file)), path)
            case _:
                yield from self._listed(_Yaml(parse_document(text, file=file, kind=KIND)), path, name)

    def _shared(self, host: Host) -> Host:
        """Return a host with its GPU and system names translated to those of the matrix; the same object for equal hosts."""
        if host not in self._hosts:
            identified = self._catalogue.identify(host)
            self._hosts[host] = self._hosts.setdefault(identified, identified)
        return self._hosts[host]

    def _listed(self, source: _Source, path: Path, name: str) -> Iterator[InventoryHost]:
        data = source.data
        if is_kubernetes(data):
            yield from self._kubernetes(source)
        elif is_slurm(data):
            yield from self._slurm(source)
        elif is_ansible(data):
            yield from self._ansible(source, path)
        elif isinstance(data, Sequence) and not isinstance(data, str):
            yield from self._items(source, name)
        elif isinstance(data, Mapping) or not source.is_json:
            yield InventoryHost(name=name, host=self._shared(source.host(())), place=Place(source.file))
        else:
            raise InvalidDocumentError(_KIND_OF_LIST, (Mistake(source.file, 1, 1, "", "must hold a host, or a list of them"),))

    def _kubernetes(self, source: _Source) -> Iterator[InventoryHost]:
        reader = NodeReader(self._catalogue)
        for path, node in self._nodes(reader, source, "list of nodes"):
            yield InventoryHost(
                name=node.name,
                host=self._shared(node.host),
                origin="kubernetes",
                labels=node.labels,
                place=source.place(path),
                remarks=node.remarks,
            )

    def _slurm(self, source: _Source) -> Iterator[InventoryHost]:
        for path, node in self._nodes(SlurmReader(self._catalogue), source, "list of Slurm nodes"):
            yield InventoryHost(
                name=node.name,
                host=self._shared(node.host),
                origin="slurm",
                features=node.features,
                place=source.place(path),
                remarks=node.remarks,
            )

    def _ansible(self, source: _Source, file: Path) -> Iterator[InventoryHost]:
        reader = AnsibleReader(source.file, lambda path: source.places().position(path))
        is_complete = isinstance(source.data.get("_meta"), Mapping) or file == STDIN
        beside = () if is_complete else tuple(name for name in _VARIABLES if (file.parent / name).is_dir())
        remarks = tuple(map(VariablesElsewhere, beside))
        for path, one in self._nodes(reader, source, KIND_OF_ANSIBLE):
            yield InventoryHost(
                name=one.name,
                host=self._shared(one.host),
                origin="ansible",
                place=source.place(path),
                remarks=(*remarks, *one.remarks),
            )

    def _nodes(self, reader: _NodeReader[Listed_co], source: _Source, kind: str) -> Iterator[tuple[KeyPath, Listed_co]]:
        """Yield what a reader finds in a document; raises `InvalidDocumentError` with its mistakes."""
        wrong: tuple[Mistake, ...] = ()
        try:
            yield from reader.read(source.data)
        except InvalidDocumentError as error:
            wrong = error.mistakes
        if reader.mistakes or wrong:
            found = tuple(source.places().mistake(path, text) for path, text in reader.mistakes[:_MOST_MISTAKES])
            raise InvalidDocumentError(kind, (*found, *wrong[: _MOST_MISTAKES - len(found)]))

    def _items(self, source: _Source, name: str) -> Iterator[InventoryHost]:
        """Yield the hosts of a list whose items are profiles, or have a profile under `host` beside a `name` and `count`."""
        mistakes: list[Mistake] = []
        for index, item in enumerate(source.data):
            is_named = isinstance(item, Mapping) and "host" in item
            try:
                host = self._shared(source.host((index, "host") if is_named else (index,)))
                own = source.heading(index) if is_named else {}
                place = source.place((index,))
                yield InventoryHost(name=own.get("name", f"{name}[{index}]"), host=host, place=place, count=own.get("count", 1))
            except InvalidDocumentError as error:
                mistakes += error.mistakes
                if len(mistakes) >= _MOST_MISTAKES:
                    break
        if mistakes:
            raise InvalidDocumentError(_KIND_OF_LIST, tuple(mistakes))


def _profile_in(path: Path) -> Document | None:
    """Return the document of a file that holds one profile, or nothing that can be read; None for an inventory."""
    form, text = _form_and_text(path)
    if form not in {"json", "yaml"}:
        return None
    if form == "json" and _is_inventory(plain_json(text)):  # a large one, which is read a hundred times as fast
        return None
    try:
        document = parse_document(text, file=str(path), kind=KIND)
    except InvalidDocumentError as error:
        if _KEY.search(text) is None:
            error.add(hints=(_CAPTURED,))
        raise
    return None if _is_inventory(document.data) else document


def plain_json(text: str) -> object:
    """Return what a JSON text holds; None if it is not JSON."""
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _is_inventory(data: object) -> bool:
    return isinstance(data, list | tuple) or is_kubernetes(data) or is_slurm(data) or is_ansible(data)


def _form_and_text(path: Path) -> tuple[str, str]:
    """Return the format of a file and its text."""
    kind = KIND_OF_TABLE if path.suffix.lower() == ".csv" else KIND
    try:
        text = read_printed(path, kind=kind)
    except FileError as error:
        if kind != KIND or path == STDIN or is_there(path):
            raise
        raise FileError(error.message, hints=(_instead_of(path.name),)) from None
    return _form(path, text), text


def _instead_of(name: str) -> str:
    """Return what to do about a profile that is not there: the name of a kind of machine, however it is spelled, is no file."""
    known = {_plain(one): one for one in profile_names()}.get(_plain(name))
    if known is not None:
        return f"`provision init --profile {known}` writes a spec for machines of this kind"
    return "`provision inspect` prints the profile of the machine that it runs on"


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def _form(path: Path, text: str) -> str:
    """Return the format of a file: `csv`, `json`, `yaml`, `scontrol` or `ini`.

    It is seen from the suffix where that is one of CSV, JSON or YAML, else from the text.
    """
    suffix = path.suffix.lower()
    if suffix in _FORMS:
        return _FORMS[suffix]
    if is_slurm_text(text):
        return "scontrol"
    if suffix == ".ini" or is_ansible_text(text):
        return "ini"
    begin = text.lstrip("\ufeff \t\r\n")[:1]
    return "json" if begin in {"{", "["} else "csv" if "," in text.partition("\n")[0] else "yaml"


class _Source(ABC):
    """A file with a host, or many: its data, and the line and column of every key."""

    is_json = False
    file: str
    data: Any

    @abstractmethod
    def places(self) -> Document:
        """Return the file as a document with the line and column of every key."""

    @abstractmethod
    def place(self, path: KeyPath) -> Place:
        """Return the place of a host at a path, for messages."""

    @abstractmethod
    def host(self, path: KeyPath) -> Host:
        """Return the profile at a path; raises `InvalidDocumentError`."""

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


class _Yaml(_Source):
    """A file that was read with the line and column of every key."""

    def __init__(self, document: Document) -> None:
        self.file = document.file
        self.data = document.data
        self._document = document

    def places(self) -> Document:
        return self._document

    def place(self, path: KeyPath) -> Place:
        return self._document.place(path) if path else Place(self.file)

    def host(self, path: KeyPath) -> Host:
        return host_from_document(self._document.below(path) if path else self._document)


class _Json(_Source):
    """A JSON file, whose lines and columns are computed only to report a mistake, because inventories are large.

    Raises `InvalidDocumentError` at the line and column of a syntax error.
    """

    is_json = True

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
        if self._places is None:
            walk = _Walk(self._text)
            walk.value(walk.blank(0), ())
            self._places = Document(self.file, self.data, walk.keys, walk.texts)
        return self._places

    def place(self, path: KeyPath) -> Place:
        is_item = len(path) == 1 and isinstance(path[0], int)
        return Place(f"{self.file}{'' if is_item or not path else ': '}{dotted(path)}")

    def host(self, path: KeyPath) -> Host:
        """Return the profile at a path; equal profiles are validated once."""
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
