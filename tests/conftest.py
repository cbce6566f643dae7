"""What every test gets: a quiet terminal, a cache of its own, and goldens that `pytest --accept` rewrites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="rewrite the golden files; the diff is the review")


@pytest.fixture(scope="session", autouse=True)
def isolated_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache that starts empty and a terminal without colour; the installer's own configuration is left alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "80")
        patch.delenv("FORCE_COLOR", raising=False)
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare text with a committed file; `pytest --accept` rewrites the file instead."""

    def check(path: Path, actual: str) -> None:
        if request.config.getoption("--accept"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8")
        assert path.is_file(), f"{path} does not exist; run pytest --accept and review the new file"
        assert actual == path.read_text(encoding="utf-8"), f"{path} differs; run pytest --accept and read the diff"

    return check
