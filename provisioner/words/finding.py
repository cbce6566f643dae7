"""Findings of a check as sentences, with the lines below them and the hints on each."""

from __future__ import annotations

from pathlib import PurePath
from shlex import quote
from typing import TYPE_CHECKING

from provisioner.grounds import finding as of
from provisioner.words.conflict import conflict_lines, fix_line
from provisioner.words.doubt import doubt_words
from provisioner.words.ground import say_with_source
from provisioner.words.notation import listed, undated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.finding import Command, FileDrift, Finding, IndexDifference, Reason
    from provisioner.grounds.requirement import Subject

MOST_NAMES = 3
"""The number of packages that a finding names."""

_DEFAULT_SPEC = "provision.yaml"
"""The spec that `provision solve` reads when none is named."""

_WITHOUT_SPEC = "--with"
"""Stands in the place of a spec where a lock was solved from the command line alone."""

RUNS = {"container": "in a container", "host": "on the host itself"}
_KINDS = {"prerelease": "a prerelease", "sdist": "a source distribution"}
_PLACED = (
    of.OtherHash, of.ForbiddenRelease, of.LateUpload, of.OtherIndex, of.FileClash, of.UnmetNeed, of.OtherAbi, of.NoPython,
    of.PythonNotAdmitted, of.EnvironmentsRefuse, of.EnvironmentsAdmit, of.MarkerDisagrees, of.PackagePython,
    of.NoFileForPlatform, of.TooManyFiles, of.UnusableAddress, of.LoginInAddress, of.OtherWheel, of.LockedTwice,
    of.UnlockedDependency, of.OtherPin, of.OtherAddress, of.NoAddress, of.SameHash, of.OtherInstaller, of.TwoAddresses,
    of.OtherDependency, of.OtherKey, of.OtherRequest,
)  # fmt: skip
"""Findings whose place is appended to the sentence; in others, the sentence contains the place or file."""


def finding_words(finding: Finding) -> str:
    """Return a finding as one sentence, with its place in brackets."""
    words = _words(finding)
    return f"{words}  ({finding.place})" if isinstance(finding, _PLACED) and finding.place is not None else words


def finding_details(finding: Finding) -> tuple[str, ...]:
    """Return the lines below a finding: the conflict, or why an index cannot be reached; () for any other finding."""
    match finding:
        case of.StaleStack(conflict=conflict) | of.NoLongerSolvable(conflict=conflict) | of.StrandedHosts(conflict=conflict):
            return conflict_lines(conflict)
        case of.UnknownChanges(causes=causes):
            return causes
        case of.UnreadableEvidence(mistakes=mistakes):
            return mistakes
    return ()


def finding_hints(finding: Finding, *, spec: str = "") -> tuple[str, ...]:
    """Return hints on a finding; () when nothing but solving again is needed. `spec` is the file that a command solves."""
    command = f"`{command_words(finding.command, spec=spec)}`" if finding.command is not None else ""
    match finding:
        case of.StaleStack(conflict=conflict) | of.NoLongerSolvable(conflict=conflict):
            return tuple(map(fix_line, conflict.fixes))
        case of.UnknownChanges(hints=hints):
            return hints
        case of.WeakEvidence(idle=idle) if idle:
            return ("ask for the evidence that there can be: a lower --require-evidence",)
        case of.FailedEvidence():
            return (f"{command} shows them, measured anew",)
        case of.AboutEvidence() if command:
            return (f"{command} measures it, and writes the evidence",)
        case of.EditedLock():
            return (f"change the spec and run {command}",)
        case of.OrphanedOutput(file=file):
            return (f"delete `{file}`, or solve its spec again",)
        case of.TwinLock():
            return ("delete the one that is left over, such as that of an earlier name of the spec",)
        case of.SharedName():
            return ("give each spec a `name:` of its own: images and reports are called by it",)
        case of.StrandedHosts(conflict=conflict):
            return tuple(map(fix_line, conflict.fixes))
        case of.UnsolvedSpec() | of.MissingTarget() | of.MissingPlace() | of.MissingOutput() if not isinstance(
            finding, of.EditedOutput
        ):
            return (f"{command} writes it",)
        case of.EditedOutput(by="line-ends"):
            kept = f"`{PurePath(finding.file).name} text eol=lf` in .gitattributes keeps git from doing so (core.autocrlf)"
            return (kept, f"{command} writes it again, and so does `provision check --fix`")
        case of.EditedOutput(is_unedited=True):
            return (f"{command} writes it again, and so does `provision check --fix`",)
        case of.EditedOutput(is_foreign=is_foreign, by=by):
            if is_foreign:
                return (f"{command} writes it again; provision did not render what is there: move or delete that first",)
            loss = "" if by == "conflict" else "; a change made in it by hand is lost"
            return (f"{command} writes it again{loss}",)
        case of.OtherHostRequirement() | of.OtherVariable() | of.OtherGate() | of.OtherSystemPackages() | of.OtherHostSetup():
            return (f"{command} writes it again; what is locked stays as it is where nothing else changed",)
        case of.OfUnstatedHosts():
            return (f"{command} asks about the hosts it was solved for",)
        case of.UnneededPackages(subjects=subjects):
            return (f"{command} locks without {'it' if len(subjects) == 1 else 'them'}",)
        case of.OtherBuild():
            return (f"{command} locks the wheel of the build",)
        case of.VanishedFile():
            return (f"{command} locks what is offered today",)
        case of.ExchangedFile():
            return ("do not install it before somebody has said why: an index must never change a file under its name",)
    return ()


