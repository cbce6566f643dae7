"""The laws of a fleet, on thousands of small random ones, against brute force that shares no code with it."""

from __future__ import annotations

import json
import random
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from provisioner.cli.fleet_report import as_json, lines
from provisioner.fleet.covering import cover_fleet
from provisioner.fleet.placing import affinities
from provisioner.host.inventory import InventoryHost
from provisioner.host.model import Host
from provisioner.matrix.cache import cached_matrix
from provisioner.request import Request, TargetHost
from provisioner.resolver.problem import join
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from provisioner.spec.model import Spec
from tests import small
from tests.strategies import TIMES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from provisioner.fleet.model import FleetAnswer
    from provisioner.matrix.model import Matrix

pytestmark = pytest.mark.property

SHARED = ("alpha", "beta", "gamma")
FACTS = ("driver", "kernel")
ORDER = (*SHARED, *FACTS, "os")
SYSTEMS = ("debian", "ubuntu")

Table = dict[str, dict[str, dict[str, list[str]]]]
Guarded = tuple[str, str, str, str, tuple[str, ...]]
"""A rule on some hosts: component, its version, the system it holds on, and the versions of another component it needs."""


class Trial(Struct, frozen=True, kw_only=True):
    """A random matrix and hosts: what each shared release needs, and what each host states; a kernel of None is chosen."""

    table: Table
    rules: tuple[Guarded, ...]
    hosts: tuple[tuple[str, str | None, str], ...]
    requires: tuple[str, ...]

    @property
    def matrix(self) -> Matrix:
        rules = [
            small.rule(f"rule-{index}", {name: f"=={version}"}, {target: list(allowed)}, on={"os": [system]})
            for index, (name, version, system, target, allowed) in enumerate(self.rules)
        ]
        return small.matrix(ORDER, self.table, rules=rules, releases={"os": small.names(*SYSTEMS)})

    @property
    def request(self) -> Request:
        spec = {"accelerator": "cuda", "requires": dict.fromkeys(self.requires, ">=0")}
        return Request(spec=decode(json.dumps(spec), type=Spec), hosts=(), platform="linux/amd64")

    def listed(self, copies: int = 1) -> list[InventoryHost]:
        return [
            InventoryHost(name=f"host-{index}-{copy}", host=profile(*facts))
            for index, facts in enumerate(self.hosts)
            for copy in range(copies)
        ]


def profile(driver: str, kernel: str | None, system: str) -> Host:
    facts: dict[str, Any] = {
        "os": {"id": system},
        "driver": {"version": driver},
        "gpus": [{"compute_capability": "7.0"}],
        **({"kernel": kernel} if kernel else {}),
    }
    return decode(json.dumps(facts), type=Host)


def trial(seed: int, *, most: int) -> Trial:
    """A random trial of up to `most` different hosts."""
    dice = random.Random(seed)
    numbers = {name: dice.randint(2, 5 if name in FACTS else 4) for name in (*SHARED, *FACTS)}
    versions = {name: [str(number) for number in range(1, count + 1)] for name, count in numbers.items()}
    density = dice.choice((0.3, 0.5, 0.7))
    table: Table = {}
    for index, name in enumerate((*SHARED, *FACTS)):
        below = (*SHARED, *FACTS)[index + 1 :]
        table[name] = {
            version: {
                other: sorted(dice.sample(versions[other], dice.randint(1, max(1, len(versions[other]) - (other in FACTS)))))
                for other in below
                if dice.random() < density + 0.3 * (other == "driver") and name in SHARED
            }
            for version in versions[name]
        }
    rules = []
    for _ in range(dice.randint(0, 4)):
        name = dice.choice(SHARED[:2])
        target = dice.choice([other for other in (*SHARED, *FACTS) if ORDER.index(other) > ORDER.index(name)])
        allowed = tuple(sorted(dice.sample(versions[target], dice.randint(1, len(versions[target])))))
        rules.append((name, dice.choice(versions[name]), dice.choice(SYSTEMS), target, allowed))
    kinds = [
        (driver, kernel, system)
        for driver in versions["driver"]
        for kernel in (*versions["kernel"], None)
        for system in SYSTEMS
    ]
    hosts = dice.sample(kinds, min(len(kinds), dice.randint(1 if most < 10 else 6, most)))
    requires = tuple(name for name in SHARED if name == "alpha" or dice.random() < 0.4)
    return Trial(table=table, rules=tuple(rules), hosts=tuple(hosts), requires=requires)


