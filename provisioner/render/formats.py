"""The formats a lock can be written as."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UsageError
from provisioner.lock.file import lock_path
from provisioner.names import nearest

if TYPE_CHECKING:
    from provisioner.lock.model import Lock

FORMATS = {"dockerfile": "Dockerfile", "requirements": "requirements.txt"}
"""Each format and the file name its output goes by."""

_PLANNED = ("apptainer", "bake", "compose", "devcontainer", "host-script", "kubernetes", "sbom")


def render(lock: Lock, to: str, *, lock_file_name: str = "") -> str:
    """The text of a lock in one format. `lock_file_name` is the lock's own, `pylock.<name>.toml` when left out.

    Raises `UsageError` for a format that does not exist or is not available yet, `UnrenderableError` when the lock cannot
    be written in it.
    """
    from provisioner.render.dockerfile import render_dockerfile
    from provisioner.render.requirements import render_requirements

    require_format(to)
    file_name = lock_file_name or lock_path(lock.name)
    return {"dockerfile": render_dockerfile, "requirements": render_requirements}[to](lock, file_name)


def require_format(to: str) -> None:
    """Raise `UsageError`, naming the nearest known one, when `to` is not a format that can be written."""
    if to in FORMATS:
        return
    available = f"available: {', '.join(FORMATS)}"
    if to in _PLANNED:
        raise UsageError(f"format `{to}` is not available in this version", hints=(available,))
    near = nearest(to, FORMATS)
    raise UsageError(f"`{to}` is not a format", hints=(f"did you mean `{near}`?" if near else available,))
