"""A lock as text; sees only the lock."""

from provisioner.render.dockerfile import render_dockerfile
from provisioner.render.formats import render

__all__ = ["render", "render_dockerfile"]
