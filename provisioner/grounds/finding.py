"""Findings of a check: problems of a lock or of a file beside it, and facts that the check cannot verify.

`subject` and `object` are the package and the thing that a finding is about, `needed` is the required value and `locked` the
value in the lock; `place` is the line that the user must change, if there is one, and `command` the command that fixes it.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct
from packaging.requirements import Requirement

from provisioner.grounds.conflict import Conflict  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.doubt import Doubt  # noqa: TC001 - as above
from provisioner.grounds.fields import GroundFields, fields_of, type_of
from provisioner.grounds.requirement import Ground, Subject
from provisioner.places import HostPlace, Place


class Solve(Struct, frozen=True):
    """The command `provision solve`, for one target of the spec unless `target` is ""."""

    target: str = ""


class Render(Struct, frozen=True, kw_only=True):
    """The command `provision render` for one output of a lock."""

    lock: str
    output: str
    file: str


class CheckWithHosts(Struct, frozen=True):
    """The command `provision check --host`, for the hosts that a lock was solved for."""


Command = Solve | Render | CheckWithHosts


class RequiredBy(Struct, frozen=True):
    """A requirement that the metadata of a locked package states."""

    package: Subject
    requirement: str


Reason = Ground | RequiredBy


class FileDrift(Struct, frozen=True, kw_only=True):
    """A difference between a locked file and its index's listing of today.

    `kind` is `vanished` (no longer listed), `exchanged` (listed with another sha256), `yanked` (withdrawn, but still served:
    PEP 592) or `redated` (another upload time with the same content). `locked` and `offered` are the two values.
    """

    kind: str
    package: Subject
    filename: str
    index: str
    locked: str = ""
    offered: str = ""

    @property
    def is_alarm(self) -> bool:
        """Whether the lock cannot be installed from this index any more."""
        return self.kind in {"vanished", "exchanged"}


class Finding(Struct, frozen=True, kw_only=True):
    """The base of all findings.

    `verdict` is `no`, `unverified`, `warning` (which is no reason against a yes) or `yes`; `is_stale`: solving again would
    change the lock.
    """

    code: ClassVar[str]
    verdict: ClassVar[str] = "no"
    is_stale: ClassVar[bool] = False
    place: Place | None = None

    @property
    def command(self) -> Command | None:
        """The command that fixes the problem; None when the user must do something else first."""
        return Solve() if self.is_stale else None


class EditedLock(Finding, frozen=True, kw_only=True):
    """The digest of a lock does not match its content."""

    code: ClassVar[str] = "edited-lock"

    @property
    def command(self) -> Command | None:
        return Solve()


class NoSpec(Finding, frozen=True, kw_only=True):
    """The spec of a lock does not exist."""

    code: ClassVar[str] = "no-spec"
    verdict: ClassVar[str] = "unverified"
    object: str


class MissingTarget(Finding, frozen=True, kw_only=True):
    """A target of the spec has no lock file."""

    code: ClassVar[str] = "missing-target"
    object: str

    @property
    def command(self) -> Command | None:
        return Solve(self.object)


class MissingPlatform(Finding, frozen=True, kw_only=True):
    """A platform of the spec is not in the lock."""

    code: ClassVar[str] = "missing-platform"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: tuple[str, ...]


class OtherAccelerator(Finding, frozen=True, kw_only=True):
    """The spec and its hosts call for another accelerator."""

    code: ClassVar[str] = "stale-accelerator"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: str


class Unverified(Finding, frozen=True, kw_only=True):
    """The lock relies on an unknown fact."""

    code: ClassVar[str] = "unverified"
    verdict: ClassVar[str] = "unverified"
    doubt: Doubt


class UnpinnedBase(Finding, frozen=True, kw_only=True):
    """A base image is locked without its digest, so that another build of its tag may be another image."""

    code: ClassVar[str] = "unpinned-image"
    verdict: ClassVar[str] = "warning"
    reference: str


class RefusedUnpinnedBase(UnpinnedBase, frozen=True, kw_only=True):
    """A base image is locked without its digest, in a check that takes nothing for granted."""

    verdict: ClassVar[str] = "no"
    is_stale: ClassVar[bool] = True


class MissingOutput(Finding, frozen=True, kw_only=True):
    """A rendered file does not exist."""

    code: ClassVar[str] = "missing-output"
    lock: str
    output: str
    file: str

    @property
    def command(self) -> Command | None:
        return Render(lock=self.lock, output=self.output, file=self.file)


class EditedOutput(MissingOutput, frozen=True, kw_only=True):
    """A rendered file differs from what its lock renders, first at `place`; `is_foreign`: provision did not render it."""

    code: ClassVar[str] = "edited-output"
    is_foreign: bool


class OverwrittenFile(Finding, frozen=True, kw_only=True):
    """Wheels contain the same file with different content, and `others` more such files."""

    code: ClassVar[str] = "shared-file"
    subjects: tuple[Subject, ...]
    file: str
    others: int


class KnownOverwrittenFile(OverwrittenFile, frozen=True, kw_only=True):
    """Wheels contain the same file with different content, which the matrix lists and does not refuse."""

    verdict: ClassVar[str] = "yes"


class UnreadWheel(Finding, frozen=True, kw_only=True):
    """The list of files in a wheel could not be read."""

    code: ClassVar[str] = "unread-wheel"
    verdict: ClassVar[str] = "unverified"
    object: str
    problem: str


class UnknownChanges(Finding, frozen=True, kw_only=True):
    """The changes that solving again would make are unknown, because an index cannot be reached."""

    code: ClassVar[str] = "unverified-changes"
    verdict: ClassVar[str] = "unverified"
    problem: str
    causes: tuple[str, ...]
    hints: tuple[str, ...]


class StaleStack(Finding, frozen=True, kw_only=True):
    """The locked stack conflicts with the spec, the matrix or the hosts."""

    code: ClassVar[str] = "stale-stack"
    is_stale: ClassVar[bool] = True
    conflict: Conflict


class NoLongerSolvable(Finding, frozen=True, kw_only=True):
    """No stack satisfies the spec, the matrix and the indexes of today."""

    code: ClassVar[str] = "no-longer-solvable"
    conflict: Conflict


class UnlistedRelease(Finding, frozen=True, kw_only=True):
    """The matrix does not list a locked release, or no longer does."""

    code: ClassVar[str] = "unknown-release"
    is_stale: ClassVar[bool] = True
    subject: Subject


class OtherImage(Finding, frozen=True, kw_only=True):
    """The spec asks for another base image."""

    code: ClassVar[str] = "unknown-release"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: str


class OtherHostRequirement(Finding, frozen=True, kw_only=True):
    """A host requirement of the lock differs from that of the same stack today."""

    code: ClassVar[str] = "stale-host-requirements"
    is_stale: ClassVar[bool] = True
    object: str
    needed: str
    locked: str


class OtherVariable(Finding, frozen=True, kw_only=True):
    """An environment variable of the lock differs from that of the same stack today."""

    code: ClassVar[str] = "stale-environment"
    is_stale: ClassVar[bool] = True
    object: str
    needed: str
    locked: str


class OfUnstatedHosts(Finding, frozen=True, kw_only=True):
    """A differing host requirement or variable when the spec has no hosts: hosts on the command line may explain it."""

    code: ClassVar[str] = "unverified"
    verdict: ClassVar[str] = "unverified"
    finding: OtherHostRequirement | OtherVariable

    @property
    def command(self) -> Command | None:
        return CheckWithHosts()


class OtherGate(Finding, frozen=True, kw_only=True):
    """NVIDIA_REQUIRE_CUDA of the lock admits other hosts to the image than the stack runs on."""

    code: ClassVar[str] = "stale-gate"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: str


class MissingPackage(Finding, frozen=True, kw_only=True):
    """A required distribution is not locked."""

    code: ClassVar[str] = "missing-package"
    is_stale: ClassVar[bool] = True
    object: str
    by: Reason


class StalePackage(Finding, frozen=True, kw_only=True):
    """The base of findings that a locked package does not satisfy the spec, the matrix or the hosts."""

    code: ClassVar[str] = "stale-package"
    is_stale: ClassVar[bool] = True


class OtherVersion(StalePackage, frozen=True, kw_only=True):
    """A requirement or bound rules the locked version out."""

    subject: Subject
    by: Reason


class OtherFile(StalePackage, frozen=True, kw_only=True):
    """A requirement names another file than the locked one."""

    subject: Subject
    by: Reason


class OtherHash(StalePackage, frozen=True, kw_only=True):
    """A locked file has none of the hashes that the spec gives."""

    subject: Subject


class MissingExtras(StalePackage, frozen=True, kw_only=True):
    """A distribution is locked without extras that the spec requires."""

    subject: Subject
    extras: tuple[str, ...]
    by: Reason


class UnrecordedExtras(Finding, frozen=True, kw_only=True):
    """A lock of an earlier version of this program does not record whether it has extras that the spec requires."""

    code: ClassVar[str] = "unverified"
    verdict: ClassVar[str] = "unverified"
    subject: Subject
    extras: tuple[str, ...]
    by: Reason


class UnneededExtras(StalePackage, frozen=True, kw_only=True):
    """A distribution is locked with extras that nothing requires any more."""

    subject: Subject
    extras: tuple[str, ...]


class ForbiddenRelease(StalePackage, frozen=True, kw_only=True):
    """A locked package is a `prerelease` or an `sdist`, and the policy forbids the word."""

    subject: Subject
    word: str


class SourceDistribution(StalePackage, frozen=True, kw_only=True):
    """A locked package is a source distribution, and the policy does not allow any."""

    subject: Subject


class LateUpload(StalePackage, frozen=True, kw_only=True):
    """A locked file was uploaded after the last day of the policy."""

    subject: Subject
    until: str


class NewerGlibc(StalePackage, frozen=True, kw_only=True):
    """A locked wheel needs a newer glibc than the target has; `by` is the fact of the host that states it, None without one."""

    subject: Subject
    file: str
    needed: str
    locked: str
    by: Ground | None = None


class NotInstallable(StalePackage, frozen=True, kw_only=True):
    """The tags of a locked wheel do not fit the target; `problem` is the index part's error message."""

    subject: Subject
    file: str
    problem: str


