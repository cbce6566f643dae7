"""Many requirements of one group as one line: who needs the same is said together, as spans true of all they span."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.solve.requirement import TORCH, OneOf, Within
from provisioner.solve.rules.devices import FRAMEWORKS
from provisioner.solve.search.proof import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from provisioner.solve.requirement import Candidate, Key, Test
    from provisioner.solve.search.universe import Universe
    from provisioner.versions import Range

PLURALS = {
    "needs": "need", "is": "are", "builds": "build", "knows": "know", "does": "do", "was": "were", "reaches": "reach",
    "has": "have", "writes": "write", "comes": "come", "brings": "bring", "carries": "carry",
}  # fmt: skip

RUNS = 4
"""How many spans one saying has before the rest is counted."""

ACCELERATORS = {"cuda": "CUDA", "rocm": "ROCm", "mps": "MPS", "cpu": "CPU"}


class Saying(Struct, frozen=True, kw_only=True):
    """What some subjects have in common: `name` and their labels before it, `need` after.

    `alike` are the needs it stands for: whoever has one of them says the same.
    """

    name: str
    need: str
    members: tuple[Member, ...]
    alike: frozenset[str]

    @property
    def subjects(self) -> frozenset[str]:
        """The labels of everything it is about."""
        return frozenset(parent.label for parent, _ in self.members if parent is not None)

    @property
    def verb(self) -> str:
        """What stands before the range, such as `needs cuda`; "" where the text does not end with it."""
        test = str(self.members[0].requirement.test)
        return self.need.removesuffix(test).strip() if test and self.need.endswith(test) else ""


def saying_of(member: Member) -> tuple[str, str]:
    """The name of a requirement's subject and what it needs; no name where the text has no subject with a version."""
    parent, requirement = member
    text = requirement.origin.text
    if parent is None:
        return "", text
    for name in dict.fromkeys((requirement.origin.component, parent.key.component, parent.key.name)):
        start = f"{name} {parent.label}"
        if text.startswith((f"{start} ", f"{start}:")):
            shown = requirement.origin.component if parent.key == TORCH else name
            return shown, text.removeprefix(start).strip()
    return "", text


def sayings(members: Sequence[Member]) -> list[Saying]:
    """The members folded, those with the newest subject first; ways out of one subject stand together."""
    folded: dict[tuple[str, str], list[Member]] = {}
    for member in members:
        folded.setdefault(saying_of(member), []).append(member)
    found = [
        Saying(name=name, need=need, members=tuple(some), alike=frozenset({need})) for (name, need), some in folded.items()
    ]
    together: dict[object, list[Saying]] = {}
    for saying in found:
        together.setdefault((saying.name, saying.verb or saying.need, saying.subjects), []).append(saying)
    return [some[0] if len(some) == 1 else joined(some) for some in together.values()]


def joined(some: Sequence[Saying], need: str = "") -> Saying:
    """Several sayings of one verb as one: `needs macos ==A, ==B or ==C`, or what `need` says of all of them."""
    tests = _tests([saying.members[0].requirement.test for saying in some])
    return Saying(
        name=some[0].name,
        need=need or f"{some[0].verb} {listed(tests, 'or')}",
        members=tuple(member for saying in some for member in saying.members),
        alike=frozenset(one for saying in some for one in saying.alike),
    )


def _tests(tests: Sequence[Test]) -> list[str]:
    """Ranges from old to new, without those that lie within another; of choices of versions each version once."""
    if all(isinstance(test, OneOf) for test in tests):
        versions = {version for test in tests if isinstance(test, OneOf) for version in test.versions}
        return [str(version) for version in sorted(versions)]
    ranges = [test.range for test in tests if isinstance(test, Within) and test.range.clauses]
    if len(ranges) < len(tests):
        return list(dict.fromkeys(name for test in tests for name in str(test).split(" or ")))
    ranges.sort(key=lambda one: one.clauses[0].version)
    kept = [one for one in ranges if not any(_lies_within(one, other) for other in ranges)]
    return list(dict.fromkeys(str(one) for one in kept))


def _lies_within(one: Range, other: Range) -> bool:
    is_single = len(one.clauses) == 1 and one.clauses[0].operator == "==" and not one.clauses[0].is_starred
    return is_single and str(one) != str(other) and other.allows(one.clauses[0].version)


