from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.document import FileError
from provisioner.errors import ProvisionError
from provisioner.lock.format.artifact import fits, lock_file, locked_url, name_in, shared_url
from tests.lock_examples import SIX

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("filename", "platform", "expected"),
    [
        ("six-1.17.0-py2.py3-none-any.whl", "macos/x86_64", True),
        ("six-1.17.0.tar.gz", "linux/arm64", True),
        ("a-1-cp312-cp312-manylinux_2_28_x86_64.whl", "linux/amd64", True),
        ("a-1-cp312-cp312-manylinux_2_28_x86_64.whl", "linux/arm64", False),
        ("a-1-cp312-cp312-manylinux_2_17_aarch64.manylinux2014_aarch64.whl", "linux/arm64", True),
        ("a-1-cp312-cp312-musllinux_1_2_x86_64.whl", "linux/amd64", True),
        ("a-1-cp312-cp312-linux_x86_64.whl", "linux/amd64", True),
        ("a-1-cp312-cp312-macosx_11_0_arm64.whl", "macos/arm64", True),
        ("a-1-cp312-cp312-macosx_11_0_arm64.whl", "macos/x86_64", False),
        ("a-1-cp312-cp312-macosx_10_9_universal2.whl", "macos/x86_64", True),
        ("a-1-cp312-cp312-win_amd64.whl", "linux/amd64", False),
    ],
)
def test_a_platform_tag_says_whether_a_wheel_is_for_a_platform(filename: str, platform: str, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert fits(filename, platform) is expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://user:pass@example.org/a.whl", "https://example.org/a.whl"),
        ("https://to@ken@example.org:8443/a%2Bb.whl?x=1#sha256=0", "https://example.org:8443/a%2Bb.whl?x=1"),
        ("pypi", "pypi"),
        ("", ""),
    ],
)
def test_a_url_loses_credentials_and_fragment_and_nothing_else(url: str, expected: str) -> None:
    assert locked_url(url) == expected


def test_a_url_that_is_none_is_refused_without_its_credentials() -> None:
    with pytest.raises(ProvisionError) as caught:
        locked_url("https://ada:secret@[::1/simple")
    assert caught.value.message == "`[::1/simple` is not a URL: Invalid IPv6 URL"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-12-04T17:35:26.475808Z", datetime(2024, 12, 4, 17, 35, 26, 475808, tzinfo=UTC)),
        ("2024-12-04T18:35:26+01:00", datetime(2024, 12, 4, 17, 35, 26, tzinfo=UTC)),
        ("2024-12-04 17:35:26", datetime(2024, 12, 4, 17, 35, 26, tzinfo=UTC)),
        ("yesterday", None),
        (None, None),
    ],
)
def test_an_upload_time_is_kept_in_utc_or_left_out(text: str | None, expected: datetime | None) -> None:
    assert lock_file(replace(SIX, upload_time=text)).upload_time == expected


def test_an_upper_case_hash_is_the_same_hash() -> None:
    assert lock_file(replace(SIX, sha256=SIX.sha256.upper())) == lock_file(SIX)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://ada:secret@example.org/simple", "https://example.org/simple"),
        ("file:///srv/with%20space/simple/", "file:simple"),
        ("file:///srv/wheels", "file:wheels"),
        ("wheels", "wheels"),
    ],
)
def test_a_shared_url_names_no_folder_of_this_machine(url: str, expected: str) -> None:
    assert shared_url(url) == expected


@pytest.mark.parametrize(
    ("url", "path", "expected"),
    [
        ("https://example.org/a/b-1.0%2Blocal.zip?download=1", "", "b-1.0+local.zip"),
        ("", "wheels/b-1.0.whl", "b-1.0.whl"),
    ],
)
def test_a_file_without_a_name_is_called_after_the_end_of_its_place(url: str, path: str, expected: str) -> None:
    assert name_in(url, path) == expected


def test_the_size_of_a_local_file_is_that_of_the_file(tmp_path: Path) -> None:
    wheel = tmp_path / SIX.filename
    wheel.write_bytes(b"content")
    local = replace(SIX, url="", path=str(wheel), size=None)
    assert lock_file(local).size == 7
    with pytest.raises(FileError, match=r"^file `gone.zip` cannot be read: No such file or directory$"):
        lock_file(replace(local, path=str(tmp_path / "gone.zip")))
