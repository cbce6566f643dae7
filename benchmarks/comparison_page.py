"""The page of the comparison: a table of all sets, and what differs where something does."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from comparison import OTHERS, UNASKED, Comparison, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from resolvers import Answer

LONGEST = 420
"""Characters of a message that are shown."""

MOST = 16
"""Differing distributions that are named; of more, the first ones and how many."""

_INTRODUCTION = (
    "Real requirement sets on the real index, for Linux on x86-64 with glibc 2.36, an H100 and driver 580 where nothing else",
    "is said, wheels only. uv and pip are given the torch release that provision chose, because drivers and GPUs are none of",
    "their business, and the newest release of the Python series, which is what provision takes a series for. pip is given",
    "the target's markers, which its command line cannot say. Each has so many seconds for an answer.",
    "",
    "*Both valid* means that each tool, asked about the other's whole answer, accepts it: they prefer different versions.",
    "*Accepts ours, none in time*: it found no answer of its own in its time, and accepts provision's. `1 / 0` are",
    "exit codes: provision refuses, the other answers; 124 is out of time. provision takes the packages that the spec names",
    "in the order it names them, newest first, and then everything else; uv weighs them in the order its search meets them.",
)

_AGREED = {"same", "both refuse", UNASKED}


def row(comparison: Comparison) -> tuple[str, ...]:
    """The cells of one set."""
    request = comparison.request
    answers = [comparison.ours, *(comparison.theirs.get(tool) for tool in OTHERS)]
    counts = [_count(one) for one in answers]
    bounded = f" under `{'`, `'.join(request.constraints)}`" if request.constraints else ""
    target = request.python if request.platform == "linux/amd64" else f"{request.python}, {request.platform}"
    verdicts = []
    for tool in OTHERS:
        told = verdict(comparison, tool)
        number = len(comparison.differing(tool)) if tool in comparison.theirs else 0
        verdicts.append(f"{told}, {number} differ" if told not in _AGREED and number and comparison.theirs[tool].pins else told)
    return (f"`{'`, `'.join(request.requirements)}`{bounded}", target, *counts, *verdicts)


def _count(answer: Answer | None) -> str:
    return "" if answer is None else "none" if answer.pins is None else str(len(answer.pins))


def is_disputed(comparison: Comparison) -> bool:
    """Whether one tool refuses another's answer, or has another exit code."""
    return any(verdict(comparison, tool).startswith("**") for tool in OTHERS)


def details(comparison: Comparison) -> Iterator[str]:
    """What differs, and why where a person has found out."""
    for tool in OTHERS:
        if verdict(comparison, tool) not in _AGREED:
            yield from _difference(comparison, tool)
    has_difference = any(verdict(comparison, tool) not in _AGREED for tool in OTHERS)
    if comparison.ours.pins is None and has_difference:
        yield f"provision: {_folded(comparison.ours.words)}"
    if comparison.request.why:
        yield comparison.request.why if has_difference else f"stale reason: {comparison.request.why}"


def _difference(comparison: Comparison, tool: str) -> Iterator[str]:
    ours, theirs = comparison.ours.pins, comparison.theirs[tool].pins
    if ours is not None and theirs is not None:
        parts = [f"{name} {ours.get(name, 'none')} / {theirs.get(name, 'none')}" for name in comparison.differing(tool)]
        more = f" and {len(parts) - MOST} more" if len(parts) > MOST else ""
        yield f"provision / {tool}: {', '.join(parts[:MOST])}{more}"
    if theirs is None:
        yield f"{tool}: {_folded(comparison.theirs[tool].words)}"
    checks = {f"{tool} on provision's answer": comparison.by_other, f"provision on {tool}'s answer": comparison.by_ours}
    for name, answers in checks.items():
        if tool in answers and answers[tool].pins is None:
            yield f"{name}: {_folded(answers[tool].words)}"


def _folded(words: str) -> str:
    """A message in one line: from its error on, without hints."""
    text = " ".join(words.partition("\nhint: ")[0].split())
    lowered = text.lower()
    text = text[max(lowered.find("error: "), 0) :]
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def page(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """The lines of the page."""
    read = [one.read for one in comparisons]
    days = sorted({min(read), max(read)})
    programs = [Path(sys.executable).parent / tool for tool in OTHERS]
    versions = [subprocess.run([one, "--version"], capture_output=True, text=True, check=True).stdout for one in programs]
    named = " and ".join(" ".join(text.split()[:2]) for text in versions)
    yield from (
        "# Answers beside uv's and pip's",
        "",
        f"Written by `python benchmarks/compare_resolvers.py`; not edited by hand. {named}; {' to '.join(days)}.",
        "",
        *_INTRODUCTION,
        "",
    )
    for tool in OTHERS:
        asked = [one for one in comparisons if tool in one.theirs]
        counts = Counter(_kind(verdict(one, tool)) for one in asked)
        told = ", ".join(
            f"{counts[kind]} {kind}" for kind in ("agree", "both valid", "none in time", "disputed") if counts[kind]
        )
        yield f"- beside {tool}, {len(asked)} sets: {told}"
    yield from (
        "",
        "| requirements | target | provision | uv | pip | beside uv | beside pip |",
        "| --- | --- | --: | --: | --: | --- | --- |",
    )
    for comparison in comparisons:
        yield f"| {' | '.join(row(comparison))} |"
    for comparison in comparisons:
        lines = list(details(comparison))
        if lines:
            yield from ("", f"## {comparison.request.name}", "", *(f"- {line}" for line in lines))


def _kind(told: str) -> str:
    if told in _AGREED:
        return "agree"
    if told == "both valid":
        return told
    return "disputed" if told.startswith("**") else "none in time"
