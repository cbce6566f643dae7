"""The workflows use actions of a stated commit; the scheduled one runs commands that exist, and says what could not be read."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from provisioner import __version__
from provisioner.cli.app import main

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
MATRIX = ROOT / ".github/workflows/matrix.yml"
SITE = ROOT / ".github/workflows/site.yml"


def steps(path: Path) -> list[dict[str, Any]]:
    """Return the steps of all jobs of a workflow."""
    content = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return [step for job in content["jobs"].values() for step in job["steps"]]


def script(name: str) -> str:
    """Return what a named step of the workflow of the matrix runs."""
    return str(next(step["run"] for step in steps(MATRIX) if step.get("name") == name))


def commands(path: Path) -> list[list[str]]:
    """Return the words of each call of `provision` in a workflow."""
    lines = [line for step in steps(path) for line in str(step.get("run", "")).splitlines()]
    return [line.split() for line in lines if line.strip().startswith(".venv/bin/provision ")]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_uses_actions_of_a_stated_commit_and_scripts_that_parse(path: Path) -> None:
    assert steps(path)
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    # The tag stands beside the commit, for people: a tag may be moved, a commit is what was read.
    assert all(re.fullmatch(r"(- )?uses: \S+ # v\d+\.\d+\.\d+", line) for line in lines), lines
    for step in steps(path):
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
        else:
            subprocess.run(["bash", "-n"], input=step["run"], text=True, check=True)


def test_the_workflow_of_the_matrix_refreshes_audits_and_checks() -> None:
    assert [words[1:3] for words in commands(MATRIX)] == [["matrix", "refresh"], ["matrix", "audit"], ["matrix", "check"]]


def test_the_workflow_of_the_site_builds_it_twice_and_only_its_last_job_may_publish() -> None:
    builds = [step for step in steps(SITE) if "make pages" in step.get("run", "")]
    assert [step["env"] for step in builds] == [{"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"}]
    (upload,) = (step for step in steps(SITE) if "upload-pages" in step.get("uses", ""))
    assert upload["with"] == {"path": "${{ runner.temp }}/site"}
    assert 'mv build/docs "$RUNNER_TEMP/site"' in builds[0]["run"]
    content = YAML(typ="safe").load(SITE.read_text(encoding="utf-8"))
    assert content["permissions"] == {"contents": "read"}
    assert {name: job.get("permissions") for name, job in content["jobs"].items()} == {
        "build": None,
        "publish": {"pages": "write", "id-token": "write"},
    }
    assert "secrets." not in SITE.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_commands_of_a_workflow_exist(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in commands(path):
        with pytest.raises(SystemExit) as stopped:
            main([*words[1:3], "--help"])
        assert stopped.value.code == 0
        known = re.findall(r"--[a-z-]+", capsys.readouterr().out)
        assert {word for word in words if word.startswith("--")} <= set(known)
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?:docs|tests)/[a-z_]+\.py", text):
        assert (ROOT / name).is_file(), name
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(
        f"{target}:" in makefile.replace("$(VENV)", ".venv") for target in re.findall(r"(?:run:| +) make ([^\s-]\S*)", text)
    )


RELEASE = ROOT / ".github/workflows/release.yml"


@pytest.mark.parametrize(("tag", "code"), [(f"v{__version__}", 0), ("v99.0.0", 1)])
def test_a_release_is_of_the_version_that_its_tag_names(tag: str, code: int) -> None:
    (check,) = (step["run"] for step in steps(RELEASE) if step.get("name") == "The tag is the version")
    done = subprocess.run(["bash", "-e", "-c", check], cwd=ROOT, env={**os.environ, "TAG": tag}, check=False)
    assert done.returncode == code


def test_only_the_jobs_of_a_release_that_sign_may_ask_for_an_identity_and_none_may_write_the_repository() -> None:
    content = YAML(typ="safe").load(RELEASE.read_text(encoding="utf-8"))
    build, publish = content["jobs"]["build"], content["jobs"]["publish"]
    assert content["permissions"] == {"contents": "read"}
    assert build["permissions"] == {"contents": "read", "id-token": "write", "attestations": "write"}
    assert publish["permissions"] == {"contents": "read", "id-token": "write"}
    assert (publish["needs"], publish["if"], publish["environment"]) == ("build", "github.ref_type == 'tag'", "pypi")
    assert "secrets." not in RELEASE.read_text(encoding="utf-8")


def test_what_is_published_is_what_was_attested() -> None:
    uses = {step["uses"].partition("@")[0]: step["with"] for step in steps(RELEASE) if "uses" in step and "with" in step}
    assert uses["actions/attest-build-provenance"] == {"subject-path": "dist/*"}
    assert uses["actions/download-artifact"] == {"name": "dist", "path": "dist"}
    names = [step["name"] if "name" in step else step["uses"].partition("@")[0] for step in steps(RELEASE)]
    assert names.index("Build, and build again elsewhere") < names.index("Attest where the files come from")


@pytest.mark.parametrize(("week", "part"), [("01", "2/52"), ("08", "9/52"), ("51", "52/52"), ("52", "1/52"), ("53", "2/52")])
def test_each_week_audits_a_part_of_the_rows(week: str, part: str) -> None:
    (line,) = (line for line in script("Audit").splitlines() if line.startswith("part="))
    told = subprocess.run(
        ["bash", "-c", f'date() {{ echo {week}; }}; {line}; echo "$part"'], capture_output=True, text=True, check=True
    )
    assert told.stdout == f"{part}\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone with a matrix, its remote, reports of a refresh and an audit, and a `gh` that writes down what it is told."""
    for command in (
        "git init --quiet --bare origin.git",
        "git init --quiet --initial-branch main work",
        "git -C work remote add origin ../origin.git",
        "mkdir -p work/matrices work/docs report bin",
        "touch work/matrices/wheels.yaml work/docs/matrix.md",
        "git -C work add .",
        "git -C work -c user.name=a -c user.email=a@example.org commit --quiet --message first",
    ):
        subprocess.run(command.split(), cwd=tmp_path, check=True)
    (tmp_path / "report/refresh").write_text(
        "warning: not refreshed: wheels: vllm: index `main` answers 503\n", encoding="utf-8"
    )
    (tmp_path / "report/audit").write_text("nccl: refuted\n", encoding="utf-8")
    rows = "rows of  rows  measured\ndriver  299  0\nall  7443  3896\n"
    (tmp_path / "report/check").write_text(
        f"matrices/nvcc.yaml:9: binds nothing\n{rows}pytorch: uv says 12.8\n", encoding="utf-8"
    )
    gh = tmp_path / "bin/gh"
    gh.write_text('#!/bin/sh\necho "$@" >> "$RUNNER_TEMP/told"\n', encoding="utf-8")
    gh.chmod(0o755)
    return tmp_path


