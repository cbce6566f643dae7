"""Findings of a check: problems of a lock or of a file beside it, and facts that the check cannot verify.

`subject` and `object` are the package and the thing that a finding is about, `needed` is the required value and `locked` the
value in the lock; `place` is the line that the user must change, if there is one, and `command` the command that fixes it.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct
from packaging.requirements import Requirement

from provisioner.grounds.conflict import Conflict  # noqa: TC001 - part of types that are matched at run time
from provisioner.grounds.doubt import Doubt  # noqa: TC001 - as above
from provisioner.grounds.fields import GroundFields, fields_of, type_of
from provisioner.grounds.requirement import Ground, Subject
from provisioner.places import HostPlace, Place


class Solve(Struct, frozen=True):
    """The command `provision solve`, for one target of the spec unless `target` is ""; `spec` is its path, "" if not known."""

    target: str = ""
    spec: str = ""


class Render(Struct, frozen=True, kw_only=True):
    """The command `provision render` for one output of a lock."""

    lock: str
    output: str
    file: str


class CheckWithHosts(Struct, frozen=True):
    """A suggested command: `provision check --host` with the hosts for which the lock was solved."""


class Validate(Struct, frozen=True, kw_only=True):
    """The command `provision validate` for one lock. `platform` is "" for that of the engine, `level` None for the highest."""

    lock: str
    platform: str = ""
    level: int | None = None
    is_local: bool = False


Command = Solve | Render | CheckWithHosts | Validate


class RequiredBy(Struct, frozen=True):
    """A requirement in the metadata of a locked package, `package`."""

    package: Subject
    requirement: str


Reason = Ground | RequiredBy


class FileDrift(Struct, frozen=True, kw_only=True):
    """A difference between a locked file and what its index lists today.

    `kind` is `vanished` (no longer listed), `exchanged` (listed with another sha256), `yanked` (withdrawn, but still served:
    PEP 592) or `redated` (another upload time with the same content). `locked` and `offered` are the two differing values; for
    `yanked`, `offered` is the index's reason and `locked` is "".
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

    `verdict` is the answer of the check because of the finding: `no`, `unverified`, `warning` (which is no reason against a
    yes) or `yes`; `is_stale`: solving again would change the lock.
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
    """A lock whose digest does not match its content."""

    code: ClassVar[str] = "edited-lock"

    @property
    def command(self) -> Command | None:
        return Solve()


class NoSpec(Finding, frozen=True, kw_only=True):
    """A lock whose spec, the file `object`, does not exist."""

    code: ClassVar[str] = "no-spec"
    verdict: ClassVar[str] = "unverified"
    object: str


class UnsolvedSpec(Finding, frozen=True, kw_only=True):
    """A spec, the file `object`, that has no lock."""

    code: ClassVar[str] = "no-lock"
    object: str

    @property
    def command(self) -> Command | None:
        return Solve(spec=self.object)


class OrphanedOutput(Finding, frozen=True, kw_only=True):
    """A rendered file whose lock, the file name `lock` in its header, does not exist."""

    code: ClassVar[str] = "orphaned-output"
    file: str
    lock: str


class TwinLock(Finding, frozen=True, kw_only=True):
    """A lock of the same spec, `object`, and of the same target and place as the lock `other`: one of the two is left over."""

    code: ClassVar[str] = "twin-lock"
    object: str
    other: str


class SharedName(Finding, frozen=True, kw_only=True):
    """The first of the locks, of several specs, whose environments have the name `object`; the other locks are `others`."""

    code: ClassVar[str] = "shared-name"
    verdict: ClassVar[str] = "warning"
    object: str
    others: tuple[str, ...]


class StrandedHosts(Finding, frozen=True, kw_only=True):
    """Hosts of an inventory that the stack of a lock does not run on, on `platform`, because of one `conflict`.

    `before` is whether the stack of the last commit ran on them; None if there is none, or if the lock has not changed since.
    """

    code: ClassVar[str] = "stranded-hosts"
    hosts: tuple[str, ...]
    platform: str
    conflict: Conflict
    before: bool | None = None


