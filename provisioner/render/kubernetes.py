"""Render a lock as a Job for Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.render.job import job
from provisioner.render.pod import manifests

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the Job of a lock; raises `UnrenderableError` when the lock is not for containers."""
    return manifests(lock, lock_file_name, what="a Job", controller=job)
