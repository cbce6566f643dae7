"""Render a lock as a software bill of materials in CycloneDX 1.6."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.render.bill_of_materials import bill_of
from provisioner.render.cyclonedx import bill_text

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the bill of materials of a lock."""
    return bill_text(bill_of(lock, lock_file_name))
