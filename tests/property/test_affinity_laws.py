"""Laws of node affinity, on random fleets, judged by an evaluator that shares nothing with the one the program has.

The judge is Kubernetes' own code, put into Python line by line: `NodeSelector.Match` and `labels.Requirement.Matches`
(kubernetes/component-helpers @1961876b, kubernetes/apimachinery @eed236ce). Whether a node meets a stack's needs is judged on
plain tuples of integers.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.fleet.affinity import Affinity, node_affinity
from provisioner.fleet.affinity_needs import Alternative, Needs
from provisioner.fleet.labels import LabelSet
from provisioner.node_labels import ARCHITECTURE, COMPUTE, DRIVER, INSTANCE, KERNEL, KNOWN, OLD_DRIVER, OS_ID, PRODUCT
from provisioner.versions import Range
from tests.scheduler import admits
from tests.strategies import case, examples, times

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.versions import Clause

pytestmark = pytest.mark.property

LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
"""`validation.IsValidLabelValue`: what Kubernetes accepts as a value, in labels and in expressions alike."""


def kubernetes_admits(manifest: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """`NodeSelector.Match` for the required node affinity of a pod; raises where the API server would refuse the manifest."""
    terms = manifest["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms, "must have at least one node selector term"
    found = False
    for term in terms:
        requirements = term["matchExpressions"]
        matches = [requirement_matches(one, labels) for one in requirements]
        found = found or (bool(requirements) and False not in matches)
    return found


def requirement_matches(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement["key"], requirement["operator"], requirement.get("values", [])
    assert all(LABEL_VALUE.fullmatch(value) and len(value) <= 63 for value in values)
    if operator in {"In", "NotIn"}:
        assert values
        is_listed = key in labels and labels[key] in values
        return is_listed if operator == "In" else not is_listed
    if operator in {"Exists", "DoesNotExist"}:
        assert not values
        return bool((key in labels) == (operator == "Exists"))
    assert operator in {"Gt", "Lt"}
    assert len(values) == 1
    bound = parse_int(values[0])
    assert bound is not None
    own = parse_int(labels[key]) if key in labels else None
    if own is None:
        return False
    return own > bound if operator == "Gt" else own < bound


def parse_int(text: str) -> int | None:
    """`strconv.ParseInt(text, 10, 64)`."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not digits or any(char not in "0123456789" for char in digits):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


CAPABILITIES = [(7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]
DRIVERS = [
    "99.1",
    "470.57.02",
    "525.60.13",
    "525.60",
    "525.60.4",
    "525.85.12",
    "535.54.03",
    "535.104.05",
    "580.65.06",
    "580.95.5",
]
FLOORS = ["0", "470", "525.60.13", "525.60.04", "535.54.03", "580.65.06"]


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, str]:
    """The labels of one node; now and then one is missing, is odd, or has a zero in front."""
    major, minor = draw(st.sampled_from(CAPABILITIES))
    parts = (*draw(st.sampled_from(DRIVERS)).split("."), "")[:3]
    kernel = draw(st.sampled_from([("5", "15", "0"), ("6", "8", "0"), ("6", "17", "0")]))
    labels = {
        ARCHITECTURE: draw(st.sampled_from(["amd64", "amd64", "arm64"])),
        COMPUTE[0]: str(major),
        COMPUTE[1]: str(minor),
        PRODUCT: draw(st.sampled_from(["Tesla-V100", "NVIDIA-A100", "NVIDIA-H100"])),
        OS_ID: draw(st.sampled_from(["ubuntu", "rhel"])),
        **dict(zip(KERNEL, kernel, strict=True)),
        **dict(zip(draw(st.sampled_from([DRIVER, DRIVER, OLD_DRIVER])), parts, strict=True)),
    }
    for key in draw(st.lists(st.sampled_from(sorted(labels)), max_size=2, unique=True)):
        choice = draw(st.sampled_from(["keep", "drop", "odd"]))
        if choice == "drop":
            del labels[key]
        elif choice == "odd" and key in {*DRIVER, *OLD_DRIVER, *KERNEL}:
            labels[key] = draw(st.sampled_from(["", "unknown", "0" + labels[key]]))
    return labels


