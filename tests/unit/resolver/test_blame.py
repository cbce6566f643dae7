"""With an open Python, what has no answer with any Python is blamed, and not what has none with some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.index.client import PackageIndex
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.request import Request
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from provisioner.spec.model import Policy, Spec
from tests.loopback_index import LoopbackIndex
from tests.shipped import shipped

if TYPE_CHECKING:
    from pathlib import Path


def test_a_request_without_files_for_most_pythons_is_not_blamed_for_another_that_nothing_meets(tmp_path: Path) -> None:
    """As faster-whisper 0.9.0, whose av has no wheel, with numpy 1.22.0, which has files for three old Pythons."""
    with LoopbackIndex() as index:
        for python in ("cp38", "cp39", "cp310"):
            index.add_wheel("arrays", "1.22", tag=f"{python}-{python}-manylinux_2_17_x86_64")
        index.add_sdist("arrays", "1.22", dynamic=True)
        index.add_wheel("whisper", "0.9", requires=["video==10"], requires_python=">=3.8")
        index.add_sdist("video", "10", dynamic=True)
        settings = IndexSettings(
            indexes=(IndexLocation(name="pypi", url=index.url),),
            cache_directory=tmp_path / "cache",
            fresh_seconds=0,
            allow_sdist=True,
        )
        spec = Spec(name="demo", packages=("whisper==0.9", "arrays==1.22"), policy=Policy(allow=("sdist",)))
        asked = Request(spec=spec, hosts=(), platform="linux/amd64")
        with pytest.raises(NoStackError) as caught:
            solve_joint(join(shipped(), asked), lambda environment: PackageIndex(settings, environment))
    assert [cause for cause in caught.value.causes if "you require" in cause] == ["you require whisper==0.9  (the spec)"]
