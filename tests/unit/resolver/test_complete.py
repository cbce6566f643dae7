"""The complete search: the optimum however far down it lies, and what is refuted without reading an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from provisioner.errors import UnavailableError
from provisioner.grounds.requirement import SpecLine
from provisioner.index.model import Environment, IndexFile, PackageRelease
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import PACKAGE, Key
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from tests import small
from tests.extras_named import applicable, extras_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from packaging.utils import NormalizedName

import pytest

NEWEST = 40
ALPHA, BETA = Key("alpha", PACKAGE), Key("beta", PACKAGE)


class Shelf:
    """A package source held in memory, which remembers whose requirements were read."""

    def __init__(self, table: Mapping[str, Mapping[int, tuple[str, ...]]]) -> None:
        self._table = table
        self.read: list[str] = []

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        del index
        numbers = sorted(self._table.get(name, {}), reverse=True)
        return tuple(
            PackageRelease.of(
                name=name,
                version_text=str(number),
                file=IndexFile(filename=f"{name}-{number}-py3-none-any.whl", url=f"https://files.test/{name}", index="pypi"),
            )
            for number in numbers
        )

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        self.read.append(f"{release.name} {release.version}")
        return applicable(self._declared(release), extras)

    def _declared(self, release: PackageRelease) -> list[Requirement]:
        return [Requirement(text) for text in self._table[release.name][int(str(release.version))]]

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        return extras_named(self._declared(release))

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        del names, follows


def made(shelf: Shelf, *packages: str, python: str = "3.11") -> ProblemInstance:
    matrix = small.matrix(("python",), {"python": {"3.12": {}, "3.11": {}}})
    problem = join(matrix, small.request({"python": python}, packages=packages))
    return ProblemInstance(
        problem, PackageFinder(problem, shelf, Environment(platform="linux/amd64", python="3.11", glibc=(2, 36)))
    )


def limited(limit: int) -> dict[str, dict[int, tuple[str, ...]]]:
    """Versions of alpha that need the beta of their own number; beta ends at `limit`."""
    return {
        "alpha": {number: (f"beta=={number}",) for number in range(1, NEWEST + 1)},
        "beta": dict.fromkeys(range(1, limit + 1), ()),
    }


@pytest.fixture
def searches() -> Iterator[list[CompleteSearch]]:
    """Searches to close."""
    opened: list[CompleteSearch] = []
    yield opened
    for one in opened:
        one.close()


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 20, 39, 40])
def test_the_optimum_is_found_however_far_down_it_lies(limit: int, searches: list[CompleteSearch]) -> None:
    search = CompleteSearch(made(Shelf(limited(limit)), "alpha"))
    searches.append(search)
    pins = search.best()
    assert pins is not None
    assert {key.name: pin.label for key, pin in pins.items() if key.is_package} == {"alpha": str(limit), "beta": str(limit)}


def test_one_of_some_candidates_is_chosen_or_none_of_them_can_be(searches: list[CompleteSearch]) -> None:
    instance = made(Shelf(limited(5)), "alpha")
    search = CompleteSearch(instance)
    searches.append(search)
    candidates = instance.candidates(ALPHA)
    assert search.find(among=[candidates[:35]]) is None
    found = search.find(among=[candidates[33:37]])
    assert found is not None
    assert found[ALPHA] in candidates[35:37]


def test_refuting_reads_nothing_of_the_index_and_says_no_only_when_that_is_sure(searches: list[CompleteSearch]) -> None:
    shelf = Shelf(limited(5))
    instance = made(shelf, "alpha>10")
    search = CompleteSearch(instance)
    searches.append(search)
    assert not search.refutes()
    assert shelf.read == []
    assert search.find() is None
    read = len(shelf.read)
    assert search.refutes()
    assert search.refutes(given=(instance.candidates(ALPHA)[0],))
    assert not search.refutes(without={SpecLine("packages", "alpha")}, present=(ALPHA,))
    assert len(shelf.read) == read


def test_a_key_nobody_requires_is_chosen_when_it_must_be_present(searches: list[CompleteSearch]) -> None:
    search = CompleteSearch(made(Shelf(limited(3)), "alpha<2"))
    searches.append(search)
    pins = search.best(without={SpecLine("packages", "alpha")}, present=(BETA,))
    assert pins is not None
    assert pins[BETA].label == "3"
    assert ALPHA not in pins


def test_a_key_is_decided_once_something_requires_it_as_the_engine_does() -> None:
    """An image comes before the CUDA that only it brings, although CUDA stands before images in the order."""
    table: dict[str, dict[str, dict[str, list[str]]]] = {
        "cuda": {"2": {}, "1": {}},
        "picture": {"2": {"cuda": ["1"]}, "1": {"cuda": ["2"]}},
    }
    instance = ProblemInstance(
        join(small.matrix(("cuda", "picture"), table, virtual=()), small.request({"picture": ">=1"}, accelerator="cuda"))
    )
    search = CompleteSearch(instance)
    found = search.best()
    search.close()
    assert found is not None
    assert found == decide(instance)
    assert {key.name: found[key].label for key in found if key.name in table} == {"picture": "2", "cuda": "1"}


def test_what_an_index_did_not_say_is_asked_again_and_never_taken_for_nothing(searches: list[CompleteSearch]) -> None:
    """A version of which the metadata could not be read would otherwise go with everything from then on."""

    class Halting(Shelf):
        is_open = False

        def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
            if not self.is_open and release.name == "beta":
                raise UnavailableError("no route")
            return super().requirements(release, extras)

    shelf = Halting({"alpha": {1: ("beta",)}, "beta": {1: ("gamma",)}, "gamma": {1: ("alpha<1",)}})
    search = CompleteSearch(made(shelf, "alpha"))
    searches.append(search)
    with pytest.raises(UnavailableError):
        search.find()
    shelf.is_open = True
    assert search.find() is None


def test_what_versions_need_that_named_ones_exclude_is_not_read(searches: list[CompleteSearch]) -> None:
    """Of `alpha` and `beta` each needs an older one of the other, down to the first; each version needs another `leaf`."""
    table = {
        name: {n: (f"{other}<{n}" if n > 1 else other, f"{name}-leaf=={n}") for n in range(1, 21)}
        for name, other in (("alpha", "beta"), ("beta", "alpha"))
    }
    leaves: dict[str, dict[int, tuple[str, ...]]] = {f"{name}-leaf": dict.fromkeys(range(1, 21), ()) for name in table}
    shelf = Shelf({**table, **leaves})
    search = CompleteSearch(made(shelf, "alpha", "beta"))
    searches.append(search)
    assert search.find() is not None
    assert len([one for one in shelf.read if "-leaf" in one]) == 2


def test_what_requires_a_distribution_is_decided_before_it(searches: list[CompleteSearch]) -> None:
    """No zebra goes with a newer hub: with the zebra decided that is plain, otherwise every zebra would be read to tell."""
    zebras = dict.fromkeys(range(1, NEWEST + 1), ("hub<2",))
    shelf = Shelf({"alpha": {1: ("hub", "zebra")}, "hub": dict.fromkeys((1, 2, 3), ()), "zebra": zebras})
    searches.append(CompleteSearch(made(shelf, "alpha")))
    pins = searches[-1].best()
    assert pins is not None
    chosen = {key.name: pin.label for key, pin in pins.items() if key.is_package}
    assert chosen == {"alpha": "1", "hub": "1", "zebra": str(NEWEST)}
    assert len([one for one in shelf.read if one.startswith("zebra")]) < NEWEST / 2
