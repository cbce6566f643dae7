"""Random problems of two halves, and a second opinion on them that shares no code with the solver.

A `Trial` is plain data: distributions with versions, extras and requirements on each other and on torch, and a small matrix
of PyTorch builds, CUDA releases and drivers. `problem` and `Shelf` hand it to the solver; `Opinion` judges it by trying every
choice of everything that is reached. What `Opinion` shares with the solver is only how groups of requirements are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.index.model import Environment, IndexFile, PackageRelease
from provisioner.matrix.model import DistributionLimit, FileOwner, Release, SharedFile
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.versions import Version
from tests import small
from tests.extras_named import applicable, extras_named

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

PYTHON = "3.12"
OTHER_PYTHON = "3.13"
ORDER = ("pytorch", "cuda", "python", "driver", "kernel")
VARIANTS = ("cu1", "cu2")
INDEX = {"cu1": "pypi", "cu2": "pytorch-cu2"}
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")


class Wanted(Struct, frozen=True, kw_only=True):
    """One requirement: `name[x] operator number`; `under` is the extra whose marker guards it, "" for none.

    `python` is a Python its marker asks for besides, "" for any.
    """

    name: str
    extra: str = ""
    operator: str = ""
    number: int = 0
    under: str = ""
    python: str = ""

    def __str__(self) -> str:
        extra = f"[{self.extra}]" if self.extra else ""
        range_ = f"{self.operator}{self.number}" if self.operator else ""
        asked = [f'extra == "{self.under}"'] if self.under else []
        asked += [f'python_version == "{self.python}"'] if self.python else []
        return f"{self.name}{extra}{range_}{'; ' if asked else ''}{' and '.join(asked)}"

    def takes(self, number: int) -> bool:
        """Whether a version is in the range."""
        outcomes = {
            "": True,
            "==": number == self.number,
            "!=": number != self.number,
            ">=": number >= self.number,
            "<=": number <= self.number,
            "<": number < self.number,
            ">": number > self.number,
        }
        return outcomes[self.operator]


class Entry(Struct, frozen=True, kw_only=True):
    """One version of a distribution. `state` is `usable`, `yanked`, `python` (no file for this Python) or `lost` (no file)."""

    requires: tuple[Wanted, ...] = ()
    state: str = "usable"


class Limit(Struct, frozen=True, kw_only=True):
    """When a release of torch is chosen, a distribution is in a range, if it is there at all."""

    release: int
    wanted: Wanted


class Trial(Struct, frozen=True, kw_only=True):
    """The whole random problem; versions are whole numbers. `driver` is what the host states, None when it is open."""

    packages: Mapping[str, Mapping[int, Entry]]
    wheels: Mapping[tuple[int, str], Entry | None]
    builds: Mapping[tuple[int, str], tuple[int, ...]]
    cuda: Mapping[int, tuple[int, ...]]
    drivers: int
    driver: int | None
    roots: tuple[Wanted, ...]
    pytorch: Wanted | None
    limits: tuple[Limit, ...] = ()
    shared: tuple[tuple[Wanted, ...], ...] = ()
    """Files of which each of several distributions, in these versions, writes its own: one of them may be there at most."""
    constraints: tuple[Wanted, ...] = ()


def random_trial(seed: random.Random, *, names: int, versions: int, limits: int = 0, constraints: int = 0) -> Trial:
    """Draw a trial of that many distributions with up to so many versions each, limits and constraints."""
    chosen = NAMES[:names]
    counts = {name: seed.randint(0 if seed.random() < 0.05 else 1, versions) for name in chosen}
    density = seed.choice((0.15, 0.3, 0.5))
    releases = seed.randint(1, 2)
    cuda = seed.randint(1, 3)
    drivers = seed.randint(1, 3)
    draw = _Draw(seed, {**counts, "torch": releases}, density)
    pairs = [(release, variant) for release in range(1, releases + 1) for variant in VARIANTS if seed.random() < 0.8]
    asked = seed.sample((*chosen, "torch"), seed.randint(1, min(3, names)))
    return Trial(
        packages={name: {number: draw.entry(name) for number in range(1, counts[name] + 1)} for name in chosen},
        wheels={pair: draw.entry("torch") if seed.random() < 0.85 else None for pair in pairs},
        builds={pair: draw.some(cuda) for pair in pairs},
        cuda={number: draw.some(drivers) for number in range(1, cuda + 1)},
        drivers=drivers,
        driver=seed.randint(1, drivers) if seed.random() < 0.6 else None,
        roots=tuple(draw.wanted(name) for name in asked),
        pytorch=draw.wanted("torch") if seed.random() < 0.4 else None,
        limits=tuple(draw.limit(chosen, releases) for _ in range(seed.randint(0, limits))),
        shared=tuple(draw.shared(chosen) for _ in range(seed.randint(0, 2))),
        constraints=tuple(draw.constraint(chosen) for _ in range(seed.randint(0, constraints))),
    )


class _Draw:
    """Requirements that point anywhere, so that distributions form cycles."""

    def __init__(self, seed: random.Random, counts: Mapping[str, int], density: float) -> None:
        self._seed = seed
        self._counts = counts
        self._density = density

    def some(self, count: int) -> tuple[int, ...]:
        """A few of the first `count` numbers, at least one."""
        return tuple(sorted(self._seed.sample(range(1, count + 1), self._seed.randint(1, count))))

    def wanted(self, name: str, *, under: str = "") -> Wanted:
        operator = self._seed.choice(("", "", "", "==", "==", "!=", ">=", ">=", ">=", "<=", "<", ">"))
        extra = self._seed.choice(("", "", "x", "y")) if name != "torch" else ""
        number = self._seed.randint(1, max(1, self._counts[name])) if operator else 0
        return Wanted(name=name, extra=extra, operator=operator, number=number, under=under)

    def limit(self, names: Sequence[str], releases: int) -> Limit:
        name = self._seed.choice(names)
        operator = self._seed.choice(("==", "!=", ">=", "<=", "<", ">"))
        number = self._seed.randint(1, max(1, self._counts[name]))
        return Limit(release=self._seed.randint(1, releases), wanted=Wanted(name=name, operator=operator, number=number))

    def shared(self, names: Sequence[str]) -> tuple[Wanted, ...]:
        """Owners of one file, each in every version or in some."""
        owners = self._seed.sample(names, self._seed.randint(2, len(names)))
        ranges = [
            (self._seed.choice(("", "", "==", ">=", "<")), self._seed.randint(1, self._counts[name] or 1)) for name in owners
        ]
        return tuple(Wanted(name=name, operator=one, number=of) for name, (one, of) in zip(owners, ranges, strict=True))

    def constraint(self, names: Sequence[str]) -> Wanted:
        name = self._seed.choice(names)
        operator = self._seed.choice(("==", "!=", ">=", "<=", "<", ">"))
        return Wanted(name=name, operator=operator, number=self._seed.randint(1, max(1, self._counts[name])))

    def entry(self, subject: str) -> Entry:
        others = [name for name in self._counts if name != subject and self._seed.random() < self._density]
        guards = ("", "", "", "x", "y")
        # One requirement a distribution and guard: two would be merged or told apart by their text alone.
        requires = [self.wanted(name, under=self._seed.choice(guards) if subject != "torch" else "") for name in others]
        requires = [replace(one, python=self._seed.choice(("", "", "", PYTHON, OTHER_PYTHON))) for one in requires]
        if subject != "torch" and self._seed.random() < self._density / 2:
            # What asks for its own extras, `alpha[x]` for `alpha[y]` or `alpha` for `alpha[x]`, is in a circle by itself.
            requires.append(Wanted(name=subject, extra=self._seed.choice("xy"), under=self._seed.choice(guards)))
        states = ("usable", "python", "lost") if subject == "torch" else ("usable", "python", "lost", "yanked")
        state = self._seed.choices(states, (14, 1, 1, 2)[: len(states)])[0]
        return Entry(requires=tuple(requires), state=state)


class Shelf:
    """The `PackageSource` of a trial, in memory."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        return tuple(_release(name, version, entry, index) for version, entry in reversed(list(self._listed(name, index))))

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        return applicable(self._declared(release), extras, Environment(platform="linux/amd64", python=PYTHON))

    def _declared(self, release: PackageRelease) -> list[Requirement]:
        index = release.file.index if release.file else ""
        entry = next(
            entry for version, entry in self._listed(release.name, index) if PackageVersion(version) == release.version
        )
        return [Requirement(str(wanted)) for wanted in entry.requires]

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        return extras_named(self._declared(release))

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        del follows
        for name in names:
            assert name == canonicalize_name(name)

    def _listed(self, name: str, index: str) -> Iterator[tuple[str, Entry]]:
        """The versions an index lists, oldest first; the main index serves the default builds without a label."""
        if name != "torch":
            yield from ((str(number), entry) for number, entry in self._trial.packages.get(name, {}).items() if index == "")
            return
        for (release, variant), entry in self._trial.wheels.items():
            if entry is not None and INDEX[variant] == (index or "pypi"):
                yield (f"{release}+{variant}" if index else str(release)), entry


