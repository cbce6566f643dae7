"""What is looked at again after a search that went back: versions that are old for no reason, and versions that never work."""

from __future__ import annotations

from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import PACKAGE, Candidate, Key
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.provider import SearchReporter, search
from provisioner.resolver.search.resolve import decide, take_newer_versions
from tests import small
from tests.file_shelf import LINUX, FileShelf, Metadata, wheel


def instance(versions: dict[str, int], metadata: Metadata, *packages: str) -> ProblemInstance:
    matrix = small.matrix(("python",), {"python": {LINUX.python: {}}}, virtual=())
    request = small.request({"python": LINUX.python}, accelerator="cpu", packages=packages, runs="host")
    problem = join(matrix, request)
    files = {name: [wheel(name, str(number)) for number in range(1, count + 1)] for name, count in versions.items()}
    return ProblemInstance(problem, PackageFinder(problem, FileShelf(files, metadata, LINUX, ()), LINUX))


def labels(pins: dict[Key, Candidate] | None) -> dict[str, str]:
    assert pins is not None
    return {key.name: one.label for key, one in pins.items() if key.is_package}


CIRCLE: Metadata = {"demo 2": ("other==1",), "other 1": ("demo<2",), "demo 1": ("other",), "other 2": ("demo",)}
"""demo 2 leads to other 1, which rules demo 2 out; with demo 1 nobody needs the old `other` any longer."""


def test_a_version_that_only_a_choice_taken_back_asked_for_is_made_newer() -> None:
    subject = instance({"demo": 2, "other": 2}, CIRCLE, "demo")
    pins = search(subject)
    assert pins is not None
    assert labels(pins) == {"demo": "1", "other": "1"}
    assert labels(take_newer_versions(subject, pins)) == {"demo": "1", "other": "2"}
    assert labels(decide(instance({"demo": 2, "other": 2}, CIRCLE, "demo"))) == {"demo": "1", "other": "2"}


def test_a_newer_version_that_asks_for_something_else_is_left() -> None:
    metadata = {**CIRCLE, "other 2": ("third",)}
    subject = instance({"demo": 2, "other": 2, "third": 1}, metadata, "demo")
    pins = dict(search(subject) or {})
    assert labels(take_newer_versions(subject, pins)) == {"demo": "1", "other": "1"}


def test_extras_move_with_their_distribution() -> None:
    metadata = {**CIRCLE, "demo 1": ("other[x]",), "demo 2": ("other[x]==1",)}
    subject = instance({"demo": 2, "other": 2}, metadata, "demo")
    pins = search(subject)
    assert pins is not None
    assert labels(take_newer_versions(subject, pins)) == {"demo": "1", "other": "2", "other[x]": "2"}


def test_a_version_that_others_do_not_allow_is_not_read() -> None:
    """Reading is a request: versions beyond a pin must cost none."""
    read: list[str] = []

    class Noted(dict[str, tuple[str, ...]]):
        def get(self, key: str, default: object = None) -> tuple[str, ...]:
            read.append(key)
            return super().get(key, default)  # type: ignore[arg-type]

    subject = instance({"demo": 3}, Noted({"demo 3": ("demo",)}), "demo<2")
    pins = search(subject)
    assert pins is not None
    assert labels(take_newer_versions(subject, pins)) == {"demo": "1"}
    assert set(read) == {"demo 1"}


def test_an_extra_that_only_the_older_version_asks_of_itself_is_not_in_the_way() -> None:
    """`other[y]` of the newer version needs what nobody has, and nobody asks for it any more."""
    metadata = {
        **CIRCLE,
        "demo 1": ("other[x]",),
        "demo 2": ("other[x]==1",),
        "other 1": ("demo<2", "other[y]; extra == 'x'"),
        "other 2": ("demo", "third; extra == 'y'"),
    }
    subject = instance({"demo": 2, "other": 2, "third": 1}, metadata, "demo")
    pins = search(subject)
    assert pins is not None
    assert labels(pins) == {"demo": "1", "other": "1", "other[x]": "1", "other[y]": "1"}
    assert labels(take_newer_versions(subject, pins)) == {"demo": "1", "other": "2", "other[x]": "2"}


def test_a_version_that_can_never_work_does_not_make_the_search_try_everybody_else() -> None:
    """Seen with langchain 1.5, which led to a langchain-core that asked for a certifi of the next day.

    Everybody needs certifi: thirty versions of each of them were tried before the one that could not work.
    """
    many = ("beta", "gamma", "delta")
    metadata: Metadata = {
        "chain 2": ("core>=2",),
        "core 2": ("certifi>=9",),
        "core 3": ("certifi>=9",),
        "core 1": ("certifi",),
        "chain 1": ("core",),
        "chain 3": ("core>=2",),
        **{f"{name} {number}": ("certifi", "core") for name in many for number in range(1, 31)},
    }
    # In the order of the spec the chain is pinned first, and its core, which nobody named, last.
    subject = instance({"chain": 3, "core": 3, "certifi": 5, **dict.fromkeys(many, 30)}, metadata, "chain", *many)

    class Counted(SearchReporter):
        tried = 0

        def pinning(self, candidate: Candidate) -> None:
            self.tried += 1
            super().pinning(candidate)

    reporter = Counted()
    pins = search(subject, reporter)
    assert labels(pins) == {"chain": "1", "core": "1", "certifi": "5", **dict.fromkeys(many, "30")}
    assert reporter.tried < 40
    assert reporter.has_backtracked
    assert pins is not None
    assert pins[Key("chain", PACKAGE)].label == "1"