def command_words(command: Command, *, spec: str = "") -> str:
    """Return a command as the user types it; `spec` is the file to solve for a command that names none."""
    match command:
        case of.Solve(target=target, spec=own):
            file = own or spec
            if file == _WITHOUT_SPEC:
                return "provision solve --with REQUIREMENT"
            words = ("provision solve", *((quote(file),) if file not in {"", _DEFAULT_SPEC} else ()))
            return " ".join((*words, "--target", quote(target)) if target else words)
        case of.Render(lock=lock, output=output, file=file):
            return f"provision render {quote(lock)} --to {output} --out {quote(file)}"
        case of.CheckWithHosts():
            return "provision check --host PROFILE"
        case of.Validate(lock=lock, platform=platform, level=level, is_local=is_local):
            engine = " --engine local" if is_local else ""
            on = f" --platform {platform}" if platform else ""
            return f"provision validate {lock}{engine}{on}{'' if level is None else f' --level {level}'}"


def drift_words(drift: FileDrift) -> str:
    """Return the difference between a locked file and what its index lists today as a sentence."""
    label = str(drift.package)
    match drift.kind:
        case "vanished":
            return f"`{drift.filename}` of {label} is no longer listed by index {drift.index}"
        case "exchanged":
            return (
                f"`{drift.filename}` of {label} has another sha256 on index {drift.index} than in the lock: "
                f"{drift.offered}, the lock has {drift.locked}"
            )
        case "yanked":
            return f"{label} is yanked{f': {drift.offered}' if drift.offered else ', with no reason given'}"
    return f"`{drift.filename}` of {label} was uploaded {drift.offered} by its index, the lock says {drift.locked}"


