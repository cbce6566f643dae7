"""`Side`: one of the two locks of a comparison, on one platform, with its versions, requests, reasons and upload times."""

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
from provisioner.places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from provisioner.lock.format.model import Lock, LockedPackage, LockedStack, Reason

    Places = Mapping[str, tuple[Place, ...]]
    """The lines of the keys of a spec."""

REQUIRES_COMPONENT = type_of(RequiresComponent)


class Requested(Struct, frozen=True):
    """A recorded request for a component or a distribution: its range, and its lines in the spec, () when they are unknown."""

    range: str
    places: tuple[Place, ...]


class Side(Struct, frozen=True, kw_only=True):
    """One of the two locks of a comparison on one platform; a lock that another program wrote has only `packages`.

    `labels` are the versions of components and the image, `reasons` the recorded reasons by component or host fact. `requested`
    are the spec's keys as recorded, None when not recorded. `inputs` are the digests and names that `inputs_of` returns.
    `places` are the lines of the spec by key, known only for a lock just made from it, because no lock records them.
    """

    packages: Packages
    stack: LockedStack | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    requested: Mapping[str, str] | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    places: Places = field(default_factory=dict)

    def places_of(self, key: str) -> tuple[Place, ...]:
        """Return the lines of a key of the spec; if they are unknown, the spec file as a whole; () if that is unknown, too."""
        file = self.inputs.get("spec file", "")
        return self.places.get(key) or ((Place(file),) if file else ())

    def value(self, key: str) -> str:
        """Return the recorded value of a key of the spec; "" when the lock does not record the key."""
        return (self.requested or {}).get(key, "")

    def version(self, name: str) -> str:
        """Return the version of a distribution; "" when the lock does not have it."""
        return version_of(self.packages[name]) if name in self.packages else ""

    def label(self, part: str) -> str:
        """Return the version of a component or of a package; "" when the lock does not have it."""
        return self.labels.get(part) or self.version(part)

    def request(self, subject: str) -> Requested | None:
        """Return the request for a component or a distribution; None when there was none, or the lock does not record it."""
        for reason in self.reasons.get(subject, ()):
            if reason.type == REQUIRES_COMPONENT and reason.object == subject:
                return Requested(" or ".join(reason.ranges), (Place.parse(reason.where),) if reason.where else ())
        found = request_of(self.requested or {}, subject)
        return None if found is None else Requested(found[1], self.places_of(found[0]))

    def requirements_of(self, name: str) -> Iterator[tuple[LockedPackage, Requirement]]:
        """Yield each recorded requirement on a distribution, and the package that has it."""
        for entries in self.packages.values():
            for entry in entries:
                for text in entry.requires:
                    requirement = _requirement(text)
                    if requirement is not None and canonicalize_name(requirement.name) == name:
                        yield entry, requirement

    def dependents_of(self, name: str) -> tuple[str, ...]:
        """Return the names of the packages that depend on a distribution, sorted."""
        names = {entry.name for entry, _ in self.requirements_of(name)}
        names |= {one for one, entries in self.packages.items() if any(name in entry.dependencies for entry in entries)}
        return tuple(sorted(names - {name}))

    def newest_upload(self) -> datetime | None:
        """Return the upload time of the newest file of the lock; None when no upload time is known."""
        times = [file.upload_time for entries in self.packages.values() for entry in entries for file in entry.files]
        return max((time for time in times if time is not None), default=None)


def side_of(lock: Lock, platform: str, places: Places | None = None) -> Side:
    """Return the `Side` for one platform of a lock, without wheels that do not fit the platform; `places` as in `compare`."""
    one = lock.on(platform)
    image = {"image": one.stack.image.reference} if one.stack.image else {}
    return Side(
        packages=by_name([_on_platform(package, platform) for package in one.packages]),
        stack=one.stack,
        labels={**component_labels(one.stack), **image},
        reasons={**{pin.component: pin.reasons for pin in one.stack.pins}, **one.stack.host_reasons},
        requested=lock.asked or None,
        inputs=inputs_of(lock),
        places=places or {},
    )


def inputs_of(lock: Lock) -> dict[str, str]:
    """Return the inputs of a lock: digests of spec and matrix, version of the program, name of the spec file."""
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
