"""The page of the hard problems: what was aimed at, what was measured, and what each problem cost."""

from __future__ import annotations

import platform
import statistics
from typing import TYPE_CHECKING

from hard_problems import FRAMEWORKS
from second_opinion import AGREED, OF_THE_SYSTEM, PIP_AGREES, UNDISPUTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hard_problems import Problem, Problems
    from hard_records import Record

    Pair = tuple[Problem, Record]

_INTRODUCTION = """\
Problems in which not everything newest fits (`benchmarks/hard_problems.yaml`): older drivers, an open Python, pins that
exclude each other, source distributions, requirement files of public repositories. `provision solve` decides the system stack
in the same problem and writes a lock; uv (`uv pip compile`) knows neither drivers nor GPUs, and is told the Python, the
platform and the release of PyTorch, TensorFlow or JAX that provision chose; where provision has no answer, the Python that its
first hint would give, or else the newest that is asked for.

*cpu* is the processor time (user and system) of the whole process, the median of one to three runs with a warm
cache, and *wall* the time beside it, on a machine with two processors that did other
things too. *Metadata* and *MB* are what the index sent to an empty cache: metadata files, and the bytes of
all answers, uncompressed. *Peak* is the largest resident memory of provision's warm runs, everything that it starts included.
The index is a cache of PyPI on loopback that answers from memory; it passes on source distributions and ranges of wheels, and
counts them.

PyTorch's own indexes (download.pytorch.org) and Docker Hub could not be reached where this was measured, only PyPI. A problem
whose answer is on an index out of reach is told as such, and is in no figure; requests to that index are counted nowhere.
Its name is looked up in each run that would ask it.

An interpreter that imports the libraries of a solve and does nothing else takes 0.10 s of processor time
([speed.md](speed.md#a-warm-solve)): more than uv's whole run of most of these problems."""

_NOTHING = "none"


def page(problems: Problems, records: Mapping[str, Record], limit: float) -> Iterator[str]:
    """Return the lines of `docs/hard-problems.md`."""
    pairs = [(one, records[one.name]) for one in problems.problems if one.name in records and records[one.name].ours_warm]
    answers = [pair for pair in pairs if pair[1].ours.status == pair[1].theirs.status == "answer"]
    refused = [pair for pair in pairs if pair[1].ours.status == "no"]
    hard = [pair for pair in answers if pair[0].theme != "easy"]
    rest = [pair for pair in pairs if pair not in answers and pair not in refused]
    yield "# Hard problems"
    yield ""
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    yield f"Written by `make bench-hard`; not edited by hand. {machine}. One run is ended after {limit:.0f} seconds."
    yield from ("", *_INTRODUCTION.splitlines(), "")
    easy = sum(one.theme == "easy" for one, _ in pairs)
    yield f"{len(pairs)} problems, {len(pairs) - easy} of them hard: {len(answers)} with an answer of both,"
    yield f"{len(refused)} that provision refuses, {len(rest)} others, told at the end."
    if absent := [problem.name for problem in problems.problems if problem.name not in {one.name for one, _ in pairs}]:
        yield f"Not measured yet, or not answered in time with an empty cache: {', '.join(absent)}."
    yield from ("", "## Aims", "", "| aim | measured | met |", "| --- | --- | --- |")
    yield from _aims(hard, [*hard, *refused], refused, records)
    yield from ("", "## With an answer", "")
    figures = "cpu s | uv | ratio | wall s | uv | metadata | uv | MB | uv | peak MiB"
    yield f"| problem | machine | Python | framework | packages | {figures} |"
    yield "| --- | --- | --- | --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |"
    yield from (_answered(*pair, problems) for pair in answers)
    yield from ("", "## Without an answer", "")
    yield "*Beside* is the problem of the same kind with an answer, and its processor time. What uv says is to all packages,"
    yield "for one Python and without a machine; the second opinion is about what provision tells, below."
    yield ""
    yield "| problem | machine | Python | cpu s | uv | wall s | metadata | uv | peak MiB | uv says | second opinion | beside |"
    yield "| --- | --- | --- | --: | --: | --: | --: | --: | --: | --- | --- | --- |"
    yield from (_refused(*pair, problems, records) for pair in refused)
    yield from ("", "### What was told, and the second opinion", "")
    yield "uv is asked for the packages that a conflict names, on every Python that is asked for, and without each in turn."
    yield "What rests on the driver, the GPU or a rule of the matrix it cannot know: *of the system*. Where the policy is the"
    yield "reason it gets the same: of a distribution with source distributions that `allow` does not admit it may take final"
    yield "wheels alone. It repairs invalid requirements in metadata; whether files with such can be used is asked of pip."
    yield ""
    for problem, record in refused:
        for one in record.opinions:
            named = ", ".join(f"`{request}`" for request in one.requests) or "no request"
            yield f"- {problem.name}: {named}: {one.told}. {_marked(one.verdict)}"
    if rest:
        yield from (
            "",
            "## Others",
            "",
            "| problem | machine | provision | uv | cpu s | wall s | |",
            "| --- | --- | --- | --- | --: | --: | --- |",
        )
        yield from (_other(*pair, problems) for pair in rest)


