"""What an answer says in words: for tests that read it as a person does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.words.doubt import doubt_words

if TYPE_CHECKING:
    from provisioner.solve.stack import Stack


def unverified(stack: Stack) -> tuple[str, ...]:
    """Return what could not be verified, a line each."""
    return tuple(doubt_words(one) for one in stack.doubts)