class MissingTarget(Finding, frozen=True, kw_only=True):
    """A target of the spec that has no lock file."""

    code: ClassVar[str] = "missing-target"
    object: str

    @property
    def command(self) -> Command | None:
        return Solve(self.object)


class MissingPlace(Finding, frozen=True, kw_only=True):
    """A place under `runs` of the spec, `host` or `container`, that has no lock file."""

    code: ClassVar[str] = "missing-place"
    object: str

    @property
    def command(self) -> Command | None:
        return Solve()


class MissingPlatform(Finding, frozen=True, kw_only=True):
    """A platform of the spec (`needed`) that is not in the lock."""

    code: ClassVar[str] = "missing-platform"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: tuple[str, ...]


class OtherAccelerator(Finding, frozen=True, kw_only=True):
    """An accelerator that the spec and its hosts call for (`needed`), in place of the lock's (`locked`)."""

    code: ClassVar[str] = "stale-accelerator"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: str


class Unverified(Finding, frozen=True, kw_only=True):
    """An unknown fact that the lock relies on."""

    code: ClassVar[str] = "unverified"
    verdict: ClassVar[str] = "unverified"
    doubt: Doubt


class UnpinnedBase(Finding, frozen=True, kw_only=True):
    """A base image that is locked by tag without a digest, so the tag may later mean another image."""

    code: ClassVar[str] = "unpinned-image"
    verdict: ClassVar[str] = "warning"
    reference: str


class RefusedUnpinnedBase(UnpinnedBase, frozen=True, kw_only=True):
    """A base image that is locked without its digest, in a check with `--strict` or `policy.strict`."""

    verdict: ClassVar[str] = "no"
    is_stale: ClassVar[bool] = True


class UndatedPackages(Finding, frozen=True, kw_only=True):
    """Packages of the distribution, `names`, whose releases the day of the build decides: the lock has no time for them."""

    code: ClassVar[str] = "undated-packages"
    verdict: ClassVar[str] = "warning"
    names: tuple[str, ...]


class RefusedUndatedPackages(UndatedPackages, frozen=True, kw_only=True):
    """Packages of no certain release, in a check with `--strict` or `policy.strict`."""

    verdict: ClassVar[str] = "no"


class MissingOutput(Finding, frozen=True, kw_only=True):
    """A rendered file that does not exist, or a helper file of the rendered file `helped`; `output` is the format."""

    code: ClassVar[str] = "missing-output"
    lock: str
    output: str
    file: str
    helped: str = ""

    @property
    def command(self) -> Command | None:
        return Render(lock=self.lock, output=self.output, file=self.helped or self.file)


class EditedOutput(MissingOutput, frozen=True, kw_only=True):
    """A rendered file that differs from what its lock renders, first at `place` and `column`.

    `is_foreign`: provision did not render it. `is_unedited`: its header has the hash of its content, so that an earlier
    version of the lock or another version of provision rendered it as it is; or the hash is all that differs. Line ends do
    not count: `by` is `line-ends` where they alone differ, and `conflict` for a file with the markers of a merge.
    """

    code: ClassVar[str] = "edited-output"
    is_foreign: bool
    is_unedited: bool
    column: int = 1
    by: Literal["text", "line-ends", "conflict"] = "text"


class OverwrittenFile(Finding, frozen=True, kw_only=True):
    """A file that several wheels contain with different content; `others` counts further such files of these wheels."""

    code: ClassVar[str] = "shared-file"
    subjects: tuple[Subject, ...]
    file: str
    others: int


class KnownOverwrittenFile(OverwrittenFile, frozen=True, kw_only=True):
    """A file that several wheels contain with different content, which the matrix lists and does not refuse."""

    verdict: ClassVar[str] = "yes"


class UnreadWheel(Finding, frozen=True, kw_only=True):
    """A wheel, `object`, whose list of files could not be read."""

    code: ClassVar[str] = "unread-wheel"
    verdict: ClassVar[str] = "unverified"
    object: str
    problem: str


