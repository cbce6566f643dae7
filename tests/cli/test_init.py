"""`provision init`: a spec that is valid as it stands, and never a file that was there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.host.profile import host_from_document, load_profile, profile_names
from provisioner.spec.load import load_spec
from tests.leaving import leave

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, named as a project would be."""
    place = tmp_path / "trainer"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize("name", profile_names())
def test_a_spec_for_a_profile_holds_that_machine(name: str, folder: Path) -> None:
    assert leave("init", "--profile", name) == 0
    loaded = load_spec(folder / "provision.yaml")
    spec, document = loaded.spec, loaded.document
    assert spec.name == "trainer"
    host = host_from_document(document.below(("target", "host")))
    assert host == load_profile(name).host
    assert spec.target.platform == host.platform


@pytest.mark.parametrize(
    ("name", "product", "platform"),
    [
        ("rtx5060ti", "NVIDIA GeForce RTX 5060 Ti", "linux/amd64"),
        ("RTX 4070 Ti", "NVIDIA GeForce RTX 4070 Ti", "linux/amd64"),
        ("v100-sxm2-16gb", "Tesla V100-SXM2-16GB", "linux/amd64"),
        ("GH200 480GB", "NVIDIA GH200 480GB", "linux/arm64"),
        ("jetson-nano", "Jetson Nano", "linux/arm64"),
        ("strix-halo", "AMD Radeon 8060S", "linux/amd64"),
    ],
)
def test_a_gpu_that_the_matrix_knows_is_a_profile(name: str, product: str, platform: str, folder: Path) -> None:
    assert leave("init", "--profile", name) == 0
    loaded = load_spec(folder / "provision.yaml")
    (gpu,) = host_from_document(loaded.document.below(("target", "host"))).gpus or ()
    assert (gpu.name, gpu.target is not None, loaded.spec.target.platform) == (product, True, platform)


def test_a_spec_for_this_machine_is_valid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("init", "--out", "specs/mine.yaml") == 0
    loaded = load_spec(folder / "specs/mine.yaml")
    spec, document = loaded.spec, loaded.document
    assert spec.name == "specs"
    assert host_from_document(document.below(("target", "host"))).platform == spec.target.platform
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith(
        "wrote `specs/mine.yaml`, and `specs/provision.schema.json` for editors; edit what it requires, then run "
        "`provision solve specs/mine.yaml`\n"
    )


def test_the_default_spec_needs_no_name_in_the_next_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("init", "--profile", "cpu") == 0
    assert capsys.readouterr().err == (
        "wrote `provision.yaml`, and `provision.schema.json` for editors; edit what it requires, then run `provision solve`\n"
    )


def test_a_file_that_is_there_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "provision.yaml").write_text("name: mine\n")
    assert leave("init", "--profile", "cpu") == 2
    assert (folder / "provision.yaml").read_text() == "name: mine\n"
    assert capsys.readouterr().err == (
        "error: `provision.yaml` already exists  [bad-usage]\n\nhint: --force overwrites it; --out FILE writes another\n"
    )


def test_force_overwrites(folder: Path) -> None:
    (folder / "provision.yaml").write_text("name: mine\n")
    assert leave("init", "--profile", "cpu", "--force") == 0
    assert load_spec(folder / "provision.yaml").spec.name == "trainer"


def test_a_link_to_nothing_is_not_written_through(folder: Path) -> None:
    (folder / "provision.yaml").symlink_to("elsewhere.yaml")
    assert leave("init", "--profile", "cpu") == 2
    assert not (folder / "elsewhere.yaml").exists()


def test_an_unknown_profile_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("init", "--profile", "h10") == 2
    assert list(folder.iterdir()) == []
    assert "error: there is no profile `h10`  [bad-usage]\n\nhint: did you mean `h100`?\n" in capsys.readouterr().err


def test_the_same_machine_gives_the_same_bytes(folder: Path) -> None:
    assert leave("init", "--profile", "h100") == 0
    first = (folder / "provision.yaml").read_bytes()
    assert leave("init", "--profile", "h100", "--force") == 0
    assert (folder / "provision.yaml").read_bytes() == first


def test_a_folder_as_the_file_is_refused(folder: Path) -> None:
    (folder / "specs").mkdir()
    assert leave("init", "--profile", "cpu", "--out", "specs") == 2
    assert leave("init", "--profile", "cpu", "--out", "specs", "--force") == 2
    assert (folder / "specs").is_dir()
