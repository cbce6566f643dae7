"""What merges are checked with: hooks of pre-commit, the action, the template of GitLab, and the recipes of docs/merge.md.

Each is held against the schema of its program where there is one, and run as its program runs it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from junitparser import JUnitXml
from ruamel.yaml import YAML

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.project import Project

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/merge.md").read_text(encoding="utf-8")
ACTION = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))
TEMPLATE = YAML(typ="safe").load((ROOT / "templates/provision-check.yml").read_text(encoding="utf-8"))
HOOKS = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
PROGRAMS = Path(sys.executable).parent


def blocks(language: str, *, first: str) -> str:
    """The one block of a language on the page whose first line has some words."""
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if first in text.splitlines()[0]]
    (block,) = found
    return str(block)


def mistakes(schema: str, document: Any) -> list[str]:  # noqa: ANN401 - YAML and JSON hold anything
    """What a schema that check-jsonschema brings along finds wrong with a document."""
    text = (files("check_jsonschema") / "builtin_schemas/vendor" / schema).read_text(encoding="utf-8")
    content = json.loads(text)
    validator = jsonschema.validators.validator_for(content)
    return [error.message for error in validator(content).iter_errors(document)]


def run(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with `provision` of this checkout on the path."""
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def git(folder: Path, *words: str) -> None:
    """Run git as somebody."""
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=folder, check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one reference environment."""
    folder = tmp_path / "infrastructure"
    shutil.copytree(ROOT / "dockerfiles/onnx-cpu", folder / "envs/onnx-cpu")
    git(tmp_path, "init", "--quiet", "infrastructure")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def edit(repository: Path) -> None:
    """Edit the recipe of the environment by hand."""
    recipe = repository / "envs/onnx-cpu/Dockerfile"
    recipe.write_text(recipe.read_text(encoding="utf-8").replace("USER root", "USER 0", 1), encoding="utf-8")


def test_the_schemas_take_what_we_write_and_refuse_what_is_wrong() -> None:
    assert mistakes("github-actions.json", ACTION) == []
    assert mistakes("github-actions.json", {**ACTION, "runs": {"using": "composite"}})
    assert mistakes("gitlab-ci.json", TEMPLATE) == []
    assert mistakes("gitlab-ci.json", {"provision-check": {**TEMPLATE["provision-check"], "script": 3}})


class TestPreCommit:
    def configuration(self, hook: Mapping[str, Any]) -> str:
        """The hook as one of the repository itself, with the program of this checkout in place of an installed one."""
        return json.dumps({"repos": [{"repo": "local", "hooks": [{**hook, "language": "system"}]}]})

    def test_the_manifest_is_one(self) -> None:
        done = run(["pre-commit", "validate-manifest", ".pre-commit-hooks.yaml"], ROOT)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_a_commit_that_breaks_an_environment_is_refused(self, repository: Path, tmp_path: Path) -> None:
        (repository / ".pre-commit-config.yaml").write_text(self.configuration(HOOKS[0]), encoding="utf-8")
        git(repository, "add", ".")
        home = {"PRE_COMMIT_HOME": str(tmp_path / "home")}
        assert run(["pre-commit", "install"], repository, **home).returncode == 0
        commit = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--all", "--message", "second"]
        done = run(commit, repository, **home)
        assert done.returncode == 0, done.stdout + done.stderr
        edit(repository)
        refused = run(commit, repository, **home)
        assert refused.returncode == 1
        assert "`envs/onnx-cpu/Dockerfile` is not what its lock renders" in refused.stdout + refused.stderr
        (repository / "notes.txt").write_text("hello\n", encoding="utf-8")
        git(repository, "checkout", "--quiet", "--", "envs")
        git(repository, "add", "notes.txt")
        skipped = run(commit, repository, **home)
        assert skipped.returncode == 0
        assert "(no files to check)" in skipped.stdout + skipped.stderr

    @pytest.mark.parametrize(
        "name",
        [
            *("envs/a/pylock.a.toml", "envs/a/provision.yaml", "hosts/h100.yml", "pyproject.toml", "requirements-dev.in"),
            *("Dockerfile", "gpu.Dockerfile", "Dockerfile.gpu", "apptainer.def", "docker-bake.hcl", "job.slurm", "modulefile"),
            *("environment.sh", "sbom.cdx.json", "envs/a/provision/install.py", "wheels/a-1-py3-none-any.whl"),
        ],
    )
    def test_whatever_can_change_the_answer_runs_the_hook(self, name: str) -> None:
        assert all(re.search(hook["files"], name) for hook in HOOKS)

    def test_what_cannot_does_not(self) -> None:
        for name in ("README.md", "train.py", "envs/a/notes.txt", "provision/deep/x.txt"):
            assert not any(re.search(hook["files"], name) for hook in HOOKS), name

    def test_every_output_format_and_helper_runs_the_hook(self) -> None:
        from provisioner.outputs import OUTPUTS

        names = [output.file_name for output in OUTPUTS.values()]
        names += [path for output in OUTPUTS.values() for path in output.helper_paths]
        assert [name for name in names if not re.search(HOOKS[0]["files"], name)] == []

    @pytest.mark.network
    @pytest.mark.slow
    def test_the_hook_is_installed_from_a_repository_as_others_install_it(self, repository: Path, tmp_path: Path) -> None:
        source = tmp_path / "provision"
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/")):
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, source / name)
        git(tmp_path, "init", "--quiet", "provision")
        git(source, "add", ".")
        git(source, "commit", "--quiet", "--message", "a release")
        git(source, "tag", "v1.0.0")
        text = blocks("yaml", first=".pre-commit-config.yaml").replace("https://github.com/OWNER/provision", str(source))
        (repository / ".pre-commit-config.yaml").write_text(text, encoding="utf-8")
        git(repository, "add", ".")
        home = {"PRE_COMMIT_HOME": str(tmp_path / "home")}
        good = run(["pre-commit", "run", "--all-files"], repository, **home)
        assert good.returncode == 0, good.stdout + good.stderr
        edit(repository)
        bad = run(["pre-commit", "run", "--all-files"], repository, **home)
        assert bad.returncode == 1
        assert "is not what its lock renders" in bad.stdout


class TestAction:
    def step(self, repository: Path, tmp_path: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
        """Run the step that checks, with what GitHub sets: its exit code, its log, and the files that it wrote to."""
        runner = tmp_path / "runner"
        (runner / "provision/bin").mkdir(parents=True, exist_ok=True)
        program = runner / "provision/bin/provision"
        if not program.exists():
            program.symlink_to(PROGRAMS / "provision")
        named = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in named.values():
            path.write_text("", encoding="utf-8")
        given = {"paths": ".", "arguments": "", "sarif": "", **inputs}
        (step,) = (one for one in ACTION["runs"]["steps"] if one.get("id") == "check")
        variables = {name: self.expanded(text, given) for name, text in step["env"].items()}
        shell = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]  # `shell: bash`, as GitHub runs it
        done = run(shell, repository, RUNNER_TEMP=str(runner), **{name: str(path) for name, path in named.items()}, **variables)
        return done.returncode, done.stdout, {name: path.read_text(encoding="utf-8") for name, path in named.items()}

    def expanded(self, text: str, inputs: Mapping[str, str]) -> str:
        match = re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", text)
        assert match is not None, text
        return inputs[match[1]]

    def test_every_input_has_a_description_and_a_default(self) -> None:
        assert all(set(one) == {"description", "default"} for one in ACTION["inputs"].values())

    def test_a_repository_that_holds_passes(self, repository: Path, tmp_path: Path) -> None:
        code, log, written = self.step(repository, tmp_path)
        assert code == 0, log
        assert log.splitlines()[-1] == "provision check: 1 of 1 environment holds"
        assert written["GITHUB_OUTPUT"] == "verdict=yes\n"
        assert "envs/onnx-cpu/pylock.onnx-cpu.toml: yes" in written["GITHUB_STEP_SUMMARY"]

    def test_one_that_does_not_fails_with_an_annotation_a_summary_and_sarif(self, repository: Path, tmp_path: Path) -> None:
        edit(repository)
        code, log, written = self.step(repository, tmp_path, paths="envs\n\n", sarif="found.sarif", arguments="--strict")
        assert code == 1
        assert "::error file=envs/onnx-cpu/Dockerfile,line=" in log
        assert written["GITHUB_OUTPUT"] == "verdict=no\n"
        assert "[edited-output]" in written["GITHUB_STEP_SUMMARY"]
        found = json.loads((repository / "found.sarif").read_text(encoding="utf-8"))
        assert "edited-output" in [one["ruleId"] for one in found["runs"][0]["results"]]

    def test_inputs_are_no_code(self, repository: Path, tmp_path: Path) -> None:
        code, _, _ = self.step(repository, tmp_path, paths="$(touch bad)", arguments="; touch worse")
        assert code == 2
        assert not [*repository.rglob("bad"), *repository.rglob("worse")]

    def test_the_step_that_installs_takes_the_checkout_of_the_action_by_default(self, tmp_path: Path) -> None:
        (step,) = (one for one in ACTION["runs"]["steps"] if one["name"] == "Install")
        fake = tmp_path / "bin"
        fake.mkdir()
        (fake / "python3").write_text(
            '#!/bin/sh\nmkdir -p "$3/bin"\nprintf \'#!/bin/sh\\necho pip "$@"\\n\' > "$3/bin/pip"\nchmod +x "$3/bin/pip"\n'
        )
        (fake / "python3").chmod(0o755)
        variables = {"RUNNER_TEMP": str(tmp_path), "GITHUB_ACTION_PATH": "/the/action"}
        for version, wanted in (("", "/the/action"), ("provision-ml==1.0.0", "provision-ml==1.0.0")):
            path = f"{fake}:{os.environ['PATH']}"
            environment = {**os.environ, **variables, "VERSION": version, "PATH": path}
            told = subprocess.run(
                ["bash", "-e", "-c", step["run"]], env=environment, capture_output=True, text=True, check=True
            )
            assert told.stdout == f"pip install --quiet --disable-pip-version-check {wanted}\n"


class TestGitLab:
    def script(self, repository: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the script of the job as a runner's shell does: line by line, until one fails."""
        job = TEMPLATE["provision-check"]
        lines = "\n".join(line for line in job["script"])
        given = {**{name: str(value) for name, value in job["variables"].items()}, **variables}
        given["PROVISION_CACHE_DIR"] = given["PROVISION_CACHE_DIR"].replace("$CI_PROJECT_DIR", str(repository))
        return run(["sh", "-e", "-c", lines], repository, **given)

    def test_the_job_leaves_both_reports_and_the_verdict(self, repository: Path) -> None:
        good = self.script(repository)
        assert good.returncode == 0, good.stderr
        assert "envs/onnx-cpu/pylock.onnx-cpu.toml: yes" in good.stdout
        edit(repository)
        bad = self.script(repository, PROVISION_PATHS="envs", PROVISION_ARGUMENTS="--strict")
        assert bad.returncode == 1
        reports = TEMPLATE["provision-check"]["artifacts"]["reports"]
        quality = json.loads((repository / reports["codequality"]).read_text(encoding="utf-8"))
        assert "envs/onnx-cpu/Dockerfile" in [one["location"]["path"] for one in quality]
        (suite,) = JUnitXml.fromfile(str(repository / reports["junit"]))
        assert suite.failures >= 1


