"""How the cost of loading grows with the rows of a matrix: `python benchmarks/matrix_scale.py`.

Makes copies of the shipped matrix with 10 and 100 times its rows and times, in fresh processes, what a command does with it.
The added rows are real work: releases older than every real one, products and images of other names, and rules under other
names that hold whenever the real ones do, so that the answer stays the same and every search has more to look at.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "benchmarks" / "matrix"

LOAD = """\
import sys, time
from pathlib import Path
from provisioner.matrix.cache import cached_matrix
start = time.perf_counter()
cached_matrix(Path(sys.argv[1]))
print(time.perf_counter() - start)
"""

COUNT = """\
import sys
from pathlib import Path
from provisioner.matrix.cache import cached_matrix
from provisioner.matrix.lint import count
print(count(cached_matrix(Path(sys.argv[1]))).rows)
"""


def main() -> None:
    """Build the copies, time them, and write the table."""
    options = _options()
    shutil.rmtree(FOLDER, ignore_errors=True)
    rows = []
    for factor in options.factors:
        directory = _multiplied(factor)
        cold = _load_seconds(directory)
        warm = [_load_seconds(directory) for _ in range(options.rounds)]
        solve = [_solve(directory) for _ in range(options.rounds)]
        wall, memory = (statistics.median(column) for column in zip(*solve, strict=True))
        count = int(subprocess.run([sys.executable, "-c", COUNT, str(directory)], capture_output=True, check=True).stdout)
        size = sum(path.stat().st_size for path in directory.rglob("*.yaml")) / 1e6
        rows.append((f"{factor}x", count, size, cold, 1000 * statistics.median(warm), 1000 * wall, memory))
        sys.stdout.write(f"{rows[-1]}\n")
    options.output.write_text("\n".join(_page(rows)) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factors", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "matrix-scale.md", metavar="FILE")
    return parser.parse_args()


def _multiplied(factor: int) -> Path:
    """A copy of the shipped matrix with `factor` times its rows; JSON is YAML, and quicker to write."""
    target = FOLDER / f"x{factor}"
    for path in sorted((ROOT / "matrices").rglob("*.yaml")):
        if path.parent.name == "published":
            continue
        content = YAML(typ="safe", pure=False).load(path.read_text(encoding="utf-8")) or {}
        copies = range(1, factor)
        for key, values in content.items():
            if isinstance(values, list) and key in _RENAMED and path.name != "gpu.yaml":
                content[key] = [*values, *(_copy(key, row, number) for number in copies for row in values)]
        place = target / path.relative_to(ROOT / "matrices")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join(_lines(content)) + "\n", encoding="utf-8")
    return target


_RENAMED = {"releases": "version", "gpus": "name", "images": "reference", "rules": "name"}
"""Lists of rows, with the key that tells rows apart."""


def _copy(key: str, row: dict[str, Any], number: int) -> dict[str, Any]:
    """A row of another name; a copied release is older than every real one (named ones just differ)."""
    name = str(row[_RENAMED[key]])
    other = f"0.0.{number}.{name}" if key == "releases" and name[:1].isdigit() else f"{name} copy {number}"
    return {**row, _RENAMED[key]: other}


def _lines(content: dict[str, Any]) -> list[str]:
    lines = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"{key}:", *(f"  - {json.dumps(row, default=str)}" for row in value)]
        else:
            lines.append(f"{key}: {json.dumps(value, default=str)}")
    return lines


def _load_seconds(directory: Path) -> float:
    result = subprocess.run([sys.executable, "-c", LOAD, str(directory)], capture_output=True, text=True, check=True)
    return float(result.stdout)


def _solve(directory: Path) -> tuple[float, float]:
    """Wall seconds and peak MiB of a whole `solve --stack-only`."""
    command = [str(Path(sys.executable).parent / "provision"), "solve", str(ROOT / "examples/trainer/provision.yaml")]
    command += ["--stack-only", "--dry-run", "--matrix", str(directory)]
    measure = [sys.executable, "-I", "-S", str(ROOT / "benchmarks/measure.py"), "/dev/null", *command]
    wall, _, peak, code = subprocess.run(measure, capture_output=True, text=True, check=True).stdout.split()
    assert code == "0", f"{' '.join(command)} exited with {code}"
    return float(wall), float(peak)


def _page(rows: list[tuple[str, int, float, float, float, float, float]]) -> list[str]:
    return [
        "# How the matrix scales",
        "",
        "Written by `python benchmarks/matrix_scale.py`; not edited by hand. Copies of the shipped matrix with more rows:",
        "older releases, other products and images, more rules. *First load* reads the YAML and checks all of it; it happens",
        "once for each change of a matrix. *Warm load* is what every later command pays, in a fresh process: finding that no",
        "file changed, and reading the decoded copy.",
        "*solve* is a whole process, `provision solve --stack-only`, warm. Medians; peak memory of the process.",
        "",
        "| rows | | YAML, MB | first load, s | warm load, ms | solve, ms | solve, peak MiB |",
        "| --: | --: | --: | --: | --: | --: | --: |",
        *(
            f"| {name} | {count:,} | {size:.1f} | {cold:.1f} | {warm:.0f} | {wall:.0f} | {memory:.0f} |"
            for name, count, size, cold, warm, wall, memory in rows
        ),
    ]


if __name__ == "__main__":
    main()