def _words(finding: Finding) -> str:
    match finding:
        case of.Contradiction():
            return _contradiction(finding)
        case of.StalePackage() | of.MissingPackage() | of.UnrecordedExtras() | of.UnknownGlibc():
            return _package(finding)
        case of.AboutEvidence():
            return _evidence(finding)
        case of.EditedLock():
            return "the lock was edited by hand: its digest does not fit its content"
        case of.NoSpec(object=file):
            return f"its spec `{file}` is not there, so nothing can be said about what was asked for"
        case of.UnsolvedSpec(object=file):
            return f"`{file}` has no lock"
        case of.OrphanedOutput(file=file, lock=lock):
            return f"`{file}` was rendered from {lock}, which is not there"
        case of.TwinLock(object=file, other=other):
            return f"it is a lock of `{file}`, as `{other}` is, for the same target"
        case of.SharedName(object=name, others=others):
            return f"the name {name} is that of {_named(others)}, too"
        case of.StrandedHosts(hosts=hosts, platform=platform, before=before):
            since = {None: "", True: ", and the stack of the last commit did", False: ", nor did that of the last commit"}[
                before
            ]
            return f"the stack does not run on {_named(hosts)} ({platform}){since}"
        case of.MissingTarget(object=target):
            return f"the spec wants target {target}, which has no lock beside this one"
        case of.MissingPlace(object=place):
            return f"the spec says `runs: {place}`, too, which has no lock beside this one"
        case of.MissingPlatform(needed=needed, locked=locked):
            return f"the spec wants {needed}, the lock has {', '.join(locked)}"
        case of.OtherName(needed=needed, locked=has):
            return f"the spec calls the environment {needed}, the lock calls it {has}"
        case of.UnaskedPlatforms(platforms=platforms, needed=needed):
            return f"the lock is for {listed(platforms)}, too, and the spec wants {listed(needed)} alone"
        case of.OtherAccelerator(needed=needed, locked=has):
            return f"the spec and its hosts call for accelerator {needed}, the lock is for {has}"
        case of.Unverified(doubt=doubt):
            return doubt_words(doubt)
        case of.EditedOutput(file=file, by="line-ends"):
            return f"`{file}` has the right text, but its lines end in CR LF, with which an image may not build or run"
        case of.EditedOutput(file=file, place=place, by="conflict"):
            line = place.line if place is not None else 1
            return f"`{file}` has a conflict of a merge that nobody resolved, at line {line}"
        case of.EditedOutput(file=file, place=place):
            wanted = "what this version of provision writes" if finding.helped else "what its lock renders"
            nobody = ", though nobody edited it" if finding.is_unedited else ""
            return f"`{file}` is not {wanted}{nobody}; they differ from line {place.line if place is not None else 1}"
        case of.UnpinnedBase(reference=reference):
            return f"{reference} is not pinned by digest: another build of its tag may be another image"
        case of.UndatedPackages(names=names):
            return undated(names)
        case of.MissingOutput(file=file):
            return f"`{file}` is missing"
        case of.OverwrittenFile(subjects=subjects, file=file, others=others):
            more = f" and {others} more" if others else ""
            is_known = isinstance(finding, of.KnownOverwrittenFile)
            note = ", which the matrix names and does not refuse" if is_known else ""
            return f"{_all(subjects)} both write {file}{more}, each its own{note}"
        case of.UnreadWheel(object=name, problem=problem):
            return f"what is in {name} could not be read: {problem}"
        case of.UnknownChanges(problem=problem):
            return f"what solving again would change cannot be told: {problem}"
        case of.StaleStack():
            return "the locked stack does not satisfy the spec, the matrix and the hosts"
        case of.NoLongerSolvable():
            return "nothing fits the spec, the matrix and the indexes of today, so this lock could not be made again"
        case of.UnlistedRelease(subject=subject):
            return f"the matrix does not list {subject} (any longer) for what the spec asks"
        case of.OtherImage(needed=needed, locked=has):
            return f"the lock has base image {has}, the spec asks for {needed}"
        case of.OtherHostRequirement(object=fact, needed=needed, locked=has):
            return f"the lock asks hosts for {fact} {has or 'of any kind'}, the stack needs {needed or 'none in particular'}"
        case of.OtherVariable(object=name, needed=needed, locked=has):
            return f"the lock sets {name} to {_or_empty(has)}, the stack needs it to be {_or_empty(needed)}"
        case of.OfUnstatedHosts(finding=about):
            return f"{_words(about)}; the spec has no hosts, and of those of a command line no lock tells"
        case of.OtherGate(needed=needed, locked=has):
            return (
                "the image would start on other hosts than the stack runs on: NVIDIA_REQUIRE_CUDA should be "
                f"{_or_empty(needed)}, the lock has {_or_empty(has)}"
            )
        case of.OtherSystemPackages(needed=needed, locked=has):
            lacking, beside = sorted(set(needed) - set(has)), sorted(set(has) - set(needed))
            parts = [f"lacks {listed(lacking)}"] if lacking else []
            parts += [f"has {listed(beside)}, which nothing needs"] if beside else []
            return f"of the system's packages the lock {' and '.join(parts)}"
        case of.OtherHostSetup(object=system, is_locked=is_locked, is_needed=is_needed):
            if is_locked and is_needed:
                return f"a host with {system} is set up in another way than the lock has it"
            return f"the lock {'says' if is_locked else 'does not say'} how a host with {system} is set up"
        case of.OtherRuns(needed=needed, locked=has):
            return f"the spec wants to run {RUNS[needed]}, the lock is for running {RUNS[has]}"
        case of.OtherIndex(subjects=subjects, difference=difference):
            return f"{_some(subjects)} come{'s' if len(subjects) == 1 else ''} from {_index(difference)}"
        case of.UnneededPackages(subjects=subjects):
            verb, them = ("is", "it") if len(subjects) == 1 else ("are", "them")
            return f"{_some(subjects)} {verb} locked, and nothing that the spec asks for needs {them}"
        case of.MissingArtefact(subject=subject, file=file):
            return f"`{file}` of {subject} is missing"
        case of.ChangedArtefact(file=file, locked=has, found=found):
            return f"`{file}` has sha256 {found}, the lock says {has}"
        case of.ResizedArtefact(file=file, locked=size, found=found_size):
            return f"`{file}` has {found_size} bytes, the lock says {size}"
        case of.VanishedFile(drift=drift) | of.ExchangedFile(drift=drift):
            return drift_words(drift)
    raise TypeError(f"no words for {type(finding).__name__}")


