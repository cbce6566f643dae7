"""Counts of a component."""

from __future__ import annotations

from msgspec.structs import replace

from provisioner.browse.summary import newest_first, sources_of, summaries
from provisioner.matrix.model import Citation
from tests.small import SOURCE, build, matrix, release


def test_a_component_in_one_line() -> None:
    measured = replace(build("cu126", {}), source=("wheel",))
    made = matrix(
        ["pytorch", "python"],
        {"python": {"3.12": {}, "3.13": {}}},
        releases={
            "pytorch": [
                release("2.9.1", {}, builds=(build("cu126", {}),), end_of_life="2027-01"),
                release("2.10.0", {}, builds=(measured,), end_of_life="2026-01"),
            ]
        },
    )
    made = replace(made, citations={"invented": SOURCE, "wheel": Citation(title="a wheel", measured=True)})
    pytorch, python = summaries(made)
    assert (pytorch.releases, pytorch.builds, pytorch.newest, pytorch.end_of_life) == (2, 2, "2.10.0", "2027-01")
    assert (pytorch.rows, pytorch.measured, pytorch.share) == (3, 1, "33 %")
    assert (python.newest, python.share, python.is_virtual) == ("3.13", "0 %", False)
    assert [str(one.version) for one in newest_first(made.components["pytorch"])] == ["2.10.0", "2.9.1"]
    assert sources_of(made.components["pytorch"].releases[1]) == ("invented", "wheel")


def test_names_have_no_newest_and_keep_their_order() -> None:
    made = matrix(["driver_module"], {"driver_module": {"9": {}, "1": {}}})
    assert summaries(made)[0].newest == ""
    assert [str(one.version) for one in newest_first(made.components["driver_module"])] == ["9", "1"]


def test_a_component_without_releases() -> None:
    (only,) = summaries(matrix(["jax"], {}))
    assert (only.releases, only.newest, only.rows, only.share) == (0, "", 0, "")
