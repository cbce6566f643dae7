"""Compare whole processes side by side and write the figures to a table: `python benchmarks/run.py`.

Every contest runs its commands in one go, in an order that rotates from round to round, so that a machine that slows down
slows all of them down. A run during which the index on loopback had to ask its upstream is not counted.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from answers import answered
from contest import Contest, contests
from loopback_proxy import LoopbackIndex, load_snapshot, save_snapshot
from measure import TIMED_OUT
from programs import REQUIREMENTS, Programs, install, install_own
from usage import measured

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contenders import Contender

ROOT = Path(__file__).parent.parent

_UNCOUNTED = 2
"""Runs of a contender that may go uncounted, before they are taken as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run: wall and processor seconds, peak memory in MiB, exit code, the versions it answered and its last words.

    `is_earlier` is set where it stands for runs that were not made, for one of an earlier contest took too long.
    """

    wall: float
    processor: float
    peak: float
    code: int
    answer: dict[str, str] | None
    words: str
    is_earlier: bool = False


def main() -> None:
    """Read the command line, measure, and write the table."""
    options = _options()
    begun = perf_counter()
    scratch = ROOT / "build" / "benchmarks"
    tools = scratch / "tools"
    own = options.provision or install_own(tools / "provision", ROOT)
    programs = Programs(python=sys.executable, provision=own, home=tools, scratch=scratch / "scratch")
    install(programs)
    shutil.rmtree(programs.scratch, ignore_errors=True)
    sections = []
    late: dict[tuple[str, str], Sample] = {}
    with LoopbackIndex(options.index) as index:
        load_snapshot(index.memory, scratch / "index.pickle")
        for contest in contests(programs, index.url, options.index):
            if options.only and not any(word in contest.name for word in options.only):
                continue
            run = _Run(contest, programs, index)
            samples = run.samples(options.runs or contest.rounds, late)
            late |= {(contest.subject, name): runs[-1] for name, runs in samples.items() if runs and runs[-1].code == TIMED_OUT}
            section = "\n".join(_section(contest, samples))
            sys.stdout.write(f"{section}\n\n")
            sys.stdout.flush()
            sections.append(section)
            save_snapshot(index.memory, scratch / "index.pickle")
    sys.stderr.write(f"{perf_counter() - begun:.0f} s\n")
    if not options.only:
        options.output.write_text("\n\n".join([_head(programs), *sections]) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORD", help="contests whose name holds WORD; writes no file")
    parser.add_argument("--runs", type=int, metavar="N", help="most runs of a contender; default: each contest its own number")
    parser.add_argument("--index", default=os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple"), metavar="URL")
    parser.add_argument(
        "--provision", metavar="FILE", help="measure this one; default: a wheel of this tree, built and installed"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks.md", metavar="FILE")
    return parser.parse_args()


class _Run:
    """The runs of one contest."""

    def __init__(self, contest: Contest, programs: Programs, index: LoopbackIndex) -> None:
        self._contest, self._programs, self._index = contest, programs, index
        self._spent: dict[str, float] = defaultdict(float)
        self._uncounted: dict[str, int] = defaultdict(int)

    def samples(self, rounds: int, late: Mapping[tuple[str, str], Sample]) -> dict[str, list[Sample]]:
        """Round after round, each contender until it has its rounds, its time is over, or it failed.

        `late` are the runs of earlier contests, by subject and contender, that gave no answer in time.
        """
        contest = self._contest
        for command in contest.setup:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.run(command, env=contest.environment, check=False, **quiet)  # type: ignore[call-overload]
        found: dict[str, list[Sample]] = {contender.name: [] for contender in contest.contenders}
        for (subject, name), sample in late.items():
            if subject and subject == contest.subject and name in found:
                found[name].append(replace(sample, is_earlier=True))
        self._prepare(found)
        for number in range(rounds + _UNCOUNTED):
            start = number % len(contest.contenders)
            for contender in contest.contenders[start:] + contest.contenders[:start]:
                if self._is_wanted(contender, found[contender.name], rounds):
                    self._once(contender, found[contender.name])
        return found

    def _prepare(self, found: Mapping[str, Sequence[Sample]]) -> None:
        """Fill the caches that are to be warm, where no earlier contest did."""
        for contender in self._contest.contenders:
            if contender.cache is not None and not contender.cache.exists() and not found[contender.name]:
                _measured(replace(contender, command=contender.prepare), self._contest, self._programs)

    def _is_wanted(self, contender: Contender, samples: Sequence[Sample], rounds: int) -> bool:
        has_failed = bool(samples) and samples[-1].code not in contender.codes
        is_late = bool(samples) and self._spent[contender.name] > self._contest.seconds
        return len(samples) < rounds and not has_failed and not is_late

    def _once(self, contender: Contender, samples: list[Sample]) -> None:
        before = self._index.memory.misses
        sample = _measured(contender, self._contest, self._programs)
        is_new = self._index.memory.misses > before and not self._contest.is_real
        is_spare = is_new and self._uncounted[contender.name] < _UNCOUNTED
        if is_spare or self._uncounted[contender.name] < contender.unmeasured:
            self._uncounted[contender.name] += 1
            return
        self._spent[contender.name] += sample.wall
        samples.append(sample)


def _measured(contender: Contender, contest: Contest, programs: Programs) -> Sample:
    for path in contender.removes:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    environment = contender.environment or contest.environment
    usage = measured(contender.command, environment, limit=contest.limit, output=programs.scratch / "output.txt")
    answer = answered(contender.answer) if contender.answer is not None and usage.code in contender.codes else None
    return Sample(
        wall=usage.wall,
        processor=usage.processor,
        peak=usage.peak,
        code=usage.code,
        answer=answer,
        words=_last_words(usage.output),
    )


def _last_words(output: str) -> str:
    """The line that says why a tool gave up: the last that speaks of an error, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if any(word in line.lower() for word in ("error", "failed", "unable", "not find"))]
    return (telling or lines or [""])[-1][:200].replace("|", "\\|")