def _evidence(finding: of.AboutEvidence) -> str:
    on, file = finding.platform, finding.file
    match finding:
        case of.ProvenEvidence(level=level, name=name, engine=engine, time=time):
            return f"validated up to level {level} ({name}) on {on}{f' with {engine}' if engine else ''}, {time}"
        case of.MissingEvidence():
            return f"there is no evidence that it was validated on {on}: `{file}` is missing"
        case of.StaleEvidence(difference="lock", needed=needed, found=found):
            return f"`{file}` is evidence of another lock file: of sha256 {_short(found)}, and this one has {_short(needed)}"
        case of.StaleEvidence(difference="Dockerfile", needed=needed, found=found):
            both = f"of sha256 {_short(found)}, and this lock renders {_short(needed) or 'none'}"
            return f"`{file}` is evidence of an image of another Dockerfile: {both}"
        case of.StaleEvidence(found=found):
            return f"`{file}` is evidence for {found}, not for {on}"
        case of.WeakEvidence(level=level, name=name, proven=proven, unverified=unverified, idle=idle):
            proves = "proves no level" if proven is None else f"proves the levels up to {proven}"
            nothing = f", which has nothing to do for this lock: {idle}" if idle else ""
            unknown = f"; unverified: {_named(unverified)}" if unverified and not idle else ""
            return f"`{file}` {proves}, not {level} ({name}){nothing}{unknown}"
        case of.FailedEvidence(wrong=wrong):
            return f"`{file}` is evidence that it is not as locked on {on}: {_named(wrong)}"
        case of.EditedEvidence():
            return f"`{file}` was edited by hand: its parts do not agree with the hash of its report"
        case of.UnreadableEvidence(problem=problem):
            return f"`{file}` cannot be read as evidence: {problem}"
    raise TypeError(f"no words for {type(finding).__name__}")


