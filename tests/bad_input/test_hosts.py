"""Host profiles nobody can use, and machines nobody can serve."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.project import changed

if TYPE_CHECKING:
    from tests.project import Project

REFUSED = {
    "not there": (
        None,
        (
            "error: host profile `host.yaml` does not exist  [file]\n"
            "\nhint: `provision inspect` prints the profile of the machine that it runs on\n"
        ),
    ),
    "not a mapping": (
        "hello\n",
        (
            "error: host profile has 1 mistake  [invalid-document]\n"
            "  host.yaml:1:1: the file must hold a mapping of keys to values\n"
        ),
    ),
    "wrong types": (
        "kernel: 6\ngpus: {name: x}\ndriver: 535\n",
        (
            "error: host profile has 3 mistakes  [invalid-document]\n"
            '  host.yaml:1:1: kernel: 6 is not quoted; write "6" (12.10 is not 12.1)\n'
            "  host.yaml:2:1: gpus: must be a list, such as [{name: NVIDIA A100-SXM4-80GB}]\n"
            "  host.yaml:3:1: driver: `535` must be a mapping of keys to values, such as {version: 535.104.05}; "
            "known keys: version, module, kind\n"
        ),
    ),
    "versions that were mistyped": (
        'kernel: 6.8.O-45-generic\nglibc: "2.3S"\ndriver: {version: "58O.95"}\nlibraries: {cudnn: "9..1"}\n',
        (
            "error: host profile has 4 mistakes  [invalid-document]\n"
            "  host.yaml:1:1: kernel: `6.8.O-45-generic` is not a version: after 6.8 comes `.O`; "
            "did you mean `6.8.0-45-generic`?\n"
            "  host.yaml:2:1: glibc: `2.3S` is not a version: after 2.3 comes `S`; did you mean `2.35`?\n"
            "  host.yaml:3:10: driver.version: `58O.95` is not a version: after 58 comes `O`; did you mean `580.95`?\n"
            "  host.yaml:4:13: libraries.cudnn: `9..1` is not a version: after 9 comes `..`; did you mean `9.1`?\n"
        ),
    ),
    "a version of CUDA for that of the driver": (
        'driver: {version: "12.4"}\ngpus: [{name: Tesla T4}]\n',
        (
            "error: host profile has 1 mistake  [invalid-document]\n"
            "  host.yaml:1:10: driver.version: `12.4` is a version of CUDA and of no driver; write what "
            "`nvidia-smi --query-gpu=driver_version --format=csv,noheader` prints, such as 550.54.14\n"
        ),
    ),
    "a GPU nobody knows": (
        "gpus: [{name: NVIDIA RTX 4095}]\n",
        (
            "error: `NVIDIA RTX 4095` (host.yaml:1) is not a GPU the matrix knows, "
            "and its compute_capability is not stated  [unknown-gpu]\n"
            '\nhint: did you mean `NVIDIA GeForce RTX 4090`?\nhint: state its compute_capability, such as "9.0"\n'
        ),
    ),
    "a GPU newer than the matrix": (
        "gpus: [{name: NVIDIA RTX 9999}]\n",
        (
            "error: `NVIDIA RTX 9999` (host.yaml:1) is newer than the GPUs the matrix knows, "
            "and its compute_capability is not stated  [unknown-gpu]\n"
            '\nhint: state its compute_capability, such as "9.0"\n'
        ),
    ),
    "an AMD GPU nobody knows": (
        "driver: {kind: amdgpu}\ngpus: [{name: Instinct MI301X}]\n",
        (
            "error: `Instinct MI301X` (host.yaml:2) is not a GPU the matrix knows, and its gfx is not stated  [unknown-gpu]\n"
            "\nhint: did you mean `AMD Instinct MI300X`?\nhint: state its gfx, such as gfx942\n"
        ),
    ),
    "a name of several GPUs": (
        "gpus: [{name: TITAN X}]\n",
        (
            "error: `TITAN X` (host.yaml:1) is the name of several GPUs, which run different code  [unknown-gpu]\n"
            "\nhint: write the whole name: NVIDIA TITAN X (Pascal) (6.1), NVIDIA GeForce GTX TITAN X (5.2)\n"
            'hint: state its compute_capability, such as "9.0"\n'
        ),
    ),
    "a slice without its GPU": (
        "gpus: [{name: MIG 1g.10gb}]\n",
        (
            "error: `MIG 1g.10gb` (host.yaml:1) is a slice of a GPU and does not name the GPU  [unknown-gpu]\n"
            "\nhint: name the GPU it is cut from, such as `NVIDIA A100-SXM4-40GB MIG 1g.5gb`\n"
            'hint: state its compute_capability, such as "9.0"\n'
        ),
    ),
    "a GPU of another vendor": (
        "gpus: [{name: Intel Arc A770}]\n",
        (
            "error: `Intel Arc A770` (host.yaml:1) is not a GPU of NVIDIA or AMD, "
            "and runs neither CUDA nor ROCm  [unknown-gpu]\n"
            "\nhint: leave it out of `gpus`; a machine without other GPUs states `gpus: []`\n"
        ),
    ),
    "another platform": (
        "platform: linux/arm64\n",
        (
            "error: host `host.yaml` is linux/arm64, but the spec locks linux/amd64  [bad-usage]\n"
            "  target.platform: linux/amd64  (provision.yaml:10)\n"
            "  platform: linux/arm64  (host.yaml)\n"
            "\nhint: set target.platform to linux/arm64, or leave this host out\n"
        ),
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_host_profile_is_refused_at_its_place(project: Project, text: str | None, message: str) -> None:
    project.write(changed("accelerator: cuda", "target: {platform: linux/amd64}"))
    if text is not None:
        project.write(text, name="host.yaml")
    before = project.files()
    outcome = project.run("solve", "--stack-only", "--host", "host.yaml")
    assert outcome.err == message
    assert (outcome.code, outcome.out) == (2, "")
    assert project.files() == before


def test_a_profile_that_may_not_be_read_is_named(project: Project) -> None:
    """Root may read everything but a file that is no file, so the same is tried with a folder."""
    path = project.write("kernel: 6.8.0\n", name="host.yaml")
    path.chmod(0)
    if os.access(path, os.R_OK):
        path.unlink()
        path.mkdir()
        reason = "is a directory, not a file"
    else:
        reason = "cannot be read: Permission denied"
    outcome = project.run("solve", "--stack-only", "--host", "host.yaml")
    assert (outcome.code, outcome.err) == (2, f"error: host profile `host.yaml` {reason}  [file]\n")


def test_a_profile_named_by_the_spec_is_named_relative_to_it(project: Project) -> None:
    project.write(changed("target: {host: hosts/a100.yaml}"), name="environments/provision.yaml")
    outcome = project.run("solve", "--stack-only", "environments/provision.yaml")
    assert (outcome.code, outcome.err) == (
        2,
        (
            "error: host profile `environments/hosts/a100.yaml` does not exist  [file]\n"
            "\nhint: `provision inspect` prints the profile of the machine that it runs on\n"
        ),
    )


@pytest.mark.parametrize("spelled", ["l40s", "L40S", "l-40s"])
def test_the_name_of_a_kind_of_machine_is_no_file_and_is_told_as_such(project: Project, spelled: str) -> None:
    project.write(changed(f"target: {{host: {spelled}}}"))
    outcome = project.run("solve", "--stack-only")
    assert (outcome.code, outcome.err) == (
        2,
        (
            f"error: host profile `{spelled}` does not exist  [file]\n"
            "\nhint: `provision init --profile l40s` writes a spec for machines of this kind\n"
        ),
    )


def test_a_gpu_no_build_was_compiled_for_is_no_stack_and_never_cpu(project: Project) -> None:
    project.write(changed("accelerator: cuda", 'requires: {pytorch: "*"}', "packages: []", "image: {base: auto}"))
    project.write("gpus: [{compute_capability: '3.0'}]\ndriver: {version: 470.256.02}\n", name="host.yaml")
    outcome = project.run("solve", "--stack-only", "--host", "host.yaml", "--format", "json")
    assert outcome.code == 1
    assert outcome.json["status"] == "no-stack"
    (fact,) = (one for one in outcome.json["conflict"]["members"] if one["kind"] == "fact")
    assert (fact["component"], fact["text"], fact["where"]) == ("gpu", "the host has gpu 3.0", "host.yaml:1")
    assert [(one["type"], one["object"], one["ranges"]) for one in fact["clauses"]] == [("host-gpu", "gpu", ["3.0"])]


def test_a_kind_that_is_no_text_is_a_mistake_at_its_place(project: Project) -> None:
    project.write('{"kind": {"a": 1}, "apiVersion": "v1", "items": []}', name="nodes.json")
    outcome = project.run("inspect", "--nodes", "nodes.json")
    assert outcome.code == 2
    assert "is neither a Node nor a List of them" in outcome.err
