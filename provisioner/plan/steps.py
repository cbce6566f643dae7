"""Turn the path of a machine into steps with actions and reasons, and missing facts into steps that find them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import COMPONENTS, DRIVERS, LEADS, NEVER_ALONE, Move
from provisioner.grounds.choice import StepReason
from provisioner.grounds.requirement import LacksFact, LockHas, RequiresComponent
from provisioner.grounds.step import (
    ComponentChange,
    DoTogether,
    FindOut,
    InstallLock,
    NotAlwaysNeeded,
    ReturnToLock,
    SolveAndValidate,
)
from provisioner.host.facts import STATED, stated
from provisioner.plan.actions import ActionFinder
from provisioner.plan.model import FIND_OUT, Step
from provisioner.plan.upgrade_path import MOVES, SOFTWARE
from provisioner.resolver.requirement import PACKAGE, SLOTS
from provisioner.resolver.rules.host_packages import knows_gpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from provisioner.grounds.doubt import Doubt
    from provisioner.matrix.model import Matrix
    from provisioner.plan.machine import Facts, Machine
    from provisioner.plan.state import Software, StateChecker
    from provisioner.plan.upgrade_path import PathFinder, Transition
    from provisioner.resolver.requirement import Requirement

FIRST = (*LEADS, "cudnn", "nccl", "triton", "python", "image")
"""Components whose changes a software step prints, in this order; the lock that the step installs has the others, too."""

REBOOTS = frozenset(move for move, parts in MOVES.items() if any(COMPONENTS[part].reboots for part in parts))
"""Moves that need a reboot."""

BUILT_FOR_KERNELS = tuple(row.name for row in COMPONENTS.values() if row.move is Move.DRIVER and row.reloads_modules)
"""Drivers that are installed for the running kernel."""


class StepBuilder:
    """Builds the steps of one machine."""

    def __init__(
        self, matrix: Matrix, checker: StateChecker, finder: PathFinder, machine: Machine, *, today: date | None
    ) -> None:
        self._checker = checker
        self._finder = finder
        self._machine = machine
        self._actions = ActionFinder(matrix, machine, today=today)
        self._is_wsl = machine.host.virtualization in {"wsl1", "wsl2"}
        is_assumed = "driver_module" not in machine.facts and not knows_gpus(matrix, machine.host)
        self._assumed = frozenset({"driver_module"}) if is_assumed else frozenset()
        """Components whose values the planner assumed, and which are left out of the steps."""

    def build(self, path: Sequence[Transition], target: Facts, *, old: Software, new: Software) -> tuple[Step, ...]:
        """Return the steps of a path to the facts of `target`; `old` and `new` are today's and the wanted software."""
        found = []
        now, is_new = dict(self._machine.facts), False
        for index, transition in enumerate(path):
            later = [move for one in path[index + 1 :] for move in one.moves]
            why = (
                *self._reasons(transition, now, target, new),
                *self._order(now, is_new=is_new, transition=transition, later=later, target=target),
            )
            if transition.moves == (SOFTWARE,):
                step = self._software(transition, old, new, why)
            elif len(transition.moves) == 1:
                step = self._single(transition, now, why)
            else:
                step = self._together(transition, now, why, old, new)
            found.append(step)
            now, is_new = dict(transition.facts), transition.is_new
        return tuple(found)

    def _single(self, transition: Transition, now: Mapping[str, str], why: tuple[StepReason, ...]) -> Step:
        move = transition.moves[0]
        found = self._actions.find(move, now, transition.facts)
        component, before, _ = found.action.change
        is_maybe_installed = component in DRIVERS and not before and not is_known_without_driver(self._machine)
        return Step(
            kind=move,
            action=found.action,
            why=why,
            details=(*((NotAlwaysNeeded(),) if is_maybe_installed else ()), *found.details),
            undo=found.undo,
            changes=_changes(now, self._known(transition.facts)),
            is_reboot=self._reboots(transition.moves),
            state=self._known(transition.facts),
        )

    def _software(self, transition: Transition, old: Software, new: Software, why: tuple[StepReason, ...]) -> Step:
        before, after = _labels(old), _labels(new)
        changes = tuple(
            ComponentChange(name, before.get(name, ""), value) for name, value in after.items() if value != before.get(name)
        )
        runs = new.stack_spec.request((self._machine.target,)).runs
        can_return = old.is_known and not self._checker.unmet(self._machine, transition.facts, old)
        return Step(
            kind=SOFTWARE,
            action=InstallLock(is_image=runs == "container", changes=_shown(changes)),
            why=why,
            details=(SolveAndValidate(),),
            undo=ReturnToLock() if can_return else None,
            changes=changes,
            state=self._known(transition.facts),
        )

    def _together(
        self, transition: Transition, now: Mapping[str, str], why: tuple[StepReason, ...], old: Software, new: Software
    ) -> Step:
        """Return the step of several moves at once, which no order of single moves can replace."""
        moves = [self._actions.find(move, now, transition.facts) for move in transition.moves if move != SOFTWARE]
        actions = [one.action for one in moves]
        if SOFTWARE in transition.moves:
            actions.append(self._software(transition, old, new, ()).action)
        return Step(
            kind="together",
            action=DoTogether(actions=tuple(actions)),
            why=why,
            details=tuple(dict.fromkeys(detail for one in moves for detail in one.details)),
            changes=_changes(now, self._known(transition.facts)),
            is_reboot=self._reboots(transition.moves),
            is_together=True,
            state=self._known(transition.facts),
        )

    def _known(self, facts: Mapping[str, str]) -> dict[str, str]:
        """Return the facts of a state without assumed ones; of a new driver in WSL, only the branch."""
        found = {name: value for name, value in facts.items() if name not in self._assumed}
        if self._is_wsl and facts.get("driver") != self._machine.facts.get("driver"):
            found["driver"] = facts["driver"].partition(".")[0]  # drivers of Windows have numbers of their own
        return found

    def _reboots(self, moves: Iterable[str]) -> bool:
        """Return whether moves need a reboot; in WSL none does, because the driver is that of Windows."""
        return bool(REBOOTS & set(moves)) and not self._is_wsl

    def _reasons(self, transition: Transition, now: Mapping[str, str], target: Facts, new: Software) -> tuple[StepReason, ...]:
        """Return the requirements, as reasons, that would be unmet at the end of the path without this transition.

        For a move to an intermediate value, return the first requirement that the move straight to the target would break.
        """
        if transition.moves == (SOFTWARE,):
            return _requests(new)
        if len(transition.moves) == 1 and transition.facts.get(transition.moves[0]) != target.get(transition.moves[0]):
            straight = self._finder.moved(dict(now), transition.moves[0], target)
            broken = self._finder.breaks(straight, is_new=transition.is_new)
            return tuple(StepReason(ground=one.ground, is_stop=True) for one in broken[:1])
        found: list[Requirement] = []
        for move in transition.moves:
            parts = MOVES.get(move, (move,))
            undone = {name: value for name, value in target.items() if name not in parts}
            undone |= {name: self._machine.facts[name] for name in parts if name in self._machine.facts}
            wrong = self._checker.unmet(self._machine, undone, new)
            found += [one for one in wrong if one.ground.component not in NEVER_ALONE]
        return tuple(dict.fromkeys(StepReason(ground=one.ground) for one in found))

    def _order(
        self, now: Mapping[str, str], *, is_new: bool, transition: Transition, later: Sequence[str], target: Facts
    ) -> Iterator[StepReason]:
        """Yield a reason for each move in `later` that usually comes before this transition, but cannot be made yet.

        The reason is the first requirement that the move would break in the state `now`.
        """
        order = [*MOVES, SOFTWARE]
        own = min((order.index(move) for move in transition.moves if move in order), default=0)
        for move in later:
            if move not in order or order.index(move) > own or move == SOFTWARE:
                continue
            after = self._finder.moved(dict(now), move, target)
            if not self._finder.works(after, is_new=is_new):
                broken = self._finder.breaks(after, is_new=is_new)[0]
                yield StepReason(ground=broken.ground, changed_first=COMPONENTS[move].label)


