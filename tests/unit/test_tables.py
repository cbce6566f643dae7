"""The tables of components, accelerators and platforms agree with each other, with profiles and with the shipped matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args, get_type_hints

import pytest

from provisioner.accelerators import ACCELERATORS, GPU_ACCELERATORS, AcceleratorName, accelerator_of_target
from provisioner.components import COMPONENTS, DRIVERS, FRAMEWORKS, LEADS, Component, Move, Supplier
from provisioner.host.model import Driver, Host, HostGpu
from provisioner.matrix.cache import cached_matrix
from provisioner.platforms import LINUX_PLATFORMS, MACOS_PLATFORMS, PLATFORM_NAMES, PlatformName, platform_of
from provisioner.spec.model import HOST_KEYS

if TYPE_CHECKING:
    from provisioner.platforms import System

ROWS = list(COMPONENTS.values())


def test_the_types_of_names_list_the_rows() -> None:
    assert get_args(PlatformName) == PLATFORM_NAMES == (*LINUX_PLATFORMS, *MACOS_PLATFORMS)
    assert get_args(AcceleratorName) == tuple(ACCELERATORS)
    kinds = get_args(get_type_hints(Driver)["kind"])
    assert set(kinds) == {COMPONENTS[name].driver_kind for name in DRIVERS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_fact_is_stated_under_a_key_of_a_profile(row: Component) -> None:
    assert row.key.partition(".")[0] in {"", *get_type_hints(Host)}
    assert not row.key or row.is_of_host or row.supplier is Supplier.BASE_IMAGE


def test_a_spec_knows_the_keys_of_a_host_profile() -> None:
    assert sorted(Host.__struct_encode_fields__) == list(HOST_KEYS)


@pytest.mark.parametrize("name", sorted(COMPONENTS.keys() & cached_matrix(None).components.keys()))
def test_a_row_says_of_a_component_what_the_matrix_says(name: str) -> None:
    row, component = COMPONENTS[name], cached_matrix(None).components[name]
    assert component.virtual == (row.supplier is not Supplier.INSTALLER and name != "nvcc")
    assert component.named == (row.is_named and name != "gpu")


def test_an_accelerator_names_components_that_are_for_it() -> None:
    for accelerator in ACCELERATORS.values():
        for name in accelerator.drivers:
            assert COMPONENTS[name].accelerators == {accelerator.name}
        systems = {system for name in accelerator.drivers for system in COMPONENTS[name].systems}
        assert systems <= accelerator.systems
    assert {name for row in GPU_ACCELERATORS for name in row.drivers} == {*DRIVERS, "cuda_driver"}
    assert (*FRAMEWORKS, "cuda", "rocm") == LEADS


def test_a_gpu_has_a_key_for_the_code_of_each_accelerator() -> None:
    assert {row.target_key for row in GPU_ACCELERATORS} <= get_type_hints(HostGpu).keys()
    assert [getattr(accelerator_of_target(text), "name", None) for text in ("9.0", "gfx90a", "sm_90", "")] == [
        "cuda", "rocm", None, None
    ]  # fmt: skip
    assert HostGpu.of_target("gfx942", name="X", count=8) == HostGpu(gfx="gfx942", name="X", count=8)
    assert [HostGpu.of_target(text).accelerator for text in ("12.0", "gfx1201")] == ["cuda", "rocm"]
    with pytest.raises(ValueError, match="`sm_90` is not a target of a GPU"):
        HostGpu.of_target("sm_90")


def test_every_move_is_led_by_the_component_of_its_name() -> None:
    for move in Move:
        assert COMPONENTS[move].move is move
    for row in ROWS:
        assert not row.installed_with or row.installed_with in COMPONENTS
        assert not row.remedy or row.is_prepared


@pytest.mark.parametrize(
    ("system", "machine", "platform"),
    [
        ("linux", "x86_64", "linux/amd64"),
        ("linux", "amd64", "linux/amd64"),
        ("linux", "aarch64", "linux/arm64"),
        ("linux", "arm64", "linux/arm64"),
        ("macos", "arm64", "macos/arm64"),
        ("macos", "x86_64", "macos/x86_64"),
        ("macos", "aarch64", None),
        ("linux", "riscv64", None),
    ],
)
def test_a_machine_is_known_by_the_names_that_kernels_and_distributions_have_for_it(
    system: System, machine: str, platform: str | None
) -> None:
    assert platform_of(system, machine) == platform
