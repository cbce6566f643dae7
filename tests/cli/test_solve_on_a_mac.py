"""A Mac is a target like any other: what its spec leaves out follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.project import project_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.project import Project

MAC = "target: {host: {platform: macos/arm64, os: {id: macos, version: '15.6'}}}\n"
INDEX = 'indexes: [{name: local, url: "INDEX/simple"}]\n'


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, capsys, monkeypatch) as made:
        made.index.add_wheel("tensorflow", "2.20.0", tag="cp312-cp312-macosx_12_0_arm64")
        made.index.add_wheel("torch", "2.7.1", tag="cp312-none-macosx_11_0_arm64")
        yield made


def test_its_platform_is_the_hosts_and_it_has_no_image(project: Project) -> None:
    project.write(f"name: trainer\n{MAC}requires: {{python: '3.12'}}\npackages: [torch==2.7.1]\n{INDEX}")
    found = project.run("solve")
    assert found.code == 0, found.err
    assert set(project.files()) == {"provision.yaml", "pylock.trainer.toml"}
    assert 'platform = "macos/arm64"' in project.read("pylock.trainer.toml")
    assert project.run("check").code == 0


def test_tensorflow_is_for_its_cpu_and_the_answer_says_so(project: Project) -> None:
    project.write(f"name: trainer\n{MAC}requires: {{python: '3.12'}}\npackages: [tensorflow==2.20.0]\n{INDEX}")
    found = project.run("solve")
    assert found.code == 0, found.err
    assert found.out.splitlines()[0] == "✓ runs on macos/arm64, on the CPU alone"
    assert "relaxed: cpu-only: tensorflow 2.20.0 runs on the CPU: the matrix has no build of it for MPS" in found.err
    assert 'accelerator = "cpu"' in project.read("pylock.trainer.toml")
    assert project.run("check").code == 0


def test_a_platform_that_the_spec_states_is_not_changed(project: Project) -> None:
    project.write(f"name: trainer\n{MAC.replace('host:', 'platform: linux/amd64, host:')}packages: [torch]\n{INDEX}")
    found = project.run("solve")
    assert found.code == 2
    assert "is macos/arm64, but the spec locks linux/amd64" in found.err


def test_an_image_that_is_asked_for_is_refused(project: Project) -> None:
    project.write(f"name: trainer\n{MAC}requires: {{python: '3.12'}}\npackages: [torch]\n{INDEX}outputs: [dockerfile]\n")
    found = project.run("solve")
    assert found.code == 2
    assert "runs on the host (macos/arm64), and a Dockerfile is for containers" in found.err


def test_a_spec_of_init_is_solved_as_it_is(project: Project) -> None:
    (project.folder / "provision.yaml").unlink()
    assert project.run("init", "--profile", "mac-arm64").code == 0
    text = (project.folder / "provision.yaml").read_text(encoding="utf-8")
    others = "host-script, slurm, module, environment, requirements-urls, sbom, sbom-spdx"
    assert f"\noutputs: [requirements]          # also: {others}\n" in text
    project.write(text.replace('pytorch: "*"', 'pytorch: "2.7.1"').replace(">=3.10", "3.12") + INDEX)
    found = project.run("solve")
    assert found.code == 0, found.err


def test_a_stack_that_is_compiled_shows_the_way_to_its_lock_and_script(project: Project) -> None:
    """A system stack alone is locked with the script that sets up its host, and nobody publishes a wheel of this PyTorch."""
    system = "os: {id: macos, version: 10.13.6, build: 17G65}, xcode: '10.1'"
    host = f"{{platform: macos/x86_64, {system}, gpus: [{{name: NVIDIA GeForce GTX 1080 Ti}}]}}"
    spec = f"name: mac\ntarget: {{host: {host}}}\nrequires: {{pytorch: '>=1.6', cuda: '10.*'}}\n"
    project.write(spec)
    found = project.run("solve", "--stack-only")
    assert found.code == 0, found.err
    assert (
        found.err.splitlines()[-1]
        == "next: add `outputs: [host-script]` to provision.yaml: it writes the lock, and the steps with the build"
    )
    project.write(f"{spec}outputs: [host-script]\n")
    found = project.run("solve", "--stack-only")
    assert "wrote pylock.mac.toml, host.sh" in found.err
    assert "compile pytorch" in project.read("host.sh")


@pytest.mark.parametrize(("python", "toolkit"), [("3.7", "10.1.243"), ("3.8", "10.2.89")])
def test_the_guide_of_an_old_mac_comes_for_each_python(project: Project, python: str, toolkit: str) -> None:
    """The newest build of PyTorch with CUDA for a Python may be of an older toolkit, whose installer is known as well."""
    system = "os: {id: macos, version: 10.13.6, build: 17G65}, xcode: '10.1'"
    host = f"{{platform: macos/x86_64, {system}, gpus: [{{name: NVIDIA GeForce GTX 1080 Ti}}]}}"
    project.write(
        f"name: mac\ntarget: {{host: {host}}}\nrequires: {{python: '{python}', pytorch: '*'}}\noutputs: [host-script]\n"
    )
    found = project.run("solve", "--stack-only")
    assert found.code == 0, found.err
    script = project.read("host.sh")
    assert f"cuda_{toolkit}_mac.dmg" in script
    assert f"install the CUDA toolkit {toolkit}" in script
    assert "compile pytorch" in script
