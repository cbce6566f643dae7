"""Read a must-gather, the folder that support asks for, as the nodes of its cluster.

Two kinds are known, alone or in the folders of one another: that of NVIDIA's GPU Operator (NVIDIA/gpu-operator,
hack/must-gather.sh, read 2026-11-23) and that of OpenShift (openshift/must-gather, `oc adm inspect`), which holds each node as
an object. What `kubectl describe` printed is turned back into objects (kubernetes/kubectl, pkg/describe/describe.go), so that
`kubernetes` reads all nodes, and what labels prove stands there alone.

Archives of nvidia-bug-report.sh in the folder are not read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from provisioner.components import PRESENT
from provisioner.document import parse_document
from provisioner.errors import InvalidDocumentError, Mistake, UsageError
from provisioner.host import parse
from provisioner.host.kubernetes import NodeReader
from provisioner.host.machine import Machine
from provisioner.host.model import Driver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.host.catalogue import Catalogue
    from provisioner.host.kubernetes import Node
    from provisioner.host.model import Host

KIND = "must-gather"

_LABELS, _DESCRIPTION = "gpu_nodes.labels", "gpu_nodes.descr"
_OBJECTS = "cluster-scoped-resources/core/nodes"
_IMAGES, _PODS = "gpu_operand_pod_images.txt", "gpu_operand_pods.status"
_MOST_DEPTH = 2
"""`oc adm must-gather` puts the folder of each image that it ran into one folder."""

_TOOLKIT = re.compile(r"/container-toolkit:v?(\d+(?:\.\d+)+)")
_NODE_NAME = re.compile(r"[a-z0-9.-]{1,253}")
"""The name of a node, a DNS subdomain; it is a part of names of files."""

_SECTIONS = {"Capacity": "capacity", "System Info": "nodeInfo"}
_INFO = {"Kernel Version": "kernelVersion", "OS Image": "osImage", "Architecture": "architecture"}


def is_must_gather(folder: Path) -> bool:
    """Return whether a folder is a must-gather with nodes."""
    return bool(_parts(folder))


def read_must_gather(folder: Path, *, catalogue: Catalogue) -> tuple[Node, ...]:
    """Return the nodes of a must-gather, sorted by name.

    Raises `UsageError` when the folder has none, and `InvalidDocumentError` for node objects that are no YAML or labels that
    are malformed.
    """
    machines = [Machine(part) for part in _parts(folder)]
    found: dict[str, dict[str, Any]] = {}
    for objects in (_labelled, _described, _stored):  # from the least to the most that each tells of a node
        for machine in machines:
            found.update({name: one for one in objects(machine) if (name := _name(one))})
    if not found:
        raise UsageError(f"`{folder}` has no nodes", hints=(f"a must-gather lists them in {_LABELS} or {_OBJECTS}",))
    reader = NodeReader(catalogue)
    nodes = [node for _, node in reader.read({"kind": "List", "items": [found[name] for name in sorted(found)]})]
    if reader.mistakes:
        names = sorted(found)
        mistakes = (Mistake(str(folder), 1, 1, f"node {names[int(path[1])]}", text) for path, text in reader.mistakes)
        raise InvalidDocumentError(KIND, tuple(mistakes))
    toolkits = {node: version for machine in machines for node, version in _toolkits(machine)}
    return tuple(replace(node, host=_with_more(node, machines, toolkits.get(node.name))) for node in nodes)


def _parts(folder: Path) -> list[Path]:
    """Return the folders of a must-gather that hold nodes: itself, or those of the images that gathered."""
    marks = (_LABELS, _DESCRIPTION, _OBJECTS)
    levels = ["/".join("*" * depth) for depth in range(1, _MOST_DEPTH + 1)]
    below = (path for level in levels for path in sorted(folder.glob(level)) if path.is_dir() and not path.is_symlink())
    return [path for path in (folder, *below) if any((path / mark).exists() for mark in marks)]


def _name(node: dict[str, Any]) -> str:
    metadata = node.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _stored(machine: Machine) -> Iterator[dict[str, Any]]:
    """Yield the node objects that OpenShift's must-gather stores, a file each."""
    for name in machine.names(_OBJECTS) or ():
        if name.endswith((".yaml", ".yml")):
            path = f"{_OBJECTS}/{name}"
            data = parse_document(machine.text(path), file=str(machine.root / path), kind=KIND).data
            if isinstance(data, dict):
                yield data


