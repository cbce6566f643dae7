"""Read hosts from a CSV table: a row is one host or several identical ones; columns are keys of a host profile."""

from __future__ import annotations

import csv
import re
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from provisioner.accelerators import GPU_ACCELERATORS, accelerator_of_target
from provisioner.components import ABSENT
from provisioner.document import Document, KeyPath, Position
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.host.model import Holds, Host, ProfileKey, profile_keys
from provisioner.host.profile import host_from_document
from provisioner.names import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KIND = "host table"

_OWN_COLUMNS = ("name", "count")
_SYSTEM = "os"
"""The column with the operating system and its release: `ubuntu 22.04`."""

_OF_GPUS = {**{row.target_key: row.target_key for row in GPU_ACCELERATORS}, "gpu.pci_device_id": "pci_device_id"}
"""Columns about the GPUs of a host, each with its key in the profile of a GPU; a cell has one value for each kind of GPU."""

_GPU_COLUMNS = ("gpu", "gpus", *_OF_GPUS)
_SAME = (("gpu", "gpus"), ("driver", "driver.version"), (_SYSTEM, "os.id"))
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_GPU = re.compile(rf"(?:(\d+) ?[x\u00d7] ?|(\d{{1,2}}) )?(.*?)(?: \(({'|'.join(row.target for row in GPU_ACCELERATORS)})\))?")


@cache
def _columns() -> Mapping[str, ProfileKey]:
    """Return the columns that hold one profile key each, with dots in nested keys; `driver` is the version of the driver."""
    keys = sorted(profile_keys(), key=lambda key: len(key.path))
    version = next(key for key in keys if key.path == ("driver", "version"))
    return {**{".".join(key.path): key for key in keys}, "driver": version}


def columns_of_hosts() -> tuple[str, ...]:
    """Return the names of all columns that state a fact of a host."""
    return tuple(dict.fromkeys((*_columns(), _SYSTEM, *_GPU_COLUMNS)))


class Row(Struct, frozen=True, kw_only=True):
    """One row of a table: a host, the number of such hosts, and the number of the line in the file."""

    name: str
    host: Host
    count: int
    line: int


def read_table(text: str, *, file: str) -> tuple[Row, ...]:
    """Return the rows of a table; raises `InvalidDocumentError` with every mistake at its line and column.

    An empty cell is an unknown fact. A cell of the column `gpu` is `8x NVIDIA A100-SXM4-80GB` or the like; several kinds of GPU
    are separated by `;`, a name that is not in the matrix is followed by the target in brackets (`2x NVIDIA X9 (9.9)`), and
    `none` is a host without a GPU.
    Rows with equal facts share one `Host`.
    """
    return _Table(text.removeprefix("\ufeff"), file).rows()


def read_cells(cells: Mapping[str, str], positions: Mapping[str, Position], *, file: str) -> Host:
    """Return the host that the cells of a row state, by the names of their columns; an empty cell is an unknown fact.

    `positions` are those of the cells in `file`. Raises `InvalidDocumentError` with every mistake.
    """
    found = _Cells(cells, positions, file)
    columns = _columns()
    for name, value in cells.items():
        if name == _SYSTEM and value:
            identity, _, version = value.partition(" ")
            found.put(("os", "id"), identity, name)
            if version:
                found.put(("os", "version"), version, name)
        elif value and (key := columns.get(name)) is not None:
            found.put(key.path, _value(key, value), name)
    found.put_gpus()
    try:
        host = host_from_document(Document(file, found.data, found.keys, found.texts))
    except InvalidDocumentError as error:
        raise InvalidDocumentError(KIND, (*found.mistakes, *error.mistakes)) from None
    if found.mistakes:
        raise InvalidDocumentError(KIND, tuple(found.mistakes))
    return host


