"""Must-gathers, which hold the nodes of a cluster as text of kubectl, as labels alone, or as objects."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from provisioner.document import yaml_text
from provisioner.errors import InvalidDocumentError, UsageError
from provisioner.host.inventory import read_inventory
from provisioner.host.must_gather import is_must_gather, read_must_gather
from provisioner.host.remark import NodeUnavailable
from provisioner.matrix.cache import cached_matrix
from provisioner.workflow.inputs import catalogue_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
OPERATOR, NODES = FIXTURES / "must-gather/gpu-operator", FIXTURES / "nodes/cluster.json"
CATALOGUE = catalogue_of(cached_matrix(None))
DESCRIBED = {
    "aks-h100-25630171-vmss000000": "present",  # its pod of the toolkit does not run
    "ip-10-0-11-7.ec2.internal": "1.17.5",
    "ip-10-0-11-8.ec2.internal": "1.20.0",
    "ip-10-0-12-9.ec2.internal": "present",  # its image has a digest, and no tag
}


def test_what_kubectl_describes_is_read_as_the_nodes_themselves_are() -> None:
    nodes = {one.name: one for one in read_inventory((NODES,), catalogue=CATALOGUE)}
    found = {one.name: one for one in read_must_gather(OPERATOR, catalogue=CATALOGUE)}
    assert sorted(found) == [*sorted(DESCRIBED), "rack3-mixed", "vdi-grid-2"]
    for name, toolkit in DESCRIBED.items():
        assert found[name].host == replace(nodes[name].host, container_toolkit=toolkit), name
        assert found[name].labels == nodes[name].labels
        assert found[name].remarks == nodes[name].remarks


def test_a_node_that_is_not_described_is_known_by_its_labels() -> None:
    (found,) = (one for one in read_must_gather(OPERATOR, catalogue=CATALOGUE) if one.name == "rack3-mixed")
    (node,) = (one for one in read_inventory((NODES,), catalogue=CATALOGUE) if one.name == "rack3-mixed")
    assert (found.host.driver, found.host.kernel) == (node.host.driver, node.host.kernel)
    assert found.host.container_toolkit is None


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    """Return a copy of the operator's must-gather in the folder that `oc adm must-gather` makes for its image."""
    shutil.copytree(OPERATOR, tmp_path / "must-gather.local.1/quay-io-gpu-operator-sha256-0")
    return tmp_path / "must-gather.local.1/quay-io-gpu-operator-sha256-0"


def test_a_cordoned_node_that_is_not_ready_is_told(operator: Path) -> None:
    described = (
        "Name:               gpu-0\n"
        "Labels:             nvidia.com/gpu.present=true\n"
        "                    nvidia.com/gpu.product=Tesla-T4\n"
        "Unschedulable:      true\n"
        "Conditions:\n"
        "  Type    Status   Reason\n"
        "  Ready   Unknown  NodeStatusUnknown\n"
        "System Info:\n"
        "  Architecture:  amd64\n"
    )
    (operator / "gpu_nodes.descr").write_text(described)
    (found,) = (one for one in read_must_gather(operator, catalogue=CATALOGUE) if one.name == "gpu-0")
    assert found.host.platform == "linux/amd64"
    assert found.remarks == (NodeUnavailable("not-ready"), NodeUnavailable("cordoned"))


def test_a_driver_that_no_label_tells_is_in_the_table_of_nvidia_smi(operator: Path) -> None:
    (operator / "gpu_nodes.descr").unlink()
    (operator / "gpu_nodes.labels").write_text("gpu-0\n- feature.node.kubernetes.io/pci-10de.present=true\n\n")
    (operator / "gpu_device_usage_gpu-0.log").write_text(
        "# nvidia-smi output from gpu-0\n"
        "| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |\n"
    )
    (found,) = read_must_gather(operator.parent.parent, catalogue=CATALOGUE)
    assert found.name == "gpu-0"
    assert found.host.driver is not None
    assert found.host.driver.version == "580.95.05"


def test_objects_tell_more_than_labels_and_lie_in_a_folder_of_their_own(operator: Path) -> None:
    wanted = next(one for one in json.loads(NODES.read_text())["items"] if one["metadata"]["name"] == "rack3-mixed")
    place = operator.parent / "quay-io-openshift-release-sha256-1/cluster-scoped-resources/core/nodes"
    place.mkdir(parents=True)
    (place / "rack3-mixed.yaml").write_text(yaml_text({"kind": "Node", "apiVersion": "v1", **wanted}))
    (node,) = (one for one in read_inventory((NODES,), catalogue=CATALOGUE) if one.name == "rack3-mixed")
    found = {one.name: one for one in read_must_gather(operator.parent, catalogue=CATALOGUE)}
    assert found["rack3-mixed"].host == node.host
    assert sorted(found) == [*sorted(DESCRIBED), "rack3-mixed", "vdi-grid-2"]


def test_a_malformed_label_is_a_mistake_with_its_node(operator: Path) -> None:
    (operator / "gpu_nodes.descr").unlink()
    (operator / "gpu_nodes.labels").write_text("gpu-0\n- nvidia.com/cuda.driver-version.major=five\n")
    with pytest.raises(InvalidDocumentError) as caught:
        read_must_gather(operator, catalogue=CATALOGUE)
    assert caught.value.causes == (f"{operator}:1:1: node gpu-0: `five` is not the version of a driver",)


def test_a_folder_without_nodes_is_refused(tmp_path: Path) -> None:
    assert not is_must_gather(tmp_path)
    (tmp_path / "gpu_nodes.labels").write_text("")
    assert is_must_gather(tmp_path)
    with pytest.raises(UsageError) as caught:
        read_must_gather(tmp_path, catalogue=CATALOGUE)
    assert str(caught.value) == f"`{tmp_path}` has no nodes"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret\n- a=b\n")
    folder = tmp_path / "gathered"
    folder.mkdir()
    (folder / "gpu_nodes.labels").symlink_to(outside)
    with pytest.raises(UsageError):
        read_must_gather(folder, catalogue=CATALOGUE)
