"""What a stack needs of a node's labels: ranges over versions cut in three, and what no label shows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from provisioner.fleet.affinity_needs import Alternative, Bounds, Box, integer, needs_of
from provisioner.fleet.labels import LabelSet
from provisioner.grounds.affinity import UnlabelledRequirement
from provisioner.node_labels import COMPUTE, DRIVER, KERNEL, OLD_DRIVER
from provisioner.resolver.stack import Stack
from provisioner.versions import Range
from provisioner.words.affinity import mismatch_words


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("05", 5), ("+7", 7), ("-3", -3), ("9223372036854775807", 2**63 - 1), ("9223372036854775808", None),
        ("", None), (" 5", None), ("1_0", None), ("\u0665", None), ("5.0", None), ("0x1", None), ("new", None), (None, None),
    ],
)  # fmt: skip
def test_a_label_is_a_number_as_go_reads_it(text: str | None, number: int | None) -> None:
    assert integer(text) == number


def box(major: Bounds | None, minor: Bounds | None = None, revision: Bounds | None = None) -> Box:
    return {key: part for key, part in zip(DRIVER, (major, minor, revision), strict=True) if part is not None}


@pytest.mark.parametrize(
    ("wanted", "drivers", "covers"),
    [
        (">=525.60.13", box(Bounds(526)), True),
        (">=525.60.13", box(Bounds(525)), False),
        (">=525.60.13", box(Bounds(525, 525), Bounds(61)), True),
        (">=525.60.13", box(Bounds(525, 525), Bounds(60)), False),
        (">=525.60.13", box(Bounds(525, 525), Bounds(60, 60), Bounds(13)), True),
        (">=525.60.13", box(Bounds(525, 525), Bounds(60, 60), Bounds(12)), False),
        (">=525.60.13", box(None), False),
        (">=0", box(None), True),
        (">580", box(Bounds(580)), False),
        (">580", box(Bounds(581)), True),
        ("<581", box(Bounds(None, 580)), True),
        ("<581", box(Bounds(None, 581)), False),
        ("<=580.65.06", box(Bounds(580, 580), Bounds(None, 64)), True),
        ("<=580.65.06", box(Bounds(580, 580), Bounds(None, 65)), False),
        ("==535.*", box(Bounds(535, 535)), True),
        ("==535.*", box(Bounds(535, 536)), False),
        ("!=535.*", box(Bounds(536)), True),
        ("!=535.*", box(Bounds(None, 534)), True),
        ("!=535.*", box(Bounds(500)), False),
        ("~=535.54", box(Bounds(535, 535), Bounds(54)), True),
        ("~=535.54", box(Bounds(535)), False),
        (">=535.54.3.1", box(Bounds(999)), False),
        (">=470,<581", box(Bounds(470, 580)), True),
    ],
)
def test_a_box_is_within_a_range_when_all_its_versions_are(wanted: str, drivers: Box, *, covers: bool) -> None:
    assert Alternative(driver=Range.parse(wanted)).covers(drivers) is covers


def test_a_driver_goes_by_either_name_and_a_kernel_by_its_own() -> None:
    wanted = Alternative(driver=Range.parse(">=470"), kernel=Range.parse(">=5.15"))
    assert wanted.covers({OLD_DRIVER[0]: Bounds(470), KERNEL[0]: Bounds(6)})
    assert not wanted.covers({OLD_DRIVER[0]: Bounds(470), KERNEL[0]: Bounds(5)})


def test_every_pair_of_a_box_must_be_a_capability() -> None:
    wanted = Alternative(capabilities=frozenset({(8, 0), (8, 6), (9, 0)}))
    assert wanted.covers({COMPUTE[0]: frozenset({"8", "9"}), COMPUTE[1]: frozenset({"0"})})
    assert not wanted.covers({COMPUTE[0]: frozenset({"8", "9"}), COMPUTE[1]: frozenset({"0", "6"})})
    assert not wanted.covers({COMPUTE[0]: frozenset({"8"})})


def test_what_is_lacking_is_said_label_by_label() -> None:
    values = {"kubernetes.io/arch": frozenset({"amd64"})}
    wanted = Alternative(values=values, capabilities=frozenset({(9, 0)}), driver=Range.parse(">=525.60.13"))
    labels = {"kubernetes.io/arch": "arm64", **dict(zip(COMPUTE, ("8", "0"), strict=True))}
    labels |= dict(zip(DRIVER, ("470", "256", "02"), strict=True))
    assert tuple(map(mismatch_words, wanted.lacking(labels))) == (
        "kubernetes.io/arch is arm64, not amd64",
        "nvidia.com/gpu.compute.major and minor are 8.0, none of 9.0",
        "nvidia.com/cuda.driver-version is 470.256.02, not >=525.60.13",
    )
    assert tuple(map(mismatch_words, wanted.lacking({}))) == (
        "kubernetes.io/arch is missing",
        "nvidia.com/gpu.compute.major and minor are missing",
        "nvidia.com/cuda.driver-version is missing",
    )


def stack(accelerator: str = "cuda", basis: str = "minor-version", **wanted: str) -> Stack:
    return Stack(platform="linux/amd64", accelerator=accelerator, components={}, pins=(), basis=basis, host_requirements=wanted)


def labelled(labels: dict[str, str]) -> LabelSet:
    return LabelSet(labels=labels, names=("n",), hosts=())


def test_a_stack_needs_its_driver_its_targets_and_its_architecture() -> None:
    needs = needs_of(stack(driver=">=525.60.13", gpu="7.5, 8.0", kernel=">=5.4", container_toolkit=">=1.14"), ())
    assert needs.alternatives == (
        Alternative(
            values={"kubernetes.io/arch": frozenset({"amd64"})},
            capabilities=frozenset({(7, 5), (8, 0)}),
            driver=Range.parse(">=525.60.13"),
            kernel=Range.parse(">=5.4"),
        ),
    )
    assert needs.unshown == (UnlabelledRequirement("container_toolkit", ">=1.14"),)


def test_newer_gpus_may_need_a_newer_driver_than_the_rest() -> None:
    gate = (
        "driver>=525.60.13,arch>=7.5,arch<10.0,arch!=8.7 driver>=570.26,arch>=10.0,arch<11.0 brand=tesla,driver>=470,driver<471"
    )
    both = replace(stack(driver=">=525.60.13", gpu="7.5, 8.0, 10.0"), require_cuda=gate)
    found = [(str(one.driver), one.capabilities) for one in needs_of(both, ()).alternatives]
    assert found == [(">=525.60.13", frozenset({(7, 5), (8, 0)})), (">=570.26", frozenset({(10, 0)}))]


def test_single_kernels_are_ways_of_their_own_as_the_renderer_reads_them() -> None:
    """A rule may name single versions. Both readers of a stack admit the same nodes."""
    needs = needs_of(stack(driver=">=525.60.13", gpu="8.0", kernel="6.8 or 6.11"), ())
    labels = {"kubernetes.io/arch": "amd64", **dict(zip(COMPUTE, ("8", "0"), strict=True))}
    labels |= dict(zip(DRIVER, ("550", "54", "15"), strict=True))
    for kernel, meets in (("6.8.0", True), ("6.11.3", True), ("6.9.1", False)):
        node = labels | dict(zip(KERNEL, kernel.split("."), strict=True))
        assert (needs.lacking(node) == ()) is meets, kernel


def test_targets_nobody_measured_are_those_of_the_hosts_it_was_solved_for() -> None:
    hosts = [labelled(dict(zip(COMPUTE, pair, strict=True))) for pair in (("8", "0"), ("9", "0"))]
    assert needs_of(stack(driver=">=525"), hosts).alternatives[0].capabilities == frozenset({(8, 0), (9, 0)})


def test_a_driver_below_the_floor_serves_the_products_that_have_forward_compatibility() -> None:
    old = {**dict(zip(DRIVER, ("470", "256", "02"), strict=True)), **dict(zip(COMPUTE, ("8", "0"), strict=True))}
    hosts = [labelled({**old, "kubernetes.io/arch": "amd64", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"})]
    needs = needs_of(stack(basis="forward-compat", driver=">=525.60.13", gpu="8.0"), hosts)
    assert len(needs.alternatives) == 2
    assert needs.alternatives[1].driver == Range.parse("==470.*")
    assert needs.alternatives[1].values["nvidia.com/gpu.product"] == {"NVIDIA-A100-SXM4-80GB"}
    assert len(needs_of(stack(driver=">=525.60.13", gpu="8.0"), hosts).alternatives) == 1


def test_a_requirement_that_is_no_range_is_met_by_no_label() -> None:
    needs = needs_of(stack(driver="of a branch that knows CUDA 14.0", gpu="8.0"), ())
    assert not needs.covers({"kubernetes.io/arch": frozenset({"amd64"}), DRIVER[0]: Bounds(900)})


def test_amds_devices_and_drivers_are_named() -> None:
    hosts = [labelled({"amd.com/gpu.device-id": "74a1", "amd.com/gpu.driver-version": "6.12.12"})]
    (told,) = needs_of(stack("rocm", "", amdgpu=">=6.4", gpu="gfx942"), hosts).alternatives
    assert told.values["amd.com/gpu.device-id"] == {"74a1"}
    assert told.values["amd.com/gpu.driver-version"] == {"6.12.12"}


def test_a_stack_without_gpus_needs_a_node_of_its_system() -> None:
    (told,) = needs_of(stack("cpu", ""), ()).alternatives
    assert told.values == {"kubernetes.io/arch": frozenset({"amd64"}), "kubernetes.io/os": frozenset({"linux"})}
    assert told.capabilities is None
