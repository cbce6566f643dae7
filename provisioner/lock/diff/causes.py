"""Why components and host requirements differ between two locks, as far as what they record says; else: unknown, in words.

A request counts as the cause only where it rules the other version out, a rule only where it is not in both locks. That
two things changed at once proves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.grounds.fields import type_of
from provisioner.grounds.predicate import CompiledFor
from provisioner.lock.diff.comparison import Cause
from provisioner.lock.diff.package_requests import asked_causes
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.diff.comparison import Change
    from provisioner.lock.diff.side import Side
    from provisioner.lock.format.model import Reason

_KEYS_OF = {"image": "image.", "accelerator": "accelerator", "runs": "runs"}
"""Keys of the spec that name a subject outright."""

_FRAMEWORKS = ("pytorch", "tensorflow", "jax")

_PARTS_BEHIND = {
    "driver": ("cuda", *_FRAMEWORKS),
    "basis": ("cuda", *_FRAMEWORKS),
    "require_cuda": ("cuda", *_FRAMEWORKS),
    "gpu": _FRAMEWORKS,
    "arch_list": _FRAMEWORKS,
    "require_base": ("image",),
}
"""Whose requirement it is: compiled targets are those of the framework's build, the driver's floor is that of its CUDA."""

_OF_IMAGES = frozenset({"clang", "gcc", "glibc", "image", "installer", "nvcc"})
"""What the base image brings, or is there only to fill one."""

_PLACES = {"container": "in a container", "host": "on the host itself"}

COMPILED_FOR = type_of(CompiledFor)

_SENTENCES = frozenset({"relaxations", "unverified"})


def system_causes(change: Change, old: Side, new: Side) -> tuple[Cause, ...]:
    """Why a component, the image, a variable or a host requirement is not the same; sentences of a lock need no cause."""
    subject = change.subject
    if subject in _SENTENCES:
        return ()
    found = tuple(_asked_by_key(subject, old, new)) or tuple(_of_stack(change, old, new))
    if not found and change.section == "hosts":
        found = tuple(_of_hosts(change, old, new))
    elif not found and subject == "image":
        found = tuple(_of_image(change, old, new))
    elif not found:
        found = tuple(_requested(change, old, new)) or tuple(_by_rules(change, old, new))
        found = found or tuple(_by_image(change, old, new))
    return found or (unknown(old, new),)


def _of_stack(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """What follows from a change of the whole stack: without an image nothing in one, for another accelerator another build."""
    assert old.stack is not None, "causes of a system are those of a stack"
    assert new.stack is not None, "causes of a system are those of a stack"
    if old.stack.runs != new.stack.runs and change.subject in _OF_IMAGES and not (change.old and change.new):
        yield Cause(kind="follows", subject="runs", text=f"it runs {_PLACES[new.stack.runs]} now")
    elif old.stack.accelerator != new.stack.accelerator and change.subject in {*_FRAMEWORKS, "gpu"}:
        text = f"the accelerator is {new.stack.accelerator} now"
        yield Cause(kind="follows", subject="accelerator", text=text)


def _requested(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """What was asked for a component; of a framework also as the distribution that it is, in the words of packages."""
    name = DISTRIBUTION_OF_COMPONENT.get(change.subject)
    asked = {key for side in (old, new) for key in side.asked or ()}
    is_package = name is not None and f"requires.{change.subject}" not in asked and f"packages.{name}" in asked
    if name != change.subject or not is_package:
        yield from request_causes(change, old, new)
    if name is not None and (name != change.subject or is_package):
        yield from asked_causes(replace(change, subject=name), old, new)


def request_causes(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """The request for a subject, where it changed and one of the two rules a version out."""
    subject = change.subject
    before, after = old.request(subject), new.request(subject)
    said, says = before[0] if before else "", after[0] if after else ""
    if said == says or not (_excludes(says, change.old) or _excludes(said, change.new)):
        return
    if before and after:
        text = f"the spec asks for `{_joined(subject, says)}`, it asked for `{_joined(subject, said)}`"
    elif after:
        text = f"the spec asks for `{_joined(subject, says)}`, it asked for no version before"
    else:
        text = f"the spec asked for `{_joined(subject, said)}` and does no longer"
    yield Cause(kind="spec", text=text, where=(after or before or ("", ""))[1])


def _joined(subject: str, wanted: str) -> str:
    return f"{subject} {wanted}"


def _excludes(wanted: str, version: str) -> bool:
    """Whether a request rules a version out; one that is no range of numbers is taken to."""
    if not wanted or not version:
        return False
    try:
        return not Range.parse(wanted).allows(Version.parse(version))
    except ValueError:
        return wanted != "any version"


def _asked_by_key(subject: str, old: Side, new: Side) -> Iterator[Cause]:
    if old.asked is None or new.asked is None:
        return
    prefix = _KEYS_OF.get(subject)
    keys = sorted({*old.asked, *new.asked})
    for key in keys:
        said, says = old.asked.get(key), new.asked.get(key)
        if prefix is not None and key.startswith(prefix) and said != says:
            yield Cause(kind="spec", text=f"the spec says {key_words(key, said, says)}", where=new.place(key))


def key_words(key: str, old: str | None, new: str | None) -> str:
    """`image.base: slim, it said cuda-devel`; a key left out says so."""
    if new is None:
        return f"nothing of `{key}`, it said `{old}`"
    return f"`{key}: {new}`, it said {f'`{old}`' if old is not None else 'nothing of it'}"


def _by_rules(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Rules recorded for a component that rule the other version out: those that came, else those that went."""
    subject = change.subject
    before, after = _rules(old, subject), _rules(new, subject)
    came = [reason for reason in after if reason not in before]
    binding = [reason for reason in came if _rules_out(reason, subject, change.old)]
    if not change.old:
        binding = came[:1]
    elif not change.new:
        binding = []
    for reason in binding:
        yield _of_rule(reason, old, new)
    if binding:
        return
    gone = [reason for reason in before if reason not in after and reason.component != "image"]
    for reason in gone[:1] if not change.new else [one for one in gone if _rules_out(one, subject, change.new)]:
        yield _of_rule_gone(reason, old, new)


