"""Solve real requirement sets with provision, uv and pip, cross-examine the answers, write `docs/comparison.md`.

`python benchmarks/compare_resolvers.py`. All are given the same index, platform, Python and torch release, and may install
wheels only. Where another tool answers differently each is asked about the other's answer: uv and pip with provision's versions
as constraints, and provision with theirs as further requirements. An answer that the other tool accepts is a matter of
preference; one that it refuses is a mistake of one of the two.

What was answered is kept in `build/comparison/answers`, so that a run that was interrupted goes on where it was; `--again`
asks about the chosen sets anew, `--fresh` about all of them and with empty caches. `--ours` asks provision alone anew, for a
change of its own: where its answer is what it was, so is what the others made of it, and elsewhere all are asked anew.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from comparison import OTHERS, PATIENCE, Comparison
from comparison_page import details, is_disputed, page, row
from requirement_sets import SETS, RequirementSet
from resolvers import Answer, Tools, tools

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
SCRATCH = ROOT / "build" / "comparison"


def main() -> None:
    """Read the command line, compare the sets, and write the page."""
    options = _options()
    if options.fresh:
        shutil.rmtree(SCRATCH, ignore_errors=True)
    asked = tools(options.index, options.provision, SCRATCH, {**PATIENCE, **dict(options.patience)})
    chosen = [request for request in SETS if not options.only or any(word in request.name for word in options.only)]
    chosen = [request for request in chosen if not options.kept or _kept(request).exists()]
    comparisons = []
    for request in chosen:
        is_anew = options.again or (options.ours and not _is_ours_still(request, asked))
        comparison = _compared(request, asked, () if options.kept else options.tool or OTHERS, is_anew=is_anew)
        sys.stderr.write(f"{'; '.join(row(comparison))}\n")
        for line in details(comparison):
            sys.stderr.write(f"    {line}\n")
        sys.stderr.flush()
        comparisons.append(comparison)
    if not options.only:
        options.output.write_text("\n".join(page(comparisons)) + "\n", encoding="utf-8")
    sys.exit(any(is_disputed(one) and not one.request.why for one in comparisons))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORD", help="sets whose name holds WORD; writes no page")
    parser.add_argument("--tool", action="append", choices=OTHERS, help="ask this tool only; others may follow in another run")
    parser.add_argument("--kept", action="store_true", help="ask nobody: write the page of the sets that were answered")
    parser.add_argument("--again", action="store_true", help="ask about the chosen sets although there are answers")
    parser.add_argument("--ours", action="store_true", help="ask provision anew, and the others where it answers otherwise")
    parser.add_argument("--fresh", action="store_true", help="forget all answers and all that the tools have cached")
    parser.add_argument("--index", default=os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple"), metavar="URL")
    parser.add_argument("--provision", default=str(Path(sys.executable).parent / "provision"), metavar="FILE")
    parser.add_argument("--patience", action="append", default=[], type=_patience, metavar="TOOL=SECONDS")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "comparison.md", metavar="FILE")
    return parser.parse_args()


def _patience(text: str) -> tuple[str, int]:
    tool, _, seconds = text.partition("=")
    return tool, int(seconds)


def _kept(request: RequirementSet) -> Path:
    return SCRATCH / "answers" / f"{re.sub('[^a-z0-9]+', '-', request.name.lower())}.json"


def _compared(request: RequirementSet, asked: Tools, others: Sequence[str], *, is_anew: bool) -> Comparison:
    """The comparison of one set: what was kept, and new answers, which are kept, of the tools that have none yet."""
    kept = _kept(request)
    found = _read(kept.read_text(encoding="utf-8"), request) if kept.exists() and not is_anew else None
    if found is None:
        today = dt.datetime.now(tz=dt.UTC).date().isoformat()
        found = Comparison(request, today, asked.ask("provision", request, {}), {})
    absent = [tool for tool in others if tool not in found.theirs]
    if absent:
        found = _completed(found, absent, asked)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(found), indent=1), encoding="utf-8")
    return found


def _is_ours_still(request: RequirementSet, asked: Tools) -> bool:
    """Whether provision answers as it did when the answers that were kept were given."""
    kept = _kept(request)
    found = _read(kept.read_text(encoding="utf-8"), request) if kept.exists() else None
    if found is None:
        return False
    ours = asked.ask("provision", request, {})
    return (ours.code, ours.pins) == (found.ours.code, found.ours.pins)


def _completed(known: Comparison, absent: Sequence[str], asked: Tools) -> Comparison:
    """Ask more tools. They are given the framework release that provision chose, which is not theirs to choose."""
    request, ours = known.request, known.ours
    torch = {"torch": ours.pins["torch"]} if ours.pins is not None and "torch" in ours.pins else {}
    with ThreadPoolExecutor() as pool:
        new = dict(zip(absent, pool.map(lambda tool: asked.ask(tool, request, torch), absent), strict=True))
    plain = replace(known, theirs={**known.theirs, **new})
    by_other, by_ours = dict(known.by_other), dict(known.by_ours)
    for tool in absent:
        pins = new[tool].pins
        if not plain.differing(tool) and ours.code == new[tool].code:
            continue
        if ours.pins is not None:
            by_other[tool] = asked.ask(tool, request, ours.pins)
        if pins is not None:
            same = next((one for one in by_ours if plain.theirs[one].pins == pins), None)
            by_ours[tool] = by_ours[same] if same else asked.ask("provision", request, pins)
    return replace(plain, by_other=by_other, by_ours=by_ours)


def _read(text: str, request: RequirementSet) -> Comparison | None:
    """A comparison that was kept; None where the set has changed since."""
    told = json.loads(text)
    asked = asdict(request)
    if any(told["request"][key] != json.loads(json.dumps(asked[key])) for key in asked if key != "why"):
        return None
    answers = {key: {tool: Answer(**one) for tool, one in told[key].items()} for key in ("theirs", "by_other", "by_ours")}
    return Comparison(request, told["read"], Answer(**told["ours"]), **answers)


if __name__ == "__main__":
    main()
