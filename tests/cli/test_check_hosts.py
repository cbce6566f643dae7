"""`provision check` where the hosts of a spec were exchanged: whether the locked wheels still install there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK

if TYPE_CHECKING:
    from tests.project import Project

WHEEL = "fresh-1.0-cp312-cp312-manylinux_2_34_x86_64.whl"


@pytest.fixture(autouse=True)
def fresh(project: Project) -> None:
    """A distribution whose one wheel needs glibc 2.34."""
    project.index.add_wheel("fresh", "1.0", tag="cp312-cp312-manylinux_2_34_x86_64")


def on_hosts(project: Project, *glibcs: str) -> None:
    """The spec for these hosts, without an image."""
    for number, glibc in enumerate(glibcs):
        project.write(f"glibc: '{glibc}'\n", name=f"host{number}.yaml")
    hosts = ", ".join(f"host{number}.yaml" for number in range(len(glibcs)))
    project.spec("[fresh]", f"target: {{host: [{hosts}]}}", "runs: host", "image: {}", "outputs: []")


def test_a_wheel_that_the_hosts_take_is_fine(project: Project) -> None:
    on_hosts(project, "2.35", "2.34")
    assert project.run("solve").code == 0
    outcome = project.run("check")
    assert (outcome.code, outcome.out) == (0, f"{LOCK}: yes\n")


def test_a_host_with_an_older_glibc_than_a_wheel_needs_is_no(project: Project) -> None:
    on_hosts(project, "2.35")
    assert project.run("solve").code == 0
    on_hosts(project, "2.35", "2.31")
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.out == (
        f"{LOCK}: no\n"
        f"  no: `{WHEEL}` of fresh 1.0 needs glibc 2.34, and the host has glibc 2.31  (host1.yaml:1)  [stale-package]\n"
        "  solving the system half again would change nothing\n"
        "  `provision check --changes` asks the indexes which packages would move\n"
        "  next: provision solve\n"
    )


def test_a_host_of_an_older_macos_than_a_wheel_needs_is_no(project: Project) -> None:
    project.index.add_wheel("tidy", "1.0", tag="cp312-cp312-macosx_12_0_x86_64")
    target = "target: {platform: macos/x86_64, host: mac.yaml}"
    project.write("os: {id: macos, version: '13.6'}\n", name="mac.yaml")
    project.spec("[tidy]", target, "runs: host", "image: {}", "outputs: []")
    assert project.run("solve").code == 0
    assert project.run("check").code == 0
    project.write("os: {id: macos, version: '11.7'}\n", name="mac.yaml")
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.out.splitlines()[1] == (
        "  no: `tidy-1.0-cp312-cp312-macosx_12_0_x86_64.whl` of tidy 1.0 does not install where the spec wants it: "
        "no wheel for macOS 11.7 (needs macOS 12.0)  [stale-package]"
    )


def test_a_host_that_states_no_glibc_leaves_it_open(project: Project) -> None:
    on_hosts(project, "2.35")
    assert project.run("solve").code == 0
    project.write("driver: {version: 580.95.05}\n", name="host0.yaml")
    outcome = project.run("check")
    assert outcome.code == 3
    assert outcome.out.splitlines()[:2] == [
        f"{LOCK}: unverified",
        f"  unverified: `{WHEEL}` of fresh 1.0 needs glibc 2.34, and which one the target has is not known  [unverified]",
    ]


def test_of_two_wheels_for_one_platform_one_that_installs_is_enough(project: Project) -> None:
    for tag in ("macosx_10_13_x86_64", "macosx_12_0_universal2"):
        project.index.add_wheel("tidy", "1.0", tag=f"cp312-cp312-{tag}")
    target = "target: {platform: [macos/arm64, macos/x86_64], host: mac.yaml}"
    project.write("platform: macos/x86_64\nos: {id: macos, version: '11.7'}\n", name="mac.yaml")
    project.spec("[tidy]", target, "runs: host", "image: {}", "outputs: []")
    assert project.run("solve").code == 0
    # On Apple silicon only the universal wheel installs, which the other Mac is too old for.
    assert project.read(LOCK).count('name = "tidy-1.0-') == 2
    assert "stale-package" not in project.run("check").out
    project.write("platform: macos/x86_64\nos: {id: macos, version: '10.12'}\n", name="mac.yaml")
    assert "`tidy-1.0-cp312-cp312-macosx_10_13_x86_64.whl` of tidy 1.0 does not install" in project.run("check").out


class TestWhatHostsAreToldDependsOnThem:
    """No lock says for which hosts it was solved, so what it asks of hosts may be right though it differs today."""

    GPU = "gpus: [{compute_capability: '9.0'}]\ndriver: {version: 580.95.05, module: open}\nglibc: '2.36'\n"
    LINES = ("accelerator: cuda", 'requires: {pytorch: "==2.7.1+cu126"}', "runs: host", "image: {}", "outputs: []")
    ASKS = "the lock asks hosts for gpu "

    @pytest.fixture(autouse=True)
    def torch(self, project: Project) -> None:
        project.index.add_wheel("torch", "2.7.1", tag="cp312-cp312-manylinux_2_28_x86_64")
        project.write(self.GPU, name="h100.yaml")

    def test_a_lock_for_hosts_of_the_command_line_is_unverified_without_them(self, project: Project) -> None:
        project.spec("[torch]", *self.LINES)
        assert project.run("solve", "--host", "h100.yaml").code == 0
        assert project.run("check", "--host", "h100.yaml").out == f"{LOCK}: yes\n"
        outcome = project.run("check")
        assert outcome.code == 3
        (told,) = [line for line in outcome.out.splitlines() if self.ASKS in line]
        assert told.startswith(f"  unverified: {self.ASKS}5.0, 5.2, 6.0, ")
        assert told.endswith(
            ", the stack needs none in particular; the spec has no hosts, and of those of a command line "
            "no lock tells  [unverified]"
        )

    def test_a_lock_without_hosts_is_held_against_those_of_the_command_line(self, project: Project) -> None:
        project.spec("[torch]", *self.LINES)
        assert project.run("solve").code == 0
        assert project.run("check", "--host", "h100.yaml").out == f"{LOCK}: yes\n"

    def test_other_hosts_of_the_spec_are_no(self, project: Project) -> None:
        project.spec("[torch]", *self.LINES)
        assert project.run("solve").code == 0
        project.spec("[torch]", *self.LINES, "target: {host: h100.yaml}")
        outcome = project.run("check")
        assert outcome.code == 1
        assert "  no: the lock asks hosts for gpu of any kind, the stack needs 5.0, 5.2, 6.0, " in outcome.out
