"""Host profiles: YAML text <-> `Host`, with every mistake of a file reported at once."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from provisioner.document import KeyPath, parse_model
from provisioner.host.model import Host
from provisioner.strict_model import plain_data
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.document import Document
    from provisioner.errors import Mistake

KIND = "host profile"

_VERSIONS: tuple[KeyPath, ...] = (
    ("kernel",),
    ("glibc",),
    ("driver", "version"),
    ("userspace_driver",),
    ("fabric_manager",),
    ("container_toolkit",),
    ("kernel_headers",),
    ("kernel_gcc",),
    ("gcc",),
    ("nvcc",),
    ("cuda_driver",),
    ("xcode",),
    ("libraries", "cudnn"),
    ("libraries", "nccl"),
    ("libraries", "cublas"),
    ("jetson", "l4t"),
    ("jetson", "jetpack"),
)
_MAY_BE_MISSING = ("container_toolkit", "kernel_headers")

_PLAIN_WORD = re.compile(r"[A-Za-z/][A-Za-z0-9_./+-]*(?: [A-Za-z0-9_./+()-]+)*")
_PLAIN_VERSION = re.compile(r"\d+(?:\.\d+){2,}(?:[-+][A-Za-z0-9_.+-]*)?")
_NOT_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Plain words that YAML 1.1 or 1.2 reads as something else."""


def host_from_document(document: Document) -> Host:
    """Validate a host profile that has been read: a file, or the inline mapping of a spec (`document.below(…)`)."""
    return parse_model(document, Host, kind=KIND, besides=tuple(_mistakes(document)))


def host_document(host: Host) -> str:
    """Return a profile as YAML in the order of its keys; unknown facts are left out, and `host_from_document` reads it back."""
    lines = []
    for key, value in plain_data(host).items():
        if key == "gpus" and value:
            lines.append("gpus:")
            lines += [f"  - {_flow(gpu)}" for gpu in value]
        else:
            shown = {part: item for part, item in value.items() if item != "nvidia"} if key == "driver" else value
            lines.append(f"{key}: {_flow(shown)}")
    return "".join(f"{line}\n" for line in lines) or "{}\n"


def _flow(value: Any) -> str:  # noqa: ANN401 - whatever a profile holds
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return _scalar(value) if isinstance(value, str) else json.dumps(value)


def _scalar(text: str) -> str:
    """A string as YAML reads it back: plain where no reader of YAML 1.1 or 1.2 takes it for something else."""
    is_word = _PLAIN_WORD.fullmatch(text) is not None and text.lower() not in _NOT_WORDS
    if is_word or _PLAIN_VERSION.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped) + '"'


def _mistakes(document: Document) -> Iterator[Mistake]:
    """What the model cannot see; silent about values of a wrong type, which the model reports."""
    data = document.data
    if not isinstance(data, dict):
        return
    yield from _wrong_versions(document, data)
    platform, system, driver = data.get("platform"), _mapping(data, "os"), _mapping(data, "driver")
    if isinstance(platform, str) and "id" in system:
        is_mac = platform.startswith("macos/")
        if is_mac != (system["id"] == "macos"):
            yield document.mistake(("os", "id"), f"`{system['id']}` does not run on platform `{platform}`")
    kind = driver.get("kind", "nvidia")
    if driver.get("module") is not None and kind != "nvidia":
        yield document.mistake(("driver", "module"), f"only NVIDIA's driver has flavours; this one is `{kind}`")
    yield from _wrong_gpus(document, data.get("gpus"), kind=kind if driver else None)


def _wrong_versions(document: Document, data: Mapping[str, Any]) -> Iterator[Mistake]:
    for path in _VERSIONS:
        value = _mapping(data, str(path[0])).get(str(path[1])) if len(path) > 1 else data.get(str(path[0]))
        if not isinstance(value, str) or (value == "none" and path[0] in _MAY_BE_MISSING):
            continue
        try:
            Version.parse(value)
        except ValueError as error:
            advice = "; write `none` when it is known to be missing" if path[0] in _MAY_BE_MISSING else ""
            yield document.mistake(path, f"{error}{advice}")


def _wrong_gpus(document: Document, gpus: object, *, kind: str | None) -> Iterator[Mistake]:
    for index, gpu in enumerate(gpus if isinstance(gpus, tuple) else ()):
        if not isinstance(gpu, dict):
            continue
        place = ("gpus", index)
        if "gfx" in gpu and "compute_capability" in gpu:
            text = "`gfx` is AMD's and `compute_capability` NVIDIA's; a GPU has one of them"
            yield document.mistake((*place, "gfx"), text)
        elif "gfx" in gpu and kind not in {None, "amdgpu"}:
            yield document.mistake((*place, "gfx"), f"`{gpu['gfx']}` is an AMD GPU, which the driver `{kind}` does not run")
        elif "compute_capability" in gpu and kind == "amdgpu":
            capability = gpu["compute_capability"]
            text = f"{capability} is an NVIDIA compute capability, which the driver `amdgpu` does not run"
            yield document.mistake((*place, "compute_capability"), text)


def _mapping(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}
