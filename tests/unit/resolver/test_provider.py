"""What the engine's questions cost: what was asked often is known, and what is known changes no answer."""

from __future__ import annotations

import gc
import random

import pytest
from packaging.specifiers import SpecifierSet
from resolvelib.resolvers import Resolution

from provisioner.grounds.requirement import Supposes
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import PACKAGE, PYTORCH, Key, Matching, Requirement
from provisioner.resolver.search import provider
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.provider import SearchReporter, search
from tests import small
from tests.file_shelf import LINUX, FileShelf, Metadata, wheel
from tests.package_trials import Entry, Trial, Wanted, instance_of, random_trial

TOOL = Key("tool", PACKAGE)
SPELLINGS = ("2.0", "2.0.0", "2", "2.0RC1", "2.0rc1", "1!1.0", "2.0+local", "3", "nothing")


def instance(versions: dict[str, tuple[str, ...]], metadata: Metadata, *packages: str) -> ProblemInstance:
    matrix = small.matrix(("python",), {"python": {LINUX.python: {}}}, virtual=())
    problem = join(matrix, small.request({"python": LINUX.python}, accelerator="cpu", packages=packages, runs="host"))
    files = {name: [wheel(name, version) for version in listed] for name, listed in versions.items()}
    return ProblemInstance(problem, PackageFinder(problem, FileShelf(files, metadata, LINUX, ()), LINUX))


def test_a_version_is_found_by_its_spelling_as_packaging_compares_it() -> None:
    subject = instance({"tool": ("1!1.0", "2.0", "2.0rc1", "2.0+local", "1.9")}, {}, "tool")
    for text in SPELLINGS:
        test = Matching(SpecifierSet(f"==={text}"))
        found = subject.allowed(Requirement(TOOL, test, Supposes()))
        assert found == {one for one in subject.candidates(TOOL) if test.allows(one)}, text


def test_an_extra_of_an_old_version_is_found_among_hundreds() -> None:
    """Each version of `tool[x]` requires its own of `tool`."""
    versions = tuple(str(number) for number in range(300))
    metadata: Metadata = {f"tool {version}": ("helper<0",) for version in versions[5:]}
    pins = search(instance({"tool": versions, "helper": ("1",)}, metadata, "tool[x]"))
    assert pins is not None
    assert pins[TOOL].label == "4"


@pytest.mark.parametrize("wanted", ["tool[x]", "tool>400"])
def test_what_the_engine_kept_of_every_round_is_let_go_of_with_it(wanted: str) -> None:
    """It keeps all pins of every round, tens of megabytes, and garbage is hardly ever looked for."""
    subject = instance({"tool": ("1", "2"), "helper": ("1",)}, {"tool 2": ("helper<0",)}, wanted)
    gc.collect()
    gc.disable()
    try:
        search(subject)
        assert [one for one in gc.get_objects() if isinstance(one, Resolution)] == []
    finally:
        gc.enable()


@pytest.mark.parametrize("seed", range(60))
def test_what_is_known_at_once_is_what_would_be_asked_one_by_one(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    trial = random_trial(random.Random(seed), names=5, versions=5, limits=1, constraints=1)
    answers = []
    for often in (0, 10**9):
        monkeypatch.setattr(provider, "CACHE_THRESHOLD", often)
        reporter = SearchReporter()
        pins = search(instance_of(trial), reporter)
        answers.append((None if pins is None else {key: one.label for key, one in pins.items()}, reporter.rounds))
    assert answers[0] == answers[1]


def test_the_engine_gives_up_after_the_conflicts_that_it_may_have() -> None:
    metadata: Metadata = {"app 1": ("shared>=2",), "tool 2": ("between",), "between 1": ("shared<2",)}
    versions = {"app": ("1",), "tool": ("1", "2"), "between": ("1",), "shared": ("1", "2")}
    pins = search(instance(versions, metadata, "app", "tool"), SearchReporter(most_conflicts=1))
    assert pins is not None
    assert pins[TOOL].label == "1"
    assert search(instance(versions, metadata, "app", "tool"), SearchReporter(most_conflicts=0)) is None


def test_what_cannot_stand_beside_any_version_of_its_requirement_goes_without_a_try_of_all_else() -> None:
    """Every version of `web` contradicts what `app` itself needs of `base`; that `other` needs it, too, does not matter."""
    many = tuple(str(number) for number in range(1, 40))
    metadata: Metadata = {f"web {version}": ("base>=2",) for version in many}
    metadata |= {f"other {version}": ("base",) for version in many}
    metadata |= {f"app {version}": ("base<2", "other", "web") for version in many[1:]} | {"app 1": ("other", "web")}
    reporter = SearchReporter()
    pins = search(instance({"app": many, "other": many, "web": many, "base": ("1", "2")}, metadata, "app"), reporter)
    assert pins is not None
    assert {key.name: pin.label for key, pin in pins.items() if key.is_package} == {
        "app": "1",
        "other": "39",
        "web": "39",
        "base": "2",
    }
    assert reporter.rounds < 20


def test_a_build_of_a_framework_for_another_driver_is_never_pinned() -> None:
    """The matrix alone tells that none of its CUDA runs there, and nothing has to be taken back for it."""
    trial = Trial(
        packages={},
        wheels={(1, "cu1"): Entry(), (2, "cu1"): Entry()},
        builds={(1, "cu1"): (1,), (2, "cu1"): (2,)},
        cuda={1: (1,), 2: (2,)},
        drivers=2,
        driver=1,
        roots=(Wanted(name="torch"),),
        pytorch=None,
    )
    reporter = SearchReporter()
    pins = search(instance_of(trial), reporter)
    assert pins is not None
    assert pins[PYTORCH].label == "1+cu1"
    assert not reporter.has_backtracked
