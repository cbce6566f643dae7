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
    the same component), `index` (the index has changed) or `unknown`. `places` are the lines of the spec that the cause is
    about, () if they are unknown or there are none.
    """

    kind: ClassVar[str]
    places: tuple[Place, ...] = ()

    @property
    def subject(self) -> str:
        """The component, distribution or key whose change is the cause; "" for a cause that is no other change."""
        return ""


class ByRequest(Cause, frozen=True, kw_only=True):
    """A changed request for a component or a distribution; `before` and `after` are its ranges, "" without a request."""

    kind: ClassVar[str] = "spec"
    name: str
    before: str
    after: str
    is_distribution: bool


class ByBound(Cause, frozen=True, kw_only=True):
    """An entry of the spec's `constraints` or `overrides` (`table`) that was added, removed or changed.

    `name` is its distribution; `before` and `after` are its ranges, "" without an entry.
    """

    kind: ClassVar[str] = "spec"
    table: str
    name: str
    before: str
    after: str


class ByKey(Cause, frozen=True, kw_only=True):
    """A changed key of the spec; `before` and `after` are its values, None when the spec leaves the key out.

    `uploaded` is the upload day of the new file, which the old value of `policy.exclude-newer` excluded, and `uploaded_before`
    that of the old file, which the new value excludes; "" for other keys.
    """

    kind: ClassVar[str] = "spec"
    key: str
    before: str | None
    after: str | None
    uploaded: str = ""
    uploaded_before: str = ""


class ByNoDependent(Cause, frozen=True, kw_only=True):
    """A request of the new spec (`is_new`) or the old one, inferred because no other package requires the changed package."""

    kind: ClassVar[str] = "spec"
    is_new: bool


class HeldByRequest(Cause, frozen=True, kw_only=True):
    """A request of the spec whose range excludes the newest release of the distribution `name`."""

    kind: ClassVar[str] = "spec"
    name: str
    range: str


class HeldByBound(Cause, frozen=True, kw_only=True):
    """A constraint or override of the spec (`table` says which) whose range excludes a distribution's newest release."""

    kind: ClassVar[str] = "spec"
    table: str
    name: str
    range: str


class Follows(Cause, frozen=True, kw_only=True):
    """The base of causes that are other changes between the same locks; `subject` is what such a change is about."""

    kind: ClassVar[str] = "follows"


class ByRuns(Follows, frozen=True, kw_only=True):
    """A move of the environment into a container, or out of one; `runs` is where the new lock runs: `container` or `host`."""

    runs: str

    @property
    def subject(self) -> str:
        return "runs"


class ByAccelerator(Follows, frozen=True, kw_only=True):
    """A change of the accelerator, which is now `accelerator`."""

    accelerator: str

    @property
    def subject(self) -> str:
        return "accelerator"


class RecordedRule(Struct, frozen=True):
    """A rule that a lock records as a reason; `component` is the component that has the rule.

    The sentence `text` and its `source` are for people and are never parsed.
    """

    component: str
    text: str
    source: str


class ByRule(Follows, frozen=True, kw_only=True):
    """A rule that only the new lock records, because the version of the rule's component changed."""

    rule: RecordedRule

    @property
    def subject(self) -> str:
        return self.rule.component


class ByLostRule(ByRule, frozen=True, kw_only=True):
    """A rule that only the old lock records, because the version of the rule's component changed.

    `now` is the component's version in the new lock, "" when the new lock does not have the component.
    """

    now: str


class ByMatrix(Cause, frozen=True, kw_only=True):
    """A rule that only one lock records, although its component has the same version in both: the matrix changed.

    `is_new`: the new lock records the rule, otherwise the old one.
    """

    kind: ClassVar[str] = "matrix"
    rule: RecordedRule
    is_new: bool


class ByPythonOfImage(Follows, frozen=True, kw_only=True):
    """A change of Python's version, for which the base image had to change: the old `image` contains only `python`."""

    image: str
    python: str

    @property
    def subject(self) -> str:
        return "python"


class ByCudaOfImage(Follows, frozen=True, kw_only=True):
    """A change of CUDA's version, for which the base image is chosen.

    `image` and `cuda` are those of the new lock, `before` is the CUDA of the old one; "" is a stack without CUDA.
    """

    image: str
    cuda: str
    before: str

    @property
    def subject(self) -> str:
        return "cuda"


class ByImage(Follows, frozen=True, kw_only=True):
    """A change of the base image, from one that provides a component to one for which the matrix does not list it."""

    before: str
    after: str

    @property
    def subject(self) -> str:
        return "image"


class ByPart(Follows, frozen=True, kw_only=True):
    """A change of `part`, the component or package that a host requirement comes from; `before` and `after` are its versions.

    A version is "" when a lock does not have the part.
    """

    part: str
    before: str
    after: str

    @property
    def subject(self) -> str:
        return self.part


class ByComponent(Follows, frozen=True, kw_only=True):
    """The change of the component that a distribution is, such as `pytorch` for `torch`; its own causes are listed there."""

    name: str
    component: str

    @property
    def subject(self) -> str:
        return self.component


class ByDependent(Follows, frozen=True, kw_only=True):
    """The base of causes in a dependent: a package that requires the changed package.

    `requirement` is that of the dependent, as its metadata spells it; "" when the lock does not record it.
    """

    dependent: Subject
    requirement: str

    @property
    def subject(self) -> str:
        return self.dependent.name


class BroughtAlong(ByDependent, frozen=True, kw_only=True):
    """A dependent, itself added or of another version, that requires a package which only the new lock has."""


class TakenAlong(ByDependent, frozen=True, kw_only=True):
    """A dependent, itself removed or of another version, that required a package which only the old lock has."""


