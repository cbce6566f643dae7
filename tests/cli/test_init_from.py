"""`provision init --from FILE`: what people have today becomes a spec that solves, and what does not is told."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from provisioner.spec.load import load_spec
from tests.leaving import leave
from tests.unit.importers.test_samples import CASES, SAMPLES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, named as a project would be."""
    place = tmp_path / "trainer"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def test_what_was_not_carried_over_is_told_and_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "environment.yml").write_text("dependencies:\n  - pytorch=2.5\n  - ffmpeg\n  - pip: [numpy]\n")
    assert leave("init", "--from", "environment.yml", "--profile", "a100") == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    note = "environment.yml:3: `ffmpeg`: no Python package; what the program needs of it goes under `image: {apt: [...]}`"
    assert printed.err == (
        "not carried over: 1, listed at the end of `provision.yaml`, too\n"
        f"  {note}\n"
        "wrote `provision.yaml`, and `provision.schema.json` for editors; edit what it requires, then run `provision solve`\n"
    )
    text = (folder / "provision.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=provision.schema.json\n")
    assert text.endswith(f"\n# Not carried over:\n#   {note}\n")
    spec = load_spec(folder / "provision.yaml").spec
    assert (spec.name, spec.requires, spec.packages) == ("trainer", {"pytorch": "2.5.*"}, ("numpy",))


def test_the_page_of_files_of_a_pytorch_build_asks_for_that_build(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = "https://download.pytorch.org/whl/cu111/torch_stable.html"
    (folder / "Dockerfile").write_text(f"FROM python:3.9\nRUN pip install torch==1.10 torchvision==0.11.1 -f {page}\n")
    assert leave("init", "--from", "Dockerfile", "--profile", "a100") == 0
    assert page not in capsys.readouterr().err
    assert load_spec(folder / "provision.yaml").spec.requires["pytorch_build"] == "cu111"


def test_nothing_left_over_is_not_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "requirements.txt").write_text("numpy>=2\n")
    assert leave("init", "--from", "requirements.txt", "--profile", "a100", "--out", "specs/a.yaml") == 0
    assert "not carried over" not in capsys.readouterr().err
    assert load_spec(folder / "specs/a.yaml").spec.packages == ("numpy>=2",)
    assert '  - "../requirements.txt"\n' in (folder / "specs/a.yaml").read_text()


def test_a_file_that_cannot_be_read_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "Dockerfile").write_text("FROM python:3.12\nRUM pip install x\n")
    assert leave("init", "--from", "Dockerfile", "--profile", "a100") == 2
    assert capsys.readouterr().err == (
        "error: Dockerfile has 1 mistake  [invalid-document]\n  Dockerfile:2:1: `RUM` is no instruction of a Dockerfile\n"
    )
    assert [path.name for path in folder.iterdir()] == ["Dockerfile"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("environment.yml", "conda environment"), ("requirements.txt", "requirement file"), ("x.toml", "project file")],
)
def test_a_missing_file_is_named(name: str, kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "provision.yaml").write_text("requires: {}\n")
    assert leave("init", "--from", name, "--out", "other.yaml") == 2
    assert capsys.readouterr().err == f"error: {kind} `{name}` does not exist  [file]\n"


def test_a_file_under_the_name_of_the_schema_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "provision.schema.json").write_text("{}")
    assert leave("init", "--profile", "a100", "--force") == 2
    assert "`provision.schema.json` was not written by provision" in capsys.readouterr().err
    assert (folder / "provision.schema.json").read_text() == "{}"


def test_the_schema_beside_the_spec_is_that_of_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("init", "--profile", "a100") == 0
    assert leave("init", "--profile", "a100", "--force") == 0
    capsys.readouterr()
    assert leave("schema", "spec") == 0
    printed = capsys.readouterr().out
    assert printed == (folder / "provision.schema.json").read_text()
    assert json.loads(printed)["$id"] == "urn:provision:schema:spec"


def test_schemas_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("schema") == 0
    assert "matrix-component" in capsys.readouterr().out
    assert leave("schema", "spek") == 2
    assert "there is no schema `spek`  [bad-usage]\n\nhint: did you mean `spec`?" in capsys.readouterr().err


