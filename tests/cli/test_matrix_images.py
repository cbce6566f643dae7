"""`provision matrix refresh images` and `audit images` against a real registry on loopback."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from provisioner.index import image_registry
from provisioner.matrix.load import load_matrix
from tests.image_registry import ImageRegistry, is_installed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.project import Outcome, Project

pytestmark = pytest.mark.skipif(
    not is_installed() and os.environ.get("PROVISION_REQUIRE_ENGINE") != "1",
    reason="docker-registry is not installed: apt-get install docker-registry",
)

BOTH = ("linux/amd64", "linux/arm64")
# what the images of 12.8.1 say for amd64, shortened after the second driver branch; those for arm64 name the CUDA alone
GATE = "cuda>=12.8 brand=unknown,driver>=470,driver<471 brand=grid,driver>=470,driver<471"
NEW_GATE = GATE.replace("12.8", "12.9") + " brand=tesla,driver>=535,driver<536 brand=nvidia,driver>=535,driver<536"
IMAGES = """\
# Base images.
sources:
  notes:
    title: "the notes"
    url: "https://example.org/"
  ubuntu-glibc: {title: "Ubuntu package libc6"}
surveys:
  - {repository: "HOST/nvidia/cuda", tags: '(?P<version>\\d+\\.\\d+\\.\\d+)(-cudnn\\d*)?-(?P<flavour>base|runtime|devel)-(?P<system>ubuntu[\\d.]+)'}
gates:
  cuda-12.8.1: >-
    GATE
images:
  # this comment stays
  - {reference: "HOST/nvidia/cuda:12.8.1-base-ubuntu24.04", kind: cuda-base, distribution: "ubuntu:24.04", glibc: "2.39", apt_python: "3.12", cuda: "12.8.1", gate: cuda-12.8.1, platforms: [linux/amd64], source: [notes, ubuntu-glibc]}
  - {reference: "HOST/nvidia/cuda:12.8.1-runtime-ubuntu24.04", kind: cuda-runtime, distribution: "ubuntu:24.04", glibc: "2.39", apt_python: "3.12", cuda: "12.8.1", platforms: [linux/amd64], source: [ubuntu-glibc]}
"""  # noqa: E501 - rows stand on one line
MATRIX = """\
order: [cuda, python, glibc]
components:
  cuda: {title: CUDA, file: cuda.yaml}
  python: {title: CPython, file: python.yaml}
  glibc: {title: glibc, file: glibc.yaml, virtual: true}
