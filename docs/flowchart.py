"""Draw flowcharts that are written in Mermaid, as SVG in the colours of the page around them.

GitHub draws such a block of a page itself; the site draws it when it is built, so that no script is fetched or run. Only what
`docs/draw.py` writes is read: a flowchart from the bottom to the top without circles, an arrow a line, names without labels.

The method is that of Sugiyama, Tagawa and Toda (1981, doi:10.1109/TSMC.1981.4308636): parts in rows, an arrow through a row
gets a place of its own in it, rows are sorted so that few arrows cross, and each place moves to the middle of what it is joined
to. It is no library's: fast-sugiyama 0.5.3 draws one flowchart differently in each process, and a site must not change so.
"""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from html import escape
from itertools import pairwise
from typing import NamedTuple

Place = tuple[str, ...]
"""A box, as the name in it, or the place where an arrow crosses a row: its ends and the number of the row."""

BOX, LINE, ROW, GAP, LETTER = 26, 14, 62, 14, 7.3
"""The height of a box, the width of an arrow's place, the distance of rows and of places in a row, the width of a letter."""

SWEEPS = 24
"""How often rows are sorted, and places moved: down and up in turn."""

STYLE = """\
.flowchart{display:block;width:100%;height:auto;margin:1rem 0;font:12px var(--font-stack--monospace,monospace)}
.flowchart rect{fill:var(--color-background-secondary);stroke:var(--color-foreground-border)}
.flowchart text{fill:var(--color-foreground-primary);text-anchor:middle}
.flowchart path{fill:none;stroke:var(--color-foreground-muted)}
.flowchart marker path{fill:var(--color-foreground-muted);stroke:none}"""


class Chart(NamedTuple):
    """The rows of a flowchart from the top, and what each place is joined to in the row above it."""

    rows: list[list[Place]]
    above: dict[Place, list[Place]]

    @property
    def below(self) -> dict[Place, list[Place]]:
        """What each place is joined to in the row below it."""
        found: dict[Place, list[Place]] = {}
        for place, others in self.above.items():
            for other in others:
                found.setdefault(other, []).append(place)
        return found