class _Table:
    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._text = text
        self._mistakes: list[Mistake] = []
        self._hosts: dict[tuple[str, ...], Host | None] = {}
        self._by_value: dict[Host, Host] = {}

    def rows(self) -> tuple[Row, ...]:
        reader = csv.reader(StringIO(self._text, newline=""), strict=True, skipinitialspace=True)
        self._refuse_controls()
        found: list[Row] = []
        try:
            header = self._header(next(reader, []))
            for cells in reader:
                if any(cells):
                    found += self._row(header, cells, reader.line_num)
        except csv.Error as error:
            self._wrong(reader.line_num, 1, "", f"cannot be read as a table: {error}")
        if self._mistakes:
            raise InvalidDocumentError(KIND, tuple(self._mistakes))
        return tuple(found)

    def _refuse_controls(self) -> None:
        """Record a mistake at the first control character of the table: a name with a NUL would look like another name."""
        for line, text in enumerate(self._text.splitlines(), start=1):
            found = _CONTROL.search(text)
            if found is not None:
                self._wrong(line, 1, "", f"holds the control character U+{ord(found[0]):04X}: is it a table of text?")
                return

    def _wrong(self, line: int, column: int, path: str, text: str) -> None:
        self._mistakes.append(Mistake(self._file, line, column, path, text))

    def _header(self, cells: list[str]) -> list[str]:
        names = [cell.strip() for cell in cells]
        known = (*_OWN_COLUMNS, *columns_of_hosts())
        separator = next((one for one in ";\t|" if len(names) == 1 and one in names[0]), None)
        if separator is not None:
            shown = {"\t": "tabs"}.get(separator, f"`{separator}`")
            self._wrong(1, 1, "", f"the columns are parted by {shown}: export the table with commas between them")
            return names
        if not any(names):
            self._wrong(1, 1, "", f"the first row must name the columns: {', '.join(known)}")
        for index, name in enumerate(names):
            if name in names[:index]:
                self._wrong(1, index + 1, name, f"column `{name}` is given twice")
            elif name not in known:
                near = nearest(name.lower(), known)
                advice = f"did you mean `{near}`?" if near else f"columns: {', '.join(known)}"
                self._wrong(1, index + 1, name, f"unknown column `{name}`; {advice}")
        for one, other in _SAME:
            if one in names and other in names:
                self._wrong(1, names.index(other) + 1, other, f"says the same as column `{one}`; keep one of them")
        return names

    def _row(self, header: list[str], cells: list[str], line: int) -> Iterator[Row]:
        if len(cells) != len(header):
            shown = f"has {len(cells)} cells, but there are {len(header)} columns"
            self._wrong(line, min(len(cells), len(header)) + 1, "", shown)
            return
        own = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        name, count = own.get("name", ""), own.get("count", "") or "1"
        is_count = re.fullmatch(r"[1-9][0-9]{0,8}", count) is not None
        if not is_count:
            text = f"`{count}` must be the number of hosts of the row, a whole number from 1"
            self._wrong(line, header.index("count") + 1, "count", text)
        facts = tuple(value for key, value in own.items() if key not in _OWN_COLUMNS)
        if facts not in self._hosts:
            self._hosts[facts] = self._host(header, own, line)
        host = self._hosts[facts]
        if host is not None and is_count:
            yield Row(name=name or f"row {line}", host=host, count=int(count), line=line)

    def _host(self, header: list[str], own: dict[str, str], line: int) -> Host | None:
        try:
            host = read_cells(own, {name: Position(line, index + 1) for index, name in enumerate(header)}, file=self._file)
        except InvalidDocumentError as error:
            self._mistakes += error.mistakes
            return None
        return self._by_value.setdefault(host, host)


def _value(key: ProfileKey, cell: str) -> object:
    """Return a cell as the value of a profile key; an invalid flag is returned as text, which profile validation refuses."""
    if key.holds is Holds.TEXTS:
        return () if cell == ABSENT else tuple(re.split(r"[ ;]+", cell))
    return _FLAGS.get(cell.lower(), cell) if key.holds is Holds.FLAG else cell


def _gpu(text: str) -> dict[str, Any]:
    match = _GPU.fullmatch(text)
    assert match is not None, "every text has a name, if an empty one"
    times, plain, name, target = match.groups()
    count = times or plain
    gpu: dict[str, Any] = {"name": name} if name else {}
    if count:
        gpu["count"] = int(count)
    accelerator = accelerator_of_target(target or "")
    if accelerator is not None:
        gpu[accelerator.target_key] = target
    return gpu


class _Cells:
    """A row of the table as a document: the data of a profile, and the line and column of each key of the profile."""

    def __init__(self, own: Mapping[str, str], positions: Mapping[str, Position], file: str) -> None:
        self._own = own
        self._positions = positions
        self._file = file
        self.data: dict[str, Any] = {}
        self.keys: dict[KeyPath, Position] = {}
        self.texts: dict[KeyPath, str] = {}
        self.mistakes: list[Mistake] = []

    def put(self, path: tuple[str, ...], value: object, name: str) -> None:
        """Set the value at a key path, read from the column `name`."""
        below = self.data
        for part in path[:-1]:
            below = below.setdefault(part, {})
        below[path[-1]] = value
        for length in range(1, len(path) + 1):
            self.keys.setdefault(path[:length], self._positions[name])
        self.texts[path] = self._own[name]

    def put_gpus(self) -> None:
        """Set the GPUs; a key gets the position of its own column if that is filled, else of the first filled GPU column."""
        gpus = self._gpus()
        if gpus is None:
            return
        self.data["gpus"] = gpus
        position = next(self._positions[name] for name in _GPU_COLUMNS if self._own.get(name))
        self.keys[("gpus",)] = position
        for index, gpu in enumerate(gpus):
            self.keys[("gpus", index)] = position
            for key, value in gpu.items():
                own = next((name for name, held in _OF_GPUS.items() if held == key and self._own.get(name)), "")
                self.keys[("gpus", index, key)] = self._positions.get(own, position)
                self.texts[("gpus", index, key)] = str(value)

    def _gpus(self) -> tuple[dict[str, Any], ...] | None:
        cell = self._own.get("gpus", self._own.get("gpu", ""))
        if cell.lower() in {ABSENT, "0"}:
            return ()
        gpus = [_gpu(text.strip()) for text in cell.split(";")] if cell else []
        for column, key in _OF_GPUS.items():
            if not self._own.get(column):
                continue
            values = [text.strip() for text in self._own[column].split(";")]
            gpus = gpus or [{} for _ in values]
            if len(values) != len(gpus):
                kinds = f"{len(gpus)} kind{'s' if len(gpus) > 1 else ''} of GPU"
                place = self._positions[column]
                text = f"`{self._own[column]}` has {len(values)} values for {kinds}"
                self.mistakes.append(Mistake(self._file, place.line, place.column, column, text))
                continue
            for gpu, value in zip(gpus, values, strict=True):
                gpu[key] = value
        return tuple(gpus) if gpus else None
