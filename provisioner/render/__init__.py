"""Render a lock as text, from the lock alone.

Each format in `provisioner.outputs` has a module of its name here, with one public function `render(lock, lock_file_name)` that
returns the text. One of the first lines of every rendered file has the sentence of `origin`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from provisioner.errors import obeyed
from provisioner.lock.format.file import lock_path
from provisioner.outputs import output_named
from provisioner.render.header import UnrenderableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.lock.format.model import Lock

__all__ = ["render"]


def render(lock: Lock, to: str, *, lock_file_name: str = "") -> str:
    """Return a lock as text in the format `to`.

    `lock_file_name` is the file name of the lock, by default `pylock.<name>.toml`. Raises `UsageError` for an unknown format,
    and `UnrenderableError` when the lock cannot be written in it, or when the text would have a character that
    nobody sees, or a command of GitHub Actions.
    """
    module = output_named(to).name.replace("-", "_")
    renderer: Callable[[Lock, str], str] = import_module(f"provisioner.render.{module}").render
    text = renderer(lock, lock_file_name or lock_path(lock.name))
    found = obeyed(text)
    if found is not None:
        # What a person reviews would not be what a program reads: a text in a lock of our own has no such character.
        line = text[: found.start()].count("\n") + 1
        unseen = f"{ascii(found[0])[1:-1]}, which nobody sees"
        what = "`##[`, which a job of GitHub Actions obeys" if found[0] == "#" else unseen
        raise UnrenderableError(
            f"a value of lock `{lock.name}` holds {what}, in line {line} of `{to}`",
            hints=("remove it where the value comes from and solve again",),
        )
    return text
