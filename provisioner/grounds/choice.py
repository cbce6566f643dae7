"""Reasons why one version was chosen and not another: upgrades, versions held back or passed over, and cautions."""

from __future__ import annotations

from msgspec import Struct

from provisioner.grounds.notice import SourceNotice
from provisioner.grounds.requirement import Ground, Subject  # noqa: TC001 - part of types that are matched at run time
from provisioner.places import Place  # noqa: TC001 - as above


class AskedFor(Struct, frozen=True):
    """The user's request to upgrade the package or component by name."""


class NoLongerOffered(Struct, frozen=True, kw_only=True):
    """A locked version that no index offers any more, or, unless `is_distribution`, that the matrix does not list."""

    name: str
    label: str
    is_distribution: bool


class NotInstallable(Struct, frozen=True, kw_only=True):
    """A locked version that was withdrawn or has no file that can be installed; `problem` says which."""

    name: str
    label: str
    problem: str


class RuledOut(Struct, frozen=True, kw_only=True):
    """A requirement because of which a version does not fit into the answer.

    Either another release in the answer has the requirement, and `has` is "", or the excluded version itself has it; then `has`
    is the version in the answer that does not meet the requirement.
    """

    ground: Ground
    has: str = ""


class NothingMeets(Struct, frozen=True, kw_only=True):
    """A requirement of a version that nothing meets of which a file can be used with `python`."""

    ground: Ground
    python: str


class NothingHolds(Struct, frozen=True, kw_only=True):
    """The fact that no solution has the locked version or, if `is_newer`, a newer one."""

    is_newer: bool


MoveReason = AskedFor | NoLongerOffered | NotInstallable | RuledOut | NothingHolds


class Move(Struct, frozen=True, kw_only=True):
    """The effect of an upgrade on one package or component of a lock: the versions `before` and `after`, and the reason.

    The versions are equal if an upgrade was requested and no newer version is possible.
    """

    name: str
    before: str
    after: str
    reason: MoveReason


class HeldBack(Struct, frozen=True, kw_only=True):
    """A framework in an older release than the spec, the hosts and the matrix allow, because packages require it.

    Or a package of the spec, because the hosts refuse its newest version, or something that it requires. `newest` is the newest
    release that is allowed otherwise, `by` the requirement that excludes it, and `more` the number of further such
    requirements. `because` is why nothing meets the requirement of a package. `python` is the chosen Python if what is required
    has files for others alone, "" otherwise.
    """

    component: str
    chosen: str
    newest: str
    by: Ground
    more: int = 0
    because: Ground | None = None
    python: str = ""


class StepReason(Struct, frozen=True, kw_only=True):
    """The requirement because of which a step of a plan is needed, or has its position: `ground` would be violated otherwise.

    `is_stop`: the step is to an intermediate version. `changed_first` is the part of the machine that would otherwise change
    earlier, "" for a step that is needed in any order.
    """

    ground: Ground
    is_stop: bool = False
    changed_first: str = ""


class InstallDriver(Struct, frozen=True, kw_only=True):
    """A GPU driver to install on a host that states none; `module` is the flavour of its kernel modules, "" for none."""

    component: str
    version: str
    module: str
    host: str


class LockKeeps(Struct, frozen=True, kw_only=True):
    """The version in the earlier lock, which is preferred to a newer one."""

    name: str
    label: str


class PolicyPrefers(Struct, frozen=True, kw_only=True):
    """An entry of the policy that prefers or avoids a range of a component or distribution; `table` is `prefer` or `avoid`."""

    table: str
    name: str
    range: str
    place: Place


class StrategyIsOldest(Struct, frozen=True, kw_only=True):
    """The strategy `oldest` of the policy, which prefers older releases."""

    place: Place


class ComesFirst(Struct, frozen=True, kw_only=True):
    """A component or distribution, `name`, that comes first in the order of preference and that the newer release would change.

    `before` is the version of `name` in the answer, "" if the answer lacks it; `after` is the version of `name` beside the
    newer release, "" if it would be left out.
    """

    name: str
    before: str
    after: str


class NotFirst(Struct, frozen=True):
    """The order of preference, which puts the chosen release before the newer one; the two answers differ in nothing else."""


class BundledVersion(Struct, frozen=True, kw_only=True):
    """The distribution that bundles the version in question."""

    distribution: str
    version: str


class CannotTell(Struct, frozen=True, kw_only=True):
    """An index that cannot be reached, so that it is unknown whether the version would work; `problem` is the error message."""

    problem: str


PassedOver = LockKeeps | PolicyPrefers | StrategyIsOldest | ComesFirst | NotFirst | BundledVersion | CannotTell


class Yanked(Struct, frozen=True, kw_only=True):
    """A chosen version that its index has yanked (PEP 592), for the `reason` that the index gives, "" for none."""

    name: str
    version: str
    reason: str


class UnknownExtra(Struct, frozen=True, kw_only=True):
    """A requested extra that its distribution does not have.

    `known` are the extras of the distribution, `nearest` the one that may be meant, "" for none, and `requested_by` the
    requirement with the extra, None when it is unknown.
    """

    name: str
    version: str
    extra: str
    known: tuple[str, ...]
    nearest: str
    requested_by: Ground | None


class IndexLeftOut(Struct, frozen=True, kw_only=True):
    """Indexes of PyTorch builds that cannot be reached, so that a preferable build may have been missed."""

    indexes: tuple[str, ...]
    problem: str


class ShownByDriver(Struct, frozen=True, kw_only=True):
    """Facts that a host does not state, but that must be good enough for the driver, because the host runs that driver."""

    host: str
    driver: str
    facts: tuple[str, ...]


class Unread(Struct, frozen=True, kw_only=True):
    """Facts that a host states, by the keys of its profile, and on which no requirement of the stack depends."""

    host: str
    keys: tuple[str, ...]


class InstalledForGpu(Struct, frozen=True, kw_only=True):
    """A framework, `name`, that is installed as `distribution` with `extras`, which the spec does not name, for its GPUs.

    `accelerator` is the label of what the GPUs compute with, such as `CUDA`. `cpu_twin` is the distribution of the same modules
    without GPU code, "" if none is known.
    """

    name: str
    distribution: str
    extras: tuple[str, ...]
    accelerator: str
    cpu_twin: str


class LoweredTarget(Struct, frozen=True, kw_only=True):
    """A GPU (`device`) for which code of an older architecture (`target`) is compiled, because `nvcc` does not know the GPU."""

    device: str
    target: str
    nvcc: str


class MissingKernels(Struct, frozen=True, kw_only=True):
    """A library (`subject`) without kernels for some GPUs (`devices`); `because` says what then happens."""

    subject: Subject
    devices: tuple[str, ...]
    because: str


class WithoutLibraries(Struct, frozen=True, kw_only=True):
    """A version that can do without some libraries (`sonames`), which nothing in the answer contains.

    `gives` is what only works with them.
    """

    name: str
    version: str
    sonames: tuple[str, ...]
    gives: str


class UnlistedRelease(Struct, frozen=True, kw_only=True):
    """Releases of a component, newest first, that an index has and the matrix does not list yet."""

    component: str
    versions: tuple[str, ...]


Caution = (
    LoweredTarget | MissingKernels | WithoutLibraries | Yanked | UnknownExtra | IndexLeftOut | UnlistedRelease | SourceNotice
)
