"""A lock as text; sees only the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provisioner.render.dockerfile import render_dockerfile
    from provisioner.render.formats import render

__all__ = ["render", "render_dockerfile"]


def __getattr__(name: str) -> object:
    """Import what is asked for: who wants to know the formats' names does not wait for what writes them."""
    if name == "render":
        from provisioner.render import formats

        return formats.render
    if name == "render_dockerfile":
        from provisioner.render import dockerfile

        return dockerfile.render_dockerfile
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