def test_the_same_files_give_the_same_bytes(folder: Path) -> None:
    shutil.copytree(SAMPLES / "dockerfile-cuda", folder, dirs_exist_ok=True)
    assert leave("init", "--from", "Dockerfile", "--profile", "a100") == 0
    first = (folder / "provision.yaml").read_bytes()
    assert leave("init", "--from", "Dockerfile", "--profile", "a100", "--force") == 0
    assert (folder / "provision.yaml").read_bytes() == first


ANSWERS = {
    "conda-pytorch-channel": (0, "2.1.0", "cu121"),
    "conda-forge": (1, None, None),  # conda-forge builds PyTorch 2.3 for CUDA 12.4, and PyTorch itself does not
    "cog": (0, "2.1.0", "cu118"),
    "dockerfile-cuda": (0, "2.5.1", "cu124"),
    "dockerfile-pytorch": (0, "2.3.0", "cu121"),
    "dockerfile-stages": (0, "2.6.0", "cu124"),
    "requirements-refused": (0, "2.5.1", "cu124"),
    "project-dynamic": (0, None, None),
    "project-poetry": (0, "2.4.1", "cu121"),  # of PyPI, which the spec lists before the index of PyTorch
    "project-tools": (0, "2.6.0", "cu124"),
    "together": (0, "2.7.1", "cu118"),
}
"""Samples with what solving the system half of their specs gives: the exit code, PyTorch and its build."""


@pytest.mark.parametrize("case", CASES)
def test_solving_can_be_the_next_command(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(SAMPLES / case, folder, dirs_exist_ok=True)
    sources = [word for name in CASES[case] for word in ("--from", name)]
    assert leave("init", *sources, "--profile", "a100") == 0
    capsys.readouterr()
    code = leave("solve", "--stack-only", "--dry-run", "--format", "json")
    answer = json.loads(capsys.readouterr().out)
    stack = answer.get("stack", {})
    assert (code, stack.get("pytorch"), stack.get("pytorch_build")) == ANSWERS[case]


def test_a_machine_without_the_gpu_that_a_file_asks_for_is_not_written_as_the_one_to_run_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where images are made there is often no GPU: with the facts of that machine, `accelerator: cuda` was a conflict."""
    from provisioner.host.inspect import inspect_host

    if inspect_host().host.gpus != ():
        pytest.skip("this machine has a GPU, or does not show its devices")
    (folder / "environment.yml").write_text("dependencies: [cudatoolkit=11.3, pytorch=1.11.0, python=3.9]\n")
    assert leave("init", "--from", "environment.yml") == 0
    assert capsys.readouterr().err.splitlines()[0] == (
        "warning: this machine has no GPU, and environment.yml:1 asks for cuda: "
        "state the machine that it must run on under `target.host`, or give --profile"
    )
    spec = load_spec(folder / "provision.yaml").spec
    assert (spec.accelerator, spec.target.host) == ("cuda", {"platform": "linux/amd64"})
    assert leave("solve", "--stack-only", "--dry-run") == 0
    (folder / "requirements.txt").write_text("torch\n")
    assert leave("init", "--from", "requirements.txt", "--force") == 0
    host = load_spec(folder / "provision.yaml").spec.target.host
    assert isinstance(host, dict)
    assert host["gpus"] == ()


def test_a_package_of_a_channel_of_its_own_is_not_taken_for_one_of_an_index(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bioconda's hmmer is a program; whoever has the name on a package index would have been installed."""
    (folder / "environment.yml").write_text(
        "dependencies: [python=3.9, 'bioconda::hmmer==3.3.2', 'pytorch::pytorch=1.12.*', 'conda-forge::pandas']\n"
    )
    assert leave("init", "--from", "environment.yml", "--profile", "a100") == 0
    told = capsys.readouterr().err.splitlines()[1]
    assert told.startswith(
        "  environment.yml:1: `bioconda::hmmer==3.3.2`: of the channel bioconda; `hmmer` of a package index may be"
    )
    spec = load_spec(folder / "provision.yaml").spec
    assert (spec.packages, set(spec.requires)) == (("pandas",), {"python", "pytorch"})
