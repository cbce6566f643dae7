"""Causes of changes in components and host requirements between two locks, as far as the locks prove them.

A changed request is the cause only if it rules the other version out, a rule only if one lock lacks it. That two things
changed at once proves nothing; without proof, the cause is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.components import FRAMEWORKS
from provisioner.grounds.change import (
    ByAccelerator,
    ByCudaOfImage,
    ByImage,
    ByKey,
    ByLostRule,
    ByMatrix,
    ByPart,
    ByPythonOfImage,
    ByRequest,
    ByRule,
    ByRuns,
    RecordedRule,
    RegistryAsked,
    TagMoved,
)
from provisioner.grounds.fields import type_of
from provisioner.grounds.predicate import CompiledFor
from provisioner.lock.diff.package_causes import by_day, requested_causes, unknown
from provisioner.lock.requested import ANY_VERSION
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.change import Cause, Change
    from provisioner.lock.diff.side import Side
    from provisioner.lock.format.model import Reason

_KEYS_OF = {"image": "image.", "accelerator": "accelerator", "runs": "runs"}
"""Prefixes of the keys of the spec that set a subject directly."""


_PARTS_BEHIND = {
    "driver": ("cuda", *FRAMEWORKS),
    "basis": ("cuda", *FRAMEWORKS),
    "require_cuda": ("cuda", *FRAMEWORKS),
    "gpu": FRAMEWORKS,
    "arch_list": FRAMEWORKS,
    "require_base": ("image",),
}
"""Components that determine a host requirement: the framework's build has the compiled targets, CUDA the driver's floor."""

_OF_IMAGES = frozenset({"clang", "gcc", "glibc", "image", "installer", "nvcc"})
"""Components that the base image provides, and the installer, which exists only to install packages into an image."""

_SENTENCES = frozenset({"relaxations", "unverified", "assumes", "accepts"})
COMPILED_FOR = type_of(CompiledFor)


def system_causes(change: Change, old: Side, new: Side) -> tuple[Cause, ...]:
    """Return the causes of a change of a component, the image, a variable or a host requirement.

    The result is empty for relaxations and unverified facts, which a lock records as sentences, and otherwise never empty: an
    unknown cause is one, too.
    """
    subject = change.subject
    if subject in _SENTENCES:
        return ()
    found = tuple(_by_keys(subject, old, new)) or tuple(_by_stack(change, old, new))
    if not found and change.section == "hosts":
        found = tuple(_of_hosts(change, old, new))
    elif not found and subject == "image":
        found = tuple(_of_image(change, old, new))
    elif not found:
        found = tuple(_requested(change, old, new)) or tuple(_by_day(change, old, new))
        found = found or tuple(_by_rules(change, old, new))
        found = found or tuple(_by_image(change, old, new))
    return found or (unknown(old, new),)


def _by_keys(subject: str, old: Side, new: Side) -> Iterator[Cause]:
    prefix = _KEYS_OF.get(subject)
    if old.requested is None or new.requested is None or prefix is None:
        return
    for key in sorted({*old.requested, *new.requested}):
        before, after = old.requested.get(key), new.requested.get(key)
        if key.startswith(prefix) and before != after:
            yield ByKey(key=key, before=before, after=after, places=new.places_of(key))


def _by_stack(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the cause of a change that another change of the whole stack explains: where it runs, or its accelerator."""
    assert old.stack is not None, "causes of a system are those of a stack"
    assert new.stack is not None, "causes of a system are those of a stack"
    if old.stack.runs != new.stack.runs and change.subject in _OF_IMAGES and not (change.old and change.new):
        yield ByRuns(runs=new.stack.runs)
    elif old.stack.accelerator != new.stack.accelerator and change.subject in {*FRAMEWORKS, "gpu"}:
        yield ByAccelerator(accelerator=new.stack.accelerator)


