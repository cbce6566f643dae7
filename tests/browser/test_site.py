"""The rest of the site: reading, searching, narrow screens, and what assistive technology is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from provisioner.matrix.model import Matrix
    from tests.browser.conftest import Visit

pytestmark = pytest.mark.browser

ROUTES = (
    "host?gpu=NVIDIA+T4&driver=470",
    "host?gpu=NVIDIA+V100&driver=590",
    "map",
    "map?across=gpu",
    "components",
    "components/pytorch/2.7.1",
    "components/image",
    "rules",
    "rules/cuda-13-gpu-floor",
    "sources",
    "sources/ptxas-target-lists",
    "notes",
    "search?q=a100",
    "rocm",
    "macs",
    "packages",
    "packages/vllm-flash-attn",
    "mine",
)
DARK = ("host?gpu=NVIDIA+T4&driver=470", "map", "rocm", "mine", "components/pytorch/2.7.1")
"""Every colour of the dark scheme is on one of these."""


@pytest.mark.parametrize("route", ROUTES)
def test_no_page_is_wider_than_the_narrowest_screen(narrow: Visit, route: str) -> None:
    page = narrow.open(route)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_map_scrolls_inside_itself_and_keeps_its_row_names(narrow: Visit) -> None:
    page = narrow.open("map")
    page.locator(".cell").first.focus()
    page.keyboard.press("End")
    box = page.locator(".map tbody th").first.bounding_box()
    assert box is not None
    assert 0 <= box["x"] < 40
    cell = page.evaluate("document.activeElement.getBoundingClientRect().right")
    assert cell <= 320


def test_evidence_fits_the_narrowest_screen(narrow: Visit) -> None:
    page = narrow.open("map")
    page.locator(".cell").first.click()
    box = page.get_by_role("dialog").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 320
    assert page.get_by_role("dialog").evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.parametrize(
    ("route", "scheme"), [*((route, "light") for route in ROUTES), *((route, "dark") for route in ROUTES if route in DARK)]
)
def test_axe_finds_nothing(browser: Browser, site: Path, route: str, scheme: str) -> None:
    """axe-core's rules, contrast among them, on every kind of page, and on the map with its evidence open."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]  # light or dark
    try:
        page = context.new_page()
        page.goto(f"{(site / 'index.html').as_uri()}#/{route}")
        page.wait_for_selector("h1")
        assert complaints(axe, page) == []
        if route == "map":
            page.locator(".cell").first.click()
            assert complaints(axe, page) == []
    finally:
        context.close()


def complaints(axe: object, page: Page) -> list[tuple[str, str]]:
    found = axe.run(page).response["violations"]  # type: ignore[attr-defined]  # the package has no types
    return [(one["id"], one["nodes"][0]["html"]) for one in found]


def test_the_first_stop_of_the_tab_key_skips_to_the_content(visitor: Visit) -> None:
    page = visitor.open("components")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.url.endswith("#/components")


def test_the_tree_that_screen_readers_are_given(visitor: Visit) -> None:
    page = visitor.open("map")
    snapshot = page.locator("body").aria_snapshot()
    for expected in (
        '- navigation "Pages":',
        "- search:",
        "- main:",
        '- heading "Framework \u00d7 CUDA \u00d7 driver \u00d7 GPU" [level=1]',
        '- grid "PyTorch builds on a GPU 8.0 datacenter, by driver branch, linux/amd64":',
        '- list "Legend":',
    ):
        assert expected in snapshot, expected
    assert 'gridcell "PyTorch 2.7.1 cu126, driver 535: runs by minor-version compatibility"' in snapshot


def test_a_page_takes_the_focus_and_names_the_window(visitor: Visit) -> None:
    page = visitor.open("components")
    page.get_by_role("link", name="Rules").first.click()
    page.wait_for_selector("h1:has-text('Rules')")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.title().startswith("Rules (")
    assert page.locator("[aria-current=page]").inner_text() == "Rules"
    page.go_back()
    page.wait_for_selector("h1:has-text('Components')")


def test_searching_finds_products_rules_and_releases(visitor: Visit) -> None:
    page = visitor.open("host")
    page.get_by_label("Search").fill("cuda 12.6.3")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Search: cuda 12.6.3')")
    page.get_by_role("link", name="NVIDIA CUDA 12.6.3", exact=True).click()
    page.wait_for_selector("h1:has-text('NVIDIA CUDA')")
    assert page.locator("details[open] summary").inner_text().startswith("12.6.3")
    assert "≥525.60.13 by minor-version compatibility" in page.locator("details[open]").inner_text()


def test_a_source_lists_what_it_speaks_for_and_links_back(visitor: Visit) -> None:
    page = visitor.open("sources/ptxas-target-lists")
    page.get_by_role("link", name="cuda-13-gpu-floor").click()
    page.wait_for_selector("h1:has-text('Rule cuda-13-gpu-floor')")
    assert "measured" in page.locator(".sources").inner_text()


def test_every_component_rule_and_source_has_its_page(visitor: Visit, matrix: Matrix) -> None:
    page = visitor.open("components")
    shown = """([kind, names]) => names.filter(name => {
      const made = Site.pages[kind]([name], new URLSearchParams());
      return !made.some(one => one.tagName === 'H1' && one.textContent.length > 0) || made.length < 3; })"""
    assert page.evaluate(shown, ["components", list(matrix.components)]) == []
    assert page.evaluate(shown, ["rules", [rule.name for rule in matrix.rules]]) == []
    assert page.evaluate(shown, ["sources", list(matrix.citations)]) == []


