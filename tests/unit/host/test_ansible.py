"""Inventories of Ansible: three syntaxes of one inventory, and facts from variables.

`list.json` and `list.yaml` are what ansible-core printed for `hosts.ini` (`ansible-inventory --list`, and with `--yaml`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.host.ansible import expanded
from provisioner.host.inventory import InventoryHost, read_inventory
from provisioner.host.profile import host_document
from provisioner.host.remark import VariablesElsewhere, VariablesNotRead

FIXTURES = Path(__file__).parents[2] / "fixtures" / "ansible"


def read(path: Path) -> dict[str, InventoryHost]:
    return {one.name: one for one in read_inventory((path,))}


def written(tmp_path: Path, text: str, name: str = "hosts.ini") -> dict[str, InventoryHost]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read(tmp_path / name)


def mistakes(tmp_path: Path, text: str, name: str = "hosts.ini") -> tuple[str, ...]:
    with pytest.raises(InvalidDocumentError) as raised:
        written(tmp_path, text, name)
    return tuple(cause.partition(name)[2] for cause in raised.value.causes)


def test_ini_is_read_as_ansible_itself_reads_it() -> None:
    ini, listed, yaml = (read(FIXTURES / name) for name in ("hosts.ini", "list.json", "list.yaml"))
    assert {name: one.host for name, one in ini.items()} == {name: one.host for name, one in listed.items()}
    assert {name: one.host for name, one in yaml.items()} == {name: one.host for name, one in listed.items()}
    assert list(ini) == ["login-1", "gpu-01", "gpu-02", "gpu-03", "gpu-9", "node-a", "node-b", "node-c"]
    assert {one.origin for one in ini.values()} == {"ansible"}
    assert ini["gpu-01"].host is ini["gpu-03"].host
    assert str(ini["gpu-9"].place) == f"{FIXTURES / 'hosts.ini'}:6"
    assert host_document(ini["gpu-9"].host) == (
        "platform: linux/amd64\n"
        'os: {id: ubuntu, version: "22.04"}\n'
        "driver: {version: 550.54.15, module: proprietary}\n"
        "gpus:\n"
        "  - {name: NVIDIA A100-SXM4-80GB, count: 4}\n"
    )
    assert host_document(ini["login-1"].host) == "{}\n"
    assert (ini["node-a"].host.gpus, ini["gpu-01"].host.container_toolkit) == ((), "1.17.4")


@pytest.mark.parametrize("blank", [" ", "\t", "  \t "])
def test_a_plain_line_splits_as_one_with_quotes_does(tmp_path: Path, blank: str) -> None:
    plain = blank.join(["[gpu]\na", "provision_driver=550.54.15", "provision_os=ubuntu@22.04", "rack=1.2", "\n"])
    quoted = blank.join(["[gpu]\na", "provision_driver='550.54.15'", 'provision_os="ubuntu@22.04"', "rack=1.2", "# a\n"])
    assert written(tmp_path, plain)["a"].host == written(tmp_path, quoted)["a"].host
    assert "a" in written(tmp_path, "[gpu]\na rack=1\u3000b\n")


def test_facts_that_ansible_gathered_are_facts_and_ours_beat_them(tmp_path: Path) -> None:
    text = """\
all:
  hosts:
    a:
      ansible_system: Linux
      ansible_architecture: aarch64
      ansible_kernel: 5.14.0-427.el9.aarch64
      ansible_distribution: RedHat
      ansible_distribution_version: "9.4"
    b:
      ansible_facts: {system: Linux, architecture: x86_64, distribution: Plan 9, distribution_version: "4", kernel: 6.8.0}
      provision_kernel: 6.5.0
      provision_secure_boot_enabled: false
