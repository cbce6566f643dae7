"""How long an explanation takes: `python benchmarks/explain_scenarios.py`.

Every scenario of tests/scenarios that ends in a conflict, and random requests over the shipped matrix (seeded, so that they are
the same each time), each decided and explained with hints in one process that has read the matrix. Writes docs/explain.md.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from provisioner.resolver.joint import NoStackError, solve_system  # noqa: E402 - the tests are no package that is installed
from provisioner.resolver.problem import UnknownGpuError, join  # noqa: E402
from tests.random_requests import requests  # noqa: E402
from tests.scenarios.test_scenarios import HERE, SCENARIOS, outcome, read, shipped  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.grounds.conflict import Conflict

DOCUMENT = ROOT / "docs" / "explain.md"
SEED = 20261121


def main() -> None:
    """Time both sets and write the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3, help="each is timed this often; the median counts")
    options.add_argument("--random", type=int, default=200, help="how many random conflicts")
    options.add_argument("--dry-run", action="store_true", help="print, and write nothing")
    given = options.parse_args()
    shipped()
    scenarios = list(_scenarios(given.rounds))
    chance = list(_random(given.random, given.rounds))
    text = _document(scenarios, chance)
    print(text)
    if not given.dry_run:
        DOCUMENT.write_text(text, encoding="utf-8")


Row = tuple[str, float, int, int]
"""What was explained, milliseconds, lines and hints."""


def _scenarios(rounds: int) -> Iterator[Row]:
    for path in SCENARIOS:
        scenario = read(path)
        if "conflict" not in scenario["expected"]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found, seconds = _timed(partial(outcome, scenario, Path(folder)), rounds)
        yield _row(str(path.relative_to(HERE).with_suffix("")), found, seconds)


def _random(count: int, rounds: int) -> Iterator[Row]:
    matrix = shipped()
    found = 0
    for number, request in enumerate(requests(matrix, seed=SEED, count=20 * count)):
        if found == count:
            return
        try:
            problem = join(matrix, request)
        except UnknownGpuError:
            continue

        def explain(problem: object = problem) -> object:
            try:
                return solve_system(problem)  # type: ignore[arg-type]
            except NoStackError as error:
                return error.conflict

        conflict, seconds = _timed(explain, 1)
        if not hasattr(conflict, "members"):
            continue
        if rounds > 1:
            conflict, seconds = _timed(explain, rounds)
        found += 1
        yield _row(f"random {number}: {dict(request.spec.requires)}", conflict, seconds)


def _timed(work: Callable[[], object], rounds: int) -> tuple[object, float]:
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        found = work()
        taken.append(time.process_time() - start)
    return found, statistics.median(taken)


def _row(name: str, conflict: object, seconds: float) -> Row:
    from provisioner.words.conflict import conflict_lines

    found: Conflict = conflict  # type: ignore[assignment]
    return name, 1000 * seconds, len(conflict_lines(found)), len(found.fixes)


def _document(scenarios: list[Row], chance: list[Row]) -> str:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = [
        "# How long an explanation takes",
        "",
        "Written by `python benchmarks/explain_scenarios.py`; not edited by hand. A conflict is decided, made minimal, put",
        "into words and given its hints, each of which is solved again, in one process that has read the matrix. The times are",
        "the processor's, so that they do not depend on what else the machine does.",
        "Scenarios with packages include the reads from an index on the same machine. The random requests are seeded.",
        "",
        "| what | conflicts | median, ms | 95 of 100, ms | worst, ms | most lines | without a hint |",
        "| --- | --: | --: | --: | --: | --: | --: |",
        _summary("scenarios", scenarios),
        _summary("random requests", chance),
        "",
        f"Peak memory of the process: {memory:.0f} MiB.",
        "",
        "| scenario | ms | lines | hints |",
        "| --- | --: | --: | --: |",
        *(f"| {name} | {taken:.0f} | {told} | {hints} |" for name, taken, told, hints in scenarios),
        "",
        "The five slowest random requests:",
        "",
        *(f"- {taken:.0f} ms: {name}" for name, taken, _, _ in sorted(chance, key=lambda row: -row[1])[:5]),
        "",
    ]
    return "\n".join(lines)


def _summary(name: str, rows: list[Row]) -> str:
    taken = sorted(row[1] for row in rows)
    high = taken[min(len(taken) - 1, int(0.95 * len(taken)))]
    most = max(row[2] for row in rows)
    none = sum(1 for row in rows if not row[3])
    return f"| {name} | {len(rows)} | {statistics.median(taken):.0f} | {high:.0f} | {taken[-1]:.0f} | {most} | {none} |"


if __name__ == "__main__":
    main()
