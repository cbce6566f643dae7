"""From a way through states to steps that say what to do and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.choice import StepReason
from provisioner.grounds.requirement import LockHas, RequiresComponent
from provisioner.places import Place
from provisioner.plan.machine import FOLLOWERS
from provisioner.plan.model import Step
from provisioner.plan.route import MOVES, SOFTWARE
from provisioner.plan.unknown import DRIVERS, is_known_absent
from provisioner.plan.words import NAMES, REBOOTS, Said, Words, knows_gpus
from provisioner.resolver.requirement import PACKAGE, SLOTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from provisioner.matrix.model import Matrix
    from provisioner.plan.judge import Judge, Software
    from provisioner.plan.machine import Facts, Machine
    from provisioner.plan.route import Leg, Router
    from provisioner.resolver.requirement import Requirement

FIRST = ("pytorch", "tensorflow", "jax", "cuda", "rocm", "cudnn", "nccl", "triton", "python", "image")
"""What a step about the software names, in this order; the lock has the rest."""


BESIDE = frozenset({*FOLLOWERS, "kernel_headers"})
"""What moves along with something else, and so is no reason for it."""


class Steps:
    """Writes the steps of one machine."""

    def __init__(self, matrix: Matrix, judge: Judge, router: Router, machine: Machine, *, today: date | None) -> None:
        self._judge = judge
        self._router = router
        self._machine = machine
        self._words = Words(matrix, machine, today=today)
        self._is_wsl = machine.host.virtualization in {"wsl1", "wsl2"}
        is_guess = "driver_module" not in machine.facts and not knows_gpus(matrix, machine)
        self._guessed = frozenset({"driver_module"}) if is_guess else frozenset()

    def of(self, legs: Sequence[Leg], target: Facts, *, old: Software, new: Software) -> tuple[Step, ...]:
        """The steps of a way to the facts of `target`."""
        found = []
        now, is_new = dict(self._machine.facts), False
        for index, leg in enumerate(legs):
            later = [move for one in legs[index + 1 :] for move in one.moves]
            why = (
                *self._reasons(leg, now, target, new),
                *self._order(now, is_new=is_new, leg=leg, later=later, target=target),
            )
            if leg.moves == (SOFTWARE,):
                step = self._software(leg, old, new, why)
            elif len(leg.moves) == 1:
                step = self._single(leg, now, why)
            else:
                step = self._together(leg, now, why, old, new)
            found.append(step)
            now, is_new = dict(leg.facts), leg.is_new
        return tuple(found)

    def _single(self, leg: Leg, now: Mapping[str, str], why: tuple[StepReason, ...]) -> Step:
        move = leg.moves[0]
        said = self._words.said(move, now, leg.facts)
        return Step(
            kind=move,
            component=said.component,
            before=said.before,
            after=said.after,
            text=said.text,
            why=why,
            details=(*self._perhaps(said), *said.details),
            changes=_changes(now, self._known(leg.facts)),
            is_reboot=self._reboots(leg.moves),
            state=self._known(leg.facts),
        )

    def _perhaps(self, said: Said) -> tuple[str, ...]:
        """A driver that nobody states may be there already."""
        if said.component in DRIVERS and not said.before and not is_known_absent(self._machine):
            return ("not needed where the driver that is found meets this already",)
        return ()

    def _software(self, leg: Leg, old: Software, new: Software, why: tuple[StepReason, ...]) -> Step:
        before, after = _labels(old), _labels(new)
        changes = tuple((name, before.get(name, ""), value) for name, value in after.items() if value != before.get(name))
        runs = new.aim.request((self._machine.target,)).runs
        component = "image" if runs == "container" else "packages"
        do = "build the image from the new lock and roll it out" if runs == "container" else "install the new lock"
        named = [f"{name} {one} -> {other}" if one else f"{name} {other}" for name, one, other in _shown(changes)]
        text = f"{do}: {', '.join(named)}" if named else do
        first = _shown(changes)[0] if _shown(changes) else ("", "", "")
        details = ["`provision solve` writes the lock, `provision validate` tries it before it is rolled out"]
        if old.is_known and self._goes_back(leg, old):
            details.append("undo: go back to today's lock, which still runs on the machine as it is then")
        return Step(
            kind=SOFTWARE,
            component=component,
            before=first[1] and f"{first[0]} {first[1]}",
            after=first[2] and f"{first[0]} {first[2]}",
            text=text,
            why=why,
            details=tuple(details),
            changes=changes,
            state=self._known(leg.facts),
        )

    def _goes_back(self, leg: Leg, old: Software) -> bool:
        return not self._judge.unmet(self._machine, leg.facts, old)

    def _together(self, leg: Leg, now: Mapping[str, str], why: tuple[StepReason, ...], old: Software, new: Software) -> Step:
        """Several moves at once: no order of them, and nothing in between that the matrix knows, keeps the machine working."""
        said = [self._words.said(move, now, leg.facts) for move in leg.moves if move != SOFTWARE]
        texts = [one.text for one in said]
        if SOFTWARE in leg.moves:
            texts.append(self._software(leg, old, new, ()).text)
        return Step(
            kind="together",
            component=said[0].component,
            before=said[0].before,
            after=said[0].after,
            text=f"drain the node, then do together: {'; '.join(texts)}",
            why=why,
            details=tuple(dict.fromkeys(line for one in said for line in one.details if not line.startswith("undo:"))),
            changes=_changes(now, self._known(leg.facts)),
            is_reboot=self._reboots(leg.moves),
            is_together=True,
            state=self._known(leg.facts),
        )

    def _known(self, facts: Mapping[str, str]) -> dict[str, str]:
        """The facts without what was only assumed to go on."""
        found = {name: value for name, value in facts.items() if name not in self._guessed}
        if self._is_wsl and facts.get("driver") != self._machine.facts.get("driver"):
            found["driver"] = facts["driver"].partition(".")[0]  # drivers of Windows have numbers of their own
        return found

    def _reboots(self, moves: Iterable[str]) -> bool:
        """Whether a machine has to start again; WSL's driver is Windows' business."""
        return bool(REBOOTS & set(moves)) and not self._is_wsl

    def _reasons(self, leg: Leg, now: Mapping[str, str], target: Facts, new: Software) -> tuple[StepReason, ...]:
        """What would not hold in the end, were this left as it is today; of a stop on the way, what it is for."""
        if leg.moves == (SOFTWARE,):
            return _requests(new)
        if len(leg.moves) == 1 and leg.facts.get(leg.moves[0]) != target.get(leg.moves[0]):
            straight = self._router.moved(dict(now), leg.moves[0], target)
            broken = self._router.breaks(straight, is_new=leg.is_new)
            return tuple(StepReason(ground=one.ground, is_stop=True) for one in broken[:1])
        found: list[Requirement] = []
        for move in leg.moves:
            parts = dict(MOVES).get(move, (move,))
            undone = {name: value for name, value in target.items() if name not in parts}
            undone |= {name: self._machine.facts[name] for name in parts if name in self._machine.facts}
            wrong = self._judge.unmet(self._machine, undone, new)
            found += [one for one in wrong if one.ground.component not in BESIDE]
        return tuple(dict.fromkeys(StepReason(ground=one.ground) for one in found))

    def _order(
        self, now: Mapping[str, str], *, is_new: bool, leg: Leg, later: Sequence[str], target: Facts
    ) -> Iterator[StepReason]:
        """Why this comes before what people would do first: what that would break now."""
        order = [*(name for name, _ in MOVES), SOFTWARE]
        own = min((order.index(move) for move in leg.moves if move in order), default=0)
        for move in later:
            if move not in order or order.index(move) > own or move == SOFTWARE:
                continue
            after = self._router.moved(dict(now), move, target)
            if not self._router.works(after, is_new=is_new):
                broken = self._router.breaks(after, is_new=is_new)[0]
                name = NAMES.get(move, move)
                yield StepReason(ground=broken.ground, changed_first=name)


def _requests(software: Software) -> tuple[StepReason, ...]:
    """What the wanted spec asks of the software: the requests on the components in it."""
    spec, aim = software.aim.spec, software.aim
    names = [key.component for key in software.pins]
    request = aim.request(())
    found = []
    for name, text in spec.requires.items():
        if name in names or name == "pytorch_build":
            ground = RequiresComponent(name=name, range=text, place=request.place(f"requires.{name}"))
            found.append(StepReason(ground=ground))
    locked = [name for name in FIRST if name in aim.fixed]
    place = Place.parse(aim.fixed_by)
    found.extend(StepReason(ground=LockHas(name=name, label=aim.fixed[name], place=place)) for name in locked)
    return tuple(found)


def _labels(software: Software) -> dict[str, str]:
    """The shared choices by component, of several runtimes the one the environment shares."""
    found: dict[str, str] = {}
    for key, one in software.pins.items():
        if key.scope != PACKAGE and key.component not in {"accelerator", "platform", "gpu"} and key.slot not in SLOTS:
            found[key.component] = one.label
    return found


def _shown(changes: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return sorted((one for one in changes if one[0] in FIRST), key=lambda one: FIRST.index(one[0]))


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    names = dict.fromkeys((*before, *after))
    return tuple((name, before.get(name, ""), after.get(name, "")) for name in names if before.get(name) != after.get(name))