def stacks(one: Trial) -> Iterator[dict[str, str]]:
    """Every choice of the components that are in a stack at all: what is required, and what that needs."""
    for choice in product(*([None, *one.table[name]] for name in SHARED)):
        stack = {name: version for name, version in zip(SHARED, choice, strict=True) if version}
        if set(one.requires) <= stack.keys():
            yield stack


def serves(one: Trial, stack: dict[str, str], host: tuple[str, str | None, str]) -> bool:
    """Whether everything a stack needs holds on a host, whose kernel may be any where it states none."""
    driver, kernel, system = host
    kernels = [kernel] if kernel else list(one.table["kernel"])
    return any(_holds(one, {**stack, "driver": driver, "kernel": tried}, system) for tried in kernels)


def _holds(one: Trial, chosen: dict[str, str], system: str) -> bool:
    for name, version in chosen.items():
        for other, allowed in one.table[name][version].items():
            if chosen.get(other) not in allowed:
                return False
    return all(
        chosen.get(target) in allowed
        for name, version, on, target, allowed in one.rules
        if on == system and chosen.get(name) == version
    )


def brute_force(one: Trial) -> tuple[set[int], int]:
    """The hosts some stack serves, and the fewest stacks that serve them all: unions of what stacks serve, breadth first."""
    sets = {frozenset(at for at, host in enumerate(one.hosts) if serves(one, stack, host)) for stack in stacks(one)}
    everything = frozenset[int]().union(*sets)
    reached, size = {frozenset[int]()}, 0
    while everything not in reached:
        reached = {known | more for known in reached for more in sets}
        reached = {some for some in reached if not any(some < other for other in reached)}
        size += 1
    return set(everything), size


def covered(one: Trial, *, copies: int = 1) -> FleetAnswer:
    return cover_fleet(one.matrix, one.request, one.listed(copies), platforms=())


def index_of(host: InventoryHost) -> int:
    return int(host.name.split("-")[1])


def check(one: Trial) -> None:
    """The number is the smallest, the right hosts are served, each by a stack that serves it."""
    answer = covered(one)
    served, size = brute_force(one)
    assert {index_of(host) for stack in answer.stacks for host in stack.hosts} == served
    assert len(answer.stacks) == size == answer.bound.lower
    for found in answer.stacks:
        stack = {name: text for name, text in found.stack.components.items() if name in SHARED}
        for host in found.hosts:
            assert serves(one, stack, one.hosts[index_of(host)]), (stack, host)
    for left in answer.unserved:
        assert left.conflict.members


@pytest.mark.parametrize("part", range(4 * TIMES))
def test_the_number_of_stacks_is_the_smallest_there_is(part: int) -> None:
    for seed in range(250 * part, 250 * part + 250):
        check(trial(seed, most=8))


@pytest.mark.parametrize("part", range(TIMES))
def test_so_it_is_for_up_to_twenty_classes(part: int) -> None:
    sizes = []
    for seed in range(50_000 + 40 * part, 50_000 + 40 * part + 40):
        one = trial(seed, most=20)
        sizes.append(len(one.hosts))
        check(one)
    assert max(sizes) > 15


def test_the_random_fleets_are_worth_testing() -> None:
    """Many need several stacks, some have hosts that nothing serves: otherwise the laws above would say little."""
    found = [(brute_force(one), len(one.hosts)) for one in (trial(seed, most=8) for seed in range(500))]
    assert sum(size >= 2 for (_, size), _ in found) > 100
    assert sum(size >= 3 for (_, size), _ in found) > 10
    assert sum(len(served) < count for (served, _), count in found) > 50


def test_one_more_host_never_lowers_the_number() -> None:
    for seed in range(60_000, 60_000 + 60 * TIMES):
        one = trial(seed, most=8)
        fewer = replace(one, hosts=one.hosts[:-1])
        if fewer.hosts:
            assert len(covered(fewer).stacks) <= len(covered(one).stacks)


def test_without_a_rule_the_same_hosts_never_need_more() -> None:
    for seed in range(70_000, 70_000 + 60 * TIMES):
        one = trial(seed, most=8)
        answer = covered(one)
        if answer.unserved or not one.rules:
            continue  # hosts that become servable may need a stack of their own
        assert len(covered(replace(one, rules=one.rules[1:])).stacks) <= len(answer.stacks)


def shown(one: Trial, answer: FleetAnswer) -> str:
    placed = affinities(answer, one.matrix)
    return "\n".join((*lines(answer, placed), json.dumps(as_json(answer, placed, written=()))))


