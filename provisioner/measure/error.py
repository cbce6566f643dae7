"""What can be wrong with an artefact that is measured."""

from __future__ import annotations

from provisioner.errors import ProvisionError


class UnreadableArtefactError(ProvisionError):
    """An artefact is damaged, or is not what its name says, so nothing can be measured from it."""

    code = "unreadable-artefact"
    exit_code = 3
