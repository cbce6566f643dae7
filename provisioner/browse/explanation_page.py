"""A lock as one page to read: its layers, why it has each version, what lost and why, and what is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provisioner.browse.page import page
from provisioner.browse.rows import citations_by_row
from provisioner.browse.validation_page import levels
from provisioner.components import COMPONENTS
from provisioner.grounds.finding import Unverified
from provisioner.grounds.requirement import AsksWhyNot, Entails, Ground
from provisioner.grounds.source import Documents, Hazard, MatrixRow
from provisioner.layers import LAYERS, layer_of
from provisioner.places import Place
from provisioner.spec.load import WITH
from provisioner.words.change import SECTION_TITLES, because, change_words, note_words, where_words
from provisioner.words.choice import shown_words, unread_words
from provisioner.words.doubt import assumption_words, doubt_words
from provisioner.words.explanation import (
    OWN_LINES,
    accepted_words,
    image_words,
    labelled,
    matrix_words,
    origin_words,
    required_words,
    runs_words,
    slot_words,
    spec_words,
    stated_words,
    tool_words,
)
from provisioner.words.fault import layer_title
from provisioner.words.finding import finding_details, finding_hints, finding_words
from provisioner.words.ground import say, say_with_source
from provisioner.words.notation import counted, listed, source_words
from provisioner.words.relaxation import relaxation_words
from provisioner.words.series import newer_series_lines, newer_series_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provisioner.evidence.report import Report
    from provisioner.grounds.change import Change, Comparison
    from provisioner.grounds.finding import AboutEvidence, Finding
    from provisioner.grounds.series import NewerSeries
    from provisioner.lock.explain import Explained
    from provisioner.lock.format.model import Lock, LockedPackage, LockedPin
    from provisioner.matrix.model import Citation, Matrix
    from provisioner.resolver.stack import Stack
    from provisioner.resolver.why import Why

TEMPLATE = "explanation.html.j2"
STYLE = "explanation.css"


class Told(NamedTuple):
    """A reason: its sentence, the place where it was read, and the keys of its sources in the matrix."""

    text: str
    place: str
    sources: tuple[str, ...]
    is_holding: bool = False


class Loser(NamedTuple):
    """Newer series that were not taken: a sentence, and the lines below it; `is_open` if nothing is known to exclude them."""

    text: str
    lines: tuple[str, ...]
    is_open: bool


class Choice(NamedTuple):
    """A component with its version: why this one, and what keeps newer ones out. `anchor` is unique on the page."""

    anchor: str
    name: str
    version: str
    whom: str
    newest: str
    reasons: tuple[Told, ...]
    losers: tuple[Loser, ...]


class Part(NamedTuple):
    """A component in the picture of layers; `held` says what keeps a newer one out, "" if nothing does, or nobody knows."""

    name: str
    version: str
    origin: str
    anchor: str
    held: str


class Layer(NamedTuple):
    """A layer of the picture: its components, each with the number of hosts that state it so, and those that it holds back.

    Newer releases of what it `limits` go with no other choice either; of what it `pins`, they do not go with what is chosen.
    `is_unknown`: the stack needs something of the layer that no host states.
    """

    title: str
    parts: tuple[tuple[Part, int], ...]
    limits: tuple[str, ...]
    pins: tuple[str, ...]
    is_unknown: bool


class Fact(NamedTuple):
    """A fact of a host: what is stated, what the stack needs, and the verdict; "" where there is none."""

    anchor: str
    name: str
    host: str
    stated: str
    needed: str
    verdict: str
    reasons: tuple[Told, ...]


class Package(NamedTuple):
    """A package of the lock: who requires it, and whether that is a line of the spec."""

    name: str
    version: str
    index_url: str
    because: str
    is_requested: bool


class _Sources:
    """The sources of the matrix that a page cites, by key."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._rows = citations_by_row(matrix)
        self._places: dict[Place, dict[str, None]] = {}
        for name, place in matrix.positions.items():
            self._places.setdefault(place, {}).update(dict.fromkeys(self._rows.get(name, ())))
        self.cited: dict[str, None] = {}

    def of(self, ground: Ground) -> tuple[str, ...]:
        """Return the keys of the sources of a ground, and remember them."""
        found = tuple(key for key in self._keys(ground) if key in self._matrix.citations)
        self.cited.update(dict.fromkeys(found))
        return found

    def _keys(self, ground: Ground) -> Iterable[str]:
        source = ground.source
        if isinstance(source, Documents):
            return source.citations
        if isinstance(source, MatrixRow) and f"{source.table}:{source.name}" in self._rows:
            return self._rows[f"{source.table}:{source.name}"]
        place = source.place if isinstance(source, MatrixRow | Hazard) else source
        if isinstance(ground, Entails) and ground.subject is not None:
            name, label = ground.subject.name, ground.subject.label
            release = self._rows.get(f"{name}=={label.partition('+')[0]}", ())
            if found := {**dict.fromkeys(self._rows.get(f"{name}=={label}", ())), **dict.fromkeys(release)}:
                return found
        return self._places.get(place, ()) if isinstance(place, Place) else ()

    def rows(self) -> list[tuple[str, Citation]]:
        """Return the sources that were cited, sorted by key."""
        return [(key, self._matrix.citations[key]) for key in sorted(self.cited)]


