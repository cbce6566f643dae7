"""Hosts from a table: one row a host, or a number of identical ones; the columns are the keys of a host profile."""

from __future__ import annotations

import csv
import re
from io import StringIO
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from provisioner.components import ABSENT
from provisioner.document import Document, KeyPath, Position
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.host.model import Holds, profile_keys
from provisioner.host.profile import host_from_document
from provisioner.names import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.host.model import Host

KIND = "host table"

_KEYS = {key.path: key for key in sorted(profile_keys(), key=lambda key: len(key.path))}
_COLUMNS: dict[str, tuple[str, ...]] = {
    **{path[0]: path for path in _KEYS if len(path) == 1},
    "driver": ("driver", "version"),
    "os": ("os",),
    **{".".join(path): path for path in _KEYS if len(path) > 1},
}
"""The columns of facts and the key of a profile that each holds; `os` holds two of them."""

_GPU_COLUMNS = ("gpu", "gpus", "compute_capability", "gfx", "gpu.pci_device_id")
_OWN_COLUMNS = ("name", "count")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_GPU = re.compile(r"(?:(\d+) ?x ?)?(.*?)(?: \((\d+\.\d+|gfx[0-9a-f]+)\))?")


class Row(Struct, frozen=True, kw_only=True):
    """One row: the host it describes, how many there are, and its line."""

    name: str
    host: Host
    count: int
    line: int


def read_table(text: str, *, file: str) -> tuple[Row, ...]:
    """Read a table; raises `InvalidDocumentError` with every mistake at its line and column.

    An empty cell is an unknown fact. `gpu` holds `8x NVIDIA A100-SXM4-80GB`, several kinds with `;` between them, each with its
    compute capability in brackets where nobody knows its name (`2x NVIDIA X9 (9.9)`), and `none` where there is none. `os`
    holds `ubuntu 22.04`. Rows that say the same share one `Host`.
    """
    return _Table(text.removeprefix("\ufeff"), file).rows()


