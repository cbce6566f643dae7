"""`provision inspect`: a profile on stdout that other commands read, and talk on stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provisioner.document import parse_document
from provisioner.host.inventory import read_inventory
from provisioner.host.profile import host_from_document
from provisioner.matrix.cache import cached_matrix
from provisioner.workflow.inputs import catalogue_of
from tests.leaving import leave

HOSTS = Path(__file__).parents[1] / "fixtures/hosts"
NODES = Path(__file__).parents[1] / "fixtures/nodes/cluster.json"


def test_a_saved_machine_is_printed_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--root", str(HOSTS / "debian-12-no-gpu")) == 0
    printed = capsys.readouterr()
    assert printed.out == (HOSTS / "debian-12-no-gpu.yaml").read_text()
    assert printed.err == ""


def test_the_same_machine_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--root", str(HOSTS / "debian-12-no-gpu"), "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found)[:5] == ["platform", "os", "kernel", "glibc", "gpus"]
    assert found["gpus"] == []


def test_products_come_from_the_shipped_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--root", str(HOSTS / "ubuntu-20.04-t4-proprietary")) == 0
    assert 'compute_capability: "7.5", pci_device_id: "1EB8", count: 1}' in capsys.readouterr().out


def test_a_gpu_without_a_pci_id_is_known_by_its_board(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--root", str(HOSTS / "jetson-orin")) == 0
    assert '{name: Jetson AGX Orin, compute_capability: "8.7", count: 1}' in capsys.readouterr().out


def test_what_could_not_be_learned_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--root", str(HOSTS / "sandbox-without-sys")) == 0
    printed = capsys.readouterr()
    assert printed.err == "warning: gpus: the PCI bus cannot be read\n"
    assert "gpus" not in printed.out


def test_this_machine_gives_a_profile_that_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect") == 0
    host_from_document(parse_document(capsys.readouterr().out, file="host.yaml", kind="host profile"))


def test_a_root_that_is_not_there_is_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    assert leave("inspect", "--root", str(absent)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"error: `{absent}` is not a directory  [bad-usage]\n\n"
        "hint: give --root the folder that holds the machine's proc, sys and etc\n"
    )


def test_a_format_it_does_not_have_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--format", "toml") == 2
    assert "toml" in capsys.readouterr().err


def test_one_node_of_a_cluster_is_printed_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--nodes", str(NODES), "--node", "rack1-v100") == 0
    printed = capsys.readouterr()
    assert printed.out == (
        "platform: linux/amd64\n"
        'os: {id: rhel, version: "8.10"}\n'
        "kernel: 4.18.0-553.el8_10.x86_64\n"
        "driver: {version: 470.256.02}\n"
        "gpus:\n"
        '  - {name: Tesla V100-SXM2-32GB, compute_capability: "7.0", count: 4}\n'
        "container_toolkit: present\n"
    )
    assert printed.err == "warning: rack1-v100: the node is not ready\n"


def test_all_nodes_are_printed_as_json_that_reads_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert leave("inspect", "--nodes", str(NODES), "--format", "json") == 0
    saved = tmp_path / "fleet.json"
    saved.write_text(capsys.readouterr().out, encoding="utf-8")
    again = read_inventory((saved,))
    assert len(again) == 12
    assert [(one.name, one.host) for one in again] == [
        (one.name, one.host) for one in read_inventory((NODES,), catalogue=catalogue_of(cached_matrix(None)))
    ]


def test_several_nodes_are_no_yaml_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--nodes", str(NODES)) == 2
    assert capsys.readouterr().err == (
        "error: there are 12 nodes, and a YAML profile describes one machine  [bad-usage]\n"
        "\n"
        "hint: add --node NAME for one of them\n"
        "hint: add --format json for all of them\n"
    )


def test_a_node_that_is_not_there_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--nodes", str(NODES), "--node", "mi300") == 2
    assert capsys.readouterr().err == (
        f"error: `{NODES}` lists no host `mi300`  [bad-usage]\n\nhint: did you mean `mi300x-0`?\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--node", "x"), "--node picks one of the nodes of --nodes, which is not given"),
        (("--nodes", str(NODES), "--root", str(HOSTS)), "--root and --nodes name two different machines"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("inspect", *words) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}  [bad-usage]\n")