class Subject(NamedTuple):
    """What a page is about besides the explanation of each platform.

    `file` is the name of the lock and `verdict` that of the check, `findings` what it found; `evidence` has what each file of
    evidence beside the lock proves, with its report, None if there is none to read. `headlines` are the first lines of the
    answers, by platform. `comparison` has the changes since the lock named `old`, None without such a lock.
    """

    file: str
    verdict: str
    findings: Sequence[Finding]
    evidence: Sequence[tuple[AboutEvidence, Report | None]]
    headlines: Mapping[str, str]
    old: str = ""
    comparison: Comparison | None = None


def explanation_page(subject: Subject, platforms: Sequence[Explained], matrix: Matrix) -> str:
    """Return the text of the page of a lock; the same lock, spec, hosts, matrix and evidence give the same text."""
    sources = _Sources(matrix)
    shown = [_platform(one, subject.headlines.get(one.lock.stack.platform, ""), matrix, sources) for one in platforms]
    lock = platforms[0].lock
    return page(
        TEMPLATE,
        styles=(STYLE,),
        subject=subject,
        about=_about(lock, matrix),
        platforms=shown,
        # Of several platforms the same may be found, in the same words; doubts are told with their platforms.
        findings=dict.fromkeys(
            (one.verdict, finding_words(one), (*finding_details(one), *finding_hints(one, spec=lock.spec_file or WITH)))
            for one in subject.findings
            if not isinstance(one, Unverified)
        ),
        evidence=[
            (one, finding_words(one), report, levels(report) if report is not None else ()) for one, report in subject.evidence
        ],
        changes=_changes(subject.comparison) if subject.comparison is not None else (),
        notes=[note_words(one) for one in subject.comparison.notes] if subject.comparison is not None else (),
        sources=sources.rows(),
        spec_file=lock.spec_file or f"{WITH} REQUIREMENT",
    )


def _about(lock: Lock, matrix: Matrix) -> list[tuple[str, str]]:
    """Return what the page was made from, as labels and values."""
    return labelled(
        {
            "name": lock.name,
            "target": lock.target,
            "spec": spec_words(lock.spec_file),
            "tool": tool_words(lock.tool_version),
            "matrix": matrix_words(lock.matrix_digest, matrix.digest),
        }
    )


def _platform(explained: Explained, headline: str, matrix: Matrix, sources: _Sources) -> Mapping[str, object]:
    """Return everything that the page shows of one platform."""
    own, stack = explained.lock.stack, explained.stack
    prefix = own.platform.replace("/", "-")
    whys = _anchored([one for one in explained.whys if not _is_shadowed(one, explained.whys)], prefix)
    choices = [_choice(why, anchor, matrix, sources) for anchor, why in whys.items() if not _is_of_host(why)]
    facts = [*_facts(whys, explained, sources), *_unbound_facts(whys, explained)]
    return {
        "name": own.platform,
        "anchor": prefix,
        "headline": headline,
        "about": _about_platform(explained),
        "layers": _layers(explained, whys, prefix, matrix),
        "choices": choices if stack is not None else [*_recorded(explained.lock, prefix)],
        "facts": facts,
        "doubts": [*map(doubt_words, stack.doubts)] if stack is not None else (),
        "remarks": _remarks(stack) if stack is not None else [*_recorded_remarks(explained.lock)],
        "packages": _packages(explained),
        "is_explained": stack is not None,
    }


def _is_shadowed(why: Why, whys: Sequence[Why]) -> bool:
    """Return whether a component that only frameworks' own copies stand for is left out, as it is in the answer itself."""
    if why.slot or why.host or any(one.component == "pytorch" for one in whys):
        return False
    return any(one.slot and one.component == why.component for one in whys)


