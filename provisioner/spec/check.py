"""Find mistakes in the values of a spec that its types do not show: values without a meaning, and contradictions.

They are found in the plain data, not in the model, so that these mistakes are reported together with those of types. The
lists of Python requirements have a module of their own, `check_requirements`.
"""

from __future__ import annotations

import re
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.accelerators import ACCELERATORS, IMAGE_KINDS
from provisioner.components import COMPONENTS
from provisioner.gate.grammar import GateError
from provisioner.gate.grammar import parse as parse_gate
from provisioner.names import COMPONENT_OF_DISTRIBUTION, DISTRIBUTION_NAME, nearest
from provisioner.outputs import OUTPUTS, output_advice
from provisioner.spec.check_requirements import requirement_mistakes
from provisioner.spec.interval import INTERVAL_OPERATORS, interval_of_range
from provisioner.versions import Range, range_as_written, version_as_written

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from provisioner.document import Document, KeyPath
    from provisioner.errors import Mistake

KIND = "spec"

NAMED_COMPONENTS = frozenset(row.name for row in COMPONENTS.values() if row.is_named)
"""Components whose values are names (`open`, `cu126`, `gfx942`, `ubuntu 24.04`), not ranges of versions."""

_NAME = re.compile(r"[A-Za-z][\w./:-]*(?: [\w.]+)?")
_ARCHITECTURE = re.compile(rf"\d{{1,2}}\.\d[af]?(?:\+PTX)?|{ACCELERATORS['rocm'].target}")
_GFX = re.compile(ACCELERATORS["rocm"].target)
_PATTERN = re.compile(r"[A-Za-z0-9*?](?:[A-Za-z0-9._*?-]*[A-Za-z0-9*?])?")
_PLACEHOLDER = re.compile(r"\{[^}]*\}?")

_PREFERENCES = {"prefer": "preferred", "avoid": "avoided"}
"""The tables of preferences in a policy, each with its participle for messages."""

_GIVEN = frozenset({"accelerator", "arch_list", "gpu", "platform"})
"""Components whose values the target or the spec states, so that the resolver does not choose them."""

_TYPO_SIMILARITY = 0.8
"""The least similarity to a component's name of a typo of that name; `cupy`, a distribution, is less similar to `cupti`."""


class _Preference(NamedTuple):
    """A range under `policy.prefer` or `policy.avoid`, and its key path."""

    path: KeyPath
    range: Range


def spec_mistakes(document: Document) -> Iterator[Mistake]:
    """Yield every mistake in a spec's values; values of a wrong type are left for the model to refuse."""
    if not isinstance(document.data, dict):
        return
    ranges: dict[str, Range] = {}
    yield from _requires(document, ranges)
    yield from requirement_mistakes(document, ranges)
    yield from _targets(document)
    yield from _indexes(document)
    yield from _index_packages(document)
    yield from _policy(document)
    yield from _architectures(document)
    yield from _image(document)
    yield from _outputs(document)
    if _at(document, "runs") == ():
        yield document.mistake(("runs",), "the list is empty; write `container`, `host`, or both")
    for path in (("runs",), ("policy", "allow"), ("policy", "forbid"), ("build", "arch_list")):
        yield from _repeated(document, path)


def _at(document: Document, *path: str) -> Any:  # noqa: ANN401 - YAML holds anything
    value = document.data
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _texts(document: Document, *path: str) -> Iterator[tuple[KeyPath, str]]:
    """Yield the strings of a list with their key paths."""
    value = _at(document, *path)
    for index, item in enumerate(value if isinstance(value, tuple) else ()):
        if isinstance(item, str):
            yield (*path, index), item


def _requires(document: Document, ranges: dict[str, Range]) -> Iterator[Mistake]:
    """Check every range under `requires`, and put those that can be compared with `packages` into `ranges`."""
    requires = _at(document, "requires")
    for name, text in requires.items() if isinstance(requires, dict) else ():
        if not isinstance(text, str) or (name == "gpu" and _GFX.fullmatch(text)):
            continue
        if name == "gpu" and text[:1].isalpha():
            targets = "neither a compute capability, such as 9.0 or >=8.0, nor a gfx target, such as gfx942"
            advice = f"a GPU by its name belongs to a host: `target: {{host: {{gpus: [{{name: {text}}}]}}}}`"
            yield document.mistake(("requires", name), f"`{text}` is {targets}; {advice}")
            continue
        if name in NAMED_COMPONENTS and _NAME.fullmatch(text):
            continue
        try:
            ranges[name] = range_as_written(text)
        except ValueError as error:
            yield document.mistake(("requires", name), str(error))
            continue
        if interval_of_range(ranges[name]).is_empty:
            yield document.mistake(("requires", name), f"`{text}` allows no version at all")


