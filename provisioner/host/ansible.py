"""Read the hosts of an Ansible inventory, with the facts that their variables state.

Read in ansible/ansible of 2024-10 (lib/ansible/plugins/inventory/ini.py and yaml.py for the two syntaxes, __init__.py for
ranges of hosts, inventory/helpers.py and group.py for the order of variables, module_utils/facts/system/distribution.py for the
names of systems), and compared with what `ansible-inventory --list` printed, 2026-11-23. That JSON is read, too.

Variables state facts in two ways: those that Ansible gathers (`ansible_kernel`, `ansible_distribution`, …, also under
`ansible_facts`), and `provision_COLUMN` for every column of a table of hosts (`provision_driver`, `provision_gpu`), with `_`
for its dots. A variable of a host beats those of its groups, and a group those of its parents.
"""

from __future__ import annotations

import re
import shlex
import string
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from provisioner.document import Document, KeyPath, Position
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.host.inventory_csv import columns_of_hosts, read_cells
from provisioner.host.remark import VariablesNotRead
from provisioner.names import nearest
from provisioner.platforms import platform_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.host.model import Host
    from provisioner.host.remark import NodeRemark

KIND = "Ansible inventory"

_PARTS = frozenset({"hosts", "children", "vars"})
_SECTION = re.compile(r"\[([^:\]\s]+)(?::(\w+))?\]\s*(?:#.*)?")
_GROUP_LINE = re.compile(r"\[[A-Za-z_][\w.-]*(?::\w+)?\]\s*(?:#.*)?")
"""A section as people write it, by which the syntax is known."""

_PLAIN = re.compile(r"[\w./:=@,+\[\]\t -]*", re.ASCII)
"""A line without quotes, escapes and comments, which splits at its blanks; `shlex` takes forty times as long."""
_NAME = re.compile(r"([^:\]\s]+)\s*(?:#.*)?")
_PORT = re.compile(r"^(?P<host>[^:\s]+(?:\[[^\]]*\][^:\s]*)*):(?P<port>\d+)$")
_RANGE = re.compile(r"\[(?P<begin>\w*):(?P<end>\w+)(?::(?P<step>[1-9]\d*))?\]")
_MOST_HOSTS = 200_000
"""The most hosts that one inventory may list, and that the ranges of one pattern may stand for."""
_TOO_MANY = f"the inventory lists more than {_MOST_HOSTS:,} hosts, the most that are read: give a part of it"

_OURS = "provision_"
_ALIKE = re.compile(r"(?:nvidia_|amd_)?(?:driver|gpus?)(?:_(?:version|name|type|model|count|branch))?")
"""Variables that people give their hosts for the facts that are read from `provision_` variables."""

_SYSTEMS = {"Linux": "linux", "Darwin": "macos"}
_OF_WINDOWS = frozenset({"psrp", "winrm"})
"""Connections that only reach Windows (Ansible documentation, "Windows Remote Management")."""
_DISTRIBUTIONS = {
    "AlmaLinux": "almalinux",
    "Amazon": "amzn",
    "CentOS": "centos",
    "Debian": "debian",
    "Fedora": "fedora",
    "OracleLinux": "ol",
    "RedHat": "rhel",
    "Rocky": "rocky",
    "SLES": "sles",
    "Ubuntu": "ubuntu",
    "openSUSE Leap": "opensuse-leap",
}
"""`ansible_distribution`, and the `ID` of the same distribution in /etc/os-release."""


class AnsibleHost(Struct, frozen=True, kw_only=True):
    """One host of an inventory: its name, its facts, and remarks on its variables."""

    name: str
    host: Host
    remarks: tuple[NodeRemark, ...] = ()


class _Group(Struct):
    """A group as the inventory declares it, in all places together; `variables` have their key paths in the document."""

    hosts: dict[str, None]
    children: dict[str, None]
    variables: dict[str, tuple[object, KeyPath]]
    depth: int = 0


def is_ansible(data: object) -> bool:
    """Return whether a document is an Ansible inventory: groups in YAML, or what `ansible-inventory --list` prints."""
    if not isinstance(data, Mapping) or not data:
        return False
    if isinstance(data.get("_meta"), Mapping):
        return True
    groups = data.values()
    is_groups = all(one is None or (isinstance(one, Mapping) and one.keys() <= _PARTS) for one in groups)
    return is_groups and any(isinstance(one, Mapping) and one for one in groups)