class UnknownGlibc(Finding, frozen=True, kw_only=True):
    """A locked wheel needs a glibc, and the glibc of the target is not known."""

    code: ClassVar[str] = "unverified"
    verdict: ClassVar[str] = "unverified"
    subject: Subject
    file: str
    needed: str


class FileClash(StalePackage, frozen=True, kw_only=True):
    """Locked distributions write the same files, by a row of the matrix."""

    subjects: tuple[Subject, ...]
    file: str
    because: str


class UnmetNeed(StalePackage, frozen=True, kw_only=True):
    """A locked release has a requirement in the matrix that the lock does not meet; `locked` is "" when `object` is missing."""

    subject: Subject
    object: str
    needed: str
    locked: str
    because: str


class OtherAbi(StalePackage, frozen=True, kw_only=True):
    """A locked wheel needs a build of PyTorch of the other C++ ABI than the locked `build`."""

    subject: Subject
    needs_new: bool
    build: str


class OtherRuns(Finding, frozen=True, kw_only=True):
    """The spec runs in a container and the lock on the host itself, or vice versa."""

    code: ClassVar[str] = "stale-runs"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: str


class UnlistedIndex(Struct, frozen=True):
    """The spec does not list the index."""

    index: str


class DedicatedIndex(Struct, frozen=True, kw_only=True):
    """The spec has another index, `dedicated`, for the packages alone; `is_by_pattern`: its `packages` list them."""

    index: str
    dedicated: str
    is_by_pattern: bool