def _targets(document: Document) -> Iterator[Mistake]:
    """Check `target`, or each of `targets`; a spec must not have both keys."""
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
            fault = _url_mistake(url)
            if fault:
                yield document.mistake(("indexes", index, "url"), fault)
        if isinstance(item, dict) and item.get("kind") == "find-links":
            yield from _find_links(document, index, item)


def _find_links(document: Document, index: int, item: dict[object, object]) -> Iterator[Mistake]:
    if not item.get("packages"):
        text = "a page of files has files of any name; say under `packages:` which distributions come from it"
        yield document.mistake(("indexes", index, "kind"), text)
    if "{variant}" in str(item.get("url")):
        yield document.mistake(
            ("indexes", index, "url"), "a page of files is one page; `{variant}` stands in the URL of an index"
        )


def _index_packages(document: Document) -> Iterator[Mistake]:
    """Check `indexes[].packages`: no distribution is pinned to two indexes."""
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
            # A name and a pattern overlap where the pattern matches the name. Whether two patterns overlap depends on the
            # distributions that are found later.
            other = next((one for one in owners if fnmatchcase(normal, one) or fnmatchcase(one, normal)), None)
            if other is not None and owners[other][0] != place:
                yield document.mistake(path, f"`{name}` belongs to an index already, at {owners[other][1]}; keep one")
            elif normal in owners:
                yield document.mistake(path, f"`{name}` is given twice; the first is at {owners[normal][1]}")
            owners.setdefault(normal, (place, document.where(path)))


_HAS_LOGIN = (
    "a URL must not carry a password, since this file is shared; put it into .netrc or the installer's keyring "
    "(an `@` in a path is written %40)"
)
"""The message for a URL with a password. It does not repeat the URL, which would carry the password into logs.

A password with a `/` in it reads as a port and a path.
"""


def _url_mistake(url: str) -> str | None:
    try:
        parts = urlsplit(_PLACEHOLDER.sub("x", url))
        host, password, _ = parts.hostname, parts.password, parts.port
    except ValueError as error:
        reason = str(error)
        return f"`{url}` is not a URL: {reason[:1].lower()}{reason[1:]}" if "@" not in url else _HAS_LOGIN
    if password is not None or "@" in parts._replace(netloc="").geturl():
        return _HAS_LOGIN
    if parts.scheme not in {"https", "http", "file"} or (parts.scheme != "file" and not host):
        return f"`{url}` is not an index URL; it starts with https://, http:// or file://"
    unknown = next((found for found in _PLACEHOLDER.findall(url) if found != "{variant}"), None)
    return f"`{unknown}` is not a placeholder; only {{variant}} is filled in" if unknown else None


def _architectures(document: Document) -> Iterator[Mistake]:
    for path, text in _texts(document, "build", "arch_list"):
        if not _ARCHITECTURE.fullmatch(text):
            yield document.mistake(path, f"`{text}` is not a GPU architecture; write 9.0, 9.0a, 9.0+PTX or gfx942")


def _image(document: Document) -> Iterator[Mistake]:
    base = _at(document, "image", "base")
    for key in ("distribution", "glibc", "python"):
        if _at(document, "image", key) is not None and (base is None or base in IMAGE_KINDS):
            yield document.mistake(("image", key), "is about a base image that `base` names; this one is chosen")
    first: dict[str, str] = {}
    for path, text in _texts(document, "image", "apt"):
        name = text.partition("=")[0]
        if name in first:
            yield document.mistake(path, f"package `{name}` is listed twice")
        first[name] = text
    if first and _at(document, "runs") == "host":
        yield document.mistake(("image", "apt"), "are packages of an image, and this environment runs on the host")
    yield from _snapshot(document)
    for key in ("cuda", "cuda_compat", "glibc", "python"):
        text = _at(document, "image", key)
        if isinstance(text, str):
            try:
                version_as_written(text)
            except ValueError as error:
                yield document.mistake(("image", key), str(error))
    yield from _gate(document)


def _snapshot(document: Document) -> Iterator[Mistake]:
    """Check that `image.snapshot` is a day or a time, and that there is an image whose packages it dates."""
    text = _at(document, "image", "snapshot")
    if text is not None and _at(document, "runs") == "host":
        yield document.mistake(("image", "snapshot"), "dates packages of an image, and this environment runs on the host")
    yield from _moment(document, ("image", "snapshot"), text)


