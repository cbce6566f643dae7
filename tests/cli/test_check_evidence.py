"""`provision check --require-evidence`: what evidence beside a lock proves, why it does not, and the command that mends it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner import check
from provisioner.evidence.statement import evidence_path, evidence_text, write_evidence
from provisioner.lock.format.file import read_lock
from provisioner.render import render
from tests.project import LOCK, UV_TAG, changed
from tests.unit.evidence.reports import report

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.evidence.report import Report
    from tests.project import Project

FILE = "pylock.trainer.linux-amd64.evidence.json"
HINT = f"    hint: `provision validate {LOCK} --level 2` measures it, and writes the evidence\n"


@pytest.fixture(autouse=True)
def locked(project: Project) -> None:
    """A project that is solved, and whose index is gone from then on."""
    assert project.run("solve").code == 0
    project.index.status = 500


def of_this_lock(project: Project, found: Report) -> Report:
    """A report as if it were of the project's lock and Dockerfile."""
    path = project.folder / LOCK
    dockerfile = render(read_lock(path), "dockerfile", lock_file_name=LOCK)
    return replace(
        found,
        lock_sha256=f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",
        dockerfile=f"sha256:{hashlib.sha256(dockerfile.encode()).hexdigest()}",
    )


def write(project: Project, found: Report, name: str = FILE) -> Path:
    path = project.folder / name
    write_evidence(path, found)
    return path


def finding(project: Project, level: int = 2) -> tuple[int, str]:
    """The exit code, and what is said after the verdict."""
    outcome = project.run("check", "--require-evidence", str(level))
    verdict, _, text = outcome.out.partition("\n")
    assert verdict == f"{LOCK}: {({0: 'yes', 1: 'no', 3: 'unverified'})[outcome.code]}"
    return outcome.code, text


def test_evidence_of_this_lock_and_level_is_a_yes(project: Project) -> None:
    write(project, of_this_lock(project, report("yes", "yes", "yes")))
    told = "  yes: validated up to level 2 (files) on linux/amd64 with docker 26.1.5, 2026-11-23T14:00:00Z  [evidence]\n"
    assert finding(project) == (0, told)
    assert finding(project, level=0) == (0, told)
    assert project.run("check").out == f"{LOCK}: yes\n", "nobody asked"


def test_a_level_above_that_could_not_be_measured_does_not_matter(project: Project) -> None:
    write(project, of_this_lock(project, report("yes", "yes", "yes", "yes", "unverified")))
    assert finding(project)[0] == 0


def test_an_image_that_was_built_before_has_no_dockerfile_to_compare(project: Project) -> None:
    found = replace(of_this_lock(project, report("yes", "yes", "yes", idle=(0, 1))), dockerfile="")
    write(project, found)
    assert finding(project)[0] == 0


def test_each_class_of_nodes_has_to_prove_the_level(project: Project) -> None:
    good = of_this_lock(project, report("yes", "yes", "yes"))
    write(project, good, "pylock.trainer.linux-amd64.a100.evidence.json")
    write(project, good, "pylock.trainer.linux-amd64.h100.evidence.json")
    assert finding(project)[0] == 0, "nothing is missing where classes have files"
    write(project, of_this_lock(project, report("yes", "yes", "no")), "pylock.trainer.linux-amd64.h100.evidence.json")
    code, text = finding(project)
    assert (code, text.count("[evidence]"), text.count("[failed-evidence]")) == (1, 1, 1)


def test_evidence_that_is_missing_leaves_it_unverified(project: Project) -> None:
    told = f"  unverified: there is no evidence that it was validated on linux/amd64: `{FILE}` is missing  [missing-evidence]\n"
    assert finding(project) == (3, told + HINT)


def test_evidence_of_another_lock_leaves_it_unverified(project: Project) -> None:
    found = of_this_lock(project, report("yes", "yes", "yes"))
    write(project, found)
    (project.folder / LOCK).write_bytes((project.folder / LOCK).read_bytes() + b"\n")
    now = hashlib.sha256((project.folder / LOCK).read_bytes()).hexdigest()[:12]
    then = found.lock_sha256.removeprefix("sha256:")[:12]
    told = f"`{FILE}` is evidence of another lock file: of sha256 {then}…, and this one has {now}…"
    assert finding(project) == (3, f"  unverified: {told}  [stale-evidence]\n{HINT}")


