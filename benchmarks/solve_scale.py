"""How the cost of an answer grows: `python benchmarks/solve_scale.py`.

Grows one thing at a time, in memory and each in a fresh process: the releases of every component, the rules, the GPU
products of the matrix, the kinds of GPU in one host, and the hosts of one request. Each size is asked a request that has an
answer and one that has none, whose conflict and hints are worked out. Then every scenario of tests/scenarios is answered.

Added releases are older than every real one and added rules hold whenever the real ones do, so that the answer stays the
same and every search has more to look at. Every process has read the matrix before the clock starts; what reading costs is
in docs/matrix-scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import convert
from msgspec.json import decode
from msgspec.structs import replace

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from provisioner.host.model import Host  # noqa: E402 - the tests below are no package that is installed
from provisioner.matrix.cache import cached_matrix  # noqa: E402
from provisioner.request import Request, TargetHost  # noqa: E402
from provisioner.resolver.joint import NoStackError, solve_system  # noqa: E402
from provisioner.resolver.problem import join  # noqa: E402
from provisioner.spec.model import Spec  # noqa: E402
from provisioner.versions import Version  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.grounds.conflict import Conflict
    from provisioner.matrix.model import Component, Matrix, Release
    from provisioner.resolver.stack import Stack

AXES: dict[str, tuple[int, ...]] = {
    "releases": (1, 10, 100),
    "rules": (1, 10, 100),
    "products": (1, 10, 100),
    "kinds": (1, 3, 8),
    "hosts": (1, 10, 100, 1000),
}
QUESTIONS = ("answer", "conflict")
WORDS = {
    "releases": "releases of every component, times",
    "rules": "rules of the matrix, times",
    "products": "GPU products of the matrix, times",
    "kinds": "kinds of GPU in one host",
    "hosts": "hosts that one stack must run on, all different",
}
DRIVERS = (
    "550.54.15",
    "550.90.07",
    "550.127.05",
    "560.35.03",
    "565.57.01",
    "570.86.15",
    "570.124.06",
    "575.57.08",
    "580.65.06",
)
CAPABILITIES = ("8.0", "9.0", "8.6", "8.9", "7.5", "7.0", "6.1", "6.0")
ENOUGH_SECONDS = 20
"""What takes longer is not repeated."""

OLD_DRIVER = "470.256.02"


def main() -> None:
    """Measure every axis and every scenario, and write the page."""
    options = _options()
    if options.worker:
        axis, size, question = options.worker
        print(json.dumps(_measure(axis, int(size), question, rounds=options.rounds)))
        return
    _in_fresh_process(options, "hosts", 1, "answer")  # a matrix that changed is read and cached before anything is measured
    rows = [
        {"axis": axis, "size": size, "question": question, **_in_fresh_process(options, axis, size, question)}
        for axis in options.axes
        for size in AXES[axis]
        for question in QUESTIONS
    ]
    text = "\n".join(_page(rows, _scenarios(options.rounds))) + "\n"
    print(text)
    if not options.dry_run:
        options.output.write_text(text, encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axes", nargs="+", choices=AXES, default=list(AXES))
    parser.add_argument(
        "--rounds", type=int, default=5, help="each size is answered this often in its process; the median counts"
    )
    parser.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="a size that takes longer is told so")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "solve-scale.md", metavar="FILE")
    parser.add_argument("--dry-run", action="store_true", help="print the page, and write nothing")
    parser.add_argument("--worker", nargs=3, metavar=("AXIS", "SIZE", "QUESTION"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_fresh_process(options: argparse.Namespace, axis: str, size: int, question: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--rounds", str(options.rounds), "--worker", axis, str(size), question]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        found: dict[str, Any] = {"limit": options.limit}
    else:
        found = json.loads(done.stdout)
    sys.stderr.write(f"{axis} {size} {question}: {found}\n")
    return found


def _measure(axis: str, size: int, question: str, *, rounds: int) -> dict[str, Any]:
    """Seconds of processor time of the first answer and of later ones, their wall time, and memory before and after."""
    matrix, request = _problem(axis, size, question)
    _touch(matrix)
    before = _peak()
    spent: list[tuple[float, float]] = []
    found: list[Stack | Conflict] = []
    while len(spent) < rounds and sum(wall for _, wall in spent) < ENOUGH_SECONDS:
        spent.append(_seconds(lambda: found.append(answer(matrix, request))))
    later = spent[1:] or spent
    assert _is_conflict(found[-1]) == (question == "conflict"), f"{axis} {size}: not the outcome this size is to measure"
    return {
        "first": spent[0][0],
        "median": statistics.median(one for one, _ in later),
        "fastest": min(one for one, _ in later),
        "wall": min(wall for _, wall in later),
        "before": before,
        "peak": _peak(),
        "outcome": "conflict" if _is_conflict(found[-1]) else "stack",
        "hints": len(getattr(found[-1], "hints", ())),
    }


def answer(matrix: Matrix, request: Request) -> Stack | Conflict:
    """The work of `solve --stack-only` after reading: join, search, and where there is no stack the conflict and its hints."""
    try:
        return solve_system(join(matrix, request))
    except NoStackError as error:
        return error.conflict


def _is_conflict(found: Stack | Conflict) -> bool:
    return not hasattr(found, "components")


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    start, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - start, time.perf_counter() - wall


def _peak() -> float:
    """The largest resident memory so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def _touch(matrix: Matrix) -> None:
    """Have every row decoded, so that the clock does not count reading."""
    for component in matrix.components.values():
        len(component.releases)
    len(matrix.rules), len(matrix.gpus), len(matrix.branches), len(matrix.images)