def _release(name: NormalizedName, version: str, entry: Entry, index: str) -> PackageRelease:
    file = IndexFile(filename=f"{name}-{version}-py3-none-any.whl", url=f"https://files.example/{name}-{version}", index=index)
    reasons = {"usable": "", "yanked": "yanked: broken", "python": "no wheel for this Python", "lost": "no file at all"}
    why, blocked = reasons[entry.state], "python" if entry.state == "python" else ""
    kept = file if entry.state in {"usable", "yanked"} else None
    return PackageRelease.of(name=name, version_text=str(PackageVersion(version)), file=kept, why_not=why, blocked_by=blocked)


def instance_of(trial: Trial) -> ProblemInstance:
    """The trial as the solver sees it, with Python fixed as for one attempt."""
    requires = {"python": f"=={PYTHON}"}
    if trial.pytorch is not None:
        requires["pytorch"] = f"{trial.pytorch.operator}{trial.pytorch.number}" if trial.pytorch.operator else "*"
    host: dict[str, Any] = {"driver": {"version": str(trial.driver)}} if trial.driver is not None else {}
    packages, constraints = ([str(one) for one in some] for some in (trial.roots, trial.constraints))
    request = small.request(requires, host, packages=packages, constraints=constraints, accelerator="cuda")
    problem = join(_matrix(trial), request)
    return ProblemInstance(problem, PackageFinder(problem, Shelf(trial), Environment(platform="linux/amd64", python=PYTHON)))


