"""Changes between two locks and their causes, as far as the locks and the indexes know them."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct
from packaging.requirements import Requirement

from provisioner.grounds.fields import GroundFields, type_of
from provisioner.grounds.finding import FileDrift  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.requirement import Subject
from provisioner.places import Place  # noqa: TC001 - as above

SECTIONS = ("hosts", "system", "packages", "inputs")
"""What a change is about, in the order of a review: who can run it, what it is made of, its packages, what it was made from."""


class Cause(Struct, frozen=True, kw_only=True):
    """The base of all causes.

    `kind` is `spec` (a request changed), `follows` (a consequence of the change of `subject`), `matrix` (the same part has
    other rules now), `index` (the index has something else now) or `unknown`. `places` are lines of the spec.
    """

    kind: ClassVar[str]
    places: tuple[Place, ...] = ()

    @property
    def subject(self) -> str:
        """The component, distribution or key that the change follows; "" for a cause of another kind."""
        return ""


class ByRequest(Cause, frozen=True, kw_only=True):
    """The request for a component or a distribution changed; `before` and `after` are its ranges, "" for none."""

    kind: ClassVar[str] = "spec"
    name: str
    before: str
    after: str
    is_distribution: bool


class ByBound(Cause, frozen=True, kw_only=True):
    """An entry of `constraints` or `overrides` (`table`) came, went or changed."""

    kind: ClassVar[str] = "spec"
    table: str
    name: str
    before: str
    after: str


class ByKey(Cause, frozen=True, kw_only=True):
    """A key of the spec changed, None where it is left out; `uploaded` is the day of a file that a last day kept away."""

    kind: ClassVar[str] = "spec"
    key: str
    before: str | None
    after: str | None
    uploaded: str = ""


class ByNoDependent(Cause, frozen=True, kw_only=True):
    """No package requires a package, so the spec of the new (or the old) lock does."""

    kind: ClassVar[str] = "spec"
    is_new: bool


class HeldByRequest(Cause, frozen=True, kw_only=True):
    """The spec asks for a range of a distribution that the newest release is not in."""

    kind: ClassVar[str] = "spec"
    name: str
    range: str


class HeldByBound(Cause, frozen=True, kw_only=True):
    """The spec constrains or overrides (`table`) a distribution so that the newest release is ruled out."""

    kind: ClassVar[str] = "spec"
    table: str
    name: str
    range: str


class Follows(Cause, frozen=True, kw_only=True):
    """The base of causes that are changes themselves."""

    kind: ClassVar[str] = "follows"


class ByRuns(Follows, frozen=True, kw_only=True):
    """The environment runs in a container now, or on the host itself."""

    runs: str

    @property
    def subject(self) -> str:
        return "runs"


class ByAccelerator(Follows, frozen=True, kw_only=True):
    """The accelerator is another now."""

    accelerator: str

    @property
    def subject(self) -> str:
        return "accelerator"


class RecordedRule(Struct, frozen=True):
    """A rule that a lock records as a reason: its sentence and source are for people, and nothing is read from them."""

    component: str
    text: str
    source: str


class ByRule(Follows, frozen=True, kw_only=True):
    """A recorded rule came with another version of its component."""

    rule: RecordedRule

    @property
    def subject(self) -> str:
        return self.rule.component


class ByLostRule(ByRule, frozen=True, kw_only=True):
    """A recorded rule went with the version of its component, which is `now` another, or "" where it is gone."""

    now: str


class ByMatrix(Cause, frozen=True, kw_only=True):
    """The matrix says something else of the same component: the rule `is_new`, or gone."""

    kind: ClassVar[str] = "matrix"
    rule: RecordedRule
    is_new: bool


class ByPythonOfImage(Follows, frozen=True, kw_only=True):
    """The base image has one Python, and the Python moved."""

    image: str
    python: str

    @property
    def subject(self) -> str:
        return "python"


class ByCudaOfImage(Follows, frozen=True, kw_only=True):
    """The base image is chosen for a CUDA, and the CUDA moved."""

    image: str
    cuda: str

    @property
    def subject(self) -> str:
        return "cuda"


class ByImage(Follows, frozen=True, kw_only=True):
    """A component came with the old base image, and of the new one the matrix does not know it."""

    before: str
    after: str

    @property
    def subject(self) -> str:
        return "image"


class ByPart(Follows, frozen=True, kw_only=True):
    """A host requirement comes with a component or package whose version moved; "" for none."""

    part: str
    before: str
    after: str

    @property
    def subject(self) -> str:
        return self.part


class ByComponent(Follows, frozen=True, kw_only=True):
    """A distribution is a component, whose own change says why."""

    name: str
    component: str

    @property
    def subject(self) -> str:
        return self.component


class ByDependent(Follows, frozen=True, kw_only=True):
    """The base of causes that another package requires the package; `requirement` is as that package spells it."""

    dependent: Subject
    requirement: str

    @property
    def subject(self) -> str:
        return self.dependent.name


class BroughtAlong(ByDependent, frozen=True, kw_only=True):
    """A package that came or moved requires the package now."""


class TakenAlong(ByDependent, frozen=True, kw_only=True):
    """A package that went or moved required the package before."""


class RuledOutBy(ByDependent, frozen=True, kw_only=True):
    """The new lock has a requirement that rules the old `version` out."""

    version: str


class FreedFrom(ByDependent, frozen=True, kw_only=True):
    """The old lock had a requirement that rules the new version out; `is_gone`: the new lock has no such package."""

    is_gone: bool


class HeldByPackage(ByDependent, frozen=True, kw_only=True):
    """A package of the answer requires something else than the newest release."""


class ByOwnNeed(Follows, frozen=True, kw_only=True):
    """A release requires another package in a range that this package is not in.

    `is_held`: the release is the newest, which the answer does not have; otherwise it is the one of the old lock.
    """

    package: Subject
    requirement: str
    needed: Subject
    is_held: bool

    @property
    def subject(self) -> str:
        return self.needed.name


class FreedNeed(Follows, frozen=True, kw_only=True):
    """The new release requires another package in a range that the old spec ruled out, by `packages` or by `constraints`."""

    package: Subject
    requirement: str
    needed: str
    table: str
    range: str

    @property
    def subject(self) -> str:
        return self.needed


class ByPython(Follows, frozen=True, kw_only=True):
    """The Python moved, and with it what markers and tags select.

    `aspect` says what that is: a `file`, what a package `requires`, or that the `dependent` requires the package at all.
    """

    python: str
    aspect: str
    dependent: str = ""

    @property
    def subject(self) -> str:
        return "python"


class ByIndex(Cause, frozen=True, kw_only=True):
    """The base of causes that an index, or a registry, knows."""

    kind: ClassVar[str] = "index"


class TagMoved(ByIndex, frozen=True, kw_only=True):
    """The registry gives the tag of an image to other content."""


class RegistryAsked(ByIndex, frozen=True, kw_only=True):
    """The registry of an image was asked for its digest, and was not before."""


class ReleasedSince(ByIndex, frozen=True, kw_only=True):
    """A file was uploaded after the newest file of the old lock; both are days."""

    uploaded: str
    newest: str


class OutSince(ByIndex, frozen=True, kw_only=True):
    """A version is out since a day, "" where that is not known; `is_installer`: the installer is always the newest."""

    version: str
    day: str
    is_installer: bool = False


class Drifted(ByIndex, frozen=True, kw_only=True):
    """The index says something else of the old file today."""

    drift: FileDrift


class NoMetadata(ByIndex, frozen=True, kw_only=True):
    """The metadata of a release cannot be had; `problem` is what the index part says."""

    package: Subject
    problem: str


class Unknown(Cause, frozen=True, kw_only=True):
    """Neither lock records why; `inputs` changed as well (`spec`, `matrix`, `provision`), of the spec these `keys`."""

    kind: ClassVar[str] = "unknown"
    inputs: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


class UnknownElsewhere(Cause, frozen=True, kw_only=True):
    """One of the locks was written by another program, which records no reasons."""

    kind: ClassVar[str] = "unknown"


class UnknownAgain(Cause, frozen=True, kw_only=True):
    """Solving again here and now gives something else for no recorded reason; `is_upgrade`: it had no lock to keep to."""

    kind: ClassVar[str] = "unknown"
    is_upgrade: bool


class UnknownHold(Cause, frozen=True, kw_only=True):
    """Nothing in the answer rules the newest release out by itself."""

    kind: ClassVar[str] = "unknown"
    name: str


class FallOut(Struct, frozen=True, kw_only=True):
    """The hosts that met the old requirement and not the new one: below a version, above one or from one on, outside a text."""

    below: str = ""
    above: str = ""
    start: str = ""
    outside: str = ""


class GpuBasis(Struct, frozen=True, kw_only=True):
    """How GPUs were compared: as stated or by compiled targets. `is_required` only now, or no longer; None for neither.

    `devices` are those of the new lock.
    """

    is_required: bool | None
    devices: tuple[str, ...]
    is_by_targets: bool


class OfFile(Struct, frozen=True, kw_only=True):
    """The version of a package that stayed, and the file that a change of it is about, "" for all."""

    version: str
    file: str = ""


class OfAddress(Struct, frozen=True, kw_only=True):
    """The version of a package that stayed, and the index whose address changed."""

    version: str
    index: str


class OfSpec(Struct, frozen=True):
    """A spec of another digest; `is_recorded`: both locks record its keys, and these are the same."""

    is_recorded: bool


class Change(Struct, frozen=True, kw_only=True):
    """One thing that is not the same in both locks.

    `subject` is a component, a distribution or a key of the spec; `old` and `new` are "" where it is absent. `change` is
    `added` or `removed`, `upgraded` or `downgraded`, `tightened` or `loosened`, or `changed`. `aspect` says what of a package
    `old` and `new` are: its `version`, or, where that stayed, its `content` (sha256), `file`, `index`, `place` or what it
    `requires`. `platforms` are those it is true of. `lost` and `gained` are the members of a set that went and came.
    `is_breaking` means that a host that met the old lock may not meet the new one or is used otherwise, or that content was
    exchanged under its name.
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
    """A package of an answer that is not the newest its index offers for this environment, and what holds it back."""

    name: str
    version: str
    newest: str
    uploaded: str
    platform: str
    causes: tuple[Cause, ...]