class UnknownChanges(Finding, frozen=True, kw_only=True):
    """An index that cannot be reached, so that the changes that solving again would make are unknown.

    `problem`, `causes` and `hints` are those of the error.
    """

    code: ClassVar[str] = "unverified-changes"
    verdict: ClassVar[str] = "unverified"
    problem: str
    causes: tuple[str, ...]
    hints: tuple[str, ...]


class StaleStack(Finding, frozen=True, kw_only=True):
    """A conflict of the locked stack with the spec, the matrix or the hosts."""

    code: ClassVar[str] = "stale-stack"
    is_stale: ClassVar[bool] = True
    conflict: Conflict


class NoLongerSolvable(Finding, frozen=True, kw_only=True):
    """A conflict because of which no stack satisfies the spec, the matrix and the indexes of today."""

    code: ClassVar[str] = "no-longer-solvable"
    conflict: Conflict


class UnlistedRelease(Finding, frozen=True, kw_only=True):
    """A locked release that the matrix does not list, or no longer lists."""

    code: ClassVar[str] = "unknown-release"
    is_stale: ClassVar[bool] = True
    subject: Subject


class OtherImage(Finding, frozen=True, kw_only=True):
    """A base image that the spec asks for (`needed`) in place of the locked one."""

    code: ClassVar[str] = "unknown-release"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: str


class OtherHostRequirement(Finding, frozen=True, kw_only=True):
    """A host requirement of the lock, on `object`, that differs from the one that its stack has when it is solved again."""

    code: ClassVar[str] = "stale-host-requirements"
    is_stale: ClassVar[bool] = True
    object: str
    needed: str
    locked: str


class OtherVariable(Finding, frozen=True, kw_only=True):
    """An environment variable of the lock, `object`, that differs from the one that its stack has when it is solved again."""

    code: ClassVar[str] = "stale-environment"
    is_stale: ClassVar[bool] = True
    object: str
    needed: str
    locked: str


class Contradiction(Finding, frozen=True, kw_only=True):
    """The base of contradictions between two parts of a lock; `place` is the line of one of them."""

    code: ClassVar[str] = "contradiction"
    is_stale: ClassVar[bool] = True


class OtherKey(Contradiction, frozen=True, kw_only=True):
    """A key of a stack, `object`, whose value (`locked`) is not what the components and packages come to (`needed`)."""

    platform: str
    object: str
    needed: str
    locked: str


class OtherReason(Contradiction, frozen=True, kw_only=True):
    """A reason that is recorded under `object` (`locked`) and not one of the stack, or one of the stack (`needed`) that is not.

    The other of the two is "".
    """

    platform: str
    object: str
    needed: str = ""
    locked: str = ""


class OfUnstatedHosts(Finding, frozen=True, kw_only=True):
    """A different requirement, setup or variable of hosts, for which hosts on a command line may be why: the spec has none."""

    code: ClassVar[str] = "unverified"
    verdict: ClassVar[str] = "unverified"
    finding: OtherHostRequirement | OtherVariable | OtherHostSetup | OtherKey | OtherReason

    @property
    def command(self) -> Command | None:
        return CheckWithHosts()


class OtherGate(Finding, frozen=True, kw_only=True):
    """An NVIDIA_REQUIRE_CUDA in the lock that admits other hosts to the image than the stack runs on."""

    code: ClassVar[str] = "stale-gate"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: str


class OtherSystemPackages(Finding, frozen=True, kw_only=True):
    """Packages of the base image's distribution that the image would have beside those it needs, or lack."""

    code: ClassVar[str] = "stale-system-packages"
    is_stale: ClassVar[bool] = True
    needed: tuple[str, ...]
    locked: tuple[str, ...]


class OtherHostSetup(Finding, frozen=True, kw_only=True):
    """A way to bring hosts with the system `object` to the stack that is not the one of the lock; either may be missing."""

    code: ClassVar[str] = "stale-host-setup"
    is_stale: ClassVar[bool] = True
    object: str
    is_locked: bool
    is_needed: bool


