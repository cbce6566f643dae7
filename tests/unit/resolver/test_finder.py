"""The package half: markers of the target, extras, companions of the framework, versions that cannot be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.index.markers import marker_environment
from provisioner.index.metadata.core_metadata import unusable
from provisioner.index.model import Environment, IndexFile, PackageRelease
from provisioner.matrix.model import Distribution, DistributionLimit, ImpliedNeed, Matrix, Release
from provisioner.resolver.explain.conflict import described, explain_conflict
from provisioner.resolver.outcome.unverified import doubts
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import PACKAGE, PYTORCH, Key
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide, pins_or_proof
from provisioner.versions import Version
from provisioner.words.conflict import conflict_lines
from provisioner.words.doubt import doubt_words
from tests import small
from tests.extras_named import applicable, extras_named
from tests.told import changes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.utils import NormalizedName

Table = dict[str, dict[str, list[str] | str]]

ENVIRONMENT = Environment(platform="linux/amd64", python="3.11", glibc=(2, 36))


class Shelf:
    """A package source held in memory: name and version -> Requires-Dist, or why it cannot be installed."""

    def __init__(
        self, table: dict[str, dict[str, list[str] | str]], variants: dict[str, dict[str, list[str]]] | None = None
    ) -> None:
        self._table = table
        self._variants = variants or {}
        self.asked: list[str] = []

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        self.asked.append(f"{name}@{index}" if index else name)
        table: dict[str, list[str] | str] = (
            dict(self._variants.get(f"{name}@{index}", {})) if index else self._table.get(name, {})
        )
        found = []
        for version, content in table.items():
            filename = f"{name}-{version}-py3-none-any.whl"
            file = IndexFile(filename=filename, url=f"https://files.test/{filename}", index=index or "pypi", sha256="0" * 64)
            blocked, is_only_sdist = isinstance(content, str), content == "only a source distribution"
            found.append(
                PackageRelease.of(
                    name=name,
                    version_text=version,
                    file=None if blocked else file,
                    why_not=content if isinstance(content, str) else "",
                    blocked_by="python" if blocked and not is_only_sdist else "",
                    allowance="sdist" if is_only_sdist else "",
                )
            )
        return tuple(sorted(found, key=lambda release: release.version, reverse=True))

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        return applicable(self._declared(release), extras)

    def _declared(self, release: PackageRelease) -> list[Requirement]:
        assert release.file is not None
        where = release.file.index
        table = self._table[release.name] if where == "pypi" else self._variants[f"{release.name}@{where}"]
        return [Requirement(text) for text in table[str(release.version)]]

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        return extras_named(self._declared(release))

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        del names, follows


def matrix_with_variant() -> tuple[Release, ...]:
    builds = (
        small.build("cu121", {"python": ["3.11"]}, default=True),
        small.build("cu118", {"python": ["3.11"]}, index="pytorch-cu118", local="cu118", sass=("sm_70", "sm_75")),
    )
    newer = (small.build("cu124", {"python": ["3.11"]}, default=True, sass=("sm_80",)),)
    return (
        Release(version=Version.parse("2.4.0"), builds=newer, source=("invented",)),
        Release(version=Version.parse("2.1.0"), builds=builds, source=("invented",)),
    )


DISTRIBUTIONS = (
    Distribution(name="torchvision", compiled_against="pytorch", served_by="variant-index"),
    Distribution(name="kernels", compiled_against="pytorch", versions=">=2"),
    Distribution(
        name="audio",
        implies=(ImpliedNeed(versions="==3.*", require=small.needs({"pytorch": ">=2.4"}), because="it calls new functions"),),
    ),
)
LIMIT = DistributionLimit(
    name="numpy-1",
    when=small.need("pytorch", "<2.3"),
    allow={"numpy": "<2"},
    because="compiled against NumPy 1",
)


def matrix_with_facts() -> Matrix:
    matrix = small.matrix(
        ("pytorch", "python", "gpu"),
        {"python": {"3.11": {}}, "gpu": {"7.0": {}, "7.5": {}, "8.0": {}}},
        releases={"pytorch": matrix_with_variant()},
    )
    return replace(matrix, distributions=DISTRIBUTIONS, limits=(LIMIT,))


def instance(shelf: Shelf, packages: list[str], *gpus: str, variant: str = "", pytorch: str = "") -> ProblemInstance:
    host = {"gpus": [{"compute_capability": gpu} for gpu in gpus], "container_toolkit": "1.17.4"} if gpus else {}
    requires = {"pytorch": pytorch} if pytorch else {}
    problem = join(matrix_with_facts(), small.request(requires, host, packages=packages))
    return ProblemInstance(problem, PackageFinder(problem, shelf, ENVIRONMENT, variant))


def shown(found: ProblemInstance) -> dict[str, str] | None:
    """What is chosen of distributions and the framework; a limit's own key is no distribution."""
    pins = decide(found)
    if pins is None:
        return None
    return {k.name: p.label for k, p in pins.items() if (k.is_package or k == PYTORCH) and not k.name.startswith("limit ")}


