"""Host and container from one spec, and several specs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.project import changed

if TYPE_CHECKING:
    from tests.project import Project

BOTH = ("runs: [host, container]", "outputs: [dockerfile, requirements]")


def test_host_and_container_of_one_spec_have_a_lock_each(project: Project) -> None:
    project.spec("[alpha]", *BOTH)
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    assert [line for line in outcome.out.splitlines() if not line.startswith(" ")] == [
        "✓ host: runs on linux/amd64, on the CPU alone",
        "✓ container: runs on linux/amd64, on the CPU alone",
    ]
    assert sorted(project.files()) == [
        "Dockerfile",
        "provision.yaml",
        "provision/install.py",
        "pylock.trainer-container.toml",
        "pylock.trainer-host.toml",
        "requirements.txt",
    ]
    assert 'runs = "container"' in project.read("pylock.trainer-container.toml")
    assert 'runs = "host"' in project.read("pylock.trainer-host.toml")
    assert "pylock.trainer-container.toml" in project.read("Dockerfile")
    assert "pylock.trainer-host.toml" in project.read("requirements.txt")
    assert project.run("check").code == 0
    before = project.files()
    outcome = project.run("solve", "--format", "json")
    assert (sorted(outcome.json["targets"]), project.files()) == (["container", "host"], before)
    (project.folder / "pylock.trainer-host.toml").unlink()
    outcome = project.run("check")
    assert outcome.code == 1
    assert "no: the spec says `runs: host`, too, which has no lock beside this one  [missing-place]" in outcome.out


def test_the_host_that_binds_is_told_apart_in_the_conflict(project: Project) -> None:
    """A wheel for a newer glibc runs in the image and not on the host: the host is asked first, and nothing is written."""
    tag = "cp312-cp312-manylinux_2_34_x86_64"
    project.index.add_wheel("delta", "1.0", tag=tag)
    project.spec("[delta]", *BOTH, "target: {host: {platform: linux/amd64, glibc: '2.28'}}")
    before = project.files()
    outcome = project.run("solve")
    assert (outcome.code, outcome.err.splitlines()[0]) == (1, "target host:")
    assert project.files() == before


def test_what_cannot_be_in_a_container_is_told_before_anything_is_solved(project: Project) -> None:
    project.spec("[alpha]", *BOTH, "target: {platform: macos/arm64}")
    outcome = project.run("solve")
    assert outcome.code == 2
    assert outcome.err.splitlines()[0] == (
        "error: `runs: container` (provision.yaml:9) cannot be on macos/arm64: containers are of Linux  [bad-usage]"
    )
    assert project.index.requests == {}


def test_a_list_of_places_has_each_once(project: Project) -> None:
    project.spec("[alpha]", "runs: [host, host]")
    assert "  provision.yaml:9:14: runs[1]: `host` is given twice; the first is on line 9\n" in project.run("solve").err
    project.spec("[alpha]", "runs: []")
    assert "runs: the list is empty; write `container`, `host`, or both\n" in project.run("solve").err


def test_several_specs_are_solved_one_after_the_other(project: Project) -> None:
    project.write(changed("name: one"), name="one.yaml")
    project.write(changed("name: two", "packages: ['alpha<1']"), name="envs/two.yaml")
    project.write(changed("name: three", "pakages: [beta]"), name="envs/three.yml")
    project.write("platform: linux/amd64\n", name="envs/host.yaml")
    project.write(changed("name: hidden"), name="envs/.cache/four.yaml")
    outcome = project.run("solve", "one.yaml", "envs")
    assert outcome.code == 2, "bad input is worse than a no"
    assert outcome.out.splitlines()[0] == "✓ one.yaml: runs on linux/amd64, on the CPU alone"
    told = [line for line in outcome.err.splitlines() if line.endswith((".yaml:", ".yml:")) or line.startswith("error")]
    assert told[:2] == ["envs/three.yml:", "error: spec has 1 mistake  [invalid-document]"]
    assert told[2] == "envs/two.yaml:"
    assert "pylock.one.toml" in project.files()
    outcome = project.run("solve", "one.yaml", "envs/two.yaml", "--format", "json")
    assert (outcome.code, outcome.json["status"]) == (1, "no-stack")
    assert {path: data["status"] for path, data in outcome.json["specs"].items()} == {
        "one.yaml": "solved",
        "envs/two.yaml": "no-stack",
    }
    assert outcome.json["specs"]["one.yaml"]["written"] == ["pylock.one.toml", "Dockerfile", "provision/install.py"]


def test_a_folder_without_a_spec_is_told(project: Project) -> None:
    (project.folder / "empty").mkdir()
    outcome = project.run("solve", "empty")
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        2,
        (
            "error: no spec is in `empty`: no YAML file has `requires:`, `packages:` or `packages-from:`, "
            "and no pyproject.toml has [tool.provision]  [bad-usage]"
        ),
    )