class TestRecipes:
    def test_renovate_moves_the_parts_together(self) -> None:
        found = json.loads(blocks("json", first="{"))
        assert mistakes("renovate.json", found) == []
        (rule,) = (one for one in found["packageRules"] if one.get("groupName"))
        assert {"torch", "torchvision", "nvidia/cuda"} <= set(rule["matchPackageNames"])

    def test_renovate_finds_the_versions_in_a_spec(self) -> None:
        """The pattern is RE2's; what it uses of it, Python's has, too, but for the spelling of groups."""
        found = json.loads(blocks("json", first="{"))
        (manager,) = found["customManagers"]
        assert re.search(manager["managerFilePatterns"][0].strip("/"), "envs/trainer/provision.yaml")
        (pattern,) = manager["matchStrings"]
        spec = 'requires:\n  python: "3.12"\n  # renovate: datasource=pypi depName=torch\n  pytorch: "==2.7.1"\n'
        match = re.search(pattern.replace("(?<", "(?P<"), spec)
        assert match is not None
        assert match.groupdict() == {"datasource": "pypi", "depName": "torch", "currentValue": "==2.7.1"}

    def test_dependabot_is_a_configuration(self) -> None:
        document = YAML(typ="safe").load(blocks("yaml", first=".github/dependabot.yml"))
        assert mistakes("dependabot.json", document) == []

    @pytest.mark.parametrize(
        "first", [".github/workflows/provision.yml", ".github/workflows/solve.yml", ".github/workflows/plan.yml"]
    )
    def test_workflows_are_workflows(self, first: str) -> None:
        document = YAML(typ="safe").load(blocks("yaml", first=first))
        assert mistakes("github-workflows.json", document) == []
        for job in document["jobs"].values():
            for step in job["steps"]:
                subprocess.run(["bash", "-n"], input=step.get("run", ""), text=True, check=True)

    def test_a_pipeline_of_gitlab_is_one(self) -> None:
        document = YAML(typ="safe").load(blocks("yaml", first=".gitlab-ci.yml"))
        assert mistakes("gitlab-ci.json", document) == []

    def test_the_commands_of_the_page_exist(self, capsys: pytest.CaptureFixture[str]) -> None:
        from provisioner.cli.app import main

        lines = re.findall(r"(?:^|[`$] |`| {10})(provision (?:check|plan|solve|render)[^\n`|>]*)", PAGE, re.MULTILINE)
        assert len(lines) > 5
        for line in lines:
            words = line.split()
            with pytest.raises(SystemExit) as stopped:
                main([words[1], "--help"])
            assert stopped.value.code == 0
            known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
            assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, line

    def test_the_job_that_solves_again_does_what_the_page_says(self, project: Project) -> None:
        """A bot changed the spec; the job solves, and the lock and its files are the commit's."""
        assert project.run("solve").code == 0
        project.spec("['alpha<2']")
        assert project.run("check").code == 1
        steps = YAML(typ="safe").load(blocks("yaml", first=".github/workflows/solve.yml"))["jobs"]["solve"]["steps"]
        (script,) = (step["run"] for step in steps if step.get("name") == "Solve what is stale")
        subprocess.run(["git", "init", "--quiet"], cwd=project.folder, check=True)
        done = run(["bash", "-e", "-o", "pipefail", "-c", script], project.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        assert project.run("check").code == 0
