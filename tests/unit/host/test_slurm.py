"""Nodes of Slurm: what scontrol and sinfo print is read as hosts, and what they do not say stays unknown.

`nodes.txt` and `sinfo-22.05.json` were printed by Slurm 22.05.8, with the kernel and the name of its machine replaced.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.host.inventory import InventoryHost, read_inventory
from provisioner.host.remark import GroupedNodes, MigGres, NodeRemark, NodeUnavailable, UnknownGresType, UntypedGres
from provisioner.strict_model import plain_data
from tests.named_gpus import catalogue_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurm"
NAMES = catalogue_of(
    {"NVIDIA A100": "8.0", "NVIDIA H100": "9.0", "Tesla V100-SXM2-32GB": "7.0", "AMD Instinct MI250X": "gfx90a"}
)


def read(path: Path) -> dict[str, InventoryHost]:
    return {one.name: one for one in read_inventory((path,), catalogue=NAMES)}


def nodes(tmp_path: Path, data: object) -> dict[str, InventoryHost]:
    path = tmp_path / "slurm.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return read(path)


def mistakes(tmp_path: Path, data: object) -> tuple[str, ...]:
    with pytest.raises(InvalidDocumentError) as raised:
        nodes(tmp_path, data)
    return tuple(cause.partition("slurm.json")[2] for cause in raised.value.causes)


def test_what_scontrol_prints_is_read_with_the_line_of_each_node() -> None:
    found = read(FIXTURES / "nodes.txt")
    assert list(found) == ["a100-0", "cpu-0", "cpu-1", "gone-0", "h100-0", "h100-1"]
    first = found["a100-0"]
    assert (first.origin, first.features, str(first.place)) == ("slurm", ("sm_80", "driver_535"), f"{FIXTURES / 'nodes.txt'}:1")
    assert plain_data(first.host) == {
        "platform": "linux/amd64",
        "kernel": "5.15.0-105-generic",
        "driver": {"kind": "nvidia"},  # of an unknown version: a Gres names the GPU, not its driver
        "gpus": [{"name": "NVIDIA A100", "compute_capability": "8.0", "count": 2}],
    }
    assert found["cpu-1"].host.gpus == ()
    assert found["gone-0"].remarks == (NodeUnavailable("down"),)
    assert found["gone-0"].host.platform is None
    assert found["h100-0"].host is found["h100-1"].host


def test_one_line_for_each_node_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "nodes"
    text = (FIXTURES / "nodes.txt").read_text(encoding="utf-8")
    path.write_text("\n".join(" ".join(block.split()) for block in text.split("\n\n")), encoding="utf-8")
    hosts = {name: one.host for name, one in read(path).items() if name}
    assert hosts == {name: one.host for name, one in read(FIXTURES / "nodes.txt").items()}


def test_json_of_one_object_a_node_says_the_same() -> None:
    text, data = read(FIXTURES / "nodes.txt"), read(FIXTURES / "sinfo-22.05.json")
    assert {name: (one.host, one.features) for name, one in data.items()} == {
        name: (one.host, one.features) for name, one in text.items()
    }
    assert data["gone-0"].remarks == (NodeUnavailable("down"),)
    assert str(data["cpu-0"].place).endswith("sinfo-22.05.json: nodes[1]")


def entry(names: list[str], total: str, used: str, *states: str) -> dict[str, Any]:
    """An entry of `sinfo --json` since Slurm 23.02 (SINFO_DATA in parsers.c), with the keys that are read and some others."""
    return {
        "port": 0,
        "node": {"state": ["IDLE", *states]},
        "nodes": {"allocated": 0, "total": len(names), "hostnames": [], "addresses": [], "nodes": names},
        "features": {"total": "ib", "active": "ib"},
        "gres": {"total": total, "used": used},
        "partition": {"name": "gpu"},
    }


def test_an_entry_of_sinfo_tells_the_gpus_of_all_its_nodes_only_if_what_is_in_use_does_too(tmp_path: Path) -> None:
    found = nodes(
        tmp_path,
        {
            "sinfo": [
                entry(["a-1", "a-2"], "gpu:a100:4(S:0-1)", "gpu:a100:0(IDX:N/A)"),
                entry(["b-1"], "gpu:h100:8", ""),
                entry(["c-1", "c-2"], "gpu:h100:8", "gpu:0", "DRAIN"),
                entry(["cpu"], "", "gpu:0"),
                entry(["c-1"], "gpu:h100:8", "gpu:0"),  # in another partition, alone
            ],
            "meta": {},
        },
    )
    gpus = {
        name: [gpu.name for gpu in one.host.gpus or ()] if one.host.gpus is not None else None for name, one in found.items()
    }
    assert gpus == {
        "a-1": ["NVIDIA A100"], "a-2": ["NVIDIA A100"], "b-1": ["NVIDIA H100"], "c-1": ["NVIDIA H100"], "c-2": None, "cpu": [],
    }  # fmt: skip
    assert found["c-2"].remarks == (GroupedNodes(2), NodeUnavailable("drained"))
    assert found["a-1"].host.platform is None
    assert (found["b-1"].features, found["a-1"].features) == (("ib",), ())


@pytest.mark.parametrize(
    ("gres", "gpus", "remarks"),
    [
        ("gpu:a100:4(S:0,1),shard:16", [("NVIDIA A100", 4)], ()),
        ("gpu:a100:2,gpu:tesla_v100-sxm2-32gb:1", [("NVIDIA A100", 2), ("Tesla V100-SXM2-32GB", 1)], ()),
        ("gpu:4(S:0)", [(None, 4)], (UntypedGres("gpu:4"),)),
        ("gpu", [(None, 1)], (UntypedGres("gpu:1"),)),
        ("gpu:nextgen:8", [(None, 8)], (UnknownGresType("nextgen"),)),
        ("gpu:a100_1g.5gb:7", [("NVIDIA A100", 1)], (MigGres("1g.5gb"),)),
        ("gpu:mi250x:8", [("AMD Instinct MI250X", 8)], ()),
        ("gpu:a100:0,license:3", None, ()),
        ("gpuram:80G", None, ()),
    ],
)
def test_a_gres_tells_what_it_names(
    tmp_path: Path, gres: str, gpus: list[tuple[str | None, int]] | None, remarks: tuple[NodeRemark, ...]
) -> None:
    (one,) = nodes(tmp_path, {"nodes": [{"name": "n", "gres": gres}]}).values()
    assert (one.host.gpus and [(gpu.name, gpu.count) for gpu in one.host.gpus]) == gpus
    assert one.remarks == remarks
    kinds = {"gpu:mi250x:8": "amdgpu"}
    is_named = gpus is not None and all(name for name, _ in gpus)
    assert (one.host.driver and one.host.driver.kind) == (kinds.get(gres, "nvidia") if is_named else None)


def test_a_gres_that_is_none_is_a_mistake_also_in_the_text_of_scontrol(tmp_path: Path) -> None:
    path = tmp_path / "slurm.json.txt"
    path.write_text("NodeName=n Arch=x86_64\n   Gres=gpu:a100:many\n   OS=Linux 6.8.0\n", encoding="utf-8")
    with pytest.raises(InvalidDocumentError) as raised:
        read(path)
    assert raised.value.causes == (f"{path}:2:4: nodes[0].gres: `gpu:a100:many` is not a Gres such as gpu:a100:4",)


def test_a_list_without_gpus_says_nothing_of_them(tmp_path: Path) -> None:
    found = nodes(tmp_path, {"nodes": [{"name": "a", "gres": ""}, {"name": "b"}]})
    assert [one.host.gpus for one in found.values()] == [None, None]


def test_an_instance_type_names_a_gpu_that_its_gres_does_not(tmp_path: Path) -> None:
    (one,) = nodes(tmp_path, {"nodes": [{"name": "a", "gres": "gpu:8", "instance_type": "p5.48xlarge"}]}).values()
    assert one.host.gpus is not None
    assert [(gpu.compute_capability, gpu.count) for gpu in one.host.gpus] == [("9.0", 8)]


def test_unexpected_types_are_told_with_path_and_token(tmp_path: Path) -> None:
    data = {"nodes": [{"name": "a", "gres": 4, "features": ["x", 5], "state": {}}, 7, {"gres": "gpu:1"}, {"name": None}]}
    assert mistakes(tmp_path, data) == (
        ":1:26: nodes[0].gres: `4` is not text",
        ":1:55: nodes[0].features[1]: `5` is not text",
        ":1:59: nodes[0].state: `{}` is not text",
        ":1:73: nodes[1]: `7` is not an object",
        ":1:76: nodes[2].name: a node must have a name",
        ":1:96: nodes[3].name: a node must have a name",
    )
    assert mistakes(tmp_path, {"sinfo": [{"nodes": ["a"], "gres": 1}, {"nodes": {"nodes": [3]}}], "meta": {}}) == (
        ":1:13: sinfo[0].nodes: `['a']` is not an object",
        ":1:29: sinfo[0].gres: `1` is not an object",
        ":1:62: sinfo[1].nodes.nodes[0]: `3` is not text",
    )
