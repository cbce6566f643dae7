"""`provision plan` from outside."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.lock.create import create_lock
from provisioner.lock.format.file import write_lock
from provisioner.matrix.cache import cached_matrix
from provisioner.resolver.joint import solve_system
from provisioner.resolver.problem import join
from tests import lock_examples, small

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project import Project

SPEC = """\
name: trainer
target: {host: a100.yaml}
requires: {python: "==3.12", pytorch: ">=2.0"}
"""
A100 = """\
platform: linux/amd64
os: {id: ubuntu, version: "24.04"}
kernel: 6.8.0-45-generic
kernel_headers: 6.8.0-45-generic
driver: {version: 470.256.02, module: proprietary}
gpus: [{name: NVIDIA A100-SXM4-80GB, compute_capability: "8.0", count: 8}]
container_toolkit: 1.17.4
"""
V100 = A100.replace("NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB").replace('"8.0"', '"7.0"')
CU130 = ("--to", "pytorch==2.11.0+cu130")


def lock(project: Project, name: str, pytorch: str, *, packages: bool = True) -> Path:
    """Write the lock of one PyTorch build, as `solve` would for a machine left open."""
    request = small.request({"python": "==3.12", "pytorch": f"=={pytorch}"}, {"platform": "linux/amd64"})
    stack = solve_system(join(cached_matrix(None), request))
    stack = replace(stack, packages=lock_examples.PACKAGES if packages else (), doubts=())
    made = create_lock(
        [stack],
        name="trainer",
        matrix_digest=lock_examples.MATRIX_DIGEST,
        spec_digest=lock_examples.SPEC_DIGEST,
        installer=lock_examples.INSTALLERS,
    )
    return project.write(write_lock(made), name=name)


@pytest.fixture(autouse=True)
def _hosts(project: Project) -> None:
    project.write(SPEC)
    project.write(A100, name="a100.yaml")
    project.write(V100, name="v100.yaml")


def without_places(text: str) -> list[str]:
    """Lines without what stands in parentheses after two blanks: lines of matrix files move."""
    return [line.partition("  (")[0] for line in text.splitlines()]


def test_the_whole_way_of_one_host(project: Project) -> None:
    lock(project, "pylock.trainer.toml", "2.7.1+cu118")
    outcome = project.run("plan", *CU130, "-v")
    assert outcome.code == 0
    moved = (
        "pytorch 2.7.1+cu118 -> 2.11.0+cu130, cuda 11.8.0 -> 13.0.2, cudnn 9.1.0.70 -> 9.19.0.56, nccl 2.21.5 -> 2.28.9, "
        "triton 3.3.1 -> 3.6.0"
    )
    no_dkms, dkms = "nvidia-headless-no-dkms-580", "dkms, signed by this host, needs linux-headers-$(uname -r)"
    assert without_places(outcome.out) == [
        "✓ 1 machine can follow to pytorch 2.11.0+cu130, cuda 13.0.2, python 3.12",
        "",
        "a100.yaml: 2 steps",
        "  1. install driver 580.178.04 with the proprietary kernel modules in place of 470.256.02 (proprietary)  [reboot]",
        "     because cuda 13.0.2 needs driver >=580.65.06 (minor-version compatibility)",
        "     branch 580: a Long Term Support Branch, supported until 2028-06",
        f"     as `linux-modules-nvidia-580-generic-6.8` (precompiled, signed), with {no_dkms}, nvidia-utils-580",
        f"     as `nvidia-driver-580 with DKMS` ({dkms}): nvidia-headless-580, nvidia-utils-580",
        "     as `GPU Operator signed driver container` (precompiled, signed)",
        "     `provision inspect` must then report driver 580.178.04, module proprietary",
        "     undo: install driver 470.256.02 (proprietary) again",
        f"  2. build the image from the new lock and roll it out: {moved}",
        "     because you require python ==3.12",
        "     because you require pytorch ==2.11.0+cu130",
        "     `provision solve` writes the lock, `provision validate` tries it before it is rolled out",
        "     undo: go back to today's lock, which still runs on the machine as it is then",
    ]
    assert "(--to 'pytorch==2.11.0+cu130')" in outcome.out
    assert not project.index.requests


def test_without_details_a_step_has_the_rule_that_makes_it_necessary(project: Project) -> None:
    lock(project, "pylock.trainer.toml", "2.7.1+cu118")
    outcome = project.run("plan", *CU130)
    assert (outcome.code, outcome.err) == (0, "")
    lines = without_places(outcome.out)
    assert [line for line in lines if line.startswith("     ")] == [
        "     because cuda 13.0.2 needs driver >=580.65.06 (minor-version compatibility)"
    ]
    assert lines[-2:] == ["", "-v tells how each step is done, checked and undone"]


def test_what_runs_and_is_allowed_stays(project: Project) -> None:
    lock(project, "pylock.trainer.toml", "2.7.1+cu118")
    outcome = project.run("plan", "--to", "pytorch>=2.5")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "✓ nothing to do: 1 machine can run pytorch 2.7.1+cu118, cuda 11.8.0, python 3.12",
        "",
        "a100.yaml: nothing to do",
        "  note: driver 470.256.02 stays, of branch 470, which ended 2024-07",
    ]
    assert project.run("plan", "--to", "pytorch>=2.5", "--format", "json").json["status"] == "nothing-to-do"


def test_a_fleet_is_told_by_class_and_summed_up(project: Project) -> None:
    project.write(A100, name="fleet/node-1.yaml")
    project.write(A100, name="fleet/node-2.yaml")
    project.write(V100, name="fleet/old.yaml")
    outcome = project.run("plan", *CU130, "--hosts", "fleet")
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out.splitlines()[:7] == [
        "✗ 1 of 3 machines cannot follow to pytorch 2.11.0+cu130, cuda 13.0.2, python 3.12",
        "",
        "wave  machines  gpu                    driver      os            steps  drain     undo    outcome",
        "   1         2  NVIDIA A100-SXM4-80GB  470.256.02  ubuntu 24.04      2  1 reboot  partly  follows",
        "             1  Tesla V100-SXM2-16GB   470.256.02  ubuntu 24.04                           falls out",
        "",
        "node-1, node-2 (2 machines): 2 steps",
    ]


def test_machines_that_are_disturbed_least_are_the_first_wave(project: Project) -> None:
    lock(project, "pylock.trainer.toml", "2.7.1+cu118")
    project.write(A100, name="fleet/late.yaml")
    project.write(A100.replace("470.256.02", "580.178.04"), name="fleet/early.yaml")
    project.write(A100.replace('"24.04"', '"22.04"'), name="fleet/other.yaml")
    plan = project.run("plan", *CU130, "--hosts", "fleet", "--format", "json").json
    assert [(wave["wave"], wave["count"], wave["drain"], wave["reboots"], wave["hosts"]) for wave in plan["waves"]] == [
        (1, 1, False, 0, ["early"]),
        (2, 2, True, 1, ["late", "other"]),
    ]
    outcome = project.run("plan", *CU130, "--hosts", "fleet")
    assert [line.split()[:3] for line in outcome.out.splitlines()[3:6]] == [
        ["1", "1", "NVIDIA"],
        ["2", "1", "NVIDIA"],
        ["2", "1", "NVIDIA"],
    ]


def test_the_plan_of_each_host_is_a_file_on_request(project: Project) -> None:
    project.write(A100, name="fleet/rack/node-1.yaml")
    project.write(V100, name="fleet/old.yaml")
    outcome = project.run("plan", *CU130, "--hosts", "fleet", "--out", "plans")
    assert (outcome.code, outcome.err) == (1, "wrote 2 files to plans\n")
    files = {path.name: path.read_text(encoding="utf-8") for path in (project.folder / "plans").iterdir()}
    assert sorted(files) == ["old.md", "rack-node-1.md"]
    assert files["rack-node-1.md"].startswith("<!-- provision plan -->\n\n### ✓ 1 machine can follow to ")
    assert "\n1. install driver 580.178.04 " in files["rack-node-1.md"]
    assert "cannot follow" in files["old.md"]


def test_a_host_that_falls_out_is_told_why_and_what_is_left_for_it(project: Project) -> None:
    outcome = project.run("plan", *CU130, "--host", "v100.yaml")
    assert (outcome.code, outcome.err) == (1, "")
    lines = without_places(outcome.out)
    assert lines[0] == "✗ 1 of 1 machine cannot follow to the wanted stack"
    assert lines[2] == "v100.yaml: falls out: pytorch ==2.11.0+cu130 and gpu 7.0 exclude each other"
    assert lines[3] == "  you require pytorch ==2.11.0+cu130"
    assert "  the host has gpu 7.0 (Tesla V100-SXM2-16GB)" in lines
    assert lines[-2].startswith("  the last stack for it: pytorch 2.14.1+cu126, cuda 12.6.3, driver 580.178.04, python 3.12")
    assert lines[-1] == "    with driver 580.178.04 in place of 470.256.02, branch 580 supported until 2028-06"


def test_the_plan_as_json(project: Project) -> None:
    lock(project, "pylock.trainer.toml", "2.7.1+cu118")
    found = project.run("plan", *CU130, "--host", "a100.yaml", "--host", "v100.yaml", "--format", "json")
    assert found.code == 1
    plan = found.json
    assert (plan["status"], plan["verdict"]) == ("possible", "no")
    assert plan["wanted"]["stack"]["pytorch_build"] == "cu130"
    assert "driver" not in plan["wanted"]["stack"]
    follows, falls = plan["hosts"]
    assert list(follows) == [
        "hosts",
        "count",
        "platform",
        "wave",
        "drain",
        "reboots",
        "undo",
        "steps",
        "unverified",
        "assumes",
        "notes",
    ]
    assert (follows["hosts"], follows["count"], follows["platform"]) == (["a100.yaml"], 1, "linux/amd64")
    driver, image = follows["steps"]
    assert list(driver) == [
        "kind", "component", "from", "to", "text", "why", "details", "changes", "reboot", "together", "state",
    ]  # fmt: skip
    assert (driver["component"], driver["from"], driver["to"]) == ("driver", "470.256.02", "580.178.04")
    assert (driver["reboot"], driver["together"]) == (True, False)
    assert driver["state"]["driver"] == "580.178.04"
    assert driver["state"]["kernel"] == "6.8.0-45-generic"
    assert [one["component"] for one in driver["why"]] == ["cuda"]
    assert (image["component"], image["reboot"]) == ("image", False)
    assert {"component": "cuda", "from": "11.8.0", "to": "13.0.2"} in image["changes"]
    assert (falls["hosts"], falls["steps"]) == (["v100.yaml"], [])
    assert {one["component"] for one in falls["falls_out"]["conflict"]["members"]} == {"pytorch", "gpu"}
    assert falls["falls_out"]["last"]["stack"]["pytorch"] == "2.14.1"
    assert falls["falls_out"]["until"] == "2028-06"


def test_a_lock_can_be_the_goal(project: Project) -> None:
    lock(project, "pylock.trainer.toml", "2.7.1+cu118")
    lock(project, "next/pylock.trainer.toml", "2.11.0+cu130", packages=False)
    outcome = project.run("plan", "--to", "next/pylock.trainer.toml")
    assert (outcome.code, outcome.err) == (0, "")
    lines = without_places(outcome.out)
    assert lines[1] == (
        "  packages: python-dateutil 2.9.0.post0 -> none, six 1.17.0 -> none (`provision explain --diff` tells them all)"
    )
    told = without_places(project.run("plan", "--to", "next/pylock.trainer.toml", "-v").out)
    assert "     because the lock has pytorch 2.11.0+cu130" in told


def test_another_spec_can_be_the_goal(project: Project) -> None:
    project.write(SPEC.replace(">=2.0", "==2.11.0+cu130"), name="next.yaml")
    outcome = project.run("plan", "--to", "next.yaml", "-v")
    assert outcome.code == 0
    assert "because you require pytorch ==2.11.0+cu130  (next.yaml:3)" in outcome.out


def test_what_is_kept_is_never_moved(project: Project) -> None:
    outcome = project.run("plan", *CU130, "--keep", "driver")
    assert outcome.code == 1
    assert "  the host has driver 470.256.02  (a100.yaml:5)" in outcome.out.splitlines()


def test_a_missing_fact_is_asked_for_and_the_answer_is_open(project: Project) -> None:
    project.write(A100.replace("driver: {version: 470.256.02, module: proprietary}\n", ""), name="a100.yaml")
    outcome = project.run("plan", *CU130)
    assert (outcome.code, outcome.err) == (3, "")
    assert outcome.out.splitlines()[3] == (
        "  1. find out which driver is loaded, if any: the profile does not state it (`provision inspect` there)"
    )


def test_an_assumption_is_told_under_v_and_asked_for_if_strict(project: Project) -> None:
    project.write(A100.replace("container_toolkit: 1.17.4\n", ""), name="a100.yaml")
    wanted = ("plan", "--to", "pytorch>=2.6,<2.7")
    plain = project.run(*wanted, "--format", "json")
    assumed = "container_toolkit: a100.yaml does not state it, and is taken to have what the stack needs"
    (host,) = plain.json["hosts"]
    assert (plain.code, host["assumes"], host["unverified"]) == (0, [assumed], [])
    assert f"  assumes: {assumed}" in project.run("-v", *wanted).out.splitlines()
    strict = project.run(*wanted, "--strict")
    assert strict.code == 3
    first = "? 1 of 1 machine may follow to pytorch 2.6.0+cu118, cuda 11.8.0, python 3.12, once missing facts are found out"
    assert strict.out.splitlines()[0] == first
    asked = "  1. find out which NVIDIA Container Toolkit is installed, if any: the profile does not state it"
    assert f"{asked} (`provision inspect` there)" in strict.out.splitlines()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "pytorh>=2"), "--to `pytorh>=2`: `pytorh` is not a component of the matrix; did you mean `pytorch`?"),
        (
            ("--to", "pytorch>>2"),
            "--to `pytorch>>2`: `>>2` is not a range: write for example >=2.6, ==12.* or >=550,<580",
        ),
        (("--to", "???"), "--to `???` is neither a requirement nor a spec nor a lock"),
        (("--to", "driver_module>=open"), "--to `driver_module>=open`: driver_module has names, not numbers"),
        (("--to", "a.toml", "--to", "b.yaml"), "--to `a.toml` and --to `b.yaml`: a plan has one goal"),
        (("--to", "none.toml"), "lock file `none.toml` does not exist"),
        (("--from", "none.toml"), "lock file `none.toml` does not exist"),
        (("--keep", "gpu"), "--keep `gpu` is not one of driver, driver_module, kernel, container_toolkit, cuda_driver"),
        (("--may-change", "gpu"), "--may-change `gpu` is not one of os"),
        (("--host", "a100.yaml", "--hosts", "."), "--host and --hosts cannot be given together"),
    ],
)
def test_what_cannot_be_asked(project: Project, words: tuple[str, ...], message: str) -> None:
    outcome = project.run("plan", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines()[0].rpartition("  [")[0] == f"error: {message}"


def test_a_lock_of_a_release_nobody_knows_is_no_goal(project: Project) -> None:
    path = lock(project, "next.toml", "2.11.0+cu130")
    path.write_text(path.read_text(encoding="utf-8").replace('"13.0.2"', '"13.0.99"'), encoding="utf-8")
    outcome = project.run("plan", "--to", "next.toml")
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.splitlines()[0] == (
        "error: the wanted lock has cuda 13.0.99, which the matrix does not list for what the spec asks  [unlisted-release]"
    )


def test_same_words_same_bytes(project: Project) -> None:
    lock(project, "pylock.trainer.toml", "2.7.1+cu118")
    words = ("plan", *CU130, "--host", "a100.yaml", "--host", "v100.yaml", "--format", "json")
    assert project.run(*words) == project.run(*words)


NODE = """\
{"apiVersion": "v1", "kind": "Node", "spec": {"unschedulable": true}, "metadata": {"name": "mi300vf", "labels": {
  "kubernetes.io/arch": "amd64", "amd.com/gpu.device-id": "74b5"}}, "status": {"capacity": {"amd.com/gpu": "8"}}}