class MissingPackage(Finding, frozen=True, kw_only=True):
    """A required distribution, `object`, that is not locked; `by` is the requirement."""

    code: ClassVar[str] = "missing-package"
    is_stale: ClassVar[bool] = True
    object: str
    by: Reason


class StalePackage(Finding, frozen=True, kw_only=True):
    """The base of findings on a locked package that does not satisfy the spec, the matrix or the hosts."""

    code: ClassVar[str] = "stale-package"
    is_stale: ClassVar[bool] = True


class OtherVersion(StalePackage, frozen=True, kw_only=True):
    """A locked version that a requirement, constraint or override (`by`) excludes."""

    subject: Subject
    by: Reason


class OtherFile(StalePackage, frozen=True, kw_only=True):
    """A locked package from another file than the one that a requirement (`by`) names."""

    subject: Subject
    by: Reason


class OtherHash(StalePackage, frozen=True, kw_only=True):
    """A locked package with a file that has none of the hashes in the spec."""

    subject: Subject


class MissingExtras(StalePackage, frozen=True, kw_only=True):
    """A distribution that is locked without `extras` that the spec requires."""

    subject: Subject
    extras: tuple[str, ...]
    by: Reason


class UnrecordedExtras(Finding, frozen=True, kw_only=True):
    """A lock by an earlier version of this program, which does not say if it covers the `extras` that the spec requires."""

    code: ClassVar[str] = "unverified"
    verdict: ClassVar[str] = "unverified"
    subject: Subject
    extras: tuple[str, ...]
    by: Reason


class UnneededExtras(StalePackage, frozen=True, kw_only=True):
    """A distribution that is locked with `extras` that nothing requires any more."""

    subject: Subject
    extras: tuple[str, ...]


class ForbiddenRelease(StalePackage, frozen=True, kw_only=True):
    """A locked package that is a `prerelease` or an `sdist`, the `word` that the policy forbids."""

    subject: Subject
    word: str


class SourceDistribution(StalePackage, frozen=True, kw_only=True):
    """A locked package that is a source distribution, which the policy does not allow."""

    subject: Subject


class LateUpload(StalePackage, frozen=True, kw_only=True):
    """A locked file that was uploaded after `until`, the last day that the policy allows."""

    subject: Subject
    until: str


class NewerGlibc(StalePackage, frozen=True, kw_only=True):
    """A locked wheel that needs a newer glibc than the target has; `by` is the host fact giving the target's glibc, or None."""

    subject: Subject
    file: str
    needed: str
    locked: str
    by: Ground | None = None


class NotInstallable(StalePackage, frozen=True, kw_only=True):
    """A locked wheel whose tags do not fit the target; `problem` is the error message that says why."""

    subject: Subject
    file: str
    problem: str


class UnknownGlibc(Finding, frozen=True, kw_only=True):
    """A locked wheel that needs a version of glibc (`needed`), while that of the target is unknown."""

    code: ClassVar[str] = "unverified"
    verdict: ClassVar[str] = "unverified"
    subject: Subject
    file: str
    needed: str


class FileClash(StalePackage, frozen=True, kw_only=True):
    """Locked distributions that write the same files, according to a row of the matrix with the reason `because`."""

    subjects: tuple[Subject, ...]
    file: str
    because: str


class UnmetNeed(StalePackage, frozen=True, kw_only=True):
    """A requirement of a locked release, stated by the matrix, that the lock does not meet.

    `object` is the required component or distribution, `locked` its locked version, "" for none.
    """

    subject: Subject
    object: str
    needed: str
    locked: str
    because: str


class OtherAbi(StalePackage, frozen=True, kw_only=True):
    """A locked wheel that needs a build of PyTorch of the other C++ ABI than the locked `build` has.

    `needs_new`: the wheel needs the new ABI.
    """

    subject: Subject
    needs_new: bool
    build: str


