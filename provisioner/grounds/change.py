"""Changes between two locks and their causes, as far as the locks and the indexes show them."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct
from packaging.requirements import Requirement

from provisioner.grounds.fields import GroundFields, type_of
from provisioner.grounds.finding import FileDrift  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.requirement import Subject
from provisioner.places import Place  # noqa: TC001 - as above

SECTIONS = ("hosts", "system", "packages", "inputs")
"""Sections of a comparison in the order of a review: hosts that can run it, components, packages, inputs of the locks."""


class Cause(Struct, frozen=True, kw_only=True):
    """The base of all causes of a change.

    `kind` is `spec` (a request changed), `follows` (a consequence of another change, of `subject`), `matrix` (other rules for
    the same component), `index` (the index has changed) or `unknown`. `places` are lines of the spec.
    """

    kind: ClassVar[str]
    places: tuple[Place, ...] = ()

    @property
    def subject(self) -> str:
        """The component, distribution or key whose change is the cause; "" for a cause that is no other change."""
        return ""


class ByRequest(Cause, frozen=True, kw_only=True):
    """The request for a component or a distribution changed; `before` and `after` are its ranges, "" without a request."""

    kind: ClassVar[str] = "spec"
    name: str
    before: str
    after: str
    is_distribution: bool


class ByBound(Cause, frozen=True, kw_only=True):
    """An entry of `constraints` or `overrides` (`table`) was added, removed or changed."""

    kind: ClassVar[str] = "spec"
    table: str
    name: str
    before: str
    after: str


class ByKey(Cause, frozen=True, kw_only=True):
    """A key of the spec changed; its value is None when the spec leaves the key out.

    `uploaded` is the upload day of a file that the old last day (`policy.exclude-newer`) excluded, "" for other keys.
    """

    kind: ClassVar[str] = "spec"
    key: str
    before: str | None
    after: str | None
    uploaded: str = ""


class ByNoDependent(Cause, frozen=True, kw_only=True):
    """No package requires a package, so the spec of the new lock (`is_new`), or of the old one, does."""

    kind: ClassVar[str] = "spec"
    is_new: bool


class HeldByRequest(Cause, frozen=True, kw_only=True):
    """The spec requests a range of a distribution that excludes its newest release."""

    kind: ClassVar[str] = "spec"
    name: str
    range: str


class HeldByBound(Cause, frozen=True, kw_only=True):
    """The spec constrains or overrides (`table`) a distribution with a range that excludes its newest release."""

    kind: ClassVar[str] = "spec"
    table: str
    name: str
    range: str


class Follows(Cause, frozen=True, kw_only=True):
    """The base of causes that are other changes between the same locks; `subject` names what changed."""

    kind: ClassVar[str] = "follows"


class ByRuns(Follows, frozen=True, kw_only=True):
    """The environment now runs in a container, or on the host itself (`runs`), and did not before."""

    runs: str

    @property
    def subject(self) -> str:
        return "runs"


class ByAccelerator(Follows, frozen=True, kw_only=True):
    """The accelerator changed, to `accelerator`."""

    accelerator: str

    @property
    def subject(self) -> str:
        return "accelerator"


class RecordedRule(Struct, frozen=True):
    """A rule that a lock records as a reason; its sentence and source are for people and are never parsed."""

    component: str
    text: str
    source: str


class ByRule(Follows, frozen=True, kw_only=True):
    """A recorded rule is new because the version of its component changed."""

    rule: RecordedRule

    @property
    def subject(self) -> str:
        return self.rule.component


class ByLostRule(ByRule, frozen=True, kw_only=True):
    """A recorded rule is gone because the version of its component changed to `now`, "" when the component is gone."""

    now: str


class ByMatrix(Cause, frozen=True, kw_only=True):
    """The matrix has a new rule (`is_new`), or lost one, about the same version of a component."""

    kind: ClassVar[str] = "matrix"
    rule: RecordedRule
    is_new: bool


class ByPythonOfImage(Follows, frozen=True, kw_only=True):
    """The version of Python changed, and the base image contains one Python only."""

    image: str
    python: str

    @property
    def subject(self) -> str:
        return "python"


class ByCudaOfImage(Follows, frozen=True, kw_only=True):
    """The version of CUDA changed, and the base image is chosen for a CUDA version."""

    image: str
    cuda: str

    @property
    def subject(self) -> str:
        return "cuda"


class ByImage(Follows, frozen=True, kw_only=True):
    """The base image changed; the old image provided a component that the matrix does not list for the new image."""

    before: str
    after: str

    @property
    def subject(self) -> str:
        return "image"


class ByPart(Follows, frozen=True, kw_only=True):
    """The component or package that a host requirement comes from changed its version; "" stands for a missing one."""

    part: str
    before: str
    after: str

    @property
    def subject(self) -> str:
        return self.part


class ByComponent(Follows, frozen=True, kw_only=True):
    """A distribution is also a component, whose own change has the causes."""

    name: str
    component: str

    @property
    def subject(self) -> str:
        return self.component


class ByDependent(Follows, frozen=True, kw_only=True):
    """The base of causes in a dependent, a package that requires this one; `requirement` is as its metadata spells it."""

    dependent: Subject
    requirement: str

    @property
    def subject(self) -> str:
        return self.dependent.name


class BroughtAlong(ByDependent, frozen=True, kw_only=True):
    """A dependent that was added or changed its version requires the package now."""


class TakenAlong(ByDependent, frozen=True, kw_only=True):
    """A dependent that was removed or changed its version required the package before."""


class RuledOutBy(ByDependent, frozen=True, kw_only=True):
    """A dependent in the new lock requires a range that excludes the old `version`."""

    version: str


class FreedFrom(ByDependent, frozen=True, kw_only=True):
    """A dependent in the old lock required a range that excludes the new version; `is_gone`: the dependent was removed."""

    is_gone: bool


class HeldByPackage(ByDependent, frozen=True, kw_only=True):
    """A dependent in the answer requires a range that excludes the newest release."""


class ByOwnNeed(Follows, frozen=True, kw_only=True):
    """A release requires a range of another package that excludes the version of that package in the new lock (`needed`).

    `is_held`: the release is the newest one, which was not chosen; otherwise it is the release in the old lock.
    """

    package: Subject
    requirement: str
    needed: Subject
    is_held: bool

    @property
    def subject(self) -> str:
        return self.needed.name


class FreedNeed(Follows, frozen=True, kw_only=True):
    """The new release requires a range of another package that the old spec excluded, by a key in `table`."""

    package: Subject
    requirement: str
    needed: str
    table: str
    range: str

    @property
    def subject(self) -> str:
        return self.needed


class ByPython(Follows, frozen=True, kw_only=True):
    """A change of a package because of another Python, with which environment markers and wheel tags are evaluated.

    `aspect` is what differs: the `file` of the package, what it `requires`, or whether another one requires it (`dependent`).
    """

    python: str
    aspect: str
    dependent: str = ""

    @property
    def subject(self) -> str:
        return "python"


class ByIndex(Cause, frozen=True, kw_only=True):
    """The base of causes that only an index or a registry knows."""

    kind: ClassVar[str] = "index"


class TagMoved(ByIndex, frozen=True, kw_only=True):
    """The tag of an image refers to other content in its registry now."""


class RegistryAsked(ByIndex, frozen=True, kw_only=True):
    """The registry of an image was queried for the image's digest, which the old lock does not have."""