def _package(finding: Finding) -> str:
    match finding:
        case of.MissingPackage(object=name, by=by):
            return f"`{name}` is not locked: {_reason(by)}"
        case of.OtherVersion(subject=subject, by=by):
            return f"{subject} is locked, but {_reason(by)}"
        case of.OtherFile(subject=subject, by=by):
            return f"{subject} is locked from elsewhere, but {_reason(by)}"
        case of.OtherHash(subject=subject):
            return f"{subject} is locked with a file that has none of your hashes"
        case of.MissingExtras(subject=subject, extras=extras, by=by):
            return f"{subject} is locked without its {_extras(extras)}, but {_reason(by)}"
        case of.UnrecordedExtras(subject=subject, extras=extras, by=by):
            unknown = f"so {subject} may be locked without its {_extras(extras)}"
            return f"an earlier version recorded no extras, {unknown}: {_reason(by)}"
        case of.UnneededExtras(subject=subject, extras=extras):
            return f"{subject} is locked with its {_extras(extras)}, which nothing asks for any more"
        case of.ForbiddenRelease(subject=subject, word=word):
            return f"{subject} is {_KINDS[word]}, and the spec forbids {word}"
        case of.SourceDistribution(subject=subject):
            return f"{subject} is {_KINDS['sdist']}, and no `allow: [sdist]` of the spec takes it"
        case of.LateUpload(subject=subject, until=until):
            return f"{subject} was uploaded after {until}, the last day of the policy"
        case of.NewerGlibc(subject=subject, file=file, needed=needed, locked=has, by=by_host):
            stated = say_with_source(by_host) if by_host is not None else f"the target has glibc {has}"
            return f"`{file}` of {subject} needs glibc {needed}, and {stated}"
        case of.NotInstallable(subject=subject, file=file, problem=problem):
            return f"`{file}` of {subject} does not install where the spec wants it: {problem}"
        case of.UnknownGlibc(subject=subject, file=file, needed=needed):
            return f"`{file}` of {subject} needs glibc {needed}, and which one the target has is not known"
        case of.FileClash(subjects=subjects, file=file, because=because):
            return f"{_all(subjects)} write files such as {file}: {because}"
        case of.UnmetNeed(subject=subject, object=name, needed=needed, locked=has, because=because):
            beside = f"{name} {has} is locked" if has else f"no {name} is locked"
            return f"{subject} needs {name} {needed}, and {beside}: {because}"
        case of.OtherAbi(subject=subject, needs_new=needs_new, build=build):
            abi = f"a build of the {'new' if needs_new else 'old'} C++ ABI of PyTorch"
            return f"{subject} needs {abi}, and {build} is locked"
    raise TypeError(f"no words for {type(finding).__name__}")