def _gate(document: Document) -> Iterator[Mistake]:
    """Check that `image.require` is a valid NVIDIA_REQUIRE_* value, and that `image.base` names the base image that has it."""
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
    """Find the names under `outputs` that no output format has, paths outside of the lock's folder, and files given twice.

    Formats for containers are mistakes where the environment runs on the host alone.
    """
    outputs = _at(document, "outputs")
    written: dict[str, int] = {}
    for index, item in enumerate(outputs if isinstance(outputs, tuple) else ()):
        path: KeyPath = ("outputs", index)
        table = item if isinstance(item, dict) else {"format": item}
        name, file = table.get("format"), table.get("path")
        if not isinstance(name, str):
            continue
        if name not in OUTPUTS:
            place = (*path, "format") if isinstance(item, dict) else path
            yield document.mistake(place, f"`{name}` is not an output format; {output_advice(name)}")
            continue
        if OUTPUTS[name].is_for_containers and _at(document, "runs") in {"host", ("host",)}:
            text = f"`{name}` is for containers, and `runs` has the host alone; write `runs: [host, container]` for both"
            yield document.mistake(path, text)
        if file is None:
            file = OUTPUTS[name].file_name
        elif not isinstance(file, str):
            continue
        elif not _is_below(file):
            text = f"`{file}` is not the path of a file below the lock's folder, such as docker/{OUTPUTS[name].file_name}"
            yield document.mistake((*path, "path"), text)
        if file in written:
            text = f"`{name if isinstance(item, str) else file}` is given twice; the first is on line {written[file]}"
            yield document.mistake((*path, "path") if "path" in table else path, text)
        written.setdefault(file, document.position(path).line)


def _is_below(file: str) -> bool:
    """Return whether a text is the path of a file below a folder, with forward slashes, and not that of a lock."""
    parts = file.split("/")
    is_lock = parts[-1].startswith("pylock.") and parts[-1].endswith(".toml")
    return file.isprintable() and "\\" not in file and not is_lock and not any(part in {"", ".", ".."} for part in parts)


def _repeated(document: Document, path: tuple[str, ...]) -> Iterator[Mistake]:
    lines: dict[str, int] = {}
    for place, text in _texts(document, *path):
        if text in lines:
            yield document.mistake(place, f"`{text}` is given twice; the first is on line {lines[text]}")
        lines.setdefault(text, document.position(place).line)


def _policy(document: Document) -> Iterator[Mistake]:
    """Find the mistakes in the policy that show without a matrix."""
    policy = document.data.get("policy")
    if not isinstance(policy, dict):
        return
    yield from _moment(document, ("policy", "exclude-newer"), policy.get("exclude-newer"))
    yield from _allowed_and_forbidden(document, policy.get("allow"), policy.get("forbid"))
    ranges: dict[str, dict[str, _Preference]] = {}
    for table in _PREFERENCES:
        yield from _preferences(document, table, policy.get(table), ranges.setdefault(table, {}))
    yield from _preferred_and_avoided(document, ranges["prefer"], ranges["avoid"])


def _moment(document: Document, path: tuple[str, ...], text: object) -> Iterator[Mistake]:
    """Check that a text is a day or a time; anything but a text is no mistake of this kind."""
    if not isinstance(text, str):
        return
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        advice = "a date such as 2026-09-01 or a timestamp such as 2026-09-01T12:00:00Z"
        yield document.mistake(path, f"`{text}` is not {advice}")


def _allowed_and_forbidden(document: Document, allow: object, forbid: object) -> Iterator[Mistake]:
    allowed = allow if isinstance(allow, tuple) else ()
    for index, word in enumerate(forbid if isinstance(forbid, tuple) else ()):
        if isinstance(word, str) and word in allowed:
            line = document.position(("policy", "allow", allowed.index(word))).line
            yield document.mistake(
                ("policy", "forbid", index), f"`{word}` is allowed on line {line} and forbidden here; keep one"
            )


