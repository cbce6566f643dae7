"""Solve real requirement sets with provision and with uv, cross-examine the answers, write `docs/comparison.md`.

`python benchmarks/compare_resolvers.py`. Both tools are given the same index, platform, Python and torch release, and may
install wheels only. Where they answer differently each is asked about the other's answer: uv compiles the same requirements
with provision's versions as constraints, and provision solves them with uv's versions as further requirements. An answer that
the other tool accepts is a matter of preference; one that it refuses is a mistake of one of the two.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from requirement_sets import SETS, RequirementSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parent.parent
SCRATCH = ROOT / "build" / "comparison"
LONGEST = 500
"""Characters of a message that are shown."""

_SPEC = """\
name: comparison
target:
  platform: linux/amd64
  host:
    platform: linux/amd64
    os: {{id: debian, version: "12"}}
    kernel: 6.1.0-18-amd64
    glibc: "2.36"
    driver: {{version: 580.95.05, module: open}}
    gpus:
      - {{name: NVIDIA H100 80GB HBM3, compute_capability: "9.0", count: 8}}
accelerator: cuda
requires:
  python: "{python}"
packages: {packages}
runs: host
outputs: []
"""
UV_PLATFORM = "x86_64-manylinux_2_36"
"""The same machine in uv's words: x86-64 and the glibc of the spec's host."""

REFUSED = 1
"""The exit code of both tools for a set that has no solution."""

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one tool said: versions by distribution, or None and why not. `code` is its exit code."""

    code: int
    pins: Mapping[str, str] | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two answers to one set; `by_uv` and `by_provision` are what each made of the other's, None when nobody asked."""

    wish: RequirementSet
    ours: Answer
    theirs: Answer
    by_uv: Answer | None = None
    by_provision: Answer | None = None

    @property
    def differing(self) -> list[str]:
        """Distributions that the answers disagree on, one missing from an answer included."""
        ours, theirs = self.ours.pins or {}, self.theirs.pins or {}
        return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))


@dataclass(frozen=True, slots=True)
class Tools:
    """The two programs and the environment they run in."""

    provision: str
    uv: str
    environment: Mapping[str, str]

    def ask_provision(self, wish: RequirementSet, *more: str) -> Answer:
        """Solve a set, with further requirements."""
        spec = SCRATCH / "provision.yaml"
        packages = json.dumps([*wish.requirements, *more])
        spec.write_text(_SPEC.format(python=wish.python, packages=packages), encoding="utf-8")
        (SCRATCH / "pylock.comparison.toml").unlink(missing_ok=True)
        result = self._run(self.provision, "solve", str(spec), "--format", "json")
        if result.returncode != 0:
            return Answer(result.returncode, None, result.stderr.strip())
        found: dict[str, str] = json.loads(result.stdout)["packages"]
        return Answer(0, {name: _public(version, name) for name, version in found.items()})

    def ask_uv(self, wish: RequirementSet, constraints: Mapping[str, str]) -> Answer:
        """Compile a set under constraints."""
        listed, pinned = SCRATCH / "requirements.in", SCRATCH / "constraints.txt"
        listed.write_text("".join(f"{one}\n" for one in wish.requirements), encoding="utf-8")
        pinned.write_text("".join(f"{name}=={version}\n" for name, version in constraints.items()), encoding="utf-8")
        target = ["--python-version", wish.python, "--python-platform", UV_PLATFORM]
        policy = ["--only-binary", ":all:"]
        quiet = ["--no-header", "--no-annotate", "--no-config", "--quiet"]
        result = self._run(self.uv, "pip", "compile", str(listed), "--constraint", str(pinned), *target, *policy, *quiet)
        if result.returncode != 0:
            return Answer(result.returncode, None, result.stderr.strip())
        return Answer(0, dict(_PIN.findall(result.stdout)))

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=SCRATCH, env=self.environment, capture_output=True, text=True, check=False)


def main() -> None:
    """Read the command line, compare every set, and write the table."""
    options = _options()
    tools = _tools(options.index, options.provision)
    comparisons = []
    for wish in SETS:
        if options.only and not any(word in wish.name for word in options.only):
            continue
        comparison = _compared(wish, tools)
        sys.stderr.write(f"{'; '.join(_row(comparison))}\n")
        for line in _details(comparison):
            sys.stderr.write(f"    {line}\n")
        comparisons.append(comparison)
    if not options.only:
        options.output.write_text("\n".join(_page(comparisons, tools)) + "\n", encoding="utf-8")
    sys.exit(any(_verdict(one).startswith("**") and not one.wish.why for one in comparisons))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORD", help="sets whose name holds WORD; writes no file")
    parser.add_argument("--index", default=os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple"), metavar="URL")
    parser.add_argument("--provision", default=str(Path(sys.executable).parent / "provision"), metavar="FILE")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "comparison.md", metavar="FILE")
    return parser.parse_args()


