"""Templates of messages, and the decoding of the values in them."""

from __future__ import annotations

import pytest

from provisioner.matrix.symptom import NOTATIONS, decoded, plain, read_symptom


@pytest.mark.parametrize(
    ("notation", "text", "value"),
    [
        ("cuda", "11040", "11.4"),
        ("cuda", "9020", "9.2"),
        ("cuda", "12000", "12.0"),
        ("cuda", "13020", "13.2"),
        ("cuda", "1201", "12.1"),
        ("cuda", "1108", "11.8"),
        ("cuda", "6050", "6.5"),
        ("cuda", "11041", ""),
        ("cuda", "99999", ""),
        ("cudnn", "8907", "8.9.7"),
        ("cudnn", "7605", "7.6.5"),
        ("cudnn", "90100", "9.1.0"),
        ("cudnn", "91002", "9.10.2"),
        ("cudnn", "10000", ""),
        ("nccl", "2708", "2.7.8"),
        ("nccl", "22005", "2.20.5"),
        ("nccl", "20908", "2.9.8"),
        ("nccl", "1000", ""),
        ("sm", "sm_61", "6.1"),
        ("sm", "compute_90", "9.0"),
        ("sm", "sm_120", "12.0"),
        ("sm", "sm_103a", "10.3"),
        ("sms", "sm_37 sm_50 compute_37", "3.7, 5.0"),
        ("tuple", "9, 1, 0", "9.1.0"),
        ("tag", "cu126", "12.6"),
        ("tag", "cu92", "9.2"),
        ("tag", "cp312", "3.12"),
        ("tag", "cp39", "3.9"),
        ("kernel", "6.8.0-40-generic.", "6.8.0-40-generic"),
        ("platform", "linux/arm64/v8", "linux/arm64"),
        ("platform", "windows/amd64", ""),
        ("gfx", "gfx1031", "gfx1031"),
    ],
)
def test_a_value_is_decoded(notation: str, text: str, value: str) -> None:
    assert decoded(notation, text) == value


@pytest.mark.parametrize("name", NOTATIONS)
def test_the_example_of_a_notation_is_one(name: str) -> None:
    symptom = read_symptom(f"the value: {{driver:{name}}}; more")
    match = symptom.pattern.search(f"the value: {NOTATIONS[name].example}; more")
    assert match is not None
    assert decoded(name, match[1])


def test_case_blanks_and_quotes_do_not_matter() -> None:
    symptom = read_symptom("nvcc fatal : Unsupported gpu architecture '{gpu:sm}'")
    match = symptom.pattern.search(plain("NVCC fatal   :  unsupported GPU architecture `compute_120'"))
    assert match is not None
    assert match[1] == "compute_120"


def test_escaped_quotes_are_quotes() -> None:
    assert plain(r"could not select device driver \\\"\\\" with") == 'could not select device driver "" with'


@pytest.mark.parametrize("template", ["{*} {*}", "a {driver:version}", "x{y", "{gpu_name:text} is not compatible"])
def test_a_template_that_would_match_too_much_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="`"):
        read_symptom(template)
