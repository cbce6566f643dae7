"""Solve the problems of `hard_problems.yaml` with provision and uv, and write `docs/hard-problems.md`: `make bench-hard`.

Each tool solves each problem once with an empty cache, while the index on loopback counts what it sends, and then again from
the cache that is left, in turns, for the time and the memory. uv is told the Python, the platform and the framework's release
of provision's answer. Each conflict is checked by uv. What was found is kept in `build/hard/records`, so that a run that was
interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import statistics
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from answers import answered
from hard_page import page
from hard_problems import Host, Problem, Problems, bounds, load, spec, uv_words
from hard_records import Cost, Counted, Outcome, Record
from loopback_proxy import LoopbackIndex, Tally, load_snapshot, save_snapshot
from measure import TIMED_OUT
from programs import environment
from second_opinion import Opinion, opinion
from usage import Usage, measured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parent.parent
SCRATCH = ROOT / "build" / "hard"

LIMIT = 60.0
"""Seconds after which a run is ended."""

_FILLING_LIMIT = 150.0
"""Seconds for the first run of all, during which the index on loopback has to ask its upstream."""

_PORTS = (8931, 8932, 8933, 8934)
"""One for each problem that is counted at the same time; kept with it, for a tool's cache knows a page by its address."""

_ROUNDS = 2
_PATIENCE = 5.0
"""Seconds that the warm runs of one tool may take before no other is started."""

_STATUS = {0: "answer", 1: "no", 3: "out of reach", TIMED_OUT: "late"}


