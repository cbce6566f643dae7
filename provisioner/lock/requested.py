"""What was asked for, as a lock keeps it: each key of the spec that decides an answer, so that two locks can be compared.

Defaults are left out, and so is what decides nothing (`name`, `outputs`) or speaks of one machine (`target.host`): a lock
holds no facts of a host. A URL is kept without its credentials.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provisioner.index.places.direct_reference import shown_url
from provisioner.lock.format.artifact import shared_url
from provisioner.strict_model import without_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.spec.model import Spec

_DECIDES_NOTHING = {"name", "outputs", "packages-from"}
_LISTS = ("packages", "constraints", "overrides")


def asked(spec: Spec) -> dict[str, str]:
    """The keys of a spec and what they say, sorted: `requires.pytorch`: `>=2.6`, `packages.numpy`: `<2`, `policy.strategy`."""
    content = {key: value for key, value in without_defaults(spec).items() if key not in _DECIDES_NOTHING}
    content.get("target", {}).pop("host", None)
    lists = {key: said for name in _LISTS for key, said in _requirements(name, content.pop(name, ())).items()}
    hashes = {f"hashes.{name}": _counted(digests) for name, digests in content.pop("hashes", {}).items()}
    indexes: dict[str, str] = {}
    for index in content.pop("indexes", ()):
        indexes[f"indexes.{index['name']}"] = shared_url(index["url"])
        if index.get("packages"):
            indexes[f"indexes.{index['name']}.packages"] = ", ".join(index["packages"])
    return dict(sorted({**dict(_leaves(content, "")), **lists, **hashes, **indexes}.items()))


def _counted(digests: tuple[str, ...]) -> str:
    """Hashes as people tell lists of them apart: how many there are, and one digest of them all."""
    together = hashlib.sha256(" ".join(sorted(digests)).encode()).hexdigest()
    return f"{len(digests)} of sha256, in sum {together[:12]}"


def _requirements(name: str, texts: tuple[str, ...]) -> dict[str, str]:
    """One entry a distribution; requirements of one that hold in different environments stand side by side."""
    found: dict[str, list[str]] = {}
    for text in texts:
        requirement = Requirement(text)
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        marker = f"; {requirement.marker}" if requirement.marker else ""
        source = f"@ {shown_url(requirement.url)}" if requirement.url else str(requirement.specifier)
        found.setdefault(f"{name}.{canonicalize_name(requirement.name)}", []).append(f"{extras}{source}{marker}")
    return {key: " and ".join(said or "any version" for said in sorted(set(values))) for key, values in found.items()}


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Every scalar or list of scalars below a value, by its dotted path."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        yield path, ", ".join(str(item) for item in value)
    elif value is not None:
        yield path, str(value)


def request_of(keys: Mapping[str, str], subject: str) -> tuple[str, str] | None:
    """The key that asks for a component or a distribution and what it says; None where nothing was asked."""
    return next(((key, keys[key]) for key in (f"requires.{subject}", f"packages.{subject}") if key in keys), None)
