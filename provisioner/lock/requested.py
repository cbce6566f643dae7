"""The keys of the spec that a lock records: those that influence the answer, so that two locks can be compared.

Keys with default values are left out, and so are keys that influence nothing (`name`, `outputs`, `packages-from`) or describe
one machine (`target.host`), because a lock holds no facts of a host. URLs are recorded without credentials.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.index.direct_reference import shown_url
from provisioner.lock.format.artifact import shared_url
from provisioner.names import pep508
from provisioner.strict_model import without_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from packaging.utils import NormalizedName

    from provisioner.document import Document
    from provisioner.places import Place
    from provisioner.spec.model import Spec

_DECIDES_NOTHING = {"name", "outputs", "packages-from"}
PACKAGES = "packages."
"""What the recorded keys of packages begin with, before the name of a distribution."""

EXCLUDE_NEWER = "policy.exclude-newer"
"""The recorded key of the day whose later files are ignored."""

ANY_VERSION = "any version"
"""The recorded value of a requirement without extras, versions and markers."""

_JOINT = " and "
_LISTS = ("packages", "constraints", "overrides")


def requested(spec: Spec) -> dict[str, str]:
    """Return the recorded keys of a spec with their values, sorted: `requires.pytorch`: `>=2.6`, `packages.numpy`: `<2`."""
    content = {key: value for key, value in without_defaults(spec).items() if key not in _DECIDES_NOTHING}
    content.get("target", {}).pop("host", None)
    lists = {key: text for name in _LISTS for key, text in _requirements(name, content.pop(name, ())).items()}
    hashes = {f"hashes.{name}": _counted(digests) for name, digests in content.pop("hashes", {}).items()}
    indexes: dict[str, str] = {}
    for index in content.pop("indexes", ()):
        indexes[f"indexes.{index['name']}"] = shared_url(index["url"])
        if index.get("kind"):
            indexes[f"indexes.{index['name']}.kind"] = index["kind"]
        if index.get("packages"):
            indexes[f"indexes.{index['name']}.packages"] = ", ".join(index["packages"])
    return dict(sorted({**dict(_leaves(content, "")), **lists, **hashes, **indexes}.items()))


def _counted(digests: tuple[str, ...]) -> str:
    """Return the number of hashes and a digest over all of them, as a lock records the `hashes` of a distribution."""
    together = hashlib.sha256(" ".join(sorted(digests)).encode()).hexdigest()
    return f"{len(digests)} of sha256, in sum {together[:12]}"


def _requirements(name: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Return the requirements in a list of the spec (`name`) by key: `packages.numpy`, `constraints.numpy`.

    Several requirements for one distribution, which hold in different environments, are joined by `and`.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        requirement = pep508(text)
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        marker = f"; {requirement.marker}" if requirement.marker else ""
        source = f"@ {shown_url(requirement.url)}" if requirement.url else str(requirement.specifier)
        found.setdefault(f"{name}.{canonicalize_name(requirement.name)}", []).append(f"{extras}{source}{marker}")
    return {key: _JOINT.join(text or ANY_VERSION for text in sorted(set(values))) for key, values in found.items()}


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield every scalar or list of scalars below a value, by its dotted path."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        yield path, ", ".join(str(item) for item in value)
    elif value is not None:
        yield path, str(value)


def requested_places(spec: Spec, document: Document) -> dict[str, tuple[Place, ...]]:
    """Return the lines of the spec for each key that `requested` returns; several when several lines name one distribution."""
    found: dict[str, dict[Place, None]] = {}
    for path in document.keys:
        if path and not any(isinstance(part, int) for part in path):
            found[".".join(str(part) for part in path)] = {document.place(path): None}
    for name, texts in (("packages", spec.packages), ("constraints", spec.constraints), ("overrides", spec.overrides)):
        for index, text in enumerate(texts):
            places = found.setdefault(f"{name}.{canonicalize_name(pep508(text).name)}", {})
            places[document.place((name, index))] = None
    for index, one in enumerate(spec.indexes):
        found[f"indexes.{one.name}"] = {document.place(("indexes", index)): None}
        found[f"indexes.{one.name}.kind"] = {document.place(("indexes", index, "kind")): None}
        found[f"indexes.{one.name}.packages"] = {document.place(("indexes", index, "packages")): None}
    return {key: tuple(places) for key, places in found.items()}


def recorded_requirements(name: str, text: str) -> tuple[Requirement, ...]:
    """Parse the value that `requested` recorded for a distribution under `packages`, `constraints` or `overrides`.

    Requirements are recorded without the name of the distribution and joined by `and`, which a marker may contain as well, so
    the longest text that parses is taken as one requirement. Text that never parses is skipped.
    """
    parts = [] if text == ANY_VERSION else text.split(_JOINT)
    found = [] if parts else [pep508(name)]
    while parts:
        for end in range(len(parts), 0, -1):
            with suppress(InvalidRequirement):
                one = _JOINT.join(parts[:end]).removeprefix(ANY_VERSION)
                found.append(pep508(f"{name}{one.replace('; ', ' ; ', 1)}"))  # a URL ends where white space begins
                break
        parts = parts[end:]
    return tuple(found)


def recorded_extras(keys: Mapping[str, str]) -> dict[str, set[NormalizedName]]:
    """Return the extras that a lock records for each distribution, from the recorded `packages` and `overrides`."""
    found: dict[str, set[NormalizedName]] = {}
    for key, text in keys.items():
        table, _, name = key.partition(".")
        if table in {"packages", "overrides"}:
            extras = (extra for one in recorded_requirements(name, text) for extra in one.extras)
            found.setdefault(name, set()).update(map(canonicalize_name, extras))
    return found


def request_of(keys: Mapping[str, str], subject: str) -> tuple[str, str] | None:
    """Return the recorded key that requests a component or a distribution, and its value; None when nothing requests it."""
    return next(((key, keys[key]) for key in (f"requires.{subject}", f"packages.{subject}") if key in keys), None)