class OtherProgram(Struct, frozen=True):
    """Locks that another program wrote: only their packages are compared."""

    files: tuple[str, ...]


class EditedByHand(Struct, frozen=True):
    """A lock whose digest does not fit its content."""

    file: str


class Comparison(Struct, frozen=True, kw_only=True):
    """Every change between two locks, those that matter most first.

    `platforms` are those that both have; `unchanged` counts the packages that are the same; `notes` say what the comparison
    cannot see.
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
        """Whether a host may fall out, or content was exchanged under its name."""
        return any(change.is_breaking for change in self.changes)


def cause_fields(cause: Cause) -> GroundFields:
    """Return a cause as plain text: its type, subject, object, the range that holds now, source and place."""
    requirement = getattr(cause, "requirement", "")
    if requirement:
        required = Requirement(requirement)
        about, needed = required.name, str(required.specifier)
    else:
        about = next((text for name in ("name", "key", "python", "image", "version") if (text := getattr(cause, name, ""))), "")
        needed = next((text for name in ("after", "range") if (text := getattr(cause, name, None))), "")
    package = getattr(cause, "dependent", None) or getattr(cause, "package", None)
    source = f"metadata of {package.name} {package.label}" if isinstance(package, Subject) else ""
    return GroundFields(
        type=type_of(type(cause)),
        subject=cause.subject,
        object=about,
        ranges=(needed,) if needed else (),
        source=cause.rule.source if isinstance(cause, ByRule | ByMatrix) else source,
        place=str(cause.places[0]) if cause.places else "",
    )
