"""The folder of the program's cache, whose content can be fetched or computed again."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "PROVISION_CACHE_DIR"
"""The environment variable that names the cache directory; the option `--cache-dir` sets it for one run."""


def cache_directory() -> Path:
    """Return the cache directory, which may not exist: the one that `VARIABLE` names, else the user's for this program.

    The user's is where the conventions of the operating system have it.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    from platformdirs import user_cache_path

    return user_cache_path("provision")
