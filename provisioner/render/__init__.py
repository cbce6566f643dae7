"""Render a lock as text; sees only the lock.

Each row of `provisioner.outputs` has a module of its name here (`host-script`: `host_script`), with one public function
`render(lock, lock_file_name)` that returns the text. Every rendered file begins with the line of `header`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from provisioner.lock.format.file import lock_path
from provisioner.outputs import output_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.lock.format.model import Lock

__all__ = ["render"]


def render(lock: Lock, to: str, *, lock_file_name: str = "") -> str:
    """Return a lock as text in one format. `lock_file_name` is the lock's own, `pylock.<name>.toml` when left out.

    Raises `UsageError` for a format that does not exist, and `UnrenderableError` when the lock cannot be written in it.
    """
    module = output_named(to).name.replace("-", "_")
    renderer: Callable[[Lock, str], str] = import_module(f"provisioner.render.{module}").render
    return renderer(lock, lock_file_name or lock_path(lock.name))
