"""Evidence is of one file, byte for byte."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from provisioner.evidence.statement import evidence_path, evidence_text
from provisioner.grounds.finding import EditedEvidence, ProvenEvidence, StaleEvidence, UnreadableEvidence
from provisioner.lock.format.file import parse_lock, write_lock
from provisioner.workflow.evidence import evidence_findings
from tests.strategies import examples
from tests.unit.evidence.reports import report
from tests.unit.validate.locks import lock_of

pytestmark = pytest.mark.property

LOCK = write_lock(lock_of({"demo": "1.2"})).encode()
"""The bytes of a lock."""

TEXT = evidence_text(
    replace(report("yes", "yes", "yes"), lock_sha256=f"sha256:{hashlib.sha256(LOCK).hexdigest()}", dockerfile="")
)
"""Evidence of it."""


def judged(content: bytes, evidence: str = "") -> object:
    """What evidence of `LOCK` proves beside a lock file with this content; `evidence` is the text of another evidence file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pylock.trial.toml"
        path.write_bytes(content)
        target = evidence_path(path, "linux/amd64")
        target.write_text(evidence or TEXT, encoding="utf-8")
        (one,) = evidence_findings(parse_lock(LOCK.decode(), file=str(path)), path, 2)
        return one


@examples(300)
@given(st.integers(0, len(LOCK) - 1), st.integers(1, 255))
def test_a_change_of_any_byte_of_a_lock_makes_its_evidence_stale(place: int, change: int) -> None:
    assert isinstance(judged(LOCK), ProvenEvidence)
    changed = bytearray(LOCK)
    changed[place] ^= change
    assert isinstance(judged(bytes(changed)), StaleEvidence)


@examples(300)
@given(st.integers(0, len(LOCK) - 1), st.binary(min_size=1, max_size=3))
def test_a_byte_more_or_less_does_so_too(place: int, more: bytes) -> None:
    assert isinstance(judged(LOCK[:place] + more + LOCK[place:]), StaleEvidence)
    assert isinstance(judged(LOCK[:place] + LOCK[place + 1 :]), StaleEvidence)


@examples(300)
@given(st.integers(0, len(TEXT) - 1), st.integers(0, 400), st.text(max_size=20))
def test_garbage_in_evidence_never_proves_anything_else(place: int, length: int, instead: str) -> None:
    """Layout and unknown keys may change; what is proven then is what was proven before."""
    text = (TEXT[:place] + instead + TEXT[place + length :]).encode(errors="replace").decode()
    found = judged(LOCK, text or " ")
    if isinstance(found, ProvenEvidence):
        assert found.level == 2
    elif isinstance(found, UnreadableEvidence):
        assert found.problem
        assert found.mistakes or "evidence" in found.problem
    else:
        assert isinstance(found, EditedEvidence | StaleEvidence), found
