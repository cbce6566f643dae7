"""Render a lock as a requirements file for pip and uv: versions and hashes, for whatever index the installer asks.

A package of another index than the installer's own is looked up on the page of its project there (`--find-links`), so that this
index answers for no other name (docs/decisions/186-requirements-name-versions.md).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from provisioner.render.chosen_files import HOW_TO_INSTALL, lines_by_file, lines_by_version
from provisioner.render.header import header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock, LockedPackage

_PYPI = "https://pypi.org/simple"
_INSTALLERS_OWN = frozenset({"pypi", "main"})
"""The names of the default index of the installer's own configuration."""


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the requirements file of a lock; the paths of local wheels are relative to the working directory of pip."""
    main = _main_index(lock)
    own = next((package.index_url for package in lock.packages if package.index == main), "")
    options = [f"--index-url {own}"] if own not in {"", _PYPI} and f"indexes.{main}" in lock.asked else []
    pages = {page: None for package in lock.packages if (page := _page(package, lock, main))}
    lines = [line for package in lock.packages for line in _lines(package, lock, main)]
    start = [str(header(lock, lock_file_name, HOW_TO_INSTALL)), *options, *(f"--find-links {page}" for page in pages)]
    return "\n".join([*start, *lines]) + "\n"


def _main_index(lock: Lock) -> str:
    """Return the name of the index that needs no page: of those that the spec lists, the one with most packages.

    Where the spec lists none, it is the default index of the installer's own configuration.
    """
    counts = Counter(package.index for package in lock.packages if f"indexes.{package.index}" in lock.asked)
    if counts:
        return min(counts, key=lambda name: (-counts[name], name))
    return next((package.index for package in lock.packages if package.index in _INSTALLERS_OWN), "")


def _page(package: LockedPackage, lock: Lock, main: str) -> str:
    """Return the page that lists the files of a package; "" where its line names the file, or the main index has it."""
    if package.index == main or _is_named_by_file(package, main):
        return ""
    is_page = lock.asked.get(f"indexes.{package.index}.kind") == "find-links"
    return package.index_url if is_page else f"{package.index_url}/{package.name}/"


def _is_named_by_file(package: LockedPackage, main: str) -> bool:
    """Return whether only the file of a package can be named: it was requested by URL or path, or its index is unknown."""
    is_known = bool(package.index) and (package.index == main or bool(package.index_url))
    return not is_known or package.archive is not None or any(file.path for file in package.files)


def _lines(package: LockedPackage, lock: Lock, main: str) -> Iterator[str]:
    lines = lines_by_file if _is_named_by_file(package, main) else lines_by_version
    yield from lines(package, lock.platforms)