def _aims(hard: Sequence[Pair], pairs: Sequence[Pair], refused: Sequence[Pair], records: Mapping[str, Record]) -> Iterator[str]:
    ratios = [(_ratio(record), problem.name) for problem, record in hard]
    if ratios:
        middle, (worst, name) = statistics.median(ratio for ratio, _ in ratios), max(ratios)
        beyond = sum(ratio > 10 for ratio, _ in ratios)
        yield _aim("processor time: median within 3 times uv's", f"{middle:.1f} times", is_met=middle <= 3)
        yield _aim(
            "processor time: none beyond 10 times uv's",
            f"{worst:.1f} times ({name}); {beyond} of {len(ratios)} beyond",
            is_met=worst <= 10,
        )
        read = [(_times(one.ours_counted.metadata, one.theirs_counted.metadata), problem.name) for problem, one in hard]
        most, name = max(read)
        told = f"median {statistics.median(figure for figure, _ in read):.1f} times, most {most:.1f} times ({name})"
        yield _aim(
            "no more than twice uv's metadata files", f"{told}; {sum(one > 2 for one, _ in read)} beyond", is_met=most <= 2
        )
    beside = [
        (record.ours_warm.processor, other.ours_warm.processor, problem.name)
        for problem, record in refused
        if record.ours_warm and (other := records.get(problem.beside)) and other.ours_warm
    ]
    if beside:
        slower = [f"{name} ({own:.1f} against {other:.1f} s)" for own, other, name in beside if own > other]
        told = f"{len(slower)} of {len(beside)} slower" + (f": {', '.join(slower)}" if slower else "")
        yield _aim("a conflict is never slower than the answer beside it", told, is_met=not slower)
    opinions = [one for _, record in refused for one in record.opinions]
    disputed = [one for one in opinions if one.verdict not in UNDISPUTED]
    agreed, pip, system = (sum(one.verdict == verdict for one in opinions) for verdict in UNDISPUTED)
    by_pip = f"; pip with {pip} of files that uv repairs" if pip else ""
    told = f"{len(opinions)} conflicts: uv agrees with {agreed}, disputes {len(disputed)}{by_pip}; {system} of the system"
    yield _aim("uv agrees with each conflict between packages", told, is_met=not disputed)
    peaks = [(record.ours_warm.peak, problem.name) for problem, record in pairs if record.ours_warm]
    if peaks:
        peak, name = max(peaks)
        told = f"most {peak:.0f} MiB ({name}); {sum(one > 150 for one, _ in peaks)} of {len(peaks)} beyond"
        yield _aim("memory under 150 MiB", told, is_met=peak < 150)


def _aim(aim: str, told: str, *, is_met: bool) -> str:
    return f"| {aim} | {told} | {'yes' if is_met else '**no**'} |"


