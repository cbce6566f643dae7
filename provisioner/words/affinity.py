"""The limits of node affinities as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds import affinity as of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.affinity import AffinityLimit, FactDifference, Mismatch

_NAMES = 2
"""The number of hosts that a limit names; the others are only counted."""


def affinity_limit_words(limit: AffinityLimit) -> str:
    """Return a limit of an affinity as one line."""
    match limit:
        case of.NamedLabel(label=label):
            return f"told apart by name ({label}), since no number differs"
        case of.Unreached(names=names, lacking=lacking):
            return f"does not reach {_few(names)}: {'; '.join(map(mismatch_words, lacking))}"
        case of.Inseparable(admitted=admitted, refused=refused, facts=facts):
            differences = f" ({'; '.join(map(difference_words, facts))})" if facts else ""
            return f"cannot keep out {_few(refused)}: labelled like {_few(admitted)}{differences}"
        case of.UnlabelledRequirement(component=component, range=wanted):
            return f"no label shows {component} {wanted}"


def mismatch_words(mismatch: Mismatch) -> str:
    """Return a requirement that the labels of a node do not meet, as a clause."""
    match mismatch:
        case of.LabelMismatch(label=label, value=value, allowed=allowed):
            return f"{label} is missing" if value is None else f"{label} is {value}, not {' or '.join(allowed)}"
        case of.CapabilityMismatch(label=label, capability=capability, allowed=allowed):
            return f"{label} and minor are " + (f"{capability}, none of {', '.join(allowed)}" if capability else "missing")
        case of.VersionMismatch(label=label, version=version, allowed=wanted):
            return f"{label} is " + (f"{version}, not {wanted}" if version else "missing")


def difference_words(difference: FactDifference) -> str:
    """Return a fact with its values on both hosts: `container_toolkit 1.17.4 / not stated`."""
    ours, theirs = ("not stated" if value is None else value for value in (difference.admitted, difference.refused))
    return f"{difference.fact} {ours} / {theirs}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more
