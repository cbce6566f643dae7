"""The heat map: walked by keyboard, each cell opening what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser

PLACE = """() => { const cell = document.activeElement; const row = cell.parentElement;
  return [[...row.parentElement.rows].indexOf(row), [...row.cells].indexOf(cell) - 1]; }"""


def place(page: Page) -> list[int]:
    """Row and column of the cell that has the focus."""
    found = page.evaluate(PLACE)
    assert isinstance(found, list)
    return found


def enter_map(page: Page) -> tuple[int, int]:
    """Focus the grid with the Tab key alone, from the field before it; returns its last row and column."""
    page.get_by_label("only the newest release of each series").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.cell')"):
            break
    assert place(page) == [0, 0]
    rows = page.locator(".map tbody tr").count()
    return rows - 1, page.locator(".map tbody tr").first.locator("td").count() - 1


def test_the_arrow_keys_walk_the_grid_and_stop_at_its_edges(visitor: Visit) -> None:
    page = visitor.open("map")
    bottom, right = enter_map(page)
    for key, expected in (
        ("ArrowUp", [0, 0]),
        ("ArrowDown", [1, 0]),
        ("ArrowRight", [1, 1]),
        ("End", [1, right]),
        ("ArrowRight", [1, right]),
        ("Control+End", [bottom, right]),
        ("ArrowDown", [bottom, right]),
        ("Home", [bottom, 0]),
        ("PageUp", [bottom - 10, 0]),
        ("Control+Home", [0, 0]),
    ):
        page.keyboard.press(key)
        assert place(page) == expected, key


def test_one_cell_is_in_the_tab_order(visitor: Visit) -> None:
    page = visitor.open("map")
    enter_map(page)
    page.keyboard.press("ArrowDown")
    assert page.locator('.cell[tabindex="0"]').count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('.cell')") is False
    page.keyboard.press("Shift+Tab")
    assert place(page) == [1, 0]


def test_the_focus_can_be_seen(visitor: Visit) -> None:
    page = visitor.open("map")
    enter_map(page)
    style = page.evaluate(
        "(() => { const style = getComputedStyle(document.activeElement); return [style.outlineStyle, style.outlineWidth]; })()"
    )
    assert style == ["solid", "3px"]


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_evidence_opens_and_escape_returns_to_the_cell(visitor: Visit, key: str) -> None:
    page = visitor.open("map")
    enter_map(page)
    page.keyboard.press("ArrowDown")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press(key)
    dialog = page.get_by_role("dialog")
    assert dialog.is_visible()
    assert label.startswith(dialog.get_by_role("heading", level=2).inner_text())
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert place(page) == [1, 0]


def test_a_refused_cell_names_its_rule_and_the_rule_s_sources(visitor: Visit) -> None:
    """Rule driver-590-drops-volta; the CPU of the machine plays no part."""
    page = visitor.open("map?every=1")
    volta = page.evaluate("String(Site.grid.devices.findIndex(one => one.target === '7.0'))")
    page.get_by_label("GPU", exact=True).select_option(volta)
    page.locator('[aria-label="PyTorch 2.7.1 cu126, driver 590: refused"]').click()
    dialog = page.get_by_role("dialog")
    assert "Rule driver-590-drops-volta" in dialog.inner_text()
    assert dialog.locator(".fact.against .sources li").count() >= 1
    dialog.get_by_role("link", name="Rule driver-590-drops-volta").click()
    page.wait_for_selector("h1:has-text('Rule driver-590-drops-volta')")
    assert not dialog.is_visible()


def test_letters_say_what_colours_say(visitor: Visit) -> None:
    page = visitor.open("map")
    marks = {"n": "N", "m": "M", "f": "F", "p": "P", "u": "?", "x": "\u00d7"}
    cells = page.evaluate("[...document.querySelectorAll('.cell')].map(cell => [cell.className.slice(5), cell.textContent])")
    assert len(cells) > 500
    assert {letter for letter, _ in cells} >= {"n", "m", "x"}
    assert all(marks[letter] == text for letter, text in cells if letter)


def test_gpus_across_for_one_branch(visitor: Visit) -> None:
    page = visitor.open("map?across=gpu")
    assert page.get_by_label("Driver branch").is_visible()
    assert not page.get_by_label("GPU", exact=True).is_visible()
    heads = page.locator(".map thead tr").last.locator("th").all_inner_texts()
    assert heads[0] == "Build"
    assert {"9.0", "8.0", "7.0"} <= set(heads)
    assert "Hopper" in page.locator(".map thead tr").first.inner_text()


def test_every_view_has_an_address(visitor: Visit) -> None:
    page = visitor.open("map")
    page.get_by_label("Build", exact=True).select_option("cu126")
    page.get_by_label("only the newest release of each series").uncheck()
    before = page.locator(".map tbody tr").count()
    address = page.url.partition("#/")[2]
    again = visitor.open(address)
    assert again.get_by_label("Build", exact=True).input_value() == "cu126"
    assert again.locator(".map tbody tr").count() == before
