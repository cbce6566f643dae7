"""What a stack is told that needs libraries of the system of which the matrix knows no package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.index.client import PackageIndex
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.matrix.model import SystemWheel
from provisioner.request import Request
from provisioner.resolver.joint import solve_joint
from provisioner.resolver.problem import join
from provisioner.spec.model import ImageSpec, Spec
from tests.loopback_index import LoopbackIndex
from tests.shipped import shipped
from tests.told import unverified

if TYPE_CHECKING:
    from pathlib import Path


def test_a_library_that_no_row_names_is_unverified_by_its_name(tmp_path: Path) -> None:
    row = SystemWheel(
        distribution="demo",
        versions="==1.0",
        links=("libGL.so.1", "libunheard.so.7"),
        artefacts={"demo-1.0-cp311-cp311-manylinux_2_28_x86_64.whl": "0" * 64},
    )
    spec = Spec(accelerator="cpu", requires={"python": "3.11"}, packages=("demo",), image=ImageSpec(base="slim"))
    with LoopbackIndex() as index:
        index.add_wheel(name="demo", version="1.0", tag="cp311-cp311-manylinux_2_28_x86_64")
        settings = IndexSettings(
            indexes=(IndexLocation(name="pypi", url=index.url),), cache_directory=tmp_path / "cache", fresh_seconds=0
        )
        problem = join(replace(shipped(), system_wheels=(row,)), Request(spec=spec, hosts=(), platform="linux/amd64"))
        stack = solve_joint(problem, lambda environment: PackageIndex(settings, environment))
    assert [one.name for one in stack.system_packages] == ["libgl1"]
    (told,) = unverified(stack)
    assert told == "demo: 1.0 needs libunheard.so.7, and the matrix knows no package of debian:13 with it"
