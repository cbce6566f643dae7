"""`provision fleet` from outside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import Project

FIXTURES = Path(__file__).parents[1] / "fixtures"

SPEC = """\
name: trainer
requires: {python: "==3.11", pytorch: ">=2.0"}
"""

OLD = "driver: {version: 470.256.02, module: proprietary}\ngpus: [{name: Tesla T4, compute_capability: '7.5'}]\n"
NEW = "driver: {version: 580.65.06, module: open}\ngpus: [{name: NVIDIA B200, compute_capability: '10.0'}]\n"
BROKEN = "driver: {version: 580.65.06, module: proprietary}\ngpus: [{name: NVIDIA B200, compute_capability: '10.0'}]\n"
STATED = "platform: linux/amd64\ncontainer_toolkit: 1.17.8\nkernel: 6.8.0-45-generic\n"

ROSTER = """\
name,count,platform,gpu,driver,driver.module,kernel,container_toolkit
old-1,1,linux/amd64,Tesla T4,470.256.02,proprietary,5.15.0-105-generic,1.17.8
old-2,1,linux/amd64,Tesla T4,470.256.02,proprietary,5.15.0-105-generic,1.17.8
mid,40,linux/amd64,8x NVIDIA A100-SXM4-80GB (8.0),550.90.07,open,5.15.0-105-generic,1.17.8
new-1,1,linux/amd64,8x NVIDIA B200,580.65.06,open,6.8.0-45-generic,
stuck,1,linux/amd64,8x NVIDIA B200,580.65.06,proprietary,6.8.0-45-generic,1.17.8
build,2,linux/amd64,none,,,6.8.0-45-generic,
"""


@pytest.fixture
def fleet(project: Project) -> Project:
    project.write(SPEC)
    folder = project.folder / "hosts"
    folder.mkdir()
    (folder / "old.yaml").write_text(STATED + OLD, encoding="utf-8")
    (folder / "new.yaml").write_text(STATED + NEW, encoding="utf-8")
    (project.folder / "machines.csv").write_text(ROSTER, encoding="utf-8")
    return project


def test_a_folder_of_profiles_is_covered_by_as_few_stacks_as_can_be(fleet: Project) -> None:
    outcome = fleet.run("fleet", "--hosts", "hosts")
    assert (outcome.code, outcome.err) == (0, "")
    first, *rest = outcome.out.splitlines()
    assert first == "✓ 2 stacks serve all 2 hosts; no fewer can"
    assert [line.partition(",")[0] for line in rest if line.startswith("stack")] == [
        "stack 1: pytorch 2.15.0+cu132",
        "stack 2: pytorch 2.7.1+cu118",
    ]
    assert rest[:5] == [
        "",
        "hosts  gpu          driver  outcome",
        "    1  NVIDIA B200     580  stack 1",
        "    1  Tesla T4        470  stack 2",
        "",
    ]
    assert [line for line in rest if line.startswith("  hosts")] == ["  hosts      1 host: new", "  hosts      1 host: old"]


def test_the_whole_screen_of_one_stack(fleet: Project) -> None:
    outcome = fleet.run("fleet", "--host", "hosts/old.yaml")
    assert (outcome.code, outcome.err) == (0, "")
    assert (
        outcome.out
        == """\
✓ 1 stack serves the 1 host

stack 1: pytorch 2.7.1+cu118, cuda 11.8.0, python 3.11, basis minor-version
  hosts      1 host: old
  image      python:3.11-slim-trixie
  needs      driver >=450.80.02; gpu 3.7, 5.0, 5.2, 6.0, 6.1, 7.0, 7.5, 8.0, 8.6, 8.8, 8.9, 9.0
  relaxed    end-of-life: driver 470.256.02 is of branch 470, which ended 2024-07

-v shows the node affinity of each stack, --out DIR writes it
"""
    )


def test_the_details_have_how_cuda_runs_and_the_affinity_too(fleet: Project) -> None:
    outcome = fleet.run("fleet", "--host", "hosts/old.yaml", "-v")
    assert (outcome.code, outcome.err) == (0, "")
    assert (
        outcome.out
        == """\
✓ 1 stack serves the 1 host

