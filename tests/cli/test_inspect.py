"""`provision inspect`: a profile on stdout that other commands read, and talk on stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provisioner.cli.app import main
from provisioner.document import parse_document
from provisioner.host.load import host_from_document

HOSTS = Path(__file__).parents[1] / "fixtures/hosts"


def leave(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


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