def test_evidence_of_another_dockerfile_leaves_it_unverified(project: Project) -> None:
    """Such as one that was edited by hand, or rendered by an earlier version."""
    found = of_this_lock(project, report("yes", "yes", "yes"))
    write(project, replace(found, dockerfile=f"sha256:{'d' * 64}"))
    renders = found.dockerfile.removeprefix("sha256:")[:12]
    told = f"`{FILE}` is evidence of an image of another Dockerfile: of sha256 {'d' * 12}…, and this lock renders {renders}…"
    assert finding(project) == (3, f"  unverified: {told}  [stale-evidence]\n{HINT}")


def test_evidence_of_another_platform_leaves_it_unverified(project: Project) -> None:
    write(project, replace(of_this_lock(project, report("yes", "yes", "yes")), platform="linux/arm64"))
    told = f"  unverified: `{FILE}` is evidence for linux/arm64, not for linux/amd64  [stale-evidence]\n"
    assert finding(project) == (3, told + HINT)


def test_evidence_of_a_lower_level_leaves_it_unverified(project: Project) -> None:
    write(project, of_this_lock(project, report("yes", "unverified", "unverified")))
    told = f"`{FILE}` proves the levels up to 0, not 2 (files); unverified: fact 1 and fact 2"
    assert finding(project) == (3, f"  unverified: {told}  [weak-evidence]\n{HINT}")


def test_a_level_that_has_nothing_to_do_can_never_be_proven(project: Project) -> None:
    write(project, of_this_lock(project, report("yes", "yes", "yes", "yes", idle=(3,))))
    told = f"`{FILE}` proves the levels up to 2, not 3 (imports), which has nothing to do for this lock: no image"
    hint = "    hint: ask for the evidence that there can be: a lower --require-evidence\n"
    assert finding(project, level=3) == (3, f"  unverified: {told}  [weak-evidence]\n{hint}")


@pytest.mark.parametrize("level", [0, 2, 4])
def test_evidence_of_a_fault_is_a_no_whatever_level_is_asked_for(project: Project, level: int) -> None:
    write(project, of_this_lock(project, report("yes", "yes", "no", "yes")))
    told = f"  no: `{FILE}` is evidence that it is not as locked on linux/amd64: fact 2  [failed-evidence]\n"
    hint = f"    hint: `provision validate {LOCK} --level {level}` shows them, measured anew\n"
    assert finding(project, level) == (1, told + hint)


def test_a_machine_that_is_ill_is_no_fault_of_the_lock_unless_its_health_is_asked_for(project: Project) -> None:
    write(project, of_this_lock(project, report("yes", "yes", "yes", "yes", "yes", "no")))
    told = "  yes: validated up to level 4 (devices) on linux/amd64 with docker 26.1.5, 2026-11-23T14:00:00Z  [evidence]\n"
    assert finding(project, level=4) == (0, told)
    assert finding(project, level=5)[0] == 1


def test_evidence_edited_by_hand_is_a_no(project: Project) -> None:
    path = write(project, of_this_lock(project, report("yes", "yes", "unverified")))
    path.write_text(path.read_text(encoding="utf-8").replace('"unverified"', '"yes"'), encoding="utf-8")
    told = f"  no: `{FILE}` was edited by hand: its parts do not agree with the hash of its report  [edited-evidence]\n"
    assert finding(project) == (1, told + HINT)


def test_what_is_no_evidence_is_named_with_its_place_and_other_findings_are_told_too(project: Project) -> None:
    (project.folder / FILE).write_text('{\n  "_type": 3\n}', encoding="utf-8")
    (project.folder / "Dockerfile").unlink()
    code, text = finding(project)
    assert code == 1
    assert "  no: `Dockerfile` is missing  [missing-output]\n" in text
    told = f"  unverified: `{FILE}` cannot be read as evidence: evidence has 4 mistakes  [unreadable-evidence]\n"
    assert text.endswith(
        f"{told}    {FILE}:1:1: `predicateType` is missing\n    {FILE}:1:1: `predicate` is missing\n"
        f"    {FILE}:1:1: `subject` is missing\n    {FILE}:2:3: _type: `3` must be https://in-toto.io/Statement/v1\n{HINT}"
    ), text


