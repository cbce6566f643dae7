"""The gate of a base image, from outside: a refusal with its clauses, a mistake with its place, a gate that was lifted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import Project

SPEC = """\
name: gated
target:
  host:
    platform: linux/amd64
    kernel: 6.5.0-1017-aws
    container_toolkit: 1.17.4
    driver: {version: 535.104.05, module: proprietary}
    gpus: [{name: NVIDIA GeForce RTX 4090, compute_capability: "8.9"}]
requires: {pytorch: "==2.7.1+cu126", python: "==3.12"}
image:
  base: registry.example/base:1
  require: "cuda>=12.6 brand=tesla,driver>=535,driver<536"
"""
AT = "provision.yaml:10"


def test_a_host_the_base_refuses_is_told_the_exact_clauses(project: Project) -> None:
    project.write(SPEC)
    outcome = project.run("solve", "--stack-only")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.splitlines()[:5] == [
        "error: base image registry.example/base:1 and driver 535.104.05 exclude each other  [no-stack]",
        "  the base image is registry.example/base:1  (provision.yaml:11)",
        (
            "  base image registry.example/base:1 lets in hosts with `cuda>=12.6 brand=tesla,driver>=535,driver<536`;"
            " cuda>=12.6: the driver's CUDA is 12.2;"
            " brand=tesla: the brand of gpu 8.9 (NVIDIA GeForce RTX 4090) is geforce or geforcertx  (provision.yaml:12)"
        ),
        "  the host has driver 535.104.05  (provision.yaml:7)",
        "  so this base image cannot be used for this host",
    ]


def test_the_conflict_names_the_image_as_its_component(project: Project) -> None:
    project.write(SPEC)
    members = project.run("solve", "--stack-only", "--format", "json").json["conflict"]["members"]
    assert [(one["component"], one["kind"], one["where"]) for one in members] == [
        ("image", "request", "provision.yaml:11"),
        ("image", "rule", "provision.yaml:12"),
        ("driver", "fact", "provision.yaml:7"),
    ]


def test_a_gate_that_is_lifted_is_a_relaxation_and_the_images_own_takes_its_place(project: Project) -> None:
    project.write(SPEC + "policy: {allow: [minor-version, image-gate]}\n")
    answer = project.run("solve", "--stack-only", "--format", "json").json
    assert answer["status"] == "solved"
    (used,) = (one for one in answer["relaxations"] if one["name"] == "image-gate")
    assert used == {
        "name": "image-gate",
        "component": "image",
        "text": (
            "base image registry.example/base:1 alone would refuse target.host (cuda>=12.6: the driver's CUDA is 12.2;"
            " brand=tesla: the brand of gpu 8.9 (NVIDIA GeForce RTX 4090) is geforce or geforcertx);"
            " the NVIDIA_REQUIRE_CUDA of this stack replaces its own"
        ),
        "where": "provision.yaml:12",
    }


@pytest.mark.parametrize(
    ("image", "mistakes"),
    [
        (
            '{base: my/base, require: "cuda>=twelve"}',
            [
                f"{AT}:24: image.require: `twelve` is not a version of one to three numbers (character 7 of the requirement)",
            ],
        ),
        (
            '{base: my/base, require: "cuda>=12 brand>tesla"}',
            [
                f"{AT}:24: image.require: `>` does not compare brands: only = and != do (character 15 of the requirement)",
            ],
        ),
        (
            '{require: "cuda"}',
            [
                f"{AT}:9: image.require: `cuda` is not a comparison such as cuda>=12.6 (character 1 of the requirement)",
                f"{AT}:9: image.require: is about a base image that `base` names; this one is chosen",
            ],
        ),
    ],
)
def test_a_requirement_that_cannot_be_read_is_a_mistake_with_its_place(
    project: Project, image: str, mistakes: list[str]
) -> None:
    project.write(SPEC.partition("image:")[0] + f"image: {image}\n")
    outcome = project.run("solve", "--stack-only")
    assert (outcome.code, outcome.out) == (2, "")
    count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    assert outcome.err.splitlines() == [f"error: spec has {count}  [invalid-document]", *(f"  {one}" for one in mistakes)]
