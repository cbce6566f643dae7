"""Plans: one file each, with today's stack, the hosts, what is wanted, and the steps that must come out.

A step is compared by what moves (`driver 470.256.02 -> 580.178.04`), with `reboot` and `together` behind it; where the scenario
writes more (`text`, `why`), by that too. A host that falls out is compared by the components of its conflict, all of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.json import decode
from msgspec.structs import replace
from ruamel.yaml import YAML

from provisioner.host.model import Host
from provisioner.places import Place
from provisioner.plan.model import PlanRequest
from provisioner.plan.planner import make_plan
from provisioner.plan.state import StackSpec
from provisioner.request import Request, TargetHost
from provisioner.spec.model import Spec
from provisioner.words.choice import step_reason_words
from provisioner.words.step import action_words, detail_words, plan_note_words, undo_words
from tests.shipped import shipped

if TYPE_CHECKING:
    from provisioner.plan.model import HostPlan, Step

HERE = Path(__file__).parent
PLANS = sorted(HERE.rglob("*.yaml"))
KEYS = {"description", "source", "spec", "to", "today", "hosts", "keep", "may_change", "expected"}
OF_HOSTS = {"steps", "falls_out", "last", "until", "why", "text", "details", "notes", "unverified"}


def read(path: Path) -> dict[str, Any]:
    plan = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    unknown = plan.keys() - KEYS
    assert not unknown, f"{path}: unknown keys {unknown}"
    return dict(plan)


def parsed(model: Any, data: object) -> Any:  # noqa: ANN401 - one of two models
    return decode(json.dumps(data, default=str), type=model)


def question(plan: dict[str, Any]) -> PlanRequest:
    spec = parsed(Spec, plan["spec"])
    wanted = replace(spec, requires={**spec.requires, **plan.get("to", {})})
    hosts = tuple(
        TargetHost(label=f"host {index}", host=parsed(Host, facts)) for index, facts in enumerate(plan["hosts"], start=1)
    )
    platform = str(spec.target.platform)
    accelerator = Request(spec=wanted, hosts=hosts, platform=platform).accelerator
    bare = replace(spec, requires={})

    def stack_spec(of: Spec, **fixed: str) -> StackSpec:
        return StackSpec(spec=of, platform=platform, accelerator=accelerator, locked=fixed, locked_in=Place("the lock"))

    return PlanRequest(
        hosts=hosts,
        counts=tuple(1 for _ in hosts),
        current=stack_spec(bare, **plan.get("today", {})),
        base=stack_spec(spec),
        wanted=stack_spec(wanted),
        keep=frozenset(plan.get("keep", ())),
        may_change=frozenset(plan.get("may_change", ())),
    )


def shown(step: Step) -> str:
    if step.kind == "find-out":
        return f"find out {step.component}"
    values = f"{step.before or '?'} -> {step.after or '?'}"
    marks = " [reboot]" if step.is_reboot else ""
    names = "+".join(dict.fromkeys(name for name, _, _ in step.changes)) if step.is_together else step.component
    return f"{names}: {values}{' [together]' if step.is_together else ''}{marks}"


def check_host(found: HostPlan, expected: dict[str, Any]) -> None:
    unknown = expected.keys() - OF_HOSTS
    assert not unknown, f"unknown keys {unknown}"
    if "steps" in expected:
        assert [shown(step) for step in found.steps] == expected["steps"]
    lines = [step_reason_words(reason) for step in found.steps for reason in step.why]
    for text in expected.get("why", ()):
        assert text in lines, lines
    texts = [action_words(step.action) for step in found.steps]
    for text in expected.get("text", ()):
        assert text in texts, texts
    details = [detail_words(detail) for step in found.steps for detail in step.details]
    details += [undo_words(step.undo) for step in found.steps if step.undo is not None]
    for text in expected.get("details", ()):
        assert text in details, details
    if "notes" in expected:
        assert list(map(plan_note_words, found.notes)) == expected["notes"]
    assert (found.exclusion is not None) == ("falls_out" in expected), found
    if found.exclusion is not None:
        members = {member.component for member in found.exclusion.conflict.members}
        assert members == set(expected["falls_out"]), found.exclusion.conflict
        last = found.exclusion.last
        for name, value in expected.get("last", {}).items():
            assert last is not None
            assert last.components[name] == value
        assert found.exclusion.until == expected.get("until", found.exclusion.until)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: str(path.relative_to(HERE)))
def test_plan(path: Path) -> None:
    plan = read(path)
    found = make_plan(shipped(), question(plan))
    expected = plan["expected"]
    for name, value in expected.get("wanted", {}).items():
        assert found.wanted is not None
        assert found.wanted.components[name] == value
    assert (found.status, found.verdict) == (expected["status"], expected["verdict"])
    assert len(found.hosts) == len(expected["hosts"])
    for one, wanted in zip(found.hosts, expected["hosts"], strict=True):
        check_host(one, wanted)
