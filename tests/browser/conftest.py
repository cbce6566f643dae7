"""A real browser without a network, and the site of the shipped matrix opened from its files.

Debian's Chromium is driven through Playwright; where there is none the tests are skipped with a reason. With
PROVISION_REQUIRE_BROWSER=1 they fail instead.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

import pytest

from provisioner.browse.site import site_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

    from provisioner.matrix.model import Matrix


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "browser: needs a Chromium")


def unavailable(reason: str) -> NoReturn:
    """Skip, or fail where a browser is required."""
    if os.environ.get("PROVISION_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium, as the system has it."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        unavailable("there is no Chromium on the PATH (Debian: chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        unavailable("playwright is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def site(matrix: Matrix, tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Path:
    """The folder of the site; asked for after the browser, so that nothing is made in vain."""
    folder = tmp_path_factory.mktemp("site")
    for name, content in site_files(matrix).items():
        (folder / name).write_bytes(content)
    return folder


@dataclass(slots=True)
class Visit:
    """One page of the site, with everything that went wrong or left the folder while it was open."""

    page: Page
    folder: Path
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, route: str) -> Page:
        """Go to a route of the site, such as `map?across=gpu`, in a fresh document."""
        self.page.goto("about:blank")
        self.page.goto(f"{(self.folder / 'index.html').as_uri()}#/{route}")
        self.page.wait_for_selector("h1")
        return self.page


def visit(context: BrowserContext, folder: Path) -> Visit:
    """A page in a context without network that notes errors and every request that is not for a file of the site."""
    context.set_offline(True)
    made = Visit(context.new_page(), folder)
    inside = folder.as_uri()
    made.page.on(
        "console", lambda message: made.problems.append(message.text) if message.type in {"error", "warning"} else None
    )
    made.page.on("pageerror", lambda error: made.problems.append(str(error)))
    made.page.on(
        "request",
        lambda request: None if request.url.startswith((inside, "data:", "about:")) else made.requests.append(request.url),
    )
    return made


@pytest.fixture
def visitor(browser: Browser, site: Path) -> Iterator[Visit]:
    """A wide screen; whatever a test does, no error may be logged and no request may leave the folder."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    made = visit(context, site)
    yield made
    context.close()
    assert made.problems == []
    assert made.requests == []


@pytest.fixture
def narrow(browser: Browser, site: Path) -> Iterator[Visit]:
    """A screen of 320 pixels, the narrowest that WCAG 2.2 (1.4.10, Reflow) asks about."""
    context = browser.new_context(viewport={"width": 320, "height": 640})
    made = visit(context, site)
    yield made
    context.close()
    assert made.problems == []
    assert made.requests == []
