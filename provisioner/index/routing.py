"""Which indexes are requested for a name: the one it is pinned to, the one that was named, or the configured order; pure.

A name belongs to one index. pip merges all of its indexes and takes the highest version any of them has, so whoever can upload
to one supplies what was meant to come from another; here the first index that knows a name has it alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError
from provisioner.index.address import is_remote, origin
from provisioner.index.model import FIND_LINKS
from provisioner.index.settings import PYTORCH, IndexLocation

if TYPE_CHECKING:
    from provisioner.index.settings import IndexSettings


ASKED_LAST = frozenset({"pypi.org", "test.pypi.org", "download.pytorch.org"})
"""Hosts of installers' configurations that others go before: on PyPI anybody may register the name of a private project, and
PyTorch's index holds old releases of what its wheels require."""


class Route(Struct, frozen=True, kw_only=True):
    """The indexes to request, in order. With `local_label`, find-links files count only when their version carries it."""

    locations: tuple[IndexLocation, ...]
    takes_find_links: bool = True
    local_label: str = ""


def route(name: str, index: str, settings: IndexSettings) -> Route:
    """Return where to look for a project: in the index it is pinned to, else where `locate` says.

    A template pins a name to the variants it stands for: such a name is in no plain index. A plain index that a framework is
    pinned to has the wheels of all its builds. Raises `ProvisionError` for a name that is pinned to two indexes, and as
    `locate` does.
    """
    pinning = [location for location in settings.indexes if location.pins(name)]
    if len(pinning) > 1:
        names = " and ".join(f"`{location.name}`" for location in pinning)
        raise ProvisionError(
            f"`{name}` is claimed by the indexes {names}, and a name belongs to one index",
            hints=("make the patterns under `indexes[].packages` exclude each other",),
        )
    if not pinning:
        return locate(index, settings)
    (owner,) = pinning
    if not owner.is_template:
        return Route(locations=(owner,), takes_find_links=False)
    if index.startswith(f"{owner.name}-"):
        return replace(locate(index, settings), takes_find_links=False)
    return Route(locations=(), takes_find_links=False)


def open_indexes(settings: IndexSettings) -> tuple[IndexLocation, ...]:
    """Return the indexes for unpinned names, in the order they are requested; one that names are pinned to has no others.

    A spec lists them in its own order. Of pip's configuration extra indexes come before its main one, as in uv, so that nobody
    takes a private project over by registering its name on PyPI; what is public, and folders of this machine, which mostly hold
    a part of a mirror, come last. Source: uv documentation, "Package indexes", "`--index-url` and `--extra-index-url`".
    """
    found = [one for one in settings.indexes if not one.is_template and not one.packages]
    if settings.main_index:
        found.sort(key=lambda one: 2 if _comes_last(one) else int(one.name == settings.main_index))
    return tuple(found)


def _comes_last(index: IndexLocation) -> bool:
    return not is_remote(index.url) or origin(index.url)[1] in ASKED_LAST


def default_index(settings: IndexSettings) -> IndexLocation | None:
    """Return the index that unpinned names are expected in: pip's main one, or the first of a spec; None for none."""
    found = open_indexes(settings)
    return next((one for one in found if one.name == settings.main_index), found[0] if found else None)


def normalized_pattern(pattern: str) -> str:
    """Return a name or glob in the spelling of indexes: `NVIDIA_*` is `nvidia-*`."""
    # The name of a project begins and ends with a letter, and a part between two wildcards need not.
    return "".join(
        part if part in {"*", "?"} else canonicalize_name(f"x{part}x")[1:-1] for part in re.split(r"([*?])", pattern)
    )


def locate(index: str, settings: IndexSettings) -> Route:
    """Return where to look: everywhere ("" for `index`), in one configured index, or in one variant of a template.

    The template of PyTorch's own indexes (`pytorch-cu126`) is known unless another is configured under its name, or all indexes
    are switched off. Raises `ProvisionError` naming the indexes there are.
    """
    if not index:
        return Route(locations=open_indexes(settings))
    if index == FIND_LINKS:
        return Route(locations=())
    for location in settings.indexes:
        if location.name == index and not location.is_template:
            return Route(locations=(location,), takes_find_links=False)
    templates = [location for location in settings.indexes if location.is_template]
    if not any(location.name == "pytorch" for location in templates):
        templates.append(IndexLocation(name="pytorch", url=PYTORCH))
    for template in templates:
        variant = index.removeprefix(f"{template.name}-")
        if variant not in {index, ""}:
            location = IndexLocation(name=index, url=template.url.replace("{variant}", variant))
            return Route(locations=(location,) if settings.indexes else (), local_label=variant)
    known = ", ".join(f"`{location.name}`" for location in settings.indexes) or "none"
    raise ProvisionError(f"index `{index}` is not configured; configured: {known}", hints=("add it under `indexes:`",))
