"""Read and write host profiles as YAML, with all mistakes of a file reported at once; and load the shipped profiles."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from provisioner.accelerators import GPU_ACCELERATORS
from provisioner.components import ABSENT, COMPONENTS, PRESENT
from provisioner.document import NO_TEXTS, parse_document, parse_model, read_text
from provisioner.errors import UsageError
from provisioner.host.instance_types import instance_type
from provisioner.host.model import Driver, Holds, Host, profile_keys
from provisioner.names import nearest
from provisioner.strict_model import plain_data
from provisioner.versions import version_as_written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.document import Document
    from provisioner.errors import Mistake
    from provisioner.host.model import ProfileKey

KIND = "host profile"

_DIRECTORY = Path(__file__).parent / "profiles"
_PLAIN_WORD = re.compile(r"[A-Za-z/][A-Za-z0-9_./+-]*(?: [A-Za-z0-9_./+()-]+)*")
_VERSION_OF_CUDA = re.compile(r"(?:[89]|1[0-5])\.\d(?:\.\d{1,3})?")
"""A release of CUDA from 8.0 on. NVIDIA's drivers have higher numbers, and AMD's since 2016 lower or higher ones."""
_PLAIN_VERSION = re.compile(r"\d+(?:\.\d+){2,}(?:[-+][A-Za-z0-9_.+-]*)?")


class Profile(Struct, frozen=True, kw_only=True):
    """A shipped profile of one kind of machine, without the facts that differ between machines of this kind.

    `description` is the first line of the file, a comment.
    """

    name: str
    description: str
    host: Host


def profile_names() -> tuple[str, ...]:
    """Return the names of the shipped profiles, sorted."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.yaml")))


def load_profile(name: str) -> Profile:
    """Return a shipped profile, or that of an instance type of a cloud.

    Raises `UsageError`, with the most similar known name as a hint, for an unknown name.
    """
    known = profile_names()
    if name not in known:
        found = instance_type(name)
        if found is not None:
            description = f"{found.cloud} {found.name}; driver and kernel are left for the solver to choose"
            return Profile(name=found.name, description=description, host=found.host)
        near = nearest(name.lower(), known)
        hints = (f"did you mean `{near}`?",) if near else ()
        others = "instance types of clouds, such as p5.48xlarge or a3-highgpu-8g; GPUs by name, such as `RTX 5060 Ti`"
        listed = f"profiles: {', '.join(known)}; {others}"
        raise UsageError(f"there is no profile `{name}`", hints=(*hints, listed))
    text = read_text(_DIRECTORY / f"{name}.yaml", kind=KIND)
    description = text.splitlines()[0].removeprefix("#").strip()
    host = host_from_document(parse_document(text, file=f"{name}.yaml", kind=KIND))
    return Profile(name=name, description=description, host=host)


def host_from_document(document: Document) -> Host:
    """Return the validated host of a parsed profile: a file, or the inline mapping of a spec (`document.below(…)`).

    Raises `InvalidDocumentError` with every mistake.
    """
    return parse_model(document, Host, kind=KIND, besides=tuple(_mistakes(document)))


def host_document(host: Host) -> str:
    """Return a host as the YAML of a profile, without unknown facts; `host_from_document` parses it to the same host."""
    lines = []
    for key, value in plain_data(host).items():
        if key == "gpus" and value:
            lines.append("gpus:")
            lines += [f"  - {_flow(gpu)}" for gpu in value]
        else:
            shown = {part: item for part, item in value.items() if item != Driver().kind} if key == "driver" else value
            lines.append(f"{key}: {_flow(shown)}")
    return "".join(f"{line}\n" for line in lines) or "{}\n"


def _flow(value: Any) -> str:  # noqa: ANN401 - whatever a profile holds
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return _scalar(value) if isinstance(value, str) else json.dumps(value)


def _scalar(text: str) -> str:
    """Return a string as a YAML scalar: unquoted if YAML 1.1 and 1.2 both read that as the same string."""
    is_word = _PLAIN_WORD.fullmatch(text) is not None and text.lower() not in NO_TEXTS
    if is_word or _PLAIN_VERSION.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped) + '"'


