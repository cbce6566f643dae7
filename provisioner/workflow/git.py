"""What git knows of a folder: the root of its work tree, the files that it does not ignore, and files of the last commit.

Every function answers None where there is no git, no work tree, or git refuses to read it, as it does that of another user.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_OF_A_HOOK = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE")
"""Variables that git sets for its hooks; with them, `git -C folder` would not ask about the folder."""


def work_tree(folder: Path) -> Path | None:
    """Return the root of the work tree that a folder is in."""
    found = _git(folder, "rev-parse", "--show-toplevel")
    return Path(os.fsdecode(found.removesuffix(b"\n"))) if found else None


def files_in(folder: Path) -> list[Path] | None:
    """Return the files below a folder, relative to it, that are tracked, or neither tracked nor ignored; sorted.

    None for a folder that is ignored itself: whoever names it means what is in it.
    """
    if _git(folder, "check-ignore", "--quiet", ".") is not None:
        return None
    found = _git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted({Path(os.fsdecode(name)) for name in found.split(b"\0") if name}) if found is not None else None


def committed(path: Path) -> bytes | None:
    """Return the content of a file in the last commit; None, too, when the commit has no such file."""
    return _git(path.parent, "show", f"HEAD:./{path.name}")


def was_committed(path: Path) -> bool:
    """Return whether a commit that led to the last one has a file of this path; False, too, where nothing is known of it."""
    folder = next((one for one in path.parents if one.is_dir()), Path())
    return bool(_git(folder, "log", "-1", "--format=%H", "--", str(path.relative_to(folder))))


def _git(folder: Path, *words: str) -> bytes | None:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    command = ("git", "-C", str(folder), *words)
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=environment)  # noqa: S603 - words of our own
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
