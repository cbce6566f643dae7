"""Nodes as `kubectl` prints them: what labels say becomes a fact, and what they leave open stays unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from provisioner.host.inventory import read_inventory
from provisioner.host.kubernetes import NodeReader, is_kubernetes
from provisioner.host.model import Driver, Host, HostGpu
from provisioner.host.profile import host_document
from provisioner.words.remark import remark_words
from tests.named_gpus import catalogue_of

NODES = Path(__file__).parents[2] / "fixtures/nodes"
PRODUCTS = {
    "NVIDIA A100-SXM4-40GB": "8.0",
    "NVIDIA GeForce RTX 4090": "8.9",
    "NVIDIA H100 80GB HBM3": "9.0",
    "NVIDIA L4": "8.9",
    "Tesla T4": "7.5",
    "Tesla V100-SXM2-32GB": "7.0",
    "AMD Instinct MI300X": "gfx942",
    "74B5": "gfx942",
}
COMPUTE = {"nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0"}


def test_twelve_kinds_of_node_are_read_as_written_beside_them() -> None:
    shown = []
    for one in read_inventory((NODES / "cluster.json",), catalogue=catalogue_of(PRODUCTS)):
        shown.append(f"# {one.name}\n{host_document(one.host)}")
        shown += [f"#  note: {remark_words(remark)}\n" for remark in one.remarks]
    assert "".join(shown) == (NODES / "cluster.txt").read_text(encoding="utf-8")


def read(
    labels: dict[str, str], *, capacity: dict[str, str] | None = None, wrong: list[str] | None = None, **info: str
) -> tuple[Host, tuple[str, ...]]:
    """One node with these labels; `wrong` collects what is found to be wrong, else nothing may be."""
    item: dict[str, Any] = {
        "metadata": {"name": "n", "labels": labels},
        "status": {"capacity": capacity or {}, "nodeInfo": info},
    }
    reader = NodeReader(catalogue_of(PRODUCTS))
    ((_, node),) = reader.read({"kind": "Node", **item})
    if wrong is None:
        assert reader.mistakes == []
    else:
        wrong += sentences(reader)
    return node.host, tuple(map(remark_words, node.remarks))


def sentences(reader: NodeReader) -> list[str]:
    """What is wrong, each with its place."""
    return [f"{'.'.join(map(str, path))}: {text}" for path, text in reader.mistakes]


def test_the_kubelet_tells_platform_kernel_and_system() -> None:
    host, _ = read({}, architecture="arm64", kernelVersion="6.8.0-1020-aws", osImage="Ubuntu 24.04.1 LTS")
    assert host_document(host) == 'platform: linux/arm64\nos: {id: ubuntu, version: "24.04"}\nkernel: 6.8.0-1020-aws\n'


@pytest.mark.parametrize(
    ("image", "system"),
    [
        ("Amazon Linux 2", ("amzn", "2")),
        ("Debian GNU/Linux 12 (bookworm)", ("debian", "12")),
        ("Red Hat Enterprise Linux 9.4 (Plow)", ("rhel", "9.4")),
        ("Rocky Linux 9.3 (Blue Onyx)", ("rocky", "9.3")),
        ("Red Hat Enterprise Linux CoreOS 416.94.202410172137-0", ("rhcos", "416.94.202410172137-0")),
        ("AlmaLinux 9.4 (Seafoam Ocelot)", ("almalinux", "9.4")),
        ("Oracle Linux Server 8.10", ("ol", "8.10")),
        ("CentOS Stream 9", ("centos", "9")),
        ("Microsoft Azure Linux 3.0", ("azurelinux", "3.0")),
        ("Bottlerocket OS 1.26.2 (aws-k8s-1.31-nvidia)", ("bottlerocket", "1.26.2")),
        ("Container-Optimized OS from Google", None),
        ("Talos (v1.9.1)", ("talos", "1.9.1")),
    ],
)
def test_a_pretty_name_is_read_where_its_form_is_known(image: str, system: tuple[str, str] | None) -> None:
    host, _ = read({}, osImage=image)
    assert (host.os and (host.os.id, host.os.version)) == system


def test_labels_of_the_system_come_before_the_pretty_name() -> None:
    release = "feature.node.kubernetes.io/system-os_release"
    host, _ = read({f"{release}.ID": "rhcos", f"{release}.VERSION_ID": "4.16"}, osImage="Ubuntu 22.04.5 LTS")
    assert host_document(host) == 'os: {id: rhcos, version: "4.16"}\n'


@pytest.mark.parametrize(
    ("parts", "driver"),
    [
        ({"driver-version.major": "550", "driver-version.minor": "54", "driver-version.revision": "15"}, "550.54.15"),
        ({"driver.major": "455", "driver.minor": "06", "driver.rev": ""}, "455.06"),
        ({"driver-version.major": "580", "driver-version.minor": "9", "driver.major": "1", "driver.minor": "2"}, "580.9"),
        ({"driver.major": "unknown", "driver.minor": "unknown", "driver.rev": "unknown"}, None),
    ],
)
def test_a_driver_is_read_under_its_new_names_and_its_first(parts: dict[str, str], driver: str | None) -> None:
    host, _ = read({f"nvidia.com/cuda.{key}": value for key, value in parts.items()})
    assert (host.driver and host.driver.version) == driver


def test_the_flavour_of_the_driver_stays_unknown() -> None:
    host, _ = read({"nvidia.com/cuda.driver-version.major": "550", "nvidia.com/cuda.driver-version.minor": "54"})
    assert host.driver == Driver(version="550.54", module=None)


def test_a_compute_capability_comes_before_a_name_nobody_knows() -> None:
    host, _ = read({**COMPUTE, "nvidia.com/gpu.product": "NVIDIA-PG506-232", "nvidia.com/gpu.count": "4"})
    assert host.gpus == (HostGpu(name="NVIDIA-PG506-232", compute_capability="8.0", count=4),)


def test_a_name_nobody_knows_is_no_fact_without_a_compute_capability() -> None:
    host, _ = read({"nvidia.com/gpu.product": "NVIDIA-PG506-232", "nvidia.com/gpu.count": "4"})
    assert host.gpus == (HostGpu(count=4),)


def test_older_drivers_leave_the_vendor_out_of_a_product() -> None:
    host, _ = read({**COMPUTE, "nvidia.com/gpu.product": "A100-SXM4-40GB"})
    assert host.gpus == (HostGpu(name="NVIDIA A100-SXM4-40GB", compute_capability="8.0"),)


def test_the_family_of_a_gpu_decides_nothing() -> None:
    host, _ = read({"nvidia.com/gpu.family": "blackwell"})
    assert host.gpus is None


@pytest.mark.parametrize(
    ("labels", "capacity", "gpus"),
    [
        ({}, {}, None),
        ({"nvidia.com/gpu.present": "true"}, {}, (HostGpu(),)),
        ({"nvidia.com/gpu.present": "false"}, {}, ()),
        ({}, {"nvidia.com/gpu": "8"}, (HostGpu(count=8),)),
        ({}, {"nvidia.com/gpu": "0"}, None),
        ({}, {"amd.com/gpu": "4"}, (HostGpu(count=4),)),
        ({"feature.node.kubernetes.io/pci-0302_10de.present": "true"}, {}, (HostGpu(),)),
        ({"feature.node.kubernetes.io/pci-10de.present": "true"}, {}, (HostGpu(),)),
        ({"feature.node.kubernetes.io/pci-1200_1002.present": "true"}, {}, (HostGpu(),)),
        ({"feature.node.kubernetes.io/pci-0300_1a03.present": "true"}, {}, ()),
        ({"feature.node.kubernetes.io/kernel-version.full": "6.8.0"}, {}, None),
    ],
)
def test_no_gpu_is_said_only_by_who_looked(
    labels: dict[str, str], capacity: dict[str, str], gpus: tuple[HostGpu, ...] | None
) -> None:
    host, _ = read(labels, capacity=capacity)
    assert host.gpus == gpus


def test_a_label_of_the_cluster_s_own_that_names_a_gpu_is_told_where_nothing_else_does() -> None:
    host, (remark,) = read({"gpu": "a100", "example.com/accelerator-type": "l4", "team": "vision"})
    assert host.gpus is None
    assert remark == (
        "gpu: the labels example.com/accelerator-type and gpu are none that is read; GPU Feature Discovery "
        "(nvidia.com/gpu.product), AMD's labeller or a profile tell the GPU"
    )
    assert read({"gpu": "none"})[1] == ()
    assert read({"gpu": "a100", **COMPUTE})[1] == ()


def test_what_kubelet_counts_beyond_the_labels_is_a_gpu_nobody_described() -> None:
    labels = {**COMPUTE, "nvidia.com/gpu.count": "2", "nvidia.com/gpu.sharing-strategy": "none"}
    host, notes = read(labels, capacity={"nvidia.com/gpu": "3"})
    assert host.gpus == (HostGpu(compute_capability="8.0", count=2), HostGpu())
    assert notes == ("gpu: kubelet counts 3, and the labels describe 2: a node has one set of GPU labels",)


def test_replicas_of_a_shared_gpu_are_no_other_gpus() -> None:
    labels = {**COMPUTE, "nvidia.com/gpu.count": "1", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    host, notes = read(labels, capacity={"nvidia.com/gpu": "4"})
    assert host.gpus == (HostGpu(compute_capability="8.0"),)
    assert notes == ()


def test_amd_products_of_several_kinds_are_counted_apart() -> None:
    labels = {"amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "6", "amd.com/gpu.product-name.AMD_Instinct_MI9": "2"}
    host, _ = read(labels, capacity={"amd.com/gpu": "8"})
    assert host.gpus == (HostGpu(name="AMD Instinct MI300X", gfx="gfx942", count=6), HostGpu(count=2))


def test_a_virtual_function_of_amds_is_known_by_its_device() -> None:
    host, _ = read({"amd.com/gpu.device-id": "74b5"}, capacity={"amd.com/gpu": "1"})
    assert host.gpus == (HostGpu(gfx="gfx942", pci_device_id="74B5"),)


def test_a_hypervisor_makes_a_virtual_machine() -> None:
    assert read({"feature.node.kubernetes.io/cpu-cpuid.HYPERVISOR": "true"})[0].virtualization == "vm"
    assert read({"feature.node.kubernetes.io/cpu-cpuid.AVX2": "true"})[0].virtualization is None


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (
            {"nvidia.com/gpu.compute.major": "eight", "nvidia.com/gpu.compute.minor": "0"},
            "metadata.labels.nvidia.com/gpu.compute.major: `eight` is not a number",
        ),
        (
            {"nvidia.com/gpu.compute.major": "8"},
            "metadata.labels.nvidia.com/gpu.compute.minor: is missing beside the other half",
        ),
        (
            {"nvidia.com/cuda.driver-version.major": "R550"},
            "metadata.labels.nvidia.com/cuda.driver-version.major: `R550` is not the version of a driver",
        ),
        (
            {"amd.com/gpu.driver-version": "new"},
            "metadata.labels.amd.com/gpu.driver-version: `new` is not the version of a driver",
        ),
        (
            {"kubernetes.io/arch": 64},
            "metadata.labels.kubernetes.io/arch: `64` is not text; Kubernetes writes every label in quotes",
        ),
    ],
)
def test_a_label_that_is_edited_by_hand_is_named(labels: dict[str, str], sentence: str) -> None:
    wrong: list[str] = []
    read(labels, wrong=wrong)
    assert wrong == [sentence]


def test_nodes_that_say_the_same_share_their_facts_and_their_labels() -> None:
    reader = NodeReader(catalogue_of({}))
    items = [{"metadata": {"name": name, "labels": {**COMPUTE, "nvidia.com/gfd.timestamp": name}}} for name in ("1", "2")]
    (_, first), (_, second) = reader.read({"kind": "List", "items": items})
    assert first.host is second.host
    assert first.labels is second.labels
    assert first.labels == COMPUTE


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"kind": "Pod"}, ["kind: `Pod` is neither a Node nor a List of them: save what `kubectl get nodes -o json` prints"]),
        ({"kind": "List", "items": {}}, ["items: must be a list of nodes"]),
        ({"kind": "List", "items": [7, {"kind": "Pod"}]}, ["items.0: must be a node", "items.1.kind: `Pod` is not a Node"]),
        ({"kind": "Node", "metadata": {"name": "n"}}, []),
    ],
)
def test_what_is_no_node_is_named(data: dict[str, Any], told: list[str]) -> None:
    reader = NodeReader(catalogue_of({}))
    found = list(reader.read(data))
    assert sentences(reader) == told
    assert len(found) == (0 if told else 1)


def test_a_profile_is_no_kubernetes_object() -> None:
    assert is_kubernetes({"apiVersion": "v1", "kind": "List"})
    assert not is_kubernetes({"kernel": "6.8.0"})
    assert not is_kubernetes([])


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ({}, "metadata.name: a node must have a name"),
        ({"metadata": {"name": 7}}, "metadata.name: a node must have a name"),
        ({"metadata": []}, "metadata: must be a mapping"),
        ({"metadata": {"name": "n", "labels": []}}, "metadata.labels: must be a mapping"),
        ({"metadata": {"name": "n"}, "status": {"capacity": 8}}, "status.capacity: must be a mapping"),
    ],
)
def test_a_node_of_another_form_is_named(item: dict[str, Any], sentence: str) -> None:
    reader = NodeReader(catalogue_of({}))
    list(reader.read({"kind": "Node", **item}))
    assert sentences(reader)[0] == sentence


@pytest.mark.parametrize(
    ("extra", "notes"),
    [
        ({}, ()),
        ({"spec": {"unschedulable": True}}, ("the node takes no new pods (cordoned)",)),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, ("the node is not ready",)),
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "False"}]}}, ()),
    ],
)
def test_a_node_that_takes_no_work_is_listed_with_a_note(extra: dict[str, Any], notes: tuple[str, ...]) -> None:
    ((_, node),) = NodeReader(catalogue_of({})).read({"kind": "Node", "metadata": {"name": "n"}, **extra})
    assert tuple(map(remark_words, node.remarks)) == notes


def listed(*nodes: tuple[str, dict[str, str], dict[str, str]]) -> list[Host]:
    """The hosts of a list of nodes, each with its name, labels and capacity."""
    items = [
        {"kind": "Node", "metadata": {"name": n, "labels": labels}, "status": {"capacity": own}} for n, labels, own in nodes
    ]
    return [node.host for _, node in NodeReader(catalogue_of(PRODUCTS)).read({"kind": "List", "items": items})]


UNKNOWN_DRIVER = tuple(f"nvidia.com/cuda.driver.{part}" for part in ("major", "minor", "rev"))
GPU_NODE = ("gpu", {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "1"}, {"nvidia.com/gpu": "1"})


def test_a_node_without_a_sign_of_a_gpu_among_nodes_with_gpus_has_none() -> None:
    gpu, cpu = listed(GPU_NODE, ("cpu", {"kubernetes.io/arch": "amd64"}, {"cpu": "8"}))
    assert gpu.gpus == (HostGpu(name="Tesla T4", compute_capability="7.5", count=1),)
    assert cpu.gpus == ()


def test_a_node_alone_may_have_a_gpu_that_nothing_labels() -> None:
    (cpu,) = listed(("cpu", {"kubernetes.io/arch": "amd64"}, {"cpu": "8"}))
    assert cpu.gpus is None


def test_a_node_of_an_instance_type_with_gpus_is_no_cpu_node() -> None:
    _, bare = listed(GPU_NODE, ("bare", {"node.kubernetes.io/instance-type": "g4dn.xlarge"}, {"cpu": "8"}))
    assert bare.gpus is None


def test_the_instance_type_names_a_gpu_that_kubelet_counts() -> None:
    host, notes = read({"node.kubernetes.io/instance-type": "g4dn.12xlarge"}, capacity={"nvidia.com/gpu": "4"})
    assert host.gpus == (HostGpu(name="Tesla T4", compute_capability="7.5", count=4),)
    assert notes == ()


def test_a_node_that_offers_gpus_or_slices_has_a_container_toolkit() -> None:
    assert read({}, capacity={"nvidia.com/gpu": "1"})[0].container_toolkit == "present"
    assert read({}, capacity={"nvidia.com/mig-1g.5gb": "7"})[0].container_toolkit == "present"
    assert read({}, capacity={"nvidia.com/gpu": "0"})[0].container_toolkit is None
    assert read({}, capacity={"amd.com/gpu": "8"})[0].container_toolkit is None


@pytest.mark.parametrize("prefix", ["amd.com/gpu", "beta.amd.com/gpu"])
def test_both_prefixes_of_amds_labeller_are_read(prefix: str) -> None:
    labels = {f"{prefix}.product-name": "AMD_Instinct_MI300X_OAM", f"{prefix}.family": "AI"}
    assert read(labels, capacity={"amd.com/gpu": "8"})[0].gpus == (HostGpu(name="AMD Instinct MI300X", gfx="gfx942", count=8),)


def test_a_product_names_the_target_that_no_label_tells() -> None:
    host, _ = read({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.count": "7"})
    assert host.gpus == (HostGpu(name="NVIDIA A100-SXM4-40GB", compute_capability="8.0", count=1),)


@pytest.mark.parametrize(
    ("labels", "capacity", "driver"),
    [
        ({}, {"nvidia.com/gpu": "1"}, Driver()),
        ({}, {"amd.com/gpu": "8"}, Driver(kind="amdgpu")),
        (dict.fromkeys(UNKNOWN_DRIVER, "unknown"), {"nvidia.com/gpu": "1"}, None),
        ({"nvidia.com/gpu.present": "true"}, {}, None),
    ],
    ids=["nvidia", "amd", "jetson", "no device plugin"],
)
def test_a_node_that_offers_gpus_has_a_driver(labels: dict[str, str], capacity: dict[str, str], driver: Driver | None) -> None:
    assert read(labels, capacity=capacity)[0].driver == driver


MIXED = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.replicas": "0",
    "nvidia.com/mig.strategy": "mixed",
}
"""What GPU feature discovery writes where every GPU is in MIG mode (NVIDIA/k8s-device-plugin, internal/lm/mig-strategy.go)."""


@pytest.mark.parametrize(
    ("labels", "capacity", "mig"),
    [
        (MIXED, {"nvidia.com/gpu": "0"}, "undivided"),
        (MIXED, {}, "undivided"),
        (MIXED, {"nvidia.com/mig-1g.5gb": "7"}, None),
        ({**MIXED, "nvidia.com/mig-1g.5gb.count": "7"}, {}, None),
        ({**MIXED, "nvidia.com/gpu.replicas": "1"}, {"nvidia.com/gpu": "1"}, None),
        ({**MIXED, "nvidia.com/mig.strategy": "none"}, {"nvidia.com/gpu": "8"}, None),
        ({**MIXED, "nvidia.com/mig.config.state": "success"}, {}, "undivided"),
        ({**MIXED, "nvidia.com/mig.config.state": "rebooting"}, {}, None),
    ],
    ids=["no instance", "no capacity", "instances", "labelled instances", "a whole GPU", "strategy none", "done", "rebooting"],
)
def test_labels_prove_that_mig_is_on_without_an_instance(
    labels: dict[str, str], capacity: dict[str, str], mig: str | None
) -> None:
    assert read(labels, capacity=capacity)[0].mig == mig


def test_instances_that_the_strategy_cannot_offer_are_no_profile() -> None:
    """`all-balanced` beside the strategy `single` (NVIDIA/gpu-operator issue 479): there are instances, and no pod gets one."""
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID",
        "nvidia.com/gpu.count": "0",
        "nvidia.com/gpu.replicas": "0",
    }
    host, notes = read({**labels, "nvidia.com/mig.strategy": "single"}, capacity={"nvidia.com/gpu": "0"})
    assert host.gpus == (HostGpu(name="NVIDIA A100-SXM4-40GB", compute_capability="8.0", count=1),)
    assert (host.mig, host.container_toolkit, host.driver) == (None, None, None)
    (note,) = notes
    assert note == (
        "gpu: no pod gets one: MIG is on in a way that the strategy `single` cannot offer (a GPU without an instance, without "
        "MIG, or instances of several profiles); `nvidia.com/mig.config` or the strategy `mixed` mends it"
    )


@pytest.mark.parametrize("state", ["pending", "rebooting", "failed"])
def test_instances_that_are_being_changed_are_told(state: str) -> None:
    _, notes = read(
        {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "1", "nvidia.com/mig.config.state": state}
    )
    assert notes == (f"gpu: nvidia.com/mig.config.state is {state}: the labels may tell the instances that there were before",)