"""
    found = written(tmp_path, text, "inventory.yml")
    assert host_document(found["a"].host) == (
        'platform: linux/arm64\nos: {id: rhel, version: "9.4"}\nkernel: 5.14.0-427.el9.aarch64\n'
    )
    assert host_document(found["b"].host) == "platform: linux/amd64\nkernel: 6.5.0\nsecure_boot: {enabled: false}\n"


def test_windows_is_known_by_its_facts_and_by_how_it_is_reached(tmp_path: Path) -> None:
    text = "a ansible_connection=winrm\nb ansible_os_family=Windows ansible_system=Win32NT\nc ansible_connection=ssh\n"
    found = written(tmp_path, text)
    assert {name: one.host.platform for name, one in found.items()} == {"a": "windows", "b": "windows", "c": None}


def test_a_nearer_group_beats_a_farther_one_and_a_host_both(tmp_path: Path) -> None:
    text = (
        "[near]\nx\ny provision_kernel=3.0\n[near:vars]\nprovision_kernel=2.0\n"
        "[far:children]\nnear\n[far:vars]\nprovision_kernel=1.0\n"
    )
    found = written(tmp_path, text + "[all:vars]\nprovision_kernel=0.5\nprovision_gcc=12.3\n")
    assert [(one.host.kernel, one.host.gcc) for one in found.values()] == [("2.0", "12.3"), ("3.0", "12.3")]


@pytest.mark.parametrize(
    ("pattern", "hosts"),
    [
        ("a", ["a"]),
        ("a:22", ["a"]),
        ("n[1:3].x", ["n1.x", "n2.x", "n3.x"]),
        ("n[08:10]", ["n08", "n09", "n10"]),
        ("n[1:9:4]", ["n1", "n5", "n9"]),
        ("[a:c]", ["a", "b", "c"]),
        ("r[1:2]n[1:2]:22", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_ranges_are_hosts(pattern: str, hosts: list[str]) -> None:
    assert expanded(pattern) == hosts


@pytest.mark.parametrize("pattern", ["n[3:1]", "n[1]", "n[:]", "n[01:100]", "n[c:a]", "n[1:b]", "n[0:999999]"])
def test_what_is_no_range_is_a_mistake(tmp_path: Path, pattern: str) -> None:
    (mistake,) = mistakes(tmp_path, f"[g]\n{pattern}\n")
    assert mistake.startswith(":2:1: ")
    assert pattern in mistake or pattern.removeprefix("n") in mistake


def test_mistakes_are_at_their_line(tmp_path: Path) -> None:
    text = "[g:hosts]\n[g:kind]\na x\nb 'open\n[g:vars]\nalone\n[h:children]\ntwo words\n"
    assert mistakes(tmp_path, text) == (
        ":2:1: `[g:kind]` is no section; known are [GROUP], [GROUP:children] and [GROUP:vars]",
        ":3:1: `x` is not NAME=VALUE",
        ":4:1: `b 'open` cannot be read: No closing quotation",
        ":6:1: `alone` is not NAME=VALUE",
        ":8:1: `two words` is not the name of a group",
    )


def test_wrong_variables_are_at_their_line_and_facts_are_checked_as_in_a_profile(tmp_path: Path) -> None:
    text = "[g]\na provision_drivr=550\nb provision_kernel=newest\n[g:vars]\nprovision_gpu=none\n"
    assert mistakes(tmp_path, text) == (
        ":2:1: g.hosts.a.provision_drivr: unknown variable `provision_drivr`; did you mean `provision_driver`?",
        ":3:1: kernel: `newest` is not a version: it must start with a number such as 12.6",
    )
    yaml = "g:\n  hosts:\n    a: {provision_driver: 550.1}\n    b: [1]\n  vars: 5\nh: {hosts: {}}\n"
    assert mistakes(tmp_path, yaml, "x.yaml") == (
        ":3:9: g.hosts.a.provision_driver: `550.1` must be text: write a version in quotes",
        ":4:5: g.hosts.b: `(1,)` is not a mapping",
        ":5:3: g.vars: `5` is not a mapping",
    )


def test_a_group_below_itself_is_a_mistake(tmp_path: Path) -> None:
    (mistake,) = mistakes(tmp_path, "[a:children]\nb\n[b:children]\na\n[b]\nx\n")
    assert mistake in {":1:1: a: the group `a` is below itself", ":3:1: b: the group `b` is below itself"}


def test_variables_that_stand_elsewhere_are_told(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    assert written(tmp_path, "[g]\na\n")["a"].remarks == (VariablesElsewhere("group_vars"),)


def test_variables_that_look_like_facts_and_are_not_read_are_told(tmp_path: Path) -> None:
    text = (
        "[g]\na driver=535.104.05 gpu=A100 color=red\nb provision_driver=535.104.05\n[g:vars]\nnvidia_driver_version=550.54\n"
    )
    found = written(tmp_path, text)
    assert found["a"].remarks == (VariablesNotRead(("driver", "gpu", "nvidia_driver_version")),)
    assert found["b"].remarks == (), "what is stated for us is what counts"
    assert found["a"].host.driver is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("\n".join(["[gpu]", *map("n{}".format, range(300_000))]), 200_002, id="lines", marks=pytest.mark.slow),
        pytest.param("[gpu]\na[1:150000]\nb[1:50001]\nc[1:9]\n", 3, id="ranges"),
    ],
)
def test_more_hosts_than_are_read_are_a_mistake_where_they_become_too_many(tmp_path: Path, text: str, line: int) -> None:
    wanted = f":{line}:1: the inventory lists more than 200,000 hosts, the most that are read: give a part of it"
    assert mistakes(tmp_path, text) == (wanted,)
