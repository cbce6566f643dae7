"""Compare whole processes side by side and write the figures to a table: `python benchmarks/run.py`.

Every contest runs its commands in one go, in an order that rotates from round to round, so that a machine that slows down
slows all of them down. The first round fills caches and is not counted.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import venv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contest import Contender, Contest, Tools, contests, write_inputs
from loopback_proxy import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
ROOT = HERE.parent


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: wall and processor seconds, peak memory in MiB, exit code, and the distributions in its answer."""

    wall: float
    processor: float
    peak: float
    code: int
    count: int | None


def main() -> None:
    """Read the command line, measure, and write the table."""
    options = _options()
    scratch = ROOT / "build" / "benchmarks"
    tools = _tools(scratch, options.provision)
    shutil.rmtree(tools.scratch, ignore_errors=True)
    write_inputs(tools.scratch)
    sections = []
    with LoopbackIndex(options.index) as index:
        for contest in contests(tools, index.url):
            if options.only and not any(word in contest.name for word in options.only):
                continue
            section = "\n".join(_section(contest, _samples(contest, options.rounds or contest.rounds, tools)))
            sys.stdout.write(f"{section}\n\n")
            sys.stdout.flush()
            sections.append(section)
    if not options.only:
        options.output.write_text("\n\n".join([_head(tools), *sections]) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORD", help="contests whose name holds WORD; writes no file")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of every contest; default: each its own number")
    parser.add_argument("--index", default=os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple"), metavar="URL")
    parser.add_argument("--provision", default=str(Path(sys.executable).parent / "provision"), metavar="FILE")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks.md", metavar="FILE")
    return parser.parse_args()


def _tools(directory: Path, provision: str) -> Tools:
    """Install the programs to compare with, once, in an environment of their own."""
    home = directory / "tools"
    if not (home / "bin" / "pip-compile").exists():
        venv.create(home, with_pip=True, clear=True)
        pip = str(home / "bin" / "python")
        subprocess.run([pip, "-m", "pip", "install", "--quiet", "--upgrade", "pip", "uv", "pip-tools"], check=True)
    found = {name: str(home / "bin" / name) for name in ("uv", "pip-compile")}
    return Tools(
        python=sys.executable,
        provision=provision,
        uv=found["uv"],
        pip_compile=found["pip-compile"],
        scratch=directory / "scratch",
    )


def _samples(contest: Contest, rounds: int, tools: Tools) -> dict[str, list[Sample]]:
    for command in contest.setup:
        subprocess.run(
            command, env=contest.environment or None, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
    samples: dict[str, list[Sample]] = defaultdict(list)
    for number in range(rounds + 1):
        start = number % len(contest.contenders)
        for contender in contest.contenders[start:] + contest.contenders[:start]:
            sample = _run(contender, contest, tools)
            if number > 0:
                samples[contender.name].append(sample)
    return samples


def _run(contender: Contender, contest: Contest, tools: Tools) -> Sample:
    for path in contender.removes:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    output = tools.scratch / "output.txt"
    starter = [sys.executable, "-I", "-S", str(HERE / "measure.py"), str(output)]
    environment = contest.environment or None
    result = subprocess.run([*starter, *contender.command], env=environment, capture_output=True, text=True, check=True)
    wall, processor, peak, code = result.stdout.split()
    if int(code) not in contender.codes:
        sys.stderr.write(f"{contender.name} exited with {code}: {output.read_text(errors='replace')[-500:]}\n")
    return Sample(float(wall), float(processor), float(peak), int(code), _count(contender.answer))


def _count(answer: Path | None) -> int | None:
    """The distributions in a lock or a requirements file, so that a quick wrong answer is not taken for a quick one."""
    if answer is None or not answer.is_file():
        return None
    pattern = r"^\[\[packages\]\]" if answer.suffix == ".toml" else r"^[a-z0-9][^ #]*=="
    return len(re.findall(pattern, answer.read_text(encoding="utf-8"), re.MULTILINE | re.IGNORECASE))


def _section(contest: Contest, samples: dict[str, list[Sample]]) -> Iterator[str]:
    yield f"## {contest.title}"
    yield ""
    yield "| command | wall s, median | min | max | cpu s | peak MiB | ratio | packages | runs |"
    yield "| --- | --: | --: | --: | --: | --: | --: | --: | --: |"
    finished = [one.name for one in contest.contenders if all(sample.code in one.codes for sample in samples[one.name])]
    first = statistics.median(sample.wall for sample in samples[finished[0]]) if finished else 1.0
    for contender in contest.contenders:
        runs = samples[contender.name]
        failed = [sample.code for sample in runs if sample.code not in contender.codes]
        if failed:
            yield f"| {contender.name} | failed: exit code {failed[0]} in {len(failed)} of {len(runs)} runs | | | | | | | |"
            continue
        walls = [sample.wall for sample in runs]
        counts = {sample.count for sample in runs}
        cells = [
            contender.name,
            *(f"{figure:.3f}" for figure in (statistics.median(walls), min(walls), max(walls))),
            f"{statistics.median(sample.processor for sample in runs):.3f}",
            f"{statistics.median(sample.peak for sample in runs):.0f}",
            f"{statistics.median(walls) / first:.2f}",
            " or ".join(sorted(str(count) for count in counts if count is not None)),
            str(len(runs)),
        ]
        yield f"| {' | '.join(cells)} |"


def _head(tools: Tools) -> str:
    commands = ([tools.uv, "--version"], [tools.pip_compile, "--version"], [tools.provision, "--version"])
    answers = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in commands]
    versions = ", ".join(" ".join(answer.replace(", version", "").split()[:2]) for answer in answers)
    machine = f"{os.cpu_count()} processors, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"""\
# Benchmarks

Written by `make bench`; not edited by hand. {machine}; {versions}.

Whole processes, all commands of a table in one go and in rotating order, after one round that is not counted. *Ratio* is the
median wall time as a multiple of that of the first row with a result. *Peak* is the largest resident memory of the process,
with a floor of about 10 MiB: the size of the program that starts them. Every tool asks the same index, a cache of the real
one on loopback that answers from memory, with separate metadata files and cache headers, so that neither the network nor a
missing feature of an index is measured. *Packages* counts the distributions in each answer."""


if __name__ == "__main__":
    main()
