"""`provision explain --html`: the page of a lock, from the lock, its spec, the matrix and the evidence beside it alone."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.evidence.statement import write_evidence
from provisioner.lock.format.file import read_lock
from provisioner.render import render
from tests.project import LOCK, changed
from tests.unit.browse.test_validation_page import Page
from tests.unit.evidence.reports import report

if TYPE_CHECKING:
    from tests.project import Project

EXAMPLE = Path(__file__).parents[2] / "dockerfiles/cuda11-t4"


@pytest.fixture(autouse=True)
def locked(project: Project) -> None:
    """A project that is solved, and whose index is gone from then on."""
    assert project.run("solve").code == 0
    project.index.status = 500
    project.index.requests.clear()


def page_of(project: Project, *words: str, code: int = 0) -> Page:
    outcome = project.run("explain", *words, "--html", "page.html")
    assert (outcome.code, outcome.out, outcome.err) == (code, "", "wrote page.html\n")
    return Page((project.folder / "page.html").read_text(encoding="utf-8"))


def test_a_lock_is_explained_without_an_index_and_the_spec_stands_for_its_lock(project: Project) -> None:
    found = page_of(project)
    first = (project.folder / "page.html").read_bytes()
    assert "linux/amd64: runs on linux/amd64, on the CPU alone" in found.texts
    assert "you require alpha  (provision.yaml:6)" in found.texts
    assert not project.index.requests
    page_of(project, LOCK)
    assert (project.folder / "page.html").read_bytes() == first
    printed = project.run("explain", str(project.folder / LOCK), "--html", "-")
    assert (printed.code, printed.err) == (0, "")
    assert printed.out == project.read("page.html")


def test_nothing_of_this_machine_and_no_time_is_on_the_page(project: Project) -> None:
    page_of(project, str(project.folder / LOCK))
    text = (project.folder / "page.html").read_text(encoding="utf-8")
    assert str(project.folder) not in text
    other = project.folder / "elsewhere"
    other.mkdir()
    for name in ("provision.yaml", LOCK):
        shutil.copy(project.folder / name, other)
    page_of(project, str(other / LOCK))
    assert (project.folder / "page.html").read_text(encoding="utf-8") == text


def test_a_lock_that_is_no_answer_any_more_is_told_as_recorded_and_is_a_no(project: Project) -> None:
    project.write(changed('requires: {python: "==3.11"}'))
    found = page_of(project, code=1)
    assert "This lock is no answer any more to provision.yaml, or was changed." in found.texts
    assert [text for text in found.texts if text.startswith("What follows is what the lock recorded when it was solved.")]
    assert "Not taken" not in found.texts


def test_a_lock_without_its_spec_is_unverified(project: Project) -> None:
    (project.folder / "provision.yaml").unlink()
    found = page_of(project, LOCK)
    assert "Not everything that decides whether this lock runs is known." in found.texts
    assert "you require python ==3.12" in found.texts


def test_the_evidence_beside_the_lock_is_shown_with_its_levels(project: Project) -> None:
    path = project.folder / LOCK
    dockerfile = render(read_lock(path), "dockerfile", lock_file_name=LOCK)
    found = replace(
        report("yes", "yes"),
        lock_sha256=f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",
        dockerfile=f"sha256:{hashlib.sha256(dockerfile.encode()).hexdigest()}",
    )
    write_evidence(project.folder / "pylock.trainer.linux-amd64.evidence.json", found)
    texts = page_of(project).texts
    assert "validated up to level 1 (build) on linux/amd64 with docker 26.1.5, 2026-11-23T14:00:00Z" in texts
    assert {"0 static", "1 build"} <= set(texts)


def test_the_changes_since_another_lock_are_on_its_page(project: Project) -> None:
    old = project.folder / "old" / "pylock.before.toml"
    old.parent.mkdir()
    shutil.copy(EXAMPLE / "pylock.cuda11-t4.toml", old)
    found = page_of(project, "--diff", str(old), LOCK)
    start = found.texts.index("Changes since pylock.before.toml")
    assert "pytorch 2.0.1+cu117 is gone" in found.texts[start:]
    page_of(project, "--diff", LOCK, LOCK)
    assert "Nothing changed." in Page((project.folder / "page.html").read_text(encoding="utf-8")).texts


def test_json_says_what_was_written(project: Project) -> None:
    outcome = project.run("explain", "--html", "page.html", "--format", "json")
    assert outcome.json == {"status": "explained", "verdict": "yes", "written": ["page.html"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--html", "-", "--format", "json"), "--html - and --format json cannot share stdout"),
        (("provision.yaml", "python", "--html", "-"), "--html explains a whole lock, and `python` is a component"),
        ((LOCK, "--html", "-", "--platform", "linux/arm64"), "lock `trainer` has no platform `linux/arm64`"),
        (("--diff", LOCK, "-", "--html", "-"), "--html explains a lock with the spec beside it, and stdin has none beside it"),
        ((LOCK,), f"`{LOCK}` is a lock, and `explain` without --html reads a spec"),
    ],
)
def test_what_cannot_be_explained_so_is_refused(project: Project, words: tuple[str, ...], message: str) -> None:
    outcome = project.run("explain", *words)
    assert (outcome.code, outcome.out if "json" not in words else "") == (2, "")
    assert f"error: {message}" in outcome.err


def test_a_spec_without_a_lock_is_told_how_to_get_one(project: Project) -> None:
    (project.folder / LOCK).unlink()
    outcome = project.run("explain", "--html", "page.html")
    assert outcome.code == 2
    assert LOCK in outcome.err
    assert "provision solve" in outcome.err


def test_what_limits_a_stack_on_an_old_driver_is_told_series_by_series(project: Project) -> None:
    texts = page_of(project, str(EXAMPLE / "pylock.cuda11-t4.toml")).texts
    assert "the host has driver 470.256.02  (provision.yaml:6)" in texts
    assert "not pytorch 2.8 to 2.14: driver 470.256.02 excludes them" in texts
    assert [text for text in texts if text.startswith("not cuda 12.0 to 12.9: driver 470.256.02 excludes them")]