def _rules(side: Side, subject: str) -> list[Reason]:
    """The recorded rules that bind a subject, but for those of the subject itself."""
    return [one for one in side.reasons.get(subject, ()) if one.kind == "rule" and one.component != subject]


def _rules_out(reason: Reason, subject: str, version: str) -> bool:
    """Whether a rule such as `pytorch 2.6.0+cu124 needs cuda ==12.4.*` rules a version of its object out.

    Locks of earlier versions record no ranges; a rule of theirs is taken to.
    """
    if not reason.type:
        return bool(version)
    if reason.object != subject or not reason.ranges or not version:
        return False
    try:
        return not any(Range.parse(one).allows(Version.parse(version)) for one in reason.ranges)
    except ValueError:
        return False


def _of_rule(reason: Reason, old: Side, new: Side) -> Cause:
    """A rule that came: because its part changed, or because the matrix says something else of the same part."""
    part = reason.component
    if _label(part, old) != _label(part, new):
        return Cause(kind="follows", subject=part, text=reason.text, where=reason.where)
    return Cause(kind="matrix", text=f"the matrix says now: {reason.text}", where=reason.where)


def _label(part: str, side: Side) -> str:
    """The version of a component or of a package; "" where a lock has none."""
    return side.labels.get(part) or side.version(part)


def _of_rule_gone(reason: Reason, old: Side, new: Side) -> Cause:
    part = reason.component
    now = _label(part, new)
    if _label(part, old) != now:
        text = f"{reason.text}, and {part} is {f'{now} now' if now else 'gone'}"
        return Cause(kind="follows", subject=part, text=text, where=reason.where)
    return Cause(kind="matrix", text=f"the matrix no longer says: {reason.text}", where=reason.where)


