"""Whatever a file holds, an inventory is read or refused in words: never a traceback, and never a fact nobody stated."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioner.errors import ProvisionError
from provisioner.fleet.labels import labels_of
from provisioner.host.inventory import read_inventory
from provisioner.host.model import Driver, Host, HostGpu, OperatingSystem
from provisioner.host.profile import host_document
from tests.named_gpus import catalogue_of
from tests.strategies import examples

pytestmark = pytest.mark.property
SETTINGS = examples(1500, derandomize=True)
FIXTURES = Path(__file__).parents[1] / "fixtures"
CLUSTER = json.loads((FIXTURES / "nodes/cluster.json").read_text(encoding="utf-8"))

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["", "-1", "99999999", "1.2.3"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    below: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        below = list(value.items())
    elif isinstance(value, list):
        below = list(enumerate(value))
    return [path, *(place for key, item in below for place in places(item, (*path, key)))]


NODES = CLUSTER["items"]
PLACES = {index: places(node) for index, node in enumerate(NODES)}


def read(text: str, suffix: str) -> tuple[Any, ...] | None:
    """Read an inventory of one file; None when it is refused, which must be in words."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"fleet{suffix}")
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            return read_inventory((path,), catalogue=catalogue_of({"Tesla T4": "7.5"}))
        except ProvisionError:
            return None


@SETTINGS
@given(st.integers(0, len(NODES) - 1), st.data(), JUNK)
def test_a_node_with_anything_anywhere_is_read_or_refused(index: int, data: st.DataObject, junk: object) -> None:
    node = copy.deepcopy(NODES[index])
    place = data.draw(st.sampled_from(PLACES[index][1:]))
    parent = node
    for part in place[:-1]:
        parent = parent[part]
    parent[place[-1]] = junk
    read(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}), ".json")


SLURM = json.loads((FIXTURES / "slurm/sinfo-22.05.json").read_text(encoding="utf-8"))
GROUPED = {
    "sinfo": [
        {
            "node": {"state": ["IDLE"]},
            "nodes": {"nodes": ["a", "b"]},
            "features": {"total": "x"},
            "gres": {"total": "gpu:t4:2", "used": "gpu:t4:0(IDX:N/A)"},
        }
    ],
    "meta": {},
}
ANSIBLE = json.loads((FIXTURES / "ansible/list.json").read_text(encoding="utf-8"))
OTHERS = [{"nodes": SLURM["nodes"][:1]}, GROUPED, ANSIBLE, {"g": {"hosts": {"h[1:2]": {"provision_gpu": "T4"}}, "vars": {}}}]
PLACES_OF_OTHERS = [places(one) for one in OTHERS]


@SETTINGS
@given(st.integers(0, len(OTHERS) - 1), st.data(), JUNK, st.sampled_from([".json", ".yaml"]))
def test_lists_of_slurm_and_ansible_with_anything_anywhere_are_read_or_refused(
    index: int, data: st.DataObject, junk: object, suffix: str
) -> None:
    document = copy.deepcopy(OTHERS[index])
    place = data.draw(st.sampled_from(PLACES_OF_OTHERS[index][1:]))
    parent: Any = document
    for part in place[:-1]:
        parent = parent[part]
    parent[place[-1]] = junk
    read(json.dumps(document), suffix)


@SETTINGS
@given(st.text(alphabet="[]:=agpu01 \n#'\"_vrhostscildnNmeGRS()", max_size=80), st.sampled_from(["", "NodeName=", "[g]\n"]))
def test_any_text_of_scontrol_or_ini_is_read_or_refused(text: str, begin: str) -> None:
    read(begin + text, ".txt")
    read(begin + text, ".ini")


@SETTINGS
@given(
    st.text(alphabet='abc,;"\n\r x(8.0)\u00e9\x00', max_size=60) | JUNK.map(json.dumps),
    st.sampled_from([".csv", ".json", ".yaml", ""]),
)
def test_any_text_is_read_or_refused(text: str, suffix: str) -> None:
    read(text, suffix)


@SETTINGS
@given(
    st.lists(
        st.sampled_from(["name,kernel", "driver,gpu", "gpu,count,os", "compute_capability", "1,2", "a,b,c", "6.8.0", "x"]),
        max_size=5,
    )
)
def test_any_table_is_read_or_refused(lines: list[str]) -> None:
    read("\n".join(lines), ".csv")


@st.composite
def hosts(draw: st.DrawFn) -> Host:
    """A host of one kind of GPU, all of whose facts labels can show."""
    gpu = HostGpu(
        name=draw(st.sampled_from(["Tesla T4", "NVIDIA A100-SXM4-80GB", "NVIDIA RTX A6000"])),
        compute_capability=draw(st.sampled_from(["7.5", "8.0", "8.6", "12.0"])),
    )
    return Host(
        platform=draw(st.sampled_from(["linux/amd64", "linux/arm64"])),
        os=OperatingSystem(id="ubuntu", version=draw(st.sampled_from(["22.04", "24.04"]))),
        kernel=draw(st.sampled_from(["5.15.0-105-generic", "6.8.0-1020-aws", "6.17.0"])),
        driver=Driver(version=draw(st.sampled_from(["470.256.02", "535.54.03", "580.65.06", "455.06"]))),
        gpus=(gpu,),
    )


@settings(max_examples=1000, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(hosts())  # there are 576 of these hosts, and every one is tried
def test_labels_of_a_host_are_read_back_as_its_facts(host: Host) -> None:
    """What the fleet half takes a host's labels to be, and what the reading half makes of labels, are the same thing."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels_of(host)}}
    catalogue = catalogue_of({"Tesla T4": "7.5", "NVIDIA A100-SXM4-80GB": "8.0", "NVIDIA RTX A6000": "8.6"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "node.json")
        path.write_text(json.dumps(node), encoding="utf-8")
        (found,) = read_inventory((path,), catalogue=catalogue)
    assert host_document(found.host) == host_document(catalogue.identify(host))
