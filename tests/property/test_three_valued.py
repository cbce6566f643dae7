"""The third verdict: "a missing host fact makes a verdict *unverified* and says which fact would settle it".

The law: for every stack with the verdict `yes`, every completion of the unstated facts of the hosts works too; where some
completion does not, the verdict is `unverified` and a line names that fact and that host, or it is listed as an assumption: a
fact that fails at once and by name. Two things are no completions. What
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
from hypothesis import assume, given
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
from tests.strategies import System, chosen, examples, systems, times
from tests.told import assumed, unverified

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    if pins is None:
        return None
    stack = answer(instance, pins)
    told = {(pin.component, pin.host) for pin in stack.pins}
    unsaid = {key for key in pins if key.component == "driver_module" and (key.component, key.scope) not in told}
    return {key: candidate for key, candidate in pins.items() if key not in unsaid}, stack


def lines_naming(stack: Stack, path: completions.Path, label: str) -> list[str]:
    names = completions.named_as(path)
    return [line for line in (*unverified(stack), *assumed(stack)) if line.partition(":")[0] in names and f"{label} " in line]


def is_driver_of_another_vendor(value: object) -> bool:
    """Whether only a GPU of another vendor runs with such a driver, so that an answer that names the GPU names this, too."""
    return isinstance(value, dict) and value.get("kind", "nvidia") != "nvidia"


def is_chosen_otherwise(request: Request, pins: Mapping[Key, Candidate], label: str) -> bool:
    """Whether the hosts now state something else than what was chosen for them."""
    (target,) = (one for one in request.hosts if one.label == label)
    known = {key.component: stated(target.host, key.component) for key in pins if key.scope == label}
    return any(known[key.component] not in {None, candidate.label} for key, candidate in pins.items() if key.scope == label)


def counterexamples(case: Case, number: int, path: completions.Path) -> list[str] | None:
    """Return the values of one unstated fact of one host that break the answer, and that the answer does not name.

    None where there is nothing to complete: there is no answer without the fact, or the answer names it.
    """
    found = solved(case.request())
    label = f"host {number + 1}"
    if found is None or lines_naming(found[1], path, label):
        return None
    pins, stack = found
    broken = []
    for value in completions.values(shipped(), path, case.hosts[number]):
        hosts = list(case.hosts)
        hosts[number] = completions.with_value(hosts[number], path, value)
        request = case.request(hosts=hosts)
        if is_driver_of_another_vendor(value) and lines_naming(stack, ("gpus", 0), label):
            continue
        try:
            if is_chosen_otherwise(request, pins, label):
                continue
            # The answer for a Mac may be for the CPU though its hosts call for MPS: what they call for must stay the same.
            is_same = request.accelerator == case.request().accelerator and completions.survives(shipped(), request, pins)
            if not is_same and completions.can_be(shipped(), case, hosts, pins):
                broken.append(f"{case.name}: {path} of {label} is {value!r}; {stack.verdict} {unverified(stack)}")
        except ProvisionError as error:
            broken.append(f"{case.name}: {path} of {label} is {value!r}: {error}")
    return broken


def none_breaks(problems: Iterable[tuple[Case, int, completions.Path]]) -> None:
    """No completion of any problem is a counterexample, and at least a fifth of the problems is completed."""
    found = [counterexamples(*problem) for problem in problems]
    completed = [broken for broken in found if broken is not None]
    assert not list(chain.from_iterable(completed)), "\n".join(chain.from_iterable(completed))
    assert len(completed) >= len(found) / 5, f"only {len(completed)} of {len(found)} are completed"


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
    return random.Random(seed).sample(found, min(len(found), times(SAMPLE)))


@pytest.mark.parametrize("problems", [left_out, left_out_already], ids=["left out", "never stated"])
def test_a_yes_survives_whatever_an_unstated_fact_turns_out_to_be(problems: Any) -> None:  # noqa: ANN401 - a function
    none_breaks(sample(problems(), 1))


def test_a_yes_survives_whatever_two_unstated_facts_turn_out_to_be() -> None:
    """Of pairs only the second is completed in every way, for the first is named or harmless by the law of one fact."""
    seed = random.Random(2)
    pairs = []
    for case, number, path in sample(left_out(), 3):
        others = [other for other in completions.facts(case.hosts[number]) if other[0] != path[0]]
        if others:
            hosts = list(case.hosts)
            other = seed.choice(others)
            hosts[number] = completions.without(hosts[number], other)
            pairs.append((Case(name=case.name, spec=case.spec, hosts=hosts), number, other))
    none_breaks(pairs)


@examples(900)
@given(systems())
def test_a_yes_survives_every_completion_of_random_hosts_and_what_breaks_an_answer_is_named(system: System) -> None:
    instance = system.instance()
    pins = decide(instance)
    assume(pins is not None)
    assert pins is not None
    stack = answer(instance, pins)
    named = {tuple(line.split(" ")[:2]) for line in unverified(stack)}
    taken = {tuple(line.split(" ")[:2]) for line in assumed(stack)}
    for places, hosts in system.oracle().broken_by(chosen(pins, system.matrix)):
        about = {(f"{place.component}:", place.host) for place in places}
        assert about & (named | taken), f"{places} may be {hosts}"
        assert stack.verdict == "unverified" or about & taken, f"{places} may be {hosts}"