def main() -> None:
    """Read the command line, ask what was not asked yet, and write the page."""
    options = _options()
    found = load()
    chosen = [one for one in found.problems if not options.only or any(word in one.name for word in options.only)]
    if options.kept:
        chosen = []
    with ExitStack() as stack:
        indexes = [stack.enter_context(LoopbackIndex(options.index, port=port)) for port in _PORTS]
        memory = indexes[0].memory
        load_snapshot(memory, SCRATCH / "index.pickle")
        for index in indexes:
            index.memory.is_relay, index.memory.max_age = True, 24 * 3600
            index.memory.pages, index.memory.guards = memory.pages, memory.guards
        benches = {port: _Bench(index, found, options.provision) for port, index in zip(_PORTS, indexes, strict=True)}
        any_bench = benches[_PORTS[0]]
        waiting = deque(one for one in chosen if options.again or any_bench.kept(one) is None)
        try:
            with ThreadPoolExecutor(options.lanes) as pool:
                list(pool.map(lambda port: benches[port].count_all(waiting), _PORTS[: options.lanes]))
        finally:
            memory.misses = sum(index.memory.misses for index in indexes)
            save_snapshot(memory, SCRATCH / "index.pickle")
        for problem in chosen if options.uv else ():
            if (record := any_bench.kept(problem)) is not None and record.ours.status == "no":
                benches[record.port].count_uv(problem, record)
        for problem in () if options.counts else chosen:
            record = any_bench.kept(problem)
            if record is not None and (options.times or record.ours_warm is None):
                benches[record.port].time(problem, record)
    records = {problem.name: record for problem in found.problems if (record := any_bench.kept(problem)) is not None}
    if not options.only and not options.counts:
        options.output.write_text("\n".join(page(found, records, LIMIT)) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORD", help="problems whose name holds WORD; writes no page")
    parser.add_argument("--kept", action="store_true", help="ask nobody: write the page of what was measured")
    parser.add_argument("--counts", action="store_true", help="only what does not depend on the load of the machine; no page")
    parser.add_argument("--again", action="store_true", help="ask about the chosen problems although there are answers")
    parser.add_argument("--lanes", type=int, default=1, metavar="N", help=f"count N problems at a time, {len(_PORTS)} at most")
    parser.add_argument("--uv", action="store_true", help="ask uv anew about what provision refuses")
    parser.add_argument("--times", action="store_true", help="measure the warm runs anew")
    parser.add_argument("--index", default=os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple"), metavar="URL")
    parser.add_argument("--provision", default=str(Path(sys.executable).parent / "provision"), metavar="FILE")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "hard-problems.md", metavar="FILE")
    return parser.parse_args()


class _Bench:
    """The tools, the index they ask, and the records of what they said."""

    def __init__(self, index: LoopbackIndex, problems: Problems, provision: str) -> None:
        self._index, self._problems, self._provision = index, problems, provision

    def kept(self, problem: Problem) -> Record | None:
        """The record of a problem; None where there is none of the problem as it is now."""
        path = self._path(problem)
        record = msgspec.json.decode(path.read_bytes(), type=Record) if path.exists() else None
        return record if record is not None and record.digest == self._digest(problem) else None

    def count_all(self, waiting: deque[Problem]) -> None:
        """Count problems until none waits; other threads take from the same queue."""
        while True:
            try:
                problem = waiting.popleft()
            except IndexError:
                return
            self.count(problem)

    def count(self, problem: Problem) -> None:
        """Ask both tools with empty caches, count what the index sends, have conflicts checked, and keep the record."""
        folder = SCRATCH / "work" / problem.slug
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        host = self._problems.hosts[problem.host]
        (folder / "provision.yaml").write_text(spec(problem, host), encoding="utf-8")
        before = self._index.memory.misses
        usage, ours_counted = self._counted(lambda: self._run_provision(folder, limit=_FILLING_LIMIT))
        if usage.code != 0 and self._index.memory.misses > before:
            # Hints have a budget of time, which a slow upstream uses up.
            shutil.rmtree(folder / "cache-provision")
            usage, ours_counted = self._counted(lambda: self._run_provision(folder))
        ours, conflicts = _told(usage.code, usage.output)
        theirs, theirs_counted, theirs_cold = self._ask_uv(problem, ours)
        record = Record(
            digest=self._digest(problem),
            port=urlsplit(self._index.url).port or 0,
            ours=ours,
            theirs=theirs,
            ours_counted=ours_counted,
            theirs_counted=theirs_counted,
            ours_cold=_cost([usage]),
            theirs_cold=theirs_cold,
            opinions=self._opinions(problem, host, folder, conflicts),
        )
        self._keep(problem, record)

    def count_uv(self, problem: Problem, record: Record) -> None:
        """Ask uv alone anew, with an empty cache, about what provision said last."""
        folder = SCRATCH / "work" / problem.slug
        code = next((code for code, status in _STATUS.items() if status == record.ours.status), -1)
        ours, conflicts = _told(code, (folder / "provision.txt").read_text(encoding="utf-8"))
        theirs, counted, cost = self._ask_uv(problem, ours)
        opinions = self._opinions(problem, self._problems.hosts[problem.host], folder, conflicts)
        new = {"ours": ours, "theirs": theirs, "theirs_counted": counted, "theirs_cold": cost, "opinions": opinions}
        self._keep(problem, msgspec.structs.replace(record, **new))

    def _ask_uv(self, problem: Problem, ours: Outcome) -> tuple[Outcome, Counted, Cost]:
        folder = SCRATCH / "work" / problem.slug
        shutil.rmtree(folder / "cache-uv", ignore_errors=True)
        python = ours.python if ours.python in problem.pythons else problem.pythons[-1]
        usage, counted = self._counted(lambda: self._run_uv(problem, problem.packages, python, bounds(ours.packages)))
        theirs = Outcome(
            status=_STATUS.get(usage.code, "error"),
            packages=(answered(folder / "requirements.txt") or {}) if usage.code == 0 else {},
            python=python,
            words=_shortened(usage.output),
        )
        return theirs, counted, _cost([usage])

    def time(self, problem: Problem, record: Record) -> None:
        """Solve a problem from the caches that are warm, in turns, and keep the medians with the record."""
        folder = SCRATCH / "work" / problem.slug
        pins = bounds(record.ours.packages)
        ours: list[Usage] = []
        theirs: list[Usage] = []
        for _ in range(_ROUNDS):
            if sum(one.wall for one in ours) < _PATIENCE:
                ours.append(self._run_provision(folder))
            if sum(one.wall for one in theirs) < _PATIENCE:
                theirs.append(self._run_uv(problem, problem.packages, record.theirs.python, pins))
        said = {_STATUS.get(one.code, "error") for one in ours}
        if said != {record.ours.status}:
            sys.stderr.write(f"{problem.name}: {record.ours.status} with an empty cache, {said} with a warm one\n")
        new = msgspec.structs.replace(record, ours_warm=_cost(ours), theirs_warm=_cost(theirs))
        self._keep(problem, new)

    def _opinions(self, problem: Problem, host: Host, folder: Path, conflicts: Sequence[dict[str, Any]]) -> tuple[Opinion, ...]:
        known: dict[tuple[tuple[str, ...], str, tuple[str, ...]], bool] = {}

        def answers(packages: Sequence[str], python: str, wheels_only: Sequence[str]) -> bool:
            key = (tuple(packages), python, tuple(wheels_only))
            if key not in known:
                known[key] = self._run_uv(problem, packages, python, wheels=wheels_only).code == 0
            return known[key]

        def has_wheel(requirement: str, python: str) -> bool:
            return self._run_pip(folder, requirement, python).code == 0

        return tuple(opinion(conflict, problem, host, answers, has_wheel) for conflict in conflicts)

    def _counted(self, run: Callable[[], Usage]) -> tuple[Usage, Counted]:
        tally = self._index.memory.tally = Tally()
        usage = run()
        sent = tally.answers
        return usage, Counted(pages=sent["page"], metadata=sent["metadata"], files=sent["file"], size=tally.size)

    def _run_provision(self, folder: Path, limit: float = LIMIT) -> Usage:
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        command = [self._provision, "solve", str(folder / "provision.yaml"), "--out", str(out), "--format", "json"]
        cache = str(folder / "cache-provision")
        settings = environment(
            HOME=cache, XDG_CACHE_HOME=cache, PIP_CONFIG_FILE="/dev/null", PIP_INDEX_URL=self._index.url, NO_COLOR="1"
        )
        return measured(command, settings, limit=limit, output=folder / "provision.txt")

    def _run_pip(self, folder: Path, requirement: str, python: str) -> Usage:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", requirement]
        command += ["--only-binary", ":all:", "--python-version", python, "--target", str(folder / "pip")]
        cache = str(folder / "cache-pip")
        settings = environment(
            HOME=cache, PIP_CONFIG_FILE="/dev/null", PIP_INDEX_URL=self._index.url, PIP_DISABLE_PIP_VERSION_CHECK="1"
        )
        return measured(command, settings, limit=LIMIT, output=folder / "pip.txt")

    def _run_uv(
        self,
        problem: Problem,
        packages: Sequence[str],
        python: str,
        pins: Sequence[str] = (),
        *,
        wheels: Sequence[str] = (),
    ) -> Usage:
        folder = SCRATCH / "work" / problem.slug
        listed, bound, answer = folder / "requirements.in", folder / "constraints.txt", folder / "requirements.txt"
        listed.write_text("".join(f"{one}\n" for one in packages), encoding="utf-8")
        bound.write_text("".join(f"{one}\n" for one in pins), encoding="utf-8")
        answer.unlink(missing_ok=True)
        host = self._problems.hosts[problem.host]
        uv = str(Path(sys.executable).parent / "uv")
        command = uv_words(problem, host, python, uv=uv, interpreter=sys.executable)
        for name in wheels:
            command += ["--only-binary", name, "--prerelease-package", f"{name}=explicit"]
        command += [str(listed), "--constraint", str(bound), "--output-file", str(answer)]
        cache = str(folder / "cache-uv")
        settings = environment(
            HOME=cache, UV_CACHE_DIR=cache, UV_DEFAULT_INDEX=self._index.url, UV_PYTHON_DOWNLOADS="never", NO_COLOR="1"
        )
        return measured(command, settings, limit=LIMIT, output=folder / "uv.txt")

    def _digest(self, problem: Problem) -> str:
        text = spec(problem, self._problems.hosts[problem.host])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _path(self, problem: Problem) -> Path:
        return SCRATCH / "records" / f"{problem.slug}.json"

    def _keep(self, problem: Problem, record: Record) -> None:
        path = self._path(problem)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1))
        ours, theirs = record.ours_warm or record.ours_cold, record.theirs_warm or record.theirs_cold
        told = f"{problem.name}: {record.ours.status}, {record.theirs.status}; {ours.processor:.1f} s, {theirs.processor:.1f} s"
        told += f"; metadata {record.ours_counted.metadata}, {record.theirs_counted.metadata}"
        sys.stderr.write("; ".join([told, *(one.verdict for one in record.opinions)]) + "\n")