def test_the_order_of_hosts_does_not_change_a_byte() -> None:
    for seed in range(80_000, 80_000 + 50 * TIMES):
        one = trial(seed, most=8)
        listed = one.listed()
        random.Random(seed).shuffle(listed)
        assert shown(one, cover_fleet(one.matrix, one.request, listed, platforms=())) == shown(one, covered(one))


def test_copies_of_hosts_change_how_many_there_are_and_nothing_else() -> None:
    for seed in range(90_000, 90_000 + 40 * TIMES):
        one = trial(seed, most=8)
        once, thrice = covered(one), covered(one, copies=3)
        assert [found.stack.components for found in once.stacks] == [found.stack.components for found in thrice.stacks]
        assert [3 * found.nodes for found in once.stacks] == [found.nodes for found in thrice.stacks]


def joint(matrix: Matrix, request: Request, hosts: Collection[Host]) -> bool:
    """Whether the solver finds a stack for some hosts together, as `provision solve --host … --host …` would."""
    targets = tuple(TargetHost(label=f"host{at}", host=host) for at, host in enumerate(hosts))
    return decide(ProblemInstance(join(matrix, replace(request, hosts=targets)))) is not None


NVIDIA = (
    ("Tesla V100-SXM2-16GB", "7.0"),
    ("Tesla T4", "7.5"),
    ("NVIDIA A100", "8.0"),
    ("NVIDIA H100", "9.0"),
    ("NVIDIA B200", "10.0"),
)
DRIVERS = (
    "418.226.00",
    "450.80.02",
    "470.256.02",
    "525.147.05",
    "535.183.06",
    "550.90.07",
    "570.86.15",
    "580.65.06",
    "595.45.04",
    None,
)
AMD = ("gfx900", "gfx906", "gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1031", "gfx1035", "gfx1100", "gfx1103", "gfx1201")


def real_host(dice: random.Random, kind: str) -> Host:
    if kind == "amd":
        gpus = [{"gfx": gfx} for gfx in dice.sample(AMD, dice.choice((1, 1, 2)))]
        return decode(json.dumps({"driver": {"kind": "amdgpu", "version": "6.12.12"}, "gpus": gpus}), type=Host)
    name, capability = dice.choice(NVIDIA)
    driver = dice.choice(DRIVERS)
    facts: dict[str, Any] = {"gpus": [{"name": name, "compute_capability": capability}]}
    if driver:
        module = (
            "open" if capability == "10.0" else "proprietary" if capability == "7.0" else dice.choice(("open", "proprietary"))
        )
        facts |= {"driver": {"version": driver, "module": module}, "kernel": "5.15.0-105-generic"}
    return decode(json.dumps(facts), type=Host)


@pytest.mark.parametrize("kind", ["nvidia", "amd"])
@pytest.mark.parametrize("seed", range(4 * TIMES))
def test_on_the_shipped_matrix_no_fewer_sets_of_hosts_can_be_solved_together(kind: str, seed: int) -> None:
    """The sets are tried with the solver itself, hosts together: nothing of how a fleet takes a problem apart is used."""
    dice = random.Random(seed)
    matrix = cached_matrix(None)
    spec: dict[str, Any] = {"requires": {"pytorch": ">=1.12"}, "image": {"base": dice.choice(("slim", "cuda-runtime"))}}
    if kind == "amd":
        spec["image"] = {"base": "slim"}
    request = Request(spec=decode(json.dumps(spec), type=Spec), hosts=(), platform="linux/amd64")
    hosts = list(dict.fromkeys(real_host(dice, kind) for _ in range(5)))
    able = [at for at, host in enumerate(hosts) if joint(matrix, request, [host])]
    answer = cover_fleet(
        matrix, request, [InventoryHost(name=f"host-{at}", host=host) for at, host in enumerate(hosts)], platforms=()
    )
    assert sorted(int(host.name[5:]) for found in answer.stacks for host in found.hosts) == able
    for found in answer.stacks:
        assert joint(matrix, request, [host.host for host in found.hosts])
    together = {
        frozenset(some)
        for size in range(1, len(able) + 1)
        for some in combinations(able, size)
        if joint(matrix, request, [hosts[at] for at in some])
    }
    assert len(answer.stacks) == fewest(able, together) == answer.bound.lower


def fewest(able: Sequence[int], together: Collection[frozenset[int]]) -> int:
    """The fewest of some sets that hold everything, by trying ever more of them."""
    for size in range(len(able) + 1):
        if any(frozenset[int]().union(*some) >= set(able) for some in combinations(together, size)):
            return size
    raise AssertionError(able)
