"""Requirements are read as both runtimes read them; what only one of them accepts is named with its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.gate.grammar import Clause, GateError, numbers_of, parse, requirements_of


def test_spaces_are_or_and_commas_are_and() -> None:
    expression = parse("cuda>=13.1 brand=tesla,driver>=580,driver<581")
    assert [[str(clause) for clause in term] for term in expression.terms] == [
        ["cuda>=13.1"],
        ["brand=tesla", "driver>=580", "driver<581"],
    ]
    assert expression.terms[1][1] == Clause("driver", ">=", "580", 24, (580,))


@pytest.mark.parametrize("text", ["", " ", "   "])
def test_an_empty_requirement_requires_nothing(text: str) -> None:
    assert parse(text).terms == ()


def test_empty_clauses_and_alternatives_say_nothing() -> None:
    assert [[str(clause) for clause in term] for term in parse("  cuda>=12,,arch>=8.0,  driver>=535 ").terms] == [
        ["cuda>=12", "arch>=8.0"],
        ["driver>=535"],
    ]


def test_unknown_properties_are_skipped_and_an_alternative_of_nothing_else_is_none() -> None:
    expression = parse("csv-mounts=all cuda>=12.6,jetpack>=6 cpu=arm")
    assert [[str(clause) for clause in term] for term in expression.terms] == [["cuda>=12.6"]]
    assert [str(clause) for clause in expression.skipped] == ["csv-mounts=all", "jetpack>=6", "cpu=arm"]


def test_properties_are_known_in_any_case() -> None:
    assert [str(clause) for clause in parse("CUDA>=12,Brand=Tesla").terms[0]] == ["cuda>=12", "brand=Tesla"]


@pytest.mark.parametrize(
    ("text", "token", "column", "reason"),
    [
        ("cuda", "cuda", 1, "is not a comparison such as cuda>=12.6"),
        ("cuda>=12 foo", "foo", 10, "is not a comparison such as cuda>=12.6"),
        ("cuda>=", "cuda>=", 1, "has no value after >="),
        ("cuda>=12,>=13", ">=13", 10, "names no property before >=: cuda, driver, arch, brand are known"),
        ("cuda=>12", "=>", 5, "is not an operator; != <= >= = < > are"),
        ("cuda==12", "==", 5, "is not an operator; != <= >= = < > are"),
        ("foo!2", "!", 4, "is not an operator; != <= >= = < > are"),
        ("driver>=535,cuda>=twelve", "twelve", 19, "is not a version of one to three numbers"),
        ("driver>=535.104.05.1", "535.104.05.1", 9, "is not a version of one to three numbers"),
        ("cuda>=v12", "v12", 7, "is not a version of one to three numbers"),
        ("cuda>=12.", "12.", 7, "is not a version of one to three numbers"),
        ("cuda>=١٢", "١٢", 7, "is not a version of one to three numbers"),
        ("cuda>=12\tdriver>=535", "12\tdriver>=535", 7, "is not a version of one to three numbers"),
        ("cuda>=12\n", "12\n", 7, "is not a version of one to three numbers"),
        ("brand>=tesla", ">=", 6, "does not compare brands: only = and != do"),
        ("cuda>=99 ,", ",", 10, "is an alternative without a clause"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_column(text: str, token: str, column: int, reason: str) -> None:
    with pytest.raises(GateError) as caught:
        parse(text)
    error = caught.value
    assert (error.token, error.column, error.reason) == (token, column, reason)
    assert error.message == f"NVIDIA_REQUIRE_CUDA, column {column}: `{token}` {reason}"
    assert error.exit_code == 2


def test_a_long_token_is_cut_short() -> None:
    with pytest.raises(GateError) as caught:
        parse("x" * 5000)
    assert caught.value.token == "x" * 39 + "…"


@given(st.text(alphabet="cudabrnhive<>=!, .0159\t\n\x00é", max_size=30) | st.text(max_size=20))
def test_any_text_is_an_expression_or_an_error_that_points_into_it(text: str) -> None:
    places: list[tuple[int, str]]
    try:
        expression = parse(text)
        written = [clause for term in expression.terms for clause in term] + list(expression.skipped)
        places = [(clause.column, str(clause)) for clause in written]
    except GateError as error:
        places = [(error.column, error.token)]
    assert all(text[column - 1 :].lower().startswith(token.lower()) for column, token in places)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("535.104.05", (535, 104, 5)),
        ("12.0", (12,)),
        ("0", (0,)),
        ("0.0", (0,)),
        ("550.54.15-beta", (550, 54, 15)),
        ("none", ()),
    ],
)
def test_versions_are_numbers_without_zeros_at_the_end(text: str, numbers: tuple[int, ...]) -> None:
    assert numbers_of(text) == numbers


def test_several_variables_are_several_requirements_in_order_of_their_names() -> None:
    found = requirements_of(
        {"NVIDIA_REQUIRE_DRIVER": "driver>=535", "NVIDIA_REQUIRE_CUDA": "cuda>=12.6", "PATH": "/bin", "CUDA_VERSION": "12.6.3"}
    )
    assert [(one.variable, one.text) for one in found] == [
        ("NVIDIA_REQUIRE_CUDA", "cuda>=12.6"),
        ("NVIDIA_REQUIRE_DRIVER", "driver>=535"),
    ]


def test_what_a_jetson_mounts_is_no_requirement() -> None:
    assert (
        requirements_of({"NVIDIA_REQUIRE_JETPACK": "csv-mounts=all", "NVIDIA_REQUIRE_JETPACK_HOST_MOUNTS": "base-only"}) == ()
    )


@pytest.mark.parametrize("value", ["1", "t", "true", "True", "TRUE"])
def test_the_switch_of_the_runtime_turns_everything_off(value: str) -> None:
    assert requirements_of({"NVIDIA_REQUIRE_CUDA": "no sense", "NVIDIA_DISABLE_REQUIRE": value}) == ()


@pytest.mark.parametrize("value", ["", "0", "no", "yes", "tRUE"])
def test_the_switch_is_read_as_go_reads_it(value: str) -> None:
    assert len(requirements_of({"NVIDIA_REQUIRE_CUDA": "cuda>=12", "NVIDIA_DISABLE_REQUIRE": value})) == 1


@pytest.mark.parametrize(("version", "text"), [("9.0.176", "cuda>=9.0"), ("v10.2", "cuda>=10.2"), ("8", "cuda>=8.0")])
def test_an_image_from_before_requirements_demands_its_cuda(version: str, text: str) -> None:
    (found,) = requirements_of({"CUDA_VERSION": version})
    assert (found.variable, found.text) == ("CUDA_VERSION", text)


def test_a_cuda_version_that_is_none_is_named() -> None:
    with pytest.raises(GateError, match=r"CUDA_VERSION, column 1: `twelve` is not a version such as 12\.6\.3"):
        requirements_of({"CUDA_VERSION": "twelve"})
