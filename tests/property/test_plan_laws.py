"""The laws of plans, on random small matrices, against brute force over every state and every order.

The oracle here knows four tables of numbers and nothing of `provisioner`: which CUDA a PyTorch takes, which drivers run a
CUDA, and which kernels a driver builds on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from provisioner.grounds.step import DoTogether, InstallLock
from provisioner.host.model import Driver, Host, HostGpu
from provisioner.matrix.model import Release
from provisioner.places import Place
from provisioner.plan.model import PlanRequest
from provisioner.plan.planner import make_plan
from provisioner.plan.state import StackSpec
from provisioner.request import TargetHost
from provisioner.spec.model import Spec
from provisioner.versions import Version
from tests import small
from tests.strategies import Dice, case, dice, examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.matrix.model import Matrix
    from provisioner.plan.model import HostPlan, Plan

    Components = dict[str, Mapping[str, Mapping[str, str | Sequence[str]]]]

pytestmark = pytest.mark.property

Stack = tuple[int, int]
"""A PyTorch and a CUDA."""

State = tuple[int, int, bool]
"""A kernel, a driver, and whether the new software runs."""


@dataclass(frozen=True, slots=True)
class World:
    """The tables, the machines (a kernel and a driver each), the software of today and the oldest PyTorch that is wanted."""

    cudas: dict[int, tuple[int, ...]]
    drivers: dict[int, tuple[int, int]]
    kernels: dict[int, tuple[int, int]]
    series: int
    machines: tuple[tuple[int, int], ...]
    today: Stack | None
    wanted: int
    kernel: tuple[int, int]

    @classmethod
    def of(cls, chance: Dice, *, machines: int) -> World:
        """Return a random world; today's software runs on the first machine, or is not known."""
        series, driver_count = chance.randint(2, 5), chance.randint(2, 5)

        def span(top: int) -> tuple[int, int]:
            low = chance.randint(1, top)
            return low, chance.randint(low, top)

        cudas = {p: tuple(sorted(chance.sample(range(1, 5), chance.randint(1, 2)))) for p in range(1, chance.randint(2, 5))}
        drivers = {c: span(driver_count) for c in range(1, 5)}
        kernels = {d: span(series) for d in range(1, driver_count + 1)}
        hosts = tuple((chance.randint(1, series), chance.randint(1, driver_count)) for _ in range(machines))
        runs = [(p, c) for p in cudas for c in cudas[p] if drivers[c][0] <= hosts[0][1] <= drivers[c][1]]
        today = chance.choice(runs) if runs and chance.random() < 0.7 else None
        kernel = span(series) if chance.random() < 0.4 else (1, series)
        return cls(cudas, drivers, kernels, series, hosts, today, chance.randint(1, max(cudas)), kernel)

    def matrix(self) -> Matrix:
        """The same tables as a matrix."""

        def within(span: tuple[int, int]) -> str:
            return f">={span[0]},<{span[1] + 1}"

        components: Components = {
            "pytorch": {},
            "cuda": {f"{c}.0": {"driver": within(span)} for c, span in self.drivers.items()},
            "driver": {f"{d}.0": {"kernel": within(span)} for d, span in self.kernels.items()},
            "kernel": {f"{k}.0": {} for k in range(1, self.series + 1)},
        }
        pytorch = [
            Release(
                version=Version.parse(f"{p}.0"),
                builds=(small.build("any", {"cuda": [f"{c}.0" for c in cudas]}, sass=("sm_80",)),),
            )
            for p, cudas in self.cudas.items()
        ]
        return small.matrix(list(components), components, releases={"pytorch": pytorch})

    def plan(self) -> Plan:
        """What the planner says."""
        gpus = (HostGpu(compute_capability="8.0"),)
        targets = tuple(
            TargetHost(
                label=f"host{index}",
                host=Host(
                    platform="linux/amd64",
                    kernel=f"{kernel}.0",
                    driver=Driver(version=f"{driver}.0"),
                    gpus=gpus,
                    container_toolkit=f"1.{index}",
                ),
            )
            for index, (kernel, driver) in enumerate(self.machines)
        )
        kernels = {"kernel": f">={self.kernel[0]},<{self.kernel[1] + 1}"} if self.kernel != (1, self.series) else {}
        wanted = Spec(requires={"pytorch": f">={self.wanted}", **kernels})
        fixed = {} if self.today is None else {"pytorch": f"{self.today[0]}.0+any", "cuda": f"{self.today[1]}.0"}
        stack_specs = [
            StackSpec(spec=spec, platform="linux/amd64", accelerator="cuda")
            for spec in (Spec(requires={"pytorch": "*"}), wanted)
        ]
        today = StackSpec(spec=Spec(), platform="linux/amd64", accelerator="cuda", locked=fixed, locked_in=Place("the lock"))
        counts = tuple(1 for _ in targets)
        request = PlanRequest(hosts=targets, counts=counts, current=today, base=stack_specs[0], wanted=stack_specs[1])
        return make_plan(self.matrix(), request)

    def runs(self, stack: Stack, driver: int) -> bool:
        """Whether a driver runs a stack."""
        low, high = self.drivers[stack[1]]
        return low <= driver <= high

    def builds(self, machine: tuple[int, int], kernel: int, driver: int) -> bool:
        """Whether a driver builds on a kernel; the pair of today runs, whatever is documented."""
        low, high = self.kernels[driver]
        return (kernel, driver) == machine or low <= kernel <= high

    def stacks(self) -> Iterator[Stack]:
        """Every stack that is wanted."""
        return ((p, c) for p, cudas in self.cudas.items() if p >= self.wanted for c in cudas)

    def goals(self, machine: tuple[int, int], stack: Stack) -> Iterator[tuple[int, int]]:
        """Every kernel and driver with which a machine runs a stack, within what is asked of kernels."""
        for kernel, driver in product(range(1, self.series + 1), self.kernels):
            is_asked = self.kernel[0] <= kernel <= self.kernel[1]
            if is_asked and self.builds(machine, kernel, driver) and self.runs(stack, driver):
                yield kernel, driver

    def cost(self, machine: tuple[int, int], stack: Stack) -> tuple[int, int, int]:
        """What a stack costs a machine: whether it falls out, and what has to move, the kernel before the driver."""
        moves = ((0, int(kernel != machine[0]), int(driver != machine[1])) for kernel, driver in self.goals(machine, stack))
        return min(moves, default=(1, 0, 0))

    def works(self, machine: tuple[int, int], state: State, new: Stack) -> bool:
        """Whether a state works: the driver builds on the kernel and runs the software."""
        kernel, driver, is_new = state
        software = new if is_new else self.today
        return self.builds(machine, kernel, driver) and (software is None or self.runs(software, driver))

    def distance(self, machine: tuple[int, int], goal: State, new: Stack) -> int | None:
        """The fewest steps through states that work, one thing a step; None where there is no such way."""
        start: State = (*machine, False)
        seen, queue = {start: 0}, deque([start])
        while queue:
            now = queue.popleft()
            if now == goal:
                return seen[now]
            steps = [(kernel, now[1], now[2]) for kernel in range(1, self.series + 1)]
            steps += [(now[0], driver, now[2]) for driver in self.kernels]
            steps += [(now[0], now[1], True)]
            for after in steps:
                if after not in seen and self.works(machine, after, new):
                    seen[after] = seen[now] + 1
                    queue.append(after)
        return None