def is_ansible_text(text: str) -> bool:
    """Return whether a text is an inventory in Ansible's INI syntax: a line is a section, and none before it is YAML."""
    for line in (line.strip() for line in text.removeprefix("\ufeff").splitlines()):
        if _GROUP_LINE.fullmatch(line):
            return True
        if line.startswith(("{", "[", "- ")) or line.endswith(":") or ": " in line.partition("#")[0]:
            return False
    return False


def ansible_document(text: str, *, file: str) -> Document:
    """Return an inventory in INI syntax as the document of the same inventory in YAML; raises `InvalidDocumentError`.

    Values remain the texts that were written: Ansible would read `550.10` as a number.
    """
    return _Ini(text, file).document()


class _Ini:
    def __init__(self, text: str, file: str) -> None:
        self._lines = text.removeprefix("\ufeff").splitlines()
        self._file = file
        self._data: dict[str, dict[str, dict[str, Any]]] = {}
        self._keys: dict[KeyPath, Position] = {}
        self._mistakes: list[Mistake] = []
        self._names: set[str] = set()

    def document(self) -> Document:
        group, part = "ungrouped", "hosts"
        for number, written in enumerate(self._lines, start=1):
            line = written.strip()
            if not line or line[0] in "#;":
                continue
            place = Position(number, len(written) - len(written.lstrip()) + 1)
            section = _SECTION.fullmatch(line)
            if section is not None:
                group, part = section[1], section[2] or "hosts"
                if part not in _PARTS:
                    self._wrong(
                        place, f"`[{group}:{part}]` is no section; known are [GROUP], [GROUP:children] and [GROUP:vars]"
                    )
                    part = "hosts"
                self._put((group,), place)
            elif part == "vars":
                name, equals, value = line.partition("=")
                if not equals:
                    self._wrong(place, f"`{line}` is not NAME=VALUE")
                    continue
                self._put((group, "vars", name.strip()), place, _unquoted(value.strip()))
            elif part == "children":
                match = _NAME.fullmatch(line)
                if match is None:
                    self._wrong(place, f"`{line}` is not the name of a group")
                    continue
                self._put((group, "children", match[1]), place)
            else:
                self._host(group, line, place)
        if self._mistakes:
            raise InvalidDocumentError(KIND, tuple(self._mistakes))
        return Document(self._file, self._data, self._keys, {})

    def _host(self, group: str, line: str, place: Position) -> None:
        try:
            name, *settings = line.split() if _PLAIN.fullmatch(line) else shlex.split(line, comments=True)
        except ValueError as error:
            self._wrong(place, f"`{line}` cannot be read: {error}")
            return
        self._names.add(name)
        if len(self._names) > _MOST_HOSTS:  # at once: what comes after it may take gigabytes
            raise InvalidDocumentError(KIND, (Mistake(self._file, place.line, place.column, "", _TOO_MANY),))
        self._put((group, "hosts", name), place)
        for setting in settings:
            key, equals, value = setting.partition("=")
            if not equals:
                self._wrong(place, f"`{setting}` is not NAME=VALUE")
                continue
            self._put((group, "hosts", name, key), place, value)

    def _put(self, path: tuple[str, ...], place: Position, value: object = None) -> None:
        """Set a value, or an empty mapping without one, at a key path; a key keeps the place where it was first written."""
        below: dict[str, Any] = self._data
        for length, part in enumerate(path[:-1], start=1):
            self._keys.setdefault(path[:length], place)
            below = below.setdefault(part, {})
        self._keys[path] = place if value is not None else self._keys.get(path, place)
        if value is None:
            below.setdefault(path[-1], {})
        else:
            below[path[-1]] = value

    def _wrong(self, place: Position, text: str) -> None:
        self._mistakes.append(Mistake(self._file, place.line, place.column, "", text))


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


