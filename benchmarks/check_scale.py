"""How `provision check` grows with the environments of a repository: `python benchmarks/check_scale.py`.

Makes repositories of the reference environments under `dockerfiles/`, each with a name of its own, so that no two specs, locks
or rendered files are alike, and times the whole command in fresh processes; the matrix is decoded already.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from usage import Usage, measured

from provisioner.lock.format.file import lock_path, read_lock, write_lock
from provisioner.render import render

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "benchmarks" / "check"
CACHE = FOLDER / "cache"

Row = tuple[int, float, float, float]
"""Environments, wall and processor seconds, peak MiB."""


def main() -> None:
    """Write the repositories, time the command on each, and write the table."""
    options = _options()
    shutil.rmtree(FOLDER, ignore_errors=True)
    rows: list[Row] = []
    for size in options.sizes:
        repository = FOLDER / str(size)
        write_repository(repository, size)
        _run(repository)  # decodes the matrix
        runs = [_run(repository) for _ in range(options.rounds)]
        wall, processor, peak = (statistics.median(getattr(run, key) for run in runs) for key in ("wall", "processor", "peak"))
        rows.append((size, wall, processor, peak))
        sys.stdout.write(f"{size} environments: {wall:.2f} s, {processor:.2f} s of one processor, {peak:.0f} MiB\n")
    options.output.write_text("\n".join(_page(rows, options.rounds)) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 10, 50, 60], metavar="ENVIRONMENTS")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "check-scale.md", metavar="FILE")
    return parser.parse_args()


def write_repository(folder: Path, size: int) -> None:
    """Write so many environments, copies of the reference environments that differ in their names."""
    kinds = sorted(path for path in (ROOT / "dockerfiles").iterdir() if path.is_dir())
    for number in range(size):
        kind = kinds[number % len(kinds)]
        name = f"{kind.name}-{number:02d}"
        to = folder / "envs" / name
        shutil.copytree(kind, to)
        spec = to / "provision.yaml"
        spec.write_text(re.sub(r"(?m)^name: .*$", f"name: {name}", spec.read_text(encoding="utf-8")), encoding="utf-8")
        old = to / lock_path(kind.name)
        lock = replace(read_lock(old), name=name)
        old.unlink()
        (to / lock_path(name)).write_text(write_lock(lock), encoding="utf-8")
        (to / "Dockerfile").write_text(render(lock, "dockerfile", lock_file_name=lock_path(name)), encoding="utf-8")


def _run(repository: Path) -> Usage:
    command = [str(Path(sys.executable).parent / "provision"), "check", "--offline", str(repository)]
    environment = {**os.environ, "PROVISION_CACHE_DIR": str(CACHE)}
    found = measured(command, environment, limit=300, output=FOLDER / "out")
    assert found.code in {0, 1}, f"{' '.join(command)} exited with {found.code}: {found.output}"
    return found


def _page(rows: Sequence[Row], rounds: int) -> list[str]:
    return [
        "# How a check scales",
        "",
        "Written by `python benchmarks/check_scale.py`; not edited by hand. The whole command, `provision check --offline",
        "FOLDER`, with one load of the matrix, on two processors. The environments are those of `dockerfiles/`, each with a",
        f"name of its own. Medians of {rounds}; peak memory of its processes together. The matrix is decoded already, as by",
        "the wheel; every lock is solved with its components fixed, and rendered. Nothing is remembered between two runs",
        "([decision 205](decisions/205-a-check-decides-anew.md)).",
        "",
        "| environments | seconds | of one processor | peak MiB |",
        "| --: | --: | --: | --: |",
        *(f"| {size} | {wall:.2f} | {cpu:.2f} | {peak:.0f} |" for size, wall, cpu, peak in rows),
    ]


if __name__ == "__main__":
    main()
