from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from provisioner.errors import ProvisionError
from provisioner.lock.artifact import fits, lock_file, public_url
from tests.lock_examples import SIX


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
    assert public_url(url) == expected


def test_a_url_that_is_none_is_refused_without_its_credentials() -> None:
    with pytest.raises(ProvisionError) as caught:
        public_url("https://ada:secret@[::1/simple")
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
