"""Evidence from a real build: written beside the lock, accepted by `check`, and refused after the lock has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from provisioner.evidence.statement import evidence_path, read_evidence
from provisioner.lock.format.file import lock_digest, read_lock
from tests.built_files import build_wheel
from tests.container.conftest import push

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from provisioner.validate.docker_engine import DockerEngine

pytestmark = pytest.mark.docker

LOCK = "pylock.trial.toml"
SPEC = """\
name: trial
target: {{platform: linux/amd64}}
accelerator: cpu
requires: {{python: "3.11"}}
packages: [demo]
image: {{base: "{base}", distribution: "debian:12", python: "3.11"}}
"""


@pytest.fixture
def run(tmp_path: Path, installer: Path, base_image: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The program in a folder with a lock over wheels beside it, which was solved without any network."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    shutil.copyfile(installer, wheels / installer.name)
    for version in ("1.2", "1.3"):
        name, content = build_wheel("demo", version)
        (wheels / name).write_bytes(content)
    (tmp_path / "provision.yaml").write_text(SPEC.format(base=base_image), encoding="utf-8")
    alone = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "provisioner", *words]
        return subprocess.run(command, env=alone, cwd=tmp_path, capture_output=True, text=True, check=False)

    solved = run("solve")
    assert solved.returncode == 0, solved.stderr
    return run


def test_a_lock_that_was_validated_passes_until_it_changes(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    missing = run("check", "--require-evidence", "2")
    assert (missing.returncode, "[missing-evidence]" in missing.stdout) == (3, True), missing.stdout
    validated = run("validate", LOCK, "--build-network", "none", "--junit", "junit.xml", "--html", "validation.html")
    assert validated.returncode == 0, validated.stdout + validated.stderr
    evidence = evidence_path(tmp_path / LOCK, "linux/amd64")
    report = read_evidence(evidence).report
    assert report.image.startswith("sha256:")
    assert report.host.kernel
    statement = json.loads(evidence.read_text(encoding="utf-8"))
    assert statement["predicate"]["result"] == "PASSED"
    assert statement["subject"][1] == {"name": "image", "digest": {"sha256": report.image.removeprefix("sha256:")}}
    assert [one["name"] for one in statement["predicate"]["configuration"]] == ["Dockerfile", "matrix"]
    assert 'failures="0"' in (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert "level 3: yes" in (tmp_path / "validation.html").read_text(encoding="utf-8")
    for level in ("2", "3"):
        accepted = run("check", "--require-evidence", level)
        assert accepted.returncode == 0, accepted.stdout
        assert "yes: validated up to level 3 (imports) on linux/amd64 with docker" in accepted.stdout
    assert run("check", "--require-evidence", "4").returncode == 3
    (tmp_path / "provision.yaml").write_text(
        (tmp_path / "provision.yaml").read_text(encoding="utf-8").replace("[demo]", "[demo<1.3]"), encoding="utf-8"
    )
    assert run("solve").returncode == 0
    refused = run("check", "--require-evidence", "2")
    assert (refused.returncode, "[stale-evidence]" in refused.stdout) == (3, True), refused.stdout
    assert run("check").returncode == 0, "the lock itself is a solution of its spec"


def test_the_evidence_of_a_pushed_image_has_its_digest_and_the_label_names_the_lock(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, engine: DockerEngine, registry: str
) -> None:
    assert run("validate", LOCK, "--level", "1", "--build-network", "none", "--keep-image").returncode == 0
    lock = read_lock(tmp_path / LOCK)
    evidence = evidence_path(tmp_path / LOCK, "linux/amd64")
    own = read_evidence(evidence).report.image
    pushed = f"{registry}/provision-evidence/trial:1"
    digest = push(engine, own, pushed)
    try:
        found = run("validate", LOCK, "--image", pushed)
        assert found.returncode == 0, found.stdout + found.stderr
        report = read_evidence(evidence).report
        assert report.image_digests == (f"{registry}/provision-evidence/trial@{digest}",)
        image = engine.inspect(pushed)
        assert image is not None
        assert image.labels["dev.provision.lock.digest"] == report.lock_digest == lock_digest(lock)
        assert run("check", "--require-evidence", "2").returncode == 0
    finally:
        engine.remove(own)
