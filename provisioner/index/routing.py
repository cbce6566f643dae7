"""Which indexes answer for a name: the configured order, or the one index that was named; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provisioner.errors import ProvisionError
from provisioner.index.model import FIND_LINKS
from provisioner.index.settings import PYTORCH, IndexLocation

if TYPE_CHECKING:
    from provisioner.index.settings import IndexSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The indexes to ask, in order. With `local_label`, find-links files count only when their version carries it."""

    locations: tuple[IndexLocation, ...]
    takes_find_links: bool = True
    local_label: str = ""


def locate(index: str, settings: IndexSettings) -> Route:
    """Where to look: everywhere ("" for `index`), in one configured index, or in one variant of a template (`pytorch-cu126`).

    The template of PyTorch's own indexes is known unless another is configured under its name, or all indexes are switched
    off. Raises `ProvisionError` naming the indexes there are.
    """
    if not index:
        return Route(locations=tuple(location for location in settings.indexes if not location.is_template))
    if index == FIND_LINKS:
        return Route(locations=())
    for location in settings.indexes:
        if location.name == index and not location.is_template:
            return Route(locations=(location,), takes_find_links=False)
    return _variant(index, settings)


def _variant(index: str, settings: IndexSettings) -> Route:
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