stack 1: pytorch 2.7.1+cu118, cuda 11.8.0, python 3.11, basis minor-version
  hosts      1 host: old
  platform   linux/amd64, accelerator cuda
  image      python:3.11-slim-trixie
  needs      driver >=450.80.02; gpu 3.7, 5.0, 5.2, 6.0, 6.1, 7.0, 7.5, 8.0, 8.6, 8.8, 8.9, 9.0
  relaxed    minor-version: driver 470.256.02 knows CUDA 11.4 itself; cuda 11.8.0 runs on it by minor-version compatibility
  relaxed    end-of-life: driver 470.256.02 is of branch 470, which ended 2024-07
  affinity   kubernetes.io/arch In amd64, nvidia.com/gpu.compute.major In 7, nvidia.com/gpu.compute.minor In 5, \
nvidia.com/cuda.driver-version.major Gt 450
"""
    )


def test_hosts_no_stack_serves_are_told_why_and_the_rest_is_covered_all_the_same(fleet: Project) -> None:
    outcome = fleet.run("fleet", "--hosts", "machines.csv")
    assert outcome.code == 1
    assert outcome.out.startswith("✗ 3 stacks serve 45 of 46 hosts; no fewer can\n")
    left = outcome.out[outcome.out.index("\nno stack for") + 1 :].splitlines()
    assert left[0] == "no stack for 1 host: stuck"
    assert "  the host has the proprietary kernel module  (machines.csv:6)" in left
    assert "  the host has gpu 10.0 (NVIDIA B200)  (machines.csv:6)" in left
    assert sum(line.startswith("no stack") for line in left) == 1


def test_hosts_without_a_gpu_are_answered_for_as_that(fleet: Project) -> None:
    lines = fleet.run("fleet", "--hosts", "machines.csv").out.splitlines()
    assert "    2  no GPU                 not stated  stack 3" in lines
    at = lines.index("stack 3: pytorch 2.15.0+cpu, python 3.11")
    assert lines[at + 1 : at + 3] == ["  hosts      2 hosts: build (2)", "  platform   linux/amd64, accelerator cpu"]
    fleet.write(SPEC + "accelerator: cuda\n")
    assert "the target has no GPU" in fleet.run("fleet", "--hosts", "machines.csv").out


def test_so_many_stacks_and_what_one_more_buys(fleet: Project) -> None:
    outcome = fleet.run("fleet", "--hosts", "machines.csv", "--stacks", "2")
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    assert lines[0] == "✗ 2 stacks serve 44 of 46 hosts; no choice of so few is better"
    assert [line.split(",")[0] for line in lines if line.startswith("stack")] == [
        "stack 1: pytorch 2.7.1+cu118",
        "stack 2: pytorch 2.15.0+cpu",
    ]
    at = lines.index("left out, 1 host: new-1")
    assert lines[at + 1 : at + 4] == [
        "one more stack buys, for 41 hosts:",
        "  40 hosts: pytorch 2.7.1+cu118, cuda 11.8.0 -> pytorch 2.11.0+cu128, cuda 12.8.2  (mid (40))",
        "  1 host: no stack -> pytorch 2.11.0+cu128, cuda 12.8.2, python 3.11, basis minor-version  (new-1)",
    ]
    answer = fleet.run("fleet", "--hosts", "machines.csv", "--stacks", "2", "--format", "json").json
    assert (answer["status"], answer["served"]) == ("no-stack", 44)
    limit = answer["limit"]
    assert (limit["stacks"], limit["best"], limit["left_out"]["hosts"]) == (2, True, ["new-1"])
    assert [(gain["count"], gain["from"] and gain["from"]["pytorch"], gain["to"]["pytorch"]) for gain in limit["one_more"]] == [
        (40, "2.7.1", "2.11.0"), (1, None, "2.11.0"),
    ]  # fmt: skip


def test_more_stacks_than_are_needed_are_used_for_newer_ones_until_they_buy_nothing(fleet: Project) -> None:
    rows = [line for line in ROSTER.splitlines() if not line.startswith("stuck")]
    (fleet.folder / "good.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    outcome = fleet.run("fleet", "--hosts", "good.csv", "--stacks", "9")
    assert outcome.code == 0
    assert outcome.out.startswith("✓ 4 stacks serve all 45 hosts; no choice of so few is better\n")
    assert "\none more stack buys: nothing\n" in outcome.out


def test_of_equal_choices_gpus_are_served_first_and_who_is_left_out_is_no_part_of_all(fleet: Project) -> None:
    outcome = fleet.run("fleet", "--hosts", str(FIXTURES / "slurm/nodes.txt"), "--stacks", "1")
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    assert lines[0] == "✗ 1 stack serves 3 of 6 hosts; no choice of so few is better"
    assert "    3  no GPU       not stated  left out" in lines
    assert "one more stack buys, for 3 hosts:" in lines


def test_a_limit_is_a_number_from_one(fleet: Project) -> None:
    assert fleet.run("fleet", "--hosts", "machines.csv", "--stacks", "0").code == 2


def test_slurm_nodes_get_features_and_ansible_hosts_groups(fleet: Project) -> None:
    outcome = fleet.run("fleet", "--hosts", str(FIXTURES / "slurm/nodes.txt"), "--out", "out", "-v")
    assert outcome.code == 0
    assert outcome.err == "warning: the node is down: gone-0\nwrote trainer.slurm.conf\n"
    text = (fleet.folder / "out" / "trainer.slurm.conf").read_text(encoding="utf-8")
    assert text.splitlines()[3:] == [
        "# pytorch 2.15.0+cu132, cuda 13.2.2, python 3.11, basis native, unverified",
        "#   sbatch --constraint=trainer_1",
        "#",
        "# pytorch 2.15.0+cpu, python 3.11",
        "#   sbatch --constraint=trainer_2",
        "NodeName=a100-0 Features=sm_80,driver_535,trainer_1",
        "NodeName=cpu-[0-1] Features=cpu,trainer_2",
        "NodeName=gone-0 Features=sm_100,trainer_2",
        "NodeName=h100-[0-1] Features=sm_90,driver_550,trainer_1",
    ]
    assert "  slurm      --constraint=trainer_1" in outcome.out.splitlines()
    outcome = fleet.run(
        "fleet", "--hosts", str(FIXTURES / "ansible/hosts.ini"), "--out", "out", "--to", "ansible", "--to", "slurm"
    )
    assert outcome.err == "wrote trainer.slurm.conf, trainer.ansible.yaml\n"
    groups = fleet.run("inspect", "--nodes", "out/trainer.ansible.yaml", "--format", "json").json
    assert [one["name"] for one in groups] == [
        *("gpu-01", "gpu-02", "gpu-03", "gpu-9", "login-1", "node-a", "node-b", "node-c"),
    ]  # fmt: skip


def test_one_host_of_an_inventory_stands_wherever_a_profile_does(fleet: Project) -> None:
    nodes = FIXTURES / "ansible/hosts.ini"
    one = fleet.run("solve", "--stack-only", "--host", f"{nodes}#gpu-9", "--format", "json")
    assert one.code == 0
    assert one.json["stack"]["driver"] == "550.54.15"
    both = fleet.run("fleet", "--host", f"{nodes}#gpu-9", "--host", f"{nodes}#gpu-01", "--format", "json").json
    assert [stack["hosts"] for stack in both["stacks"]] == [["gpu-01", "gpu-9"]]
    fleet.write(SPEC + f"target: {{host: '{nodes}#node-a'}}\n")
    assert fleet.run("solve", "--stack-only", "--format", "json").json["stack"]["pytorch_build"] == "cpu"
    assert fleet.run("doctor", "--host", f"{nodes}#gpu-9").out
    wrong = fleet.run("solve", "--stack-only", "--host", f"{nodes}#gpu-09")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err == (
        f"error: `{nodes}` lists no host `gpu-09`  [bad-usage]\n\nhint: did you mean `gpu-9` or `gpu-03` or `gpu-02`?\n"
    )
    several = fleet.run("solve", "--stack-only", "--host", str(nodes))
    assert several.err == (
        f"error: `{nodes}` lists 8 hosts, and one is meant here  [bad-usage]\n\n"
        f"hint: name it behind a #, as in {nodes}#login-1\n"
        "hint: it lists login-1, gpu-01, gpu-02, gpu-03, gpu-9, node-a, node-b, node-c\n"
    )


def test_missing_facts_are_named_once_for_all_hosts_that_lack_them(fleet: Project) -> None:
    assumed = fleet.run("fleet", "--hosts", "machines.csv", "--format", "json")
    assert [stack["unverified"] for stack in assumed.json["stacks"]] == [[], [], []]
    fleet.write(SPEC + "policy: {strict: true}\n")
    outcome = fleet.run("fleet", "--hosts", "machines.csv", "--format", "json")
    assert outcome.code == 1
    (noted,) = [note for stack in outcome.json["stacks"] for note in stack["unverified"]]
    assert noted["text"].startswith("container_toolkit: the host does not state it")
    assert (noted["type"], noted["component"]) == ("unstated", "container_toolkit")
    assert (noted["count"], noted["classes"]) == (1, ["new-1"])


def test_the_driver_to_install_is_named_once_for_all_hosts_that_state_none(fleet: Project) -> None:
    rows = ["name,count,platform,gpu,kernel,container_toolkit", "bare,3,linux/amd64,NVIDIA B200,6.8.0-45-generic,1.17.8"]
    (fleet.folder / "bare.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (stack,) = fleet.run("fleet", "--hosts", "bare.csv", "--format", "json").json["stacks"]
    (install,) = stack["install"]
    assert re.fullmatch(r"driver [\d.]+ \(open modules\) is to be installed: the host states none", install["text"])
    del install["text"]
    assert install == {"type": "install-driver", "component": "driver", "count": 3, "classes": ["bare"]}


def test_the_json_says_which_host_takes_which_stack_and_what_is_proved(fleet: Project) -> None:
    answer = fleet.run("fleet", "--hosts", "machines.csv", "--format", "json").json
    assert list(answer) == ["status", "hosts", "served", "bound", "stacks", "unserved", "written"]
    assert (answer["status"], answer["hosts"], answer["served"]) == ("no-stack", 46, 45)
    assert answer["bound"] == {"lower": 3, "found": 3, "optimal": True}
    assert [stack["hosts"] for stack in answer["stacks"]] == [["mid", "new-1"], ["old-1", "old-2"], ["build"]]
    assert [stack["count"] for stack in answer["stacks"]] == [41, 2, 2]
    first = answer["stacks"][0]
    assert first["classes"][0]["name"] == "mid"
    assert first["classes"][0]["profile"]["driver"]["version"] == "550.90.07"
    assert "driver" not in first["stack"]
    terms = first["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert all(term["matchExpressions"] for term in terms)
    assert (first["affinity_exact"], answer["stacks"][1]["affinity_exact"]) == (False, True)
    (doubt,) = first["affinity_notes"]
    assert doubt.startswith("cannot keep out stuck: labelled like new-1 (")  # no label shows the flavour of the modules
    assert "driver.module open / proprietary" in doubt
    assert [left["hosts"] for left in answer["unserved"]] == [["stuck"]]
    assert {member["kind"] for member in answer["unserved"][0]["conflict"]["members"]} == {"rule", "fact"}


def test_the_affinity_of_each_stack_is_written_as_yaml(fleet: Project) -> None:
    outcome = fleet.run("fleet", "--hosts", "hosts", "--out", "affinity")
    assert (outcome.code, outcome.err) == (0, "wrote trainer-1.affinity.yaml, trainer-2.affinity.yaml\n")
    text = (fleet.folder / "affinity" / "trainer-2.affinity.yaml").read_text(encoding="utf-8")
    assert (
        text
        == """\