def solve(shelf: Shelf, packages: list[str], *gpus: str, variant: str = "") -> dict[str, str] | None:
    return shown(instance(shelf, packages, *gpus, variant=variant))


def test_markers_are_those_of_the_target_not_of_this_machine() -> None:
    markers = marker_environment(Environment(platform="linux/arm64", python="3.13", glibc=(2, 36)))
    assert (markers["platform_machine"], markers["python_version"], markers["sys_platform"]) == ("aarch64", "3.13", "linux")
    assert marker_environment(Environment(platform="macos/x86_64", python="3.11"))["sys_platform"] == "darwin"


def test_extras_bring_their_requirements_and_the_same_version_of_the_distribution() -> None:
    shelf = Shelf({
        "web": {"2": ["core"], "1": ["core", "fast>=1; extra == 'speed'", "gone; python_version < '3'"]},
        "core": {"1": []},
        "fast": {"1": ["web<2"]},
    })  # fmt: skip
    assert solve(shelf, ["web[speed]<2"]) == {"web[speed]": "1", "web": "1", "core": "1", "fast": "1"}


def test_a_package_constrains_the_framework_and_the_framework_brings_its_own_packages() -> None:
    shelf = Shelf({"model": {"1": ["torch==2.1.0"]}, "torch": {"2.1.0": ["sympy"]}, "sympy": {"1.14": []}})
    assert solve(shelf, ["model"], "7.0") == {
        "model": "1",
        "pytorch": "2.1.0+cu121",
        "torch": "2.1.0+cu121",
        "sympy": "1.14",
    }


def test_a_companion_from_the_default_index_does_not_go_with_a_variant_build() -> None:
    shelf = Shelf(
        {"torchvision": {"0.16.0": ["torch==2.1.0"]}, "torch": {"2.1.0": []}},
        {"torch@pytorch-cu118": {"2.1.0+cu118": []}, "torchvision@pytorch-cu118": {"0.16.0+cu118": ["torch==2.1.0"]}},
    )
    assert solve(shelf, ["torchvision"], "7.5", variant="pytorch-cu118") == {
        "torchvision": "0.16.0+cu118",
        "pytorch": "2.1.0+cu118",
        "torch": "2.1.0+cu118",
    }


def test_a_version_without_a_usable_file_is_passed_over() -> None:
    shelf = Shelf({"tool": {"2": "no wheel for cp311 on linux/amd64", "1": []}})
    assert solve(shelf, ["tool"]) == {"tool": "1"}
    assert solve(shelf, ["tool>=2"]) is None


def test_the_index_is_not_asked_for_a_build_the_matrix_refuses() -> None:
    shelf = Shelf({"torch": {"2.1.0": []}})
    assert solve(shelf, ["torch==2.1.0"], "8.0") is None
    assert not any(name.startswith("torch") for name in shelf.asked)


