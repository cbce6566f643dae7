"""Same input, same words: an explanation does not depend on the interpreter's hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "old-driver" / "provision.yaml"
MIXED = """
name: mixed
target:
  host:
    gpus: [{name: NVIDIA V100, compute_capability: "7.0"}, {name: NVIDIA B200, compute_capability: "10.0"}]
requires: {pytorch: ">=2.0", python: "3.11"}
"""


def explained(spec: Path, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-m", "provisioner", "explain", str(spec), "--format", "json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1, done.stderr
    return done.stdout


@pytest.mark.parametrize("text", [EXAMPLE.read_text(encoding="utf-8"), MIXED], ids=["old-driver", "mixed"])
def test_an_explanation_is_the_same_under_every_hash_seed(text: str, tmp_path: Path) -> None:
    spec = tmp_path / "provision.yaml"
    spec.write_text(text.replace("../hosts", str(ROOT / "examples" / "hosts")), encoding="utf-8")
    assert len({explained(spec, seed) for seed in ("0", "1", "42", "12345")}) == 1