@st.composite
def worlds(draw: st.DrawFn, *, machines: int) -> World:
    return World.of(draw(dice()), machines=machines)


def stack_of(plan: Plan) -> Stack:
    assert plan.wanted is not None
    return tuple(int(plan.wanted.components[name].partition(".")[0]) for name in ("pytorch", "cuda"))  # type: ignore[return-value]


def states_of(world: World, host: HostPlan) -> list[State]:
    """The states after each step."""
    found, is_new = [], False
    for step in host.steps:
        actions = step.action.actions if isinstance(step.action, DoTogether) else (step.action,)
        is_new = is_new or any(isinstance(action, InstallLock) for action in actions)
        found.append((int(step.state["kernel"][:-2]), int(step.state["driver"][:-2]), is_new))
    del world
    return found


def total(costs: list[tuple[int, int, int]]) -> tuple[int, ...]:
    return tuple(sum(cost[index] for cost in costs) for index in range(3))


@examples(400, shares={"stays": 0.5, "falls_out": 0.02})
@given(worlds(machines=1))
def test_a_host_falls_out_exactly_when_it_has_no_stack(world: World) -> None:
    (host,) = world.plan().hosts
    has_stack = any(any(world.goals(world.machines[0], stack)) for stack in world.stacks())
    case("stays" if has_stack else "falls_out")
    assert (host.exclusion is None) == has_stack


@examples(400)
@given(worlds(machines=1))
def test_nothing_cheaper_would_do(world: World) -> None:
    """Kernels move before drivers, and drivers before the software, only where nothing else helps."""
    plan = world.plan()
    (host,) = plan.hosts
    assume(host.exclusion is None)
    machine = world.machines[0]
    new = stack_of(plan)
    last = states_of(world, host)[-1] if host.steps else (*machine, False)
    moved = (int(last[0] != machine[0]), int(last[1] != machine[1]), int(new != world.today))
    best = min(
        (*world.cost(machine, stack)[1:], int(stack != world.today))
        for stack in world.stacks()
        if not world.cost(machine, stack)[0]
    )
    assert moved == best


@examples(400)
@given(worlds(machines=1))
def test_every_state_works_and_the_way_is_the_shortest(world: World) -> None:
    plan = world.plan()
    (host,) = plan.hosts
    assume(host.exclusion is None and host.steps)
    machine, new = world.machines[0], stack_of(plan)
    states = states_of(world, host)
    assert all(world.works(machine, state, new) for state in states)
    shortest = world.distance(machine, states[-1], new)
    if shortest is None:
        assert any(step.is_together for step in host.steps)
    else:
        assert not any(step.is_together for step in host.steps)
        assert len(host.steps) == shortest


@examples(200, shares={"served": 0.5})
@given(worlds(machines=3))
def test_one_stack_serves_most_machines_and_moves_least(world: World) -> None:
    plan = world.plan()
    best = min((total([world.cost(one, stack) for one in world.machines]) for stack in world.stacks()), default=(3, 0, 0))
    if plan.wanted is None:
        assert best[0] == len(world.machines)
    else:
        case("served")
        assert total(costs_of(world, plan)) == best


def costs_of(world: World, plan: Plan) -> list[tuple[int, int, int]]:
    """Return what the plan costs each machine."""
    machines = dict(zip((f"host{index}" for index in range(3)), world.machines, strict=True))
    costs: list[tuple[int, int, int]] = []
    for host in plan.hosts:
        machine = machines[host.hosts[0]]
        if host.exclusion is not None:
            costs.append((1, 0, 0))
            continue
        last = states_of(world, host)[-1] if host.steps else (*machine, False)
        assert last[:2] in set(world.goals(machine, stack_of(plan)))
        costs.append((0, int(last[0] != machine[0]), int(last[1] != machine[1])))
    return costs