class OtherRuns(Finding, frozen=True, kw_only=True):
    """A lock for running in a container, while the spec asks to run on the host itself (`needed`), or vice versa."""

    code: ClassVar[str] = "stale-runs"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: str


class UnlistedIndex(Struct, frozen=True):
    """An index that the spec does not list."""

    index: str


class DedicatedIndex(Struct, frozen=True, kw_only=True):
    """A locked `index` that is not `dedicated`, the index whose `packages` in the spec match the locked packages."""

    index: str
    dedicated: str


class IndexOfOthers(Struct, frozen=True):
    """An index that the spec uses only for packages that match `patterns`, while the locked packages do not."""

    index: str
    patterns: tuple[str, ...]


class MovedIndex(Struct, frozen=True, kw_only=True):
    """An index for which the spec has another URL than the lock."""

    index: str
    locked: str
    needed: str


IndexDifference = UnlistedIndex | DedicatedIndex | IndexOfOthers | MovedIndex


class OtherIndex(Finding, frozen=True, kw_only=True):
    """Packages that are locked from an index that the spec does not allow for them; `difference` says why."""

    code: ClassVar[str] = "stale-index"
    is_stale: ClassVar[bool] = True
    subjects: tuple[Subject, ...]
    difference: IndexDifference


class UnneededPackages(Finding, frozen=True, kw_only=True):
    """Locked packages that nothing in the spec requires."""

    code: ClassVar[str] = "unasked-package"
    is_stale: ClassVar[bool] = True
    subjects: tuple[Subject, ...]


class MissingArtefact(Finding, frozen=True, kw_only=True):
    """A local file of a lock that does not exist."""

    code: ClassVar[str] = "missing-artefact"
    subject: Subject
    file: str


class ChangedArtefact(Finding, frozen=True, kw_only=True):
    """A local file of a lock with another sha256: `found` in place of `locked`."""

    code: ClassVar[str] = "changed-artefact"
    file: str
    locked: str
    found: str


class ResizedArtefact(Finding, frozen=True, kw_only=True):
    """A local file of a lock with another size in bytes: `found` in place of `locked`."""

    code: ClassVar[str] = "changed-artefact"
    file: str
    locked: int
    found: int


class VanishedFile(Finding, frozen=True, kw_only=True):
    """A locked file that its index no longer lists."""

    code: ClassVar[str] = "vanished-file"
    drift: FileDrift

    @property
    def command(self) -> Command | None:
        return Solve()


class ExchangedFile(Finding, frozen=True, kw_only=True):
    """A locked file that its index lists with other content."""

    code: ClassVar[str] = "exchanged-file"
    drift: FileDrift


class OtherComponent(Contradiction, frozen=True, kw_only=True):
    """A component, `object`, whose version in the stack (`needed`) is not that of its locked package, `subject`."""

    subject: Subject
    object: str
    needed: str


class OtherBuild(Contradiction, frozen=True, kw_only=True):
    """A locked wheel of PyTorch that is not the wheel of the stack's build."""

    subject: Subject
    needed: str
    locked: str


class NoPython(Contradiction, frozen=True, kw_only=True):
    """A stack with packages that names no Python."""

    platform: str


class PythonNotAdmitted(Contradiction, frozen=True, kw_only=True):
    """A Python of the stack (`needed`) that the lock's `requires-python` (`locked`) excludes."""

    needed: str
    locked: str


class EnvironmentsRefuse(Contradiction, frozen=True, kw_only=True):
    """A platform and Python that the lock was solved for and that the markers in its `environments` exclude."""

    platform: str
    python: str


class EnvironmentsAdmit(Contradiction, frozen=True, kw_only=True):
    """Platforms and Pythons that the lock was not solved for and that its `environments` or `requires-python` (`key`) admits.

    `pythons` are the first and the last such Python series.
    """

    key: str
    platforms: tuple[str, ...]
    pythons: tuple[str, str]