def _problem(axis: str, size: int, question: str) -> tuple[Matrix, Request]:
    matrix = cached_matrix(None)
    if axis == "releases":
        matrix = replace(matrix, components={name: _older(one, size) for name, one in matrix.components.items()})
    elif axis == "rules":
        copies = [replace(rule, name=f"{rule.name} {number}") for number in range(1, size) for rule in matrix.rules]
        matrix = replace(matrix, rules=(*matrix.rules, *copies))
    elif axis == "products":
        others = [replace(gpu, name=f"{gpu.name} {number}") for number in range(1, size) for gpu in matrix.gpus]
        matrix = replace(matrix, gpus=(*matrix.gpus, *others))
    hosts = _hosts(size if axis == "hosts" else 1, size if axis == "kinds" else 1, is_old=question == "conflict")
    wanted = {"pytorch": ">=2.8" if question == "conflict" else ">=2.4", "python": "3.11"}
    spec = convert({"requires": wanted, "policy": {"allow": ("minor-version",)}}, Spec)
    return matrix, Request(spec=spec, hosts=tuple(hosts), platform="linux/amd64")


def _older(component: Component, factor: int) -> Component:
    """A component with more releases, all older than those it has; names and compute capabilities have no age."""
    if component.is_named or component.name == "gpu":
        return component
    copies = [_renumbered(release, number) for number in range(1, factor) for release in component.releases]
    return replace(component, releases=(*component.releases, *copies))


def _renumbered(release: Release, number: int) -> Release:
    return replace(release, version=Version.parse(f"0.0.{number}.{release.version.text}"))


def _hosts(count: int, kinds: int, *, is_old: bool) -> Iterator[TargetHost]:
    """Hosts of which no two are alike; where no answer is wanted, the last one has a driver that runs no CUDA 12."""
    for number in range(count):
        driver = OLD_DRIVER if is_old and number == count - 1 else DRIVERS[number % len(DRIVERS)]
        gpus = CAPABILITIES[number % 5 : number % 5 + 1] if kinds == 1 else CAPABILITIES[:kinds]
        facts = {
            "platform": "linux/amd64",
            "os": {"id": "ubuntu", "version": "22.04"},
            "kernel": f"5.15.0-{100 + number}-generic",
            "glibc": "2.35",
            "driver": {"version": driver, "module": "proprietary"},
            "gpus": [{"compute_capability": one, "count": 1} for one in gpus],
            "container_toolkit": "1.17.4",
        }
        yield TargetHost(label=f"host {number + 1}", host=decode(json.dumps(facts), type=Host))


