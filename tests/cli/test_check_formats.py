"""`provision check --format`: what other programs read, held against their schemas, parsers and escapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from junitparser import JUnitXml

from provisioner.cli.check_formats import NAMES, formatted
from provisioner.cli.check_formats.remark import Environment, Remark
from tests.project import LOCK, changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.project import Project

    Accept = Callable[[str, str], None]

SARIF = Path(__file__).parents[1] / "fixtures/schemas/sarif-2.1.0-rtm.5.json"
"""The schema of OASIS as SchemaStore has it, from `@microsoft/jest-sarif` 1.0.0-beta.0 on npm (MIT)."""


def remark(level: str, code: str, text: str, *more: str, line: int = 3) -> Remark:
    return Remark(
        level=level,  # type: ignore[arg-type]  # one of the four
        code=code,
        text=text,
        more=more,
        file="envs/a b/100%,x:y/provision.yaml",
        line=line,
        column=5,
        fingerprint=f"{line:032x}",
    )


ENVIRONMENTS = (
    Environment(path="envs/good/pylock.good.toml", verdict="yes", remarks=()),
    Environment(
        path="envs/bad/pylock.bad.toml",
        verdict="error",
        remarks=(
            remark("error", "invalid-document", "packages: must be a list"),
            remark("no", "stale-package", "50% of <alpha> & \x1b[31mbeta", "provision solve\nagain", line=4),
            remark("unverified", "unverified", "nobody knows", line=5),
            remark("warning", "unpinned-image", "not pinned", line=6),
        ),
    ),
)


def validated(text: str) -> Any:  # noqa: ANN401 - JSON holds anything
    """A SARIF document that holds its schema."""
    document = json.loads(text)
    schema = json.loads(SARIF.read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(schema).validate(document)
    return document


def test_sarif_holds_its_schema() -> None:
    document = validated(formatted("sarif", ENVIRONMENTS))
    (run,) = document["runs"]
    assert [result["level"] for result in run["results"]] == ["error", "error", "warning", "note"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == sorted(rules)
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in run["results"])
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "envs/a%20b/100%25%2Cx%3Ay/provision.yaml"
    assert place["region"] == {"startLine": 3, "startColumn": 5}
    assert validated(formatted("sarif", ()))["runs"][0]["results"] == []


def test_the_schema_of_sarif_refuses_what_is_wrong() -> None:
    document = json.loads(formatted("sarif", ENVIRONMENTS))
    document["runs"][0]["results"][0]["level"] = "no"
    with pytest.raises(jsonschema.ValidationError):
        validated(json.dumps(document))


def test_junit_is_what_its_readers_read() -> None:
    suites = JUnitXml.fromstring(formatted("junit", ENVIRONMENTS).encode())
    good, bad = list(suites)
    assert [(case.name, case.result) for case in good] == [("holds", [])]
    assert (bad.tests, bad.errors, bad.failures, bad.skipped) == (4, 1, 1, 1)
    assert [[type(one).__name__ for one in case.result] for case in bad] == [["Error"], ["Failure"], ["Skipped"], []]
    failure = list(bad)[1].result[0]
    assert failure.message == "50% of <alpha> & \N{REPLACEMENT CHARACTER}[31mbeta"
    assert "provision.yaml:4:5: " in failure.text


def test_github_escapes_what_would_end_a_command() -> None:
    """As `escapeData` and `escapeProperty` of actions/toolkit do."""
    lines = formatted("github", ENVIRONMENTS).splitlines()
    file = "envs/a b/100%25%2Cx%3Ay/provision.yaml"
    assert lines == [
        f"::error file={file},line=3,col=5,title=provision%3A invalid-document::packages: must be a list",
        (
            f"::error file={file},line=4,col=5,title=provision%3A stale-package::50%25 of <alpha> & \\x1b[31mbeta"
            "%0Aprovision solve%0Aagain"
        ),
        f"::warning file={file},line=5,col=5,title=provision%3A unverified::nobody knows",
        f"::notice file={file},line=6,col=5,title=provision%3A unpinned-image::not pinned",
        "provision check: 1 of 2 environments holds",
    ]


def test_gitlab_has_what_its_report_requires() -> None:
    found = json.loads(formatted("gitlab", ENVIRONMENTS))
    assert [set(one) for one in found] == [{"description", "check_name", "fingerprint", "severity", "location"}] * 4
    assert [one["severity"] for one in found] == ["critical", "major", "minor", "info"]
    assert found[1]["location"] == {"path": "envs/a b/100%,x:y/provision.yaml", "lines": {"begin": 4}}
    assert json.loads(formatted("gitlab", ())) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_same_findings_are_the_same_bytes_without_paths_of_this_machine(project: Project, name: str) -> None:
    assert project.run("solve").code == 0
    project.write(changed("packages: ['alpha<2', 'beta<2']"))
    (project.folder / "Dockerfile").unlink()
    first = project.run("check", "--format", name)
    again = project.run("check", "--format", name)
    assert (first.code, first.out) == (1, again.out)
    assert str(project.folder) not in first.out
    assert "provision.yaml" in first.out


def test_one_run_writes_as_many_reports_as_wanted(project: Project) -> None:
    assert project.run("solve").code == 0
    project.write(changed("packages: ['alpha<2', 'beta<2']"))
    wanted = {name: project.run("check", "--format", name).out for name in NAMES}
    told = project.run("check")
    outcome = project.run("check", *(word for name in NAMES for word in ("--report", f"{name}=found.{name}")))
    assert (outcome.code, outcome.out) == (1, told.out)
    assert {name: (project.folder / f"found.{name}").read_text() for name in NAMES} == wanted


def test_a_report_is_written_of_files_that_cannot_be_read(project: Project) -> None:
    project.write("name = [\n", name=LOCK)
    assert project.run("check", LOCK, "--report", "gitlab=found.json").code == 2
    (found,) = json.loads((project.folder / "found.json").read_text())
    assert found["location"] == {"path": LOCK, "lines": {"begin": 1}}


def test_every_mistake_of_the_reports_asked_for_is_told_before_anything_is_checked(project: Project) -> None:
    outcome = project.run("check", "--report", "text=a", "--report", "sarif=", "--report", "sarif=b", "--report", "junit=b")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines() == [
        "error: `--report text=a` is not FORMAT=FILE  [bad-usage]",
        "  `--report sarif=` is not FORMAT=FILE",
        "  `--report junit=b` names a file for a second time",
        "",
        "hint: formats are sarif, junit, github, gitlab: --report sarif=check.sarif",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_cannot_be_read_stands_at_its_line(project: Project, name: str) -> None:
    project.write("name = [\n", name=LOCK)
    outcome = project.run("check", LOCK, "--format", name)
    assert outcome.code == 2
    expected = {
        "sarif": '"startLine": 1',
        "junit": 'errors="1"',
        "github": f"::error file={LOCK},line=",
        "gitlab": '"severity": "critical"',
    }
    assert expected[name] in outcome.out


def test_fingerprints_stay_when_lines_move(project: Project) -> None:
    assert project.run("solve").code == 0

    def prints() -> dict[str, int]:
        found = json.loads(project.run("check", "--format", "gitlab").out)
        return {one["fingerprint"]: one["location"]["lines"]["begin"] for one in found}

    text = changed("packages: ['alpha<2', 'beta<2']")
    project.write(text)
    before = prints()
    project.write(f"# moved\n# down\n{text}")
    after = prints()
    assert len(before) == 2
    assert after == {one: line + 2 for one, line in before.items()}


def test_places_are_relative_to_the_root_of_the_work_tree(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    project.write(name="envs/a/provision.yaml")
    assert project.run("solve", "envs/a/provision.yaml").code == 0
    subprocess.run(["git", "init", "--quiet"], cwd=project.folder, check=True)
    project.write(changed("packages: ['alpha<2']"), name="envs/a/provision.yaml")
    monkeypatch.chdir(project.folder / "envs/a")
    outcome = project.run("check", "--format", "gitlab")
    assert json.loads(outcome.out)[0]["location"]["path"] == "envs/a/provision.yaml"