def _requested(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the changed request for a component, or for the distribution as which a framework is installed."""
    name = DISTRIBUTION_OF_COMPONENT.get(change.subject)
    keys = {key for side in (old, new) for key in side.requested or ()}
    is_package = name is not None and f"requires.{change.subject}" not in keys and f"packages.{name}" in keys
    if name != change.subject or not is_package:
        yield from _by_request(change, old, new)
    if name is not None and (name != change.subject or is_package):
        yield from requested_causes(replace(change, subject=name), old, new)


def _by_day(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the changed day whose later files are ignored, for a framework that is installed from an index."""
    name = DISTRIBUTION_OF_COMPONENT.get(change.subject)
    if name is not None:
        yield from by_day(name, old, new)


def _by_request(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    before, after = old.request(change.subject), new.request(change.subject)
    was, now = before.range if before else "", after.range if after else ""
    last = after or before
    if last is not None and was != now and (_excludes(now, change.old) or _excludes(was, change.new)):
        yield ByRequest(name=change.subject, before=was, after=now, is_distribution=False, places=last.places)


def _excludes(wanted: str, version: str) -> bool:
    """Return whether a request excludes a version; True for a request that is not a range, unless it allows any version."""
    if not wanted or not version:
        return False
    try:
        return not Range.parse(wanted).allows(Version.parse(version))
    except ValueError:
        return wanted != ANY_VERSION


def _by_rules(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the new rules that rule the old version out; without one, the dropped rules that rule the new version out.

    For an added component the first new rule is yielded, for a removed component the first dropped one.
    """
    subject = change.subject
    before, after = _rules(old, subject), _rules(new, subject)
    came = [reason for reason in after if reason not in before]
    binding = [reason for reason in came if _rules_out(reason, subject, change.old)]
    if not change.old:
        binding = came[:1]
    elif not change.new:
        binding = []
    if binding:
        yield from (_by_rule(reason, old, new) for reason in binding)
        return
    gone = [reason for reason in before if reason not in after and reason.component != "image"]
    for reason in gone[:1] if not change.new else [one for one in gone if _rules_out(one, subject, change.new)]:
        yield _by_lost_rule(reason, old, new)


def _rules(side: Side, subject: str) -> list[Reason]:
    """Return the recorded rules of other components about `subject`, a component or a host fact."""
    return [one for one in side.reasons.get(subject, ()) if one.kind == "rule" and one.component != subject]


def _rules_out(reason: Reason, subject: str, version: str) -> bool:
    """Return whether a recorded rule rules a version of `subject` out.

    Locks of earlier versions of this program record no ranges, so their rules count as ruling every version out.
    """
    if not reason.type:
        return bool(version)
    if reason.object != subject or not reason.ranges or not version:
        return False
    try:
        return not any(Range.parse(one).allows(Version.parse(version)) for one in reason.ranges)
    except ValueError:
        return False


def _recorded(reason: Reason) -> RecordedRule:
    return RecordedRule(reason.component, reason.text, reason.where)


def _by_rule(reason: Reason, old: Side, new: Side) -> Cause:
    """Return the cause for a rule that only the new lock has: a change of the rule's component, otherwise of the matrix."""
    if old.label(reason.component) != new.label(reason.component):
        return ByRule(rule=_recorded(reason))
    return ByMatrix(rule=_recorded(reason), is_new=True)


def _by_lost_rule(reason: Reason, old: Side, new: Side) -> Cause:
    now = new.label(reason.component)
    if old.label(reason.component) != now:
        return ByLostRule(rule=_recorded(reason), now=now)
    return ByMatrix(rule=_recorded(reason), is_new=False)


def _of_image(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the cause of a changed base image: another Python or CUDA, a moved tag, or a digest that was found now."""
    before, after = (side.stack.image if side.stack else None for side in (old, new))
    if before is None or after is None:
        return
    if before.reference == after.reference:
        if before.digest and after.digest:
            yield TagMoved()
        elif not before.digest and after.digest:
            yield RegistryAsked()
    elif before.python and old.labels.get("python") != new.labels.get("python"):
        yield ByPythonOfImage(image=before.reference, python=before.python)
    elif old.labels.get("cuda") != new.labels.get("cuda") and "cuda" in f"{change.old}{change.new}":
        yield ByCudaOfImage(image=after.reference, cuda=new.label("cuda") or "", before=old.label("cuda") or "")


def _by_image(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the changed base image as the cause, if a component is gone that the matrix does not list for the new image."""
    before, after = (side.stack.image if side.stack else None for side in (old, new))
    if change.subject in _OF_IMAGES and before and after and before.reference != after.reference and not change.new:
        yield ByImage(before=before.reference, after=after.reference)


def _of_hosts(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the rules behind a host requirement that only one lock has; if none, the first changed part that sets it.

    A part is a component, or a package that bundles CUDA.
    """
    fact = change.subject
    came, gone = _only_in(new, old, fact), _only_in(old, new, fact)
    if fact == "gpu":
        binding = dict.fromkeys(_narrowing(change, came, gone))
        came, gone = [one for one in came if one in binding], [one for one in gone if one in binding]
        yield from (_by_rule(reason, old, new) for reason in came)
        yield from (_by_lost_rule(reason, old, new) for reason in gone)
    elif came:
        yield from (_by_rule(reason, old, new) for reason in came)
    else:
        yield from (_by_lost_rule(reason, old, new) for reason in gone)
    if came or gone:
        return
    for part in (*_PARTS_BEHIND.get(fact, ()), *_packages_behind(change, old, new)):
        if old.label(part) != new.label(part):
            yield ByPart(part=part, before=old.label(part), after=new.label(part))
            return


def _only_in(side: Side, other: Side, fact: str) -> list[Reason]:
    """Return the rules behind a host requirement that one lock has and the other does not, whatever GPUs are recorded."""
    elsewhere = {replace(one, gpus=()) for one in _rules(other, fact)}
    return [one for one in _rules(side, fact) if replace(one, gpus=()) not in elsewhere]


def _narrowing(change: Change, came: Sequence[Reason], gone: Sequence[Reason]) -> Iterator[Reason]:
    """Yield the rules that explain a change of the supported GPUs, of those that only the new or only the old lock has.

    Other rules bound GPUs, too, but only rules that list GPUs decide what a lock lists. GPUs fall out because of a new rule
    that does not list them. They are gained because an old rule that does not list them is gone; the rule of the same component
    in the new lock is yielded in place of it, if there is one.
    """
    is_recorded = all(one.gpus for one in (*came, *gone) if _lists_targets(one))
    if not is_recorded or not (change.lost or change.gained):  # such as a lock of an earlier version of this program
        yield from filter(_lists_targets, came)
        return
    yield from (one for one in came if _leaves_out(one, change.lost))
    for reason in (one for one in gone if _leaves_out(one, change.gained)):
        yield next((one for one in came if one.gpus and one.component == reason.component), reason)


def _leaves_out(reason: Reason, gpus: Sequence[str]) -> bool:
    """Return whether a rule lists the GPUs that it allows, and lacks one of `gpus`."""
    return bool(reason.gpus) and not set(gpus).issubset(reason.gpus)


def _lists_targets(reason: Reason) -> bool:
    """Return whether a rule states the compiled targets of a build.

    Locks of earlier versions of this program record no type of a rule; in these, every rule of a framework counts.
    """
    return reason.type == COMPILED_FOR or (not reason.type and reason.component in FRAMEWORKS)


def _packages_behind(change: Change, old: Side, new: Side) -> Iterator[str]:
    """Yield the packages whose bundled CUDA sets the driver floor that only one of the two NVIDIA_REQUIRE_CUDA values has."""
    for side, here, elsewhere in ((old, change.old, change.new), (new, change.new, change.old)):
        for reason in _rules(side, "driver") if change.subject == "require_cuda" else ():
            floors = [one for one in reason.ranges if one.startswith(">=")] if reason.object == "driver" else []
            if reason.component in side.packages and any(_has(here, one) and not _has(elsewhere, one) for one in floors):
                yield reason.component


def _has(gate: str, floor: str) -> bool:
    """Return whether an alternative of NVIDIA_REQUIRE_CUDA has a driver floor, such as `>=525.60.13`."""
    return any(f"driver{floor}" in alternative.split(",") for alternative in gate.split())
