"""What a person sees of a request without an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.cli.display import Line, Paint, failure, tell
from provisioner.words.conflict import needs_spec, spec_words

if TYPE_CHECKING:
    from provisioner.resolver.joint import NoStackError
    from provisioner.workflow.inputs import Inputs


def refusal(error: NoStackError, inputs: Inputs) -> None:
    """Print a conflict with its hints to stderr; where a hint changes a key that the request has no place for, what has one."""
    failure(error)
    if inputs.is_list and needs_spec(error.conflicts):
        tell([Line(spec_words("" if inputs.is_without_spec else inputs.document.file), "next:", Paint.NEXT)])
