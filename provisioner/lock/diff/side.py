"""One of two locks on one platform, with what causes are read from: labels, requests, recorded reasons, requirements, dates.

A lock that another program wrote has packages and nothing else; everything else of its side is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.grounds.fields import type_of
from provisioner.grounds.requirement import RequiresComponent
from provisioner.lock.diff.packages import Packages, by_name, version_of
from provisioner.lock.diff.system import component_labels
from provisioner.lock.format.artifact import fits
from provisioner.lock.requested import request_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from provisioner.lock.format.model import Lock, LockedPackage, LockedStack, Reason


REQUIRES_COMPONENT = type_of(RequiresComponent)


class Side(Struct, frozen=True, kw_only=True):
    """What one lock says of one platform. `asked` is None where the lock does not record what was asked for.

    `places` say where the keys of its spec stand, for a lock that was made from it just now: no lock records that.
    """

    packages: Packages
    stack: LockedStack | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    asked: Mapping[str, str] | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)

    def place(self, key: str) -> str:
        """Where a key of the spec stands: its line, or the file where only that is known."""
        return self.places.get(key) or self.inputs.get("spec file", "")

    def version(self, name: str) -> str:
        """The version of a distribution; "" where the lock has none."""
        return version_of(self.packages[name]) if name in self.packages else ""

    def request(self, subject: str) -> tuple[str, str] | None:
        """What was asked for a component or a distribution and where that stood; None where nothing was, or is recorded."""
        for reason in self.reasons.get(subject, ()):
            if reason.type == REQUIRES_COMPONENT and reason.object == subject:
                return " or ".join(reason.ranges), reason.where
        found = request_of(self.asked or {}, subject)
        return None if found is None else (found[1], self.place(found[0]))

    def requirements_of(self, name: str) -> Iterator[tuple[LockedPackage, Requirement]]:
        """Every recorded requirement on a distribution, and the package that has it."""
        for entries in self.packages.values():
            for entry in entries:
                for text in entry.requires:
                    requirement = _requirement(text)
                    if requirement is not None and canonicalize_name(requirement.name) == name:
                        yield entry, requirement

    def dependents_of(self, name: str) -> tuple[str, ...]:
        """The names of the packages that depend on a distribution, sorted."""
        names = {entry.name for entry, _ in self.requirements_of(name)}
        names |= {one for one, entries in self.packages.items() if any(name in entry.dependencies for entry in entries)}
        return tuple(sorted(names - {name}))

    def newest_upload(self) -> datetime | None:
        """When the newest file of the lock was uploaded, where its index says."""
        times = [file.upload_time for entries in self.packages.values() for entry in entries for file in entry.files]
        return max((time for time in times if time is not None), default=None)


def side_of(lock: Lock, platform: str, places: Mapping[str, str] | None = None) -> Side:
    """A lock on one of its platforms, with only the files that fit it; `places` as in `Side`."""
    one = lock.on(platform)
    stack = one.stacks[0]
    reasons = {pin.component: pin.reasons for pin in stack.pins}
    return Side(
        packages=by_name([_on_platform(package, platform) for package in one.packages]),
        stack=stack,
        labels={**component_labels(stack), **({"image": stack.image.reference} if stack.image else {})},
        reasons={**reasons, **stack.host_reasons},
        asked=lock.asked or None,
        inputs=inputs_of(lock),
        places=places or {},
    )


def inputs_of(lock: Lock) -> dict[str, str]:
    """What a lock was made from, besides indexes and hosts."""
    return {
        "spec": lock.spec_digest,
        "matrix": lock.matrix_digest,
        "provision": lock.tool_version,
        "spec file": lock.spec_file,
    }


def _on_platform(package: LockedPackage, platform: str) -> LockedPackage:
    return replace(package, wheels=tuple(wheel for wheel in package.wheels if fits(wheel.filename, platform)))


def _requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None
