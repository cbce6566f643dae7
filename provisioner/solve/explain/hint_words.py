"""A way out of a conflict in words, and as the changes that scripts read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.explain.change import LEFT_OUT, TARGET
from provisioner.solve.explain.fold import listed
from provisioner.solve.stack import Hint

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provisioner.solve.explain.change import Change
    from provisioner.request import TargetHost

SHOWN = 5
"""How many ways out are shown, and how many hosts of one are named."""

WITHOUT = "without"
"""What is said of hosts that are left out of the target."""


def hint_of(
    changes: Sequence[Change], gives: Mapping[str, str], hosts: Mapping[str, TargetHost], *, asked: Collection[str]
) -> Hint:
    """A way out as it is shown; a change of hosts that state the same is one for each of them.

    `asked` are the components that the spec names: of these it is said when it is the host that has to change.
    """
    names_hosts = sum(target.count for target in hosts.values()) > 1
    told: list[tuple[Change, str]] = []
    for change in changes:
        target = hosts.get(change.host)
        told.extend((change, name) for name in (target.names if target is not None and target.names else (change.host,)))
    return Hint(
        changes=tuple((change.component, change.text) for change, _ in told),
        text=_words(changes, hosts if names_hosts else {}, asked),
        gives=gives,
        hosts=tuple(name if names_hosts else "" for _, name in told),
    )


def _words(changes: Sequence[Change], hosts: Mapping[str, TargetHost], asked: Collection[str]) -> str:
    """`A and B would do`, where the same change on several hosts is said once; `hosts` is empty where none is named."""
    labels: dict[str, dict[str, None]] = {}
    for change in changes:
        is_either = bool(change.host) and not hosts and change.component in asked
        text = f"{_said(change)} on the host" if is_either else _said(change)
        labels.setdefault(text, {}).update({change.host: None} if change.host in hosts else {})
    parts = [f"{text}{_on(text, [hosts[label] for label in some])}" for text, some in labels.items()]
    if len(parts) == 1:
        return f"{parts[0]} would do"
    return f"{listed(parts, 'and')} would do: these {len(parts)} changes are needed together"


def _on(text: str, targets: Sequence[TargetHost]) -> str:
    """Hosts by name, or how many and one of them; "" for none."""
    if not targets:
        return ""
    total = sum(target.count for target in targets)
    if len(targets) <= SHOWN:
        shown = ", ".join(target.label for target in targets)
    else:
        shown = f"{total} hosts, such as {(targets[0].names or (targets[0].label,))[0]}"
    return f" {shown}" if text == WITHOUT else f" on {shown}"


def _said(change: Change) -> str:
    if change.component == TARGET:
        return WITHOUT
    text = change.text.removeprefix("==")
    if text == LEFT_OUT:
        return f"leaving out {change.instead}"
    if change.component == "policy":
        return f"`{text}` in policy"
    name = change.package or change.component
    is_stated = bool(change.host) and change.component != "gpu"
    instead = f" instead of {change.instead}" if change.instead and not is_stated else ""
    return f"{name} {text}{instead}"
