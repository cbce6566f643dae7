"""What the model of a spec cannot see: whether its values mean something, and whether they contradict each other.

Reads the plain data, not the model, so that these mistakes are reported together with the model's own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.gate.grammar import GateError
from provisioner.gate.grammar import parse as parse_gate
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.spec.interval import interval_of_range, interval_of_specifier
from provisioner.spec.policy import policy_mistakes
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.document import Document, KeyPath
    from provisioner.errors import Mistake
    from provisioner.spec.interval import Interval

NAMED_COMPONENTS = (
    "accelerator", "arch_list", "driver_module", "gpu", "image", "loaded_modules", "os", "platform", "python_arch",
    "pytorch_build", "secure_boot", "sip",
)  # fmt: skip
"""Components whose values are names (`open`, `cu126`, `gfx942`, `ubuntu 24.04`), not ranges of versions."""

_NAME = re.compile(r"[A-Za-z][\w./:-]*(?: [\w.]+)?")
_ARCHITECTURE = re.compile(r"\d{1,2}\.\d[af]?(?:\+PTX)?|gfx[0-9a-f]{3,5}")
_LONGEST = 2000
_NOT_PACKAGES = {
    "python": "put it under `requires`",
    **{
        component: f"write `{distribution}`, or put it under `requires`"
        for component, distribution in DISTRIBUTION_OF_COMPONENT.items()
        if component != distribution
    },
}
"""Names whose namesakes on an index are empty shells that nobody means."""
_PLACEHOLDER = re.compile(r"\{[^}]*\}?")


def spec_mistakes(document: Document) -> Iterator[Mistake]:
    """Every mistake in a spec's values; values of a wrong type are left to the model."""
    if not isinstance(document.data, dict):
        return
    ranges: dict[str, Range] = {}
    yield from _requires(document, ranges)
    yield from _packages(document, ranges)
    yield from _target(document)
    yield from _indexes(document)
    yield from policy_mistakes(document, NAMED_COMPONENTS)
    yield from _architectures(document)
    yield from _image(document)
    target, policy = (("target", "platform"), ("target", "host")), (("policy", "allow"), ("policy", "forbid"))
    for path in (("outputs",), *policy, *target, ("build", "arch_list")):
        yield from _repeated(document, path)


def _at(document: Document, *path: str) -> Any:  # noqa: ANN401 - YAML holds anything
    value = document.data
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _texts(document: Document, *path: str) -> Iterator[tuple[KeyPath, str]]:
    """The strings of a list, with where they stand."""
    value = _at(document, *path)
    for index, item in enumerate(value if isinstance(value, tuple) else ()):
        if isinstance(item, str):
            yield (*path, index), item


def _requires(document: Document, ranges: dict[str, Range]) -> Iterator[Mistake]:
    """Check every range, and put those that can be compared with `packages` into `ranges`."""
    requires = _at(document, "requires")
    for name, text in requires.items() if isinstance(requires, dict) else ():
        if not isinstance(text, str) or (name in NAMED_COMPONENTS and _NAME.fullmatch(text)):
            continue
        try:
            ranges[name] = Range.parse(text)
        except ValueError as error:
            yield document.mistake(("requires", name), str(error))
            continue
        if interval_of_range(ranges[name]).is_empty:
            yield document.mistake(("requires", name), f"`{text}` allows no version at all")


def _packages(document: Document, ranges: dict[str, Range]) -> Iterator[Mistake]:
    components = {DISTRIBUTION_OF_COMPONENT.get(name, name): name for name in ranges}
    seen: dict[str, list[tuple[KeyPath, Requirement]]] = {}
    for path, text in _texts(document, "packages"):
        if len(text) > _LONGEST:
            yield document.mistake(path, f"`{text[:27]}…` is {len(text)} characters long; no requirement is")
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            reason = str(error).splitlines()[0]
            yield document.mistake(path, f"`{text}` is not a requirement such as numpy>=2: {_lowered(reason)}")
            continue
        name = str(canonicalize_name(requirement.name))
        if name in _NOT_PACKAGES:
            yield document.mistake(path, f"`{name}` is not a Python distribution here; {_NOT_PACKAGES[name]}")
            continue
        own = interval_of_specifier(requirement.specifier)
        if own.is_empty:
            yield document.mistake(path, f"`{text}` allows no version at all")
            continue
        before = seen.setdefault(name, [])
        yield from _against_packages(document, path, requirement, before)
        before.append((path, requirement))
        component = components.get(name)
        if component is not None and requirement.url is None and requirement.marker is None:
            yield from _against_component(document, path, own, component=(component, ranges[component]))


