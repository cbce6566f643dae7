"""Wheels outside of the indexes: pages as PyTorch Geometric, flash-attn and mmcv publish them, over real HTTP.

A page lists wheels of any project, one for each PyTorch, CUDA, Python and C++ ABI; only names and folders say for which.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.built_files import build_wheel, metadata_text
from tests.project import project_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.project import Project

SPEC = """\
name: trainer
target:
  host: {glibc: "2.39", driver: {version: 570.124.06, module: open}, gpus: [{name: NVIDIA H100 80GB HBM3}]}
requires: {python: "==3.11"}
packages: [PACKAGES]
indexes:
  - {name: pypi, url: "INDEX/simple"}
  - {name: pytorch, url: "INDEX/whl/{variant}"}
  - {name: pyg, kind: find-links, url: "INDEX/pyg/torch-2.5.0+cu124.html", packages: [torch-scatter, pyg-lib]}
  - {name: flash, kind: find-links, url: "INDEX/flash-attention/releases/expanded_assets/v2.7.4.post1", packages: [flash-attn]}
  - {name: mmcv, kind: find-links, url: "INDEX/mmcv/dist/cu121/torch2.4/index.html", packages: [mmcv]}
outputs: [requirements]
runs: host
"""
LINUX = "linux_x86_64"


def publish(
    project: Project, page: str, folder: str, wheels: list[tuple[str, str, str]], *, requires: tuple[str, ...] = ()
) -> None:
    """Serve a page of links to wheels (name, version, tag), which lie in a folder; no link has a hash."""
    lines = []
    for name, version, tag in wheels:
        filename, content = build_wheel(name, version, tag=tag, metadata=metadata_text(name, version, requires))
        path = f"{folder}/{filename}"
        project.index.serve(path, content, content_type="application/octet-stream")
        lines.append(f'<a href="{path.replace("+", "%2B")}">{filename}</a><br>')
    project.index.serve(page, f"<html><body>{''.join(lines)}</body></html>".encode())


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with project_in(tmp_path, capsys, monkeypatch) as made:
        for version in ("2.4.1", "2.5.1", "2.6.0", "2.7.1"):
            made.index.add_wheel("torch", version)
        for variant in ("cu121", "cu118"):
            made.index.add_wheel("torch", f"2.5.1+{variant}", index=f"whl/{variant}")
        made.index.add_wheel("torch", "2.4.1+cu118", index="whl/cu118")
        made.index.add_wheel("torch-scatter", "9.9")  # a source of the name on the index, which the page's entry leaves alone
        scatter = [
            ("torch_scatter", f"2.1.2+pt25{runtime}", f"{python}-{python}-{LINUX}")
            for runtime in ("cpu", "cu118", "cu121", "cu124")
            for python in ("cp310", "cp311", "cp312")
        ]
        publish(made, "/pyg/torch-2.5.0+cu124.html", "/pyg/torch-2.5.0+cu124", scatter)
        flash = [
            ("flash_attn", f"2.7.4.post1+cu12torch{torch}cxx11abi{abi}", f"{python}-{python}-{LINUX}")
            for torch in ("2.4", "2.5", "2.6")
            for abi in ("FALSE", "TRUE")
            for python in ("cp311", "cp312")
        ]
        release = "/flash-attention/releases"
        publish(made, f"{release}/expanded_assets/v2.7.4.post1", f"{release}/download/v2.7.4.post1", flash, requires=("torch",))
        mmcv = [("mmcv", "2.2.0", f"{python}-{python}-manylinux1_x86_64") for python in ("cp310", "cp311")]
        publish(made, "/mmcv/dist/cu121/torch2.4/index.html", "/mmcv/dist/cu121/torch2.4.0", mmcv)
        yield made


def locked(project: Project, packages: str, *, spec: str = SPEC) -> dict[str, str]:
    project.write(spec.replace("PACKAGES", packages))
    found = project.run("solve")
    assert found.code == 0, found.err
    lock = tomllib.loads(project.read("pylock.trainer.toml"))
    return {package["name"]: package["version"] for package in lock["packages"]}


def test_the_wheel_for_the_chosen_pytorch_and_its_cuda_is_taken(project: Project) -> None:
    assert locked(project, "torch, torch-scatter") == {"torch": "2.5.1", "torch-scatter": "2.1.2+pt25cu124"}
    text = project.read("pylock.trainer.toml")
    assert "INDEX/pyg/torch-2.5.0+cu124/torch_scatter-2.1.2+pt25cu124-cp311-cp311-linux_x86_64.whl" in text.replace("%2B", "+")
    assert project.index.requests["/simple/torch-scatter/"] == 0
    assert project.run("check").code == 0


def test_another_build_of_pytorch_takes_the_wheel_of_its_cuda(project: Project) -> None:
    found = locked(project, '"torch==2.5.1+cu118", torch-scatter')
    assert found == {"torch": "2.5.1+cu118", "torch-scatter": "2.1.2+pt25cu118"}


def test_every_file_of_a_page_without_hashes_is_hashed(project: Project) -> None:
    locked(project, "torch, torch-scatter")
    lock = tomllib.loads(project.read("pylock.trainer.toml"))
    hashes = [file["hashes"]["sha256"] for package in lock["packages"] for file in package["wheels"]]
    assert [len(one) for one in hashes] == [64, 64]


def test_flash_attn_is_of_the_pytorch_the_cuda_major_and_the_abi_of_the_stack(project: Project) -> None:
    assert locked(project, "torch==2.5.*, flash-attn") == {
        "torch": "2.5.1",
        "flash-attn": "2.7.4.post1+cu12torch2.5cxx11abifalse",
    }


def test_the_newest_pytorch_that_the_page_has_wheels_for_is_taken(project: Project) -> None:
    found = locked(project, "torch, flash-attn")
    assert found["torch"] == "2.6.0"
    assert found["flash-attn"].startswith("2.7.4.post1+cu12torch2.6")


def test_a_folder_says_what_the_name_of_a_wheel_does_not(project: Project) -> None:
    assert locked(project, "torch, mmcv") == {"torch": "2.4.1", "mmcv": "2.2.0"}


def test_a_pytorch_that_no_wheel_of_the_page_is_for_is_refused_with_the_reason(project: Project) -> None:
    project.write(SPEC.replace("PACKAGES", "torch==2.7.1, torch-scatter"))
    found = project.run("solve")
    assert found.code == 1
    assert "compiled for PyTorch 2.5 with" in found.err
    assert "as the name of the file says" in found.err


def test_a_wheel_by_url_is_held_to_its_name_too(project: Project) -> None:
    wheel = "flash_attn-2.7.4.post1+cu12torch2.5cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"
    url = f"{project.index.root}/flash-attention/releases/download/v2.7.4.post1/{wheel.replace('+', '%2B')}"
    project.write(SPEC.replace("PACKAGES", f'torch==2.5.1, "flash-attn @ {url}"'))
    found = project.run("solve")
    assert found.code == 1
    assert "is compiled for PyTorch 2.5 with CUDA 12 and the new C++ ABI, as the name of the file says" in found.err


def test_pages_stand_beside_the_configured_indexes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{project.index.root}/simple")
    lines = [line for line in SPEC.splitlines() if "name: pypi" not in line and "name: pytorch" not in line]
    found = locked(project, "torch==2.5.1, torch-scatter", spec="\n".join([*lines, ""]))
    assert found == {"torch": "2.5.1", "torch-scatter": "2.1.2+pt25cu124"}


def test_offline_reads_the_page_from_the_cache(project: Project) -> None:
    locked(project, "torch, torch-scatter")
    assert project.run("solve", "--offline").code == 0


def test_a_page_without_names_is_a_mistake_with_its_line(project: Project) -> None:
    project.write(SPEC.replace("PACKAGES", "torch").replace(", packages: [mmcv]", ""))
    found = project.run("solve")
    assert found.code == 2
    assert "say under `packages:` which distributions come from it" in found.err