def test_keys_of_packages_are_normalized() -> None:
    shelf = Shelf({"my-tool": {"1": ["My.Tool_Core"]}, "my-tool-core": {"1": []}})
    assert solve(shelf, ["My_Tool"]) == {"my-tool": "1", "my-tool-core": "1"}
    assert Key(canonicalize_name("My_Tool"), PACKAGE).is_package


NUMPY: Table = {"numpy": {"2.5.5": [], "2.0.0": [], "1.26.4": []}, "torch": {"2.1.0": [], "2.4.0": []}}


def test_a_limit_leaves_a_distribution_alone_where_the_framework_is_not() -> None:
    assert solve(Shelf(NUMPY), ["numpy"]) == {"numpy": "2.5.5"}


def test_a_limit_holds_beside_a_framework_the_spec_requires() -> None:
    expected = {"numpy": "1.26.4", "pytorch": "2.1.0+cu121", "torch": "2.1.0+cu121"}
    assert shown(instance(Shelf(NUMPY), ["numpy"], pytorch="==2.1.0")) == expected
    assert shown(instance(Shelf(NUMPY), ["numpy", "torch==2.1.0"])) == expected


def test_a_limit_holds_beside_a_framework_that_only_a_package_brings() -> None:
    """Nothing in the spec names PyTorch, and no distribution requires both."""
    shelf = Shelf({**NUMPY, "trainer": {"1": ["torch"]}, "frames": {"1": ["numpy"]}})
    old = {"trainer": "1", "frames": "1", "numpy": "1.26.4", "pytorch": "2.1.0+cu121", "torch": "2.1.0+cu121"}
    assert solve(shelf, ["trainer", "frames"], "7.0") == old
    assert solve(shelf, ["trainer", "frames"], "8.0") == {
        **old,
        "numpy": "2.5.5",
        "pytorch": "2.4.0+cu124",
        "torch": "2.4.0+cu124",
    }
    assert solve(shelf, ["trainer"], "7.0") == {"trainer": "1", "pytorch": "2.1.0+cu121", "torch": "2.1.0+cu121"}


def test_a_release_outside_the_limit_is_chosen_where_the_distribution_asks_for_it() -> None:
    assert shown(instance(Shelf(NUMPY), ["numpy>=2"], pytorch=">=2.1")) == {
        "numpy": "2.5.5",
        "pytorch": "2.4.0+cu124",
        "torch": "2.4.0+cu124",
    }


def test_a_limit_is_one_line_of_a_conflict_with_a_way_out_on_either_side() -> None:
    conflict = explain_conflict(instance(Shelf(NUMPY), ["numpy>=2"], pytorch="==2.1.0"))
    assert [(member.kind, member.component) for member in conflict.members] == [
        ("request", "pytorch"),
        ("request", "numpy"),
        ("rule", "numpy"),
    ]
    assert conflict_lines(conflict)[-2:] == (
        "numpy 2.0.0 and 2.5.5 need pytorch outside <2.3: compiled against NumPy 1  (limit numpy-1, the matrix)",
        "so no pytorch ==2.1.0 is left that goes with numpy>=2",
    )
    assert {changes(hint) for hint in conflict.fixes} == {(("pytorch", "==2.4.0+cu124"),), (("numpy", "==1.26.4"),)}


def test_a_limit_between_packages_names_both_sides() -> None:
    shelf = Shelf({**NUMPY, "trainer": {"1": ["torch==2.1.0"]}})
    conflict = explain_conflict(instance(shelf, ["trainer", "numpy>=2"]))
    assert conflict_lines(conflict) == (
        "you require numpy>=2  (the spec)",
        "you require trainer  (the spec)",
        "trainer 1 needs torch==2.1.0  (metadata of trainer 1)",
        "numpy 2.0.0 and 2.5.5 need pytorch outside <2.3: compiled against NumPy 1  (limit numpy-1, the matrix)",
        "pytorch 2.1.0+cu118 and 2.1.0+cu121 need numpy <2: compiled against NumPy 1  (limit numpy-1, the matrix)",
        "pytorch 2.1.0+cu118 and 2.1.0+cu121 are installed from their wheel  (index pytorch-cu118 and 1 more)",
        "so no numpy>=2 is left that goes with trainer",
    )
    assert [changes(hint) for hint in conflict.fixes] == [(("numpy", "==1.26.4"),), (("trainer", "left out"),)]