def _against_packages(
    document: Document, path: KeyPath, requirement: Requirement, before: Sequence[tuple[KeyPath, Requirement]]
) -> Iterator[Mistake]:
    own = interval_of_specifier(requirement.specifier)
    for other_path, other in before:
        # Requirements with different markers, or one without, may never apply together.
        if requirement.marker != other.marker:
            continue
        is_apart = own.intersect(interval_of_specifier(other.specifier)).is_empty
        if is_apart or (requirement.url and other.url and requirement.url != other.url):
            line = document.position(other_path).line
            yield document.mistake(path, f"`{requirement}` contradicts `{other}` on line {line}")
            return


def _against_component(document: Document, path: KeyPath, own: Interval, *, component: tuple[str, Range]) -> Iterator[Mistake]:
    name, wanted = component
    if own.intersect(interval_of_range(wanted)).is_empty:
        text = _at(document, "requires", name)
        line = document.position(("requires", name)).line
        package = document.texts[path]
        yield document.mistake(path, f"`{package}` contradicts `{name}: {text}` on line {line}; they are the same component")


def _target(document: Document) -> Iterator[Mistake]:
    host, platform = _at(document, "target", "host"), _at(document, "target", "platform")
    if platform == ():
        yield document.mistake(("target", "platform"), "the list is empty; name at least one platform")
    if host in {"", ()} if isinstance(host, str | tuple) else False:
        yield document.mistake(("target", "host"), "no host is named; give a path, or `auto` for this machine")
    for path, text in _texts(document, "target", "host"):
        if text == "auto":
            yield document.mistake(
                path, "`auto` stands alone; save this machine with `provision inspect` to list it with others"
            )


def _indexes(document: Document) -> Iterator[Mistake]:
    indexes = _at(document, "indexes")
    names: dict[str, int] = {}
    for index, item in enumerate(indexes if isinstance(indexes, tuple) else ()):
        name, url = (item.get("name"), item.get("url")) if isinstance(item, dict) else (None, None)
        if isinstance(name, str):
            path: KeyPath = ("indexes", index, "name")
            if name in names:
                yield document.mistake(path, f"index `{name}` is given twice; the first is on line {names[name]}")
            names.setdefault(name, document.position(path).line)
        if isinstance(url, str):
            fault = _url_fault(url)
            if fault:
                yield document.mistake(("indexes", index, "url"), fault)


def _url_fault(url: str) -> str | None:
    try:
        parts = urlsplit(_PLACEHOLDER.sub("x", url))
        host, password = parts.hostname, parts.password
    except ValueError as error:
        return f"`{url}` is not a URL: {_lowered(str(error))}"
    if password is not None:
        # The message does not repeat the URL: it would carry the password into logs.
        return "a URL must not carry a password, since this file is shared; put it into .netrc or the installer's keyring"
    if parts.scheme not in {"https", "http", "file"} or (parts.scheme != "file" and not host):
        return f"`{url}` is not an index URL; it starts with https://, http:// or file://"
    unknown = next((found for found in _PLACEHOLDER.findall(url) if found != "{variant}"), None)
    return f"`{unknown}` is not a placeholder; only {{variant}} is filled in" if unknown else None


def _architectures(document: Document) -> Iterator[Mistake]:
    for path, text in _texts(document, "build", "arch_list"):
        if not _ARCHITECTURE.fullmatch(text):
            yield document.mistake(path, f"`{text}` is not a GPU architecture; write 9.0, 9.0a, 9.0+PTX or gfx942")


def _image(document: Document) -> Iterator[Mistake]:
    for key in ("cuda", "cuda_compat"):
        text = _at(document, "image", key)
        if isinstance(text, str):
            try:
                Version.parse(text)
            except ValueError as error:
                yield document.mistake(("image", key), str(error))
    yield from _gate(document)


def _gate(document: Document) -> Iterator[Mistake]:
    """`image.require` is read by its grammar, and says something of a base that is named only."""
    text, base = _at(document, "image", "require"), _at(document, "image", "base")
    if not isinstance(text, str):
        return
    if base is None or base in {"auto", "slim", "cuda-runtime", "cuda-devel"}:
        yield document.mistake(("image", "require"), "is about a base image that `base` names; this one is chosen")
    try:
        parse_gate(text)
    except GateError as error:
        shown = f"`{error.token}` {error.reason} (character {error.column} of the requirement)"
        yield document.mistake(("image", "require"), shown)


def _repeated(document: Document, path: tuple[str, ...]) -> Iterator[Mistake]:
    lines: dict[str, int] = {}
    for place, text in _texts(document, *path):
        if text in lines:
            yield document.mistake(place, f"`{text}` is given twice; the first is on line {lines[text]}")
        lines.setdefault(text, document.position(place).line)


def _lowered(text: str) -> str:
    """A library's sentence as the second half of ours."""
    return text[:1].lower() + text[1:]