def listed(names: Sequence[str], word: str) -> str:
    """`A, B and C`."""
    return f" {word} ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def said(universe: Universe, saying: Saying) -> str:
    """One saying as text."""
    need = saying.need
    if not saying.name:
        return need
    chosen: dict[Key, list[Candidate]] = {}
    for parent, _ in saying.members:
        assert parent is not None, "only what is required from the start has no subject"
        chosen.setdefault(parent.key, []).append(parent)
    group = saying.members[0].requirement.origin.group
    texts: dict[str, None] = {}
    for key, subjects in chosen.items():
        texts[_subjects(universe, key, subjects, _alike(universe, saying, group))] = None
    text = " and ".join(texts)
    every = text.startswith("every ")
    subject = text.replace(" of ", f" of {saying.name} ", 1) if every else f"{saying.name} {text}"
    if need.startswith(":"):
        return f"{subject}{need}"
    is_one = every or len(saying.subjects) == 1
    return f"{subject} {need if is_one else plural(need)}"


def plural(need: str) -> str:
    """What several do: `need` for `needs`."""
    verb, _, rest = need.partition(" ")
    return f"{PLURALS.get(verb, verb)} {rest}"


def _alike(universe: Universe, saying: Saying, group: str) -> Callable[[Candidate], bool]:
    """Whether a candidate says the same. Of a distribution only versions that were read are known to."""
    known = {parent for parent, _ in saying.members}

    def is_alike(candidate: Candidate) -> bool:
        if candidate in known or candidate.key.is_package:
            return candidate in known
        wants = (one for one in universe.requirements(candidate) if one.origin.group == group)
        found = (saying_of(Member(candidate, one)) for one in wants)
        return any(name == saying.name and need in saying.alike for name, need in found)

    return is_alike


def _subjects(universe: Universe, key: Key, chosen: Sequence[Candidate], is_alike: Callable[[Candidate], bool]) -> str:
    domain = sorted(universe.candidates(key), key=_age)
    wanted = set(chosen)
    if key.component in FRAMEWORKS and len(wanted) > 2:
        whole = list(_runs(_by(domain, _release), wanted, is_alike, is_each_told=False))
        covered = {candidate for run in whole for _, some in run for candidate in some}
        if wanted <= covered and len(whole) == 1:
            kind = ACCELERATORS.get(universe.problem.request.accelerator, "")
            return f"every {kind} build of {_span([name for name, _ in whole[0]])}"
    names: list[str] = []
    builds = dict.fromkeys(candidate.label.partition("+")[2] for candidate in domain if candidate in wanted)
    for build in builds:
        items = _by([one for one in domain if one.label.partition("+")[2] == build], lambda label: label)
        for run in _runs(items, wanted, is_alike):
            names.extend(label for label, _ in run[:2]) if len(run) <= 2 else names.append(f"{run[0][0]} … {run[-1][0]}")
    return f"{', '.join(names[: RUNS - 1])} and others" if len(names) > RUNS else listed(names, "and")


def _by(domain: Sequence[Candidate], name: Callable[[str], str]) -> list[tuple[str, list[Candidate]]]:
    """Candidates by what `name` makes of their labels: one build may have a row for each platform."""
    found: dict[str, list[Candidate]] = {}
    for candidate in domain:
        found.setdefault(name(candidate.label), []).append(candidate)
    return list(found.items())


def _runs(
    items: Sequence[tuple[str, list[Candidate]]],
    wanted: Collection[Candidate],
    is_alike: Callable[[Candidate], bool],
    *,
    is_each_told: bool = True,
) -> Iterator[list[tuple[str, list[Candidate]]]]:
    """Neighbours that say the same, from one that is wanted to the last one that is.

    A label may have rows that do not say the same, one for each platform: it is told alone, where each is to be told.
    """
    run: list[tuple[str, list[Candidate]]] = []
    last = 0
    for item in items:
        is_wanted = any(candidate in wanted for candidate in item[1])
        if (run or is_wanted) and all(is_alike(candidate) for candidate in item[1]):
            run.append(item)
            last = len(run) if is_wanted else last
            continue
        if run:
            yield run[:last]
        run, last = [], 0
        if is_wanted and is_each_told:
            yield [item]
    if run:
        yield run[:last]


def _span(labels: Sequence[str]) -> str:
    return " and ".join(labels) if len(labels) <= 2 else f"{labels[0]} … {labels[-1]}"


def _release(label: str) -> str:
    return label.partition("+")[0]


def _age(candidate: Candidate) -> tuple[object, str]:
    return (candidate.pep440 if candidate.key.is_package else candidate.version), candidate.label
