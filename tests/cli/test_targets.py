"""`targets:` in a spec: one request, one lock for each target, in a folder of its name."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK, UV_TAG, changed

if TYPE_CHECKING:
    from tests.project import Project

TWO = "targets:\n  big: {platform: linux/amd64}\n  small: {platform: linux/arm64}"
GPUS = """\
name: mixed
targets:
  volta:
    host:
      driver: {version: 580.65.06, module: proprietary}
      gpus: [{name: Tesla V100, compute_capability: "7.0"}]
  blackwell:
    host:
      driver: {version: 580.65.06, module: open}
      gpus: [{name: NVIDIA B200, compute_capability: "10.0"}]
requires: {pytorch: ">=2.8", python: "3.12"}
"""


@pytest.fixture
def two(project: Project) -> Project:
    """A spec of two targets, and an index that has the installer for both."""
    project.index.add_wheel("uv", "0.9.11", tag=UV_TAG.replace("x86_64", "aarch64"), upload_time="2025-11-20T10:00:00Z")
    project.write(changed(TWO))
    return project


def locked(project: Project, target: str) -> dict[str, object]:
    own: dict[str, object] = tomllib.loads(project.read(f"{target}/{LOCK}"))["tool"]["provision"]
    return own


def test_what_no_stack_serves_together_is_answered_one_by_one(project: Project) -> None:
    together = "target: {host: {gpus: [{compute_capability: '7.0'}, {compute_capability: '10.0'}]}}"
    project.write(f"name: mixed\n{together}\nrequires: {{pytorch: '>=2.8', python: '3.12'}}\n")
    assert project.run("solve", "--stack-only").code == 1
    project.write(GPUS)
    outcome = project.run("solve", "--stack-only", "--format", "json")
    assert outcome.code == 0, outcome.err
    builds = {name: answer["stack"]["pytorch_build"] for name, answer in outcome.json["targets"].items()}
    assert outcome.json["status"] == "solved"
    assert list(builds) == ["volta", "blackwell"]
    assert builds["volta"] != builds["blackwell"]
    told = project.run("solve", "--stack-only")
    assert [line.partition(": ")[0] for line in told.out.splitlines()[::2]] == ["✓ volta", "✓ blackwell"]
    assert "assumes" not in told.err
    assert "assumes: container_toolkit: targets.volta.host does not state it" in project.run("solve", "--stack-only", "-v").err


def test_each_target_has_a_folder_with_its_lock_and_what_is_rendered_from_it(two: Project) -> None:
    outcome = two.run("solve")
    assert outcome.code == 0, outcome.err
    written = [f"{name}/{file}" for name in ("big", "small") for file in ("Dockerfile", "provision/install.py", LOCK)]
    assert sorted(two.files()) == sorted([*written, "provision.yaml"])
    assert [line for line in outcome.err.splitlines() if line.startswith(("wrote", "next"))] == [
        f"wrote big/{LOCK}, big/Dockerfile, big/provision/install.py",
        "next: docker build big",
        f"wrote small/{LOCK}, small/Dockerfile, small/provision/install.py",
        "next: docker build small",
    ]
    assert [line.partition(": ")[0] for line in outcome.out.splitlines()[::2]] == ["✓ big", "✓ small"]
    for name, platform in (("big", "linux/amd64"), ("small", "linux/arm64")):
        own = locked(two, name)
        assert (own["target"], own["spec-file"], own["name"]) == (name, "../provision.yaml", "trainer")
        assert [one["platform"] for one in own["platforms"]] == [platform]  # type: ignore[attr-defined]


def test_json_has_an_answer_for_each_target(two: Project) -> None:
    outcome = two.run("solve", "--format", "json")
    assert outcome.code == 0, outcome.err
    assert outcome.json.keys() == {"status", "targets", "written"}
    assert outcome.json["written"] == [
        f"{name}/{file}" for name in ("big", "small") for file in (LOCK, "Dockerfile", "provision/install.py")
    ]
    assert outcome.json["targets"]["small"]["stack"]["platform"] == "linux/arm64"
    assert outcome.json["targets"]["small"]["written"] == [f"small/{LOCK}", "small/Dockerfile", "small/provision/install.py"]


def test_one_target_alone_is_told_as_a_spec_with_one_is(two: Project) -> None:
    outcome = two.run("solve", "--target", "small", "--format", "json")
    assert outcome.code == 0, outcome.err
    assert (outcome.json["target"], outcome.json["stack"]["platform"]) == ("small", "linux/arm64")
    assert sorted(two.files()) == ["provision.yaml", "small/Dockerfile", "small/provision/install.py", f"small/{LOCK}"]


def test_nothing_is_written_when_one_target_has_no_stack(two: Project) -> None:
    two.write(changed("targets:\n  big: {platform: linux/amd64}\n  old: {host: {glibc: '2.5'}}", "runs: host", "outputs: []"))
    two.index.add_wheel("alpha", "3.0", tag="cp312-cp312-manylinux_2_28_x86_64")
    two.write(two.read("provision.yaml").replace("- alpha", "- alpha>=3"))
    outcome = two.run("solve", "--format", "json")
    assert outcome.code == 1
    assert (outcome.json["status"], outcome.json["target"]) == ("no-stack", "old")
    assert "target old:\n" in outcome.err
    assert sorted(two.files()) == ["provision.yaml"]


class TestCheck:
    def test_every_lock_is_held_against_its_own_target(self, two: Project) -> None:
        assert two.run("solve").code == 0
        outcome = two.run("check", "--format", "json")
        assert [(one["lock"], one["verdict"]) for one in outcome.json["locks"]] == [
            (f"big/{LOCK}", "yes"),
            (f"small/{LOCK}", "yes"),
        ], outcome.out

    def test_a_target_without_a_lock_is_a_no(self, two: Project) -> None:
        assert two.run("solve", "--target", "big").code == 0
        outcome = two.run("check", "--format", "json")
        assert outcome.code == 1
        (result,) = outcome.json["locks"]
        assert [(finding["code"], finding["text"]) for finding in result["findings"]] == [
            ("missing-target", "the spec wants target small, which has no lock beside this one")
        ]

    def test_a_target_that_went_is_an_error_that_names_those_left(self, two: Project) -> None:
        assert two.run("solve").code == 0
        two.write(changed("targets:\n  big: {platform: linux/amd64}"))
        outcome = two.run("check", f"small/{LOCK}")
        assert outcome.code == 2
        assert outcome.err.startswith("error: provision.yaml has no target `small`")


class TestMistakes:
    @pytest.mark.parametrize(
        ("lines", "expected"),
        [
            (
                f"{TWO}\ntarget: {{platform: linux/amd64}}",
                "targets: `target` on line 13 says already where the environment must run; keep one",
            ),
            ("targets: {}", "targets: no target is named; leave `targets` out, or name one"),
            ("targets: {a: {host: []}}", "targets.a.host: no host is named; give a path, or `auto` for this machine"),
            ("targets: {a: {platform: []}}", "targets.a.platform: the list is empty; name at least one platform"),
        ],
    )
    def test_are_told_at_their_place(self, project: Project, lines: str, expected: str) -> None:
        project.write(changed(lines))
        outcome = project.run("solve")
        assert outcome.code == 2
        assert expected in outcome.err

    @pytest.mark.parametrize("name", ["Big", "../big", "big box", "wheels/x"])
    def test_a_name_must_do_for_a_folder(self, project: Project, name: str) -> None:
        project.write(changed(f'targets:\n  "{name}": {{platform: linux/amd64}}'))
        outcome = project.run("solve")
        assert outcome.code == 2
        assert "targets" in outcome.err

    @pytest.mark.parametrize(
        ("words", "message", "hint"),
        [
            (
                ("solve", "--target", "smal"),
                "provision.yaml has no target `smal`; did you mean `small`?",
                "it has big, small",
            ),
            (
                ("explain",),
                "provision.yaml is for several targets (big, small), and this needs one",
                "choose one with --target",
            ),
            (
                ("solve", "--host", "hosts.yaml"),
                "--host stands in place of the hosts of one target, and provision.yaml has 2",
                "choose one with --target",
            ),
        ],
    )
    def test_of_a_command_are_told_with_a_way_out(self, two: Project, words: tuple[str, ...], message: str, hint: str) -> None:
        outcome = two.run(*words)
        assert outcome.code == 2
        assert outcome.err.startswith(f"error: {message}")
        assert f"hint: {hint}" in outcome.err

    def test_a_target_of_a_spec_that_has_none(self, project: Project) -> None:
        outcome = project.run("explain", "--target", "big")
        assert outcome.code == 2
        assert outcome.err.startswith("error: provision.yaml has no `targets`, so there is no target `big`")


def test_explain_speaks_of_the_target_that_is_meant(two: Project) -> None:
    outcome = two.run("explain", "python", "--target", "small", "--stack-only")
    assert outcome.code == 0, outcome.err


def test_check_names_the_spec_as_people_do(two: Project) -> None:
    assert two.run("solve").code == 0
    two.write(changed(TWO, "packages: ['alpha<2']"))
    outcome = two.run("check", "small")
    assert outcome.code == 1
    line = "  no: alpha 2.0 is locked, but you require alpha<2  (provision.yaml:11)  [stale-package]"
    assert outcome.out.splitlines()[:2] == [f"small/{LOCK}: no", line]


def test_a_folder_that_is_a_link_leads_to_the_spec_beside_what_it_links_to(two: Project) -> None:
    assert two.run("solve").code == 0
    (two.folder / "elsewhere").mkdir()
    for name in ("provision.yaml", "small"):
        (two.folder / name).rename(two.folder / "elsewhere" / name)
    (two.folder / "small").symlink_to(two.folder / "elsewhere/small")
    two.write("name: another\n")
    outcome = two.run("check", f"small/{LOCK}")
    assert (outcome.code, outcome.out) == (0, f"small/{LOCK}: yes\n")
