"""What the model of a spec cannot see: whether its values mean something, and whether they contradict each other.

Reads the plain data, not the model, so that these mistakes are reported together with the model's own.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from provisioner.accelerators import ACCELERATORS, IMAGE_KINDS
from provisioner.components import COMPONENTS
from provisioner.gate.grammar import GateError
from provisioner.gate.grammar import parse as parse_gate
from provisioner.outputs import OUTPUTS, output_advice
from provisioner.spec.interval import interval_of_range
from provisioner.spec.policy import policy_mistakes
from provisioner.spec.requests import request_mistakes
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.document import Document, KeyPath
    from provisioner.errors import Mistake

NAMED_COMPONENTS = tuple(row.name for row in COMPONENTS.values() if row.is_named)
"""Components whose values are names (`open`, `cu126`, `gfx942`, `ubuntu 24.04`), not ranges of versions."""

_NAME = re.compile(r"[A-Za-z][\w./:-]*(?: [\w.]+)?")
_ARCHITECTURE = re.compile(rf"\d{{1,2}}\.\d[af]?(?:\+PTX)?|{ACCELERATORS['rocm'].target}")
_PATTERN = re.compile(r"[A-Za-z0-9*?](?:[A-Za-z0-9._*?-]*[A-Za-z0-9*?])?")
_PLACEHOLDER = re.compile(r"\{[^}]*\}?")


def spec_mistakes(document: Document) -> Iterator[Mistake]:
    """Every mistake in a spec's values; values of a wrong type are left to the model."""
    if not isinstance(document.data, dict):
        return
    ranges: dict[str, Range] = {}
    yield from _requires(document, ranges)
    yield from request_mistakes(document, ranges)
    yield from _targets(document)
    yield from _indexes(document)
    yield from _routes(document)
    yield from policy_mistakes(document, NAMED_COMPONENTS)
    yield from _architectures(document)
    yield from _image(document)
    yield from _outputs(document)
    for path in (("outputs",), ("policy", "allow"), ("policy", "forbid"), ("build", "arch_list")):
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


def _targets(document: Document) -> Iterator[Mistake]:
    """`target`, or each of `targets`; a spec with both would say twice where the environment must run."""
    targets = _at(document, "targets")
    names = [name for name in targets if isinstance(name, str)] if isinstance(targets, dict) else []
    if isinstance(targets, dict) and "target" in document.data:
        line = document.position(("target",)).line
        yield document.mistake(("targets",), f"`target` on line {line} says already where the environment must run; keep one")
    if targets == {}:
        yield document.mistake(("targets",), "no target is named; leave `targets` out, or name one")
    for path in (("target",), *(("targets", name) for name in names)):
        yield from _target(document, path)
        for key in ("platform", "host"):
            yield from _repeated(document, (*path, key))


def _target(document: Document, path: tuple[str, ...]) -> Iterator[Mistake]:
    host, platform = _at(document, *path, "host"), _at(document, *path, "platform")
    if platform == ():
        yield document.mistake((*path, "platform"), "the list is empty; name at least one platform")
    if isinstance(host, str | tuple) and not host:
        yield document.mistake((*path, "host"), "no host is named; give a path, or `auto` for this machine")
    for place, text in _texts(document, *path, "host"):
        if text == "auto":
            yield document.mistake(
                place, "`auto` stands alone; save this machine with `provision inspect` to list it with others"
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


def _routes(document: Document) -> Iterator[Mistake]:
    """`indexes[].packages`: a name belongs to one index."""
    indexes = _at(document, "indexes")
    owners: dict[str, tuple[int, str]] = {}
    for place, item in enumerate(indexes if isinstance(indexes, tuple) else ()):
        names = item.get("packages") if isinstance(item, dict) else None
        for index, name in enumerate(names if isinstance(names, tuple) else ()):
            path: KeyPath = ("indexes", place, "packages", index)
            if not isinstance(name, str):
                continue
            if not _PATTERN.fullmatch(name):
                yield document.mistake(path, f"`{name}` is neither the name of a distribution nor a pattern such as nvidia-*")
                continue
            normal = re.sub(r"[-_.]+", "-", name).lower()
            # A name and a pattern meet where the pattern matches the name; two patterns are held against every name that comes.
            other = next((one for one in owners if fnmatchcase(normal, one) or fnmatchcase(one, normal)), None)
            if other is not None and owners[other][0] != place:
                yield document.mistake(path, f"`{name}` belongs to an index already, at {owners[other][1]}; keep one")
            elif normal in owners:
                yield document.mistake(path, f"`{name}` is given twice; the first is at {owners[normal][1]}")
            owners.setdefault(normal, (place, document.where(path)))


_LOGIN = (
    "a URL must not carry a password, since this file is shared; put it into .netrc or the installer's keyring "
    "(an `@` in a path is written %40)"
)
"""Does not repeat the URL: that would carry the password into logs. One with a `/` in it reads as a port and a path."""


def _url_fault(url: str) -> str | None:
    try:
        parts = urlsplit(_PLACEHOLDER.sub("x", url))
        host, password, _ = parts.hostname, parts.password, parts.port
    except ValueError as error:
        return f"`{url}` is not a URL: {_lowered(str(error))}" if "@" not in url else _LOGIN
    if password is not None or "@" in parts._replace(netloc="").geturl():
        return _LOGIN
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
    if base is None or base in IMAGE_KINDS:
        yield document.mistake(("image", "require"), "is about a base image that `base` names; this one is chosen")
    try:
        parse_gate(text)
    except GateError as error:
        shown = f"`{error.token}` {error.reason} (character {error.column} of the requirement)"
        yield document.mistake(("image", "require"), shown)


def _outputs(document: Document) -> Iterator[Mistake]:
    """Find the names under `outputs` that no output format has."""
    for path, name in _texts(document, "outputs"):
        if name not in OUTPUTS:
            yield document.mistake(path, f"`{name}` is not an output format; {output_advice(name)}")


def _repeated(document: Document, path: tuple[str, ...]) -> Iterator[Mistake]:
    lines: dict[str, int] = {}
    for place, text in _texts(document, *path):
        if text in lines:
            yield document.mistake(place, f"`{text}` is given twice; the first is on line {lines[text]}")
        lines.setdefault(text, document.position(place).line)


def _lowered(text: str) -> str:
    """A library's sentence as the second half of ours."""
    return text[:1].lower() + text[1:]
