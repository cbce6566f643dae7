"""A lock with one semantic fault, its digest made again, is found out by `check`; what no redundancy ties is listed here.

Nothing of a wheel is beside a lock, and no index is asked: what only they know, only `check --changes` can find.
"""

from __future__ import annotations

import random
import re
import shutil
from functools import cache
from typing import TYPE_CHECKING

import pytest

from provisioner.matrix.cache import cached_matrix
from provisioner.words.finding import finding_words
from provisioner.workflow.checking import Question, check_lock
from tests.seeded_faults import LOCKS, Fault, faults, without_fault
from tests.strategies import TIMES

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.matrix.model import Matrix
    from provisioner.workflow.checking import Report

pytestmark = pytest.mark.property

ONLY_THE_INDEX_KNOWS = (
    r"(packages\[\]\.wheels\[\]|.*\.installer\.file)\.(hashes\.sha256: altered|size: .*|upload-time: .*)",
    r"tool\.provision\.platforms\[\]\.installer\.file\.hashes(\.sha256)?: exchanged",
    r"packages\[\]\.requires-python: .*",
    r"packages\[\]\.tool\.provision\.requires\[\]: altered",
    r"package with what requires it",
)
"""Hash, size and date of a file, and what its metadata says."""

ONLY_THE_REGISTRY_KNOWS = (r"digest of image",)

STATEMENTS_ON_THE_PAST = (r"tool\.provision\.(matrix-digest|spec-digest|tool-version): altered",)
"""Matrix, spec and program may all be others by now; what they decided is solved again."""

HARMLESS = (r"environments\[\]: added",)
"""The same marker twice lets in whom it let in once."""

NOT_FOUND = (*ONLY_THE_INDEX_KNOWS, *ONLY_THE_REGISTRY_KNOWS, *STATEMENTS_ON_THE_PAST, *HARMLESS)
NOT_FOUND_IN = {
    "cuda11-t4": (
        r"tool\.provision\.asked: taken out",
        r"packages\[\]\.tool\.provision\.licenses(\[\])?: .*",
    ),
    "jax-mi300x": (
        r"packages\[\]\.tool\.provision\.licenses(\[\])?: .*",
        r"packages\[\]\.tool(\.provision)?: exchanged",
        r"tool\.provision\.platforms\[\]\.apt\[\]\.reasons\[\]\.(where: (altered|exchanged)|place: .*)",
    ),
}
"""Early versions recorded no requests; a lock without them shows it where its spec asks for an extra: this one does not.
The licences of a package are what its metadata says; where a request stands changes with the layout of its spec."""
OF_PACKAGES = re.compile(r".*\.(pins\[\]\.reasons|host-reasons|assumes|relaxations)\b.*")
"""Reasons and assumptions; those of packages come from metadata, and only the package that they name is compared."""

TRIED = {"cuda11-t4": 200, "jax-mi300x": 200, "onnx-cpu": 150, "tensorflow-a100": 200}
"""The locks that faults are put into, and how many kinds there must be at least.

One is with CUDA, one with ROCm and packages of a distribution, one of two platforms, one of TensorFlow.
"""

WITH_REASONS_OF_PACKAGES = frozenset({"cuda11-t4", "jax-mi300x", "tensorflow-a100"})
"""Locks whose reasons are those of packages, in part; faults in reasons are put into the others."""


@cache
def matrix() -> Matrix:
    return cached_matrix()


def checked(path: Path, text: str) -> Report:
    path.write_text(text, encoding="utf-8")
    return check_lock(path, Question(), matrix=matrix())


def semantic(report: Report) -> list[str]:
    """What is told of the lock itself: a rendered file differs after any edit, and an image without a digest is no fault."""
    if report.error is not None:
        return [str(report.error)]
    besides = {"edited-output", "missing-output"}
    return [finding_words(one) for one in report.findings if one.code not in besides and one.verdict != "warning"]


@pytest.mark.parametrize("name", TRIED)
def test_a_semantic_fault_is_found_although_the_digest_was_made_again(name: str, tmp_path: Path) -> None:
    lock = next(path for path in LOCKS if path.parent.name == name)
    shutil.copytree(lock.parent, tmp_path, dirs_exist_ok=True)
    sound = without_fault(lock, matrix().digest)
    assert semantic(checked(tmp_path / lock.name, sound)) == []
    draw = random.Random(name)

    def is_wanted(kind: str) -> bool:
        is_left_out = name in WITH_REASONS_OF_PACKAGES and OF_PACKAGES.fullmatch(kind)
        return not is_left_out and (TIMES >= 1 or draw.random() < TIMES)

    seeded: list[Fault] = list(faults(sound, is_wanted))
    missed = {fault.kind: fault.path for fault in seeded if not semantic(checked(tmp_path / lock.name, fault.text))}
    excused = re.compile("|".join((*NOT_FOUND, *NOT_FOUND_IN.get(name, ()))))
    assert {kind: path for kind, path in missed.items() if not excused.fullmatch(kind)} == {}
    found = [fault.kind for fault in seeded if excused.fullmatch(fault.kind) and fault.kind not in missed]
    assert found == [], "what is found need not be excused"
    assert len(seeded) >= TRIED[name] * min(TIMES, 1) / 2


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_a_lock_without_fault_has_none(lock: Path, tmp_path: Path) -> None:
    shutil.copytree(lock.parent, tmp_path, dirs_exist_ok=True)
    assert semantic(checked(tmp_path / lock.name, without_fault(lock, matrix().digest))) == []