def test_a_limit_asks_an_index_only_for_distributions() -> None:
    shelf = Shelf({**NUMPY, "trainer": {"1": ["torch", "numpy"]}})
    solve(shelf, ["trainer"], "7.0")
    assert not [name for name in shelf.asked if name.startswith("limit")]


GUARDED = replace(LIMIT, on=small.needs({"kernel": "<6"}))


def guarded(package: str, *hosts: dict[str, str]) -> tuple[str, ...]:
    """What is unverified of PyTorch 2.1 and NumPy on hosts of which only kernels older than 6 are limited."""
    matrix = replace(matrix_with_facts(), limits=(GUARDED,))
    stated = {"gpus": [{"compute_capability": "7.0"}], "container_toolkit": "1.17.4"}
    problem = join(matrix, small.request({"pytorch": "==2.1.0"}, *({**stated, **host} for host in hosts), packages=[package]))
    found = ProblemInstance(problem, PackageFinder(problem, Shelf(NUMPY), ENVIRONMENT))
    pins = decide(found)
    assert pins is not None
    return tuple(doubt_words(one) for one in doubts(found, pins, {}))


def test_a_limit_that_turns_on_an_unstated_fact_is_named_where_the_chosen_version_is_outside_it() -> None:
    said = "kernel: host1 does not state it, so whether limit numpy-1 holds is unknown: compiled against NumPy 1"
    way = "state `kernel` in its profile (`provision inspect` writes one)"
    assert guarded("numpy", {"kernel": "6.8"}, {}) == (f"{said}; {way}",)


def test_a_limit_that_is_decided_or_kept_leaves_nothing_open() -> None:
    assert guarded("numpy", {"kernel": "6.8"}) == ()
    assert guarded("numpy", {"kernel": "5.15"}) == ()
    assert guarded("numpy<2", {}) == ()


def test_what_metadata_omits_is_required_of_the_versions_it_is_about() -> None:
    shelf = Shelf({**NUMPY, "audio": {"3.1": [], "2.0": []}})
    assert solve(shelf, ["audio"], "8.0") == {"audio": "3.1", "pytorch": "2.4.0+cu124", "torch": "2.4.0+cu124"}
    assert solve(shelf, ["audio<3"], "8.0") == {"audio": "2.0"}
    assert solve(shelf, ["audio"], "7.5") == {"audio": "2.0"}
    lines = conflict_lines(explain_conflict(instance(shelf, ["audio>=3"], "7.5")))
    assert "audio 3.1 needs pytorch >=2.4: it calls new functions  (the matrix)" in lines


def test_only_the_versions_compiled_against_a_build_are_bound_to_it() -> None:
    tables: Table = {"kernels": {"2": ["torch"], "1": ["torch"]}, "torch": {"2.1.0": []}}
    shelf = Shelf(tables, {"torch@pytorch-cu118": {"2.1.0+cu118": []}})
    found = instance(shelf, ["kernels"], "7.5", variant="pytorch-cu118", pytorch="==2.1.0+cu118")
    assert shown(found) == {"kernels": "1", "pytorch": "2.1.0+cu118", "torch": "2.1.0+cu118"}


TORCHES = {"2.1.0+cu121": "2.1.0", "2.1.0+cu118": "2.1.0", "2.4.0+cu124": "2.4.0"}