@st.composite
def wanted(draw: st.DrawFn) -> Needs:
    """What a stack might need: a floor for the driver, some capabilities, now and then a kernel or an older branch."""
    capabilities = frozenset(draw(st.lists(st.sampled_from(CAPABILITIES), min_size=1, unique=True)))
    floor = draw(st.sampled_from(FLOORS))
    top = draw(st.sampled_from(["", "", ",<581", ",<535.104.05", ",!=535.54.03"]))
    values = {ARCHITECTURE: frozenset({"amd64"})}
    kernel = Range.parse(draw(st.sampled_from(["", "", ">=5.15", "<6.17", ">=6.8.0"])))
    plain = Alternative(values=values, capabilities=capabilities, driver=Range.parse(f">={floor}{top}"), kernel=kernel)
    if draw(st.integers(0, 3)):
        return Needs(alternatives=(plain,))
    values = {**values, PRODUCT: frozenset({"NVIDIA-A100"})}
    older = Alternative(values=values, capabilities=capabilities, driver=Range.parse("==470.*"), kernel=kernel)
    return Needs(alternatives=(plain, older))


def serves(needs: Needs, labels: Mapping[str, str]) -> bool:
    """Whether the labels of a node show that it meets some alternative, part by part."""
    return any(_meets(one, labels) for one in needs.alternatives)


def _meets(one: Alternative, labels: Mapping[str, str]) -> bool:
    pair = tuple(parse_int(labels.get(key, "")) for key in COMPUTE)
    drivers = DRIVER if DRIVER[0] in labels or OLD_DRIVER[0] not in labels else OLD_DRIVER
    shown = all(labels.get(key) in allowed for key, allowed in one.values.items()) and pair in (one.capabilities or ())
    return shown and _in_range(one.driver, labels, drivers) and _in_range(one.kernel, labels, KERNEL)


def _in_range(wanted: Range, labels: Mapping[str, str], keys: tuple[str, ...]) -> bool:
    """A part that is missing, or that no integer can be made of, stands for every number it might be."""
    known = [parse_int(labels.get(key, "")) for key in keys]
    known = [0 if number is None and labels.get(key) == "" else number for key, number in zip(keys, known, strict=True)]
    versions = [tuple(end if number is None else number for number in known) for end in (0, 10**6)]
    return all(_clause(clause, versions[0], versions[1]) for clause in wanted.clauses)


def _clause(clause: Clause, low: tuple[int, ...], high: tuple[int, ...]) -> bool:
    bound = (*clause.version.release, 0, 0, 0)[:3]
    length = len(clause.version.release)
    if clause.operator == ">=":
        return low >= bound
    if clause.operator == "<":
        return high < bound
    if clause.operator == "==":
        return low[:length] == high[:length] == bound[:length]
    assert clause.operator == "!="
    return high[:length] < bound[:length] or low[:length] > bound[:length]


def sets(fleet: list[dict[str, str]], name: str) -> list[LabelSet]:
    """One label set for each different labelling."""
    different = {tuple(sorted(labels.items())): labels for labels in fleet}
    return [LabelSet(labels=labels, names=(f"{name}{i}",), hosts=()) for i, labels in enumerate(different.values())]


def judged(affinity: Affinity, labels: Mapping[str, str]) -> bool:
    """What Kubernetes says; both evaluators must agree."""
    manifest = affinity.manifest()
    found = kubernetes_admits(manifest, labels) if manifest else False
    assert admits(affinity, labels) == found
    return found


@examples(100, derandomize=True, shares={"admitted": 0.2})
@given(st.lists(nodes(), min_size=1, max_size=12), st.lists(nodes(), max_size=12), wanted())
def test_it_admits_its_own_and_no_others(own: list[dict[str, str]], other: list[dict[str, str]], needs: Needs) -> None:
    admits_its_own_and_no_others(own, other, needs)


