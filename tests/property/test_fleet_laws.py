"""The laws of a fleet, on thousands of small random ones, against brute force that shares no code with it."""

from __future__ import annotations

import json
import random
import re
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from provisioner.cli.fleet_report import as_json, fleet_head, fleet_lines, fleet_rows
from provisioner.document import parse_document
from provisioner.fleet.covering import cover_fleet
from provisioner.fleet.placement import ansible_groups, slurm_features
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
from tests.strategies import TIMES, case, dice, examples

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


@st.composite
def trials(draw: st.DrawFn, *, most: int) -> Trial:
    """Draw a trial of up to `most` different hosts."""
    chance = draw(dice())
    numbers = {name: chance.randint(2, 5 if name in FACTS else 4) for name in (*SHARED, *FACTS)}
    versions = {name: [str(number) for number in range(1, count + 1)] for name, count in numbers.items()}
    density = chance.choice((0.3, 0.5, 0.7))
    table: Table = {}
    for index, name in enumerate((*SHARED, *FACTS)):
        below = (*SHARED, *FACTS)[index + 1 :]
        table[name] = {
            version: {
                other: sorted(
                    chance.sample(versions[other], chance.randint(1, max(1, len(versions[other]) - (other in FACTS))))
                )
                for other in below
                if chance.random() < density + 0.3 * (other == "driver") and name in SHARED
            }
            for version in versions[name]
        }
    rules = []
    for _ in range(chance.randint(0, 4)):
        name = chance.choice(SHARED[:2])
        target = chance.choice([other for other in (*SHARED, *FACTS) if ORDER.index(other) > ORDER.index(name)])
        allowed = tuple(sorted(chance.sample(versions[target], chance.randint(1, len(versions[target])))))
        rules.append((name, chance.choice(versions[name]), chance.choice(SYSTEMS), target, allowed))
    kinds = [
        (driver, kernel, system)
        for driver in versions["driver"]
        for kernel in (*versions["kernel"], None)
        for system in SYSTEMS
    ]
    hosts = chance.sample(kinds, min(len(kinds), chance.randint(1 if most < 10 else 6, most)))
    requires = tuple(name for name in SHARED if name == "alpha" or chance.random() < 0.4)
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
    case("several" if size > 1 else "simple")
    if size > 2:
        case("three or more")
    if len(served) < len(one.hosts):
        case("unserved")
    if len(one.hosts) > 8:
        case("large")
    assert {index_of(host) for stack in answer.stacks for host in stack.hosts} == served
    assert len(answer.stacks) == size == answer.bound.lower
    for found in answer.stacks:
        stack = {name: text for name, text in found.stack.components.items() if name in SHARED}
        for host in found.hosts:
            assert serves(one, stack, one.hosts[index_of(host)]), (stack, host)
    for left in answer.unserved:
        assert left.conflict.members


@examples(1000, shares={"several": 0.2, "three or more": 0.02, "unserved": 0.1})
@given(trials(most=8))
def test_the_number_of_stacks_is_the_smallest_there_is(one: Trial) -> None:
    check(one)


def best_worth(one: Trial, most: int) -> tuple[int, int]:
    """The most hosts that `most` stacks serve, and the fewest newer releases of alpha that these then miss, by brute force.

    A host takes the newest of the chosen stacks that serve it.
    """
    newest = len(one.table["alpha"])
    missed: dict[frozenset[int], int] = {}
    for stack in stacks(one):
        served = frozenset(at for at, host in enumerate(one.hosts) if serves(one, stack, host))
        if served:
            cost = newest - int(stack["alpha"])
            missed[served] = min(cost, missed.get(served, cost))
    kinds = [
        (served, cost)
        for served, cost in missed.items()
        if not any(served <= other and cost >= less and (served, cost) != (other, less) for other, less in missed.items())
    ]
    best = (0, 0)
    for some in combinations(kinds, min(most, len(kinds))):
        costs = {at: min(cost for served, cost in some if at in served) for at in frozenset[int]().union(*(s for s, _ in some))}
        best = max(best, (len(costs), -sum(costs.values())))
    return best


def featured(text: str) -> dict[str, str]:
    """The feature of each node in lines of slurm.conf; host lists are read as Slurm reads them, `a[1-2,4]b` left out."""
    found: dict[str, str] = {}
    for names, feature in re.findall(r"^NodeName=(\S+) Features=(\S+)$", text, re.MULTILINE):
        for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", names):
            prefix, _, numbers = part.rstrip("]").partition("[")
            for run in numbers.split(","):
                first, _, last = run.partition("-")
                ends = range(int(first), int(last or first) + 1) if first else [""]
                found |= {f"{prefix}{number}": feature for number in ends}
    return found