class AnsibleReader:
    """Reads hosts; `mistakes` are pairs of a key path in the document and a message."""

    def __init__(self, file: str, position: Callable[[KeyPath], Position]) -> None:
        self.mistakes: list[tuple[KeyPath, str]] = []
        self._file = file
        self._position = position
        self._groups: dict[str, _Group] = {"all": _Group({}, {}, {})}
        self._own: dict[str, dict[str, tuple[object, KeyPath]]] = {}
        self._at: dict[str, KeyPath] = {}
        self._columns = {column.replace(".", "_"): column for column in columns_of_hosts()}
        self._known: dict[tuple[tuple[str, str], ...], Host] = {}

    def read(self, data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, AnsibleHost]]:
        """Yield the hosts of an inventory, each with its key path.

        Raises `InvalidDocumentError` for facts that are wrong, and for more hosts than are read.
        """
        for name, one in data.items():
            if name == "_meta":
                path = ("_meta", "hostvars")
                self._hosts(self._mapping(self._mapping(one, path[:1]).get("hostvars"), path), path, "all")
            else:
                self._group(name, one, (name,))
        self._deepen()
        above = self._above()
        wrong: list[Mistake] = []
        for name, own in self._own.items():
            groups = sorted(above.get(name, ()), key=lambda one: (self._groups[one].depth, one))
            variables: dict[str, tuple[object, KeyPath]] = {}
            for group in ("all", *groups):
                variables |= self._groups[group].variables
            try:
                host = self._host(variables | own, self._at[name])
            except InvalidDocumentError as error:
                wrong += error.mistakes
                continue
            yield self._at[name], AnsibleHost(name=name, host=host, remarks=self._remarks(variables | own))
        if wrong:
            raise InvalidDocumentError(KIND, tuple(wrong))

    def _group(self, name: str, value: object, path: KeyPath) -> None:
        """Add what one place of the inventory says of a group: hosts, variables, and groups below it."""
        group = self._groups.setdefault(name, _Group({}, {}, {}))
        parts = self._mapping(value, path)
        for key in parts:
            if key not in _PARTS:
                self.mistakes.append(((*path, key), f"`{key}` is no part of a group; known are {', '.join(sorted(_PARTS))}"))
        self._hosts(self._mapping(parts.get("hosts"), (*path, "hosts")), (*path, "hosts"), name)
        for key, item in self._mapping(parts.get("vars"), (*path, "vars")).items():
            group.variables[key] = (item, (*path, "vars", key))
        for child, item in self._mapping(parts.get("children"), (*path, "children")).items():
            group.children[child] = None
            self._group(child, item, (*path, "children", child))

    def _hosts(self, hosts: Mapping[str, Any], path: KeyPath, group: str) -> None:
        for pattern, value in hosts.items():
            at = (*path, pattern)
            try:
                names = expanded(pattern)
            except ValueError as error:
                self.mistakes.append((at, str(error)))
                continue
            for name in names:
                self._at.setdefault(name, at)
                own = self._own.setdefault(name, {})
                own |= {key: (item, (*at, key)) for key, item in self._mapping(value, at).items()}
                self._groups[group].hosts[name] = None
            if len(self._own) > _MOST_HOSTS:
                place = self._position(at)
                raise InvalidDocumentError(KIND, (Mistake(self._file, place.line, place.column, "", _TOO_MANY),))

    def _mapping(self, value: object, path: KeyPath) -> Mapping[str, Any]:
        """Return a mapping; a list of names (as in JSON) or a single name is one without values, and so is None."""
        if isinstance(value, Mapping):
            return value
        if value is None:
            return {}
        names = [value] if isinstance(value, str) else value
        if isinstance(names, Sequence) and all(isinstance(one, str) for one in names):
            return dict.fromkeys(names)
        self.mistakes.append((path, f"`{value}` is not a mapping"))
        return {}

    def _deepen(self) -> None:
        """Set how far each group is below `all`; groups that are below themselves are a mistake."""
        for name, group in self._groups.items():
            group.depth = 0 if name == "all" else 1
        for _ in self._groups:
            changes = [
                (below, group.depth + 1)
                for group in self._groups.values()
                for child in group.children
                if (below := self._groups[child]).depth <= group.depth
            ]
            if not changes:
                return
            for below, depth in changes:
                below.depth = max(below.depth, depth)
        circle = next(name for name, group in self._groups.items() if group.depth >= len(self._groups))
        self.mistakes.append(((circle,), f"the group `{circle}` is below itself"))

    def _above(self) -> dict[str, set[str]]:
        """Return the groups of each host: those that list it, and all groups above these."""
        found: dict[str, set[str]] = {}
        parents: dict[str, set[str]] = {}
        for name, group in self._groups.items():
            for child in group.children:
                parents.setdefault(child, set()).add(name)
        for name, group in self._groups.items():
            waiting, seen = [name], set[str]()
            while waiting:
                one = waiting.pop()
                if one not in seen:
                    seen.add(one)
                    waiting.extend(parents.get(one, ()))
            for host in group.hosts:
                found.setdefault(host, set()).update(seen - {"all"})
        return found

    def _host(self, variables: Mapping[str, tuple[object, KeyPath]], path: KeyPath) -> Host:
        """Return the host with some variables; raises `InvalidDocumentError`. Equal facts give one `Host`."""
        cells = _gathered({name: value for name, (value, _) in variables.items()})
        paths = dict.fromkeys(cells, path)
        for name, (value, at) in variables.items():
            if not name.startswith(_OURS):
                continue
            column = self._columns.get(name.removeprefix(_OURS))
            if column is None:
                near = nearest(name, [f"{_OURS}{one}" for one in self._columns])
                advice = f"did you mean `{near}`?" if near else f"{_OURS}COLUMN has the columns of a table of hosts"
                self._mistake(at, f"unknown variable `{name}`; {advice}")
            elif isinstance(value, bool | int | str):
                cells[column] = str(value).lower() if isinstance(value, bool) else str(value)
                paths[column] = at
            else:
                self._mistake(at, f"`{value}` must be text: write a version in quotes")
        known = self._known.get(tuple(sorted(cells.items())))
        if known is None:
            known = read_cells(cells, {column: self._position(at) for column, at in paths.items()}, file=self._file)
            self._known[tuple(sorted(cells.items()))] = known
        return known

    def _remarks(self, variables: Mapping[str, object]) -> tuple[NodeRemark, ...]:
        """Return a remark on variables that look like facts; none where `provision_` variables state facts."""
        if any(name.startswith(_OURS) for name in variables):
            return ()
        names = sorted(name for name in variables if name in self._columns or _ALIKE.fullmatch(name))
        return (VariablesNotRead(tuple(names)),) if names else ()

    def _mistake(self, path: KeyPath, text: str) -> None:
        if (path, text) not in self.mistakes:
            self.mistakes.append((path, text))


