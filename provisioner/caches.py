"""Where the program keeps what it can make again: one folder of the user's, asked for before anything else is imported."""

from __future__ import annotations

import os
import sys

NAME = "provision"


def cache_directory() -> str:
    """The user's cache directory for this program: what `platformdirs` says, which takes 2 ms to import, so is asked last."""
    stated, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if sys.platform == "linux" and "ANDROID_DATA" not in os.environ:
        if stated.startswith("/"):
            return os.path.join(stated, NAME)  # noqa: PTH118 - `pathlib` is not imported yet
        if not stated and home.startswith("/"):
            return os.path.join(home, ".cache", NAME)  # noqa: PTH118
    from platformdirs import user_cache_dir

    return user_cache_dir(NAME)
