"""Places that list files of any project: directories, pages on disk and pages on the web."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.index.client import PackageIndex
    from tests.loopback_index import LoopbackIndex
    from tests.unit.index.conftest import OpenIndex


def versions(client: PackageIndex, name: str = "demo") -> list[str]:
    return [str(release.version) for release in client.releases(canonicalize_name(name))]


def test_a_page_on_the_web_is_read_once_for_all_projects(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.serve("/links.html", b'<a href="files/demo-2.0-py3-none-any.whl">x</a><a href="files/other-1.0.tar.gz">y</a>')
    served.add_wheel("demo", "1.0")
    client = open_index(find_links=(f"{served.root}/links.html",))
    assert versions(client) == ["2.0", "1.0"]
    assert versions(client, "other") == ["1.0"]
    file = client.releases(canonicalize_name("demo"))[0].file
    assert file is not None
    assert (file.index, file.url) == ("find-links", f"{served.root}/files/demo-2.0-py3-none-any.whl")
    assert client.url_of(file.index) == ""
    assert served.requests["/links.html"] == 1


def test_a_page_on_disk_may_point_anywhere(open_index: OpenIndex, tmp_path: Path) -> None:
    page = tmp_path / "links.html"
    page.write_text('<a href="wheels/demo-1.0-py3-none-any.whl">x</a><a href="https://x.example/demo-2.0.zip">y</a>')
    assert versions(open_index(find_links=(page.as_uri(),))) == ["2.0", "1.0"]


def test_a_place_that_is_not_there_offers_nothing(open_index: OpenIndex, tmp_path: Path) -> None:
    assert versions(open_index(find_links=((tmp_path / "none").as_uri(),))) == []


def test_a_page_that_cannot_be_had_is_named(served: LoopbackIndex, open_index: OpenIndex) -> None:
    place = f"{served.root}/none.html"
    with pytest.raises(UnavailableError) as caught:
        versions(open_index(find_links=(place.replace("//", "//me:pw@"),)))
    assert caught.value.message == f"find-links `{place}` answers 404 (Not Found)"
    with pytest.raises(UnavailableError) as caught:
        versions(open_index(find_links=(place,), offline=True))
    assert caught.value.message == f"offline: find-links `{place}` cannot be read"


def test_without_indexes_find_links_are_all_there_is(served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path) -> None:
    filename = served.add_wheel("demo", "1.0+cpu", requires=["other"])
    (tmp_path / filename).write_bytes(served.files[f"/files/{filename}"].content)
    client = open_index(indexes={}, find_links=(tmp_path.as_uri(),), offline=True)
    (release,) = client.releases(canonicalize_name("demo"), index="pytorch-cpu")
    assert [str(one) for one in client.requirements(release)] == ["other"]
    assert client.releases(canonicalize_name("demo"), index="pytorch-cu126") == ()
    assert client.releases(canonicalize_name("demo"), index="find-links") == (release,)