def test_a_folder_in_place_of_evidence_is_named(project: Project) -> None:
    (project.folder / FILE).mkdir()
    told = f"  unverified: `{FILE}` cannot be read as evidence: evidence `{FILE}` is no file  [unreadable-evidence]\n"
    assert finding(project) == (3, told + HINT)


def test_each_platform_needs_its_own(project: Project) -> None:
    project.index.status = None
    project.index.add_wheel("uv", "0.9.11", tag=UV_TAG.replace("x86_64", "aarch64"), upload_time="2025-11-20T10:00:00Z")
    project.write(changed("target: {platform: [linux/amd64, linux/arm64]}"))
    assert project.run("solve").code == 0
    found = of_this_lock(project, report("yes", "yes", "yes"))
    write(project, found)
    arm = "pylock.trainer.linux-arm64.evidence.json"
    code, text = finding(project)
    assert code == 3
    assert f"`{arm}` is missing  [missing-evidence]\n" in text
    assert f"`provision validate {LOCK} --platform linux/arm64 --level 2` measures it" in text
    write(project, replace(found, platform="linux/arm64"), arm)
    assert finding(project)[0] == 0


def test_a_lock_without_its_spec_is_still_asked_for_evidence(project: Project) -> None:
    (project.folder / "provision.yaml").unlink()
    assert "[missing-evidence]" in finding(project)[1]


def test_the_same_as_a_function(project: Project) -> None:
    (missing,) = check(project.folder, required_level=2)
    assert [one.code for one in missing.findings] == ["missing-evidence"]
    write(project, of_this_lock(project, report("yes", "yes", "yes")))
    (found,) = check(project.folder, required_level=2)
    assert (found.verdict, [one.code for one in found.findings]) == ("yes", ["evidence"])


def test_evidence_as_json_has_its_fields(project: Project) -> None:
    write(project, of_this_lock(project, report("yes", "yes", "yes")))
    answer = project.run("check", "--require-evidence", "2", "--format", "json").json
    (found,) = answer["locks"][0]["findings"]
    fields = {name: found[name] for name in ("code", "verdict", "where", "object", "platform", "level", "engine", "time")}
    assert fields == {
        "code": "evidence",
        "verdict": "yes",
        "where": FILE,
        "object": FILE,
        "platform": "linux/amd64",
        "level": 2,
        "engine": "docker 26.1.5",
        "time": "2026-11-23T14:00:00Z",
    }


@pytest.mark.parametrize("level", ["-1", "6", "files"])
def test_a_level_that_does_not_exist_is_bad_usage(project: Project, level: str) -> None:
    assert project.run("check", "--require-evidence", level).code == 2


def test_explain_tells_what_evidence_there_is(project: Project) -> None:
    project.index.status = None
    evidence = "  evidence: validated up to level 3 (imports) on linux/amd64 with docker 26.1.5, 2026-11-23T14:00:00Z\n"
    missing = f"  evidence: there is no evidence that it was validated on linux/amd64: `{FILE}` is missing\n"
    assert missing in project.run("explain").out
    write(project, of_this_lock(project, report("yes", "yes", "yes", "yes")))
    assert evidence in project.run("explain").out
    (found,) = project.run("explain", "--format", "json").json["evidence"]
    assert (found["level"], found["engine"]) == (3, "docker 26.1.5")
    (project.folder / LOCK).unlink()
    outcome = project.run("explain", "--format", "json")
    assert outcome.code == 0
    assert "evidence" not in outcome.json, "without a lock there is nothing that evidence could be of"


def test_the_file_is_where_validate_writes_it(project: Project) -> None:
    assert evidence_path(project.folder / LOCK, "linux/amd64").name == FILE
    assert json.loads(evidence_text(report("yes")))["_type"] == "https://in-toto.io/Statement/v1"
