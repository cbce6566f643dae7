"""Reasons why one version was chosen and not another: upgrades, versions held back or passed over, and cautions."""

from __future__ import annotations

from msgspec import Struct

from provisioner.grounds.notice import SourceNotice
from provisioner.grounds.requirement import Ground  # noqa: TC001 - part of types that are matched at run time
from provisioner.places import Place  # noqa: TC001 - as above


class AskedFor(Struct, frozen=True):
    """The upgrade was requested by name."""


class NoLongerOffered(Struct, frozen=True, kw_only=True):
    """A locked version is no longer offered by any index, or is not in the matrix."""

    name: str
    label: str
    is_distribution: bool


class NotInstallable(Struct, frozen=True, kw_only=True):
    """A locked version was withdrawn, or has no file that can be installed."""

    name: str
    label: str
    problem: str


class RuledOut(Struct, frozen=True, kw_only=True):
    """A requirement of the answer rules a version out.

    `has` is "" unless the version itself has the requirement: then it is the version in the answer that does not meet it.
    """

    ground: Ground
    has: str = ""


class NothingHolds(Struct, frozen=True, kw_only=True):
    """No solution keeps the locked version, or, with `is_newer`, has a newer one."""

    is_newer: bool


MoveReason = AskedFor | NoLongerOffered | NotInstallable | RuledOut | NothingHolds


class Move(Struct, frozen=True, kw_only=True):
    """The new version of a package or component of an earlier lock after an upgrade of some; `before` may equal `after`.

    `reason` says why.
    """

    name: str
    before: str
    after: str
    reason: MoveReason


class HeldBack(Struct, frozen=True, kw_only=True):
    """A framework in an older release than the spec, the hosts and the matrix allow.

    `by` is the requirement of a package that rules the newest release out; `more` is the number of other such packages.
    """

    component: str
    chosen: str
    newest: str
    by: Ground
    more: int = 0


class StepReason(Struct, frozen=True, kw_only=True):
    """Why a step of a plan is needed, or has its position: `ground` would be violated otherwise.

    `is_stop`: the step is an intermediate version; `changed_first` is the part of the machine that would otherwise change
    earlier.
    """

    ground: Ground
    is_stop: bool = False
    changed_first: str = ""


class InstallDriver(Struct, frozen=True, kw_only=True):
    """A driver of GPUs must be installed on a host that states none; `module` is the flavour of its modules, "" for none."""

    component: str
    version: str
    module: str
    host: str


class LockKeeps(Struct, frozen=True, kw_only=True):
    """The earlier lock has another version, which is preferred."""

    name: str
    label: str


class PolicyPrefers(Struct, frozen=True, kw_only=True):
    """The policy prefers or avoids a range of a component or distribution; `table` is `prefer` or `avoid`."""

    table: str
    name: str
    range: str
    place: Place


class StrategyIsOldest(Struct, frozen=True, kw_only=True):
    """The policy's strategy is `oldest`."""

    place: Place


class ComesFirst(Struct, frozen=True, kw_only=True):
    """A component or distribution that is chosen earlier would change from `before` to `after`, "" if it would be left out."""

    name: str
    before: str
    after: str


class NotFirst(Struct, frozen=True):
    """The order of preference takes another solution first."""


class BundledVersion(Struct, frozen=True, kw_only=True):
    """The version in question is the one that a distribution bundles."""

    distribution: str
    version: str


class CannotTell(Struct, frozen=True, kw_only=True):
    """Whether the version would work is unknown, because an index cannot be reached; `problem` is the error message."""

    problem: str


PassedOver = LockKeeps | PolicyPrefers | StrategyIsOldest | ComesFirst | NotFirst | BundledVersion | CannotTell


class Yanked(Struct, frozen=True, kw_only=True):
    """A chosen version is yanked, for the `reason` that its index gives, "" for none."""

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
    """The driver that a host runs shows that facts which the host does not state are good enough for that driver."""

    host: str
    driver: str
    facts: tuple[str, ...]


class Unread(Struct, frozen=True, kw_only=True):
    """A host states facts, by the keys of its profile, on which no requirement of the stack depends."""

    host: str
    keys: tuple[str, ...]


class LoweredTarget(Struct, frozen=True, kw_only=True):
    """A GPU (`device`) is compiled for as an older architecture (`target`), for the compiler does not know the GPU."""

    device: str
    target: str
    nvcc: str


class UnlistedRelease(Struct, frozen=True, kw_only=True):
    """An index has releases of a component, newest first, that the matrix does not list yet."""

    component: str
    versions: tuple[str, ...]


Caution = LoweredTarget | Yanked | UnknownExtra | IndexLeftOut | UnlistedRelease | SourceNotice
