"""Rows as plain data: what nobody stated is left out, a measured "none" is not."""

from __future__ import annotations

from msgspec.structs import replace

from provisioner.browse.rows import build_data, citations_of, driver_data, needs_data, release_data
from provisioner.matrix.model import DriverMinimum
from provisioner.places import Place
from provisioner.versions import Version
from tests.small import build, matrix, need, release


def test_a_measured_empty_list_is_a_statement() -> None:
    measured = build_data(build("cu121", {}, sass=(), ptx=("compute_90",)))
    assert (measured["sass"], measured["ptx"]) == ([], ["compute_90"])
    assert "sass" not in build_data(build("cu121", {}, sass=None))


def test_a_release_states_what_is_stated() -> None:
    made = matrix(["cuda"], {}, releases={"cuda": [release("12.1.0", {"python": ">=3.9"}, released="2023-04")]})
    made = replace(made, positions={"cuda==12.1.0": Place("matrices/cuda.yaml", 7)})
    assert release_data(made, made.components["cuda"], made.components["cuda"].releases[0]) == {
        "component": "cuda",
        "version": "12.1.0",
        "released": "2023-04",
        "needs": {"python": ">=3.9"},
        "sources": ("invented",),
        "place": "matrices/cuda.yaml:7",
    }


def test_two_needs_of_one_component_are_both_told() -> None:
    assert needs_data((need("cuda", ">=11"), need("cuda", "<13"))) == {"cuda": ">=11,<13"}


def test_the_three_minimums_are_kept_apart() -> None:
    minimum = DriverMinimum(toolkit=Version.parse("530.30.02"), minor_version=None, forward_compat=("470",))
    assert driver_data(minimum) == {"toolkit": "530.30.02", "forward_compat": ("470",)}
    assert driver_data(None) is None


def test_sources_of_nested_rows_are_found_once() -> None:
    made = matrix(["cuda"], {})
    rows = [{"sources": ("invented",), "builds": ({"sources": ("invented", "unknown")},)}]
    assert list(citations_of(made, rows)) == ["invented"]
    assert citations_of(made, rows)["invented"] == {
        "title": "an invented table",
        "where": "row 1",
        "read": "2026-01-01",
        "measured": False,
    }
