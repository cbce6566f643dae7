"""From the facts of a question to a host profile and a spec: host facts are stated, everything else is required."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.browse.question import newest_of_series, product
from provisioner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from provisioner.browse.question import Fact
    from provisioner.matrix.model import Matrix

Profile = dict[str, object]

TEXT_FACTS = frozenset(
    {
        "container_toolkit",
        "cuda_driver",
        "fabric_manager",
        "gcc",
        "glibc",
        "kernel",
        "kernel_gcc",
        "kernel_headers",
        "platform",
        "python_arch",
        "sip",
        "userspace_driver",
        "virtualization",
        "xcode",
    }
)
"""Facts that a profile spells under their own name."""


class Understood(Struct):
    """What the facts of a question come to: a host profile, what a spec would require, and how each fact was read."""

    profile: Profile = field(default_factory=dict)
    requires: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    facts: list[tuple[str, str]] = field(default_factory=list)

    def profile_text(self) -> str:
        """The profile as YAML; JSON is YAML too."""
        return json.dumps(self.profile)


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
        return _gpu(matrix, fact.value, found.profile)
    value = fact.value if component is None else newest_of_series(component, fact.value)
    if name in TEXT_FACTS:
        found.profile[name] = value
    elif name in SHAPED:
        _merge(found.profile, SHAPED[name](value))
    else:
        raise UsageError(
            f"`{fact.spelled}` cannot be stated of a host", hints=(f"`provision matrix list {name}` shows what there is",)
        )
    return value


def _gpu(matrix: Matrix, value: str, profile: Profile) -> str:
    found = product(matrix, value)
    if found is None:
        profile["gpus"] = [{"gfx": value} if value.startswith("gfx") else {"compute_capability": value}]
        return value
    target = {"gfx": found.gfx} if found.gfx else {"compute_capability": found.compute_capability}
    profile["gpus"] = [{"name": found.name, **target}]
    return f"{found.name} ({found.gfx or found.compute_capability})"


def _merge(profile: Profile, more: Profile) -> None:
    """Add facts; two facts about one thing (a driver's version and its flavour) belong together."""
    for name, value in more.items():
        before = profile.get(name)
        profile[name] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value


def _os(value: str) -> Profile:
    identity, _, version = value.partition(" ")
    return {"os": {"id": identity, "version": version} if version else {"id": identity}}


def _macos(value: str) -> Profile:
    version, _, build = value.partition("+")
    return {"platform": "macos/x86_64", "os": {"id": "macos", "version": version, **({"build": build} if build else {})}}


SHAPED: dict[str, Callable[[str], Profile]] = {
    "driver": lambda value: {"driver": {"version": value}},
    "driver_module": lambda value: {"driver": {"module": value}},
    "amdgpu": lambda value: {"driver": {"kind": "amdgpu", "version": value}},
    "webdriver": lambda value: {"driver": {"kind": "webdriver", "version": value}},
    "os": _os,
    "macos": _macos,
    "secure_boot": lambda value: {"secure_boot": {"enabled": value != "disabled", "mok_enrolled": value == "enrolled"}},
    "loaded_modules": lambda value: {"loaded_modules": [] if value == "free" else [value]},
    "jetson": lambda value: {"jetson": {"l4t": value}},
}
"""Facts that a profile spells in its own way (DESIGN section 3.3)."""