"""


def test_nodes_are_known_by_their_device_and_what_is_noted_of_them_is_told(project: Project) -> None:
    project.write(NODE, name="node.json")
    outcome = project.run("plan", "--to", "pytorch>=2.9", "--hosts", "node.json")
    assert outcome.err == "warning: the node takes no new pods (cordoned): mi300vf\n"
    assert outcome.out.startswith("? 1 of 1 machine may follow to pytorch 2.14.1+rocm7.14, ")


def test_a_plan_as_markdown_is_a_comment_with_a_mark_a_table_and_steps(project: Project) -> None:
    outcome = project.run("plan", *CU130, "--host", "a100.yaml", "--host", "v100.yaml", "--format", "markdown")
    assert outcome.code == 1
    mark, _, head, *_ = outcome.out.splitlines()
    assert mark == "<!-- provision plan -->"
    assert head.startswith("### ✗ 1 of 2 machines cannot follow to ")
    assert "\n| wave | machines | gpu | driver | os | steps | drain | undo | outcome |\n" in outcome.out
    assert outcome.out.count("<details><summary>") == outcome.out.count("</details>") == 2
    assert "\n\n1. " in outcome.out
    assert "   - because " in outcome.out
    assert not [line for line in outcome.out.splitlines() if ">=" in line and "\\>=" not in line and "&gt;=" not in line]


def test_names_of_other_people_stay_text_in_markdown(project: Project) -> None:
    """A comment must not be able to mention, link or embed what a profile is called."""
    project.write(A100, name="a[x](http-evil)_*<img>.yaml")
    outcome = project.run("plan", *CU130, "--host", "a[x](http-evil)_*<img>.yaml", "--format", "markdown")
    assert "<img>" not in outcome.out
    assert "[x](" not in outcome.out.replace("<summary>a[x](", "")


def test_a_machine_that_no_stack_serves_leaves_the_next_its_own(project: Project) -> None:
    """The first machine that is listed has no stack; that the second one states no driver is told all the same."""
    project.write("name: a\naccelerator: cpu\nrequires: {python: '3.12'}\ntarget: {platform: linux/amd64}\n")
    driven = {"platform": "linux/amd64", "driver": {"version": "550.54.15"}, "gpus": [{"compute_capability": "8.0"}]}
    listed = [{"name": "driven", "host": driven}, {"name": "unknown", "host": {}}]
    (project.folder / "hosts.json").write_text(json.dumps(listed), encoding="utf-8")
    outcome = project.run("plan", "--to", "driver>=560", "--hosts", "hosts.json")
    assert outcome.code == 1
    assert "driven: falls out: driver >=560 and driver 550.54.15 exclude each other" in outcome.out
    assert "unknown: falls out: a driver and driver >=560 exclude each other" in outcome.out
