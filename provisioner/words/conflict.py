"""Conflicts as lines: members (requests, facts and groups of rules that exclude each other), conclusion and fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version as PackageVersion

from provisioner.components import COMPONENTS
from provisioner.grounds import edit as edits
from provisioner.grounds.conflict import (
    AT_ONCE,
    MOST_TRIED,
    ForAnother,
    Newest,
    NotOffered,
    Offered,
    Published,
    Statement,
    Unlisted,
    Withdrawn,
)
from provisioner.grounds.predicate import CompiledAgainst, InstalledAs, NoFile, Requires
from provisioner.grounds.requirement import (
    AsksAccelerator,
    AsksImage,
    AsksWhyNot,
    Forbids,
    Ground,
    RequiresComponent,
    RequiresDistribution,
    TargetPlatform,
)
from provisioner.words.ground import LABELS, noun_words, own_subject_words, request_words, say
from provisioner.words.notation import component_words, gpu_words, listed, source_words, sources_words, value_words
from provisioner.words.predicate import predicate_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.conflict import Conclusion, Conflict, Fix, Member, Offer, Subjects
    from provisioner.grounds.edit import Edit

MOST_LINES = 15
"""The number of lines that fit on a screen beside the fixes; JSON has all of them."""

MOST_GIVEN = 12
"""The most versions that are printed for a fix; the answer of a fix may have two hundred, unchanged ones included."""

MOST_HOSTS = 5
"""The most hosts that a fix names."""

MOST_NAMED = 3
"""The most names that a conclusion lists."""

NO_STACK = "no stack satisfies the spec on this target"
"""The summary of a conflict in which a request or fact has no short name."""

FIRST_GIVEN = ("pytorch", "tensorflow", "jax", "cuda", "rocm", "driver", "amdgpu", "webdriver", "python")
"""Components that are listed first in the result of a fix."""

NO_WAY = (
    f"no way out was found: up to {MOST_TRIED} combinations of the spec's requests and the hosts' facts were changed, "
    f"{AT_ONCE} at most together, and then up to {MOST_TRIED} of any size"
)
"""The hint when no fix was found."""

CUT_SHORT = "the search for them ends after a fixed amount of work"
"""Why there may be fixes besides those that are told."""

REST_UNSOLVED = "the rest of the spec was not solved: solve again when this is mended"
"""The hint where nothing else was asked of an index, because something cannot be had at all."""

_MORE = {"rule": "rules", "fact": "facts", "request": "requests"}


def conflict_lines(conflict: Conflict) -> tuple[str, ...]:
    """Return one line for each member of a conflict, with its source, and the conclusion; at most `MOST_LINES`."""
    end = (conclusion_words(conflict.conclusion),) if conflict.conclusion is not None else ()
    lines = [(member.kind, member_line(member)) for member in conflict.members if not _is_said_by_others(member, conflict)]
    for kind in _MORE:
        lines = _shortened(lines, kind, MOST_LINES - len(end))
    return (*(line for _, line in lines), *end)


def _is_said_by_others(member: Member, conflict: Conflict) -> bool:
    """Return whether the line of a member is left out, because other lines state the same.

    This is so for the user's question, for the rule that a component is installed as the distribution of the same name, and for
    what one Python has no file for while others have, beside other rules.
    """
    if all(isinstance(one, AsksWhyNot) for one in member.clauses):
        return True
    if _is_of_other_pythons(member):
        return any(one.kind == "rule" and not _is_of_other_pythons(one) for one in conflict.members)
    name = member.component
    is_itself = all(
        isinstance(one, Statement)
        and one.name == name
        and isinstance(one.predicate, InstalledAs)
        and one.predicate.name == name
        for one in member.clauses
    )
    return is_itself and any(
        other.kind == "rule" and any(isinstance(one, Statement) and one.name == name for one in other.clauses)
        for other in conflict.members
        if other is not member
    )


def _is_of_other_pythons(member: Member) -> bool:
    return all(isinstance(one, Statement) and one.is_of_other_python for one in member.clauses)


def _shortened(lines: list[tuple[str, str]], kind: str, most: int) -> list[tuple[str, str]]:
    """Return the lines with the last lines of one kind replaced by their number, if there are more than `most` lines."""
    too_many = len(lines) - most
    of_kind = [index for index, line in enumerate(lines) if line[0] == kind]
    if too_many <= 0 or len(of_kind) < 2:
        return lines
    left_out = of_kind[-min(too_many + 1, len(of_kind) - 1) :]
    note = (kind, f"and {len(left_out)} more {_MORE[kind]}, listed under --format json")
    return [note if index == left_out[0] else line for index, line in enumerate(lines) if index not in left_out[1:]]


def member_line(member: Member) -> str:
    """Return a member of a conflict as one sentence, with its source in brackets."""
    source = sources_words(member.sources)
    return f"{member_words(member)}  ({source})" if source else member_words(member)


def member_words(member: Member) -> str:
    """Return a member of a conflict as one sentence."""
    told = [one for one in member.clauses if not (isinstance(one, Statement) and one.is_of_other_python)] or member.clauses
    parts = [clause_words(clause) for clause in told]
    if member.more:
        parts.append(f"and {member.more} more like {'it' if member.more == 1 else 'them'}")
    text = "; ".join(parts)
    if member.offer is not None:
        text = f"{text}: {_offer(member.offer)}"
    if member.assumed_glibc is not None:
        glibc = ".".join(str(part) for part in member.assumed_glibc)
        why = "nobody knows that of the base image" if member.is_assumed_of_image else "the target states none"
        text = f"{text}; glibc {glibc} is assumed, for {why}"
    return text


def clause_words(clause: Ground | Statement) -> str:
    """Return a request, a fact, or a predicate that several candidates share, as a clause."""
    if isinstance(clause, Ground):
        return say(clause)
    own = own_subject_words(clause.predicate, clause.name)
    if own is not None:
        return own
    subjects = list(dict.fromkeys(_subjects(one, clause.name) for one in clause.subjects))
    pythons = f" with python {listed(clause.pythons)}" if clause.pythons else ""
    return f"{' and '.join(subjects)}{predicate_words(clause.predicate, plural=not clause.is_of_one)}{pythons}"


def _subjects(subjects: Subjects, name: str) -> str:
    spans = [span.first if span.first == span.last else f"{span.first} … {span.last}" for span in subjects.spans]
    if subjects.every_build_for is not None:
        kind = LABELS.get(subjects.every_build_for, "")
        return f"every {kind} build of {name} {listed(spans)}"
    row = COMPONENTS.get(name)
    named = row is not None and row.phrases
    text = listed([value_words(name, span) for span in spans]) if named else f"{component_words(name)} {listed(spans)}"
    return f"{component_words(name)} {', '.join(spans)} and others" if subjects.has_others else text


def unlisted_words(versions: Sequence[str]) -> str:
    """Return the first of the versions that the matrix does not list, and the number of the others."""
    more = len(versions) - MOST_NAMED
    return f"{', '.join(versions[:MOST_NAMED])}{f' and {more} more' if more > 0 else ''}"


def not_known_words(offers: Sequence[Unlisted | Newest]) -> str:
    """Return in one sentence which releases that the spec asks for the matrix does not know."""
    listed_ones = [f"{one.name} {unlisted_words(one.versions)}" for one in offers if isinstance(one, Unlisted)]
    newer = [f"a {one.name} newer than {one.version}" for one in offers if isinstance(one, Newest)]
    found = [f"an index has {listed(listed_ones)}, which the matrix does not know yet"] if listed_ones else []
    return "; ".join([*found, *([f"the matrix does not know {listed(newer)} yet"] if newer else [])])


def refresh_words(offer: Unlisted | Newest) -> str:
    """Return the hint how the matrix gets to know the releases of a component that it does not know."""
    if isinstance(offer, Newest) and not offer.is_on_index:
        return f"a newer `provision` may know it; docs/matrix.md tells how to add a {offer.name} to a matrix for `--matrix`"
    return f"`provision matrix refresh {offer.name}` reads its builds into the matrix, and the question can then be answered"


def _offer(offer: Offer) -> str:
    match offer:
        case NotOffered(name=name, is_distribution=True, until=until):
            return f"no index offers `{name}`{f' until {until}' if until else ''}"
        case NotOffered(name=name, accelerator=accelerator, platform=platform, until=until):
            return f"the matrix has no {name} for {accelerator} on {platform}{f' until {until}' if until else ''}"
        case ForAnother(name=name, version=version, accelerator=accelerator, wanted=wanted):
            return f"{name} {version} is a build for {accelerator}, and the accelerator is {wanted}"
        case Withdrawn(name=name, version=version, problem=problem):
            return f"{name} {version} is {problem}"
        case Unlisted(versions=versions):
            return f"an index has {unlisted_words(versions)}, which the matrix does not know yet"
        case Newest(version=version, released=released):
            return f"the newest that the matrix knows is {version}{f', of {released}' if released else ''}"
        case Offered(by=by, versions=versions, more=more, accelerator=accelerator, until=until, place=place):
            found = f"{', '.join(versions)}{f' and {more} more' if more else ''}"
            if by == "spec":
                return f"the file that the spec names is {found}{f' ({place})' if place is not None else ''}"
            target = f"{f' for {accelerator}' if accelerator else ''}{f' until {until}' if until else ''}"
            return f"the {by} has {found}{target}"


def contradiction_words(conflict: Conflict) -> str:
    """Return a conflict in one sentence: the requests and facts that exclude each other.

    The result is "" when one of them has no short name, since a sentence without it would be wrong.
    """
    stated = _stated(conflict)
    platforms = list(dict.fromkeys(one.platform for one in stated if isinstance(one, TargetPlatform)))
    where = f" on {platforms[0]}" if len(platforms) == 1 else ""
    others = [one for one in stated if not (where and isinstance(one, TargetPlatform))]
    names = list(dict.fromkeys(map(noun_words, others)))
    if not names or "" in names:
        return ""
    if len(names) > 1:
        return f"{_few(names)} exclude each other{where}"
    if others[0].kind == "fact":
        return f"{names[0]} rules every stack out{where}"
    allowances = set(_allowances_of(conflict))
    without = next((text for word, text in WITHOUT.items() if word in allowances), "")
    return f"{names[0]} cannot be had{without}{where}"


def exclusion_words(conflict: Conflict, *, plural: bool = False) -> str:
    """Return a phrase naming the requests and facts that exclude the release asked about: `driver 470.256.02 excludes it`.

    With `plural`, several releases are meant.

    If one of them has no short name, the result is `these cannot hold together:`.
    """
    names = list(dict.fromkeys(noun_words(one) for one in _stated(conflict) if not isinstance(one, AsksWhyNot)))
    if not names or "" in names:
        return "these cannot hold together:"
    return f"{_few(names)} {'exclude' if len(names) > 1 else 'excludes'} {'them' if plural else 'it'}"


def _stated(conflict: Conflict) -> list[Ground]:
    """Return the requests and facts among the members of a conflict; [] when the conflict only counts some of them."""
    if any(member.more for member in conflict.members if member.kind != "rule"):
        return []
    grounds = [clause for member in conflict.members for clause in member.clauses if isinstance(clause, Ground)]
    return [one for one in grounds if one.kind != "rule"]


def conclusion_words(conclusion: Conclusion) -> str:
    """Return the conclusion of a conflict in one sentence: what cannot be chosen, and for which hosts."""
    for_whom = _for_whom(conclusion)
    if conclusion.question is not None:
        return f"so {request_words(conclusion.question)} cannot be chosen{for_whom}"
    if conclusion.requests:
        first, *others = dict.fromkeys(
            noun_words(one) if _has_phrase(one) else request_words(one) for one in conclusion.requests
        )
        if _has_phrase(conclusion.requests[0]):
            beside = f" beside {_few(others)}" if others else ""
            return f"so {first} cannot be had{beside}{for_whom}"
        beside = f" that goes with {_few(others)}" if others else ""
        return f"so no {first} is left{beside}{for_whom}"
    if conclusion.name:
        return f"so no {component_words(conclusion.name)} is left{for_whom}"
    match conclusion.refused:
        case AsksAccelerator(accelerator=accelerator):
            return f"so nothing can be accelerated with {accelerator}{for_whom}"
        case AsksImage():
            return f"so this base image cannot be used{for_whom}"
        case Forbids():
            stated = dict.fromkeys(noun_words(one) or say(one) for one in conclusion.facts)
            return f"so {' and '.join(stated)} cannot stay under this policy{for_whom}"
    if conclusion.facts:
        return f"so {'these facts do not go together' if len(conclusion.facts) > 1 else 'this cannot be'}{for_whom}"
    return f"so nothing is left to choose{for_whom}"


def _has_phrase(ground: Ground) -> bool:
    """Return whether the noun of a request is a phrase such as `the open kernel module`, before which no `no` fits."""
    row = COMPONENTS.get(ground.name) if isinstance(ground, RequiresComponent) else None
    return row is not None and bool(row.phrases)


def _for_whom(conclusion: Conclusion) -> str:
    if conclusion.hosts:
        return " for this host" if conclusion.is_one_host else f" for {_few(conclusion.hosts)}"
    return f" for {conclusion.platform}" if conclusion.platform else ""


def _few(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1} more"
    return listed(names)


def fix_line(fix: Fix) -> str:
    """Return a fix as text with the versions that it leads to; of many, those of `FIRST_GIVEN` and of what it edits."""
    given = {name: value for name, value in fix.gives.items() if name != "pytorch_build"}
    build = fix.gives.get("pytorch_build")
    if build and "pytorch" in given:
        given["pytorch"] = f"{given['pytorch']}+{build}"
    edited = {edit.component for edit in fix.edits} | {
        edit.distribution for edit in fix.edits if isinstance(edit, edits.SetDistribution | edits.DropDistribution)
    }
    wanted = sorted(given, key=lambda name: (name not in FIRST_GIVEN, name not in edited))
    shown = {*(wanted if len(wanted) <= MOST_GIVEN else wanted[: MOST_GIVEN - 1])}
    versions = [value_words(name, value) for name, value in given.items() if name in shown]
    more = len(given) - len(versions)
    rest = [f"and {more} more, listed under --format json"] if more else []
    verdict = " (unverified)" if fix.is_unverified else ""
    return f"{fix_words(fix)}: gives {', '.join([*versions, *rest])}{verdict}" if versions else f"{fix_words(fix)}{verdict}"


def fix_words(fix: Fix) -> str:
    """Return the edits of a fix as a sentence; an edit that several hosts share is listed once."""
    labels: dict[str, dict[str, None]] = {}
    for edit in fix.edits:
        is_either = bool(edit.host_label) and not fix.hosts and edit.component in fix.requested
        text = f"{edit_words(edit)} on the host" if is_either else edit_words(edit)
        labels.setdefault(text, {}).update({edit.host_label: None} if edit.host_label in fix.hosts else {})
    parts = [f"{text}{_on(text, list(some), fix)}" for text, some in labels.items()]
    if len(parts) == 1:
        return f"{parts[0]} would do"
    return f"{listed(parts)} would do{f': these {len(parts)} changes are needed together' if fix.is_least else ' together'}"


def _on(text: str, labels: Sequence[str], fix: Fix) -> str:
    """Return the hosts of an edit by name, or the number of hosts and the name of one; "" for no hosts.

    `text` is the phrase of the edit, which the result continues; `labels` are the labels of the hosts.
    """
    if not labels:
        return ""
    if len(labels) <= MOST_HOSTS:
        shown = ", ".join(labels)
    else:
        total = sum(len(fix.hosts[label]) for label in labels)
        shown = f"{total} hosts, such as {fix.hosts[labels[0]][0]}"
    return f" {shown}" if text == _WITHOUT else f" on {shown}"


_WITHOUT = "without"


def edit_words(edit: Edit) -> str:
    """Return an edit as a phrase, with the request or fact that it replaces."""
    match edit:
        case edits.SetComponent(name=name, value=value, requests=requests):
            return f"{name} {value}{_instead(requests, name)}"
        case edits.SetDistribution(distribution=distribution, value=value, requests=requests, extras=extras):
            with_extras = f"[{','.join(sorted(extras))}]" if extras else ""
            return f"{distribution}{with_extras} {value}{_instead(requests)}"
        case edits.DropComponent(requests=requests) | edits.DropDistribution(requests=requests):
            return f"leaving out {_quoted(requests)}"
        case edits.AddDistributions(names=names):
            return f"{listed(names)} in packages"
        case edits.DropBound(key=key, requirement=requirement):
            return f"leaving out the {'constraint' if key == 'constraints' else 'override'} `{requirement}`"
        case edits.DropHashes(distribution=distribution):
            return f"leaving out the hashes of {distribution}"
        case edits.DropRequiresPython(ranges=ranges):
            return f"leaving out the project's requires-python {' and '.join(f'`{text}`' for text in ranges)}"
        case edits.SetPolicyWords() | edits.SetStrategy():
            return f"`{edit.change}` in policy"
        case edits.SetAccelerator(accelerator=accelerator, before=before):
            return f"accelerator {accelerator}{f' instead of `{before}`' if before else ''}"
        case edits.SetImage(base=base, before=before):
            return f"image {base} instead of `{before}`"
        case edits.SetArchitecture(before=before, architecture=architecture):
            return f"arch_list {architecture} instead of {before}"
        case edits.SetArchitectures(before=before, architectures=architectures):
            return f"arch_list [{', '.join(architectures)}] instead of [{', '.join(before)}]"
        case edits.AddPlatform():
            return f"target.platform {edit.change}"
        case edits.SetRuns(runs=runs, before=before):
            return f"runs: {runs}{f' instead of `{before}`' if before else ''}"
        case edits.CompileFromSource(name=name, requirement=requirement):
            wanted = f"`requires: {{{name}: '{requirement}'}}` and `outputs: [host-script]`"
            return f"compiling {name} on the host, with {wanted} and `provision solve --stack-only`,"
        case edits.SetTwin(name=name):
            return f"{edit.change}{', which uses no GPU,' if edit.is_for_cpu else ''} instead of {name}"
        case edits.SetExtras(before=before, name=name):
            return f"{edit.change} instead of `{name}[{before}]`"
        case edits.UseWsl2(platform=platform):
            return f"Linux in WSL 2 (`wsl --install`), as a host of its own for {platform},"
        case edits.LeaveWsl1():
            return "WSL 2 instead of WSL 1 (`wsl --set-version`)"
        case edits.SetFact(shown_by=shown_by) if shown_by:
            return _reload_words(edit)
        case edits.SetFact(name=name, value=value, today=today) if (row := COMPONENTS.get(name)) and row.remedy == value:
            return f"{value_words(name, value)} ({row.instruction.format(before=today, after=value)})"
        case edits.SetFact(name="gpu", value=value, today=today, product=product, example=example):
            such_as = f" (such as {example})" if example else ""
            return f"{gpu_words(value)}{such_as} instead of {today}{f' ({product})' if product else ''}"
        case edits.SetFact(name=name):
            return value_words(name, edit.change.removeprefix("=="))
        case edits.DropHost():
            return _WITHOUT
    raise TypeError(f"no words for {type(edit).__name__}")


def _reload_words(edit: edits.SetFact) -> str:
    """Return the phrase for an edit to a value that is installed and does not run yet."""
    row, shown = COMPONENTS[edit.name], COMPONENTS[edit.shown_by]
    how = "reloading the kernel modules or rebooting" if row.driver_kind else "rebooting"
    return f"{how} into {row.label} {edit.value}, of which the {shown.label} are installed,"


def _instead(requests: Sequence[Ground], name: str = "") -> str:
    return f" instead of {_quoted(requests, name)}" if requests else ""


def _quoted(requests: Sequence[Ground], name: str = "") -> str:
    """Return requests as the spec spells them; for requests of the component `name`, only the range."""
    texts = dict.fromkeys(
        one.range if name and hasattr(one, "range") and one.component == name else request_words(one) for one in requests
    )
    return " and ".join(f"`{text}`" for text in texts)


def advice(conflict: Conflict) -> Iterator[str]:
    """Yield advice besides fixes: for each distribution that no index has, to check its spelling or add an index."""
    published = {one.name for one in conflict.published}
    offers = [member.offer for member in conflict.members if isinstance(member.offer, NotOffered)]
    unknown = [offer for offer in offers if offer.is_distribution and offer.name not in published]
    for name, near in dict.fromkeys((offer.name, offer.near) for offer in unknown):
        meant = f": did you mean `{near}`?" if near else ","
        yield f"check how `{name}` is spelled{meant} {'Or' if near else 'or'} name the index that has it under `indexes:`"


def published_words(one: Published) -> str:
    """Return how to name a wheel that a project publishes outside package indexes, the page that links to it, or its index."""
    if one.kind == "index":
        entry = f'{{name: {one.name}-index, url: "{one.address}", packages: [{one.name}]}}'
        told = f"unverified, for nobody has read it  ({source_words(one.source)})"
        return f"`{entry}` in indexes, beside all others that are to be asked, would name the vendor's own index; {told}"
    fits = f"for pytorch {one.pytorch} and python {one.python}"
    not_read = f"unverified, for nobody has read it  ({source_words(one.source)})"
    if one.kind == "find-links":
        entry = f'{{name: {one.name}, kind: find-links, url: "{one.address}", packages: [{one.name}]}}'
        return f"`{entry}` in indexes would name the project's own page of wheels {fits}; {not_read}"
    return f"`{one.name} @ {one.address}` in packages would name the project's own wheel {fits}; {not_read}"


def from_elsewhere(conflict: Conflict) -> Iterator[str]:
    """Yield how to name a wheel of a distribution of which no index has a file, and no known page of its project either.

    Nothing is yielded where a GPU refuses the distribution, in any file.
    """
    is_offered = not any(isinstance(member.offer, NotOffered) for member in conflict.members)
    if conflict.is_beyond_help and is_offered and not _is_about_gpu(conflict):
        known = {one.name for one in conflict.published}
        for name in (one for one in _requested(conflict) if one not in known):
            yield f"`{name} @ https://…` in packages would name a wheel from elsewhere; without one, leave `{name}` out"


def without_gpu(conflict: Conflict) -> Iterator[str]:
    """Yield what is left where a GPU refuses a distribution of which no index has a file, in any file."""
    if conflict.is_beyond_help and _is_about_gpu(conflict):
        for name in _requested(conflict):
            if conflict.served:
                yield f"{name} {conflict.served} is the newest that this GPU does not refuse"
            yield f"leave `{name}` out, or take another GPU: on this one a wheel from elsewhere would stop, too"


def with_gpu(conflict: Conflict) -> Iterator[str]:
    """Yield that a host with a GPU was not tried where hosts state that they have none and a package is for GPUs."""
    clauses = (clause for member in conflict.members for clause in member.clauses if isinstance(clause, Statement))
    names = [one.name for one in clauses if isinstance(one.predicate, CompiledAgainst) and one.predicate.has_no_gpu]
    for name in dict.fromkeys(names):
        yield f"not tried: a target with a GPU, which {name} of this index is for"


def _is_about_gpu(conflict: Conflict) -> bool:
    return any(member.kind == "fact" and member.component == "gpu" for member in conflict.members)


def _requested(conflict: Conflict) -> tuple[str, ...]:
    return tuple(dict.fromkeys(member.component for member in conflict.members if member.kind == "request"))


UNTRIED = {
    "sdist": "would read the source distributions too",
    "prerelease": "would take pre-releases of every distribution; a constraint that names one, of that one",
    "build": "would build the source distributions to find out what they require, which runs their code on this machine",
}
"""Words of `policy.allow`, with their effects, that no fix tries: the user must allow them before their files may be read."""

WITHOUT = {"sdist": " from wheels alone", "build": " without a build"}
"""What is true of something that cannot be had, by the word of `policy.allow` that the policy lacks."""

SETTLES = "state `glibc` in the target's profile (`provision inspect` writes one): wheels are then chosen for that one"
SETTLES_IMAGE = "name a base image whose glibc the matrix knows: wheels are then chosen for that one"


def untried(conflict: Conflict) -> Iterator[str]:
    """Yield the words of `policy.allow` that may resolve a conflict, with a note that they were not tried."""
    named = set(_allowances_of(conflict))
    for word, meaning in UNTRIED.items():
        if word in named:
            yield f"not tried: `allow: [{word}]` in policy {meaning}"


def _allowances_of(conflict: Conflict) -> Iterator[str]:
    """Yield the words of `policy.allow` that the clauses of a conflict name.

    Left out are those of what one Python alone has no file for, and those that would only bring versions of a distribution that
    are older than others which a rule of another kind keeps out: nobody wants these.
    """
    clauses = [clause for member in conflict.members for clause in member.clauses]
    statements = [one for one in clauses if isinstance(one, Statement)]
    left_out = [one for one in statements if one.is_of_other_python or any(_is_after(other, one) for other in statements)]
    for clause in clauses:
        if clause not in left_out:
            yield from _allowances(clause)


def _is_after(other: Statement, statement: Statement) -> bool:
    """Return whether a rule that is not about files keeps out versions of a distribution newer than those of a statement."""
    if other.name != statement.name or not isinstance(statement.predicate, NoFile) or isinstance(other.predicate, NoFile):
        return False
    newest, others = (
        [PackageVersion(span.last) for subjects in one.subjects for span in subjects.spans] for one in (statement, other)
    )
    return bool(newest and others) and max(others) > max(newest)


def _allowances(clause: Ground | Statement) -> Iterator[str]:
    predicate = clause.predicate if isinstance(clause, Statement) else getattr(clause, "predicate", None)
    if isinstance(predicate, NoFile) and predicate.allowance:
        yield predicate.allowance
    if isinstance(predicate, Requires) and predicate.is_final_only:
        yield "prerelease"


def cut_short(conflict: Conflict) -> Iterator[str]:
    """Yield that not all fixes were looked for, or could be solved; nothing is yielded where they were."""
    if conflict.is_interrupted:
        yield "there may be a fix: the search for them was interrupted"
    if conflict.is_cut_short:
        yield f"more fixes were not looked for: {CUT_SHORT}" if conflict.fixes else f"there may be a fix: {CUT_SHORT}"
    if conflict.unreached:
        yield f"not solved: what needs index `{conflict.unreached}` or another like it, which are out of reach"


def needs_spec(conflicts: Sequence[Conflict]) -> bool:
    """Return whether a hint on conflicts changes a key that only a spec has, and no list of requirements."""
    return any(
        any(edit.is_of_spec for fix in conflict.fixes for edit in fix.edits) or any(untried(conflict)) for conflict in conflicts
    )


def spec_words(requirements: str) -> str:
    """Return how to get a spec for the keys that hints name, from a requirement file, "" for the command line alone."""
    source = f" --from {requirements}" if requirements else ""
    return f"`provision init{source}` writes a spec, which has the keys of these hints"


def settles_glibc(conflict: Conflict) -> Iterator[str]:
    """Yield how to state the glibc version that was assumed in a conflict; nothing is yielded when none was assumed."""
    assumed = [member for member in conflict.members if member.assumed_glibc is not None]
    if assumed:
        yield SETTLES_IMAGE if any(member.is_assumed_of_image for member in assumed) else SETTLES


def refusal_words(conflicts: Sequence[Conflict]) -> str:
    """Return the conflicts of a problem without an answer in one sentence, each by what excludes each other."""
    found = [contradiction_words(conflict) or NO_STACK for conflict in conflicts]
    return found[0] if len(found) == 1 else f"{len(found)} conflicts: {'; '.join(found)}"


def fixes_sought_words(conflicts: Sequence[Conflict]) -> str:
    """Return why there is no answer, for the progress of the search for fixes."""
    return f"no answer: {refusal_words(conflicts)}; looking for fixes"


def refusal_lines(conflicts: Sequence[Conflict]) -> tuple[str, ...]:
    """Return the lines of all conflicts; each of several conflicts begins with its number."""
    if len(conflicts) == 1:
        return conflict_lines(conflicts[0])
    found: list[str] = []
    for number, conflict in enumerate(conflicts, 1):
        found.append(f"{number}. {contradiction_words(conflict) or NO_STACK}")
        found.extend(f"  {line}" for line in conflict_lines(conflict))
    return tuple(found)


def refusal_hints(conflicts: Sequence[Conflict]) -> tuple[str, ...]:
    """Return the hints on all conflicts; of several conflicts each begins with the numbers of those that it is about.

    That no way out was found is told only where nothing is left to try.
    """
    rest = (REST_UNSOLVED,) if any(conflict.is_rest_unsolved for conflict in conflicts) else ()
    if len(conflicts) == 1:
        return (*(failure_hints(conflicts[0]) or (no_way_words(conflicts[0]),)), *rest)
    of_hint: dict[str, list[str]] = {}
    for number, conflict in enumerate(conflicts, 1):
        for hint in failure_hints(conflict):
            of_hint.setdefault(hint, []).append(str(number))
    found = [f"{listed(numbers)}. {hint}" for hint, numbers in of_hint.items()]
    is_tried = not any(
        conflict.is_beyond_help or conflict.fixes or any(cut_short(conflict)) or any(untried(conflict))
        for conflict in conflicts
    )
    return (*found, *((NO_WAY,) if is_tried else ()), *rest)


def no_way_words(conflict: Conflict) -> str:
    """Return the hint where no fix was found: of one package that is all that was asked for, to leave it out."""
    requests = [member for member in conflict.members if member.kind == "request"]
    packages = [one for member in requests for one in member.clauses if isinstance(one, RequiresDistribution)]
    if len(requests) != 1 or len(packages) != 1:
        return NO_WAY
    name = packages[0].distribution
    return f"{NO_WAY}; leave `{name}` out, or put another package in its place"


def failure_hints(conflict: Conflict) -> tuple[str, ...]:
    """Return all hints on a conflict.

    They are known wheels from elsewhere, advice, fixes, whether more were not looked for, what is left where a GPU refuses a
    distribution or there is none, what `policy.allow` permits, fixes by another GPU, other wheels from elsewhere, and an
    assumed glibc.
    """
    return (
        *map(published_words, conflict.published),
        *advice(conflict),
        *(fix_line(fix) for fix in conflict.fixes if not fix.is_hardware),
        *cut_short(conflict),
        *without_gpu(conflict),
        *with_gpu(conflict),
        *untried(conflict),
        *(fix_line(fix) for fix in conflict.fixes if fix.is_hardware),
        *from_elsewhere(conflict),
        *settles_glibc(conflict),
    )