def _matrix(trial: Trial) -> Any:  # noqa: ANN401 - what small.matrix returns
    frameworks = []
    for release in sorted({release for release, _ in trial.builds}):
        builds = tuple(
            small.build(
                variant,
                {"cuda": [str(number) for number in cuda], "python": [PYTHON]},
                index=INDEX[variant],
                local="" if INDEX[variant] == "pypi" else variant,
            )
            for (number, variant), cuda in trial.builds.items()
            if number == release
        )
        frameworks.append(Release(version=Version.parse(str(release)), builds=builds, source=("invented",)))
    table: dict[str, Any] = {
        "cuda": {str(number): {"driver": [str(one) for one in drivers]} for number, drivers in trial.cuda.items()},
        "python": {PYTHON: {}, OTHER_PYTHON: {}},
        "driver": {str(number): {"kernel": "<9"} for number in range(1, trial.drivers + 1)},
        "kernel": {"5": {}},
    }
    limits = [
        DistributionLimit(
            name=f"l{index}",
            when=small.need("pytorch", [str(limit.release)]),
            allow={limit.wanted.name: f"{limit.wanted.operator}{limit.wanted.number}"},
            because="it says so",
        )
        for index, limit in enumerate(trial.limits)
    ]
    shared = tuple(
        SharedFile(name=f"s{index}", path="lib.so", owners=tuple(map(_owner, owners)), because="it says so")
        for index, owners in enumerate(trial.shared)
    )
    return small.matrix(ORDER, table, releases={"pytorch": frameworks}, limits=tuple(limits), shared_files=shared)