class ReleasedSince(ByIndex, frozen=True, kw_only=True):
    """A file was uploaded after the newest file of the old lock; `uploaded` and `newest` are the days."""

    uploaded: str
    newest: str


class OutSince(ByIndex, frozen=True, kw_only=True):
    """A version was released on `day`, "" when unknown; `is_installer`: it is the installer, for which the newest is chosen."""

    version: str
    day: str
    is_installer: bool = False


class Drifted(ByIndex, frozen=True, kw_only=True):
    """The index lists the old file differently today, or not at all."""

    drift: FileDrift


class NoMetadata(ByIndex, frozen=True, kw_only=True):
    """The metadata of a release is unavailable; `problem` is the index's error message."""

    package: Subject
    problem: str


class Unknown(Cause, frozen=True, kw_only=True):
    """Neither lock records a cause; `inputs` (`spec`, `matrix`, `provision`) changed as well, `keys` in the spec."""

    kind: ClassVar[str] = "unknown"
    inputs: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


class UnknownElsewhere(Cause, frozen=True, kw_only=True):
    """One of the locks was written by another program, which records no reasons."""

    kind: ClassVar[str] = "unknown"


class UnknownAgain(Cause, frozen=True, kw_only=True):
    """Solving again gave another answer for no recorded cause; `is_upgrade`: it had no old lock as preference."""

    kind: ClassVar[str] = "unknown"
    is_upgrade: bool


class UnknownHold(Cause, frozen=True, kw_only=True):
    """No single request or requirement in the answer rules the newest release out."""

    kind: ClassVar[str] = "unknown"
    name: str


