from __future__ import annotations

import pytest
from msgspec.structs import replace

from provisioner.evidence.report import FieldReport, Report, Verdict, is_stronger, masked, proven_level
from tests.unit.evidence.reports import report


@pytest.mark.parametrize(("verdict", "code"), [("yes", 0), ("no", 1), ("unverified", 3)])
def test_the_exit_code_follows_the_verdict(verdict: Verdict, code: int) -> None:
    assert report(verdict).exit_code == code


@pytest.mark.parametrize(
    ("verdicts", "idle", "proven"),
    [
        ((), (), None),
        (("yes", "yes", "yes"), (), 2),
        (("yes", "yes", "yes"), (0, 1), 2),
        (("yes", "yes", "yes"), (2,), 1),
        (("yes", "yes", "yes"), (0, 1, 2), None),
        (("yes", "unverified", "yes"), (), 0),
        (("unverified", "yes", "yes"), (), None),
        (("yes", "yes", "yes", "yes", "unverified"), (), 3),
        (("yes", "yes", "yes", "yes", "no"), (), None),
        (("yes", "yes", "yes", "yes", "yes", "no"), (), 4),
    ],
)
def test_a_level_is_proven_where_it_and_all_below_are_a_yes_and_nothing_is_a_no(
    verdicts: tuple[Verdict, ...], idle: tuple[int, ...], proven: int | None
) -> None:
    assert proven_level(report(*verdicts, idle=idle)) == proven


def test_the_facts_decide_what_is_proven_and_not_what_a_level_calls_itself() -> None:
    found = report("yes", "yes", "unverified")
    assert proven_level(replace(found, levels=report("yes", "yes", "yes").levels)) == 1
    assert proven_level(replace(found, levels=report("yes", "yes", "yes", idle=(2,)).levels)) == 1
    assert proven_level(replace(found, fields=())) is None


@pytest.mark.parametrize("levels", [report("yes", "unverified"), report("yes", "yes", idle=(1,))])
def test_a_level_that_calls_itself_no_yes_is_not_proven_by_its_facts(levels: Report) -> None:
    assert proven_level(replace(report("yes", "yes"), levels=levels.levels)) == 0


def test_a_login_in_an_address_is_in_no_fact() -> None:
    note = (
        "no answer from https://ann:secret@proxy:3128/x, nor from git+ssh://git@host/a@v1; https://host/a@v2 did, a@b.c wrote"
    )
    (found,) = masked([FieldReport(name="build", locked=note, measured=note, verdict="no", note=note)])
    expected = "no answer from https://…@proxy:3128/x, nor from git+ssh://…@host/a@v1; https://host/a@v2 did, a@b.c wrote"
    assert (found.locked, found.measured, found.note) == (expected, expected, expected)


def test_what_proves_a_higher_level_of_the_same_bytes_is_stronger() -> None:
    proof = report("yes", "yes", "yes", "yes")
    assert is_stronger(proof, report("yes", "yes", "yes"))
    assert is_stronger(proof, report("yes", "yes", "yes", "unverified"))
    assert is_stronger(proof, report("unverified"))
    assert not is_stronger(proof, report("yes", "yes", "yes", "yes"))
    assert not is_stronger(proof, report("yes", "yes", "yes", "yes", "unverified"))
    assert not is_stronger(proof, report("no"))
    assert not is_stronger(proof, report("yes", digest="c"))
    assert not is_stronger(proof, report("yes", platform="linux/arm64"))
    assert not is_stronger(report("no"), report("unverified"))
    ill = report("yes", "yes", "yes", "yes", "yes", "no")
    assert not is_stronger(proof, ill), "the machine is ill, and the lock is proven up to level 4"
    assert is_stronger(ill, report("yes"))
    assert not is_stronger(proof, replace(report("yes"), dockerfile=f"sha256:{'9' * 64}")), "`check` refuses the other by now"
    assert is_stronger(proof, replace(report("yes"), dockerfile="")), "an image that was built before"
