"""Scenarios: one file each, with the spec, the hosts, sometimes an index, and what must come out.

A stack is compared on the keys the scenario names. A conflict is compared by its members' components (all of them, in any
order) and, where the scenario writes it, by its words. What is not known yet (`not_known`) is compared by the error.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.json import decode
from ruamel.yaml import YAML

from provisioner.host.model import Host
from provisioner.index.client import PackageIndex
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.request import Request, TargetHost
from provisioner.resolver.joint import NoStackError, UnlistedReleaseError, solve_joint, solve_system
from provisioner.resolver.problem import join
from provisioner.spec.model import Spec
from provisioner.words.choice import caution_words, held_back_words
from provisioner.words.conflict import conflict_lines, failure_hints, refusal_lines
from provisioner.words.ground import say
from provisioner.words.relaxation import relaxation_words
from tests.lock_examples import lock_of
from tests.loopback_index import LoopbackIndex
from tests.shipped import shipped
from tests.standard_lock import assert_selects_its_stacks
from tests.told import assumed, changes, unverified

if TYPE_CHECKING:
    from provisioner.grounds.conflict import Conflict
    from provisioner.resolver.stack import Stack

HERE = Path(__file__).parent
SCENARIOS = sorted(path for path in HERE.rglob("*.yaml"))


def read(path: Path) -> dict[str, Any]:
    scenario = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    unknown = scenario.keys() - {"description", "source", "spec", "hosts", "index", "expected"}
    assert not unknown, f"{path}: unknown keys {unknown}"
    return dict(scenario)


def request(scenario: dict[str, Any]) -> Request:
    spec = decode(json.dumps(scenario["spec"], default=str), type=Spec)
    hosts = tuple(
        TargetHost(label=f"host {index}", host=decode(json.dumps(facts), type=Host))
        for index, facts in enumerate(scenario.get("hosts", []), start=1)
    )
    return Request(spec=spec, hosts=hosts, platform=str(spec.target.platform))


def outcome(scenario: dict[str, Any], folder: Path) -> Stack | tuple[Conflict, ...]:
    try:
        return solve(scenario, folder)
    except NoStackError as error:
        return error.conflicts


def solve(scenario: dict[str, Any], folder: Path) -> Stack:
    problem = join(shipped(), request(scenario))
    if "index" not in scenario:
        return solve_system(problem)
    with ExitStack() as stack:
        index = stack.enter_context(LoopbackIndex())
        for file in scenario["index"]:
            fields = {name: value for name, value in file.items() if name != "sdist"}  # a scenario may be solved again
            (index.add_sdist if file.get("sdist") else index.add_wheel)(**fields)
        location = IndexLocation(name="pypi", url=index.url)
        settings = IndexSettings(
            indexes=(location,),
            cache_directory=folder / "cache",
            fresh_seconds=0,
            allow_sdist="sdist" in scenario["spec"].get("policy", {}).get("allow", ()),
        )
        return solve_joint(problem, lambda environment: PackageIndex(settings, environment))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: str(path.relative_to(HERE)))
def test_scenario(path: Path, tmp_path: Path) -> None:
    scenario = read(path)
    expected = scenario["expected"]
    if "not_known" in expected:
        with pytest.raises(UnlistedReleaseError) as caught:
            solve(scenario, tmp_path)
        assert [caught.value.message, *caught.value.causes] == expected["not_known"]
        assert caught.value.exit_code == 3
        return
    found = outcome(scenario, tmp_path)
    if isinstance(found, tuple):
        told = "\n".join(refusal_lines(found))
        assert "conflict" in expected, told
        others = expected.get("others", [])
        assert len(found) == 1 + len(others), told
        for conflict, wanted in zip(found, (expected, *others), strict=True):
            check_conflict(conflict, wanted)
    else:
        assert "stack" in expected, f"a stack was found: {found.components}"
        check_stack(found, expected)
        if found.packages:
            assert_selects_its_stacks(lock_of(found, installers={}), found)


def check_stack(stack: Stack, expected: dict[str, Any]) -> None:
    wanted = expected["stack"]
    assert {name: stack.components.get(name) for name in wanted} == wanted
    if "basis" in expected:
        assert stack.basis == expected["basis"]
    if "managed_python" in expected:
        found = stack.image.managed_python if stack.image is not None else None
        assert (found.version if found is not None else "") == expected["managed_python"]
    if "accelerator" in expected:
        assert stack.accelerator == expected["accelerator"]
    if "packages" in expected:
        packages = {package.name: package.version for package in stack.packages}
        assert {name: packages.get(name) for name in expected["packages"]} == expected["packages"]
    if "environment" in expected:
        assert dict(stack.environment) == expected["environment"]
    if "relaxations" in expected:
        assert [f"{one.name} {one.component}" for one in stack.relaxations] == expected["relaxations"]
    check_told(stack, expected)
    if "unverified" in expected:
        assert list(unverified(stack)) == expected["unverified"]
    check_system_packages(stack, expected)
    if "assumes" in expected:
        assert [text for text in expected["assumes"] if text not in assumed(stack)] == [], assumed(stack)


def check_told(stack: Stack, expected: dict[str, Any]) -> None:
    """Check what a person is told beside the versions."""
    if "held_back" in expected:
        assert list(map(held_back_words, stack.held_back)) == expected["held_back"]
    if "says" in expected:
        warned = map(caution_words, stack.warnings)
        told = [*(relaxation_words(one) for one in stack.relaxations), *unverified(stack), *warned]
        assert [text for text in expected["says"] if text not in told] == [], told


def check_system_packages(stack: Stack, expected: dict[str, Any]) -> None:
    if "apt" in expected:
        assert {one.name: list(map(say, one.reasons)) for one in stack.system_packages} == expected["apt"]
    if "apt_names" in expected:
        assert [one.name for one in stack.system_packages] == expected["apt_names"]
    if "all_assumes" in expected:
        assert list(assumed(stack)) == expected["all_assumes"]


def _with_places(line: str) -> str:
    """Return a line with the file and line of each row that stands in braces: `{nvcc==11.8.0}`, in files that are generated."""
    return re.sub(r"\{([^}]+)\}", lambda row: str(shipped().positions[row[1]]), line)


def check_conflict(conflict: Conflict, expected: dict[str, Any]) -> None:
    members = sorted(f"{member.kind} {member.component}" for member in conflict.members)
    assert members == sorted(expected["conflict"]), "\n".join(conflict_lines(conflict))
    told = [" & ".join(f"{name} {change}" for name, change in changes(hint)) for hint in conflict.fixes]
    for hint in expected.get("hints", []):
        assert hint in told, told
    if "only_hints" in expected:
        assert told == expected["only_hints"]
    if "first" in expected:
        assert told[:1] == [expected["first"]], told
    if "gives" in expected:
        assert {name: conflict.fixes[0].gives.get(name) for name in expected["gives"]} == expected["gives"]
    if "told" in expected:
        assert list(failure_hints(conflict)) == expected["told"]
    if "published" in expected:
        found = [f"{one.name} at {one.address} for {one.pytorch} with python {one.python}" for one in conflict.published]
        assert found == expected["published"]
    if "explanation" in expected:
        assert list(conflict_lines(conflict)) == [_with_places(line) for line in expected["explanation"]]
