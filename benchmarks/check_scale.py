"""How `provision check` grows with the environments of a repository: `python benchmarks/check_scale.py`.

Makes repositories of environments that differ in machines, frameworks, pins, packages and outputs (`varied_environments.py`),
and times the whole command in fresh processes, on each processor there is and on one; the matrix is decoded already. The locks
are solved once, with the package indexes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from usage import Usage, measured
from varied_environments import DAY, environments, solved

from provisioner.processes import processors

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "benchmarks" / "check"
CACHE = FOLDER / "cache"
SOLVED = ROOT / "build" / "benchmarks" / "varied"

Row = tuple[int, Usage, Usage]
"""The number of environments; the medians on all processors, and on one."""


def main() -> None:
    """Write the repositories, time the command on each, and write the table."""
    options = _options()
    shutil.rmtree(FOLDER, ignore_errors=True)
    folders = solved(SOLVED)
    rows: list[Row] = []
    for size in options.sizes:
        repository = FOLDER / str(size)
        for folder in folders[:size]:
            shutil.copytree(folder, repository / "envs" / folder.name)
        _run(repository)  # decodes the matrix
        many, one = (_median([_run(repository, *on) for _ in range(options.rounds)]) for on in ((), ("taskset", "-c", "0")))
        rows.append((size, many, one))
        sys.stdout.write(f"{size} environments: {many.wall:.2f} s; on one processor {one.wall:.2f} s\n")
    options.output.write_text("\n".join(_page(rows, options.rounds)) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 10, 25, 50], metavar="ENVIRONMENTS")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "check-scale.md", metavar="FILE")
    return parser.parse_args()


def _run(repository: Path, *before: str) -> Usage:
    command = [*before, str(Path(sys.executable).parent / "provision"), "check", "--offline", str(repository)]
    # An installed program has its byte code: without it, compiling the program would take as long as ten locks.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PROVISION_CACHE_DIR": str(CACHE)}
    found = measured(command, environment, limit=300, output=FOLDER / "out")
    assert found.code == 0, f"{' '.join(command)} exited with {found.code}: {found.output}"
    return found


def _median(runs: Sequence[Usage]) -> Usage:
    wall, processor, peak = (statistics.median(getattr(run, key) for run in runs) for key in ("wall", "processor", "peak"))
    return Usage(wall=wall, processor=processor, peak=peak, code=0, output="")


def _page(rows: Sequence[Row], rounds: int) -> list[str]:
    return [
        "# How a check scales",
        "",
        "Written by `python benchmarks/check_scale.py`; not edited by hand. The whole command, `provision check --offline",
        f"FOLDER`, with one load of the matrix, on {processors()} processors and on one. No two of the {len(environments())}",
        "environments of `benchmarks/varied_environments.py` are alike: machines, frameworks, pins, packages, outputs differ.",
        f"The locks are those of {DAY}, of the public indexes. Medians of {rounds}; processor time is user and system",
        "together, memory that of all processes. The matrix is decoded already, as by the wheel; every lock is held against",
        "its spec, host and matrix anew, and rendered. Nothing is remembered between two runs",
        "([decision 205](decisions/205-a-check-decides-anew.md)).",
        "",
        "| environments | seconds | processor time | on one processor | processor time | peak MiB |",
        "| --: | --: | --: | --: | --: | --: |",
        *(
            f"| {size} | {many.wall:.2f} | {many.processor:.2f} | {one.wall:.2f} | {one.processor:.2f} | {many.peak:.0f} |"
            for size, many, one in rows
        ),
    ]


if __name__ == "__main__":
    main()
