"""What a failed test leaves open is its own affair: no later test fails by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

TWO = """
import gc
import socket

def test_that_fails():
    frame = {"socket": socket.socket()}
    frame["itself"] = frame
    assert not frame

def test_after_it():
    gc.collect()
"""


def test_a_socket_of_a_failed_test_fails_no_other(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(TWO, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.failed_tests", "-W", "error"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert finished.stdout.splitlines()[-1].startswith("1 failed, 1 passed"), finished.stdout
