"""Pre-releases that the metadata of distributions names, where no final version will do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.specifiers import SpecifierSet

from provisioner.index.client import PackageIndex
from provisioner.index.model import EXPLICIT_ONLY, Environment
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from provisioner.resolver.python.discovered import names_prerelease
from provisioner.words.conflict import conflict_lines
from provisioner.words.relaxation import relaxation_words
from tests import small
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.resolver.stack import Stack

MATRIX = small.matrix(("python",), {"python": {"3.12": {}}}, virtual=())


@pytest.fixture
def index() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as served:
        yield served


def solved(index: LoopbackIndex, folder: Path, *packages: str, **spec: object) -> Stack:
    settings = IndexSettings(
        indexes=(IndexLocation(name="pypi", url=index.url),), cache_directory=folder / "cache", fresh_seconds=0
    )
    request = small.request({"python": "==3.12"}, packages=packages, accelerator="cpu", runs="host", **spec)  # type: ignore[arg-type]
    return solve_joint(join(MATRIX, request), lambda environment: PackageIndex(settings, environment))


def chosen(index: LoopbackIndex, folder: Path, *packages: str) -> dict[str, str]:
    return {one.name: one.version for one in solved(index, folder, *packages).packages}


@pytest.mark.parametrize(
    ("specifier", "wanted"),
    [
        (">=2.0a1", True),
        ("==2.0rc1", True),
        ("===2.0.dev3", True),
        ("~=2.0b1", True),
        (">2.0a1", True),
        (">=1,<3.0.dev0", False),
        ("<=2.0b1", False),
        ("!=2.0a1", False),
        (">=2", False),
        ("", False),
    ],
)
def test_a_requirement_asks_for_prereleases_by_a_lower_bound_or_a_pin(specifier: str, *, wanted: bool) -> None:
    assert names_prerelease(SpecifierSet(specifier)) is wanted


@pytest.mark.parametrize(
    ("versions", "needs", "wanted"),
    [
        ("1.0 2.0a1 2.0a2", ">=2.0a1", "2.0a2"),
        ("1.0 2.0a1 2.0a2", "==2.0a1", "2.0a1"),
        ("1.0 2.0a1 2.0 2.1a1", ">=2.0a1", "2.0"),
        ("1.0 2.0a1 2.0 2.1a1", "<2.0,>=2.0a1", None),
        ("1.0 2.0a1", ">=1.5", None),
        ("1.0 2.0a1", ">1.0,<2.0.dev9", None),
        ("2.0a1", "", "2.0a1"),
        ("1.0 2.0a1", "[more]>=2.0a1", "2.0a1"),
    ],
)
def test_what_metadata_names_is_taken_where_no_final_version_meets_it(
    index: LoopbackIndex, tmp_path: Path, versions: str, needs: str, wanted: str | None
) -> None:
    index.add_wheel("tool", "1.0", requires=[f"parser{needs}"])
    for version in versions.split():
        index.add_wheel("parser", version)
    if wanted is None:
        with pytest.raises(NoStackError):
            chosen(index, tmp_path, "tool")
    else:
        assert chosen(index, tmp_path, "tool") == {"tool": "1.0", "parser": wanted}


def test_it_is_told_as_a_relaxation(index: LoopbackIndex, tmp_path: Path) -> None:
    index.add_wheel("tool", "1.0", requires=["parser>=2.0a1"])
    index.add_wheel("parser", "1.0")
    index.add_wheel("parser", "2.0a1")
    told = [(one.name, relaxation_words(one)) for one in solved(index, tmp_path, "tool").relaxations]
    assert told == [("prerelease", "parser 2.0a1 is a prerelease")]


def test_a_withdrawn_prerelease_is_not_asked_for_by_a_range(index: LoopbackIndex, tmp_path: Path) -> None:
    index.add_wheel("tool", "1.0", requires=["parser>=2.0a1"])
    index.add_wheel("parser", "1.0")
    index.add_wheel("parser", "2.0a1", yanked="broken")
    with pytest.raises(NoStackError):
        chosen(index, tmp_path, "tool")


def test_who_names_none_takes_none(index: LoopbackIndex, tmp_path: Path) -> None:
    """What one distribution asks for lets nothing in for another: that would depend on what a search meets first."""
    index.add_wheel("tool", "1.0", requires=["parser>=2.0a1"])
    index.add_wheel("other", "1.0", requires=["parser"])
    index.add_wheel("parser", "1.0")
    index.add_wheel("parser", "2.0a1")
    with pytest.raises(NoStackError) as raised:
        chosen(index, tmp_path, "tool", "other")
    told = conflict_lines(raised.value.conflict)
    assert told[2] == (
        "other 1.0 needs parser, and names no pre-release: policy `allow: [prerelease]` would take one  (metadata of other 1.0)"
    )
    assert raised.value.hints[-1] == (
        "not tried: `allow: [prerelease]` in policy would take pre-releases of every distribution; "
        "a constraint that names one, of that one"
    )


def test_the_index_tells_of_them_apart(index: LoopbackIndex, tmp_path: Path) -> None:
    for version in ("1.0", "2.0a1", "2.0a2"):
        index.add_wheel("parser", version)
    index.add_wheel("young", "1.0a1")
    settings = IndexSettings(indexes=(IndexLocation(name="pypi", url=index.url),), cache_directory=tmp_path)
    with PackageIndex(settings, Environment(platform="linux/amd64", python="3.12")) as source:
        assert [str(one.version) for one in source.releases("parser")] == ["1.0"]  # type: ignore[arg-type]
        early = source.prereleases("parser")  # type: ignore[arg-type]
        assert [(str(one.version), one.why_not, one.is_explicit_only) for one in early] == [
            ("2.0a2", EXPLICIT_ONLY, True),
            ("2.0a1", EXPLICIT_ONLY, True),
        ]
        assert [one.is_usable for one in source.releases("young")] == [True]  # type: ignore[arg-type]
        assert source.prereleases("young") == ()  # type: ignore[arg-type]


def test_another_python_need_not_find_out_again_who_needs_a_prerelease(
    index: LoopbackIndex, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index.add_wheel("app", "1.0", requires=["base>=2.0a1"])
    index.add_wheel("base", "1.0")
    index.add_wheel("base", "2.0a1")
    index.add_wheel("tool", "1.0", requires=["limit<1; python_version == '3.12'"])
    index.add_wheel("limit", "1.0")
    settings = IndexSettings(
        indexes=(IndexLocation(name="pypi", url=index.url),), cache_directory=tmp_path / "cache", fresh_seconds=0
    )
    matrix = small.matrix(("python",), {"python": {"3.11": {}, "3.12": {}}}, virtual=())
    request = small.request({"python": ">=3.11"}, packages=("app", "tool"), accelerator="cpu", runs="host")
    with caplog.at_level("INFO", "provisioner.search"):
        stack = solve_joint(join(matrix, request), lambda environment: PackageIndex(settings, environment))
    assert {one.name: one.version for one in stack.packages} == {"app": "1.0", "base": "2.0a1", "tool": "1.0"}
    first, other = "\n".join(caplog.messages).split("trying python 3.11")
    assert first.count("components and packages: ") == 2, "the search starts again with the pre-release"
    assert other.count("components and packages: ") == 1, "it is known from the start"
