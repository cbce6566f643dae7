"""Every command that asks an index, beside one that fails in every way: it cannot tell (3), soon, and leaves no half files."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.loopback_index import LoopbackIndex
    from tests.project import Project

SECONDS = 60
"""What an answer may take; on a quiet machine it is a second, for a server that falls silent the timeout and its retries."""

LOGIN_PAGE = b"<!DOCTYPE html>\n<html><body><form action='/login'><input name='password'></form></body></html>\n"

COMMANDS = {
    "solve": ("solve",),
    "solve --upgrade": ("solve", "--upgrade"),
    "explain": ("explain",),
    "check --changes": ("check", "--changes"),
    "check --files": ("check", "--files"),
    "fetch": ("fetch", LOCK, "--to", "house"),
}


def answers(status: int) -> Callable[[LoopbackIndex], None]:
    def fail(index: LoopbackIndex) -> None:
        index.status = status

    return fail


def shows_a_login(index: LoopbackIndex) -> None:
    """Every address has the page of a gateway, as in a hotel."""
    for path in ("/simple/alpha/", "/simple/uv/", *index.files, *(f"{path}.metadata" for path in index.files)):
        index.serve(path, LOGIN_PAGE)


def falls_silent(index: LoopbackIndex) -> None:
    index.delay = 120


def has_other_bytes(index: LoopbackIndex) -> None:
    """The pages are as they were, and what they list is not."""
    for path, served in index.files.items():
        index.serve(path, served.content[:-1] + b"x", content_type="application/octet-stream")
        index.serve(f"{path}.metadata", b"Metadata-Version: 2.1\nName: other\nVersion: 0\n", content_type="text/plain")


def breaks_off(index: LoopbackIndex) -> None:
    """Half of every file."""
    for path, served in index.files.items():
        index.serve(path, served.content[: len(served.content) // 2], content_type="application/octet-stream")


FAULTS: dict[str, Callable[[LoopbackIndex], None]] = {
    **{str(status): answers(status) for status in (401, 403, 407, 429, 500, 503)},
    "a login page": shows_a_login,
    "silence": falls_silent,
    "other bytes": has_other_bytes,
    "half a body": breaks_off,
}

READS_PAGES_OR_METADATA = {
    *((command, "half a body") for command in ("solve", "solve --upgrade", "explain", "check --changes")),
    ("check --files", "other bytes"),
}
"""What asks for pages, metadata or the end of a file alone does not notice what else is wrong with it."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_cannot_tell_and_leaves_the_files_as_they_were(
    project: Project, command: str, fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_TIMEOUT", "1")
    monkeypatch.setenv("PIP_KEYRING_PROVIDER", "disabled")
    assert project.run("solve").code == 0
    monkeypatch.setenv("PROVISION_CACHE_DIR", str(tmp_path_factory.mktemp("empty")))
    FAULTS[fault](project.index)
    before = project.files()
    began = time.monotonic()
    outcome = project.run(*COMMANDS[command])
    if (command, fault) in READS_PAGES_OR_METADATA:
        assert outcome.code == 0, outcome
        return
    has_other_content = fault in {"other bytes", "half a body"} or (command, fault) == ("fetch", "a login page")
    assert outcome.code in ({1, 3} if has_other_content else {3}), outcome  # a file of another hash is a no
    assert "Traceback" not in outcome.err
    assert time.monotonic() - began < SECONDS
    after = {name: content for name, content in project.files().items() if name != "house/SHA256SUMS"}  # of what is whole
    assert after == before
