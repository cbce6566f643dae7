"""The page of a lock in a real browser: it obeys its own policy, fits narrow screens and paper, and axe finds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.errors import visible
from tests.browser.conftest import visit
from tests.browser.test_site import complaints
from tests.unit.browse.explained import page, page_without_spec
from tests.unit.evidence.reports import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(params=["explained", "recorded"])
def page_file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "lock.html"
    path.write_text(page() if request.param == "explained" else page_without_spec(), encoding="utf-8")
    return path


def test_the_page_fits_a_phone_and_runs_and_loads_nothing(browser: Browser, page_file: Path) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 640})
    made = visit(context, page_file.parent)
    made.page.goto(page_file.as_uri())
    shown = made.page
    assert shown.locator("h1").inner_text() == "pylock.trainer.toml"
    assert shown.evaluate("getComputedStyle(document.querySelector('.answer')).fontWeight") == "650"
    assert shown.evaluate("document.documentElement.scrollWidth") <= 320
    assert shown.evaluate("document.scripts.length") == 0
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.textContent") == "Skip to the content"
    context.close()
    assert made.problems == []
    assert made.requests == []


def test_a_proof_opens_without_a_script_and_is_printed_whether_or_not_it_is_open(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "lock.html"
    path.write_text(page(), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    made = visit(context, tmp_path)
    made.page.goto(path.as_uri())
    summary = made.page.locator("summary", has_text="not jax 0.9 to 0.10")
    proof = made.page.get_by_text("so jax 0.10.1 cannot be chosen for this host")
    assert proof.is_visible()
    summary.focus()
    made.page.keyboard.press("Enter")
    assert not proof.is_visible()
    made.page.emulate_media(media="print")
    assert proof.is_visible()
    assert made.page.get_by_text(f"needs gpu >=7.0: {visible(HOSTILE)}").is_visible()
    assert not made.page.locator("nav").is_visible()
    context.close()
    assert made.problems == []


def test_a_link_of_a_layer_leads_to_its_reasons(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "lock.html"
    path.write_text(page(), encoding="utf-8")
    context = browser.new_context()
    made = visit(context, tmp_path)
    made.page.goto(path.as_uri())
    made.page.locator(".layer a", has_text="jax 0.8.0").first.click()
    target = made.page.evaluate("document.querySelector(':target').textContent")
    assert target == "jax 0.8.0 the newest is 0.10.1"
    context.close()
    assert made.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_it(browser: Browser, page_file: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]  # light or dark
    try:
        shown = context.new_page()
        shown.goto(page_file.as_uri())
        assert complaints(axe, shown) == []
        paper = shown.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert paper == {"light": "rgb(251, 251, 249)", "dark": "rgb(20, 24, 27)"}[scheme]
    finally:
        context.close()
