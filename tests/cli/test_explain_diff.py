"""`provision explain --diff OLD NEW` from outside: what a reviewer is told of two locks."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK, changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.project import Project

HERE = Path(__file__).parent.parent
FIXTURES = HERE / "fixtures" / "locks"


@pytest.fixture
def two_locks(project: Project) -> tuple[str, str]:
    """A lock, and what became of it after the spec moved on."""
    assert project.run("solve").code == 0
    (project.folder / LOCK).rename(project.folder / "pylock.old.toml")
    project.write(changed("packages: ['alpha<2', gamma]"))
    assert project.run("solve").code == 0
    return "pylock.old.toml", LOCK


def test_two_locks_in_words(project: Project, two_locks: tuple[str, str]) -> None:
    outcome = project.run("explain", "--diff", *two_locks)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        "## pylock.old.toml -> pylock.trainer.toml\n"
        "\n"
        "No host falls out; packages: 1 added, 2 downgraded, 0 unchanged.\n"
        "\n"
        "### Packages\n"
        "\n"
        "- 2 packages as the spec asks:\n"
        "  - alpha 2.0 -> 1.0, a downgrade to an older major version: the spec asks for `alpha<2`, it asked for `alpha`\n"
        "  - gamma 1.0 is new: the spec asks for `gamma` now\n"
        "- 1 package following gamma 1.0, which is new:\n"
        "  - beta 2.0 -> 1.0, a downgrade to an older major version\n"
        "\n"
        "### What the locks were made from\n"
        "\n"
        "- the spec says `packages.alpha: <2`, it said `any version`\n"
        "- the spec says `packages.gamma: any version` now\n"
    )


def test_two_locks_as_json(project: Project, two_locks: tuple[str, str]) -> None:
    outcome = project.run("explain", "--diff", *two_locks, "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    report = outcome.json
    assert {key: report[key] for key in ("status", "old", "new", "breaking", "platforms", "unchanged", "notes")} == {
        "status": "compared",
        "old": "pylock.old.toml",
        "new": LOCK,
        "breaking": False,
        "platforms": ["linux/amd64"],
        "unchanged": 0,
        "notes": [],
    }
    assert [change["subject"] for change in report["changes"]] == ["alpha", "beta", "gamma", "packages.alpha", "packages.gamma"]
    assert report["changes"][1] == {
        "section": "packages",
        "subject": "beta",
        "change": "downgraded",
        "text": "beta 2.0 -> 1.0, a downgrade to an older major version",
        "aspect": "version",
        "old": "2.0",
        "new": "1.0",
        "platforms": ["linux/amd64"],
        "causes": [
            {
                "kind": "follows",
                "text": "gamma 1.0 requires `beta<2`, which 2.0 is not",
                "subject": "gamma",
                "type": "ruled-out-by",
                "object": "beta",
                "ranges": ["<2"],
                "source": "metadata of gamma 1.0",
            }
        ],
        "breaking": False,
    }


def test_a_lock_and_itself(project: Project) -> None:
    assert project.run("solve").code == 0
    outcome = project.run("explain", "--diff", LOCK, LOCK)
    assert (outcome.code, outcome.out) == (0, f"## {LOCK} -> {LOCK}\n\nNothing changed.\n")


def test_one_of_the_two_may_come_from_a_pipe(
    project: Project, two_locks: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (project.folder / two_locks[0]).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    outcome = project.run("explain", "--diff", "-", LOCK)
    assert outcome.code == 0
    assert outcome.out.startswith("## (stdin) -> pylock.trainer.toml\n")


def test_two_from_one_pipe_are_one_too_many(project: Project) -> None:
    outcome = project.run("explain", "--diff", "-", "-")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error: both locks of `--diff - -` come from stdin  [bad-usage]\n\nhint: name at least one of them by its path\n"
    )


def test_a_pipe_that_holds_no_text(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    outcome = project.run("explain", "--diff", "-", LOCK)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: lock file `stdin` is not UTF-8 text (byte 0)  [file]\n"


def test_locks_that_cannot_be_read(project: Project) -> None:
    project.write("lock-version = 1\n", name="a.toml")
    project.write("[", name="b.toml")
    outcome = project.run("explain", "--diff", "a.toml", "b.toml")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: lock file has 2 mistakes  [invalid-document]\n  a.toml:1:1: ")
    assert "\n  b.toml:1:" in outcome.err
    missing = project.run("explain", "--diff", "none.toml", "a.toml", "--format", "json")
    assert missing.code == 2
    assert missing.json["message"] == "lock file `none.toml` does not exist"


def test_a_lock_of_another_program(project: Project) -> None:
    assert project.run("solve").code == 0
    project.write(
        'lock-version = "1.0"\ncreated-by = "other"\n[[packages]]\nname = "beta"\nversion = "1.0"\n'
        'wheels = [{name = "beta-1.0-py3-none-any.whl", url = "https://example.org/beta", hashes = {sha256 = "00"}}]\n',
        name="pylock.theirs.toml",
    )
    outcome = project.run("explain", "--diff", "pylock.theirs.toml", LOCK)
    assert (outcome.code, outcome.out) == (
        0,
        (
            "## pylock.theirs.toml -> pylock.trainer.toml\n"
            "\n"
            "Packages: 1 added, 1 upgraded, 0 unchanged.\n"
            "\n"
            "`pylock.theirs.toml` was not written by provision: only packages are compared, and nothing says why they moved.\n"
            "\n"
            "### Packages\n"
            "\n"
            "- 1 package following alpha 2.0, which is new:\n"
            "  - beta 1.0 -> 2.0, a new major version\n"
            "- 1 package for a reason the locks do not record:\n"
            "  - alpha 2.0 is new\n"
        ),
    )


@pytest.mark.parametrize(("old", "new"), [("cuda-12", "cuda-13"), ("cuda-13", "cuda-12")])
def test_two_real_locks_a_cuda_generation_apart(
    project: Project, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    monkeypatch.chdir(FIXTURES)
    outcome = project.run("explain", "--diff", f"pylock.{old}.toml", f"pylock.{new}.toml")
    assert (outcome.code, outcome.err) == (0, "")
    golden(HERE / "golden" / "explain" / f"{old}-to-{new}.md", outcome.out)


def test_one_json_document_of_two_real_locks(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES)
    outcome = project.run("explain", "--diff", "pylock.cuda-12.toml", "pylock.cuda-13.toml", "--format", "json")
    report = json.loads(outcome.out)
    assert report["breaking"] is True
    assert [change["subject"] for change in report["changes"] if change["breaking"]] == ["gpu", "driver"]
    unexplained = [one["subject"] for one in report["changes"] if any(cause["kind"] == "unknown" for cause in one["causes"])]
    assert unexplained == []


def test_the_day_of_the_command_line_is_the_cause(project: Project) -> None:
    project.index.json = True
    project.index.add_wheel("delta", "1.0", upload_time="2026-03-01T10:00:00Z")
    project.index.add_wheel("delta", "2.0", upload_time="2026-09-01T10:00:00Z")
    project.spec("[delta]")
    assert project.run("solve").code == 0
    (project.folder / "pylock.before.toml").write_text(project.read(LOCK), encoding="utf-8")
    assert project.run("solve", "--exclude-newer", "2026-08-31", "--upgrade").code == 0
    found = project.run("explain", "--diff", "pylock.before.toml", LOCK)
    assert "delta 2.0 -> 1.0" in found.out
    assert "the spec, or `--exclude-newer`, says `policy.exclude-newer: 2026-08-31`" in found.out
    assert "the version before was uploaded 2026-09-01" in found.out
    assert "unknown" not in found.out