def _of_image(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """A base image holds one Python, so it moves with it; the same tag with other content was pushed again."""
    before, after = (side.stack.image if side.stack else None for side in (old, new))
    if before is None or after is None:
        return
    if before.reference == after.reference:
        if before.digest and after.digest:
            yield Cause(kind="index", text="its registry gives this tag to other content now")
        elif not before.digest and after.digest:
            yield Cause(kind="index", text="its registry was asked this time")
        return
    if before.python and old.labels.get("python") != new.labels.get("python"):
        text = f"image {before.reference} has python {before.python}"
        yield Cause(kind="follows", subject="python", text=text)
    elif old.labels.get("cuda") != new.labels.get("cuda") and "cuda" in f"{change.old}{change.new}":
        yield Cause(kind="follows", subject="cuda", text=f"image {after.reference} is chosen for cuda {new.labels.get('cuda')}")


def _by_image(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """What only an image brings goes with it, and is not known of an image that the matrix does not know."""
    before, after = (side.stack.image if side.stack else None for side in (old, new))
    if change.subject in _OF_IMAGES and before and after and before.reference != after.reference and not change.new:
        text = f"it came with image {before.reference}, and of {after.reference} the matrix does not know it"
        yield Cause(kind="follows", subject="image", text=text)


def _of_hosts(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """A host requirement: the recorded rules that came or went; without records, the part it is known to come from."""
    fact = change.subject
    before, after = _rules(old, fact), _rules(new, fact)
    came, gone = [one for one in after if one not in before], [one for one in before if one not in after]
    if fact == "gpu":  # other rules bound it too, but what a lock lists is what the build was compiled for
        came, gone = [one for one in came if _lists_targets(one)], []
    for reason in came:
        yield _of_rule(reason, old, new)
    for reason in () if came else gone:
        yield _of_rule_gone(reason, old, new)
    if not came and not gone:
        parts = [*_PARTS_BEHIND.get(fact, ()), *_packages_behind(change, old, new)]
        for part in [one for one in parts if _label(one, old) != _label(one, new)][:1]:
            labels = _label(part, old) or "none", _label(part, new) or "none"
            yield Cause(kind="follows", subject=part, text=f"it comes with {part}: {labels[0]} before, {labels[1]} now")


def _lists_targets(reason: Reason) -> bool:
    """Whether a rule says what a build is compiled for; locks of earlier versions do not tell, but it is the framework's."""
    return reason.type == COMPILED_FOR or (not reason.type and reason.component in _FRAMEWORKS)


def _packages_behind(change: Change, old: Side, new: Side) -> Iterator[str]:
    """The packages whose own CUDA set the driver floor that only one of two NVIDIA_REQUIRE_CUDA has."""
    for side, here, elsewhere in ((old, change.old, change.new), (new, change.new, change.old)):
        for reason in _rules(side, "driver") if change.subject == "require_cuda" else ():
            floors = [one for one in reason.ranges if one.startswith(">=")] if reason.object == "driver" else []
            if reason.component in side.packages and any(_has(here, one) and not _has(elsewhere, one) for one in floors):
                yield reason.component


def _has(gate: str, floor: str) -> bool:
    """Whether a clause of NVIDIA_REQUIRE_CUDA names this driver floor, such as `>=525.60.13`."""
    return any(f"driver{floor}" in alternative.split(",") for alternative in gate.split())


def unknown(old: Side, new: Side) -> Cause:
    """That the locks do not say why, and what else differs between them and may be the reason."""
    others = [
        _differing(name, old, new) for name in ("spec", "matrix", "provision") if old.inputs.get(name) != new.inputs.get(name)
    ]
    if not old.inputs or not new.inputs:
        text = "unknown: a lock that another program wrote records no reasons"
    elif others:
        text = f"unknown: no recorded request or rule explains it; {_and(others)} changed too"
    else:
        text = "unknown: spec, matrix and program are the same; hosts, indexes and `--upgrade` are not recorded"
    return Cause(kind="unknown", text=text)


def _differing(name: str, old: Side, new: Side) -> str:
    """What differs between the inputs of two locks; of the spec its keys, where both locks record them."""
    if name != "spec":
        return f"the {name}" if name == "matrix" else name
    asked, asks = old.asked or {}, new.asked or {}
    keys = sorted(key for key in {*asked, *asks} if asked.get(key) != asks.get(key) and old.asked is not None)
    return f"the spec ({', '.join(keys)})" if keys and new.asked is not None else "the spec"


def _and(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
