"""Render a lock as text, from the lock alone.

Each format in `provisioner.outputs` has a module of its name here, with one public function `render(lock, lock_file_name)` that
returns the text. One of the first lines of every rendered file has the sentence of `origin`, and in it the hash of the content.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from provisioner.errors import login_in, obeyed
from provisioner.lock.format.file import lock_path
from provisioner.outputs import output_named
from provisioner.render.header import UnrenderableError, with_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.lock.format.model import Lock

__all__ = ["render"]


def render(lock: Lock, to: str, *, lock_file_name: str = "") -> str:
    """Return a lock as text in the format `to`.

    `lock_file_name` is the file name of the lock, by default `pylock.<name>.toml`. Raises `UsageError` for an unknown format,
    and `UnrenderableError` when the lock cannot be written in it, or when the text would have a character that
    nobody sees, a command of GitHub Actions, or a URL with a login.
    """
    module = output_named(to).name.replace("-", "_")
    renderer: Callable[[Lock, str], str] = import_module(f"provisioner.render.{module}").render
    text = renderer(lock, lock_file_name or lock_path(lock.name))
    found = obeyed(text) or login_in(text)
    if found is not None:
        # What a person reviews would not be what a program reads, or not for everybody: a lock of our own has no such text.
        line = text[: found.start()].count("\n") + 1
        raise UnrenderableError(
            f"a value of lock `{lock.name}` holds {_named(found[0])}, in line {line} of `{to}`",
            hints=("remove it where the value comes from and solve again",),
        )
    return with_hash(text)


def _named(found: str) -> str:
    """Return in words what no rendered file may have."""
    match found:
        case "#":
            return "`##[`, which a job of GitHub Actions obeys"
        case _ if len(found) > 1:
            return "a URL with a login, which everybody would read"
        case _:
            return f"{ascii(found)[1:-1]}, which nobody sees"
