"""Render a lock as a requirements file for pip and uv: every file by URL and hash, so that no index is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.render.chosen_files import HOW_TO_INSTALL, lines_by_file
from provisioner.render.header import header

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the requirements file of a lock; the paths of local wheels are relative to the working directory of pip."""
    lines = [line for package in lock.packages for line in lines_by_file(package, lock.platforms)]
    return "\n".join([str(header(lock, lock_file_name, HOW_TO_INSTALL)), *lines]) + "\n"
