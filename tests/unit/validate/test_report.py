from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import to_builtins

from provisioner.errors import InvalidDocumentError
from provisioner.validate.report import (
    EngineReport,
    FieldReport,
    LevelReport,
    Report,
    Verdict,
    is_stronger,
    load_report,
    report_path,
    report_text,
    write_report,
)


def report(verdict: Verdict = "yes", *, level: int = 2, digest: str = "a", timing: float = 1.5) -> Report:
    return Report(
        name="trainer",
        lock_file="pylock.trainer.toml",
        lock_digest=f"sha256:{digest * 64}",
        platform="linux/amd64",
        engine=EngineReport(name="docker", version="26.1.5", builder="docker buildx 0.13.1"),
        image=f"sha256:{'b' * 64}",
        level=level,
        verdict=verdict,
        levels=(LevelReport(level=0, name="static", verdict="nothing to do", note="no image"),),
        fields=(FieldReport(name="python", locked="3.12", measured="3.12.4", verdict=verdict, note="naïve: “quoted”\nline"),),
        timing={"build": timing, "run": 2.0},
    )


def test_a_report_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "trainer.validation.json"
    write_report(path, report())
    assert load_report(path) == report()
    assert path.read_text(encoding="utf-8") == report_text(load_report(path))


def test_the_evidence_lies_beside_its_lock() -> None:
    assert report_path(Path("environments/pylock.trainer.toml")) == Path("environments/trainer.validation.json")
    assert report_path(Path("pylock.toml")) == Path("pylock.validation.json")


@pytest.mark.parametrize(("verdict", "code"), [("yes", 0), ("no", 1), ("unverified", 3)])
def test_the_exit_code_follows_the_verdict(verdict: Verdict, code: int) -> None:
    assert report(verdict).exit_code == code


def test_a_proof_is_stronger_than_what_could_not_be_measured_of_the_same_lock() -> None:
    assert is_stronger(report("yes"), report("unverified"))
    assert not is_stronger(report("yes"), report("no"))
    assert not is_stronger(report("yes"), report("yes"))
    assert not is_stronger(report("no"), report("unverified"))
    assert not is_stronger(report("yes"), report("unverified", digest="c"))
    assert not is_stronger(report("yes", level=1), report("unverified", level=2))


def test_a_mistake_in_a_report_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "trainer.validation.json"
    path.write_text(report_text(report()).replace('"verdict": "yes",\n  "levels"', '"verdict": "perhaps",\n  "levels"'))
    with pytest.raises(InvalidDocumentError) as invalid:
        load_report(path)
    (mistake,) = invalid.value.mistakes
    assert (mistake.line, mistake.path) == (15, "verdict")


def test_nothing_in_a_report_names_the_machine_or_the_day() -> None:
    keys = to_builtins(report()).keys()
    assert sorted(keys) == [
        "engine",
        "fields",
        "image",
        "level",
        "levels",
        "load",
        "lock_digest",
        "lock_file",
        "name",
        "platform",
        "schema_version",
        "timing",
        "verdict",
    ]