def _anchored(whys: Sequence[Why], prefix: str) -> dict[str, Why]:
    """Return explanations by anchors, which are unique on the page."""
    found: dict[str, Why] = {}
    for why in whys:
        name = "-".join(filter(None, (prefix, why.component, why.slot)))
        number = sum(1 for other in found.values() if (other.component, other.slot) == (why.component, why.slot))
        found[f"{name}-{number + 1}" if number else name] = why
    return found


def _is_of_host(why: Why) -> bool:
    return why.is_fact or bool(why.host)


def _about_platform(explained: Explained) -> list[tuple[str, str]]:
    stack = explained.lock.stack
    return labelled(
        {
            "accelerator": stack.accelerator,
            "basis": stack.basis,
            "runs": runs_words(stack.runs),
            "image": image_words(stack.image.reference, stack.image.digest) if stack.image is not None else "",
            "arch_list": " ".join(stack.arch_list),
            "host_requirements": ", ".join(f"{name} {text}" for name, text in stack.host_requirements.items() if name != "gpu"),
            "environment": ", ".join(f"{name}={value}" for name, value in stack.environment.items()),
        }
    )


def _choice(why: Why, anchor: str, matrix: Matrix, sources: _Sources) -> Choice:
    return Choice(
        anchor=anchor,
        name=why.component,
        version=why.chosen,
        whom=why.slot,
        newest=why.newer if why.newer is not None and not _is_named(why.component, matrix) else "",
        reasons=tuple(_told(why, sources)),
        losers=tuple(_loser(one, why) for one in why.series),
    )


def _told(why: Why, sources: _Sources) -> Iterator[Told]:
    for reason in sorted(why.reasons, key=lambda reason: reason not in why.held_by):
        yield Told(say(reason), source_words(reason.source), sources.of(reason), reason in why.held_by)


def _loser(series: NewerSeries, why: Why) -> Loser:
    text = newer_series_words(series, why.component, why.chosen)
    is_open = series.conflict is None and series.excluded_by is None
    return Loser(text, newer_series_lines(series, why.component, why.chosen), is_open)


def _recorded(lock: Lock, prefix: str) -> Iterator[Choice]:
    """Yield the choices of a lock with the reasons that it records, which were true when it was solved."""
    pins: dict[str, list[LockedPin]] = {}
    for pin in lock.stack.pins:
        pins.setdefault(pin.component, []).append(pin)  # frameworks with a CUDA of their own have several
    for component, some in pins.items():
        versions = dict.fromkeys(f"{pin.version}+{pin.build}" if pin.build else pin.version for pin in some)
        reasons = dict.fromkeys(Told(one.text, one.where, ()) for pin in some for one in pin.reasons)
        yield Choice(f"{prefix}-{component}", component, ", ".join(versions), "", "", tuple(reasons), ())


def _recorded_remarks(lock: Lock) -> Iterator[str]:
    stack = lock.stack
    yield from (*stack.unverified, *stack.assumes, *stack.accepts, *stack.relaxations)


def _remarks(stack: Stack) -> list[str]:
    """Return what is taken for granted, accepted, relaxed, shown by drivers, and stated without effect, as sentences."""
    return [
        *map(assumption_words, stack.assumes),
        *(accepted_words(doubt_words(one)) for one in stack.accepts),
        *(_with_place(relaxation_words(one), source_words(one.source)) for one in stack.relaxations),
        *map(shown_words, stack.shown),
        *map(unread_words, stack.unread),
    ]


def _with_place(text: str, place: str) -> str:
    return f"{text}  ({place})" if place else text


def _facts(whys: Mapping[str, Why], explained: Explained, sources: _Sources) -> Iterator[Fact]:
    """Yield the facts of each host that the stack depends on."""
    stack = explained.stack
    if stack is None:
        return
    doubted = {(one.component, one.of_host) for one in stack.doubts}
    for anchor, why in whys.items():
        if not _is_of_host(why):
            continue
        is_doubted = bool({(why.component, why.host), (why.component, "")} & doubted)
        verdict = "unverified" if is_doubted else "yes" if why.is_fact else "chosen"
        needed = stack.host_requirements.get(why.component, "")
        stated = stated_words(why.chosen, is_fact=why.is_fact)
        yield Fact(anchor, _label(why.component), why.host, stated, needed, verdict, tuple(_told(why, sources)))


def _unbound_facts(whys: Mapping[str, Why], explained: Explained) -> Iterator[Fact]:
    """Yield what is asked of every host where no host states it: the ranges, which are in the lock without one."""
    told = {why.component for why in whys.values() if _is_of_host(why)}
    for name, needed in explained.lock.stack.host_requirements.items():
        if name not in told:
            recorded = explained.lock.stack.host_reasons.get(name, ())
            yield Fact("", _label(name), "", "", needed, "", tuple(Told(one.text, one.where, ()) for one in recorded))