class MarkerDisagrees(Contradiction, frozen=True, kw_only=True):
    """A package whose `marker` selects it on a `platform` for which it is not locked, or does not where it is locked.

    `is_locked`: the package is locked for the platform. The marker "" selects the package on every platform.
    """

    subject: Subject
    platform: str
    marker: str
    is_locked: bool


class PackagePython(Contradiction, frozen=True, kw_only=True):
    """A package whose Requires-Python (`needed`) excludes the Python of the stack (`locked`)."""

    subject: Subject
    platform: str
    needed: str
    locked: str


class NoFileForPlatform(Contradiction, frozen=True, kw_only=True):
    """A package without a file for a platform that it is locked for."""

    subject: Subject
    platform: str
    files: tuple[str, ...]


class TooManyFiles(Contradiction, frozen=True, kw_only=True):
    """A package with more files than platforms, though one for each was solved."""

    subject: Subject
    platforms: tuple[str, ...]
    files: tuple[str, ...]


class UnusableAddress(Contradiction, frozen=True, kw_only=True):
    """A URL of a file from which other machines cannot download it."""

    subject: Subject
    url: str


class LoginInAddress(Contradiction, frozen=True, kw_only=True):
    """A URL of a file that contains a login."""

    subject: Subject


class OtherWheel(Contradiction, frozen=True, kw_only=True):
    """A wheel or source distribution whose name is that of another distribution or version than its package."""

    subject: Subject
    file: str


class OtherAddress(Contradiction, frozen=True, kw_only=True):
    """A URL that ends in the name of another file (`found`) than the one that is locked (`file`)."""

    subject: Subject
    file: str
    found: str


class NoAddress(Contradiction, frozen=True, kw_only=True):
    """A file with neither URL nor path."""

    subject: Subject
    file: str


class SameHash(Contradiction, frozen=True, kw_only=True):
    """Two files with one hash, which would have the same content under two names."""

    subject: Subject
    files: tuple[str, str]


class OtherInstaller(Contradiction, frozen=True, kw_only=True):
    """A program, `locked`, in place of the installer that rendered files call (`needed`)."""

    platform: str
    needed: str
    locked: str


class TwoAddresses(Contradiction, frozen=True, kw_only=True):
    """An index, `object`, with two URLs; or a URL, `object`, with two names. `values` are the two, "" for none."""

    object: str
    values: tuple[str, str]


class OtherDependency(Contradiction, frozen=True, kw_only=True):
    """A package whose `dependencies` and `requires` differ in one locked distribution, `object`.

    `is_required`: it is among the requirements, and missing among the dependencies.
    """

    subject: Subject
    object: str
    is_required: bool


class OtherRequest(Contradiction, frozen=True, kw_only=True):
    """A key under `asked`, `object`, whose value is not that of the spec from which the lock was made; "" for a missing key."""

    object: str
    needed: str
    locked: str


class OtherName(Finding, frozen=True, kw_only=True):
    """The name of the environment in the spec (`needed`) in place of the name in the lock (`locked`)."""

    code: ClassVar[str] = "stale-name"
    is_stale: ClassVar[bool] = True
    needed: str
    locked: str


class UnaskedPlatforms(Finding, frozen=True, kw_only=True):
    """Platforms of the lock beside those that the spec names (`needed`)."""

    code: ClassVar[str] = "unasked-platform"
    is_stale: ClassVar[bool] = True
    platforms: tuple[str, ...]
    needed: tuple[str, ...]


class LockedTwice(Contradiction, frozen=True, kw_only=True):
    """A distribution, `object`, with two package entries for the same platform."""

    object: str
    platform: str
    versions: tuple[str, str]


class UnlockedDependency(Contradiction, frozen=True, kw_only=True):
    """A dependency, `object`, which the locked package `subject` records and the lock lacks."""

    subject: Subject
    object: str


class OtherPin(Contradiction, frozen=True, kw_only=True):
    """A component whose recorded reasons are about another version (`locked`) than the stack has (`needed`)."""

    platform: str
    object: str
    needed: str
    locked: str


