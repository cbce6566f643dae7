"""Evidence as a file: an in-toto statement, the same bytes for the same report, and no traceback whatever is in its place."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import json_format
from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from msgspec.structs import replace

from provisioner.document import FileError
from provisioner.errors import InvalidDocumentError
from provisioner.evidence.statement import MOST_BYTES, evidence_path, evidence_text, read_evidence, write_evidence
from tests.unit.evidence.reports import gpu_report, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.evidence.report import Report

GOLDEN = Path(__file__).parents[2] / "golden/evidence"


def data_of(found: Report) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(evidence_text(found))
    return data


def test_the_evidence_of_each_platform_lies_beside_its_lock() -> None:
    lock = Path("environments/pylock.trainer.toml")
    assert evidence_path(lock, "linux/amd64") == Path("environments/pylock.trainer.linux-amd64.evidence.json")
    assert evidence_path(Path("pylock.toml"), "macos/arm64") == Path("pylock.macos-arm64.evidence.json")


def test_evidence_is_a_statement_about_the_lock_and_the_image(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / "gpu.evidence.json", evidence_text(gpu_report()))


@pytest.mark.parametrize("found", [gpu_report(), report("yes", "yes"), replace(report("unverified"), image="", dockerfile="")])
def test_the_bindings_of_in_toto_read_it_as_a_result_of_tests(found: Report) -> None:
    """They ignore unknown fields, as the parsing rules ask."""
    text = evidence_text(found)
    statement = json_format.Parse(text, StatementMessage())
    Statement.copy_from_pb(statement).validate()
    predicate = json_format.ParseDict(json.loads(text)["predicate"], test_result_pb2.TestResult(), ignore_unknown_fields=True)
    assert predicate.result == ("PASSED" if found.verdict == "yes" else "FAILED")
    for descriptor in predicate.configuration:
        ResourceDescriptor.copy_from_pb(descriptor).validate()


def test_evidence_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "pylock.trainer.linux-amd64.evidence.json"
    for found in (report("yes", "yes"), gpu_report()):
        write_evidence(path, found)
        assert read_evidence(path).report == found
        assert not read_evidence(path).is_edited
        assert path.read_text(encoding="utf-8") == evidence_text(found)


def test_only_a_yes_has_passed_and_an_unverified_fact_neither_passed_nor_failed() -> None:
    predicate = data_of(report("yes", "unverified"))["predicate"]
    assert (predicate["result"], predicate["passedTests"], predicate["warnedTests"], predicate["failedTests"]) == (
        "FAILED",
        ["0 static: fact 0"],
        [],
        [],
    )
    assert data_of(report("no"))["predicate"]["failedTests"] == ["0 static: fact 0"]
    assert data_of(report("yes"))["predicate"]["result"] == "PASSED"


def test_an_environment_without_an_image_has_the_lock_as_its_only_subject() -> None:
    found = replace(report("yes", "yes", "yes", idle=(0, 1)), image="", dockerfile="")
    data = data_of(found)
    assert data["subject"] == [{"name": "pylock.trainer.toml", "digest": {"sha256": "a" * 64}}]
    assert [one["name"] for one in data["predicate"]["configuration"]] == ["matrix"]


def paths(data: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths of all scalars."""
    if isinstance(data, dict):
        return [one for key, value in data.items() for one in paths(value, (*path, key))]
    if isinstance(data, list):
        return [one for index, value in enumerate(data) for one in paths(value, (*path, index))]
    return [path]


def test_a_change_of_any_value_is_told_or_is_no_evidence_at_all(tmp_path: Path) -> None:
    """Not one value of the file can be another without notice: each is changed in turn, within what its type allows."""
    path = tmp_path / "edited.evidence.json"
    found = paths(data_of(gpu_report()))
    assert len(found) == 100
    for place in found:
        data: Any = data_of(gpu_report())
        *before, last = place
        inner = data
        for key in before:
            inner = inner[key]
        value = inner[last]
        inner[last] = value + 1 if isinstance(value, int | float) else value.replace("a", "f") if "a" in value else f"{value}1"
        assert data != data_of(gpu_report()), place
        path.write_text(json.dumps(data), encoding="utf-8")
        try:
            assert read_evidence(path).is_edited, place
        except InvalidDocumentError:
            continue


def test_layout_and_fields_of_others_do_not_matter(tmp_path: Path) -> None:
    """The parsing rules of in-toto: unrecognized fields are ignored."""
    data = data_of(gpu_report())
    data["predicate"]["url"] = "https://ci.example.org/runs/1"
    data["subject"][0]["annotations"] = {"team": "vision"}
    path = tmp_path / "other.evidence.json"
    path.write_text(json.dumps(data, sort_keys=True), encoding="utf-8")
    assert not read_evidence(path).is_edited


def read_mistakes(path: Path, text: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidDocumentError) as invalid:
        read_evidence(path)
    return [str(one).removeprefix(f"{path}:") for one in invalid.value.mistakes]


LINES = {name: number for number, name in enumerate(evidence_text(report("yes")).splitlines(), 1)}


def line_of(start: str) -> int:
    return next(number for text, number in LINES.items() if text.strip().startswith(start))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"verdict": "yes",\n        "levels"', '"verdict": "perhaps",\n        "levels"', '"verdict": "yes",'),
        ('"level": 0,\n        "verdict"', '"level": 9,\n        "verdict"', '"level": 0,'),
        ('"level": 0,\n        "verdict"', '"level": "x",\n        "verdict"', '"level": 0,'),
        ('"schema_version": 3', '"schema_version": 4', '"schema_version"'),
        ('"fields": [', '"fields": 3, "others": [', '"fields"'),
        ("https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0", '"_type"'),
        ("test-result/v0.1", "test-result/v9", '"predicateType"'),
        ('"build": 1.5', '"build": null', '"build"'),
        ('"version": "26.1.5"', '"version": "\\ud800"', '"version"'),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    text = evidence_text(report("yes"))
    assert text.count(old) == 1
    found = read_mistakes(tmp_path / "e.json", text.replace(old, new))
    assert found
    assert found[0].startswith(f"{line_of(told)}:"), found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1:1: Expecting value"),
        ("{", "1:2: Expecting property name enclosed in double quotes"),
        ('{"_type": \n  nonsense}', "2:3: Expecting value"),
        ("[]", "1:1: the file must hold a mapping of keys to values"),
        ("3", "1:1: the file must hold a mapping of keys to values"),
        ("[" * 100_000, "1:1: the file is nested too deeply to be read"),
        ('{"a":' * 3000 + "1" + "}" * 3000, "1:"),  # how deep its decoder goes differs between releases of Python
        ('{"predicate": ' + "9" * 5000 + "}", "1:"),
        ('{"predicate": NaN}', "1:"),
        ('{"subject": [' + "3," * 200_000 + "3]}", "1:1: "),
        (" " * (MOST_BYTES + 1), "1:1: the file has more than 1,000,000 bytes, and no evidence has so many"),
    ],
)
def test_what_is_no_evidence_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    assert read_mistakes(tmp_path / "e.json", text)[0].startswith(told)


def test_what_cannot_be_read_at_all_is_told(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    with pytest.raises(FileError, match="does not exist"):
        read_evidence(path)
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(FileError, match="is not UTF-8 text"):
        read_evidence(path)
    with pytest.raises(FileError, match="is no file"):
        read_evidence(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileError, match="is no file"):
        read_evidence(pipe)