def _scenarios(rounds: int) -> list[tuple[str, str, float]]:
    """Every scenario: its name, what came of it, and the processor seconds of the fastest answer but the first."""
    from tests.scenarios.test_scenarios import HERE, SCENARIOS, outcome, read, shipped

    _touch(shipped())
    found = []
    for path in SCENARIOS:
        scenario = read(path)
        with tempfile.TemporaryDirectory() as folder:

            def work(scenario: dict[str, Any] = scenario, folder: str = folder) -> None:
                outcome(scenario, Path(folder))

            work()
            seconds = min(_seconds(work)[0] for _ in range(rounds))
        kind = "conflict" if "conflict" in scenario["expected"] else "stack"
        found.append((str(path.relative_to(HERE).with_suffix("")), kind, seconds))
    return found


def _page(rows: list[dict[str, Any]], scenarios: list[tuple[str, str, float]]) -> list[str]:
    return [
        "# How solving scales",
        "",
        "Written by `python benchmarks/solve_scale.py`; not edited by hand.",
        f"{os.cpu_count()} processors, {platform.system()} {platform.machine()}, Python {platform.python_version()}.",
        "",
        "One thing grows, the rest is the shipped matrix and one host. Each line is a process of its own that has read the",
        "matrix: *first* is its first answer, *later* the median of those that follow, in milliseconds of processor time;",
        "*ratio* is *later* as a multiple of the smallest size. *Peak* is the largest resident memory of the process, *added*",
        "what came after the matrix was read. An *answer* is a stack; a *conflict* is proved, made minimal and given hints",
        "that were solved again. Ratios say how the cost grows; the milliseconds are those of one machine.",
        *(line for axis in dict.fromkeys(row["axis"] for row in rows) for line in _table(axis, rows)),
        *(_scenario_table(scenarios) if scenarios else ()),
    ]


def _table(axis: str, rows: list[dict[str, Any]]) -> Iterator[str]:
    yield from ("", f"## {WORDS[axis][0].upper()}{WORDS[axis][1:]}", "")
    yield "| size | question | first, ms | later, ms | ratio | peak, MiB | added, MiB | hints |"
    yield "| --: | --- | --: | --: | --: | --: | --: | --: |"
    for row in (one for one in rows if one["axis"] == axis):
        if "limit" in row:
            yield f"| {row['size']:,} | {row['question']} | not within {row['limit']} s | | | | | |"
            continue
        smallest = next(one for one in rows if one["axis"] == axis and one["question"] == row["question"])
        ratio = f"{row['median'] / smallest['median']:.1f}" if "median" in smallest else ""
        figures = f"{1000 * row['first']:.0f} | {1000 * row['median']:.0f} | {ratio} | {row['peak']:.0f}"
        hints = row["hints"] if row["outcome"] == "conflict" else ""
        yield f"| {row['size']:,} | {row['question']} | {figures} | {row['peak'] - row['before']:.0f} | {hints} |"


def _scenario_table(scenarios: list[tuple[str, str, float]]) -> Iterator[str]:
    yield from ("", "## The scenarios of the tests", "")
    yield "Each answered again in one process that has answered it before, milliseconds of processor time, packages included."
    yield from ("", "| outcome | scenarios | median, ms | worst, ms | the worst is |", "| --- | --: | --: | --: | --- |")
    for kind in ("stack", "conflict"):
        times = [(1000 * seconds, name) for name, outcome, seconds in scenarios if outcome == kind]
        worst, name = max(times)
        yield f"| {kind} | {len(times)} | {statistics.median(time for time, _ in times):.0f} | {worst:.0f} | {name} |"


if __name__ == "__main__":
    main()
