"""The edits of a fix as what they make of the documents: a merge patch (RFC 7396) of the spec, and of each host profile.

A program applies it without knowing what kinds of edits there are: a key takes the value that the patch has, null removes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provisioner.grounds.edit import AddPlatform
from provisioner.strict_model import plain_data

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.grounds.edit import Edit
    from provisioner.request import Request, TargetHost

Patch = dict[str, Any]
"""`spec` and `hosts`, the latter by the label of each host; keys without a change are left out."""


def patch_of(request: Request, edits: Iterable[Edit]) -> Patch:
    """Return what edits change in the spec and in the hosts of a request; a host that is left out is None."""
    after = request
    platforms: tuple[str, ...] = ()
    for edit in edits:
        after = edit.apply(after)
        platforms = edit.platforms if isinstance(edit, AddPlatform) else platforms
    spec = _changes(plain_data(request.spec), plain_data(after.spec))
    if "packages" in spec and request.spec.packages_from:
        spec["packages-from"] = []  # `packages` has their lines
    if platforms:
        spec["target"] = {"platform": list(platforms)}
    kept = {target.label: target for target in after.hosts}
    hosts = {
        label: change
        for target in request.hosts
        if (change := _of_host(target, kept.get(target.label))) != {}
        for label in target.names or (target.label,)
    }
    return {**({"spec": spec} if spec else {}), **({"hosts": hosts} if hosts else {})}


def _of_host(before: TargetHost, after: TargetHost | None) -> Patch | None:
    return None if after is None else _changes(plain_data(before.host), plain_data(after.host))


def _changes(before: Patch, after: Patch) -> Patch:
    """Return the merge patch from one document to another; {} for none."""
    found: Patch = {key: None for key in before if key not in after}
    for key, value in after.items():
        was = before.get(key)
        if isinstance(value, dict) and isinstance(was, dict):
            nested = _changes(was, value)
            found |= {key: nested} if nested else {}
        elif value != was:
            found[key] = value
    return found
