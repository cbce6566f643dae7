"""Same input, same words: an explanation does not depend on the interpreter's hash seed."""

from __future__ import annotations

import json
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
EVERY_SCENARIO = """
import json, tempfile
from pathlib import Path
from provisioner.cli.report import no_stack
from provisioner.cli.stack_words import stack_rows
from provisioner.words.conflict import fix_line, refusal_lines
from provisioner.resolver.joint import UnlistedReleaseError
from provisioner.resolver.why import why
from provisioner.resolver.problem import join
from tests.scenarios.test_scenarios import HERE, SCENARIOS, outcome, read, shipped, request

said = {}
for path in SCENARIOS:
    scenario = read(path)
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = outcome(scenario, Path(folder))
    except UnlistedReleaseError as error:
        said[str(path.relative_to(HERE))] = [error.message, *error.causes, *error.hints]
        continue
    if isinstance(found, tuple):
        hints = (fix_line(hint) for conflict in found for hint in conflict.fixes)
        lines = [*refusal_lines(found), *hints, json.dumps(no_stack(found))]
    else:
        lines = [str(row) for row in stack_rows(found)]
        if "index" not in scenario:
            lines.append(repr(why(join(shipped(), request(scenario)), "python" if "python" in found.components else "cuda")))
    said[str(path.relative_to(HERE))] = lines
print(json.dumps(said))
"""


def explained(spec: Path, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-m", "provisioner", "explain", str(spec), "--format", "json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("text", [EXAMPLE.read_text(encoding="utf-8"), MIXED], ids=["old-driver", "mixed"])
def test_an_explanation_is_the_same_under_every_hash_seed(text: str, tmp_path: Path) -> None:
    spec = tmp_path / "provision.yaml"
    spec.write_text(text.replace("../hosts", str(ROOT / "examples" / "hosts")), encoding="utf-8")
    assert len({explained(spec, seed) for seed in ("0", "1", "42", "12345")}) == 1


def every_scenario(seed: str) -> dict[str, list[str]]:
    """What every scenario is told as, by a process of its own with this hash seed."""
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", EVERY_SCENARIO], env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.property
def test_every_scenario_is_explained_alike_under_every_hash_seed() -> None:
    first, *others = [every_scenario(seed) for seed in ("1", "12345")]
    assert len(first) > 60
    for other in others:
        assert other.keys() == first.keys()
        for name, lines in first.items():
            assert other[name] == lines, name
