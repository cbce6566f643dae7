"""Ways out of a conflict: complete changes, each solved again before anyone sees it, cheapest for a person first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.solve.answer import TRIED
from provisioner.solve.provider import search as engine_search
from provisioner.solve.requirement import Within
from provisioner.solve.stack import Hint
from provisioner.solve.universe import violations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.solve.complete import CompleteSearch
    from provisioner.solve.requirement import Candidate, Key, Requirement
    from provisioner.solve.universe import Universe

COST = (
    "pytorch_build", "pytorch", "tensorflow", "jax", "package", "python", "python_arch", "arch_list", "cuda", "rocm",
    "nvcc", "gcc", "clang", "xcode", "image", "glibc", "container_toolkit", "fabric_manager", "userspace_driver",
    "loaded_modules", "kernel_headers", "kernel_gcc", "driver_module", "cuda_driver", "webdriver", "driver", "amdgpu",
    "jetson", "sip", "secure_boot", "kernel", "os", "macos", "gpu",
)  # fmt: skip
"""What a change costs a person, cheapest first: another build, another version, Python, CUDA, compilers, the container, what
stands beside the driver, the driver, firmware settings, the kernel, the operating system, the hardware."""

RANGES = frozenset({"driver", "amdgpu", "kernel", "glibc", "gcc", "clang", "container_toolkit", "cuda_driver", "xcode"})
"""Facts of which a hint names the nearest value as a bound: what lies beyond it mostly does as well."""

AT_ONCE = 3
"""How many changes one hint may combine."""

MOST = 40
"""How many combinations are tried before those found so far must do."""

SHOWN = 4


@dataclass(frozen=True, slots=True)
class Lever:
    """Something a person could change: one request or one fact, the key it is about and what it says now."""

    group: str
    key: Key
    current: Requirement


def hints(universe: Universe, search: CompleteSearch, groups: tuple[str, ...]) -> tuple[Hint, ...]:
    """Find the smallest sets of changes that leave a solution, and say what each would give."""
    found: list[tuple[tuple[int, ...], Hint]] = []
    done: list[frozenset[str]] = []
    queue: list[tuple[Lever, ...]] = [(lever,) for lever in _levers(universe, search, groups)]
    tried = 0
    while queue and tried < MOST and len(found) < SHOWN:
        queue.sort(key=lambda levers: (len(levers), sorted(_cost(lever.key) for lever in levers)))
        levers = queue.pop(0)
        dropped = frozenset(lever.group for lever in levers)
        if any(other <= dropped for other in done):
            continue
        tried += 1
        hint = _hint(universe, search, levers)
        if hint is not None:
            done.append(dropped)
            found.append((tuple(sorted(_cost(lever.key) for lever in levers)), hint))
        elif len(levers) < AT_ONCE and (further := _still_impossible(search, dropped)):
            known = {frozenset(lever.group for lever in waiting) for waiting in queue}
            queue.extend(
                (*levers, lever)
                for lever in _levers(universe, search, further)
                if dropped | {lever.group} not in known and lever.group not in dropped
            )
    found.sort(key=lambda item: (len(item[1].changes), item[0]))
    return tuple(hint for _, hint in found)


def _still_impossible(search: CompleteSearch, dropped: frozenset[str]) -> tuple[str, ...]:
    """What else stands in the way once these groups are dropped; nothing when that cannot be told."""
    try:
        return search.minimal(without=dropped) if search.find(without=dropped) is None else ()
    except UnavailableError:
        return ()


def _levers(universe: Universe, search: CompleteSearch, groups: tuple[str, ...]) -> Iterator[Lever]:
    """The requests and facts among some groups; rules are not for the user to change, nor is what the target is."""
    for group in groups:
        for parent, requirement in search.members(group)[:1]:
            is_open = isinstance(requirement.test, Within) and not requirement.test.range.clauses
            is_fixed = is_open or requirement.key.name in {"platform", "accelerator"} or group == TRIED
            is_environment = universe.packages is not None and requirement.key.name in {"python", "image"}
            if parent is None and not is_fixed and not is_environment:
                yield Lever(group, requirement.key, requirement)


def _hint(universe: Universe, search: CompleteSearch, levers: tuple[Lever, ...]) -> Hint | None:
    """Solve without what the levers say; None when that is still impossible."""
    dropped = {lever.group for lever in levers}
    present = tuple(dict.fromkeys(lever.key for lever in levers))
    try:
        return _settled(universe, search, levers, dropped, present)
    except UnavailableError:
        return None  # an index this way out would need is out of reach: it may work, but nobody could say so


def _settled(
    universe: Universe, search: CompleteSearch, levers: tuple[Lever, ...], dropped: set[str], present: tuple[Key, ...]
) -> Hint | None:
    pins = _answered(universe, search, without=dropped, given=(), present=present)
    if pins is None:
        return None
    chosen: list[Candidate] = []
    changes = []
    for lever in levers:
        candidate, change = _nearest(universe, search, lever, dropped, chosen) or (pins[lever.key], "")
        chosen.append(candidate)
        changes.append((_component(lever.key), change or f"=={candidate.label}"))
    if any(pins[candidate.key] is not candidate for candidate in chosen):
        pins = _answered(universe, search, without=dropped, given=chosen, present=present)
    if pins is None:
        return None
    return Hint(changes=tuple(changes), text=_words(levers, tuple(changes), pins), gives=gives(universe, pins))


def _answered(
    universe: Universe, search: CompleteSearch, *, without: set[str], given: Sequence[Candidate], present: tuple[Key, ...] = ()
) -> dict[Key, Candidate] | None:
    """What solving again would answer: as in `resolve.decide`, but the complete search keeps what it has learnt.

    With packages resolvelib is asked first, for it reads a third of what the complete search reads to find the optimum.
    What is given counts as required: otherwise what a driver nobody requires needs of the kernel would not be looked at.
    """
    present = tuple(dict.fromkeys((*present, *(candidate.key for candidate in given))))
    if universe.packages is not None:
        if search.refutes(without=without, given=given, present=present):
            return None
        relaxed = universe.relaxed(without=without, given=given, present=present)
        pins = engine_search(relaxed)
        if pins is not None and not violations(relaxed, pins):
            return pins
    return search.best(without=without, given=given, present=present)


def _nearest(
    universe: Universe, search: CompleteSearch, lever: Lever, dropped: set[str], chosen: list[Candidate]
) -> tuple[Candidate, str] | None:
    """For a host fact, the value nearest to today's that works: newer ones first, except for a kernel."""
    if lever.current.origin.kind != "fact":
        return None
    candidates = universe.candidates(lever.key)
    today = next((one for one in candidates if lever.current.allows(one)), None)
    if today is None:
        return None
    newer = sorted((one for one in candidates if one.version > today.version), key=lambda one: one.version)
    older = sorted((one for one in candidates if one.version < today.version), key=lambda one: one.version, reverse=True)
    if not candidates[0].version.release:
        newer, older = [one for one in candidates if one is not today], []
    towards = ((older, "<="), (newer, ">=")) if lever.key.name == "kernel" else ((newer, ">="), (older, "<="))
    for some, sign in towards:
        for candidate in some:
            if _answered(universe, search, without=dropped, given=[*chosen, candidate]) is not None:
                is_range = lever.key.component in RANGES and bool(candidate.version.release)
                return candidate, f"{sign if is_range else '=='}{candidate.label}"
    return None


