"""Validating an image goes through its entry point, and what that refuses is a no about the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.lock.format.file import write_lock
from provisioner.validate.engine import Built, Finished
from provisioner.validate.run import Options, validate_lock
from tests.lock_examples import cuda_stack, lock_of

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.evidence.report import Report
    from provisioner.validate.engine import BuildRequest, Image, Log, RunRequest

REFUSAL = "provision: this image cannot run on GPU 0: driver>=550: the driver is 535.104.05\n"


@dataclass
class Recorder:
    """An engine that builds nothing and answers every run alike."""

    finished: Finished
    name: str = "docker"
    version: str = "27.0"
    platform: str = "linux/amd64"
    recipe: str = "dockerfile"
    has_entry_points: bool = True
    node_class: str = ""
    commands: list[tuple[str, ...]] = field(default_factory=list)

    def build(self, request: BuildRequest, log: Log) -> Built:  # noqa: ARG002
        return Built(image="sha256:1", method="buildx")

    def inspect(self, image: str) -> Image | None:
        """The image is not looked at."""

    def find(self, reference: str, log: Log) -> Built:  # noqa: ARG002
        """Every image is there."""
        return Built(image=reference)

    def run(self, request: RunRequest, log: Log) -> Finished:  # noqa: ARG002
        self.commands.append(request.command)
        return self.finished

    def remove(self, tag: str) -> None:
        """Nothing was built."""


def validated(requirement: str, engine: Recorder, folder: Path) -> Report:
    """The report about a CUDA lock with this requirement, which is in a folder and knows its image and installer."""
    lock = lock_of(replace(cuda_stack(), require_cuda=requirement))
    path = folder / "pylock.trainer.toml"
    path.write_text(write_lock(lock), encoding="utf-8")
    return validate_lock(lock, path, engine=engine, options=Options(), log=lambda _: None)


@pytest.mark.parametrize(
    ("requirement", "start"),
    [
        ("driver>=550", ("/opt/venv/bin/python", "-I", "-S", "/opt/provision/guard.py", "python", "-c")),
        ("", ("python", "-c")),
    ],
)
def test_what_runs_is_given_to_the_entry_point_of_an_image_that_has_one(
    requirement: str, start: tuple[str, ...], tmp_path: Path
) -> None:
    engine = Recorder(Finished(exit_code=1, stdout="", stderr="boom\n"))
    validated(requirement, engine, tmp_path)
    assert engine.commands[0][: len(start)] == start


def test_a_refusal_is_a_no_about_the_host_with_the_clause(tmp_path: Path) -> None:
    engine = Recorder(Finished(exit_code=78, stdout="", stderr=f"{REFUSAL}provision: more\n"))
    report = validated("driver>=550", engine, tmp_path)
    found = report.fields[-1]
    assert (found.name, found.locked, found.measured, found.verdict) == ("host", "driver>=550", "refused", "no")
    assert found.note == "this image cannot run on GPU 0: driver>=550: the driver is 535.104.05"
    assert report.exit_code == 1


def test_a_program_that_ends_with_the_same_code_is_no_refusal(tmp_path: Path) -> None:
    engine = Recorder(Finished(exit_code=78, stdout="", stderr="configuration error\n"))
    found = validated("driver>=550", engine, tmp_path).fields[-1]
    assert (found.name, found.measured) == ("smoke test", "exit code 78")