def _requests(software: Software) -> tuple[StepReason, ...]:
    """Return, as reasons, the spec's requirements on components of the software, and the versions of the wanted lock."""
    stack_spec = software.stack_spec
    names = [key.component for key in software.pins]
    request = stack_spec.request(())
    found = []
    for name, text in stack_spec.spec.requires.items():
        if name in names or name == "pytorch_build":
            ground = RequiresComponent(name=name, range=text, place=request.place(f"requires.{name}"))
            found.append(StepReason(ground=ground))
    locked = {name: stack_spec.locked[name] for name in FIRST if name in stack_spec.locked}
    place = stack_spec.locked_in
    found.extend(StepReason(ground=LockHas(name=name, label=label, place=place)) for name, label in locked.items())
    return tuple(found)


def _labels(software: Software) -> dict[str, str]:
    """Return the label of each shared component, by name; of several CUDA runtimes, the one of no single framework."""
    found: dict[str, str] = {}
    for key, one in software.pins.items():
        if key.scope != PACKAGE and key.component not in {"accelerator", "platform", "gpu"} and key.slot not in SLOTS:
            found[key.component] = one.label
    return found


def _shown(changes: Sequence[ComponentChange]) -> tuple[ComponentChange, ...]:
    """Return the changes of the components in `FIRST`, in that order."""
    shown = (one for one in changes if one.component in FIRST)
    return tuple(sorted(shown, key=lambda one: FIRST.index(one.component)))


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[ComponentChange, ...]:
    names = (name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name))
    return tuple(ComponentChange(name, before.get(name, ""), after.get(name, "")) for name in names)


def is_known_without_driver(machine: Machine) -> bool:
    """Return whether a machine is known to have no GPU driver, because a module such as nouveau holds the GPU."""
    has_driver = any(name in machine.facts for name in DRIVERS)
    return not has_driver and machine.facts.get("loaded_modules", "free") != "free"


def missing_facts(machine: Machine, facts: Mapping[str, str], doubts: Iterable[Doubt], *, has_gpus: bool) -> tuple[str, ...]:
    """Return the facts of today that the plan needs and no profile states, in the order of the components.

    `facts` and `doubts` are those of the end of the plan; `has_gpus` is whether every GPU is known.
    """
    known = machine.facts
    found: dict[str, None] = {}
    for name in DRIVERS:
        if name in facts and name not in known and not is_known_without_driver(machine):
            found[name] = None
    if any(facts.get(name) != known.get(name) for name in BUILT_FOR_KERNELS) and "kernel" not in known:
        found["kernel"] = None
    named = {doubt.component for doubt in doubts}
    for component in sorted(named):
        if component in STATED and component not in facts and stated(machine.host, component) is None:
            found[component] = None
    if not has_gpus and "gpu" in named:
        found["gpu"] = None
    return tuple(name for name in COMPONENTS if name in found)


def find_out_steps(machine: Machine, lacking: Sequence[str]) -> tuple[Step, ...]:
    """Return one step for each missing fact in `lacking`, which tells how to find it and changes nothing on the machine."""
    return tuple(
        Step(
            kind=FIND_OUT,
            action=FindOut(component=name),
            why=(StepReason(ground=LacksFact(name=name, host=machine.label)),),
            state=dict(machine.facts),
        )
        for name in lacking
    )
