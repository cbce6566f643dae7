"""Run the program within the process of a test, as a shell would run it."""

from __future__ import annotations

import pytest

from provisioner.cli.app import main


def leave(*words: object) -> int:
    """Run a command line, words and paths, and return its exit code."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code