class IndexOfOthers(Struct, frozen=True):
    """The spec has the index for packages that match `patterns`, and these do not."""

    index: str
    patterns: tuple[str, ...]


class MovedIndex(Struct, frozen=True, kw_only=True):
    """The spec has another URL for the index."""

    index: str
    locked: str
    needed: str


IndexDifference = UnlistedIndex | DedicatedIndex | IndexOfOthers | MovedIndex


class OtherIndex(Finding, frozen=True, kw_only=True):
    """Packages are locked from an index that the spec does not allow for them."""

    code: ClassVar[str] = "stale-index"
    is_stale: ClassVar[bool] = True
    subjects: tuple[Subject, ...]
    difference: IndexDifference


class UnneededPackages(Finding, frozen=True, kw_only=True):
    """Packages are locked that nothing in the spec requires."""

    code: ClassVar[str] = "unasked-package"
    is_stale: ClassVar[bool] = True
    subjects: tuple[Subject, ...]


class MissingArtefact(Finding, frozen=True, kw_only=True):
    """A local file of a lock does not exist."""

    code: ClassVar[str] = "missing-artefact"
    subject: Subject
    file: str


class ChangedArtefact(Finding, frozen=True, kw_only=True):
    """A local file of a lock has another sha256."""

    code: ClassVar[str] = "changed-artefact"
    file: str
    locked: str
    found: str


class ResizedArtefact(Finding, frozen=True, kw_only=True):
    """A local file of a lock has another size, in bytes."""

    code: ClassVar[str] = "changed-artefact"
    file: str
    locked: int
    found: int


class VanishedFile(Finding, frozen=True, kw_only=True):
    """An index no longer lists a locked file."""

    code: ClassVar[str] = "vanished-file"
    drift: FileDrift

    @property
    def command(self) -> Command | None:
        return Solve()


class ExchangedFile(Finding, frozen=True, kw_only=True):
    """An index lists a locked file with other content."""

    code: ClassVar[str] = "exchanged-file"
    drift: FileDrift


class Contradiction(Finding, frozen=True, kw_only=True):
    """The base of contradictions between two parts of a lock; `place` is the line of one of them."""

    code: ClassVar[str] = "contradiction"
    is_stale: ClassVar[bool] = True