class _Table:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._text = text
        self.mistakes: list[Mistake] = []
        self._hosts: dict[tuple[str, ...], Host | None] = {}
        self._by_value: dict[Host, Host] = {}

    def rows(self) -> tuple[Row, ...]:
        reader = csv.reader(StringIO(self._text, newline=""), strict=True, skipinitialspace=True)
        self._controls()
        try:
            header = self._header(next(reader, []))
            found = [row for cells in reader if any(cells) for row in self._row(header, cells, reader.line_num)]
        except csv.Error as error:
            self._wrong(reader.line_num, 1, "", f"cannot be read as a table: {error}")
            found = []
        if self.mistakes:
            raise InvalidDocumentError(KIND, tuple(self.mistakes))
        return tuple(found)

    def _controls(self) -> None:
        """Refuse what no program writes into a table of text: a name with a NUL in it would look like another."""
        for line, text in enumerate(self._text.splitlines(), start=1):
            found = _CONTROL.search(text)
            if found is not None:
                self._wrong(line, 1, "", f"holds the control character U+{ord(found[0]):04X}: is it a table of text?")
                return

    def _wrong(self, line: int, column: int, path: str, text: str) -> None:
        self.mistakes.append(Mistake(self.file, line, column, path, text))

    def _header(self, cells: list[str]) -> list[str]:
        names = [cell.strip() for cell in cells]
        known = (*_OWN_COLUMNS, *_COLUMNS, *_GPU_COLUMNS)
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
        for one, other in (("gpu", "gpus"), ("driver", "driver.version"), ("os", "os.id")):
            if one in names and other in names:
                self._wrong(1, names.index(other) + 1, other, f"says the same as column `{one}`; keep one of them")
        return names

    def _row(self, header: list[str], cells: list[str], line: int) -> Iterator[Row]:
        if len(cells) != len(header):
            self._wrong(
                line, min(len(cells), len(header)) + 1, "", f"has {len(cells)} cells, but there are {len(header)} columns"
            )
            return
        values = [cell.strip() for cell in cells]
        own = dict(zip(header, values, strict=True))
        name, count = own.get("name", ""), own.get("count", "") or "1"
        is_count = re.fullmatch(r"[1-9][0-9]{0,8}", count) is not None
        if not is_count:
            self._wrong(line, header.index("count") + 1, "count", f"`{count}` must be a whole number from 1")
        facts = tuple(value for key, value in own.items() if key not in _OWN_COLUMNS)
        if facts not in self._hosts:
            self._hosts[facts] = self._host(header, own, line)
        host = self._hosts[facts]
        if host is not None and is_count:
            yield Row(name=name or f"row {line}", host=host, count=int(count), line=line)

    def _host(self, header: list[str], own: dict[str, str], line: int) -> Host | None:
        columns = {name: index + 1 for index, name in enumerate(header)}
        cells = _Cells(own, columns, line)
        for name, value in own.items():
            path = _COLUMNS.get(name)
            if path == ("os",) and value:
                cells.system(name)
            elif path is not None and value:
                cells.put(path, self._value(path, value), name)
        cells.gpus(self._gpus(own, columns, line))
        try:
            host = host_from_document(Document(self.file, cells.data, cells.keys, cells.texts))
        except InvalidDocumentError as error:
            self.mistakes += error.mistakes
            return None
        return self._by_value.setdefault(host, host)

    def _value(self, path: tuple[str, ...], value: str) -> object:
        holds = _KEYS[path].holds
        if holds is Holds.TEXTS:
            return () if value == ABSENT else tuple(re.split(r"[ ;]+", value))
        if holds is Holds.FLAG:
            return {"true": True, "yes": True, "false": False, "no": False}.get(value.lower(), value)
        return value

    def _gpus(self, own: dict[str, str], columns: dict[str, int], line: int) -> tuple[dict[str, Any], ...] | None:
        name = "gpus" if "gpus" in own else "gpu"
        cell = own.get(name, "")
        if cell.lower() in {ABSENT, "0"}:
            return ()
        texts = [text.strip() for text in cell.split(";")] if cell else []
        gpus = [self._gpu(text) for text in texts]
        for column, key in (
            ("compute_capability", "compute_capability"),
            ("gfx", "gfx"),
            ("gpu.pci_device_id", "pci_device_id"),
        ):
            if not own.get(column):
                continue
            values = [text.strip() for text in own[column].split(";")]
            gpus = gpus or [{} for _ in values]
            if len(values) != len(gpus):
                kinds = f"{len(gpus)} kind{'s' if len(gpus) > 1 else ''} of GPU"
                self._wrong(line, columns[column], column, f"`{own[column]}` has {len(values)} values for {kinds}")
                continue
            for gpu, value in zip(gpus, values, strict=True):
                gpu[key] = value
        return tuple(gpus) if gpus else None

    def _gpu(self, text: str) -> dict[str, Any]:
        match = _GPU.fullmatch(text)
        assert match is not None  # every text has a name, if an empty one
        gpu: dict[str, Any] = {"name": match[2]} if match[2] else {}
        if match[1]:
            gpu["count"] = int(match[1])
        if match[3]:
            gpu["gfx" if match[3].startswith("gfx") else "compute_capability"] = match[3]
        return gpu


class _Cells:
    """A row as a document: the data of a profile, and where each of its keys stands in the table."""

    def __init__(self, own: dict[str, str], columns: dict[str, int], line: int) -> None:
        self._own = own
        self._columns = columns
        self._line = line
        self.data: dict[str, Any] = {}
        self.keys: dict[KeyPath, Position] = {}
        self.texts: dict[KeyPath, str] = {}

    def put(self, path: KeyPath, value: object, name: str) -> None:
        """Set the value at a path, which the column `name` holds."""
        below = self.data
        for part in path[:-1]:
            below = below.setdefault(str(part), {})
        below[str(path[-1])] = value
        for length in range(1, len(path) + 1):
            self.keys.setdefault(path[:length], Position(self._line, self._columns[name]))
        self.texts[path] = self._own[name]

    def system(self, name: str) -> None:
        """Set `ubuntu 22.04` as the two facts it is."""
        identity, _, version = self._own[name].partition(" ")
        self.put(("os", "id"), identity, name)
        if version:
            self.put(("os", "version"), version, name)

    def gpus(self, gpus: tuple[dict[str, Any], ...] | None) -> None:
        """Set the GPUs; what a column of its own says of them stands there, the rest where their names are."""
        if gpus is None:
            return
        self.data["gpus"] = gpus
        column = next(self._columns[name] for name in _GPU_COLUMNS if self._own.get(name))
        self.keys[("gpus",)] = Position(self._line, column)
        for index, gpu in enumerate(gpus):
            self.keys[("gpus", index)] = Position(self._line, column)
            for key, value in gpu.items():
                name = next((name for name in (key, f"gpu.{key}") if self._own.get(name)), "")
                self.keys[("gpus", index, key)] = Position(self._line, self._columns.get(name, column))
                self.texts[("gpus", index, key)] = str(value)
