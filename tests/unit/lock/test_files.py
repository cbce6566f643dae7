"""What an index says today of locked files: every way in which a promise can be broken, and none where it was kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.grounds.finding import ExchangedFile, FileDrift, Solve, VanishedFile
from provisioner.grounds.requirement import Subject
from provisioner.lock.check.files import drift_findings, file_drifts
from provisioner.words.finding import drift_words, finding_hints
from tests.lock_examples import DATEUTIL, SIX, cpu_stack, lock_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from provisioner.index.model import IndexFile

NAME = "six-1.17.0-py2.py3-none-any.whl"


def asked(*files: IndexFile, asks: list[tuple[str, str, tuple[str, ...]]] | None = None) -> tuple[FileDrift, ...]:
    """The differences where the index lists these files, and what it was asked."""

    def named(name: str, index: str, filenames: Collection[str]) -> tuple[IndexFile, ...]:
        if asks is not None:
            asks.append((name, index, tuple(filenames)))
        return tuple(file for file in files if file.filename in filenames)

    return tuple(file_drifts(lock_of(cpu_stack()), named))


def test_what_is_offered_as_it_was_locked_is_not_told() -> None:
    asks: list[tuple[str, str, tuple[str, ...]]] = []
    assert asked(SIX, DATEUTIL, asks=asks) == ()
    assert asks == [("python-dateutil", "pypi", (DATEUTIL.filename,)), ("six", "pypi", (NAME,))]


@pytest.mark.parametrize(
    ("today", "kind", "text"),
    [
        (None, "vanished", f"`{NAME}` of six 1.17.0 is no longer listed by index pypi"),
        (
            replace(SIX, sha256="0" * 64),
            "exchanged",
            f"`{NAME}` of six 1.17.0 has another sha256 on index pypi than in the lock: {'0' * 64}, the lock has {SIX.sha256}",
        ),
        (replace(SIX, yanked=""), "yanked", "six 1.17.0 is yanked, with no reason given"),
        (replace(SIX, yanked="broken"), "yanked", "six 1.17.0 is yanked: broken"),
        (
            replace(SIX, upload_time="2025-01-01T00:00:00Z"),
            "redated",
            (
                f"`{NAME}` of six 1.17.0 was uploaded 2025-01-01T00:00:00+00:00 by its index, "
                "the lock says 2024-12-04T17:35:26.475808+00:00"
            ),
        ),
    ],
)
def test_what_is_otherwise_is_told(today: IndexFile | None, kind: str, text: str) -> None:
    found = asked(DATEUTIL, *([today] if today else []))
    assert [(one.kind, one.package, one.filename, one.index, drift_words(one)) for one in found] == [
        (kind, Subject("six", "1.17.0"), NAME, "pypi", text)
    ]


@pytest.mark.parametrize(
    "today",
    [
        replace(SIX, sha256=""),
        replace(SIX, sha256=SIX.sha256.upper()),
        replace(SIX, upload_time=None),
        replace(SIX, upload_time="2024-12-04T17:35:26Z"),
        replace(SIX, url="https://mirror.example/six.whl", size=None),
    ],
    ids=["no hash", "upper case", "no time", "without fractions", "another place"],
)
def test_what_an_index_leaves_out_or_spells_otherwise_is_no_difference(today: IndexFile) -> None:
    assert asked(DATEUTIL, today) == ()


def test_only_what_makes_a_lock_useless_is_a_finding() -> None:
    found = asked(replace(SIX, sha256="0" * 64, yanked="broken", upload_time="2025-01-01T00:00:00Z"))
    assert [drift.kind for drift in found] == ["vanished", "exchanged", "yanked", "redated"]
    findings = list(drift_findings(found))
    assert findings == [VanishedFile(drift=found[0]), ExchangedFile(drift=found[1])]
    assert [(one.code, one.verdict, one.command) for one in findings] == [
        ("vanished-file", "no", Solve()),
        ("exchanged-file", "no", None),
    ]
    assert [finding_hints(one) for one in findings] == [
        ("`provision solve` locks what is offered today",),
        ("do not install it before somebody has said why: an index must never change a file under its name",),
    ]