def _section(contest: Contest, samples: dict[str, list[Sample]]) -> Iterator[str]:
    yield f"## {contest.title}"
    yield ""
    yield "| command | wall s, median | min | max | cpu s | peak MiB | ratio | packages | runs |"
    yield "| --- | --: | --: | --: | --: | --: | --: | --: | --: |"
    finished = [one for one in contest.contenders if not _failures(one, samples[one.name])]
    first = statistics.median(sample.wall for sample in samples[finished[0].name]) if finished else 1.0
    reference = samples[finished[0].name][-1].answer if finished else None
    for contender in contest.contenders:
        failures = _failures(contender, samples[contender.name])
        if failures:
            yield f"| {contender.name} | {_why(failures[0], contest)} | | | | {failures[0].peak:.0f} | | | 1 |"
        else:
            cells = _figures(samples[contender.name], first, reference)
            yield f"| {' | '.join([contender.name, *cells])} |"
    yield from _differences(contest, samples, reference)


def _failures(contender: Contender, samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.code not in contender.codes]


def _why(sample: Sample, contest: Contest) -> str:
    if sample.is_earlier:
        return f"not run: gave no answer in {contest.limit:.0f} s before"
    if sample.code == TIMED_OUT:
        return f"ended after {contest.limit:.0f} s without an answer"
    return f"failed after {sample.wall:.1f} s, exit code {sample.code}: {sample.words}"


def _figures(samples: Sequence[Sample], first: float, reference: dict[str, str] | None) -> Iterator[str]:
    walls = [sample.wall for sample in samples]
    yield from (f"{figure:.3f}" for figure in (statistics.median(walls), min(walls), max(walls)))
    yield f"{statistics.median(sample.processor for sample in samples):.3f}"
    yield f"{statistics.median(sample.peak for sample in samples):.0f}"
    yield f"{statistics.median(walls) / first:.2f}"
    yield _counted(samples[-1].answer, reference)
    yield str(len(samples))


def _counted(answer: dict[str, str] | None, reference: dict[str, str] | None) -> str:
    """How many distributions, and how many of them are not the same as in the first row's answer."""
    if answer is None or reference is None:
        return "" if answer is None else str(len(answer))
    others = len(_unlike(answer, reference))
    return f"{len(answer)}, {others} otherwise" if others else str(len(answer))


def _unlike(answer: dict[str, str], reference: dict[str, str]) -> list[str]:
    return sorted(name for name in {*answer, *reference} if answer.get(name) != reference.get(name))


def _differences(contest: Contest, samples: dict[str, list[Sample]], reference: dict[str, str] | None) -> Iterator[str]:
    """What each answer has otherwise than the first row's, so that a quick wrong answer is not taken for a quick one."""
    for contender in contest.contenders:
        runs = samples[contender.name]
        answer = runs[-1].answer if runs else None
        if answer is None or reference is None or not (names := _unlike(answer, reference)):
            continue
        shown = [f"{name} {answer.get(name, 'left out')} ({reference.get(name, 'left out')})" for name in names[:6]]
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        yield ""
        yield f"{contender.name} answers otherwise than the first row (in brackets): {', '.join(shown)}{more}."


def _head(programs: Programs) -> str:
    command = [programs.provision, "--version"]
    own = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]
    versions = ", ".join(f"{name} {programs.version(name)}" for name in REQUIREMENTS)
    machine = f"{os.cpu_count()} processors, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"""\
# Benchmarks

Written by `make bench`; not edited by hand. {machine}; provision {own}, {versions}.

Each program is installed in an environment of its own as its manual says, `provision` from a wheel of this tree.

Whole processes, all commands of a table in one go and in rotating order. *Ratio* is the median wall time as a multiple of that
of the first row with a result. *Peak* is the largest resident memory of the process and everything it started (pages that
several of them share are counted in each), with a floor of about 10 MiB: the size of the program that starts them.
*Packages* counts the distributions in each answer, and those that are not the same as in the first row's; what they are is
told below the table. Where a tool fails or takes too long, that is its row.

Every tool is asked for the same: wheels only, Python 3.11, Linux x86_64 with glibc 2.35 where it can be told so. Every tool
asks the same index, a cache of the real one on loopback that answers from memory, with separate metadata files and cache
headers, so that neither the network nor a missing feature of an index is measured; a run during which that index itself had to
ask the real one is not counted. Each tool has a cache of its own: *cold* deletes it before each run, *warm* finds it as the
tool's own cold runs left it. What a tool wrote before is deleted before each run, so that every run solves anew.

What is not the same: `provision` decides the system stack (driver, CUDA, PyTorch's build) in the same problem, and it and `pdm
lock`, `poetry lock` write a lock with hashes; `uv pip compile` and `pip-compile` write versions, `pip install --dry-run` a
report. pip and pip-compile know the target from the Python they run on. `pdm lock` is told it with `--platform` and `--python`;
it takes wheels tagged `py37` for unfit on 3.11, so it is allowed the source distribution of `interegular`. `poetry lock` locks
for every platform and has no switch for one, so its requirements carry a marker for Linux x86_64, and it has no switch for
wheels only either. Only `provision` and uv can be told to open no connection."""


if __name__ == "__main__":
    main()