class FallOut(Struct, frozen=True, kw_only=True):
    """Values of a host fact that met the old requirement and do not meet the new one; "" for a limit that does not apply.

    They are `below` a version, `above` one, at or above `start`, or `outside` a requirement that is not a range.
    """

    below: str = ""
    above: str = ""
    start: str = ""
    outside: str = ""


class GpuBasis(Struct, frozen=True, kw_only=True):
    """How the GPUs of two locks were compared: as the hosts stated them, or by compiled targets (`is_by_targets`).

    `is_required` is True if only the new lock needs a GPU, False if only the old one does, otherwise None. `devices` are the
    GPUs of the new lock.
    """

    is_required: bool | None
    devices: tuple[str, ...]
    is_by_targets: bool


class OfFile(Struct, frozen=True, kw_only=True):
    """The unchanged version of a package, and the file that changed, "" for all files."""

    version: str
    file: str = ""


class OfAddress(Struct, frozen=True, kw_only=True):
    """The unchanged version of a package, and the index whose URL changed."""

    version: str
    index: str


class OfSpec(Struct, frozen=True):
    """The spec has another digest; `is_recorded`: both locks record its keys, and the recorded keys are the same."""

    is_recorded: bool


class Change(Struct, frozen=True, kw_only=True):
    """One difference between two locks.

    `subject` is a component, a distribution or a key of the spec; `old` and `new` are "" when a lock lacks it. `change` is
    `added` or `removed`, `upgraded` or `downgraded`, `tightened` or `loosened`, or `changed`. `aspect` is the property of a
    package that `old` and `new` are: its `version`, or, if the version is the same, its `content` (sha256), `file`, `index`,
    `place` (URL or path), `attestations`, `requires-python`, `variants` or what it `requires`. `platforms` are the platforms
    with this difference. `lost` and `gained` are the removed and added members of a set. `is_breaking` means that a host that
    met the old lock may not meet the new one or is used otherwise, or that the content of a file was replaced under the same
    name.
    """

    section: str
    subject: str
    change: str
    aspect: str = ""
    old: str = ""
    new: str = ""
    platforms: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    is_breaking: bool = False
    detail: FallOut | GpuBasis | OfFile | OfAddress | OfSpec | None = None


class Held(Struct, frozen=True, kw_only=True):
    """A package of an answer that is older than the newest release that fits the environment, and the causes."""

    name: str
    version: str
    newest: str
    uploaded: str
    platform: str
    causes: tuple[Cause, ...]


class OtherProgram(Struct, frozen=True):
    """Another program wrote these lock files, so only packages are compared."""

    files: tuple[str, ...]


class EditedByHand(Struct, frozen=True):
    """The digest of a lock does not match its content."""

    file: str


class Comparison(Struct, frozen=True, kw_only=True):
    """Every change between two locks, in the order of a review.

    `platforms` are the platforms of both locks; `unchanged` counts the packages that are the same in both; `notes` are limits
    of the comparison.
    """

    changes: tuple[Change, ...]
    platforms: tuple[str, ...] = ()
    unchanged: int = 0
    notes: tuple[OtherProgram | EditedByHand, ...] = ()

    def of(self, section: str) -> tuple[Change, ...]:
        """Return the changes of one section."""
        return tuple(change for change in self.changes if change.section == section)

    @property
    def is_breaking(self) -> bool:
        """Whether a host that met the old lock may not meet the new one, or a file has other content under its name."""
        return any(change.is_breaking for change in self.changes)


def cause_fields(cause: Cause) -> GroundFields:
    """Return a cause as plain text: its type, subject, object, the range that applies now, source and place."""
    requirement = getattr(cause, "requirement", "")
    if requirement:
        required = Requirement(requirement)
        about, needed = required.name, str(required.specifier)
    else:
        about = next((text for name in ("name", "key", "python", "image", "version") if (text := getattr(cause, name, ""))), "")
        needed = next((text for name in ("after", "range") if (text := getattr(cause, name, None))), "")
    package = getattr(cause, "dependent", None) or getattr(cause, "package", None)
    source = f"metadata of {package}" if isinstance(package, Subject) else ""
    return GroundFields(
        type=type_of(type(cause)),
        subject=cause.subject,
        object=about,
        ranges=(needed,) if needed else (),
        source=cause.rule.source if isinstance(cause, ByRule | ByMatrix) else source,
        place=str(cause.places[0]) if cause.places else "",
    )