def _labelled(machine: Machine) -> Iterator[dict[str, Any]]:
    """Yield nodes with nothing but labels, from lines of a node's name and lines `- key=value` below it."""
    found: dict[str, dict[str, str]] = {}
    labels: dict[str, str] = {}
    for line in machine.text(_LABELS).splitlines():
        if line.startswith("- "):
            key, _, value = line.removeprefix("- ").partition("=")
            labels[key.strip()] = value.strip()
        elif line.strip():
            labels = found.setdefault(line.strip(), {})
    yield from ({"kind": "Node", "metadata": {"name": name, "labels": labels}} for name, labels in found.items())


def _described(machine: Machine) -> Iterator[dict[str, Any]]:
    """Yield the nodes that `kubectl describe nodes` printed, as objects with the parts that are read of a node."""
    for text in re.split(r"(?m)^(?=Name:\s)", machine.text(_DESCRIPTION)):
        if text.startswith("Name:"):
            yield _object(text)


def _object(text: str) -> dict[str, Any]:
    labels: dict[str, str] = {}
    status: dict[str, Any] = {"capacity": {}, "nodeInfo": {}, "conditions": []}
    name, is_cordoned, section = "", False, ""
    for line in text.splitlines():
        key, separator, value = line.partition(":")
        value = value.strip()
        if separator and line[:1].strip():
            section = key
            name = value if key == "Name" else name
            is_cordoned = is_cordoned or (key == "Unschedulable" and value == "true")
        if section == "Labels":
            label, _, given = (value if key == "Labels" else line).strip().partition("=")
            labels[label] = given
        elif section == "Conditions" and (ready := re.match(r"\s+Ready\s+(\w+)", line)):
            status["conditions"].append({"type": "Ready", "status": ready[1]})
        elif section in _SECTIONS and line[:1] == " ":
            status[_SECTIONS[section]][_INFO.get(key.strip(), key.strip())] = value
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": is_cordoned},
        "status": status,
    }


def _with_more(node: Node, machines: list[Machine], toolkit: str | None) -> Host:
    """Return the host of a node with what else the operator's must-gather tells: its driver and its container toolkit."""
    host = node.host
    is_name = _NODE_NAME.fullmatch(node.name) is not None
    texts = (machine.text(f"gpu_device_usage_{node.name}.log") for machine in machines if is_name)
    banner = next((found for text in texts if (found := parse.smi_banner(text))), None)
    if banner is not None and (host.driver is None or host.driver.version is None):
        host = replace(host, driver=Driver(version=banner[0]))
    if toolkit is not None and host.container_toolkit in {None, PRESENT}:
        host = replace(host, container_toolkit=toolkit)
    return host


def _toolkits(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield nodes with the release of the container toolkit that the operator's pod has installed there.

    The tag of the image is the release; a pod that does not run has installed nothing, and an image that is named by its digest
    alone does not tell its release.
    """
    lines = (line.partition(":\t") for line in machine.text(_IMAGES).splitlines())
    releases = {pod: found[1] for pod, _, images in lines if (found := _TOOLKIT.search(images))}
    header, *rows = machine.text(_PODS).splitlines() or [""]
    # kubectl aligns its columns, whose values may hold spaces: `3 (2d4h ago)`.
    starts = {title: header.find(title) for title in ("NAME", "STATUS", "NODE")}
    if -1 in starts.values():
        return
    for row in rows:
        pod, status, node = (row[start:].partition(" ")[0] for start in starts.values())
        if pod in releases and status == "Running" and node != "<none>":
            yield node, releases[pod]
