"""Routing: which indexes are requested for a project name, and in which order; pure functions of the settings.

A project is pinned to an index when a pattern under `indexes[].packages` matches its name. All files of a project come from
one index, the first that has a page for it. pip instead merges all of its indexes and takes the highest version, so whoever
may upload to one of them can replace a project of another.
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
from provisioner.index.settings import JETPACK, JETSON, IndexLocation

if TYPE_CHECKING:
    from provisioner.index.settings import IndexSettings


ASKED_LAST = frozenset({"pypi.org", "test.pypi.org", "download.pytorch.org"})
"""Public hosts that are requested after all other indexes of pip's configuration.

On PyPI anybody may register the name of a private project, and PyTorch's index holds old releases of the dependencies of its
wheels.
"""


class Route(Struct, frozen=True, kw_only=True):
    """The indexes to request for a project (`locations`), in order, and whether files from find-links are used as well.

    With a `local_label` (`cu126`), only find-links files whose version has this local version label are used.
    """

    locations: tuple[IndexLocation, ...]
    takes_find_links: bool = True
    local_label: str = ""


def route(name: str, index: str, settings: IndexSettings) -> Route:
    """Return the route for a project: the index that it is pinned to, otherwise the result of `locate`.

    A project that is pinned to a template (a URL with `{variant}`) is found only in an index of that template, so its route is
    empty unless `index` is one of them. Raises `ProvisionError` when two indexes pin the name, and as `locate` does.
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
    """Return the indexes that are requested, in order, for unpinned names, which no pattern under `packages` matches.

    Templates and indexes with `packages` are left out. Indexes of a spec keep its order. Indexes of pip's configuration are
    sorted: extra indexes, the main index, then public hosts (`ASKED_LAST`) and local directories, which mostly hold a part of a
    mirror. So a project that somebody registers on PyPI cannot replace a private project of the same name. Source: uv
    documentation, "Package indexes", "`--index-url` and `--extra-index-url`".
    """
    found = [one for one in settings.indexes if not one.is_template and not one.packages]
    if settings.main_index:
        found.sort(key=lambda one: 2 if _comes_last(one) else int(one.name == settings.main_index))
    return tuple(found)


def _comes_last(index: IndexLocation) -> bool:
    return not is_remote(index.url) or origin(index.url)[1] in ASKED_LAST


def default_index(settings: IndexSettings) -> IndexLocation | None:
    """Return the index from which unpinned names are expected to come: pip's `index-url`, or the first index of a spec.

    None when no index serves unpinned names.
    """
    found = open_indexes(settings)
    return next((one for one in found if one.name == settings.main_index), found[0] if found else None)


def normalized_pattern(pattern: str) -> str:
    """Return a project name or glob, normalized as in PEP 503: `NVIDIA_*` becomes `nvidia-*`."""
    # The name of a project begins and ends with a letter, and a part between two wildcards need not.
    return "".join(
        part if part in {"*", "?"} else canonicalize_name(f"x{part}x")[1:-1] for part in re.split(r"([*?])", pattern)
    )


def locate(index: str, settings: IndexSettings) -> Route:
    """Return the route to the index named `index`: a configured index, or one variant of a template (`pytorch-cu126`).

    With "", the route has all indexes for unpinned names. Unless a configured template has the name, `pytorch` is a built-in
    template of PyTorch's own indexes, `jetson` and `jetpack` are those of NVIDIA's for Jetsons. The route to a variant of a
    built-in template is empty if no index is configured, or if the spec lists indexes of which none is a template of that name.
    Raises `ProvisionError`, listing the configured indexes, for an unknown name.
    """
    if not index:
        return Route(locations=open_indexes(settings))
    if index == FIND_LINKS:
        return Route(locations=())
    for location in settings.indexes:
        if location.name == index and not location.is_template:
            return Route(locations=(location,), takes_find_links=False)
    templates = [location for location in settings.indexes if location.is_template]
    given = {template.name for template in templates}
    templates.extend(template for template in _built_in(settings) if template.name not in given)
    for template in templates:
        variant = index.removeprefix(f"{template.name}-")
        if variant not in {index, ""}:
            location = replace(template, name=index, url=template.url.replace("{variant}", variant), packages=())
            return Route(locations=(location,) if settings.indexes and template.url else (), local_label=variant)
    known = ", ".join(f"`{location.name}`" for location in settings.indexes) or "none"
    raise ProvisionError(f"index `{index}` is not configured; configured: {known}", hints=("add it under `indexes:`",))


def _built_in(settings: IndexSettings) -> tuple[IndexLocation, ...]:
    """Return the templates of the builds' own indexes, with an empty URL if the spec lists its indexes."""
    is_off = not settings.pytorch_index
    return (
        IndexLocation(name="pytorch", url=settings.pytorch_index),
        IndexLocation(name="jetson", url="" if is_off else JETSON),
        IndexLocation(name="jetpack", url="" if is_off else JETPACK, is_page=True),
    )
