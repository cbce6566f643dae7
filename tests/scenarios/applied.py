"""Hints applied to a scenario as a person would: by editing the spec and the hosts; nothing of the solver is used."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provisioner.grounds.edit import DropDistribution, SetArchitecture, SetArchitectures, SetDistribution
from tests.told import changes, hosts

if TYPE_CHECKING:
    from provisioner.grounds.conflict import Fix

SIGNS = ("==", ">=", "<=")
DRIVERS = {"driver": "nvidia", "amdgpu": "amdgpu", "webdriver": "webdriver"}
PLAIN = {
    "kernel", "glibc", "container_toolkit", "kernel_headers", "kernel_gcc", "gcc", "nvcc", "python_arch",
    "userspace_driver", "fabric_manager", "cuda_driver", "sip", "xcode", "mig",
}  # fmt: skip
INSTALLED_TOGETHER = {"driver": ("userspace_driver", "fabric_manager"), "kernel": ("kernel_headers",)}
SECURE_BOOT = {
    "disabled": {"enabled": False},
    "enrolled": {"enabled": True, "mok_enrolled": True},
    "enforced": {"enabled": True, "mok_enrolled": False},
}


def merged(document: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a document after a merge patch, as RFC 7396 has it."""
    if not isinstance(patch, dict):
        return patch
    found = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def patched(scenario: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario after the patch of a hint; its hosts are told by their number."""
    of_hosts = patch.get("hosts", {})
    labels = [(f"host {number}", host) for number, host in enumerate(scenario.get("hosts", []), start=1)]
    assert of_hosts.keys() <= {label for label, _ in labels}, of_hosts
    hosts = [merged(host, of_hosts.get(label, {})) for label, host in labels if of_hosts.get(label, {}) is not None]
    return {**scenario, "spec": merged(scenario["spec"], patch.get("spec", {})), "hosts": hosts}


def applied(scenario: dict[str, Any], hint: Fix, *, is_at_end: bool = False) -> dict[str, Any]:
    """The scenario after every change of a hint, at the near end of its ranges or at the far one."""
    edited = copy.deepcopy(scenario)
    gone = set()
    named = _distributions(hint)
    for place, (name, change) in enumerate(changes(hint)):
        component = named.get(name, name)
        host = hosts(hint)[place] if hosts(hint) else ""
        if (component, change) == ("target", "left out"):
            gone.add(host)
        elif component != "arch_list":
            _edit(edited, component, _at(change, is_at_end=is_at_end), host or "host 1")
    for edit in (one for one in hint.edits if isinstance(one, SetArchitecture)):
        build = edited["spec"]["build"]
        build["arch_list"] = [edit.architecture if one == edit.before else one for one in build["arch_list"]]
    for whole in (one for one in hint.edits if isinstance(one, SetArchitectures)):
        edited["spec"]["build"]["arch_list"] = list(whole.architectures)
    if gone:  # last, for hosts are told by their number
        edited["hosts"] = [one for number, one in enumerate(edited["hosts"], start=1) if f"host {number}" not in gone]
    return edited


def _distributions(hint: Fix) -> dict[str, str]:
    """The name under `packages` of each component that a hint changes there, such as `torch` for `pytorch`."""
    return {edit.name: edit.distribution for edit in hint.edits if isinstance(edit, SetDistribution | DropDistribution)}


def _at(change: str, *, is_at_end: bool) -> str:
    """One value of a change: of a range such as `>=535,<=550` one end, of which a kernel's nearest is the upper one."""
    low, comma, high = change.partition(",")
    if not comma or not low.startswith(">="):
        return change
    return high if is_at_end else low


def _edit(scenario: dict[str, Any], component: str, change: str, host: str) -> None:
    spec = scenario["spec"]
    value = next((change.removeprefix(sign) for sign in SIGNS if change.startswith(sign)), change)
    key, _, name = component.partition(".")
    if key in {"constraints", "overrides"}:
        assert change == "left out", "a line of these is dropped, never replaced"
        spec[key] = [line for line in spec[key] if canonicalize_name(Requirement(line).name) != name]
    elif change == "left out":
        spec["requires"] = {name: text for name, text in spec.get("requires", {}).items() if name != component}
        lines = spec.get("packages", [])
        spec["packages"] = [line for line in lines if canonicalize_name(Requirement(line).name) != component]
    elif component == "policy":
        key, _, text = change.partition(": ")
        spec.setdefault("policy", {})[key] = text if key == "strategy" else [w for w in text.strip("[]").split(", ") if w]
    elif component == "packages":
        spec["packages"] = [*spec.get("packages", []), *change.split(", ")]
    elif component == "runs":
        spec["runs"] = change
    elif component == "accelerator":
        spec["accelerator"] = value
    elif component == "image":
        spec.setdefault("image", {})["base"] = value
    elif component in spec.get("requires", {}) and not (
        component in {"driver_module", "gpu"} and spec["requires"][component] == value
    ):
        # A flavour or a GPU that the spec requires already is that of the host.
        is_version = component != "pytorch_build" and value[:1].isdigit()
        spec["requires"][component] = f"=={value}" if is_version else value
    elif (lines := _lines(spec.get("packages", []), component, change, value)) is not None:
        spec["packages"] = lines
    else:
        profiles = scenario["hosts"]
        _fact(profiles[int(host.removeprefix("host ")) - 1], component, value)


def _lines(lines: list[str], component: str, change: str, value: str) -> list[str] | None:
    """The lines of `packages` after a change of a distribution, or of its extras; None when none is about it."""
    name = canonicalize_name(Requirement(component).name)
    if all(canonicalize_name(Requirement(line).name) != name for line in lines):
        return None
    if "[" in component:
        return [_with_extras(line, name, Requirement(change)) for line in lines]
    wanted = f"{component}=={value}" if value[:1].isdigit() else value  # another distribution in its place
    return [wanted if canonicalize_name(Requirement(line).name) == name else line for line in lines]


def _with_extras(line: str, name: str, change: Requirement) -> str:
    requirement = Requirement(line)
    if canonicalize_name(requirement.name) == name:
        requirement.extras = change.extras
    return str(requirement)


def _fact(profile: dict[str, Any], component: str, value: str) -> None:
    profile.update({key: value for key in INSTALLED_TOGETHER.get(component, ()) if profile.get(key, "none") != "none"})
    if component in DRIVERS:
        profile["driver"] = {**profile.get("driver", {"kind": DRIVERS[component]}), "version": value}
    elif component == "driver_module":
        profile["driver"] = {**profile.get("driver", {}), "module": value}
    elif component == "gpu":
        key = "gfx" if value.startswith("gfx") else "compute_capability"
        assert len(profile["gpus"]) == 1, "of several GPUs a hint says which one it is about, in words"
        profile["gpus"] = [{key: value}]
    elif component == "macos":
        version, _, build = value.partition("+")
        profile["os"] = {"id": "macos", "version": version, **({"build": build} if build else {})}
    elif component == "os":
        name, _, version = value.partition(" ")
        profile["os"] = {"id": name, "version": version}
    elif component == "secure_boot":
        profile["secure_boot"] = SECURE_BOOT[value]
    elif component == "loaded_modules":
        profile["loaded_modules"] = [] if value == "free" else [value]
    elif component == "virtualization":  # another kernel runs then, which nobody knows yet
        profile["virtualization"] = value
        profile.pop("kernel", None)
    elif component == "jetson":
        profile["jetson"] = {**profile.get("jetson", {}), "l4t": value}
    else:
        key = {"host_gcc": "gcc"}.get(component, component)
        assert key in PLAIN, f"nobody knows how to change {component}"
        profile[key] = value