def opened(checkout: Path, check: str = "0") -> str:
    """Run the step that opens the request after a check with an exit code; returns what `gh` was told, "" for nothing."""
    environment = {
        **os.environ,
        "CHECK": check,
        "RUNNER_TEMP": str(checkout),
        "GITHUB_STEP_SUMMARY": str(checkout / "summary"),
        "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}",
    }
    subprocess.run(["bash", "-e", "-c", script("Open a pull request")], cwd=checkout / "work", env=environment, check=True)
    told = checkout / "told"
    return told.read_text(encoding="utf-8") if told.exists() else ""


def test_a_change_is_pushed_and_the_request_says_what_could_not_be_read(checkout: Path) -> None:
    (checkout / "work/matrices/wheels.yaml").write_text("surveys: []\n", encoding="utf-8")

    assert opened(checkout).startswith("pr create --head matrix-refresh ")
    body = (checkout / "report/body").read_text(encoding="utf-8")
    assert "vllm: index `main` answers 503" in body
    assert "nccl: refuted" in body
    assert (checkout / "summary").read_text(encoding="utf-8") == body
    pushed = subprocess.run(
        ["git", "--git-dir", "origin.git", "show", "--stat", "--format=%s", "matrix-refresh"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    assert pushed.stdout.startswith("The matrix is refreshed from the package index\n")
    assert "matrices/wheels.yaml" in pushed.stdout


@pytest.mark.parametrize(("code", "is_told"), [("0", False), ("1", True)])
def test_a_check_that_found_something_is_told_in_the_request(checkout: Path, code: str, *, is_told: bool) -> None:
    """What was read is not lost for it: the request is opened, and the job fails at its end."""
    (checkout / "work/matrices/wheels.yaml").write_text("surveys: []\n", encoding="utf-8")

    assert opened(checkout, code).startswith("pr create ")
    body = (checkout / "report/body").read_text(encoding="utf-8")
    assert ("matrices/nvcc.yaml:9: binds nothing\npytorch: uv says 12.8\n" in body) is is_told
    assert "driver  299" not in body
    last = steps(MATRIX)[-1]["run"]
    done = subprocess.run(["bash", "-e", "-c", last], env={**os.environ, "AUDIT": "3", "CHECK": code}, check=False)
    assert done.returncode == int(is_told)


def test_a_long_report_is_cut_and_says_so(checkout: Path) -> None:
    """GitHub refuses the text of a request of more than 65,536 characters; nothing would be opened."""
    (checkout / "work/matrices/wheels.yaml").write_text("surveys: []\n", encoding="utf-8")
    reading = "".join(f"reading the package index: {number}, vllm-0.33.0: vllm/_C.abi3.so\n" for number in range(2000))
    warning = (checkout / "report/refresh").read_text(encoding="utf-8")
    (checkout / "report/refresh").write_text(reading + warning, encoding="utf-8")
    (checkout / "report/audit").write_text("".join(f"nccl=={number}: refuted\n" for number in range(9000)), encoding="utf-8")

    assert opened(checkout).startswith("pr create ")
    body = (checkout / "report/body").read_text(encoding="utf-8")
    assert len(body) < 65536
    assert "reading the package index" not in body
    assert "vllm: index `main` answers 503" in body
    assert "nccl==0: refuted" in body
    assert body.count("the rest is in the log of the run") == 1


def test_no_request_is_opened_where_nothing_changed(checkout: Path) -> None:
    assert opened(checkout) == ""
    assert "nccl: refuted" in (checkout / "summary").read_text(encoding="utf-8")