def _preferences(document: Document, table: str, entries: object, found: dict[str, _Preference]) -> Iterator[Mistake]:
    """Check `prefer` or `avoid` (`table`), and put the ranges that can be compared into `found`, by their subject.

    The subject is a component or distribution.
    """
    seen: dict[str, int] = {}
    for name, text in entries.items() if isinstance(entries, dict) else ():
        path: KeyPath = ("policy", table, name)
        subject = _component_or_distribution(name)
        if subject in seen:
            yield document.mistake(path, f"`{name}` is named twice; the first is on line {seen[subject]}")
        seen.setdefault(subject, document.position(path).line)
        if name in _GIVEN:
            yield document.mistake(path, f"`{name}` is given, not chosen, so that nothing can be {_PREFERENCES[table]}")
        elif isinstance(text, str) and name not in NAMED_COMPONENTS:
            fault = _range_mistake(text)
            if fault:
                yield document.mistake(path, fault)
                continue
            try:
                found[subject] = _Preference(path, range_as_written(text))
            except ValueError:
                continue


def _range_mistake(text: str) -> str | None:
    """Return a message about a text that is a range neither of a component nor, as installers read it, of a distribution.

    The message may also be that the range allows every version, or none. The result is None for a useful range.
    """
    try:
        wanted = range_as_written(text)
    except ValueError as error:
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            return str(error)
        return None
    if not wanted.clauses:
        return f"`{text}` is every version, which puts none before another"
    return f"`{text}` allows no version at all" if interval_of_range(wanted).is_empty else None


def _preferred_and_avoided(
    document: Document, prefer: dict[str, _Preference], avoid: dict[str, _Preference]
) -> Iterator[Mistake]:
    """Find preferences without an effect, because every version that they prefer is avoided."""
    for name, preferred in prefer.items():
        avoided = avoid.get(name)
        if avoided is None or not all(clause.operator in INTERVAL_OPERATORS for clause in avoided.range.clauses):
            continue
        if interval_of_range(avoided.range).contains(interval_of_range(preferred.range)):
            line = document.position(avoided.path).line
            text = f"all of `{preferred.range}` is avoided on line {line}, so that nothing is preferred; keep one"
            yield document.mistake(preferred.path, text)


def component_mistakes(document: Document, known: Collection[str]) -> Iterator[Mistake]:
    """Yield a mistake for each name under `requires` and in the policy that `known`, the components of the matrix, lacks."""
    # `pytorch_build` chooses among the builds of a component and is not one itself.
    names = {*known, "pytorch_build"} if "pytorch" in known else set(known)
    requires = _at(document, "requires")
    for name in requires if isinstance(requires, dict) else ():
        if name not in names:
            yield document.mistake(("requires", name), _unknown_component(name, names))
    yield from _unknown_preferences(document, names)


def _unknown_component(name: str, known: Collection[str]) -> str:
    component = COMPONENT_OF_DISTRIBUTION.get(name.lower())
    near = component if component in known else nearest(name.lower(), known)
    if near is not None:
        return f"`{name}` is not a component of the matrix; did you mean `{near}`?"
    advice = "an ordinary Python package belongs under `packages`"
    return f"`{name}` is not a component of the matrix ({', '.join(sorted(known))}); {advice}"


def _unknown_preferences(document: Document, known: Collection[str]) -> Iterator[Mistake]:
    """Find names in `prefer` and `avoid` that are typos of a component; any other name is that of a distribution.

    A name that is also under `packages` is a distribution, however similar to a component's name it is.
    """
    texts = (text for _, text in _texts(document, "packages"))
    packages = {canonicalize_name(re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0]) for text in texts}
    for table in _PREFERENCES:
        preferences = _at(document, "policy", table)
        for name in preferences if isinstance(preferences, dict) else ():
            path: KeyPath = ("policy", table, name)
            if name in known or _component_or_distribution(name) in known or canonicalize_name(name) in packages:
                continue
            near = _intended_component(name, known)
            if near is not None:
                advice = "name a Python package of this name under `packages`, too"
                yield document.mistake(path, f"`{name}` is not a component of the matrix; did you mean `{near}`? {advice}")
            elif not DISTRIBUTION_NAME.fullmatch(name):
                yield document.mistake(path, f"`{name}` is neither a component of the matrix nor the name of a distribution")


def _intended_component(name: str, known: Collection[str]) -> str | None:
    """Return the component of which a name is a typo; None if it is not a typo of any."""
    from difflib import SequenceMatcher

    near = nearest(name.lower(), known)
    if near is None or abs(len(near) - len(name)) > 1:
        return None
    return near if SequenceMatcher(None, name.lower(), near).ratio() >= _TYPO_SIMILARITY else None


def _component_or_distribution(name: str) -> str:
    """Return the component with this name or distribution; for any other distribution its normalized name."""
    canonical = canonicalize_name(name)
    return COMPONENT_OF_DISTRIBUTION.get(canonical, canonical if "_" not in name else name)
