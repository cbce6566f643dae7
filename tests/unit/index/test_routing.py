"""A name belongs to one index: claims, the order, and what a claim keeps out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.client import PackageIndex
from provisioner.index.routing import default_index, normalized_pattern, open_indexes, route
from provisioner.index.settings import IndexLocation, IndexSettings, settings_from_pip
from tests.loopback_index import LoopbackIndex
from tests.unit.index.conftest import TARGET

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.index.conftest import OpenIndex

DEMO = canonicalize_name("demo")
Claiming = Callable[..., PackageIndex]

MAIN = IndexLocation(name="main", url="https://main.example/simple")
OWN = IndexLocation(name="own", url="https://own.example/simple", packages=("acme-*", "demo"))
VARIANTS = IndexLocation(name="pytorch", url="https://whl.example/{variant}", packages=("torch", "torchvision"))
SETTINGS = IndexSettings(indexes=(MAIN, OWN, VARIANTS))


@pytest.fixture
def other() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as index:
        yield index


@pytest.mark.parametrize(
    ("name", "index", "expected"),
    [
        ("numpy", "", ["main"]),
        ("demo", "", ["own"]),
        ("acme-tools", "", ["own"]),
        ("acme", "", ["main"]),
        ("demo", "pytorch-cu126", ["own"]),
        ("torch", "", []),
        ("torch", "pytorch-cu126", ["pytorch-cu126"]),
        ("numpy", "pytorch-cu126", ["pytorch-cu126"]),
        ("numpy", "own", ["own"]),
    ],
)
def test_where_a_name_is_looked_for(name: str, index: str, expected: list[str]) -> None:
    assert [location.name for location in route(name, index, SETTINGS).locations] == expected


@pytest.mark.parametrize(
    ("index", "url", "is_page"),
    [
        ("jetson-jp6/cu126", "https://pypi.jetson-ai-lab.io/jp6/cu126", False),
        ("jetpack-v511/pytorch", "https://developer.download.nvidia.com/compute/redist/jp/v511/pytorch/", True),
    ],
)
def test_the_indexes_of_jetsons_are_known_unless_the_spec_lists_indexes(index: str, url: str, *, is_page: bool) -> None:
    (location,) = route("torch", index, IndexSettings()).locations
    assert (location.url, location.is_page) == (url, is_page)
    assert route("torch", index, IndexSettings(indexes=(MAIN,), pytorch_index="")).locations == ()
    mirror = IndexLocation(name=index.partition("-")[0], url="https://mirror.example/{variant}")
    (location,) = route("torch", index, IndexSettings(indexes=(MAIN, mirror), pytorch_index="")).locations
    assert location.url == f"https://mirror.example/{index.partition('-')[2]}"


def test_a_claimed_name_is_not_taken_from_find_links() -> None:
    assert not route("demo", "", SETTINGS).takes_find_links
    assert not route("torch", "pytorch-cu126", SETTINGS).takes_find_links
    assert route("numpy", "", SETTINGS).takes_find_links


def test_a_name_that_two_indexes_claim_is_refused() -> None:
    both = IndexSettings(indexes=(OWN, IndexLocation(name="too", url="https://too.example/simple", packages=("de*",))))
    with pytest.raises(ProvisionError) as caught:
        route("demo", "", both)
    assert caught.value.message == "`demo` is claimed by the indexes `own` and `too`, and a name belongs to one index"
    assert route("acme-tools", "", both).locations == (OWN,)


@pytest.fixture
def claiming(settings: IndexSettings) -> Iterator[Claiming]:
    """Makes clients of indexes that claim names."""
    opened: list[PackageIndex] = []

    def make(*locations: IndexLocation, **changes: Any) -> PackageIndex:  # noqa: ANN401
        opened.append(PackageIndex(replace(settings, indexes=locations, **changes), TARGET))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.mark.parametrize("is_first", [False, True])
def test_a_higher_version_on_another_index_is_never_taken(
    served: LoopbackIndex, other: LoopbackIndex, claiming: Claiming, *, is_first: bool
) -> None:
    served.add_wheel("demo", "1.0")
    other.add_wheel("demo", "99.0")
    own = IndexLocation(name="own", url=served.url, packages=("demo",))
    public = IndexLocation(name="public", url=other.url)
    client = claiming(*((own, public) if is_first else (public, own)))
    client.prefetch([DEMO])
    assert [str(one.version) for one in client.releases(DEMO)] == ["1.0"]
    assert other.requests == {}, "the other index is not even asked, so that it does not learn the name"


def test_an_index_that_claims_names_offers_no_others(served: LoopbackIndex, claiming: Claiming) -> None:
    served.add_wheel("stranger", "1.0")
    client = claiming(IndexLocation(name="own", url=served.url, packages=("demo",)))
    assert client.releases(canonicalize_name("stranger")) == ()
    assert served.requests == {}


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_an_index_that_refuses_a_name_is_not_one_that_lacks_it(
    served: LoopbackIndex, other: LoopbackIndex, open_index: OpenIndex, status: int
) -> None:
    served.statuses["/simple/demo/"] = status
    other.add_wheel("demo", "99.0")
    with pytest.raises(UnavailableError):
        open_index(indexes={"main": served.url, "extra": other.url}).releases(DEMO)
    assert other.requests == {}


def test_an_index_that_is_too_slow_is_not_one_that_lacks_a_name(
    served: LoopbackIndex, other: LoopbackIndex, open_index: OpenIndex
) -> None:
    served.delay = 1.0
    other.add_wheel("demo", "99.0")
    with pytest.raises(UnavailableError):
        open_index(indexes={"main": served.url, "extra": other.url}, timeout=0.1).releases(DEMO)
    assert other.requests == {}


@pytest.mark.parametrize("status", [404, 410])
def test_an_index_that_lacks_a_name_leaves_it_to_the_next(
    served: LoopbackIndex, other: LoopbackIndex, open_index: OpenIndex, status: int
) -> None:
    served.statuses["/simple/demo/"] = status
    other.add_wheel("demo", "2.0")
    client = open_index(indexes={"main": served.url, "extra": other.url})
    assert [str(one.version) for one in client.releases(DEMO)] == ["2.0"]


def test_a_folder_of_wheels_adds_to_an_index_unless_that_claims_the_name(
    served: LoopbackIndex, claiming: Claiming, tmp_path: Path
) -> None:
    filename = served.add_wheel("demo", "9.0", index="unlisted")
    (tmp_path / filename).write_bytes(served.files[f"/files/unlisted/{filename}"].content)
    served.add_wheel("demo", "1.0")
    plain = claiming(IndexLocation(name="main", url=served.url), find_links=(tmp_path.as_uri(),))
    assert [str(one.version) for one in plain.releases(DEMO)] == ["9.0", "1.0"]
    own = claiming(IndexLocation(name="main", url=served.url, packages=("demo",)), find_links=(tmp_path.as_uri(),))
    assert [str(one.version) for one in own.releases(DEMO)] == ["1.0"]


@pytest.mark.parametrize(
    ("written", "normalized"),
    [
        ("Acme_Tools", "acme-tools"),
        ("NVIDIA_*", "nvidia-*"),
        ("*_CU1?", "*-cu1?"),
        ("acme._-core", "acme-core"),
        ("a?*", "a?*"),
        ("*", "*"),
    ],
)
def test_a_pattern_is_spelled_as_names_of_indexes_are(written: str, normalized: str) -> None:
    assert normalized_pattern(written) == normalized


def from_pip(main: str, *extra: str) -> list[str]:
    environ = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": main, "PIP_EXTRA_INDEX_URL": " ".join(extra)}
    return [location.url for location in open_indexes(settings_from_pip(environ))]


PYPI, OWN_URL, MIRROR = "https://pypi.org/simple", "https://own.example/simple", "https://mirror.example/simple"
CU126 = "https://download.pytorch.org/whl/cu126"


@pytest.mark.parametrize(
    ("configured", "asked"),
    [
        ([PYPI], [PYPI]),
        ([PYPI, OWN_URL], [OWN_URL, PYPI]),
        ([MIRROR, OWN_URL, "https://two.example/simple"], [OWN_URL, "https://two.example/simple", MIRROR]),
        ([OWN_URL, PYPI], [OWN_URL, PYPI]),
        ([PYPI, CU126], [PYPI, CU126]),
        ([CU126, PYPI], [CU126, PYPI]),
        ([CU126, PYPI, OWN_URL], [OWN_URL, CU126, PYPI]),
        ([PYPI, "file:///srv/part"], [PYPI, "file:///srv/part"]),
        ([MIRROR, "file:///srv/part", OWN_URL], [OWN_URL, MIRROR, "file:///srv/part"]),
    ],
)
def test_of_pips_indexes_private_ones_are_asked_first_and_public_ones_last(configured: list[str], asked: list[str]) -> None:
    assert from_pip(*configured) == asked


def test_a_spec_is_asked_in_its_own_order() -> None:
    own, pypi = IndexLocation(name="own", url=OWN_URL), IndexLocation(name="pypi", url=PYPI)
    for indexes in ((own, pypi), (pypi, own)):
        assert open_indexes(IndexSettings(indexes=indexes)) == indexes
        assert default_index(IndexSettings(indexes=indexes)) == indexes[0]
    assert default_index(IndexSettings(indexes=(own, pypi), main_index="pypi")) == pypi
    assert default_index(IndexSettings(indexes=(OWN,))) is None


@pytest.mark.parametrize("is_known_to_the_first", [True, False])
def test_a_page_is_at_hand_when_every_index_up_to_its_own_is(
    served: LoopbackIndex, other: LoopbackIndex, open_index: OpenIndex, *, is_known_to_the_first: bool
) -> None:
    """Pages that are not at hand are read several at a time; a kept 404 of the first index says nothing of the second."""
    for index in (served, other):
        index.cache_control = "max-age=600"
    (served if is_known_to_the_first else other).add_wheel("demo", "1.0")
    with open_index(indexes={"main": served.url}) as client:
        client.releases(DEMO)
    client = open_index(indexes={"main": served.url, "other": other.url})
    assert client._is_at_hand(DEMO) is is_known_to_the_first
    client.releases(DEMO)
    assert client._is_at_hand(DEMO)
    assert not client._is_at_hand(canonicalize_name("unknown"))
