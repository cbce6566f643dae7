"""`validate --engine apptainer` with a real Apptainer, which is in a container here: Debian 12 has none."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.cli.app import main
from provisioner.document import write_text
from provisioner.evidence.statement import read_evidence
from provisioner.lock.format.file import write_lock
from provisioner.render import render
from tests.cluster.conftest import slurm
from tests.container.conftest import push
from tests.container.siblings import RIGHTS, TOOLS

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.evidence.report import Report
    from provisioner.lock.format.model import Lock
    from provisioner.validate.docker_engine import DockerEngine
    from tests.container.image_locks import Wheelhouse

__all__ = ["slurm"]

pytestmark = pytest.mark.docker


@pytest.fixture
def apptainer(tools_image: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `apptainer` that starts the one of the image of tools, with the folder of the test at the same path."""
    rights = " ".join(RIGHTS)
    program = tmp_path / "bin/apptainer"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$1" >> {tmp_path}/called\nverb=$1; shift; how="--env APPTAINER_USERNS=1"\n'
        '[ "$verb" != build ] || { how=; set -- --fakeroot "$@"; }\n'
        f"exec docker run --rm {rights} --network host --env LC_ALL=C.UTF-8 $how --env APPTAINER_TMPDIR={tmp_path} "
        f'--env APPTAINER_NOHTTPS=1 --volume {tmp_path}:{tmp_path} --workdir "$PWD" {TOOLS} apptainer "$verb" "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return program


@pytest.fixture
def lock(engine: DockerEngine, wheelhouse: Wheelhouse, registry: str) -> Lock:
    """A lock of one small package on a base image of the loopback registry, on disk."""
    base = f"{registry}/provision-test/apptainer:1"
    digest = push(engine, wheelhouse.base_image, base)
    wheelhouse.add("demo", "1.2")
    return wheelhouse.lock(base=base, digest=digest)


def validated(folder: Path, *words: str) -> tuple[int, Report]:
    with pytest.raises(SystemExit) as stopped:
        main(("validate", str(folder / "pylock.trial.toml"), "--engine", "apptainer", *words))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, read_evidence(folder / "pylock.trial.linux-amd64.evidence.json").report


def test_the_definition_is_built_and_what_is_in_the_image_compared(
    apptainer: Path, lock: Lock, wheelhouse: Wheelhouse, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = wheelhouse.folder
    write_text(folder / "apptainer.def", render(lock, "apptainer", lock_file_name="pylock.trial.toml"))
    code, report = validated(folder, "--keep-image")
    assert (code, report.verdict) == (0, "yes"), capsys.readouterr()
    found = {field.name: (field.measured, field.verdict) for field in report.fields}
    assert found["recipe"] == ("as rendered", "yes")
    assert found["build"] == ("built", "yes")
    assert found["image platform"] == ("linux/amd64", "yes")
    assert found["label dev.provision.lock.digest"][1] == "yes"
    assert found["packages"] == ("1 as locked", "yes")
    assert (report.engine.name, report.image[:7]) == ("apptainer", "sha256:")
    assert report.engine.builder == f"apptainer build {report.engine.version}"

    # The image is there, and is that of this lock alone.
    built = next(line for line in capsys.readouterr().err.splitlines() if line.strip().startswith("built ")).split()[-1]
    code, again = validated(folder, "--image", built)
    assert (code, again.image) == (0, report.image)
    write_text(folder / "pylock.trial.toml", write_lock(replace(lock, asked={"requires.python": "3.11"})))
    code, other = validated(folder, "--image", built)
    (label,) = (field for field in other.fields if field.name.startswith("label"))
    assert (code, label.verdict) == (1, "no")


def test_an_installation_that_fails_is_a_no(apptainer: Path, lock: Lock, wheelhouse: Wheelhouse) -> None:
    folder = wheelhouse.folder
    next(folder.glob("wheels/demo-*.whl")).write_bytes(b"not a wheel")
    code, report = validated(folder)
    field = next(one for one in report.fields if one.name == "build")
    assert (code, field.verdict) == (1, "no")
    assert not list(folder.glob("provision-apptainer-*"))


def test_a_base_image_that_cannot_be_had_says_nothing_about_the_lock(
    apptainer: Path, lock: Lock, wheelhouse: Wheelhouse, registry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (stack,) = lock.stacks
    assert stack.image is not None
    gone = replace(stack.image, reference=f"{registry}/provision-test/gone:1", digest="")
    write_text(wheelhouse.lock_path, write_lock(replace(lock, stacks=(replace(stack, image=gone),))))
    with pytest.raises(SystemExit) as stopped:
        main(("validate", str(wheelhouse.lock_path), "--engine", "apptainer"))
    assert stopped.value.code == 3
    assert "error: Apptainer cannot build `provision-validate/trial:" in capsys.readouterr().err
    assert not list(wheelhouse.folder.glob("provision-apptainer-*"))


@pytest.mark.slurm
@pytest.mark.usefixtures("slurm")
def test_a_job_of_slurm_runs_the_image_on_its_node(
    apptainer: Path,
    lock: Lock,
    wheelhouse: Wheelhouse,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = wheelhouse.folder
    validated(folder, "--keep-image", "--level", "1")
    built = next(line for line in capsys.readouterr().err.splitlines() if line.strip().startswith("built ")).split()[-1]
    monkeypatch.chdir(folder)
    words = ("--engine", "slurm", "--image", built, "--node-class", "h100: constraint=sm_90")
    with pytest.raises(SystemExit) as stopped:
        main(("validate", str(wheelhouse.lock_path), *words))
    report = read_evidence(folder / "pylock.trial.linux-amd64.h100.evidence.json").report
    assert (stopped.value.code, report.verdict) == (0, "yes"), capsys.readouterr()
    assert {field.name: field.measured for field in report.fields}["packages"] == "1 as locked"
    assert (folder / "called").read_text().split().count("exec") == 1
