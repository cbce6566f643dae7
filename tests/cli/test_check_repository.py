"""`provision check` on a whole repository: every path leads to its environment, and what is missing is a finding."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from provisioner.cli.display import failure_data
from provisioner.errors import UnavailableError
from provisioner.lock.format.file import read_lock, write_lock
from provisioner.render.header import with_hash, without_hash
from provisioner.workflow.checking import Question, check_lock
from provisioner.workflow.repository import check_repository
from tests.project import changed

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.workflow.checking import Report
    from tests.project import Project

EVERY_NAME = ("a", "b")


def git(project: Project, *words: str) -> str:
    """Run git in the project, as somebody."""
    command = ("git", "-C", str(project.folder), "-c", "user.name=a", "-c", "user.email=a@example.org", *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(project: Project) -> Project:
    """A work tree of git with two environments of their own names, and an index that is gone from then on."""
    for name in EVERY_NAME:
        project.write(changed(f"name: {name}"), name=f"envs/{name}/provision.yaml")
        assert project.run("solve", f"envs/{name}/provision.yaml").code == 0
    (project.folder / "provision.yaml").unlink()
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "first")
    project.index.requests.clear()
    project.index.status = 500
    return project


def lock_of(name: str) -> str:
    """The path of the lock of an environment."""
    return f"envs/{name}/pylock.{name}.toml"


def told(report: Report) -> tuple[object, ...]:
    """All that a report tells; two errors are alike if they are told alike."""
    error = None if report.error is None else failure_data(report.error)
    return report.path, report.findings, report.places, report.preview, report.spec, error


def test_many_locks_are_checked_by_several_processes_with_the_same_reports(
    repository: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked_by = tmp_path / "processes"
    checked_by.mkdir()

    def check_and_sign(path: Path, *words: Any, **named: Any) -> Report:  # noqa: ANN401 - as they are
        (checked_by / str(os.getpid())).touch()
        return check_lock(path, *words, **named)

    monkeypatch.setattr("provisioner.workflow.repository.check_lock", check_and_sign)
    for number in range(10):
        folder = repository.folder / f"envs/a{number}"
        shutil.copytree(repository.folder / "envs/a", folder)
    repository.write("- no mapping\n", name="envs/a1/provision.yaml")
    repository.write("name = [\n", name="envs/a2/pylock.a.toml")
    repository.write(changed("packages: ['alpha<2']"), name="envs/a3/provision.yaml")
    (repository.folder / "envs/a4/Dockerfile").unlink()
    (alone, own), (together, others) = (
        (check_repository([repository.folder], Question(), processes=processes).reports, list(checked_by.iterdir()))
        for processes in (1, 3)
    )

    assert [told(one) for one in together] == [told(one) for one in alone]
    assert [one.path.parent.name for one in alone if one.error is not None] == ["a1", "a2"]
    assert any(one.findings for one in alone)
    assert {path.name for path in own} == {str(os.getpid())}
    assert 2 <= len({path.name for path in others} - {str(os.getpid())}) <= 3


def test_a_process_that_is_killed_ends_the_check_with_an_error(repository: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = os.getpid()

    def killed(path: Path, *words: Any, **named: Any) -> Report:  # noqa: ANN401 - as they are
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return check_lock(path, *words, **named)

    monkeypatch.setattr("provisioner.workflow.repository.check_lock", killed)
    for number in range(8):
        shutil.copytree(repository.folder / "envs/a", repository.folder / f"envs/a{number}")
    with pytest.raises(UnavailableError, match="a process that checked locks was killed"):
        check_repository([repository.folder], Question(), processes=2)


def test_a_repository_that_holds_is_one_line(repository: Project) -> None:
    outcome = repository.run("check")
    assert (outcome.code, outcome.out, outcome.err) == (0, "✓ 2 locks: 2 yes\n", "")


@pytest.mark.parametrize(
    "path",
    ["envs/a/provision.yaml", "envs/a/pylock.a.toml", "envs/a/Dockerfile", "envs/a/provision/install.py", "envs/a"],
)
def test_each_file_of_an_environment_leads_to_it(repository: Project, path: str) -> None:
    outcome = repository.run("check", path)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{lock_of('a')}: yes\n", "")
    absolute = repository.run("check", str(repository.folder / path))
    assert (absolute.code, absolute.out) == (0, f"{repository.folder / lock_of('a')}: yes\n")


def test_a_host_leads_to_the_environments_that_name_it(repository: Project) -> None:
    repository.write("glibc: '2.36'\n", name="hosts/one.yaml")
    repository.write("glibc: '2.36'\n", name="hosts/other.yaml")
    repository.index.status = None
    repository.write(changed("name: b", "target: {host: ../../hosts/one.yaml}"), name="envs/b/provision.yaml")
    assert repository.run("solve", "envs/b/provision.yaml").code == 0
    outcome = repository.run("check", "hosts/one.yaml")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{lock_of('b')}: yes\n", "")


def test_a_recipe_without_its_header_still_leads_to_its_environment(repository: Project) -> None:
    repository.write("FROM scratch\n", name="envs/a/Dockerfile")
    outcome = repository.run("check", "envs/a/Dockerfile")
    assert outcome.code == 1
    assert outcome.out.startswith(f"{lock_of('a')}: no\n  no: `envs/a/Dockerfile` is not what its lock renders;")


def test_a_file_of_no_environment_is_skipped_and_told(repository: Project) -> None:
    """A hook may get it alone: a commit of one file must not be refused for a file that nobody asks about."""
    repository.write("hello\n", name="README.md")
    beside = repository.run("check", "README.md", "envs/a/Dockerfile")
    assert (beside.code, beside.out) == (0, f"{lock_of('a')}: yes\n")
    assert beside.err == "README.md belongs to no environment, so it is skipped\n"
    among = repository.run("check", "README.md", "README.md")
    assert (among.code, among.out) == (0, "nothing to check: none of these files belongs to an environment\n")
    alone = repository.run("check", "README.md")
    assert (alone.code, alone.out) == (0, "nothing to check: none of these files belongs to an environment\n")
    assert alone.err == "README.md belongs to no environment, so it is skipped\n"


class TestAFileThatIsGone:
    """`git diff --name-only` names it, and so do people who are not sure of a name."""

    @pytest.mark.parametrize(
        ("name", "finding", "code"),
        [
            ("envs/a/Dockerfile", "[missing-output]", 1),
            ("envs/a/provision/install.py", "[missing-output]", 1),
            ("envs/a/provision.yaml", "[no-spec]", 3),
            ("envs/a/pylock.a.toml", "[no-lock]", 1),
        ],
    )
    def test_leads_to_the_environment_that_lacks_it(self, repository: Project, name: str, finding: str, code: int) -> None:
        (repository.folder / name).unlink()
        outcome = repository.run("check", name)
        assert finding in outcome.out, outcome
        assert outcome.code == code

    def test_a_host_leads_to_the_spec_that_names_it(self, repository: Project) -> None:
        repository.write(changed("name: a", "target: {host: ../../hosts/h.yaml}"), name="envs/a/provision.yaml")
        outcome = repository.run("check", "hosts/h.yaml")
        assert outcome.code == 2
        assert outcome.err.startswith("error: host profile `envs/a/../../hosts/h.yaml` does not exist")

    def test_with_all_of_its_environment_is_skipped(self, repository: Project) -> None:
        names = [name for name in repository.files() if name.startswith("envs/b/")]
        shutil.rmtree(repository.folder / "envs/b")
        outcome = repository.run("check", *names)
        assert (outcome.code, outcome.out) == (0, "nothing to check: none of these files belongs to an environment\n")
        assert len(outcome.err.splitlines()) == len(names)
        git(repository, "commit", "--all", "--quiet", "--message", "gone")
        assert repository.run("check", *names).code == 0

    def test_that_never_was_is_a_mistake(self, repository: Project) -> None:
        outcome = repository.run("check", "envs/a/Dockerfil")
        told = "error: `envs/a/Dockerfil` does not exist  [file]\n\nhint: did you mean `envs/a/Dockerfile`?\n"
        assert (outcome.code, outcome.err) == (2, told)
        outcome = repository.run("check", "nowhere")
        hint = "name a folder with environments below it, or a lock, spec, host profile or rendered file"
        assert (outcome.code, outcome.err) == (2, f"error: `nowhere` does not exist  [file]\n\nhint: {hint}\n")
        both = repository.run("check", "envs/a/Dockerfil", "envs/a/Dockerfile")
        assert both.code == 2
        assert both.out.startswith("✗ 1 lock and 1 file: 1 error, 1 yes\n")


@pytest.mark.parametrize("name", ["Dockerfile", "pylock.a.toml", "provision.yaml"])
def test_a_link_is_what_it_leads_to(repository: Project, name: str) -> None:
    (repository.folder / name).symlink_to(f"envs/a/{name}")
    named = repository.run("check", name)
    assert (named.code, named.out) == (0, f"{lock_of('a')}: yes\n")
    whole = repository.run("check")
    assert (whole.code, whole.out) == (0, "✓ 2 locks: 2 yes\n")


def test_a_spec_without_a_lock_is_a_finding_with_the_command(repository: Project) -> None:
    (repository.folder / lock_of("a")).unlink()
    outcome = repository.run("check")
    assert outcome.code == 1
    assert outcome.out == (
        "✗ 1 lock, 1 spec and 1 file: 2 no, 1 yes\n\n"
        "envs/a/provision.yaml: no\n"
        "  no: `envs/a/provision.yaml` has no lock  [no-lock]\n"
        "    hint: `provision solve envs/a/provision.yaml` writes it\n"
        "envs/a/Dockerfile: no\n"
        "  no: `envs/a/Dockerfile` was rendered from pylock.a.toml, which is not there  [orphaned-output]\n"
        "    hint: delete `envs/a/Dockerfile`, or solve its spec again\n"
    )
    alone = repository.run("check", "envs/a/provision.yaml", "--format", "json")
    assert alone.code == 1
    assert [(one["spec"], one["verdict"]) for one in alone.json["locks"]] == [("envs/a/provision.yaml", "no")]


def test_a_file_rendered_from_another_lock_is_told_once_where_it_is_an_output(repository: Project) -> None:
    text = (repository.folder / "envs/b/Dockerfile").read_text(encoding="utf-8")
    (repository.folder / "envs/a/Dockerfile").write_text(text, encoding="utf-8")
    outcome = repository.run("check")
    assert outcome.code == 1
    assert outcome.out == (
        "✗ 2 locks: 1 no, 1 yes\n\n"
        f"{lock_of('a')}: no\n"
        "  no: `envs/a/Dockerfile` is not what its lock renders; they differ from line 1  [edited-output]\n"
        f"    hint: `provision render {lock_of('a')} --to dockerfile --out envs/a/Dockerfile` writes it again; "
        "a change made in it by hand is lost\n"
    )


def test_a_spec_with_a_misspelt_key_does_not_pass_unseen(repository: Project) -> None:
    (repository.folder / "envs/d").mkdir()
    (repository.folder / "envs/d/provision.yaml").write_text("requires: {python: '3.12'}\nhosts: [h100]\n")
    outcome = repository.run("check")
    assert outcome.code == 1
    assert "no: `envs/d/provision.yaml` has no lock  [no-lock]" in outcome.out


def test_a_stale_lock_names_the_command_with_its_path(repository: Project) -> None:
    repository.write(changed("name: a", "packages: ['alpha<2']"), name="envs/a/provision.yaml")
    outcome = repository.run("check")
    assert outcome.code == 1
    assert outcome.out.startswith("✗ 2 locks: 1 no, 1 yes\n\nenvs/a/pylock.a.toml: no\n")
    assert outcome.out.endswith("  next: provision solve envs/a/provision.yaml\n")


def test_a_stack_that_no_longer_fits_is_solved_again_where_there_is_an_answer(repository: Project) -> None:
    """The way back is a hint; what the spec asks for now has a stack, and the command that locks it comes last."""
    text = changed("name: a", 'requires: {python: ">=3.12"}', "image: {base: slim}", "packages: []")
    repository.write(text, name="envs/a/provision.yaml")
    repository.index.status = None
    assert repository.run("solve", "envs/a/provision.yaml").code == 0
    repository.write(text.replace(">=3.12", "==3.11"), name="envs/a/provision.yaml")
    outcome = repository.run("check", "envs/a")
    assert outcome.code == 1
    assert "[stale-stack]" in outcome.out
    assert outcome.out.endswith("  next: provision solve envs/a/provision.yaml\n")


@pytest.mark.parametrize(
    ("name", "text", "is_spec"),
    [
        ("pnpm-workspace.yaml", "packages:\n  - apps/*\n", False),
        ("melos.yaml", "name: shop\npackages:\n  - apps/*\n", False),
        ("values.yaml", "requires: {python: '3'}\nreplicas: 3\n", False),
        ("other.yaml", "packages: [alpha]\nruns: host\n", True),
        ("b.provision.yaml", "packages: [alpha]\n", True),
        ("pyproject.toml", "[project]\nname = 'x'\n", False),
        ("sub/pyproject.toml", "[tool.provision]\npackages = ['alpha']\n", True),
    ],
)
def test_only_a_spec_needs_a_lock(repository: Project, name: str, text: str, *, is_spec: bool) -> None:
    repository.write(text, name=name)
    outcome = repository.run("check")
    assert outcome.code == (1 if is_spec else 0)
    assert (f"`{name}` has no lock" in outcome.out) is is_spec


def test_what_git_ignores_and_what_is_hidden_is_passed_over(repository: Project) -> None:
    for folder in ("build/x", ".cache/x", "venv/x", "node_modules/x"):
        repository.write(changed("name: c"), name=f"{folder}/provision.yaml")
    repository.write("build/\n", name=".gitignore")
    repository.write("", name="venv/pyvenv.cfg")
    outcome = repository.run("check")
    assert "`venv/x/provision.yaml` has no lock" in outcome.out, "git tracks it, or does not ignore it"
    assert "`build/x/provision.yaml` has no lock" in repository.run("check", "build").out, "whoever names it means it"
    repository.write("build/\nvenv/\n", name=".gitignore")
    assert repository.run("check").out == "✓ 2 locks: 2 yes\n"
    (repository.folder / ".git").rename(repository.folder / ".was-git")
    repository.write("", name=".gitignore")
    (repository.folder / "build/x/provision.yaml").unlink()
    assert repository.run("check").out == "✓ 2 locks: 2 yes\n", "without git, what has a pyvenv.cfg is passed over"


def test_a_lock_left_over_by_another_name_is_told(repository: Project) -> None:
    old = read_lock(repository.folder / lock_of("a"))
    (repository.folder / "envs/a/pylock.old.toml").write_text(write_lock(replace(old, name="old")), encoding="utf-8")
    outcome = repository.run("check", "envs")
    assert outcome.code == 1
    twin = "  no: it is a lock of `provision.yaml`, as `envs/a/pylock.old.toml` is, for the same target  [twin-lock]\n"
    assert twin in outcome.out


def test_two_specs_of_one_name_are_a_warning(repository: Project) -> None:
    repository.index.status = None
    repository.write(changed("name: a"), name="other/provision.yaml")
    assert repository.run("solve", "other/provision.yaml").code == 0
    outcome = repository.run("check")
    assert outcome.code == 0
    assert "warning: the name a is that of other/pylock.a.toml, too  [shared-name]" in outcome.out


class TestPlaces:
    """Every finding stands where its cause does: file, line and column."""

    def found(self, project: Project, *words: str) -> tuple[str, str, int, int]:
        outcome = project.run("check", *words, "--format", "json")
        finding = next(one for lock in outcome.json["locks"] for one in lock["findings"])
        return finding["code"], finding["file"], finding["line"], finding["column"]

    def test_a_request_stands_in_the_spec(self, repository: Project) -> None:
        path = repository.write(changed("name: a", "packages:\n  - alpha<2"), name="envs/a/provision.yaml")
        lines = path.read_text(encoding="utf-8").splitlines()
        line = lines.index("  - alpha<2") + 1
        assert self.found(repository, "envs/a") == ("stale-package", "envs/a/provision.yaml", line, 5)

    def test_an_edit_stands_in_the_rendered_file(self, repository: Project) -> None:
        path = repository.folder / "envs/a/Dockerfile"
        lines = path.read_text(encoding="utf-8").splitlines()
        line = lines.index("USER root") + 1
        path.write_text("\n".join([*lines[: line - 1], "USER 0", *lines[line:], ""]), encoding="utf-8")
        assert self.found(repository, "envs/a") == ("edited-output", "envs/a/Dockerfile", line, 6)

    def test_a_package_stands_in_the_lock(self, repository: Project) -> None:
        repository.write(changed("name: a", "packages: []"), name="envs/a/provision.yaml")
        code, file, line, column = self.found(repository, "envs/a")
        lines = (repository.folder / file).read_text(encoding="utf-8").splitlines()
        assert (code, file, column) == ("unasked-package", lock_of("a"), 1)
        assert lines[line - 2 : line] == ['name = "alpha"', 'version = "2.0"']

    def test_a_host_requirement_stands_in_the_lock(self, repository: Project) -> None:
        path = repository.folder / lock_of("a")
        lock = read_lock(path)
        stack = replace(lock.stacks[0], require_cuda="driver>=525.60.13")
        path.write_text(write_lock(replace(lock, stacks=(stack,))), encoding="utf-8")
        code, file, line, column = self.found(repository, "envs/a")
        lines = path.read_text(encoding="utf-8").splitlines()
        assert (code, file, column) == ("stale-gate", lock_of("a"), 1)
        assert lines[line - 1] == 'require-cuda = "driver>=525.60.13"'

    @pytest.mark.parametrize("lines", [("outputs:\n  - requirements\n  - dockerfile",), ()], ids=["listed", "by default"])
    def test_a_missing_output_stands_where_the_spec_lists_it(self, repository: Project, lines: tuple[str, ...]) -> None:
        repository.index.status = None
        path = repository.write(changed("name: a", *lines), name="envs/a/provision.yaml")
        assert repository.run("solve", "envs/a/provision.yaml").code == 0
        (repository.folder / "envs/a/Dockerfile").unlink()
        line = path.read_text(encoding="utf-8").splitlines().index("  - dockerfile") + 1 if lines else 1
        place = ("missing-output", "envs/a/provision.yaml", line, 5 if lines else 1)
        assert self.found(repository, "envs/a") == place

    def test_a_missing_spec_stands_where_the_lock_names_it(self, repository: Project) -> None:
        (repository.folder / "envs/a/provision.yaml").unlink()
        code, file, line, _ = self.found(repository, "envs/a")
        text = (repository.folder / file).read_text(encoding="utf-8").splitlines()
        assert (code, text[line - 1]) == ("no-spec", 'spec-file = "provision.yaml"')


class TestFix:
    def test_a_file_of_an_earlier_lock_and_a_missing_one_are_rendered_again(self, repository: Project) -> None:
        path = repository.folder / lock_of("a")
        lock = read_lock(path)
        stack = replace(lock.stacks[0], assumes=("something",))  # the digest of the lock is a label of its image
        path.write_text(write_lock(replace(lock, stacks=(stack,))), encoding="utf-8")
        (repository.folder / "envs/b/Dockerfile").unlink()
        assert repository.run("check").code == 1
        outcome = repository.run("check", "--fix")
        assert (outcome.code, outcome.out) == (0, "✓ 2 locks: 2 yes\n")
        assert outcome.err == "rendered again: envs/a/Dockerfile, envs/b/Dockerfile\n"
        assert repository.run("check").code == 0
        assert git(repository, "status", "--porcelain").splitlines() == [" M envs/a/Dockerfile", f" M {lock_of('a')}"]

    def test_what_another_version_rendered_is_rendered_again(self, repository: Project) -> None:
        path = repository.folder / "envs/a/Dockerfile"
        rendered = path.read_bytes()
        path.write_text(with_hash(without_hash(rendered).decode().replace("USER root", "USER 0:0")), encoding="utf-8")
        outcome = repository.run("check")
        assert outcome.code == 1
        assert "`envs/a/Dockerfile` is not what its lock renders, though nobody edited it; they differ from line" in outcome.out
        assert "from line 1\n" not in outcome.out
        assert repository.run("check", "--fix").err == "rendered again: envs/a/Dockerfile\n"
        assert path.read_bytes() == rendered

    def test_a_checkout_with_other_line_ends_is_told_as_such_and_rendered_again(self, repository: Project) -> None:
        path = repository.folder / "envs/a/Dockerfile"
        rendered = path.read_bytes()
        path.write_bytes(rendered.replace(b"\n", b"\r\n"))
        outcome = repository.run("check")
        assert outcome.code == 1
        assert "no: `envs/a/Dockerfile` has the right text, but its lines end in CR LF" in outcome.out
        assert "hint: `Dockerfile text eol=lf` in .gitattributes keeps git from doing so (core.autocrlf)\n" in outcome.out
        assert repository.run("check", "--fix").err == "rendered again: envs/a/Dockerfile\n"
        assert path.read_bytes() == rendered

    def test_a_conflict_that_nobody_resolved_is_told_at_its_line_and_left(self, repository: Project) -> None:
        path = repository.folder / "envs/a/Dockerfile"
        lines = path.read_text(encoding="utf-8").splitlines()
        merged = [*lines[:5], "<<<<<<< HEAD", lines[5], "=======", "USER 0", ">>>>>>> other", *lines[6:], ""]
        path.write_text("\n".join(merged), encoding="utf-8")
        outcome = repository.run("check", "--fix")
        assert outcome.code == 1
        assert "no: `envs/a/Dockerfile` has a conflict of a merge that nobody resolved, at line 6" in outcome.out
        assert path.read_text(encoding="utf-8") == "\n".join(merged)

    def test_a_file_that_lacks_its_hash_alone_is_rendered_again(self, repository: Project) -> None:
        path = repository.folder / "envs/a/Dockerfile"
        rendered = path.read_bytes()
        path.write_bytes(without_hash(rendered))
        assert repository.run("check", "--fix").err == "rendered again: envs/a/Dockerfile\n"
        assert path.read_bytes() == rendered

    @pytest.mark.parametrize("text", ["FROM scratch\n", None], ids=["another file", "an edit"])
    def test_what_was_written_by_hand_is_told_and_left(self, repository: Project, text: str | None) -> None:
        path = repository.folder / "envs/a/Dockerfile"
        edited = text or path.read_text(encoding="utf-8").replace("USER root", "USER 0")
        path.write_text(edited, encoding="utf-8")
        outcome = repository.run("check", "--fix")
        assert outcome.code == 1
        assert outcome.err == "left alone, for it may be edited by hand: envs/a/Dockerfile\n"
        assert path.read_text(encoding="utf-8") == edited

    def test_beside_a_lock_that_does_not_hold_nothing_is_written(self, repository: Project) -> None:
        repository.write(changed("name: a", "packages: ['alpha<2']"), name="envs/a/provision.yaml")
        (repository.folder / "envs/a/Dockerfile").unlink()
        outcome = repository.run("check", "--fix")
        assert outcome.code == 1
        assert outcome.err == "there was nothing to render again\n"
        assert "  next: provision solve envs/a/provision.yaml\n" in outcome.out
        assert not (repository.folder / "envs/a/Dockerfile").exists()


class TestHosts:
    OLD = "platform: linux/amd64\ndriver: {version: 515.65.01}\ngpus: [{compute_capability: '8.0'}]\n"
    NEW = "platform: linux/amd64\ndriver: {version: 560.35.03, module: open}\ngpus: [{compute_capability: '8.0'}]\n"

    @pytest.fixture(autouse=True)
    def stack(self, repository: Project) -> None:
        """A stack for CUDA 11.7, which runs on both hosts, is committed."""
        repository.index.status = None
        repository.index.add_wheel("torch", "2.0.1", tag="cp311-cp311-manylinux_2_28_x86_64")
        repository.index.add_wheel("torch", "2.7.1", tag="cp311-cp311-manylinux_2_28_x86_64")
        repository.write(self.OLD, name="hosts/old.yaml")
        repository.write(self.NEW, name="hosts/new.yaml")
        self.solve(repository, "==2.0.1+cu117")
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "--message", "for both")

    def solve(self, repository: Project, build: str) -> None:
        spec = changed(
            "name: a",
            "accelerator: cuda",
            f'requires: {{python: "==3.11", pytorch: "{build}"}}',
            "packages: [torch]",
            "image: {base: slim}",
        )
        repository.write(spec, name="envs/a/provision.yaml")
        assert repository.run("solve", "envs/a/provision.yaml", "--upgrade").code in {0, 3}

    def test_hosts_on_which_every_lock_runs_are_no_finding(self, repository: Project) -> None:
        assert "stranded" not in repository.run("check", "--hosts", "hosts").out

    def test_a_change_that_strands_a_host_names_it_and_says_that_it_did_run_there(self, repository: Project) -> None:
        self.solve(repository, "==2.7.1+cu126")
        outcome = repository.run("check", "--hosts", "hosts")
        assert outcome.code == 1
        head = "  no: the stack does not run on old (linux/amd64), and the stack of the last commit did  [stranded-hosts]\n"
        assert head in outcome.out
        assert "driver 515.65.01" in outcome.out
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "--message", "newer")
        again = repository.run("check", "--hosts", "hosts")
        assert "  no: the stack does not run on old (linux/amd64)  [stranded-hosts]\n" in again.out

    def test_an_accelerator_that_no_spec_names_is_the_locks(self, repository: Project) -> None:
        """The stack is for CUDA because its own hosts call for it; a host without a GPU is asked about."""
        spec = repository.folder / "envs/a/provision.yaml"
        stated = spec.read_text(encoding="utf-8")
        spec.write_text(stated.replace("accelerator: cuda\n", ""), encoding="utf-8")
        repository.write("platform: linux/amd64\ngpus: []\n", name="hosts/none.yaml")
        found = repository.run("check", "--hosts", "hosts/none.yaml", "envs/a").out
        assert "    the lock is for accelerator cuda  (pylock.a.toml)\n" in found
        assert "you ask for accelerator" not in found


def test_git_that_is_missing_is_no_error(repository: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository.folder))
    assert repository.run("check").out == "✓ 2 locks: 2 yes\n"
    assert repository.run("check", "envs/a/provision.yaml").out == f"{lock_of('a')}: yes\n"


def test_a_hook_of_git_checks_as_everybody_does(repository: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git tells its hooks of a folder and an index; they must not keep us from asking about others."""
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    monkeypatch.chdir(repository.folder / "envs/a")
    assert repository.run("check", ".").out == "pylock.a.toml: yes\n"
