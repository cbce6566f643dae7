"""The requirements file beside the files of a lock in one folder (`provision fetch`): versions and hashes, and no index.

A file that the spec names by URL is named by its version, too, so that installers find it in the folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.render.chosen_files import lines_by_version

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock


def folder_requirements(lock: Lock, lock_file_name: str) -> str:
    """Return the requirements file of a lock for an installer that has a folder of all its files, and no index."""
    origin = f"# Written by provision fetch from {lock_file_name}, for pip and uv with the folder of its files."
    lines = [line for package in lock.packages for line in lines_by_version(package, lock.platforms)]
    return "\n".join([origin, *lines]) + "\n"
