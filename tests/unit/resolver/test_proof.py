"""Which single requirements a conflict rests on."""

from __future__ import annotations

from provisioner.resolver.explain.conflict import described, explain_conflict
from provisioner.resolver.problem import join
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.proof import Member, Proof
from provisioner.words.conflict import conflict_lines, member_words
from tests import small

ORDER = ("alpha", "beta", "gamma")


def instance(table: dict[str, dict[str, dict[str, list[str]]]], **requires: str) -> ProblemInstance:
    return ProblemInstance(join(small.matrix(ORDER, table, virtual=()), small.request(requires)))


def test_releases_nobody_can_reach_are_not_told() -> None:
    """Beta 1 needs gamma 1 too, but no alpha asks for beta 1."""
    found = instance(
        {
            "alpha": {"1": {"beta": ["2", "3"]}},
            "beta": {"3": {"gamma": ["1"]}, "2": {"gamma": ["1"]}, "1": {"gamma": ["1"]}},
            "gamma": {"2": {}, "1": {}},
        },
        alpha=">=1",
        gamma=">=2",
    )
    assert conflict_lines(explain_conflict(found)) == (
        "you require alpha >=1  (the spec)",
        "you require gamma >=2  (the spec)",
        "alpha 1 needs beta 2 or 3  (matrices/alpha.yaml)",
        "beta 2 and 3 need gamma 1  (matrices/beta.yaml)",
        "so no alpha >=1 is left that goes with gamma >=2",
    )


def test_of_two_reasons_against_a_release_the_one_that_serves_more_is_told() -> None:
    """Beta 1 is excluded by gamma and by alpha; all others by gamma alone, so gamma is told of all."""
    found = instance(
        {
            "alpha": {"2": {}, "1": {}},
            "beta": {"3": {"gamma": ["1"]}, "2": {"gamma": ["1"]}, "1": {"gamma": ["1"], "alpha": ["1"]}},
            "gamma": {"2": {}, "1": {}},
        },
        alpha=">=2",
        beta=">=1",
        gamma=">=2",
    )
    search = CompleteSearch(found)
    assert search.find() is None
    texts = [member_words(member) for member in described(found, search, search.minimal()).members]
    search.close()
    assert texts == ["you require beta >=1", "you require gamma >=2", "beta 1 … 3 need gamma 1"]


def test_a_span_is_broken_where_a_release_says_something_else() -> None:
    found = instance(
        {
            "alpha": {},
            "beta": {"4": {"gamma": ["1"]}, "3": {"gamma": ["3"]}, "2": {"gamma": ["1"]}, "1": {"gamma": ["1"]}},
            "gamma": {"3": {}, "2": {}, "1": {}},
        },
        beta=">=1",
        gamma="==2",
    )
    lines = conflict_lines(explain_conflict(found))
    assert lines[2] == "beta 1, 2 and 4 need gamma 1; beta 3 needs gamma 3  (matrices/beta.yaml)"


def test_many_ranges_are_said_as_the_versions_they_come_to() -> None:
    releases = {str(number): {"gamma": [str(number)]} for number in range(1, 7)}
    gammas: dict[str, dict[str, list[str]]] = {str(number): {} for number in range(1, 9)}
    found = instance({"alpha": {}, "beta": releases, "gamma": gammas}, beta=">=1", gamma=">=7")
    assert conflict_lines(explain_conflict(found))[2] == "beta 1 … 6 need gamma 1, 2, 3, 4, 5 or 6  (matrices/beta.yaml)"


def test_very_many_ranges_are_said_as_the_span_they_lie_in_if_that_is_enough() -> None:
    releases = {str(number): {"gamma": [str(number)]} for number in range(1, 21)}
    gammas: dict[str, dict[str, list[str]]] = {str(number): {} for number in range(1, 25)}
    found = instance({"alpha": {}, "beta": releases, "gamma": gammas}, beta=">=1", gamma=">=22")
    assert conflict_lines(explain_conflict(found))[2] == "beta 1 … 20 need gamma ranges within 1 … 20  (matrices/beta.yaml)"
    # gamma 10 lies in the span, and none of the releases needs it: the span would not be a proof, the two beside it are.
    del releases["10"]
    holed = instance({"alpha": {}, "beta": releases, "gamma": gammas}, beta=">=1", gamma="==10")
    told = conflict_lines(explain_conflict(holed))[2]
    assert "beta 11 … 20 need gamma ranges within 11 … 20; beta 1 … 9 need gamma ranges within 1 … 9" in told


def test_versions_that_no_release_needs_do_not_split_a_span() -> None:
    releases = {str(number): {"gamma": [str(number)]} for number in range(1, 21) if number != 10}
    gammas: dict[str, dict[str, list[str]]] = {str(number): {} for number in range(1, 25)}
    found = instance({"alpha": {}, "beta": releases, "gamma": gammas}, beta=">=1", gamma=">=22")
    assert conflict_lines(explain_conflict(found))[2] == "beta 1 … 20 need gamma ranges within 1 … 20  (matrices/beta.yaml)"


def test_a_conflict_stands_on_the_span_or_does_not() -> None:
    releases = {str(number): {"gamma": [str(number)]} for number in (1, 3)}
    gammas: dict[str, dict[str, list[str]]] = {str(number): {} for number in range(1, 4)}
    found = instance({"alpha": {}, "beta": releases, "gamma": gammas}, beta=">=1", gamma="==2")
    search = CompleteSearch(found)
    assert search.find() is None
    everything = [Member(parent, one) for group in search.minimal() for parent, one in search.members(group)]
    search.close()
    rules = [member for member in everything if member.parent is not None]
    key = rules[0].requirement.key
    proof = Proof(found, everything)
    by_label = {candidate.label: candidate for candidate in found.candidates(key)}
    assert proof.refutes(rules, key=key, allowed=[by_label["1"], by_label["3"]])
    assert not proof.refutes(rules, key=key, allowed=list(by_label.values()))
    proof.close()
