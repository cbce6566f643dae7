"""What is told of newer series, and what is read for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.errors import UnavailableError
from provisioner.index.metadata.core_metadata import UnusableMetadataError
from provisioner.resolver.joint import choose
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import PACKAGE, PYTORCH, Key, build_of
from provisioner.resolver.search.resolve import decide
from provisioner.resolver.series import every_newer_series, newer_series
from provisioner.words.notation import listed
from provisioner.words.series import newer_series_words
from tests import small
from tests.file_shelf import LINUX, FileShelf, wheel
from tests.unit.resolver.test_finder import Shelf, instance

if TYPE_CHECKING:
    from packaging.requirements import Requirement as Pep508

    from provisioner.index.model import Environment, PackageRelease, PackageSource


def test_of_each_series_nothing_but_the_newest_release_is_read() -> None:
    read: set[str] = set()

    class Noted(dict[str, tuple[str, ...]]):
        def get(self, key: str, default: object = None) -> tuple[str, ...]:
            read.add(key)
            return super().get(key, default)  # type: ignore[arg-type]

    matrix = small.matrix(("python",), {"python": {LINUX.python: {}}}, virtual=())
    request = small.request({"python": LINUX.python}, accelerator="cpu", packages=("demo<1.1",), runs="host")
    problem = join(matrix, request)
    versions = ("1.0.0", "1.1.0", "1.1.1", "1.2.0", "1.2.1", "1.2.2", "2.0")
    files = {"demo": [wheel("demo", one) for one in versions]}
    metadata = Noted(dict.fromkeys((f"demo {one}" for one in versions), ("none",)) | {"demo 1.0.0": ()})

    def source_for(environment: Environment) -> PackageSource:
        return FileShelf(files, metadata, environment, ())

    chosen = choose(problem, source_for)
    assert read == {"demo 1.0.0"}
    candidates = chosen[0].candidates(Key("demo", PACKAGE))
    newer = [one for one in candidates if one.label != "1.0.0"]
    (told,) = newer_series(problem, chosen, newer, source_for=source_for)
    assert told.releases == ("2.0", "1.2.2", "1.1.1")
    assert read == {"demo 1.0.0", "demo 1.1.1", "demo 1.2.2", "demo 2.0"}


@pytest.mark.parametrize(
    ("spec", "core"),
    [
        ("demo<2", {"1": "py3-none-any", "2": "cp39-cp39-manylinux_2_28_x86_64"}),
        ("demo<2", {"1": "py3-none-any"}),
        ("demo", {"1": "py3-none-any", "2": "py3-none-any"}),
    ],
    ids=("of-another-python", "no-such-version", "unusable-metadata"),
)
def test_a_newer_series_is_out_because_what_it_needs_has_no_file_that_can_be_used(spec: str, core: dict[str, str]) -> None:
    class Damaged(FileShelf):
        def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Pep508, ...]:
            if str(release.version) == "2" and release.name == "core":
                raise UnusableMetadataError("its metadata is damaged")
            return super().requirements(release, extras)

    matrix = small.matrix(("python",), {"python": {LINUX.python: {}}}, virtual=())
    problem = join(matrix, small.request({"python": LINUX.python}, accelerator="cpu", packages=(spec,), runs="host"))
    files = {"demo": [wheel("demo", "1"), wheel("demo", "2")], "core": [wheel("core", *one) for one in core.items()]}

    def source_for(environment: Environment) -> PackageSource:
        return Damaged(files, {"demo 1": (), "demo 2": ("core>=2",), "core 1": ()}, environment, ())

    chosen = choose(problem, source_for)
    newer = [one for one in chosen[0].candidates(Key("demo", PACKAGE)) if one.label != "1"]
    (told,) = newer_series(problem, chosen, newer, source_for=source_for)
    assert newer_series_words(told, "demo", "1") == (
        f"not demo 2: demo 2 needs core>=2, and nothing that can be used with python {LINUX.python} meets that"
        "  (metadata of demo 2)"
    )


def test_builds_of_an_index_out_of_reach_are_told_and_count_for_nothing_else() -> None:
    """Nothing else keeps the newer release out, so that it is told as one that may do."""
    subject = instance(Shelf({"torch": {"2.4.0": [], "2.1.0": []}}), ["torch"], pytorch="<2.2")
    pins = decide(subject)
    assert pins is not None
    assert subject.finder is not None
    newer = [one for one in subject.candidates(PYTORCH) if one.age > pins[PYTORCH].age]
    reached = every_newer_series(subject.problem, (subject, pins), newer, source_for=None)
    assert [one.unreached for one in reached] == [()]
    lost = {build.index for one in newer if (build := build_of(one)) is not None}
    subject.finder.variant_indexes.unreached.update(dict.fromkeys(lost, UnavailableError("no route")))
    (told,) = newer_series(subject.problem, (subject, pins), newer, source_for=None)
    assert (told.unreached, told.conflict, told.excluded_by) == (tuple(sorted(lost)), None, None)
    assert newer_series_words(told, "pytorch", "2.1.0") == (
        f"pytorch 2.4.0: there may be builds of {listed(sorted(lost))}, which {'is' if len(lost) == 1 else 'are'} out of reach"
    )
