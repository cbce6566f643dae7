"""A framework that a package holds back is named with that package; what the host or the spec bounds is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.cli.stack_words import stack_rows
from provisioner.errors import UnavailableError
from provisioner.resolver.joint import solve_joint
from provisioner.resolver.outcome.held_back import held_back
from provisioner.resolver.requirement import PYTORCH, build_of
from provisioner.resolver.search.resolve import decide
from provisioner.words.choice import held_back_words
from provisioner.words.notation import source_words
from tests.unit.resolver.test_finder import Shelf, instance

if TYPE_CHECKING:
    from provisioner.grounds.choice import HeldBack


def found(shelf: Shelf, packages: list[str], *gpus: str, pytorch: str = "") -> list[HeldBack]:
    subject = instance(shelf, packages, *gpus, pytorch=pytorch)
    pins = decide(subject)
    assert pins is not None
    return list(held_back(subject, pins))


WHEELS: dict[str, dict[str, list[str] | str]] = {
    "torch": {"2.4.0": [], "2.1.0": []},
    "serving": {"1": ["torch<2.2", "kernel"]},
    "kernel": {"1": ["torch==2.1.0"]},
    "free": {"1": ["torch"]},
}


def test_the_package_that_the_spec_names_is_named_first_and_others_are_counted() -> None:
    text = "pytorch 2.1.0 rather than 2.4.0: serving 1 needs torch<2.2, and 1 more like it"
    where = "metadata of serving 1"
    (one,) = found(Shelf(WHEELS), ["serving"])
    assert (one.component, one.chosen, one.newest, held_back_words(one)) == ("pytorch", "2.1.0", "2.4.0", text)
    assert source_words(one.by.source) == where


def test_the_newest_is_held_back_by_nothing() -> None:
    assert found(Shelf(WHEELS), ["free"], "8.0") == []


def test_what_the_spec_asks_for_is_not_held_back() -> None:
    assert found(Shelf(WHEELS), ["serving"], pytorch="<2.2") == []


def test_a_release_that_the_gpu_does_not_run_would_not_be_had_anyway() -> None:
    shelf = Shelf(WHEELS, {"torch@pytorch-cu118": {"2.1.0+cu118": []}})
    assert found(shelf, ["serving"], "7.5") == []


def test_what_an_index_out_of_reach_may_have_is_no_packages_doing() -> None:
    subject = instance(Shelf(WHEELS), ["serving"])
    pins = decide(subject)
    assert pins is not None
    assert subject.finder is not None
    assert list(held_back(subject, pins)), "2.4.0 would do, were it not for the package"
    newest = (build.index for one in subject.candidates(PYTORCH) if (build := build_of(one)) and one.label.startswith("2.4"))
    subject.finder.variant_indexes.unreached.update(dict.fromkeys(newest, UnavailableError("no route")))
    assert list(held_back(subject, pins)) == []


def test_the_package_that_holds_a_framework_back_is_its_reason() -> None:
    """The first requirement on it is `torch` alone, which explains nothing."""
    wheels: dict[str, dict[str, list[str] | str]] = {**WHEELS, "any": {"1": ["torch"]}}
    subject = instance(Shelf(wheels), ["any", "serving"])
    rows = {name: because for name, _, because in stack_rows(solve_joint(subject.problem, lambda _: Shelf(wheels)))}
    assert rows["pytorch"] == "serving 1 needs torch<2.2  (metadata of serving 1)"


def test_a_companion_that_moves_along_holds_nothing_back() -> None:
    """Both stay where an earlier lock has them: the older torchvision is as little the reason as the older torch."""
    wheels: dict[str, dict[str, list[str] | str]] = {**WHEELS, "vision": {"2": ["torch==2.4.0"], "1": ["torch==2.1.0"]}}
    asked, free = instance(Shelf(wheels), ["vision==1"]), instance(Shelf(wheels), ["vision"])
    pins = decide(asked)
    assert pins is not None
    assert [held_back_words(one) for one in held_back(asked, pins)] == [
        "pytorch 2.1.0 rather than 2.4.0: vision 1 needs torch==2.1.0"
    ]
    assert list(held_back(free, pins)) == []


FILES: dict[str, dict[str, list[str] | str]] = {
    "config": {"2": ["parser==4.*"], "1": ["parser"]},
    "parser": {"5": [], "4": "only a source distribution"},
    "free": {"1": ["config"]},
}


def test_a_package_of_the_spec_is_held_back_by_what_has_no_file() -> None:
    (one,) = found(Shelf(FILES), ["config"])
    assert (one.component, one.chosen, one.newest) == ("config", "1", "2")
    assert held_back_words(one).startswith("config 1 rather than 2: config 2 needs parser==4.*")
    assert source_words(one.by.source) == "metadata of config 2"


DEEP: dict[str, dict[str, list[str] | str]] = {
    "serving": {"3": ["metrics>=2"], "2": ["metrics>=2"], "1": []},
    "metrics": {"2.1": ["sketch"], "2": ["sketch"], "1": []},
    "sketch": {"1": ["parser==4.*"]},
    "parser": {"5": [], "4": "only a source distribution"},
}


def test_a_package_of_the_spec_is_held_back_by_what_has_no_file_though_others_need_it() -> None:
    (one,) = found(Shelf(DEEP), ["serving"])
    assert (one.component, one.chosen, one.newest) == ("serving", "1", "3")
    assert held_back_words(one) == "serving 1 rather than 3: serving 3 needs metrics>=2; sketch 1 needs parser==4.*"


def test_what_has_files_for_other_pythons_alone_is_told_with_the_python() -> None:
    (one,) = found(Shelf({**DEEP, "parser": {"5": [], "4": "no wheel for cp311 on linux/amd64 (has cp312)"}}), ["serving"])
    words = "serving 1 rather than 3: serving 3 needs metrics>=2; sketch 1 needs parser==4.*, which has no file for python 3.11"
    assert held_back_words(one) == words


def test_a_package_is_not_held_back_by_a_version_beside_which_there_is_another() -> None:
    metrics: dict[str, list[str] | str] = {**DEEP["metrics"], "2.2": ["other<2"]}
    others: dict[str, dict[str, list[str] | str]] = {"other": {"2": [], "1": []}, "user": {"1": ["other>=2"]}}
    assert found(Shelf({**DEEP, **others, "metrics": metrics}), ["serving", "user"]) == []


def test_a_package_that_nobody_named_or_that_the_spec_bounds_is_not_told() -> None:
    assert found(Shelf(FILES), ["free"]) == []
    assert found(Shelf(FILES), ["config<2"]) == []
    assert found(Shelf({**FILES, "parser": {"5": [], "4": []}}), ["config"]) == []


def test_a_package_of_the_spec_is_held_back_by_what_was_chosen_before_it() -> None:
    wheels: dict[str, dict[str, list[str] | str]] = {
        "first": {"2": ["shared>=2"]},
        "second": {"2": ["shared<2"], "1": []},
        "shared": {"2": [], "1": []},
    }
    (one,) = found(Shelf(wheels), ["first", "second"])
    assert held_back_words(one) == "second 1 rather than 2: second 2 needs shared<2"
    assert found(Shelf(wheels), ["first", "second", "shared>=2"]) == [], "the spec excludes what it needs"
    (one,) = found(Shelf(wheels), ["first", "second[more]"])
    assert held_back_words(one) == "second[more] 1 rather than 2: second 2 needs shared<2"


def test_a_package_of_the_spec_whose_newest_version_has_no_file_is_told() -> None:
    (one,) = found(Shelf({"parser": {"5": "only a source distribution", "4": []}}), ["parser"])
    assert held_back_words(one) == "parser 4 rather than 5: parser 5: only a source distribution"


def test_a_framework_is_held_back_by_what_its_own_wheel_needs() -> None:
    wheels: dict[str, dict[str, list[str] | str]] = {
        "data": {"2": ["link>=2"]},
        "link": {"2": [], "1": []},
        "torch": {"2.4.0": ["link==1"], "2.1.0": []},
    }
    (one,) = found(Shelf(wheels), ["data", "torch"])
    words = "pytorch 2.1.0 rather than 2.4.0: pytorch 2.4.0+cu124 needs link==1; data 2 needs link>=2"
    assert held_back_words(one) == words


def test_a_package_of_the_spec_that_falls_back_to_a_version_without_a_framework_is_told() -> None:
    wheels: dict[str, dict[str, list[str] | str]] = {
        "tuning": {"3": ["left", "right", "torch>=2.1"], "2": ["left", "right", "torch"], "1": []},
        "left": {"1": ["shared<2"]},
        "right": {"1": ["shared>=2"]},
        "shared": {"2": [], "1": []},
        "torch": {"2.4.0": [], "2.1.0": []},
    }
    (one,) = found(Shelf(wheels), ["tuning"])
    assert held_back_words(one) == "tuning 1 rather than 3: tuning 3 needs torch>=2.1"
