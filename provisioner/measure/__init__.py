"""Measure published artefacts: wheels, shared libraries, GPU code; no wheel is downloaded whole."""

from __future__ import annotations

from provisioner.errors import ProvisionError

__all__ = ["UnreadableArtefactError"]


class UnreadableArtefactError(ProvisionError):
    """An artefact is damaged or is not a wheel, so that nothing can be measured in it."""

    code = "unreadable-artefact"
    exit_code = 3
