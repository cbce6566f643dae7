"""Releases that each pin another version of one distribution are told as the ranges on either side of the one asked for."""

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

PINS = {
    1: "1.0",
    2: "1.1",
    3: "1.2",
    4: "1.3",
    5: "1.4",
    6: "1.6",
    7: "1.7",
    8: "1.8",
    9: "1.9",
    10: "1.10",
    11: "1.11",
    12: "1.12",
}
"""The version of `tensors` that each release of `server` pins: all but 1.5, which nobody does."""


@pytest.mark.parametrize("oldest", [pytest.param(0, id="all-pythons-alike"), pytest.param(9, id="newest-for-newer-pythons")])
def test_pins_on_either_side_of_the_version_asked_for_are_two_ranges(tmp_path: Path, oldest: int) -> None:
    """As vllm, of which each release pins another PyTorch and none 2.4; older Pythons have fewer releases of it."""
    with LoopbackIndex() as index:
        for release, pinned in PINS.items():
            python = ">=3.12" if oldest and release >= oldest else ">=3.9"
            index.add_wheel("server", f"0.{release}", requires=[f"tensors=={pinned}"], requires_python=python)
        for minor in range(13):
            index.add_wheel("tensors", f"1.{minor}")
        settings = IndexSettings(
            indexes=(IndexLocation(name="pypi", url=index.url),), cache_directory=tmp_path / "cache", fresh_seconds=0
        )
        spec = Spec(name="demo", packages=("server", "tensors==1.5"), policy=Policy())
        asked = Request(spec=spec, hosts=(), platform="linux/amd64")
        with pytest.raises(NoStackError) as caught:
            solve_joint(join(shipped(), asked), lambda environment: PackageIndex(settings, environment))
    (said,) = (cause for cause in caught.value.causes if cause.startswith("server"))
    above, below = (
        "server 0.6 … 0.12 need tensors ranges within 1.6 … 1.12",
        "server 0.1 … 0.5 need tensors ranges within 1.0 … 1.4",
    )
    assert said == f"{above}; {below}  (metadata of server 0.12 and 11 more)"