def _answered(problem: Problem, record: Record, problems: Problems) -> str:
    ours, theirs = record.ours.packages, record.theirs.packages
    assert record.ours_warm is not None
    assert record.theirs_warm is not None
    framework = ", ".join(f"{name} {ours[name]}" for name in FRAMEWORKS if name in ours and name != "jaxlib")
    others = sum(_public(ours.get(name)) != _public(theirs.get(name)) for name in {*ours, *theirs})
    cells = [
        problem.name,
        _machine(problem, problems),
        _python(problem, record),
        framework or _NOTHING,
        f"{len(ours)}, {others} otherwise" if others else str(len(ours)),
        f"{record.ours_warm.processor:.2f}",
        f"{record.theirs_warm.processor:.2f}",
        f"{_ratio(record):.1f}",
        f"{record.ours_warm.wall:.2f}",
        f"{record.theirs_warm.wall:.2f}",
        str(record.ours_counted.metadata),
        str(record.theirs_counted.metadata),
        f"{record.ours_counted.size / 1e6:.0f}",
        f"{record.theirs_counted.size / 1e6:.0f}",
        f"{record.ours_warm.peak:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _refused(problem: Problem, record: Record, problems: Problems, records: Mapping[str, Record]) -> str:
    assert record.ours_warm is not None
    assert record.theirs_warm is not None
    verdicts = [one.verdict for one in record.opinions]
    disputed = sum(verdict not in UNDISPUTED for verdict in verdicts)
    counts = [
        f"{verdicts.count(AGREED)} agreed" if AGREED in verdicts else "",
        f"{verdicts.count(PIP_AGREES)} by pip" if PIP_AGREES in verdicts else "",
        f"{verdicts.count(OF_THE_SYSTEM)} {OF_THE_SYSTEM}" if OF_THE_SYSTEM in verdicts else "",
        f"**{disputed} disputed**" if disputed else "",
    ]
    other = records.get(problem.beside)
    beside = f"{problem.beside}: {other.ours_warm.processor:.2f} s" if other and other.ours_warm else ""
    cells = [
        problem.name,
        _machine(problem, problems),
        problem.python,
        f"{record.ours_warm.processor:.2f}",
        f"{record.theirs_warm.processor:.2f}",
        f"{record.ours_warm.wall:.2f}",
        str(record.ours_counted.metadata),
        str(record.theirs_counted.metadata),
        f"{record.ours_warm.peak:.0f}",
        f"{record.theirs.status} on {record.theirs.python}",
        ", ".join(one for one in counts if one),
        beside,
    ]
    return f"| {' | '.join(cells)} |"


def _other(problem: Problem, record: Record, problems: Problems) -> str:
    assert record.ours_warm is not None
    words = [line for line in record.ours.words.splitlines() if not line.startswith("Solving")]
    if record.ours.status == "answer":
        words = [line for line in record.theirs.words.splitlines() if line.strip()]
    told = " ".join(line.strip() for line in words[:3])[:300].replace("|", "\\|").replace("<", "\\<")
    cells = [
        problem.name,
        _machine(problem, problems),
        record.ours.status,
        record.theirs.status,
        f"{record.ours_warm.processor:.2f}",
        f"{record.ours_warm.wall:.2f}",
        told,
    ]
    return f"| {' | '.join(cells)} |"


def _machine(problem: Problem, problems: Problems) -> str:
    host = problems.hosts[problem.host]
    return f"{host.gpu.removeprefix('NVIDIA ').removeprefix('GeForce ')}, {host.driver.partition('.')[0]}"


def _python(problem: Problem, record: Record) -> str:
    return problem.python if problem.python == record.ours.python else f"{problem.python}: {record.ours.python}"


def _marked(verdict: str) -> str:
    if verdict == AGREED:
        return "uv agrees."
    if verdict == PIP_AGREES:
        return f"{verdict[0].upper()}{verdict[1:]}."
    return "Of the system." if verdict == OF_THE_SYSTEM else f"**Disputed: {verdict}.**"


def _ratio(record: Record) -> float:
    assert record.ours_warm is not None
    assert record.theirs_warm is not None
    return record.ours_warm.processor / record.theirs_warm.processor


def _times(ours: int, theirs: int) -> float:
    return ours / max(theirs, 1)


def _public(version: str | None) -> str:
    return (version or "").partition("+")[0]