class RuledOutBy(ByDependent, frozen=True, kw_only=True):
    """A dependent in the new lock whose requirement excludes `version`, the package's old one."""

    version: str


class FreedFrom(ByDependent, frozen=True, kw_only=True):
    """A dependent in the old lock whose requirement excludes the package's new version.

    `is_gone`: the new lock does not have the dependent.
    """

    is_gone: bool


class HeldByPackage(ByDependent, frozen=True, kw_only=True):
    """A dependent in the answer whose requirement excludes the package's newest release."""


class ByOwnNeed(Follows, frozen=True, kw_only=True):
    """A requirement of a release (`package`) that the version of another package in the new lock (`needed`) does not meet.

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
    """A requirement of the new release (`package`) on versions of another package (`needed`) that the old spec excluded.

    `table` is the key of the old spec that excluded them, `packages` or `constraints`, and `range` the range for `needed`
    there.
    """

    package: Subject
    requirement: str
    needed: str
    table: str
    range: str

    @property
    def subject(self) -> str:
        return self.needed


class ByPython(Follows, frozen=True, kw_only=True):
    """A change of Python's version, for which environment markers and wheel tags are evaluated.

    `aspect` is what differs: the `file` of the package, what the package `requires`, or whether another package, `dependent`,
    requires it.
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
    """The tag of an image, which refers to other content in its registry now."""


class RegistryAsked(ByIndex, frozen=True, kw_only=True):
    """A query of an image's registry for the image's digest, which the old lock does not have."""


class ReleasedSince(ByIndex, frozen=True, kw_only=True):
    """A file that was uploaded after the newest file of the old lock; `uploaded` and `newest` are the upload days of both."""

    uploaded: str
    newest: str


class OutSince(ByIndex, frozen=True, kw_only=True):
    """The release of `version` on `day`, "" when unknown.

    `is_installer`: the version is that of the installer, of which the newest is always chosen.
    """

    version: str
    day: str
    is_installer: bool = False


class Drifted(ByIndex, frozen=True, kw_only=True):
    """A file of the old lock that the index lists differently today, or not at all."""

    drift: FileDrift


class NoMetadata(ByIndex, frozen=True, kw_only=True):
    """A release whose metadata is unavailable; `problem` is the error message of its index."""

    package: Subject
    problem: str


class Unknown(Cause, frozen=True, kw_only=True):
    """A cause that neither lock records.

    `inputs` are the names of the inputs that changed as well: `spec`, `matrix`, `provision`. `keys` are the changed keys of the
    spec, () if a lock does not record the keys.
    """

    kind: ClassVar[str] = "unknown"
    inputs: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


class UnknownElsewhere(Cause, frozen=True, kw_only=True):
    """An unknown cause, because another program wrote one of the locks and records no reasons."""

    kind: ClassVar[str] = "unknown"


class UnknownAgain(Cause, frozen=True, kw_only=True):
    """An unknown cause of a difference between a lock and the answer of solving again.

    `is_upgrade`: solving again did not prefer the versions of the lock.
    """

    kind: ClassVar[str] = "unknown"
    is_upgrade: bool


class UnknownHold(Cause, frozen=True, kw_only=True):
    """An unknown reason why the newest release was not chosen: no single request or requirement in the answer excludes it."""

    kind: ClassVar[str] = "unknown"
    name: str


class FallOut(Struct, frozen=True, kw_only=True):
    """Values of a host fact that met the old requirement and do not meet the new one; "" for a limit that does not apply.

    Such values are below the version `below`, above the version `above`, or at or above the version `start`; for a new
    requirement that is not a range, they are all values that do not meet `outside`.
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
    """The unchanged version of a package and its changed `file`, "" if the change is about all its files."""

    version: str
    file: str = ""


class OfAddress(Struct, frozen=True, kw_only=True):
    """The unchanged version of a package, and the index whose URL changed."""

    version: str
    index: str


class OfSpec(Struct, frozen=True):
    """A change of the spec's digest; `is_recorded`: both locks record the spec's keys, and the recorded keys are the same."""

    is_recorded: bool


class Change(Struct, frozen=True, kw_only=True):
    """One difference between two locks.

    `section` is one of `SECTIONS`; `subject` is a component, a host fact, a distribution or a key of the spec; `old` and `new`
    are its values in the two locks, "" when a lock lacks it. `change` is `added` or `removed`, `upgraded` or `downgraded`,
    `tightened` or `loosened`, or `changed`. `aspect` is the property of a package that `old` and `new` are: its `version`, or,
    if the version is the same, its `content` (sha256), `file`, `index`, `place` (URL or path), `attestations`,
    `requires-python`, `variants` or what it `requires`. `platforms` are the platforms with this difference. `lost` and `gained`
    are the removed and added members of a set. `is_breaking` means that a host that met the old lock may not meet the new one,
    that the environment runs on another accelerator or moves between container and host, or that the content of a file was
    replaced under the same name.
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
    """A package of an answer that is older than the newest release that fits the environment, and the causes.

    `uploaded` is the upload day of the newest release, "" when unknown.
    """

    name: str
    version: str
    newest: str
    uploaded: str
    platform: str
    causes: tuple[Cause, ...]


class OtherProgram(Struct, frozen=True):
    """Lock files that another program wrote, so that only packages are compared."""

    files: tuple[str, ...]


class EditedByHand(Struct, frozen=True):
    """A lock file whose digest does not match its content."""

    file: str


class Comparison(Struct, frozen=True, kw_only=True):
    """Every change between two locks, in the order of a review.

    `platforms` are the platforms that both locks have; `unchanged` counts the packages that are the same in both; `notes` are
    limits of the comparison.
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
        """Whether one of the changes is breaking, as `Change.is_breaking` defines it."""
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