def _label(component: str) -> str:
    return COMPONENTS[component].label if component in COMPONENTS else component


def _layers(explained: Explained, whys: Mapping[str, Why], prefix: str, matrix: Matrix) -> list[Layer]:
    """Return the layers, from what scripts import down to the hardware; those without a part in the answer have no parts."""
    limits: dict[str, dict[str, None]] = {}
    pins: dict[str, dict[str, None]] = {}
    parts: dict[str, dict[Part, int]] = {}
    for anchor, why in whys.items():
        # Of names, such as those of images, none is newer than another.
        holders = [] if _is_named(why.component, matrix) else [*_holders(why)]
        for name, is_pin in holders:
            if layer_of(name) != layer_of(why.component):
                (pins if is_pin else limits).setdefault(layer_of(name), {})[why.component] = None
        held = listed([OWN_LINES if name == why.component else name for name in dict(holders)])
        title = slot_words(why.component, why.slot)
        own = parts.setdefault(layer_of(why.component), {})
        same = next((one for one in own if (one.name, one.version, one.origin) == (title, why.chosen, _origin(why))), None)
        part = same or Part(title, why.chosen, _origin(why), anchor, held)
        own[part] = own.get(part, 0) + 1
    stack = explained.lock.stack
    doubts = (*explained.stack.doubts, *explained.stack.assumes) if explained.stack is not None else ()
    unknown = {*stack.host_requirements, *(one.component for one in doubts)}
    if not whys:
        for pin in stack.pins:
            part = Part(pin.component, pin.version, "", f"{prefix}-{pin.component}", "")
            parts.setdefault(layer_of(pin.component), {})[part] = 1
    if count := len(explained.lock.packages):
        parts["packages"] = {Part("", counted(count, "package"), "", f"{prefix}-packages", ""): 1}
    return [
        Layer(
            layer_title(row.name, stack.accelerator),
            tuple(parts.get(row.name, {}).items()),
            limits=tuple(limits.get(row.name, ())),
            pins=tuple(pins.get(row.name, ())),
            is_unknown=not unknown.isdisjoint(row.components),
        )
        for row in reversed(LAYERS)
        if whys or row.name in parts
    ]


def _is_named(name: str, matrix: Matrix) -> bool:
    return name in matrix.components and matrix.components[name].named


def _origin(why: Why) -> str:
    return origin_words(is_fact=why.is_fact, is_of_host=bool(why.host))


def _holders(why: Why) -> Iterator[tuple[str, bool]]:
    """Yield the components and distributions that keep newer series out, those of the newest series first.

    Each comes with whether it does so only as what is chosen.
    """
    for series in why.series:
        if series.conflict is not None:
            clauses = (clause for member in series.conflict.members for clause in member.clauses)
            stated = (one for one in clauses if isinstance(one, Ground) and one.kind != "rule")
            yield from ((one.component, False) for one in stated if not isinstance(one, AsksWhyNot))
        elif series.excluded_by is not None:
            yield series.excluded_by.ground.component, True


def _packages(explained: Explained) -> list[Package]:
    """Return the packages, those that the spec names first, each with who requires it."""
    lines = dict(explained.requested)
    needed: dict[str, list[tuple[str, str]]] = {}
    for package in explained.lock.packages:
        for text in package.requires:
            needed.setdefault(canonicalize_name(Requirement(text).name), []).append((package.name, text))
    return sorted(
        (_package(one, lines, needed.get(one.name, [])) for one in explained.lock.packages),
        key=lambda one: (not one.is_requested, one.name),
    )


def _package(package: LockedPackage, lines: Mapping[str, Ground], needed: Sequence[tuple[str, str]]) -> Package:
    if package.name in lines:
        return Package(
            package.name, package.version, package.index_url, say_with_source(lines[package.name]), is_requested=True
        )
    return Package(package.name, package.version, package.index_url, required_words(needed), is_requested=False)


def _changes(comparison: Comparison) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Return the changes of a comparison by section, those first that break what ran before."""

    def told(changes: Iterable[Change]) -> list[tuple[str, list[str]]]:
        return [(f"{change_words(one)}{where_words(one, comparison)}", list(because(one))) for one in changes]

    found = [
        (SECTION_TITLES["breaking"], told(one for one in comparison.changes if one.is_breaking)),
        *(
            (SECTION_TITLES[section], told(one for one in comparison.of(section) if not one.is_breaking))
            for section in ("hosts", "system", "packages", "inputs")
        ),
    ]
    return [(title, changes) for title, changes in found if changes]
