"""What every test gets: a quiet terminal, a cache of its own, and goldens that `pytest --accept` rewrites.

`make test` leaves out what is marked `slow`. A test that takes more than about three seconds is marked where it stands; what
needs something from outside, stands in a folder or module of `SLOW`, or in the list of `slow.txt`, is marked here.

Where pip reaches no index, tests marked `network` are skipped; with PROVISION_REQUIRE_INDEX=1 they fail.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from provisioner.cli import display
from tests.failed_tests import pytest_runtest_makereport, pytest_runtest_protocol  # noqa: F401 - hooks that pytest finds here
from tests.shipped import shipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provisioner.matrix.model import Matrix


SLOW = (
    "bad_input/test_cache.py",
    "bad_input/test_disk.py",
    "browser",
    "cli/test_cache.py",
    "cli/test_matrix_audit.py",
    "cli/test_progress.py",
    "cli/test_requirements_install.py",
    "cli/test_solve_credentials.py",
    "cli/test_unescaped_logins.py",
    "cluster",
    "container",
    "property/test_check_changes_laws.py",
    "property/test_explanations.py",
    "property/test_gate_agreement.py",
    "property/test_lock_garbage.py",
    "unit/index/test_build.py",
)
"""The folders and modules of `tests` in which every test is slow."""

LISTED = frozenset(
    line for line in (Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
)
"""Tests that take half a second or more, as measured; a name that no test has is a mistake where all tests are collected."""

OUTSIDE = ("browser", "docker", "gpu", "kubectl", "network", "slurm")
"""The markers of what a test needs from outside, which makes it slow."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept", action="store_true", help="rewrite the golden files; the diff is the review")


def pytest_configure() -> None:
    """Interrupts reach the programs that tests start, though a shell has what it starts in the background ignore them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:  # noqa: ANN401 - xdist has no types
    """Give the files of container tests to one worker: they share an engine, whose layers and tags they build and remove."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class OneEngine(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            return "tests/container" if file.startswith("tests/container/") else file

    return OneEngine(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid in LISTED or is_in_slow_place(item.path) or any(map(item.get_closest_marker, OUTSIDE)):
            item.add_marker("slow")
    gone = LISTED.difference(item.nodeid for item in items)
    if gone and config.args == config.getini("testpaths"):
        raise pytest.UsageError(f"tests/slow.txt names tests that do not exist: {', '.join(sorted(gone))}")


@functools.cache
def is_in_slow_place(path: Path) -> bool:
    """Whether a module of tests is named in `SLOW`, or stands in a folder that is; asked once for each module."""
    return any(path.is_relative_to(Path(__file__).parent / place) for place in SLOW)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("network") is None or index_answers():
        return
    reason = "pip reaches no package index: `pip download six` failed"
    if os.environ.get("PROVISION_REQUIRE_INDEX") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@functools.cache
def index_answers() -> bool:
    """Whether pip, as it is configured, can download a small package now; asked once, and only when a test needs to know."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps", "--retries=1", "--timeout=15"]
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*command, f"--dest={folder}", "six"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session", autouse=True)
def isolated_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache that starts empty, a terminal without colour and progress; the installer's own configuration is left alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(display, "PROGRESS_DELAY_SECONDS", 3600.0)  # a slow machine adds such lines to what a test compares
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "80")
        patch.delenv("FORCE_COLOR", raising=False)
        yield


@pytest.fixture(scope="session")
def matrix(isolated_environment: None) -> Matrix:
    """The shipped matrix, read once."""
    return shipped()


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
