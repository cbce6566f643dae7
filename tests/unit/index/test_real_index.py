"""The installer's own configuration against the real index: what loopback cannot show."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name
from packaging.version import Version

from provisioner.index.client import PackageIndex
from provisioner.index.model import Environment
from provisioner.index.settings import settings_from_pip

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.network


def test_a_release_known_for_years_has_its_known_wheel_and_requirements(tmp_path: Path) -> None:
    settings = replace(settings_from_pip(os.environ), cache_directory=tmp_path)
    target = Environment(platform="linux/amd64", python="3.11", glibc=(2, 17))
    for is_offline in (False, True):
        with PackageIndex(replace(settings, offline=is_offline), target) as index:
            releases = index.releases(canonicalize_name("pandas"))
            (pandas,) = [release for release in releases if release.version == Version("2.1.0")]
            assert pandas.file is not None
            assert pandas.file.filename == "pandas-2.1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
            plain = [str(one) for one in index.requirements(pandas) if one.marker is None]
            assert plain == ["python-dateutil>=2.8.2", "pytz>=2020.1", "tzdata>=2022.1"]


def test_what_an_archive_of_megabytes_requires_is_read_from_its_start(tmp_path: Path) -> None:
    settings = replace(settings_from_pip(os.environ), cache_directory=tmp_path, allow_sdist=True)
    with PackageIndex(settings, Environment(platform="linux/amd64", python="3.12", glibc=(2, 35))) as index:
        (release,) = [one for one in index.releases(canonicalize_name("flash-attn")) if one.version == Version("2.8.3.post2")]
        assert release.file is not None
        assert release.file.size is not None
        before = index.activity.received
        assert [str(one) for one in index.requirements(release)] == ["torch", "einops"]
        assert index.is_packed(release.file)
        assert index.activity.received - before < release.file.size // 20