def expanded(pattern: str) -> list[str]:
    """Return the hosts of a pattern (`gpu[01:16].example`), without a port; raises `ValueError` for a range that is none.

    Numbers keep their leading zeros, letters count as a to z and A to Z, and a third number is the step.
    """
    match = _PORT.fullmatch(pattern)
    waiting, found = deque([match["host"] if match is not None else pattern]), list[str]()
    while waiting:
        one = waiting.popleft()
        place = _RANGE.search(one)
        if place is None:
            if "[" in one:
                raise ValueError(f"`{one}` has no range such as [1:8], [01:08], [a:c] or [0:8:2]")
            found.append(one)
            continue
        waiting += [f"{one[: place.start()]}{part}{one[place.end() :]}" for part in _counted(place)]
        if len(waiting) + len(found) > _MOST_HOSTS:
            raise ValueError(f"`{pattern}` stands for more than {_MOST_HOSTS:,} hosts")
    return found


def _counted(match: re.Match[str]) -> Sequence[str]:
    begin, end, step = match["begin"] or "0", match["end"], int(match["step"] or 1)
    if begin in string.ascii_letters and end in string.ascii_letters:
        first, last = string.ascii_letters.index(begin), string.ascii_letters.index(end)
        if first <= last:
            return string.ascii_letters[first : last + 1 : step]
    elif begin.isdecimal() and end.isdecimal() and int(begin) <= int(end) < 10**9:
        width = len(begin) if begin.startswith("0") and len(begin) > 1 else 0
        if not width or width == len(end):
            numbers = range(int(begin), int(end) + 1, step)
            return [str(number).zfill(width) for number in numbers[: _MOST_HOSTS + 1]]
    raise ValueError(f"`{match[0]}` is not a range of numbers or letters that counts up")


def _gathered(variables: Mapping[str, object]) -> dict[str, str]:
    """Return the facts that Ansible gathered, by the columns of a table of hosts; a distribution we cannot name is left out."""
    facts = variables.get("ansible_facts")
    known = facts if isinstance(facts, Mapping) else {}

    def fact(name: str) -> str:
        values = (known.get(name), known.get(f"ansible_{name}"), variables.get(f"ansible_{name}"))
        return next((value for value in values if isinstance(value, str)), "")

    found: dict[str, str] = {}
    if fact("os_family") == "Windows" or fact("connection") in _OF_WINDOWS:
        return {"platform": "windows"}
    system = _SYSTEMS.get(fact("system"))
    platform = platform_of("macos" if system == "macos" else "linux", fact("architecture"))
    if system is not None and platform is not None:
        found["platform"] = platform
    if system == "linux":
        found["kernel"] = fact("kernel")
    distribution, release = fact("distribution"), fact("distribution_version")
    if distribution in _DISTRIBUTIONS and release:
        found["os"] = f"{_DISTRIBUTIONS[distribution]} {release}"
    elif distribution == "MacOSX" and release:
        found["os"] = f"macos {release}"
    return {column: text for column, text in found.items() if text}