def _told(code: int, output: str) -> tuple[Outcome, list[dict[str, Any]]]:
    """Read provision's JSON, which stands among what it says to people; return its outcome and its conflicts."""
    words = _shortened(output)
    status = _STATUS.get(code, "error")
    begin = re.search(r"^\{", output, re.MULTILINE)
    if begin is None or code == TIMED_OUT:
        return Outcome(status=status, words=words), []
    told, _ = json.JSONDecoder().raw_decode(output[begin.start() :])
    if "conflict" in told:
        conflicts = told.get("conflicts", [told["conflict"]])
        pythons = [hint["gives"].get("python", "") for conflict in conflicts for hint in conflict["hints"]]
        return Outcome(status=status, words=words, python=next(filter(None, pythons), "")), conflicts
    if "stack" not in told:
        return Outcome(status=status, words=told.get("message", words)), []
    return Outcome(status="answer", packages=told.get("packages", {}), python=told["stack"]["python"], words=""), []


def _cost(runs: Sequence[Usage]) -> Cost:
    return Cost(
        wall=statistics.median(one.wall for one in runs),
        processor=statistics.median(one.processor for one in runs),
        peak=max(one.peak for one in runs),
    )


def _shortened(text: str) -> str:
    """The first lines of what a tool says in place of an answer, without this machine's paths."""
    return "\n".join(text.replace(str(SCRATCH), "").strip().splitlines()[:12])


if __name__ == "__main__":
    main()