def test_nothing_moves_for_who_asked_for_stillness(browser: Browser, site: Path) -> None:
    context = browser.new_context(reduced_motion="reduce")
    try:
        page = context.new_page()
        page.goto((site / "index.html").as_uri())
        durations = page.evaluate("[...document.querySelectorAll('*')].map(one => getComputedStyle(one).transitionDuration)")
        assert set(durations) == {"0s"}
    finally:
        context.close()


def found(page: Page, asked: str) -> list[str]:
    routes = page.evaluate("asked => Site.search(asked).slice(0, 5).map(one => one.route)", asked)
    assert isinstance(routes, list)
    return routes


@pytest.mark.parametrize(
    ("asked", "route"),
    [
        ("sm_61", "host?gpu=6.1"),
        ("6.1", "host?gpu=6.1"),
        ("gfx942", "rocm?gpu=gfx942"),
        ("MI300X", "rocm?gpu=gfx942"),
        ("1080 ti", "host?gpu=GeForce%20GTX%201080%20Ti"),
        ("flash-attn", "packages/vllm-flash-attn"),
        ("flash_attn", "notes/extension-of-another-torch"),
        ("nccl", "components/nccl"),
        ("cuda==12.6.3", "components/cuda/12.6.3"),
        ("apple silicon", "macs"),
        ("M2", "macs?mac=0"),
        ("mac intel", "macs?mac=1"),
    ],
)
def test_the_nearest_answer_leads_to_the_right_view(visitor: Visit, asked: str, route: str) -> None:
    page = visitor.open("host")
    assert route in found(page, asked)


def test_a_package_and_what_goes_wrong_with_it_come_before_who_is_cited(visitor: Visit) -> None:
    page = visitor.open("search?q=flash-attn")
    kinds = [text.rsplit(" ", 1)[1] for text in page.locator("ul.found li").all_inner_texts()]
    assert kinds[0] == "package"
    assert kinds == [kind for kind in kinds if kind != "source"] + ["source"] * kinds.count("source")


def test_nothing_found_says_what_can_be_found(visitor: Visit) -> None:
    page = visitor.open("search?q=nothing-at-all")
    assert "sm_89" in page.locator("main").inner_text()
    page = visitor.open("rules")
    page.get_by_label("Filter").fill("nothing-at-all")
    assert page.locator("ul.found").inner_text() == "Nothing here has all of these words."


def test_a_note_is_found_under_its_name_whatever_else_has_the_name(visitor: Visit, matrix: Matrix) -> None:
    page = visitor.open("notes")
    named = [one for one in matrix.driver_packages if one.name == "linux-modules-nvidia-<branch>-<flavour>-7.0"]
    assert len(named) > 1
    page.get_by_role("link", name=named[0].name, exact=True).first.click()
    told = page.locator("main").inner_text()
    assert all(one.os in told for one in named)
    assert page.locator("main section").count() == len(named)


def test_the_head_is_one_line_beside_a_bar_to_scroll_with(visitor: Visit) -> None:
    page = visitor.open("macs")
    page.set_viewport_size({"width": 1280, "height": 800})
    box = page.locator(".top").bounding_box()
    assert box is not None
    assert box["height"] < 60


def test_the_arrow_keys_choose_what_is_found(visitor: Visit) -> None:
    page = visitor.open("components")
    field = page.get_by_role("combobox", name="Search")
    field.fill("sm_61")
    page.keyboard.press("ArrowDown")
    assert page.get_by_role("option", selected=True).inner_text().startswith("Compute capability 6.1")
    assert field.get_attribute("aria-activedescendant") == "found-0"
    page.keyboard.press("Escape")
    assert field.get_attribute("aria-expanded") == "false"
    field.fill("sm_6")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/index.html#/host?*")
    assert page.locator("#search-list").is_hidden()


def test_the_view_of_rocm_tells_what_an_override_is(visitor: Visit) -> None:
    page = visitor.open("rocm?gpu=gfx1031")
    assert page.get_by_label("GPU", exact=True).input_value() == "gfx1031"
    assert page.locator(".map .cell.o").count() > 0
    assert "gfx103x-as-gfx1030" in page.locator("#rocm-facts").inner_text()
    page.locator(".map .cell.o").first.click()
    assert "AMD does not support" in page.get_by_role("dialog").inner_text()


def test_the_view_of_macs(visitor: Visit) -> None:
    page = visitor.open("macs")
    assert "(mps) is the newest that runs on Apple silicon" in page.locator(".verdict").inner_text()
    page.get_by_label("Mac", exact=True).select_option(label="Intel, with a GPU of NVIDIA of compute capability 6.1")
    assert "No PyTorch of this matrix runs on Intel, NVIDIA 6.1" in page.locator(".verdict").inner_text()
    assert page.locator(".cell.n").count() > 0  # macOS 10.13
    assert "web-driver-ends-with-high-sierra" in page.locator("#mac-result").inner_text()


def test_no_two_rows_of_macs_have_the_same_name(visitor: Visit) -> None:
    names = visitor.open("macs").locator("tbody th").all_inner_texts()
    assert "2.10.0 mps (macOS >=14.0), Python 3.14" in names
    assert len(names) == len(set(names))
