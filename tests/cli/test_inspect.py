"""`provision inspect`: a profile on stdout that other commands read, and talk on stderr."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from provisioner.document import parse_document
from provisioner.host.inventory import read_inventory
from provisioner.host.model import OperatingSystem
from provisioner.host.profile import host_from_document
from provisioner.matrix.cache import cached_matrix
from provisioner.workflow.inputs import catalogue_of
from tests.leaving import leave

HOSTS = Path(__file__).parents[1] / "fixtures/hosts"
NODES = Path(__file__).parents[1] / "fixtures/nodes/cluster.json"
REPORTS = Path(__file__).parents[1] / "fixtures/smi"
GATHERED = Path(__file__).parents[1] / "fixtures/must-gather/gpu-operator"


def test_a_saved_machine_is_printed_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--root", str(HOSTS / "debian-12-no-gpu")) == 0
    printed = capsys.readouterr()
    assert printed.out == (HOSTS / "debian-12-no-gpu.yaml").read_text() + (
        "# What `provision doctor` judges beside the profile:\n# dkms: unknown\n# cdi: unknown\n# engines: unknown\n"
    )
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
        (("--node", "x"), "--node picks one of the nodes of --from or --nodes, and neither is given"),
        (("--nodes", str(NODES), "--from", str(NODES)), "--from and --nodes name two different machines"),
        (("--nodes", str(NODES), "--root", str(HOSTS)), "--root and --nodes name two different machines"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("inspect", *words) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}  [bad-usage]\n")


def test_a_report_of_nvidia_smi_is_printed_as_a_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--from", str(REPORTS / "driver-590-two-gpus.xml")) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("driver: {version: 590.44.01, module: open}\ngpus:\n")
    assert 'compute_capability: "12.0", pci_device_id: "2BB4", count: 1}' in printed.out
    assert printed.err == ""


def test_what_no_rule_reads_is_told_with_v(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("-v", "inspect", "--from", str(REPORTS / "driver-418-unnamed.xml")) == 0
    told = "gpus: 1 with 5912 MiB; no rule reads the memory, so that a profile has no key for it\n"
    assert told in capsys.readouterr().err


def test_a_report_is_read_from_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = (REPORTS / "driver-535-mig.xml").read_text(encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert leave("inspect", "--from", "-", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["gpus"][0]["count"] == 2


SLURM = Path(__file__).parents[1] / "fixtures/slurm/nodes.txt"


@pytest.mark.parametrize("file", [NODES, SLURM, HOSTS / "debian-12-no-gpu.yaml"], ids=["kubernetes", "slurm", "profile"])
def test_stdin_holds_whatever_a_file_may_hold(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert leave("inspect", "--from", str(file), "--format", "json") == 0
    expected = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert leave("inspect", "--from", "-", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["host"] for one in found] == [one["host"] for one in expected]


def test_stdin_that_is_nothing_known_is_told_as_a_file_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kernal: 6.8\n")))
    assert leave("inspect", "--from", "-") == 2
    assert "stdin:1:1: kernal: unknown key `kernal`; did you mean `kernel`?" in capsys.readouterr().err


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The tree of a machine with a driver that DKMS has built, a CDI specification, and Podman."""
    files = {
        "etc/os-release": "ID=ubuntu\nVERSION_ID=24.04\n",
        "etc/cdi/nvidia.yaml": 'kind: nvidia.com/gpu\nmounts: [{hostPath: "/usr/lib/libcuda.so.580.95.05"}]\n',
        "run/cdi/README": "",
        "usr/bin/podman": "",
        "var/lib/dkms/nvidia/580.95.05/6.8.0-60-generic/x86_64/module/nvidia.ko.zst": "",
        "var/lib/dkms/nvidia/595.1\nkernel: 1.0/source/dkms.conf": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("option", ["--root", "--from"])
def test_what_no_rule_reads_stands_in_comments(option: str, saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", option, str(saved)) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(
        "# What `provision doctor` judges beside the profile:\n"
        "# dkms: nvidia 580.95.05, built for 6.8.0-60-generic; nvidia 595.1?kernel: 1.0, built for no kernel\n"
        "# cdi: /etc/cdi/nvidia.yaml for driver 580.95.05\n"
        "# engines: podman\n"
    )
    read = host_from_document(parse_document(printed, file="host.yaml", kind="host profile"))
    assert (read.os, read.kernel) == (OperatingSystem(id="ubuntu", version="24.04"), None)


def test_json_has_it_beside_the_host_on_request(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--root", str(saved), "--format", "json", "--condition") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["host"]["os"] == {"id": "ubuntu", "version": "24.04"}
    assert found["condition"]["dkms"][0] == {"name": "nvidia", "version": "580.95.05", "kernels": ["6.8.0-60-generic"]}
    assert found["condition"]["cdi"] == [{"file": "/etc/cdi/nvidia.yaml", "driver": "580.95.05"}]
    assert found["condition"]["engines"] == ["podman"]


def test_of_nodes_the_condition_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--nodes", str(NODES), "--node", "rack1-v100", "--format", "json", "--condition") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["name"], found["condition"]) == ("rack1-v100", {"dkms": None, "cdi": None, "engines": None})
    assert leave("inspect", "--condition") == 2
    assert capsys.readouterr().err.startswith("error: --condition is for JSON")


@pytest.mark.parametrize("command", [("inspect", "--from", "-"), ("fleet", "examples/fleet/provision.yaml", "--hosts", "-")])
def test_stdin_that_is_no_text_or_closed_is_told(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<a\xff"), encoding="utf-8"))
    assert leave(*command) == 2
    assert "`stdin` is not UTF-8 text (byte 2)  [file]\n" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", None)
    assert leave(*command) == 2
    assert "`stdin` is closed  [file]\n" in capsys.readouterr().err


def test_a_broken_report_is_bad_input_with_its_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "smi.xml"
    broken.write_text("<nvidia_smi_log>\n<gpu>\n", encoding="utf-8")
    assert leave("inspect", "--from", str(broken)) == 2
    assert capsys.readouterr().err == (
        "error: report of nvidia-smi has 1 mistake  [invalid-document]\n"
        f"  {broken}:3:1: is not XML: no element found\n"
        "\n"
        "hint: save what `nvidia-smi -q -x` prints on the machine\n"
    )


def test_a_node_of_a_must_gather_is_printed_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--from", str(GATHERED), "--node", "ip-10-0-11-7.ec2.internal") == 0
    assert capsys.readouterr().out == (
        "platform: linux/amd64\n"
        'os: {id: amzn, version: "2023"}\n'
        "kernel: 6.1.155-176.282.amzn2023.x86_64\n"
        "driver: {version: 550.163.01}\n"
        "gpus:\n"
        '  - {name: NVIDIA A100-SXM4-40GB, compute_capability: "8.0", count: 8}\n'
        "container_toolkit: 1.17.5\n"
        "virtualization: vm\n"
    )


def test_all_nodes_of_a_must_gather_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--from", str(GATHERED), "--format", "json") == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)][-2:] == ["rack3-mixed", "vdi-grid-2"]


def test_a_saved_tree_and_nodes_are_captured_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--from", str(HOSTS / "debian-12-no-gpu")) == 0
    assert capsys.readouterr().out.startswith((HOSTS / "debian-12-no-gpu.yaml").read_text() + "# What")
    assert leave("inspect", "--from", str(NODES), "--node", "rack1-v100") == 0
    assert "driver: {version: 470.256.02}" in capsys.readouterr().out


def test_a_folder_that_is_nothing_that_is_known_is_bad_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert leave("inspect", "--from", str(tmp_path)) == 2
    assert capsys.readouterr().err == (
        f"error: `{tmp_path}` is neither a must-gather nor the saved tree of a machine  [bad-usage]\n"
        "\n"
        "hint: a must-gather holds gpu_nodes.labels or cluster-scoped-resources/core/nodes\n"
        "hint: a saved tree holds proc, etc, sys, usr or System\n"
    )


def test_a_file_that_no_report_can_be_is_refused_unread(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    large = tmp_path / "large.xml"
    with large.open("wb") as stream:
        stream.write(b"<")
        stream.truncate(65 * 1024 * 1024)
    assert leave("inspect", "--from", str(large)) == 2
    assert capsys.readouterr().err.startswith(f"error: `{large}` has more than 64,000,000 characters  [bad-usage]\n")


def test_an_archive_is_to_be_unpacked_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--from", "must-gather.tar.gz") == 2
    assert capsys.readouterr().err == (
        "error: `must-gather.tar.gz` is an archive  [bad-usage]\n\nhint: unpack it, and name the folder\n"
    )


def test_a_report_that_windows_shell_saved_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "smi.xml"
    saved.write_text((REPORTS / "driver-536-windows.xml").read_text(encoding="utf-8"), encoding="utf-16")
    assert leave("inspect", "--from", str(saved)) == 0
    assert "NVIDIA GeForce RTX 3080" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("inspect", "--from", "absent.xml") == 2
    assert capsys.readouterr().err.startswith("error: report of nvidia-smi `absent.xml` does not exist")
