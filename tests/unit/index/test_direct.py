"""Files that requirements name by URL or path: read in part, verified as a whole, read again when they change."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.direct_reference import DirectReferenceError, direct_reference, shown_url
from provisioner.index.metadata.core_metadata import UnusableMetadataError
from provisioner.index.metadata.reader import HashMismatchError

if TYPE_CHECKING:
    from tests.loopback_index import LoopbackIndex
    from tests.unit.index.conftest import OpenIndex

DEMO = canonicalize_name("demo")
WHEEL = "demo-1.0-py3-none-any.whl"
SHA = "0" * 64


def placed(served: LoopbackIndex, name: str = "demo", version: str = "1.0", **fields: object) -> str:
    """A file that no page lists; returns its URL."""
    filename = served.add_wheel(name, version, index="hidden", **fields)  # type: ignore[arg-type]
    return f"{served.root}/files/hidden/{filename}"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "git+https://host.example/demo.git@v1",
            (
                "`demo @ git+https://host.example/demo.git@v1` "
                "is a version control address, and a lock names files with their hashes"
            ),
        ),
        (
            "git+ssh://git@host.example/demo.git",
            "`demo @ git+ssh://host.example/demo.git` is a version control address, and a lock names files with their hashes",
        ),
        (
            "ftp://host.example/demo-1.0.tar.gz",
            "`demo @ ftp://host.example/demo-1.0.tar.gz` is not read; a file is named by https://, http://, file: or a path",
        ),
        (
            "https://host.example/demo-1.0.tar.gz#subdirectory=python",
            (
                "`demo @ https://host.example/demo-1.0.tar.gz` "
                "asks for the subdirectory `python` of an archive, which is not locked"
            ),
        ),
        (f"https://host.example/{WHEEL}#md5=0123", f"`demo @ https://host.example/{WHEEL}` states md5 only"),
        (
            f"https://host.example/{WHEEL}#sha256=0123",
            f"`demo @ https://host.example/{WHEEL}` states `0123`, which is not a sha256",
        ),
        (
            "https://host.example/download?id=7",
            (
                "`demo @ https://host.example/download?id=7` "
                "does not end in the name of a wheel (.whl) or of a source distribution (.tar.gz, .zip)"
            ),
        ),
    ],
)
def test_what_cannot_be_locked_is_refused_in_words(url: str, message: str) -> None:
    with pytest.raises(DirectReferenceError) as caught:
        direct_reference("demo", url, Path("/project"))
    assert caught.value.message == message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (f"file:./wheels/{WHEEL}", f"/project/wheels/{WHEEL}"),
        (f"file:wheels/{WHEEL}", f"/project/wheels/{WHEEL}"),
        (f"./{WHEEL}", f"/project/{WHEEL}"),
        (f"file:///elsewhere/{WHEEL}", f"/elsewhere/{WHEEL}"),
        (f"file://localhost/elsewhere/{WHEEL}", f"/elsewhere/{WHEEL}"),
        (f"file:../a%20b/{WHEEL}", f"/project/../a b/{WHEEL}"),
        (f"file://{WHEEL}", f"/project/{WHEEL}"),
    ],
)
def test_paths_start_from_the_folder_of_the_spec(url: str, path: str) -> None:
    reference = direct_reference("demo", url, Path("/project"))
    assert (reference.path, reference.filename) == (path, WHEEL)


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("url", "archive"),
    [
        (f"git+https://github.com/ada/demo@{COMMIT}", f"https://github.com/ada/demo/archive/{COMMIT}.tar.gz"),
        (f"git+https://GitHub.com/ada/demo.git@{COMMIT}#egg=demo", f"https://GitHub.com/ada/demo/archive/{COMMIT}.tar.gz"),
        (
            f"git+https://gitlab.com/ada/group/demo.git@{COMMIT}",
            f"https://gitlab.com/ada/group/demo/-/archive/{COMMIT}/demo-{COMMIT}.tar.gz",
        ),
    ],
)
def test_a_commit_of_a_repository_is_its_archive(url: str, archive: str) -> None:
    assert direct_reference("demo", url, Path()).url == archive
    assert shown_url(url) == archive


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        (
            "git+https://github.com/ada/demo@v1",
            (
                "`v1` may move: write `demo @ https://github.com/ada/demo/archive/COMMIT.tar.gz` "
                "with the commit that `git ls-remote` tells"
            ),
        ),
        (
            "git+https://github.com/ada/demo.git",
            (
                "its default branch moves: write `demo @ https://github.com/ada/demo/archive/COMMIT.tar.gz` "
                "with the commit that `git ls-remote` tells"
            ),
        ),
        (
            f"git+https://github.com/ada/demo@{COMMIT[:7]}",
            (
                f"`{COMMIT[:7]}` looks like part of a commit id: write `demo @ "
                "https://github.com/ada/demo/archive/COMMIT.tar.gz` with all 40 digits, "
                f"which `git rev-parse {COMMIT[:7]}` tells in a clone"
            ),
        ),
        (
            f"git+https://github.com/ada/demo@{COMMIT}#subdirectory=python",
            "build a wheel of it (`pip wheel --no-deps URL`) and name the wheel, or serve it from an index",
        ),
        (
            f"git+https://host.example/demo@{COMMIT}",
            "build a wheel of it (`pip wheel --no-deps URL`) and name the wheel, or serve it from an index",
        ),
        (
            f"git+ssh://git@github.com/ada/demo@{COMMIT}",
            "build a wheel of it (`pip wheel --no-deps URL`) and name the wheel, or serve it from an index",
        ),
    ],
)
def test_what_is_no_whole_commit_of_a_host_with_archives_is_refused_with_what_to_do(url: str, hint: str) -> None:
    with pytest.raises(DirectReferenceError) as raised:
        direct_reference("demo", url, Path())
    assert raised.value.hints == (hint,)


def test_the_archive_of_a_commit_is_read_as_a_source_distribution(
    served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path
) -> None:
    """As GitHub makes and names it: `git archive`, in a file called after the commit."""
    project = '[project]\nname = "demo"\nversion = "1.5"\ndependencies = ["other>=2"]\n'
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=ada", "-c", "user.email=ada@host.example"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=first"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    content = subprocess.run(
        [*git, "archive", "--format=tar.gz", f"--prefix=demo-{commit}/", commit], check=True, capture_output=True
    ).stdout
    served.serve(f"/ada/demo/archive/{commit}.tar.gz", content)
    client = open_index()
    release = client.direct(DEMO, f"{served.root}/ada/demo/archive/{commit}.tar.gz")
    assert (str(release.version), release.is_usable) == ("1.5", True)
    assert [str(one) for one in client.requirements(release)] == ["other>=2"]
    assert release.file is not None
    assert client.hash_and_size(release.file) == (hashlib.sha256(content).hexdigest(), len(content))


def test_credentials_and_fragments_are_no_part_of_a_reference() -> None:
    reference = direct_reference("demo", f"https://ada:s3cret@host.example/a/{WHEEL}#sha256={SHA.upper()}", Path())
    assert (reference.url, reference.sha256, reference.filename) == (f"https://host.example/a/{WHEEL}", SHA, WHEEL)
    assert shown_url(f"https://ada:s3cret@host.example/a/{WHEEL}#sha256={SHA}") == f"https://host.example/a/{WHEEL}"
    assert shown_url(f"file:///home/ada/{WHEEL}") == f"file:…/{WHEEL}"


def test_characters_that_stand_in_no_url_are_percent_encoded() -> None:
    reference = direct_reference("demo", f"https://host.example/{{a}}|b/{WHEEL}", Path())
    assert reference.url == f"https://host.example/%7Ba%7D%7Cb/{WHEEL}"


def test_a_remote_wheel_is_read_in_part_and_hashed_as_a_whole(served: LoopbackIndex, open_index: OpenIndex) -> None:
    served.metadata = False
    url = placed(served, requires=["other>=2"], requires_python=">=3.9", padding=3_000_000)
    client = open_index()
    release = client.direct(DEMO, url)
    assert (str(release.version), release.requires_python, release.is_usable) == ("1.0", ">=3.9", True)
    assert [str(one) for one in client.requirements(release)] == ["other>=2"]
    assert served.bytes_sent < 100_000
    assert release.file is not None
    content = served.files[f"/files/hidden/{WHEEL}"].content
    assert (release.file.index, release.file.url, release.file.sha256) == ("url", url, "")
    assert client.hash_and_size(release.file) == (hashlib.sha256(content).hexdigest(), len(content))


def test_what_was_read_is_kept_while_the_server_says_that_nothing_changed(served: LoopbackIndex, open_index: OpenIndex) -> None:
    url = placed(served, requires=["other"])
    body = served.files[f"/files/hidden/{WHEEL}"].content
    served.serve(f"/files/hidden/{WHEEL}", body, content_type="application/octet-stream")  # with an ETag

    def read(*, offline: bool = False) -> tuple[list[str], str]:
        client = open_index(offline=offline)
        release = client.direct(DEMO, url)
        assert release.file is not None
        return [str(one) for one in client.requirements(release)], client.hash_and_size(release.file)[0]

    first = read()
    asked = served.requests[f"/files/hidden/{WHEEL}"]
    assert read() == first
    assert served.requests[f"/files/hidden/{WHEEL}"] == asked + 1, "one HEAD"
    assert read(offline=True) == first
    assert served.requests[f"/files/hidden/{WHEEL}"] == asked + 1
    placed(served, requires=["another"])
    served.serve(f"/files/hidden/{WHEEL}", served.files[f"/files/hidden/{WHEEL}"].content)
    assert read()[0] == ["another"]
    assert read()[1] != first[1]


def test_a_file_whose_server_gives_no_validators_is_read_each_time(served: LoopbackIndex, open_index: OpenIndex) -> None:
    url = placed(served, requires=["other"])
    client = open_index()
    assert [str(one) for one in client.requirements(client.direct(DEMO, url))] == ["other"]
    placed(served, requires=["another"])
    client = open_index()
    assert [str(one) for one in client.requirements(client.direct(DEMO, url))] == ["another"]
    client = open_index(offline=True)
    assert [str(one) for one in client.requirements(client.direct(DEMO, url))] == ["another"]


def test_offline_says_what_is_missing(served: LoopbackIndex, open_index: OpenIndex) -> None:
    url = placed(served)
    with pytest.raises(UnavailableError) as caught:
        open_index(offline=True).direct(DEMO, url)
    assert caught.value.message == f"offline: `demo @ {url}` is not in the cache; run once without --offline"
    client = open_index()
    client.direct(DEMO, url)
    client = open_index(offline=True)
    release = client.direct(DEMO, url)
    assert release.file is not None
    with pytest.raises(UnavailableError) as caught:
        client.hash_and_size(release.file)
    assert caught.value.message == f"offline: the hash of `{WHEEL}` ({url}) is not in the cache; run once without --offline"


def test_a_stated_hash_is_verified(served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path) -> None:
    url = placed(served)
    content = served.files[f"/files/hidden/{WHEEL}"].content
    digest = hashlib.sha256(content).hexdigest()
    client = open_index()
    release = client.direct(DEMO, f"{url}#sha256={digest}")
    assert release.file is not None
    assert client.hash_and_size(release.file) == (digest, len(content))
    client = open_index()
    release = client.direct(DEMO, f"{url}#sha256={SHA}")
    assert release.file is not None
    with pytest.raises(HashMismatchError) as caught:
        client.hash_and_size(release.file)
    assert caught.value.message == f"`{url}` is not the file that the requirement states"
    assert caught.value.causes == (f"wanted sha256 {SHA}", f"found sha256 {digest}")
    (tmp_path / WHEEL).write_bytes(content)
    with pytest.raises(HashMismatchError):
        open_index(direct_folder=tmp_path).direct(DEMO, f"file:./{WHEEL}#sha256={SHA}")


def test_a_local_wheel_is_read_where_it_lies(served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path) -> None:
    placed(served, requires=["other"])
    content = served.files[f"/files/hidden/{WHEEL}"].content
    (tmp_path / WHEEL).write_bytes(content)
    client = open_index(direct_folder=tmp_path)
    release = client.direct(DEMO, f"file:./{WHEEL}")
    assert release.file is not None
    assert (release.file.index, release.file.path, release.file.size) == ("path", str(tmp_path / WHEEL), len(content))
    assert release.file.sha256 == hashlib.sha256(content).hexdigest()
    assert [str(one) for one in client.requirements(release)] == ["other"]


def test_a_file_of_another_project_is_refused(served: LoopbackIndex, open_index: OpenIndex) -> None:
    url = placed(served, "other")
    with pytest.raises(DirectReferenceError) as caught:
        open_index().direct(DEMO, url)
    assert caught.value.message == f"`demo @ {url}` is not a file of `demo`"
    assert caught.value.causes == ("the file is called `other-1.0-py3-none-any.whl`, its metadata is of `other`",)
    assert caught.value.hints == (f"write `other @ {url}`",)


def test_why_a_file_does_not_fit_the_target_is_told_as_for_any_other(served: LoopbackIndex, open_index: OpenIndex) -> None:
    old = placed(served, tag="cp310-cp310-manylinux_2_17_x86_64")
    arm = placed(served, version="2.0", tag="cp312-cp312-manylinux_2_17_aarch64")
    young = placed(served, version="3.0", requires_python=">=3.13")
    client = open_index()
    found = [client.direct(DEMO, url) for url in (old, arm, young)]
    assert [(one.why_not, one.blocked_by, one.file) for one in found] == [
        ("no wheel for cp312 on linux/amd64 (has cp310)", "python", None),
        ("no wheel for linux/amd64 (has linux/arm64)", "platform", None),
        ("needs python >=3.13", "python", None),
    ]


def test_neither_age_nor_kind_is_held_against_a_file_that_is_named(served: LoopbackIndex, open_index: OpenIndex) -> None:
    early = placed(served, version="1.0rc1")
    filename = served.add_sdist("demo", "2.0", requires=["other"], index="hidden")
    client = open_index(exclude_newer="2020-01-01")
    assert client.direct(DEMO, early).is_usable
    release = client.direct(DEMO, f"{served.root}/files/hidden/{filename}")
    assert release.is_usable
    assert [str(one) for one in client.requirements(release)] == ["other"]


def test_the_archive_of_a_tag_is_what_its_metadata_says(served: LoopbackIndex, open_index: OpenIndex) -> None:
    filename = served.add_sdist("demo", "2.0", requires=["other"], index="hidden")
    served.serve("/archive/refs/tags/v2.tar.gz", served.files[f"/files/hidden/{filename}"].content)
    client = open_index()
    release = client.direct(DEMO, f"{served.root}/archive/refs/tags/v2.tar.gz")
    assert str(release.version) == "2.0"
    assert release.file is not None
    assert release.file.filename == "v2.tar.gz"
    assert [str(one) for one in client.requirements(release)] == ["other"]


@pytest.mark.parametrize("tag", ["release-1.0", "demo-1.0", "demo-2.0"])
def test_the_name_of_a_tag_says_nothing_of_its_archive(served: LoopbackIndex, open_index: OpenIndex, tag: str) -> None:
    filename = served.add_sdist("demo", "2.0", requires=["other"], index="hidden")
    served.serve(f"/archive/{tag}.tar.gz", served.files[f"/files/hidden/{filename}"].content)
    client = open_index()
    release = client.direct(DEMO, f"{served.root}/archive/{tag}.tar.gz")
    assert str(release.version) == "2.0"
    assert [str(one) for one in client.requirements(release)] == ["other"]


def test_a_wheel_that_was_named_after_its_build_is_taken(served: LoopbackIndex, open_index: OpenIndex) -> None:
    filename = served.add_wheel("demo", "2.7", requires=["other"], index="hidden")
    named = "demo-2.7+cu12torch2.6-py3-none-any.whl"
    served.serve(f"/files/hidden/{named}", served.files[f"/files/hidden/{filename}"].content)
    client = open_index()
    release = client.direct(DEMO, f"{served.root}/files/hidden/{named}")
    assert str(release.version) == "2.7+cu12torch2.6"
    assert [str(one) for one in client.requirements(release)] == ["other"]


@pytest.mark.parametrize("status", [404, 410])
def test_a_file_that_does_not_exist_is_a_mistake(served: LoopbackIndex, open_index: OpenIndex, status: int) -> None:
    url = placed(served)
    served.status = status
    with pytest.raises(DirectReferenceError) as caught:
        open_index().direct(DEMO, url)
    assert caught.value.message == f"`demo @ {url}` does not exist: its server answers {status}"


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_file_that_is_not_to_be_had_is_named(served: LoopbackIndex, open_index: OpenIndex, status: int) -> None:
    url = placed(served)
    served.status = status
    with pytest.raises(UnavailableError) as caught:
        open_index().direct(DEMO, url)
    assert caught.value.message.startswith(f"`{'demo @ ' if status < 500 else ''}{url}` answers {status} (")
    assert caught.value.exit_code == 3


def test_what_is_no_distribution_is_refused(served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path) -> None:
    served.serve(f"/rubbish/{WHEEL}", b"this is not a wheel")
    with pytest.raises(UnusableMetadataError):
        open_index().direct(DEMO, f"{served.root}/rubbish/{WHEEL}")
    (tmp_path / "demo-1.0.zip").mkdir()
    with pytest.raises(ProvisionError) as caught:
        open_index(direct_folder=tmp_path).direct(DEMO, "file:./demo-1.0.zip")
    assert caught.value.message.endswith(
        "is a directory of sources; build a wheel of it (`pip wheel --no-deps DIRECTORY`) and name that"
    )
    with pytest.raises(ProvisionError) as caught:
        open_index(direct_folder=tmp_path).direct(DEMO, "file:./demo-2.0.zip")
    assert caught.value.message == f"`demo @ {tmp_path}/demo-2.0.zip` does not exist"
