"""Published combinations must be accepted, documented incompatibilities refused by the rule that says so.

Each file under `accepted` or `refused` holds `sources` and `cases`. A case names the source it was read from and the place
in it, the spec, the hosts, and what must come out:

- accepted: `stack`, the components as they must be chosen, and, where a fact of the host is missing on purpose, `unverified`,
  the names of the facts the answer must admit it does not know; without it the verdict must be yes;
- refused: `by`, the rule's name or, where it is a row and not a rule that says no, words of the row, and `between`, the
  components of the minimal conflict, all of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.json import decode
from ruamel.yaml import YAML

from provisioner.host.model import Host
from provisioner.request import Request, TargetHost
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import join
from provisioner.spec.model import Spec
from provisioner.words.conflict import conflict_lines, member_words
from provisioner.words.notation import sources_words
from tests.facts.sample import a_third_at_once
from tests.shipped import shipped
from tests.told import assumed, unverified

if TYPE_CHECKING:
    from provisioner.resolver.stack import Stack

HERE = Path(__file__).parent
LEAST = 60
"""How many cases of each kind there are at least."""


def read(kind: str) -> list[dict[str, Any]]:
    """All cases of a kind, each with its sources in place of their keys."""
    cases = []
    for path in sorted((HERE / kind).glob("*.yaml")):
        content = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        assert content.keys() == {"sources", "cases"}, path
        cited = {case["source"] for case in content["cases"]}
        assert cited == content["sources"].keys(), f"{path}: sources nobody cites, or cited and missing"
        cases += [{**case, "source": content["sources"][case["source"]], "theme": path.stem} for case in content["cases"]]
    return cases


ACCEPTED = read("accepted")
REFUSED = read("refused")


def title(case: dict[str, Any]) -> str:
    return f"{case['theme']}: {case['name']}"


def solve(case: dict[str, Any]) -> Stack:
    spec = decode(json.dumps(case["spec"]), type=Spec)
    hosts = tuple(
        TargetHost(label=f"host {number}", host=decode(json.dumps(facts), type=Host))
        for number, facts in enumerate(case.get("hosts", []), start=1)
    )
    return solve_system(join(shipped(), Request(spec=spec, hosts=hosts, platform=str(spec.target.platform))))


@pytest.mark.parametrize("case", a_third_at_once(ACCEPTED), ids=title)
def test_a_published_combination_is_accepted(case: dict[str, Any]) -> None:
    try:
        stack = solve(case)
    except NoStackError as error:
        pytest.fail("\n".join(conflict_lines(error.conflict)))
    assert {name: stack.components.get(name) for name in case["stack"]} == case["stack"]
    unknown = [line.split(":")[0] for line in unverified(stack)]
    assert unknown == case.get("unverified", []), unverified(stack)
    assert [doubt.component for doubt in stack.assumes] == case.get("assumes", []), assumed(stack)
    assert stack.basis == case.get("basis", stack.basis)


@pytest.mark.parametrize("case", a_third_at_once(REFUSED), ids=title)
def test_a_documented_incompatibility_is_refused_by_its_rule(case: dict[str, Any]) -> None:
    with pytest.raises(NoStackError) as caught:
        solve(case)
    members = caught.value.conflict.members
    shown = "\n".join(conflict_lines(caught.value.conflict))
    assert sorted({member.component for member in members}) == sorted(case["between"]), shown
    rules = [member for member in members if member.kind == "rule"]
    if "rule" in case["by"]:
        assert any(f"rule {case['by']['rule']}," in f"{sources_words(rule.sources)}," for rule in rules), shown
    else:
        row, says = case["by"]["row"], case["by"]["says"]
        assert any(
            rule.component == row and is_said(says, member_words(rule)) and "matrices/" in sources_words(rule.sources)
            for rule in rules
        ), shown


def is_said(words: str, text: str) -> bool:
    """Whether a rule says so of one release (`needs driver`) or of several (`need driver`)."""
    return words in text or words.replace("needs ", "need ").replace("is compiled", "are compiled") in text


@pytest.mark.parametrize("cases", [ACCEPTED, REFUSED], ids=["accepted", "refused"])
def test_there_are_enough_cases_and_no_two_are_the_same(cases: list[dict[str, Any]]) -> None:
    problems = {json.dumps([case["spec"], case.get("hosts", [])], sort_keys=True) for case in cases}
    assert len(problems) == len(cases) >= LEAST
    assert len({title(case) for case in cases}) == len(cases)


def test_every_case_says_where_it_was_read() -> None:
    for case in (*ACCEPTED, *REFUSED):
        assert case["source"]["title"], title(case)
        assert case["source"]["read"] >= "2026-11-01", title(case)
        assert case["source"].get("url", "https://").startswith("https://"), title(case)
        assert case["where"], title(case)


def test_an_accepted_case_pins_what_was_published() -> None:
    """A case that leaves a version open would be satisfied by another combination than the published one."""
    named = {component.name for component in shipped().components.values() if component.named}
    for case in ACCEPTED:
        requires = case["spec"]["requires"].items()
        assert not [name for name, wanted in requires if not (wanted.startswith("==") or name in named)], title(case)
