"""`provision solve` from outside: what it prints where, what it writes, and what it leaves alone."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK, changed

if TYPE_CHECKING:
    from tests.project import Project

A100 = """\
platform: linux/amd64
kernel: 5.15.0-105-generic
driver: {version: 535.104.05, module: open}
gpus: [{name: NVIDIA A100-SXM4-80GB, compute_capability: "8.0", count: 8}]
container_toolkit: 1.17.4
"""
H100 = """\
platform: linux/amd64
kernel: 6.8.0-45-generic
driver: {version: 550.90.07, module: open}
gpus: [{name: NVIDIA H100 80GB HBM3, compute_capability: "9.0", count: 8}]
container_toolkit: 1.17.4
"""


def versions(project: Project) -> dict[str, str]:
    lock = tomllib.loads(project.read(LOCK))
    return {package["name"]: package["version"] for package in lock["packages"]}


ANSWER = "✓ runs on linux/amd64, on the CPU alone\n  alpha 2.0 · python 3.12 · 2 packages\n"


def test_the_answer_is_on_stdout_and_what_was_written_is_talk(project: Project) -> None:
    outcome = project.run("solve")
    assert (outcome.code, outcome.out) == (0, ANSWER)
    assert outcome.err == (
        "relaxed: end-of-life: image IMAGE ended 2026-07-11\nwrote pylock.trainer.toml, Dockerfile, provision/install.py\n"
        "next: docker build .\n"
    )
    assert sorted(project.files()) == ["Dockerfile", "provision.yaml", "provision/install.py", LOCK]
    assert versions(project) == {"alpha": "2.0", "beta": "2.0"}


def test_the_details_have_what_was_decided_of_each_component_and_why(project: Project) -> None:
    outcome = project.run("solve", "-v")
    assert outcome.code == 0
    assert outcome.out.startswith(ANSWER)
    rows = [line.split(maxsplit=2) for line in outcome.out.removeprefix(ANSWER).splitlines()]
    assert rows == [
        ["component", "chosen", "because"],
        ["image", "IMAGE", "the base image is IMAGE  (provision.yaml:9)"],
        ["python", "3.12", "you require python ==3.12  (provision.yaml:4)"],
        ["glibc", "2.36", "image IMAGE needs glibc 2.36  (matrices/image.yaml)"],
        ["platform", "linux/amd64"],
    ]


def test_json_is_the_contract_to_the_letter(project: Project) -> None:
    outcome = project.run("solve", "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json == {
        "status": "solved",
        "stack": {"image": "IMAGE", "python": "3.12", "glibc": "2.36", "platform": "linux/amd64"},
        "packages": {"alpha": "2.0", "beta": "2.0"},
        "indexes": {"alpha": "local", "beta": "local"},
        "verdict": "yes",
        "unverified": [],
        "assumes": [],
        "relaxations": [
            {
                "name": "end-of-life",
                "component": "image",
                "text": "image IMAGE ended 2026-07-11",
                "where": "endoflife-date/endoflife.date products/{ubuntu,debian}.md @a70eca33; python/devguide "
                "include/release-cycle.json, the earlier end of the distribution's standard support and of the Python branch: "
                "nobody rebuilds the image after it",
            }
        ],
        "written": [LOCK, "Dockerfile", "provision/install.py"],
    }


def test_a_dry_run_says_what_it_would_write_and_writes_nothing(project: Project) -> None:
    before = project.files()
    outcome = project.run("solve", "--dry-run")
    assert outcome.code == 0
    assert outcome.err.endswith("\nwould write pylock.trainer.toml, Dockerfile, provision/install.py\n")
    assert project.files() == before


def test_the_stack_alone_needs_no_index(project: Project) -> None:
    before = project.files()
    outcome = project.run("solve", "--stack-only", "--format", "json")
    assert outcome.code == 0
    assert outcome.json["stack"]["python"] == "3.12"
    assert "packages" not in outcome.json
    assert outcome.json["written"] == []
    assert not project.index.requests
    assert project.files() == before


@pytest.mark.parametrize(
    ("outputs", "which"),
    [
        ((), " of output dockerfile"),
        (("outputs: []", "runs: container"), ""),
        (("outputs: [host-script, compose, {format: sbom, path: bom.json}]",), " of output compose, sbom"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_the_stack_alone_says_that_it_writes_nothing_and_why(
    outputs: tuple[str, ...], which: str, options: tuple[str, ...], project: Project
) -> None:
    project.spec("[alpha]", *outputs)
    before = project.files()
    outcome = project.run("solve", "--stack-only", *options)
    assert outcome.code == 0
    assert outcome.err.endswith(f"wrote nothing: the lock{which} has packages, and --stack-only leaves them out\n")
    assert project.files() == before


def test_offline_uses_what_is_cached_and_gives_the_same_bytes(project: Project) -> None:
    assert project.run("solve").code == 0
    online = project.files()
    for name in (LOCK, "Dockerfile"):
        (project.folder / name).unlink()
    project.index.requests.clear()
    project.index.status = 500
    assert project.run("solve", "--offline").code == 0
    assert project.files() == online
    assert not project.index.requests


def test_offline_without_a_cache_cannot_tell_and_says_what_is_missing(project: Project) -> None:
    before = project.files()
    outcome = project.run("solve", "--offline")
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err == (
        "error: offline: `alpha` of index local is not in the cache; run once without --offline  [unavailable]\n"
    )
    assert project.files() == before


def test_the_same_input_gives_the_same_bytes_under_any_hash_seed(project: Project) -> None:
    assert project.run("solve").code == 0
    first = project.files()
    for seed in ("1", "2"):
        for name in (LOCK, "Dockerfile"):
            (project.folder / name).unlink()
        process = project.spawn("solve", PYTHONHASHSEED=seed)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert project.files() == first
    assert project.run("solve").code == 0
    assert project.files() == first


class TestAnEarlierLock:
    @pytest.fixture(autouse=True)
    def earlier(self, project: Project) -> None:
        """Locked when only the first versions were there."""
        newer = {name: project.index.pages["simple"][name].pop() for name in ("alpha", "beta")}
        assert project.run("solve").code == 0
        assert versions(project) == {"alpha": "1.0", "beta": "1.0"}
        for name, served in newer.items():
            project.index.pages["simple"][name].append(served)

    def test_is_kept_while_it_holds(self, project: Project) -> None:
        before = project.files()
        assert project.run("solve").code == 0
        assert project.files() == before

    def test_moves_as_far_as_the_spec_demands_and_no_further(self, project: Project) -> None:
        project.spec("[alpha, 'beta>=2']")
        assert project.run("solve").code == 0
        assert versions(project) == {"alpha": "1.0", "beta": "2.0"}

    def test_lets_one_package_move_when_told_to_however_its_name_is_spelled(self, project: Project) -> None:
        assert project.run("solve", "--upgrade-package", "Beta").code == 0
        assert versions(project) == {"alpha": "1.0", "beta": "2.0"}

    def test_is_given_up_for_an_upgrade(self, project: Project) -> None:
        assert project.run("solve", "--upgrade").code == 0
        assert versions(project) == {"alpha": "2.0", "beta": "2.0"}

    def test_mentions_a_package_to_upgrade_that_nothing_has(self, project: Project) -> None:
        outcome = project.run("solve", "--upgrade-package", "betta")
        assert outcome.code == 0
        assert "\nwarning: --upgrade-package `betta` is in no stack; did you mean `beta`?\n" in outcome.err

    @pytest.mark.parametrize("broken", ["{lock}\nnot toml\n", "<<<<<<< HEAD\n{lock}"])
    def test_that_cannot_be_read_is_replaced_with_a_warning(self, project: Project, broken: str) -> None:
        path = project.folder / LOCK
        path.write_text(broken.format(lock=path.read_text(encoding="utf-8")), encoding="utf-8")
        outcome = project.run("solve")
        assert outcome.code == 0
        assert "\nwarning: the earlier lock is not used: lock file has 1 mistake\n" in outcome.err
        assert versions(project) == {"alpha": "2.0", "beta": "2.0"}


def test_files_that_were_uploaded_later_are_ignored(project: Project) -> None:
    project.index.json = True
    project.index.add_wheel("delta", "1.0", upload_time="2026-03-01T10:00:00Z")
    project.index.add_wheel("delta", "2.0", upload_time="2026-09-01T10:00:00Z")
    project.spec("[delta]")
    assert project.run("solve", "--dry-run", "--format", "json").json["packages"] == {"delta": "2.0"}
    early = project.run("solve", "--dry-run", "--format", "json", "--exclude-newer", "2026-08-31")
    assert early.json["packages"] == {"delta": "1.0"}


def test_a_lock_written_elsewhere_knows_its_spec(project: Project) -> None:
    outcome = project.run("solve", "--out", "locks/trainer")
    assert outcome.code == 0
    assert sorted(project.files()) == [
        "locks/trainer/Dockerfile",
        "locks/trainer/provision/install.py",
        f"locks/trainer/{LOCK}",
        "provision.yaml",
    ]
    assert 'spec-file = "../../provision.yaml"\n' in project.read(f"locks/trainer/{LOCK}")
    checked = project.run("check", "locks")
    assert (checked.code, checked.out) == (0, f"locks/trainer/{LOCK}: yes\n")


def test_a_spec_in_another_folder_is_locked_beside_itself(project: Project) -> None:
    project.write(name="environments/provision.yaml")
    assert project.run("solve", "environments/provision.yaml").code == 0
    assert (project.folder / "environments" / LOCK).is_file()
    assert 'spec-file = "provision.yaml"\n' in project.read(f"environments/{LOCK}")


def test_several_hosts_are_one_target(project: Project) -> None:
    project.write(A100, name="a100.yaml")
    project.write(H100, name="h100.yaml")
    project.write(changed("accelerator: cuda", 'requires: {pytorch: "==2.7.1", python: "==3.12"}', "image: {base: auto}"))
    outcome = project.run("solve", "--stack-only", "--host", "a100.yaml", "--host", "h100.yaml", "--format", "json")
    assert outcome.code == 0, outcome.err
    stack = outcome.json["stack"]
    assert (stack["driver"], stack["gpu"]) == ("535.104.05, 550.90.07", "8.0, 9.0")
    assert outcome.json["basis"] == "minor-version"


def test_nothing_fits_is_a_conflict_with_a_way_out_and_writes_nothing(project: Project) -> None:
    project.spec("['alpha>=2', gamma]")
    before = project.files()
    outcome = project.run("solve")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        "error: alpha>=2 and gamma exclude each other  [no-stack]\n"
        "  you require alpha>=2  (provision.yaml:8)\n"
        "  you require gamma  (provision.yaml:8)\n"
        "  alpha 2.0 needs beta>=2  (metadata of alpha 2.0)\n"
        "  gamma 1.0 needs beta<2  (metadata of gamma 1.0)\n"
        "  so no alpha>=2 is left that goes with gamma\n"
        "\n"
        "hint: alpha 1.0 instead of `alpha>=2` would do: gives alpha 1.0, gamma 1.0, python 3.12\n"
        "hint: leaving out `gamma` would do: gives alpha 2.0, python 3.12\n"
    )
    assert project.files() == before


def test_nothing_fits_as_json(project: Project) -> None:
    project.spec("['alpha>=2', gamma]")
    outcome = project.run("solve", "--format", "json")
    assert outcome.code == 1
    assert outcome.json["status"] == "no-stack"
    line, in_spec = "provision.yaml:8", [{"source": "", "place": "provision.yaml:8"}]
    alpha, gamma = ("metadata of alpha 2.0", "metadata of gamma 1.0")
    assert outcome.json["conflict"]["members"] == [
        {
            "component": "alpha",
            "kind": "request",
            "text": "you require alpha>=2",
            "where": line,
            "clauses": [{"type": "requires-distribution", "object": "alpha", "ranges": [">=2"], "place": line}],
            "sources": in_spec,
        },
        {
            "component": "gamma",
            "kind": "request",
            "text": "you require gamma",
            "where": line,
            "clauses": [{"type": "requires-distribution", "object": "gamma", "place": line}],
            "sources": in_spec,
        },
        {
            "component": "alpha",
            "kind": "rule",
            "text": "alpha 2.0 needs beta>=2",
            "where": alpha,
            "clauses": [
                {"type": "requires", "subject": "alpha", "versions": ["2.0"], "object": "beta", "ranges": [">=2"]},
            ],
            "sources": [{"source": alpha, "place": ""}],
        },
        {
            "component": "gamma",
            "kind": "rule",
            "text": "gamma 1.0 needs beta<2",
            "where": gamma,
            "clauses": [{"type": "requires", "subject": "gamma", "versions": ["1.0"], "object": "beta", "ranges": ["<2"]}],
            "sources": [{"source": gamma, "place": ""}],
        },
    ]
    assert outcome.json["conflict"]["hints"] == [
        {
            "component": "alpha",
            "change": "==1.0",
            "text": "alpha 1.0 instead of `alpha>=2` would do",
            "gives": {"alpha": "1.0", "gamma": "1.0", "python": "3.12"},
            "verdict": "yes",
            "changes": [{"component": "alpha", "change": "==1.0", "kind": "set-distribution"}],
            "patch": {"spec": {"packages": ["alpha==1.0", "gamma"]}},
        },
        {
            "component": "gamma",
            "change": "left out",
            "text": "leaving out `gamma` would do",
            "gives": {"alpha": "2.0", "python": "3.12"},
            "verdict": "yes",
            "changes": [{"component": "gamma", "change": "left out", "kind": "drop-distribution"}],
            "patch": {"spec": {"packages": ["alpha>=2"]}},
        },
    ]


@pytest.mark.parametrize(
    ("packages", "line"),
    [
        ("[nowhere]", "you require nowhere: no index offers `nowhere`"),
        ("['alpha>=99']", "you require alpha>=99: the index has 2.0, 1.0"),
        ("[lost]", "lost 1.0 needs nowhere>=1: no index offers `nowhere`"),
        ("['withdrawn>=1']", "you require withdrawn>=1: withdrawn 1.0 is yanked: broken"),
        ("[source]", "source 1.0: only a source distribution; policy `allow: [sdist]` would take it"),
        ("[later]", "later 1.0: needs python >=3.13"),
    ],
)
def test_a_conflict_says_what_there_is_instead(project: Project, packages: str, line: str) -> None:
    project.index.add_wheel("lost", "1.0", requires=["nowhere>=1"])
    project.index.add_wheel("withdrawn", "1.0", yanked="broken")
    project.index.add_sdist("source", "1.0")
    project.index.add_wheel("later", "1.0", requires_python=">=3.13")
    project.spec(packages)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert line in [text.strip().partition("  (")[0] for text in outcome.err.splitlines()]


def test_a_yanked_version_is_locked_for_who_pins_it(project: Project) -> None:
    project.index.add_wheel("withdrawn", "1.0", yanked="broken")
    project.spec("['withdrawn==1.0']")
    assert project.run("solve").code == 0
    assert versions(project) == {"withdrawn": "1.0"}


def test_files_whose_index_gives_no_hash_are_hashed(project: Project) -> None:
    project.index.json = True
    assert project.run("solve").code == 0
    hashed = project.files()
    project.index.hashes = False
    for name in (LOCK, "Dockerfile"):
        (project.folder / name).unlink()
    assert project.run("solve").code == 0
    assert project.files() == hashed


def test_the_digest_a_spec_gives_is_the_one_in_the_image_recipe(project: Project) -> None:
    assert project.run("solve").code == 0
    assert "\nFROM IMAGE AS base\n" in project.read("Dockerfile")


def test_an_image_whose_registry_does_not_answer_is_locked_without_a_digest_and_says_so_the_same_way_each_time(
    project: Project,
) -> None:
    project.write(changed('image: {base: "127.0.0.1:9/base:1.0"}'))
    outcome = project.run("solve")
    assert outcome.code == 0
    assert "warning: image 127.0.0.1:9/base:1.0: registry `127.0.0.1:9` cannot be reached" in outcome.err
    assert project.run("check").out.count("is not pinned by digest") == 1
    online = project.files()
    offline = project.run("solve", "--offline", "--format", "json")
    assert not any("not pinned" in text for text in offline.json["unverified"])
    strict = project.run("solve", "--offline", "--strict", "--dry-run", "--format", "json")
    assert strict.json["unverified"][-1] == "image: 127.0.0.1:9/base:1.0 is not pinned by digest"
    assert project.files() == online


def test_what_several_platforms_have_in_common_is_said_once(project: Project) -> None:
    project.index.add_wheel("uv", "0.9.11", tag="py3-none-manylinux_2_17_aarch64", upload_time="2025-11-20T10:00:00Z")
    project.write(changed('image: {base: "127.0.0.1:9/base:1.0"}', "target: {platform: [linux/amd64, linux/arm64]}"))
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("warning: image 127.0.0.1:9/base:1.0: registry") == 1
    checked = project.run("check", "--changes")
    assert checked.code == 3
    assert checked.out.count("is not pinned by digest") == 1
    assert checked.err.count("warning: image 127.0.0.1:9/base:1.0: registry") == 1
