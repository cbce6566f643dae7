"""The page of a validation in a real browser: it obeys its own policy, fits narrow screens, and axe finds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.browse.validation_page import validation_page
from provisioner.errors import visible
from tests.browser.conftest import visit
from tests.browser.test_site import complaints
from tests.unit.evidence.reports import HOSTILE, gpu_report, report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    path = tmp_path / "validation.html"
    path.write_text(validation_page([gpu_report(), report("yes", platform="linux/arm64")]), encoding="utf-8")
    return path


def test_the_page_is_styled_by_itself_and_runs_and_loads_nothing(browser: Browser, page_file: Path) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 640})
    made = visit(context, page_file.parent)
    made.page.goto(page_file.as_uri())
    page = made.page
    assert page.locator("h1").inner_text() == "Validation of pylock.trainer.toml"
    assert page.evaluate("getComputedStyle(document.querySelector('.answer.no')).fontWeight") == "650"
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.evaluate("document.scripts.length") == 0
    assert page.locator("td.note").nth(2).text_content() == visible(HOSTILE)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    context.close()
    assert made.problems == []
    assert made.requests == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_it(browser: Browser, page_file: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]  # light or dark
    try:
        page = context.new_page()
        page.goto(page_file.as_uri())
        assert complaints(axe, page) == []
    finally:
        context.close()
