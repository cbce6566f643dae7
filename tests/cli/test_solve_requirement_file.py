"""A requirement file as people have it is a spec: its indexes, its projects in folders, and nothing else beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.project import Outcome, Project

OWN = "--extra-index-url https://download.pytorch.org/whl/cu124"
NEEDLESS = (
    "warning: `{line}` (requirements.txt:1) is not needed: "
    "the build of PyTorch is chosen for the target, and taken from where it is"
)


def solved(project: Project, text: str, *words: str) -> Outcome:
    """Solve a requirement file, without the spec that a project begins with."""
    (project.folder / "provision.yaml").unlink(missing_ok=True)
    project.index.add_wheel("omega", "1.0", index="other")
    project.write(text, name="requirements.txt")
    return project.run("solve", "requirements.txt", "--format", "json", *words)


def test_a_requirement_file_is_solved_and_locked_beside_itself(project: Project) -> None:
    outcome = solved(project, f"-i INDEX/simple\n{OWN}\nalpha<2\n")
    assert (outcome.code, outcome.json["packages"]) == (0, {"alpha": "1.0", "beta": "2.0"})
    assert sorted(project.files()) == ["Dockerfile", "provision/install.py", "pylock.requirements.toml", "requirements.txt"]
    assert 'spec-file = "requirements.txt"' in project.read("pylock.requirements.toml")
    assert project.run("check").code == 0  # nothing in it uses a GPU
    project.write("-i INDEX/simple\nalpha>=2\n", name="requirements.txt")
    outcome = project.run("check")
    assert (outcome.code, outcome.out.splitlines()[1]) == (
        1,
        "  no: alpha 1.0 is locked, but you require alpha>=2  (requirements.txt:2)  [stale-package]",
    )


def test_pytorchs_own_index_is_told_to_be_needless(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", project.index.url)
    for line, build in (
        (OWN, "; `torch==VERSION+cu124` asks for a build"),
        ("--index-url https://download.pytorch.org/whl/", ""),
        ("--find-links https://download.pytorch.org/whl/torch_stable.html", ""),
    ):
        outcome = solved(project, f"{line}\nalpha\n")
        assert (outcome.code, outcome.json["packages"]) == (0, {"alpha": "2.0", "beta": "2.0"})
        assert NEEDLESS.format(line=line) + build + "\n" in outcome.err


def test_other_indexes_of_the_file_are_asked_and_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/none")
    project.index.add_wheel("delta", "1.0", index="other")
    outcome = solved(project, "-i INDEX/simple\n--extra-index-url INDEX/other\nbeta\nomega\n")
    assert (outcome.code, outcome.json["indexes"]) == (0, {"beta": "main", "omega": "extra-1"})
    assert (
        "warning: `--extra-index-url INDEX/other` (requirements.txt:2) is asked, as pip would; "
        "a spec says under `indexes:` whose names belong to it, by `packages:`\n" in outcome.err
    )


def test_an_option_that_is_for_pip_alone_is_told_and_passed_over(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", project.index.url)
    outcome = solved(project, "--trusted-host pypi.test\n--use-feature fast-deps\nbeta\n")
    assert (outcome.code, outcome.json["packages"]) == (0, {"beta": "2.0"})
    assert (
        "warning: `--trusted-host pypi.test` (requirements.txt:1) is for pip alone, and is not read; to ask this host without "
        "a certificate is this machine's to say: `pip config set global.trusted-host pypi.test`\n" in outcome.err
    )
    assert "warning: `--use-feature fast-deps` (requirements.txt:2) is for pip alone, and is not read\n" in outcome.err


def test_a_spec_that_lists_its_indexes_asks_no_others(project: Project) -> None:
    project.write("--extra-index-url INDEX/other\nbeta\n", name="more.txt")
    project.spec("[alpha]", "packages-from: [more.txt]")
    outcome = project.run("solve", "--format", "json")
    assert (outcome.code, outcome.json["indexes"]) == (0, {"alpha": "local", "beta": "local"})
    assert (
        "warning: `--extra-index-url INDEX/other` (more.txt:1) is not asked, since the spec lists the indexes to ask "
        "under `indexes:`\n" in outcome.err
    )


def test_of_a_project_in_a_folder_the_dependencies_are_locked(project: Project) -> None:
    project.write('[project]\nname = "own"\nversion = "1"\ndependencies = ["gamma"]\n', name="pyproject.toml")
    project.write(
        '[project]\nname = "core"\ndynamic = ["dependencies"]\noptional-dependencies.fast = ["omega"]\n'
        '[tool.setuptools.dynamic]\ndependencies = {file = ["base.txt"]}\n',
        name="core/pyproject.toml",
    )
    project.write("alpha<2  # of core\n", name="core/base.txt")
    outcome = solved(project, "-i INDEX/simple\n--extra-index-url INDEX/other\n-e .\n./core[fast]\n")
    assert (outcome.code, outcome.json["packages"]) == (0, {"alpha": "1.0", "beta": "1.0", "gamma": "1.0", "omega": "1.0"})
    told = (
        "what the project requires is locked, and the project itself is not; install it beside the lock: pip install --no-deps"
    )
    assert f"warning: `-e .` (requirements.txt:3): {told} -e .\n" in outcome.err
    assert f"warning: `./core[fast]` (requirements.txt:4): {told} ./core[fast]\n" in outcome.err
    project.write("alpha>=2\n", name="core/base.txt")
    outcome = project.run("check")
    assert "alpha 1.0 is locked, but you require alpha>=2  (core/base.txt:1)" in outcome.out


def test_a_project_that_only_a_build_can_tell_is_refused(project: Project) -> None:
    project.write("", name="old/setup.py")
    outcome = solved(project, "-e ./old\n")
    assert (outcome.code, outcome.err.splitlines()[1]) == (
        2,
        (
            "  requirements.txt:1:1: `-e ./old` is not read: `old` has no pyproject.toml, "
            "and only a build tells what it requires; list the packages"
        ),
    )
