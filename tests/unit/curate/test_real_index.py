"""The derivers against the real index: it has every row of the shipped files, and the newest one byte for byte."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.curate.derive import Session
from provisioner.curate.keep import losses, with_kept_facts
from provisioner.curate.refresh import DERIVERS
from provisioner.curate.rows import file_text
from provisioner.curate.wheel_index import WheelIndex
from provisioner.index.settings import settings_from_pip
from provisioner.matrix.files import read_files
from provisioner.matrix.location import default_directory

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.network


@pytest.mark.parametrize("component", ["tensorrt", "nvcc"])
def test_the_index_has_what_the_shipped_file_says(component: str, tmp_path: Path) -> None:
    (old, *_) = (part.content for part in read_files(default_directory()).components[component])
    deriver = DERIVERS[component]
    settings = replace(settings_from_pip(os.environ), cache_directory=tmp_path)
    with WheelIndex(settings) as index:
        derived, dropped = with_kept_facts(old, deriver.derive(Session(index=index, today="2026-01-01", old=old)))
    assert (losses(old, derived), dropped) == ((), ())
    known = {release.version for release in old.releases}
    same = replace(
        derived, sources=old.sources, releases=tuple(release for release in derived.releases if release.version in known)
    )
    assert file_text(same, header=deriver.header) == file_text(old, header=deriver.header)


def test_the_ptxas_of_a_toolkit_tells_what_its_row_says(tmp_path: Path) -> None:
    """11.8: the smallest wheel that has one."""
    (old, *_) = (part.content for part in read_files(default_directory()).components["nvcc"])
    row = next(release for release in old.releases if str(release.version) == "11.8.0")
    bare = replace(row, builds=tuple(replace(build, sass=None, ptx=None, source=build.source[:1]) for build in row.builds))
    with WheelIndex(replace(settings_from_pip(os.environ), cache_directory=tmp_path)) as index:
        session = Session(index=index, today="2026-01-01", old=old)
        (measured,) = DERIVERS["nvcc"].measure(session, replace(old, releases=(bare,))).builds
    assert [(measured.sass, measured.ptx)] == [(build.sass, build.ptx) for build in row.builds]
    assert measured.source == (row.builds[0].source[0], "nvcc-ptxas")
