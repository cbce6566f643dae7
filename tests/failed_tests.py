"""Frees what a failed test left, so that no other test fails by it; a plugin of pytest.

The traceback of a failure holds every frame, and with them sockets and processes. They would be freed by a later collection of
garbage, while another test runs: mostly a law that takes a minute. A socket that was not closed is a warning, warnings are
errors, and that law would be told as broken, without a counterexample.
"""

from __future__ import annotations

import gc
import sys
import warnings
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_HAS_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a phase of a test failed."""
    report = yield
    item.stash[_HAS_FAILED] = item.stash.get(_HAS_FAILED, False) or report.failed
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Collect the garbage of a failed test, without the warnings about what it had not closed."""
    result = yield
    if item.stash.get(_HAS_FAILED, False):
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            if hasattr(sys, name):
                delattr(sys, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
    return result
