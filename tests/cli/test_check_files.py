"""`provision check --files`: two wheels of a lock that write the same file are a no, whatever the matrix knows of them."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.built_artefacts import serve, zipped
from tests.built_files import metadata_text
from tests.project import LOCK

if TYPE_CHECKING:
    from tests.project import Project


def offer(project: Project, name: str, **members: bytes) -> None:
    """Offer version 1 of a distribution with these members, named by their path with `__` for a slash."""
    stem = f"{name}-1"
    content = {path.replace("__", "/") + ".py": text for path, text in members.items()}
    content[f"{stem}.dist-info/METADATA"] = metadata_text(name, "1").encode()
    rows = [f"{path},sha256={_hash(text)},{len(text)}\n" for path, text in content.items()]
    content[f"{stem}.dist-info/RECORD"] = "".join(rows).encode()
    serve(project.index, f"{stem}-py3-none-any.whl", zipped(content))


def _hash(text: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")


@pytest.fixture
def solved(project: Project) -> Project:
    offer(project, "left", shared__module=b"left", shared__same=b"same")
    offer(project, "right", shared__module=b"right", shared__same=b"same")
    project.spec("[left, right]")
    assert project.run("solve").code == 0
    return project


def test_two_wheels_that_write_one_file_are_a_no(solved: Project) -> None:
    outcome = solved.run("check", "--files")
    words = "left 1 and right 1 both write shared/module.py, each its own"
    assert (outcome.code, outcome.out) == (1, f"{LOCK}: no\n  no: {words}  [shared-file]\n")


def test_nothing_is_read_unless_it_is_asked_for(solved: Project) -> None:
    solved.index.requests.clear()
    assert solved.run("check").code == 0
    assert not solved.index.requests


def test_records_that_were_read_are_kept(solved: Project) -> None:
    first = solved.run("check", "--files")
    solved.index.requests.clear()
    again = solved.run("check", "--files", "--offline")
    assert (again.out, again.code) == (first.out, 1)
    assert not solved.index.requests


def test_what_was_not_read_is_unverified_offline(project: Project) -> None:
    offer(project, "left", left=b"never read")
    offer(project, "right", right=b"never read either")
    project.spec("[left, right]")
    assert project.run("solve").code == 0
    outcome = project.run("check", "--files", "--offline")
    told = [
        f"  unverified: what is in {name} could not be read: offline: the RECORD of `{name}-1-py3-none-any.whl` was not read "
        "before; run once without --offline  [unread-wheel]\n"
        for name in ("left", "right")
    ]
    assert (outcome.code, outcome.out) == (3, f"{LOCK}: unverified\n{''.join(told)}")


def test_wheels_with_files_of_their_own_are_a_yes(project: Project) -> None:
    offer(project, "left", left=b"left")
    offer(project, "right", right=b"right")
    project.spec("[left, right]")
    assert project.run("solve").code == 0
    outcome = project.run("check", "--files")
    assert (outcome.code, outcome.out) == (0, f"{LOCK}: yes\n")
