"""Render a lock as a Dockerfile; equal locks give equal bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.errors import UsageError
from provisioner.render.header import header
from provisioner.render.stages import WHEELHOUSE, all_stages

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock

_FILE_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")

_OPTIONS = (
    "Proxy, CA, logins: docker build --build-arg HTTP_PROXY --build-arg HTTPS_PROXY"
    " --secret id=ca,src=ca.pem --secret id=netrc,src=$HOME/.netrc ."
)

_LINTER = "hadolint global ignore=DL3002,DL3006,DL3008,DL3009,DL3066"
"""What hadolint must not say of a rendered file, so that a project may lint it with its own.

DL3002 and DL3066: stages that are not shipped run as root, which every image has; the shipped stage ends with a numeric user.
DL3006: an image is an earlier stage. DL3008: distributions do not keep old versions of packages; a snapshot dates them all.
DL3009: the helper file removes the lists.
"""


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the Dockerfile of a lock, to be built with the lock's folder as the build context.

    Raises `UnrenderableError` when the lock is not for containers, and `UsageError` for a file name that cannot be mounted.
    """
    if not _FILE_NAME.fullmatch(lock_file_name):
        raise UsageError(
            f"`{lock_file_name}` cannot be the name of a lock in a build",
            hints=("give the file's own name, of letters, digits, `.`, `-` and `_`",),
        )
    how = f"To build without a network: provision fetch {lock_file_name} --to {WHEELHOUSE}"
    parts = [(header(lock, lock_file_name, how, _OPTIONS, _LINTER),), *all_stages(lock, lock_file_name)]
    return "\n".join("".join(f"{instruction}\n" for instruction in part) for part in parts)