# Generated by provision fleet. Do not edit.
# For pytorch 2.7.1+cu118, cuda 11.8.0, python 3.11, basis minor-version.
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - key: "kubernetes.io/arch"
              operator: "In"
              values: ["amd64"]
            - key: "nvidia.com/gpu.compute.major"
              operator: "In"
              values: ["7"]
            - key: "nvidia.com/gpu.compute.minor"
              operator: "In"
              values: ["5"]
            - key: "nvidia.com/cuda.driver-version.major"
              operator: "Gt"
              values: ["450"]
"""
    )


def test_hosts_of_a_platform_the_spec_does_not_name_are_told(fleet: Project) -> None:
    fleet.write(SPEC + "target: {platform: linux/amd64}\n")
    (fleet.folder / "hosts" / "arm.yaml").write_text(STATED.replace("amd64", "arm64") + NEW, encoding="utf-8")
    outcome = fleet.run("fleet", "--hosts", "hosts")
    assert outcome.code == 1
    left = outcome.out[outcome.out.index("no stack for") :].splitlines()
    assert left[:3] == [
        "no stack for 1 host: arm",
        "  the spec is for linux/amd64  (provision.yaml:3)",
        "  the host has platform linux/arm64  (hosts/arm.yaml)",
    ]
    assert left[3].startswith("  hint: target.platform [linux/amd64, linux/arm64] would do: gives ")


def test_a_host_with_windows_is_told_of_its_linux(fleet: Project) -> None:
    """The driver of Windows serves the Linux of WSL 2, which is a host that a stack may be for."""
    (fleet.folder / "hosts" / "windows.yaml").write_text(STATED.replace("linux/amd64", "windows") + NEW, encoding="utf-8")
    outcome = fleet.run("fleet", "--hosts", "hosts")
    assert outcome.code == 1
    left = outcome.out[outcome.out.index("no stack for") :].splitlines()
    assert left[:3] == [
        "no stack for 1 host: windows",
        (
            "  the spec names no platform, and stacks are for linux/amd64, linux/arm64, macos/x86_64, macos/arm64"
            "  (provision.yaml)"
        ),
        "  the host has platform windows  (hosts/windows.yaml)",
    ]
    assert left[3].startswith(
        "  hint: Linux in WSL 2 (`wsl --install`), as a host of its own for linux/amd64, would do: gives "
    )


def test_where_the_spec_names_no_platform_each_host_has_its_own(fleet: Project) -> None:
    (fleet.folder / "hosts" / "arm.yaml").write_text(STATED.replace("amd64", "arm64") + NEW, encoding="utf-8")
    answer = fleet.run("fleet", "--hosts", "hosts", "--format", "json").json
    assert [(stack["stack"]["platform"], stack["hosts"]) for stack in answer["stacks"]] == [
        ("linux/amd64", ["new"]),
        ("linux/amd64", ["old"]),
        ("linux/arm64", ["arm"]),
    ]


def test_the_hosts_of_the_spec_are_the_fleet_where_no_others_are_given(fleet: Project) -> None:
    fleet.write(SPEC + "target: {host: [hosts/old.yaml, hosts/new.yaml]}\n")
    outcome = fleet.run("fleet")
    assert outcome.code == 0
    assert outcome.out.startswith("✓ 2 stacks serve all 2 hosts; no fewer can\n")


def test_a_fleet_without_hosts_is_a_mistake(fleet: Project) -> None:
    outcome = fleet.run("fleet")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error: no hosts are given: `provision.yaml` names none, and --hosts is missing  [bad-usage]\n\n"
        "hint: give profiles, a .csv, or what `kubectl get nodes -o json` or `scontrol show node` printed, with --hosts\n"
    )


def test_when_nothing_serves_any_host_that_is_the_answer(fleet: Project) -> None:
    (fleet.folder / "hosts" / "old.yaml").unlink()
    (fleet.folder / "hosts" / "new.yaml").write_text(STATED + BROKEN, encoding="utf-8")
    outcome = fleet.run("fleet", "--hosts", "hosts")
    assert outcome.code == 1
    assert outcome.out.startswith("✗ no stack serves any of 1 host\n\nno stack for 1 host: new\n")


def test_packages_are_said_to_be_left_out(fleet: Project) -> None:
    fleet.write(SPEC + "packages: [alpha]\n")
    outcome = fleet.run("fleet", "--hosts", "hosts")
    assert (outcome.code, outcome.err) == (
        0,
        "packages were not asked about: `provision solve` joins them with the system of each stack\n",
    )
    assert not fleet.index.requests


def test_the_order_of_the_files_does_not_change_a_byte(fleet: Project) -> None:
    one = fleet.run("fleet", "--hosts", "hosts", "--hosts", "machines.csv")
    other = fleet.run("fleet", "--hosts", "machines.csv", "--hosts", "hosts")
    assert (one.code, one.out) == (other.code, other.out)


def test_gpus_nobody_knows_are_named_all_at_once(fleet: Project) -> None:
    rows = ["name,platform,gpu", "a,linux/amd64,NVIDIA H10O", "b,linux/amd64,NVIDIA H10O", "c,linux/amd64,Voodoo 5"]
    (fleet.folder / "odd.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    outcome = fleet.run("fleet", "--hosts", "odd.csv")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error: 2 GPUs the matrix does not know, without a compute_capability  [unknown-gpu]\n"
        "  `NVIDIA H10O`  (odd.csv:2 and 1 more); did you mean `NVIDIA H100`?\n"
        "  `Voodoo 5`  (odd.csv:4)\n\n"
        'hint: state its compute_capability, such as "9.0"\n'
    )


@pytest.mark.parametrize(("name", "text"), [("empty.csv", "name,driver\n"), ("empty.json", "[]")])
def test_a_inventory_without_a_host_is_a_mistake(fleet: Project, name: str, text: str) -> None:
    (fleet.folder / name).write_text(text, encoding="utf-8")
    outcome = fleet.run("fleet", "--hosts", name)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"error: there is no host in {name}  [bad-usage]\n"


def test_hosts_that_state_no_platform_are_placed_on_that_of_their_stack(fleet: Project) -> None:
    (fleet.folder / "hosts" / "old.yaml").write_text(OLD, encoding="utf-8")
    (fleet.folder / "hosts" / "new.yaml").write_text(NEW, encoding="utf-8")
    answer = fleet.run("fleet", "--hosts", "hosts", "--format", "json").json
    assert [stack["affinity_exact"] for stack in answer["stacks"]] == [True, True]
    assert [stack["affinity_notes"] for stack in answer["stacks"]] == [[], []]


def test_products_of_amd_call_for_rocm_by_their_name(fleet: Project) -> None:
    inventory = "name,driver.kind,driver,gpus\nmi300,amdgpu,6.12.12,8x AMD Instinct MI300X\n"
    (fleet.folder / "amd.csv").write_text(inventory, encoding="utf-8")
    (stack,) = fleet.run("fleet", "--hosts", "amd.csv", "--format", "json").json["stacks"]
    assert (stack["accelerator"], stack["hosts"]) == ("rocm", ["mi300"])


def test_assumptions_are_listed_under_v_and_in_the_json_and_unverified_if_strict(fleet: Project) -> None:
    (fleet.folder / "hosts" / "new.yaml").write_text(f"platform: linux/amd64\n{NEW}", encoding="utf-8")
    plain = fleet.run("fleet", "--hosts", "hosts")
    assert (plain.code, "assumes" in plain.out, "unverified" in plain.out) == (0, False, False)
    assumed = "container_toolkit: the host does not state it, and is taken to have what the stack needs"
    assert f"  assumes    {assumed}  (1 host: new)" in fleet.run("-v", "fleet", "--hosts", "hosts").out.splitlines()
    stacks = fleet.run("fleet", "--hosts", "hosts", "--format", "json").json["stacks"]
    found = [
        (stack["verdict"], note["text"], note["component"], note["count"]) for stack in stacks for note in stack["assumes"]
    ]
    assert found == [("yes", assumed, "container_toolkit", 1)]
    strict = fleet.run("fleet", "--hosts", "hosts", "--strict", "--format", "json")
    assert strict.code == 0
    assert [(stack["verdict"], len(stack["assumes"])) for stack in strict.json["stacks"]] == [("unverified", 0), ("yes", 0)]


def test_a_driver_of_an_unknown_release_shows_what_a_driver_shows(fleet: Project) -> None:
    """A scheduler tells that a node has GPUs that work: no other driver holds them; which release runs is not known."""
    driven = "platform: linux/amd64\ndriver: {kind: nvidia}\ngpus: [{compute_capability: '8.0'}]\n"
    fleet.write(driven, name="driven.yaml")
    fleet.write("name: a\nrequires: {python: '3.12'}\npackages: [torch]\n")
    answer = fleet.run("fleet", "--host", "driven.yaml", "--format", "json").json
    (stack,) = answer["stacks"]
    assert [one["component"] for one in stack["unverified"]] == ["driver"]
