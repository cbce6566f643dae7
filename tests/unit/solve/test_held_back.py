"""A framework that a package holds back is named with that package; what the host or the spec bounds is not."""

from __future__ import annotations

from provisioner.solve.held_back import held_back
from provisioner.solve.resolve import decide
from provisioner.solve.stack import HeldBack
from tests.unit.solve.test_packages import Shelf, universe


def found(shelf: Shelf, packages: list[str], *gpus: str, pytorch: str = "") -> list[HeldBack]:
    world = universe(shelf, packages, *gpus, pytorch=pytorch)
    pins = decide(world)
    assert pins is not None
    return list(held_back(world, pins))


WHEELS: dict[str, dict[str, list[str] | str]] = {
    "torch": {"2.4.0": [], "2.1.0": []},
    "serving": {"1": ["torch<2.2", "kernel"]},
    "kernel": {"1": ["torch==2.1.0"]},
    "free": {"1": ["torch"]},
}


def test_the_package_that_the_spec_names_is_named_first_and_others_are_counted() -> None:
    text = "pytorch 2.1.0 rather than 2.4.0: serving 1 needs torch<2.2, and 1 more like it"
    where = "metadata of serving 1"
    assert found(Shelf(WHEELS), ["serving"]) == [
        HeldBack(component="pytorch", chosen="2.1.0", newest="2.4.0", text=text, where=where)
    ]


def test_the_newest_is_held_back_by_nothing() -> None:
    assert found(Shelf(WHEELS), ["free"], "8.0") == []


def test_what_the_spec_asks_for_is_not_held_back() -> None:
    assert found(Shelf(WHEELS), ["serving"], pytorch="<2.2") == []


def test_a_release_that_the_gpu_does_not_run_would_not_be_had_anyway() -> None:
    shelf = Shelf(WHEELS, {"torch@pytorch-cu118": {"2.1.0+cu118": []}})
    assert found(shelf, ["serving"], "7.5") == []
