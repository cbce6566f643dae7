"""The third verdict: "a missing host fact makes a verdict *unverified* and says which fact would settle it".

The law: for every stack with the verdict `yes`, every completion of the unstated facts of the hosts works too; where some
completion does not, the verdict is `unverified` and a line names that fact and that host. Two things are no completions. What
the solver chose (a driver to be installed, a kernel) is part of the answer. And facts of one host that exclude each other by
themselves, such as a libcuda of another release than the driver, are no host any stack could be held against.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from ruamel.yaml import YAML

from provisioner.errors import ProvisionError
from provisioner.host.facts import stated
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.problem import join
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from tests import completions
from tests.completions import Case
from tests.shipped import shipped
from tests.strategies import TIMES, System, chosen, examples, systems
from tests.told import unverified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.request import Request
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.stack import Stack

pytestmark = pytest.mark.property

TESTS = Path(__file__).parents[1]
SAMPLE = 30
"""How many problems with a fact left out are completed in every way."""


@cache
def cases() -> tuple[Case, ...]:
    """Every solvable scenario without packages, and every published combination."""
    found = []
    for path in sorted((TESTS / "scenarios").rglob("*.yaml")):
        content = _read(path)
        if "stack" in content["expected"] and "index" not in content:
            found.append(Case(name=path.stem, spec=content["spec"], hosts=content.get("hosts", [])))
    for path in sorted((TESTS / "facts" / "accepted").glob("*.yaml")):
        found += [Case(name=one["name"], spec=one["spec"], hosts=one.get("hosts", [])) for one in _read(path)["cases"]]
    return tuple(case for case in found if case.hosts)


def _read(path: Path) -> Any:  # noqa: ANN401 - what a YAML file holds
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def solved(request: Request) -> tuple[Mapping[Key, Candidate], Stack] | None:
    instance = ProblemInstance(join(shipped(), request))
    pins = decide(instance)
    return None if pins is None else (pins, answer(instance, pins))


def lines_naming(stack: Stack, path: completions.Path, label: str) -> list[str]:
    names = completions.named_as(path)
    return [line for line in unverified(stack) if line.partition(":")[0] in names and f"{label} " in line]


def is_driver_of_another_vendor(value: object) -> bool:
    """Whether only a GPU of another vendor runs with such a driver, so that an answer that names the GPU names this, too."""
    return isinstance(value, dict) and value.get("kind", "nvidia") != "nvidia"


def is_chosen_otherwise(request: Request, pins: Mapping[Key, Candidate], label: str) -> bool:
    """Whether the hosts now state something else than what was chosen for them."""
    (target,) = (one for one in request.hosts if one.label == label)
    known = {key.component: stated(target.host, key.component) for key in pins if key.scope == label}
    return any(known[key.component] not in {None, candidate.label} for key, candidate in pins.items() if key.scope == label)


def counterexamples(case: Case, number: int, path: completions.Path) -> Iterator[str]:
    """Values of one unstated fact of one host that break the answer, and that the answer does not name."""
    found = solved(case.request())
    if found is None:
        return
    pins, stack = found
    label = f"host {number + 1}"
    if lines_naming(stack, path, label):
        return
    for value in completions.values(shipped(), path, case.hosts[number]):
        hosts = list(case.hosts)
        hosts[number] = completions.with_value(hosts[number], path, value)
        request = case.request(hosts=hosts)
        if is_driver_of_another_vendor(value) and lines_naming(stack, ("gpus", 0), label):
            continue
        try:
            if is_chosen_otherwise(request, pins, label):
                continue
            is_same = request.accelerator == stack.accelerator and completions.survives(shipped(), request, pins)
            if not is_same and completions.can_be(shipped(), case, hosts, pins):
                yield f"{case.name}: {path} of {label} is {value!r}; {stack.verdict} {unverified(stack)}"
        except ProvisionError as error:
            yield f"{case.name}: {path} of {label} is {value!r}: {error}"


def left_out() -> Iterator[tuple[Case, int, completions.Path]]:
    """Every case with one of its facts left out."""
    for case in cases():
        for number, profile in enumerate(case.hosts):
            for path in completions.facts(profile):
                hosts = list(case.hosts)
                hosts[number] = completions.without(profile, path)
                yield Case(name=case.name, spec=case.spec, hosts=hosts), number, path


def left_out_already() -> Iterator[tuple[Case, int, completions.Path]]:
    """Every case with a fact that it never stated."""
    for case in cases():
        for number, profile in enumerate(case.hosts):
            yield from ((case, number, path) for path in completions.unstated(profile))


def sample(problems: Iterator[tuple[Case, int, completions.Path]], seed: int) -> Sequence[tuple[Case, int, completions.Path]]:
    found = list(problems)
    return random.Random(seed).sample(found, min(len(found), SAMPLE * TIMES))


@pytest.mark.parametrize("problems", [left_out, left_out_already], ids=["left out", "never stated"])
def test_a_yes_survives_whatever_an_unstated_fact_turns_out_to_be(problems: Any) -> None:  # noqa: ANN401 - a function
    found = list(chain.from_iterable(counterexamples(*problem) for problem in sample(problems(), 1)))
    assert not found, "\n".join(found)


def test_a_yes_survives_whatever_two_unstated_facts_turn_out_to_be() -> None:
    """Of pairs only the second is completed in every way, for the first is named or harmless by the law of one fact."""
    seed = random.Random(2)
    found: list[str] = []
    for case, number, path in sample(left_out(), 3):
        others = [other for other in completions.facts(case.hosts[number]) if other[0] != path[0]]
        if others:
            hosts = list(case.hosts)
            other = seed.choice(others)
            hosts[number] = completions.without(hosts[number], other)
            both = Case(name=case.name, spec=case.spec, hosts=hosts)
            found.extend(counterexamples(both, number, other))
    assert not found, "\n".join(found)


@examples(1200)
@given(systems())
def test_a_yes_survives_every_completion_of_random_hosts_and_what_breaks_an_answer_is_named(system: System) -> None:
    instance = system.instance()
    pins = decide(instance)
    if pins is None:
        return
    stack = answer(instance, pins)
    named = {tuple(line.split(" ")[:2]) for line in unverified(stack)}
    for places, hosts in system.oracle().broken_by(chosen(pins, system.matrix)):
        assert stack.verdict == "unverified", f"{places} may be {hosts}"
        assert any((f"{place.component}:", place.host) in named for place in places), f"{places} may be {hosts}"
