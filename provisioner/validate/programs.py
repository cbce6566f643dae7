"""The checks that run inside an image at each level, chosen by what its lock has.

The check of a framework is one module of `checks/frameworks` and one row here. A plug-in adds one by an entry point of the
group `provision.checks`: its name is that of the distribution to check, its value a module whose source is the check.
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.metadata import entry_points
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, to_builtins

from provisioner.errors import UsageError
from provisioner.render.entry_guard import GUARD, has_guard
from provisioner.render.helper import helper_text
from provisioner.validate.measurement import check_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec

    from provisioner.lock.format.model import Lock

PLUGINS = "provision.checks"
"""The group of entry points that add checks."""

DISTRIBUTIONS = {
    "numpy": "numpy",
    "jax": "jax",
    "tensorflow": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "tensorflow-rocm": "tensorflow",
    "onnxruntime": "onnxruntime",
    "onnxruntime-gpu": "onnxruntime",
    "onnxruntime-migraphx": "onnxruntime",
    "onnxruntime-openvino": "onnxruntime",
    "onnxruntime-rocm": "onnxruntime",
    "cupy": "cupy",
    "cupy-cuda11x": "cupy",
    "cupy-cuda12x": "cupy",
    "cupy-cuda13x": "cupy",
    **{f"{name}-{cuda}": "rapids" for name in ("cudf", "cuml", "rmm") for cuda in ("cu11", "cu12", "cu13")},
    **dict.fromkeys(("triton", "triton-rocm", "pytorch-triton-rocm"), "triton"),
    "vllm": "vllm",
    "nvidia-cuda-nvrtc": "nvrtc",
    "nvidia-cuda-nvrtc-cu11": "nvrtc",
    "nvidia-cuda-nvrtc-cu12": "nvrtc",
    **{f"nvidia-{name}-{cuda}": name for name in ("cudnn", "nccl") for cuda in ("cu11", "cu12", "cu13")},
}
"""The distributions that have a check of their own, by the name of its module in `checks/frameworks`."""

IN_THE_SMOKE_SCRIPT = "torch"
"""PyTorch is measured by the smoke script itself, with its devices."""

_ANY = "imported"


class Program(Struct, frozen=True, kw_only=True):
    """A check, as the smoke script starts it in a process of its own.

    `name` is that of the distribution, or `files`, `health` or `system`; `parts` are the names of its sources.
    """

    name: str
    kind: str
    parts: tuple[str, ...]
    arguments: tuple[str, ...] = ()


class Programs(Struct, frozen=True, kw_only=True):
    """The checks of one run, and their sources by name; many checks share a source, and a command line is short."""

    programs: tuple[Program, ...]
    sources: Mapping[str, str]

    def __str__(self) -> str:
        return json.dumps(to_builtins(self), sort_keys=True)


def programs_for(
    lock: Lock, level: int, *, has_entry_point: bool, load_seconds: float = 0.0, lists_system: bool = False
) -> Programs:
    """Return the checks of a lock of one platform up to a level; those of an image include its entry point.

    `load_seconds` is how long the check of health loads each GPU. With `lists_system` the distribution's packages are listed.
    """
    pinned = (
        {GUARD: hashlib.sha256(helper_text("guard.py").encode()).hexdigest()}
        if has_entry_point and has_guard(lock.stack)
        else {}
    )
    chosen = [Program(name="files", kind="files", parts=("files",), arguments=(json.dumps(pinned),))]
    if lists_system:
        chosen.append(Program(name="system", kind="system", parts=("system",)))
    plugins, asked = {}, asked_packages(lock)
    for name in checked_packages(lock) if level >= 3 else ():
        if source := _plugin(name):
            plugins[name] = source
        check = name if source else f"frameworks/{DISTRIBUTIONS.get(name, _ANY)}"
        arguments = (str(level), name, "asked" if name in asked else "brought along", lock.stack.accelerator)
        chosen.append(Program(name=name, kind="framework", parts=("framework", check, "run"), arguments=arguments))
    if level >= 5:
        chosen.append(Program(name="health", kind="health", parts=("health",), arguments=(f"{load_seconds:g}",)))
    names = {part for program in chosen for part in program.parts} - {"run", *plugins}
    sources = {name: check_source(name) for name in sorted(names)}
    return Programs(programs=tuple(chosen), sources=sources | plugins | {"run": "run(globals())\n"})


def checked_packages(lock: Lock) -> tuple[str, ...]:
    """Return the packages of a lock that are imported in processes of their own: frameworks, and what the spec names."""
    present, named = {package.name for package in lock.packages}, asked_packages(lock)
    return tuple(sorted(name for name in present - {IN_THE_SMOKE_SCRIPT} if name in named or has_own_check(name)))


def asked_packages(lock: Lock) -> frozenset[str]:
    """Return the packages that the spec of a lock names.

    A lock that does not record its spec names the packages that no other package requires.
    """
    if lock.asked:
        return frozenset(key.removeprefix("packages.") for key in lock.asked if key.startswith("packages."))
    required = {name for package in lock.packages for name in package.dependencies}
    return frozenset(package.name for package in lock.packages if package.name not in required)


def has_own_check(name: str) -> bool:
    """Return whether a distribution has a check of its own, here or in a plug-in."""
    return name in DISTRIBUTIONS or name in {entry.name for entry in entry_points(group=PLUGINS)}


def _plugin(name: str) -> str:
    """Return the source of the check that a plug-in has for a distribution, "" if none has; the plug-in is not imported.

    Raises `UsageError` if the module of a plug-in has no source.
    """
    for entry in entry_points(group=PLUGINS, name=name):
        spec = _spec(entry.module)
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            raise UsageError(f"the check of `{name}` names module `{entry.module}`, which has no source here")
        return Path(spec.origin).read_text(encoding="utf-8")
    return ""


def _spec(module: str) -> ModuleSpec | None:
    """Return where a module is; unlike `importlib.util.find_spec`, without importing the packages that it is in."""
    spec, path = None, None
    for name in accumulate(module.split("."), "{}.{}".format):
        found = (finder.find_spec(name, path) for finder in sys.meta_path)
        spec = next((one for one in found if one is not None), None)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return spec