images: images.yaml
"""
RELEASES = {"cuda": ("12.9.1", "12.8.1"), "python": ("3.12",), "glibc": ()}


def of_cuda(version: str, gate: str, **more: str) -> dict[str, str]:
    return {"PATH": "/usr/bin", "CUDA_VERSION": version, "NVIDIA_REQUIRE_CUDA": gate, **more}


@pytest.fixture
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageRegistry]:
    with ImageRegistry(tmp_path_factory.mktemp("registry")) as running:
        for tag in ("12.8.1-base-ubuntu24.04", "12.8.1-runtime-ubuntu24.04", "12.4.1-base-ubuntu24.04", "latest"):
            running.push("nvidia/cuda", tag, {"linux/amd64": of_cuda("12.8.1", GATE)})
        yield running


@pytest.fixture
def world(project: Project, registry: ImageRegistry) -> Project:
    folder = project.folder / "rules"
    folder.mkdir()
    (folder / "matrix.yaml").write_text(MATRIX, encoding="utf-8")
    for name, versions in RELEASES.items():
        rows = "".join(f'  - {{version: "{version}", source: [{name}]}}\n' for version in versions)
        written = f"sources: {{{name}: {{title: releases}}}}\nreleases:\n{rows}" if rows else "{}\n"
        (folder / f"{name}.yaml").write_text(written, encoding="utf-8")
    (folder / "images.yaml").write_text(IMAGES.replace("HOST", registry.host).replace("GATE", GATE), encoding="utf-8")
    return project


def text(world: Project) -> str:
    return (world.folder / "rules" / "images.yaml").read_text(encoding="utf-8")


def refreshed(world: Project, *words: str) -> Outcome:
    return world.run("matrix", "refresh", "images", "--matrix", "rules", *words)


def test_a_file_that_has_every_tag_keeps_its_bytes(world: Project) -> None:
    before = text(world)
    outcome = refreshed(world)
    assert outcome.code == 0, outcome.err
    assert "1 file is as the index says: 2 rows of base images" in outcome.err
    assert text(world) == before


def test_a_new_tag_becomes_a_row_with_digest_gate_and_the_facts_of_its_distribution(
    world: Project, registry: ImageRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_registry, "PAGE", 2)
    environments = {
        "linux/amd64": of_cuda("12.9.1", NEW_GATE, NV_CUDNN_VERSION="9.10.2.21-1"),
        "linux/arm64": of_cuda("12.9.1", "cuda>=12.9", NV_CUDNN_VERSION="9.10.2.21-1"),
    }
    digest = registry.push("nvidia/cuda", "12.9.1-cudnn-runtime-ubuntu24.04", environments)
    registry.push("nvidia/cuda", "12.9.1-base-ubuntu26.04", environments)
    before = text(world).splitlines()

    outcome = refreshed(world)

    assert outcome.code == 0, outcome.err
    assert (
        f"`{registry.host}/nvidia/cuda:12.9.1-base-ubuntu26.04` is new, but no row tells what is in `ubuntu26.04`"
        in outcome.err
    )
    assert [line for line in text(world).splitlines() if line in before] == before
    matrix = load_matrix(world.folder / "rules")
    amd, arm = matrix.images[2:]
    assert (amd.reference, amd.digest) == (f"{registry.host}/nvidia/cuda:12.9.1-cudnn-runtime-ubuntu24.04", digest)
    assert (amd.kind, amd.distribution, amd.glibc, amd.apt_python) == ("cuda-runtime", "ubuntu:24.04", "2.39", "3.12")
    assert (amd.cuda, amd.cudnn, amd.require_cuda) == ("12.9.1", "9.10.2.21", NEW_GATE)
    assert (amd.platforms, arm.platforms, arm.require_cuda) == (("linux/amd64",), ("linux/arm64",), "cuda>=12.9")
    assert amd.source == ("image-registry", "ubuntu-glibc")

    once = text(world)
    assert refreshed(world).code == 0
    assert text(world) == once


def test_an_audit_compares_every_row_with_the_image_that_its_tag_names(world: Project, registry: ImageRegistry) -> None:
    outcome = world.run("matrix", "audit", "images", "--matrix", "rules", "--all")
    assert outcome.code == 0, outcome.err
    # the row of the second image has no gate, which is no claim that there is none
    assert "  gate: confirmed\n" in outcome.out
    assert "  gate: not measurable\n    stated: not stated\n" in outcome.out

    path = world.folder / "rules" / "images.yaml"
    path.write_text(
        text(world).replace('cuda: "12.8.1", gate', 'cuda: "12.9.1", gate').replace("12.8.1-runtime", "12.8.1-devel"),
        encoding="utf-8",
    )
    outcome = world.run("matrix", "audit", "images", "--matrix", "rules")
    assert outcome.code == 1
    assert "  cuda: refuted\n    stated: 12.9.1\n    read:   linux/amd64: 12.8.1\n" in outcome.out
    gone = f"image `{registry.host}/nvidia/cuda:12.8.1-devel-ubuntu24.04` does not exist"
    assert f"  reference: refuted\n    stated: {registry.host}/nvidia/cuda:12.8.1-devel-ubuntu24.04\n" in outcome.out
    assert gone in outcome.out


def test_an_image_of_the_catalogue_tells_a_build_of_its_cuda_and_not_its_cudnn(world: Project, registry: ImageRegistry) -> None:
    registry.push("nvidia/pytorch", "25.10-py3", {"linux/amd64": of_cuda("13.0.2.006", "cuda>=9.0")})
    row = (
        f'  - {{reference: "{registry.host}/nvidia/pytorch:25.10-py3", kind: ngc, distribution: "ubuntu:24.04", glibc: "2.39", '
        'apt_python: "3.12", cuda: "13.0.2", cudnn: "9.14.0.64", platforms: [linux/amd64], source: [ubuntu-glibc]}\n'
    )
    path = world.folder / "rules" / "images.yaml"
    path.write_text(text(world) + row, encoding="utf-8")
    outcome = world.run("matrix", "audit", "images", "--matrix", "rules", "--all")
    assert outcome.code == 0, outcome.out
    assert "  cuda: confirmed\n    stated: 13.0.2\n    read:   linux/amd64: 13.0.2.006\n" in outcome.out
    assert "  cudnn: not measurable\n    stated: 9.14.0.64\n" in outcome.out

    path.write_text(text(world).replace('"13.0.2"', '"13.0.20"'), encoding="utf-8")
    assert "  cuda: refuted\n    stated: 13.0.20\n" in world.run("matrix", "audit", "images", "--matrix", "rules").out


def test_a_tag_that_moved_is_told_and_no_mistake(world: Project, registry: ImageRegistry) -> None:
    new = {"linux/amd64": of_cuda("12.9.1", NEW_GATE)}
    registry.push("nvidia/cuda", "12.9.1-base-ubuntu24.04", new)
    assert refreshed(world).code == 0
    moved = registry.push("nvidia/cuda", "12.9.1-base-ubuntu24.04", {"linux/amd64": {**new["linux/amd64"], "BUILT": "again"}})
    outcome = world.run("matrix", "audit", "images", "--matrix", "rules")
    assert outcome.code == 0, outcome.out
    assert f"the tag names {moved} now" in outcome.out


def test_a_registry_that_cannot_be_read_is_named(world: Project, registry: ImageRegistry) -> None:
    before = text(world)
    registry.__exit__()
    outcome = refreshed(world)
    assert outcome.code == 3
    assert f"registry `{registry.host}`" in outcome.err
    kept = refreshed(world, "--keep-going")
    assert (kept.code, text(world)) == (3, before)
    assert f"not refreshed: images: {registry.host}/nvidia/cuda: " in kept.err
    assert "not measurable" in world.run("matrix", "audit", "images", "--matrix", "rules").out


def test_nothing_is_asked_offline(world: Project, registry: ImageRegistry) -> None:
    outcome = refreshed(world, "--offline")
    assert outcome.code == 3
    assert f"offline: the tags of `{registry.host}/nvidia/cuda` cannot be read" in outcome.err