@examples(250, shares={"left out": 0.05, "one more buys": 0.1})
@given(trials(most=7), st.integers(1, 3))
def test_so_many_stacks_serve_the_most_hosts_with_the_newest_releases(one: Trial, most: int) -> None:
    answer = cover_fleet(one.matrix, one.request, one.listed(), platforms=(), most=most)
    limit = answer.limit
    assert limit is not None
    case("left out" if limit.left_out else "all served")
    case("one more buys" if limit.gains else "one more buys nothing")
    newest = len(one.table["alpha"])
    cost = sum((newest - int(found.stack.components["alpha"])) * found.nodes for found in answer.stacks)
    assert len(answer.stacks) <= most
    assert limit.is_proved
    assert (answer.served_nodes, -cost) == best_worth(one, most)
    for found in answer.stacks:
        stack = {name: text for name, text in found.stack.components.items() if name in SHARED}
        assert all(serves(one, stack, one.hosts[index_of(host)]) for host in found.hosts)
    assert bool(limit.gains) == (best_worth(one, most + 1) > best_worth(one, most))
    in_stack = {host.name: f"law_{number}" for number, found in enumerate(answer.stacks, start=1) for host in found.hosts}
    titles = ["a stack" for _ in answer.stacks]
    assert featured(slurm_features(answer, "law", titles)) == in_stack
    groups = parse_document(ansible_groups(answer, "law", titles), file="groups", kind="groups").data
    assert {host: group for group, members in groups.items() for host in members["hosts"]} == in_stack
    served, _ = brute_force(one)
    assert {index_of(host) for one_class in limit.left_out for host in one_class.members} == served - {
        index_of(host) for found in answer.stacks for host in found.hosts
    }


@examples(40, shares={"several": 0.2, "large": 0.3})
@given(trials(most=20))
def test_so_it_is_for_up_to_twenty_classes(one: Trial) -> None:
    check(one)


@examples(60)
@given(trials(most=8))
def test_one_more_host_never_lowers_the_number(one: Trial) -> None:
    assume(len(one.hosts) > 1)
    assert len(covered(replace(one, hosts=one.hosts[:-1])).stacks) <= len(covered(one).stacks)


@examples(40)
@given(trials(most=8))
def test_without_a_rule_the_same_hosts_never_need_more(one: Trial) -> None:
    assume(one.rules)
    answer = covered(one)
    assume(not answer.unserved)  # hosts that become servable may need a stack of their own
    assert len(covered(replace(one, rules=one.rules[1:])).stacks) <= len(answer.stacks)


def shown(one: Trial, answer: FleetAnswer) -> str:
    placed = affinities(answer, one.matrix)
    text = [
        str(one)
        for one in (fleet_head(answer), fleet_rows(answer), *fleet_lines(answer, placed, name="law", chosen=("kubernetes",)))
    ]
    return "\n".join((*text, json.dumps(as_json(answer, placed, name="law", written=()))))


@examples(50)
@given(trials(most=8), st.data())
def test_the_order_of_hosts_does_not_change_a_byte(one: Trial, data: st.DataObject) -> None:
    listed = data.draw(st.permutations(one.listed()))
    assert shown(one, cover_fleet(one.matrix, one.request, listed, platforms=())) == shown(one, covered(one))


@examples(40)
@given(trials(most=8))
def test_copies_of_hosts_change_how_many_there_are_and_nothing_else(one: Trial) -> None:
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


def real_host(chance: random.Random, kind: str) -> Host:
    if kind == "amd":
        gpus = [{"gfx": gfx} for gfx in chance.sample(AMD, chance.choice((1, 1, 2)))]
        return decode(json.dumps({"driver": {"kind": "amdgpu", "version": "6.12.12"}, "gpus": gpus}), type=Host)
    name, capability = chance.choice(NVIDIA)
    driver = chance.choice(DRIVERS)
    facts: dict[str, Any] = {"gpus": [{"name": name, "compute_capability": capability}]}
    if driver:
        module = (
            "open" if capability == "10.0" else "proprietary" if capability == "7.0" else chance.choice(("open", "proprietary"))
        )
        facts |= {"driver": {"version": driver, "module": module}, "kernel": "5.15.0-105-generic"}
    return decode(json.dumps(facts), type=Host)


@pytest.mark.parametrize("kind", [pytest.param("nvidia", marks=pytest.mark.slow), "amd"])
@pytest.mark.parametrize("seed", range(max(1, round(4 * TIMES))))
def test_on_the_shipped_matrix_no_fewer_sets_of_hosts_can_be_solved_together(kind: str, seed: int) -> None:
    """The sets are tried with the solver itself, hosts together: nothing of how a fleet takes a problem apart is used."""
    chance = random.Random(seed)
    matrix = cached_matrix(None)
    spec: dict[str, Any] = {"requires": {"pytorch": ">=1.12"}, "image": {"base": chance.choice(("slim", "cuda-runtime"))}}
    if kind == "amd":
        spec["image"] = {"base": "slim"}
    request = Request(spec=decode(json.dumps(spec), type=Spec), hosts=(), platform="linux/amd64")
    hosts = list(dict.fromkeys(real_host(chance, kind) for _ in range(5)))
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
