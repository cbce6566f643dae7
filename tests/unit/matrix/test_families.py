"""Families of rows: of which releases a row speaks, and about which it is silent."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from provisioner.matrix.families import Coverage, Families
from provisioner.matrix.model import Family, Matrix
from provisioner.versions import Range
from tests import small

TORCH = (
    small.release("2.1", {}, builds=(small.build("cu121", {"cuda": "==12.1.*"}), small.build("cu118", {}, sass=None))),
    small.release("2.0", {}, builds=(small.build("cu118", {"cuda": "==11.8.*"}, sass=None),)),
)
DRIVERS = {"580.20": {}, "580.10": {"kernel": "<6.15"}, "580.05": {"kernel": ">=3.10"}, "570.10": {}}
RULES = (
    small.rule("rocm-6-gpus", {"rocm": ">=6"}, {"gpu": ["gfx942"]}),
    small.rule("driver-580.10-gpus", {"driver": "==580.10"}, {"gpu": ">=7.5"}),
    small.rule("drivers-need-a-kernel", {"driver": "*"}, {"kernel": ">=3.10"}),
)


def matrix(*families: Family) -> Matrix:
    made = small.matrix(
        ("pytorch", "cuda", "rocm", "driver", "kernel", "gpu"),
        {"cuda": {"12.1": {}, "11.8": {}}, "rocm": {"7.0": {}, "6.0": {}, "5.0": {}, "4.0": {}}, "driver": DRIVERS},
        rules=RULES,
        releases={"pytorch": TORCH},
        families=families,
    )
    driver = replace(made.components["driver"], series=1)
    return replace(made, components={**made.components, "driver": driver})


def family(subject: str, target: str, **more: Any) -> Family:  # noqa: ANN401 - any field of a family
    return Family(subject=subject, object=target, because="it is so", **more)


def coverage(*families: Family) -> dict[tuple[str, str], Coverage]:
    return {(one.subject, one.object): one for one in Families(matrix(*families)).coverage()}


def test_a_rule_speaks_of_the_releases_in_its_range() -> None:
    found = coverage(family("rocm", "gpu"))["rocm", "gpu"]
    assert (found.releases, found.silent) == (4, ("5.0", "4.0"))


def test_a_family_is_about_the_releases_that_it_names() -> None:
    found = coverage(family("rocm", "gpu", releases=Range.parse(">=5")))["rocm", "gpu"]
    assert (found.releases, found.silent) == (3, ("5.0",))


def test_a_build_whose_targets_nobody_measured_is_silent_beside_one_that_was() -> None:
    assert coverage(family("pytorch", "gpu"))["pytorch", "gpu"].silent == ("2.1+cu118", "2.0")


def test_families_that_the_matrix_does_not_name_are_derived_from_the_rows() -> None:
    found = coverage()
    assert found["pytorch", "cuda"].silent == ("2.1+cu118",)
    assert found["driver", "kernel"].silent == ()
    assert all(one.family is None for one in found.values())


def test_a_ceiling_is_that_of_the_nearest_older_release_of_the_series() -> None:
    assert coverage(family("driver", "kernel", is_ceiling=True))["driver", "kernel"].silent == ("580.05", "570.10")


def test_a_row_of_a_family_by_series_speaks_of_the_whole_series() -> None:
    assert coverage(family("driver", "gpu"))["driver", "gpu"].silent == ("580.20", "580.05", "570.10")
    assert coverage(family("driver", "gpu", is_by_series=True))["driver", "gpu"].silent == ("570.10",)


def test_a_family_of_an_accelerator_is_not_about_builds_for_another() -> None:
    only_rocm = family("pytorch", "gpu", on=small.needs({"accelerator": "rocm"}))
    assert coverage(only_rocm)["pytorch", "gpu"].silent == ()
