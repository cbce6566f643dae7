"""`provision check` from outside: offline, and what is wrong named with what to do about it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.lock.format.file import read_lock, write_lock
from tests.built_files import build_wheel
from tests.project import LOCK, changed

if TYPE_CHECKING:
    from tests.project import Project

EDITED = "  no: the lock was edited by hand: its digest does not fit its content  [edited-lock]\n"
RESOLVE = "    hint: change the spec and run `provision solve`\n"
ASK_INDEXES = "  `provision check --changes` asks the indexes which packages would move\n"
NEXT = "  next: provision solve\n"
NOTHING_AGAIN = f"  solving the system half again would change nothing\n{ASK_INDEXES}{NEXT}"
RENDER = "    hint: `provision render pylock.trainer.toml --to dockerfile --out Dockerfile` writes it"


@pytest.fixture(autouse=True)
def locked(project: Project) -> None:
    """A project that is solved, and whose index is gone from then on."""
    assert project.run("solve").code == 0
    project.index.requests.clear()
    project.index.status = 500


def test_a_lock_that_holds_is_a_yes_and_no_index_is_asked(project: Project) -> None:
    outcome = project.run("check")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{LOCK}: yes\n", "")
    assert not project.index.requests


def test_no_gpu_is_missed_where_no_package_of_the_lock_uses_one(project: Project) -> None:
    project.index.status = None
    project.write(changed("accelerator: cpu").replace("accelerator: cpu\n", ""))
    solved = project.run("solve", "--offline", "--upgrade")
    assert (solved.code, "unverified" in solved.out) == (0, False)
    assert project.run("check").out == f"{LOCK}: yes\n"


def test_a_yes_as_json(project: Project) -> None:
    outcome = project.run("check", LOCK, "--format", "json")
    assert outcome.code == 0
    assert outcome.json == {"status": "checked", "verdict": "yes", "locks": [{"lock": LOCK, "verdict": "yes", "findings": []}]}


def test_a_base_image_without_a_digest_is_a_warning_and_an_error_where_nothing_is_taken_for_granted(project: Project) -> None:
    project.index.status = None
    project.write(changed("image: {base: slim}"))
    assert project.run("solve", "--offline", "--upgrade").code == 0
    outcome = project.run("check")
    finding = "python:3.12-slim-trixie is not pinned by digest: another build of its tag may be another image  [unpinned-image]"
    assert (outcome.code, outcome.out) == (0, f"{LOCK}: yes\n  warning: {finding}\n")
    strict = project.run("check", "--strict")
    assert (strict.code, strict.out) == (1, f"{LOCK}: no\n  no: {finding}\n{NOTHING_AGAIN}")


def test_a_warning_that_several_locks_share_is_told_once_below_what_is_wrong(project: Project) -> None:
    project.index.status = None
    names = ("a", "b", "c", "d")
    for name in names:
        project.write(changed(f"name: {name}", "image: {base: slim}"), name=f"{name}/provision.yaml")
        assert project.run("solve", "--offline", f"{name}/provision.yaml").code == 0
    (project.folder / "d/Dockerfile").unlink()
    outcome = project.run("check", *names)
    slim = "python:3.12-slim-trixie is not pinned by digest: another build of its tag may be another image"
    assert outcome.code == 1
    assert outcome.out == (
        "✗ 4 locks: 1 no, 3 yes\n\n"
        "d/pylock.d.toml: no\n"
        "  no: `d/Dockerfile` is missing  [missing-output]\n"
        "    hint: `provision render d/pylock.d.toml --to dockerfile --out d/Dockerfile` writes it\n"
        f"warning: {slim}  [unpinned-image]\n"
        "  in a/pylock.a.toml, b/pylock.b.toml, c/pylock.c.toml and 1 more\n"
    )


def test_a_base_image_without_a_digest_is_accepted_by_name(project: Project) -> None:
    project.index.status = None
    project.write(changed("image: {base: slim}\npolicy: {strict: true, accept: [image]}"))
    assert project.run("solve", "--offline", "--upgrade").code == 0
    outcome = project.run("check")
    finding = "python:3.12-slim-trixie is not pinned by digest: another build of its tag may be another image  [unpinned-image]"
    assert (outcome.code, outcome.out) == (0, f"{LOCK}: yes\n  warning: {finding}\n")


@pytest.mark.parametrize("options", [(), ("--strict",)])
def test_an_assumption_is_unverified_with_strict_however_the_lock_was_made(project: Project, options: tuple[str, ...]) -> None:
    project.index.status = None
    driver = "driver: {version: 580.95.05}"
    host = f"target: {{host: {{{driver}, gpus: [{{name: NVIDIA A100-SXM4-80GB}}]}}}}"
    project.write(f"{host}\nname: trainer\naccelerator: cuda\nrequires: {{cuda: '13.*'}}\npolicy: {{accept: [apt, image]}}\n")
    assert project.run("solve", "--upgrade", *options).code == 0
    toolkit = "  unverified: container_toolkit: target.host does not state it; "
    outcome, strict = project.run("check"), project.run("check", "--strict")
    assert (outcome.code, toolkit in outcome.out) == (0, False)
    assert (strict.code, toolkit in strict.out) == (3, True), strict.out


def test_undated_packages_are_a_warning_and_an_error_where_nothing_is_taken_for_granted(project: Project) -> None:
    project.index.status = None
    image = f"python:3.12-slim-trixie@sha256:{'0' * 64}"
    project.write(changed(f"image: {{base: '{image}', apt: [git, jq, vim, zip, 'curl=8.14.1-2']}}"))
    assert project.run("solve", "--upgrade").code == 0
    outcome = project.run("check")
    told = "apt-get installs git, jq, vim and 1 more as they are on the day of the build; `image: {snapshot: DAY}` dates them"
    finding = f"{told}  [undated-packages]"
    assert (outcome.code, outcome.out) == (0, f"{LOCK}: yes\n  warning: {finding}\n")
    strict = project.run("check", "--strict")
    assert (strict.code, strict.out) == (1, f"{LOCK}: no\n  no: {finding}\n")
    solved = project.run("solve", "--strict", "--dry-run", "--format", "json")
    assert solved.json["verdict"] == "unverified"
    assert solved.json["unverified"] == [f"apt: {told}"]


@pytest.mark.parametrize("lines", ["apt: [git], snapshot: 2026-09-01", "apt: [git=1:2.47.3-0]"])
def test_packages_of_one_day_or_version_are_no_finding(lines: str, project: Project) -> None:
    project.index.status = None
    project.write(changed(f"image: {{base: 'python:3.12-slim-trixie@sha256:{'0' * 64}', {lines}}}"))
    assert project.run("solve", "--upgrade").code == 0
    outcome = project.run("check", "--strict")
    assert (outcome.code, outcome.out) == (0, f"{LOCK}: yes\n")


def test_what_the_spec_accepts_of_its_image_is_no_error(project: Project) -> None:
    project.index.status = None
    project.write(changed("image: {base: slim, apt: [git]}\npolicy: {strict: true, accept: [apt, image]}"))
    solved = project.run("solve", "--offline", "--upgrade", "--format", "json")
    assert (solved.code, solved.json["verdict"]) == (0, "yes")
    told = "apt-get installs git as it is on the day of the build; `image: {snapshot: DAY}` dates it"
    assert solved.json["accepts"] == ["image: python:3.12-slim-trixie is not pinned by digest", f"apt: {told}"]
    outcome = project.run("check")
    assert (outcome.code, outcome.out.count("warning: ")) == (0, 2)


def test_a_lock_without_its_spec_is_unverified(project: Project) -> None:
    (project.folder / "provision.yaml").unlink()
    outcome = project.run("check")
    assert outcome.code == 3
    assert outcome.out == (
        f"{LOCK}: unverified\n  unverified: its spec `provision.yaml` is not there, "
        "so nothing can be said about what was asked for  [no-spec]\n"
    )


@pytest.mark.parametrize(
    ("spec", "finding", "again"),
    [
        (
            ("packages: ['alpha<2']",),
            "  no: alpha 2.0 is locked, but you require alpha<2  (provision.yaml:8)  [stale-package]\n",
            NOTHING_AGAIN,
        ),
        (
            ("packages: [alpha, gamma]",),
            "  no: `gamma` is not locked: you require gamma  (provision.yaml:8)  [missing-package]\n",
            NOTHING_AGAIN,
        ),
        (
            ("target: {platform: linux/arm64}",),
            "  no: the spec wants linux/arm64, the lock has linux/amd64  [missing-platform]\n",
            (
                "  solving the system half again would change 2 things:\n"
                "    platform linux/amd64 is gone: its hosts fall out\n"
                "    platform linux/arm64 is new\n" + ASK_INDEXES + NEXT
            ),
        ),
        (
            ("accelerator: cuda",),
            "  no: the spec and its hosts call for accelerator cuda, the lock is for cpu  [stale-accelerator]\n",
            (
                "  solving the system half again would change 3 things:\n"
                "    accelerator cpu -> cuda\n"
                "      because the spec says `accelerator: cuda`, it said `cpu`  (provision.yaml:9)\n"
                "    a GPU is required now\n"
                "      because the accelerator is cuda now\n"
                "    assumed now: container_toolkit: the target does not state it, and is taken to have what the stack needs\n"
                + ASK_INDEXES
                + NEXT
            ),
        ),
        (
            ("outputs: [dockerfile, requirements]",),
            (
                "  no: `requirements.txt` is missing  [missing-output]\n"
                "    hint: `provision render pylock.trainer.toml --to requirements --out requirements.txt` writes it\n"
            ),
            "",
        ),
    ],
)
def test_a_spec_that_moved_on_makes_the_lock_stale(project: Project, spec: tuple[str, ...], finding: str, again: str) -> None:
    project.write(changed(*spec))
    outcome = project.run("check")
    assert (outcome.code, outcome.out) == (1, f"{LOCK}: no\n{finding}{again}")
    assert not project.index.requests


def test_a_python_that_the_spec_no_longer_takes_is_explained_as_any_conflict(project: Project) -> None:
    project.write(changed('requires: {python: "==3.13"}'))
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.out == (
        f"{LOCK}: no\n"
        "  no: the locked stack does not satisfy the spec, the matrix and the hosts  [stale-stack]\n"
        "    the lock has python 3.12  (pylock.trainer.toml)\n"
        "    you require python ==3.13  (provision.yaml:8)\n"
        "    so no python ==3.13 is left\n"
        "    hint: python 3.12 instead of `==3.13` would do: gives python 3.12\n"
    )


def test_layout_and_comments_of_the_spec_do_not_matter(project: Project) -> None:
    text = (project.folder / "provision.yaml").read_text(encoding="utf-8")
    (project.folder / "provision.yaml").write_text(f"# of the training team\n\n{text}", encoding="utf-8")
    assert project.run("check").code == 0


def test_a_lock_edited_by_hand_is_told_apart(project: Project) -> None:
    path = project.folder / LOCK
    path.write_text(path.read_text(encoding="utf-8").replace('name = "trainer"', 'name = "trainee"'), encoding="utf-8")
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.out.startswith(f"{LOCK}: no\n{EDITED}{RESOLVE}")


def test_a_lock_that_contradicts_itself_is_named_with_both_sides(project: Project) -> None:
    path = project.folder / LOCK
    text = path.read_text(encoding="utf-8")
    edited = text.replace('requires-python = "==3.12.*"', 'requires-python = "==3.11.*"')
    path.write_text(edited, encoding="utf-8")
    line = edited[: edited.index("requires-python")].count("\n") + 1
    outcome = project.run("check")
    assert outcome.code == 1
    assert f"  no: requires-python is ==3.11.*, the stack has python 3.12  ({LOCK}:{line})  [contradiction]\n" in outcome.out


def test_the_wheel_of_another_build_than_the_stacks_is_a_contradiction(project: Project) -> None:
    """As in locks of an earlier version: the wheel of PyPI, which has CUDA, where the stack has the CPU build."""
    project.index.status = None
    project.index.add_wheel("torch", "2.7.1", tag="cp312-cp312-manylinux_2_28_x86_64")
    project.write(
        changed("accelerator: cuda", 'requires: {pytorch: "==2.7.1+cu126"}', "packages: [torch]", "image: {base: slim}")
    )
    assert project.run("solve", "--upgrade").code == 0
    path = project.folder / LOCK
    text = path.read_text(encoding="utf-8").replace("torch-2.7.1-cp312", "torch-2.7.1+cpu-cp312")
    path.write_text(
        text.replace('name = "torch"\nversion = "2.7.1"', 'name = "torch"\nversion = "2.7.1+cpu"'), encoding="utf-8"
    )
    outcome = project.run("check")
    assert outcome.code == 1
    assert (
        "  no: the stack has pytorch 2.7.1+cu126, whose wheel is torch 2.7.1; "
        "the packages have torch 2.7.1+cpu  [contradiction]\n"
        "    hint: `provision solve` locks the wheel of the build\n"
    ) in outcome.out


def test_a_gate_that_says_something_else_than_the_stack_is_told_with_what_to_do(project: Project) -> None:
    """As that of a lock of an earlier version, which computed it otherwise."""
    path = project.folder / LOCK
    lock = read_lock(path)
    stack = replace(lock.stacks[0], require_cuda="driver>=525.60.13")
    path.write_text(write_lock(replace(lock, stacks=(stack,))), encoding="utf-8")
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.out.startswith(
        f"{LOCK}: no\n"
        "  no: the image would start on other hosts than the stack runs on: NVIDIA_REQUIRE_CUDA should be empty, "
        "the lock has `driver>=525.60.13`  [stale-gate]\n"
        "    hint: `provision solve` writes it again; what is locked stays as it is where nothing else changed\n"
    )


def test_packages_of_the_system_that_the_image_would_lack_are_told(project: Project) -> None:
    """As those of a lock of an earlier version, which knew of none."""
    project.index.status = None
    project.write(changed("image: {base: slim, apt: [git]}"))
    assert project.run("solve", "--offline", "--upgrade").code == 0
    path = project.folder / LOCK
    lock = read_lock(path)
    assert [one.name for one in lock.stacks[0].apt] == ["git"]
    path.write_text(write_lock(replace(lock, stacks=(replace(lock.stacks[0], apt=()),))), encoding="utf-8")
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.out.startswith(
        f"{LOCK}: no\n"
        "  no: of the system's packages the lock lacks git  [stale-system-packages]\n"
        "    hint: `provision solve` writes it again; what is locked stays as it is where nothing else changed\n"
    )


def test_packages_for_an_image_of_which_nothing_is_known_are_a_mistake(project: Project) -> None:
    project.write(changed("image: {base: registry.example/team/base, apt: [git]}"))
    outcome = project.run("check")
    assert outcome.code == 2
    assert (
        "image.apt: the matrix does not know whether registry.example/team/base has apt-get; "
        "`distribution: debian:12`, for instance, states what it is"
    ) in outcome.err


def test_an_edited_recipe_is_named_at_its_line(project: Project) -> None:
    path = project.folder / "Dockerfile"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("USER root", "USER 0"), encoding="utf-8")
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.out == (
        f"{LOCK}: no\n  no: `Dockerfile` is not what its lock renders; they differ from line 11  [edited-output]\n"
        f"{RENDER} again; a change made in it by hand is lost\n"
    )


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda content: content + b"\n", 47),
        (lambda content: content[:-1], 46),
        (lambda content: content[:0], 1),
        (lambda content: content.replace(b"# Gen", b"\xff\xfe Gen"), 1),
    ],
    ids=["a line more", "no last line end", "nothing", "not text"],
)
def test_a_recipe_is_compared_byte_for_byte(project: Project, edit: object, line: int) -> None:
    path = project.folder / "Dockerfile"
    assert callable(edit)
    assert path.read_bytes().count(b"\n") == 46
    path.write_bytes(edit(path.read_bytes()))
    outcome = project.run("check")
    assert outcome.code == 1
    assert f"`Dockerfile` is not what its lock renders; they differ from line {line}  [edited-output]\n" in outcome.out


@pytest.mark.parametrize("edit", ["missing", "edited"])
def test_a_helper_file_is_compared_too_and_written_with_the_recipe(project: Project, edit: str) -> None:
    helper = project.folder / "provision/install.py"
    if edit == "missing":
        helper.unlink()
        problem = "is missing  [missing-output]"
    else:
        helper.write_text(helper.read_text(encoding="utf-8") + "import os\n", encoding="utf-8")
        line = helper.read_text(encoding="utf-8").count("\n")
        problem = f"is not what this version of provision writes; they differ from line {line}  [edited-output]"
    outcome = project.run("check")
    again = "" if edit == "missing" else " again; a change made in it by hand is lost"
    assert (outcome.code, outcome.out) == (1, f"{LOCK}: no\n  no: `provision/install.py` {problem}\n{RENDER}{again}\n")
    assert project.run("render", LOCK, "--to", "dockerfile", "--out", "Dockerfile").code == 0
    assert project.run("check").code == 0


def test_a_missing_recipe_is_no_and_the_command_that_writes_it_works(project: Project) -> None:
    (project.folder / "Dockerfile").unlink()
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.out == (f"{LOCK}: no\n  no: `Dockerfile` is missing  [missing-output]\n{RENDER}\n")
    assert project.run("render", LOCK, "--to", "dockerfile", "--out", "Dockerfile").code == 0
    assert project.run("check").code == 0


class TestALocalWheel:
    @pytest.fixture(autouse=True)
    def wheel(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        """A wheel from a find-links folder, copied beside the lock when it is solved."""
        project.index.status = None
        filename, content = build_wheel("local", "1.0")
        (project.folder / "links").mkdir()
        (project.folder / "links" / filename).write_bytes(content)
        monkeypatch.setenv("PIP_FIND_LINKS", str(project.folder / "links"))
        project.spec("[local]")
        outcome = project.run("solve")
        assert outcome.err.endswith(
            "\nwrote pylock.trainer.toml, Dockerfile, provision/install.py, wheels/local-1.0-py3-none-any.whl\n"
            "next: docker build .\n"
        )

    def test_that_is_there_is_fine(self, project: Project) -> None:
        assert project.run("check").code == 0

    def test_that_is_missing_is_no(self, project: Project) -> None:
        (project.folder / "wheels/local-1.0-py3-none-any.whl").unlink()
        outcome = project.run("check")
        assert outcome.code == 1
        assert outcome.out == (
            f"{LOCK}: no\n  no: `wheels/local-1.0-py3-none-any.whl` of local 1.0 is missing  [missing-artefact]\n"
        )

    def test_of_which_the_lock_has_another_size_is_no(self, project: Project) -> None:
        """Installers hold a file against its size, too (PEP 751, "Installation")."""
        size = (project.folder / "wheels/local-1.0-py3-none-any.whl").stat().st_size
        path = project.folder / LOCK
        path.write_text(path.read_text(encoding="utf-8").replace(f"size = {size}", "size = 7"), encoding="utf-8")
        outcome = project.run("check")
        assert outcome.code == 1
        text = f"`wheels/local-1.0-py3-none-any.whl` has {size} bytes, the lock says 7"
        assert f"  no: {text}  [changed-artefact]\n" in outcome.out

    def test_that_changed_is_no(self, project: Project) -> None:
        path = project.folder / "wheels/local-1.0-py3-none-any.whl"
        locked = hashlib.sha256(path.read_bytes()).hexdigest()
        path.write_bytes(b"something else")
        found = hashlib.sha256(b"something else").hexdigest()
        outcome = project.run("check")
        assert outcome.code == 1
        text = f"`wheels/local-1.0-py3-none-any.whl` has sha256 {found}, the lock says {locked}"
        assert outcome.out == f"{LOCK}: no\n  no: {text}  [changed-artefact]\n"


def test_several_locks_are_told_one_by_one_and_the_worst_decides(project: Project) -> None:
    project.index.status = None
    project.write(name="a/provision.yaml")
    project.write(name="b/provision.yaml")
    assert project.run("solve", "a/provision.yaml").code == 0
    assert project.run("solve", "b/provision.yaml").code == 0
    (project.folder / "b/Dockerfile").unlink()
    outcome = project.run("check", ".", f"a/{LOCK}")
    assert outcome.code == 1
    heads = [line for line in outcome.out.splitlines() if not line.startswith(" ")]
    assert heads == ["✗ 3 locks: 1 no, 2 yes", "", f"b/{LOCK}: no", f"a/{LOCK}: yes"], "the one at the root has nothing to say"
    assert (
        f"  warning: the name trainer is that of b/{LOCK} and {LOCK}, too  [shared-name]\n"
        "    hint: give each spec a `name:` of its own: images and reports are called by it\n"
    ) in outcome.out, "told once, at the first of the three"


def test_a_host_the_stack_cannot_run_on_is_no(project: Project) -> None:
    project.index.status = None
    project.index.add_wheel("torch", "2.7.1", tag="cp312-cp312-manylinux_2_28_x86_64")
    project.write(
        changed("accelerator: cuda", 'requires: {pytorch: "==2.7.1+cu126"}', "packages: [torch]", "image: {base: slim}")
    )
    project.write("driver: {version: 560.35.03, module: open}\ngpus: [{compute_capability: '9.0'}]\n", name="new.yaml")
    project.write("driver: {version: 470.256.02}\ngpus: [{compute_capability: '9.0'}]\n", name="old.yaml")
    assert project.run("solve", "--offline", "--host", "new.yaml").code == 3, "not cached yet"
    assert project.run("solve", "--host", "new.yaml").code == 0
    outcome = project.run("check", "--host", "old.yaml")
    assert outcome.code == 1
    assert "the host has driver 470.256.02  (old.yaml:1)\n" in outcome.out


def test_nothing_to_check_is_a_mistake(project: Project) -> None:
    for name in (LOCK, "provision.yaml", "Dockerfile"):
        (project.folder / name).unlink()
    outcome = project.run("check")
    assert (outcome.code, outcome.out, outcome.err) == (
        2,
        "",
        (
            "error: there is no lock (pylock.NAME.toml) and no spec in `.`  [bad-usage]\n\n"
            "hint: `provision init` writes a spec, `provision solve` locks it\n"
        ),
    )


def test_a_lock_that_cannot_be_read_does_not_keep_the_others_from_being_told(project: Project) -> None:
    project.index.status = None
    for name in ("a", "b", "c"):
        project.write(name=f"{name}/provision.yaml")
        assert project.run("solve", f"{name}/provision.yaml").code == 0
    project.write("[", name=f"a/{LOCK}")
    project.write(changed("target: {host: none.yaml}"), name="b/provision.yaml")
    (project.folder / "c/Dockerfile").unlink()
    outcome = project.run("check")
    assert (outcome.code, outcome.err) == (2, "")
    assert outcome.out == (
        "✗ 4 locks: 2 error, 1 no, 1 yes\n\n"
        f"a/{LOCK}: error\n"
        "  error: lock file has 1 mistake  [invalid-document]\n"
        f"    a/{LOCK}:1:2: invalid initial character for a key part at the end of the file\n"
        "    hint: restore the lock from version control, or write it again with `provision solve` of its spec\n"
        f"b/{LOCK}: error\n"
        "  error: host profile `b/none.yaml` does not exist  [file]\n"
        "    hint: `provision inspect` prints the profile of the machine that it runs on\n"
        f"  warning: the name trainer is that of c/{LOCK} and {LOCK}, too  [shared-name]\n"
        "    hint: give each spec a `name:` of its own: images and reports are called by it\n"
        f"c/{LOCK}: no\n"
        "  no: `c/Dockerfile` is missing  [missing-output]\n"
        f"    hint: `provision render c/{LOCK} --to dockerfile --out c/Dockerfile` writes it\n"
    )
    report = project.run("check", "--format", "json")
    assert report.code == 2
    assert report.json["verdict"] == "error"
    assert [lock["verdict"] for lock in report.json["locks"]] == ["error", "error", "no", "yes"]
    assert report.json["locks"][0] == {
        "lock": f"a/{LOCK}",
        "verdict": "error",
        "findings": [],
        "error": {
            "code": "invalid-document",
            "message": "lock file has 1 mistake",
            "causes": [f"a/{LOCK}:1:2: invalid initial character for a key part at the end of the file"],
            "hints": ["restore the lock from version control, or write it again with `provision solve` of its spec"],
        },
    }


def test_an_error_of_all_locks_is_told_once(project: Project) -> None:
    project.index.status = None
    project.write(name="a/provision.yaml")
    assert project.run("solve", "a/provision.yaml").code == 0
    outcome = project.run("check", "--matrix", "none")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("error: ") == 1


def test_the_system_half_of_a_stale_lock_as_json(project: Project) -> None:
    project.write(changed("target: {platform: linux/arm64}"))
    outcome = project.run("check", "--format", "json")
    assert outcome.code == 1
    gone, new = outcome.json["locks"][0]["changes"]["system"]
    assert (gone["name"], gone["kind"], gone["from"], gone["to"]) == ("platform", "removed", "linux/amd64", "")
    assert new == {
        "name": "platform",
        "section": "hosts",
        "kind": "added",
        "aspect": "",
        "from": "",
        "to": "linux/arm64",
        "text": "platform linux/arm64 is new",
        "platforms": [],
        "breaking": False,
        "reasons": [],
    }


def test_a_library_for_another_cuda_beside_the_frameworks_own_contradicts_nothing(project: Project) -> None:
    """As `nvidia-tensorrt`, which is for CUDA 11, brings one beside PyTorch's: one is cuDNN 8, the other cuDNN 9."""
    tag = "py3-none-manylinux_2_27_x86_64"
    needs = ["nvidia-cudnn-cu12==9.5.1.17"]
    project.index.status = None
    project.index.add_wheel("torch", "2.7.1", tag="cp312-cp312-manylinux_2_28_x86_64", requires=needs)
    project.index.add_wheel("nvidia-cudnn-cu12", "9.5.1.17", tag=tag)
    project.index.add_wheel("nvidia-cudnn-cu11", "8.9.6.50", tag=tag)
    lines = ("accelerator: cuda", 'requires: {pytorch: "==2.7.1+cu126"}', "image: {base: slim}")
    project.write(changed(*lines, "packages: [torch, nvidia-cudnn-cu11]"))
    assert project.run("solve", "--upgrade").code == 0
    assert "[contradiction]" not in project.run("check").out
    path = project.folder / LOCK
    text = path.read_text(encoding="utf-8").replace('cudnn = "9.5.1.17"', 'cudnn = "9.8.0.87"')
    path.write_text(text, encoding="utf-8")
    told = [line for line in project.run("check").out.splitlines() if line.endswith("[contradiction]")]
    assert told[1:] == [
        "  no: the stack has cudnn 9.8.0.87, the packages have nvidia-cudnn-cu11 8.9.6.50  [contradiction]",
        "  no: the stack has cudnn 9.8.0.87, the packages have nvidia-cudnn-cu12 9.5.1.17  [contradiction]",
    ]


def test_a_finding_as_json_has_its_fields_the_line_to_change_and_the_command(project: Project) -> None:
    project.spec("[alpha, 'beta<2']")
    outcome = project.run("check", LOCK, "--format", "json")
    assert outcome.code == 1
    assert outcome.json["locks"][0]["findings"] == [
        {
            "code": "stale-package",
            "verdict": "no",
            "text": "beta 2.0 is locked, but you require beta<2  (provision.yaml:8)",
            "where": LOCK,
            "file": "provision.yaml",
            "line": 8,
            "column": 20,
            "details": [],
            "hints": [],
            "type": "other-version",
            "subject": "beta 2.0",
            "object": "beta",
            "ranges": ["<2"],
            "source": "",
            "place": "provision.yaml:8",
            "command": "provision solve",
        }
    ]