def svg(source: str, *, number: int = 1) -> str:
    """Return a flowchart as an element of a page, in which `number` tells it from others.

    Raises `ValueError` for other Mermaid than `draw.py` writes.
    """
    arrows = arrows_in(source)
    chart = _sorted(_rows(arrows))
    x, width = _columns(chart)
    y = {place: BOX / 2 + 1 + row * ROW for row, places in enumerate(chart.rows) for place in places}
    height = BOX + 2 + (len(chart.rows) - 1) * ROW
    tip = f"flowchart-tip-{number}"
    shown = [
        f'<svg class="flowchart" viewBox="0 0 {width:.0f} {height}" style="max-width:{width:.0f}px" role="img">',
        f"<title>{escape('; '.join(f'{one} → {other}' for one, other in arrows))}</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<defs><marker id="{tip}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for one, other in arrows:
        points = [(x[place], y[place]) for place in _through(one, other, chart)]
        shown.append(f'<path d="{_curve(points)}" marker-end="url(#{tip})"/>')
    for place in (place for row in chart.rows for place in row if len(place) == 1):
        size = _width(place)
        shown.append(f'<rect x="{x[place] - size / 2:.1f}" y="{y[place] - BOX / 2}" width="{size:.1f}" height="{BOX}" rx="4"/>')
        shown.append(f'<text x="{x[place]:.1f}" y="{y[place] + 4}">{escape(place[0])}</text>')
    return "\n".join([*shown, "</svg>"])


def arrows_in(source: str) -> list[tuple[str, str]]:
    """Return the arrows of a flowchart from the bottom to the top; raises `ValueError` for anything else in it."""
    first, *lines = source.strip().splitlines()
    found = [re.fullmatch(r"\s*([\w.]+) --> ([\w.]+)\s*", line) for line in lines]
    if first.strip() != "flowchart BT" or not found or None in found:
        raise ValueError(f"only `flowchart BT` and its arrows are drawn: {source!r}")
    return [(match[1], match[2]) for match in found if match is not None]


def _rows(arrows: list[tuple[str, str]]) -> Chart:
    """Return the boxes in rows, each below all that its arrows lead to, and as near to these as the first of them allows."""
    needed: dict[str, list[str]] = {}
    for one, other in arrows:
        needed.setdefault(one, []).append(other)
        needed.setdefault(other, [])
    row: dict[str, int] = {}
    order = [*TopologicalSorter(needed).static_order()]
    for name in order:
        row[name] = max((row[other] + 1 for other in needed[name]), default=0)
    for name in reversed(order):  # what needs little goes down to those that need it
        below = [row[one] for one, other in arrows if other == name]
        if len(below) >= len(needed[name]) and below:
            row[name] = min(below) - 1
    rows: list[list[Place]] = [[] for _ in range(max(row.values()) + 1)]
    for name in order:
        rows[row[name]].append((name,))
    above: dict[Place, list[Place]] = {}
    for one, other in arrows:
        crossed: list[Place] = [(one, other, str(at)) for at in range(row[one] - 1, row[other], -1)]
        for place in crossed:
            rows[int(place[2])].append(place)
        for lower, upper in pairwise([(one,), *crossed, (other,)]):
            above.setdefault(lower, []).append(upper)
    return Chart(rows, above)


def _through(one: str, other: str, chart: Chart) -> list[Place]:
    found: list[Place] = [(one,)]
    while found[-1] != (other,):
        found.append(next(place for place in chart.above[found[-1]] if place == (other,) or place[:2] == (one, other)))
    return found


def _sorted(chart: Chart) -> Chart:
    """Return the chart with each row sorted by the middle of what its places are joined to: the best of several sweeps."""
    rows, below = [list(row) for row in chart.rows], chart.below
    best, fewest = chart.rows, _crossings(chart)
    for sweep in range(SWEEPS):
        is_down = sweep % 2 == 0
        joined = chart.above if is_down else below
        steps = range(1, len(rows)) if is_down else range(len(rows) - 2, -1, -1)
        for at in steps:
            beside = {place: index for index, place in enumerate(rows[at - 1 if is_down else at + 1])}
            own = {place: index for index, place in enumerate(rows[at])}
            rows[at].sort(key=lambda place: (_middle([beside[one] for one in joined.get(place, ())], own[place]), own[place]))
        if (found := _crossings(Chart(rows, chart.above))) < fewest:
            best, fewest = [list(row) for row in rows], found
    return Chart(best, chart.above)


def _middle(values: list[int], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(chart: Chart) -> int:
    count = 0
    for upper, lower in pairwise(chart.rows):
        at = {place: index for index, place in enumerate(upper)}
        ends = [at[one] for place in lower for one in sorted(chart.above.get(place, ()), key=lambda one: at[one])]
        count += sum(1 for index, end in enumerate(ends) for later in ends[index + 1 :] if later < end)
    return count


def _columns(chart: Chart) -> tuple[dict[Place, float], float]:
    """Return the middle of every place, and the width of all: each as near to what it is joined to as its row lets it be."""
    x: dict[Place, float] = {}
    for row in chart.rows:
        x.update(zip(row, _apart(row, [0.0] * len(row)), strict=True))
    below = chart.below
    for sweep in range(SWEEPS):
        for row in chart.rows if sweep % 2 == 0 else reversed(chart.rows):
            wanted = []
            for place in row:
                joined = [x[one] for one in (*chart.above.get(place, ()), *below.get(place, ()))]
                wanted.append(sum(joined) / len(joined))
            x.update(zip(row, _apart(row, wanted), strict=True))
    left = min(x[place] - _width(place) / 2 for place in x) - 1
    return {place: value - left for place, value in x.items()}, max(x[place] + _width(place) / 2 for place in x) - left + 1


def _apart(row: list[Place], wanted: list[float]) -> list[float]:
    """Return the middles nearest to those wanted, by least squares, of places that keep their order and do not overlap.

    Less the distance from the first place, the middles may not fall: neighbours that would are pooled at their mean.
    """
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (_width(one) + _width(other)) / 2 + GAP)
    pools: list[tuple[float, int]] = []
    for value, offset in zip(wanted, offsets, strict=True):
        total, count = value - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            total, count = total + pools[-1][0], count + pools[-1][1]
            pools.pop()
        pools.append((total, count))
    means = [total / count for total, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _width(place: Place) -> float:
    return len(place[0]) * LETTER + 16 if len(place) == 1 else LINE


def _curve(points: list[tuple[float, float]]) -> str:
    """Return a curve through places, upright in each, from the top of the first box to the bottom of the last."""
    (x, y), *rest = points
    drawn = f"M{x:.1f} {y - BOX / 2:.1f}"
    below = y - BOX / 2
    for index, (to_x, to_y) in enumerate(rest):
        to = to_y + BOX / 2 if index == len(rest) - 1 else to_y
        drawn += f"C{x:.1f} {(below + to) / 2:.1f} {to_x:.1f} {(below + to) / 2:.1f} {to_x:.1f} {to:.1f}"
        x, below = to_x, to
    return drawn
