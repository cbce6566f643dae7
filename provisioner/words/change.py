"""Changes between two locks, and their causes, as sentences; a comparison as Markdown that is readable as plain text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from provisioner.accelerators import ACCELERATORS, GPU_DRIVERS, accelerator_of_target
from provisioner.components import COMPONENTS, LEADS
from provisioner.grounds import change as of
from provisioner.words.finding import RUNS, drift_words
from provisioner.words.notation import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.grounds.change import Cause, Change, Comparison, EditedByHand, OtherProgram

NAMES = {"gpu": "GPUs", **{name: f"the {COMPONENTS[name].title}" for name in GPU_DRIVERS if COMPONENTS[name].title}}
"""Names of host facts in sentences, if the key alone reads badly."""

BASES = {
    "native": "natively",
    "minor-version": "by minor-version compatibility",
    "forward-compat": "by the forward-compatibility package",
}

ANY_VERSION = "any version"
"""How a lock records a requirement without a range."""

SECTION_TITLES = {
    "breaking": "Breaks what ran before",
    "hosts": "Hosts",
    "system": "System",
    "packages": "Packages",
    "inputs": "What the locks were made from",
}
"""The titles of the sections of a comparison; `breaking` has the changes of all others that break what ran before."""

_HEADLINES = (*LEADS, "python")
_STARRED = re.compile(r"(?<!\S)[^\s*]+\*(?=[\s,;)]|$)")
_MOST_CAUSES = 2
"""The number of causes that are printed for a change; JSON lists all of them."""

_KINDS = ("added", "removed", "upgraded", "downgraded")
_CALENDAR = 1900
"""The lowest first number of a version that counts as a year: calendar versions promise no compatibility."""


def arrow(subject: str, old: str, new: str) -> str:
    """Return how a version changed: `cuda 12.4.1 -> 12.6.3`, `cuda 12.6.3 is new`, or `cuda 12.4.1 is gone`."""
    if old and new:
        return f"{subject} {old} -> {new}"
    return f"{subject} {new} is new" if new else f"{subject} {old} is gone"


def change_words(change: Change) -> str:
    """Return a change as one sentence, without its platforms and causes."""
    match change.section:
        case "hosts":
            return _host(change)
        case "system":
            return _system(change)
        case "packages":
            return _package(change)
    return _input(change)


def _host(change: Change) -> str:
    old, new = change.old, change.new
    match change.subject:
        case "platform":
            return f"platform {new} is new" if new else f"platform {old} is gone: its hosts fall out"
        case "accelerator":
            return f"accelerator {old} -> {new}" + ("" if ACCELERATORS[new].vendor else ": no GPU is used any more")
        case "runs":
            where = "in a container now" if new == "container" else "on the host itself now, without an image"
            return f"it runs {where}"
        case "gpu" if isinstance(change.detail, of.GpuBasis):
            return _gpus(change, change.detail)
        case "arch_list":
            parts = [f"{listed(change.lost)} went"] if change.lost else []
            parts += [f"{listed(change.gained)} came"] if change.gained else []
            return f"compiled targets: {'; '.join(parts)}"
        case "basis" if new:
            return f"the driver requirement is met {BASES[new]} now{f', {BASES[old]} before' if old else ''}"
        case "basis":
            return f"there is no driver requirement any more, it was met {BASES[old]}"
        case "require_cuda":
            moved = f"`{old}` -> `{new}`" if old and new else f"`{new}` is new" if new else f"`{old}` is gone"
            return f"NVIDIA_REQUIRE_CUDA {moved}"
        case "require_base":
            return f"{_gate_of_base(old, new)} (NVIDIA_REQUIRE_BASE)"
    return _fact(change)


def _fact(change: Change) -> str:
    name, old, new = NAMES.get(change.subject, change.subject), change.old, change.new
    if not new:
        return f"{name} `{old}` is no longer required"
    text = f"{name} `{old}` became `{new}`" if old else f"{name} `{new}` is required now, where nothing was"
    if isinstance(change.detail, of.FallOut):
        return f"{text}: hosts with {name} {fall_out_words(change.detail)} fall out"
    return f"{text}: more hosts fit now" if change.change == "loosened" else text


def fall_out_words(fall_out: of.FallOut) -> str:
    """Return the values of a host fact that no longer meet a requirement: `below 525.60.13`."""
    if fall_out.outside:
        return f"outside `{fall_out.outside}`"
    parts = [f"below {fall_out.below}"] if fall_out.below else []
    parts += [f"above {fall_out.above}"] if fall_out.above else []
    parts += [f"from {fall_out.start} on"] if fall_out.start else []
    return " or ".join(parts)


def _gpus(change: Change, basis: of.GpuBasis) -> str:
    note = ", going by the compiled targets: no host of one of the locks stated its GPUs" if basis.is_by_targets else ""
    if basis.is_required is False:
        return f"no GPU is required any more{note}"
    if basis.is_required:
        return f"a GPU is required now: {listed(basis.devices)}{note}" if basis.devices else "a GPU is required now"
    targets = [accelerator_of_target(label) for label in (*change.lost, *change.gained)]
    is_capability = all(target is ACCELERATORS["cuda"] for target in targets)
    noun = "GPUs of compute capability" if is_capability else "GPUs"
    parts = [f"{noun} {listed(change.lost)} fall out"] if change.lost else []
    parts += [f"{'' if change.lost else f'{noun} '}{listed(change.gained)} fit now"] if change.gained else []
    return f"{'; '.join(parts)}{note}"


def _gate_of_base(old: str, new: str) -> str:
    if not old:
        return f"{_alternatives(new)} is required by the base image itself now"
    if not new:
        return f"{_alternatives(old)} is no longer required by the base image itself"
    return f"the base image itself requires {_alternatives(new)}, it required {_alternatives(old)}"


def _alternatives(gate: str) -> str:
    """Return the first alternative of an NVIDIA_REQUIRE_* value and the number of the others, of which there may be dozens."""
    first, *others = gate.split()
    more = f" or one of {len(others)} other alternatives" if len(others) > 1 else f" or `{others[0]}`" if others else ""
    return f"`{first}`{more}"


def _system(change: Change) -> str:
    subject, old, new = change.subject, change.old, change.new
    match subject:
        case "image":
            return _image(old, new)
        case "relaxations":
            return f"relaxed now: {new}" if new else f"no longer relaxed: {old}"
        case "assumes":
            return f"assumed now: {new}" if new else f"no longer assumed: {old}"
        case "accepts":
            return f"accepted now: {new}" if new else f"no longer accepted: {old}"
        case "unverified":
            return f"unverified now: {new}" if new else f"no longer unverified: {old}"
        case "installer" if isinstance(change.detail, of.OfFile):
            return f"the file of installer {change.detail.version} has another sha256: {old} -> {new}"
    table, _, name = subject.partition(".")
    if table == "environment":
        if change.change == "changed":
            return f"`{name}` is `{new}` now, it was `{old}`"
        return f"`{name}={new}` is set now" if change.change == "added" else f"`{name}={old}` is not set any more"
    return arrow(subject, old, new) + (", a downgrade" if change.change == "downgraded" else "")


def _image(old: str, new: str) -> str:
    (old_tag, _, old_digest), (new_tag, _, new_digest) = old.partition("@"), new.partition("@")
    if old_tag != new_tag:
        return arrow("image", old, new)
    if old_digest and new_digest:
        return f"image {new_tag} has other content: {old_digest} -> {new_digest}"
    if new_digest:
        return f"image {new_tag} is pinned by digest now: {new_digest}"
    return f"image {new_tag} is no longer pinned by digest, which was {old_digest}"


def _package(change: Change) -> str:
    name, old, new = change.subject, change.old, change.new
    if change.aspect == "version":
        note = _step(change)
        return arrow(name, old, new) + (f", {note}" if note else "")
    assert change.detail is not None, "a change of the same version tells the version"
    if isinstance(change.detail, of.OfAddress):
        return f"{name} {change.detail.version}: index {change.detail.index} is at {new}, it was at {old}"
    assert isinstance(change.detail, of.OfFile), "a change of the same version is about files"
    label = f"{name} {change.detail.version}"
    match change.aspect:
        case "content":
            return f"{label}: `{change.detail.file}` has other content under the same name: sha256 {old} -> {new}"
        case "file":
            return f"{label} {_files_moved(change.lost, change.gained)}"
        case "index":
            return f"{label} comes from index {new or '(unnamed)'}, it came from {old or '(unnamed)'}"
        case "place":
            return f"{label}: the same file from another place: {old} -> {new}"
        case "attestations":
            return f"{label} is attested by {new or 'nobody that is recorded'}, it was by {old}"
        case "requires-python":
            return f"{label} needs python {new or '(unstated)'}, it needed {old}"
        case "licenses":
            return f"{label} has the licence {new or '(undeclared)'}, it had {old}"
        case "variants":
            return f"{label} has another list of wheel variants: sha256 {old} -> {new or '(none)'}"
    parts = [f"no longer requires `{text}`" for text in change.lost] + [f"requires `{text}` now" for text in change.gained]
    return f"{label} {' and '.join(parts)}"


def _step(change: Change) -> str:
    """Return a note on a new version, such as `a new major version` or `a downgrade`; "" when there is nothing to note."""
    try:
        before, after = PackageVersion(change.old), PackageVersion(change.new)
    except InvalidVersion:
        return ""
    is_major = (before.epoch, before.major) != (after.epoch, after.major) and before.major < _CALENDAR
    match change.change:
        case "changed":
            return "another build"
        case "upgraded":
            return "a new major version" if is_major else ""
    return "a downgrade to an older major version" if is_major else "a downgrade"


def _files_moved(gone: Sequence[str], come: Sequence[str]) -> str:
    """Return a phrase on the files that were removed and added; for one wheel each, only the tags that differ."""
    if len(gone) == len(come) == 1 and (tags := _tags_moved(gone[0], come[0])):
        return f"from another wheel: {tags}"
    if gone and come:
        return f"from another file: {', '.join(gone)} -> {', '.join(come)}"
    return f"from {', '.join(come)}, too" if come else f"no longer from {', '.join(gone)}"


def _tags_moved(old: str, new: str) -> str:
    """Return `cp312-cp312 -> cp313-cp313` for two wheels of one version; "" for other files."""
    before, after = old.removesuffix(".whl").split("-"), new.removesuffix(".whl").split("-")
    if not (old.endswith(".whl") and new.endswith(".whl") and min(len(before), len(after)) >= 5):
        return ""
    ends = before[2:], after[2:]
    if len(ends[0]) == len(ends[1]):
        apart = [index for index in range(len(ends[0])) if ends[0][index] != ends[1][index]]
        ends = [ends[0][index] for index in apart], [ends[1][index] for index in apart]
    return f"{'-'.join(ends[0])} -> {'-'.join(ends[1])}" if before[:2] == after[:2] else ""


def _input(change: Change) -> str:
    old, new = change.old, change.new
    match change.subject:
        case "name":
            return f"the locks have different names: {old} and {new}"
        case "matrix" | "provision":
            words = {"matrix": "the matrix", "provision": "the program"}[change.subject]
            return f"{words} changed: {_short(old)} -> {_short(new)}"
        case "spec" if isinstance(change.detail, of.OfSpec):
            is_recorded = change.detail.is_recorded
            what = "keys that decide no version, or its hosts" if is_recorded else "an earlier version kept no record of what"
            return f"the spec changed ({what})"
    if change.change == "added":
        return f"the spec says `{change.subject}: {new}` now"
    if change.change == "removed":
        return f"the spec no longer says `{change.subject}: {old}`"
    return f"the spec says `{change.subject}: {new}`, it said `{old}`"


def _short(digest: str) -> str:
    """Return the first characters of a hash, which distinguish two; a version is returned unchanged."""
    bare = digest.removeprefix("sha256:")
    return bare[:12] if len(bare) > 32 else digest


def cause_source(cause: Cause) -> str:
    """Return the source of a cause: lines of the spec, or the source that a lock records for a rule."""
    if isinstance(cause, of.ByRule | of.ByMatrix):
        return cause.rule.source
    return " and ".join(map(str, cause.places))


def cause_words(cause: Cause) -> str:
    """Return a cause as a clause, without its source; raises `TypeError` for a cause without words."""
    match cause:
        case of.Follows():
            return _follows(cause)
        case of.ByIndex():
            return _by_index(cause)
        case of.Unknown() | of.UnknownElsewhere() | of.UnknownAgain() | of.UnknownHold():
            return f"unknown: {_unknown(cause)}"
        case of.ByRequest(before=before, after=after):
            return _request(cause, _range(cause, before), _range(cause, after))
        case of.ByBound(table=table, name=name, before=before, after=after):
            now, then, with_what = _BOUNDS[table]
            if not after:
                return f"the spec {then} {with_what} `{spelled(name, before)}` and does no longer"
            since = f", before `{spelled(name, before)}`" if before else " now"
            return f"the spec {now} {with_what} `{spelled(name, after)}`{since}"
        case of.ByKey(uploaded=uploaded, uploaded_before=before):
            is_option = (uploaded or before) and cause.after is not None and not any(place.line for place in cause.places)
            who = "the spec, or `--exclude-newer`," if is_option else "the spec"
            dated = (
                f"; it was uploaded {uploaded}" if uploaded else f"; the version before was uploaded {before}" if before else ""
            )
            return f"{who} says {_key(cause)}{dated}"
        case of.ByNoDependent(is_new=is_new):
            if is_new:
                return "no package of the lock requires it, so the spec does"
            return "no package of the old lock required it, so its spec did"
        case of.HeldByRequest(name=name, range=wanted):
            return f"the spec asks for `{name}{wanted}`"
        case of.HeldByBound(table=table, name=name, range=wanted):
            now, _, with_what = _BOUNDS[table]
            return f"the spec {now} {with_what} `{name}{wanted}`"
        case of.ByMatrix(rule=rule, is_new=is_new):
            return f"the matrix {'says now' if is_new else 'no longer says'}: {rule.text}"
    raise TypeError(f"no words for {type(cause).__name__}")


_BOUNDS = {"constraints": ("constrains", "constrained", "it to"), "overrides": ("overrides", "overrode", "it with")}


def spelled(name: str, wanted: str) -> str:
    """Return a requirement on `name` as a line of `packages` in a spec; `wanted` is its text as a lock records it."""
    return name if wanted == ANY_VERSION else f"{name}{wanted}"


def _range(cause: of.ByRequest, wanted: str) -> str:
    if not wanted:
        return ""
    return spelled(cause.name, wanted) if cause.is_distribution else f"{cause.name} {wanted}"


def _request(cause: of.ByRequest, before: str, after: str) -> str:
    if not after:
        return f"the spec asked for `{before}` and does no longer"
    none = " now" if cause.is_distribution else ", it asked for no version before"
    return f"the spec asks for `{after}`{f', it asked for `{before}`' if before else none}"


def _key(cause: of.ByKey) -> str:
    """Return the change of a key of the spec: `image.base: slim`, it said `cuda-devel`."""
    if cause.after is None:
        return f"nothing of `{cause.key}`, it said `{cause.before}`"
    return f"`{cause.key}: {cause.after}`, it said {f'`{cause.before}`' if cause.before is not None else 'nothing of it'}"


def _follows(cause: of.Follows) -> str:
    match cause:
        case of.ByDependent():
            return _by_dependent(cause)
        case of.ByRuns(runs=runs):
            return f"it runs {RUNS[runs]} now"
        case of.ByAccelerator(accelerator=accelerator):
            return f"the accelerator is {accelerator} now"
        case of.ByLostRule(rule=rule, now=now):
            return f"{rule.text}, and {rule.component} is {f'{now} now' if now else 'gone'}"
        case of.ByRule(rule=rule):
            return rule.text
        case of.ByPythonOfImage(image=image, python=python):
            return f"image {image} has python {python}"
        case of.ByCudaOfImage(image=image, cuda="", before=before):
            return f"image {image} is chosen for a stack without cuda, where the old one had cuda {before}"
        case of.ByCudaOfImage(image=image, cuda=cuda):
            return f"image {image} is chosen for cuda {cuda}"
        case of.ByImage(before=before, after=after):
            return f"it came with image {before}, and of {after} the matrix does not know it"
        case of.ByPart(part=part, before=before, after=after):
            return f"it comes with {part}: {before or 'none'} before, {after or 'none'} now"
        case of.ByComponent(name=name, component=component):
            return f"{name} is the component {component}"
        case of.ByOwnNeed(package=package, requirement=requirement, needed=needed, is_held=is_held):
            has = f"the answer has {needed}" if is_held else f"{needed.name} is {needed.label} now"
            return f"{package} requires `{requirement}`, and {has}"
        case of.FreedNeed(package=package, requirement=requirement, needed=needed, table=table, range=wanted):
            before = "asked for" if table == "packages" else "constrained it to"
            return f"{package} requires `{requirement}`, and the spec {before} `{needed}{wanted}`"
        case of.ByPython(python=python, aspect="file"):
            return f"python {python} takes another file"
        case of.ByPython(python=python, aspect="requires"):
            return f"its markers say something else on python {python}"
        case of.ByPython(python=python, dependent=dependent):
            return f"{dependent} requires it on python {python}"
    raise TypeError(f"no words for {type(cause).__name__}")


def _by_dependent(cause: of.ByDependent) -> str:
    dependent, requirement = str(cause.dependent), cause.requirement
    match cause:
        case of.BroughtAlong():
            return f"{dependent} requires it now{f' (`{requirement}`)' if requirement else ''}"
        case of.TakenAlong():
            return f"{dependent} required it before{f' (`{requirement}`)' if requirement else ''}"
        case of.RuledOutBy(version=version):
            return f"{dependent} requires `{requirement}`, which {version} is not"
        case of.FreedFrom(is_gone=is_gone):
            return f"{dependent} required `{requirement}` before{' and is gone' if is_gone else ''}"
    return f"{dependent} requires `{requirement}`"


def _by_index(cause: of.ByIndex) -> str:
    match cause:
        case of.TagMoved():
            return "its registry gives this tag to other content now"
        case of.RegistryAsked():
            return "its registry was asked this time"
        case of.ReleasedSince(uploaded=uploaded, newest=newest):
            return f"released since: uploaded {uploaded}, the newest file of the old lock {newest}"
        case of.OutSince(day=""):
            return "a newer one is out"
        case of.OutSince(version=version, day=day, is_installer=is_installer):
            return f"{version} is out since {day}{'' if is_installer else ', and nothing recorded rules it out'}"
        case of.Drifted(drift=drift):
            if drift.kind == "exchanged":
                return f"index {drift.index} has another file under this name"
            return drift_words(drift)
        case of.NoMetadata(package=package, problem=problem):
            return f"{package} cannot be taken: {problem}"
    raise TypeError(f"no words for {type(cause).__name__}")


def _unknown(cause: Cause) -> str:
    unexplained = "no recorded request or rule explains it"
    match cause:
        case of.UnknownElsewhere():
            return "a lock that another program wrote records no reasons"
        case of.UnknownAgain(is_upgrade=is_upgrade):
            return unexplained + ("; without a lock to keep to, it is what the policy takes first" if is_upgrade else "")
        case of.UnknownHold(name=name):
            return f"nothing in the answer rules it out by itself; `provision explain {name}` tries it"
        case of.Unknown(inputs=inputs, keys=keys) if inputs:
            spec = f"the spec ({', '.join(keys)})" if keys else "the spec"
            names = {"spec": spec, "matrix": "the matrix", "provision": "provision"}
            return f"{unexplained}; {listed([names[one] for one in inputs])} changed too"
    return "spec, matrix and program are the same; hosts, indexes and `--upgrade` are not recorded"


def note_words(note: OtherProgram | EditedByHand) -> str:
    """Return a limit of a comparison (a note) as a sentence."""
    if isinstance(note, of.EditedByHand):
        return f"`{note.file}` was edited by hand: its digest does not fit its content."
    were = "was" if len(note.files) == 1 else "were"
    files = " and ".join(f"`{file}`" for file in note.files)
    return f"{files} {were} not written by provision: only packages are compared, and nothing says why they moved."


def comparison_lines(comparison: Comparison, *, old: str, new: str) -> list[str]:
    """Return a comparison as lines of Markdown; `old` and `new` are the names of the files."""
    lines = [f"## {old} -> {new}", "", summary(comparison)]
    lines += [line for note in comparison.notes for line in ("", note_words(note))]
    breaking = [change for change in comparison.changes if change.is_breaking]
    lines += _section(SECTION_TITLES["breaking"], breaking, comparison)
    for section in ("hosts", "system"):
        lines += _section(SECTION_TITLES[section], [one for one in comparison.of(section) if not one.is_breaking], comparison)
    lines += _package_section(comparison)
    lines += _section(SECTION_TITLES["inputs"], comparison.of("inputs"), comparison)
    return [_literal(line) for line in lines]


def _literal(line: str) -> str:
    """Return a line with words such as `==12.*` in backticks, so that Markdown prints their stars."""
    parts = line.split("`")
    return "`".join(_STARRED.sub(r"`\g<0>`", part) if index % 2 == 0 else part for index, part in enumerate(parts))


def summary(comparison: Comparison) -> str:
    """Return a comparison in one sentence: breaking changes, main components, counts of packages."""
    if not comparison.changes:
        return "Nothing changed."
    breaking = [change for change in comparison.changes if change.is_breaking]
    parts = []
    if breaking:
        parts.append(f"**{len(breaking)} {'change breaks' if len(breaking) == 1 else 'changes break'} what ran before**")
    elif comparison.platforms:
        parts.append("no host falls out")
    moved = {change.subject: change for change in comparison.of("system")}
    parts += [arrow(name, moved[name].old, moved[name].new) for name in _HEADLINES if name in moved]
    packages = comparison.of("packages")
    if packages:
        parts.append(_package_counts(packages, comparison.unchanged))
    words = "; ".join(parts)
    return f"{words[0].upper()}{words[1:]}."


def _package_counts(packages: Sequence[Change], unchanged: int) -> str:
    """Return `packages: 3 added, 1 downgraded, 2 otherwise changed, 30 unchanged`."""
    moved = [change for change in packages if change.aspect == "version"]
    counts = [(kind, sum(change.change == kind for change in moved)) for kind in _KINDS]
    others = len({change.subject for change in packages} - {change.subject for change in moved})
    rebuilt = sum(change.change == "changed" for change in moved)
    kinds = [*counts, ("of another build", rebuilt), ("otherwise changed", others)]
    named = [f"{count} {kind}" for kind, count in kinds if count]
    return f"packages: {', '.join(named)}, {unchanged} unchanged"


def _section(title: str, changes: Sequence[Change], comparison: Comparison) -> list[str]:
    if not changes:
        return []
    lines = ["", f"### {title}", ""]
    for change in changes:
        lines.append(f"- {change_words(change)}{where_words(change, comparison)}")
        lines += [f"  - {line}" for line in because(change)]
    return lines


def where_words(change: Change, comparison: Comparison) -> str:
    """Return the platforms of a change in brackets; "" when the change is the same on all platforms of the comparison."""
    is_partial = change.platforms and len(change.platforms) < len(comparison.platforms)
    return f" ({', '.join(change.platforms)})" if is_partial else ""


def because(change: Change) -> Iterator[str]:
    """Yield a line for each of the first `_MOST_CAUSES` causes of a change, and a line with the number of the others."""
    for cause in change.causes[:_MOST_CAUSES]:
        if cause.kind == "unknown":
            yield f"cause {cause_words(cause)}"
        else:
            source = cause_source(cause)
            yield f"because {cause_words(cause)}{f'  ({source})' if source else ''}"
    more = len(change.causes) - _MOST_CAUSES
    if more > 0:
        yield f"and {counted(more, 'more such reason')}"


def _package_section(comparison: Comparison) -> list[str]:
    """Return the lines about packages, grouped by their root cause, the largest group first.

    The root cause is the change at the end of the chain of causes.
    """
    changes = [change for change in comparison.of("packages") if not change.is_breaking]
    if not changes:
        return []
    roots = _roots(comparison)
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(_group(change, roots, comparison), []).append(change)
    lines = ["", f"### {SECTION_TITLES['packages']}", ""]
    for title, members in sorted(groups.items(), key=lambda item: (_RANK.get(item[0], 0), -len(item[1]), item[0])):
        lines.append(f"- {counted(len({change.subject for change in members}), 'package')} {title}:")
        lines += [f"  - {change_words(one)}{_detail(one, roots)}{where_words(one, comparison)}" for one in members]
    return lines


_OF_SPEC, _OF_INDEX, _OF_MATRIX, _OF_NOTHING = (
    "as the spec asks",
    "released since the old lock",
    "by other rules of the matrix",
    "for a reason the locks do not record",
)
_RANK = {_OF_SPEC: -1, _OF_MATRIX: 1, _OF_INDEX: 2, _OF_NOTHING: 3}
_BY_KIND = {"spec": _OF_SPEC, "index": _OF_INDEX, "matrix": _OF_MATRIX, "unknown": _OF_NOTHING}


def _group(change: Change, roots: Mapping[str, str], comparison: Comparison) -> str:
    cause = change.causes[0]
    if cause.kind != "follows":
        return _BY_KIND[cause.kind]
    root = roots.get(cause.subject, cause.subject)
    found = next((one for one in comparison.changes if one.subject == root and one.aspect in {"", "version"}), None)
    return f"following {_led_by(root, found)}"


def _led_by(root: str, change: Change | None) -> str:
    if change is None:
        return root
    if change.old and change.new:
        return arrow(root, change.old, change.new)
    return f"{root} {change.new}, which is new" if change.new else f"{root} {change.old}, which is gone"


def _detail(change: Change, roots: Mapping[str, str]) -> str:
    """Return the cause of a change if the title of its group does not state it, such as a request or a date; "" otherwise.

    For a longer chain of causes, the result names the first change in it.
    """
    cause = change.causes[0]
    if cause.kind in {"spec", "index", "matrix"}:
        return f": {cause_words(cause)}"
    is_direct = roots.get(cause.subject, cause.subject) == cause.subject or cause.subject == "torch"
    return "" if cause.kind == "unknown" or is_direct else f" (through {cause.subject})"


def _roots(comparison: Comparison) -> dict[str, str]:
    """Return the last subject in the chain of causes of each changed subject: itself, if no other change caused its own."""
    causes: dict[str, Sequence[Cause]] = {}
    for change in comparison.changes:
        if change.aspect in {"", "version"}:
            causes.setdefault(change.subject, change.causes)
    roots = {}
    for subject in causes:
        seen = [subject]
        while (step := _followed(causes.get(seen[-1], ()))) is not None and step not in seen and step in causes:
            seen.append(step)
        roots[subject] = seen[-1]
    return roots


def _followed(causes: Sequence[Cause]) -> str | None:
    return causes[0].subject if causes and causes[0].kind == "follows" else None
