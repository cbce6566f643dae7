"""The nodes that a rendered affinity admits, by the rules of Kubernetes' scheduler."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from provisioner.fleet.affinity import Affinity
from provisioner.lock.format.model import LockedStack
from provisioner.node_labels import ARCHITECTURE, COMPUTE, DRIVER, KERNEL
from provisioner.render.header import UnrenderableError
from provisioner.render.node_affinity import node_terms, unlabelled
from provisioner.versions import Range, Version
from tests.scheduler import admits

STACK = LockedStack(
    platform="linux/amd64",
    accelerator="cuda",
    components={},
    host_requirements={"driver": ">=525.60.13", "gpu": "7.5, 8.0, 8.6, 9.0"},
    require_cuda="driver>=525.60.13",
)
VERSIONS = [
    f"{major}.{minor:02}.{revision:02}"
    for major in (524, 525, 526, 534, 535, 536, 580)
    for minor in (0, 4, 59, 60, 61, 104)
    for revision in (0, 1, 5, 12, 13, 14)
]


def node(driver: str, capability: str, *, architecture: str = "amd64", kernel: str = "6.8.0") -> dict[str, str]:
    labels = {ARCHITECTURE: architecture}
    for keys, version in ((COMPUTE, capability), (DRIVER, driver), (KERNEL, kernel)):
        labels |= dict(zip(keys, version.split("."), strict=True))
    return labels


def admitted(stack: LockedStack, labels: dict[str, str]) -> bool:
    return admits(Affinity(terms=node_terms((stack,))), labels)


@pytest.mark.parametrize(
    "text",
    [
        ">=525.60.13",
        ">525.60.13",
        ">=525.60.13,<535",
        ">=525,<=535.104.5",
        "==535.*",
        "!=535.*",
        ">=525.60,!=535.104.5",
        "~=525.60",
        "",
    ],
)
def test_a_node_is_admitted_if_and_only_if_its_driver_is_in_the_range(text: str) -> None:
    stack = replace(STACK, host_requirements={"driver": text, "gpu": "9.0"}, require_cuda="")
    wanted = Range.parse(text)
    for version in VERSIONS:
        assert admitted(stack, node(version, "9.0")) is wanted.allows(Version.parse(version)), version


def test_the_driver_may_depend_on_the_gpu() -> None:
    require = "driver>=525.60.13,arch<10.0 driver>=570.26,arch>=10.0"
    stack = replace(STACK, host_requirements={"driver": ">=525.60.13", "gpu": "9.0, 10.0"}, require_cuda=require)
    assert admitted(stack, node("535.104.05", "9.0"))
    assert not admitted(stack, node("535.104.05", "10.0"))
    assert admitted(stack, node("570.26.00", "10.0"))
    assert not admitted(stack, node("580.65.06", "12.0"))


@pytest.mark.parametrize(
    ("capability", "expected"), [("7.5", True), ("8.6", True), ("8.7", False), ("7.0", False), ("9.6", False)]
)
def test_only_listed_compute_capabilities_are_admitted(capability: str, *, expected: bool) -> None:
    assert admitted(STACK, node("580.65.06", capability)) is expected


def test_a_node_of_another_architecture_or_without_labels_is_not_admitted() -> None:
    assert not admitted(STACK, node("580.65.06", "9.0", architecture="arm64"))
    assert not admitted(STACK, {ARCHITECTURE: "amd64"})
    both = node_terms((STACK, replace(STACK, platform="linux/arm64")))
    assert admits(Affinity(terms=both), node("580.65.06", "9.0", architecture="arm64"))


def test_the_kernel_is_a_label_of_node_feature_discovery() -> None:
    stack = replace(STACK, host_requirements={**STACK.host_requirements, "kernel": ">=5.15,<6.9"})
    assert admitted(stack, node("580.65.06", "9.0"))
    assert not admitted(stack, node("580.65.06", "9.0", kernel="6.9.1"))


def test_a_version_of_more_numbers_than_labels_is_refused() -> None:
    with pytest.raises(UnrenderableError) as caught:
        node_terms((replace(STACK, host_requirements={"gpu": "9.0", "driver": ">=1.2.3.4"}, require_cuda=""),))
    assert caught.value.message == "node labels show 3 numbers of a version, and the lock requires >=1.2.3.4"


def test_what_no_label_shows_is_told() -> None:
    stack = replace(STACK, host_requirements={**STACK.host_requirements, "driver_module": "open"})
    assert unlabelled((stack,)) == ("driver_module open",)
    amd = replace(STACK, accelerator="rocm", host_requirements={"gpu": "gfx942", "amdgpu": ">=6.3"}, require_cuda="")
    assert unlabelled((amd,)) == ("gpu gfx942", "amdgpu >=6.3")
    assert admitted(amd, {ARCHITECTURE: "amd64"})
