"""What feature discovery would put on a node with given facts, and hosts grouped by it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from provisioner.fleet.labels import label_sets, labels_of
from provisioner.host.inventory import InventoryHost
from provisioner.host.model import Driver, Host, HostGpu, Jetson, OperatingSystem

NFD = "feature.node.kubernetes.io"
A100 = Host(
    platform="linux/amd64",
    os=OperatingSystem(id="ubuntu", version="22.04"),
    kernel="5.15.0-105-generic",
    driver=Driver(version="550.54.15", module="open"),
    gpus=(HostGpu(name="NVIDIA A100-SXM4-80GB", compute_capability="8.0", count=8),),
)


def test_a_host_of_one_kind_of_gpu_has_every_label() -> None:
    assert labels_of(A100) == {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        f"{NFD}/kernel-version.full": "5.15.0-105-generic",
        f"{NFD}/kernel-version.major": "5",
        f"{NFD}/kernel-version.minor": "15",
        f"{NFD}/kernel-version.revision": "0",
        f"{NFD}/system-os_release.ID": "ubuntu",
        f"{NFD}/system-os_release.VERSION_ID": "22.04",
        "nvidia.com/gpu.compute.major": "8",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/cuda.driver-version.major": "550",
        "nvidia.com/cuda.driver-version.minor": "54",
        "nvidia.com/cuda.driver-version.revision": "15",
        "nvidia.com/cuda.driver.major": "550",
        "nvidia.com/cuda.driver.minor": "54",
        "nvidia.com/cuda.driver.rev": "15",
    }


def test_a_fact_that_is_not_stated_has_no_label() -> None:
    assert labels_of(Host()) == {}
    assert labels_of(Host(gpus=(HostGpu(name="Tesla T4"),))) == {"nvidia.com/gpu.product": "Tesla-T4"}


def test_of_several_kinds_only_what_they_share_is_known() -> None:
    mixed = Host(
        gpus=(
            HostGpu(name="NVIDIA A10", compute_capability="8.6"),
            HostGpu(name="NVIDIA RTX A6000", compute_capability="8.6"),
        )
    )
    assert labels_of(mixed) == {"nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "6"}
    assert labels_of(Host(gpus=(HostGpu(compute_capability="8.6"), HostGpu(compute_capability="9.0")))) == {}
    assert labels_of(Host(gpus=(HostGpu(compute_capability="8.6"), HostGpu()))) == {}


@pytest.mark.parametrize(
    ("version", "parts"),
    [("470.256.02", ("470", "256", "02")), ("455.06", ("455", "06", "")), ("1.2.3.4", None), ("550", None)],
)
def test_a_driver_is_cut_up_as_it_is_spelled(version: str, parts: tuple[str, str, str] | None) -> None:
    host = Host(driver=Driver(version=version), gpus=(HostGpu(compute_capability="7.0"),))
    found = labels_of(host)
    names = [f"nvidia.com/cuda.driver-version.{part}" for part in ("major", "minor", "revision")]
    assert tuple(found.get(name) for name in names) == (parts or (None, None, None))


@pytest.mark.parametrize(
    ("release", "full", "parts"),
    [
        ("6.6.93+", "6.6.93", ("6", "6", "93")),
        ("4.18.0-553.el8_10.x86_64", "4.18.0-553.el8_10.x86_64", ("4", "18", "0")),
        ("6.8", "6.8", ("6", "8", "")),
        ("6.1.0~rc1", "6.1.0_rc1", None),
    ],
)
def test_a_kernel_is_cut_up_as_feature_discovery_does(release: str, full: str, parts: tuple[str, str, str] | None) -> None:
    found = labels_of(Host(kernel=release))
    assert found.pop(f"{NFD}/kernel-version.full") == full
    assert tuple(found.values()) == (parts or ())


def test_a_product_is_spelled_as_a_label_may_be() -> None:
    host = Host(gpus=(HostGpu(name="NVIDIA  GeForce RTX™ 4090 (AD102)", compute_capability="8.9"),))
    assert labels_of(host)["nvidia.com/gpu.product"] == "NVIDIA-GeForce-RTX-4090-AD102"


def test_amds_labels_are_names() -> None:
    gpu = HostGpu(name="AMD Instinct MI300X", gfx="gfx942", pci_device_id="74A1", count=8)
    host = Host(driver=Driver(kind="amdgpu", version="6.12.12"), gpus=(gpu,))
    assert labels_of(host) == {
        "amd.com/gpu.device-id": "74a1",
        "amd.com/gpu.product-name": "AMD_Instinct_MI300X",
        "amd.com/gpu.driver-version": "6.12.12",
    }


def test_a_mac_is_no_node() -> None:
    mac = Host(platform="macos/arm64", os=OperatingSystem(id="macos", version="14.0"))
    assert labels_of(mac) == {}


def test_a_jetson_states_its_release_and_no_label_shows_it() -> None:
    orin = Host(platform="linux/arm64", gpus=(HostGpu(compute_capability="8.7"),), jetson=Jetson(l4t="36.4.3"))
    assert set(labels_of(orin).values()) == {"arm64", "linux", "8", "7"}


def test_hosts_of_the_same_labels_are_one_set() -> None:
    closed = replace(A100, driver=Driver(version="550.54.15", module="proprietary"))
    listed = [InventoryHost(name=name, host=host) for name, host in (("a", A100), ("b", closed), ("c", A100))]
    (found,) = label_sets(listed)
    assert found.names == ("a", "b", "c")
    assert found.hosts == (A100, closed)


def test_labels_kubernetes_told_come_before_those_facts_come_to() -> None:
    told = {"kubernetes.io/arch": "arm64", "nvidia.com/gpu.memory": "81559"}
    (found,) = label_sets([InventoryHost(name="a", host=A100, labels=told)])
    assert found.labels == {"kubernetes.io/arch": "arm64"}
