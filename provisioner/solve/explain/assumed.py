"""What a conflict rests on that nobody stated: told where it is met, with what settles it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.solve.stack import Conflict, Reason

SETTLES = "state `glibc` in the target's profile (`provision inspect` writes one): wheels are then chosen for that one"
SETTLES_IMAGE = "name a base image whose glibc the matrix knows: wheels are then chosen for that one"


def glibc_told(members: Iterable[Reason], glibc: tuple[int, int], *, runs: str) -> tuple[Reason, ...]:
    """The members of a conflict; those that name a glibc which was only assumed say so."""
    number = f"{glibc[0]}.{glibc[1]}"
    states = "the target states none" if runs == "host" else "nobody knows that of the base image"
    found = []
    for member in members:
        is_about = f"no wheel for glibc {number} on " in member.text
        found.append(replace(member, text=f"{member.text}; glibc {number} is assumed, for {states}") if is_about else member)
    return tuple(found)


def settles_glibc(conflict: Conflict) -> tuple[str, ...]:
    """What to do about a glibc that was assumed; nothing where the conflict rests on none."""
    texts = [member.text for member in conflict.members if "is assumed, for " in member.text]
    if not texts:
        return ()
    return (SETTLES if any(text.endswith("states none") for text in texts) else SETTLES_IMAGE,)
