"""Flowcharts of the pages as pictures: what is drawn, that boxes do not overlap, and what is refused."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from xml.etree.ElementTree import fromstring

import draw
import flowchart
import pytest

PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"
CHARTS = re.findall(r"```mermaid\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def boxes(source: str) -> dict[str, tuple[float, float, float]]:
    """Return left, right and top of every box of a flowchart."""
    texts = re.findall(r"<rect (.*?)/>\n<text .*?>(.*?)</text>", flowchart.svg(source))
    found = {}
    for written, name in texts:
        x, y, width = (float(re.search(rf'\b{key}="([-\d.]+)"', written)[1]) for key in ("x", "y", "width"))  # type: ignore[index]
        found[name] = (x, x + width, y)
    return found


@pytest.mark.parametrize("source", CHARTS)
def test_every_part_is_a_box_above_those_that_import_it_and_none_overlap(source: str) -> None:
    arrows, found = flowchart.arrows_in(source), boxes(source)
    assert set(found) == {name for arrow in arrows for name in arrow}
    assert all(found[other][2] < found[one][2] for one, other in arrows)
    for (left, right, y), (other_left, other_right, other_y) in combinations(found.values(), 2):
        assert y != other_y or right < other_left or other_right < left
    assert flowchart.svg(source).count("marker-end=") == len(arrows)


@pytest.mark.parametrize("source", CHARTS)
def test_a_picture_is_well_formed_and_always_the_same(source: str) -> None:
    fromstring(flowchart.svg(source))
    assert flowchart.svg(source) == flowchart.svg(source)


def test_rows_are_sorted_so_that_arrows_do_not_cross() -> None:
    found = boxes("flowchart BT\n  a --> z\n  b --> y\n  c --> x\n  d --> a\n  d --> b\n  d --> c\n")
    tops = sorted("xyz", key=lambda name: found[name])
    below = {"x": "c", "y": "b", "z": "a"}
    assert [below[name] for name in tops] == sorted("abc", key=lambda name: found[name])


@pytest.mark.parametrize("source", ["flowchart LR\n  a --> b\n", "flowchart BT\n", "flowchart BT\n  a -->|uses| b\n"])
def test_other_mermaid_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="only `flowchart BT` and its arrows are drawn"):
        flowchart.svg(source)


def test_what_the_page_draws_is_what_can_be_drawn() -> None:
    assert all(flowchart.arrows_in(draw.picture(package)) for package in ("provisioner", "provisioner.resolver"))