def outcomes(trainer: str, frames: str, pytorch: str) -> list[tuple[str, str]]:
    """By hand: every pair of a framework build and a NumPy ("" for neither) that the three requirements and the limit allow."""
    torches = list(TORCHES) if trainer or pytorch else [""]
    numpies = ["2.5.5", "2.0.0", "1.26.4"] if frames else [""]
    return [
        (torch, numpy)
        for torch in torches
        for numpy in numpies
        if not torch
        or all(SpecifierSet(one.partition("torch")[2]).contains(TORCHES[torch]) for one in (trainer, f"torch{pytorch}") if one)
        if not numpy or SpecifierSet(frames.partition("numpy")[2]).contains(numpy)
        if not (torch and numpy and TORCHES[torch] == "2.1.0" and numpy != "1.26.4")
    ]


@pytest.mark.parametrize("trainer", ["", "torch", "torch<2.3", "torch>=2.3"])
@pytest.mark.parametrize("frames", ["", "numpy", "numpy>=2", "numpy<2"])
@pytest.mark.parametrize("pytorch", ["", "==2.1.0", ">=2.1"])
def test_a_limit_allows_what_an_enumeration_allows_and_nothing_else(trainer: str, frames: str, pytorch: str) -> None:
    tables: Table = {
        **NUMPY,
        "trainer": {"1": [trainer] if trainer else []},
        "frames": {"1": [frames] if frames else []},
    }
    shelf = Shelf(tables, {"torch@pytorch-cu118": {"2.1.0+cu118": []}})
    found = shown(instance(shelf, ["frames", "trainer"], pytorch=pytorch))
    allowed = outcomes(trainer, frames, pytorch)
    chosen = (found.get("pytorch", ""), found.get("numpy", "")) if found else None
    assert (chosen in allowed) if allowed else (chosen is None)


def test_a_requirement_by_url_is_not_met_by_a_namesake_on_the_index() -> None:
    shelf = Shelf({"tool": {"2": ["core @ https://files.test/core.whl"], "1": ["core"]}, "core": {"1": []}})
    assert solve(shelf, ["tool"]) == {"tool": "1", "core": "1"}
    assert solve(shelf, ["tool>=2"]) is None


def test_what_is_wrong_with_the_metadata_of_many_versions_is_said_once() -> None:
    """As of celery 4.4.0 … 4.4.7, which all ask for `pytz (>dev)`: the files' names would keep the versions apart."""

    class Broken(Shelf):
        def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
            del extras
            assert release.file is not None
            raise unusable(release.file.filename, "cannot be used: `pytz (>dev)` is not a requirement that PEP 508 allows")

    problem = join(small.matrix(("python",), {"python": {"3.11": {}}}), small.request({"python": "3.11"}, packages=["celery"]))
    shelf = Broken({"celery": {"4.4.7": [], "4.4.6": [], "4.4.5": []}})
    found = ProblemInstance(problem, PackageFinder(problem, shelf, ENVIRONMENT))
    assert conflict_lines(explain_conflict(found)) == (
        "you require celery  (the spec)",
        "celery 4.4.5 … 4.4.7: cannot be used: `pytz (>dev)` is not a requirement that PEP 508 allows  (the package index)",
        "so no celery is left",
    )


def test_what_has_no_file_is_found_before_anything_is_read_of_what_was_named_first() -> None:
    """As of sagemaker, of which there once were source distributions alone, behind boto3, awscli and s3fs: a thousand files."""

    class Shut(Shelf):
        def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
            raise AssertionError(f"{release.name} {release.version} was read with {extras}")

    request = small.request({"python": "3.11"}, packages=["alpha", "beta", "gone>=2"])
    problem = join(small.matrix(("python",), {"python": {"3.11": {}}}), request)
    shelf = Shut({"alpha": {"2": [], "1": []}, "beta": {"1": []}, "gone": {"3": "too new", "2": "too new", "1": []}})
    found = ProblemInstance(problem, PackageFinder(problem, shelf, ENVIRONMENT))
    search = pins_or_proof(found)
    assert isinstance(search, CompleteSearch)
    assert conflict_lines(described(found, search, search.minimal())) == (
        "you require gone>=2  (the spec)",
        "gone 2 and 3: too new  (the package index)",
        "so no gone>=2 is left",
    )
    search.close()