class OtherComponent(Contradiction, frozen=True, kw_only=True):
    """The stack has another version of a component than the locked package of the component."""

    subject: Subject
    object: str
    needed: str


class OtherBuild(Contradiction, frozen=True, kw_only=True):
    """The locked wheel of PyTorch is not that of the build in the stack."""

    subject: Subject
    needed: str
    locked: str


class NoPython(Contradiction, frozen=True, kw_only=True):
    """A stack with packages names no Python."""

    platform: str


class PythonNotAdmitted(Contradiction, frozen=True, kw_only=True):
    """`requires-python` does not admit the Python of the stack."""

    needed: str
    locked: str


class EnvironmentsRefuse(Contradiction, frozen=True, kw_only=True):
    """The markers in `environments` exclude a platform and Python that the lock was solved for."""

    platform: str
    python: str


class EnvironmentsAdmit(Contradiction, frozen=True, kw_only=True):
    """`environments` or `requires-python` (`key`) admits platforms and Pythons that the lock was not solved for.

    `pythons` are the first and the last such Python series.
    """

    key: str
    platforms: tuple[str, ...]
    pythons: tuple[str, str]


class MarkerDisagrees(Contradiction, frozen=True, kw_only=True):
    """The marker of a package selects it on a platform that it is not locked for, or vice versa; "" selects it everywhere."""

    subject: Subject
    platform: str
    marker: str
    is_locked: bool


class PackagePython(Contradiction, frozen=True, kw_only=True):
    """The Requires-Python of a package excludes the Python of the stack."""

    subject: Subject
    platform: str
    needed: str
    locked: str


class NoFileForPlatform(Contradiction, frozen=True, kw_only=True):
    """No file of a package is for a platform that it is locked for."""

    subject: Subject
    platform: str
    files: tuple[str, ...]


class TooManyFiles(Contradiction, frozen=True, kw_only=True):
    """A package has more files than platforms."""

    subject: Subject
    platforms: tuple[str, ...]
    files: tuple[str, ...]


class UnusableAddress(Contradiction, frozen=True, kw_only=True):
    """The URL of a file is not one that other machines can download."""

    subject: Subject
    url: str


class LoginInAddress(Contradiction, frozen=True, kw_only=True):
    """The URL of a file contains a login."""

    subject: Subject


class OtherWheel(Contradiction, frozen=True, kw_only=True):
    """The wheel of a direct URL or path is of another distribution or version."""

    subject: Subject
    file: str


class LockedTwice(Contradiction, frozen=True, kw_only=True):
    """Two package entries of one distribution are for the same platform."""

    object: str
    platform: str
    versions: tuple[str, str]


class UnlockedDependency(Contradiction, frozen=True, kw_only=True):
    """A dependency of a package is not locked."""

    subject: Subject
    object: str


class OtherPin(Contradiction, frozen=True, kw_only=True):
    """The reasons for a component are about another version than the stack has."""

    platform: str
    object: str
    needed: str
    locked: str


def line_of(ground: Ground) -> Place | None:
    """Return the line of a file that a ground was read from; None when its source is not a file."""
    match ground.source:
        case Place() as place:
            return place
        case HostPlace(place=place):
            return place
    return None


def finding_fields(finding: Finding) -> GroundFields:
    """Return a finding as plain text: its type, subject, object, the range or value that is needed, source and place."""
    match finding:
        case OfUnstatedHosts(finding=difference):
            return finding_fields(difference)
        case VanishedFile(drift=drift) | ExchangedFile(drift=drift):
            kind, source = type_of(type(finding)), f"index {drift.index}"
            return GroundFields(type=kind, subject=str(drift.package), object=drift.filename, source=source)
        case Unverified(doubt=doubt):
            return GroundFields(type=type_of(type(doubt)), object=doubt.component)
    subjects = [getattr(finding, "subject", None), *getattr(finding, "subjects", ())]
    needed: str = getattr(finding, "needed", "")
    ranges: tuple[str, ...] = (needed,) if needed else ()
    source = ""
    names = ("object", "file", "output", "platform", "word", "url", "key")
    about = next((text for name in names if (text := getattr(finding, name, ""))), "")
    match getattr(finding, "by", None):
        case RequiredBy(package=package, requirement=requirement):
            required = Requirement(requirement)
            bound = str(required.specifier)
            about, ranges, source = about or required.name, (bound,) if bound else (), f"metadata of {package}"
        case Ground() as ground:
            fields = fields_of(ground)
            about, ranges, source = about or fields.object, ranges or fields.ranges, fields.source
    return GroundFields(
        type=type_of(type(finding)),
        subject=", ".join(str(one) for one in subjects if one is not None),
        object=about,
        ranges=ranges,
        source=source,
        place=str(finding.place or ""),
    )
