"""Classes of nodes of a cluster, as a user names them: `h100: partition=gpu constraint=sm_90`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*):(?:\s+(.*))?", re.ASCII | re.DOTALL)
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


class NodeClass(Struct, frozen=True, kw_only=True):
    """The nodes on which a cluster is to run a validation: a name, and what selects the nodes.

    `selects` maps options of sbatch, or labels of Kubernetes nodes, to values; empty for whatever the cluster chooses. The name
    is that of reports and their files, "" for the class that nobody named.
    """

    name: str = ""
    selects: Mapping[str, str] = field(default_factory=dict)


def parse_node_class(text: str) -> NodeClass:
    """Parse `NAME: KEY=VALUE KEY=VALUE`; without `NAME:`, the selection is the name, in the letters of file names.

    Raises `UsageError` for a word that is no `KEY=VALUE`, a repeated key, or nothing at all.
    """
    match = _NAMED.fullmatch(text.strip())
    selection = (match[2] or "") if match else text
    selects: dict[str, str] = {}
    for word in selection.split():
        key, equals, value = word.partition("=")
        if not (key and equals and value) or key in selects:
            problem = "is given twice" if key in selects else "is no KEY=VALUE"
            raise UsageError(f"`{word}` in --node-class `{text}` {problem}", hints=(_EXAMPLE,))
        selects[key] = value
    name = match[1] if match else _UNFIT.sub("-", " ".join(selection.split())).strip("-.")
    if not name:
        raise UsageError(f"--node-class `{text}` selects nothing", hints=(_EXAMPLE,))
    return NodeClass(name=name, selects=selects)


_EXAMPLE = 'for Slurm: --node-class "h100: partition=gpu constraint=sm_90"; for Kubernetes: --node-class "h100: LABEL=VALUE"'


def parse_node_classes(texts: Iterable[str]) -> tuple[NodeClass, ...]:
    """Parse several classes, or return the one that leaves the choice to the cluster; raises `UsageError` for equal names."""
    classes = tuple(map(parse_node_class, texts))
    names = [one.name for one in classes]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(
            f"two classes of nodes have the name `{twice}`, which is that of their report",
            hints=('name them: --node-class "NAME: KEY=VALUE"',),
        )
    return classes or (NodeClass(),)