def _mistakes(document: Document) -> Iterator[Mistake]:
    """Yield the mistakes in a profile that the types of `Host` do not exclude; `parse_model` reports values of a wrong type."""
    data = document.data
    if not isinstance(data, dict):
        return
    yield from _wrong_versions(document, data)
    platform, system, driver = data.get("platform"), _mapping(data, "os"), _mapping(data, "driver")
    if isinstance(platform, str) and "id" in system:
        is_mac = platform.startswith("macos/")
        if is_mac != (system["id"] == "macos"):
            yield document.mistake(("os", "id"), f"`{system['id']}` does not run on platform `{platform}`")
    yield from _cuda_for_driver(document, data)
    kind = driver.get("kind", Driver().kind)
    if driver.get("module") is not None and kind != "nvidia":
        yield document.mistake(("driver", "module"), f"only NVIDIA's driver has flavours; this one is `{kind}`")
    is_open = "kind" not in driver and Driver(version=str(driver.get("version", "")), module=driver.get("module")).may_be_of_amd
    yield from _wrong_gpus(document, data.get("gpus"), kind=kind if driver and not is_open else None)


def _cuda_for_driver(document: Document, data: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield the mistake of a driver that has a version of CUDA: `nvidia-smi` shows the two beside each other."""
    gpus, driver = data.get("gpus"), data.get("driver")
    stated = driver if isinstance(driver, dict) else {"version": driver}
    is_of_amd = any(isinstance(gpu, dict) and "gfx" in gpu for gpu in (gpus if isinstance(gpus, tuple) else ()))
    version = str(stated.get("version"))
    if stated.get("kind", Driver().kind) == Driver().kind and not is_of_amd and _VERSION_OF_CUDA.fullmatch(version):
        command = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
        text = f"`{version}` is a version of CUDA and of no driver; write what `{command}` prints, such as 550.54.14"
        yield document.mistake(("driver", "version") if isinstance(driver, dict) else ("driver",), text)


def _wrong_versions(document: Document, data: Mapping[str, Any]) -> Iterator[Mistake]:
    for key in _version_keys():
        path, words = key.path, _WORDS_FOR_VERSION[key.holds]
        value = data.get(path[0]) if len(path) == 1 else _mapping(data, path[0]).get(path[1])
        if not isinstance(value, str) or value in words:
            continue
        try:
            version_as_written(value)
        except ValueError as error:
            advice = "".join(f"; write `{word}` when it is {meaning}" for word, meaning in words.items())
            yield document.mistake(path, f"{error}{advice}")


_WORDS_FOR_VERSION = {
    Holds.VERSION: {},
    Holds.VERSION_OR_ABSENT: {ABSENT: "known to be missing"},
    Holds.VERSION_OR_PRESENCE: {ABSENT: "known to be missing", PRESENT: "installed in an unknown version"},
}
"""For each kind of value that is a version, the words that may be written in its place, with their meanings."""


@cache
def _version_keys() -> tuple[ProfileKey, ...]:
    """Return every key of a profile whose value is a version, or a word in place of one."""
    return tuple(key for key in profile_keys() if key.holds in _WORDS_FOR_VERSION)


def _wrong_gpus(document: Document, gpus: object, *, kind: str | None) -> Iterator[Mistake]:
    """Yield mistakes about a GPU with targets of two vendors, or of another vendor than that of the driver.

    `kind` is the kind of the driver, None if the profile states no driver, or leaves its kind to the GPUs.
    """
    for index, gpu in enumerate(gpus if isinstance(gpus, tuple) else ()):
        stated = [row for row in GPU_ACCELERATORS if isinstance(gpu, dict) and row.target_key in gpu]
        if len(stated) > 1:
            first, other = stated[-1], stated[0]
            text = f"`{first.target_key}` is {first.vendor}'s and `{other.target_key}` {other.vendor}'s; a GPU has one of them"
            yield document.mistake(("gpus", index, first.target_key), text)
            continue
        for row in stated:
            if kind is not None and kind not in {COMPONENTS[driver].driver_kind for driver in row.drivers}:
                text = f"`{gpu[row.target_key]}` is an {row.vendor} GPU, which the driver `{kind}` does not run"
                yield document.mistake(("gpus", index, row.target_key), text)


def _mapping(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}
