"""Why one version was chosen and not another: what an upgrade moved, what is held back, what was passed over, and cautions."""

from __future__ import annotations

from msgspec import Struct

from provisioner.grounds.requirement import Ground  # noqa: TC001 - part of types that are matched at run time
from provisioner.places import Place  # noqa: TC001 - as above


class AskedFor(Struct, frozen=True):
    """It was asked for."""


class NoLongerOffered(Struct, frozen=True, kw_only=True):
    """No index offers a version any longer, or the matrix has none such."""

    name: str
    label: str
    is_distribution: bool


class NotInstallable(Struct, frozen=True, kw_only=True):
    """No file of a version can be installed, or it was withdrawn."""

    name: str
    label: str
    problem: str


class RuledOut(Struct, frozen=True, kw_only=True):
    """A requirement of the answer rules a version out; `has` is what the answer has, where the version itself requires it."""

    ground: Ground
    has: str = ""


class NothingHolds(Struct, frozen=True, kw_only=True):
    """Nothing holds together with a version kept, or with a newer one."""

    is_newer: bool


MoveReason = AskedFor | NoLongerOffered | NotInstallable | RuledOut | NothingHolds


class Move(Struct, frozen=True, kw_only=True):
    """What became of one version of an earlier lock where some of it was to be upgraded; `before` may be `after`.

    `reason` is None where nothing newer is offered.
    """

    name: str
    before: str
    after: str
    reason: MoveReason


class HeldBack(Struct, frozen=True, kw_only=True):
    """A framework that is older than the spec, the hosts and the matrix would have it.

    `by` is the requirement of the package that refuses the newest; `more` packages refuse it too.
    """

    component: str
    chosen: str
    newest: str
    by: Ground
    more: int = 0


class StepReason(Struct, frozen=True, kw_only=True):
    """Why a step of a plan is needed, or comes where it does: a ground that would not hold without it.

    `is_stop`: the step is a stop on the way; `changed_first` is the part of the machine that would otherwise be changed first.
    """

    ground: Ground
    is_stop: bool = False
    changed_first: str = ""


class LockKeeps(Struct, frozen=True, kw_only=True):
    """The earlier lock has another version."""

    name: str
    label: str


class PolicyPrefers(Struct, frozen=True, kw_only=True):
    """The policy prefers or avoids a range of it; `table` is `prefer` or `avoid`."""

    table: str
    name: str
    range: str
    place: Place


class StrategyIsOldest(Struct, frozen=True, kw_only=True):
    """The policy's strategy is `oldest`."""

    place: Place


class ComesFirst(Struct, frozen=True, kw_only=True):
    """Something that is decided before it would be another version; `before` and `after` are "" where it would be left out."""

    name: str
    before: str
    after: str


class NotFirst(Struct, frozen=True):
    """The order of preference takes something else first."""


class BundledVersion(Struct, frozen=True, kw_only=True):
    """It is the version that a distribution bundles."""

    distribution: str
    version: str


class CannotTell(Struct, frozen=True, kw_only=True):
    """Whether it would work cannot be told, because an index is out of reach; `problem` is what the index says."""

    problem: str


PassedOver = LockKeeps | PolicyPrefers | StrategyIsOldest | ComesFirst | NotFirst | BundledVersion | CannotTell


class Yanked(Struct, frozen=True, kw_only=True):
    """A chosen version is yanked, with the reason that its index gives, "" for none."""

    name: str
    version: str
    reason: str


class UnknownExtra(Struct, frozen=True, kw_only=True):
    """An extra that its distribution does not have, and who asks for it; `known` are those it has, None where nobody says."""

    name: str
    version: str
    extra: str
    known: tuple[str, ...]
    nearest: str
    asked_by: Ground | None


class IndexLeftOut(Struct, frozen=True, kw_only=True):
    """Indexes of PyTorch's builds that were out of reach, so that something more wanted may have been missed."""

    indexes: tuple[str, ...]
    problem: str


class Notice(Struct, frozen=True):
    """What an index or an earlier lock has to say about the source of a package."""

    text: str


Caution = Yanked | UnknownExtra | IndexLeftOut | Notice
