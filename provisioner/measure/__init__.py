"""Measure published artefacts: wheels, the shared libraries in them, and their GPU code; no wheel is downloaded whole."""

from __future__ import annotations

from provisioner.errors import ProvisionError

__all__ = ["UnreadableArtefactError"]


class UnreadableArtefactError(ProvisionError):
    """Raised when an artefact is damaged or is not a wheel, so that nothing can be measured in it."""

    code = "unreadable-artefact"
    exit_code = 3