class EvidenceOf(Struct, frozen=True, kw_only=True):
    """The file in which evidence of a lock on one platform belongs, and the command that writes it anew."""

    platform: str
    file: str
    validate: Validate


class AboutEvidence(Finding, frozen=True, kw_only=True):
    """The base of findings on the evidence of a lock on one platform."""

    verdict: ClassVar[str] = "unverified"
    about: EvidenceOf

    @property
    def file(self) -> str:
        """The file in which the evidence belongs."""
        return self.about.file

    @property
    def platform(self) -> str:
        """The platform of the lock that the evidence is about."""
        return self.about.platform

    @property
    def command(self) -> Command | None:
        return self.about.validate


class ProvenEvidence(AboutEvidence, frozen=True, kw_only=True):
    """Evidence of exactly this lock that proves the levels up to `level`, begun at `time` (UTC), with `engine`, "" for none."""

    code: ClassVar[str] = "evidence"
    verdict: ClassVar[str] = "yes"
    level: int
    name: str
    engine: str
    time: str

    @property
    def command(self) -> Command | None:
        return None


class MissingEvidence(AboutEvidence, frozen=True, kw_only=True):
    """Evidence that does not exist."""

    code: ClassVar[str] = "missing-evidence"


class StaleEvidence(AboutEvidence, frozen=True, kw_only=True):
    """Evidence of another lock file, Dockerfile or platform: `found` in place of `needed`; of files, these are hashes."""

    code: ClassVar[str] = "stale-evidence"
    difference: Literal["lock", "Dockerfile", "platform"]
    needed: str
    found: str


class WeakEvidence(AboutEvidence, frozen=True, kw_only=True):
    """Evidence that proves no more than the levels up to `proven`, None for no level, of `level`, whose name is `name`.

    `unverified` are the facts that could not be measured; `idle` is the reason for which the level has nothing to do for the
    lock, "" if it has.
    """

    code: ClassVar[str] = "weak-evidence"
    level: int
    name: str
    proven: int | None
    unverified: tuple[str, ...]
    idle: str = ""

    @property
    def command(self) -> Command | None:
        return None if self.idle else self.about.validate


class FailedEvidence(AboutEvidence, frozen=True, kw_only=True):
    """Evidence that the image is not as locked: the facts `wrong` are a no."""

    code: ClassVar[str] = "failed-evidence"
    verdict: ClassVar[str] = "no"
    wrong: tuple[str, ...]


class EditedEvidence(AboutEvidence, frozen=True, kw_only=True):
    """Evidence whose parts, or whose hash, no longer agree with each other."""

    code: ClassVar[str] = "edited-evidence"
    verdict: ClassVar[str] = "no"


class UnreadableEvidence(AboutEvidence, frozen=True, kw_only=True):
    """A file in place of evidence that cannot be read as such; `mistakes` are the first of its mistakes, with their places."""

    code: ClassVar[str] = "unreadable-evidence"
    problem: str
    mistakes: tuple[str, ...]


def line_of(ground: Ground) -> Place | None:
    """Return the line of a file that a ground was read from; None when its source is not a file."""
    match ground.source:
        case Place() as place:
            return place
        case HostPlace(place=place):
            return place
    return None


def evidence_fields(finding: AboutEvidence) -> dict[str, object]:
    """Return what a finding on evidence has beside the fields of other findings: platform, proven level, engine and time.

    What does not apply is left out.
    """
    match finding:
        case ProvenEvidence(level=level, engine=engine, time=time):
            found = {"level": level, "engine": engine or None, "time": time}
        case WeakEvidence(proven=proven):
            found = {"level": proven}
        case _:
            found = {}
    return {"platform": finding.platform, **{key: value for key, value in found.items() if value is not None}}


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
    needed: str | tuple[str, ...] = getattr(finding, "needed", "")
    ranges: tuple[str, ...] = needed if isinstance(needed, tuple) else (needed,) if needed else ()
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