def _tools(index: str, provision: str) -> Tools:
    # Both begin with nothing cached, so that neither knows an older state of the index than the other.
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))},
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": index,
        "UV_DEFAULT_INDEX": index,
        "XDG_CACHE_HOME": str(SCRATCH / "cache"),
        "UV_CACHE_DIR": str(SCRATCH / "cache" / "uv"),
        "NO_COLOR": "1",
    }
    return Tools(provision, str(Path(sys.executable).parent / "uv"), environment)


def _compared(wish: RequirementSet, tools: Tools) -> Comparison:
    """Ask both tools; uv is given the framework release that provision chose, which is not uv's to choose."""
    ours = tools.ask_provision(wish)
    torch = {"torch": ours.pins["torch"]} if ours.pins is not None and "torch" in ours.pins else {}
    theirs = tools.ask_uv(wish, torch)
    plain = Comparison(wish, ours, theirs)
    if not plain.differing:
        return plain
    by_uv = tools.ask_uv(wish, ours.pins) if ours.pins is not None else None
    pins = [f"{name}=={version}" for name, version in (theirs.pins or {}).items()]
    by_provision = tools.ask_provision(wish, *pins) if theirs.pins is not None else None
    return Comparison(wish, ours, theirs, by_uv, by_provision)


def _public(version: str, name: str) -> str:
    """The framework's release without its build: the default index, which uv is given, has one build of each release."""
    return version.partition("+")[0] if name == "torch" else version


def _verdict(comparison: Comparison) -> str:
    ours, theirs = comparison.ours, comparison.theirs
    if ours.pins is None or theirs.pins is None:
        if {ours.code, theirs.code} == {REFUSED}:
            return "both refuse"
        return f"**provision exits with {ours.code}, uv with {theirs.code}**"
    if not comparison.differing:
        return "same"
    accepted_ours = comparison.by_uv is not None and comparison.by_uv.pins == ours.pins
    accepted_theirs = comparison.by_provision is not None and comparison.by_provision.pins == theirs.pins
    if accepted_ours and accepted_theirs:
        return "both valid"
    return f"**{'uv refuses provision' if not accepted_ours else 'provision refuses uv'}'s answer**"


def _row(comparison: Comparison) -> tuple[str, ...]:
    wish, ours, theirs = comparison.wish, comparison.ours, comparison.theirs
    counts = [str(len(one.pins)) if one.pins is not None else "none" for one in (ours, theirs)]
    number = str(len(comparison.differing)) if ours.pins is not None and theirs.pins is not None else ""
    return (f"`{'`, `'.join(wish.requirements)}`", wish.python, *counts, _verdict(comparison), number)


def _details(comparison: Comparison) -> Iterator[str]:
    """What differs, and why where a person has found out."""
    ours, theirs = comparison.ours.pins, comparison.theirs.pins
    if ours is not None and theirs is not None and comparison.differing:
        parts = [f"{name} {ours.get(name, 'none')} / {theirs.get(name, 'none')}" for name in comparison.differing]
        yield f"provision / uv: {', '.join(parts)}"
    for tool, answer in (("provision", comparison.ours), ("uv", comparison.theirs)):
        if answer.pins is None and _verdict(comparison) != "both refuse":
            yield f"{tool}: {_folded(answer.words)}"
    checks = {"uv on provision's answer": comparison.by_uv, "provision on uv's answer": comparison.by_provision}
    for name, check in checks.items():
        if check is not None and check.pins is None:
            yield f"{name}: {_folded(check.words)}"
    if comparison.wish.why and _verdict(comparison) != "same":
        yield comparison.wish.why


def _folded(words: str) -> str:
    """A message in one line: from its error on, without hints and without the directory it was written in."""
    text = " ".join(words.partition("\nhint: ")[0].replace(f"{SCRATCH}{os.sep}", "").split())
    text = text[max(text.find("error: "), 0) :]
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def _page(comparisons: list[Comparison], tools: Tools) -> Iterator[str]:
    version = subprocess.run([tools.uv, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    total = len(comparisons)
    agreed = sum(_verdict(one) in {"same", "both refuse"} for one in comparisons)
    valid = sum(_verdict(one) == "both valid" for one in comparisons)
    yield from (
        "# Answers beside uv's",
        "",
        f"Written by `python benchmarks/compare_resolvers.py`; not edited by hand. uv {version}.",
        "",
        "Real requirement sets on the real index, for Linux on x86-64 with glibc 2.36, an H100 and driver 580, wheels only.",
        "uv is given the torch release that provision chose, because drivers and GPUs are none of its business. *Both valid*",
        "means that each tool, asked about the other's whole answer, accepts it: they prefer different versions. provision",
        "takes the packages that the spec names in the order it names them, newest first, and then everything else; uv weighs",
        "them in the order its search meets them.",
        "",
        f"{total} sets: {agreed} agree, {valid} differ and are both valid, {total - agreed - valid} are disputed.",
        "",
        "| requirements | Python | provision | uv | verdict | differing |",
        "| --- | --- | --: | --: | --- | --: |",
    )
    for comparison in comparisons:
        yield f"| {' | '.join(_row(comparison))} |"
    for comparison in comparisons:
        details = list(_details(comparison))
        if details:
            yield from ("", f"## {comparison.wish.name}", "", *(f"- {line}" for line in details))


if __name__ == "__main__":
    main()