def _owner(wanted: Wanted) -> FileOwner:
    versions = f"{wanted.operator}{wanted.number}" if wanted.operator else ""
    return FileOwner(distribution=wanted.name, versions=versions, artefact="", sha256="", content="")


class Edge(Struct, frozen=True):
    """One label of `key` out of `allowed` must be chosen; `group` is the name of what a person could drop."""

    group: str
    key: str
    allowed: frozenset[str]


class Opinion:
    """Judges a trial: every choice of everything that is reached is tried, nothing is learnt and nothing is skipped."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._labels: dict[str, list[str]] = {name: [str(one) for one in table] for name, table in trial.packages.items()}
        self._labels["pytorch"] = [f"{release}+{variant}" for release, variant in trial.builds]
        self._edges: dict[tuple[str, str], list[Edge]] = {}
        self.roots = list(self._roots())
        self._bounds = {f"constraints.{index}": one for index, one in enumerate(trial.constraints)}

    def is_possible(self, *, kept: Collection[str] | None = None) -> bool:
        """Whether some choice satisfies everything, or everything of the groups in `kept`."""
        return self._search([edge for edge in self.roots if kept is None or edge.group in kept], {}, kept)

    def is_valid(self, pins: Mapping[str, str]) -> bool:
        """Whether a whole choice satisfies everything that is reached."""
        waiting, seen = list(self.roots), set()
        while waiting:
            edge = waiting.pop()
            label = pins.get(edge.key)
            if label not in edge.allowed or self._is_constrained(edge.key, str(label), None):
                return False
            if edge.key not in seen:
                seen.add(edge.key)
                waiting.extend(self._after(edge.key, str(label)))
        return self._is_within_limits(pins) and self._has_one_owner(pins, None)

    def _has_one_owner(self, pins: Mapping[str, str], kept: Collection[str] | None) -> bool:
        """Whether no file is written by two, of the files whose group is kept."""
        return all(
            sum(owner.name in pins and owner.takes(int(pins[owner.name])) for owner in owners) < 2
            for index, owners in enumerate(self._trial.shared)
            if kept is None or f"shared file s{index}" in kept
        )

    def _is_within_limits(self, pins: Mapping[str, str]) -> bool:
        """Whether no limit is broken; those of conflicts are left to the tests of `solve.distributions`."""
        release = pins.get("pytorch", "").partition("+")[0]
        return all(
            limit.wanted.takes(int(label))
            for limit in self._trial.limits
            if release == str(limit.release)
            for key, label in pins.items()
            if key.partition("[")[0] == limit.wanted.name
        )

    def _search(self, waiting: list[Edge], pins: dict[str, str], kept: Collection[str] | None) -> bool:
        if not waiting:
            return self._is_within_limits(pins) and self._has_one_owner(pins, kept)
        edge, *rest = waiting
        if edge.key in pins:
            return pins[edge.key] in edge.allowed and self._search(rest, pins, kept)
        for label in edge.allowed:
            if self._is_constrained(edge.key, label, kept):
                continue
            after = [one for one in self._after(edge.key, label) if kept is None or one.group in kept]
            if self._search([*rest, *after], {**pins, edge.key: label}, kept):
                return True
        return False

    def _is_constrained(self, key: str, label: str, kept: Collection[str] | None) -> bool:
        """Whether a constraint that is in force rules a choice out."""
        return any(
            one.name == key.partition("[")[0] and not one.takes(int(label))
            for group, one in self._bounds.items()
            if kept is None or group in kept
        )

    def _after(self, key: str, label: str) -> list[Edge]:
        if (key, label) not in self._edges:
            self._edges[key, label] = list(self._needed(key, label))
        return self._edges[key, label]

    def _roots(self) -> Iterator[Edge]:
        yield Edge("requires.python", "python", frozenset({PYTHON}))
        trial = self._trial
        drivers = frozenset(str(number) for number in range(1, trial.drivers + 1))
        stated = frozenset({str(trial.driver)}) if trial.driver is not None else drivers
        yield Edge("driver of host0" if trial.driver is not None else "a driver on host0", "driver", stated)
        if trial.pytorch is not None:
            yield self._edge(trial.pytorch, "requires.pytorch")
        for root in trial.roots:
            yield self._edge(root, f"packages.{root.name}")

    def _edge(self, wanted: Wanted, group: str) -> Edge:
        key = "pytorch" if wanted.name == "torch" else f"{wanted.name}[{wanted.extra}]" if wanted.extra else wanted.name
        labels = self._labels["pytorch" if wanted.name == "torch" else wanted.name]
        allowed = frozenset(
            label for label in labels if wanted.takes(int(label.partition("+")[0])) and not self._is_withheld(wanted, label)
        )
        return Edge(group, key, allowed)

    def _is_withheld(self, wanted: Wanted, label: str) -> bool:
        """A yanked version is for a requirement that pins it, and for all of them when the spec or a constraint pins it."""
        if wanted.name == "torch" or self._trial.packages[wanted.name][int(label)].state != "yanked":
            return False
        asked = (*self._trial.roots, *self._trial.constraints)
        pins = [one for one in asked if one.name == wanted.name and one.operator == "=="]
        return wanted.operator != "==" and not any(pin.takes(int(label)) for pin in pins)

    def _is_without(self, name: str, extra: str, number: int) -> bool:
        """Whether a version lacks an extra that the spec asks for, and that the newest version has which the spec admits."""
        entries = self._trial.packages[name]
        bounds = [one for one in (*self._trial.roots, *self._trial.constraints) if one.name == name]
        is_asked = any(one.name == name and one.extra == extra for one in self._trial.roots)
        published = [other for other, entry in entries.items() if entry.state in {"usable", "python"}]
        admitted = [other for other in published if all(bound.takes(other) for bound in bounds)]
        having = [other for other, entry in entries.items() if any(one.under == extra for one in entry.requires)]
        return is_asked and number not in having and max(admitted, default=number) > number and max(admitted) in having

    def _needed(self, key: str, label: str) -> Iterator[Edge]:
        if key == "pytorch":
            yield from self._framework(label)
        elif key == "wheel":
            yield from self._wheel(label)
        elif key == "cuda":
            drivers = frozenset(str(one) for one in self._trial.cuda[int(label)])
            yield Edge("cuda needs driver", "driver", drivers)
        elif key not in {"python", "driver"}:
            yield from self._distribution(key, label)

    def _framework(self, label: str) -> Iterator[Edge]:
        release, _, variant = label.partition("+")
        cuda = frozenset(str(one) for one in self._trial.builds[int(release), variant])
        yield Edge("pytorch needs cuda", "cuda", cuda)
        yield Edge("pytorch needs python", "python", frozenset({PYTHON}))
        yield Edge("pytorch needs its wheel", "wheel", frozenset({label}))

    def _wheel(self, label: str) -> Iterator[Edge]:
        release, _, variant = label.partition("+")
        entry = self._trial.wheels[int(release), variant]
        if entry is None or entry.state != "usable":
            yield Edge("pytorch needs a wheel", "python", frozenset({OTHER_PYTHON}))
            return
        applicable = (wanted for wanted in entry.requires if wanted.python in {"", PYTHON})
        yield from (self._edge(wanted, f"pytorch needs {wanted.name}") for wanted in applicable)

    def _distribution(self, key: str, label: str) -> Iterator[Edge]:
        name, _, extra = key.partition("[")
        extra = extra.rstrip("]")
        entry = self._trial.packages[name][int(label)]
        if entry.state in {"python", "lost"}:
            elsewhere = frozenset({OTHER_PYTHON}) if entry.state == "python" else frozenset[str]()
            yield Edge(f"{name} needs files", "python", elsewhere)
            return
        if extra:
            yield Edge(f"{key} is {name}", name, frozenset({label}))
        if extra and self._is_without(name, extra, int(label)):
            yield Edge(f"{name} needs the extra {extra}", "platform", frozenset())
        applicable = (wanted for wanted in entry.requires if wanted.python in {"", PYTHON})
        yield from (self._edge(wanted, f"{key} needs {wanted.name}") for wanted in applicable if wanted.under == extra)
