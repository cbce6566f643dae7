"""What a row of the matrix needs of a component: the noun that all other nouns of the matrix are made with."""

from __future__ import annotations

from msgspec import Struct

from provisioner.versions import Range, Version  # noqa: TC001 - msgspec reads the annotations at run time


class Need(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What a release or build needs of another component: a range, or one of a few exact versions (`one_of`).

    `is_same`: the very version of the subject; such a need is judged beside the subject, never alone.
    """

    component: str
    range: Range
    one_of: tuple[Version, ...] = ()
    is_same: bool = False

    def allows(self, version: Version) -> bool:
        """Whether `version` of the needed component satisfies this."""
        return version in self.one_of if self.one_of else self.range.allows(version)

    def __str__(self) -> str:
        if self.is_same:
            return "of the same version"
        return " or ".join(str(version) for version in self.one_of) if self.one_of else str(self.range)