def admits_its_own_and_no_others(own: list[dict[str, str]], other: list[dict[str, str]], needs: Needs) -> None:
    """Every host whose labels show what the stack needs, and none of the refused but those labelled like one of them."""
    admitted, refused = sets(own, "own"), sets(other, "other")
    affinity = node_affinity(admitted, refused, needs)
    unreached = {name for one in affinity.unreached for name in one.names}
    for one in admitted:
        assert (one.names[0] in unreached) == (not serves(needs, one.labels))
        assert one.names[0] in unreached or judged(affinity, one.labels)
    alike = {name for one in affinity.inseparable for name in one.refused}
    shown = [one.labels for one in admitted if one.names[0] not in unreached]
    if shown:
        case("admitted")
    for one in refused:
        assert (one.names[0] in alike) == any(_alike(labels, one.labels) for labels in shown)
        if one.names[0] not in alike:
            assert not judged(affinity, one.labels)


def _alike(labels: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two nodes differ in nothing an affinity would look at: numbers are compared as numbers, old names left aside."""
    drivers = DRIVER if DRIVER[0] in labels or OLD_DRIVER[0] not in labels else OLD_DRIVER
    aside = {*DRIVER, *OLD_DRIVER} - set(drivers)
    return all(_seen(key, labels.get(key)) == _seen(key, other.get(key)) for key in KNOWN if key not in aside)


def _seen(key: str, value: str | None) -> object:
    number = parse_int(value) if value is not None and key in {*DRIVER, *OLD_DRIVER, *KERNEL} else None
    return value if number is None else number


@examples(100, derandomize=True, shares={"served": 0.2})
@given(st.lists(nodes(), min_size=1, max_size=8), st.lists(nodes(), max_size=8), wanted(), st.lists(nodes(), max_size=30))
def test_it_admits_no_host_the_stack_does_not_run_on(
    own: list[dict[str, str]], other: list[dict[str, str]], needs: Needs, unseen: list[dict[str, str]]
) -> None:
    admits_no_stranger(own, other, needs, unseen)


def admits_no_stranger(
    own: list[dict[str, str]], other: list[dict[str, str]], needs: Needs, unseen: list[dict[str, str]]
) -> None:
    """Nodes it was never shown are admitted only where their labels show what the stack needs."""
    affinity = node_affinity(sets(own, "own"), sets(other, "other"), needs)
    for labels in (*unseen, *other):
        if serves(needs, labels):
            case("served")
        assert not judged(affinity, labels) or serves(needs, labels)


@examples(100, derandomize=True)
@given(st.lists(nodes(), min_size=2, max_size=8), st.lists(nodes(), max_size=8), wanted(), st.randoms(use_true_random=False))
def test_the_order_of_hosts_changes_nothing(
    own: list[dict[str, str]], other: list[dict[str, str]], needs: Needs, shuffle: random.Random
) -> None:
    admitted, refused = sets(own, "own"), sets(other, "other")
    first = node_affinity(admitted, refused, needs)
    shuffle.shuffle(admitted)
    shuffle.shuffle(refused)
    assert node_affinity(admitted, refused, needs) == first


@examples(100, derandomize=True, shares={"admitted": 0.2})
@given(st.lists(nodes(), min_size=1, max_size=8), st.lists(nodes(), max_size=8), wanted())
def test_no_term_and_no_name_is_superfluous(own: list[dict[str, str]], other: list[dict[str, str]], needs: Needs) -> None:
    has_nothing_superfluous(own, other, needs)


def has_nothing_superfluous(own: list[dict[str, str]], other: list[dict[str, str]], needs: Needs) -> None:
    """Each term admits a host, or one with a newer driver, that no other term does; products are named only if it says so."""
    admitted, refused = sets(own, "own"), sets(other, "other")
    affinity = node_affinity(admitted, refused, needs)
    if affinity.terms:
        case("admitted")
    for term in affinity.terms:
        rest = Affinity(terms=tuple(other for other in affinity.terms if other is not term))
        known = [one.labels for one in admitted]
        later = [labels for one in known for labels in newer(one)]
        assert any(judged(affinity, labels) and not judged(rest, labels) for labels in (*known, *later))
    named = {one.key for term in affinity.terms for one in term if one.key in {PRODUCT, INSTANCE}}
    assert named == set(affinity.by_name)


def newer(labels: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The node with the next release of its driver's branch, and with the next branch."""
    names = DRIVER if DRIVER[0] in labels or OLD_DRIVER[0] not in labels else OLD_DRIVER
    major, minor = (parse_int(labels.get(key, "")) for key in names[:2])
    if major is not None and minor is not None:
        for parts in ((major, minor + 1, 0), (major + 1, 0, 0)):
            yield {**labels, **dict(zip(names, map(str, parts), strict=True))}


def stays_where_drivers_are_upgraded(own: list[dict[str, str]], needs: Needs) -> None:
    """No other stack in the way, and a stack that asks for a driver at least: whatever driver comes next, the node stays."""
    affinity = node_affinity(sets(own, "own"), (), needs)
    for labels in own:
        names = DRIVER if DRIVER[0] in labels else OLD_DRIVER
        now = tuple(parse_int(labels.get(key, "")) for key in names)
        if None in now or not serves(needs, labels):
            continue
        for text in (*DRIVERS, "526.1.1", "999.99.99"):
            parts = (*text.split("."), "0")[:3]
            if tuple(map(int, parts)) >= now:
                assert judged(affinity, {**labels, **dict(zip(names, parts, strict=True))}), (labels, text)


@pytest.mark.parametrize("seed", range(4))
def test_the_laws_hold_on_many_fleets_each(seed: int) -> None:
    """The same laws without Hypothesis, whose search is thorough and slow: plain random fleets, many more of them."""
    chance = random.Random(seed)
    for _ in range(times(250)):
        own = [random_node(chance) for _ in range(chance.randint(1, 10))]
        other = [random_node(chance) for _ in range(chance.randint(0, 10))]
        needs = random_needs(chance)
        admits_its_own_and_no_others(own, other, needs)
        admits_no_stranger(own, other, needs, [random_node(chance) for _ in range(10)])
        has_nothing_superfluous(own, other, needs)
        if len(needs.alternatives) == 1 and len(needs.alternatives[0].driver.clauses) == 1:
            stays_where_drivers_are_upgraded(own, needs)


def random_node(chance: random.Random) -> dict[str, str]:
    major, minor = chance.choice(CAPABILITIES)
    parts = (*chance.choice(DRIVERS).split("."), "")[:3]
    kernel = chance.choice([("5", "15", "0"), ("6", "8", "0"), ("6", "8", "12"), ("6", "17", "0")])
    labels = {
        ARCHITECTURE: chance.choice(["amd64", "amd64", "amd64", "arm64"]),
        COMPUTE[0]: str(major),
        COMPUTE[1]: str(minor),
        PRODUCT: chance.choice(["Tesla-V100", "NVIDIA-A100", "NVIDIA-H100"]),
        OS_ID: chance.choice(["ubuntu", "rhel"]),
        **dict(zip(KERNEL, kernel, strict=True)),
        **dict(zip(chance.choice([DRIVER, DRIVER, OLD_DRIVER]), parts, strict=True)),
    }
    for key in chance.sample(sorted(labels), chance.choice([0, 0, 1, 2])):
        if chance.random() < 0.5:
            del labels[key]
        elif key in {*DRIVER, *OLD_DRIVER, *KERNEL}:
            labels[key] = chance.choice(["", "unknown", "0" + labels[key]])
    return labels


def random_needs(chance: random.Random) -> Needs:
    capabilities = frozenset(chance.sample(CAPABILITIES, chance.randint(1, len(CAPABILITIES))))
    kernel = Range.parse(chance.choice(["", "", ">=5.15", "<6.17", ">=6.8.0"]))
    driver = Range.parse(f">={chance.choice(FLOORS)}{chance.choice(['', '', ',<581', ',<535.104.05', ',!=535.54.03'])}")
    values = {ARCHITECTURE: frozenset({"amd64"})}
    plain = Alternative(values=values, capabilities=capabilities, driver=driver, kernel=kernel)
    if chance.random() < 0.7:
        return Needs(alternatives=(plain,))
    values = {**values, PRODUCT: frozenset({"NVIDIA-A100"})}
    older = Alternative(values=values, capabilities=capabilities, driver=Range.parse("==470.*"), kernel=kernel)
    return Needs(alternatives=(plain, older))
