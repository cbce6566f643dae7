"""Read the nodes of a Slurm cluster as hosts, from what `scontrol show node` and `sinfo` print.

Read in SchedMD/slurm of 2026-08 (src/api/node_info.c for the text; src/plugins/data_parser/v0.0.46/parsers.c, arrays NODE and
SINFO_DATA, and src/sinfo for JSON), and in what Slurm 22.05.8 printed, 2026-11-23. JSON is `{"nodes": [...]}` with one object
for each node (`scontrol show node --json`, and `sinfo --json` of 22.05), or `{"sinfo": [...]}` with groups of nodes.

A node that offers GPUs runs jobs on them, so it has a driver, of an unknown version. If some nodes of a list offer GPUs, one
that offers none has none: a Gres is declared, not discovered. Nothing tells the driver's version, the distribution or its C
library, and groups of nodes tell neither kernel nor architecture: these facts stay unknown. Features are names that a site
chose, and prove nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from provisioner.document import Document, KeyPath, Position
from provisioner.host import parse
from provisioner.host.gpu_names import NamedGpu
from provisioner.host.instance_types import instance_type
from provisioner.host.model import Driver, Host, HostGpu
from provisioner.host.remark import GroupedNodes, MigGres, NodeRemark, NodeUnavailable, UnknownGresType, UntypedGres
from provisioner.platforms import platform_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.host.catalogue import Catalogue

_LISTS = ("nodes", "sinfo")
_BESIDES = frozenset({*_LISTS, "meta", "errors", "warnings", "last_update"})
"""The keys of a document of Slurm: the list, and what stands beside it."""

_NODE = re.compile(r"^NodeName=(\S*)", re.MULTILINE)
_KEYS = {
    "architecture": re.compile(r"\sArch=(\S+)"),
    "operating_system": re.compile(r"\sOS=(\S+(?: \S+)?)"),
    "gres": re.compile(r"\sGres=(\S+)"),
    "features": re.compile(r"\s(?:Available)?Features=(\S+)"),
    "state": re.compile(r"\sState=(\S+)"),
    "instance_type": re.compile(r"\sInstanceType=(\S+)"),
}
"""The keys of a node in JSON, and where the text of `scontrol show node` has the same; of `OS=`, system and kernel."""

_NONE = frozenset({"", "(null)", "N/A", "none"})
_GRES = re.compile(r"gpu(?::(?P<type>[^:(]*[^:(\d][^:(]*))?(?::no_consume)?(?::(?P<count>\d+))?(?:\([^()]*\))?")
_MIG = re.compile(r"(?:[_-]?mig)?[_-]?(?P<profile>\d+g\.\d+gb(?:\.me|\+me)?)$", re.IGNORECASE)
_PARTS = re.compile(r",(?![^(]*\))")
"""The commas between resources, and not those within `(S:0,1)`."""

_OUT_OF_USE = {"DOWN": "down", "NOT_RESPONDING": "down", "ERROR": "down", "FAIL": "drained", "DRAIN": "drained"}
"""States in which a node starts no jobs (slurm.schedmd.com/sinfo.html, NODE STATE CODES), with the word of the remark."""


class SlurmNode(Struct, frozen=True, kw_only=True):
    """One node of Slurm: its name, its facts, the features it has, and remarks on it."""

    name: str
    host: Host
    features: tuple[str, ...] = ()
    remarks: tuple[NodeRemark, ...] = ()


def is_slurm(data: object) -> bool:
    """Return whether a document is a list of nodes by Slurm."""
    if not isinstance(data, Mapping) or not any(_is_list(data.get(key)) for key in _LISTS):
        return False
    return "meta" in data or data.keys() <= _BESIDES


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def is_slurm_text(text: str) -> bool:
    """Return whether a text is what `scontrol show node` prints."""
    return text.lstrip("\ufeff \t\r\n").startswith("NodeName=")


def slurm_document(text: str, *, file: str) -> Document:
    """Return what `scontrol show node` printed (also with `--oneliner`) as the document that its `--json` would have printed.

    Only the keys that `SlurmReader` reads are there. A key of a node has the line on which it stands.
    """
    lines = [0, *(match.end() for match in re.finditer("\n", text))]
    begins = [match.start() for match in _NODE.finditer(text)]
    nodes: list[dict[str, str]] = []
    keys: dict[KeyPath, Position] = {("nodes",): Position(1, 1)}
    for index, (start, end) in enumerate(zip(begins, [*begins[1:], len(text)], strict=True)):
        block = text[start:end]
        name = _NODE.match(block)
        assert name is not None, "a block begins with the name of its node"
        node = {"name": name[1]}
        keys["nodes", index] = keys["nodes", index, "name"] = Position(bisect_right(lines, start), 1)
        for key, pattern in _KEYS.items():
            match = pattern.search(block)
            if match is not None:
                node[key] = match[1]
                at = start + match.start() + 1
                line = bisect_right(lines, at)
                keys["nodes", index, key] = Position(line, at - lines[line - 1] + 1)
        nodes.append(node)
    return Document(file, {"nodes": tuple(nodes)}, keys, {})


class SlurmReader:
    """Reads nodes; `mistakes` are pairs of a key path in the document and a message."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.mistakes: list[tuple[KeyPath, str]] = []
        self._catalogue = catalogue

    def read(self, data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, SlurmNode]]:
        """Yield the nodes of a document, each with its key path.

        `sinfo` lists a node once for each of its partitions; it is yielded once, with the GPUs of the entry that tells them.
        """
        key = next(key for key in _LISTS if _is_list(data.get(key)))
        read = self._node if key == "nodes" else self._group
        found: dict[str, tuple[KeyPath, SlurmNode]] = {}
        for index, item in enumerate(data[key]):
            if not isinstance(item, Mapping):
                self._wrong((key, index), item, "an object")
                continue
            for path, node in read(item, (key, index)):
                other = found.get(node.name)
                if other is None or (other[1].host.gpus is None and node.host.gpus is not None):
                    found[node.name] = (path, node)
        has_gpus = any(node.host.gpus for _, node in found.values())
        for path, node in found.values():
            is_without = has_gpus and node.host.gpus is None and not any(isinstance(one, GroupedNodes) for one in node.remarks)
            yield path, replace(node, host=replace(node.host, gpus=())) if is_without else node

    def _node(self, item: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, SlurmNode]]:
        name = self._text(item, "name", path)
        if not name:
            self.mistakes.append(((*path, "name"), "a node must have a name"))
            return
        states = (*self._words(item, "state", path), *self._words(item, "state_flags", path))
        gpus, remarks = self._gpus(self._text(item, "gres", path), (*path, "gres"), self._text(item, "instance_type", path))
        host = self._host(gpus, self._text(item, "architecture", path), self._text(item, "operating_system", path))
        features = self._words(item, "features", path)
        yield path, SlurmNode(name=name, host=host, features=features, remarks=(*remarks, *_condition(states)))

    def _group(self, item: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, SlurmNode]]:
        """Yield the nodes of an entry of `sinfo`, whose Gres is that of the first of its nodes (_update_sinfo in sinfo.c).

        Equal in all nodes of an entry is what is in use of each resource (MATCH_FLAG_GRES_USED of `--json`), which names the
        types. So the Gres holds for all of them if both name the same types, or if the entry has one node.
        """
        below = self._mapping(item, "nodes", path)
        names = self._words(below, "nodes", (*path, "nodes"))
        states = self._words(self._mapping(item, "node", path), "state", (*path, "node"))
        at = (*path, "gres")
        given = self._mapping(item, "gres", path)
        total, used = self._text(given, "total", at), self._text(given, "used", at)
        gpus, remarks = self._gpus(total, (*at, "total"), "")
        if len(names) > 1 and gpus is not None and _types(used) != _types(total):
            gpus, remarks = None, (GroupedNodes(len(names)),)
        features = self._words(self._mapping(item, "features", path), "total", (*path, "features"))
        for name in names:
            yield (
                path,
                SlurmNode(
                    name=name,
                    host=self._host(gpus, "", ""),
                    features=features if len(names) == 1 else (),
                    remarks=(*remarks, *_condition(states)),
                ),
            )

    def _host(self, gpus: tuple[HostGpu, ...] | None, architecture: str, system: str) -> Host:
        name, _, release = system.partition(" ")
        kinds = {gpu.accelerator for gpu in gpus or ()}
        driver = Driver() if kinds == {"cuda"} else Driver(kind="amdgpu") if kinds == {"rocm"} else None
        return self._catalogue.identify(
            Host(
                platform=platform_of("linux", architecture) if name in {"Linux", ""} else None,
                kernel=parse.kernel_release(release.partition(" ")[0]) if name == "Linux" else None,
                driver=driver,
                gpus=gpus,
            )
        )

    def _gpus(self, gres: str, path: KeyPath, instance: str) -> tuple[tuple[HostGpu, ...] | None, tuple[NodeRemark, ...]]:
        """Return the GPUs in a Gres (`gpu:a100:4(S:0-1),shard:8`), None if it has none, and remarks on them."""
        found: list[HostGpu] = []
        remarks: list[NodeRemark] = []
        for part in _PARTS.split(gres):
            if part != "gpu" and not part.startswith(("gpu:", "gpu(")):
                continue
            match = _GRES.fullmatch(part)
            if match is None:
                self.mistakes.append((path, f"`{part}` is not a Gres such as gpu:a100:4"))
                continue
            count = int(match["count"] or 1)
            if count == 0:
                continue
            gpu, remark = self._gpu(match["type"] or "", count, instance)
            found.append(gpu)
            remarks += [remark] if remark is not None else []
        return tuple(found) or None, tuple(remarks)

    def _gpu(self, kind: str, count: int, instance: str) -> tuple[HostGpu, NodeRemark | None]:
        if not kind:
            known = instance_type(instance)
            if known is not None and known.host.gpus:
                return replace(known.host.gpus[0], count=count), None
            return HostGpu(count=count), UntypedGres(f"gpu:{count}")
        slice_ = _MIG.search(kind)
        name = kind[: slice_.start()] if slice_ is not None else kind
        read = self._catalogue.gpus.read(name.replace("_", " "))
        if not isinstance(read, NamedGpu):
            return HostGpu(count=1 if slice_ else count), UnknownGresType(kind)
        remark = MigGres(slice_["profile"]) if slice_ is not None else None
        return HostGpu.of_target(read.target, name=read.product, count=1 if slice_ else count), remark

    def _mapping(self, item: Mapping[str, Any], key: str, path: KeyPath) -> Mapping[str, Any]:
        value = item.get(key)
        if isinstance(value, Mapping):
            return value
        if value is not None:
            self._wrong((*path, key), value, "an object")
        return {}

    def _text(self, item: Mapping[str, Any], key: str, path: KeyPath) -> str:
        value = item.get(key)
        if value is None or isinstance(value, str):
            return "" if value in _NONE else value or ""
        self._wrong((*path, key), value, "text")
        return ""

    def _words(self, item: Mapping[str, Any], key: str, path: KeyPath) -> tuple[str, ...]:
        """Return a list of texts, which older versions of Slurm write as one text with commas (or `+`, for states)."""
        value = item.get(key)
        if _is_list(value):
            for index, one in enumerate(value):
                if not isinstance(one, str):
                    self._wrong((*path, key, index), one, "text")
            return tuple(one for one in value if isinstance(one, str))
        return tuple(one for one in re.split(r"[,+]" if key == "state" else ",", self._text(item, key, path)) if one)

    def _wrong(self, path: KeyPath, value: object, wanted: str) -> None:
        self.mistakes.append((path, f"`{value}` is not {wanted}"))


def _types(gres: str) -> set[str]:
    """Return the types of the GPUs in a Gres (`gpu:a100:0(IDX:N/A)`), "" for GPUs without one."""
    parts = (_GRES.fullmatch(part) for part in _PARTS.split(gres))
    return {match["type"] or "" for match in parts if match is not None}


def _condition(states: Sequence[str]) -> Iterator[NodeUnavailable]:
    """Yield a remark if one of the states of a node keeps it from starting jobs; `down*` is an older way to say so."""
    found = {_OUT_OF_USE.get(state.upper().rstrip("*~#%$@^!-")) for state in states}
    yield from (NodeUnavailable(cause) for cause in ("down", "drained") if cause in found)