def _contradiction(finding: of.Contradiction) -> str:
    match finding:
        case of.OtherComponent(subject=subject, object=component, needed=needed):
            return f"the stack has {component} {needed}, the packages have {subject}"
        case of.OtherBuild(subject=subject, needed=needed, locked=has):
            return f"the stack has {subject}, whose wheel is torch {needed}; the packages have torch {has}"
        case of.NoPython(platform=platform):
            return f"the stack of {platform} names no python, and packages are for one"
        case of.PythonNotAdmitted(needed=needed, locked=has):
            return f"requires-python is {has}, the stack has python {needed}"
        case of.EnvironmentsRefuse(platform=platform, python=python):
            return f"`environments` turns installers away on {platform} with python {python}, for which this lock was solved"
        case of.EnvironmentsAdmit(key=key, platforms=platforms, pythons=(first, last)):
            python = first if first == last else f"{first} to {last}"
            return f"`{key}` lets installers in on {listed(platforms)} with python {python}, for which nothing was solved"
        case of.MarkerDisagrees(subject=subject, platform=platform, marker=""):
            return f"{subject} is not locked for {platform}, and without a marker it is installed there"
        case of.MarkerDisagrees(subject=subject, platform=platform, marker=marker, is_locked=is_locked):
            verb, fails = ("is locked for", "fails") if is_locked else ("is not locked for", "holds")
            return f"{subject} {verb} {platform}, and its marker `{marker}` {fails} there"
        case of.PackagePython(subject=subject, platform=platform, needed=needed, locked=has):
            return f"{subject} needs python {needed}, the stack of {platform} has python {has}"
        case of.NoFileForPlatform(subject=subject, platform=platform, files=files):
            return f"{subject} is locked for {platform}, and no file of it is: {', '.join(files)}"
        case of.TooManyFiles(subject=subject, platforms=platforms, files=files):
            has = f"{subject} has {len(files)} files for {' and '.join(platforms)}"
            return f"{has}, and one each is what was solved: {', '.join(files)}"
        case of.UnusableAddress(subject=subject, url=url):
            return f"`{url}` of {subject} is not the address of a file that others could download"
        case of.LoginInAddress(subject=subject):
            return f"the address of {subject} holds a login, which whoever has this lock can read"
        case of.OtherWheel(subject=subject, file=file):
            return f"{subject} is locked with `{file}`, which is the file of another release"
        case of.OtherAddress(subject=subject, file=file, found=found):
            return f"{subject} is locked with `{file}`, and its address is that of `{found}`"
        case of.NoAddress(subject=subject, file=file):
            return f"`{file}` of {subject} has neither url nor path"
        case of.SameHash(subject=subject, files=(file, other)):
            return f"`{file}` of {subject} has the hash of `{other}`"
        case of.OtherInstaller(platform=platform, needed=needed, locked=has):
            return f"the installer of {platform} is {has}, and what is rendered calls {needed}"
        case of.TwoAddresses(object=name, values=(first, second)):
            return f"{name} stands for {first or 'nothing'} and for {second or 'nothing'}"
        case of.OtherDependency(subject=subject, object=name, is_required=True):
            return f"{subject} requires {name}, which is locked and missing among its dependencies"
        case of.OtherDependency(subject=subject, object=name):
            return f"{subject} depends on {name}, and none of its requirements names it"
        case of.OtherKey(platform=platform, object=key, needed=needed, locked=has):
            return f"`{key}` of {platform} is {_or_empty(has)}, and its components and packages come to {_or_empty(needed)}"
        case of.OtherReason(platform=platform, object=key, needed="", locked=has):
            return f"`{key}` of {platform} has a reason that nothing in the lock gives: {has}"
        case of.OtherReason(platform=platform, object=key, needed=needed):
            return f"`{key}` of {platform} lacks a reason: {needed}"
        case of.OtherRequest(object=key, needed=needed, locked=has):
            return f"`asked` has {_or_empty(has)} for {key}, and the spec that it was made from has {_or_empty(needed)}"
        case of.LockedTwice(object=name, platform=platform, versions=(first, second)):
            both = f"as {first} and as {second}" if first != second else f"both times as {first}"
            return f"{name} is locked twice for {platform}, {both}, which installers refuse"
        case of.UnlockedDependency(subject=subject, object=name):
            return f"{subject} depends on {name}, which is not locked"
        case of.OtherPin(platform=platform, object=name, needed=needed, locked=""):
            return f"the stack of {platform} has {name} {needed}, and no reasons for it"
        case of.OtherPin(platform=platform, object=name, needed="", locked=has):
            return f"the reasons of {platform} are for {name} {has}, too, which its stack has not"
        case of.OtherPin(platform=platform, object=name, needed=needed, locked=has):
            return f"the stack of {platform} has {name} {needed}, and the reasons are for {name} {has}"
    raise TypeError(f"no words for {type(finding).__name__}")


def _reason(reason: Reason) -> str:
    if isinstance(reason, of.RequiredBy):
        return f"{reason.package} needs {reason.requirement}"
    return say_with_source(reason)


def _index(difference: IndexDifference) -> str:
    match difference:
        case of.UnlistedIndex(index=index):
            return f"index {index}, which the spec does not have"
        case of.DedicatedIndex(index=index, dedicated=dedicated):
            return f"index {index}, and the spec has index {dedicated} alone for it"
        case of.IndexOfOthers(index=index, patterns=patterns):
            return f"index {index}, which the spec has for {', '.join(patterns)} alone"
        case of.MovedIndex(index=index, locked=url, needed=needed):
            return f"index {index} at {url}, and the spec has it at {needed}"


def _all(subjects: Sequence[Subject]) -> str:
    return " and ".join(map(str, subjects))


def _some(subjects: Sequence[Subject]) -> str:
    """Return `alpha 2.0 and beta 1.0`; of many subjects, the first few and the number of the others."""
    return _named(list(map(str, subjects)))


def _short(digest: str) -> str:
    """Return the beginning of a hash, as much as people compare."""
    return f"{digest[:12]}…" if digest else ""


def _named(names: Sequence[str]) -> str:
    """Return the first few names and the number of the others."""
    shown = list(names) if len(names) <= MOST_NAMES + 1 else [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} more"]
    return listed(shown)


def _extras(names: Sequence[str]) -> str:
    noun = "extra" if len(names) == 1 else "extras"
    return f"{noun} {', '.join(f'`{name}`' for name in names)}"


def _or_empty(value: str) -> str:
    return f"`{value}`" if value else "empty"
