"""A spec as the cause of a change: the request, constraint or override of a distribution that rules one of two versions out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from provisioner.lock.diff.comparison import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.diff.comparison import Change
    from provisioner.lock.diff.side import Side


def asked_causes(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """What the spec says of a distribution, where that changed and one of the two rules a version out."""
    yield from _of_request(change, old, new)
    yield from _of_bounds(change, old, new)


def _of_request(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    name = change.subject
    before, after = old.request(name), new.request(name)
    said, says = before[0] if before else "", after[0] if after else ""
    if said == says or not (fails(name, says, change.old) or fails(name, said, change.new)):
        return
    if after is None:
        text = f"the spec asked for `{spelled(name, said)}` and does no longer"
    else:
        then = f", it asked for `{spelled(name, said)}`" if before else " now"
        text = f"the spec asks for `{spelled(name, says)}`{then}"
    yield Cause(kind="spec", text=text, where=(after or before or ("", ""))[1])


def _of_bounds(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Constraints and overrides that came, went or changed, and rule one of the two versions out."""
    name = change.subject
    for key, now, then in (("constraints", "constrains", "constrained"), ("overrides", "overrides", "overrode")):
        said, says = ((side.asked or {}).get(f"{key}.{name}", "") for side in (old, new))
        if said == says or not (fails(name, says, change.old) or fails(name, said, change.new)):
            continue
        with_what = "it to" if key == "constraints" else "it with"
        before = f"the spec {then} {with_what} `{spelled(name, said)}` and does no longer"
        after = f"the spec {now} {with_what} `{spelled(name, says)}`{f', before `{spelled(name, said)}`' if said else ' now'}"
        place = (new if says else old).place(f"{key}.{name}")
        yield Cause(kind="spec", text=after if says else before, where=place)


def spelled(name: str, wanted: str) -> str:
    """A request as a spec has it under `packages`."""
    return name if wanted == "any version" else f"{name}{wanted}"


def fails(name: str, wanted: str, version: str) -> bool:
    """Whether a request rules a version out; several for different environments are not judged."""
    if wanted in {"", "any version"}:
        return False
    try:
        requirement = Requirement(f"{name}{wanted}")
        return not requirement.specifier.contains(PackageVersion(version), prereleases=True)
    except (InvalidRequirement, InvalidVersion):
        return False
