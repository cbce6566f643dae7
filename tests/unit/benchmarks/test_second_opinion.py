"""The second opinion on conflicts, in `benchmarks/`: what uv agrees with, what it disputes, and what it cannot know."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def verdict(
    packages: Sequence[str],
    refused: Sequence[set[str]],
    *rules: dict[str, Any],
    built: Sequence[str] = (),
    unusable: Sequence[str] = (),
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Return the verdict on a conflict of all `packages` and `rules`; uv refuses what holds one of the sets in `refused`.

    Distributions in `built` have only source distributions, of which uv needs one for each request; pip has nothing for
    requirements in `unusable`.
    """
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    problems, second_opinion = import_module("hard_problems"), import_module("second_opinion")
    problem = problems.Problem(name="one", theme="conflict", host="one", python="3.11", packages=tuple(packages))
    host = problems.EASY_HOST
    lines = {text: line for line, text in problems.asked_at(problem, host).items()}
    requests = [
        {"kind": "request", "component": "package", "sources": [{"source": "", "place": f"provision.yaml:{lines[one]}"}]}
        for one in packages
    ]
    conflict = {"members": [*requests, *rules], "conclusion": "so"}

    def answers(asked: Sequence[str], python: str, wheels_only: Sequence[str]) -> bool:
        del python
        return not any(some <= set(asked) for some in refused) and not (asked and set(built) & set(wheels_only))

    def has_wheel(requirement: str, python: str) -> bool:
        del python
        return requirement not in unusable

    told: str = second_opinion.opinion(conflict, problem, host, answers, has_wheel).verdict
    return told


def rule(kind: str, subject: str, *, source: str = "", place: str = "") -> dict[str, Any]:
    clauses = [{"type": kind, "subject": subject}]
    return {"kind": "rule", "component": subject, "clauses": clauses, "sources": [{"source": source, "place": place}]}


DECLARED = rule("requires", "one", source="metadata of one 1.0")
COMPILED = rule("compiled-against", "one", place="matrices/distributions.yaml:367")
NO_FILE = rule("no-file", "one", source="index")
ONLY_AN_SDIST = {**NO_FILE, "clauses": [{"type": "no-file", "subject": "one", "allow": "sdist"}]}
OF_A_DRIVER = rule("needs", "cuda", place="matrices/cuda.yaml:1")


def test_uv_agrees_with_what_it_refuses_and_answers_without_any_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict(["one==1", "two==1"], [{"one==1", "two==1"}], DECLARED, monkeypatch=monkeypatch) == "agrees"


def test_a_request_that_is_not_needed_is_disputed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict(["one==1", "two==1", "three==1"], [{"two==1", "three==1"}], DECLARED, monkeypatch=monkeypatch)
    assert found == "uv refuses without `one==1` too"


def test_uv_is_not_asked_without_what_settles_the_build_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows no build but that of PyPI, whose needs the builds of other indexes need not have."""
    asked, refused = ["one==1", "two==1", "three==1"], [{"two==1", "three==1"}]
    assert verdict(asked, refused, DECLARED, COMPILED, monkeypatch=monkeypatch) == "agrees"
    refused = [{"one==1", "two==1"}]
    assert verdict(asked, refused, COMPILED, monkeypatch=monkeypatch) == "uv refuses without `three==1` too"


def test_a_conflict_that_rests_on_a_driver_is_disputed_only_where_uv_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict(["one==1"], [], DECLARED, COMPILED, OF_A_DRIVER, monkeypatch=monkeypatch) == "of the system"
    found = verdict(["one==1"], [{"one==1"}], DECLARED, OF_A_DRIVER, monkeypatch=monkeypatch)
    assert found == "uv refuses these packages without the system too"


def test_an_answer_of_uv_is_disputed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict(["one==1", "two==1"], [], DECLARED, monkeypatch=monkeypatch) == "uv has an answer on Python 3.11"


def test_uv_gets_the_policy_that_a_conflict_rests_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict(["one==1"], [], ONLY_AN_SDIST, built=["one"], monkeypatch=monkeypatch) == "agrees"
    assert verdict(["one==1"], [], ONLY_AN_SDIST, monkeypatch=monkeypatch) == "uv has an answer on Python 3.11"


def test_pip_is_asked_about_files_that_uv_repairs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict(["one==1"], [], NO_FILE, unusable=["one==1"], monkeypatch=monkeypatch)
    assert found == "pip agrees; uv repairs metadata that the standard does not allow"
    assert verdict(["one==1"], [], NO_FILE, monkeypatch=monkeypatch) == "uv has an answer on Python 3.11"
    assert verdict(["one==1"], [], ONLY_AN_SDIST, unusable=["one==1"], monkeypatch=monkeypatch) != found
