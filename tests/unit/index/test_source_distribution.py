"""What a source distribution requires is told by as few bytes of it as possible, and nothing of it is built to find out."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from provisioner.index.metadata import download
from provisioner.index.metadata import reader as metadata
from provisioner.index.metadata.core_metadata import UnusableMetadataError, sdist_project
from provisioner.index.read_limit import LIMIT, ReadLimitError
from provisioner.index.settings import InstallerConfigurationError, settings_from_pip
from tests.built_files import metadata_text, static_metadata
from tests.loopback_index import ServedFile

if TYPE_CHECKING:
    from provisioner.index.client import PackageIndex
    from tests.loopback_index import LoopbackIndex
    from tests.unit.index.conftest import OpenIndex

DEMO = canonicalize_name("demo")
NOISE = random.Random(0).randbytes(8_000_000)
STATIC = metadata_text("demo", "1.0", ["other>=2"])
OLD = STATIC.replace("Metadata-Version: 2.2", "Metadata-Version: 2.1").replace("Requires-Dist: other>=2\n", "")
PROJECT = """\
[project]
name = "demo"
version = "1.0"
requires-python = ">=3.9"
dependencies = ["other>=2"]

[project.optional-dependencies]
More_Of-It = ["third; python_version < '3.13' or os_name == 'nt'", "fourth @ https://x.example/fourth-1.0.whl"]
"""
BY_A_BUILD = (
    "a source distribution whose dependencies are decided when it is built; policy `allow: [build]` would build it to find out"
)


def tar(**members: bytes | str) -> bytes:
    """A .tar.gz with these members in this order; `_` in a name is a dot, and `__` a hyphen."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, text in members.items():
            content = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(f"demo-1.0/{name.replace('__', '-').replace('_', '.')}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)


def add(served: LoopbackIndex, content: bytes, version: str = "1.0", *, ending: str = ".tar.gz", uploaded: str = "") -> str:
    file = ServedFile(
        filename=f"demo-{version}{ending}",
        path=f"/files/demo-{version}{ending}",
        content=content,
        metadata=None,
        requires_python=None,
        upload_time=uploaded or None,
        yanked=None,
    )
    served.pages.setdefault("simple", {}).setdefault("demo", []).append(file)
    served.files[file.path] = file
    return file.path


def required(client: PackageIndex, place: int = 0) -> list[str]:
    return [str(one) for one in client.requirements(client.releases(DEMO)[place])]


def refused(client: PackageIndex, place: int = 0) -> str:
    with pytest.raises(UnusableMetadataError) as caught:
        required(client, place)
    return caught.value.reason


@pytest.mark.parametrize(
    "members",
    [
        {"PKG__INFO": STATIC, "noise": NOISE},
        {"PKG__INFO": OLD, "pyproject_toml": PROJECT, "noise": NOISE},
        {"pyproject_toml": PROJECT, "noise": NOISE, "PKG__INFO": OLD},
        {"PKG__INFO": OLD, "pyproject_toml": PROJECT.replace('version = "1.0"', 'dynamic = ["version"]'), "noise": NOISE},
    ],
    ids=["PKG-INFO", "pyproject.toml", "pyproject.toml before PKG-INFO", "pyproject.toml with the version of PKG-INFO"],
)
def test_the_download_ends_where_the_requirements_are_told(
    served: LoopbackIndex, open_index: OpenIndex, members: dict[str, bytes | str]
) -> None:
    path = add(served, tar(**members))
    client = open_index(allow_sdist=True)
    assert required(client) == ["other>=2"]
    assert client.activity.received < 5 * metadata.PIECE
    assert required(open_index(allow_sdist=True)) == ["other>=2"]
    assert served.requests[path] == 1


@pytest.mark.parametrize(
    "project",
    [
        "",
        "[project",
        PROJECT.replace("dependencies = [", 'dynamic = ["dependencies"]\nother = ['),
        PROJECT.replace("dependencies = [", 'dynamic = ["optional-dependencies"]\ndependencies = [').partition("\n\n")[0],
        '[project]\nname = "demo"\nversion = "1.0"\n[tool.poetry.dependencies]\nother = "2"\n',
    ],
    ids=["no project", "no TOML", "dynamic dependencies", "dynamic extras", "dependencies of Poetry"],
)
def test_what_a_build_decides_is_refused_and_not_read_again(served: LoopbackIndex, open_index: OpenIndex, project: str) -> None:
    path = add(served, tar(PKG__INFO=OLD, pyproject_toml=project, noise=NOISE))
    client = open_index(allow_sdist=True)
    assert refused(client) == BY_A_BUILD
    assert client.activity.received < 5 * metadata.PIECE
    assert refused(open_index(allow_sdist=True)) == BY_A_BUILD
    assert served.requests[path] == 1


def test_requirements_that_a_build_may_change_are_taken_as_packed(served: LoopbackIndex, open_index: OpenIndex) -> None:
    listed = STATIC.replace("Name: demo", "Name: demo\nDynamic: requires-dist")
    add(served, tar(PKG__INFO=listed, noise=NOISE))
    for _ in range(2):
        client = open_index(allow_sdist=True)
        assert required(client) == ["other>=2"]
        (release,) = client.releases(DEMO)
        assert release.file is not None
        assert (client.is_packed(release.file), client.is_built(release.file)) == (True, False)
    assert not static_metadata(tar(PKG__INFO=STATIC), "demo-1.0.tar.gz").is_packed


def test_behind_the_package_info_little_is_searched(served: LoopbackIndex, open_index: OpenIndex) -> None:
    add(served, tar(PKG__INFO=OLD, noise=NOISE, pyproject_toml=PROJECT))
    client = open_index(allow_sdist=True)
    assert refused(client) == BY_A_BUILD
    assert client.activity.received < 5 * metadata.PIECE


def test_a_file_that_tells_late_is_searched_to_a_limit(
    served: LoopbackIndex, open_index: OpenIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "LARGEST_SEARCHED", 1_000_000)
    add(served, tar(noise=NOISE, PKG__INFO=STATIC))
    client = open_index(allow_sdist=True)
    assert refused(client) == "has no PKG-INFO file in its first 32 MiB"
    assert client.activity.received < 1_000_000 + 3 * metadata.PIECE


def test_a_zip_is_read_by_ranges(served: LoopbackIndex, open_index: OpenIndex) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("demo-1.0/noise", NOISE)
        archive.writestr("demo-1.0/PKG-INFO", STATIC)
        archive.writestr("demo-1.0/more", NOISE)
    add(served, stream.getvalue(), ending=".zip")
    client = open_index(allow_sdist=True)
    assert required(client) == ["other>=2"]
    assert client.activity.received < 200_000


def test_nothing_is_read_of_a_file_older_than_static_metadata(served: LoopbackIndex, open_index: OpenIndex) -> None:
    path = add(served, tar(PKG__INFO=OLD), uploaded="2020-06-21T23:59:59Z")
    with pytest.raises(UnusableMetadataError) as caught:
        required(open_index(allow_sdist=True))
    assert (caught.value.reason, caught.value.is_build_needed) == (BY_A_BUILD, True)
    assert caught.value.causes == ("uploaded 2020-06-21, before any could state them (PEP 643)",)
    assert served.requests[path] == 0


def test_a_handful_of_a_project_is_read(served: LoopbackIndex, open_index: OpenIndex) -> None:
    count = metadata.HANDFUL + 3
    paths = [add(served, tar(PKG__INFO=OLD.replace("Version: 1.0", f"Version: {one}.0")), f"{one}.0") for one in range(count)]
    for _ in range(2):  # the second client finds them in the cache, and counts them all the same
        client = open_index(allow_sdist=True)
        reasons = [refused(client, place) for place in range(count)]
        assert reasons[: metadata.HANDFUL] == [BY_A_BUILD] * metadata.HANDFUL
        told = "was not read: 5 other versions of it leave what they require to a build"
        assert reasons[metadata.HANDFUL :] == [told] * 3
    assert [served.requests[path] for path in reversed(paths)] == [1] * metadata.HANDFUL + [0] * 3


def test_requirements_of_a_project_table_are_spelled_as_metadata() -> None:
    found = static_metadata(tar(pyproject_toml=PROJECT), "demo-1.0.tar.gz")
    assert (found.name, found.version, found.requires_python) == ("demo", "1.0", ">=3.9")
    assert found.requires == (
        "other>=2",
        'third; (python_version < "3.13" or os_name == "nt") and extra == "more-of-it"',
        'fourth @ https://x.example/fourth-1.0.whl ; extra == "more-of-it"',
    )
    assert found.provides_extra == ("More_Of-It",)


def test_a_project_is_known_by_a_name_with_hyphens() -> None:
    assert sdist_project("antlr4-python3-runtime-4.9.3.tar.gz") == "antlr4-python3-runtime"
    assert sdist_project("Demo_It-1.0.zip") == "demo-it"
    assert sdist_project("demo-latest.tar.gz") == "demo"


def test_a_run_reads_no_more_than_it_may(served: LoopbackIndex, open_index: OpenIndex) -> None:
    add(served, tar(noise=NOISE, PKG__INFO=STATIC))
    client = open_index(allow_sdist=True, read_limit=3_000_000)
    with pytest.raises(ReadLimitError) as caught:
        required(client)
    assert caught.value.exit_code == 3
    assert caught.value.message == "3.0 MB were read from package indexes, and one run may read 3.0 MB"
    (most,) = caught.value.causes
    assert most.startswith("most of it: demo-1.0.tar.gz (3.0 MB), demo (")
    assert caught.value.hints == (
        "narrow what the spec leaves open, so that fewer versions are read",
        "PROVISION_READ_LIMIT=6.0MB allows twice as much",
    )
    assert client.activity.received < 3_000_000 + 2 * metadata.PIECE


@pytest.mark.parametrize(
    ("text", "limit"), [("", LIMIT), ("500MB", 500_000_000), ("2G", 2_000_000_000), ("7000", 7000), ("6.0MB", 6_000_000)]
)
def test_the_limit_is_set_by_a_variable(text: str, limit: int) -> None:
    assert settings_from_pip({"PIP_CONFIG_FILE": "/dev/null", "PROVISION_READ_LIMIT": text}).read_limit == limit


@pytest.mark.parametrize("text", ["much", "0", "-1GB", "1 XB"])
def test_a_limit_that_is_no_number_of_bytes_is_a_mistake(text: str) -> None:
    with pytest.raises(InstallerConfigurationError) as caught:
        settings_from_pip({"PIP_CONFIG_FILE": "/dev/null", "PROVISION_READ_LIMIT": text})
    assert caught.value.message == "PROVISION_READ_LIMIT is no number of bytes"
