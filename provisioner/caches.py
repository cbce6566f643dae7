"""The folder of the program's cache, whose content can be fetched or computed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def cache_directory() -> Path:
    """Return the user's cache directory for this program, by the conventions of the operating system; it may not exist."""
    from platformdirs import user_cache_path

    return user_cache_path("provision")