def _words(levers: tuple[Lever, ...], changes: tuple[tuple[str, str], ...], pins: dict[Key, Candidate]) -> str:
    parts = []
    for lever, (component, change) in zip(levers, changes, strict=True):
        if lever.current.origin.kind == "fact":
            host = f" on {lever.key.world}" if lever.key.world and len(_worlds(pins)) > 1 else ""
            parts.append(f"{component} {change.removeprefix('==')}{host}")
        else:
            parts.append(f"{component} {change.removeprefix('==')} instead of `{lever.current.test}`")
    together = " together with ".join(parts)
    return f"{together} would do"


def _worlds(pins: dict[Key, Candidate]) -> set[str]:
    return {key.world for key in pins if key.world and not key.is_package}


def gives(universe: Universe, pins: dict[Key, Candidate]) -> dict[str, str]:
    """What the re-solved answer holds where people look first."""
    found: dict[str, str] = {}
    for key, candidate in pins.items():
        if key.name == "pytorch":
            found["pytorch"] = str(candidate.subject[0].version)
            found["pytorch_build"] = candidate.subject[1].name
        elif key.name in {"cuda", "rocm", "python", "tensorflow", "jax"}:
            found[key.name] = candidate.label
    direct = universe.packages.order if universe.packages else {}
    found.update({key.name: pins[key].label for key in direct if key in pins})
    return dict(sorted(found.items()))


def _component(key: Key) -> str:
    return key.name if key.is_package else key.component


def _cost(key: Key) -> int:
    name = "package" if key.is_package else key.component
    return COST.index(name) if name in COST else COST.index("package")
