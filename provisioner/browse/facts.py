"""From the facts of a question to a host profile and a spec: host facts are stated, everything else is required."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.browse.question import newest_of_series, product
from provisioner.errors import UsageError
from provisioner.host.facts import STATED, with_fact
from provisioner.host.model import Host, HostGpu
from provisioner.strict_model import plain_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.browse.question import Fact
    from provisioner.matrix.model import Matrix


class Understood(Struct):
    """What the facts of a question come to: a host, what a spec would require, and how each fact was read.

    The host is not validated: it holds what the question says.
    """

    host: Host = field(default_factory=Host)
    requires: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    facts: list[tuple[str, str]] = field(default_factory=list)

    def profile_text(self) -> str:
        """Return the host as a profile in YAML; JSON is YAML too."""
        return json.dumps(plain_data(self.host))


def understand(matrix: Matrix, facts: Sequence[Fact]) -> Understood:
    """Sort facts by who states them; raises `UsageError` for one that no host can state."""
    found = Understood()
    for fact in facts:
        found.facts.append((fact.name, _file(matrix, fact, found)))
    return found


def _file(matrix: Matrix, fact: Fact, found: Understood) -> str:
    name = fact.name
    component = matrix.components.get(name)
    if name in {"accelerator", "runs"}:
        found.settings[name] = fact.value
        return fact.value
    if component is not None and not (component.virtual and fact.is_exact):
        found.requires[name] = f"=={fact.value}" if fact.is_exact and not component.named else fact.text
        return found.requires[name]
    if name == "gpu":
        return _gpu(matrix, fact.value, found)
    if name not in STATED:
        raise UsageError(
            f"`{fact.spelled}` cannot be stated of a host", hints=(f"`provision matrix list {name}` shows what there is",)
        )
    value = fact.value if component is None else newest_of_series(component, fact.value)
    found.host = with_fact(found.host, name, value)
    if name == "macos":
        # The Macs that the matrix has GPUs for are Intel's; a question that means another one names its platform after this.
        found.host = replace(found.host, platform="macos/x86_64")
    return value


def _gpu(matrix: Matrix, value: str, found: Understood) -> str:
    known = product(matrix, value)
    target = (known.compute_capability or known.gfx) if known is not None else value
    name = known.name if known is not None else None
    found.host = replace(found.host, gpus=(HostGpu.of_target(target, name=name),))
    return f"{name} ({target})" if name else target
